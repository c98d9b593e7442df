// On which side of its limit a target lies, and which target decides.
import type { Report } from 'servecast';

type Target = Report['slo'][number];
export type Side = 'meets' | 'near' | 'misses';

/** Of the probability that a target is met: as the engine's Sureness has it (core/include/servecast/error_band.h). */
const sureness = { meets: 0.9, misses: 0.1 };

/** More requests got no answer than may be beyond the limit: whatever the others took, it is missed. */
export const isLost = ({ metric, unserved_share: unserved, percentile }: Target): boolean =>
  metric !== 'attainment' && unserved > 1 - percentile / 100;

/** On which side of its limit a target lies, by the probability of its band or else by its interval; null: nothing is
    known of it. */
export function sideOf(target: Target): Side | null {
  const { band, low, high } = target;
  if (target.metric !== 'attainment' && (target.unbounded || isLost(target))) return 'misses';
  if (band) return sideBy(band.probability);
  if (target.metric === 'attainment') {
    const { share, limit_share: limit = 1 } = target;
    if (share === null || share === undefined) return null;
    if (low === null || high === null) return share >= limit ? 'meets' : 'misses';
    return low >= limit ? 'meets' : high < limit ? 'misses' : 'near';
  }
  const { value_ms: value, limit_ms: limit } = target;
  if (value === null || limit === null) return null;
  if (low === null || high === null) return value <= limit ? 'meets' : 'misses';
  return high <= limit ? 'meets' : low > limit ? 'misses' : 'near';
}

function sideBy(probability: number): Side {
  if (probability >= sureness.meets) return 'meets';
  return probability <= sureness.misses ? 'misses' : 'near';
}

/** By how much a limit is passed, or approached: 1 is the limit. */
function strainOf({
  value_ms: value,
  limit_ms: limit,
  share,
  limit_share: least,
  unbounded,
  unserved_share: unserved,
  percentile,
}: Target): number {
  if (unbounded) return Infinity;
  const lost = unserved / (1 - percentile / 100);
  if (limit === null) return (1 - (share ?? 1)) / (1 - (least ?? 0));
  return Math.max(value === null ? 0 : value / limit, lost);
}

/** Whether a target's own figure is beyond its limit: more likely than not it is missed. A band does not change that. */
export const isBeyond = ({ slo }: Pick<Report, 'slo'>): boolean => slo.some((target) => strainOf(target) > 1);

/** That which the verdict's sentence names: of those missed, else of those too close to call, else of all, the most strained. */
export function decidingTarget(targets: readonly Target[]): Target | undefined {
  const of = (side: Side) => targets.filter((target) => sideOf(target) === side);
  const found = [of('misses'), of('near'), targets].find((each) => each.length > 0) ?? [];
  return [...found].sort((a, b) => strainOf(b) - strainOf(a))[0];
}

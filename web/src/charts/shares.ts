// Targets of plans: how near one is to its limit, and its name.
import type { PlanPoint, PlanTargetOf } from 'servecast';
import { sentence } from '../lib/format';

/** "TTFT p99": without its limit. */
export const shortTarget = (name: string): string =>
  sentence(name)
    .replace(/ [≤<].*$/, '')
    .replace(/\.$/, '');

/** Of a target's limit; of attainment what is beyond, of what may be. null: no bound. */
export function shareOfLimit(
  target: PlanTargetOf,
  found: PlanPoint['slo'][number] | undefined,
  end: 'value_ms' | 'low' | 'high',
): number | null {
  if (!found) return null;
  if (target.least_share !== null) {
    const { share } = found;
    return share === undefined ? null : (1 - share) / Math.max(1e-9, 1 - target.least_share);
  }
  const value = found[end];
  return typeof value === 'number' && target.limit_ms !== null ? value / target.limit_ms : null;
}

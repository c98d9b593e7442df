// What to say of an engine's advice and of its explanation: which changes are worth a row, what they cost, and which
// part of the time makes the slowest slow.
import type { AdvisedChange, Advice, Blame } from 'servecast';
import { countOf } from './format';
import { parts, type Part } from './requests';

/** Less is noise. */
const helps = 0.01;
const mostEnough = 4;
const mostPartial = 2;
const mostHelping = 6;
/** A GPU without a price costs more than any that has one. */
const unpriced = 1e6;

export type Ran = AdvisedChange &
  Required<Pick<AdvisedChange, 'effect' | 'meets' | 'slo' | 'overloaded' | 'served_per_s'>>;

type Priced = Pick<AdvisedChange, 'cost_per_hour' | 'gpus'>;

const ran = (change: AdvisedChange): change is Ran => change.effect !== undefined;

/** What is worth a row, in the engine's order: what is enough, then what brings it nearer; and what does not help. */
export function sorted(advice: Advice): { enough: readonly Ran[]; nearer: readonly Ran[]; useless: readonly Ran[] } {
  const all = advice.changes.filter(ran);
  const enough = all.filter(({ meets }) => meets);
  const nearer = all.filter(({ meets, effect }) => !meets && effect >= helps);
  const useless = all.filter(({ meets, effect }) => !meets && effect < helps);
  return { enough: enough.slice(0, mostEnough), nearer: nearer.slice(0, enough.length > 1 ? 0 : mostPartial), useless };
}

/** Of a target that is met: what gives it more room, by its cost, then by the room. */
export function improving(advice: Advice): { helping: readonly Ran[]; others: readonly Ran[] } {
  const all = advice.changes.filter(ran);
  const gives = ({ meets, effect }: Ran) => meets && effect >= helps;
  const costOf = ({ cost_per_hour: cost, gpus }: Ran) => cost ?? gpus * unpriced;
  const helping = all.filter(gives).sort((a, b) => costOf(a) - costOf(b) || b.effect - a.effect);
  const shown = helping.slice(0, mostHelping);
  return { helping: shown, others: all.filter((change) => !shown.includes(change)) };
}

/** The change that costs nothing and brings missed targets nearest, to be taken with more GPUs; null: none does. */
export function freeChange(advice: Advice): Ran | null {
  const { base } = advice;
  const isFree = ({ gpus, cost_per_hour: cost, effect }: Ran) =>
    base !== null && gpus === base.gpus && cost === base.cost_per_hour && effect >= helps;
  return (
    advice.changes
      .filter(ran)
      .filter(isFree)
      .sort((a, b) => b.effect - a.effect)[0] ?? null
  );
}

/** "+$2.50/h", "+1 GPU" where no price is known. */
export function costChange(change: Priced, base: Priced | null): string {
  if (!base) return '';
  const { cost_per_hour: cost, gpus } = change;
  const sign = (value: number) => (value < 0 ? '\u2212' : '+');
  if (cost !== null && base.cost_per_hour !== null) {
    const more = cost - base.cost_per_hour;
    return `${sign(more)}$${Math.abs(more).toFixed(Math.abs(more) >= 100 ? 0 : 2)}/h`;
  }
  const more = gpus - base.gpus;
  return more === 0 ? 'no more GPUs' : `${sign(more)}${countOf(Math.abs(more), 'GPU')}`;
}

/** The part that the slowest have most more of than all, and how much; null: they are not slower. */
export function culprit({ slowest, all }: Blame): { part: Part; ms: number; lost: number } | null {
  const lost = slowest.mean_ms - all.mean_ms;
  const [most] = parts
    .map((part) => ({ part, ms: slowest.parts_ms[part] - all.parts_ms[part] }))
    .sort((a, b) => b.ms - a.ms);
  return most && lost > 0 && most.ms > 0 ? { ...most, lost } : null;
}

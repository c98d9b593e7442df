// What to say of an engine's advice and of its explanation: which changes are worth a row, what they cost, and which
// part of the time makes the slowest slow.
import type { AdvisedChange, Advice, Blame } from 'servecast';
import { countOf } from './format';
import { parts, type Part } from './requests';

/** Less is noise. */
const helps = 0.01;
const mostEnough = 4;
const mostPartial = 2;

export type Ran = AdvisedChange &
  Required<Pick<AdvisedChange, 'effect' | 'meets' | 'slo' | 'overloaded' | 'served_per_s'>>;

const ran = (change: AdvisedChange): change is Ran => change.effect !== undefined;

/** What is worth a row, in the engine's order: what is enough, then what brings it nearer; and what does not help. */
export function sorted(advice: Advice): { enough: readonly Ran[]; nearer: readonly Ran[]; useless: readonly Ran[] } {
  const all = advice.changes.filter(ran);
  const enough = all.filter(({ meets }) => meets);
  const nearer = all.filter(({ meets, effect }) => !meets && effect >= helps);
  const useless = all.filter(({ meets, effect }) => !meets && effect < helps);
  return { enough: enough.slice(0, mostEnough), nearer: nearer.slice(0, enough.length > 1 ? 0 : mostPartial), useless };
}

/** "+$2.50/h", "+1 GPU" where no price is known. */
export function costChange(change: AdvisedChange, base: AdvisedChange | null): string {
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

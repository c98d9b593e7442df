// How much load the scenario on the page holds, as far as the plan of that question knows it: the verdict's line, the
// tick of the rate and the Plan view have one value, as all of them read it here.
import type { MaxRate, PlanAnswer, PlanSure, PlanValue } from 'servecast';
import { equalJson, removeAt } from './document';
import { ratePointer } from './rate';
import type { AppState, Plan } from './store';

export type Headroom =
  /** Under way: the loads that are known to meet and to miss the targets so far, on one run or more each. */
  | { readonly kind: 'sought'; readonly meets: number | null; readonly misses: number | null }
  | {
      readonly kind: 'found';
      readonly answer: PlanValue;
      readonly sure: PlanSure | null;
      readonly binding: string | null;
    }
  /** No load, any load, or nothing could be told: in the engine's words. */
  | { readonly kind: 'said'; readonly sentence: string }
  /** Asking takes long, or was stopped. */
  | { readonly kind: 'offered' }
  | { readonly kind: 'failed'; readonly message: string };

export function isMaxRate(answer: PlanAnswer | null): answer is MaxRate {
  return answer !== null && 'monotone' in answer;
}

/** Null: nothing is known of the document as it is now, or nothing is asked. It does not depend on the rate. */
export function headroomOf({ plans, document }: Pick<AppState, 'plans' | 'document'>): Headroom | null {
  const plan = plans['max-rate'];
  if (!plan || !equalJson(removeAt(plan.document, ratePointer), removeAt(document, ratePointer))) return null;
  return ofPlan(plan);
}

function ofPlan({ kind, answer, sentence, issues }: Plan): Headroom {
  switch (kind) {
    case 'offered':
    case 'stopped':
      return { kind: 'offered' };
    case 'failed':
      return { kind: 'failed', message: issues[0]?.message ?? '' };
    case 'running':
      return { kind: 'sought', ...bracketOf(answer) };
    case 'answered': {
      if (!isMaxRate(answer) || !answer.answer) return { kind: 'said', sentence };
      return { kind: 'found', answer: answer.answer, sure: answer.sure ?? null, binding: answer.binding };
    }
  }
}

/** The heaviest load that meets the targets and the lightest above it that misses, of those that were tried. */
function bracketOf(answer: PlanAnswer | null): { meets: number | null; misses: number | null } {
  const curve = isMaxRate(answer) ? [...answer.curve].sort((a, b) => a.at - b.at) : [];
  const first = curve.findIndex(({ strain }) => strain === null || strain > 1);
  const within = first < 0 ? curve : curve.slice(0, first);
  return { meets: within.at(-1)?.at ?? null, misses: curve[first]?.at ?? null };
}

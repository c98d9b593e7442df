// What the page and its planning workers say to each other.
import type { Issue, PlanAnswer, PlanOptions, PlanQuestion } from 'servecast';

export interface PlanTask {
  readonly question: PlanQuestion;
  readonly scenario: string;
  readonly options: PlanOptions;
  readonly with_trace: boolean;
}

export type ToPlanner =
  /** `site`: the address that presets/ is at. */
  | { readonly kind: 'init'; readonly module: WebAssembly.Module; readonly site: string }
  /** Takes the place of the one before. */
  | { readonly kind: 'trace'; readonly file: Blob; readonly name: string }
  | { readonly kind: 'ask'; readonly id: number; readonly task: PlanTask }
  | { readonly kind: 'cancel'; readonly id: number };

export type FromPlanner =
  /** `answer`: as far as it is known. */
  | { readonly kind: 'progress'; readonly id: number; readonly progress: number; readonly answer: PlanAnswer | null }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: PlanAnswer; readonly sentence: string }
  | { readonly kind: 'failed'; readonly id: number; readonly issues: readonly Issue[] }
  | { readonly kind: 'cancelled'; readonly id: number }
  /** It can do no more. */
  | { readonly kind: 'broken'; readonly message: string };

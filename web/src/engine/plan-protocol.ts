// What the page and its planning workers say to each other.
import type {
  Diagnosis,
  Issue,
  MeasuredValue,
  PlanAnswer,
  PlanOptions,
  PlanQuestion,
  Report,
  SearchAnswer,
} from 'servecast';

export interface PlanTask {
  readonly question: PlanQuestion;
  readonly scenario: string;
  readonly options: PlanOptions;
  /** A list of GPUs' prices; "": the scenario's. */
  readonly prices: string;
  readonly with_trace: boolean;
}

/** The scenario of a server, and what was measured on it. */
export interface DiagnoseTask {
  readonly scenario: string;
  readonly measured: readonly MeasuredValue[];
  /** Members that its text says for certain. */
  readonly said: readonly string[];
}

/** As the module's Search takes them. */
export interface SearchTask {
  readonly scenario: string;
  readonly axes: string;
  readonly prices: string;
  readonly least: 'cost' | 'energy';
}

export type ToPlanner =
  /** `site`: the address that presets/ is at. */
  | { readonly kind: 'init'; readonly module: WebAssembly.Module; readonly site: string }
  /** Takes the place of the one before. */
  | { readonly kind: 'trace'; readonly file: Blob; readonly name: string }
  | { readonly kind: 'ask'; readonly id: number; readonly task: PlanTask }
  | { readonly kind: 'diagnose'; readonly id: number; readonly task: DiagnoseTask }
  /** The certain run of a scenario again, with its bands where the model's error is known. */
  | { readonly kind: 'band'; readonly id: number; readonly scenario: string; readonly with_trace: boolean }
  /** A task of a search, as JSON. */
  | { readonly kind: 'design'; readonly id: number; readonly task: string; readonly with_trace: boolean }
  /** Begins one, in place of the one before; answered by its first round. */
  | ({ readonly kind: 'search'; readonly id: number } & SearchTask)
  /** What came of tasks; answered by the next round, once this one is complete. */
  | { readonly kind: 'take'; readonly id: number; readonly points: readonly string[] }
  /** The scenario that is a point of the search. */
  | { readonly kind: 'document'; readonly id: number; readonly point: number }
  | { readonly kind: 'cancel'; readonly id: number };

export type FromPlanner =
  /** `answer`: as far as it is known. */
  | { readonly kind: 'progress'; readonly id: number; readonly progress: number; readonly answer: PlanAnswer | null }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: PlanAnswer; readonly sentence: string }
  | { readonly kind: 'diagnosis'; readonly id: number; readonly diagnosis: Diagnosis }
  | { readonly kind: 'banded'; readonly id: number; readonly report: Report }
  | { readonly kind: 'failed'; readonly id: number; readonly issues: readonly Issue[] }
  | { readonly kind: 'cancelled'; readonly id: number }
  | { readonly kind: 'point'; readonly id: number; readonly point: string }
  | { readonly kind: 'found'; readonly id: number; readonly found: Found }
  /** "": there is none. */
  | { readonly kind: 'document'; readonly id: number; readonly document: string }
  /** It can do no more. */
  | { readonly kind: 'broken'; readonly message: string };

/** A search, so far. */
export interface Found {
  /** To be done next; empty while a round is incomplete, and at the end. */
  readonly tasks: readonly string[];
  readonly progress: number;
  readonly answer: SearchAnswer;
  readonly sentence: string;
}

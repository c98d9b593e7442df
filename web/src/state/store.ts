// One immutable state, one way to change it, listeners told after each change. Everything the page
// shows follows from it.
import type {
  Advice,
  Catalog,
  CoefficientSet,
  Explanation,
  Issue,
  PlanAnswer,
  PlanOptions,
  PlanPoint,
  PlanQuestion,
  Report,
  SearchAnswer,
  TraceFit,
  TraceRead,
} from 'servecast';
import type { TraceFile } from '../engine/client';
import type { Columns, Outcome, Refusal } from '../engine/protocol';
import type { TailBands } from '../lib/tail-bands';
import type { Document } from './document';

export type ThemeChoice = 'auto' | 'light' | 'dark';

export type RunState =
  | { readonly kind: 'idle' }
  | {
      readonly kind: 'running';
      readonly progress: number;
      readonly slow: boolean;
      /** It waits for a download. */
      readonly loading?: boolean;
      /** What is to run is not the document yet. */
      readonly opening?: boolean;
      /** Its requests are drawn; `progress` is of that. */
      readonly drawing?: boolean;
    }
  /** Nothing was simulated. */
  | {
      readonly kind: 'refused';
      readonly reason: Refusal | 'trace_missing';
      readonly issues: readonly Issue[];
      readonly unfit?: Report['unfit'];
    }
  | { readonly kind: 'broken'; readonly message: string };

export interface Shown {
  readonly outcome: Outcome;
  /** The same report with its bands, and the verdict by them, once they are known. */
  readonly banded?: Report;
  /** What it is of: the form may be ahead. */
  readonly document: Document;
  /** "coarse": one run of a part of the requests, on the way to the certain one. */
  readonly completeness: 'final' | 'coarse' | 'partial' | 'cancelled';
  /** Of a coarse one: that certain run was cancelled. */
  readonly cancelled?: boolean;
  readonly progress: number;
}

/** With bands as soon as they are known. */
export function reportOf({ banded, outcome }: Shown): Report {
  return banded ?? outcome.report;
}

/** Of what is shown; null: they are not known. */
export function tailBandsOf({ shown, tail_bands: known }: AppState): TailBands | null {
  return known && known.of === shown?.outcome ? known.bands : null;
}

/** What is shown is no answer to what is asked: it is marked, once that lasts. */
export function isBefore({ run, shown, document }: AppState): boolean {
  if (!shown || (run.kind === 'running' && !run.slow)) return false;
  if (run.kind !== 'running' && run.kind !== 'idle') return false;
  return shown.document !== document || (run.kind === 'running' && run.opening === true);
}

/** Nothing is in the way of an answer. */
export function isAwaited({ run, failure, link_problem: problem, trace, drafts }: AppState): boolean {
  const runs = run.kind === 'idle' || run.kind === 'running';
  return runs && failure === null && problem === null && trace.kind !== 'failed' && drafts.size === 0;
}

/** One short run stands where a certain answer is awaited, or was given up: it is drawn as no verdict. */
export function isUncertain({ run, shown }: AppState): boolean {
  return shown?.completeness === 'coarse' && (shown.cancelled === true || (run.kind === 'running' && run.slow));
}

export type TraceState =
  | { readonly kind: 'none' }
  | { readonly kind: 'reading'; readonly name: string; readonly progress: number }
  | { readonly kind: 'loaded'; readonly name: string; readonly bytes: number; readonly read: TraceRead }
  | { readonly kind: 'failed'; readonly message: string };

/** The fitted summary of the trace that is open. */
export type FitState =
  | { readonly kind: 'none' }
  | { readonly kind: 'fitting' }
  /** `replayed`: the workload that it took the place of. */
  | {
      readonly kind: 'fitted';
      readonly fit: TraceFit;
      readonly replayed: Document;
      /** What the trace itself came to, in words; "": it did not run. */
      readonly said: string;
    }
  | { readonly kind: 'failed'; readonly message: string };

/** Sets of step-time coefficients to choose from: the published ones, or those of a file. */
export type CoefficientsState =
  | { readonly kind: 'none' | 'reading' }
  | {
      readonly kind: 'listed';
      readonly name: string;
      readonly sets: readonly CoefficientSet[];
      readonly chosen: CoefficientSet | null;
    }
  | { readonly kind: 'failed'; readonly message: string };

/** Of a link, or of a file with a scenario. */
export interface LinkProblem {
  readonly from: 'link' | 'file';
  readonly message: string;
  readonly issues: readonly Issue[];
  /** What remains of it when the members that are refused are left out; null when that does not run either. */
  readonly nearest: {
    readonly document: Document;
    readonly trace_name: string | null;
    readonly dropped: readonly string[];
  } | null;
}

/** Changes that might bring a missed target, or give a met one more room, for an outcome. */
export interface WaysOut {
  readonly of: Outcome;
  /** A target is missed, or its figure is beyond its limit. */
  readonly missed: boolean;
  /** "offered": so long a run is not repeated a dozen times unasked. */
  readonly kind: 'offered' | 'trying' | 'tried' | 'cancelled' | 'failed';
  readonly progress: number;
  readonly advice: Advice | null;
  readonly message: string;
  /** Where no one change is enough: designs that are, by the plan of the fewest GPUs. */
  readonly designs: readonly FoundDesign[];
  /** More of them are sought. */
  readonly seeks: boolean;
}

/** As many GPUs of a kind as keep all targets, of the scenario with or without a change. */
export interface FoundDesign {
  readonly document: Document;
  readonly words: string;
  readonly gpus: number;
  readonly cost_per_hour: number | null;
  /** In the order of the report's, where the plan ran so many; null: it did not. */
  readonly slo: PlanPoint['slo'] | null;
  /** With the forecast's error all targets are met with 90 %. */
  readonly sure: boolean;
}

/** What is typed into the blanks of questions. */
export interface PlanInputs extends Omit<PlanOptions, 'hours' | 'days' | 'windows'> {
  /** Load of the quietest hour, % of the scenario's. */
  readonly night: number;
  /** Of autoscaling, where the load does not change by itself: where it begins, % of the scenario's, and how long it rises
      and falls. */
  readonly quiet: number;
  readonly span_h: number;
  /** Of the search, 1: these are varied, too. */
  readonly pipeline: number;
  readonly experts: number;
  readonly roles: number;
  readonly limits: number;
  /** Of the search, 1: the least energy is looked for. */
  readonly energy: number;
  /** Of GPUs, for cost and search: their place in priceLists. */
  readonly prices: number;
  /** Of the fewest GPUs; null: the scenario's. */
  readonly rate: number | null;
}

/** What is known of a question of capacity. */
export interface Plan {
  /** "offered": it would take long. "stopped": by a person, or by a change of the scenario. */
  readonly kind: 'offered' | 'running' | 'answered' | 'stopped' | 'failed';
  readonly document: Document;
  readonly inputs: PlanInputs;
  /** That it replays; null: none. */
  readonly trace: TraceFile | null;
  readonly progress: number;
  /** While it runs, as far as it is known, or the former one. */
  readonly answer: PlanAnswer | null;
  readonly sentence: string;
  readonly issues: readonly Issue[];
}

/** A search for the cheapest design. */
export interface Search {
  readonly kind: 'running' | 'answered' | 'stopped' | 'failed';
  /** The scenario that was shown, and the rate that was asked for; null: its own. */
  readonly document: Document;
  readonly rate: number | null;
  /** What was varied, and whose prices. */
  readonly axes: string;
  readonly prices: string;
  readonly least: 'cost' | 'energy';
  readonly progress: number;
  readonly answer: SearchAnswer | null;
  readonly sentence: string;
  readonly issues: readonly Issue[];
}

/** The scenario under another value of one of its settings. */
export interface Variant {
  readonly name: string;
  /** The value that the scenario has. */
  readonly isCurrent: boolean;
  readonly document: Document;
  /** null: not yet run, or refused. */
  readonly report: Report | null;
  readonly issues: readonly Issue[];
  /** What else had to change for it to run; "" when nothing. */
  readonly adapted?: string;
  /** How many of its GPUs it takes is being found. */
  readonly isSought?: boolean;
  /** The report has its bands, or they are not known. */
  readonly isBanded?: boolean;
}

/** Another whole scenario, run on the requests of the one that is shown. */
export interface Beside {
  /** "": the one that was kept; an engine's place; else a preset's id. */
  readonly of: string;
  readonly name: string;
  readonly document: Document;
  readonly outcome: Outcome | null;
  readonly issues: readonly Issue[];
  /** Its report with bands; without where they are not known. */
  readonly banded?: Report;
}

export interface AppState {
  readonly catalog: Catalog | null;
  /** Why the page cannot work at all. */
  readonly failure: string | null;
  /** What resets return to: the preset or link that was opened last. */
  readonly base: Document;
  readonly preset_id: string | null;
  readonly document: Document;
  /** Texts in fields that are no values (pointer -> text): they stop a run. */
  readonly drafts: ReadonlyMap<string, string>;
  /** What the engine refuses of the document beside the drafts. */
  readonly beside_drafts: readonly Issue[];
  readonly run: RunState;
  readonly shown: Shown | null;
  /** What each request of that outcome did; null: nobody looks, or there are too many. */
  readonly requests: { readonly of: Outcome; readonly columns: Columns } | null;
  /** Why that outcome is as it is; null: nobody looks. */
  readonly explanation: { readonly of: Outcome; readonly explanation: Explanation } | null;
  /** How sure that outcome's percentiles are; null: not known yet, or not to be had. */
  readonly tail_bands: { readonly of: Outcome; readonly bands: TailBands } | null;
  /** null: nothing is missed. */
  readonly ways_out: WaysOut | null;
  readonly plans: Readonly<Partial<Record<PlanQuestion, Plan>>>;
  /** null: nobody asked. */
  readonly search: Search | null;
  /** null: the standard ones. */
  readonly plan_inputs: PlanInputs | null;
  /** The highest rate at which the document keeps its targets; null: nobody asked. */
  readonly held_rate: number | null;
  /** Of the document that was accepted last. */
  readonly canonical: { readonly text: string; readonly id: string } | null;
  readonly trace: TraceState;
  readonly fit: FitState;
  readonly coefficients: CoefficientsState;
  /** File name that an opened link asks for, then of the file that was loaded. */
  readonly wanted_trace: string | null;
  /** File name in the link that was opened. */
  readonly link_trace: string | null;
  /** The workload that a trace replaced. */
  readonly former_workload: Document | null;
  /** What was on the page when this scenario was opened, to compare it with. */
  readonly former: Document | null;
  /** The setting whose values are compared; null: none. No variants: the scenario has no such choice. */
  readonly compared: {
    readonly pointer: string;
    /** Of GPUs: the fewest of each that keep the targets, or as many as there are; null: nobody can ask. */
    readonly fewest: boolean | null;
    readonly variants: readonly Variant[];
  } | null;
  readonly can_undo: boolean;
  readonly can_redo: boolean;
  /** What the scenario is compared with as a whole; null: nothing. */
  readonly beside: Beside | null;
  readonly link: string;
  /** The author's result, as it stands in the link that was opened, and what it is of; null: none. */
  readonly pin: { readonly text: string; readonly document: Document } | null;
  readonly link_problem: LinkProblem | null;
  readonly theme: ThemeChoice;
  /** One short sentence for the live region, e.g. after copying. */
  readonly announcement: string;
}

export const initialState: AppState = {
  catalog: null,
  failure: null,
  base: {},
  preset_id: null,
  document: {},
  drafts: new Map(),
  beside_drafts: [],
  run: { kind: 'idle' },
  shown: null,
  requests: null,
  explanation: null,
  tail_bands: null,
  ways_out: null,
  plans: {},
  search: null,
  plan_inputs: null,
  held_rate: null,
  canonical: null,
  trace: { kind: 'none' },
  fit: { kind: 'none' },
  coefficients: { kind: 'none' },
  wanted_trace: null,
  link_trace: null,
  former_workload: null,
  former: null,
  compared: null,
  can_undo: false,
  can_redo: false,
  beside: null,
  link: '',
  pin: null,
  link_problem: null,
  theme: 'auto',
  announcement: '',
};

/** Shorter than what people see as a pause between a key and its letter. */
const holdMs = 30;

export class Store {
  #held: ReturnType<typeof setTimeout> | undefined;
  #state: AppState;
  readonly #listeners = new Set<() => void>();

  constructor(state: AppState = initialState) {
    this.#state = state;
  }

  get state(): AppState {
    return this.#state;
  }

  update(change: Partial<AppState>): void {
    this.#state = { ...this.#state, ...change };
    if (this.#held === undefined) this.#tell();
  }

  /** Listeners hear of what comes now with what follows, an answer as it is hoped, or after a moment. */
  hold(): void {
    this.#held ??= setTimeout(() => this.release(), holdMs);
  }

  release(): void {
    if (this.#held === undefined) return;
    clearTimeout(this.#held);
    this.#held = undefined;
    this.#tell();
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** What is shown of a run for so long is not waited for. */
const longRunMs = 3000;

/** Settles with the first certain answer, with the news that there will be none, or in the midst of a long run. */
export function whenAnswered(store: Store): Promise<void> {
  return new Promise((resolve) => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const done = () => {
      clearTimeout(timer);
      unsubscribe();
      resolve();
    };
    const look = () => {
      const { shown, run, failure, link_problem: problem, trace } = store.state;
      if (shown) timer ??= setTimeout(done, longRunMs);
      const isOver = failure !== null || problem !== null || trace.kind === 'failed';
      if (isOver || run.kind === 'refused' || run.kind === 'broken' || (shown && shown.completeness !== 'partial'))
        done();
    };
    const unsubscribe = store.subscribe(look);
  });
}

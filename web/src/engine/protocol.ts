// What the page and the worker say to each other: two closed unions and nothing else. Text that
// crosses to the engine stays text here; reports arrive parsed, columns as transferred arrays.
import type { Advice, Canonical, Catalog, Explanation, Issue, Report, TraceFit, TraceRead } from 'servecast';

export type Columns = Readonly<Record<string, Float64Array>>;

export type ToWorker =
  /** `site`: the address that presets/ is at. */
  | { readonly kind: 'init'; readonly module: WebAssembly.Module; readonly site: string }
  | { readonly kind: 'ask'; readonly id: number; readonly question: Question; readonly text: string }
  | {
      readonly kind: 'run';
      readonly id: number;
      readonly lane: Lane;
      readonly scenario: string;
      readonly with_trace: boolean;
      /** How many requests the scenario asks for, where a coarse answer is wanted: one run of so many of them as a frame
          has room for. What cannot be answered so runs as any other. */
      readonly coarse: number | null;
    }
  /** Until it is cancelled, or another one begins. */
  | { readonly kind: 'advise'; readonly id: number; readonly scenario: string; readonly with_trace: boolean }
  /** Until it is cancelled, or another one begins. */
  | { readonly kind: 'band'; readonly id: number; readonly scenario: string; readonly with_trace: boolean }
  /** Of the whole module. */
  | {
      readonly kind: 'whole';
      readonly id: number;
      readonly question: WholeQuestion;
      readonly words: readonly string[];
    }
  | { readonly kind: 'cancel'; readonly id: number }
  /** Columns with a value a request, of the shown run that finished last. */
  | { readonly kind: 'requests'; readonly id: number; readonly names: readonly string[] }
  | ({ readonly kind: 'record'; readonly id: number } & RecordRequest)
  /** Of the same run. */
  | { readonly kind: 'explain'; readonly id: number }
  | { readonly kind: 'load_trace'; readonly id: number; readonly file: Blob; readonly name: string }
  | { readonly kind: 'fit_trace'; readonly id: number }
  /** One that is being read is given up. */
  | { readonly kind: 'forget_trace' };

/** What the page shows, and what is compared with it: a run, which is of many seeds, supersedes the one before
    in its lane. Beside, there are no partial results, no columns but those of latencies, and no limit by relief. */
export type Lane = 'shown' | 'beside';

/** All answer a Canonical: `canonical` takes a document, `parse` the readable link grammar. `replaying` takes a
    document and answers with the one that replays the trace that was read last, as it is. */
export type Question = 'canonical' | 'parse' | 'replaying';

/** Functions of the module that not every visit has; they take texts. */
export type WholeQuestion =
  | 'coefficients'
  | 'fileKind'
  | 'importText'
  | 'exportTo'
  | 'rewriteText'
  | 'exportTargets'
  | 'usePack';

/** Why a run did not start: a bad document, a bad trace, or a scenario that cannot run as it is. */
export type Refusal = 'scenario' | 'trace' | 'engine';

export type FromWorker =
  | { readonly kind: 'ready'; readonly catalog: Catalog }
  | { readonly kind: 'answer'; readonly id: number; readonly canonical: Canonical }
  /** The run is over. */
  | { readonly kind: 'coarse'; readonly id: number; readonly outcome: Outcome }
  /** Requests are drawn, 0..1. */
  | { readonly kind: 'drawing'; readonly id: number; readonly progress: number }
  | { readonly kind: 'accepted'; readonly id: number; readonly canonical: Canonical }
  /** With what was fetched since. */
  | { readonly kind: 'catalog'; readonly catalog: Catalog }
  /** Its answer; null with a message: there is none. */
  | { readonly kind: 'whole'; readonly id: number; readonly answer: unknown; readonly message: string }
  /** The run waits for a file that few need. */
  | { readonly kind: 'loading'; readonly id: number }
  | {
      readonly kind: 'refused';
      readonly id: number;
      readonly reason: Refusal;
      readonly issues: readonly Issue[];
      readonly unfit?: Report['unfit'];
    }
  | { readonly kind: 'progress'; readonly id: number; readonly progress: number; readonly partial: Outcome | null }
  /** outcome is null when the last partial one stands: a report of a large run takes long to make. */
  | {
      readonly kind: 'finished';
      readonly id: number;
      readonly cancelled: boolean;
      readonly progress: number;
      readonly outcome: Outcome | null;
    }
  /** null: that run is gone, or another one has begun. */
  | { readonly kind: 'requests'; readonly id: number; readonly columns: Columns | null }
  /** `recorded` when it is there. Null with a message: there is none. */
  | {
      readonly kind: 'recorded';
      readonly id: number;
      readonly progress: number;
      readonly recorded: Recorded | null;
      readonly message: string;
    }
  | { readonly kind: 'explanation'; readonly id: number; readonly explanation: Explanation | null }
  /** `advice` when it has ended, or was cancelled: of what was tried. Null with a message: there is none. */
  | {
      readonly kind: 'advice';
      readonly id: number;
      readonly progress: number;
      readonly advice: Advice | null;
      readonly message: string;
    }
  /** The report of the certain run with its bands; null: they are not known. */
  | { readonly kind: 'band'; readonly id: number; readonly report: Report | null }
  /** Of the file's bytes, 0..1. */
  | { readonly kind: 'trace_progress'; readonly id: number; readonly progress: number }
  /** `read` may hold issues: a run with this trace is then refused with them. */
  | {
      readonly kind: 'trace_read';
      readonly id: number;
      readonly name: string;
      readonly bytes: number;
      readonly read: TraceRead;
    }
  | { readonly kind: 'trace_fitted'; readonly id: number; readonly fit: TraceFit | null; readonly message: string }
  | { readonly kind: 'trace_unreadable'; readonly id: number; readonly message: string }
  | { readonly kind: 'broken'; readonly id: number | null; readonly message: string };

/** The first run of a scenario once more, kept step by step: it supersedes the one before. */
export interface RecordRequest {
  readonly scenario: string;
  readonly with_trace: boolean;
  /** Steps that begin from then on are kept, at most so many. */
  readonly from_s: number;
  readonly most_steps: number;
  /** Complete requests: those that took longest by it first, or by arrival. null: none. */
  readonly requests: {
    readonly order: 'ttft' | 'e2e' | 'arrival';
    readonly first: number;
    readonly count: number;
  } | null;
  /** The kept steps in Chrome's trace format, too. */
  readonly time_line?: boolean;
}

export interface Recorded {
  readonly steps: Columns;
  /** "request", its number from 0, and requestColumns. */
  readonly requests: Columns;
  /** Among which these were chosen. */
  readonly complete: number;
  /** The run has more steps, after these. */
  readonly is_cut: boolean;
  /** null: it was not asked for. */
  readonly time_line: Blob | null;
}

export interface Outcome {
  readonly report: Report;
  readonly columns: Columns;
  /** Time spent inside the engine, ms of wall clock. */
  readonly engine_ms: number;
}

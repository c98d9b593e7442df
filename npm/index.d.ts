import type {
  Advice,
  Catalog,
  Explanation,
  FirstModule,
  Issue,
  PlanAnswer,
  PlanOptions,
  PlanQuestion,
  Report,
  Trace,
} from './engine/servecast.js';
import type { Scenario } from './scenario.js';

export type * from './engine/servecast.js';
export type { Scenario };

/** A document: presets by name with what differs, as an object or as JSON text. */
export type Document = Scenario | string;

/** A scenario that cannot run, with all that is wrong with it. */
export class ServecastError extends Error {
  readonly issues: readonly Issue[];
}

export interface OpenOptions {
  /** The program, where it is not beside the package's own files: its address, response, bytes or module. */
  readonly wasm?: string | URL | Response | Promise<Response> | ArrayBuffer | ArrayBufferView | WebAssembly.Module;
  /** The text of a preset that is read when a scenario needs it, e.g. "presets/hardware/h20.json". */
  readonly files?: (path: string) => string | Promise<string>;
}
export interface OpenSyncOptions {
  /** Under node: by default the package's own. */
  readonly wasm?: ArrayBuffer | ArrayBufferView | WebAssembly.Module;
  readonly files?: (path: string) => string;
}

export interface Progress {
  /** 0 to 1, never falls; not for each slice of a run. */
  readonly onProgress?: (share: number) => void;
}
export interface Abortable extends Progress {
  /** The promise rejects with its reason within some milliseconds. */
  readonly signal?: AbortSignal;
}
/**
 * Members set over the document: by path, { 'engine.max_num_seqs': 64 }, or as the command's --set has them,
 * ['engine.max_num_seqs=64'], which are those of advice. An unknown path is an issue of the scenario.
 */
export interface Settings {
  readonly set?: Readonly<Record<string, unknown>> | readonly string[];
}
export interface RunOptions extends Settings {
  /** By name (catalog().columns): a value a request, step or bin of the first run; of a CDF, over all runs (but for ITL). */
  readonly columns?: readonly string[];
  /** Also why: the limit, by relief of each, and the time of the slowest requests. */
  readonly explain?: boolean;
  /** One run alone: quicker, and without intervals. Its report is a RunReport. */
  readonly once?: boolean;
  /** Of servecast/full: module.Trace, read to its end. */
  readonly trace?: Trace;
}
export interface RunResult {
  readonly report: Report;
  readonly columns: Readonly<Record<string, Float64Array>>;
  /** Null unless it was asked for. */
  readonly explanation: Explanation | null;
}
export interface PlanResult {
  readonly answer: PlanAnswer;
  /** "Keeps its targets up to 48.2 requests/s (47.3 to 49.2); ..." */
  readonly sentence: string;
}

/** What needs no engine time. */
export interface Known<Module> {
  /** The whole boundary of the WebAssembly module; what is made from it is deleted by who made it. */
  readonly module: Module;
  readonly version: string;
  catalog(): Catalog;
  /** The names of all scenario presets. */
  presets(): readonly string[];
  /** The document of a scenario preset. Throws a ServecastError that names them all. */
  preset(id: string): Scenario;
}

/** Every promise rejects with a ServecastError when the scenario cannot run. */
export interface Servecast<Module = FirstModule> extends Known<Module> {
  /** Every issue; [] when the document is good. */
  validate(document: Document): Promise<readonly Issue[]>;
  /** Presets by name, sorted keys, without what is default: the same for documents that mean the same. */
  canonical(document: Document): Promise<Scenario>;
  /** As many runs as the targets need, with 95 % intervals: the command's `servecast run`, bit by bit. */
  run(document: Document, options?: RunOptions & Abortable): Promise<RunResult>;
  /** One-step changes, each run on the same requests, ranked by what they do to the failing target. */
  advise(document: Document, options?: Pick<RunOptions, 'set' | 'trace'> & Abortable): Promise<Advice>;
}
export interface ServecastSync<Module = FirstModule> extends Known<Module> {
  validate(document: Document): readonly Issue[];
  canonical(document: Document): Scenario;
  run(document: Document, options?: RunOptions & Progress): RunResult;
  /** In a browser of `servecast/full` alone: the smaller module cannot fetch the whole one at once. */
  advise(document: Document, options?: Pick<RunOptions, 'set' | 'trace'> & Progress): Advice;
}
/** Of servecast/full. */
export interface Planning {
  /** Highest rate, fewest GPUs, growth, drills, what moves a target most, or an API's cost. */
  plan(
    question: PlanQuestion,
    document: Document,
    options?: Partial<PlanOptions> & Pick<RunOptions, 'set' | 'trace'> & Abortable,
  ): Promise<PlanResult>;
}
export interface PlanningSync {
  plan(
    question: PlanQuestion,
    document: Document,
    options?: Partial<PlanOptions> & Pick<RunOptions, 'set' | 'trace'> & Progress,
  ): PlanResult;
}

export function createServecast(options?: OpenOptions): Promise<Servecast>;
export function createServecastSync(options?: OpenSyncOptions): ServecastSync;

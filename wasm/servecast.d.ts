// The whole boundary between the engine (C++ as WebAssembly) and the page. Features add fields and
// columns to the JSON that crosses here, not names. tests/wasm compares these names with the module.
// All text is JSON unless said otherwise; nothing here throws: errors are values (Issue lists).

export interface Issue {
  /** JSON pointer into the scenario document, "" for the whole; for a trace "line 12, column 3"; with kind missing_file
      the file, "presets/operators/h100-sxm.json". */
  readonly path: string;
  /** One sentence: what was found and what is allowed. */
  readonly message: string;
  /** What a program may tell apart; absent otherwise. "more": the last of a list that is cut, which counts the rest. */
  readonly kind?: 'does_not_fit' | 'trace_missing' | 'missing_file' | 'more';
}

/** What a visit needs up to its first verdict. */
export interface FirstModule {
  /** JSON {engine_version: string, schema: number}. */
  version(): string;
  /** JSON Catalog: presets, every field of a scenario, policies, columns. Constant per build. */
  catalog(): string;
  /** JSON Issue[]; [] when the scenario document is good. Never simulates. */
  validate(scenario: string): string;
  /** JSON Canonical: sorted keys, defaults dropped. text is "" when there are issues. */
  canonical(scenario: string): string;
  /** Readable link grammar "p=PRESET&path.to.field=value..." -> JSON Canonical. */
  parse(fragment: string): string;
  /** A file that an issue of kind missing_file asked for, as it is: then ask again. JSON Issue[]: it is not this version's. */
  provide(file: string, text: string): string;
  readonly Simulation: new (scenario: string) => Simulation;
  /** As many runs as the targets need. The figures of its summary are pooled over these runs, but for those in its member
      `first_run`. `explained`: with the limit by relief, as the command's run, and its explanation. */
  readonly Experiment: new (
    scenario: string,
    explained: boolean,
  ) => Experiment;
}

export interface ServecastModule extends FirstModule {
  /** JSON Coefficients: of a file of latency-model coefficients; of "" those that were published. */
  coefficients(scenario: string, file: string): string;
  /** The scenario with members set, each "path.to.member=value" as of the command's --set: JSON { text, issues }. Paths
      are checked by who reads the text. */
  withSettings(scenario: string, overrides: readonly string[]): string;
  /** JSON OpenedFile: what a file is, by its text (a large one's beginning will do) and its name. */
  fileKind(text: string, name: string): string;
  /** JSON ImportedText: of a command, a config file, a manifest or figures of a server. `base`: the document that says
      what the text does not; "": that of the command. */
  importText(text: string, base: string): string;
  /** JSON ExportedText: as the target of that name reads it. */
  exportTo(scenario: string, target: string): string;
  /** JSON ExportedText: what to change in a text that `importText` reads for its servers to be the scenario's, as a diff;
      "" where nothing is. */
  rewriteText(text: string, scenario: string): string;
  /** JSON ExportTarget[]. */
  exportTargets(): string;
  /** A calibration's pack put into a scenario document, which carries from then on where its constants come from (member
      `calibration`): JSON UsedPack. */
  usePack(scenario: string, pack: string): string;
  /** The scenario with the prices of a list in place of its presets': JSON PricedText. */
  withPrices(scenario: string, prices: string): string;
  /** One-step changes of a scenario, each run on the same requests, and ranked. */
  readonly Advice: new (
    scenario: string,
  ) => AdviceRun;
  /** What was measured on a server beside its forecast. `measured`, `said`: JSON MeasuredValue[] and string[], as
      importText answers them. */
  readonly Diagnosis: new (
    scenario: string,
    measured: string,
    said: string,
  ) => DiagnosisRun;
  /** What a certain run's report has with its bands, as `servecast run`. */
  readonly Band: new (
    scenario: string,
  ) => BandRun;
  readonly Trace: new (name: string) => Trace;
  /** Constants from measurements. `scenario`: the server where the files do not name one, and what the answer's document
      has the pack in; `date`: of today, which the pack says. */
  readonly Calibration: new (
    scenario: string,
    date: string,
  ) => Calibration;
  /** One run, whose steps that begin from `from_s` on, at most so many, are kept. */
  readonly Recording: new (
    scenario: string,
    from_s: number,
    most_steps: number,
  ) => Recording;
  /** A question of capacity; options that it does not read are not looked at. */
  readonly Plan: new (
    question: PlanQuestion,
    scenario: string,
    percent: number,
    months: number,
    spike: number,
    spike_s: number,
    input_price: number,
    output_price: number,
    hours: readonly number[],
    days: number,
    windows: number,
  ) => Plan;
  /** The cheapest design that keeps the targets. `axes`: names between commas, as `servecast plan search --axes` takes
      them; "": the usual ones. `prices`: a list, "reserved-1y" or "on-demand" (AWS's); "": the scenario's. `least`: what
      the answer has least of; energy is of an output token. */
  readonly Search: new (
    scenario: string,
    axes: string,
    prices: string,
    least: 'cost' | 'energy',
  ) => Search;
  /** `task`: JSON, one of Search.tasks. */
  readonly Design: new (
    task: string,
  ) => Design;
}

/** A trace file, read in pieces; outlives the simulations that replay it. Owned by the worker, which must call delete(). */
export interface Trace {
  /** The next bytes of the uncompressed file. False when no more are needed: it cannot be read. */
  add(bytes: Uint8Array): boolean;
  /** After the last bytes: JSON TraceRead. */
  finish(): string;
  /** After finish(): JSON TraceFit; JSON Issue[] when there is none. */
  fit(): string;
  /** After finish(): the scenario document that replays it; the same one when it replays a trace already. */
  replaying(scenario: string): string;
  delete(): void;
}

export interface TraceRead {
  readonly format: string;
  /** What it was read as, and why: "Azure CSV: columns TIMESTAMP, ContextTokens, GeneratedTokens". */
  readonly reading: string;
  readonly requests: number;
  /** false: lengths only. */
  readonly has_arrivals: boolean;
  readonly issues: readonly Issue[];
}

/** A workload that resembles a trace, and what it keeps of it. */
export interface TraceFit {
  /** The section of a document; without arrivals when the trace has none. */
  readonly workload: Record<string, unknown>;
  readonly comparison: readonly {
    readonly name: string;
    readonly unit: string;
    readonly trace: number;
    readonly fit: number;
  }[];
  /** req/s in equal parts of the trace's duration; absent without arrivals. */
  readonly rate?: {
    readonly from_s: readonly number[];
    readonly trace: readonly number[];
    readonly fit: readonly number[];
  };
  /** Tokens at each probability. */
  readonly lengths: {
    readonly probability: readonly number[];
    readonly prompt_trace: readonly number[];
    readonly prompt_fit: readonly number[];
    readonly output_trace: readonly number[];
    readonly output_fit: readonly number[];
  };
}

/** A member of the scenario and the words that it came from, or words that were left out and why. */
export interface ImportNote {
  readonly what: string;
  readonly why: string;
}

export interface OpenedFile {
  readonly kind: 'scenario' | 'calibration' | 'coefficients' | 'trace' | 'import';
}

export interface ImportedText {
  /** Indented JSON; "" when nothing was understood. */
  readonly document: string;
  /** What the answer depends on most and is not as the text has it: to be read first. */
  readonly warnings: readonly string[];
  /** What was found. */
  readonly kinds: readonly string[];
  readonly taken: readonly ImportNote[];
  readonly ignored: readonly ImportNote[];
  /** What was assumed, and what was measured. */
  readonly remarks: readonly string[];
  /** By the name that reports have ("ttft_ms.p99", "requests_per_s"), or of the log: kv_tokens, max_concurrency,
      max_concurrency_tokens, running_peak, waiting_peak, concurrency_peak, concurrency_limit, prefix_hit_share,
      prompt_tokens_mean, output_tokens_mean. A name once. */
  readonly measured: readonly MeasuredValue[];
  /** Paths of members that the text says for certain: "engine.max_num_seqs"; one may come twice. */
  readonly said: readonly string[];
  /** Members that no text says and that change the answer: "model.top_p_by_default". */
  readonly assumed: readonly string[];
  /** Of the document, or why there is none. */
  readonly issues: readonly Issue[];
}

export interface MeasuredValue {
  readonly name: string;
  /** ms of latencies, 1/s of rates. */
  readonly value: number;
  readonly from: string;
}

export interface ExportedText {
  readonly text: string;
  /** What the target cannot say, and why. */
  readonly left_out: readonly ImportNote[];
  readonly issues: readonly Issue[];
}

export interface ExportTarget {
  readonly name: string;
  readonly help: string;
}

export interface UsedPack {
  /** "" with issues. */
  readonly document: string;
  readonly issues: readonly Issue[];
}

/** Files one after the other, each in pieces; then a fit in slices. Owned by the worker, which must call delete(). */
export interface Calibration {
  begin(name: string, bytes: number): void;
  /** False: the file is larger than what is read. */
  add(bytes: Uint8Array): boolean;
  /** Of the file: JSON MeasuredFile. One that is refused leaves nothing behind. `heldOut`: judges the fit alone. */
  end(heldOut: boolean): string;
  /** After the last file: JSON Issue[]; files that it asks for are to be provided, and it is asked again. Without files
      there is advice only. */
  fit(): string;
  error(): string;
  /** Simulates about so many requests; true when it is finished (or has an error). */
  advance(requests: number): boolean;
  progress(): number;
  /** So many servers were tried. */
  tried(): number;
  /** Requires: finished without an error. JSON CalibrationAnswer; without files JSON MeasurementAdvice. */
  answer(): string;
  delete(): void;
}

export interface MeasuredFile {
  /** What it is, and what can be fitted from it. */
  readonly found: string;
  readonly issues: readonly Issue[];
}

export type MeasuredForm = 'prompt' | 'step' | 'run';
export type MeasuredFigure = 'ttft' | 'tpot' | 'e2e';

export interface CalibrationAnswer {
  readonly state: 'good' | 'partly' | 'poor';
  /** For which load it holds, and how far it is off. */
  readonly sentence: string;
  readonly detail: string;
  readonly parameters: readonly {
    readonly path: string;
    readonly title: string;
    /** What the value is of: "share of the peak", or its unit. */
    readonly of: string;
    readonly unit: string;
    readonly before: number;
    /** Null: it stays as it was. */
    readonly value: number | null;
    readonly low?: number;
    readonly high?: number;
    /** Half of the 95 % interval, of the value, or of what would matter where that is more. */
    readonly half?: number;
    readonly told: 'found' | 'weak' | 'cannot tell' | 'at its limit';
    /** The constant that explains the same. */
    readonly like?: string | null;
    /** What would tell it. */
    readonly told_by: string;
  }[];
  /** Per cent. */
  readonly errors: readonly {
    readonly of: MeasuredForm;
    readonly figure: MeasuredFigure;
    readonly held_out: boolean;
    readonly points: number;
    readonly before: CalibrationOff;
    readonly after: CalibrationOff;
  }[];
  readonly points: readonly {
    readonly label: string;
    readonly of: MeasuredForm;
    readonly figure: MeasuredFigure;
    readonly held_out: boolean;
    /** Tokens of a prompt; batch of a step; requests a second of a run, or its clients. */
    readonly at: number;
    /** Of a step. */
    readonly context: number;
    readonly measured_ms: number;
    readonly before_ms: number;
    readonly after_ms: number;
  }[];
  /** Requests whose times are known one by one, replayed: how far the distributions are apart. */
  readonly replays: readonly {
    readonly label: string;
    readonly held_out: boolean;
    readonly figures: readonly ReplayDistance[];
  }[];
  readonly warnings: readonly string[];
  readonly advice: MeasurementAdvice;
  /** The file. */
  readonly pack: string;
  /** The scenario with it; "" where it cannot be. */
  readonly document: string;
}

export interface ReplayDistance {
  readonly figure: 'ttft' | 'itl' | 'tpot' | 'e2e';
  /** That were measured. */
  readonly values: number;
  /** Kolmogorov and Smirnov's distance, 0 to 1, with the fitted constants and with those of before. */
  readonly ks: number;
  readonly ks_before?: number;
  readonly measured_p50_ms: number;
  readonly simulated_p50_ms: number;
  /** The distance below 0.15 and the medians within 20 %. */
  readonly met: boolean;
}

export interface CalibrationOff {
  readonly mean: number;
  readonly median: number;
  readonly max: number;
}

export interface MeasurementAdvice {
  /** The most telling first. */
  readonly measurements: readonly {
    readonly command: string;
    readonly what: string;
    /** Constants whose interval it narrows most. */
    readonly tells: readonly string[];
  }[];
  /** Half of the 95 % interval with what there is, and with all of these as well; null: too wide to say anything. */
  readonly expected: readonly {
    readonly title: string;
    readonly unit: string;
    readonly now: number | null;
    readonly then: number | null;
  }[];
}

/** What `latency` of a document may be, those that are of the scenario's model and GPU first. */
export interface Coefficients {
  readonly sets: readonly CoefficientSet[];
  readonly issues: readonly Issue[];
}

export interface CoefficientSet {
  /** Model, GPU, tensor parallelism and engine. */
  readonly id: string;
  /** The section of a document. */
  readonly latency: Record<string, unknown>;
  /** Of the scenario's model, GPU and tensor parallelism. */
  readonly fits: boolean;
  /** Bills less time than the arithmetic takes at the GPU's peak. */
  readonly faster_than_light: boolean;
  readonly warnings: readonly string[];
}

/** Owned by the worker, which must call delete(). A new one has issues or is ready to advance. */
export interface Simulation {
  /** "" or JSON Issue[]: why this simulation cannot run (bad document, model does not fit, trace missing). */
  error(): string;
  /** A trace that was read to its end, before the first advance. "" or JSON Issue[]. */
  setTrace(trace: Trace): string;
  /** Runs at most maxSteps engine steps; true when the simulation is finished (or has an error). */
  advance(maxSteps: number): boolean;
  /** 0..1, never falls. */
  progress(): number;
  /** JSON RunReport so far; final when finished. Of an error "null", but where the model does not fit: then the report that
      says by how much. */
  summary(): string;
  /** View on the heap, named in Catalog.columns; slice() at once: the next call may move it. Empty when unknown. */
  column(name: string): Float64Array;
  delete(): void;
}

export interface Experiment {
  error(): string;
  setTrace(trace: Trace): string;
  /** At most about maxSteps engine steps of one of its runs; true when the experiment is finished (or has an error). */
  advance(maxSteps: number): boolean;
  /** 0..1: the share of the requests that are drawn. Many are drawn by the first advances; until then there is no report. */
  drawn(): number;
  progress(): number;
  summary(): string;
  column(name: string): Float64Array;
  /** JSON Explanation; without limits and blame until it is finished, or when nobody asked. */
  explanation(): string;
  delete(): void;
}

export interface AdviceRun {
  /** "" or JSON Issue[]: files that a change needs, to be provided before the next advance; or why there is no advice. */
  error(): string;
  setTrace(trace: Trace): string;
  /** True when it is finished, or cannot be had. */
  advance(maxSteps: number): boolean;
  progress(): number;
  /** JSON Advice of what was tried so far. */
  summary(): string;
  delete(): void;
}

export interface DiagnosisRun {
  /** "" or JSON Issue[]: files that a cause needs, to be provided before the next advance; or why it cannot run. */
  error(): string;
  setTrace(trace: Trace): string;
  /** True when it is finished, or cannot be had. */
  advance(maxSteps: number): boolean;
  progress(): number;
  /** JSON Diagnosis. Requires: finished. */
  summary(): string;
  delete(): void;
}

export interface BandRun {
  /** "" or JSON Issue[]. */
  error(): string;
  setTrace(trace: Trace): string;
  /** True when it is finished, or cannot be had. */
  advance(maxSteps: number): boolean;
  /** JSON Report, null while it is not finished or where the forecast's error is not known. */
  summary(): string;
  delete(): void;
}

export type PlanQuestion =
  | 'max-rate'
  | 'min-gpus'
  | 'growth'
  | 'day'
  | 'autoscale'
  | 'drill'
  | 'tornado'
  | 'cost'
  | 'speculation';

export interface PlanOptions {
  /** Growth a month. */
  readonly percent: number;
  /** Of growth, to look ahead. */
  readonly months: number;
  /** Times the load, for so long. */
  readonly spike: number;
  readonly spike_s: number;
  /** $ per million tokens where they are bought; both 0: nothing is compared. */
  readonly input_price: number;
  readonly output_price: number;
  /** Of a day, and of autoscale unless empty: the load of each, times the scenario's. */
  readonly hours: readonly number[];
  /** Of autoscale: runs of a policy, and the share of windows to be kept. */
  readonly days: number;
  readonly windows: number;
}

/** Owned by the worker, which must call delete(). */
export interface Plan {
  /** "" or JSON Issue[]; no trace yet is one of kind trace_missing. */
  error(): string;
  setTrace(trace: Trace): string;
  advance(maxSteps: number): boolean;
  progress(): number;
  /** JSON PlanAnswer, as far as it is known. */
  answer(): string;
  /** Requires: finished. */
  sentence(): string;
  delete(): void;
}

/** Of the command's plan, by question; docs/model.md, "Plans". */
export type PlanAnswer = MaxRate | MinGpus | Growth | Day | Autoscale | Drills | Tornado | OwnCost | Speculation;

export type PlanOutcome = 'found' | 'none' | 'unbounded' | 'unknown';

/** With the ends of its 95 % interval. */
export interface PlanValue {
  readonly value: number;
  readonly low: number;
  readonly high: number;
  readonly unit: string;
}

export interface PlanTargetOf {
  readonly name: string;
  /** Null of attainment, which has a least share. */
  readonly limit_ms: number | null;
  readonly least_share: number | null;
}

export interface PlanPoint {
  readonly at: number;
  readonly runs: number;
  readonly overloaded: boolean;
  /** The targets' worst share of what is allowed; null: no bound. */
  readonly strain: number | null;
  readonly requests_per_s: number;
  readonly goodput_per_s: number;
  /** As the targets; of attainment its share alone. */
  readonly slo: readonly {
    readonly value_ms?: number | null;
    readonly low?: number | null;
    readonly high?: number | null;
    readonly unserved_share?: number;
    readonly share?: number;
  }[];
}

/** The answer beside what a run says of the very scenarios that it is about; empty until they ran. */
export interface PlanChecked {
  /** "9 replicas". */
  readonly of: string;
  /** As the answer has it. */
  readonly holds: boolean;
  readonly state: VerdictState | 'cannot_run';
  readonly sentence: string;
  readonly agrees: boolean;
}

/** Where on a plan's line all targets are met with a probability, sampling and the forecast's error together: of a load the
    highest, of replicas the fewest. Null: at no place that was tried. */
export interface PlanSure {
  readonly at_90: number | null;
  readonly at_50: number | null;
  /** The most probable place that was tried, and its probability. */
  readonly best_at: number;
  readonly best: number;
}

export interface MaxRate {
  readonly outcome: PlanOutcome;
  readonly answer: PlanValue | null;
  /** Null: some place has no figure. Absent without an answer, and where the forecast's error is not known. */
  readonly sure?: PlanSure | null;
  /** A target by its name, "capacity", or null. */
  readonly binding: string | null;
  readonly monotone: boolean;
  /** Where most requests are within their targets, per second. */
  readonly knee: number | null;
  readonly targets: readonly PlanTargetOf[];
  readonly curve: readonly PlanPoint[];
  readonly runs: number;
  readonly requests: number;
  readonly checked: readonly PlanChecked[];
}

export interface MinGpus {
  readonly outcome: PlanOutcome;
  readonly answer: PlanValue | null;
  /** Of a single pool's replicas; as of MaxRate. */
  readonly sure?: PlanSure | null;
  /** What no system can beat. */
  readonly least_gpus: number | null;
  readonly binding: string | null;
  readonly targets: readonly PlanTargetOf[];
  /** Empty without an answer. */
  readonly pools: readonly {
    readonly name: string;
    readonly role: 'mixed' | 'prefill' | 'decode';
    readonly replicas: number;
    readonly low: number;
    readonly high: number;
    readonly gpus: number;
    readonly price_per_gpu_hour: number | null;
    readonly least_replicas_by_compute: number;
    readonly least_replicas_by_bandwidth: number;
    readonly curve: readonly PlanPoint[];
  }[];
  /** The nearest number that cannot run, and why; null: all that were tried can. */
  readonly refused: string | null;
  readonly runs: number;
  readonly requests: number;
  readonly checked: readonly PlanChecked[];
}

export interface Day {
  readonly outcome: PlanOutcome;
  /** GPU-hours. */
  readonly answer: PlanValue | null;
  /** Of loads. */
  readonly unit: string;
  readonly gpus_per_replica: number;
  /** With the busiest hour's replicas all day; null without an answer, as is the idle share of it. */
  readonly gpu_hours_at_peak: number | null;
  readonly idle_share: number | null;
  readonly price_per_gpu_hour: number | null;
  readonly hours: readonly {
    readonly hour: number;
    readonly load: number;
    /** The fewest, with the ends of their 95 % interval. */
    readonly replicas: number;
    readonly low: number;
    readonly high: number;
    /** The load that they hold. */
    readonly held: number;
  }[];
  readonly runs: number;
  readonly checked: readonly PlanChecked[];
}

export interface Autoscale {
  /** none: no scaler keeps the targets for certain for clearly less than fixed replicas take. */
  readonly outcome: PlanOutcome;
  /** GPU-hours of the policy that is chosen. */
  readonly answer: PlanValue | null;
  /** Places in policies: the cheapest scaler that keeps the targets, the fewest fixed replicas, a schedule that knows the
      load. */
  readonly chosen: number | null;
  readonly fixed: number | null;
  readonly schedule: number | null;
  /** Runs of a policy that was run to the end, and how long one is. */
  readonly days: number;
  readonly span_s: number;
  readonly cold_start_s: number;
  readonly window_s: number;
  /** The share of windows that was asked to be kept. */
  readonly least_windows: number;
  readonly price_per_gpu_hour: number | null;
  readonly targets: readonly PlanTargetOf[];
  readonly policies: readonly AutoscalePolicy[];
  readonly runs: number;
  readonly requests: number;
}

export type AutoscaleSetting = number | Readonly<Record<string, string | number | readonly (readonly number[])[]>>;

export interface AutoscalePolicy {
  readonly name: string;
  readonly kind: 'fixed' | 'schedule' | 'scaler';
  /** partial: run for fewer days than others, and no target was missed. */
  readonly state: 'meets' | 'near' | 'misses' | 'partial';
  readonly days: number;
  /** Of these, on which every target was kept. */
  readonly days_met: number;
  /** Mean of the days, with a 95 % interval from four days on. */
  readonly gpu_hours: { readonly value: number; readonly low: number | null; readonly high: number | null };
  readonly cost: number | null;
  readonly peak_replicas: number;
  /** Of the windows in which requests came: in which every target is kept; null: all targets are of ITL. */
  readonly windows_kept: number | null;
  /** In the order of the targets; means of the days. */
  readonly targets: readonly {
    readonly value_ms?: number | null;
    readonly share?: number | null;
    readonly low: number | null;
    readonly high: number | null;
  }[];
  /** Members of a scenario by dotted paths. */
  readonly settings: Readonly<Record<string, AutoscaleSetting>>;
  /** Replicas that start, are up or drain, from a time of the first day on; fixed ones have no times. */
  readonly at_s: readonly number[];
  readonly replicas: readonly number[];
}

export interface Growth {
  readonly outcome: PlanOutcome;
  /** The last whole month that the load is held in. */
  readonly answer: PlanValue | null;
  /** Today's, in the unit of the schedule's answers. */
  readonly load: number;
  readonly growth_per_month: number;
  readonly looks_ahead_months: number;
  readonly schedule: readonly {
    readonly replicas: number;
    readonly gpus: number;
    readonly needed_from_month: number;
    readonly outcome: PlanOutcome;
    /** The load that they hold. */
    readonly answer: PlanValue | null;
    /** Absent without an answer, as what follows: the last whole month. */
    readonly until_month?: number;
    readonly until_month_low?: number;
    readonly until_month_high?: number;
    /** When the load passes that, in months from now; below 0: it has. */
    readonly months?: number;
    readonly months_low?: number;
    readonly months_high?: number;
  }[];
  readonly checked: readonly PlanChecked[];
}

export interface Drills {
  readonly drills: readonly {
    readonly drill: string;
    readonly report: Omit<Report, 'scenario'>;
  }[];
  /** Those that cannot be tried with this scenario. */
  readonly not_run: readonly { readonly drill: string; readonly reason: string }[];
}

/** What each input moves: the closest target with a fifth less and a fifth more of each. {} until the first is known. */
export interface Tornado {
  readonly target: string;
  readonly limit: number;
  /** Of values and limit; of attainment the share of requests within. */
  readonly unit: 'ms' | 'share';
  readonly turned_by: number;
  readonly as_it_is: TornadoSide;
  /** By falling difference of the sides. */
  readonly inputs: readonly {
    readonly input: string;
    /** null: not known yet. */
    readonly less: TornadoSide | TornadoRefusal | null;
    readonly more: TornadoSide | TornadoRefusal | null;
  }[];
}
export interface TornadoSide {
  readonly state: VerdictState;
  /** null: no sample, or it grows without limit (unbounded). */
  readonly value: number | null;
  readonly low: number | null;
  readonly high: number | null;
  readonly unbounded: boolean;
}
export interface TornadoRefusal {
  readonly state: 'cannot_run';
  readonly reason: string;
}

/** What the GPUs cost, beside an API that is paid by the token; known at once. */
export interface OwnCost {
  readonly outcome: 'found' | 'none';
  /** The load at which both cost as much; null without prices of an API. */
  readonly answer: PlanValue | null;
  /** The scenario's, of the unit. */
  readonly load: number;
  readonly unit: string;
  /** $; a month has 730 hours. */
  readonly own: {
    readonly per_hour: number;
    readonly per_month: number;
    readonly per_million_tokens: number;
    readonly per_million_output_tokens: number;
  };
  /** $, of the scenario's load. */
  readonly api: { readonly per_hour: CostInterval; readonly per_month: CostInterval } | null;
  /** Of a request, a conversation, or a second of a trace as it was recorded. */
  readonly input_tokens: CostInterval;
  readonly output_tokens: CostInterval;
}
export interface CostInterval {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

/** Until which load drafts make the mean request complete sooner: pairs of runs of the same requests. */
export interface Speculation {
  readonly outcome: PlanOutcome;
  readonly answer: PlanValue | null;
  /** Ascending; ratio: the mean request's time with drafts over that without, with the ends of its 95 % interval. */
  readonly pairs: readonly {
    readonly at: number;
    readonly runs: number;
    readonly overloaded: boolean;
    readonly ratio: number;
    readonly low: number;
    readonly high: number;
    readonly with_ms: number;
    readonly without_ms: number;
  }[];
  readonly runs: number;
  readonly requests: number;
}

/** `document` is "" with issues. */
export interface PricedText {
  readonly document: string;
  readonly issues: readonly Issue[];
}

/** Hands out tasks and takes what came of them, in any order; runs nothing itself. The worker must call delete(). */
export interface Search {
  /** "" or JSON Issue[]. */
  error(): string;
  /** JSON list of this round's tasks that have no point yet; [] at the end. */
  tasks(): string;
  /** Of a Design. "" or JSON Issue[]. */
  take(point: string): string;
  progress(): number;
  /** JSON SearchAnswer, so far. */
  answer(): string;
  sentence(): string;
  /** The scenario that is a point, with its replicas; "" where there is none. */
  document(id: number): string;
  delete(): void;
}

/** One task of a search. Owned by the worker, which must call delete(). */
export interface Design {
  error(): string;
  setTrace(trace: Trace): string;
  advance(maxSteps: number): boolean;
  progress(): number;
  /** JSON, for Search.take. */
  point(): string;
  delete(): void;
}

export interface SearchAnswer {
  /** "unknown": some designs could not be judged, and none that was keeps the targets. */
  readonly outcome: 'found' | 'none' | 'unknown' | 'partial';
  /** $/h, or GPUs where none has a price; J/token of the least energy. */
  readonly answer: SearchValue | null;
  /** Ids of points. */
  readonly cheapest: number | null;
  /** Absent unless asked for; null: of no design on the frontier is it known. */
  readonly least_energy?: number | null;
  readonly frontier: readonly number[];
  /** By what stands against cost: ttft, tpot, goodput; energy where it is asked for. */
  readonly frontiers: Readonly<Record<string, readonly number[]>>;
  readonly binding: string | null;
  readonly targets: readonly string[];
  readonly axes: readonly { readonly path: string; readonly values: readonly (string | number)[] }[];
  /** What the designs of the frontier rest on that nobody measured: sentences. */
  readonly warnings: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  readonly points: readonly SearchPoint[];
  readonly runs: number;
  readonly requests: number;
}

/** Of energy the ends are null where the error of the card's power law is not known. */
export interface SearchValue {
  readonly value: number;
  readonly low: number | null;
  readonly high: number | null;
  readonly unit: string;
}

/** A design, as far as it is known; null where it is not. docs/model.md, "Search". */
export interface SearchPoint {
  readonly id: number;
  readonly label: string;
  /** It is the scenario. */
  readonly own: boolean;
  /** By the path of an axis. */
  readonly values: Readonly<Record<string, string | number>>;
  readonly dominated_by: number | null;
  readonly rung: 'bound' | 'coarse' | 'certain';
  readonly state: 'unknown' | 'meets' | 'near' | 'misses' | 'overloaded' | 'does_not_fit' | 'refused' | 'not_judged';
  readonly reason: string;
  readonly gpus: number | null;
  readonly low_gpus: number | null;
  readonly high_gpus: number | null;
  readonly dollars_per_hour: number | null;
  readonly low_dollars_per_hour: number | null;
  readonly high_dollars_per_hour: number | null;
  readonly dollars_per_million_output_tokens: number | null;
  /** Absent unless the least energy is asked for; null: not known. Of all GPUs, with the law's 90 % band. */
  readonly j_per_output_token?: number | null;
  readonly j_per_output_token_low?: number | null;
  readonly j_per_output_token_high?: number | null;
  /** Of a GPU. */
  readonly mean_w?: number | null;
  /** No run needs less. */
  readonly least_j_per_output_token?: number | null;
  /** Share of what its closest target allows. */
  readonly strain: number | null;
  readonly strain_low: number | null;
  readonly strain_high: number | null;
  /** Of the targets, by its index. */
  readonly closest: number | null;
  /** The target that one replica fewer misses; "": the load, or none. */
  readonly binding: string;
  readonly ttft_ms: number | null;
  readonly tpot_ms: number | null;
  readonly requests_per_s: number;
  readonly goodput_per_s: number;
  readonly output_tokens_per_s: number;
  /** Its runs would come out the same with more max_num_seqs. */
  readonly seats_to_spare: boolean;
  readonly evidence: EvidenceClass;
  readonly targets: readonly {
    readonly metric: string;
    readonly value: number | null;
    readonly low: number | null;
    readonly high: number | null;
    readonly unserved_share: number;
    readonly strain: number | null;
  }[];
  readonly pools: readonly {
    readonly name: string;
    readonly role: string;
    readonly replicas: number;
    readonly low: number;
    readonly high: number;
    readonly gpus_per_replica: number;
    readonly dollars_per_gpu_hour: number | null;
  }[];
  /** No system does with less. */
  readonly least_gpus: number;
  readonly least_dollars_per_hour: number | null;
  /** Of the replicas that the closed form has for enough. */
  readonly start_gpus: number;
  readonly start_dollars_per_hour: number | null;
  /** It needs so many replicas that it is no alternative; its state is "unknown". */
  readonly given_up: boolean;
  /** Of each target, the least share of what it allows. */
  readonly least_strains: readonly (number | null)[];
  /** Replicas of each pool that its search begins with. */
  readonly start: readonly number[];
  readonly issues: readonly Issue[];
  readonly runs: number;
  readonly requests: number;
}

/** Owned by the worker, which must call delete(). */
export interface Recording {
  error(): string;
  setTrace(trace: Trace): string;
  advance(maxSteps: number): boolean;
  progress(): number;
  /** No further step will be kept. */
  isFull(): boolean;
  /** From now on the kept steps are written in Chrome's trace format, too. */
  keepTimeLine(): void;
  /** What was written since it was last taken; with `ends`, which is once, the requests that arrived meanwhile. */
  takeTimeLine(ends: boolean): string;
  /** Of the complete requests, after the `first` ones: the slowest by "ttft" or "e2e" before others, else by "arrival". */
  choose(order: string, first: number, count: number): void;
  /** Requests among which it chose. */
  complete(): number;
  /** step_replica, _pool, _start_s, _end_s, _prefill_tokens, _decode_tokens, _prefills, _decodes, _running, _waiting,
      _kv_usage (shares of the replica's), _bound, _preempted, _finished, _compute_share, _bandwidth_share; of the chosen
      requests "request", their number from 0, and what a timeline of them needs. A view, as of a Simulation. */
  column(name: string): Float64Array;
  delete(): void;
}

/** Of all requests of a kind together, after the warm-up. */
export interface BlameSide {
  readonly requests: number;
  /** Of a request; of TPOT, of a token. */
  readonly mean_ms: number;
  readonly parts_ms: TimeParts;
  /** The sum of the parts. */
  readonly total_ns: number;
  readonly parts_ns: TimeParts;
}

export interface Blame {
  /** What the fastest of the slowest took. */
  readonly from_ms: number;
  readonly slowest: BlameSide;
  readonly all: BlameSide;
}

export interface Explanation {
  /** What a tenth more of each takes off the slowest latencies, or off the time of a completion; falling. `pools`: of the first
      with several pools, what each pool's own takes off. */
  readonly limits: readonly { readonly name: string; readonly gain: number; readonly pools?: readonly number[] }[];
  /** Where the time of the slowest 1 % went, and of all. */
  readonly blame: { readonly ttft?: Blame; readonly tpot?: Blame; readonly e2e?: Blame };
}

/** Of attainment, shares instead of times. */
export interface AdvisedTarget {
  readonly value_ms?: number | null;
  readonly share?: number | null;
  readonly low: number | null;
  readonly high: number | null;
  readonly limit_ms?: number | null;
  readonly limit_share?: number;
  /** As a report's, where the forecast's error is known. */
  readonly band?: {
    readonly low: number;
    readonly high: number | null;
    readonly level: number;
    readonly probability: number;
  };
}

/** A change that was run, or why it cannot be (issues). */
export interface AdvisedChange {
  readonly change: string;
  /** As overrides of the command. */
  readonly set: readonly string[];
  readonly document: string;
  readonly gpus: number;
  readonly cost_per_hour: number | null;
  /** The share that it takes off the target that decides, or adds to what is served when overloaded. */
  readonly effect?: number;
  /** As probable as a verdict asks for, or by the intervals of sampling where the forecast's error is not known. */
  readonly meets?: boolean;
  /** That all targets are met; null: not known. */
  readonly probability?: number | null;
  readonly sentence?: string;
  readonly overloaded?: boolean;
  readonly served_per_s?: number;
  readonly evidence?: EvidenceClass;
  readonly slo?: readonly AdvisedTarget[];
  readonly issues?: readonly string[];
}

export interface Advice {
  readonly answer: string;
  readonly base: AdvisedChange | null;
  /** Those that meet all targets first, the cheapest of them before the others; then by effect. */
  readonly changes: readonly AdvisedChange[];
}

/** A measured figure beside its forecast. */
export interface DiagnosedFigure {
  /** As reports have it: "ttft_ms.p99". */
  readonly name: string;
  /** "TTFT p99". */
  readonly words: string;
  readonly unit: 'ms' | '1/s';
  readonly measured: number;
  /** null: the forecast has none. */
  readonly forecast: number | null;
  /** Where measurements lie with 90 % probability, by the forecast's error and the scatter of one run. null: the error is
      not known; high alone: it may grow without bound. */
  readonly low: number | null;
  readonly high: number | null;
  /** measured / forecast - 1. */
  readonly more: number | null;
  /** Whether it counts for `distance` and `state`; others are shown only. */
  readonly counts: boolean;
  /** null: it does not count, or has no band. */
  readonly outside: boolean | null;
}

/** What a text says of the server beside what the scenario plans. */
export interface PlanCheck {
  /** "kv_tokens", "max_concurrency" or "prefix_hit_share". */
  readonly name: string;
  readonly words: string;
  readonly said: number;
  readonly planned: number;
  readonly differs: boolean;
  readonly sentence: string;
}

/** A change of the scenario that was run. */
export interface TriedCause {
  readonly cause: string;
  /** What to look at on the server: an option, a line of the log, a command. */
  readonly proof: string;
  /** As the option --set takes them. */
  readonly set: readonly string[];
  /** With those before it in `causes`. The command leaves it out. */
  readonly document?: string;
  /** Mean distance that is left between forecast and measurement, 0.33: 33 %. Absent with issues. */
  readonly left?: number;
  /** Whether it takes away a tenth of the distance at least. */
  readonly explains?: boolean;
  /** In the order of the diagnosed ones. */
  readonly figures?: readonly (number | null)[];
  /** Why it cannot run. */
  readonly issues?: readonly string[];
}

export interface Diagnosis {
  /** not_judged: how far off such forecasts are is not known. nothing_measured: the texts have no latency and no rate. */
  readonly state: 'agrees' | 'differs' | 'not_judged' | 'nothing_measured';
  readonly sentence: string;
  /** Which figures part, and which do not; "" where none does. */
  readonly detail: string;
  /** Of the scenario; its name. */
  readonly scenario: string;
  /** Mean distance between forecast and measurement, 0.33: 33 %. */
  readonly distance: number;
  /** Of the forecast. */
  readonly runs: number;
  readonly requests_per_run: number;
  readonly figures: readonly DiagnosedFigure[];
  readonly checks: readonly PlanCheck[];
  /** Those that explain it together, each run with all before it. */
  readonly causes: readonly TriedCause[];
  /** Every cause that was run, each alone: the least that is left first. */
  readonly alone: readonly TriedCause[];
}

export interface Canonical {
  readonly text: string;
  /** 16 hex digits over text; equal scenarios have equal ids. */
  readonly id: string;
  readonly issues: readonly Issue[];
}

export interface Preset {
  readonly id: string;
  readonly name: string;
  /** One sentence. */
  readonly description: string;
  /** The preset's own document (for scenarios: a whole scenario document that runs as it is); absent while its file is
      not here. */
  readonly document?: Record<string, unknown>;
  /** Of engines: the section `scheduler` that comes with it, where it is not vLLM's. */
  readonly scheduler?: Record<string, unknown>;
  /** Those that menus list apart. */
  readonly group?: string;
  /** Where its numbers come from, by the member's path; "*": all others. */
  readonly sources?: Readonly<Record<string, string>>;
}

export type FieldType = 'integer' | 'number' | 'boolean' | 'text' | 'choice' | 'list' | 'object';

/** One field of the scenario document; several may share a path, each with its own `when`. The form, its ranges, units, defaults and help come from here. */
export interface Field {
  /** JSON pointer, e.g. "/engine/max_num_seqs", "/workload/prompt_tokens/median", "/slo/-/limit_ms" (list item). */
  readonly path: string;
  readonly type: FieldType;
  /** "" when it has none; e.g. "ms", "req/s", "tokens". */
  readonly unit: string;
  readonly help: string;
  readonly required: boolean;
  /** null when it has none. */
  readonly default: unknown;
  readonly minimum: number | null;
  readonly maximum: number | null;
  readonly choices: readonly string[];
  /** Of a preset: the names that no menu has. */
  readonly others?: readonly string[];
  /** Present when the field only exists for some values of a choice in the same object. */
  readonly when?: { readonly path: string; readonly values: readonly string[] };
}

export interface Column {
  readonly name: string;
  readonly unit: string;
  readonly kind: 'request' | 'series' | 'cdf';
  readonly help: string;
}

export interface Catalog {
  readonly engine_version: string;
  readonly schema: number;
  readonly default_scenario: string;
  readonly presets: {
    readonly models: readonly Preset[];
    readonly hardware: readonly Preset[];
    readonly engines: readonly Preset[];
    /** Machines that servers run on, for `engine.host`. */
    readonly hosts: readonly Preset[];
    readonly workloads: readonly Preset[];
    readonly scenarios: readonly Preset[];
  };
  readonly fields: readonly Field[];
  readonly columns: readonly Column[];
  readonly policies: readonly { readonly kind: string; readonly name: string; readonly help: string }[];
  readonly not_modelled: readonly string[];
  readonly notices: readonly string[];
  /** What the words of latencies, rates and verdicts mean. */
  readonly definitions: readonly { readonly name: string; readonly title: string; readonly text: string }[];
}

/** "partial": of an Experiment that has not finished. "not_judged": the evidence is known to be bad, or no request can have what a target asks for; all figures are there.
    "does_not_fit": of a simulation that has an error; the report has the verdict and `unfit`, all else is 0. */
export type VerdictState =
  | 'meets'
  | 'near'
  | 'misses'
  | 'overloaded'
  | 'does_not_fit'
  | 'not_judged'
  | 'no_slo'
  | 'empty'
  | 'partial';

/** Calibrated: constants were fitted to such servers. Compared: they were measured, and nothing was fitted to them. Known
    bad: measured, and far off. */
export type EvidenceClass = 'calibrated' | 'compared' | 'untested' | 'known_bad';

/** Of one run, by a Simulation. */
export type RunReport = Report & RunFigures;

// Figures of a report, written by tests/cli/figures.test.mjs.

/** Times in ms; null statistics when n is 0. */
export interface Distribution {
  /** Samples. */
  readonly n: number;
  /** Runs that the samples are of; of an experiment, those that arrived between warm-up and drain of each. */
  readonly runs: number;
  readonly mean: number | null;
  readonly min: number | null;
  readonly p50: number | null;
  readonly p90: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
  readonly max: number | null;
  /** 95 % confidence interval of p99. Of several runs that of the target of this percentile, null without one; of
      one run, if the samples were independent, which they are not quite: null below 368 requests and for ITL. */
  readonly p99_low: number | null;
  readonly p99_high: number | null;
  /** False when taken from log buckets of relative width 2^-10. */
  readonly exact: boolean;
  /** Requests without a value because the run ended (or was stopped) first. */
  readonly censored: number;
}

/** What pooled figures rest on: requests_per_s = completed / seconds, output_tokens_per_s = output_tokens / seconds,
    goodput_per_s = attainment * (completed + lost) / seconds. */
export interface Counted {
  readonly runs: number;
  /** That distributions and attainment are of: they arrived between warm-up and drain. */
  readonly requests: number;
  /** From the warm-up to the last arrival, or the end of the run where most answers come later and no client thinks;
      of an overload, while load was offered. Of all runs together. */
  readonly seconds: number;
  /** In these seconds. */
  readonly completed: number;
  /** Dropped, rejected, timed out or lost, of those that arrived in these seconds. */
  readonly lost: number;
  /** Of the completed. */
  readonly output_tokens: number;
}

/** The requests of a class of the workload. */
export interface ClassReport {
  readonly name: string;
  readonly ttft_ms: Distribution;
  readonly tpot_ms: Distribution;
  readonly e2e_ms: Distribution;
  /** Of the pooled figures; absent where all are of one run. */
  readonly counted?: Counted;
  readonly requests_per_s: number;
  /** Of completed requests. */
  readonly output_tokens_per_s: number;
  readonly goodput_per_s: number;
  /** Null without a target that is the class's, or that of all. */
  readonly attainment: number | null;
}

/** One of several pools. */
export interface PoolReport {
  readonly name: string;
  readonly role: 'mixed' | 'prefill' | 'decode' | 'encode';
  readonly gpu: string;
  readonly replicas: number;
  readonly tensor_parallel: number;
  readonly pipeline_parallel: number;
  readonly gpus: number;
  /** That the KV blocks of a replica hold; null, as all of KV: it runs encoders. */
  readonly kv_tokens: number | null;
  /** $, of its mean GPUs; null: its GPU has no price. */
  readonly cost_per_hour: number | null;
}

/** How far step times are off. */
export interface Evidence {
  readonly class: EvidenceClass;
  /** |predicted - measured| / measured, the median of the first of `errors`; null: not known. */
  readonly error: number | null;
  /** Measured runs that it is of. */
  readonly rows: number;
  /** Of runs that no constant was fitted to. */
  readonly left_out: boolean;
  /** Whole sentences. */
  readonly sentence: string;
  /** By figure: tpot, e2e, ttft, ttft_p99. */
  readonly errors: Readonly<Record<string, { readonly median: number; readonly p90: number | null }>>;
  /** Whole sentences: what it rests on that nobody measured. */
  readonly warnings: readonly string[];
}

/** Of an Experiment distributions, rates, attainment, cost and targets are pooled over what counts of all its runs,
    and what is of the first run alone is in `first_run`. */
export interface Report {
  readonly schema: number;
  readonly engine_version: string;
  readonly name: string;
  readonly scenario_id: string;
  readonly fingerprint: string;
  readonly finished: boolean;
  readonly ttft_ms: Distribution;
  readonly tpot_ms: Distribution;
  readonly e2e_ms: Distribution;
  readonly scheduling_delay_ms: Distribution;
  /** Of completed requests. */
  readonly output_tokens_per_s: number;
  readonly output_tokens_per_s_per_gpu: number;
  /** Completed. */
  readonly requests_per_s: number;
  /** Completed requests that met every SLO limit, per second. */
  readonly goodput_per_s: number;
  /** Share of all arrived requests that met every limit (unfinished, dropped and timed-out ones are misses); null
      without SLO. */
  readonly attainment: number | null;
  readonly gpus: number;
  /** $ per million output tokens; null without a price. */
  readonly cost_per_million_output_tokens: number | null;
  /** [] without classes. */
  readonly classes: readonly ClassReport[];
  /** Absent where there is one; memory and kv.blocks are then the first one's. */
  readonly pools?: readonly PoolReport[];
  readonly verdict: {
    readonly state: VerdictState;
    /** "Meets TTFT p99 <= 800 ms with a margin of 31 %." Of an experiment: "Llama-3.1-8B on 1 x H100 meets both
        targets at 40 req/s; closest is TPOT p99, 15.3 of 20 ms (14.8 to 16)." */
    readonly sentence: string;
    /** "The limit is KV memory: 22 % of the time admission waits for blocks." */
    readonly limit: string;
    /** Anything else a reader must know: drops, caps, few samples. May be "". */
    readonly note: string;
    /** That all targets are met, sampling and the forecast's error together. Of a run with bands, where that error
        is known. */
    readonly probability?: number;
  };
  readonly slo: readonly {
    readonly metric: 'ttft' | 'tpot' | 'itl' | 'e2e' | 'attainment';
    /** Of attainment: the share of the requests, %. */
    readonly percentile: number;
    /** Null of attainment. */
    readonly limit_ms: number | null;
    /** Whose requests; absent: all. */
    readonly class?: string;
    /** Of an experiment, the percentile of all its runs. Null of attainment. */
    readonly value_ms: number | null;
    /** Of attainment alone: the share that must be within all its limits, and that which is. */
    readonly limit_share?: number;
    readonly share?: number | null;
    readonly ttft_ms?: number;
    readonly tpot_ms?: number;
    readonly e2e_ms?: number;
    /** 1 - value / limit; of attainment 1 - share beyond / share that may be. */
    readonly margin: number | null;
    /** The 95 % interval, ms, or of attainment a share; null without an experiment, or where there are too few
        requests. */
    readonly low: number | null;
    readonly high: number | null;
    /** Where it lies with the probability `level`, sampling and the forecast's error together: ms, or of attainment
        a share. Of a run with bands. */
    readonly band?: {
      readonly low: number;
      /** Null: the latency may grow for as long as requests come. */
      readonly high: number | null;
      readonly level: number;
      /** That this target is met. */
      readonly probability: number;
      /** Of the forecast's error alone. */
      readonly model: {
        readonly low: number;
        readonly high: number | null;
      };
    };
    /** That it is of. */
    readonly runs: number;
    /** Grows for as long as requests come: there is no value. */
    readonly unbounded: boolean;
    /** Requests without a value (dropped, timed out, or still waiting) that count as beyond the limit. */
    readonly unserved_share: number;
    readonly met: boolean;
  }[];
  /** What an experiment rests on; absent otherwise. */
  readonly certainty?: {
    readonly method: 'one_run' | 'replications' | 'batch_means';
    readonly runs: number;
    readonly requests_per_run: number;
    /** Of the only run, with batch means. */
    readonly batches?: number;
    readonly confidence: number;
    /** Every target's limit lies outside its interval. */
    readonly settled: boolean;
    /** Arrivals of the first run that count: after the warm-up, before the drain. */
    readonly from_s: number;
    readonly until_s: number;
    /** Runs are not much longer than their warm-up. */
    readonly long_warmup: boolean;
  };
  /** Of the pooled figures; absent where all are of one run. */
  readonly counted?: Counted;
  /** GiB per GPU of what does not fit; absent otherwise. */
  readonly unfit?: {
    /** "" where there is one. */
    readonly pool: string;
    readonly gpu: string;
    readonly tensor_parallel: number;
    /** Of the pipeline, from 0. */
    readonly stage: number;
    readonly stages: number;
    readonly total_gib: number;
    readonly usable_gib: number;
    /** Weights, overhead and the least KV cache. */
    readonly needed_gib: number;
    readonly weights_gib: number;
    readonly overhead_gib: number;
    readonly kv_gib: number;
    /** The least that would fit; absent: none up to 64. */
    readonly enough_tensor_parallel?: number;
  };
  /** Requests per second while load was offered, where an experiment finds that not all is served; 95 %. */
  readonly overload?: {
    readonly served_per_s: number;
    readonly low: number;
    readonly high: number;
    readonly offered_per_s: number;
  };
  readonly saturation: {
    readonly state: 'stable' | 'near' | 'overloaded';
    readonly evidence: string;
    /** Growth of the queue over the last half of the arrivals. */
    readonly queue_slope_per_s: number;
    readonly queue_slope_t: number;
    readonly queue_p95: number;
    /** Of the scarcest of KV blocks, seats, tokens and arithmetic. */
    readonly utilization: number;
    /** Requests in the system still grew when arrivals ended. */
    readonly filling: boolean;
    /** Of the run that was looked at; of an experiment, one as long as those that its verdict rests on. */
    readonly requests: number;
  };
  readonly binding_constraint: {
    readonly name:
      | 'kv_blocks'
      | 'seats'
      | 'token_budget'
      | 'compute'
      | 'bandwidth'
      | 'overhead'
      | 'link'
      | 'host'
      | 'transfer'
      | 'adapter_seats'
      | 'router'
      | 'none';
  };
  readonly kv: {
    /** Of a replica. */
    readonly blocks: number;
    readonly block_size: number;
    readonly tokens: number;
    /** By name, "" the only one; null: it runs encoders. */
    readonly pools: readonly {
      readonly name: string;
      /** That the blocks of a replica hold. */
      readonly tokens: number | null;
    }[];
  };
  /** Absent with one pipeline stage. */
  readonly pipeline?: {
    readonly stages: number;
  };
  /** Of a GPU. */
  readonly memory: {
    readonly total_gib: number;
    readonly usable_gib: number;
    readonly weights_gib: number;
    readonly overhead_gib: number;
    readonly kv_gib: number;
  };
  /** Where results are by rules other than the default engine's, or not by those of the engine that is simulated. */
  readonly departures?: readonly string[];
  readonly latency_model: {
    readonly backend: string;
    /** Where its numbers come from. */
    readonly provenance: 'measured' | 'interpolated' | 'extrapolated' | 'datasheet' | 'coefficients';
    readonly description: string;
    /** Whole sentences: how far it was off on servers, or that this is unknown. */
    readonly known_error: string;
  };
  readonly evidence: Evidence;
  readonly workload: {
    readonly source: 'synthetic' | 'trace';
    readonly name: string;
    readonly requests: number;
  };
  /** What bands rest on. Of a run with bands, where the forecast's error is known. */
  readonly model_error?: {
    /** Servers like this one were slower by so much; below 0: faster. */
    readonly bias: number;
    /** The part of it that bands are moved by. */
    readonly corrected: number;
    /** Of the time of a step, at `level`. */
    readonly half_width: number;
    readonly level: number;
    /** Of the nearest measured set-up. */
    readonly nearness: 'near' | 'middle' | 'far';
    /** Whole sentences. */
    readonly sentence: string;
  };
  /** From its beginning to its end. Absent of a Simulation, which gives a RunReport. */
  readonly first_run?: RunFigures;
  /** The resolved scenario: presets inlined; runs again as it is. */
  readonly scenario: Record<string, unknown>;
}

/** By the GPUs' laws of power (docs/model.md), hosts and cooling not counted but where said. */
export interface Power {
  /** Of a GPU, over the run. */
  readonly mean_w: number;
  /** Of a GPU, while its steps run. */
  readonly serving_w: number;
  /** Of a GPU, in the heaviest interval of the series. */
  readonly peak_w: number;
  /** Of all GPUs; null without output tokens. */
  readonly j_per_output_token: number | null;
  /** Of all GPUs; null without completed requests, and of a pool. */
  readonly j_per_request: number | null;
  /** Of all GPUs. */
  readonly kwh_per_hour: number;
  /** 90 % of the set-ups that the law was not fitted to were within; absent: not known. */
  readonly mean_w_low?: number;
  readonly mean_w_high?: number;
  readonly j_per_output_token_low?: number;
  readonly j_per_output_token_high?: number;
  /** With hosts and cooling; absent where hardware.host_w and hardware.pue add nothing. */
  readonly site_kwh_per_hour?: number;
  /** $ for what the site draws; absent without hardware.price_per_kwh. */
  readonly electricity_per_hour?: number;
  /** CO2 equivalent of what the site draws; absent without hardware.co2_g_per_kwh. */
  readonly co2_kg_per_hour?: number;
}

/** Mean times of completed requests by where they went, ms. */
export interface TimeParts {
  /** Before the queue, and of output tokens on the way to the client. */
  readonly host: number;
  readonly queue: number;
  readonly prefill: number;
  readonly decode: number;
  /** By which prefills made the steps of decodes longer. */
  readonly interference: number;
  /** From preemptions to the next steps. */
  readonly preempted: number;
  /** By which loads from slower KV tiers made steps longer; or of KV from prefill to decode replicas, and of
      embeddings from those that encode images. */
  readonly transfer: number;
  /** From prefill to decode on another replica, without the transfer. */
  readonly handover: number;
}

/** The requests of a class in one run. */
export interface ClassRun {
  readonly name: string;
  readonly arrived: number;
  readonly completed: number;
  readonly dropped: number;
  readonly timed_out: number;
  readonly rejected: number;
  /** First tokens after the class's deadline; null when it has none. */
  readonly deadline_misses: number | null;
  /** Of the service that it asked for while load was offered; null when it asked for none. */
  readonly served_share: number | null;
}

/** A pool's replicas that came and went. */
export interface PoolScaling {
  readonly cold_start_s: number;
  /** The part of a cold start that loads the weights. */
  readonly weights_s: number;
  /** Decided by the scaler, or of the rolling update. */
  readonly starts: number;
  readonly stops: number;
  /** Most replicas up at one time. */
  readonly peak_up: number;
  /** On average over the run. */
  readonly mean_up: number;
  /** On average over the run: starting, up or draining. */
  readonly mean_replicas: number;
  /** Of these. */
  readonly mean_gpus: number;
  readonly gpu_hours: number;
  /** Of gpu_hours, in US dollars; null: the GPU has no price. */
  readonly cost: number | null;
  /** Replicas in each state from a time on. */
  readonly at_s: readonly number[];
  readonly starting: readonly number[];
  readonly up: readonly number[];
  readonly draining: readonly number[];
}

/** What a pool did in one run; shares and usage are of all its replicas. */
export interface PoolRun {
  readonly name: string;
  /** That it served, wholly or in part. */
  readonly requests: number;
  readonly steps: number;
  readonly output_tokens: number;
  readonly preemptions: number;
  readonly kv_mean_usage: number | null;
  readonly kv_peak_usage: number | null;
  readonly kv_mean_fragmentation: number | null;
  readonly kv_peak_fragmentation: number | null;
  readonly allocation_failures: number;
  /** Of the time: some step ran. */
  readonly busy_share: number;
  /** Of the time in which admission waited for blocks, seats or tokens. */
  readonly blocked_share: number;
  /** As that of all; null: it runs encoders. */
  readonly mfu: number | null;
  readonly bandwidth_use: number | null;
  /** Of its GPUs and tokens; absent where the power of its GPU is not known. */
  readonly power?: Power;
  /** Absent where no pool's replicas come and go. */
  readonly scaling?: PoolScaling;
}

/** A figure beside the bound that no run can be beyond, or the law that all follow. */
export interface SanityCheck {
  readonly name: 'littles_law' | 'roofline' | 'kv' | 'utilisation';
  /** One sentence. */
  readonly help: string;
  readonly unit: string;
  readonly simulated: number;
  readonly bound: number;
  readonly ok: boolean;
}

/** Found behind the GPU's hit by first admissions, as shares of what the prefix cache was asked for. */
export interface KvTier {
  /** Capacity. */
  readonly blocks: number;
  readonly hit_tokens: number;
  readonly hit_rate: number | null;
  readonly hit_blocks: number;
  readonly block_hit_rate: number | null;
  /** By all admissions. */
  readonly loaded_blocks: number;
}

/** Figures of one run, from its beginning to its end. */
export interface RunFigures {
  readonly arrived: number;
  readonly completed: number;
  readonly queued: number;
  readonly running: number;
  readonly dropped: number;
  readonly timed_out: number;
  readonly rejected: number;
  /** Of the completed. */
  readonly length_capped: number;
  readonly preemptions: number;
  /** Of the arrived requests, to which they add up; length: cut at the longest sequence that the engine serves. */
  readonly finish_reasons: {
    readonly stop: number;
    readonly length: number;
    readonly dropped: number;
    readonly timed_out: number;
    readonly unfinished: number;
    readonly rejected: number;
    readonly lost: number;
  };
  readonly itl_ms: Distribution;
  /** From the end of a request's step to the start of its next, over all such pairs. */
  readonly step_delay_ms: Distribution;
  /** Jain's index over the classes' served shares, 1/n to 1; null with fewer than two. */
  readonly fairness: number | null;
  /** Of the completed. */
  readonly prompt_tokens: number;
  /** Made so far. */
  readonly output_tokens: number;
  readonly simulated_s: number;
  readonly steps: number;
  /** Requests that wait or run, over time. */
  readonly mean_in_system: number;
  /** Requests that run, while a step runs. */
  readonly mean_batch_size: number;
  /** FLOPs that the steps need, of the GPU's peak over the run; null with engine.compat. */
  readonly mfu: number | null;
  /** Bytes that the steps need, of the GPU's peak over the run; null with engine.compat. */
  readonly bandwidth_use: number | null;
  /** Absent where the power of some GPU is not known, and with engine.compat "blis". */
  readonly power?: Power;
  /** Parts add up to the mean E2E, and TTFT, of the completed; absent with engine.compat. */
  readonly time_split?: {
    readonly n: number;
    readonly ttft_ms: TimeParts;
    readonly e2e_ms: TimeParts;
  };
  readonly classes: readonly ClassRun[];
  /** Absent where there is one. */
  readonly pools?: readonly PoolRun[];
  /** KV that has arrived at decode replicas by the end; absent without them. Times are those on the link. */
  readonly kv_transfer?: {
    readonly first_token_from: 'prefill' | 'decode';
    readonly transfers: number;
    readonly bytes: number;
    readonly mean_ms: number;
    readonly p99_ms: number;
  };
  /** Behind a router: each figure by replica. */
  readonly replicas?: {
    /** Placed on it. */
    readonly requests: readonly number[];
    /** Of the time: some step ran. */
    readonly busy_share: readonly number[];
    /** Requests placed on it that had not ended, over time. */
    readonly mean_outstanding: readonly number[];
    readonly kv_peak_usage: readonly (number | null)[];
    readonly ttft_mean_ms: readonly (number | null)[];
  };
  /** Replicas that came and went; absent where their number is fixed. */
  readonly scaling?: {
    /** Of several pools the longest. */
    readonly cold_start_s: number;
    /** The part of a cold start that loads the weights. */
    readonly weights_s: number;
    /** Until all replicas were new ones that serve; null: no update, or not by the end. */
    readonly rolling_update_s: number | null;
    /** Decided by the scaler, or of the rolling update. */
    readonly starts: number;
    readonly stops: number;
    /** Most replicas up at one time. */
    readonly peak_up: number;
    /** On average over the run. */
    readonly mean_up: number;
    /** On average over the run: starting, up or draining. */
    readonly mean_replicas: number;
    /** Of these. */
    readonly mean_gpus: number;
    readonly gpu_hours: number;
    /** Of gpu_hours, in US dollars; null: the GPU has no price. */
    readonly cost: number | null;
    /** Replicas in each state from a time on. */
    readonly at_s: readonly number[];
    readonly starting: readonly number[];
    readonly up: readonly number[];
    readonly draining: readonly number[];
  };
  /** Absent where a scaler has none. */
  readonly warm_replicas?: {
    /** Starts of the scaler that took one. */
    readonly wakes: number;
    /** On average over the run. */
    readonly mean_asleep: number;
    /** Of them, as far as they count in scaling.gpu_hours. */
    readonly replica_s: number;
  };
  /** Replicas that fail, or are cut off as they drain; absent where neither may be. */
  readonly failures?: {
    readonly failures: number;
    /** Of the replicas' time: up. */
    readonly availability: number;
    /** The rest of it. */
    readonly down_s: number;
    /** Requests whose last attempt was lost with a replica. */
    readonly lost: number;
    readonly lost_attempts: number;
    /** Output tokens that lost attempts had. */
    readonly tokens_lost: number;
    /** Replicas up from a time on. */
    readonly at_s: readonly number[];
    readonly up: readonly number[];
  };
  /** Slow replicas; absent where none may be. */
  readonly slowdowns?: {
    readonly periods: number;
    /** Of replicas, whether they were up or not. */
    readonly slow_s: number;
    /** Answered ones that were on a slow replica for some time. */
    readonly requests: number;
    /** Of all answered ones. */
    readonly share: number;
    /** Of the 1 % of them that took longest. */
    readonly tail_share: number;
  };
  /** Clients that try again or hedge; absent where they do neither. */
  readonly retries?: {
    /** Attempts that have arrived. */
    readonly attempts: number;
    /** Attempts by request that has arrived. */
    readonly amplification: number;
    /** Requests with more than one attempt. */
    readonly retried: number;
    /** Requests whose last attempt failed. */
    readonly given_up: number;
    /** Of them for want of a budget; hedges count apart. */
    readonly over_budget: number;
    /** Output tokens of attempts that failed. */
    readonly tokens_lost: number;
  };
  /** Clients that hedge; absent where they do not. */
  readonly hedges?: {
    /** Second attempts. */
    readonly sent: number;
    /** Of them: had the first token. */
    readonly won: number;
    /** Not sent for want of hedge_budget. */
    readonly over_budget: number;
    /** Output tokens of attempts that were not kept. */
    readonly tokens_lost: number;
  };
  readonly sanity: readonly SanityCheck[];
  readonly binding_constraint: {
    /** Of the resource that Report.binding_constraint names. */
    readonly share: number;
    /** Share of the time that some step ran. */
    readonly busy_share: number;
    /** Share of the time per constraint. */
    readonly shares: Readonly<Record<string, number>>;
  };
  readonly kv: {
    readonly mean_usage: number;
    readonly peak_usage: number;
    /** Room in used blocks that holds no token, of the whole KV cache: over time, and at most. */
    readonly mean_fragmentation: number;
    readonly peak_fragmentation: number;
    /** Times that KV blocks were asked for and there were not enough. */
    readonly allocation_failures: number;
    /** By name, "" the only one; null: it runs encoders. */
    readonly pools: readonly {
      readonly name: string;
      /** Over time. */
      readonly mean_usage: number | null;
      /** At most. */
      readonly peak_usage: number | null;
    }[];
    /** Garbage collections (an option), and their time in all. */
    readonly gc_passes: number;
    readonly gc_ms: number;
  };
  /** Preempted requests that wait here, where SGLang 0.5.16 would have lost them; absent: none. */
  readonly sglang_would_lose?: number;
  /** Of prefills: tokens computed, and how many more if each were as long as the longest of its step and bucket. */
  readonly padding: {
    readonly prefill_tokens: number;
    readonly padding_tokens: number;
  };
  /** Of speculative decoding, where a step verified drafts. */
  readonly speculative?: {
    /** Requests in steps with drafts of theirs, summed over steps. */
    readonly verified_steps: number;
    readonly draft_tokens: number;
    readonly accepted_tokens: number;
    /** Of the accepted, those that a client got: not those beyond a request's end. */
    readonly used_draft_tokens: number;
    /** Drafts that were computed and that no client got. */
    readonly wasted_draft_tokens: number;
    readonly acceptance_rate: number;
    /** Mean tokens of a request's step with drafts, the model's own included. */
    readonly acceptance_length: number;
  };
  /** Of prompts with images. */
  readonly images?: {
    /** Of an image, in the prompt. */
    readonly tokens: number;
    /** Images that the encoder computed, some again. */
    readonly encoded: number;
    /** Images of requests that were found encoded. */
    readonly cache_hits: number;
    /** Of the time of all steps, that of encoding. */
    readonly encode_share: number;
    /** Of mean TTFT, by which encoding images, a request's own or others', made the steps of its prompt longer; on
        replicas that encode for the others, from the first such step of its own to the end of the last; null without
        completed requests. */
    readonly ttft_ms: number | null;
    /** That have arrived from replicas that encode images by the end; absent without them. Times are those on the
        link. */
    readonly embeddings?: {
      readonly transfers: number;
      readonly bytes: number;
      readonly mean_ms: number;
      readonly p99_ms: number;
    };
  };
  /** Look-ups of prompts, by first admissions; rates are null when nothing was looked up. */
  readonly prefix_cache: {
    readonly query_tokens: number;
    readonly hit_tokens: number;
    /** hit_tokens / query_tokens. */
    readonly hit_rate: number | null;
    /** Full KV blocks of the prompts. */
    readonly query_blocks: number;
    readonly hit_blocks: number;
    readonly block_hit_rate: number | null;
    /** Found by requests that had been preempted; not among the hits above. */
    readonly resumed_hit_tokens: number;
    /** Cached blocks whose content was overwritten. */
    readonly evicted_blocks: number;
  };
  /** Absent without tiers behind the GPU's KV cache. */
  readonly kv_offload?: {
    /** Absent without room for a block. */
    readonly cpu?: KvTier;
    /** Absent without room for a block. */
    readonly disk?: KvTier;
    readonly offloaded_blocks: number;
    /** Loaded within 1 ms of being offloaded. */
    readonly thrashed_blocks: number;
    /** By which steps were longer. */
    readonly transfer_s: number;
  };
  /** Absent with one pipeline stage. */
  readonly pipeline?: {
    /** Of the stages' time while batches were in flight: idle. */
    readonly bubble_share: number;
  };
  /** Of a GPU. */
  readonly memory: {
    /** Weights, overhead and used KV blocks, of the total, over time. */
    readonly mean_usage: number;
  };
}

// End of what is written.

export interface InstantiateOptions {
  wasmBinary?: Uint8Array;
  locateFile?: (name: string) => string;
  /** Emscripten's hook: instantiate a module that was compiled elsewhere. */
  instantiateWasm?: (imports: WebAssembly.Imports, done: (instance: WebAssembly.Instance) => void) => object;
}

export default function createServecast(options?: InstantiateOptions): Promise<ServecastModule>;

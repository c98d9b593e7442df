// The engine's thread. Holds at most one experiment a lane, one advice and one trace. Advances in
// slices of about 6 ms and gives the thread back between them, so that a cancel or a newer run is
// seen within a slice. Traces are decompressed and read here, piece by piece, so that a large file
// never blocks the page; their rows stay in the module, their bytes do not.
import createFirst from 'servecast-first';
import type {
  AdviceRun,
  BandRun,
  Canonical,
  Catalog,
  Experiment,
  Explanation,
  FirstModule,
  Issue,
  Recording,
  Report,
  Simulation,
  Trace,
  TraceRead,
} from 'servecast';
import { inWords, instantiate } from './compile';
import type { Columns, FromWorker, Lane, Outcome, Question, ToWorker } from './protocol';
import { NeedsWholeModule, PresetFiles } from './preset-files';
import { firstRun } from '../lib/first-run';

interface WorkerScope {
  onmessage: ((event: MessageEvent<ToWorker>) => void) | null;
  postMessage(message: FromWorker, transfer?: Transferable[]): void;
}
const scope = self as unknown as WorkerScope;

/** A trace that was read; its rows live in `module`. */
export interface ReadTrace {
  readonly rows: Trace;
  readonly read: TraceRead;
  readonly module: FirstModule;
}

type RunRequest = Extract<ToWorker, { kind: 'run' }>;
type RecordingRequest = Extract<ToWorker, { kind: 'record' }>;

/** Of the engine at a time: a newer run or a cancel waits for no longer than that. */
const sliceMs = 6;
const progressMs = 100;
/** Of a coarse run, without what it costs to begin one. */
const coarseMs = 8;
const fewestCoarse = 250;
/** What was shown before stays for so long without a word. */
const graceMs = 150;
/** A partial report costs time that the run wants: at most a fifth of it. */
const reportShare = 5;
/** A cancel is answered within this: with the last partial report when a new one takes longer. */
const promptMs = 50;

let engineLoaded: (module: FirstModule) => void = () => undefined;
/** The module of a first visit, then the whole one. */
let engine = new Promise<FirstModule>((resolve) => {
  engineLoaded = resolve;
});
const presets = new PresetFiles((catalog) => scope.postMessage({ kind: 'catalog', catalog }));
/** Settles when the newest trace is read: a run that was asked for meanwhile waits for it. */
let reading: Promise<void> = Promise.resolve();
let columnNames: readonly string[] = [];
/** What two scenarios are drawn over each other by. */
let curveNames: readonly string[] = [];
let trace: ReadTrace | null = null;
/** The shown run that finished last: what its requests did may yet be asked for. */
let kept: Experiment | null = null;
type Current = Lane | 'advice' | 'band' | 'record';
const currentRun: Record<Current, number> = { shown: 0, beside: 0, advice: 0, band: 0, record: 0 };
const cancelledRuns = new Set<number>();
let currentTrace = 0;

// A task of its own per slice without the 4 ms clamp of timers.
const channel = new MessageChannel();
// Every waiting loop gets its own turn: a superseded run must end too, to free its simulation.
const waiting: (() => void)[] = [];
channel.port1.onmessage = () => waiting.shift()?.();
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    channel.port2.postMessage(null);
  });
}

function parseIssues(text: string): readonly Issue[] {
  return text === '' ? [] : (JSON.parse(text) as readonly Issue[]);
}

const unavailable = (error: unknown): readonly Issue[] => [{ path: '', message: inWords(error) }];

/** What reads a person's files comes with the first one. */
const files = () => import('./worker-files');
const host = {
  engine: () => engine,
  /** A module that can all that the one before can. */
  replace: (module: FirstModule) => void (engine = Promise.resolve(module)),
  isCurrent: (id: number) => currentTrace === id,
  keep(read: ReadTrace) {
    forgetTrace();
    trace = read;
  },
  presets,
  nextTask,
  post: (message: FromWorker) => scope.postMessage(message),
  broken,
  made,
  slice,
  parseIssues,
  currentRun,
  cancelledRuns,
  trace: () => trace,
};
export type WorkerHost = typeof host;

function canonicalOf(module: FirstModule, question: Question, text: string, waits?: () => void): Promise<Canonical> {
  const ask = () => (question === 'replaying' ? replaying(text) : (JSON.parse(module[question](text)) as Canonical));
  return presets.with(module, ask, ({ issues }) => issues, waits);
}

/** The answer to a question, or what cannot be had; a trap is neither. */
function orIssues<Answer>(answer: Promise<Answer>, otherwise: (issues: readonly Issue[]) => Answer): Promise<Answer> {
  return answer.catch((error: unknown) => {
    if (error instanceof WebAssembly.RuntimeError) throw error;
    return otherwise(unavailable(error));
  });
}

/** Of a class of the module, whose constructor may ask for files. Why it cannot run is asked with its trace. */
async function made<Run extends Experiment | AdviceRun | BandRun | Recording>(
  module: FirstModule,
  make: () => Run,
  waits: () => void,
): Promise<Run> {
  let last: Run | null = null;
  const ask = () => {
    last?.delete();
    last = make();
    return last;
  };
  try {
    return await presets.with(module, ask, (run) => parseIssues(run.error()), waits);
  } catch (error) {
    (last as Run | null)?.delete();
    throw error;
  }
}

/** Advances for a slice, in which many short runs may end: how long that took, and whether it is finished. */
function slice(
  run: Simulation | Experiment | AdviceRun | BandRun | Recording,
  pace: { steps: number },
): { finished: boolean; ms: number } {
  const begin = performance.now();
  for (let now = begin; ; ) {
    const finished = run.advance(pace.steps);
    const then = performance.now();
    pace.steps = nextBudget(pace.steps, then - now);
    now = then;
    if (finished || now - begin >= sliceMs * 0.75) return { finished, ms: now - begin };
    if (run.error() !== '') return { finished, ms: now - begin };
  }
}

function copyColumns(simulation: Simulation, names = columnNames): Columns {
  const columns: Record<string, Float64Array> = {};
  // slice(): the view is on the heap and dies with the next call.
  for (const name of names) columns[name] = simulation.column(name).slice();
  return columns;
}

function forgetRun(): void {
  kept?.delete();
  kept = null;
}

function sendRequests(id: number, names: readonly string[]): void {
  const columns = kept && copyColumns(kept, names);
  const buffers = Object.values(columns ?? {}).map((column) => column.buffer as ArrayBuffer);
  scope.postMessage({ kind: 'requests', id, columns }, buffers);
}

function sendExplanation(id: number): void {
  const explanation = kept && (JSON.parse(kept.explanation()) as Explanation);
  scope.postMessage({ kind: 'explanation', id, explanation });
}

function outcomeOf(simulation: Experiment, engineMs: number, lane: Lane): Outcome {
  const report = JSON.parse(simulation.summary()) as Report;
  return { report, columns: copyColumns(simulation, lane === 'shown' ? columnNames : curveNames), engine_ms: engineMs };
}

function buffersOf(outcome: Outcome): Transferable[] {
  return Object.values(outcome.columns).map((column) => column.buffer as ArrayBuffer);
}

/** Of a request and its part in the report, in the last coarse run. */
let msPerRequest = 0.01;

/**
 * One run of the first of the requests: as many as a frame has room for, but as many as it takes to say something. False:
 * it has no answer, be it a bad document, a file that is missing or a trace that is.
 */
async function runCoarse(module: FirstModule, request: RunRequest): Promise<boolean> {
  const { id, lane, with_trace: withTrace, coarse } = request;
  const document = JSON.parse(request.scenario) as { workload?: object };
  const asked = coarse ?? 0;
  if (withTrace && (!trace || trace.module !== module || trace.read.issues.length > 0)) return false;
  for (let requests = Math.max(fewestCoarse, Math.round(coarseMs / msPerRequest)); ; requests *= 4) {
    const begin = performance.now();
    const some = Math.min(asked, requests);
    const workload = { ...document.workload, requests: some };
    const simulation = new module.Simulation(
      some < asked ? JSON.stringify({ ...document, workload }) : request.scenario,
    );
    try {
      if (withTrace && trace) simulation.setTrace(trace.rows);
      if (simulation.error() !== '') return false;
      const ready = performance.now();
      for (const pace = { steps: 2000 }; !slice(simulation, pace).finished; await nextTask()) {
        if (currentRun[lane] !== id) return true;
        if (!cancelledRuns.has(id)) continue;
        scope.postMessage({ kind: 'finished', id, cancelled: true, progress: 0, outcome: null });
        return true;
      }
      const report = JSON.parse(simulation.summary()) as Report;
      msPerRequest = Math.max(1e-4, (performance.now() - ready) / Math.max(1, firstRun(report).arrived));
      // All in the warm-up.
      if (report.verdict.state === 'empty' && some < asked) continue;
      const whole = { ...report.scenario, workload: { ...(report.scenario['workload'] as object), requests: asked } };
      const outcome: Outcome = {
        report: { ...report, scenario: whole },
        columns: copyColumns(simulation),
        engine_ms: performance.now() - begin,
      };
      scope.postMessage({ kind: 'coarse', id, outcome }, buffersOf(outcome));
      return true;
    } finally {
      simulation.delete();
    }
  }
}

async function runInWhole(request: RunRequest): Promise<void> {
  const { id, lane } = request;
  try {
    const module = await files().then((each) => each.wholeEngine(host));
    if (currentRun[lane] === id) await run(module, request);
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError || currentRun[lane] !== id) throw error;
    scope.postMessage({ kind: 'refused', id, reason: 'engine', issues: unavailable(error) });
  }
}

async function run(module: FirstModule, request: RunRequest): Promise<void> {
  const { id, lane, scenario, with_trace: withTrace } = request;
  if (request.coarse !== null && (await runCoarse(module, request))) return void cancelledRuns.delete(id);
  const since = performance.now();
  const waits = () => scope.postMessage({ kind: 'loading', id });
  let simulation: Experiment;
  try {
    const canonical = await canonicalOf(module, 'canonical', scenario, waits);
    if (currentRun[lane] !== id) return;
    if (canonical.issues.length > 0) {
      scope.postMessage({ kind: 'refused', id, reason: 'scenario', issues: canonical.issues });
      return;
    }
    scope.postMessage({ kind: 'accepted', id, canonical });
    if (lane === 'shown') forgetRun();
    simulation = await made(module, () => new module.Experiment(scenario, lane === 'shown'), waits);
  } catch (error) {
    // Accepted, so it is the certain run by now.
    if (error instanceof NeedsWholeModule) return runInWhole({ ...request, coarse: null });
    if (error instanceof WebAssembly.RuntimeError) throw error;
    if (currentRun[lane] === id)
      scope.postMessage({ kind: 'refused', id, reason: 'engine', issues: unavailable(error) });
    return;
  }
  const begun = performance.now();
  let engineMs = 0;
  try {
    if (currentRun[lane] !== id) return;
    // A trace that came meanwhile is of another module.
    if (withTrace && trace && trace.module !== module) return run(trace.module, request);
    if (withTrace && trace && trace.read.issues.length === 0) simulation.setTrace(trace.rows);
    const traceIssues = withTrace && trace ? trace.read.issues : [];
    const engineIssues = traceIssues.length > 0 ? [] : parseIssues(simulation.error());
    if (traceIssues.length + engineIssues.length > 0) {
      const reason = traceIssues.length > 0 ? 'trace' : 'engine';
      // What does not fit has a report all the same, which says by how much.
      const unfit = engineIssues.some(({ kind }) => kind === 'does_not_fit')
        ? (JSON.parse(simulation.summary()) as Report | null)?.unfit
        : undefined;
      scope.postMessage({
        kind: 'refused',
        id,
        reason,
        issues: [...traceIssues, ...engineIssues],
        ...(unfit ? { unfit } : {}),
      });
      return;
    }
    engineMs += performance.now() - begun;
    const pace = { steps: 2000 };
    let lastProgress = performance.now();
    let nextReport = since + graceMs;
    let reportMs = 0;
    let reported = 0;
    for (;;) {
      const { finished, ms } = slice(simulation, pace);
      engineMs += ms;
      if (finished) break;
      const now = performance.now();
      const drawn = simulation.drawn();
      const reports = lane === 'shown' && drawn === 1 && now >= nextReport;
      if (reports || now - lastProgress >= progressMs) {
        lastProgress = now;
        const partial = reports ? outcomeOf(simulation, engineMs, lane) : null;
        if (partial) {
          reported = simulation.progress();
          reportMs = performance.now() - now;
          nextReport = now + Math.max(progressMs, reportShare * reportMs);
        }
        const message: FromWorker =
          drawn < 1
            ? { kind: 'drawing', id, progress: drawn }
            : { kind: 'progress', id, progress: simulation.progress(), partial };
        scope.postMessage(message, partial ? buffersOf(partial) : []);
      }
      await nextTask();
      if (currentRun[lane] !== id) return;
      if (cancelledRuns.has(id) && (reportMs > promptMs || drawn < 1)) {
        scope.postMessage({ kind: 'finished', id, cancelled: true, progress: reported, outcome: null });
        return;
      }
      if (cancelledRuns.has(id)) {
        const outcome = outcomeOf(simulation, engineMs, lane);
        const progress = simulation.progress();
        scope.postMessage({ kind: 'finished', id, cancelled: true, progress, outcome }, buffersOf(outcome));
        return;
      }
    }
    const late = parseIssues(simulation.error());
    if (late.length > 0) {
      scope.postMessage({ kind: 'refused', id, reason: 'engine', issues: late });
      return;
    }
    const outcome = outcomeOf(simulation, engineMs, lane);
    if (lane === 'shown') kept = simulation;
    scope.postMessage({ kind: 'finished', id, cancelled: false, progress: 1, outcome }, buffersOf(outcome));
  } finally {
    cancelledRuns.delete(id);
    if (simulation !== kept) simulation.delete();
  }
}

/** The first run again, in the whole module. */
async function record(request: RecordingRequest): Promise<void> {
  const { id, with_trace: withTrace } = request;
  const isCurrent = () => currentRun.record === id;
  try {
    const [module, part] = await Promise.all([
      files().then((each) => each.wholeEngine(host)),
      import('./steps-recorder'),
    ]);
    await part.record(request, {
      module,
      trace: withTrace && trace && trace.module === module ? trace.rows : null,
      made: (make) => made(module, make, () => undefined),
      slice: (run, pace) => slice(run, pace).finished,
      nextTask,
      isCurrent,
      post: (message, transfer = []) => scope.postMessage(message, transfer),
    });
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) throw error;
    const message = unavailable(error)[0]?.message ?? '';
    if (isCurrent()) scope.postMessage({ kind: 'recorded', id, progress: 1, recorded: null, message });
  }
}

function nextBudget(steps: number, tookMs: number): number {
  const factor = Math.min(2, Math.max(0.25, sliceMs / Math.max(tookMs, 0.05)));
  return Math.round(Math.min(5e7, Math.max(50, steps * factor)));
}

function forgetTrace(): void {
  trace?.rows.delete();
  trace = null;
}

function replaying(text: string): Canonical {
  return { text: trace ? trace.rows.replaying(text) : text, id: '', issues: [] };
}

async function start(compiled: WebAssembly.Module, address: string): Promise<void> {
  presets.site = address;
  const module = await instantiate(createFirst, compiled);
  const catalog = JSON.parse(module.catalog()) as Catalog;
  columnNames = catalog.columns.filter((column) => column.kind !== 'request').map((column) => column.name);
  curveNames = columnNames.filter((name) => name.startsWith('cdf_'));
  engineLoaded(module);
  scope.postMessage({ kind: 'ready', catalog });
}

function broken(id: number | null, error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  scope.postMessage({ kind: 'broken', id, message });
}

scope.onmessage = ({ data }) => {
  switch (data.kind) {
    case 'init':
      start(data.module, data.site).catch((error: unknown) => broken(null, error));
      return;
    case 'ask': {
      const { id, question, text } = data;
      engine
        .then((module) => orIssues(canonicalOf(module, question, text), (issues) => ({ text: '', id: '', issues })))
        .then((canonical) => scope.postMessage({ kind: 'answer', id, canonical }))
        .catch((error: unknown) => broken(id, error));
      return;
    }
    case 'whole': {
      const { id } = data;
      files()
        .then((part) => part.answered(host, data.question, data.words))
        .then((answer) => scope.postMessage({ kind: 'whole', id, answer, message: '' }))
        .catch((error: unknown) => {
          if (error instanceof WebAssembly.RuntimeError) return broken(id, error);
          scope.postMessage({ kind: 'whole', id, answer: null, message: inWords(error) });
        });
      return;
    }
    case 'run': {
      const { id, lane } = data;
      currentRun[lane] = id;
      reading
        .then(() => engine)
        .then((module) => (currentRun[lane] === id ? run(module, data) : undefined))
        .catch((error: unknown) => broken(id, error));
      return;
    }
    case 'advise': {
      const { id } = data;
      currentRun.advice = id;
      import('./worker-advice')
        .then((part) => part.advise(host, data))
        .catch((error: unknown) => {
          // Only what is fetched fails so.
          if (!(error instanceof TypeError)) return broken(id, error);
          scope.postMessage({ kind: 'advice', id, progress: 1, advice: null, message: inWords(error) });
        });
      return;
    }
    case 'band': {
      const { id } = data;
      currentRun.band = id;
      // What cannot be fetched leaves the verdict as it is.
      const failed = (error: unknown) =>
        error instanceof TypeError ? scope.postMessage({ kind: 'band', id, report: null }) : broken(id, error);
      import('./worker-band').then((part) => part.band(host, data)).catch(failed);
      return;
    }
    case 'record': {
      const { id } = data;
      currentRun.record = id;
      reading.then(() => record(data)).catch((error: unknown) => broken(id, error));
      return;
    }
    case 'cancel':
      cancelledRuns.add(data.id);
      return;
    case 'requests':
    case 'explain':
      try {
        if (data.kind === 'requests') sendRequests(data.id, data.names);
        else sendExplanation(data.id);
      } catch (error) {
        broken(data.id, error);
      }
      return;
    case 'load_trace': {
      currentTrace = data.id;
      const { id, name } = data;
      reading = files()
        .then(async (part) => part.readTrace(await part.wholeEngine(host), host, id, data.file, name))
        .catch((error: unknown) => {
          scope.postMessage({ kind: 'trace_unreadable', id, message: `${name} could not be read: ${inWords(error)}.` });
        });
      return;
    }
    case 'fit_trace': {
      const { id } = data;
      Promise.all([files(), reading])
        .then(([part]) => scope.postMessage(part.fitted(id, trace)))
        .catch((error: unknown) => broken(id, error));
      return;
    }
    case 'forget_trace':
      currentTrace = 0;
      forgetTrace();
      return;
  }
};

// A thread that answers questions of capacity, one at a time, in slices: a cancel is seen within one. The whole module,
// compiled once for all of them, comes with the first message.
import createServecast from 'servecast';
import type {
  Design,
  Diagnosis,
  DiagnosisRun,
  Issue,
  Plan,
  PlanAnswer,
  PricedText,
  Report,
  Search,
  SearchAnswer,
  ServecastModule,
  Trace,
} from 'servecast';
import { inWords, instantiate } from './compile';
import type { DiagnoseTask, FromPlanner, PlanTask, SearchTask, ToPlanner } from './plan-protocol';
import { PresetFiles } from './preset-files';
import { readTrace } from './worker-files';

interface WorkerScope {
  onmessage: ((event: MessageEvent<ToPlanner>) => void) | null;
  postMessage(message: FromPlanner): void;
}
const scope = self as unknown as WorkerScope;

const sliceMs = 12;
const progressMs = 150;

let started: (module: ServecastModule) => void = () => undefined;
const engine = new Promise<ServecastModule>((resolve) => {
  started = resolve;
});
// The page's own worker tells it of presets.
const presets = new PresetFiles(() => undefined);
const cancelled = new Set<number>();
let reading: Promise<void> = Promise.resolve();
let trace: Trace | null = null;
let traces = 0;
let unreadable = '';

const channel = new MessageChannel();
let wake: () => void = () => undefined;
channel.port1.onmessage = () => wake();
function nextTask(): Promise<void> {
  return new Promise((resolve) => {
    wake = resolve;
    channel.port2.postMessage(null);
  });
}

const parsed = (issues: string): readonly Issue[] => (issues === '' ? [] : (JSON.parse(issues) as readonly Issue[]));

async function read(file: Blob, name: string): Promise<void> {
  const id = ++traces;
  trace?.delete();
  trace = null;
  unreadable = '';
  const host = {
    isCurrent: (asked: number) => asked === traces,
    nextTask,
    keep: ({ rows }: { rows: Trace }) => void (trace = rows),
    post: (message: { kind: string; message?: string }) => {
      if (message.kind === 'trace_unreadable') unreadable = message.message ?? '';
    },
    broken: (_id: number | null, error: unknown) => scope.postMessage({ kind: 'broken', message: String(error) }),
  };
  await readTrace(await engine, host, id, file, name);
}

interface Made {
  error(): string;
  delete(): void;
}
interface Resumable extends Made {
  advance(maxSteps: number): boolean;
  setTrace(trace: Trace): string;
}

/** With the files that it asks for. */
async function made<Work extends Made>(module: ServecastModule, make: () => Work): Promise<Work> {
  let last: Work | null = null;
  const again = () => {
    last?.delete();
    last = make();
    return last;
  };
  try {
    return await presets.with(module, again, (work) => parsed(work.error()));
  } catch (error) {
    (last as Work | null)?.delete();
    throw error;
  }
}

/** In slices, to its end, with the files that it asks for on its way where `fetchFile` is given. False: it was given up, or cannot be, which has been said. */
async function worked(
  id: number,
  work: Resumable,
  withTrace: boolean,
  tell: () => void,
  fetchFile: ((path: string) => Promise<unknown>) | null = null,
): Promise<boolean> {
  if (withTrace && trace) work.setTrace(trace);
  let steps = 2000;
  let told = performance.now();
  for (;;) {
    let issues = parsed(work.error());
    if (fetchFile && issues.length > 0 && issues.every(({ kind }) => kind === 'missing_file')) {
      await Promise.all(issues.map(({ path }) => fetchFile(path)));
      issues = [];
    }
    if (issues.length > 0) scope.postMessage({ kind: 'failed', id, issues });
    else if (cancelled.has(id)) scope.postMessage({ kind: 'cancelled', id });
    if (issues.length > 0 || cancelled.has(id)) return false;
    const begin = performance.now();
    let finished = false;
    for (let now = begin; !finished && now - begin < sliceMs; ) {
      finished = work.advance(steps);
      const then = performance.now();
      steps = Math.round(Math.min(1e7, Math.max(100, (steps * sliceMs) / 2 / Math.max(then - now, 0.05))));
      now = then;
    }
    if (finished && work.error() === '') return true;
    if (performance.now() - told >= progressMs) {
      told = performance.now();
      tell();
    }
    await nextTask();
  }
}

/** The module, once the newest trace is read. */
async function ready(withTrace: boolean): Promise<ServecastModule> {
  const module = await engine;
  await reading;
  if (withTrace && unreadable !== '') throw new Error(unreadable);
  return module;
}

/** A list of prices is a file, too. Throws where there is no such list. */
async function priced(module: ServecastModule, { scenario, prices }: PlanTask): Promise<string> {
  if (prices === '') return scenario;
  const ask = () => JSON.parse(module.withPrices(scenario, prices)) as PricedText;
  const { document, issues } = await presets.with(module, ask, ({ issues: found }) => found);
  if (issues[0]) throw new Error(issues[0].message);
  return document;
}

async function answer(id: number, task: PlanTask): Promise<void> {
  const module = await ready(task.with_trace);
  const { question, options } = task;
  const scenario = await priced(module, task);
  const {
    percent,
    months,
    spike,
    spike_s: seconds,
    input_price: input,
    output_price: output,
    hours,
    days,
    windows,
  } = options;
  const plan: Plan = await made(
    module,
    () => new module.Plan(question, scenario, percent, months, spike, seconds, input, output, hours, days, windows),
  );
  const soFar = () => JSON.parse(plan.answer()) as PlanAnswer;
  try {
    const tell = () => scope.postMessage({ kind: 'progress', id, progress: plan.progress(), answer: soFar() });
    if (await worked(id, plan, task.with_trace, tell))
      scope.postMessage({ kind: 'answer', id, answer: soFar(), sentence: plan.sentence() });
  } finally {
    plan.delete();
  }
}

async function diagnose(id: number, { scenario, measured, said }: DiagnoseTask): Promise<void> {
  const module = await ready(false);
  const run: DiagnosisRun = await made(
    module,
    () => new module.Diagnosis(scenario, JSON.stringify(measured), JSON.stringify(said)),
  );
  try {
    const tell = () => scope.postMessage({ kind: 'progress', id, progress: run.progress(), answer: null });
    if (await worked(id, run, false, tell, (path) => presets.fetch(module, path)))
      scope.postMessage({ kind: 'diagnosis', id, diagnosis: JSON.parse(run.summary()) as Diagnosis });
  } finally {
    run.delete();
  }
}

async function band(id: number, scenario: string, withTrace: boolean): Promise<void> {
  const module = await ready(withTrace);
  for (const make of [() => new module.Band(scenario), () => new module.Experiment(scenario, false)]) {
    const run = await made(module, make);
    try {
      if (!(await worked(id, run, withTrace, () => undefined))) return;
      const report = JSON.parse(run.summary()) as Report | null;
      if (report) return scope.postMessage({ kind: 'banded', id, report });
    } finally {
      run.delete();
    }
  }
  scope.postMessage({ kind: 'failed', id, issues: [] });
}

async function design(id: number, task: string, withTrace: boolean): Promise<void> {
  const module = await ready(withTrace);
  const plan: Design = await made(module, () => new module.Design(task));
  try {
    if (await worked(id, plan, withTrace, () => undefined))
      scope.postMessage({ kind: 'point', id, point: plan.point() });
  } finally {
    plan.delete();
  }
}

let search: Search | null = null;

function found(id: number, of: Search, isNewRound: boolean): void {
  const tasks = isNewRound ? (JSON.parse(of.tasks()) as readonly object[]).map((task) => JSON.stringify(task)) : [];
  const answered = JSON.parse(of.answer()) as SearchAnswer;
  const so = { tasks, progress: of.progress(), answer: answered, sentence: of.sentence() };
  scope.postMessage({ kind: 'found', id, found: so });
}

let open = 0;

async function begin(id: number, { scenario, axes, prices, least }: SearchTask): Promise<void> {
  const module = await engine;
  search?.delete();
  search = null;
  const begun: Search = await made(module, () => new module.Search(scenario, axes, prices, least));
  const issues = parsed(begun.error());
  if (issues.length > 0) {
    begun.delete();
    return scope.postMessage({ kind: 'failed', id, issues });
  }
  search = begun;
  open = (JSON.parse(begun.tasks()) as readonly object[]).length;
  found(id, begun, true);
}

function take(id: number, points: readonly string[]): void {
  if (!search) return;
  for (const point of points) {
    const issues = parsed(search.take(point));
    if (issues.length === 0) continue;
    scope.postMessage({ kind: 'failed', id, issues });
    return;
  }
  open -= points.length;
  const isNewRound = open <= 0;
  if (isNewRound) open = (JSON.parse(search.tasks()) as readonly object[]).length;
  found(id, search, isNewRound);
}

scope.onmessage = ({ data }) => {
  switch (data.kind) {
    case 'init':
      presets.site = data.site;
      instantiate(createServecast, data.module).then(started, (error: unknown) =>
        scope.postMessage({ kind: 'broken', message: inWords(error) }),
      );
      return;
    case 'trace':
      reading = read(data.file, data.name).catch((error: unknown) => void (unreadable = inWords(error)));
      return;
    case 'cancel':
      cancelled.add(data.id);
      return;
    case 'take':
      return take(data.id, data.points);
    case 'document':
      scope.postMessage({ kind: 'document', id: data.id, document: search?.document(data.point) ?? '' });
      return;
    case 'search':
    case 'ask':
    case 'diagnose':
    case 'band':
    case 'design': {
      const { id } = data;
      const done =
        data.kind === 'ask'
          ? answer(id, data.task)
          : data.kind === 'design'
            ? design(id, data.task, data.with_trace)
            : data.kind === 'diagnose'
              ? diagnose(id, data.task)
              : data.kind === 'band'
                ? band(id, data.scenario, data.with_trace)
                : begin(id, data);
      done
        .catch((error: unknown) => {
          if (error instanceof WebAssembly.RuntimeError)
            return scope.postMessage({ kind: 'broken', message: String(error) });
          scope.postMessage({ kind: 'failed', id, issues: [{ path: '', message: inWords(error) }] });
        })
        .finally(() => cancelled.delete(id));
      return;
    }
  }
};

// A thread that answers questions of capacity, one at a time, in slices: a cancel is seen within one. The whole module,
// compiled once for all of them, comes with the first message.
import createServecast from 'servecast';
import type { Issue, Plan, PlanAnswer, ServecastModule, Trace } from 'servecast';
import { inWords, instantiate } from './compile';
import type { FromPlanner, PlanTask, ToPlanner } from './plan-protocol';
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

/** With the files that it asks for. */
async function made(module: ServecastModule, { question, scenario, options }: PlanTask): Promise<Plan> {
  let last: Plan | null = null;
  const { percent, months, spike, spike_s: seconds } = options;
  const make = () => {
    last?.delete();
    last = new module.Plan(question, scenario, percent, months, spike, seconds);
    return last;
  };
  try {
    return await presets.with(module, make, (plan) => parsed(plan.error()));
  } catch (error) {
    (last as Plan | null)?.delete();
    throw error;
  }
}

async function answer(id: number, task: PlanTask): Promise<void> {
  const module = await engine;
  await reading;
  if (task.with_trace && unreadable !== '')
    return scope.postMessage({ kind: 'failed', id, issues: [{ path: '', message: unreadable }] });
  const plan = await made(module, task);
  try {
    if (task.with_trace && trace) plan.setTrace(trace);
    let steps = 2000;
    let told = performance.now();
    for (;;) {
      const issues = parsed(plan.error());
      if (issues.length > 0) return scope.postMessage({ kind: 'failed', id, issues });
      if (cancelled.has(id)) return scope.postMessage({ kind: 'cancelled', id });
      const begin = performance.now();
      let finished = false;
      let now = begin;
      while (!finished && now - begin < sliceMs) {
        finished = plan.advance(steps);
        const then = performance.now();
        steps = Math.round(Math.min(1e7, Math.max(100, (steps * sliceMs) / 2 / Math.max(then - now, 0.05))));
        now = then;
      }
      if (finished && plan.error() === '') break;
      if (now - told >= progressMs) {
        told = now;
        const so = JSON.parse(plan.answer()) as PlanAnswer;
        scope.postMessage({ kind: 'progress', id, progress: plan.progress(), answer: so });
      }
      await nextTask();
    }
    const found = JSON.parse(plan.answer()) as PlanAnswer;
    scope.postMessage({ kind: 'answer', id, answer: found, sentence: plan.sentence() });
  } finally {
    plan.delete();
  }
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
    case 'ask': {
      const { id } = data;
      answer(id, data.task)
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

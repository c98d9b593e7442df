// In the engine's thread: the first run again, kept step by step. Loaded when somebody looks at steps.
import type { Issue, Recording, ServecastModule, Trace } from 'servecast';
import { requestColumns } from '../lib/requests';
import type { FromWorker, ToWorker } from './protocol';

const stepColumns = [
  ...['replica', 'pool', 'start_s', 'end_s', 'prefill_tokens', 'decode_tokens', 'prefills', 'decodes', 'running'],
  ...['waiting', 'kv_usage', 'bound', 'preempted', 'finished', 'compute_share', 'bandwidth_share'],
].map((name) => `step_${name}`);
const progressMs = 100;

export interface Around {
  module: ServecastModule;
  /** Of the module. */
  trace: Trace | null;
  /** With the files that it asks for. */
  made(make: () => Recording): Promise<Recording>;
  slice(run: Recording, pace: { steps: number }): boolean;
  nextTask(): Promise<void>;
  isCurrent(): boolean;
  post(message: FromWorker, transfer?: Transferable[]): void;
}

/** Only as far as the steps that are wanted go when nobody asks for its requests. */
export async function record(request: Extract<ToWorker, { kind: 'record' }>, around: Around): Promise<void> {
  const { id, scenario, from_s: from, most_steps: most, requests, time_line: timeLine = false } = request;
  const { module, trace } = around;
  const say = (progress: number, message = '') =>
    around.post({ kind: 'recorded', id, progress, recorded: null, message });
  const recording = await around.made(() => new module.Recording(scenario, from, most));
  try {
    if (trace) recording.setTrace(trace);
    const issues = recording.error();
    if (issues !== '') return say(1, (JSON.parse(issues) as readonly Issue[])[0]?.message);
    const pace = { steps: 500 };
    const written: string[] = [];
    if (timeLine) recording.keepTimeLine();
    let lastProgress = 0;
    for (let finished = false; !finished && (requests !== null || timeLine || !recording.isFull()); ) {
      finished = around.slice(recording, pace);
      if (timeLine) written.push(recording.takeTimeLine(false));
      await around.nextTask();
      if (!around.isCurrent()) return;
      if (performance.now() - lastProgress < progressMs) continue;
      lastProgress = performance.now();
      say(recording.progress());
    }
    if (timeLine) written.push(recording.takeTimeLine(true));
    if (requests) recording.choose(requests.order, requests.first, requests.count);
    const copied = (names: readonly string[]) =>
      Object.fromEntries(names.map((name) => [name, recording.column(name).slice()]));
    const recorded = {
      steps: copied(stepColumns),
      requests: requests ? copied(['request', ...requestColumns]) : {},
      complete: recording.complete(),
      is_cut: recording.isFull(),
      time_line: timeLine ? new Blob(written, { type: 'application/json' }) : null,
    };
    const buffers = [...Object.values(recorded.steps), ...Object.values(recorded.requests)].map(({ buffer }) => buffer);
    around.post({ kind: 'recorded', id, progress: 1, recorded, message: '' }, buffers as ArrayBuffer[]);
  } finally {
    recording.delete();
  }
}

// Workers that answer questions of capacity beside the one that the page is answered by: as many as there are cores but
// one, all with one compiled module. A task is done by one of them; which one makes no difference to its answer.
import wholeUrl from 'servecast.wasm?url';
import type { Issue, PlanAnswer } from 'servecast';
import type { TraceFile } from './client';
import { compileModule, inWords } from './compile';
import type { FromPlanner, PlanTask, ToPlanner } from './plan-protocol';

const mostWorkers = 8;

export interface PlanListener {
  progress(share: number, answer: PlanAnswer | null): void;
  answered(answer: PlanAnswer, sentence: string): void;
  failed(issues: readonly Issue[]): void;
}

interface Job {
  readonly id: number;
  readonly task: PlanTask;
  readonly trace: TraceFile | null;
  readonly listener: PlanListener;
}

interface Planner {
  readonly worker: Worker;
  job: Job | null;
  trace: TraceFile | null;
}

export class Planners {
  readonly #site: string;
  readonly #free: Planner[] = [];
  readonly #busy = new Set<Planner>();
  readonly #waiting: Job[] = [];
  readonly #most = Math.max(1, Math.min(mostWorkers, navigator.hardwareConcurrency - 1));
  #compiled: Promise<WebAssembly.Module> | null = null;
  #ids = 0;

  constructor(site: string) {
    this.#site = site;
  }

  /** In the order of being asked. Returns what gives it up: nothing more is heard then. */
  ask(task: PlanTask, trace: TraceFile | null, listener: PlanListener): () => void {
    const job: Job = { id: ++this.#ids, task, trace, listener };
    this.#waiting.push(job);
    this.#next();
    return () => this.#cancel(job);
  }

  #next(): void {
    while (this.#waiting.length > 0) {
      const planner = this.#free.pop() ?? (this.#busy.size < this.#most ? this.#start() : null);
      const job = planner && this.#waiting.shift();
      if (!planner || !job) return;
      planner.job = job;
      this.#busy.add(planner);
      if (job.trace && job.trace !== planner.trace) {
        planner.trace = job.trace;
        this.#send(planner, { kind: 'trace', ...job.trace });
      }
      this.#send(planner, { kind: 'ask', id: job.id, task: job.task });
    }
  }

  #cancel(job: Job): void {
    const at = this.#waiting.indexOf(job);
    if (at >= 0) this.#waiting.splice(at, 1);
    for (const planner of this.#busy) {
      if (planner.job !== job) continue;
      planner.job = null;
      this.#send(planner, { kind: 'cancel', id: job.id });
    }
  }

  #send(planner: Planner, message: ToPlanner): void {
    planner.worker.postMessage(message);
  }

  #start(): Planner {
    const worker = new Worker(new URL('./plan-worker.ts', import.meta.url), { type: 'module' });
    const planner: Planner = { worker, job: null, trace: null };
    worker.onmessage = ({ data }: MessageEvent<FromPlanner>) => this.#receive(planner, data);
    worker.onerror = (event) => this.#drop(planner, event.message || 'the planning worker could not start');
    this.#compiled ??= compileModule(wholeUrl).catch((error: unknown) => {
      this.#compiled = null;
      throw error;
    });
    this.#compiled.then(
      (module) => this.#send(planner, { kind: 'init', module, site: this.#site }),
      (error: unknown) => this.#drop(planner, inWords(error)),
    );
    return planner;
  }

  #drop(planner: Planner, message: string): void {
    planner.worker.terminate();
    this.#busy.delete(planner);
    const { job } = planner;
    planner.job = null;
    job?.listener.failed([{ path: '', message }]);
    this.#next();
  }

  #receive(planner: Planner, message: FromPlanner): void {
    const { job } = planner;
    if (message.kind === 'broken') this.#drop(planner, message.message);
    else if (message.kind === 'progress') job?.listener.progress(message.progress, message.answer);
    else this.#ended(planner, message);
  }

  #ended(planner: Planner, message: Extract<FromPlanner, { kind: 'answer' | 'failed' | 'cancelled' }>): void {
    const { job } = planner;
    planner.job = null;
    this.#busy.delete(planner);
    this.#free.push(planner);
    this.#next();
    if (job?.id !== message.id) return;
    if (message.kind === 'answer') job.listener.answered(message.answer, message.sentence);
    else if (message.kind === 'failed') job.listener.failed(message.issues);
  }
}

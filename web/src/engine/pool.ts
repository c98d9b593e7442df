// Workers that answer questions of capacity beside the one that the page is answered by: as many as there are cores but
// one, all with one compiled module. A job is done by one of them; which one makes no difference to what comes of it.
import wholeUrl from 'servecast.wasm?url';
import type { Diagnosis, Issue, PlanAnswer, Report } from 'servecast';
import type { TraceFile } from './client';
import { compileModule, inWords } from './compile';
import type { DiagnoseTask, Found, FromPlanner, PlanTask, SearchTask, ToPlanner } from './plan-protocol';

const mostWorkers = 8;

export interface PlanListener {
  progress(share: number, answer: PlanAnswer | null): void;
  answered(answer: PlanAnswer, sentence: string): void;
  failed(issues: readonly Issue[]): void;
}

export interface DiagnosisListener {
  progress(share: number): void;
  found(diagnosis: Diagnosis): void;
  failed(issues: readonly Issue[]): void;
}

export interface SearchListener {
  found(found: Found): void;
  failed(issues: readonly Issue[]): void;
}

type Work = Extract<ToPlanner, { kind: 'ask' | 'design' | 'diagnose' | 'band' }>;
type Heard = Exclude<FromPlanner, { kind: 'broken' | 'cancelled' }>;

interface Job {
  readonly work: Work;
  readonly trace: TraceFile | null;
  hear(message: Heard): void;
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
  readonly #most = Math.max(1, Math.min(mostWorkers, (navigator.hardwareConcurrency || 2) - 1));
  #compiled: Promise<WebAssembly.Module> | null = null;
  #ids = 0;

  constructor(site: string) {
    this.#site = site;
  }

  /** In the order of being asked, but what needs no runs comes next. Returns what gives it up: nothing more is heard then. */
  ask(task: PlanTask, trace: TraceFile | null, listener: PlanListener): () => void {
    return this.#do({ kind: 'ask', id: ++this.#ids, task }, trace, (message) => {
      if (message.kind === 'progress') listener.progress(message.progress, message.answer);
      else if (message.kind === 'answer') listener.answered(message.answer, message.sentence);
      else if (message.kind === 'failed') listener.failed(message.issues);
    });
  }

  /** Returns what gives it up, as of `ask`. */
  diagnose(task: DiagnoseTask, listener: DiagnosisListener): () => void {
    return this.#do({ kind: 'diagnose', id: ++this.#ids, task }, null, (message) => {
      if (message.kind === 'progress') listener.progress(message.progress);
      else if (message.kind === 'diagnosis') listener.found(message.diagnosis);
      else if (message.kind === 'failed') listener.failed(message.issues);
    });
  }

  /** When nothing else waits. Hears null where there is no report. Returns what gives it up, as of `ask`. */
  band(scenario: string, trace: TraceFile | null, hear: (report: Report | null) => void): () => void {
    const work = { kind: 'band', id: ++this.#ids, scenario, with_trace: trace !== null } as const;
    return this.#do(work, trace, (message) => {
      if (message.kind === 'banded') hear(message.report);
      else if (message.kind === 'failed') hear(null);
    });
  }

  /** One worker more hands out the tasks of a search, which all the others do. */
  search(asked: SearchTask, withTrace: boolean, trace: TraceFile | null, listener: SearchListener): Searching {
    return new Searching({
      keeper: (hear) => this.#make(hear, (message) => hear({ kind: 'broken', message })),
      design: (task, hear) => this.#do({ kind: 'design', id: ++this.#ids, task, with_trace: withTrace }, trace, hear),
      asked,
      listener,
    });
  }

  #do(work: Work, trace: TraceFile | null, hear: (message: Heard) => void): () => void {
    const job: Job = { work, trace, hear };
    if (work.kind === 'ask' && work.task.question === 'cost') this.#waiting.unshift(job);
    else {
      const band = work.kind === 'band' ? -1 : this.#waiting.findIndex((each) => each.work.kind === 'band');
      this.#waiting.splice(band < 0 ? this.#waiting.length : band, 0, job);
    }
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
        planner.worker.postMessage({ kind: 'trace', ...job.trace } satisfies ToPlanner);
      }
      planner.worker.postMessage(job.work);
    }
  }

  #cancel(job: Job): void {
    const at = this.#waiting.indexOf(job);
    if (at >= 0) this.#waiting.splice(at, 1);
    for (const planner of this.#busy) {
      if (planner.job !== job) continue;
      planner.job = null;
      planner.worker.postMessage({ kind: 'cancel', id: job.work.id } satisfies ToPlanner);
    }
  }

  #start(): Planner {
    const worker = this.#make(
      (message) => this.#receive(planner, message),
      (message) => this.#drop(planner, message),
    );
    const planner: Planner = { worker, job: null, trace: null };
    return planner;
  }

  /** With the module on its way. */
  #make(hear: (message: FromPlanner) => void, broken: (message: string) => void): Worker {
    const worker = new Worker(new URL('./plan-worker.ts', import.meta.url), { type: 'module' });
    worker.onmessage = ({ data }: MessageEvent<FromPlanner>) => hear(data);
    worker.onerror = (event) => broken(event.message || 'the planning worker could not start');
    this.#compiled ??= compileModule(wholeUrl).catch((error: unknown) => {
      this.#compiled = null;
      throw error;
    });
    this.#compiled.then(
      (module) => worker.postMessage({ kind: 'init', module, site: this.#site } satisfies ToPlanner),
      (error: unknown) => broken(inWords(error)),
    );
    return worker;
  }

  #drop(planner: Planner, message: string): void {
    planner.worker.terminate();
    this.#busy.delete(planner);
    const { job } = planner;
    planner.job = null;
    job?.hear({ kind: 'failed', id: job.work.id, issues: [{ path: '', message }] });
    this.#next();
  }

  #receive(planner: Planner, message: FromPlanner): void {
    const { job } = planner;
    if (message.kind === 'broken') return void this.#drop(planner, message.message);
    if (message.kind !== 'progress') {
      planner.job = null;
      this.#busy.delete(planner);
      this.#free.push(planner);
      this.#next();
    }
    if (message.kind !== 'cancelled' && job?.work.id === message.id) job.hear(message);
  }
}

interface SearchAround {
  keeper(hear: (message: FromPlanner) => void): Worker;
  design(task: string, hear: (message: Heard) => void): () => void;
  readonly asked: SearchTask;
  readonly listener: SearchListener;
}

/** Points are handed in together, after so long at least, ms, and after several times what the last time took: each
    makes the whole answer anew, of a thousand designs a megabyte of it. */
const handInMs = 150;
const timesOfAnswer = 6;

/** A search under way; it stays to be asked for documents until it is closed. */
export class Searching {
  readonly #around: SearchAround;
  readonly #keeper: Worker;
  readonly #stops = new Set<() => void>();
  readonly #documents: ((document: string) => void)[] = [];
  #points: string[] = [];
  #handedIn = performance.now();
  #pauseMs = handInMs;
  #open = 0;
  #stopped = false;
  #dead = false;

  constructor(around: SearchAround) {
    this.#around = around;
    this.#keeper = around.keeper((message) => this.#receive(message));
    this.#keeper.postMessage({ kind: 'search', id: 0, ...around.asked } satisfies ToPlanner);
  }

  /** What was found stays. */
  stop(): void {
    this.#stopped = true;
    for (const stop of this.#stops) stop();
    this.#stops.clear();
  }

  close(): void {
    this.stop();
    this.#keeper.terminate();
  }

  /** "": there is none. */
  documentOf(point: number): Promise<string> {
    if (this.#dead) return Promise.resolve('');
    return new Promise((resolve) => {
      this.#documents.push(resolve);
      this.#keeper.postMessage({ kind: 'document', id: 0, point } satisfies ToPlanner);
    });
  }

  #broken(message: string): void {
    this.#dead = true;
    for (const resolve of this.#documents.splice(0)) resolve('');
    this.#fail([{ path: '', message }]);
  }

  #fail(issues: readonly Issue[]): void {
    this.stop();
    this.#around.listener.failed(issues);
  }

  #receive(message: FromPlanner): void {
    if (message.kind === 'document') this.#documents.shift()?.(message.document);
    else if (message.kind === 'broken') this.#broken(message.message);
    else if (message.kind === 'failed') this.#fail(message.issues);
    else if (message.kind === 'found') {
      this.#around.listener.found(message.found);
      this.#pauseMs = Math.max(handInMs, timesOfAnswer * (performance.now() - this.#handedIn));
      // The round that comes after it was stopped is not begun.
      if (this.#stopped) return;
      this.#open += message.found.tasks.length;
      for (const task of message.found.tasks) this.#begin(task);
    }
  }

  #begin(task: string): void {
    const stop = this.#around.design(task, (message) => {
      this.#stops.delete(stop);
      this.#open -= 1;
      if (message.kind === 'failed') {
        this.#fail(message.issues);
        return;
      }
      if (message.kind === 'point') this.#points.push(message.point);
      if (this.#open > 0 && performance.now() - this.#handedIn < this.#pauseMs) return;
      this.#handedIn = performance.now();
      this.#pauseMs = Infinity;
      this.#keeper.postMessage({ kind: 'take', id: 0, points: this.#points } satisfies ToPlanner);
      this.#points = [];
    });
    this.#stops.add(stop);
  }
}

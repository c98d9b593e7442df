// The page's only door to the engine. Compiles the module once, owns the worker, and replaces a
// worker that died (the compiled module and the trace file are kept, so nothing is fetched again
// and nothing is asked of the user twice).
import type { Advice, Canonical, Catalog, Explanation, Issue, Report, TraceFit, TraceRead } from 'servecast';
import type {
  Columns,
  FromWorker,
  Lane,
  Outcome,
  Question,
  Recorded,
  RecordRequest,
  Refusal,
  ToWorker,
  WholeQuestion,
} from './protocol';

export { compileModule } from './compile';

export interface RunListener {
  accepted(canonical: Canonical): void;
  /** The run waits for a download. */
  loading(): void;
  /** `unfit`: the sum, when the model does not fit. */
  refused(reason: Refusal, issues: readonly Issue[], unfit?: Report['unfit']): void;
  progress(progress: number, partial: Outcome | null): void;
  /** Of the requests that are drawn before the run. */
  drawing?(progress: number): void;
  /** The last answer of a run that was to be coarse. */
  coarse?(outcome: Outcome): void;
  /** null: the last partial outcome is the last one. */
  finished(outcome: Outcome | null, progress: number, cancelled: boolean): void;
  /** The engine died on this scenario; the next run has a fresh one. */
  broken(message: string): void;
}

export interface AdviceListener {
  progress(share: number): void;
  /** Of what was tried, when it was cancelled. */
  finished(advice: Advice, share: number): void;
  failed(message: string): void;
}

export interface Engine {
  readonly ready: Promise<Catalog>;
  /** Hears of a catalogue that knows more: a preset was fetched. */
  onCatalog?: (catalog: Catalog) => void;
  /** `coarse`: see protocol.ts. */
  run(scenario: string, withTrace: boolean, listener: RunListener, lane?: Lane, coarse?: number | null): void;
  /** Answered soon, whatever the engine is at: one that does not listen is replaced. */
  cancel(lane?: Lane): void;
  /** In place of the one before, which is heard of no more. */
  advise(scenario: string, withTrace: boolean, listener: AdviceListener): void;
  cancelAdvice(): void;
  /** The report of a certain run with its bands; null: they are not known. Never settles when it is cancelled, or another
      one is asked for before it is there. */
  band(scenario: string, withTrace: boolean): Promise<Report | null>;
  cancelBand(): void;
  ask(question: Question, text: string): Promise<Canonical>;
  /** Asks the whole module, which is fetched for it. */
  whole(question: WholeQuestion, words: readonly string[]): Promise<unknown>;
  /** Of the shown run that finished last; null when it is gone. */
  requests(names: readonly string[]): Promise<Columns | null>;
  /** Never settles when another one is asked for before it is there. */
  record(request: RecordRequest, progress: (share: number) => void): Promise<Recorded>;
  /** Of the same run. */
  explain(): Promise<Explanation | null>;
  /** Never settles when another trace is loaded, or this one forgotten, before it is read. */
  loadTrace(file: Blob, name: string, progress: (share: number) => void): Promise<LoadedTrace>;
  fitTrace(): Promise<TraceFit>;
  forgetTrace(): void;
  /** The one that was loaded last. */
  readonly traceFile: TraceFile | null;
  /** The address that presets/ is at. */
  readonly site: string;
}

export interface TraceFile {
  readonly file: Blob;
  readonly name: string;
}

export interface LoadedTrace {
  /** Unpacked. */
  readonly bytes: number;
  readonly read: TraceRead;
}

/** With what was asked, so that a fresh worker can be asked again. */
type Answer<T> = { readonly message: ToWorker; resolve(answer: T): void; reject(error: Error): void };
type TraceAnswer = {
  readonly id: number;
  progress(share: number): void;
  resolve(loaded: LoadedTrace): void;
  reject(error: Error): void;
};
type FitAnswer = { readonly id: number; resolve(fit: TraceFit): void; reject(error: Error): void };

/** So long a cancelled run may take to answer. */
const patienceMs = 30;

export class EngineClient implements Engine {
  readonly ready: Promise<Catalog>;
  onCatalog?: (catalog: Catalog) => void;
  #resolveReady!: (catalog: Catalog) => void;
  #rejectReady!: (error: Error) => void;
  readonly #compiled: Promise<WebAssembly.Module>;
  readonly #createWorker: () => Worker;
  readonly site: string;
  #worker: Worker;
  #alive = false;
  #ids = 0;
  readonly #runs = new Map<Lane, { readonly id: number; readonly listener: RunListener }>();
  readonly #answers = new Map<number, Answer<Canonical>>();
  readonly #whole = new Map<number, Answer<unknown>>();
  readonly #columns = new Map<number, (columns: Columns | null) => void>();
  readonly #explanations = new Map<number, (explanation: Explanation | null) => void>();
  #advice: { readonly id: number; readonly listener: AdviceListener } | null = null;
  #band: { readonly id: number; resolve(report: Report | null): void } | null = null;
  #recording: {
    readonly id: number;
    readonly progress: (share: number) => void;
    readonly answer: Omit<Answer<Recorded>, 'message'>;
  } | null = null;
  #trace: TraceAnswer | null = null;
  #fit: FitAnswer | null = null;
  traceFile: TraceFile | null = null;

  constructor(compiled: Promise<WebAssembly.Module>, createWorker: () => Worker, site = '') {
    this.site = site;
    this.#compiled = compiled;
    this.#createWorker = createWorker;
    this.ready = new Promise((resolve, reject) => {
      this.#resolveReady = resolve;
      this.#rejectReady = reject;
    });
    this.#worker = this.#start();
  }

  run(
    scenario: string,
    withTrace: boolean,
    listener: RunListener,
    lane: Lane = 'shown',
    coarse: number | null = null,
  ): void {
    const id = ++this.#ids;
    this.#runs.set(lane, { id, listener });
    this.#send({ kind: 'run', id, lane, scenario, with_trace: withTrace, coarse });
  }

  advise(scenario: string, withTrace: boolean, listener: AdviceListener): void {
    const id = ++this.#ids;
    this.#advice = { id, listener };
    this.#send({ kind: 'advise', id, scenario, with_trace: withTrace });
  }

  cancelAdvice(): void {
    if (this.#advice) this.#send({ kind: 'cancel', id: this.#advice.id });
  }

  band(scenario: string, withTrace: boolean): Promise<Report | null> {
    this.cancelBand();
    const id = ++this.#ids;
    return new Promise((resolve) => {
      this.#band = { id, resolve };
      this.#send({ kind: 'band', id, scenario, with_trace: withTrace });
    });
  }

  cancelBand(): void {
    if (this.#band) this.#send({ kind: 'cancel', id: this.#band.id });
    this.#band = null;
  }

  explain(): Promise<Explanation | null> {
    const id = ++this.#ids;
    return new Promise((resolve) => {
      this.#explanations.set(id, resolve);
      this.#send({ kind: 'explain', id });
    });
  }

  cancel(lane: Lane = 'shown'): void {
    const run = this.#runs.get(lane);
    if (!run) return;
    this.#send({ kind: 'cancel', id: run.id });
    if (lane === 'shown') setTimeout(() => this.#giveUp(run.id), patienceMs);
  }

  /** The worker is in a call that cannot be interrupted, such as the summary of millions of requests. */
  #giveUp(id: number): void {
    const run = this.#runs.get('shown');
    if (run?.id !== id || !this.#alive) return;
    this.#runs.delete('shown');
    this.#worker.terminate();
    this.#worker = this.#start();
    if (this.traceFile) this.#send({ kind: 'load_trace', id: this.#trace?.id ?? ++this.#ids, ...this.traceFile });
    // Who waits for anything else is answered by the fresh worker, or told that it is gone.
    for (const { message } of this.#answers.values()) this.#send(message);
    for (const { message } of this.#whole.values()) this.#send(message);
    this.#forgetKept();
    this.#advice?.listener.failed('cancelled');
    this.#advice = null;
    this.#band = null;
    this.#recording?.answer.reject(new Error('the recording was cancelled'));
    this.#recording = null;
    run.listener.finished(null, 0, true);
  }

  /** The run whose requests and reasons might be asked for is gone with its worker. */
  #forgetKept(): void {
    for (const resolve of this.#columns.values()) resolve(null);
    this.#columns.clear();
    for (const resolve of this.#explanations.values()) resolve(null);
    this.#explanations.clear();
  }

  ask(question: Question, text: string): Promise<Canonical> {
    const id = ++this.#ids;
    return new Promise((resolve, reject) => {
      const message: ToWorker = { kind: 'ask', id, question, text };
      this.#answers.set(id, { message, resolve, reject });
      this.#send(message);
    });
  }

  whole(question: WholeQuestion, words: readonly string[]): Promise<unknown> {
    const id = ++this.#ids;
    return new Promise((resolve, reject) => {
      const message: ToWorker = { kind: 'whole', id, question, words };
      this.#whole.set(id, { message, resolve, reject });
      this.#send(message);
    });
  }

  requests(names: readonly string[]): Promise<Columns | null> {
    const id = ++this.#ids;
    return new Promise((resolve) => {
      this.#columns.set(id, resolve);
      this.#send({ kind: 'requests', id, names });
    });
  }

  record(request: RecordRequest, progress: (share: number) => void): Promise<Recorded> {
    const id = ++this.#ids;
    return new Promise((resolve, reject) => {
      this.#recording = { id, progress, answer: { resolve, reject } };
      this.#send({ kind: 'record', id, ...request });
    });
  }

  loadTrace(file: Blob, name: string, progress: (share: number) => void): Promise<LoadedTrace> {
    const id = ++this.#ids;
    return new Promise((resolve, reject) => {
      this.#trace = { id, progress, resolve, reject };
      this.traceFile = { file, name };
      this.#send({ kind: 'load_trace', id, file, name });
    });
  }

  fitTrace(): Promise<TraceFit> {
    const id = ++this.#ids;
    return new Promise((resolve, reject) => {
      this.#fit = { id, resolve, reject };
      this.#send({ kind: 'fit_trace', id });
    });
  }

  forgetTrace(): void {
    this.#trace = null;
    this.traceFile = null;
    this.#send({ kind: 'forget_trace' });
  }

  #send(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  #start(): Worker {
    this.#alive = false;
    const worker = this.#createWorker();
    worker.onmessage = (event: MessageEvent<FromWorker>) => this.#receive(event.data);
    worker.onerror = (event) => this.#replace(event.message || 'the worker could not start');
    void this.#compiled.then(
      (module) => worker.postMessage({ kind: 'init', module, site: this.site } satisfies ToWorker),
      (error: unknown) => this.#rejectReady(error instanceof Error ? error : new Error(String(error))),
    );
    return worker;
  }

  #replace(message: string): void {
    this.#worker.terminate();
    const runs = [...this.#runs.values()];
    const answers = [...this.#answers.values(), ...this.#whole.values()];
    this.#runs.clear();
    this.#answers.clear();
    this.#whole.clear();
    // One that never came up would not come up again.
    if (this.#alive) {
      this.#worker = this.#start();
      // Under its old id, so that who still waits for it is answered.
      if (this.traceFile) this.#send({ kind: 'load_trace', id: this.#trace?.id ?? ++this.#ids, ...this.traceFile });
    } else {
      this.#trace?.reject(new Error(message));
      this.#rejectReady(new Error(message));
    }
    for (const answer of answers) answer.reject(new Error(message));
    this.#forgetKept();
    this.#advice?.listener.failed(message);
    this.#advice = null;
    this.#band?.resolve(null);
    this.#band = null;
    this.#recording?.answer.reject(new Error(message));
    this.#recording = null;
    this.#fit?.reject(new Error(message));
    for (const { listener } of runs) listener.broken(message);
  }

  #receive(message: FromWorker): void {
    switch (message.kind) {
      case 'ready':
        this.#alive = true;
        this.#resolveReady(message.catalog);
        return;
      case 'answer':
        this.#answers.get(message.id)?.resolve(message.canonical);
        this.#answers.delete(message.id);
        return;
      case 'catalog':
        this.onCatalog?.(message.catalog);
        return;
      case 'whole': {
        const asked = this.#whole.get(message.id);
        if (message.message === '') asked?.resolve(message.answer);
        else asked?.reject(new Error(message.message));
        this.#whole.delete(message.id);
        return;
      }
      case 'requests':
        this.#columns.get(message.id)?.(message.columns);
        this.#columns.delete(message.id);
        return;
      case 'explanation':
        this.#explanations.get(message.id)?.(message.explanation);
        this.#explanations.delete(message.id);
        return;
      case 'advice':
        if (this.#advice?.id !== message.id) return;
        if (message.advice) this.#advice.listener.finished(message.advice, message.progress);
        else if (message.message !== '') this.#advice.listener.failed(message.message);
        else this.#advice.listener.progress(message.progress);
        return;
      case 'band':
        if (this.#band?.id !== message.id) return;
        this.#band.resolve(message.report);
        this.#band = null;
        return;
      case 'recorded':
        if (this.#recording?.id !== message.id) return;
        if (message.recorded) this.#recording.answer.resolve(message.recorded);
        else if (message.message !== '') this.#recording.answer.reject(new Error(message.message));
        else this.#recording.progress(message.progress);
        return;
      case 'trace_read':
        if (this.#trace?.id === message.id) this.#trace.resolve({ bytes: message.bytes, read: message.read });
        return;
      case 'trace_progress':
        if (this.#trace?.id === message.id) this.#trace.progress(message.progress);
        return;
      case 'trace_fitted':
        if (this.#fit?.id !== message.id) return;
        if (message.fit) this.#fit.resolve(message.fit);
        else this.#fit.reject(new Error(message.message));
        return;
      case 'trace_unreadable':
        if (this.#trace?.id === message.id) {
          this.traceFile = null;
          this.#trace.reject(new Error(message.message));
        }
        return;
      case 'broken':
        this.#replace(message.message);
        return;
      default:
        this.#receiveRun(message);
    }
  }

  #receiveRun(
    message: Extract<
      FromWorker,
      { kind: 'accepted' | 'loading' | 'refused' | 'drawing' | 'progress' | 'coarse' | 'finished' }
    >,
  ): void {
    const [lane, run] = [...this.#runs].find(([, { id }]) => id === message.id) ?? [];
    if (!lane || !run) return;
    switch (message.kind) {
      case 'accepted':
        run.listener.accepted(message.canonical);
        return;
      case 'loading':
        run.listener.loading();
        return;
      case 'drawing':
        run.listener.drawing?.(message.progress);
        return;
      case 'coarse':
        this.#runs.delete(lane);
        run.listener.coarse?.(message.outcome);
        return;
      case 'progress':
        run.listener.progress(message.progress, message.partial);
        return;
      case 'refused':
        this.#runs.delete(lane);
        run.listener.refused(message.reason, message.issues, message.unfit);
        return;
      case 'finished':
        this.#runs.delete(lane);
        run.listener.finished(message.outcome, message.progress, message.cancelled);
        return;
    }
  }
}

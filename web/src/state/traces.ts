// A person's trace file: read, replayed, fitted, removed. Fetched with the first file.
import type { Canonical } from 'servecast';
import type { Engine } from '../engine/client';
import type { Question } from '../engine/protocol';
import {
  getAt,
  isObject,
  needsTrace,
  readDocument,
  removeAt,
  setAt,
  withFit,
  withFormerArrivals,
  type Document,
} from './document';
import { formatGivenTime, formatInterval, formatTime } from '../lib/format';
import type { Runs } from './runs';
import type { Store } from './store';

/** What of the app they need. */
export interface TraceHost {
  readonly engine: Engine;
  readonly store: Store;
  readonly runs: Runs;
  ask(question: Question, text: string): Promise<Canonical>;
  edit(pointer: string, document: Document): void;
  openDefault(): void;
}

export class Traces {
  readonly #host: TraceHost;
  readonly #store: Store;

  constructor(host: TraceHost) {
    this.#host = host;
    this.#store = host.store;
  }

  async load(file: File): Promise<void> {
    const { former_workload: former, link_problem: problem } = this.#store.state;
    if (problem) this.#host.openDefault();
    this.#host.runs.stop();
    const { name } = file;
    this.#store.update({ trace: { kind: 'reading', name, progress: 0 }, fit: { kind: 'none' } });
    try {
      const { bytes, read } = await this.#host.engine.loadTrace(file, name, (progress) => {
        this.#store.update({ trace: { kind: 'reading', name, progress } });
      });
      const { trace: reading, document: current } = this.#store.state;
      const { text } = await this.#host.ask('replaying', JSON.stringify(current));
      // Given up, or another file was chosen, while that was asked.
      if (this.#store.state.trace !== reading) return;
      const workload = getAt(current, '/workload');
      const before = needsTrace(current) ? former : isObject(workload) ? workload : {};
      const replaying = readDocument(text) ?? current;
      this.#store.update({
        trace: { kind: 'loaded', name, bytes, read },
        wanted_trace: name,
        former_workload: before,
        document: read.has_arrivals || read.issues.length > 0 ? replaying : withFormerArrivals(replaying, before),
      });
      this.#host.runs.now();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.#store.update({ trace: { kind: 'failed', message }, shown: null });
    }
  }

  /** Gives up reading a file; what was simulated before it runs again. */
  cancel(): void {
    this.#host.engine.forgetTrace();
    this.#store.update({ trace: { kind: 'none' } });
    this.#host.runs.now();
  }

  /** The workload that resembles the open trace in place of the trace: small enough for a link. */
  async fit(): Promise<void> {
    const { trace } = this.#store.state;
    if (trace.kind !== 'loaded') return;
    const said = this.#said();
    this.#store.update({ fit: { kind: 'fitting' } });
    try {
      const fit = await this.#host.engine.fitTrace();
      const { state } = this.#store;
      if (state.trace !== trace) return;
      const replayed = getAt(state.document, '/workload');
      this.#store.update({ fit: { kind: 'fitted', fit, replayed: isObject(replayed) ? replayed : {}, said } });
      this.#host.edit('/workload', withFit(state.document, fit.workload as Document, state.former_workload));
    } catch (error) {
      this.#store.update({ fit: { kind: 'failed', message: error instanceof Error ? error.message : String(error) } });
    }
  }

  /** The verdict of the trace itself, beside which that of its fit will stand. */
  #said(): string {
    const { shown, document } = this.#store.state;
    if (shown?.completeness !== 'final' || shown.document !== document || !needsTrace(document)) return '';
    const { slo, verdict } = shown.outcome.report;
    const [closest] = [...slo].sort((a, b) => (a.margin ?? -Infinity) - (b.margin ?? -Infinity));
    const word = { meets: 'meets', near: 'too close to call', misses: 'misses', overloaded: 'overloaded' } as Partial<
      Record<typeof verdict.state, string>
    >;
    const state = word[verdict.state] ?? verdict.state.replaceAll('_', ' ');
    if (!closest || closest.limit_ms === null || closest.value_ms === null) return state;
    const { metric, percentile, value_ms: value, low, high, limit_ms: limit } = closest;
    const interval = low === null || high === null ? '' : ` (${formatInterval(low, high, value)})`;
    return `${state}, ${metric.toUpperCase()} p${percentile} ${formatTime(value)}${interval} of ${formatGivenTime(limit)}`;
  }

  /** The open trace again, after its fit. */
  replay(): void {
    const { trace, document, fit } = this.#store.state;
    if (trace.kind === 'loaded' && fit.kind === 'fitted')
      this.#host.edit('/workload', setAt(document, '/workload', fit.replayed));
  }

  remove(): void {
    const { former_workload: former, document, base, catalog } = this.#store.state;
    this.#host.engine.forgetTrace();
    const fallback = catalog?.presets.scenarios.find((entry) => entry.id === catalog.default_scenario)?.document;
    const own = needsTrace(base) ? (fallback as Document | undefined) : base;
    const workload = former ?? getAt(own, '/workload');
    const restored = workload === undefined ? removeAt(document, '/workload') : setAt(document, '/workload', workload);
    this.#store.update({
      trace: { kind: 'none' },
      fit: { kind: 'none' },
      wanted_trace: null,
      link_trace: null,
      former_workload: null,
    });
    this.#host.edit('/workload', needsTrace(document) ? restored : document);
  }
}

// When the shown scenario runs, and what becomes of the answers. After an edit the newest document runs as soon as the
// engine is idle, shortened to what a frame has room for ("coarse": fewer requests of the same seed, one run); the run
// that is certain begins when the hand rests (run-life.ts). An answer that is of an older document is marked after graceMs.
import type { Canonical } from 'servecast';
import type { Engine, RunListener } from '../engine/client';
import type { Outcome } from '../engine/protocol';
import { getAt, needsTrace, type Document } from './document';
import { newLife, step, type Arrival, type Effect, type Life, type RunEvent } from './run-life';
import type { Store } from './store';

export type Pace = 'typing' | 'dragging';

/** Without an edit for so long, a hand rests: between two digits longer than between two places of a slider. */
const restMs: Record<Pace, number> = { typing: 250, dragging: 120 };
/** After that what is shown is marked as of before the change. */
const graceMs = 150;
/** Rows of a trace that are copied and run in no time. */
const mostLiveRows = 20_000;

export interface Hooks {
  accepted(canonical: Canonical, document: Document): void;
  /** Nothing is opened after all: the document stays. */
  kept(): void;
  /** A run begins: it has the engine for itself. */
  begins(): void;
  /** The shown run has ended, and no other one follows. */
  ended(cancelled: boolean): void;
  /** There are texts that are no values: nothing runs. */
  blocked(): void;
  traceMissing(): void;
}

/** Until then nothing is shown of a first run before its end: its figures are the ramp-up's, and mostly change sides. */
const earlyMs = 2000;

export class Runs {
  readonly #engine: Engine;
  readonly #store: Store;
  readonly #hooks: Hooks;
  #life: Life<Document> = newLife();
  #slow = false;
  #restTimer: ReturnType<typeof setTimeout> | undefined;
  #slowTimer: ReturnType<typeof setTimeout> | undefined;
  /** Requests of a workload that is named and says no number itself, as a report told. */
  readonly #requestsOf = new Map<string, number>();

  constructor(engine: Engine, store: Store, hooks: Hooks) {
    this.#engine = engine;
    this.#store = store;
    this.#hooks = hooks;
  }

  /** The document has changed by a hand that may go on. */
  edited(pace: Pace = 'dragging'): void {
    if (!this.#mayRun()) return;
    this.#watch();
    const { document } = this.#store.state;
    this.#step({ kind: 'edited', document, live: this.#liveRequests() !== null }, pace);
  }

  /** The certain run, now. */
  now(): void {
    if (this.#mayRun()) this.#step({ kind: 'now', document: this.#store.state.document });
  }

  runOrCancel(): void {
    if (this.#store.state.run.kind === 'running') this.cancel();
    else this.now();
  }

  cancel(): void {
    const { opening } = this.#life;
    // What is being opened is given up without an answer.
    if (opening !== null) this.#settle({ kind: 'idle' });
    this.#step({ kind: 'cancel' });
  }

  /** Nothing runs, and nothing that ran is heard of, until the document changes or is asked for. */
  stop(): void {
    this.#step({ kind: 'held' });
    this.#settle({ kind: 'idle' });
  }

  /**
   * Something is fetched before a run can begin: what is shown is marked if that takes time. The name of this opening, by
   * which one learns whether it is still awaited: the newest of several wins.
   */
  opening(): number {
    this.#step({ kind: 'opening' });
    this.#unwatch();
    this.#store.update({ run: { kind: 'running', progress: 0, slow: false, loading: true, opening: true } });
    this.#watch();
    return this.#life.opening ?? 0;
  }

  isAwaited(opening: number): boolean {
    return this.#life.opening === opening;
  }

  #mayRun(): boolean {
    const { document, drafts, trace } = this.#store.state;
    if (drafts.size > 0) {
      this.stop();
      this.#hooks.blocked();
      return false;
    }
    if (trace.kind === 'reading') {
      this.stop();
      return false;
    }
    if (!needsTrace(document) || trace.kind === 'loaded') return true;
    this.stop();
    this.#store.update({ shown: null, run: { kind: 'refused', reason: 'trace_missing', issues: [] } });
    this.#hooks.traceMissing();
    return false;
  }

  /** How many requests the document asks for; null where a shortened run cannot be made of it. */
  #liveRequests(): number | null {
    const { document, trace, shown } = this.#store.state;
    if (needsTrace(document)) {
      if (trace.kind !== 'loaded' || trace.read.requests > mostLiveRows) return null;
      if (getAt(document, '/workload/arrivals/repeat') !== undefined) return null;
    }
    const own = getAt(document, '/workload/requests');
    if (typeof own === 'number') return own;
    if (shown) {
      const told = getAt(shown.outcome.report.scenario as Document, '/workload/requests');
      if (typeof told === 'number') this.#requestsOf.set(presetOf(shown.document), told);
    }
    return this.#requestsOf.get(presetOf(document)) ?? null;
  }

  /** `show`: what the event changes on the page, before anything follows from it. */
  #step(event: RunEvent<Document>, pace: Pace = 'typing', show?: (life: Life<Document>) => void): void {
    const [life, effects] = step(this.#life, event);
    this.#life = life;
    show?.(life);
    for (const effect of effects) this.#act(effect, pace);
  }

  #act(effect: Effect, pace: Pace): void {
    switch (effect) {
      case 'start':
        this.#start();
        break;
      case 'cancel':
        this.#engine.cancel();
        break;
      case 'start timer':
        clearTimeout(this.#restTimer);
        this.#restTimer = setTimeout(() => this.#step({ kind: 'rested' }), restMs[pace]);
        break;
      case 'stop timer':
        clearTimeout(this.#restTimer);
        break;
      case 'ended':
        this.#ended();
        break;
      case 'kept':
        this.#hooks.kept();
        break;
    }
  }

  #ended(): void {
    const { answer, wanted } = this.#life;
    if (answer !== 'refused' && this.#store.state.shown?.document === wanted) this.#hooks.ended(answer !== 'certain');
  }

  #start(): void {
    const { flight } = this.#life;
    if (!flight) return;
    const { run, kind, document } = flight;
    this.#hooks.begins();
    this.#store.update({ run: { kind: 'running', progress: 0, slow: this.#slow } });
    this.#watch();
    const requests = kind === 'coarse' ? this.#liveRequests() : null;
    const listener = this.#listener(run, document);
    this.#engine.run(JSON.stringify(document), needsTrace(document), listener, 'shown', requests);
  }

  /** From the first moment on in which the page is behind. */
  #watch(): void {
    this.#slowTimer ??= setTimeout(() => {
      this.#slow = true;
      const { run } = this.#store.state;
      if (run.kind === 'running') this.#store.update({ run: { ...run, slow: true } });
    }, graceMs);
  }

  #unwatch(): void {
    clearTimeout(this.#slowTimer);
    this.#slowTimer = undefined;
    this.#slow = false;
  }

  #settle(run: Store['state']['run'], change: Partial<Store['state']> = {}): void {
    this.#unwatch();
    this.#store.update({ run, ...change });
  }

  #listener(run: number, document: Document): RunListener {
    /** What a flight says that another one took the place of is not heard. */
    const hear = (kind: Arrival, show: (life: Life<Document>) => void) => {
      if (this.#life.flight?.run === run) this.#step({ kind, run }, 'typing', show);
    };
    const running = (more: { progress: number; loading?: boolean; drawing?: boolean }) => {
      if (this.#life.flight?.run === run) this.#store.update({ run: { kind: 'running', slow: this.#slow, ...more } });
    };
    const begin = performance.now();
    /** Of a part of the first run, not shown yet. */
    let early: Outcome | null = null;
    return {
      accepted: (canonical) => hear('accepted', () => this.#hooks.accepted(canonical, document)),
      loading: () => {
        if (this.#life.flight?.run === run) this.#slow = true;
        running({ progress: 0, loading: true });
      },
      refused: (reason, issues, unfit) =>
        hear('refused', ({ wanted }) => {
          if (wanted !== document) return this.#settle({ kind: 'idle' });
          // A value out of range is a slip on the way to the next one: what was shown stays, marked stale.
          const shown = reason === 'scenario' ? this.#store.state.shown : null;
          this.#settle({ kind: 'refused', reason, issues, ...(unfit ? { unfit } : {}) }, { shown });
        }),
      coarse: (outcome) =>
        hear('coarse', ({ answer }) => {
          const shown = { outcome, document, completeness: 'coarse' as const, progress: 1 };
          this.#settle({ kind: 'idle' }, { shown: { ...shown, cancelled: answer === 'given_up' } });
          this.#store.release();
        }),
      progress: (progress, partial) => {
        const { shown } = this.#store.state;
        running({ progress });
        if (!partial) return;
        early = partial.report.finished || performance.now() - begin > earlyMs ? null : partial;
        if (early) return;
        hear('partial', () => {
          // What is coarse has a verdict, which part of a certain run has not.
          if (shown?.completeness === 'coarse' && shown.document === document) return;
          this.#store.update({ shown: { outcome: partial, document, completeness: 'partial', progress } });
        });
      },
      drawing: (progress) => running({ progress, drawing: true }),
      finished: (last, progress, cancelled) =>
        hear(cancelled ? 'cancelled' : 'finished', () => this.#finished(document, last ?? early, progress, cancelled)),
      broken: (message) =>
        hear('refused', ({ wanted }) =>
          this.#settle(wanted === document ? { kind: 'broken', message } : { kind: 'idle' }, { shown: null }),
        ),
    };
  }

  #finished(document: Document, last: Outcome | null, progress: number, cancelled: boolean): void {
    const { shown } = this.#store.state;
    // Without a last one the partial one stands; what was shown before this run is no answer to it, and marked.
    const own = shown?.document === document ? shown : null;
    const outcome = last ?? own?.outcome;
    const share = last ? progress : (own?.progress ?? progress);
    const kept = !last && own?.completeness === 'coarse';
    const completeness = kept ? 'coarse' : cancelled ? 'cancelled' : 'final';
    this.#settle(
      { kind: 'idle' },
      outcome ? { shown: { outcome, document, completeness, progress: share, cancelled } } : {},
    );
  }
}

function presetOf(document: Document): string {
  return JSON.stringify([getAt(document, '/workload/preset') ?? null, needsTrace(document)]);
}

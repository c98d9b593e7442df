// When the shown scenario runs, and what becomes of the answers. After an edit the newest document runs as soon as the
// engine is idle, shortened to what a frame has room for ("coarse": fewer requests of the same seed, one run); the run
// that is certain begins when the hand rests. An answer that is of an older document is marked after graceMs.
import type { Canonical } from 'servecast';
import type { Engine, RunListener } from '../engine/client';
import type { Outcome } from '../engine/protocol';
import { getAt, needsTrace, type Document } from './document';
import type { Store } from './store';

export type Pace = 'typing' | 'dragging';

/** Without an edit for so long, a hand rests: between two digits longer than between two places of a slider. */
const restMs: Record<Pace, number> = { typing: 250, dragging: 120 };
/** After that what is shown is marked as of before the change. */
const graceMs = 150;
/** Rows of a trace that are copied and run in no time. */
const mostLiveRows = 20_000;

export interface Hooks {
  accepted(canonical: Canonical): void;
  /** A run begins: it has the engine for itself. */
  begins(): void;
  /** The shown run has ended, and no other one follows. */
  ended(cancelled: boolean): void;
  /** There are texts that are no values: nothing runs. */
  blocked(): void;
  traceMissing(): void;
}

export class Runs {
  readonly #engine: Engine;
  readonly #store: Store;
  readonly #hooks: Hooks;
  #underWay: 'coarse' | 'full' | null = null;
  /** What is under way is of an older document. */
  #behind = false;
  #resting = true;
  /** No certain run of the newest document has begun. */
  #uncertain = false;
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
    clearTimeout(this.#restTimer);
    if (!this.#mayRun()) return;
    this.#resting = false;
    this.#uncertain = true;
    this.#restTimer = setTimeout(() => {
      this.#resting = true;
      if (this.#uncertain && this.#underWay !== 'coarse') this.#startFull();
    }, restMs[pace]);
    this.#watch();
    const requests = this.#liveRequests();
    // One that is short is waited for; a long one makes room, if something quicker can be said.
    if (this.#underWay === 'coarse' || (this.#underWay === 'full' && requests === null)) this.#behind = true;
    else this.#start('coarse', requests);
  }

  /** The certain run, now. */
  now(): void {
    clearTimeout(this.#restTimer);
    this.#resting = true;
    if (this.#mayRun()) this.#startFull();
  }

  runOrCancel(): void {
    if (this.#store.state.run.kind === 'running') this.cancel();
    else this.now();
  }

  cancel(): void {
    clearTimeout(this.#restTimer);
    this.#behind = false;
    this.#resting = true;
    // What waits for its turn, or is being opened, is given up without an answer.
    if (this.#underWay) this.#engine.cancel();
    else if (this.#store.state.run.kind === 'running') this.#settle({ kind: 'idle' });
  }

  /** Nothing runs, and nothing that ran is heard of. */
  stop(): void {
    clearTimeout(this.#restTimer);
    this.#behind = false;
    this.#resting = true;
    if (this.#underWay) this.#engine.cancel();
    this.#settle({ kind: 'idle' });
  }

  /** Something is fetched before a run can begin: what is shown is marked if that takes time. */
  opening(): void {
    this.stop();
    this.#store.update({ run: { kind: 'running', progress: 0, slow: false, loading: true, opening: true } });
    this.#watch();
  }

  #mayRun(): boolean {
    const { document, drafts, trace } = this.#store.state;
    if (drafts.size > 0) {
      this.#hooks.blocked();
      return false;
    }
    if (trace.kind === 'reading') return false;
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

  #startFull(): void {
    this.#start('full', null);
  }

  #start(kind: 'coarse' | 'full', requests: number | null): void {
    const { document, shown } = this.#store.state;
    if (kind === 'full') clearTimeout(this.#restTimer);
    this.#hooks.begins();
    this.#behind = false;
    this.#underWay = requests === null ? 'full' : kind;
    if (this.#underWay === 'full') this.#uncertain = false;
    this.#store.update({ run: { kind: 'running', progress: 0, slow: this.#slow } });
    this.#watch();
    const listener = this.#listener(document);
    this.#engine.run(JSON.stringify(document), needsTrace(document), listener, 'shown', shown === null, requests);
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
    this.#underWay = null;
    this.#store.update({ run, ...change });
  }

  /** Goes on with what came meanwhile. False: there is nothing. */
  #goOn(): boolean {
    if (this.#behind && this.#mayRun()) {
      this.#watch();
      this.#start('coarse', this.#liveRequests());
      return true;
    }
    return false;
  }

  #listener(document: Document): RunListener {
    return {
      accepted: (canonical) => {
        this.#underWay = 'full';
        if (!this.#behind) this.#uncertain = false;
        this.#hooks.accepted(canonical);
      },
      loading: () => {
        this.#slow = true;
        this.#store.update({ run: { kind: 'running', progress: 0, slow: true, loading: true } });
      },
      refused: (reason, issues, unfit) => {
        // A value out of range is a slip on the way to the next one: what was shown stays, marked stale.
        const shown = reason === 'scenario' ? this.#store.state.shown : null;
        this.#settle({ kind: 'refused', reason, issues, ...(unfit ? { unfit } : {}) }, { shown });
        clearTimeout(this.#restTimer);
        this.#goOn();
      },
      coarse: (outcome) => {
        const shown = { outcome, document, completeness: 'coarse' as const, progress: 1 };
        this.#settle({ kind: 'idle' }, { shown });
        this.#store.release();
        if (!this.#goOn() && this.#resting && this.#uncertain) this.#startFull();
      },
      progress: (progress, partial) => {
        const { shown } = this.#store.state;
        const run = { kind: 'running' as const, progress, slow: this.#slow };
        // What is coarse has a verdict, which part of a certain run has not.
        const better = partial && !(shown?.completeness === 'coarse' && shown.document === document);
        const next = better ? { outcome: partial, document, completeness: 'partial' as const, progress } : shown;
        this.#store.update({ run, shown: next });
        if (partial && this.#behind) this.#startFull();
      },
      drawing: (progress) =>
        this.#store.update({ run: { kind: 'running', progress, slow: this.#slow, drawing: true } }),
      finished: (last, progress, cancelled) => this.#finished(document, last, progress, cancelled),
      broken: (message) => this.#settle({ kind: 'broken', message }, { shown: null }),
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
    if (outcome && !this.#goOn()) this.#hooks.ended(cancelled);
  }
}

function presetOf(document: Document): string {
  return JSON.stringify([getAt(document, '/workload/preset') ?? null, needsTrace(document)]);
}

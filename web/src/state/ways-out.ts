// What follows a verdict: why it is as it is and what each request did, when somebody asks; and, when a target is missed, what might be changed.
// For that the engine runs about a dozen one-step changes; one of them may be taken over.
import type { Advice, AdvisedChange, Report } from 'servecast';
import type { Engine } from '../engine/client';
import { isBeyond } from '../lib/targets';
import { mostRequestsDrawn, requestColumns } from '../lib/requests';
import { needsTrace, readDocument, type Document } from './document';
import type { Plans } from './plans';
import { reportOf, type Shown, type Store, type WaysOut } from './store';
import { firstRun } from '../lib/first-run';
import { tookLong } from '../lib/work';

/** Whether there is something to look for a way out of: a miss, an overload, or odds that are against the targets. The
    band, which may turn a miss into the last, takes no ways out away. */
export function wantsWayOut(shown: Shown): boolean {
  const { state } = reportOf(shown).verdict;
  if (shown.completeness !== 'final') return false;
  return state === 'misses' || state === 'overloaded' || (state === 'near' && isBeyond(shown.outcome.report));
}

/** Whether its targets are met, or nearly, and might be with more room. */
function hasRoom({ completeness, outcome }: Shown): boolean {
  const { verdict, slo } = outcome.report;
  return completeness === 'final' && slo.length > 0 && (verdict.state === 'meets' || verdict.state === 'near');
}

export class Reasons {
  readonly #engine: Engine;
  readonly #store: Store;
  #turn = 0;
  #bandTurn = 0;
  #bands = false;
  #ways = false;
  /** The bands of what is shown are there, or not to be had. */
  #rested = false;
  #finding: Promise<void> = Promise.resolve();
  #asking = false;
  #watching = false;
  readonly #plans: () => Promise<Plans>;
  #stopSeeking: () => void = () => undefined;

  constructor(engine: Engine, store: Store, plans: () => Promise<Plans>) {
    this.#engine = engine;
    this.#store = store;
    this.#plans = plans;
  }

  /** The shown run begins: it has the engine for itself, and what was found is of another scenario. */
  halt(): void {
    this.#turn += 1;
    this.#bandTurn += 1;
    this.#rested = false;
    this.#engine.cancelBand();
    this.#stopSeeking();
    if (this.#store.state.ways_out?.kind === 'trying') this.#engine.cancelAdvice();
  }

  /** To be called when the shown run has ended. */
  refresh(): void {
    this.halt();
    void this.#explain();
    void this.#fetchRequests();
    this.#finding = this.#findBand();
    this.#offer();
  }

  #offer(): void {
    if (!this.#ways) return;
    const { shown } = this.#store.state;
    const missed = shown !== null && wantsWayOut(shown);
    const wanted = shown && (missed || hasRoom(shown)) ? shown.outcome : null;
    const offered: WaysOut | null = wanted && {
      of: wanted,
      missed,
      kind: 'offered',
      progress: 0,
      advice: null,
      message: '',
      designs: [],
      seeks: false,
    };
    this.#store.update({ ways_out: offered });
    if (missed && wanted && !tookLong(wanted.report)) this.look();
  }

  /** What gives met targets more room is tried for who looks at why, after all that a verdict is made of. */
  #improve(): void {
    const { shown, ways_out: found } = this.#store.state;
    if (!this.#asking || !this.#rested || !shown || found?.of !== shown.outcome) return;
    if (!found.missed && found.kind === 'offered' && !tookLong(shown.outcome.report)) this.look();
  }

  /** From now on bands follow every certain verdict. */
  askBands(): void {
    this.#bands = true;
  }

  /** From now on ways out are offered, or more room; an embed shows none. */
  offerWays(): void {
    this.#ways = true;
  }

  /** Bands take several runs more: the verdict of sampling alone stands until they are known. */
  async #findBand(): Promise<void> {
    const { shown } = this.#store.state;
    if (!this.#bands || shown?.completeness !== 'final' || shown.outcome.report.slo.length === 0) return;
    const turn = this.#bandTurn;
    const banded = await this.#engine.band(JSON.stringify(shown.document), needsTrace(shown.document));
    const { shown: now, document } = this.#store.state;
    // Of an older run, or of a document that was edited meanwhile.
    if (!now || turn !== this.#bandTurn || now.outcome !== shown.outcome || document !== shown.document) return;
    if (banded) {
      this.#store.update({ shown: { ...now, banded } });
      const { ways_out: found } = this.#store.state;
      if (!found || (!found.missed && wantsWayOut({ ...now, banded }))) this.#offer();
    }
    this.#rested = true;
    this.#improve();
  }

  /** A scenario's report with bands, once those of what is shown are known; null: they are not to be had. Never settles
      when another run begins. */
  async bandOf(document: Document): Promise<Report | null> {
    await this.#finding;
    const { shown } = this.#store.state;
    if (shown?.document === document) return shown.banded ?? null;
    return this.#engine.band(JSON.stringify(document), needsTrace(document));
  }

  look(): void {
    const { shown, ways_out: found } = this.#store.state;
    if (!shown || found?.of !== shown.outcome) return;
    const turn = ++this.#turn;
    const put = (change: Partial<WaysOut>) => {
      const { ways_out: now } = this.#store.state;
      if (turn === this.#turn && now) this.#set({ ...now, ...change });
    };
    this.#set({ ...found, kind: 'trying', progress: 0 });
    this.#engine.advise(JSON.stringify(shown.document), needsTrace(shown.document), {
      progress: (progress) => put({ progress }),
      finished: (advice, progress) => {
        const seeks = found.missed && progress >= 1 && !advice.changes.some(({ meets }) => meets);
        put({ kind: progress < 1 ? 'cancelled' : 'tried', progress, advice, seeks });
        if (seeks) void this.#seekDesigns(turn, shown, advice);
      },
      failed: (message) => put({ kind: 'failed', message }),
    });
  }

  /** A list of ways out ends in one that is, where there is any. */
  async #seekDesigns(turn: number, shown: Shown, advice: Advice): Promise<void> {
    const [plans, part] = await Promise.all([this.#plans(), import('./designs')]).catch(() => []);
    if (turn !== this.#turn) return;
    const put = (change: Pick<WaysOut, 'designs' | 'seeks'>) => {
      const { ways_out: now } = this.#store.state;
      if (turn === this.#turn && now) this.#set({ ...now, ...change });
    };
    if (plans && part) this.#stopSeeking = part.findDesigns(plans, shown, advice, this.#engine.traceFile, put);
    else put({ designs: [], seeks: false });
  }

  /** What was tried until then stays. */
  cancel(): void {
    this.#engine.cancelAdvice();
  }

  /** Whether somebody looks at why: that is then asked for after every run. */
  askWhy(on: boolean): void {
    this.#asking = on;
    void this.#explain();
    this.#improve();
  }

  async #explain(): Promise<void> {
    const { shown, explanation } = this.#store.state;
    if (!this.#asking || shown?.completeness !== 'final' || explanation?.of === shown.outcome) return;
    const found = await this.#engine.explain();
    if (found && this.#store.state.shown?.outcome === shown.outcome)
      this.#store.update({ explanation: { of: shown.outcome, explanation: found } });
  }

  /** Likewise what each request did. */
  askRequests(on: boolean): void {
    this.#watching = on;
    if (on) void this.#fetchRequests();
    else this.#store.update({ requests: null });
  }

  async #fetchRequests(): Promise<void> {
    const { shown, requests } = this.#store.state;
    if (
      !this.#watching ||
      shown?.completeness !== 'final' ||
      requests?.of === shown.outcome ||
      firstRun(shown.outcome.report).arrived > mostRequestsDrawn
    )
      return;
    const columns = await this.#engine.requests(requestColumns);
    const now = this.#store.state.shown;
    if (columns && now?.outcome === shown.outcome) this.#store.update({ requests: { of: shown.outcome, columns } });
  }

  #set(found: WaysOut): void {
    this.#store.update({ ways_out: found });
  }
}

export function documentOf(change: AdvisedChange): Document | null {
  return readDocument(change.document);
}

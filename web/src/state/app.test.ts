import type { Advice, Canonical, Catalog, Coefficients, Explanation, Report, TraceFit, VerdictState } from 'servecast';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { AdviceListener, Engine, LoadedTrace, RunListener } from '../engine/client';
import type { Lane, Outcome, Question } from '../engine/protocol';
import { encodeLink } from '../share/encode';
import { decodeLink } from '../share/link';
import { App } from './app';
import { getAt, needsTrace, setAt, type Document } from './document';
import { isBefore, reportOf } from './store';
import { Undo } from './undo';
import { wantsWayOut } from './ways-out';
import { field } from './field-of-test';

const distribution = '/workload/prompt_tokens/distribution';
const scenario: Document = {
  model: { preset: 'small' },
  workload: {
    arrivals: { process: 'poisson', rate_per_s: 4 },
    prompt_tokens: { distribution: 'lognormal', median: 100, p99: 900 },
  },
};
const catalog: Catalog = {
  engine_version: 'test',
  definitions: [],
  schema: 1,
  default_scenario: 'first',
  presets: {
    models: [
      { id: 'small', name: 'Small', description: '', document: {} },
      { id: 'large', name: 'Large', description: '', document: {} },
    ],
    hardware: [],
    engines: [],
    hosts: [],
    workloads: [],
    scenarios: [{ id: 'first', name: 'First', description: '', document: scenario }],
  },
  fields: [
    field('/model/preset', { type: 'choice', choices: ['small', 'large'] }),
    field('/workload/arrivals/rate_per_s'),
    field(distribution, { type: 'choice', choices: ['fixed', 'lognormal'], default: 'fixed' }),
    field('/workload/prompt_tokens/value', {
      type: 'integer',
      required: true,
      when: { path: distribution, values: ['fixed'] },
    }),
    field('/workload/prompt_tokens/median', { when: { path: distribution, values: ['lognormal'] } }),
    field('/workload/prompt_tokens/p99', { when: { path: distribution, values: ['lognormal'] } }),
    field('/cluster/pools/-/tensor_parallel', { type: 'integer', default: 1 }),
  ],
  columns: [],
  policies: [],
  not_modelled: [],
  notices: [],
};

const rate = '/workload/arrivals/rate_per_s';

function outcomeOf(document: Document, steps = 1, verdict: VerdictState = 'meets'): Outcome {
  const report = { scenario: document, fingerprint: 'f', arrived: 2, steps, slo: [], verdict: { state: verdict } };
  return { report: report as unknown as Report, columns: {}, engine_ms: 1 };
}

class RecordingEngine implements Engine {
  readonly traceFile = null;
  readonly site = '';
  readonly ready = Promise.resolve(catalog);
  readonly runs: {
    readonly document: Document;
    readonly with_trace: boolean;
    readonly listener: RunListener;
    readonly coarse: number | null | undefined;
  }[] = [];
  readonly advised: { readonly document: Document; readonly listener: AdviceListener }[] = [];
  cancels = 0;
  advice_cancels = 0;
  explained = 0;
  record(): Promise<never> {
    return new Promise(() => undefined);
  }
  run(text: string, withTrace: boolean, listener: RunListener, _lane?: Lane, coarse?: number | null): void {
    this.runs.push({ document: JSON.parse(text) as Document, with_trace: withTrace, listener, coarse });
  }
  advise(text: string, _withTrace: boolean, listener: AdviceListener): void {
    this.advised.push({ document: JSON.parse(text) as Document, listener });
  }
  cancelAdvice(): void {
    this.advice_cancels += 1;
  }
  readonly banded: { readonly document: Document; readonly answer: (report: Report | null) => void }[] = [];
  band_cancels = 0;
  band(text: string): Promise<Report | null> {
    return new Promise((answer) => this.banded.push({ document: JSON.parse(text) as Document, answer }));
  }
  cancelBand(): void {
    this.band_cancels += 1;
  }
  explain(): Promise<Explanation | null> {
    this.explained += 1;
    return Promise.resolve({ limits: [{ name: 'compute', gain: 0.1 * this.explained }], blame: {} });
  }
  cancel(): void {
    this.cancels += 1;
  }
  ask(question: Question, text: string): Promise<Canonical> {
    if (this.stalls) {
      this.stalls = false;
      return new Promise((resolve) => {
        this.release = () => resolve(this.ask(question, text));
      });
    }
    if (question === 'parse' && this.readable) {
      // A preset alone is what was opened first.
      const { document } = text.includes('&') ? this.last : (this.runs[0] ?? this.last);
      return Promise.resolve({ text: JSON.stringify(document), id: 'id', issues: [] });
    }
    if (question === 'replaying')
      return Promise.resolve({ text: this.replaying(JSON.parse(text) as Document), id: '', issues: [] });
    const bad = /bad|: ?-1[,}]|-1\b/.test(text);
    return Promise.resolve({
      text: bad ? '' : text,
      id: 'id',
      issues: bad ? [{ path: '/workload/arrivals/rate_per_s', message: 'bad' }] : [],
    });
  }
  /** Questions wait until they are released. */
  stalls = false;
  readable = false;
  release: () => void = () => undefined;
  /** The rule is the engine's; here its plainest case. */
  replaying(document: Document): string {
    if (needsTrace(document)) return JSON.stringify(document);
    const arrivals = this.has_arrivals ? setAt(document, '/workload/arrivals', { process: 'trace' }) : document;
    return JSON.stringify(setAt(arrivals, '/workload/prompt_tokens', { distribution: 'trace' }));
  }
  has_arrivals = true;
  loadTrace(): Promise<LoadedTrace> {
    return Promise.resolve({
      bytes: 10,
      read: { format: 'csv', reading: 'CSV', requests: 2, has_arrivals: this.has_arrivals, issues: [] },
    });
  }
  fitTrace(): Promise<TraceFit> {
    const workload = { requests: 2, ...(this.has_arrivals ? { arrivals: { rate_per_s: 5 } } : {}) };
    return Promise.resolve({
      workload,
      comparison: [],
      lengths: { probability: [], prompt_trace: [], prompt_fit: [], output_trace: [], output_fit: [] },
    });
  }
  forgetTrace(): void {}
  onCatalog?: (catalog: Catalog) => void;
  file_kind = 'import';
  whole(question: string, [, file = '']: readonly string[]): Promise<Coefficients | { readonly kind: string }> {
    if (question === 'fileKind') return Promise.resolve({ kind: this.file_kind });
    const set = (id: string) => ({
      id,
      latency: { backend: 'blackbox', beta: [1, 2, 3] },
      fits: false,
      faster_than_light: false,
      warnings: [],
    });
    const sets = file === '' ? [set('a'), set('b')] : file.includes('good') ? [set('of a file')] : [];
    return Promise.resolve({ sets, issues: sets.length > 0 ? [] : [{ path: '/sets', message: 'missing' }] });
  }
  asked = 0;
  requests(): Promise<Record<string, Float64Array>> {
    this.asked += 1;
    return Promise.resolve({ e2e_ms: new Float64Array([this.asked]) });
  }

  get last() {
    return this.runs.at(-1)!;
  }
  coarse(): void {
    this.last.listener.coarse?.(outcomeOf(this.last.document));
  }
  /** A run with one target, and what its report is with bands. */
  finishWithTarget(): Report {
    const { document, listener } = this.last;
    const outcome = outcomeOf(document);
    const target = { metric: 'tpot' } as Report['slo'][number];
    const report: Report = { ...outcome.report, slo: [target] };
    listener.accepted({ text: JSON.stringify(document), id: 'id', issues: [] });
    listener.finished({ ...outcome, report }, 1, false);
    return { ...report, verdict: { ...report.verdict, state: 'near', probability: 0.5 } };
  }
  finish(steps = 1, verdict: VerdictState = 'meets'): void {
    const document = this.last.document;
    this.last.listener.accepted({ text: JSON.stringify(document), id: 'id', issues: [] });
    this.last.listener.finished(outcomeOf(document, steps, verdict), 1, false);
  }
}

describe('the app', () => {
  let engine: RecordingEngine;
  let fragment: string;
  let app: App;
  let entries: { fragment: string; entry: string }[];
  const state = () => app.store.state;

  beforeEach(async () => {
    vi.useFakeTimers();
    engine = new RecordingEngine();
    fragment = '';
    entries = [];
    app = new App(engine, {
      readFragment: () => fragment,
      writeFragment: (text, entry, follows) => {
        if (follows || entries.length === 0) entries.push({ fragment: text, entry });
        else entries[entries.length - 1] = { fragment: text, entry };
        fragment = text;
      },
      readEntry: () => entries.at(-1)?.entry ?? '',
      saveTheme: () => undefined,
    });
    app.remember(new Undo());
    app.reasons.askBands();
    app.reasons.offerWays();
    await app.start();
  });
  afterEach(() => vi.useRealTimers());

  /** A scenario that says how many requests it has, run to its end. */
  const open = (workload: Document) => {
    engine.finish();
    app.setPools(setAt(scenario, '/workload/requests', workload['requests'] ?? 1));
    engine.finish();
    vi.advanceTimersByTime(1000);
  };

  it('Start_WithoutLink_RunsTheDefaultScenario_AndWritesItsLink', async () => {
    expect(engine.last.document).toEqual(scenario);
    engine.finish();
    vi.advanceTimersByTime(300);
    await vi.waitFor(() => expect(fragment).toMatch(/^z1/));
    expect(await decodeLink(fragment)).toMatchObject({ kind: 'packed', text: JSON.stringify(scenario) });
  });
  it('Edit_RunsTheNewestAtOnce_Coarsely_AndCertainlyWhenTheHandRests', () => {
    open({ requests: 9000 });
    app.setValue(rate, 5);
    app.setValue(rate, 55);
    app.setValue(rate, 555);
    expect(engine.runs).toHaveLength(3);
    expect(engine.last).toMatchObject({ coarse: 9000, document: { workload: { arrivals: { rate_per_s: 5 } } } });
    engine.coarse();
    expect(state().shown).toMatchObject({
      completeness: 'coarse',
      document: { workload: { arrivals: { rate_per_s: 5 } } },
    });
    expect(engine.runs, 'what came meanwhile is run, but the newest alone').toHaveLength(4);
    expect(getAt(engine.last.document, rate)).toBe(555);
    engine.coarse();
    expect(engine.runs).toHaveLength(4);
    vi.advanceTimersByTime(250);
    expect(engine.last.coarse).toBeNull();
    engine.last.listener.progress(0.5, outcomeOf(engine.last.document));
    expect(state().shown?.completeness, 'what has a verdict stays until there is a certain one').toBe('coarse');
    engine.finish();
    expect(state().shown).toMatchObject({ completeness: 'final', document: state().document });
    vi.advanceTimersByTime(1000);
    expect(engine.runs, 'nothing is run twice').toHaveLength(5);
  });
  it('Edit_DuringACertainRun_IsNotWaitedFor', () => {
    open({ requests: 9000 });
    app.setValue(rate, 5, 'dragging');
    engine.coarse();
    vi.advanceTimersByTime(120);
    expect(engine.last.coarse).toBeNull();
    app.setValue(rate, 6, 'dragging');
    expect(engine.last).toMatchObject({ coarse: 9000, document: { workload: { arrivals: { rate_per_s: 6 } } } });
  });
  it('Edit_WhoseAnswersLag_MarksWhatIsShown_UntilThereIsOne', () => {
    open({ requests: 9000 });
    app.setValue(rate, 5, 'dragging');
    vi.advanceTimersByTime(100);
    app.setValue(rate, 6, 'dragging');
    expect(isBefore(state())).toBe(false);
    vi.advanceTimersByTime(50);
    expect(isBefore(state()), 'counted from the first edit').toBe(true);
    engine.coarse();
    expect(isBefore(state())).toBe(false);
    vi.advanceTimersByTime(149);
    expect(isBefore(state())).toBe(false);
  });
  it('Link_ThatTakesLongToOpen_MarksWhatIsShown_AndCancelKeepsIt', async () => {
    engine.finish();
    engine.stalls = true;
    fragment = 'p=first&workload.requests=7';
    entries.push({ fragment, entry: '' });
    void app.arrive();
    await vi.advanceTimersByTimeAsync(200);
    expect(isBefore(state())).toBe(true);
    app.cancel();
    expect(state().run.kind).toBe('idle');
    expect(isBefore(state())).toBe(false);
    engine.release();
    await vi.advanceTimersByTimeAsync(10);
    expect(engine.runs, 'what was given up does not open').toHaveLength(1);
  });
  it('Undo_TakesBackWhatCameBeforeItsCode', async () => {
    const early = new App(engine, {
      readFragment: () => '',
      writeFragment: () => undefined,
      readEntry: () => '',
      saveTheme: () => undefined,
    });
    await early.start();
    early.setValue('/workload/arrivals/rate_per_s', 11);
    expect(early.store.state.can_undo).toBe(false);
    early.remember(new Undo());
    expect(early.store.state.can_undo).toBe(true);
    early.undo();
    expect(JSON.stringify(early.store.state.document)).not.toContain('11');
  });
  it('Undo_TakesBackADragAsOne_AndAnOpening_RedoBringsThemBack', () => {
    engine.finish();
    app.setValue(rate, 5, 'dragging');
    app.setValue(rate, 6, 'dragging');
    app.setValue('/model/preset', 'large');
    expect(state()).toMatchObject({ can_undo: true, can_redo: false });
    app.undo();
    expect(getAt(state().document, rate)).toBe(6);
    expect(getAt(state().document, '/model/preset')).toBe('small');
    app.undo();
    expect(state().document).toEqual(scenario);
    expect(state().preset_id).toBe('first');
    expect(state().can_undo).toBe(false);
    app.redo();
    app.redo();
    expect(getAt(state().document, '/model/preset')).toBe('large');
    expect(state().can_redo).toBe(false);
    app.openPreset('first');
    expect(state().document).toEqual(scenario);
    app.undo();
    expect(getAt(state().document, '/model/preset')).toBe('large');
  });
  it('Back_BringsTheEntryAsItWasLeft_EditsAndAll', async () => {
    engine.finish();
    app.setValue(rate, 5, 'dragging');
    const left = state().document;
    app.openPreset('first');
    expect(entries).toHaveLength(2);
    app.setValue(rate, 8, 'dragging');
    const gone = entries.pop()!;
    await app.arrive();
    expect(state().document).toBe(left);
    entries.push(gone);
    await app.arrive();
    expect(getAt(state().document, rate)).toBe(8);
    app.undo();
    expect(state().document, 'and Back itself can be undone').toBe(left);
  });
  it('Back_ToAPinnedLink_BringsItsResultToo', async () => {
    engine.finish();
    engine.readable = true;
    const pin = 'v=1.0.1.0&r=meets,95120&f=0123456789abcdef';
    fragment = `p=first&${pin}`;
    await app.openLink();
    engine.finish();
    expect(state().pin?.text).toBe(pin);
    const { document } = state();
    app.openPreset('first');
    expect(state().pin).toBeNull();
    entries.pop();
    await app.arrive();
    expect(state().pin).toEqual({ text: pin, document });
    expect(state().document).toBe(document);
  });
  it('Link_IsReadable_WhereThatIsShorter', async () => {
    engine.finish();
    engine.readable = true;
    app.setValue(rate, 5, 'dragging');
    engine.finish();
    await vi.advanceTimersByTimeAsync(300);
    await vi.waitFor(() => expect(fragment).toBe('p=first&workload.arrivals.rate_per_s=5'));
  });
  it('History_FasterThanItsAnswers_EndsWithTheNewestOfAddressAndPage', { timeout: 60_000 }, async () => {
    vi.useRealTimers();
    const wait = setTimeout;
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const turn = () => new Promise((resolve) => wait(resolve, 0));
    const documents = [1, 2, 3, 4].map((requests) => setAt(scenario, '/workload/requests', requests));
    const links = await Promise.all(documents.map((document) => encodeLink(JSON.stringify(document), null)));
    let state = 7;
    const random = (below: number) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    /** Of the browser: entries before and after the current one, which is the last of `entries`. */
    const forward: typeof entries = [];
    const come = () => {
      fragment = entries.at(-1)!.fragment;
      void app.arrive();
      void app.arrive(); // popstate and hashchange
    };
    for (let round = 0; round < 60; round += 1) {
      const trail: string[] = [];
      let newest = '';
      for (let left = 2 + random(6); left > 0; left -= 1) {
        const pick = random(6);
        trail.push(String(pick));
        if (pick < 5) newest = '';
        if (pick < 2) {
          forward.length = 0;
          const chosen = random(4);
          newest = JSON.stringify(documents[chosen]);
          entries.push({ fragment: links[chosen]!, entry: '' });
          come();
        } else if (pick === 2 && entries.length > 1) {
          forward.push(entries.pop()!);
          come();
        } else if (pick === 3 && forward.length > 0) {
          entries.push(forward.pop()!);
          come();
        } else if (pick === 4) app.setValue(rate, 1 + random(90), 'dragging');
        else engine.coarse();
        for (let turns = random(12); turns > 0; turns -= 1) await turn();
        vi.advanceTimersByTime(random(300));
      }
      let text = '';
      for (let waits = 0; waits < 500; waits += 1) {
        await turn();
        vi.advanceTimersByTime(20);
        if (app.store.state.run.kind === 'running') engine.finish();
        const link = await decodeLink(fragment);
        text = link.kind === 'packed' ? link.text : '';
        const { document, shown, run } = app.store.state;
        if (waits > 40 && run.kind === 'idle' && shown?.document === document && text === JSON.stringify(document))
          break;
      }
      const { document, shown, run } = app.store.state;
      expect(run, `round ${round}: ${trail}`).toEqual({ kind: 'idle' });
      expect(shown, `round ${round}: ${trail}`).toMatchObject({ completeness: 'final', document });
      expect(text, `round ${round}: ${trail}`).toBe(JSON.stringify(document));
      if (newest !== '') expect(text, `round ${round}: ${trail}`).toBe(newest);
    }
  });
  it('Edit_DraggingQuickRuns_RunsAtOnce_AndAgainAfterTheOneUnderWay', () => {
    engine.finish();
    app.setValue('/workload/arrivals/rate_per_s', 5, 'dragging');
    app.setValue('/workload/arrivals/rate_per_s', 6, 'dragging');
    expect(engine.runs).toHaveLength(2);
    engine.finish();
    expect(engine.runs).toHaveLength(3);
    expect(engine.last.document).toMatchObject({ workload: { arrivals: { rate_per_s: 6 } } });
  });
  it('Run_ThatBegins_IsShownFromTheEndOfItsFirstRunOn', () => {
    const { document, listener } = engine.last;
    const part = (finished: boolean) => {
      const outcome = outcomeOf(document, 1, 'partial');
      return { ...outcome, report: { ...outcome.report, finished } };
    };
    listener.accepted({ text: JSON.stringify(document), id: 'id', issues: [] });
    listener.progress(0.05, part(false));
    expect(state().shown).toBeNull();
    listener.progress(0.2, part(true));
    expect(state().shown?.completeness).toBe('partial');
  });
  it('Run_ThatIsCancelledEarly_ShowsThePartThatIsKnown', () => {
    const { document, listener } = engine.last;
    const outcome = outcomeOf(document, 1, 'partial');
    const part = { ...outcome, report: { ...outcome.report, finished: false } };
    listener.accepted({ text: JSON.stringify(document), id: 'id', issues: [] });
    listener.progress(0.05, part);
    app.cancel();
    listener.finished(null, 0.05, true);
    expect(state().shown).toMatchObject({ outcome: part, completeness: 'cancelled' });
  });
  it('Run_ThatLasts_LeavesWhatWasShownAsOfAnotherDocument', () => {
    engine.finish();
    const before = state().document;
    app.setValue('/workload/arrivals/rate_per_s', 5, 'dragging');
    expect(state().run).toMatchObject({ kind: 'running', slow: false });
    vi.advanceTimersByTime(150);
    expect(state().run).toMatchObject({ kind: 'running', slow: true });
    expect(state().shown?.document).toBe(before);
    expect(state().shown?.document).not.toBe(state().document);
    engine.finish();
    expect(state().shown?.document).toBe(state().document);
  });
  it('Run_CancelledBeforeItsFirstAnswer_LeavesTheOldOne_MarkedAsSuch', () => {
    engine.finish();
    app.setValue('/workload/arrivals/rate_per_s', 5, 'dragging');
    engine.last.listener.finished(null, 0.1, true);
    expect(state().shown?.document).not.toBe(state().document);
    expect(isBefore(state())).toBe(true);
  });
  it('WaysOut_AreLookedForUnderAMiss_AndOneIsUsed', () => {
    engine.finish();
    expect(engine.advised).toHaveLength(0);
    app.setValue('/workload/arrivals/rate_per_s', 50, 'dragging');
    engine.finish(1, 'misses');
    expect(engine.advised).toHaveLength(1);
    expect(engine.advised[0]?.document).toEqual(state().document);
    const better = setAt(state().document, '/cluster', { pools: [{ replicas: 2 }] });
    const change = { change: '2 replicas', document: JSON.stringify(better) };
    const advice = { answer: '', base: null, changes: [change] } as unknown as Advice;
    engine.advised[0]?.listener.progress(0.5);
    expect(state().ways_out).toMatchObject({ kind: 'trying', progress: 0.5 });
    engine.advised[0]?.listener.finished(advice, 1);
    expect(state().ways_out).toMatchObject({ kind: 'tried', advice });
    app.useWayOut(advice.changes[0]!);
    expect(engine.last.document).toEqual(better);
    engine.finish();
    expect(state().ways_out).toBeNull();
  });
  it('Improvements_OfMetTargets_AreTriedOnceTheBandIsThere_ForWhoLooksAtWhy', async () => {
    const report = engine.finishWithTarget();
    expect(state().ways_out).toMatchObject({ missed: false, kind: 'offered' });
    app.reasons.askWhy(true);
    expect(engine.advised, 'the band first').toHaveLength(0);
    engine.banded[0]?.answer(report);
    await vi.waitFor(() => expect(engine.advised).toHaveLength(1));
    expect(state().ways_out).toMatchObject({ missed: false, kind: 'trying' });
    app.setValue(rate, 5, 'dragging');
    expect(engine.advice_cancels).toBe(1);
  });
  it('Improvements_GiveWayToWaysOut_WhereTheBandMisses', async () => {
    const report = engine.finishWithTarget();
    engine.banded[0]?.answer({ ...report, verdict: { ...report.verdict, state: 'misses' } });
    await vi.waitFor(() => expect(state().ways_out).toMatchObject({ missed: true, kind: 'trying' }));
  });
  it('WaysOut_Stay_WhereTheBandTurnsAMissIntoNear', async () => {
    const { document, listener } = engine.last;
    const outcome = outcomeOf(document, 1, 'misses');
    const target = { metric: 'tpot', percentile: 99, value_ms: 27, limit_ms: 25, low: 26, high: 29, unserved_share: 0 };
    const report = { ...outcome.report, slo: [target] } as unknown as Report;
    listener.accepted({ text: JSON.stringify(document), id: 'id', issues: [] });
    listener.finished({ ...outcome, report }, 1, false);
    const found = state().ways_out;
    expect(found).toMatchObject({ missed: true, kind: 'trying' });
    engine.banded[0]?.answer({ ...report, verdict: { ...report.verdict, state: 'near', probability: 0.24 } });
    await vi.waitFor(() => expect(state().shown?.banded).toBeDefined());
    expect(wantsWayOut(state().shown!)).toBe(true);
    expect(state().ways_out).toBe(found);
  });
  it('WaysOut_OfNearTargets_AreLookedFor_OnlyWhereAFigureIsBeyondItsLimit', () => {
    const shown = (value_ms: number) => {
      const outcome = outcomeOf(engine.last.document, 1, 'near');
      const slo = [{ metric: 'tpot', percentile: 99, value_ms, limit_ms: 25, low: 20, high: 30, unserved_share: 0 }];
      const report = { ...outcome.report, slo } as unknown as Report;
      return { outcome: { ...outcome, report }, document: {}, completeness: 'final' as const, progress: 1 };
    };
    expect(wantsWayOut(shown(24))).toBe(false);
    expect(wantsWayOut(shown(26))).toBe(true);
  });
  it('WaysOut_OfAnOldScenario_AreNotShown_AndStopWhenTheNextRunBegins', () => {
    engine.finish(1, 'overloaded');
    const old = engine.advised[0]!;
    app.setValue('/workload/arrivals/rate_per_s', 50, 'dragging');
    expect(engine.advice_cancels).toBe(1);
    engine.finish(1, 'misses');
    old.listener.finished({ answer: 'old', base: null, changes: [] }, 1);
    expect(state().ways_out).toMatchObject({ kind: 'trying', advice: null });
    engine.advised[1]?.listener.finished({ answer: '', base: null, changes: [] }, 0.4);
    expect(state().ways_out?.kind).toBe('cancelled');
  });
  it('WaysOut_OfALongRun_AreOnlyOffered', () => {
    engine.finish(5_000_000, 'misses');
    expect(engine.advised).toHaveLength(0);
    expect(state().ways_out?.kind).toBe('offered');
    app.reasons.look();
    expect(engine.advised).toHaveLength(1);
  });
  it('Band_TakesThePlaceOfTheReport_AndKeepsTheOutcome', async () => {
    const report = engine.finishWithTarget();
    const { outcome } = state().shown!;
    expect(reportOf(state().shown!)).toBe(outcome.report);
    expect(engine.banded.map(({ document }) => document)).toEqual([engine.last.document]);
    engine.banded[0]?.answer(report);
    await vi.waitFor(() => expect(reportOf(state().shown!)).toBe(report));
    expect(state().shown?.outcome).toBe(outcome);
    app.setValue('/workload/arrivals/rate_per_s', 5, 'dragging');
    engine.finish();
    expect(state().shown?.banded).toBeUndefined();
  });
  it('Band_ThatIsNotKnown_LeavesTheReport', async () => {
    engine.finishWithTarget();
    engine.banded[0]?.answer(null);
    await vi.advanceTimersByTimeAsync(1);
    expect(state().shown?.banded).toBeUndefined();
  });
  it('Band_OfAnOlderRun_IsDropped_AndCancelledWhenTheNextOneBegins', async () => {
    const old = engine.finishWithTarget();
    const cancels = engine.band_cancels;
    app.setValue('/workload/arrivals/rate_per_s', 5, 'dragging');
    expect(engine.band_cancels).toBe(cancels + 1);
    engine.banded[0]?.answer(old);
    await vi.advanceTimersByTimeAsync(0);
    expect(state().shown?.banded).toBeUndefined();
    const report = engine.finishWithTarget();
    await vi.advanceTimersByTimeAsync(0);
    expect(state().shown?.banded).toBeUndefined();
    engine.banded.at(-1)?.answer(report);
    await vi.advanceTimersByTimeAsync(0);
    expect(state().shown?.banded).toBe(report);
  });
  it('Band_OfACancelledRun_IsNotAskedFor', () => {
    engine.last.listener.finished(outcomeOf(engine.last.document), 0.5, true);
    engine.finish();
    expect(engine.banded).toHaveLength(0);
  });
  it('Why_IsAskedForWhileSomebodyLooks', async () => {
    engine.finish();
    expect(engine.explained).toBe(0);
    app.reasons.askWhy(true);
    await vi.waitFor(() => expect(state().explanation?.of).toBe(state().shown?.outcome));
    app.setValue('/workload/arrivals/rate_per_s', 5, 'dragging');
    engine.finish();
    await vi.waitFor(() => expect(engine.explained).toBe(2));
    app.reasons.askWhy(false);
  });
  it('Draft_GoesWithItsField_AndMovesWithItsItem', async () => {
    engine.finish();
    app.setDraft('/workload/prompt_tokens/median', 'x');
    app.setValue(distribution, 'fixed', 'dragging');
    expect([...state().drafts]).toEqual([]);
    await app.addPool();
    await app.addPool();
    app.setDraft('/cluster/pools/2/tensor_parallel', 'two');
    await app.removePool(0);
    expect([...state().drafts]).toEqual([['/cluster/pools/1/tensor_parallel', 'two']]);
    await app.removePool(1);
    expect([...state().drafts]).toEqual([]);
  });
  it('Requests_AreAskedForWhileSomebodyLooks_OfTheRunThatIsShown', async () => {
    engine.finish();
    expect(engine.asked).toBe(0);
    app.watchRequests(true);
    await vi.waitFor(() => expect(state().requests?.of).toBe(state().shown?.outcome));
    app.setValue('/workload/arrivals/rate_per_s', 5, 'dragging');
    engine.finish();
    await vi.waitFor(() => expect(state().requests?.of).toBe(state().shown?.outcome));
    expect(engine.asked).toBe(2);
    app.watchRequests(false);
    expect(state().requests).toBeNull();
  });
  it('Draft_StopsTheRun_UntilAValueComes', () => {
    engine.finish();
    app.setDraft('/workload/arrivals/rate_per_s', 'abc');
    app.runOrCancel();
    expect(engine.runs).toHaveLength(1);
    app.setValue('/workload/arrivals/rate_per_s', 7);
    vi.advanceTimersByTime(200);
    expect(engine.runs).toHaveLength(2);
  });
  it('Choice_NewDistribution_ForgetsOldFields_AndFillsRequiredOnes', () => {
    engine.finish();
    app.setValue(distribution, 'fixed');
    expect(state().document).toMatchObject({ workload: { prompt_tokens: { distribution: 'fixed', value: 100 } } });
    expect(state().document).not.toHaveProperty('workload.prompt_tokens.median');
  });
  it('Reset_ReturnsToTheOpenedScenario', () => {
    engine.finish();
    app.setValue('/model/preset', 'large');
    expect(state().preset_id).toBeNull();
    app.resetValue('/model/preset');
    expect(state().document).toEqual(scenario);
    expect(state().preset_id).toBe('first');
  });
  it('Trace_RunsWithIt_AndRemovingRestoresTheWorkload', async () => {
    engine.finish();
    await app.loadTrace(new File(['x'], 'day.csv'));
    expect(engine.last.with_trace).toBe(true);
    engine.finish();
    vi.advanceTimersByTime(300);
    await vi.waitFor(() => expect(fragment).toMatch(/^z1/));
    expect(await decodeLink(fragment)).toMatchObject({ trace_name: 'day.csv' });
    app.removeTrace();
    expect(state().document).toEqual(scenario);
    expect(engine.last.with_trace).toBe(false);
  });
  it('Trace_OfLengthsAlone_LeavesTheArrivals', async () => {
    engine.finish();
    engine.has_arrivals = false;
    await app.loadTrace(new File(['x'], 'lengths.csv'));
    expect(engine.last.with_trace).toBe(true);
    expect(state().document).toMatchObject({
      workload: { arrivals: { process: 'poisson', rate_per_s: 4 }, prompt_tokens: { distribution: 'trace' } },
    });
    await app.fitTrace();
    expect(state().document).toMatchObject({
      workload: { arrivals: { process: 'poisson', rate_per_s: 4 }, requests: 2 },
    });
  });
  it('Trace_OfLengthsAlone_AfterOneWithArrivals_BringsTheOldArrivalsBack', async () => {
    engine.finish();
    await app.loadTrace(new File(['x'], 'day.csv'));
    expect(state().document).toMatchObject({ workload: { arrivals: { process: 'trace' } } });
    engine.has_arrivals = false;
    await app.loadTrace(new File(['x'], 'lengths.csv'));
    expect(state().document).toMatchObject({ workload: { arrivals: { process: 'poisson', rate_per_s: 4 } } });
  });
  it('Trace_Fitted_NeedsNoFile_AndCanBeReplayedAgain', async () => {
    engine.finish();
    await app.loadTrace(new File(['x'], 'day.csv'));
    engine.finish();
    await app.fitTrace();
    expect(engine.last.with_trace).toBe(false);
    expect(state().document).toMatchObject({ workload: { requests: 2, arrivals: { rate_per_s: 5 } } });
    expect(state().fit).toMatchObject({ kind: 'fitted', said: 'meets' });
    engine.finish();
    vi.advanceTimersByTime(300);
    await vi.waitFor(async () => expect(await decodeLink(fragment)).toMatchObject({ trace_name: null }));
    app.replayTrace();
    expect(engine.last.with_trace).toBe(true);
    app.removeTrace();
    expect(state().document).toEqual(scenario);
    expect(state().fit.kind).toBe('none');
  });
  it('Link_OfATraceScenario_AsksForTheFile_AndRunsNothing', async () => {
    const traced = { workload: { arrivals: { process: 'trace' } } };
    fragment = await encodeLink(JSON.stringify(traced), 'day.csv');
    await app.openLink();
    expect(state().run).toMatchObject({ kind: 'refused', reason: 'trace_missing' });
    expect(state().wanted_trace).toBe('day.csv');
    expect(engine.runs).toHaveLength(1);
  });
  it('Link_OfATraceScenario_KeepsWhatItSaysOfTheReplay', async () => {
    const traced = {
      workload: {
        arrivals: { process: 'trace', rate_scale: 10, keep: 0.5 },
        output_tokens: { distribution: 'fixed', value: 7 },
      },
    };
    fragment = await encodeLink(JSON.stringify(traced), 'day.csv');
    await app.openLink();
    await app.loadTrace(new File(['x'], 'day.csv'));
    expect(engine.last.document).toEqual(traced);
    await app.fitTrace();
    app.replayTrace();
    engine.coarse();
    expect(engine.last.document, 'and after a fit').toEqual(traced);
  });
  it('Link_OfATraceScenario_RemembersItsFile_UntilTheTraceIsRemoved', async () => {
    fragment = await encodeLink(JSON.stringify({ workload: { arrivals: { process: 'trace' } } }), 'day.csv');
    await app.openLink();
    await app.loadTrace(new File(['x'], 'night.csv'));
    expect(state()).toMatchObject({ wanted_trace: 'night.csv', link_trace: 'day.csv' });
    app.removeTrace();
    expect(state().link_trace).toBeNull();
  });
  it('Link_Bad_SaysSo_ShowsNothing_AndLeavesTheAddressAlone', async () => {
    engine.finish();
    fragment = 'p=bad';
    await app.openLink();
    expect(state().link_problem?.issues).toHaveLength(1);
    expect(state().shown).toBeNull();
    vi.advanceTimersByTime(1000);
    expect(fragment).toBe('p=bad');
    app.openDefault();
    expect(state().link_problem).toBeNull();
  });
  it('Refused_AValueOutOfRange_KeepsWhatWasShown_AnEngineDoesNot', () => {
    engine.finish();
    app.setValue('/workload/arrivals/rate_per_s', -1);
    vi.advanceTimersByTime(200);
    engine.last.listener.refused('scenario', [{ path: '/workload/arrivals/rate_per_s', message: 'bad' }]);
    expect(state().shown).not.toBeNull();
    app.runOrCancel();
    engine.last.listener.refused('engine', [{ path: '', message: 'does not fit' }]);
    expect(state().shown).toBeNull();
  });
  it('Draft_BesideABadValue_BothAreKnown', async () => {
    engine.finish();
    app.setDraft('/workload/prompt_tokens/median', 'x');
    app.setValue('/workload/arrivals/rate_per_s', -1);
    await vi.advanceTimersByTimeAsync(200);
    expect(engine.runs).toHaveLength(1);
    expect(state().beside_drafts.map((issue) => issue.path)).toEqual(['/workload/arrivals/rate_per_s']);
  });
  it('Link_BadMember_OffersWhatRemains', async () => {
    engine.finish();
    const good = { workload: { requests: 9, arrivals: { process: 'poisson' } } };
    fragment = await encodeLink(
      JSON.stringify({ workload: { requests: 9, arrivals: { process: 'poisson', rate_per_s: -1 } } }),
      null,
    );
    await app.openLink();
    expect(state().link_problem?.nearest).toMatchObject({ document: good, dropped: ['/workload/arrivals/rate_per_s'] });
    app.openNearest();
    expect(engine.last.document).toEqual(good);
    expect(state().link_problem).toBeNull();
  });
  it('Engine_Dies_IsReported_AndTheNextRunWorks', () => {
    engine.last.listener.broken('unreachable');
    expect(state().run).toEqual({ kind: 'broken', message: 'unreachable' });
    app.runOrCancel();
    engine.finish();
    expect(state().run).toEqual({ kind: 'idle' });
  });
  it('Coefficients_OfAFile_OneIsTaken_OfSeveralOneIsChosen_BadOnesAreSaid', async () => {
    engine.finish();
    const sets = await app.coefficients();
    await sets.list();
    const { coefficients } = state();
    if (coefficients.kind !== 'listed') throw new Error(coefficients.kind);
    expect(coefficients.chosen).toBeNull();
    expect(getAt(state().document, '/latency')).toBeUndefined();
    sets.take(coefficients.sets[1]!);
    expect(state().coefficients).toMatchObject({ chosen: { id: 'b' } });
    expect(getAt(state().document, '/latency/beta')).toEqual([1, 2, 3]);
    engine.file_kind = 'coefficients';
    await app.openFile(new File(['{"physics_coefficients":"good"}'], 'mine.json'), expect.unreachable);
    expect(state().coefficients).toMatchObject({ name: 'mine.json', chosen: { id: 'of a file' } });
    await app.openFile(new File(['{"sets":[]}'], 'mine.json'), expect.unreachable);
    expect(state().coefficients).toEqual({ kind: 'failed', message: 'Sets: missing.' });
  });
  it('OpenFile_OfAnotherProgram_IsImported', async () => {
    const before = state().document;
    const imported = vi.fn();
    await app.openFile(new File(['services:'], 'compose.yaml'), imported);
    expect(imported).toHaveBeenCalledOnce();
    expect(state().document).toBe(before);
  });
  it('Catalog_ThatKnowsMore_IsTheFormsOwn', () => {
    engine.onCatalog?.({ ...catalog, engine_version: 'with a preset that was fetched' });
    expect(state().catalog?.engine_version).toBe('with a preset that was fetched');
  });
});

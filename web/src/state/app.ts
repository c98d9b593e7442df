// What a person can do on the page, as methods; their effects on the state, the engine and the
// address bar. Views call these and nothing else.
//
// Runs: an edit reruns at once while runs are quick, else after a pause. A run that has just begun
// may finish (so that dragging a slider shows answers), one that lasts is cancelled.
import type { AdvisedChange, Canonical, Issue } from 'servecast';
import type { Engine, RunListener } from '../engine/client';
import type { Outcome, Question } from '../engine/protocol';
import { decodeLink, encodeLink } from '../share/link';
import { CoefficientSets, longestScenario } from './coefficients';
import { Comparison } from './compare';
import {
  equalJson,
  getAt,
  isObject,
  lastOf,
  needsTrace,
  parentOf,
  readDocument,
  removeAt,
  setAt,
  withFit,
  withFormerArrivals,
  type Document,
  type Json,
} from './document';
import { assign, fieldAt, isRelevant, type FormSource } from './fields';
import { withAnotherPool, withNamedPresets, withPoolFields, withoutPool } from './pools';
import { mostRequestsDrawn, requestColumns } from '../lib/requests';
import { Store, type LinkProblem, type ThemeChoice } from './store';
import { documentOf, Reasons } from './ways-out';

export interface Surroundings {
  /** The fragment with or without "#". */
  readFragment(): string;
  writeFragment(fragment: string): void;
  saveTheme(theme: ThemeChoice): void;
}

const typingPauseMs = 150;
const quickRunMs = 200;
const slowRunMs = 300;
/** After that what is shown is marked as of before the change. */
const graceMs = 150;
const linkPauseMs = 250;

export class App {
  readonly store: Store;
  readonly reasons: Reasons;
  readonly coefficients: CoefficientSets;
  readonly #engine: Engine;
  readonly #around: Surroundings;
  readonly #comparison: Comparison;
  #runTimer: ReturnType<typeof setTimeout> | undefined;
  #linkTimer: ReturnType<typeof setTimeout> | undefined;
  #slowTimer: ReturnType<typeof setTimeout> | undefined;
  #running: { readonly since: number } | null = null;
  #again = false;
  #watching = false;
  #lastEngineMs = 0;

  constructor(engine: Engine, around: Surroundings, store = new Store()) {
    this.#engine = engine;
    this.#around = around;
    this.store = store;
    this.#comparison = new Comparison(engine, store);
    this.reasons = new Reasons(engine, store);
    this.coefficients = new CoefficientSets(engine, store, (latency) => this.setValue('/latency', latency, 'dragging'));
  }

  get source(): FormSource | null {
    const { catalog, document, shown } = this.store.state;
    if (!catalog) return null;
    const resolved = shown ? (shown.outcome.report.scenario as Document) : null;
    return { catalog, document, resolved };
  }

  async start(): Promise<void> {
    try {
      this.#engine.onCatalog = (catalog) => this.store.update({ catalog: withPoolFields(catalog) });
      this.store.update({ catalog: withPoolFields(await this.#engine.ready) });
    } catch (error) {
      this.store.update({ failure: error instanceof Error ? error.message : String(error) });
      return;
    }
    await this.openLink();
  }

  // --- Opening scenarios -------------------------------------------------------------------------

  openPreset(id: string): void {
    const preset = this.store.state.catalog?.presets.scenarios.find((entry) => entry.id === id);
    if (!preset) return;
    this.#open(preset.document as Document, preset.id, null);
  }

  openDefault(): void {
    this.openPreset(this.store.state.catalog?.default_scenario ?? '');
  }

  /** The scenario in the address bar, or the default one when there is none. */
  async openLink(): Promise<void> {
    const fragment = this.#around.readFragment();
    const link = await decodeLink(fragment);
    switch (link.kind) {
      case 'none':
        this.openDefault();
        return;
      case 'unreadable':
        this.#reject('link', link.reason, [], null);
        return;
      case 'packed':
        await this.#openText('link', await this.#ask('canonical', link.text), link.trace_name, (issues) =>
          this.#nearest('document', link.text, issues, link.trace_name),
        );
        return;
      case 'readable':
        await this.#openText('link', await this.#ask('parse', link.text), null, (issues) =>
          this.#nearest('fragment', link.text, issues, null),
        );
        return;
    }
  }

  /** Its code comes with the first link or file that is refused; without a connection there is no nearest one. */
  async #nearest(
    form: 'document' | 'fragment',
    text: string,
    issues: readonly Issue[],
    traceName: string | null,
  ): Promise<LinkProblem['nearest']> {
    const ask = (question: Question, asked: string) => this.#ask(question, asked);
    const salvage = await import('./salvage').catch(() => null);
    return (
      salvage &&
      (form === 'document'
        ? salvage.nearestDocument(ask, text, issues, traceName)
        : salvage.nearestFragment(ask, text, issues))
    );
  }

  async #ask(question: Question, text: string): Promise<Canonical> {
    try {
      return await this.#engine.ask(question, text);
    } catch (error) {
      return { text: '', id: '', issues: [{ path: '', message: `The engine stopped on this text: ${String(error)}` }] };
    }
  }

  /** A scenario as this page saves it, coefficients of a latency model, or else a trace. */
  async openFile(file: File): Promise<void> {
    const text = file.size <= longestScenario && /\.json$/i.test(file.name) ? await file.text() : '';
    const document = readDocument(text);
    if (
      document &&
      document['schema'] === undefined &&
      (document['physics_coefficients'] !== undefined || Array.isArray(document['sets']))
    )
      return this.coefficients.open(file);
    if (!document || document['schema'] === undefined || document['workload'] === undefined)
      return this.loadTrace(file);
    this.#stop();
    await this.#openText('file', await this.#ask('canonical', text), null, (issues) =>
      this.#nearest('document', text, issues, null),
    );
  }

  async #openText(
    from: LinkProblem['from'],
    canonical: Canonical,
    traceName: string | null,
    salvage: (issues: readonly Issue[]) => Promise<LinkProblem['nearest']>,
  ): Promise<void> {
    const document = readDocument(canonical.text);
    if (canonical.issues.length > 0 || !document) {
      const nearest = await salvage(canonical.issues);
      this.#reject(from, `The ${from} holds a scenario that cannot be run as it is.`, canonical.issues, nearest);
      return;
    }
    this.#open(document, null, traceName);
  }

  openNearest(): void {
    const nearest = this.store.state.link_problem?.nearest;
    if (nearest) this.#open(nearest.document, null, nearest.trace_name);
  }

  #reject(from: LinkProblem['from'], message: string, issues: readonly Issue[], nearest: LinkProblem['nearest']): void {
    this.#stop();
    // The form then shows the default scenario, ready to be edited or opened.
    const { catalog, document } = this.store.state;
    const fallback = catalog?.presets.scenarios.find((entry) => entry.id === catalog.default_scenario)?.document as
      | Document
      | undefined;
    if (fallback && Object.keys(document).length === 0) this.store.update({ base: fallback, document: fallback });
    this.store.update({
      link_problem: { from, message, issues, nearest },
      shown: null,
      canonical: null,
      run: { kind: 'idle' },
    });
  }

  #open(opened: Document, presetId: string | null, wantedTrace: string | null): void {
    const { catalog } = this.store.state;
    const document = catalog ? withNamedPresets(catalog, opened) : opened;
    const keepsTrace = needsTrace(document);
    if (!keepsTrace && this.store.state.trace.kind !== 'none') this.#engine.forgetTrace();
    this.store.update({
      base: document,
      document,
      preset_id: presetId,
      drafts: new Map(),
      beside_drafts: [],
      link_problem: null,
      former_workload: null,
      wanted_trace: wantedTrace,
      link_trace: wantedTrace,
      trace: keepsTrace ? this.store.state.trace : { kind: 'none' },
      fit: { kind: 'none' },
    });
    this.#runNow();
  }

  /** The text area of the scenario panel. Empty when applied, else why not. */
  async applyText(text: string): Promise<readonly Issue[]> {
    const canonical = await this.#ask('canonical', text);
    const document = readDocument(text);
    if (canonical.issues.length > 0) return canonical.issues;
    if (!document) return [{ path: '', message: 'This is not a JSON object.' }];
    this.#open(document, null, null);
    return [];
  }

  // --- Editing -----------------------------------------------------------------------------------

  setValue(pointer: string, value: Json, pace: 'typing' | 'dragging' = 'typing'): void {
    const source = this.source;
    if (!source) return;
    this.#edit(pointer, assign(source, pointer, value), pace);
  }

  setDraft(pointer: string, text: string): void {
    const drafts = new Map(this.store.state.drafts).set(pointer, text);
    this.#stop();
    this.store.update({ drafts, run: { kind: 'idle' } });
    void this.#checkBesideDrafts();
  }

  /** Fields that hold a value are judged even while another one holds none. */
  async #checkBesideDrafts(): Promise<void> {
    const { document } = this.store.state;
    const { issues } = await this.#ask('canonical', JSON.stringify(document));
    const { state } = this.store;
    if (state.document !== document || state.drafts.size === 0) return;
    this.store.update({ beside_drafts: issues.filter((issue) => !state.drafts.has(issue.path)) });
  }

  /** Back to what the opened scenario said, or to the default where it said nothing. */
  resetValue(pointer: string): void {
    const source = this.source;
    if (!source) return;
    const base = getAt(this.store.state.base, pointer);
    const changed = base === undefined ? removeAt(source.document, pointer) : setAt(source.document, pointer, base);
    this.#edit(pointer, changed, 'dragging');
  }

  /** All that was changed since the scenario was opened. */
  resetAll(): void {
    this.store.update({ drafts: new Map() });
    this.#edit('', this.store.state.base, 'dragging');
  }

  /** An emptied field: the default is in force. */
  clearValue(pointer: string): void {
    const source = this.source;
    if (source) this.#edit(pointer, removeAt(source.document, pointer), 'typing');
  }

  removeItem(pointer: string): void {
    const source = this.source;
    if (!source) return;
    this.#forgetItem(pointer);
    this.#edit(pointer, removeAt(source.document, pointer), 'dragging');
  }

  /** A pool's own value, or its own GPU or engine by the place of its preset: the scenario's is in force again. */
  inheritValue(pointer: string): void {
    const source = this.source;
    if (source)
      this.#edit(
        pointer,
        removeAt(source.document, lastOf(pointer) === 'preset' ? parentOf(pointer) : pointer),
        'dragging',
      );
  }

  addPool(): void {
    const source = this.source;
    if (source) this.setPools(withAnotherPool(source));
  }

  removePool(index: number): void {
    const source = this.source;
    if (!source) return;
    this.#forgetItem(`/cluster/pools/${index}`);
    this.setPools(withoutPool(source, index));
  }

  /** The document with other pools, from state/pools. */
  setPools(document: Document): void {
    this.#edit('', document, 'dragging');
  }

  /** What is typed in an item of a list goes with it; in those after it, it moves along. */
  #forgetItem(pointer: string): void {
    const list = parentOf(pointer);
    const gone = Number(lastOf(pointer));
    const drafts = [...this.store.state.drafts].flatMap(([at, text]): [string, string][] => {
      if (!at.startsWith(`${list}/`)) return [[at, text]];
      const [index = '', ...rest] = at.slice(list.length + 1).split('/');
      if (Number(index) === gone) return [];
      return [[[list, Number(index) > gone ? Number(index) - 1 : index, ...rest].join('/'), text]];
    });
    this.store.update({ drafts: new Map(drafts) });
  }

  #edit(pointer: string, document: Document, pace: 'typing' | 'dragging'): void {
    const source = this.source;
    // A text in a field that the new document does not have would stop every run.
    const isThere = (at: string) => {
      const field = source && fieldAt({ ...source, document }, at);
      const inItem = /^(.*\/\d+)\//.exec(at)?.[1];
      return (
        field &&
        isRelevant({ ...source, document }, { field, pointer: at }) &&
        (!inItem || !getAt(document, parentOf(inItem)) || getAt(document, inItem) !== undefined)
      );
    };
    const drafts = new Map([...this.store.state.drafts].filter(([at]) => at !== pointer && isThere(at)));
    const known = this.store.state.catalog?.presets.scenarios.find((entry) =>
      equalJson(entry.document as Document, document),
    );
    this.store.update({ document, drafts, preset_id: known?.id ?? null, link_problem: null });
    this.#schedule(pace);
  }

  // --- Traces ------------------------------------------------------------------------------------

  async loadTrace(file: File): Promise<void> {
    const { former_workload: former, link_problem: problem } = this.store.state;
    if (problem) this.openDefault();
    this.#stop();
    const { name } = file;
    this.store.update({ trace: { kind: 'reading', name, progress: 0 }, fit: { kind: 'none' }, run: { kind: 'idle' } });
    try {
      const { bytes, read } = await this.#engine.loadTrace(file, name, (progress) => {
        this.store.update({ trace: { kind: 'reading', name, progress } });
      });
      const { trace: reading, document: current } = this.store.state;
      const { text } = await this.#ask('replaying', JSON.stringify(current));
      // Given up, or another file was chosen, while that was asked.
      if (this.store.state.trace !== reading) return;
      const workload = getAt(current, '/workload');
      const before = needsTrace(current) ? former : isObject(workload) ? workload : {};
      const replaying = readDocument(text) ?? current;
      this.store.update({
        trace: { kind: 'loaded', name, bytes, read },
        wanted_trace: name,
        former_workload: before,
        document: read.has_arrivals || read.issues.length > 0 ? replaying : withFormerArrivals(replaying, before),
      });
      this.#runNow();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.store.update({ trace: { kind: 'failed', message }, shown: null });
    }
  }

  /** Gives up reading a file; what was simulated before it runs again. */
  cancelTrace(): void {
    this.#engine.forgetTrace();
    this.store.update({ trace: { kind: 'none' } });
    this.#runNow();
  }

  /** The workload that resembles the open trace in place of the trace: small enough for a link. */
  async fitTrace(): Promise<void> {
    const { trace } = this.store.state;
    if (trace.kind !== 'loaded') return;
    this.store.update({ fit: { kind: 'fitting' } });
    try {
      const fit = await this.#engine.fitTrace();
      const { state } = this.store;
      if (state.trace !== trace) return;
      const replayed = getAt(state.document, '/workload');
      this.store.update({ fit: { kind: 'fitted', fit, replayed: isObject(replayed) ? replayed : {} } });
      this.#edit('/workload', withFit(state.document, fit.workload as Document, state.former_workload), 'dragging');
    } catch (error) {
      this.store.update({ fit: { kind: 'failed', message: error instanceof Error ? error.message : String(error) } });
    }
  }

  /** The open trace again, after its fit. */
  replayTrace(): void {
    const { trace, document, fit } = this.store.state;
    if (trace.kind === 'loaded' && fit.kind === 'fitted')
      this.#edit('/workload', setAt(document, '/workload', fit.replayed), 'dragging');
  }

  removeTrace(): void {
    const { former_workload: former, document, base, catalog } = this.store.state;
    this.#engine.forgetTrace();
    const fallback = catalog?.presets.scenarios.find((entry) => entry.id === catalog.default_scenario)?.document;
    const own = needsTrace(base) ? (fallback as Document | undefined) : base;
    const workload = former ?? getAt(own, '/workload');
    const restored = workload === undefined ? removeAt(document, '/workload') : setAt(document, '/workload', workload);
    this.store.update({
      trace: { kind: 'none' },
      fit: { kind: 'none' },
      wanted_trace: null,
      link_trace: null,
      former_workload: null,
    });
    this.#edit('/workload', needsTrace(document) ? restored : document, 'dragging');
  }

  // --- Comparing ---------------------------------------------------------------------------------

  /** Runs the scenario under every value of a choice whenever it ran; "" ends that. */
  compareBy(pointer: string): void {
    this.#comparison.by(pointer, this.source);
  }

  // --- Ways out ----------------------------------------------------------------------------------

  useWayOut(change: AdvisedChange): void {
    const document = documentOf(change);
    if (document) this.#edit('', document, 'dragging');
  }

  /** More GPUs for the pool that the model does not fit on. */
  useTensorParallel(pool: number, gpus: number): void {
    this.setValue(`/cluster/pools/${pool}/tensor_parallel`, gpus, 'dragging');
  }

  // --- Requests one by one -----------------------------------------------------------------------

  /** Whether somebody looks at what each request did: that is then asked for after every run. */
  watchRequests(on: boolean): void {
    this.#watching = on;
    if (on) void this.#fetchRequests();
    else this.store.update({ requests: null });
  }

  async #fetchRequests(): Promise<void> {
    const { shown, requests } = this.store.state;
    if (
      !this.#watching ||
      shown?.completeness !== 'final' ||
      requests?.of === shown.outcome ||
      shown.outcome.report.arrived > mostRequestsDrawn
    )
      return;
    const columns = await this.#engine.requests(requestColumns);
    const now = this.store.state.shown;
    if (columns && now?.outcome === shown.outcome) this.store.update({ requests: { of: shown.outcome, columns } });
  }

  // --- Runs --------------------------------------------------------------------------------------

  runOrCancel(): void {
    if (this.store.state.run.kind === 'running') this.#engine.cancel();
    else this.#runNow();
  }

  cancel(): void {
    clearTimeout(this.#runTimer);
    this.#again = false;
    this.#engine.cancel();
  }

  #schedule(pace: 'typing' | 'dragging'): void {
    clearTimeout(this.#runTimer);
    const immediate = pace === 'dragging' && this.#lastEngineMs <= quickRunMs;
    if (immediate && this.#running) {
      const left = slowRunMs - (performance.now() - this.#running.since);
      this.#again = true;
      this.#runTimer = setTimeout(() => this.#runNow(), Math.max(0, left));
    } else if (immediate) {
      this.#runNow();
    } else {
      this.#runTimer = setTimeout(() => this.#runNow(), typingPauseMs);
    }
  }

  #stop(): void {
    clearTimeout(this.#runTimer);
    clearTimeout(this.#slowTimer);
    this.#again = false;
    if (this.#running) this.#engine.cancel();
    this.#running = null;
  }

  #runNow(): void {
    clearTimeout(this.#runTimer);
    clearTimeout(this.#slowTimer);
    this.#again = false;
    const { document, drafts, trace } = this.store.state;
    if (drafts.size > 0) return void this.#checkBesideDrafts();
    if (trace.kind === 'reading') return;
    const traced = needsTrace(document);
    if (traced && trace.kind !== 'loaded') {
      this.store.update({ shown: null, run: { kind: 'refused', reason: 'trace_missing', issues: [] } });
      void this.#ask('canonical', JSON.stringify(document)).then((canonical) => this.#accept(canonical));
      return;
    }
    this.#comparison.halt();
    this.reasons.halt();
    this.#running = { since: performance.now() };
    this.store.update({ run: { kind: 'running', progress: 0, slow: false } });
    this.#slowTimer = setTimeout(() => {
      const { run } = this.store.state;
      if (run.kind === 'running') this.store.update({ run: { ...run, slow: true } });
    }, graceMs);
    const eager = this.store.state.shown === null;
    this.#engine.run(JSON.stringify(document), traced, this.#listener(document), 'shown', eager);
  }

  #listener(document: Document): RunListener {
    const settle = () => {
      clearTimeout(this.#slowTimer);
      this.#running = null;
    };
    return {
      accepted: (canonical) => this.#accept(canonical),
      loading: () => this.store.update({ run: { kind: 'running', progress: 0, slow: true, loading: true } }),
      refused: (reason, issues, unfit) => {
        settle();
        // A value out of range is a slip on the way to the next one: what was shown stays, marked stale.
        const shown = reason === 'scenario' ? this.store.state.shown : null;
        this.store.update({ shown, run: { kind: 'refused', reason, issues, ...(unfit ? { unfit } : {}) } });
        if (this.#again) this.#runNow();
      },
      progress: (progress, partial) => {
        const { run, shown } = this.store.state;
        const slow = run.kind === 'running' && run.slow;
        const next = partial ? { outcome: partial, document, completeness: 'partial' as const, progress } : shown;
        this.store.update({ run: { kind: 'running', progress, slow }, shown: next });
      },
      finished: (last, progress, cancelled) => {
        settle();
        const { shown } = this.store.state;
        // Without a last one the partial one stands; what was shown before this run is no answer to it.
        const outcome: Outcome | undefined = last ?? (shown?.document === document ? shown.outcome : undefined);
        if (!outcome) {
          this.store.update({ run: { kind: 'idle' }, shown: null });
          return;
        }
        this.#lastEngineMs = outcome.engine_ms;
        const completeness = cancelled ? 'cancelled' : 'final';
        this.store.update({ run: { kind: 'idle' }, shown: { outcome, document, completeness, progress } });
        if (this.#again) return this.#runNow();
        if (!cancelled) this.#comparison.refresh(this.source);
        this.reasons.refresh();
        void this.#fetchRequests();
      },
      broken: (message) => {
        settle();
        this.store.update({ shown: null, run: { kind: 'broken', message } });
      },
    };
  }

  // --- Links and the rest ------------------------------------------------------------------------

  #accept(canonical: Canonical): void {
    if (canonical.text === '') return;
    this.store.update({ canonical: { text: canonical.text, id: canonical.id } });
    clearTimeout(this.#linkTimer);
    this.#linkTimer = setTimeout(() => void this.#writeLink(), linkPauseMs);
  }

  async #writeLink(): Promise<void> {
    const { canonical, document, wanted_trace: traceName, link_problem: problem } = this.store.state;
    if (!canonical || problem) return;
    const link = await encodeLink(canonical.text, needsTrace(document) ? traceName : null);
    // Packing takes a moment: another scenario may be on the page by now, and writes its own.
    if (canonical !== this.store.state.canonical || link === this.store.state.link) return;
    this.store.update({ link });
    this.#around.writeFragment(link);
  }

  /** The current link, now: copying must not wait for the debounce. */
  async currentLink(): Promise<string> {
    clearTimeout(this.#linkTimer);
    await this.#writeLink();
    return this.store.state.link;
  }

  setTheme(theme: ThemeChoice): void {
    this.#around.saveTheme(theme);
    this.store.update({ theme });
  }

  announce(announcement: string): void {
    this.store.update({ announcement });
  }
}

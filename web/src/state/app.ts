// What a person can do on the page, as methods; their effects on the state, the engine and the
// address bar. Views call these and nothing else.
//
import type { AdvisedChange, Canonical, Issue, OpenedFile, UsedPack } from 'servecast';
import type { Engine } from '../engine/client';
import type { Question, Recorded, RecordRequest } from '../engine/protocol';
import { decodeLink } from '../share/link';
import { Address, type Surroundings } from './address';
import type { CoefficientSets } from './coefficients';
import type { Comparison } from './compare';
import {
  equalJson,
  getAt,
  lastOf,
  needsTrace,
  parentOf,
  readDocument,
  removeAt,
  setAt,
  type Document,
  type Json,
} from './document';
import { stillThere, withoutItem } from './drafts';
import { assign, issueText, type FormSource } from './fields';
import { withNamedPresets, withPoolFields } from './pools';
import { Runs, type Pace } from './runs';
import { Store, type LinkProblem, type Shown, type ThemeChoice } from './store';
import type { Calibrations } from './calibrations';
import type { Doors } from './doors';
import type { Kept } from './kept';
import type { Traces } from './traces';
import type { Plans } from './plans';
import { momentOf, type Moment } from './moment';
import type { Undo } from './undo';
import { documentOf, Reasons } from './ways-out';

export type { Surroundings } from './address';

/** Bytes; the engine's own limit of a document. */
const longestScenario = 4 * 1024 * 1024;

export class App {
  readonly store: Store;
  readonly reasons: Reasons;
  #doors: Doors | undefined;
  #coefficients: CoefficientSets | null = null;
  readonly #engine: Engine;
  readonly #around: Surroundings;
  readonly #runs: Runs;
  readonly #address: Address;
  #undo: Undo | null = null;
  readonly #early: Parameters<Undo['note']>[] = [];
  /** Comes when a comparison is first opened. */
  #comparison: Comparison | null = null;
  #traces: Traces | null = null;
  #plans: Plans | null = null;
  #calibrations: Calibrations | null = null;
  /** Comes after the first verdict. */
  shelf: Kept | null = null;

  constructor(engine: Engine, around: Surroundings, store = new Store()) {
    this.#engine = engine;
    this.#around = around;
    this.store = store;
    this.reasons = new Reasons(engine, store, () => this.plans());
    this.#address = new Address(around, store, (canonical) => this.#readable(canonical));
    this.#runs = new Runs(engine, store, {
      accepted: (canonical, document) => this.#address.accept(canonical, document),
      kept: () => this.#address.keep(),
      begins: () => {
        this.#comparison?.halt();
        this.#plans?.halt();
        this.reasons.halt();
      },
      ended: (cancelled) => {
        this.reasons.refresh();
        if (!cancelled) this.#comparison?.refresh(this.source);
        this.#plans?.refresh();
      },
      blocked: () => void this.#checkBesideDrafts(),
      traceMissing: () => {
        const { document } = this.store.state;
        void this.#ask('canonical', JSON.stringify(document)).then((canonical) =>
          this.#address.accept(canonical, document),
        );
      },
    });
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
    this.#address.follow();
    this.#open(preset.document as Document, preset.id, null);
  }

  openDefault(): void {
    this.openPreset(this.store.state.catalog?.default_scenario ?? '');
  }

  /** The browser went back or forward, or somebody wrote another address. */
  async arrive(): Promise<void> {
    const moment = this.#address.arrive();
    if (moment) return this.#restore(moment, '');
    if (!this.#address.isKnown) await this.openLink();
  }

  /** The scenario in the address bar, or the default one when there is none. */
  async openLink(): Promise<void> {
    const fragment = this.#around.readFragment();
    this.#address.settle();
    const opening = this.#runs.opening();
    const link = await decodeLink(fragment);
    if (!this.#runs.isAwaited(opening)) return;
    switch (link.kind) {
      case 'none': {
        const { catalog } = this.store.state;
        const preset = catalog?.presets.scenarios.find((entry) => entry.id === catalog.default_scenario);
        if (preset) this.#open(preset.document as Document, preset.id, null);
        return;
      }
      case 'unreadable':
        this.#reject('link', link.reason, [], null);
        return;
      case 'packed':
        await this.#openText(
          opening,
          'link',
          await this.#ask('canonical', link.text),
          link.trace_name,
          (issues) => this.#nearest('document', link.text, issues, link.trace_name),
          link.pin,
        );
        return;
      case 'readable':
        await this.#openText(
          opening,
          'link',
          await this.#ask('parse', link.text),
          null,
          (issues) => this.#nearest('fragment', link.text, issues, null),
          link.pin,
        );
        return;
    }
  }

  /** Its code comes with the first link or file that is refused; without a connection there is no nearest one. */
  async #nearest(
    form: 'document' | 'fragment',
    text: string,
    issues: readonly Issue[],
    trace: string | null,
  ): Promise<LinkProblem['nearest']> {
    const ask = (question: Question, asked: string) => this.#ask(question, asked);
    const salvage = await import('./salvage').catch(() => null);
    if (form === 'document') return salvage?.nearestDocument(ask, text, issues, trace) ?? null;
    return salvage?.nearestFragment(ask, text, issues) ?? null;
  }

  async #ask(question: Question, text: string): Promise<Canonical> {
    try {
      return await this.#engine.ask(question, text);
    } catch (error) {
      return { text: '', id: '', issues: [{ path: '', message: `The engine stopped on this text: ${String(error)}` }] };
    }
  }

  /** A scenario as this page saves it is read by the engine that is there; what else a file is the whole one says. */
  async openFile(file: File, importIt: () => void): Promise<void> {
    const text = await file.slice(0, file.size <= longestScenario ? file.size : 65536).text();
    const document = readDocument(text);
    const own = document?.['schema'] !== undefined && document['workload'] !== undefined;
    // Without the whole engine whoever reads traces says why.
    const asked = own ? null : await this.#engine.whole('fileKind', [text, file.name]).catch(() => ({ kind: 'trace' }));
    const kind = (asked as OpenedFile | null)?.kind;
    if (kind === 'import') return importIt();
    if (kind === 'trace') return this.loadTrace(file);
    if (kind === 'coefficients') return (await this.coefficients()).open(file);
    if (kind === 'calibration') {
      const [issue] = await this.usePack(text);
      return this.announce(issue ? `${file.name}: ${issueText(issue)}` : 'The scenario carries the calibration.');
    }
    this.#address.follow();
    const opening = this.#runs.opening();
    await this.#openText(opening, 'file', await this.#ask('canonical', text), null, (issues) =>
      this.#nearest('document', text, issues, null),
    );
  }

  /** Unless it was given up meanwhile, or something else was opened. */
  async #openText(
    opening: number,
    from: LinkProblem['from'],
    canonical: Canonical,
    traceName: string | null,
    salvage: (issues: readonly Issue[]) => Promise<LinkProblem['nearest']>,
    pin = '',
  ): Promise<void> {
    if (!this.#runs.isAwaited(opening)) return;
    const document = readDocument(canonical.text);
    if (canonical.issues.length > 0 || !document) {
      const nearest = await salvage(canonical.issues);
      if (this.#runs.isAwaited(opening))
        this.#reject(from, `The ${from} holds a scenario that cannot be run as it is.`, canonical.issues, nearest);
      return;
    }
    this.#open(document, null, traceName, pin);
  }

  openNearest(): void {
    const nearest = this.store.state.link_problem?.nearest;
    if (!nearest) return;
    this.#address.follow();
    this.#open(nearest.document, null, nearest.trace_name);
  }

  #reject(from: LinkProblem['from'], message: string, issues: readonly Issue[], nearest: LinkProblem['nearest']): void {
    this.#runs.stop();
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

  #open(opened: Document, presetId: string | null, wantedTrace: string | null, pin = ''): void {
    const { catalog, document: before, former } = this.store.state;
    this.#note('');
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
      pin: pin === '' ? null : { text: pin, document },
      former_workload: null,
      former: Object.keys(before).length === 0 || equalJson(before, document) ? former : before,
      wanted_trace: wantedTrace,
      link_trace: wantedTrace,
      trace: keepsTrace ? this.store.state.trace : { kind: 'none' },
      fit: { kind: 'none' },
    });
    this.#runs.now();
  }

  // --- Undo --------------------------------------------------------------------------------------

  #note(key: string): void {
    const { state } = this.store;
    if (Object.keys(state.document).length === 0) return;
    const note: Parameters<Undo['note']> = [momentOf(state), key, performance.now()];
    if (this.#undo) this.#undo.note(...note);
    else this.#early.push(note);
    this.#tellUndo();
  }

  #tellUndo(): void {
    const { canUndo: undo = false, canRedo: redo = false } = this.#undo ?? {};
    this.store.update({ can_undo: undo, can_redo: redo });
  }

  /** From then on changes can be undone, earlier ones too: its code comes after the first verdict. */
  remember(undo: Undo): void {
    this.#undo = undo;
    for (const note of this.#early.splice(0)) undo.note(...note);
    this.#tellUndo();
  }

  undo(): void {
    const moment = this.#undo?.undo(momentOf(this.store.state));
    if (moment) this.#restore(moment, null);
  }

  redo(): void {
    const moment = this.#undo?.redo(momentOf(this.store.state));
    if (moment) this.#restore(moment, null);
  }

  /** `key`: it is a step of its own, to be undone; null: it is a step back or forth. */
  #restore(moment: Moment, key: string | null): void {
    if (key !== null) this.#note(key);
    this.store.update({ ...moment, drafts: new Map(), beside_drafts: [], link_problem: null });
    this.#tellUndo();
    if (this.store.state.shown) this.#runs.edited();
    else this.#runs.now();
  }

  /** The text area of the scenario panel. Empty when applied, else why not. */
  async applyText(text: string): Promise<readonly Issue[]> {
    const canonical = await this.#ask('canonical', text);
    const document = readDocument(text);
    if (canonical.issues.length > 0) return canonical.issues;
    if (!document) return [{ path: '', message: 'This is not a JSON object.' }];
    this.#address.follow();
    this.#open(document, null, null);
    return [];
  }

  // --- Editing -----------------------------------------------------------------------------------

  setValue(pointer: string, value: Json, pace: Pace = 'typing'): void {
    const source = this.source;
    if (source) this.#edit(pointer, assign(source, pointer, value), pace);
  }

  setDraft(pointer: string, text: string): void {
    const drafts = new Map(this.store.state.drafts).set(pointer, text);
    this.#runs.stop();
    this.store.update({ drafts });
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
    this.#edit(pointer, changed);
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
    this.store.update({ drafts: withoutItem(this.store.state.drafts, pointer) });
    this.#edit(pointer, removeAt(source.document, pointer));
  }

  /** A pool's own value, or its own GPU or engine by the place of its preset: the scenario's is in force again. */
  inheritValue(pointer: string): void {
    const source = this.source;
    if (source)
      this.#edit(pointer, removeAt(source.document, lastOf(pointer) === 'preset' ? parentOf(pointer) : pointer));
  }

  async addPool(): Promise<void> {
    const edits = await import('./pool-edits');
    if (this.source) this.setPools(edits.withAnotherPool(this.source));
  }

  async removePool(index: number): Promise<void> {
    const edits = await import('./pool-edits');
    const source = this.source;
    if (!source) return;
    this.store.update({ drafts: withoutItem(this.store.state.drafts, `/cluster/pools/${index}`) });
    this.setPools(edits.withoutPool(source, index));
  }

  /** The document with other pools, from state/pool-edits. */
  setPools(document: Document): void {
    this.#edit('', document);
  }

  #edit(pointer: string, document: Document, pace: Pace = 'dragging'): void {
    // What was changed and its answer are drawn once, together, when that is quick.
    if (pace === 'dragging' && this.store.state.shown) this.store.hold();
    this.#note(pointer);
    const drafts = stillThere(this.store.state.drafts, this.source, document, pointer);
    const known = this.store.state.catalog?.presets.scenarios.find((entry) =>
      equalJson(entry.document as Document, document),
    );
    this.store.update({ document, drafts, preset_id: known?.id ?? null, link_problem: null });
    this.#runs.edited(pace);
  }

  // --- Traces ------------------------------------------------------------------------------------

  async loadTrace(file: File): Promise<void> {
    await this.#withTraces((traces) => traces.load(file));
  }
  cancelTrace(): void {
    void this.#withTraces((traces) => traces.cancel());
  }
  async fitTrace(): Promise<void> {
    await this.#withTraces((traces) => traces.fit());
  }
  replayTrace(): void {
    void this.#withTraces((traces) => traces.replay());
  }
  removeTrace(): void {
    void this.#withTraces((traces) => traces.remove());
  }

  /** At once when the code is there. */
  #withTraces(act: (traces: Traces) => void | Promise<void>): void | Promise<void> {
    if (this.#traces) return act(this.#traces);
    return import('./traces').then(
      ({ Traces }) => {
        this.#traces ??= new Traces({
          engine: this.#engine,
          store: this.store,
          runs: this.#runs,
          ask: (question, text) => this.#ask(question, text),
          edit: (pointer, document) => this.#edit(pointer, document),
          openDefault: () => this.openDefault(),
        });
        return act(this.#traces);
      },
      () => {
        const message = 'What reads files could not be fetched: there is no connection.';
        this.store.update({ trace: { kind: 'failed', message }, shown: null });
      },
    );
  }

  /** Of step-time models; the code comes with the first look. */
  async coefficients(): Promise<CoefficientSets> {
    const { CoefficientSets } = await import('./coefficients');
    this.#coefficients ??= new CoefficientSets(this.#engine, this.store, (latency) =>
      this.setValue('/latency', latency, 'dragging'),
    );
    return this.#coefficients;
  }

  // --- Others' texts -----------------------------------------------------------------------------

  async doors(): Promise<Doors> {
    const part = await import('./doors');
    this.#doors ??= new part.Doors(this.#engine, this.store);
    return this.#doors;
  }

  /** What is run beside the page is not what is compared; until it is called with false. */
  tryOut(on: boolean): void {
    if (on) this.#comparison?.halt();
    else this.#comparison?.refresh(this.source);
  }

  async calibrations(): Promise<Calibrations> {
    const [part, { Calibrators }] = await Promise.all([import('./calibrations'), import('../engine/calibrators')]);
    const document = () => JSON.stringify(this.store.state.document);
    return (this.#calibrations ??= new part.Calibrations(new Calibrators(this.#engine.site), document));
  }

  /** A calibration's pack, put into the open scenario. */
  async usePack(pack: string): Promise<readonly Issue[]> {
    const words = [JSON.stringify(this.store.state.document), pack];
    const used = (await this.#engine.whole('usePack', words)) as UsedPack;
    return used.issues.length > 0 ? used.issues : this.applyText(used.document);
  }

  // --- Comparing ---------------------------------------------------------------------------------

  /** Runs the scenario under other values of a setting whenever it ran; "" ends that. */
  async compareBy(pointer: string): Promise<void> {
    if (pointer !== '' || this.#comparison) (await this.#compares())?.by(pointer, this.source);
  }

  /** Whether a GPU is compared by the fewest that keep the targets, instead of as many as there are. */
  async compareFewest(on: boolean): Promise<void> {
    (await this.#compares())?.byFewest(on, this.source);
  }

  /** Sets the scenario aside, to be compared with what it becomes. */
  async keepToCompare(name: string): Promise<void> {
    const { source } = this;
    if (source) (await this.#compares())?.keep(source.document, name, source);
  }

  /** What was open before this one: "what is different from mine", of who opens a link. */
  async compareWithFormer(): Promise<void> {
    const { source } = this;
    const { former } = this.store.state;
    if (source && former) (await this.#compares())?.keep(former, 'what was open before', source);
  }

  /** With the kept one (""), with a preset, or with nothing (null). */
  async compareWith(other: string | null): Promise<void> {
    (await this.#compares())?.with(other, this.source);
  }

  get kept(): string | null {
    return this.#comparison?.kept ?? null;
  }

  /** A row of the comparison, as a step that Back undoes. */
  useVariant(document: Document): void {
    this.#address.follow();
    this.#edit('', document);
  }

  /** Null without a connection: the view that wants it cannot be had either, and says so in its place. */
  async #compares(): Promise<Comparison | null> {
    const part = await import('./compare').catch(() => null);
    return (
      part &&
      (this.#comparison ??= new part.Comparison(
        this.#engine,
        this.store,
        () => this.plans(),
        (of) => this.reasons.bandOf(of),
      ))
    );
  }

  // --- Ways out ----------------------------------------------------------------------------------

  useWayOut(change: AdvisedChange): void {
    const document = documentOf(change);
    if (document) this.useVariant(document);
  }

  /** More GPUs for the pool that the model does not fit on. */
  useTensorParallel(pool: number, gpus: number): void {
    this.setValue(`/cluster/pools/${pool}/tensor_parallel`, gpus);
  }

  // --- Questions of capacity ---------------------------------------------------------------------

  async plans(): Promise<Plans> {
    const part = await import('./plans');
    return (this.#plans ??= new part.Plans(this.#engine, this.store, () => this.source));
  }

  // --- Requests one by one -----------------------------------------------------------------------

  /** Whether somebody looks at what each request did: that is then asked for after every run. */
  watchRequests(on: boolean): void {
    this.reasons.askRequests(on);
  }

  /** The shown run once more, kept step by step, from a moment on; see Engine.record. */
  record(
    shown: Shown,
    what: Pick<RecordRequest, 'from_s' | 'most_steps' | 'requests' | 'time_line'>,
    progress: (share: number) => void,
  ): Promise<Recorded> {
    const { document } = shown;
    const request = { ...what, scenario: JSON.stringify(document), with_trace: needsTrace(document) };
    return this.#engine.record(request, progress);
  }

  // --- Runs --------------------------------------------------------------------------------------

  runOrCancel(): void {
    this.#runs.runOrCancel();
  }

  cancel(): void {
    this.#runs.cancel();
  }

  // --- Links and the rest ------------------------------------------------------------------------

  /** The shortest way to say it to people that the engine reads as the same scenario. */
  async #readable(canonical: string): Promise<string | null> {
    const { document, catalog } = this.store.state;
    const presets = catalog?.presets.scenarios ?? [];
    const written = await import('./readable').catch(() => null);
    if (!written) return null;
    const known = presets.map(({ id, document: own }) => ({ id, document: (own ?? {}) as Document }));
    return written.readableLink(known, document, canonical, (link) => this.#ask('parse', link));
  }

  /** The current link, now: copying must not wait for the pause after which it is written. */
  currentLink(): Promise<string> {
    return this.#address.current();
  }

  /** To a document as it is, its title too; "": the engine cannot read it. */
  async linkTo(document: Document): Promise<string> {
    const { encodeLink } = await import('../share/encode');
    const { text } = await this.#ask('canonical', JSON.stringify(document));
    return text === '' ? '' : encodeLink(text, needsTrace(document) ? this.store.state.wanted_trace : null);
  }

  setTheme(theme: ThemeChoice): void {
    this.#around.saveTheme(theme);
    this.store.update({ theme });
  }

  announce(announcement: string): void {
    this.store.update({ announcement });
  }
}

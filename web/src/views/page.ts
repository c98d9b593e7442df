// The page: lays out the header, form, results and footer; keyboard, file drops and focus. Its own
// state is only what is open or being typed; everything else is the store's.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { Catalog } from 'servecast';
import { needPart } from '../lib/part';
import { isBeyond } from '../lib/targets';
import { cameTogether, inTurn, inTurnIf } from '../lib/turns';
import type { App } from '../state/app';
import { equalJson, titleOf } from '../state/document';
import { isAwaited, reportOf, tailBandsOf, type ThemeChoice } from '../state/store';
import { wantsWayOut } from '../state/ways-out';
import type { CalibrateElement } from './calibrate';
import type { ViewContext } from './context';
import { renderFooter } from './details';
import type { FieldElement } from './field';
import { renderFit } from './fit';
import type { AllSettingsElement } from './all-settings';
import { allSettings, formSummary, renderForm } from './form';
import type { KeysElement } from './keys';
import { countedOf, renderLoad, type About } from './load';
import type { Offer, PresetPicker } from './preset-picker';
import './preset-picker';
import type { ScenarioDraft } from './scenario-text';
import { hasPower, powerTile, renderTabs, tabInForce, tabOf, tabsOf, withPower, withTab, type TabId } from './tabs';
import { renderNumbers, renderStrip } from './tiles';
import { isStale, renderVerdict } from './verdict';

const oneTurnMs = 1000;
const firstCompared = '/hardware/preset';

export class PageElement extends PlainElement {
  static override properties = {
    app: { attribute: false },
    openGroups: { state: true },
    tab: { state: true },
    dropping: { state: true },
    wide: { state: true },
    prefersDark: { state: true },
    hasForm: { state: true },
  };
  declare app: App;
  declare openGroups: ReadonlySet<string>;
  /** The chosen view; a scenario may not have it. */
  declare tab: TabId;
  declare dropping: boolean;
  declare wide: boolean;
  declare prefersDark: boolean;
  /** The rail comes in a task of its own. */
  declare hasForm: boolean;

  readonly #wide = matchMedia('(min-width: 900px)');
  readonly #dark = matchMedia('(prefers-color-scheme: dark)');
  readonly #draft: ScenarioDraft = { text: null, issues: [], of: null };
  #isTogether = false;
  #turned = -Infinity;
  #comparedBy = firstCompared;
  #compares = false;

  constructor() {
    super();
    this.openGroups = new Set(hasPower(location.href) ? [powerTile] : []);
    this.tab = tabOf(location.href);
    this.dropping = false;
    this.wide = this.#wide.matches;
    this.prefersDark = this.#dark.matches;
    this.hasForm = false;
  }

  /** Until the first answer it is put together task by task, and the engine is asked before it is drawn. */
  protected override scheduleUpdate(): Promise<void> | undefined {
    return inTurnIf(this.app.store.state.shown === null, () => super.scheduleUpdate());
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.app.store.subscribe(() => this.requestUpdate());
    addEventListener('popstate', () => {
      this.tab = tabOf(location.href);
      this.#toggle(powerTile, hasPower(location.href));
    });
    this.#wide.addEventListener('change', () => (this.wide = this.#wide.matches));
    this.#dark.addEventListener('change', () => (this.prefersDark = this.#dark.matches));
    addEventListener('keydown', (event) => this.#key(event));
    addEventListener('dragover', (event) => this.#drag(event));
    addEventListener('dragleave', (event) => event.relatedTarget === null && (this.dropping = false));
    addEventListener('drop', (event) => this.#drop(event));
  }

  /** Comparing takes the engine's time: only while somebody looks. */
  protected override updated(): void {
    const { catalog, shown, compared } = this.app.store.state;
    if (catalog && !this.hasForm) void inTurn(() => (this.hasForm = true));
    // After the fields, which take their turns once this is done.
    else if (this.hasForm && !this.#isTogether) {
      this.#isTogether = true;
      void inTurn(() => inTurn(cameTogether));
    }
    const looks = shown !== null && tabInForce(this.tab, shown.outcome.report) === 'compare';
    if (looks === this.#compares) return;
    this.#compares = looks;
    if (compared) this.#comparedBy = compared.pointer;
    this.app.compareBy(looks ? this.#comparedBy : '');
  }

  get #view(): ViewContext {
    const { state } = this.app.store;
    const isDark = state.theme === 'auto' ? this.prefersDark : state.theme === 'dark';
    return {
      app: this.app,
      state,
      theme: isDark ? 'dark' : 'light',
      openGroups: this.openGroups,
      toggleGroup: (id, open) => this.#toggle(id, open),
      chooseTrace: () => this.querySelector<HTMLInputElement>('#trace-file')?.click(),
      focusField: (pointer) => void this.#focusField(pointer),
      compareBy: (pointer) => void this.#compareBy(pointer),
      share: () => void this.#share(),
    };
  }

  protected override render(): TemplateResult {
    const view = this.#view;
    document.documentElement.dataset['theme'] = view.theme;
    return html`
      <a class="skip" href="#verdict" @click=${(event: Event) => this.#skip(event)}>Skip to the verdict</a>
      ${this.#header(view)}
      ${
        this.tab === 'calibrate'
          ? html`<main class="aside">${this.#calibrate(view)}</main>`
          : html`<main class="layout">
        ${this.wide ? this.#rail(view) : nothing}
        <div class="results ${isStale(view.state) ? 'stale' : ''}">${this.#results(view)}</div>
      </main>`
      }
      <footer class="footer">${renderFooter(view)}</footer>
      <input id="trace-file" type="file" accept=".csv,.jsonl,.json,.gz,text/csv,application/json,application/jsonl,application/gzip" hidden @change=${(event: Event) => this.#picked(event)} />
      <div class="drop-overlay" ?hidden=${!this.dropping}><p>${this.tab === 'calibrate' ? 'Drop results of benchmarks to calibrate by them.' : 'Drop a trace, or a scenario.json, to simulate it.'}<br />It stays on this machine.</p></div>
      <div class="toast" role="status" id="announcement">${view.state.announcement}</div>
      <sc-keys></sc-keys>
    `;
  }

  /** Beside the answer, or between the verdict and the rest, folded, where there is no room beside it. */
  #rail(view: ViewContext): TemplateResult {
    return html`<details class="rail" .open=${this.wide || this.openGroups.has('rail')} @toggle=${(event: Event) => this.#toggleRail(event)}>
      <summary><span>${formSummary(view)}</span> <span class="button" aria-hidden="true">Change</span></summary>
      <form class="form" aria-label="Scenario" @submit=${(event: Event) => event.preventDefault()}>
        <h2 class="visually-hidden">Scenario</h2>
        ${this.hasForm ? renderForm(view) : html`<p class="quiet-text">Loading the fields…</p>`}
      </form>
    </details>`;
  }

  #header(view: ViewContext): TemplateResult {
    const { catalog, preset_id: presetId, document, base, theme } = view.state;
    const edited = !equalJson(document, base);
    const preset = catalog?.presets.scenarios.find(({ id }) => id === presetId);
    const title = titleOf(document, preset);
    const isRenamed = document['name'] !== base['name'];
    return html`<header class="header">
      <h1>Servecast</h1><p class="quiet-text claim">forecasts LLM serving</p>
      <sc-preset-picker
        .offers=${catalog ? this.#offers(catalog) : []}
        .current=${catalog ? (edited && !preset && !isRenamed ? `${title} (edited)` : title) : ''}
        .currentId=${presetId}
      ></sc-preset-picker>
      <div class="header-actions">
        <button class="quiet icon" type="button" aria-label="Undo" title="Undo (Ctrl Z)" ?disabled=${!view.state.can_undo} @click=${() => this.app.undo()}>↶</button>
        <button class="quiet icon" type="button" aria-label="Redo" title="Redo (Ctrl Shift Z)" ?disabled=${!view.state.can_redo} @click=${() => this.app.redo()}>↷</button>
        ${this.#shareButton(view, 'header-share')}
        <button class="quiet icon" type="button" aria-label="Keyboard help" title="Keys" @click=${() => void this.#keysHelp()}>?</button>
        <label class="theme"><span class="visually-hidden">Theme</span>
          <select .value=${theme} @change=${(event: Event) => this.app.setTheme((event.target as HTMLSelectElement).value as ThemeChoice)}>
            <option value="auto" ?selected=${theme === 'auto'}>${this.wide ? 'Auto theme' : 'Auto'}</option>
            <option value="light" ?selected=${theme === 'light'}>Light</option>
            <option value="dark" ?selected=${theme === 'dark'}>Dark</option>
          </select>
        </label>
      </div>
    </header>`;
  }

  #offers({ presets }: Catalog): readonly Offer[] {
    const put = (pointer: string) => (id: string) => this.app.setValue(pointer, id, 'dragging');
    return [
      { presets: presets.scenarios, note: '', choose: (id) => this.app.openPreset(id) },
      { presets: this.app.shelf?.presets ?? [], note: '', choose: (link) => (location.hash = link) },
      { presets: presets.hardware, note: 'GPU: put into the open scenario', choose: put('/hardware/preset') },
      { presets: presets.models, note: 'Model: put into the open scenario', choose: put('/model/preset') },
    ];
  }

  #shareButton(view: ViewContext, className: string): TemplateResult {
    return html`<div class="share ${className}">
      <button type="button" @click=${() => void this.#import()}>Import</button>
      <button type="button" aria-pressed=${this.tab === 'calibrate'} @click=${() => this.#turnTo('calibrate')}>Calibrate</button>
      <button type="button" class="primary" ?disabled=${view.state.link === ''} @click=${() => view.share()}>Share</button>
    </div>`;
  }

  /** In place of the forecast: its numbers are of other loads. */
  #calibrate(view: ViewContext): TemplateResult {
    needPart('sc-calibrate', () => import('./calibrate'));
    return html`<sc-calibrate id="verdict" tabindex="-1" .view=${view} .close=${() => this.#turnTo('why')}></sc-calibrate>`;
  }

  #results(view: ViewContext): TemplateResult {
    const { shown, run, link_problem: problem } = view.state;
    const report = problem || !shown ? null : reportOf(shown);
    const waitingFor =
      run.kind === 'running' ? 'Simulating…' : 'Empty: nothing was simulated. The reason stands above.';
    const stem =
      report?.finished === false ? 'servecast-partial' : `servecast-${report?.fingerprint.slice(0, 8) ?? ''}`;
    const about: About = { report, columns: problem ? null : (shown?.outcome.columns ?? null), waitingFor, stem };
    const tab = tabInForce(this.tab, report);
    return html`${tab === 'why' ? this.#forecast(view, about) : this.#strip(view)}
      ${renderTabs(report, tab, (id) => this.#turnTo(id))}
      <section class="view" id=${tab} role="tabpanel" aria-labelledby="tab-${tab}" tabindex="-1">${this.#panel(tab, view, about)}</section>`;
  }

  /** All of the answer: above the reasons. */
  #forecast(view: ViewContext, about: About): TemplateResult {
    const { report, columns, waitingFor, stem } = about;
    const nothingToDraw = !report && !isAwaited(view.state);
    needPart('sc-latency-chart', () => import('../charts/forecast'));
    return html`
      ${renderVerdict(view)} ${this.wide ? nothing : this.#rail(view)} ${this.#waysOut(view)} ${renderNumbers(view, this.#power(view))}
      ${nothingToDraw ? html`<p class="card no-charts">No charts: nothing was simulated. The reason stands above.</p>${this.#shareButton(view, 'phone-share')}` : nothing}
      <div class="charts" ?hidden=${nothingToDraw}>
        <section id="latency" tabindex="-1" aria-label="Latency">
          <sc-latency-chart .report=${report} .bands=${tailBandsOf(view.state)} .columns=${columns} .theme=${view.theme} .fileStem=${stem} .waitingFor=${waitingFor}></sc-latency-chart>
        </section>
        <section id="load" tabindex="-1" aria-label="Load over time">${renderLoad(view, about)}</section>
      </div>
      ${nothingToDraw ? nothing : this.#shareButton(view, 'phone-share')}
      ${renderFit(view)}`;
  }

  #power(view: ViewContext): TemplateResult | typeof nothing {
    if (!this.openGroups.has(powerTile)) return nothing;
    needPart('sc-power', () => import('./power'));
    return html`<sc-power .view=${view}></sc-power>`;
  }

  /** Above the other views; what stops a run is said in full. */
  #strip(view: ViewContext): TemplateResult {
    const { shown, run } = view.state;
    const isShort = shown && isAwaited(view.state) && (shown.completeness !== 'cancelled' || run.kind === 'running');
    return html`${
      isShort
        ? html`<div class="card strip">${renderVerdict(view)}${renderStrip(reportOf(shown))}</div>`
        : renderVerdict(view)
    }
    ${this.wide ? nothing : this.#rail(view)}`;
  }

  #panel(tab: TabId, view: ViewContext, about: About): TemplateResult {
    const { report, stem, waitingFor } = about;
    // The first answer comes before what is below it.
    if (!view.state.shown && tab !== 'document') return html`<p class="quiet-text">${waitingFor}</p>`;
    switch (tab) {
      case 'why':
        needPart('sc-why', () => import('./why'));
        return html`<sc-why .view=${view}></sc-why>`;
      case 'time':
        needPart('sc-over-time', () => import('./over-time'));
        return html`<sc-over-time .view=${view} .load=${renderLoad(view, about)} .counted=${countedOf(report)} .fileStem=${stem} .waitingFor=${waitingFor}></sc-over-time>`;
      case 'compare':
        needPart('sc-compare', () => import('./compare'));
        return html`<sc-compare .view=${view}></sc-compare>`;
      case 'plan':
        needPart('sc-plan', () => import('./plan'));
        return html`<sc-plan .view=${view}></sc-plan>`;
      case 'numbers':
        needPart('sc-numbers', () => import('./numbers'));
        return html`<sc-numbers .report=${report}></sc-numbers>`;
      case 'document':
        needPart('sc-scenario-text', () => import('./scenario-text'));
        return html`<sc-scenario-text .view=${view} .draft=${this.#draft}></sc-scenario-text>`;
      default:
        needPart('sc-cluster', () => import('./cluster'));
        return html`<sc-cluster .report=${report} .fileStem=${stem}></sc-cluster>`;
    }
  }

  #waysOut(view: ViewContext): TemplateResult | typeof nothing {
    const { ways_out: found, shown, link_problem: problem } = view.state;
    // Their place is kept from the first answer with a figure beyond its limit, so that nothing moves when they come.
    if (!shown || problem || !(shown.completeness === 'final' ? wantsWayOut(shown) : isBeyond(shown.outcome.report)))
      return nothing;
    if (found?.missed && found.of === shown.outcome) needPart('sc-ways-out', () => import('./ways-out'));
    return html`<sc-ways-out .view=${view}></sc-ways-out>`;
  }

  #toggle(id: string, open: boolean): void {
    if (this.openGroups.has(id) === open) return;
    const groups = new Set(this.openGroups);
    if (open) groups.add(id);
    else groups.delete(id);
    this.openGroups = groups;
    if (id === powerTile) history.replaceState(history.state, '', withPower(location.href, open));
  }

  #toggleRail(event: Event): void {
    if (event.target === event.currentTarget && !this.wide)
      this.#toggle('rail', (event.target as HTMLDetailsElement).open);
  }

  /** A step of the browser's history, but while one goes through the tabs. */
  #turnTo(id: TabId): void {
    if (id !== this.tab) {
      const address = withTab(location.href, id);
      if (performance.now() - this.#turned < oneTurnMs) history.replaceState(history.state, '', address);
      else history.pushState(null, '', address);
      this.#turned = performance.now();
      this.tab = id;
    }
    void this.updateComplete.then(() => this.querySelector<HTMLElement>('[role=tab][aria-selected=true]')?.focus());
  }

  #share(): Promise<void> {
    return import('./share').then(
      (part) => part.openShare(this.app),
      () => this.#unconnected(' The link is in the address bar.'),
    );
  }

  #import(file?: File): Promise<void> {
    return import('./import-box').then(
      (part) => part.openImport(this.app, file),
      () => this.#unconnected(''),
    );
  }

  #unconnected(more: string): void {
    this.app.announce(`There is no connection.${more}`);
    setTimeout(() => this.app.announce(''), 6000);
  }

  async #compareBy(pointer: string): Promise<void> {
    this.#comparedBy = pointer;
    if (this.#compares) this.app.compareBy(pointer);
    this.#turnTo('compare');
    await this.updateComplete;
    await Promise.race([customElements.whenDefined('sc-compare'), new Promise((resolve) => setTimeout(resolve, 2000))]);
    await new Promise((resolve) => requestAnimationFrame(resolve));
    this.querySelector('#compare')?.scrollIntoView({ block: 'start' });
    this.querySelector<HTMLElement>('#compare-by')?.focus({ preventScroll: true });
  }

  async #focusField(pointer: string): Promise<void> {
    this.#toggle('rail', true);
    const find = () => {
      const shown = [...this.querySelectorAll<FieldElement>('sc-field')].filter((field) => field.offsetParent !== null);
      // Of a whole section, its first field.
      return (
        shown.find((field) => field.dataset['pointer'] === pointer) ??
        shown.find((field) => field.dataset['pointer']?.startsWith(`${pointer}/`))
      );
    };
    await this.updateComplete;
    if (pointer.startsWith('/cluster/pools/') && this.querySelector('sc-pools:not(:defined)'))
      await Promise.race([customElements.whenDefined('sc-pools'), new Promise((resolve) => setTimeout(resolve, 2000))]);
    if (!find()) {
      this.#toggle(groupOf(pointer), true);
      (await this.#openAllSettings())?.showGroups?.();
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    const field = find();
    await field?.updateComplete;
    field?.scrollIntoView({ block: 'center' });
    field?.focusControl();
  }

  async #openAllSettings(): Promise<AllSettingsElement | null> {
    this.#toggle('rail', true);
    this.#toggle(allSettings, true);
    await this.updateComplete;
    await Promise.race([
      customElements.whenDefined('sc-all-settings'),
      new Promise((resolve) => setTimeout(resolve, 2000)),
    ]);
    const element = this.querySelector<AllSettingsElement>('sc-all-settings');
    await element?.updateComplete;
    return element;
  }

  async #keysHelp(): Promise<void> {
    await import('./keys');
    this.querySelector<KeysElement>('sc-keys')?.show();
  }

  #skip(event: Event): void {
    event.preventDefault();
    this.querySelector<HTMLElement>('#verdict')?.focus();
  }

  #key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const target = event.target instanceof HTMLElement ? event.target : null;
    if (target?.closest('input:not([type=range]):not([type=checkbox]), textarea, select, dialog[open]')) return;
    if (event.key === ' ') {
      // Space belongs to what has the focus when that is a control.
      if (target?.closest('button, summary, a, input, [role=region]')) return;
      event.preventDefault();
      this.app.runOrCancel();
    } else if (event.key === '/') {
      event.preventDefault();
      this.querySelector<PresetPicker>('sc-preset-picker')?.focusSearch();
    } else if (event.key === '?') {
      void this.#keysHelp();
    } else if (event.key === 'f') {
      event.preventDefault();
      void this.#openAllSettings().then((element) => element?.focusSearch?.());
    } else if (event.key === 's') {
      event.preventDefault();
      void this.#share();
    } else {
      const { shown } = this.app.store.state;
      const tab = tabsOf(shown?.outcome.report ?? null).find(({ key }) => key === event.key);
      if (tab) this.#turnTo(tab.id);
    }
  }

  #drag(event: DragEvent): void {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    this.dropping = true;
  }

  #drop(event: DragEvent): void {
    this.dropping = false;
    const files = [...(event.dataTransfer?.files ?? [])];
    const [file] = files;
    if (!file) return;
    event.preventDefault();
    const calibrate = this.querySelector<CalibrateElement>('sc-calibrate');
    if (calibrate) void calibrate.take?.(files);
    else this.#openFile(file);
  }

  #openFile(file: File): void {
    void this.app.openFile(file, () => void this.#import(file));
  }

  #picked(event: Event): void {
    const input = event.target as HTMLInputElement;
    const file = input.files?.[0];
    // So that picking the same, corrected file again is a change.
    input.value = '';
    if (file) this.#openFile(file);
  }
}

/** The collapsed part of the form that has the field. */
function groupOf(pointer: string): string {
  const [, pool, own] =
    /^\/cluster\/pools\/(\d+)\/(hardware|engine|scheduler|name|pipeline_parallel|attention_data_parallel)\b/.exec(
      pointer,
    ) ?? [];
  if (pool !== undefined) return `pool-${pool}-${own === 'engine' || own === 'scheduler' ? 'engine' : 'hardware'}`;
  const [, section = '', part = ''] = pointer.split('/');
  if (section === 'cluster' && part !== 'pools') return 'routing';
  return section === 'scheduler' ? 'engine' : section === 'engine' || section === 'workload' ? section : 'everything';
}

customElements.define('sc-page', PageElement);

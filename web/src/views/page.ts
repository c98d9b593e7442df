// The page: lays out the header, form, results and footer; keyboard, file drops and focus. Its own
// state is only what is open or being typed; everything else is the store's.
import { LitElement, html, nothing, type TemplateResult } from 'lit';
import type { Issue, Report } from 'servecast';
import '../charts/cdf-chart';
import '../charts/series-chart';
import type { Counted, Pane } from '../charts/series-chart';
import { needPart } from '../lib/part';
import type { App } from '../state/app';
import { equalJson } from '../state/document';
import { transfersUnderWay } from '../lib/requests';
import type { ThemeChoice } from '../state/store';
import type { ViewContext } from './context';
import {
  renderAllNumbers,
  renderCluster,
  renderFooter,
  renderNotModelled,
  renderPoolKv,
  renderPrefixCache,
  renderScenario,
} from './details';
import type { FieldElement } from './field';
import { renderFit } from './fit';
import { formSummary, renderForm } from './form';
import type { PresetPicker } from './preset-picker';
import './preset-picker';
import { renderNumbers } from './tiles';
import { isStale, renderVerdict } from './verdict';

const loadPanes: readonly Pane[] = [
  {
    unit: 'requests',
    series: [
      { column: 'series_running', label: 'Running', meaning: 'running' },
      { column: 'series_waiting', label: 'Waiting', meaning: 'waiting', dash: [5, 3], fill: 'hatched' },
    ],
  },
  {
    unit: '%',
    share: true,
    series: [{ column: 'series_kv_usage', label: 'KV memory in use', meaning: 'kv', fill: 'solid' }],
  },
];
const stepPanes: readonly Pane[] = [
  { unit: 'tokens', series: [{ column: 'series_batch_tokens', label: 'Tokens per step', meaning: 'batch' }] },
  {
    unit: 'tokens/s',
    series: [{ column: 'series_output_tokens_per_s', label: 'Output', meaning: 'output', dash: [7, 3] }],
  },
  {
    unit: 'count',
    none: 'none: no request was preempted',
    series: [{ column: 'series_preemptions', label: 'Preemptions', meaning: 'preempted', fill: 'solid' }],
  },
];

const transferPane: Pane = {
  unit: 'requests',
  series: [
    {
      column: 'series_kv_transfers',
      label: 'KV transfers under way, prefill to decode',
      meaning: 'transfer',
      fill: 'solid',
    },
  ],
};

const sections = ['verdict', 'latency', 'load', 'why', 'steps', 'compare', 'numbers', 'scenario', 'cluster'] as const;
const longLink = 2000;
const firstCompared = '/hardware/preset';

const keys: readonly (readonly [string, string])[] = [
  ['Space', 'Run, or cancel the run'],
  ['/', 'Search the scenario presets'],
  ['s', 'Copy the link'],
  [`1 – ${sections.length}`, 'Jump to a section, 9: pools and replicas'],
  ['← →', 'Move the cursor in a chart (Shift: ten times as far); ↑ ↓ between requests'],
  ['?', 'This help'],
];

export class PageElement extends LitElement {
  static override properties = {
    app: { attribute: false },
    openGroups: { state: true },
    scenarioText: { state: true },
    scenarioIssues: { state: true },
    dropping: { state: true },
    wide: { state: true },
    prefersDark: { state: true },
  };
  declare app: App;
  declare openGroups: ReadonlySet<string>;
  declare scenarioText: string | null;
  declare scenarioIssues: readonly Issue[];
  declare dropping: boolean;
  declare wide: boolean;
  declare prefersDark: boolean;

  readonly #wide = matchMedia('(min-width: 900px)');
  readonly #dark = matchMedia('(prefers-color-scheme: dark)');
  #lastDocument: unknown = null;
  #comparedBy = firstCompared;

  constructor() {
    super();
    this.openGroups = new Set();
    this.scenarioText = null;
    this.scenarioIssues = [];
    this.dropping = false;
    this.wide = this.#wide.matches;
    this.prefersDark = this.#dark.matches;
  }

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.app.store.subscribe(() => {
      const { document } = this.app.store.state;
      // A document that changed elsewhere replaces what was being typed.
      if (document !== this.#lastDocument) {
        this.#lastDocument = document;
        this.scenarioText = null;
        this.scenarioIssues = [];
      }
      this.requestUpdate();
    });
    this.#wide.addEventListener('change', () => (this.wide = this.#wide.matches));
    this.#dark.addEventListener('change', () => (this.prefersDark = this.#dark.matches));
    addEventListener('keydown', (event) => this.#key(event));
    addEventListener('dragover', (event) => this.#drag(event));
    addEventListener('dragleave', (event) => event.relatedTarget === null && (this.dropping = false));
    addEventListener('drop', (event) => this.#drop(event));
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
      copyLink: () => void this.#copyLink(),
    };
  }

  protected override render(): TemplateResult {
    const view = this.#view;
    document.documentElement.dataset['theme'] = view.theme;
    return html`
      <a class="skip" href="#verdict" @click=${(event: Event) => this.#skip(event)}>Skip to the verdict</a>
      ${this.#header(view)}
      <main class="layout">
        <details class="rail" .open=${this.wide || this.openGroups.has('rail')} @toggle=${(event: Event) => this.#toggleRail(event)}>
          <summary><b>Settings</b> <span>${formSummary(view)}</span></summary>
          <form class="form" aria-label="Scenario" @submit=${(event: Event) => event.preventDefault()}>
            <h2 class="visually-hidden">Scenario</h2>
            ${renderForm(view)}
          </form>
        </details>
        <div class="results ${isStale(view.state) ? 'stale' : ''}">${this.#results(view)}</div>
      </main>
      <footer class="footer">${renderFooter(view)}</footer>
      <input id="trace-file" type="file" accept=".csv,.jsonl,.json,.gz,text/csv,application/json,application/jsonl,application/gzip" hidden @change=${(event: Event) => this.#picked(event)} />
      <div class="drop-overlay" ?hidden=${!this.dropping}><p>Drop a trace, or a scenario.json, to simulate it.<br />It stays on this machine.</p></div>
      <div class="visually-hidden" role="status" id="announcement">${view.state.announcement}</div>
      ${this.#keysDialog()}
    `;
  }

  #header(view: ViewContext): TemplateResult {
    const { catalog, preset_id: presetId, document, base, theme } = view.state;
    const edited = !equalJson(document, base);
    const name = catalog?.presets.scenarios.find((preset) => preset.id === presetId)?.name;
    const ownName = typeof document['name'] === 'string' && document['name'] !== '' ? document['name'] : 'Own scenario';
    return html`<header class="header">
      <h1>Servecast</h1>
      <sc-preset-picker
        .presets=${catalog?.presets.scenarios ?? []}
        .current=${catalog ? (name ?? (edited ? `${ownName} (edited)` : ownName)) : ''}
        .currentId=${presetId}
        .choose=${(id: string) => this.app.openPreset(id)}
      ></sc-preset-picker>
      <div class="header-actions">
        ${this.#shareButton(view, 'header-share')}
        <button class="quiet icon" type="button" aria-label="Keyboard help" title="Keys" @click=${() => this.#keysHelp()}>?</button>
        <label class="theme"><span class="visually-hidden">Theme</span>
          <select .value=${theme} @change=${(event: Event) => this.app.setTheme((event.target as HTMLSelectElement).value as ThemeChoice)}>
            <option value="auto" ?selected=${theme === 'auto'}>Auto theme</option>
            <option value="light" ?selected=${theme === 'light'}>Light</option>
            <option value="dark" ?selected=${theme === 'dark'}>Dark</option>
          </select>
        </label>
      </div>
    </header>`;
  }

  #shareButton(view: ViewContext, className: string): TemplateResult {
    const { link } = view.state;
    const length = link === '' ? 0 : location.href.split('#')[0]!.length + 1 + link.length;
    return html`<div class="share ${className}">
      <button type="button" class="primary" ?disabled=${link === ''} @click=${() => view.copyLink()}>${view.state.announcement || 'Copy link'}</button>
      <span class="quiet-text">
        ${length === 0 ? nothing : html`${length.toLocaleString('en-US')} characters`}${length > longLink ? html`; long for a chat: send scenario.json instead` : nothing}
      </span>
    </div>`;
  }

  #results(view: ViewContext): TemplateResult {
    const { shown, run, link_problem: problem } = view.state;
    const report = problem ? null : (shown?.outcome.report ?? null);
    const columns = problem ? null : (shown?.outcome.columns ?? null);
    const waitingFor =
      run.kind === 'running' ? 'Simulating…' : 'Empty: nothing was simulated. The reason stands above.';
    const nothingToDraw =
      !report &&
      (problem !== null ||
        view.state.failure !== null ||
        view.state.trace.kind === 'failed' ||
        run.kind === 'refused' ||
        run.kind === 'broken' ||
        view.state.drafts.size > 0);
    const stem =
      report?.finished === false ? 'servecast-partial' : `servecast-${report?.fingerprint.slice(0, 8) ?? ''}`;
    return html`
      ${renderVerdict(view)} ${this.#waysOut(view)} ${renderNumbers(view)}
      ${nothingToDraw ? html`<p class="card no-charts">No charts: nothing was simulated. The reason stands above.</p>${this.#shareButton(view, 'phone-share')}` : nothing}
      <div class="charts" ?hidden=${nothingToDraw}>
        <section id="latency" tabindex="-1" aria-label="Latency">
          <sc-cdf-chart .report=${report} .columns=${columns} .theme=${view.theme} .fileStem=${stem} .waitingFor=${waitingFor}></sc-cdf-chart>
        </section>
        ${this.#shareButton(view, 'phone-share')}
        <section id="load" tabindex="-1" aria-label="Load over time">
          <sc-series-chart .subject=${'Load over time'} .note=${report ? html`${renderPoolKv(report)}${renderPrefixCache(report)}` : nothing} .panes=${loadPanes} .counted=${countedOf(report)} .columns=${columns} .theme=${view.theme} .fileStem=${stem} .waitingFor=${waitingFor}></sc-series-chart>
        </section>
      </div>
      ${renderFit(view)}
      ${this.#panel('why', 'Why: where the time of the slowest 1\u202f% goes', () => {
        needPart('sc-why', () => import('./why'));
        return html`<sc-why .view=${view}></sc-why>`;
      })}
      ${this.#panel('steps', `Timeline: requests, steps, output, preemptions${report?.kv_transfer ? ', KV transfers' : ''}`, () => this.#timeline(view, report, stem, waitingFor))}
      ${report?.replicas ? this.#panel('cluster', 'Pools and replicas: who did how much', () => renderCluster(report, stem)) : nothing}
      ${this.#panel('compare', 'Compare: the same requests under other settings', () => {
        needPart('sc-compare', () => import('./compare'));
        return html`<sc-compare .view=${view}></sc-compare>`;
      })}
      ${this.#panel('numbers', 'All numbers', () => renderAllNumbers(report, waitingFor))}
      ${this.#panel('scenario', 'Scenario', () =>
        renderScenario(view, {
          text: this.scenarioText,
          issues: this.scenarioIssues,
          edit: (text) => {
            this.scenarioText = text;
            this.scenarioIssues = [];
          },
          apply: () => void this.#applyScenario(),
        }),
      )}
      ${this.#panel('not-modelled', 'Not modelled, and notices', () => renderNotModelled(view))}
    `;
  }

  #waysOut(view: ViewContext): TemplateResult | typeof nothing {
    const { ways_out: found, shown, link_problem: problem } = view.state;
    if (!found || found.of !== shown?.outcome || problem) return nothing;
    needPart('sc-ways-out', () => import('./ways-out'));
    return html`<sc-ways-out .view=${view}></sc-ways-out>`;
  }

  #timeline(view: ViewContext, report: Report | null, stem: string, waitingFor: string): TemplateResult {
    const { shown, requests } = view.state;
    const columns = report && shown ? shown.outcome.columns : null;
    const ofRequests = requests && requests.of === shown?.outcome ? requests.columns : null;
    const transfers =
      columns && ofRequests && transfersUnderWay(columns['series_time_s'] ?? new Float64Array(0), ofRequests);
    needPart('sc-request-chart', () => import('../charts/request-chart'));
    return html`
      <sc-request-chart .report=${report} .columns=${ofRequests} .theme=${view.theme} .fileStem=${stem} .waitingFor=${columns ? 'Fetching what each request did…' : waitingFor}></sc-request-chart>
      <sc-series-chart .subject=${'Steps over time'} .panes=${transfers ? [transferPane, ...stepPanes] : stepPanes} .counted=${countedOf(report)} .columns=${transfers ? { ...columns, series_kv_transfers: transfers } : columns} .theme=${view.theme} .fileStem=${stem} .waitingFor=${waitingFor}></sc-series-chart>`;
  }

  #panel(id: string, title: string, body: () => TemplateResult): TemplateResult {
    const open = this.openGroups.has(id);
    return html`<details class="card panel" id=${id} .open=${open} @toggle=${(event: Event) => this.#toggle(id, (event.target as HTMLDetailsElement).open)}>
      <summary><h2>${title}</h2></summary>
      ${open ? html`<div class="panel-body">${body()}</div>` : nothing}
    </details>`;
  }

  #keysDialog(): TemplateResult {
    return html`<dialog id="keys" aria-labelledby="keys-title">
      <h2 id="keys-title">Keys</h2>
      <dl class="keys">${keys.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
      <form method="dialog"><button class="primary" @click=${(event: Event) => this.#closeKeys(event)}>Close</button></form>
    </dialog>`;
  }

  #toggle(id: string, open: boolean): void {
    if (this.openGroups.has(id) === open) return;
    const groups = new Set(this.openGroups);
    if (open) groups.add(id);
    else groups.delete(id);
    this.openGroups = groups;
    if (id === 'steps') this.app.watchRequests(open);
    if (id === 'compare') {
      this.#comparedBy = this.app.store.state.compared?.pointer ?? this.#comparedBy;
      this.app.compareBy(open ? this.#comparedBy : '');
    }
  }

  #toggleRail(event: Event): void {
    if (event.target === event.currentTarget && !this.wide)
      this.#toggle('rail', (event.target as HTMLDetailsElement).open);
  }

  async #applyScenario(): Promise<void> {
    if (this.scenarioText === null) return;
    this.scenarioIssues = await this.app.applyText(this.scenarioText);
  }

  async #copyLink(): Promise<void> {
    const link = await this.app.currentLink();
    if (link === '') return;
    try {
      await navigator.clipboard.writeText(`${location.href.split('#')[0] ?? ''}#${link}`);
      this.app.announce('Link copied');
    } catch {
      this.app.announce('See the address bar');
    }
    setTimeout(() => this.app.announce(''), 1500);
  }

  async #compareBy(pointer: string): Promise<void> {
    this.#comparedBy = pointer;
    this.#toggle('compare', true);
    this.app.compareBy(pointer);
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
      await this.updateComplete;
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    const field = find();
    await field?.updateComplete;
    field?.scrollIntoView({ block: 'center' });
    field?.focusControl();
  }

  #keysHelp(): void {
    this.querySelector<HTMLDialogElement>('#keys')?.showModal();
  }

  #closeKeys(event: Event): void {
    // The policy forbids form actions, a dialog's own included in some browsers: close by hand.
    event.preventDefault();
    this.querySelector<HTMLDialogElement>('#keys')?.close();
  }

  #skip(event: Event): void {
    event.preventDefault();
    this.#jump(0);
  }

  #jump(index: number): void {
    const id = sections[index];
    const target = id === undefined ? null : this.querySelector<HTMLElement>(`#${id}`);
    if (!id || !target) return;
    if (target instanceof HTMLDetailsElement) {
      this.#toggle(id, true);
      target.querySelector('summary')?.focus();
    } else {
      target.focus();
    }
    target.scrollIntoView({ block: 'start' });
  }

  #key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const target = event.target instanceof HTMLElement ? event.target : null;
    if (target?.closest('input:not([type=range]):not([type=checkbox]), textarea, select, dialog[open]')) return;
    const digit = /^[1-9]$/.test(event.key) ? Number(event.key) - 1 : -1;
    if (event.key === ' ') {
      // Space belongs to what has the focus when that is a control.
      if (target?.closest('button, summary, a, input, [role=region]')) return;
      event.preventDefault();
      this.app.runOrCancel();
    } else if (event.key === '/') {
      event.preventDefault();
      this.querySelector<PresetPicker>('sc-preset-picker')?.focusSearch();
    } else if (event.key === '?') {
      this.#keysHelp();
    } else if (event.key === 's') {
      void this.#copyLink();
    } else if (digit >= 0) {
      this.#jump(digit);
    }
  }

  #drag(event: DragEvent): void {
    if (!event.dataTransfer?.types.includes('Files')) return;
    event.preventDefault();
    this.dropping = true;
  }

  #drop(event: DragEvent): void {
    this.dropping = false;
    const file = event.dataTransfer?.files[0];
    if (!file) return;
    event.preventDefault();
    void this.app.openFile(file);
  }

  #picked(event: Event): void {
    const input = event.target as HTMLInputElement;
    const file = input.files?.[0];
    // So that picking the same, corrected file again is a change.
    input.value = '';
    if (file) void this.app.openFile(file);
  }
}

/** Null where nobody can say when the warm-up ended: of one run. */
function countedOf(report: Report | null): Counted | null {
  const certainty = report?.certainty;
  return certainty && certainty.until_s > certainty.from_s ? certainty : null;
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

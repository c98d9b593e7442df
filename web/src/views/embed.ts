// A forecast in a frame of somebody else's page: the verdict, the numbers, what they rest on, the fingerprint, and the way to
// the whole page. As much as the author chose: a line, a chart, knobs, or all of these.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { Report } from 'servecast';
import '../charts/forecast';
import { formatTime, sentence } from '../lib/format';
import { readOptions, withoutOptions, type EmbedOptions } from '../share/embed-options';
import { readPin } from '../share/pin';
import type { App } from '../state/app';
import { lastOf, parentOf } from '../state/document';
import { labelOf } from '../state/fields';
import { reportOf } from '../state/store';
import type { ViewContext } from './context';
import { renderLoad } from './load';
import { pinInWords } from './pin';
import { renderField } from './placed';
import { evidenceWords, rangeText, renderNumbers } from './tiles';
import { renderSign, renderVerdict } from './verdict';
import { firstRun } from '../lib/first-run';

type Target = Report['slo'][number];

const heading = html`<h1 class="visually-hidden">Servecast forecast</h1>`;

export class EmbedElement extends PlainElement {
  static override properties = {
    app: { attribute: false },
    options: { attribute: false },
    fragment: { attribute: false },
    failure: { attribute: false },
    asked: { attribute: false },
    dark: { state: true },
    openGroups: { state: true },
  };
  /** null: nobody wanted it to run yet. */
  declare app: App | null;
  declare options: EmbedOptions;
  /** As it came. */
  declare fragment: string;
  declare failure: string;
  /** It runs, or will in its turn. */
  declare asked: boolean;
  declare dark: boolean;
  declare openGroups: ReadonlySet<string>;
  /** The reader wants it to run. */
  wanted: () => void = () => undefined;
  #of: App | null = null;
  readonly #dark = matchMedia('(prefers-color-scheme: dark)');

  constructor() {
    super();
    this.app = null;
    this.options = readOptions('');
    this.fragment = '';
    this.failure = '';
    this.asked = false;
    this.dark = this.#dark.matches;
    this.openGroups = new Set();
    this.#dark.addEventListener('change', () => (this.dark = this.#dark.matches));
  }

  protected override willUpdate(): void {
    if (this.app === this.#of) return;
    this.#of = this.app;
    this.app?.store.subscribe(() => this.requestUpdate());
  }

  get #theme(): 'light' | 'dark' {
    const { theme } = this.options;
    return theme === 'auto' ? (this.dark ? 'dark' : 'light') : theme;
  }

  #view(app: App): ViewContext {
    return {
      app,
      state: app.store.state,
      theme: this.#theme,
      openGroups: this.openGroups,
      toggleGroup: (id, open) => {
        const groups = new Set(this.openGroups);
        if (open) groups.add(id);
        else groups.delete(id);
        this.openGroups = groups;
      },
      // A frame opens no files, and has neither a rail nor a comparison.
      chooseTrace: () => undefined,
      focusField: (pointer) =>
        this.querySelector<HTMLElement>(`[data-pointer="${CSS.escape(pointer)}"] input`)?.focus(),
      compareBy: () => undefined,
      share: () => undefined,
    };
  }

  protected override render(): TemplateResult {
    document.documentElement.dataset['theme'] = this.#theme;
    const { options } = this;
    const problems = options.problems.map((problem) => html`<p class="quiet-text embed-note">${problem}</p>`);
    if (!this.app || this.failure !== '')
      return html`<main class="embed-card" aria-label="Forecast">${heading}${this.#waiting()}${problems}</main>`;
    const view = this.#view(this.app);
    return html`<main class="embed-card is-${options.ui} ${options.lock ? 'is-locked' : ''}" aria-label="Forecast">${heading}${this.#answer(view)}${problems}</main>`;
  }

  /** Before anything runs: what the author got, if that is in the link. */
  #waiting(): TemplateResult {
    const pin = readPin(
      this.fragment
        .replace(/^#/, '')
        .split('&')
        .filter((part) => /^[vrf]=/.test(part))
        .join('&'),
    );
    const waits = this.asked || this.options.autorun !== '0';
    const words = waits
      ? 'A forecast of an LLM serving deployment, about to be simulated here.'
      : 'A forecast of an LLM serving deployment, simulated here when you run it.';
    return html`<div class="embed-line">
      ${pin ? renderSign(signOf(pin.state)) : nothing}
      <div class="embed-words">
        <p class="embed-sentence">${this.failure !== '' ? this.failure : pin ? html`<b>The author’s result:</b> ${pinInWords(pin, [])}` : words}</p>
      </div>
      ${this.failure === '' && !waits ? html`<button type="button" class="primary" @click=${() => this.wanted()}>Run</button>` : nothing}
      ${this.#open('')}
    </div>`;
  }

  #answer(view: ViewContext): TemplateResult {
    const { shown, run, link_problem: problem, failure } = view.state;
    const report = problem === null && failure === null && shown ? reportOf(shown) : null;
    if (run.kind === 'refused' && run.reason === 'trace_missing') return this.#withoutTrace(view);
    const { ui, metric } = this.options;
    const stops = run.kind === 'refused' || run.kind === 'broken' || view.state.drafts.size > 0;
    const top =
      !report || stops || ui === 'full'
        ? html`${renderVerdict(view)}<p class="embed-foot"><span>${report ? html`fingerprint <code id="fingerprint">${report.fingerprint}</code>` : nothing}</span>${this.#open(view.state.link)}</p>`
        : this.#line(view, report);
    const knobs = this.options.lock ? nothing : this.#knobs(view);
    if (!report || ui === 'compact') return top;
    const columns = shown?.outcome.columns ?? null;
    const stem = `servecast-${report.fingerprint.slice(0, 8)}`;
    const about = { report, columns, waitingFor: 'Simulating…', stem };
    const tail = () =>
      html`<sc-tail-chart .report=${report} .columns=${columns} .theme=${view.theme} .fileStem=${stem} .only=${metric} .waitingFor=${about.waitingFor}></sc-tail-chart>`;
    if (ui === 'chart') return html`${top}${knobs}${tail()}`;
    if (ui === 'what-if') return html`${top}${knobs}`;
    return html`${top}${knobs}${renderNumbers(view)}<div class="charts">${tail()}${renderLoad(view, about)}</div>`;
  }

  /** A frame opens no files. */
  #withoutTrace({ state }: ViewContext): TemplateResult {
    return html`<div class="embed-line" data-state="problem">${renderSign('problem')}
      <div class="embed-words"><p class="embed-sentence" role="alert">This scenario replays a trace, which no link carries: open it, and choose the file ${state.wanted_trace ?? ''} there.</p></div>
      ${this.#open(state.link)}
    </div>`;
  }

  /** Verdict and numbers in two lines. */
  #line(view: ViewContext, report: Report): TemplateResult {
    const { shown, run } = view.state;
    const state = report.finished ? report.verdict.state : 'partial';
    const slow = run.kind === 'running' && run.slow;
    return html`<div class="embed-line" data-state=${state} data-complete=${shown?.completeness ?? ''}>
      <h2 class="visually-hidden">Verdict</h2>${renderSign(state)}
      <div class="embed-words">
        <p class="embed-sentence sentence" role="status">${sentence(report.verdict.sentence)}</p>
        <p class="embed-numbers">${figures(report, this.options.metric)} <span class="mark ${report.evidence.class}">${evidenceWords[report.evidence.class]}</span>
          ${slow ? html`<progress max="1" .value=${run.progress} aria-label="Simulated so far"></progress><button type="button" class="quiet" @click=${() => view.app.cancel()}>Cancel</button>` : nothing}</p>
      </div>
      <p class="embed-aside">${this.#open(view.state.link)}<code id="fingerprint" title="Fingerprint: equal bits give equal ones">${report.finished ? report.fingerprint : ''}</code></p>
    </div>`;
  }

  #knobs(view: ViewContext): TemplateResult | typeof nothing {
    const { source } = view.app;
    const { knobs } = this.options;
    if (!source || knobs.length === 0) return nothing;
    return html`<form class="form embed-knobs" aria-label="Change" @submit=${(event: Event) => event.preventDefault()}>
      ${knobs.map((pointer) => renderField(view, source, pointer, { slider: true, ...nameOf(pointer) }))}
    </form>`;
  }

  /** The same scenario on the whole page, as it is now. */
  #open(link: string): TemplateResult {
    const to = link === '' ? withoutOptions(this.fragment) : link;
    return html`<a class="embed-open" href=${`${new URL('.', location.href).href}#${to}`} target="_blank" rel="noopener">Open<span class="visually-hidden"> in Servecast, in a new tab</span> ↗</a>`;
  }
}

/** "Preset" alone does not say of what. */
const nameOf = (pointer: string) => (lastOf(pointer) === 'preset' ? { label: labelOf(parentOf(pointer)) } : {});

/** A later engine may know verdicts that this one has no sign for. */
function signOf(state: string): Parameters<typeof renderSign>[0] {
  const known = ['meets', 'near', 'misses', 'overloaded', 'does_not_fit', 'not_judged', 'no_slo', 'empty'] as const;
  return known.find((each) => each === state) ?? 'partial';
}

function figures(report: Report, only: string | null): TemplateResult[] {
  const targets = report.slo.filter(
    ({ metric, limit_ms: limit }) => limit !== null && (only === null || metric === only),
  );
  if (targets.length > 0) return targets.slice(0, 2).map(figure);
  const metric = only === 'tpot' || only === 'itl' || only === 'e2e' ? only : 'ttft';
  const { p99 } = { ...report, itl_ms: firstRun(report).itl_ms }[`${metric}_ms`];
  return [html`<span>${metric.toUpperCase()} p99 <b>${formatTime(p99)}</b></span>`];
}

function figure(target: Target): TemplateResult {
  const { metric, percentile, value_ms: value, unbounded } = target;
  const name = `${metric.toUpperCase()} p${percentile}`;
  if (unbounded) return html`<span>${name} <b>no bound</b></span>`;
  const { low, high } = target.band ?? target;
  const range = value === null ? '' : rangeText(low, high, value);
  return html`<span>${name} <b>${formatTime(value)}</b>${range === '' ? '' : ` (${range})`}</span>`;
}

customElements.define('sc-embed', EmbedElement);

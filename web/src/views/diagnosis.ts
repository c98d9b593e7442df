// What was measured on a server beside its forecast, and what would explain it: run by a planning worker, in the dialog of
// importing. Loaded when it is asked for.
import { html, nothing, svg, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { DiagnosedFigure, Diagnosis, Issue, TriedCause } from 'servecast';
import type { DiagnoseTask } from '../engine/plan-protocol';
import { formatCount, formatInterval, formatNumber, formatTime, sentence } from '../lib/format';
import { addStyles } from '../lib/part';
import type { App } from '../state/app';
import { issueText } from '../state/fields';
import { axisOf, percentOf, shownCauses, type Axis } from '../state/diagnosis';
import styles from '../styles/diagnosis.css?inline';
import { renderSign } from './verdict';

const wideChart = 300;
const narrowChart = 80;

const signs = { agrees: 'meets', differs: 'misses', not_judged: 'not_judged', nothing_measured: 'empty' } as const;
const words = {
  agrees: 'Agrees',
  differs: 'Differs',
  not_judged: 'Not judged',
  nothing_measured: 'No figure',
} as const;

class DiagnosisElement extends PlainElement {
  static override properties = {
    app: { attribute: false },
    task: { attribute: false },
    use: { attribute: false },
    progress: { state: true },
    found: { state: true },
    issues: { state: true },
    wide: { state: true },
  };
  declare app: App;
  declare task: DiagnoseTask;
  /** A document, and what it is called. */
  declare use: (document: string, words: string) => void;
  declare progress: number;
  declare found: Diagnosis | null;
  declare issues: readonly Issue[];
  declare wide: boolean;
  readonly #wide = matchMedia('(min-width: 900px)');
  readonly #turned = () => (this.wide = this.#wide.matches);
  #asked: DiagnoseTask | null = null;
  #stop: () => void = () => undefined;

  constructor() {
    super();
    this.progress = 0;
    this.found = null;
    this.issues = [];
    this.wide = this.#wide.matches;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#wide.addEventListener('change', this.#turned);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#wide.removeEventListener('change', this.#turned);
    this.#stop();
  }

  protected override willUpdate(): void {
    if (this.#asked === this.task) return;
    this.#asked = this.task;
    Object.assign(this, { progress: 0, found: null, issues: [] });
    void this.#ask(this.task);
  }

  async #ask(task: DiagnoseTask): Promise<void> {
    this.#stop();
    const { planners } = await this.app.plans();
    if (this.#asked !== task || !this.isConnected) return;
    this.#stop = planners.diagnose(task, {
      progress: (share) => (this.progress = share),
      found: (found) => (this.found = found),
      failed: (issues) => (this.issues = issues),
    });
  }

  protected override render(): TemplateResult {
    const { found, issues } = this;
    if (issues.length > 0)
      return html`<p><strong>The server cannot be simulated as its text has it.</strong></p>
        <ul class="issues">${issues.map((issue) => html`<li>${issueText(issue)}</li>`)}</ul>`;
    if (!found)
      return html`<p role="status">Running the forecast, and what may explain the difference: ${Math.round(100 * this.progress)}\u202f%</p>
        <progress max="1" .value=${this.progress} aria-label="Diagnosis"></progress>`;
    return html`${this.#verdict(found)}${this.#figures(found)}${this.#causes(found)}`;
  }

  #verdict({ state, sentence: said, detail, checks }: Diagnosis): TemplateResult {
    return html`<section class="diagnosis-verdict" aria-label="Verdict" role="status">
      ${renderSign(signs[state], words[state])}
      <div>
        <p class="diagnosis-sentence"><strong>${sentence(said)}</strong></p>
        ${detail === '' ? nothing : html`<p>${sentence(detail)}</p>`}
        ${checks.map((check) => html`<p class=${check.differs ? 'check-differs' : 'quiet-text'}>${check.differs ? html`<b>Not as planned.</b> ` : nothing}${sentence(check.sentence)}</p>`)}
      </div>
    </section>`;
  }

  #figures({ figures, runs, requests_per_run: requests }: Diagnosis): TemplateResult | typeof nothing {
    if (figures.length === 0) return nothing;
    const axis = axisOf(figures, this.wide ? wideChart : narrowChart);
    return html`<section aria-labelledby="measured-title">
      <h3 id="measured-title">Measured beside forecast</h3>
      <table class="diagnosis-figures">
        <thead><tr><th scope="col">Figure</th><th scope="col">Measured</th>${this.wide ? html`<th scope="col">Forecast, 90\u202f% band</th>` : nothing}
          <th scope="col"><span class="visually-hidden">Measured against forecast</span>${ticks(axis)}</th><th scope="col"><span class="visually-hidden">Difference</span></th></tr></thead>
        <tbody>${figures.map((figure) => this.#figure(figure, axis))}</tbody>
      </table>
      <p class="quiet-text">Forecast: ${formatCount(runs)} ${runs === 1 ? 'run' : 'runs'} of ${formatCount(requests)} requests. The band is the forecast’s own error and the scatter of one run.</p>
    </section>`;
  }

  #figure(figure: DiagnosedFigure, axis: Axis): TemplateResult {
    const { words: name, measured, forecast, low, high, more, outside, counts } = figure;
    const band = low === null ? '' : high === null ? `${valueText(figure, low)} and more` : bandText(figure, low, high);
    const judged = !counts ? 'shown only' : outside === null ? '' : outside ? 'outside' : 'within';
    return html`<tr>
      <th scope="row">${name}</th>
      <td><b>${valueText(figure, measured)}</b></td>
      ${this.wide ? html`<td>${valueText(figure, forecast)} <span class="quiet-text">${band}</span></td>` : nothing}
      <td>${bar(figure, axis)}</td>
      <td class="diagnosis-more ${outside ? 'is-outside' : ''}"><b>${more === null ? '' : percentOf(more)}</b> ${judged}</td>
    </tr>`;
  }

  #causes(found: Diagnosis): TemplateResult | typeof nothing {
    const { causes, alone, distance } = found;
    if (alone.length === 0) return nothing;
    const shown = this.wide ? shownCauses(found.figures) : [];
    const rows = causes.map((cause, index) => this.#cause(found, cause, index, shown));
    const explain = alone.filter(({ explains }) => explains);
    const little = alone.filter(({ explains, issues }) => !explains && !issues);
    return html`<section aria-labelledby="causes-title">
      <h3 id="causes-title">Likely causes, each run, by what they leave unexplained</h3>
      <p class="quiet-text">Mean distance between forecast and measurement: ${levelOf(distance)}. Each row is run with all rows above it.</p>
      ${
        causes.length === 0
          ? html`<p>None of the ${alone.length} causes that were run takes a tenth of it away. <a href="?view=calibrate">Calibrate</a> by measurements of single steps.</p>`
          : html`<table class="diagnosis-causes">
        <thead><tr><th scope="col"><span class="visually-hidden">Rank</span></th><th scope="col">Cause, and what would prove it</th>${shown.map((at) => html`<th scope="col">${found.figures[at]?.words}</th>`)}${this.wide ? html`<th><span class="visually-hidden">Left</span></th>` : nothing}<th scope="col">Left of ${levelOf(distance)}</th><th scope="col"><span class="visually-hidden">Use</span></th></tr></thead>
        <tbody>${rows}
          ${shown.length > 0 ? html`<tr class="quiet-text"><td></td><td>as measured</td>${shown.map((at) => html`<td>${figureText(found.figures[at], found.figures[at]?.measured)}</td>`)}<td></td><td></td><td></td></tr>` : nothing}
        </tbody>
      </table>`
      }
      ${explain.length > 0 ? html`<p><b>Alone</b>, leaves: ${listText(explain)}.</p>` : nothing}
      ${little.length > 0 ? html`<p><b>Explain little</b>: ${listText(little)}.</p>` : nothing}
    </section>`;
  }

  #cause({ distance, figures }: Diagnosis, cause: TriedCause, index: number, shown: readonly number[]): TemplateResult {
    const { cause: name, proof, left = 0, document, figures: with_ } = cause;
    const length = distance > 0 ? Math.min(1, left / distance) * 100 : 0;
    const use = document === undefined ? undefined : () => this.use(document, `the server with ${name}`);
    return html`<tr>
      <td>${index + 1}</td>
      <th scope="row">${index > 0 ? 'and ' : ''}${name}<code>${proof}</code></th>
      ${shown.map((at) => html`<td>${figureText(figures[at], with_?.[at])}</td>`)}
      ${this.wide ? html`<td><svg class="left-bar" width="110" height="16" aria-hidden="true"><rect class="track" y="4" width="100" height="8"></rect><rect class="left" y="4" width=${length} height="8"></rect><path class="tick" d="M100 0v16"></path></svg></td>` : nothing}
      <td><b>${levelOf(left)}</b></td>
      <td><button type="button" class="small" aria-label="Use the server with ${name}" @click=${use}>Use</button></td>
    </tr>`;
  }
}

const levelOf = (share: number): string =>
  `${formatNumber(share * 100, share < 0.0995 ? 2 : share < 0.995 ? 2 : 3)}\u202f%`;

function valueText({ unit }: DiagnosedFigure, value: number | null): string {
  return unit === 'ms' ? formatTime(value) : formatNumber(value);
}

function bandText({ unit, forecast }: DiagnosedFigure, low: number, high: number): string {
  if (unit === 'ms') return formatInterval(low, high, forecast ?? low);
  return `${formatNumber(low)} to ${formatNumber(high)}`;
}

const figureText = (figure: DiagnosedFigure | undefined, value: number | null | undefined): string =>
  figure && value !== null && value !== undefined ? valueText(figure, value) : '–';

const listText = (causes: readonly TriedCause[]): string =>
  causes.map(({ cause, left = 0 }) => `${cause} (${levelOf(left)})`).join(', ');

function ticks({ width, at, labels }: Axis): TemplateResult {
  return html`<svg width=${width} height="20" aria-hidden="true">${labels.map(({ ratio, text }) => svg`<text x=${at(ratio)} y="14" text-anchor="middle" class=${ratio === 1 ? 'strong' : ''}>${text}</text>`)}</svg>`;
}

/** Hue only outside of the band. */
function bar(
  { measured, forecast, low, high, outside }: DiagnosedFigure,
  { width, at }: Axis,
): TemplateResult | string {
  if (forecast === null) return '';
  const [from, to, value] = [
    low === null ? null : at(low / forecast),
    high === null ? width : at(high / forecast),
    at(measured / forecast),
  ];
  return html`<svg class="figure-bar ${outside ? 'is-outside' : ''}" width=${width} height="24" aria-hidden="true">
    ${from === null ? nothing : svg`<rect class="band" x=${from} y="4" width=${Math.max(0, to - from)} height="16"></rect>`}
    <path class="middle" d="M${at(1)} 0v24"></path><path class="line" d="M${at(1)} 12H${value}"></path><circle class="dot" cx=${value} cy="12" r="5"></circle>
  </svg>`;
}

addStyles(styles);
customElements.define('sc-diagnosis', DiagnosisElement);

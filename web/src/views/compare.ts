// The comparison panel: one choice, a row for each of its values, all on the same requests. Loaded when it
// is opened.
import { LitElement, html, nothing, type TemplateResult } from 'lit';
import type { Report } from 'servecast';
import { formatCount, formatNumber, formatTime, sentence } from '../lib/format';
import { segmentsOf } from '../state/document';
import { comparablePointers, type Variant } from '../state/compare';
import { labelOf } from '../state/fields';
import { poolList } from '../state/pools';
import { addStyles } from '../lib/part';
import styles from '../styles/compare.css?inline';
import type { ViewContext } from './context';
import { evidenceWords } from './tiles';
import { wordOf } from './verdict';

interface Figure {
  readonly head: string;
  of(report: Report): number | null;
  format(value: number | null): string;
}

/** Of all runs where it has a target, as the tiles say it; else of the first. */
function p99(report: Report, metric: 'ttft' | 'tpot' | 'e2e'): number | null {
  const target = report.slo.find((slo) => slo.metric === metric && slo.percentile === 99 && slo.class === undefined);
  if (target) return target.value_ms;
  return { ttft: report.ttft_ms, tpot: report.tpot_ms, e2e: report.e2e_ms }[metric].p99;
}

const time = (head: string, of: Figure['of']): Figure => ({ head, of, format: formatTime });
const figures: readonly Figure[] = [
  time('TTFT p50', (report) => report.ttft_ms.p50),
  time('TTFT p99', (report) => p99(report, 'ttft')),
  time('TPOT p50', (report) => report.tpot_ms.p50),
  time('TPOT p99', (report) => p99(report, 'tpot')),
  time('E2E p99', (report) => p99(report, 'e2e')),
  {
    head: 'Goodput, requests/s',
    of: (report) => (report.slo.length > 0 ? report.goodput_per_s : null),
    format: (value) => formatNumber(value),
  },
  { head: 'Output tokens/s', of: (report) => report.output_tokens_per_s, format: (value) => formatNumber(value) },
  { head: 'Completed', of: (report) => report.completed, format: formatCount },
  { head: 'Preemptions', of: (report) => report.preemptions, format: formatCount },
];

const labels: Readonly<Record<string, string>> = {
  '/hardware/preset': 'GPU',
  [poolList]: 'Whole requests, or prefill and decode apart',
  '/model/preset': 'Model',
  '/engine/preset': 'Engine version',
  '/engine/compat': 'Rules of another simulator',
  '/latency/backend': 'Step-time model',
};

export class CompareElement extends LitElement {
  static override properties = { view: { attribute: false } };
  declare view: ViewContext;

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  protected override render(): TemplateResult {
    return renderCompare(this.view);
  }
}

function renderCompare(view: ViewContext): TemplateResult {
  const { app, state } = view;
  const { compared } = state;
  const source = app.source;
  if (!source || !compared) return html`<p class="quiet-text">Empty: nothing was simulated.</p>`;
  const pointers = comparablePointers(source);
  const label = (pointer: string) =>
    labels[pointer] ??
    gpuOfPool(pointer) ??
    `${labelOf(`/${segmentsOf(pointer)[0] ?? ''}`)}: ${labelOf(pointer).toLowerCase()}`;
  const current = compared.variants.find(({ isCurrent }) => isCurrent);
  const pending =
    state.run.kind === 'running'
      ? 'Waits for the scenario’s own run.'
      : state.shown?.completeness === 'final'
        ? 'Simulating…'
        : 'Not simulated.';
  const isOld = current !== undefined && current.document !== state.document;
  return html`
    <p class="compare-by">
      <label>Compare every
        <select id="compare-by" @change=${(event: Event) => app.compareBy((event.target as HTMLSelectElement).value)}>
          ${pointers.includes(compared.pointer) ? nothing : html`<option value="" selected>choose</option>`}
          ${pointers.map((pointer) => html`<option value=${pointer} ?selected=${pointer === compared.pointer}>${label(pointer)}</option>`)}
        </select>
      </label>
      <span class="quiet-text">on the same requests; all else as it is${isOld ? ' in the last scenario that ran' : ''}</span>
    </p>
    ${
      compared.variants.length === 0
        ? html`<p class="quiet-text">Empty: this scenario has no such choice.</p>`
        : html`<div class="table-scroll" tabindex="0" role="region" aria-label="Comparison">
      <table id="compared">
        <caption>${label(compared.pointer)}; under each figure, how far it is from the first row</caption>
        <thead><tr><th scope="col">Value</th><th scope="col">Verdict</th>${figures.map(({ head }) => html`<th scope="col">${head}</th>`)}</tr></thead>
        <tbody>${compared.variants.map((variant) => row(variant, current?.report ?? null, pending))}</tbody>
      </table>
    </div>`
    }
    ${compared.variants.map(({ name, report }) => (report?.departures ? departures(name, report.departures) : nothing))}
  `;
}

function gpuOfPool(pointer: string): string | null {
  const [, index] = /^\/cluster\/pools\/(\d+)\/hardware\/preset$/.exec(pointer) ?? [];
  return index === undefined ? null : `GPU of pool ${Number(index) + 1}`;
}

function row(variant: Variant, base: Report | null, pending: string): TemplateResult {
  const { name, isCurrent, report, issues } = variant;
  return html`<tr>
    <th scope="row">${name}${isCurrent ? html`<br /><small>as it is</small>` : nothing}</th>
    ${
      report
        ? html`<td>${wordOf(report)}${badEvidence(report)}</td>${figures.map((figure) => cell(figure, report, isCurrent ? null : base))}`
        : html`<td class="why" colspan=${figures.length + 1}>${issues.length === 0 ? pending : issues.map(({ message }) => sentence(message)).join(' ')}</td>`
    }
  </tr>`;
}

/** Whoever compares must know which figures are known to be far off. */
function badEvidence({ evidence }: Report): TemplateResult | typeof nothing {
  if (evidence.class !== 'known_bad') return nothing;
  return html`<br /><span class="mark known_bad" title=${evidence.sentence}>${evidenceWords.known_bad}</span>`;
}

function cell({ of, format }: Figure, report: Report, base: Report | null): TemplateResult {
  const value = of(report);
  const before = base && of(base);
  const change = value === null || before === null || before === 0 ? null : value / before - 1;
  return html`<td>${format(value)}${change === null ? nothing : html`<br /><small>${changeText(change)}</small>`}</td>`;
}

function changeText(change: number): string {
  if (change === 0) return 'the same';
  if (change >= 9) return `× ${formatNumber(change + 1, 2)}`;
  const percent = Math.abs(change * 100);
  return `${change > 0 ? '+' : '−'}${percent < 0.05 ? '0.0' : percent.toFixed(percent < 10 ? 1 : 0)}\u202f%`;
}

function departures(name: string, rules: readonly string[]): TemplateResult {
  return html`<h3>Where ${name} differs from the engine’s own rules</h3>
    <ul class="plain-list">${rules.map((rule) => html`<li>${sentence(rule)}</li>`)}</ul>`;
}

addStyles(styles);
customElements.define('sc-compare', CompareElement);

// What tables of changes that were run share: their targets' columns, a row's figures, and what is folded below.
import { html, nothing, svg, type TemplateResult } from 'lit';
import type { Advice, AdvisedTarget, EvidenceClass, Report } from 'servecast';
import {
  countOf,
  formatGivenTime,
  formatInterval,
  formatNumber,
  formatPercent,
  formatTime,
  sentence,
} from '../lib/format';
import { addStyles } from '../lib/part';
import { costChange, type Ran } from '../lib/advice';
import styles from '../styles/ways-out.css?inline';
import type { WaysOut } from '../state/store';
import type { Reasons } from '../state/ways-out';
import { evidenceWords } from './tiles';

type Figures = Partial<Pick<AdvisedTarget, 'value_ms' | 'share' | 'low' | 'high'>>;

/** A scenario that was run in place of the shown one. */
export interface Way {
  readonly words: string;
  readonly note: string;
  readonly meets: boolean;
  readonly gpus: number;
  readonly cost_per_hour: number | null;
  /** As the report's; null: they did not come with what found it. */
  readonly slo: readonly Figures[] | null;
  readonly evidence: EvidenceClass | null;
  use(): void;
}

/** The two that are nearest to their limits, or furthest beyond. */
export function shownTargets(report: Report): readonly number[] {
  return report.slo
    .map(({ margin }, index) => ({ margin: margin ?? -Infinity, index }))
    .sort((a, b) => a.margin - b.margin)
    .slice(0, 2)
    .map(({ index }) => index);
}

export function headOf(report: Report, index: number): string {
  const target = report.slo[index];
  if (!target) return '';
  const whose = target.class === undefined ? '' : ` of ${target.class}`;
  if (target.limit_ms === null) return `within all limits${whose}, at least ${formatPercent(target.limit_share)}`;
  return `${target.metric.toUpperCase()} p${target.percentile}${whose}, at most ${formatGivenTime(target.limit_ms)}`;
}

function figures(of: Figures | undefined): TemplateResult {
  const { value_ms: value, share, low = null, high = null } = of ?? {};
  const between = (text: string) => (low === null || high === null ? nothing : html` <small>(${text})</small>`);
  if (share !== null && share !== undefined)
    return html`<b>${formatPercent(share)}</b>${low === null || high === null ? nothing : between(`${formatNumber(low * 100)} to ${formatNumber(high * 100)}`)}`;
  if (value === null || value === undefined) return html`no bound`;
  return html`<b>${formatTime(value)}</b>${low === null || high === null ? nothing : between(formatInterval(low, high, value))}`;
}

/** `verb`: of the button that takes it over; `more`: a cell behind the targets. */
export function wayRow(
  way: Way,
  base: Parameters<typeof costChange>[1],
  columns: readonly number[],
  verb: string,
  more: TemplateResult | typeof nothing = nothing,
): TemplateResult {
  return html`<tr>
    <td>${icon(way.meets)}</td>
    <th scope="row">${way.words}${way.note === '' ? nothing : html` <small>${way.note}</small>`}</th>
    ${columns.map((index) => html`<td>${way.slo ? figures(way.slo[index]) : '–'}</td>`)}${more}
    <td>${costChange(way, base)}</td>
    <td>${way.evidence ? html`<span class="mark ${way.evidence}">${evidenceWords[way.evidence]}</span>` : '–'}</td>
    <td><button type="button" aria-label=${`${verb} ${way.words}`} @click=${() => way.use()}>${verb}</button></td>
  </tr>`;
}

export function table(label: string, columns: readonly string[], rows: unknown): TemplateResult {
  return html`<div class="table-scroll" tabindex="0" role="region" aria-label=${label}>
    <table>
      <thead><tr>
        <th scope="col"><span class="visually-hidden">Verdict</span></th>
        <th scope="col">Change</th>
        ${columns.map((head) => html`<th scope="col">${head}</th>`)}
        <th scope="col">cost</th>
        <th scope="col">evidence</th>
        <th scope="col"><span class="visually-hidden">Take it over</span></th>
      </tr></thead>
      <tbody>${rows}</tbody>
    </table>
  </div>`;
}

/** Each with its figure, for who asks. `title`: of so many. */
export function folded(
  title: string,
  changes: readonly Ran[],
  report: Report,
  overloaded: boolean,
): TemplateResult | typeof nothing {
  if (changes.length === 0) return nothing;
  const [first] = shownTargets(report);
  const figure = (change: Ran) => {
    if (overloaded) return `serves ${formatNumber(change.served_per_s)} req/s`;
    if (change.overloaded) return 'overloaded';
    const { value_ms: value, share } = (first === undefined ? undefined : change.slo[first]) ?? {};
    return typeof share === 'number' ? formatPercent(share) : formatTime(value);
  };
  return html`<details class="ways-others"><summary>${countOf(changes.length, 'change')} ${title}</summary>
    <p>${changes.map((change) => `${change.change} (${figure(change)})`).join(', ')}</p></details>`;
}

export function icon(good: boolean): TemplateResult {
  return html`<svg class="way-icon ${good ? 'is-meets' : 'is-misses'}" viewBox="0 0 16 16" width="16" height="16" role="img" aria-label=${good ? 'Meets' : 'Misses'}>
    ${svg`<circle cx="8" cy="8" r="7" /><path d=${good ? 'M5 8.200l2.200 2.200L11 6' : 'M5.500 5.500l5 5M10.500 5.500l-5 5'} />`}
  </svg>`;
}

addStyles(styles);

/** How far the trying of changes is: `offered` where it would take long, under way, failed, or its rows. */
export function tried(
  found: WaysOut,
  reasons: Pick<Reasons, 'look' | 'cancel'>,
  offered: boolean,
  rows: (advice: Advice) => TemplateResult,
): TemplateResult {
  switch (found.kind) {
    case 'offered':
      return offered
        ? html`<p>This run took long; about a dozen changes would take as many times as long.
          <button type="button" @click=${() => reasons.look()}>Try them</button></p>`
        : html`<p class="quiet-text">Tried once the answer is certain…</p>`;
    case 'trying':
      return html`<p class="ways-progress"><progress max="1" .value=${found.progress} aria-label="Tried so far"></progress>
        <span>Trying about a dozen changes</span>
        <button type="button" @click=${() => reasons.cancel()}>Stop</button></p>`;
    case 'failed':
      return html`<p>${sentence(found.message)}</p>`;
    default:
      return found.advice ? rows(found.advice) : html``;
  }
}

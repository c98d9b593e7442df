// What tables of changes that were run share, on the page and in the report: which changes have a row, their targets' columns,
// a row's figures, and what is folded below.
import { html, nothing, svg, type TemplateResult } from 'lit';
import type { Advice, AdvisedTarget, EvidenceClass, Report } from 'servecast';
import {
  countOf,
  formatGiven,
  formatGivenTime,
  formatInterval,
  formatNumber,
  formatPercent,
  formatTime,
  levelText,
  sentence,
} from '../lib/format';
import { addStyles } from '../lib/part';
import { costChange, improving, sorted, type Ran } from '../lib/advice';
import type { Document } from '../state/document';
import type { Headroom } from '../state/headroom';
import { rateOf } from '../state/rate';
import type { FoundDesign, WaysOut } from '../state/store';
import styles from '../styles/ways-out.css?inline';
import type { Reasons } from '../state/ways-out';
import { evidenceWords } from './tiles';

type Figures = Partial<Pick<AdvisedTarget, 'value_ms' | 'share' | 'low' | 'high' | 'band'>>;

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
  /** That all targets are met; null: not known. */
  readonly probability: number | null;
  use(): void;
}

/** What takes a way over. */
export interface Taking {
  change(change: Ran): void;
  design(document: Document): void;
  rate(rate: number): void;
}

/** A GPU without a price stands behind all that have one. */
const unpriced = 1e6;

const changed = (change: Ran, note: string, take: Taking): Way => ({
  ...change,
  words: change.change,
  note,
  evidence: change.evidence ?? 'untested',
  probability: change.probability ?? null,
  use: () => take.change(change),
});

/** Of missed targets: what meets them, cheapest first, then a lower load; and what does not. */
export function waysOf(
  { designs }: Pick<WaysOut, 'designs'>,
  advice: Advice,
  report: Report,
  held: Headroom | null,
  take: Taking,
): { readonly ways: readonly Way[]; readonly near: readonly Way[]; readonly others: readonly Ran[] } {
  const { enough, nearer } = sorted(advice);
  const cost = ({ cost_per_hour: price, gpus }: Way) => price ?? gpus * unpriced;
  const meets = [
    ...enough.map((change) => changed(change, '', take)),
    ...designs.map((design) => designed(design, take)),
  ].sort((a, b) => cost(a) - cost(b));
  const ways = [...meets, ...lighter(advice, report, held, take)];
  return {
    ways,
    near: ways.length > 0 ? [] : nearer.map((change) => changed(change, 'not enough', take)),
    others: advice.changes.filter((change): change is Ran => change.effect !== undefined && !change.meets),
  };
}

/** Of met targets: what gives them more room, by cost; and what gives less. */
export function gainsOf(
  advice: Advice,
  take: Pick<Taking, 'change'>,
): { readonly helping: readonly Ran[]; readonly ways: readonly Way[]; readonly others: readonly Ran[] } {
  const { helping, others } = improving(advice);
  const all: Taking = { design: () => undefined, rate: () => undefined, ...take };
  return { helping, ways: helping.map((change) => changed(change, '', all)), others };
}

function designed({ document, words, gpus, cost_per_hour, slo, sure }: FoundDesign, take: Taking): Way {
  const note = sure ? 'the fewest, 90\u202f% sure' : 'the fewest, by sampling alone';
  const use = () => take.design(document);
  return { words, note, meets: true, gpus, cost_per_hour, slo, evidence: null, probability: null, use };
}

/** What these GPUs hold of the load, as the verdict says; none where no one number is the load. */
function lighter({ base }: Advice, report: Report, held: Headroom | null, take: Taking): readonly Way[] {
  const own = rateOf(report);
  if (held?.kind !== 'found' || own === null || !base) return [];
  const { answer, sure } = held;
  const rate = Number(Math.min(answer.low, sure?.at_90 ?? answer.low).toPrecision(3));
  if (!(rate < own)) return [];
  const { gpus, cost_per_hour } = base;
  const note = `turns away ${formatGiven(Number((100 * (1 - rate / own)).toPrecision(2)))}\u202f%`;
  const use = () => take.rate(rate);
  const words = `${formatNumber(rate)} req/s on these GPUs`;
  return [{ words, note, meets: true, gpus, cost_per_hour, slo: null, evidence: null, probability: null, use }];
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

/** "90 %: 13.1 to 17.0": the band, where the forecast's error is known, else the interval of sampling; "": neither. */
export function rangeOf({ value_ms: value, low: least, high: most, band }: Figures): string {
  const { low = null, high = null } = band ?? { low: least, high: most };
  if (low === null || high === null) return '';
  const level = band ? `${levelText(band.level)}: ` : '';
  return typeof value === 'number'
    ? `${level}${formatInterval(low, high, value)}`
    : `${level}${formatNumber(low * 100)} to ${formatNumber(high * 100)}`;
}

export function figures(of: Figures | undefined): TemplateResult {
  const { value_ms: value, share } = of ?? {};
  if (typeof share !== 'number' && typeof value !== 'number') return html`no bound`;
  const range = rangeOf(of ?? {});
  return html`<b>${typeof share === 'number' ? formatPercent(share) : formatTime(value)}</b>${range === '' ? nothing : html` <small>(${range})</small>`}`;
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

/** "FP8 KV cache (13.8 ms), 2 replicas (overloaded)": each with its figure. `overloaded`: so is what they change. */
export function listed(changes: readonly Ran[], report: Report, overloaded: boolean): string {
  const [first] = shownTargets(report);
  const figure = (change: Ran) => {
    if (overloaded) return `serves ${formatNumber(change.served_per_s)} req/s`;
    if (change.overloaded) return 'overloaded';
    const { value_ms: value, share } = (first === undefined ? undefined : change.slo[first]) ?? {};
    return typeof share === 'number' ? formatPercent(share) : formatTime(value);
  };
  return changes.map((change) => `${change.change} (${figure(change)})`).join(', ');
}

/** For who asks. `title`: of so many. */
export function folded(
  title: string,
  changes: readonly Ran[],
  report: Report,
  overloaded: boolean,
): TemplateResult | typeof nothing {
  if (changes.length === 0) return nothing;
  return html`<details class="ways-others"><summary>${countOf(changes.length, 'change')} ${title}</summary>
    <p>${listed(changes, report, overloaded)}</p></details>`;
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

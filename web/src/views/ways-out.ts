// Under a verdict that misses: one-step changes, each run on the same requests, with what it gives, what it costs and
// a button that takes it over. Loaded when it is first needed.
import { LitElement, html, nothing, svg, type TemplateResult } from 'lit';
import type { AdvisedChange, Advice, Report } from 'servecast';
import { formatGivenTime, formatInterval, formatNumber, formatPercent, formatTime, sentence } from '../lib/format';
import { costChange, sorted, type Ran } from '../lib/advice';
import { addStyles } from '../lib/part';
import type { WaysOut } from '../state/store';
import styles from '../styles/ways-out.css?inline';
import type { ViewContext } from './context';
import { evidenceWords } from './tiles';

export class WaysOutElement extends LitElement {
  static override properties = { view: { attribute: false } };
  declare view: ViewContext;

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  protected override render(): TemplateResult | typeof nothing {
    const { shown, ways_out: found } = this.view.state;
    if (!shown || !found || found.of !== shown.outcome) return nothing;
    return html`<section class="card ways" aria-labelledby="ways-title">
      <h2 id="ways-title">Ways out, each run on the same requests</h2>
      ${this.#body(found, shown.outcome.report)}
    </section>`;
  }

  #body(found: WaysOut, report: Report): TemplateResult {
    const { reasons } = this.view.app;
    switch (found.kind) {
      case 'offered':
        return html`<p>This run took long; about a dozen changes would take as many times as long.
          <button type="button" @click=${() => reasons.look()}>Try them</button></p>`;
      case 'trying':
        return html`<p class="ways-progress"><progress max="1" .value=${found.progress} aria-label="Tried so far"></progress>
          <span>Trying about a dozen changes</span>
          <button type="button" @click=${() => reasons.cancel()}>Stop</button></p>`;
      case 'failed':
        return html`<p>${sentence(found.message)}</p>`;
      default:
        return found.advice ? this.#rows(found, found.advice, report) : html``;
    }
  }

  #rows(found: WaysOut, advice: Advice, report: Report): TemplateResult {
    const { enough, nearer, useless } = sorted(advice);
    const overloaded = advice.base?.overloaded === true;
    const columns = shownTargets(report);
    return html`<div class="table-scroll" tabindex="0" role="region" aria-label="Ways out">
      <table>
        <thead><tr>
          <th scope="col"><span class="visually-hidden">Verdict</span></th>
          <th scope="col">Change</th>
          ${overloaded ? html`<th scope="col">serves</th>` : nothing}
          ${columns.map((index) => html`<th scope="col">${headOf(report, index)}</th>`)}
          <th scope="col">cost</th>
          <th scope="col">evidence</th>
          <th scope="col"><span class="visually-hidden">Take it over</span></th>
        </tr></thead>
        <tbody>
          ${[...enough, ...nearer].map((change) => this.#row(change, advice.base, columns, overloaded))}
          ${this.#fewest(found, columns.length + Number(overloaded) + 2)}
        </tbody>
      </table>
    </div>
    <p class="ways-rest">${icon(false)}<span>${restInWords(useless, enough.length + nearer.length, report, overloaded)}${found.kind === 'cancelled' ? html` Stopped before all were tried. <button class="as-link" type="button" @click=${() => this.view.app.reasons.look()}>Try all</button>` : nothing}</span></p>`;
  }

  #fewest({ fewest }: WaysOut, width: number): TemplateResult | typeof nothing {
    if (fewest === null) return nothing;
    if (fewest === 'sought')
      return html`<tr><td></td><td colspan=${width + 2}>Looking for how many of these GPUs would do…</td></tr>`;
    return html`<tr>
      <td>${icon(true)}</td>
      <th scope="row">${fewest.words}</th>
      <td colspan=${width}>the fewest of these GPUs that keep all targets (Plan)</td>
      <td><button type="button" aria-label=${`Use ${fewest.words}`} @click=${() => this.view.app.useVariant(fewest.document)}>Use</button></td>
    </tr>`;
  }

  #row(change: Ran, base: AdvisedChange | null, columns: readonly number[], overloaded: boolean): TemplateResult {
    return html`<tr>
      <td>${icon(change.meets)}</td>
      <th scope="row">${change.change}${change.meets ? nothing : html` <small>not enough</small>`}</th>
      ${overloaded ? html`<td>${formatNumber(change.served_per_s)}<small>\u202freq/s</small></td>` : nothing}
      ${columns.map((index) => html`<td>${targetValue(change, index)}</td>`)}
      <td>${costChange(change, base)}</td>
      <td><span class="mark ${change.evidence ?? 'untested'}">${evidenceWords[change.evidence ?? 'untested']}</span></td>
      <td><button type="button" aria-label=${`Use ${change.change}`} @click=${() => this.view.app.useWayOut(change)}>Use</button></td>
    </tr>`;
  }
}

const mostNamed = 4;

/** The two that are nearest to their limits, or furthest beyond. */
function shownTargets(report: Report): readonly number[] {
  return report.slo
    .map(({ margin }, index) => ({ margin: margin ?? -Infinity, index }))
    .sort((a, b) => a.margin - b.margin)
    .slice(0, 2)
    .map(({ index }) => index);
}

function headOf(report: Report, index: number): string {
  const target = report.slo[index];
  if (!target) return '';
  const whose = target.class === undefined ? '' : ` of ${target.class}`;
  if (target.limit_ms === null) return `within all limits${whose}, at least ${formatPercent(target.limit_share)}`;
  return `${target.metric.toUpperCase()} p${target.percentile}${whose}, at most ${formatGivenTime(target.limit_ms)}`;
}

function targetValue(change: Ran, index: number): TemplateResult {
  const { value_ms: value, share, low, high } = change.slo[index] ?? { low: null, high: null };
  if (share !== null && share !== undefined)
    return html`<b>${formatPercent(share)}</b>${low === null || high === null ? nothing : html` <small>(${formatNumber(low * 100)} to ${formatNumber(high * 100)})</small>`}`;
  if (value === null || value === undefined) return html`no bound`;
  return html`<b>${formatTime(value)}</b>${low === null || high === null ? nothing : html` <small>(${formatInterval(low, high, value)})</small>`}`;
}

function restInWords(useless: readonly Ran[], rows: number, report: Report, overloaded: boolean): string {
  if (useless.length === 0)
    return rows === 0 ? 'No change that was tried helps.' : 'All else that was tried helps less.';
  const [first] = shownTargets(report);
  const figure = (change: Ran) => {
    if (overloaded) return `serves ${formatNumber(change.served_per_s)} req/s`;
    const value = first === undefined ? undefined : change.slo[first]?.value_ms;
    const share = first === undefined ? undefined : change.slo[first]?.share;
    if (change.overloaded) return 'overloaded';
    return typeof share === 'number' ? formatPercent(share) : formatTime(value);
  };
  const named = useless.slice(0, mostNamed).map((change) => `${change.change} (${figure(change)})`);
  const more = useless.length - named.length;
  const words = `${useless.length === 1 ? 'Does' : 'Do'} not help: ${named.join(', ')}${more > 0 ? `, nor ${more} more` : ''}.`;
  return rows === 0 ? `No change that was tried helps. ${words}` : words;
}

function icon(good: boolean): TemplateResult {
  return html`<svg class="way-icon ${good ? 'is-meets' : 'is-misses'}" viewBox="0 0 16 16" width="16" height="16" role="img" aria-label=${good ? 'Meets' : 'Misses'}>
    ${svg`<circle cx="8" cy="8" r="7" /><path d=${good ? 'M5 8.200l2.200 2.200L11 6' : 'M5.500 5.500l5 5M10.500 5.500l-5 5'} />`}
  </svg>`;
}

addStyles(styles);
customElements.define('sc-ways-out', WaysOutElement);

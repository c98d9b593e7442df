// How much load the scenario holds, in the verdict: the answer of the plan's question, asked in the idle time. Its place
// is kept by words of the usual length, so that nothing moves when it comes. Loaded after the first verdict.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import { formatNumber, sentence } from '../lib/format';
import { addStyles } from '../lib/part';
import { headroomOf, type Headroom } from '../state/headroom';
import { rateOf } from '../state/rate';
import { tookLong } from '../lib/work';
import styles from '../styles/holds.css?inline';
import { comparedRate, loadUnit, sureWords } from './sure-words';
import type { ViewContext } from './context';

type Found = Extract<Headroom, { kind: 'found' }>;

export class HoldsElement extends PlainElement {
  static override properties = { view: { attribute: false } };
  declare view: ViewContext;

  protected override render(): TemplateResult {
    const known = headroomOf(this.view.state);
    return html`<p class="holds" data-kind=${known?.kind ?? 'none'}><span class="holds-place" aria-hidden="true">Holds up to 00.0 req/s (00.0 to 00.0), 00 % above this rate; 90 % sure up to 00.0.</span><span>${this.#words(known)}</span></p>`;
  }

  #words(known: Headroom | null): TemplateResult {
    switch (known?.kind) {
      case 'found':
        return this.#found(known);
      case 'said':
        return html`${sentence(known.sentence)}`;
      case 'failed':
        return html`<span class="quiet-text">How much it holds is not known. ${sentence(known.message)}</span>`;
      case 'offered':
        return html`<span class="quiet-text">How much does it hold?</span>
          <button class="as-link" type="button" @click=${() => void this.#ask()}>Find out</button>`;
      default:
        return this.#sought(known);
    }
  }

  #found({ answer, sure }: Found): TemplateResult {
    const { value, low, high } = answer;
    const unit = loadUnit(answer.unit);
    const { shown } = this.view.state;
    const own = shown ? rateOf(shown.outcome.report) : null;
    return html`Holds up to <b>${formatNumber(value)} ${unit}</b> (${formatNumber(low)} to ${formatNumber(high)})${own === null ? nothing : `, ${comparedRate(value / own)}`}${sure ? html`; ${sureWords(sure)}` : nothing}.`;
  }

  /** What the verdict says of this rate alone, or what was tried so far: coarse, and drawn so. */
  #sought(known: Extract<Headroom, { kind: 'sought' }> | null): TemplateResult {
    const { shown } = this.view.state;
    const report = shown?.outcome.report;
    if (!report) return html``;
    const own = rateOf(report);
    const isMissed = ['misses', 'overloaded'].includes(report.verdict.state);
    const { meets = isMissed ? null : own, misses = isMissed ? own : null } = known ?? {};
    const range =
      own === null || (meets === null && misses === null)
        ? 'How much it holds'
        : meets === null
          ? `Holds less than ${formatNumber(misses)} req/s`
          : misses === null
            ? `Holds ${formatNumber(meets)} req/s or more`
            : `Holds about ${[...new Set([formatNumber(meets), formatNumber(misses)])].join(' to ')} req/s`;
    return html`<span class="quiet-text">${range}${known === null && tookLong(report) ? '' : '…'}</span>`;
  }

  async #ask(): Promise<void> {
    (await this.view.app.plans()).ask('max-rate');
  }
}

addStyles(styles);
customElements.define('sc-holds', HoldsElement);

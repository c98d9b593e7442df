// Where targets are met: which single changes would give them most room, each run, by cost. Loaded with the reasons.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { Advice, Report } from 'servecast';
import type { Outcome } from '../engine/protocol';
import { formatNumber, formatTime } from '../lib/format';
import type { Ran } from '../lib/advice';
import { tookLong } from '../lib/work';
import { needsTrace } from '../state/document';
import { findHeld, type Held } from '../state/gains';
import { headroomOf } from '../state/headroom';
import type { ViewContext } from './context';
import { loadUnit } from './sure-words';
import { folded, gainsOf, headOf, shownTargets, table, tried, wayRow } from './ways-rows';

export class BetterElement extends PlainElement {
  static override properties = { view: { attribute: false }, held: { state: true } };
  declare view: ViewContext;
  /** Of the changes that are shown, once somebody asked; null: nobody did. */
  declare held: readonly Held[] | null;
  #stop: () => void = () => undefined;
  #of: Outcome | null = null;

  constructor() {
    super();
    this.held = null;
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#drop();
  }

  /** A change of the scenario takes the engine back, and what was found is of another one. */
  protected override willUpdate(): void {
    const { shown, document, run } = this.view.state;
    if (this.#of !== null && (shown?.outcome !== this.#of || shown.document !== document || run.kind === 'running'))
      this.#drop();
  }

  #drop(): void {
    this.#stop();
    this.#of = null;
    this.held = null;
  }

  async #askHeld(changes: readonly Ran[]): Promise<void> {
    const { app, state } = this.view;
    const { shown } = state;
    if (!shown) return;
    this.#of = shown.outcome;
    this.held = [];
    const plans = await app.plans();
    if (this.#of !== shown.outcome) return;
    const scenarios = changes.map(({ document }) => document);
    const trace = needsTrace(shown.document) ? plans.trace : null;
    this.#stop = findHeld(plans, scenarios, trace, (place, found) => {
      if (this.#of === shown.outcome) this.held = Object.assign([...(this.held ?? [])], { [place]: found });
    });
  }

  protected override render(): TemplateResult | typeof nothing {
    const { shown, ways_out: found } = this.view.state;
    if (!shown || !found || found.missed || found.of !== shown.outcome) return nothing;
    return html`<section class="card ways" aria-labelledby="better-title">
      <h2 id="better-title">What would change it most, each run on the same requests</h2>
      ${tried(found, this.view.app.reasons, tookLong(shown.outcome.report), (advice) =>
        this.#rows(advice, shown.outcome.report, found.kind === 'cancelled'),
      )}
    </section>`;
  }

  #rows(advice: Advice, report: Report, stopped: boolean): TemplateResult {
    const { helping, ways, others } = gainsOf(advice, { change: (change) => this.view.app.useWayOut(change) });
    const columns = shownTargets(report);
    const heads = columns.map((index) => `${headOf(report, index)} (now ${formatTime(report.slo[index]?.value_ms)})`);
    const { held } = this;
    if (held) heads.push(`holds${this.#holdsNow()}`);
    const cell = (place: number) => (held ? html`<td>${heldText(held[place])}</td>` : nothing);
    return html`${
      helping.length === 0
        ? html`<p>No change that was tried gives more room.</p>`
        : table(
            'What would change it most',
            heads,
            ways.map((way, place) => wayRow(way, advice.base, columns, 'Try', cell(place))),
          )
    }
      <div class="ways-rest">
        ${held || helping.length === 0 ? nothing : html`<p><button class="as-link" type="button" @click=${() => void this.#askHeld(helping)}>How much would each hold?</button></p>`}
        ${folded(helping.length === 0 ? 'that were tried' : 'that give less or cost more', others, report, false)}
        ${stopped ? html`<p>Stopped before all were tried. <button class="as-link" type="button" @click=${() => this.view.app.reasons.look()}>Try all</button></p>` : nothing}
      </div>`;
  }

  #holdsNow(): string {
    const known = headroomOf(this.view.state);
    return known?.kind === 'found' ? ` (now ${formatNumber(known.answer.value)} ${loadUnit(known.answer.unit)})` : '';
  }
}

function heldText(held: Held | undefined): TemplateResult {
  if (held === undefined) return html``;
  if (held === 'sought') return html`…`;
  if (held === null) return html`–`;
  return html`<b>${formatNumber(held.value)}</b> <small>(${formatNumber(held.low)} to ${formatNumber(held.high)})</small>`;
}

customElements.define('sc-better', BetterElement);

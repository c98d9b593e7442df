// Under a verdict that misses: what would meet the targets, cheapest first, each run: single changes, else the fewest GPUs
// with and without one; and the load that these GPUs hold. What does not get there is folded. Loaded when it is first
// needed.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { Advice, Report } from 'servecast';
import { headroomOf } from '../state/headroom';
import { ratePointer } from '../state/rate';
import type { WaysOut } from '../state/store';
import type { ViewContext } from './context';
import { folded, headOf, shownTargets, table, tried, wayRow, waysOf } from './ways-rows';

export class WaysOutElement extends PlainElement {
  static override properties = { view: { attribute: false } };
  declare view: ViewContext;

  protected override render(): TemplateResult | typeof nothing {
    const { shown, ways_out: found } = this.view.state;
    if (!shown || !found || found.of !== shown.outcome) return nothing;
    return html`<section class="card ways" aria-labelledby="ways-title">
      <h2 id="ways-title">Ways out, each run on the same requests</h2>
      ${tried(found, this.view.app.reasons, true, (advice) => this.#rows(found, advice, shown.outcome.report))}
    </section>`;
  }

  #rows(found: WaysOut, advice: Advice, report: Report): TemplateResult {
    const { state, app } = this.view;
    const columns = shownTargets(report);
    const { base } = advice;
    const { ways, near, others } = waysOf(found, advice, report, headroomOf(state), {
      change: (change) => app.useWayOut(change),
      design: (document) => app.useVariant(document),
      rate: (rate) => app.source && app.setValue(ratePointer, rate, 'dragging'),
    });
    const heads = columns.map((index) => headOf(report, index));
    return html`${table(
      'Ways out',
      heads,
      html`${[...ways, ...near].map((way) => wayRow(way, base, columns, 'Use'))}
        ${found.seeks ? html`<tr><td></td><td colspan=${columns.length + 4}>Looking for how many GPUs would do…</td></tr>` : nothing}`,
    )}
    <div class="ways-rest">
      ${ways.length > 0 || found.seeks || near.length > 0 || others.length === 0 ? nothing : html`<p>No change that was tried helps, nor any number of these GPUs.</p>`}
      ${folded('that do not get there', others, report, base?.overloaded === true)}
      ${found.kind === 'cancelled' ? html`<p>Stopped before all were tried. <button class="as-link" type="button" @click=${() => this.view.app.reasons.look()}>Try all</button></p>` : nothing}
    </div>`;
  }
}

customElements.define('sc-ways-out', WaysOutElement);

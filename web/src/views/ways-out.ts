// Under a verdict that misses: what would meet the targets, cheapest first, each run: single changes, else the fewest GPUs
// with and without one; and the load that these GPUs hold. What does not get there is folded. Loaded when it is first
// needed.
import { LitElement, html, nothing, type TemplateResult } from 'lit';
import type { Advice, AdvisedChange, Report } from 'servecast';
import { formatGiven, formatNumber } from '../lib/format';
import { sorted, type Ran } from '../lib/advice';
import { headroomOf } from '../state/headroom';
import { rateOf, ratePointer } from '../state/rate';
import type { FoundDesign, WaysOut } from '../state/store';
import type { ViewContext } from './context';
import { folded, headOf, shownTargets, table, tried, wayRow, type Way } from './ways-rows';

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
      ${tried(found, this.view.app.reasons, true, (advice) => this.#rows(found, advice, shown.outcome.report))}
    </section>`;
  }

  #rows(found: WaysOut, advice: Advice, report: Report): TemplateResult {
    const { enough, nearer, useless } = sorted(advice);
    const columns = shownTargets(report);
    const { base } = advice;
    const cost = ({ cost_per_hour: price, gpus }: Way) => price ?? gpus * unpriced;
    const meets = [
      ...enough.map((change) => this.#changed(change)),
      ...found.designs.map((each) => this.#design(each)),
    ];
    const ways = [...meets.sort((a, b) => cost(a) - cost(b)), ...this.#lighter(report, base)];
    const near = ways.length > 0 ? [] : nearer;
    const others = advice.changes.filter((change): change is Ran => change.effect !== undefined && !change.meets);
    const heads = columns.map((index) => headOf(report, index));
    return html`${table(
      'Ways out',
      heads,
      html`${[...ways, ...near.map((change) => this.#changed(change))].map((way) => wayRow(way, base, columns, 'Use'))}
        ${found.seeks ? html`<tr><td></td><td colspan=${columns.length + 4}>Looking for how many GPUs would do…</td></tr>` : nothing}`,
    )}
    <div class="ways-rest">
      ${ways.length > 0 || found.seeks || near.length > 0 || useless.length === 0 ? nothing : html`<p>No change that was tried helps, nor any number of these GPUs.</p>`}
      ${folded('that do not get there', others, report, base?.overloaded === true)}
      ${found.kind === 'cancelled' ? html`<p>Stopped before all were tried. <button class="as-link" type="button" @click=${() => this.view.app.reasons.look()}>Try all</button></p>` : nothing}
    </div>`;
  }

  #changed(change: Ran): Way {
    const { meets, gpus, cost_per_hour, slo, evidence = 'untested' } = change;
    const use = () => this.view.app.useWayOut(change);
    return { words: change.change, note: meets ? '' : 'not enough', meets, gpus, cost_per_hour, slo, evidence, use };
  }

  #design({ document, words, gpus, cost_per_hour, slo, sure }: FoundDesign): Way {
    const note = sure ? 'the fewest, 90\u202f% sure' : 'the fewest, by sampling alone';
    const use = () => this.view.app.useVariant(document);
    return { words, note, meets: true, gpus, cost_per_hour, slo, evidence: null, use };
  }

  /** What these GPUs hold of it, as the verdict says; none where no one number is the load. */
  #lighter(report: Report, base: AdvisedChange | null): readonly Way[] {
    const { state, app } = this.view;
    const known = headroomOf(state);
    const own = rateOf(report);
    const { source } = app;
    if (known?.kind !== 'found' || own === null || !base || !source) return [];
    const { answer, sure } = known;
    const rate = Number(Math.min(answer.low, sure?.at_90 ?? answer.low).toPrecision(3));
    if (!(rate < own)) return [];
    const { gpus, cost_per_hour } = base;
    const note = `turns away ${formatGiven(Number((100 * (1 - rate / own)).toPrecision(2)))}\u202f%`;
    const use = () => app.setValue(ratePointer, rate, 'dragging');
    const words = `${formatNumber(rate)} req/s on these GPUs`;
    return [{ words, note, meets: true, gpus, cost_per_hour, slo: null, evidence: null, use }];
  }
}

/** A GPU without a price stands behind all that have one. */
const unpriced = 1e6;

customElements.define('sc-ways-out', WaysOutElement);

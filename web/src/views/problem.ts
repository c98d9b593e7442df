// What is said below the title of a problem that seldom happens: a link that cannot be opened, a model that does not fit, an
// engine that stopped.
import { html, nothing, svg, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { Report } from 'servecast';
import { formatGib as gib } from '../lib/format';
import { addStyles } from '../lib/part';
import { getAt, type Document } from '../state/document';
import styles from '../styles/problem.css?inline';
import type { ViewContext } from './context';
import { renderIssues, type ProblemKind } from './verdict';

export class ProblemElement extends PlainElement {
  static override properties = { view: { attribute: false }, of: { attribute: false } };
  declare view: ViewContext;
  declare of: ProblemKind;

  protected override render(): TemplateResult | typeof nothing {
    const { run } = this.view.state;
    if (this.of === 'link') return linkProblem(this.view);
    if (this.of === 'unfit') return run.kind === 'refused' && run.unfit ? renderUnfit(this.view, run.unfit) : nothing;
    return run.kind === 'broken' ? broken(this.view, run.message) : nothing;
  }
}

function linkProblem(view: ViewContext): TemplateResult {
  const link = view.state.link_problem;
  const dropped = link?.nearest?.dropped ?? [];
  return html`<p>${link?.message}</p>
      ${renderIssues(view, link?.issues ?? [])}
      <div class="button-row">
        ${dropped.length === 0 ? nothing : html`<button class="primary" type="button" @click=${() => view.app.openNearest()}>Open the nearest valid scenario</button>`}
        <button class=${dropped.length === 0 ? 'primary' : ''} type="button" @click=${() => view.app.openDefault()}>Open the default scenario</button>
      </div>
      ${dropped.length === 0 ? nothing : html`<p class="quiet-text long-name">The nearest one leaves out ${dropped.map(dotted).join(', ')}.</p>`}`;
}

/** Of a link they have dots already. */
const dotted = (place: string) => place.replace(/^\//, '').replaceAll('/', '.');

function broken(view: ViewContext, message: string): TemplateResult {
  const { document, canonical } = view.state;
  const href = `data:application/json;charset=utf-8,${encodeURIComponent(JSON.stringify(document, null, 2))}`;
  return html`<p>A fresh engine is ready; change the scenario, or report it with the file below.</p>
      <p class="quiet-text">${message}${canonical ? html` · scenario <code>${canonical.id}</code>` : nothing}</p>
      <div class="button-row"><a class="button" download="scenario.json" href=${href}>Download the scenario</a></div>`;
}

/** Needed against usable, as a bar that runs over its mark, and the least that fits. */
function renderUnfit(view: ViewContext, unfit: NonNullable<Report['unfit']>): TemplateResult {
  const { weights_gib: weights, overhead_gib: other, kv_gib: kv, needed_gib: needed, usable_gib: usable } = unfit;
  const at = (gib: number) => (100 * gib) / needed;
  const enough = unfit.enough_tensor_parallel;
  const named = view.state.catalog ? poolNames(view) : [];
  const pool = Math.max(0, named.indexOf(unfit.pool));
  return html`<svg class="unfit-bar" viewBox="0 0 100 16" preserveAspectRatio="none" role="img" aria-label=${`${gib(needed)} needed, ${gib(usable)} usable on a GPU`}>
      ${svg`<rect class="weights" width=${at(weights)} height="16" /><rect class="other" x=${at(weights)} width=${at(other)} height="16" />
      <rect class="kv" x=${at(weights + other)} width=${at(kv)} height="16" />
      <rect class="beyond" x=${at(usable)} y="10" width=${Math.max(0, 100 - at(usable))} height="6" /><rect class="tick" x=${at(usable)} width="0.500" height="16" />`}
    </svg>
    <p class="quiet-text">Needed with the smallest KV cache: ${gib(needed)} on each GPU. The mark is what is usable of it: ${gib(usable)}.</p>
    ${enough === undefined ? nothing : html`<div class="button-row"><button class="primary" type="button" @click=${() => view.app.useTensorParallel(pool, enough)}>Use tensor parallel ${enough}</button></div>`}`;
}

function poolNames(view: ViewContext): readonly string[] {
  const pools = getAt(view.state.document, '/cluster/pools');
  return Array.isArray(pools) ? pools.map((pool) => String(getAt(pool as Document, '/name') ?? '')) : [];
}

addStyles(styles);
customElements.define('sc-problem', ProblemElement);

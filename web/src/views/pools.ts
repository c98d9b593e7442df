// Several replicas in the form: a card for each pool with its role, GPU and number, and what it has of its own; how they
// share the work. Loaded with the first cluster.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import { repeat } from 'lit/directives/repeat.js';
import { countOf, sentence } from '../lib/format';
import { addStyles } from '../lib/part';
import { isObject, type Document } from '../state/document';
import { placedFields, type FormSource } from '../state/fields';
import { splitsOf, withSplit, withoutRoles } from '../state/pool-edits';
import { hasRoles, poolList, poolsOf, replicasInAll, roleOf } from '../state/pools';
import styles from '../styles/pools.css?inline';
import type { ViewContext } from './context';
import { issuesAt, renderField, renderPlaced, valueAt } from './placed';

export class PoolsElement extends PlainElement {
  static override properties = { view: { attribute: false }, plain: { attribute: false } };
  declare view: ViewContext;
  /** One pool, whose few fields have rows of their own. */
  declare plain: boolean;

  protected override render(): TemplateResult | typeof nothing {
    const { view } = this;
    const { source } = view.app;
    if (!source) return nothing;
    const pools = poolsOf(source);
    return html`${
      this.plain
        ? nothing
        : html`<fieldset class="pools">
            <legend>Pools: ${countOf(replicasInAll(pools), 'replica')} in all</legend>
            ${pools.map((pool, index) => renderPool(view, source, pool, index, pools.length))}
          </fieldset>`
    }
    ${renderActions(view, source, pools)} ${replicasInAll(pools) > 1 ? renderRouting(view, source, pools) : nothing}`;
  }
}

/** From whole requests to prefill and decode apart, and back. */
function renderActions(
  { app, compareBy }: ViewContext,
  source: FormSource,
  pools: readonly Document[],
): TemplateResult {
  const half = hasRoles(pools) ? undefined : withSplit(source, Math.floor(replicasInAll(pools) / 2));
  const action = (name: string, title: string, act: () => void) =>
    html`<button class="as-link" type="button" title=${title} @click=${act}>${name}</button>`;
  return html`<div class="pool-actions">
    ${half ? action('Split prefill and decode', 'Half of the replicas prefill, the others decode', () => app.setPools(half)) : nothing}
    ${hasRoles(pools) ? action('Join prefill and decode', 'Every replica serves whole requests', () => app.setPools(withoutRoles(source))) : nothing}
    ${splitsOf(source).length > 0 ? action('Compare splits', 'Whole requests, and every split into prefill and decode, on the same requests', () => compareBy(poolList)) : nothing}
  </div>`;
}

function renderRouting(view: ViewContext, source: FormSource, pools: readonly Document[]): TemplateResult {
  const open = view.openGroups.has('routing');
  const apart = hasRoles(pools);
  const policy = String(valueAt(source, '/cluster/router/policy') ?? '').replaceAll('_', ' ');
  const fields = placedFields(
    source,
    (path) =>
      path.startsWith('/cluster/router/') ||
      (apart && /^\/cluster\/(decode_router|encode_router|disaggregation)\//.test(path)),
  );
  return html`<details class="fields" .open=${open} @toggle=${(event: Event) => view.toggleGroup('routing', (event.target as HTMLDetailsElement).open)}>
    <summary>${apart ? 'Routers and link' : 'Router'}: ${policy}</summary>
    ${
      open
        ? repeat(
            fields,
            ({ pointer }) => pointer,
            (placed) => renderPlaced(view, source, placed, { verbatim: true }, 'routing'),
          )
        : nothing
    }
  </details>`;
}

function renderPool(
  view: ViewContext,
  source: FormSource,
  pool: Document,
  index: number,
  count: number,
): TemplateResult {
  const at = `${poolList}/${index}`;
  const name = typeof pool['name'] === 'string' && pool['name'] !== '' ? pool['name'] : `Pool ${index + 1}`;
  // What is said of the pool as a whole, e.g. that the model does not fit its GPU.
  const issues = ['', '/hardware', '/engine', '/scheduler'].flatMap((part) => issuesAt(view, `${at}${part}`));
  const field = (key: string, label: string) => renderField(view, source, `${at}/${key}`, { label });
  return html`<div class="pool" role="group" aria-label=${`Pool ${index + 1}, ${roleOf(pool)}`}>
    <div class="pool-head">
      <h3 class="long-name">${name}</h3>
      ${count > 1 ? html`<button class="quiet icon" type="button" title="Remove" aria-label="Remove pool ${index + 1}" @click=${() => void view.app.removePool(index)}>×</button>` : nothing}
    </div>
    ${issues.map((issue) => html`<p class="field-error">${sentence(issue.message)}</p>`)}
    ${field('role', 'Role')} ${field('hardware/preset', 'GPU')} ${field('tensor_parallel', 'GPUs each')} ${field('replicas', 'Replicas')}
    ${renderOwn(view, source, pool, index, 'engine', 'Engine of this pool')} ${renderOwn(view, source, pool, index, 'hardware', 'GPU figures, price, name')}
  </div>`;
}

const rows: readonly string[] = ['role', 'replicas', 'tensor_parallel'];

/** Two of them have the same key. */
const names: Readonly<Record<string, string>> = {
  [`${poolList}/-/name`]: 'Pool name',
  [`${poolList}/-/pipeline_parallel`]: 'Pipeline stages',
  [`${poolList}/-/hardware/name`]: 'GPU name',
};

/** What of the scenario's hardware, or of its engine and scheduler, the pool changes; a reset of a field inherits it again. */
function renderOwn(
  view: ViewContext,
  source: FormSource,
  pool: Document,
  index: number,
  section: 'hardware' | 'engine',
  title: string,
): TemplateResult {
  const id = `pool-${index}-${section}`;
  const open = view.openGroups.has(id);
  const at = `${poolList}/${index}`;
  const sections = section === 'engine' ? ['engine', 'scheduler'] : ['hardware'];
  const count = sections.reduce((sum, each) => sum + (isObject(pool[each]) ? Object.keys(pool[each]).length : 0), 0);
  // With the GPU, what of the pool itself has no row above.
  const isMore = (key: string) => section === 'hardware' && !key.includes('/') && !rows.includes(key);
  const fields = open
    ? placedFields(source, (path) => path.startsWith(`${poolList}/-/`)).filter(
        ({ pointer }) =>
          pointer.startsWith(`${at}/`) &&
          (isMore(pointer.slice(at.length + 1)) || sections.some((each) => pointer.startsWith(`${at}/${each}/`))),
      )
    : [];
  return html`<details class="fields" .open=${open} @toggle=${(event: Event) => view.toggleGroup(id, (event.target as HTMLDetailsElement).open)}>
    <summary>${title}${count > 0 ? html` <span class="quiet-text">${count} of its own</span>` : nothing}</summary>
    ${repeat(
      fields.filter(({ pointer }) => pointer !== `${at}/hardware/preset`),
      (placed) => placed.pointer,
      (placed) => {
        const label = names[placed.field.path];
        return renderPlaced(view, source, placed, label === undefined ? { verbatim: true } : { label }, 'f');
      },
    )}
  </details>`;
}

addStyles(styles);
customElements.define('sc-pools', PoolsElement);

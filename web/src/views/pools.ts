// The pools of the form: with one, its size; with several, a card for each with its role, GPU, number
// and what it has of its own; then the router and the link between them.
import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { countOf, sentence } from '../lib/format';
import { isObject, type Document } from '../state/document';
import { placedFields, type FormSource } from '../state/fields';
import { hasRoles, poolList, poolsOf, replicasInAll, roleOf, splitsOf, withSplit, withoutRoles } from '../state/pools';
import type { ViewContext } from './context';
import { issuesAt, renderField, renderPlaced, valueOf } from './placed';

const mostPools = 16;

export function renderPools(view: ViewContext, source: FormSource): TemplateResult {
  const pools = poolsOf(source);
  const [first] = pools;
  const isPlain = pools.length === 1 && first && roleOf(first) === 'mixed' && !first['hardware'] && !first['engine'] && !first['name'];
  if (isPlain) {
    return html`${renderSize(view, source, 0)} ${renderButtons(view, source, pools)} ${replicasInAll(pools) > 1 ? renderRouting(view, source, pools) : nothing}`;
  }
  return html`<fieldset class="group">
    <legend>Pools: ${countOf(replicasInAll(pools), 'replica')} in all</legend>
    ${pools.map((pool, index) => renderPool(view, source, pool, index, pools.length))} ${renderButtons(view, source, pools)} ${renderRouting(view, source, pools)}
  </fieldset>`;
}

function renderSize(view: ViewContext, source: FormSource, index: number): TemplateResult {
  return html`${renderField(view, source, `${poolList}/${index}/tensor_parallel`, { label: 'Tensor parallel' })}
    ${renderField(view, source, `${poolList}/${index}/replicas`, { label: 'Replicas' })}`;
}

function renderPool(view: ViewContext, source: FormSource, pool: Document, index: number, count: number): TemplateResult {
  const at = `${poolList}/${index}`;
  const name = typeof pool['name'] === 'string' && pool['name'] !== '' ? pool['name'] : `Pool ${index + 1}`;
  // What is said of the pool as a whole, e.g. that the model does not fit its GPU.
  const issues = ['', '/hardware', '/engine'].flatMap((part) => issuesAt(view, `${at}${part}`));
  return html`<div class="pool" role="group" aria-label=${`Pool ${index + 1}, ${roleOf(pool)}`}>
    <div class="pool-head">
      <h3 class="long-name">${name}</h3>
      ${count > 1 ? html`<button class="quiet icon" type="button" title="Remove" aria-label="Remove pool ${index + 1}" @click=${() => view.app.removePool(index)}>×</button>` : nothing}
    </div>
    ${issues.map((issue) => html`<p class="field-error">${sentence(issue.message)}</p>`)}
    ${renderField(view, source, `${at}/role`, { label: 'Role' })} ${renderField(view, source, `${at}/hardware/preset`, { label: 'GPU' })}
    ${renderSize(view, source, index)}
    ${renderOwn(view, source, pool, index, 'engine', 'Engine of this pool')} ${renderOwn(view, source, pool, index, 'hardware', 'GPU figures, price, name')}
  </div>`;
}

/** What of the scenario's hardware or engine the pool changes; a reset of a field inherits it again. */
function renderOwn(view: ViewContext, source: FormSource, pool: Document, index: number, section: 'hardware' | 'engine', title: string): TemplateResult {
  const id = `pool-${index}-${section}`;
  const open = view.openGroups.has(id);
  const at = `${poolList}/${index}`;
  const own = pool[section];
  const count = isObject(own) ? Object.keys(own).length : 0;
  const more = section === 'hardware' ? [`${at}/name`, `${at}/pipeline_parallel`] : [];
  const fields = open ? placedFields(source, (path) => path.startsWith(`${poolList}/-/`)).filter(({ pointer }) => more.includes(pointer) || pointer.startsWith(`${at}/${section}/`)) : [];
  return html`<details class="fields" .open=${open} @toggle=${(event: Event) => view.toggleGroup(id, (event.target as HTMLDetailsElement).open)}>
    <summary>${title}${count > 0 ? html` <span class="quiet-text">${count} of its own</span>` : nothing}</summary>
    ${repeat(
      fields.filter(({ pointer }) => pointer !== `${at}/hardware/preset`),
      (placed) => placed.pointer,
      (placed) => renderPlaced(view, source, placed, names[placed.field.path] ? { label: names[placed.field.path]! } : { verbatim: true }, 'f'),
    )}
  </details>`;
}

/** Two of them have the same key. */
const names: Readonly<Record<string, string>> = { [`${poolList}/-/name`]: 'Pool name', [`${poolList}/-/pipeline_parallel`]: 'Pipeline stages', [`${poolList}/-/hardware/name`]: 'GPU name' };

function renderButtons(view: ViewContext, source: FormSource, pools: readonly Document[]): TemplateResult {
  const { app } = view;
  const replicas = replicasInAll(pools);
  const half = hasRoles(pools) ? undefined : withSplit(source, Math.floor(replicas / 2));
  return html`<div class="button-row">
    ${pools.length < mostPools ? html`<button type="button" @click=${() => app.addPool()}>Add a pool</button>` : nothing}
    ${half ? html`<button type="button" title="Half of the replicas prefill, the others decode" @click=${() => app.setPools(half)}>Split prefill and decode</button>` : nothing}
    ${hasRoles(pools) ? html`<button type="button" title="Every replica serves whole requests" @click=${() => app.setPools(withoutRoles(source))}>Join prefill and decode</button>` : nothing}
    ${splitsOf(source).length > 1 ? html`<button type="button" title="Whole requests, and every split into prefill and decode, on the same requests" @click=${() => view.compareBy(poolList)}>Compare splits</button>` : nothing}
  </div>`;
}

/** Who is sent where, and with roles the link between prefill and decode. */
function renderRouting(view: ViewContext, source: FormSource, pools: readonly Document[]): TemplateResult {
  const id = 'routing';
  const open = view.openGroups.has(id);
  const parts = hasRoles(pools) ? ['router', 'decode_router', 'disaggregation'] : ['router'];
  const titles: Record<string, string> = { router: hasRoles(pools) ? 'Router of prefills' : '', decode_router: 'Router of decodes', disaggregation: 'Link from prefill to decode' };
  const policy = String(valueOf(source, '/cluster/router/policy') ?? '').replaceAll('_', ' ');
  return html`<details class="fields" .open=${open} @toggle=${(event: Event) => view.toggleGroup(id, (event.target as HTMLDetailsElement).open)}>
    <summary>${hasRoles(pools) ? 'Routers and link' : 'Router'} <span class="quiet-text">${policy}</span></summary>
    ${open
      ? parts.map((part) => html`${titles[part] === '' ? nothing : html`<h3>${titles[part]}</h3>`}
          ${repeat(
            placedFields(source, (path) => path.startsWith(`/cluster/${part}/`)),
            (placed) => placed.pointer,
            (placed) => renderPlaced(view, source, placed, { verbatim: true }, 'f'),
          )}`)
      : nothing}
  </details>`;
}

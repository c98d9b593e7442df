// The rail on the left: the questions most people ask first, then every field of the catalogue in
// collapsed groups. Labels are the page's words; all that a field is comes from the catalogue.
import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { countOf, formatBytes, formatGiven, formatPercent, roundUp } from '../lib/format';
import { needPart } from '../lib/part';
import { getAt, isObject, lastOf, needsTrace, parentOf, segmentsOf, type Document, type Json } from '../state/document';
import {
  fieldAt,
  isRelevant,
  placedFields,
  presetsFor,
  unitOf,
  withRateOfSessions,
  type FormSource,
  type PlacedField,
} from '../state/fields';
import {
  hasRoles,
  ownSections,
  poolList,
  poolsInWords,
  poolsOf,
  replicasInAll,
  roleOf,
  splitsOf,
  withSplit,
  withoutRoles,
} from '../state/pools';
import type { ViewContext } from './context';
import { renderFitButtons } from './fit';
import { issuesAt, renderField, renderPlaced, valueAt } from './placed';

const mostPools = 16;

export function renderForm(view: ViewContext): TemplateResult {
  const source = view.app.source;
  if (!source) return html`<p class="quiet-text">Loading the fields…</p>`;
  return html`
    ${renderField(view, source, '/model/preset', { label: 'Model' })}
    ${renderField(view, source, '/hardware/preset', { label: 'GPU' })}
    ${renderPools(view, source)}
    ${renderTraffic(view, source)} ${renderLimits(view, source)} ${renderPrice(view, source)} ${renderWorkload(view, source)}
    ${renderGroup(view, source, 'engine', 'Engine and scheduler', (path) => /^\/(engine|scheduler)\//.test(path))}
    ${renderGroup(view, source, 'workload', 'Workload details', (path) => path.startsWith('/workload/'))}
    ${renderGroup(view, source, 'everything', 'Everything', (path) => !ownSections.some((section) => path.startsWith(`${poolList}/-/${section}/`)))}
  `;
}

/** "Llama-3.1-8B · H100 · 14 req/s": what a closed form says on a phone. */
export function formSummary(view: ViewContext): string {
  const source = view.app.source;
  if (!source) return '';
  const nameOf = (pointer: string) => {
    const id = valueAt(source, pointer);
    return presetsFor(source.catalog, pointer).find((preset) => preset.id === id)?.name ?? 'custom';
  };
  const load = loadOf(source);
  const rate = load && fieldAt(source, load);
  const value = load && valueAt(source, load);
  const traffic = needsTrace(source.document)
    ? 'trace'
    : rate && value !== undefined
      ? `${typeof value === 'number' ? formatGiven(value) : String(value)}\u00a0${unitOf(withRateOfSessions(source, rate))}`
      : '';
  const pools = poolsOf(source);
  return [
    nameOf('/model/preset'),
    nameOf('/hardware/preset'),
    replicasInAll(pools) > 1 ? poolsInWords(pools) : '',
    traffic,
  ]
    .filter(Boolean)
    .join(' · ');
}

/** What says how much is asked: a rate, or clients; neither when all comes at once. */
function loadOf(source: FormSource): string | undefined {
  return ['rate_per_s', 'concurrency']
    .map((name) => `/workload/arrivals/${name}`)
    .find((pointer) => {
      const field = fieldAt(source, pointer);
      return field && isRelevant(source, { field, pointer });
    });
}

function renderPools(view: ViewContext, source: FormSource): TemplateResult {
  const pools = poolsOf(source);
  const [first] = pools;
  const isPlain =
    pools.length === 1 && first && roleOf(first) === 'mixed' && ownSections.every((section) => !first[section]);
  if (!isPlain) needPart('sc-pools', () => import('./pools'));
  const apart = hasRoles(pools);
  const policy = String(valueAt(source, '/cluster/router/policy') ?? '').replaceAll('_', ' ');
  return html`${
    isPlain
      ? html`${renderField(view, source, `${poolList}/0/tensor_parallel`, { label: 'Tensor parallel' })} ${renderField(view, source, `${poolList}/0/replicas`, { label: 'Replicas' })}`
      : html`<sc-pools .view=${view}></sc-pools>`
  }
    ${renderPoolButtons(view, source, pools)}
    ${replicasInAll(pools) > 1 ? renderGroup(view, source, 'routing', `${apart ? 'Routers and link' : 'Router'}: ${policy}`, (path) => path.startsWith('/cluster/router/') || (apart && /^\/cluster\/(decode_router|disaggregation)\//.test(path))) : nothing}`;
}

function renderPoolButtons(
  { app, compareBy }: ViewContext,
  source: FormSource,
  pools: readonly Document[],
): TemplateResult {
  const half = hasRoles(pools) ? undefined : withSplit(source, Math.floor(replicasInAll(pools) / 2));
  return html`<div class="button-row">
    ${pools.length < mostPools ? html`<button type="button" @click=${() => app.addPool()}>Add a pool</button>` : nothing}
    ${half ? html`<button type="button" title="Half of the replicas prefill, the others decode" @click=${() => app.setPools(half)}>Split prefill and decode</button>` : nothing}
    ${hasRoles(pools) ? html`<button type="button" title="Every replica serves whole requests" @click=${() => app.setPools(withoutRoles(source))}>Join prefill and decode</button>` : nothing}
    ${splitsOf(source).length > 0 ? html`<button type="button" title="Whole requests, and every split into prefill and decode, on the same requests" @click=${() => compareBy(poolList)}>Compare splits</button>` : nothing}
  </div>`;
}

function renderTraffic(view: ViewContext, source: FormSource): TemplateResult | typeof nothing {
  if (needsTrace(source.document)) return nothing;
  const load = loadOf(source);
  return html`
    ${load ? renderField(view, source, load, { label: load.endsWith('rate_per_s') ? 'Rate' : 'Clients', slider: true }) : nothing}
    ${renderField(view, source, '/workload/requests', { label: 'Requests', slider: true })}
  `;
}

function renderWorkload(view: ViewContext, source: FormSource): TemplateResult {
  const traced = needsTrace(source.document);
  return html`
    ${
      traced
        ? nothing
        : html`
          ${renderField(view, source, '/workload/preset', { label: 'Workload' })}
          ${renderLengths(view, source, 'prompt_tokens', 'Prompt length')}
          ${renderLengths(view, source, 'output_tokens', 'Output length')}
        `
    }
    ${renderTrace(view, traced)}
    ${view.state.coefficients.kind === 'none' || view.openGroups.has('everything') ? nothing : renderCoefficients(view)}
  `;
}

function renderCoefficients(view: ViewContext): TemplateResult {
  needPart('sc-coefficients', () => import('./coefficients'));
  return html`<sc-coefficients .view=${view}></sc-coefficients>`;
}

function renderLengths(view: ViewContext, source: FormSource, key: string, title: string): TemplateResult {
  const prefix = `/workload/${key}/`;
  // Clips are details, except where they are the distribution itself.
  const isClip = (pointer: string) =>
    /\/(min|max)$/.test(pointer) && valueAt(source, `${prefix}distribution`) !== 'uniform';
  const fields = placedFields(source, (path) => path.startsWith(prefix)).filter(({ pointer }) => !isClip(pointer));
  return html`<fieldset class="group">
    <legend class="visually-hidden">${title}</legend>
    ${repeat(
      fields,
      (placed) => placed.pointer,
      (placed) =>
        renderPlaced(
          view,
          source,
          placed,
          placed.field.type === 'choice' ? { label: title } : { slider: isAboveZero(placed) },
          'f',
        ),
    )}
  </fieldset>`;
}

/** What a slider can span: it goes by decades. */
function isAboveZero({ field }: PlacedField): boolean {
  return (field.type === 'number' || field.type === 'integer') && (field.minimum ?? 0) >= 0;
}

export function renderTrace(view: ViewContext, traced: boolean): TemplateResult {
  const { trace, shown } = view.state;
  const requests =
    shown?.outcome.report.workload.source === 'trace'
      ? `, ${countOf(shown.outcome.report.workload.requests, 'request')}`
      : '';
  return html`<div class="trace-box">
    <h3>Trace</h3>
    ${trace.kind === 'loaded' ? html`<p class="long-name"><strong>${trace.name}</strong><br />${formatBytes(trace.bytes)} unpacked${requests}</p>${trace.read.reading === '' ? nothing : html`<p class="quiet-text" id="trace-reading">Read as ${trace.read.reading}.</p>`}` : nothing}
    ${trace.kind === 'reading' ? html`<p class="long-name">Reading ${trace.name}… ${formatPercent(trace.progress)}</p>` : nothing}
    ${trace.kind === 'failed' ? html`<p class="field-error" role="alert">${trace.message}</p>` : nothing}
    ${trace.kind === 'none' ? html`<p class="quiet-text">Drop a .csv, .jsonl or .json file, plain or .gz, anywhere on the page. It stays on this machine.</p>` : nothing}
    <div class="button-row">
      ${trace.kind === 'reading' ? html`<button type="button" @click=${() => view.app.cancelTrace()}>Cancel reading</button>` : nothing}
      ${renderFitButtons(view)}
      <button type="button" @click=${() => view.chooseTrace()}>${traced && trace.kind === 'loaded' ? 'Choose another file' : 'Choose a trace file'}</button>
      ${(traced && trace.kind !== 'reading') || trace.kind === 'failed' || trace.kind === 'loaded' ? html`<button type="button" @click=${() => view.app.removeTrace()}>Remove trace</button>` : nothing}
    </div>
  </div>`;
}

function renderLimits(view: ViewContext, source: FormSource): TemplateResult | typeof nothing {
  const limit = source.catalog.fields.find((field) => field.path === '/slo/-/limit_ms');
  if (!limit) return nothing;
  const list = getAt(source.document, '/slo');
  const items = Array.isArray(list) ? (list as readonly Json[]) : [];
  return html`<fieldset class="group">
    <legend>Limits (SLO): metric, percentile, at most</legend>
    ${items.map((item, index) => renderLimit(view, source, item, index))}
    <div class="button-row"><button type="button" @click=${() => addLimit(view, source, items)}>Add a limit</button></div>
  </fieldset>`;
}

function renderLimit(view: ViewContext, source: FormSource, item: Json, index: number): TemplateResult {
  const at = `/slo/${index}`;
  const metric = isObject(item) ? String(item['metric'] ?? '').toUpperCase() : '';
  // Its class has a place among the others: few limits have one.
  const fields = placedFields(source, (path) => path.startsWith('/slo/-/') && path !== '/slo/-/class').filter(
    (placed) => placed.pointer.startsWith(`${at}/`),
  );
  const labels: Record<string, string> = {
    metric: 'Metric',
    percentile: metric === 'ATTAINMENT' ? 'Share of the requests' : 'Percentile',
    limit_ms: 'At most',
    ttft_ms: 'TTFT at most',
    tpot_ms: 'TPOT at most',
    e2e_ms: 'E2E at most',
  };
  return html`<div class="limit ${metric.toLowerCase()}" role="group" aria-label="Limit ${index + 1}, ${metric}">
    ${repeat(
      fields,
      (placed) => placed.pointer,
      (placed) => {
        const label = labels[placed.pointer.split('/').at(-1) ?? ''];
        return renderPlaced(view, source, placed, label === undefined ? {} : { label }, 'f');
      },
    )}
    <button class="quiet icon" type="button" title="Remove" aria-label="Remove limit ${index + 1}, ${metric}" @click=${() => view.app.removeItem(at)}>×</button>
  </div>`;
}

function addLimit(view: ViewContext, source: FormSource, items: readonly Json[]): void {
  const metric = source.catalog.fields.find((field) => field.path === '/slo/-/metric');
  const used = new Set(items.map((item) => (isObject(item) ? item['metric'] : undefined)));
  const latencies = metric?.choices.filter((choice) => choice !== 'attainment') ?? [];
  const free = latencies.find((choice) => !used.has(choice)) ?? latencies[0] ?? 'ttft';
  const percentile = source.catalog.fields.find((field) => field.path === '/slo/-/percentile');
  // A round number that today's value meets with room: a new limit starts as a question, not as a failure.
  const report = view.state.shown?.outcome.report;
  const measured = report
    ? { ttft: report.ttft_ms, tpot: report.tpot_ms, itl: report.itl_ms, e2e: report.e2e_ms }[free]?.p99
    : null;
  const limit = measured ? roundUp(measured * 1.2) : 1000;
  view.app.setValue(
    `/slo/${items.length}`,
    { metric: free, percentile: (percentile?.default ?? 99) as Json, limit_ms: limit },
    'dragging',
  );
}

export function pricePointer(source: FormSource): string | null {
  return source.catalog.fields.find((field) => field.path === '/hardware/price_per_gpu_hour')?.path ?? null;
}

function renderPrice(view: ViewContext, source: FormSource): TemplateResult | typeof nothing {
  const pointer = pricePointer(source);
  return pointer === null ? nothing : renderField(view, source, pointer, { label: 'GPU price' });
}

function renderGroup(
  view: ViewContext,
  source: FormSource,
  id: string,
  title: string,
  accept: (path: string) => boolean,
): TemplateResult {
  const open = view.openGroups.has(id);
  const replaced = getAt(source.document, '/workload/arrivals/process') === 'trace' ? byTrace : [];
  const fields = open
    ? placedFields(
        source,
        (path) =>
          accept(path) && (!replaced.includes(path) || issuesAt(view, path).length > 0 || view.state.drafts.has(path)),
      )
    : [];
  const sections = new Map<string, PlacedField[]>();
  for (const placed of fields) {
    const section = parentOf(placed.pointer);
    sections.set(section, [...(sections.get(section) ?? []), placed]);
  }
  return html`<details class="fields" .open=${open} @toggle=${(event: Event) => view.toggleGroup(id, (event.target as HTMLDetailsElement).open)}>
    <summary>${title}</summary>
    ${replaced.some(accept) ? html`<p class="quiet-text">The trace brings its own requests, in place of a preset and a number of requests.</p>` : nothing}
    ${[...sections].map(
      ([section, members]) => html`
        ${sections.size > 1 ? html`<h3>${sectionTitle(section)}</h3>` : nothing}
        ${repeat(
          members,
          (placed) => placed.pointer,
          (placed) => renderPlaced(view, source, placed, { verbatim: true }, id),
        )}
        ${section === '/latency' ? renderCoefficients(view) : nothing}
        ${
          classesList === parentOf(section)
            ? html`<div class="button-row"><button type="button" @click=${() => view.app.removeItem(section)}>Remove class ${Number(lastOf(section)) + 1}</button></div>`
            : nothing
        }
      `,
    )}
    ${open && accept(`${classesList}/-/name`) ? renderAddClass(view, source) : nothing}
  </details>`;
}

const classesList = '/workload/classes';
/** Without effect when arrivals come from a trace: shown only where something is wrong with them. */
const byTrace = ['/workload/preset', '/workload/name', '/workload/requests'];

/** People count from 1; pointers, where they are shown, from 0. */
function sectionTitle(pointer: string): string {
  const words = segmentsOf(pointer).map((part) =>
    /^\d+$/.test(part) ? String(Number(part) + 1) : part.replaceAll('_', ' '),
  );
  return words.join(' · ') || 'scenario';
}

/** Client classes are a list in the document; without any, all requests are alike. */
function renderAddClass(view: ViewContext, source: FormSource): TemplateResult | typeof nothing {
  if (needsTrace(source.document) || !source.catalog.fields.some((field) => field.path.startsWith(`${classesList}/-/`)))
    return nothing;
  const list = getAt(source.document, classesList) ?? getAt(source.resolved ?? undefined, classesList);
  const count = Array.isArray(list) ? list.length : 0;
  const added = { name: `class ${count + 1}`, share: 1 };
  return html`<div class="button-row"><button type="button" @click=${() => view.app.setValue(`${classesList}/${count}`, added, 'dragging')}>Add a class of clients</button></div>`;
}

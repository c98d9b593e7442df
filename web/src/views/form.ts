// The rail on the left: the questions most people ask, a row each; every other field is found below them. Labels are
// the page's words; all that a field is comes from the catalogue.
import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import { countOf, formatGiven, roundUp } from '../lib/format';
import { needPart } from '../lib/part';
import { equalJson, getAt, isObject, lastOf, needsTrace, type Json } from '../state/document';
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
import { ownSections, poolList, poolsInWords, poolsOf, replicasInAll, roleOf } from '../state/pools';
import type { ViewContext } from './context';
import { renderField, renderPlaced, valueAt, type Look } from './placed';
import { firstRun } from '../lib/first-run';

const mostPools = 16;
/** Whether it is open: a group of the page. */
export const allSettings = 'all';

/** The rows of the form: at most 18 of a scenario with one pool and two targets. */
export function renderForm(view: ViewContext): TemplateResult {
  const source = view.app.source;
  if (!source) return html``;
  return html`
    ${part('Model', nothing, renderModel(view, source))} ${part('Hardware', renderAddPool(view, source), renderHardware(view, source))}
    ${part('Traffic', renderTraceChoice(view, source), renderTraffic(view, source))}
    ${part('Targets', renderAddTarget(view, source), renderTargets(view, source))}
    ${part('Engine', renderEngineName(view, source), renderEngine(view, source))}
    ${renderAll(view)}
  `;
}

function part(title: string, aside: TemplateResult | typeof nothing, body: unknown): TemplateResult {
  return html`<section class="part" aria-label=${title}>
    <div class="part-head"><h3>${title}</h3>${aside}</div>
    ${body}
  </section>`;
}

function renderModel(view: ViewContext, source: FormSource): TemplateResult {
  const experts = valueAt(source, '/model/expert_quantization') ?? 'none';
  const typeOf = (weights: string) =>
    weights === 'none' ? String(valueAt(source, '/model/torch_dtype') ?? 'none') : weights;
  const nameOf = (weights: string) =>
    experts === 'none' || experts === weights ? typeOf(weights) : `${typeOf(weights)}, experts ${experts}`;
  return html`${renderField(view, source, '/model/preset', { label: 'Model' })} ${renderField(view, source, '/model/quantization', { label: 'Weights', nameOf })}`;
}

function renderHardware(view: ViewContext, source: FormSource): TemplateResult {
  if (view.state.shown || view.state.run.kind === 'refused') needPart('sc-memory', () => import('./memory-bar'));
  return html`${renderField(view, source, '/hardware/preset', { label: 'GPU' })} ${renderPools(view, source)}
    ${renderPrice(view, source)} <sc-memory .state=${view.state}></sc-memory>`;
}

/** The knobs that are turned most, in plain words; vLLM's names are their titles. */
function renderEngine(view: ViewContext, source: FormSource): TemplateResult {
  const knob = (name: string, look: Look) => renderField(view, source, `/engine/${name}`, look);
  return html`${knob('max_num_seqs', { label: 'Sequences', slider: true, unit: 'max' })}
    ${knob('max_num_batched_tokens', { label: 'Tokens/step', slider: true, unit: 'max' })}
    ${knob('gpu_memory_utilization', { label: 'GPU memory', unit: 'share' })}
    ${knob('enable_prefix_caching', { label: 'Prefix cache' })}
    ${knob('enable_chunked_prefill', { label: 'Chunking' })}`;
}

function renderEngineName(view: ViewContext, source: FormSource): TemplateResult {
  const pointer = '/engine/preset';
  const current = valueAt(source, pointer);
  const presets = presetsFor(source.catalog, pointer);
  const choose = (event: Event) => view.app.setValue(pointer, (event.target as HTMLSelectElement).value, 'dragging');
  return html`<select class="head-choice" aria-label="Engine version" @change=${choose}>
    ${presets.some(({ id }) => id === current) ? nothing : html`<option selected disabled>own engine</option>`}
    ${presets.map(({ id, name }) => html`<option value=${id} ?selected=${id === current}>${name}</option>`)}
  </select>`;
}

/** Everything else, searched by name or words; and the way back. */
function renderAll(view: ViewContext): TemplateResult {
  const open = view.openGroups.has(allSettings);
  const { document, base, drafts } = view.state;
  const isChanged = drafts.size > 0 || !equalJson(document, base);
  if (open) needPart('sc-all-settings', () => import('./all-settings'));
  return html`<div class="part-head rail-foot">
      <button class="as-link" type="button" aria-expanded=${open} aria-keyshortcuts="f" @click=${() => view.toggleGroup(allSettings, !open)}>All settings</button>
      <kbd aria-hidden="true">f</kbd>
      ${isChanged ? html`<button class="as-link" type="button" @click=${() => view.app.resetAll()}>Reset all</button>` : nothing}
    </div>
    ${open ? html`<sc-all-settings .view=${view}></sc-all-settings>` : nothing}`;
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
  const isCluster = !isPlain || replicasInAll(pools) > 1;
  if (isCluster) needPart('sc-pools', () => import('./pools'));
  return html`${
    isPlain
      ? html`${renderField(view, source, `${poolList}/0/tensor_parallel`, { label: 'GPUs each', slider: true, unit: 'TP' })} ${renderField(view, source, `${poolList}/0/replicas`, { label: 'Replicas', slider: true, unit: countOf(Number(first['tensor_parallel'] ?? 1) * Number(first['replicas'] ?? 1), 'GPU') })}`
      : nothing
  }
    ${isCluster ? html`<sc-pools .style=${`--pools:${isPlain ? 0 : pools.length}`} .view=${view} .plain=${isPlain}></sc-pools>` : nothing}`;
}

function renderAddPool({ app }: ViewContext, source: FormSource): TemplateResult | typeof nothing {
  if (poolsOf(source).length >= mostPools) return nothing;
  return html`<button class="as-link" type="button" title="More engines, or ones on other GPUs" @click=${() => void app.addPool()}>Add a pool</button>`;
}

function renderTraffic(view: ViewContext, source: FormSource): TemplateResult {
  const coefficients =
    view.state.coefficients.kind === 'none' || view.openGroups.has(allSettings) ? nothing : renderCoefficients(view);
  if (needsTrace(source.document)) return html`${renderTrace(view)} ${coefficients}`;
  const load = loadOf(source);
  const isRate = load?.endsWith('rate_per_s') ?? false;
  if (isRate) needPart('sc-load-as', () => import('./load-as'));
  return html`
    ${renderField(view, source, '/workload/preset', { label: 'Workload' })}
    ${load ? renderField(view, source, load, { label: isRate ? 'Rate' : 'Clients', slider: true, held: view.state.held_rate }) : nothing}
    ${isRate ? html`<sc-load-as .view=${view}></sc-load-as>` : nothing}
    ${renderLengths(view, source, 'prompt_tokens', 'Prompt')} ${renderLengths(view, source, 'output_tokens', 'Output')}
    ${renderField(view, source, '/workload/requests', { label: 'Requests', slider: true, unit: 'at least' })}
    ${view.state.trace.kind === 'none' ? nothing : renderTrace(view)} ${coefficients}
  `;
}

function renderTraceChoice(view: ViewContext, source: FormSource): TemplateResult | typeof nothing {
  if (needsTrace(source.document) || view.state.trace.kind !== 'none') return nothing;
  return html`<button class="as-link" type="button" title="A .csv, .jsonl or .json file, plain or .gz: drop it anywhere on the page, or choose it. It stays on this machine." @click=${() => view.chooseTrace()}>drop or choose a trace</button>`;
}

/** What says most of a distribution of lengths, and in which words; a table has no such number. */
const mainLengths: readonly (readonly [string, string])[] = [
  ['value', ''],
  ['median', ', p50'],
  ['mean', ', mean'],
  ['ratio', ', ratio'],
  ['max', ', max'],
];

/** One row; its name opens the others. */
function renderLengths(view: ViewContext, source: FormSource, key: string, title: string): TemplateResult {
  const prefix = `/workload/${key}/`;
  const id = `more-${key}`;
  const distribution = String(valueAt(source, `${prefix}distribution`));
  // Clips are details, except where they are the distribution itself.
  const isClip = ({ pointer }: PlacedField) =>
    /\/(min|max)$/.test(pointer) && distribution !== 'uniform' && distribution !== 'zipf';
  const fields = placedFields(source, (path) => path.startsWith(prefix)).filter((placed) => !isClip(placed));
  const [name, words] = mainLengths.find(([last]) => fields.some(({ pointer }) => pointer === prefix + last)) ?? [
    '',
    '',
  ];
  const main = fields.find(({ pointer }) => pointer === prefix + name);
  const open = view.openGroups.has(id);
  const more = {
    open,
    title: `How ${title.toLowerCase()} lengths vary`,
    toggle: () => view.toggleGroup(id, !open),
  };
  const look = (placed: PlacedField) => ({
    slider: isAboveZero(placed),
    unit: placed.field.unit === 'tokens' ? 'tok' : '',
  });
  return html`${
    main
      ? renderPlaced(view, source, main, { ...look(main), label: title + words, more }, 'f')
      : html`<div class="field line"><div class="name"><button class="more" type="button" aria-expanded=${open} title=${more.title} @click=${more.toggle}>${title}</button></div><div class="control quiet-text">${distribution}</div></div>`
  }
    ${
      open
        ? html`<div class="more-of" role="group" aria-label=${more.title}>${repeat(
            fields.filter((placed) => placed !== main),
            (placed) => placed.pointer,
            (placed) =>
              renderPlaced(
                view,
                source,
                placed,
                placed.field.type === 'choice' ? { label: 'Lengths' } : look(placed),
                'f',
              ),
          )}</div>`
        : nothing
    }`;
}

/** What a slider can span: it goes by decades. */
function isAboveZero({ field }: PlacedField): boolean {
  return (field.type === 'number' || field.type === 'integer') && (field.minimum ?? 0) > 0;
}

export function renderCoefficients(view: ViewContext): TemplateResult {
  needPart('sc-coefficients', () => import('./coefficients'));
  return html`<sc-coefficients .view=${view}></sc-coefficients>`;
}

function renderTrace(view: ViewContext): TemplateResult {
  needPart('sc-trace-box', () => import('./trace-box'));
  return html`<sc-trace-box .view=${view}></sc-trace-box>`;
}

function renderTargets(view: ViewContext, source: FormSource): readonly TemplateResult[] {
  return targetsOf(source).map((item, index) => renderTarget(view, source, item, index));
}

function targetsOf(source: FormSource): readonly Json[] {
  const list = getAt(source.document, '/slo');
  return Array.isArray(list) ? (list as readonly Json[]) : [];
}

function renderAddTarget(view: ViewContext, source: FormSource): TemplateResult {
  return html`<button class="as-link" type="button" aria-label="Add a target" @click=${() => addLimit(view, source, targetsOf(source))}>add</button>`;
}

const moreOfTargets: Readonly<Record<string, string>> = {
  metric: 'Metric',
  percentile: 'Percentile',
  ttft_ms: 'TTFT at most',
  tpot_ms: 'TPOT at most',
  e2e_ms: 'E2E at most',
};

/** One row: what is limited, and how much; its name opens the rest. */
function renderTarget(view: ViewContext, source: FormSource, item: Json, index: number): TemplateResult {
  const at = `/slo/${index}`;
  const metric = isObject(item) ? String(item['metric'] ?? '').toUpperCase() : '';
  const main = `${at}/${metric === 'ATTAINMENT' ? 'percentile' : 'limit_ms'}`;
  const percentile = valueAt(source, `${at}/percentile`);
  const label = metric === 'ATTAINMENT' ? 'Attainment' : `${metric} p${String(percentile ?? '')}`;
  const open = view.openGroups.has(`more-${at}`);
  const more = {
    open,
    title: 'Metric and percentile',
    toggle: () => view.toggleGroup(`more-${at}`, !open),
  };
  // Its class has a place among the others: few targets have one.
  const fields = placedFields(source, (path) => path.startsWith('/slo/-/') && path !== '/slo/-/class').filter(
    ({ pointer }) => pointer.startsWith(`${at}/`) && pointer !== main,
  );
  return html`<div class="limit" role="group" aria-label="Target ${index + 1}, ${label}">
    ${renderField(view, source, main, { label, slider: metric !== 'ATTAINMENT', more })}
    <button class="quiet icon" type="button" title="Remove" aria-label="Remove target ${index + 1}, ${label}" @click=${() => view.app.removeItem(at)}>×</button>
    ${
      open
        ? html`<div class="more-of">${repeat(
            fields,
            ({ pointer }) => pointer,
            (placed) => {
              const name = moreOfTargets[lastOf(placed.pointer)];
              return renderPlaced(view, source, placed, name === undefined ? {} : { label: name }, 'f');
            },
          )}</div>`
        : nothing
    }
  </div>`;
}

export function addLimit(view: ViewContext, source: FormSource, items: readonly Json[]): void {
  const metric = source.catalog.fields.find((field) => field.path === '/slo/-/metric');
  const used = new Set(items.map((item) => (isObject(item) ? item['metric'] : undefined)));
  const latencies = metric?.choices.filter((choice) => choice !== 'attainment') ?? [];
  const free = latencies.find((choice) => !used.has(choice)) ?? latencies[0] ?? 'ttft';
  const percentile = source.catalog.fields.find((field) => field.path === '/slo/-/percentile');
  // A round number that today's value meets with room: a new limit starts as a question, not as a failure.
  const report = view.state.shown?.outcome.report;
  const measured = report
    ? { ttft: report.ttft_ms, tpot: report.tpot_ms, itl: firstRun(report).itl_ms, e2e: report.e2e_ms }[free]?.p99
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
  return pointer === null ? nothing : renderField(view, source, pointer, { label: 'Price' });
}

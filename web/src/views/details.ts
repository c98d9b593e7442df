// What opens below the charts: every number of the report, the scenario as text, what is not
// modelled, notices; and the footer line.
import { html, nothing, type TemplateResult } from 'lit';
import type { ClassReport, Distribution, Issue, Report, TimeParts } from 'servecast';
import { download } from '../lib/download';
import { countOf, formatCount, formatGivenTime, formatNumber, formatPercent, formatTime, sentence, spokenDuration } from '../lib/format';
import { needPart } from '../lib/part';
import { getAt, isObject, type Document, type Json } from '../state/document';
import type { ViewContext } from './context';
import { isStale } from './verdict';

const distributions = [
  ['ttft_ms', 'Time to first token (TTFT)'],
  ['itl_ms', 'Between tokens (ITL)'],
  ['tpot_ms', 'Per output token (TPOT)'],
  ['e2e_ms', 'End to end (E2E)'],
  ['scheduling_delay_ms', 'Scheduling delay'],
  ['step_delay_ms', 'Between steps'],
] as const;

const statistics = ['mean', 'min', 'p50', 'p90', 'p95', 'p99', 'max'] as const;

export function renderAllNumbers(report: Report | null, waitingFor: string): TemplateResult {
  if (!report) return html`<p class="quiet-text">${waitingFor}</p>`;
  const { time_split: split, classes } = report;
  return html`
    ${table('Latencies of this one run (n is the number of samples)', ['Metric', 'n', ...statistics], distributions.map(([key, label]) => distributionRow(label, report[key])))}
    ${split ? table('Where the mean time of completed requests goes', ['Metric', ...parts], [partsRow('TTFT', split.ttft_ms), partsRow('E2E', split.e2e_ms)]) : nothing}
    ${classes.length > 0 ? table('By class', classColumns, classes.map(classRow)) : nothing}
    <dl class="all-numbers">${flatten(report).map(([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`)}</dl>
  `;
}

/** The first cell of a row is its heading. */
function table(caption: string, head: readonly string[], rows: readonly (readonly string[])[]): TemplateResult {
  return html`
    <div class="table-scroll" tabindex="0" role="region" aria-label=${caption}>
      <table>
        <caption>${caption}</caption>
        <thead><tr>${head.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
        <tbody>${rows.map(([name, ...cells]) => html`<tr><th scope="row">${name}</th>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody>
      </table>
    </div>
  `;
}

const parts = ['host', 'queue', 'prefill', 'decode', 'interference', 'preempted', 'transfer', 'handover'] as const;
const partsRow = (name: string, of: TimeParts): string[] => [name, ...parts.map((part) => formatTime(of[part]))];

const classColumns = ['Class', 'arrived', 'completed', 'TTFT p50', 'p99', 'TPOT p50', 'p99', 'E2E p50', 'p99', 'requests/s', 'tokens/s', 'goodput/s', 'attainment', 'deadlines missed'];

function classRow(of: ClassReport): string[] {
  return [
    of.name,
    ...[of.arrived, of.completed].map(formatCount),
    ...[of.ttft_ms, of.tpot_ms, of.e2e_ms].flatMap((d) => [formatTime(d.p50), formatTime(d.p99)]),
    ...[of.requests_per_s, of.output_tokens_per_s, of.goodput_per_s].map((rate) => formatNumber(rate, 4)),
    of.attainment === null ? '–' : formatPercent(of.attainment),
    of.deadline_misses === null ? '–' : formatCount(of.deadline_misses),
  ];
}

/** Below the KV memory in use; nothing when no prompt was looked up or none could find anything. */
export function renderPrefixCache(report: Report): TemplateResult | typeof nothing {
  const { hit_rate: rate, block_hit_rate: blocks, hit_tokens: hits, evicted_blocks: evicted } = report.prefix_cache;
  if (rate === null) return nothing;
  const said = (pointer: string) => Number(getAt(report.scenario as Document, `/workload/${pointer}`) ?? 0);
  const shares = said('prefix/groups') * said('prefix/tokens') > 0 || said('sessions/turns') > 1;
  const { cpu, disk } = report.kv_offload ?? {};
  if (hits + (cpu?.hit_tokens ?? 0) + (disk?.hit_tokens ?? 0) === 0 && !shares) {
    return report.workload.source === 'trace' ? html`<p class="help" id="prefix-cache">Prefix cache: no hits. Only hash ids in a trace say what its prompts share.</p>` : nothing;
  }
  return html`<p class="help" id="prefix-cache">Prefix cache: <b>${formatPercent(rate)}</b> of prompt tokens hit
    ${blocks === null ? nothing : html`(${formatPercent(blocks)} of blocks)`}${cpu ? `, ${formatPercent(cpu.hit_rate ?? 0)} more in host memory` : nothing}${disk ? `, ${formatPercent(disk.hit_rate ?? 0)} more on disk` : nothing}, counted when a prompt is first admitted${evicted > 0 ? html`; ${formatCount(evicted)} cached blocks evicted` : nothing}.</p>`;
}

function distributionRow(label: string, distribution: Distribution): string[] {
  return [
    label + (distribution.exact ? '' : ' (about)'),
    formatCount(distribution.n) + (distribution.censored > 0 ? ` (${formatCount(distribution.censored)} unfinished)` : ''),
    ...statistics.map((name) => formatTime(distribution[name])),
  ];
}

const shownElsewhere = new Set(['schema', 'verdict', 'scenario', 'latency_model', 'time_split', 'classes', 'replicas', 'pools', 'kv_transfer', ...distributions.map(([key]) => key)]);

function flatten(report: Report): [string, string][] {
  const rows: [string, string][] = [];
  const walk = (value: Json, path: readonly string[]): void => {
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) walk(item, [...path, String(index + 1)]);
    } else if (isObject(value)) {
      for (const [key, item] of Object.entries(value)) walk(item, [...path, key]);
    } else {
      rows.push([wordsOf(path), valueText(path.at(-1) ?? '', path, value as null | boolean | number | string)]);
    }
  };
  for (const [key, value] of Object.entries(report)) {
    if (!shownElsewhere.has(key) && (report.finished || key !== 'fingerprint')) walk(value as Json, [key]);
  }
  return rows;
}

const suffixes = /_(ms|s|gib)$/;

function wordsOf(path: readonly string[]): string {
  const text = path
    .map((part) => part.replace('queue_slope_per_s', 'queue_slope').replace(/_per_s(_|$)/, '/s$1').replace(suffixes, '').replaceAll('_', ' '))
    .join(' · ')
    .replace(/\b(kv|mfu|slo)\b/g, (word) => word.toUpperCase())
    .replace(/\bgpu/g, 'GPU');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Of rows whose key does not say it. */
const units: Readonly<Record<string, string>> = {
  'requests_per_s': 'requests/s',
  'goodput_per_s': 'requests/s',
  'output_tokens_per_s': 'tokens/s',
  'output_tokens_per_s_per_gpu': 'tokens/s',
  'saturation.queue_slope_per_s': 'requests/s',
  'saturation.queue_p95': 'requests',
  'kv.block_size': 'tokens',
  'cost_per_million_output_tokens': '$',
};

const shares = /usage|fragmentation|utilization|attainment|mfu|bandwidth_use|share$|margin|hit_rate$/;

/** By the unit in the key's name. */
function valueText(key: string, path: readonly string[], value: null | boolean | number | string): string {
  if (value === null) return '–';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'string') return value === '' ? '–' : value;
  if (key === 'limit_ms') return formatGivenTime(value);
  if (key.endsWith('_ms')) return formatTime(value);
  if (key.endsWith('_gib')) return `${formatNumber(value, 4)}\u202fGiB`;
  if (key.endsWith('_s') && !key.endsWith('_per_s')) return formatTime(value * 1000);
  if (shares.test(key) || path.at(-2) === 'shares') return formatPercent(value);
  const unit = units[path.join('.')] ?? (path.length > 1 ? /(tokens|blocks)$/.exec(key)?.[0] : undefined);
  return `${Number.isInteger(value) ? formatCount(value) : formatNumber(value, 4)}${unit === undefined ? '' : `\u202f${unit}`}`;
}

/** Its code is fetched with the first cluster that is looked at. */
export function renderCluster(report: Report, fileStem: string): TemplateResult {
  needPart('sc-cluster', () => import('./cluster'));
  return html`<sc-cluster .report=${report} .fileStem=${fileStem}></sc-cluster>`;
}

export interface ScenarioEditor {
  /** null: shows the current document. */
  readonly text: string | null;
  readonly issues: readonly Issue[];
  edit(text: string | null): void;
  apply(): void;
}

export function renderScenario(view: ViewContext, editor: ScenarioEditor): TemplateResult {
  const { document, shown } = view.state;
  const current = JSON.stringify(document, null, 2);
  const text = editor.text ?? current;
  const resolved = shown ? JSON.stringify(shown.outcome.report.scenario, null, 2) : '';
  const save = (name: string, content: string) => download(name, new Blob([`${content}\n`], { type: 'application/json' }));
  return html`
    <div class="scenario-texts">
      <div>
        <label for="scenario-text">Scenario document (JSON)</label>
        <textarea
          id="scenario-text"
          rows="22"
          spellcheck="false"
          autocomplete="off"
          aria-invalid=${editor.issues.length > 0}
          aria-describedby=${editor.issues.length > 0 ? 'scenario-issues' : nothing}
          .value=${text}
          @input=${(event: Event) => editor.edit((event.target as HTMLTextAreaElement).value)}
        ></textarea>
        ${editor.issues.length > 0
          ? html`<ul class="issues" id="scenario-issues" role="alert">${editor.issues.map((issue) => html`<li>${issue.path === '' ? nothing : html`<b>${issue.path}</b>: `}${sentence(issue.message)}</li>`)}</ul>`
          : nothing}
        <div class="button-row">
          <button class="primary" type="button" ?disabled=${editor.text === null} @click=${() => editor.apply()}>Apply</button>
          <button type="button" ?disabled=${editor.text === null} @click=${() => editor.edit(null)}>Revert</button>
          <button type="button" @click=${() => save('scenario.json', current)}>Download scenario.json</button>
        </div>
      </div>
      <div>
        <label for="resolved-text">Resolved: presets inlined, runs as it is</label>
        <textarea id="resolved-text" rows="22" readonly .value=${resolved}></textarea>
        <div class="button-row"><button type="button" ?disabled=${resolved === ''} @click=${() => save('scenario-resolved.json', resolved)}>Download resolved.json</button></div>
      </div>
    </div>
  `;
}

export function renderNotModelled(view: ViewContext): TemplateResult {
  const { catalog } = view.state;
  return html`
    <ul class="plain-list">${catalog?.not_modelled.map((item) => html`<li>${item}</li>`)}</ul>
    <h3>Notices</h3>
    <ul class="plain-list">${catalog?.notices.map((item) => html`<li>${item}</li>`)}</ul>
  `;
}

export function renderFooter(view: ViewContext): TemplateResult {
  const { shown, catalog } = view.state;
  if (!shown) return html`<p>${catalog ? `Engine ${catalog.engine_version}` : ''}</p>`;
  const { report, engine_ms: engineMs } = shown.outcome;
  return html`
    <p>
      ${isStale(view.state) ? html`<span>of the last scenario that ran</span>` : nothing}
      <span>${countOf(report.arrived, 'request')}</span>
      <span>${spokenDuration(report.simulated_s)} in ${formatTime(engineMs)}</span>
      <span>engine ${report.engine_version}</span>
      ${report.finished ? html`<span>fingerprint <code id="fingerprint">${report.fingerprint}</code></span>` : html`<span>partial run, which has no fingerprint</span>`}
      <span>scenario <code>${report.scenario_id}</code></span>
    </p>
    <p>
      Latency model ${report.latency_model.backend}: ${sentence(report.latency_model.description)}
    </p>
  `;
}

// Who did how much in a cluster: a row a pool, what travelled between prefill and decode, how even the
// replicas are, and a row a replica, sorted as one likes. Loaded when a cluster's panel is opened.
import { html, nothing, svg, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { PoolReport, PoolRun, Report } from 'servecast';
import { download } from '../lib/download';
import { addStyles } from '../lib/part';
import styles from '../styles/cluster.css?inline';
import { countOf, formatBytes, formatCount, formatNumber, formatPercent, formatTime } from '../lib/format';
import { firstRun } from '../lib/first-run';

interface Figure {
  readonly key: 'requests' | 'busy_share' | 'mean_outstanding' | 'kv_peak_usage' | 'ttft_mean_ms';
  readonly head: string;
  format(value: number | null | undefined): string;
}

const figures: readonly Figure[] = [
  { key: 'requests', head: 'Requests', format: formatCount },
  { key: 'busy_share', head: 'Busy', format: formatPercent },
  { key: 'mean_outstanding', head: 'Mean outstanding', format: (value) => formatNumber(value) },
  { key: 'kv_peak_usage', head: 'KV peak', format: formatPercent },
  { key: 'ttft_mean_ms', head: 'Mean TTFT', format: formatTime },
];

const firstRows = 32;
const moreRows = 100;
const bins = 40;

interface Row {
  readonly replica: number;
  readonly pool: number;
  readonly values: Readonly<Record<Figure['key'], number | null>>;
}

export class ClusterElement extends PlainElement {
  static override properties = {
    report: { attribute: false },
    fileStem: { attribute: false },
    sortedBy: { state: true },
    ascending: { state: true },
    shownRows: { state: true },
  };
  declare report: Report;
  declare fileStem: string;
  declare sortedBy: Figure['key'] | 'replica';
  declare ascending: boolean;
  declare shownRows: number;

  constructor() {
    super();
    this.sortedBy = 'mean_outstanding';
    this.ascending = false;
    this.shownRows = firstRows;
  }

  protected override render(): TemplateResult {
    const rows = rowsOf(this.report);
    const pools = poolsOf(this.report);
    return html`${pools.length > 0 ? renderPoolTable(pools) : nothing} ${renderTransfers(this.report)} ${renderEvenness(rows, pools)} ${this.#replicas(rows, pools)}`;
  }

  #replicas(rows: readonly Row[], pools: readonly PoolReport[]): TemplateResult {
    const order = this.ascending ? 1 : -1;
    const of = ({ replica, values }: Row) =>
      this.sortedBy === 'replica' ? replica : (values[this.sortedBy] ?? -Infinity);
    const sorted = [...rows].sort((a, b) => order * (of(a) - of(b)) || a.replica - b.replica);
    const shown = sorted.slice(0, this.shownRows);
    const rest = sorted.length - shown.length;
    const head = (
      key: Figure['key'] | 'replica',
      text: string,
    ) => html`<th scope="col" aria-sort=${this.sortedBy === key ? (this.ascending ? 'ascending' : 'descending') : 'none'}>
      <button class="sort" type="button" @click=${() => this.#sortBy(key)}>${text}${this.sortedBy === key ? (this.ascending ? ' ▲' : ' ▼') : ''}</button>
    </th>`;
    return html`<div class="table-scroll" tabindex="0" role="region" aria-label="Replicas">
        <table id="replicas">
          <caption>By replica, ${formatCount(shown.length)} of ${formatCount(rows.length)}; a head sorts</caption>
          <thead><tr>${head('replica', 'Replica')}${pools.length > 0 ? html`<th scope="col" class="words">Pool</th>` : nothing}${figures.map((figure) => head(figure.key, figure.head))}</tr></thead>
          <tbody>${shown.map((row) => html`<tr><th scope="row">${row.replica + 1}</th>${pools.length > 0 ? html`${poolCell(pools, row.pool)}` : nothing}${figures.map((figure) => html`<td>${figure.format(row.values[figure.key])}</td>`)}</tr>`)}</tbody>
        </table>
      </div>
      <div class="button-row">
        ${rest > 0 ? html`<button type="button" @click=${() => (this.shownRows += moreRows)}>Show ${Math.min(rest, moreRows)} more</button>` : nothing}
        <button type="button" @click=${() => this.#saveCsv(rows)}>CSV of all replicas</button>
      </div>`;
  }

  #sortBy(key: Figure['key'] | 'replica'): void {
    this.ascending = this.sortedBy === key ? !this.ascending : key === 'replica';
    this.sortedBy = key;
  }

  #saveCsv(rows: readonly Row[]): void {
    const lines = rows.map(({ replica, pool, values }) =>
      [replica, pool, ...figures.map(({ key }) => values[key] ?? '')].join(','),
    );
    const text = [`replica,pool,${figures.map(({ key }) => key).join(',')}`, ...lines].join('\n');
    download(`${this.fileStem}-replicas.csv`, new Blob([`${text}\n`], { type: 'text/csv' }));
  }
}

type Pool = PoolReport & PoolRun;

/** What each is, with what it did in the first run. */
function poolsOf(report: Report): readonly Pool[] {
  const runs = firstRun(report).pools ?? [];
  return (report.pools ?? []).flatMap((pool, index) => (runs[index] ? [{ ...pool, ...runs[index] }] : []));
}

function rowsOf(report: Report): readonly Row[] {
  const { pools } = report;
  const { replicas } = firstRun(report);
  if (!replicas) return [];
  const poolOf = (pools ?? []).flatMap((pool, index) => Array.from({ length: pool.replicas }, () => index));
  return replicas.requests.map((_, replica) => ({
    replica,
    pool: poolOf[replica] ?? 0,
    values: Object.fromEntries(figures.map(({ key }) => [key, replicas[key][replica] ?? null])) as Row['values'],
  }));
}

function nameOf(pools: readonly PoolReport[], index: number): string {
  const pool = pools[index];
  if (!pool) return '';
  const role = pool.role === 'mixed' ? '' : pool.role;
  return [pool.name || String(index + 1), role].filter(Boolean).join(', ');
}

/** A name may be long: the whole of it is in the title. */
function poolCell(pools: readonly PoolReport[], index: number): TemplateResult {
  const name = nameOf(pools, index);
  return html`<th scope="row" class="pool-name" title=${name}>${name}</th>`;
}

const poolHead = [
  'Pool',
  'GPU',
  'Replicas',
  'TP × PP',
  'Requests',
  'Output tokens',
  'Busy',
  'Admission blocked',
  'KV mean',
  'KV peak',
  'MFU',
  'Bandwidth',
  'Preemptions',
  '$/h',
];

function renderPoolTable(pools: readonly Pool[]): TemplateResult {
  const cells = (of: Pool) => [
    formatCount(of.replicas),
    `${of.tensor_parallel}${of.pipeline_parallel > 1 ? ` × ${of.pipeline_parallel}` : ''}`,
    ...[of.requests, of.output_tokens].map(formatCount),
    ...[of.busy_share, of.blocked_share, of.kv_mean_usage, of.kv_peak_usage, of.mfu, of.bandwidth_use].map(
      formatPercent,
    ),
    formatCount(of.preemptions),
    formatNumber(of.cost_per_hour),
  ];
  return html`<div class="table-scroll" tabindex="0" role="region" aria-label="Pools">
    <table id="pools">
      <caption>By pool; shares are of the time, the memory and the peaks of all its replicas</caption>
      <thead><tr>${poolHead.map((text, index) => html`<th scope="col" class=${index === 1 ? 'words' : nothing}>${text}</th>`)}</tr></thead>
      <tbody>${pools.map((pool, index) => html`<tr>${poolCell(pools, index)}<td class="words">${pool.gpu}</td>${cells(pool).map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody>
    </table>
  </div>`;
}

function renderTransfers(report: Report): TemplateResult | typeof nothing {
  const { kv_transfer: kv, time_split: split } = firstRun(report);
  if (!kv) return nothing;
  const waits = split
    ? html` Before and after it a request waits ${formatTime(split.e2e_ms.handover)} on average.`
    : nothing;
  return html`<p id="kv-transfer"><b>KV transfer:</b> ${countOf(kv.transfers, 'request')} sent ${formatBytes(kv.bytes)} from prefill to decode, mean ${formatTime(kv.mean_ms)}, p99 ${formatTime(kv.p99_ms)} on the link;
    the first token comes from the ${kv.first_token_from} side.${waits}</p>`;
}

/** Of each pool's figures: the least, the median, the most, and their distribution. */
function renderEvenness(rows: readonly Row[], pools: readonly PoolReport[]): TemplateResult | typeof nothing {
  const groups = pools.length > 1 ? pools.map((_, index) => rows.filter(({ pool }) => pool === index)) : [rows];
  const lines = groups.flatMap((group, index) =>
    figures.map((figure) => {
      const values = group
        .map((row) => row.values[figure.key])
        .filter((value) => value !== null)
        .sort((a, b) => a - b);
      const mean = values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
      return { figure, index, values, mean };
    }),
  );
  if (groups.every((group) => group.length < 2)) return nothing;
  return html`<div class="table-scroll" tabindex="0" role="region" aria-label="How even the replicas are">
    <table id="evenness">
      <caption>How even the replicas are</caption>
      <thead><tr>${pools.length > 1 ? html`<th scope="col">Pool</th>` : nothing}<th scope="col" class="words">Figure</th><th scope="col">Least</th><th scope="col">Median</th><th scope="col">Most</th><th scope="col">Most ÷ mean</th><th scope="col" class="words">From 0 to the most</th></tr></thead>
      <tbody>${lines
        .filter(({ values }) => values.length > 1)
        .map(
          ({ figure, index, values, mean }) => html`<tr>
          ${pools.length > 1 ? poolCell(pools, index) : nothing}
          <th scope="row" class="words">${figure.head}</th>
          ${[values[0], values[Math.floor(values.length / 2)], values.at(-1)].map((value) => html`<td>${figure.format(value)}</td>`)}
          <td>${mean > 0 ? formatNumber((values.at(-1) ?? 0) / mean) : '–'}</td>
          <td class="words">${strip(values)}</td>
        </tr>`,
        )}</tbody>
    </table>
  </div>`;
}

/** How many replicas have how much: bars over the axis from 0 to the highest value. */
function strip(values: readonly number[]): TemplateResult {
  const most = values.at(-1) ?? 0;
  const counts = new Array<number>(bins).fill(0);
  for (const value of values) {
    const bin = most > 0 ? Math.min(bins - 1, Math.floor((value / most) * bins)) : 0;
    counts[bin] = (counts[bin] ?? 0) + 1;
  }
  const high = Math.max(...counts);
  const path = counts
    .map((count, bin) =>
      count === 0 ? '' : `M${bin * 4} 20v${-Math.max(2, (18 * count) / high)}h3v${Math.max(2, (18 * count) / high)}z`,
    )
    .join('');
  return html`<svg class="evenness-strip" viewBox="0 0 ${bins * 4} 21" width=${bins * 4} height="21" aria-hidden="true">${svg`<path d="M0 20.5h${bins * 4}" class="axis" /><path d=${path} />`}</svg>`;
}

addStyles(styles);
customElements.define('sc-cluster', ClusterElement);

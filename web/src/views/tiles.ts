// The four numbers: each target's latency with its interval, how far it is from its limit, throughput, and cost; power when
// it is asked for.
import { html, nothing, svg, type TemplateResult } from 'lit';
import type { Catalog, Report } from 'servecast';
import {
  countOf,
  formatCount,
  formatGivenTime,
  formatInterval,
  formatNumber,
  formatPercent,
  formatQuantity,
  formatTime,
  levelText,
  marginText,
  sentence,
  timeQuantity,
  type Quantity,
} from '../lib/format';
import { isLost, sideOf, type Side } from '../lib/targets';
import { getAt, type Document } from '../state/document';
import { isAwaited, isUncertain, reportOf } from '../state/store';
import type { ViewContext } from './context';
import { pricePointer } from './form';
import { powerTile } from './tabs';

type Target = Report['slo'][number];
type Metric = Target['metric'];
export type Latency = Target & { readonly limit_ms: number };

export const isLatency = (target: Target): target is Latency => target.limit_ms !== null;

/** The target of everybody that the tile of a metric shows: of the 99th percentile before others. */
function targetOf(report: Report, metric: Metric): Latency | undefined {
  const own = report.slo.filter(
    (slo): slo is Latency => slo.metric === metric && slo.class === undefined && isLatency(slo),
  );
  return own.find(({ percentile }) => percentile === 99) ?? own[0];
}

/** A word with what it means, on hover and on focus; the text is the catalogue's. */
export function term(catalog: Catalog | null, name: string, shown: string): TemplateResult {
  const found = catalog?.definitions?.find((definition) => definition.name === name);
  if (!found) return html`${shown}`;
  return html`<span class="term" tabindex="0">${shown}<span class="tip" role="tooltip">${sentence(found.title)} ${found.text}</span></span>`;
}

/** The tiles, then the verdict's note: its length is not known before it comes, so it stands where it moves least. `power`:
    below the others, where it can be asked for; nothing until it is. */
export function renderNumbers(
  view: ViewContext,
  power?: TemplateResult | typeof nothing,
): TemplateResult | typeof nothing {
  const { shown } = view.state;
  // Their place is kept while the first answer is on its way.
  if (!shown && isAwaited(view.state))
    return html`<div class="numbers" aria-hidden="true">${[0, 1, 2, 3].map(() => html`<div class="card tile"></div>`)}</div>`;
  if (!shown || view.state.link_problem) return nothing;
  const report = reportOf(shown);
  const open = view.openGroups.has('provenance');
  const mark = (figure?: string) => evidenceMark(view, report, figure);
  return html`<section class="numbers" aria-label="Key numbers">
      ${latencyTile(view, report, 'ttft', mark('ttft_p99'))} ${latencyTile(view, report, 'tpot', mark('tpot'))}
      ${throughputTile(view, report, mark())} ${costTile(view, report, power !== undefined)} ${power}
    </section>
    ${report.verdict.note === '' ? nothing : html`<p class="provenance-note quiet-text" id="verdict-note">${sentence(report.verdict.note)}</p>`}
    ${
      open
        ? html`<p class="provenance-note"><b>${report.latency_model.backend}, ${report.latency_model.provenance}:</b> ${sentence(report.latency_model.description)} ${report.evidence.sentence}</p>`
        : nothing
    }`;
}

/** The same in a line, for the other views: the percentiles that have targets, and what a GPU gives. */
export function renderStrip(report: Report): TemplateResult {
  const latencies = (['ttft', 'tpot'] as const).flatMap((metric) => {
    const target = targetOf(report, metric);
    const value = target ? target.value_ms : { ttft: report.ttft_ms, tpot: report.tpot_ms }[metric].p99;
    const name = `${metric.toUpperCase()} p${target?.percentile ?? 99}`;
    if (target?.unbounded) return [html`<span>${name} <b>no bound</b></span>`];
    return value === null ? [] : [html`<span>${name} <b>${formatTime(value)}</b></span>`];
  });
  return html`<p class="strip-numbers">${latencies}<span>tokens/s per GPU <b>${formatNumber(report.output_tokens_per_s_per_gpu)}</b></span></p>`;
}

export const evidenceWords = {
  calibrated: 'Calibrated',
  compared: 'Compared',
  untested: 'Untested',
  known_bad: 'Known bad',
} as const;

/** Shape and word; how far a figure was off on measured servers on hover. */
function evidenceMark(view: ViewContext, { evidence, latency_model: model }: Report, figure = ''): TemplateResult {
  const open = view.openGroups.has('provenance');
  const { median, p90 = null } = evidence.errors[figure] ?? {};
  const error =
    median === undefined
      ? ''
      : `: ±${formatPercent(median)}${figure === 'tpot' ? ' on the mean' : ''}${p90 === null ? '' : `, for nine in ten at most ${formatPercent(p90)}`}`;
  return html`<button
    class="mark ${evidence.class}"
    type="button"
    aria-expanded=${open}
    title=${`${evidence.sentence || model.description}${error}`}
    @click=${() => view.toggleGroup('provenance', !open)}
  ><span class="visually-hidden">Evidence: </span>${evidenceWords[evidence.class]}</button>`;
}

/** That the target is met, of sampling and the forecast's error together. */
function chance({ band }: Latency): TemplateResult | typeof nothing {
  if (!band) return nothing;
  return html`<span class="chance" title="The probability that this target is met">met: <b>${chanceText(band.probability)}</b></span>`;
}

/** "90 %", "> 99 %". */
export function chanceText(probability: number): string {
  return probability > 0.99 ? '> 99\u202f%' : probability < 0.01 ? '< 1\u202f%' : levelText(probability);
}

function latencyTile(view: ViewContext, report: Report, metric: 'ttft' | 'tpot', mark: TemplateResult): TemplateResult {
  const distribution = metric === 'ttft' ? report.ttft_ms : report.tpot_ms;
  const target = targetOf(report, metric);
  const name = metric.toUpperCase();
  const head = tileHead(
    term(view.state.catalog, name, `${name} p${target?.percentile ?? 99}`),
    distribution.p50 === null || report.verdict.state === 'overloaded' ? '' : `median ${formatTime(distribution.p50)}`,
  );
  if (target?.unbounded) {
    return html`<div class="card tile" data-side="misses">
      ${head}
      <p class="value words">no bound</p>
      <p class="tile-note">grows without limit, for as long as requests come</p>
      <p class="tile-foot"><b>missed</b><span>limit ${formatGivenTime(target.limit_ms)}</span></p>
    </div>`;
  }
  if (!target) {
    return html`<div class="card tile">
      ${head} ${valueLine(timeQuantity(distribution.p99), '')}
      <p class="tile-note">no limit is set, so only one run was made</p>
      ${mark}
    </div>`;
  }
  // Where not all is served, a latency that happens to hold says little.
  const judged =
    report.verdict.state !== 'overloaded' && report.verdict.state !== 'not_judged' && !isUncertain(view.state);
  const side = judged && report.verdict.state !== 'partial' ? sideOf(target) : null;
  const { value_ms: value } = target;
  return html`<div class="card tile" data-side=${side ?? ''}>
    ${head} ${valueLine(timeQuantity(value), intervalOf(target, report))} ${value === null ? nothing : marginBar(target)}
    <p class="tile-foot"><b>${judged ? marginWords(target, side) : isUncertain(view.state) ? 'not certain' : 'not judged'}</b><span>limit ${formatGivenTime(target.limit_ms)}</span></p>
    <p class="tile-foot">${mark}${judged ? chance(target) : nothing}</p>
  </div>`;
}

export function marginWords(target: Latency, side: Side | null): string {
  const { value_ms: value, limit_ms: limit, unserved_share: unserved, band } = target;
  if (isLost(target)) return `${formatPercent(unserved)} got no answer`;
  if (value === null) return 'no value';
  if (side === 'near' && !band) return 'too close to call';
  return marginText(value / limit);
}

/** "14.5 to 15.3", "at least 14.5"; "": not known. */
export function rangeText(low: number | null, high: number | null, value: number): string {
  if (low === null) return '';
  return high === null ? `at least ${formatTime(low)}` : formatInterval(low, high, value);
}

/** The interval of sampling, then the band in its place; both have a line of their own, so that nothing moves. */
function intervalOf(target: Latency, report: Report): TemplateResult | typeof nothing {
  const { value_ms: value, low, high, band } = target;
  if (value === null) return nothing;
  if (!band) {
    const range = high === null ? '' : rangeText(low, high, value);
    return html`<span class="interval of-target">${range === '' ? '\u00a0' : html`<span class="visually-hidden">95 % interval </span>(${range})`}</span>`;
  }
  const level = levelText(band.level);
  const sampling = high === null ? '' : ` Sampling alone, 95\u202f%: ${rangeText(low, high, value)}.`;
  return html`<span class="interval of-target term" tabindex="0">${level}: ${rangeText(band.low, band.high, value)}<span class="tip" role="tooltip">Sampling and model error together.${sampling} Model error alone, ${level}: ${rangeText(band.model.low, band.model.high, value)}. ${report.model_error?.sentence ?? ''}</span></span>`;
}

/** To 1.3 times the limit; a lighter box is the band, a line the interval of sampling. */
export function marginBar({ value_ms: value, low, high, band, limit_ms: limit }: Latency): TemplateResult {
  const at = (ms: number | null) => Math.min(130, (100 * (ms ?? Infinity)) / limit);
  const over = (name: string, from: number | null, to: number | null, y: number, height: number) =>
    from !== null && at(to) > at(from)
      ? svg`<rect class=${name} x=${at(from)} y=${y} width=${at(to) - at(from)} height=${height} />`
      : nothing;
  return html`<svg class="margin-bar" viewBox="0 0 130 8" preserveAspectRatio="none" aria-hidden="true">
    ${svg`<rect class="track" width="100" height="8" />
    <rect class="beyond" x="100" width="30" height="8" />
    <rect class="fill" width=${at(value)} height="8" />
    ${band ? over('box', band.low, band.high, 0, 8) : nothing}${high === null ? nothing : over('whisker', low, high, 3.5, 1)}
    <rect class="tick" x="99.6" width="0.8" height="8" />`}
  </svg>`;
}

function tileHead(label: TemplateResult | string, aside: string): TemplateResult {
  return html`<div class="tile-head"><h3>${label}</h3>${aside === '' ? nothing : html`<span>${aside.replace(' ', '\u00a0')}</span>`}</div>`;
}

function valueLine(value: Quantity, interval: string | TemplateResult | typeof nothing): TemplateResult {
  return html`<p class="value">${value.number}${value.unit === '' ? nothing : html`<span class="unit">\u202f${value.unit}</span>`}${
    typeof interval !== 'string'
      ? interval
      : interval === ''
        ? nothing
        : html` <span class="interval"><span class="visually-hidden">95 % interval </span>(${interval})</span>`
  }</p>`;
}

function throughputTile(view: ViewContext, report: Report, mark: TemplateResult): TemplateResult {
  const { overload } = report;
  const perGpu = formatQuantity(report.output_tokens_per_s_per_gpu, 'tokens/s');
  if (overload) {
    const { served_per_s: served, offered_per_s: offered, low, high } = overload;
    return html`<div class="card tile">
      ${tileHead(term(view.state.catalog, 'throughput', 'Served'), `of ${formatQuantity(offered, 'req/s')}`)}
      ${valueLine({ number: formatNumber(served), unit: 'req/s' }, `${formatNumber(low)} to ${formatNumber(high)}`)}
      <p class="tile-note">${formatPercent(served / offered)} of what arrives<br />${perGpu} per GPU</p>
      ${mark}
    </div>`;
  }
  const steady = report.certainty?.method === 'replications' ? ' while they arrive' : '';
  const share = report.slo.find((slo) => slo.metric === 'attainment' && slo.class === undefined);
  const good = share
    ? html`<br />${attained(share)}`
    : report.slo.length > 0
      ? html`<br />${term(view.state.catalog, 'goodput', goodputText(report))} within the limits`
      : nothing;
  return html`<div class="card tile">
    ${tileHead(term(view.state.catalog, 'throughput', 'Output per GPU'), countOf(report.gpus, 'GPU'))}
    ${valueLine({ number: formatNumber(report.output_tokens_per_s_per_gpu), unit: 'tokens/s' }, '')}
    <p class="tile-note">${formatQuantity(report.requests_per_s, 'requests/s')}${steady}${report.gpus === 1 ? nothing : `, ${formatNumber(report.output_tokens_per_s)} tokens/s together`}${good}</p>
    ${mark}
  </div>`;
}

/** Of what is served; a share that nobody would call some is none, and all is said of all alone. */
export function goodputText({
  goodput_per_s: good,
  requests_per_s: served,
}: Pick<Report, 'goodput_per_s' | 'requests_per_s'>): string {
  const share = good === null || served <= 0 ? 0 : good / served;
  return share < 0.001 ? 'none' : share >= 1 ? 'all' : formatPercent(Math.floor(share * 1000) / 1000);
}

function attained(target: Target): TemplateResult {
  const { share, band, limit_share: limit } = target;
  const { low, high } = band ?? target;
  const level = band ? `${levelText(band.level)}: ` : '';
  const interval =
    low === null || high === null ? '' : ` (${level}${formatNumber(low * 100)} to ${formatNumber(high * 100)})`;
  return html`<span class="attained" data-side=${sideOf(target) ?? ''}><b>${formatPercent(share)}</b>${interval} of requests within all their limits; at least ${formatPercent(limit)}</span>`;
}

/** Where the price that is missing goes: to the first pool with a GPU of its own that has none. */
function unpriced(report: Report, price: string | null): string | null {
  const pool = (report.pools ?? []).findIndex(
    (each, index) =>
      each.cost_per_hour === null &&
      getAt(report.scenario as Document, `/cluster/pools/${index}/hardware`) !== undefined,
  );
  return price === null || pool < 0 ? price : `/cluster/pools/${pool}${price}`;
}

const hoursOfMonth = 730;

function costTile(view: ViewContext, report: Report, offersPower: boolean): TemplateResult {
  const cost = report.cost_per_million_output_tokens;
  const source = view.app.source;
  const pointer = source ? unpriced(report, pricePointer(source)) : null;
  const isOpen = view.openGroups.has(powerTile);
  const ask = html`<button class="as-link" type="button" aria-expanded=${isOpen} title="Watts and energy per token" @click=${() => view.toggleGroup(powerTile, !isOpen)}>Power</button>`;
  const head = html`<div class="tile-head"><h3>Cost</h3>${offersPower ? ask : nothing}</div>`;
  if (cost === null) {
    return html`<div class="card tile">
      ${head}
      ${
        pointer === null
          ? html`<p class="tile-note">No price is known.</p>`
          : html`<p class="value words"><button class="as-link" type="button" @click=${() => view.focusField(pointer)}>Set a GPU price</button></p>
            <p class="tile-note">${countOf(report.gpus, 'GPU')}, by the hour</p>`
      }
    </div>`;
  }
  const { month, thousand } = costsOf(report, cost);
  return html`<div class="card tile">
    ${head}
    ${valueLine({ number: month, unit: 'a month' }, '')}
    <p class="tile-note"><b>$${formatNumber(cost)}</b> per M tokens out<br /><b>${thousand}</b> per 1k requests<br />${priceText(report, pointer)}</p>
  </div>`;
}

/** Of a month of so many hours and of 1,000 requests, from the cost of a million output tokens. */
export function costsOf(report: Report, cost: number): { month: string; thousand: string } {
  const perHour = cost * report.output_tokens_per_s * 0.0036;
  return {
    month: `$${formatCount(Math.round(perHour * hoursOfMonth))}`,
    thousand: `$${formatNumber(perHour / report.requests_per_s / 3.6)}`,
  };
}

/** What GPUs cost by the hour, and according to whom. */
export function priceText(report: Report, pointer: string | null): string {
  const price = pointer === null ? undefined : getAt(report.scenario as Document, pointer);
  const basis = pointer && getAt(report.scenario as Document, pointer.replace(/[^/]+$/, 'price_basis'));
  const hourly = report.pools?.reduce((sum, pool) => sum + (pool.cost_per_hour ?? 0), 0);
  if (hourly !== undefined) return `all pools: $${formatNumber(hourly)} per hour`;
  return typeof price === 'number'
    ? `at $${price.toFixed(2)} per GPU-hour, ${String(basis || 'your price')}`
    : 'from the price of the GPU';
}

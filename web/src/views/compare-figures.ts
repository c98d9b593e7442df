// What comparisons show of a report, and what people call the settings that are compared.
import type { Report } from 'servecast';
import { formatCount, formatGiven, formatNumber, formatTime } from '../lib/format';
import { parentOf, segmentsOf, type Json } from '../state/document';
import { labelOf, unitInName } from '../state/fields';
import { poolList } from '../state/pools';
import { firstRun } from '../lib/first-run';
import { decidingTarget } from '../lib/targets';

export type Target = Report['slo'][number];

export interface Figure {
  readonly head: string;
  of(report: Report): number | null;
  format(value: number | null): string;
}

/** Of all runs where it has a target, as the tiles say it; else of the first. */
function p99(report: Report, metric: 'ttft' | 'tpot' | 'e2e'): number | null {
  const target = report.slo.find((slo) => slo.metric === metric && slo.percentile === 99 && slo.class === undefined);
  if (target) return target.value_ms;
  return { ttft: report.ttft_ms, tpot: report.tpot_ms, e2e: report.e2e_ms }[metric].p99;
}

export const costHead = '$ per M tokens';
const dollars = (value: number | null) => (value === null ? '–' : `$${formatNumber(value)}`);

/**
 * Of a million output tokens that were served within the targets: where a target is missed, or not all is served, what
 * comes late is paid for and buys nothing. null: there is no price, or hardly anything is within the targets.
 */
export function costOfServed(report: Report): number | null {
  const { cost_per_million_output_tokens: cost, goodput_per_s: good, requests_per_s: served, verdict } = report;
  if (cost === null || report.slo.length === 0 || verdict.state === 'meets' || verdict.state === 'near') return cost;
  const share = good !== null && served > 0 ? Math.min(1, good / served) : 0;
  return share < 0.005 ? null : cost / share;
}
const time = (head: string, of: Figure['of']): Figure => ({ head, of, format: formatTime });
export const figures: readonly Figure[] = [
  time('TTFT p99', (report) => p99(report, 'ttft')),
  time('TPOT p99', (report) => p99(report, 'tpot')),
  time('E2E p99', (report) => p99(report, 'e2e')),
  {
    head: 'Goodput, requests/s',
    of: (report) => (report.slo.length > 0 ? report.goodput_per_s : null),
    format: (value) => formatNumber(value),
  },
  { head: 'Output tokens/s', of: (report) => report.output_tokens_per_s, format: (value) => formatNumber(value) },
  { head: 'Completed', of: (report) => firstRun(report).completed, format: formatCount },
  { head: 'Preempted', of: (report) => firstRun(report).preemptions, format: formatCount },
  { head: 'GPUs', of: (report) => report.gpus, format: formatCount },
  { head: costHead, of: costOfServed, format: dollars },
  { head: 'W a GPU', of: (report) => firstRun(report).power?.mean_w ?? null, format: (value) => formatNumber(value) },
  {
    head: 'J per output token',
    of: (report) => firstRun(report).power?.j_per_output_token ?? null,
    format: (value) => formatNumber(value),
  },
];

/** What a table of many rows has room for. */
export const rowFigures = figures.filter(({ head }) => /^(TTFT|TPOT|Goodput|Output)/.test(head) || head === costHead);

const labels: Readonly<Record<string, string>> = {
  '/hardware/preset': 'GPU',
  [poolList]: 'Whole requests, or prefill and decode apart',
  '/model/preset': 'Model',
  '/engine': 'Engine',
  '/engine/preset': 'Engine version',
  '/engine/compat': 'Rules of another simulator',
  '/latency/backend': 'Step-time model',
  '/workload/arrivals/rate_per_s': 'Rate, requests/s',
  '/engine/max_num_seqs': 'Sequences (max_num_seqs)',
  '/engine/max_num_batched_tokens': 'Tokens per step (max_num_batched_tokens)',
};
const ofPool: Readonly<Record<string, string>> = {
  'hardware/preset': 'GPU',
  tensor_parallel: 'GPUs each (tensor parallel)',
  replicas: 'Replicas',
};

/** Of names that end in a unit: as people write it. */
const units: Readonly<Record<string, string>> = {
  us: 'µs',
  gib: 'GiB',
  mib: 'MiB',
  gb_s: 'GB/s',
  w: 'W',
  tflops: 'TFLOP/s',
  per_s: 'a second',
};

/** What people call a setting; with its unit where its values stand without. */
export function settingName(pointer: string, several: boolean, withUnit = true): string {
  const [, index = '', own = ''] = /^\/cluster\/pools\/(\d+)\/(.+)$/.exec(pointer) ?? [];
  const length = /^\/workload\/(prompt|output)_tokens\/(\w+)$/.exec(pointer);
  if (own in ofPool) return several ? `${ofPool[own] ?? ''} of pool ${Number(index) + 1}` : (ofPool[own] ?? '');
  if (length) {
    const what = (length[2] ?? '').replaceAll('_', ' ');
    return `${length[1] === 'prompt' ? 'Prompt' : 'Output'} length, ${what}${withUnit && what !== 'distribution' ? ', tokens' : ''}`;
  }
  const label = labels[pointer];
  if (label !== undefined) return withUnit ? label : label.replace(/, requests\/s$/, '');
  const unit = withUnit ? unitInName(pointer) : '';
  const ofOne = several && own !== '' ? ` of pool ${Number(index) + 1}` : '';
  return `${labelOf(ownerOf(pointer))}: ${labelOf(pointer).toLowerCase()}${ofOne}${unit === '' ? '' : `, ${units[unit] ?? unit}`}`;
}

/** The object that a setting is of, not the section around it: a cluster has a policy of its router and one of its scaling. */
function ownerOf(pointer: string): string {
  const parent = parentOf(pointer);
  return /\/\d+$/.test(parent) || parent === '' ? `/${segmentsOf(pointer)[0] ?? ''}` : parent;
}

/** A value of a setting, without its unit. */
export function settingText(value: Json | undefined): string {
  if (value === undefined || value === null) return 'not set';
  if (typeof value === 'number') return formatGiven(value);
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}

/** The target that decides, which the verdict's sentence names, too: nearest to its limit, or furthest beyond. */
export const closestTarget = ({ slo }: Pick<Report, 'slo'>): Target | null => decidingTarget(slo) ?? null;

export function nameOfTarget({ metric, percentile, class: of }: Target): string {
  const name = metric === 'attainment' ? 'within all limits' : `${metric.toUpperCase()} p${percentile}`;
  return of === undefined ? name : `${name} of ${of}`;
}

export function changeText(change: number): string {
  const percent = Math.abs(change * 100);
  // Less than the figures above it tell.
  if (percent < 0.05) return 'the same';
  if (change >= 9) return `× ${formatNumber(change + 1, 2)}`;
  return `${change > 0 ? '+' : '−'}${percent.toFixed(percent < 10 ? 1 : 0)}\u202f%`;
}

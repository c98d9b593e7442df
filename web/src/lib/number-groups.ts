// Numbers of a report in five groups, each in the words that the page has for it elsewhere.
import type { Report } from 'servecast';

export const groups = [
  { id: 'latency', title: 'Targets and latency' },
  { id: 'rates', title: 'Throughput, cost and power' },
  { id: 'load', title: 'Load, queue and limits' },
  { id: 'memory', title: 'Memory and caches' },
  { id: 'run', title: 'The run, and what it rests on' },
] as const;
export type GroupId = (typeof groups)[number]['id'];

/** By the first key of a report, or of its first run. What is in none is of the run. */
const keys: Readonly<Record<Exclude<GroupId, 'run'>, readonly string[]>> = {
  latency: ['slo', 'attainment', 'counted', 'certainty', 'fairness'],
  rates: [
    'output_tokens_per_s',
    'output_tokens_per_s_per_gpu',
    'requests_per_s',
    'goodput_per_s',
    'gpus',
    'cost_per_million_output_tokens',
    'power',
    'mfu',
    'bandwidth_use',
    'overload',
    'scaling',
    'warm_replicas',
    'failures',
    'slowdowns',
    'retries',
    'hedges',
    'output_tokens',
  ],
  load: [
    'saturation',
    'binding_constraint',
    'arrived',
    'completed',
    'queued',
    'running',
    'dropped',
    'timed_out',
    'rejected',
    'length_capped',
    'preemptions',
    'finish_reasons',
    'prompt_tokens',
    'mean_in_system',
    'mean_batch_size',
    'steps',
    'bubble_share',
    'padding',
    'speculation',
  ],
  memory: ['kv', 'memory', 'prefix_cache', 'kv_offload'],
};

const firstOf = (path: readonly string[]): string => (path[0] === 'first_run' ? path[1] : path[0]) ?? '';

export function groupOf(path: readonly string[]): GroupId {
  const first = firstOf(path);
  const found = groups.find(({ id }) => id !== 'run' && keys[id].includes(first));
  return found?.id ?? 'run';
}

/** What a key says where its own words do not. */
const words: Readonly<Record<string, string>> = {
  slo: 'target',
  attainment: 'requests within all targets',
  certainty: 'intervals',
  counted: 'counted',
  settled: 'decided',
  from_s: 'from',
  until_s: 'until',
  binding_constraint: 'limit of step time',
  busy_share: 'some step ran',
  seats: 'sequences (max_num_seqs)',
  token_budget: 'tokens per step (max_num_batched_tokens)',
  kv_blocks: 'KV blocks',
  bandwidth: 'memory bandwidth',
  overhead: 'host time',
  queue_slope_per_s: 'growth of the queue',
  queue_slope_t: 'growth of the queue, t statistic',
  queue_p95: 'queue p95',
  finish_reasons: 'ended by',
  length_capped: 'cut at max_model_len',
  mean_in_system: 'requests in the system, mean',
  mean_batch_size: 'batch size, mean',
  mfu: 'FLOP/s used, of the peak (MFU)',
  bandwidth_use: 'memory bandwidth used, of the peak',
  output_tokens_per_s: 'output tokens/s',
  output_tokens_per_s_per_gpu: 'output tokens/s per GPU',
  requests_per_s: 'requests/s served',
  goodput_per_s: 'goodput, requests/s',
  cost_per_million_output_tokens: 'cost per million output tokens',
  j_per_output_token: 'energy per output token, J',
  j_per_request: 'energy per request, J',
  kwh_per_hour: 'energy per hour, kWh',
  site_kwh_per_hour: 'energy per hour with hosts and cooling, kWh',
  electricity_per_hour: 'electricity per hour',
  co2_kg_per_hour: 'CO₂ per hour, kg',
  mean_w_low: 'mean, low end',
  mean_w_high: 'mean, high end',
  j_per_output_token_low: 'energy per output token, J, low end',
  j_per_output_token_high: 'energy per output token, J, high end',
  kv: 'KV cache',
  prefix_cache: 'prefix cache',
  hit_rate: 'prefix hits',
  query_tokens: 'prompt tokens looked up',
  hit_tokens: 'prompt tokens found',
  padding: 'buckets of prefills',
  first_run: '',
};

const suffixes = /_(ms|s|gib|w)$/;

/** "Target TTFT p99 · band · low": targets by what they limit, all others by their keys in words. */
export function labelOf(path: readonly string[], report: Pick<Report, 'slo'>): string {
  const isTarget = path[0] === 'slo' && path.length > 1;
  const target = isTarget ? report.slo[Number(path[1]) - 1] : undefined;
  const named = target ? [`${target.metric.toUpperCase()} p${target.percentile}`, ...path.slice(2)] : path;
  const text = named
    .map((part) => words[part] ?? part.replace(suffixes, '').replaceAll('_', ' '))
    .filter((part) => part !== '')
    .join(' · ')
    .replace(/\b(kv|slo)\b/g, (word) => word.toUpperCase())
    .replace(/\bgpu/g, 'GPU');
  const whole = target ? `target ${text}` : text;
  return `${whole.charAt(0).toUpperCase()}${whole.slice(1)}${path[0] === 'first_run' ? ' (first run)' : ''}`;
}

// What each request of a run did, for the timeline: the columns it takes, where the time of one went
// in the order in which it passed, and how many KV transfers were under way.
type Columns = Readonly<Record<string, Float64Array>>;

/** More are neither fetched nor drawn: one by one nobody could look at them. */
export const mostRequestsDrawn = 50_000;

export const parts = [
  'host',
  'queue',
  'prefill',
  'transfer',
  'handover',
  'decode',
  'interference',
  'preempted',
] as const;
export type Part = (typeof parts)[number];

export const requestColumns: readonly string[] = [
  'arrival_s',
  'replica',
  'prompt_tokens',
  'cached_tokens',
  'output_tokens',
  'scheduling_delay_ms',
  'ttft_ms',
  'e2e_ms',
  ...parts.map((part) => `${part}_ms`),
  'prefill_replica',
  'prefilled_s',
  'transfer_start_s',
  'preemptions',
];

export interface Span {
  readonly part: Part;
  /** Ms since the request's arrival. */
  readonly from: number;
  readonly to: number;
}

/**
 * Where a completed request's time went, in order; together it is its E2E. Of interference and preemption
 * only the sums are known: they stand at the end of the decode that they made longer.
 */
export function spansOf(columns: Columns, request: number): readonly Span[] {
  const at = (name: string) => columns[name]?.[request] ?? NaN;
  if (!Number.isFinite(at('decode_ms'))) return [];
  const spans: Span[] = [];
  let now = 0;
  const add = (part: Part, length: number) => {
    if (length > 0) spans.push({ part, from: now, to: now + length });
    now += Math.max(0, length);
  };
  const before = Math.max(0, at('scheduling_delay_ms') - at('queue_ms'));
  add('host', before);
  add('queue', at('queue_ms'));
  add('prefill', at('prefill_ms'));
  const gap = 1000 * (at('transfer_start_s') - at('prefilled_s'));
  const first = Number.isFinite(gap) ? Math.min(gap, at('handover_ms')) : 0;
  add('handover', first);
  add('transfer', at('transfer_ms'));
  add('handover', at('handover_ms') - first);
  add('decode', at('decode_ms'));
  add('interference', at('interference_ms'));
  add('preempted', at('preempted_ms'));
  add('host', at('host_ms') - before);
  return spans;
}

/** Mean number of KV transfers from prefill to decode in each interval of `times`, its starts; undefined without transfers. Completed requests' only. */
export function transfersUnderWay(times: Float64Array, columns: Columns): Float64Array | undefined {
  const starts = columns['transfer_start_s'];
  const lengths = columns['transfer_ms'];
  const width = times.length > 1 ? (times[1] ?? 0) - (times[0] ?? 0) : 0;
  if (!starts || !lengths || width <= 0 || !starts.some(Number.isFinite)) return undefined;
  const origin = times[0] ?? 0;
  const busy = new Float64Array(times.length);
  starts.forEach((start, request) => {
    const end = start + (lengths[request] ?? NaN) / 1000;
    if (!(end > start)) return;
    for (
      let bin = Math.max(0, Math.floor((start - origin) / width));
      bin < busy.length && origin + bin * width < end;
      bin += 1
    ) {
      const from = origin + bin * width;
      busy[bin] = (busy[bin] ?? 0) + Math.max(0, Math.min(end, from + width) - Math.max(start, from)) / width;
    }
  });
  return busy;
}

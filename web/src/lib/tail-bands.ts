// How sure each percentile of the latencies is: what the tail chart draws along its curves.
export type BandedMetric = 'ttft' | 'tpot' | 'e2e';

export interface TailPoint {
  readonly percentile: number;
  readonly value_ms: number;
  /** The 95 % interval of sampling. */
  readonly low: number;
  readonly high: number;
  /** The 90 % band of sampling and model error together; no high: the latency has no bound. Null: the error is not known. */
  readonly band: { readonly low: number; readonly high: number | null } | null;
}

/** By ascending percentile, two at least. */
export type TailBands = Readonly<Partial<Record<BandedMetric, readonly TailPoint[]>>>;

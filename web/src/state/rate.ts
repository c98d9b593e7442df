import type { Report } from 'servecast';

/** The load of an open loop, in a document. */
export const ratePointer = '/workload/arrivals/rate_per_s';

/** Of a process with one rate for all; null: no one number is the load. */
export function rateOf({ scenario, classes }: Report): number | null {
  const arrivals = (scenario['workload'] as { arrivals?: { rate_per_s?: unknown } } | undefined)?.arrivals;
  const rate = arrivals?.rate_per_s;
  return typeof rate === 'number' && classes.length === 0 ? rate : null;
}

// What recorded steps say of a run: their levels over time by pool, and where a moment lies among them.
type Columns = Readonly<Record<string, Float64Array>>;

const bins = 400;
const none = new Float64Array(0);

/** Mean running, waiting and KV use of a pool in each of `bins` intervals, as a time series: running and waiting are
    added over its replicas, KV is the share of all of theirs. Between steps nothing runs, and what waits is not known
    to: it counts as 0. */
export function lanesOf(steps: Columns, pool: number, replicas: number, from: number, to: number): Columns {
  const width = (to - from) / bins;
  const time = Float64Array.from({ length: bins }, (_, bin) => from + bin * width);
  const lanes = { running: new Float64Array(bins), waiting: new Float64Array(bins), kv_usage: new Float64Array(bins) };
  const starts = steps['step_start_s'] ?? none;
  if (!(width > 0)) return { series_time_s: none };
  starts.forEach((start, step) => {
    if (steps['step_pool']?.[step] !== pool) return;
    const end = steps['step_end_s']?.[step] ?? start;
    const first = Math.max(0, Math.floor((start - from) / width));
    for (let bin = first; bin < bins && from + bin * width < end; bin += 1) {
      const low = from + bin * width;
      const share = Math.max(0, Math.min(end, low + width) - Math.max(start, low)) / width;
      for (const [name, lane] of Object.entries(lanes))
        lane[bin] = (lane[bin] ?? 0) + share * (steps[`step_${name}`]?.[step] ?? 0);
    }
  });
  return {
    series_time_s: time,
    lane_running: lanes.running,
    lane_waiting: lanes.waiting,
    lane_kv: lanes.kv_usage.map((sum) => sum / Math.max(1, replicas)),
  };
}

/** The numbers of a replica's steps, in order. */
export function stepsByReplica(steps: Columns): readonly (readonly number[])[] {
  const found: number[][] = [];
  for (const [step, replica] of (steps['step_replica'] ?? none).entries()) (found[replica] ??= []).push(step);
  const starts = steps['step_start_s'] ?? none;
  return Array.from(found, (own) => (own ?? []).sort((a, b) => (starts[a] ?? 0) - (starts[b] ?? 0)));
}

/** Of these steps the one that runs at a moment, or null between two. */
export function stepAt(steps: Columns, own: readonly number[], time: number): number | null {
  const starts = steps['step_start_s'] ?? none;
  let low = 0;
  let high = own.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((starts[own[middle] ?? 0] ?? 0) <= time) low = middle + 1;
    else high = middle;
  }
  const step = own[low - 1];
  return step !== undefined && (steps['step_end_s']?.[step] ?? 0) > time ? step : null;
}

/** The nearest beginning of a step after a moment, or before it; the moment itself when there is none. */
export function nextStart(steps: Columns, time: number, forward: boolean): number {
  let best = forward ? Infinity : -Infinity;
  for (const start of steps['step_start_s'] ?? none) {
    if (forward ? start > time + 1e-9 && start < best : start < time - 1e-9 && start > best) best = start;
  }
  return Number.isFinite(best) ? best : time;
}

/** When the first step with most requests, running and waiting, begins: what is worth looking at first. */
export function busiest(steps: Columns): number {
  const load = (step: number) => (steps['step_running']?.[step] ?? 0) + (steps['step_waiting']?.[step] ?? 0);
  const starts = steps['step_start_s'] ?? none;
  let best = 0;
  for (let step = 1; step < starts.length; step += 1) if (load(step) > load(best)) best = step;
  return starts[best] ?? 0;
}

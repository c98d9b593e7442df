// The stretch of simulated time that the charts over time show: whoever is zoomed tells it, and who shows single requests
// or steps follows.
export interface TimeWindow {
  readonly from_s: number;
  readonly to_s: number;
}

let shown: TimeWindow | null = null;
const listeners = new Set<() => void>();

/** null: all of it. */
export const windowShown = (): TimeWindow | null => shown;

export function showWindow(window: TimeWindow | null): void {
  if (shown?.from_s === window?.from_s && shown?.to_s === window?.to_s) return;
  shown = window;
  for (const listener of listeners) listener();
}

/** Returns what ends it. */
export function onWindow(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

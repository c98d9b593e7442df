// What of a diagnosis is shown, and where: measured against forecast on one axis of ratios.
import type { DiagnosedFigure } from 'servecast';
import { formatNumber } from '../lib/format';

export interface Axis {
  readonly width: number;
  /** Where a ratio of measured to forecast lies, px; what is beyond an end lies there. */
  at(ratio: number): number;
  readonly labels: readonly { readonly ratio: number; readonly text: string }[];
}

const farthest = 16;
const marks = [1, 2, 0.5, 4, 0.25, 1.5, 0.75, 8, 0.125];
/** Between the middles of two labels, px. */
const apart = 56;
/** Room for half a label. */
const margin = 24;

export function percentOf(more: number): string {
  const percent = Math.round(100 * Math.abs(more));
  const text = percent >= 1000 ? formatNumber(percent) : String(percent);
  return `${more < 0 ? '\u2212' : '+'}${text}\u202f%`;
}

/** Logarithmic, so that twice and half lie equally far. */
export function axisOf(figures: readonly DiagnosedFigure[], width: number): Axis {
  const ratios = figures.flatMap(({ measured, forecast, low, high }) =>
    forecast === null || forecast <= 0
      ? []
      : [measured, low ?? forecast, high ?? forecast].map((each) => each / forecast),
  );
  const within = (ratio: number) => Math.min(farthest, Math.max(1 / farthest, ratio));
  const from = Math.log(within(Math.min(0.75, ...ratios)));
  const to = Math.log(within(Math.max(1.5, ...ratios)));
  const at = (ratio: number) => margin + ((Math.log(within(ratio)) - from) / (to - from)) * (width - 2 * margin);
  const labels: { ratio: number; text: string }[] = [];
  for (const ratio of marks) {
    const isInside = Math.log(ratio) >= from - 1e-9 && Math.log(ratio) <= to + 1e-9;
    if (!isInside || labels.some((other) => Math.abs(at(other.ratio) - at(ratio)) < apart)) continue;
    labels.push({ ratio, text: ratio === 1 ? 'forecast' : percentOf(ratio - 1) });
  }
  return { width, at, labels };
}

/** Of the figures that count, those that a row of a cause has room for: means and p99 of the first two latencies. */
export function shownCauses(figures: readonly DiagnosedFigure[]): readonly number[] {
  const found = (pattern: RegExp) => figures.findIndex(({ name, counts }) => counts && pattern.test(name));
  const chosen = [
    /^ttft_ms\.(?:mean|p50)/,
    /^ttft_ms\.p9\d/,
    /^(?:tpot|itl)_ms\.(?:mean|p50)/,
    /^(?:tpot|itl)_ms\.p9\d/,
  ].map(found);
  return chosen.filter((at) => at >= 0);
}

// Bands along the curve of a latency: dark of sampling, light with the model's error. They are known at a few percentiles;
// between them their ends are interpolated as shares of the curve's value, on the scale of nines, so that they follow the
// curve. Loaded when there are any.
import type uPlot from 'uplot';
import { formatInterval, formatTime } from '../lib/format';
import type { TailPoint } from '../lib/tail-bands';
import { tailOf } from './quantiles';

type Kind = 'sampling' | 'both';

interface Span {
  readonly low: number;
  /** Infinity: no bound. */
  readonly high: number;
}

const same = 1e-9;
const between = (from: number, to: number, at: number): number => (at === 0 ? from : from * (1 - at) + to * at);

export class BandAlong {
  readonly #points: readonly TailPoint[];
  readonly #fractions: readonly number[];

  constructor(points: readonly TailPoint[]) {
    this.#points = points;
    this.#fractions = points.map(({ percentile }) => percentile / 100);
  }

  get #hasError(): boolean {
    return this.#points.some(({ band }) => band !== null);
  }

  /** What the bands are: below the chart, in one line. */
  get words(): string {
    return this.#hasError ? 'Bands: dark sampling, light with model error.' : 'Band: sampling, 95\u202f%.';
  }

  /** What ranges in brackets are. */
  get rangeWords(): string {
    return `In brackets: ${this.#hasError ? 'the 90\u202f% band of sampling and model error' : 'the 95\u202f% interval of sampling'}.`;
  }

  /** Around the curve's value at a fraction; null: it is outside of the points, or the band is not known there. */
  spanAt(kind: Kind, fraction: number, value: number): Span | null {
    const after = this.#fractions.findIndex((each) => each >= fraction - same);
    const before = (this.#fractions[after] ?? 1) <= fraction + same ? after : after - 1;
    const [from, to] = [this.#sharesOf(before, kind), this.#sharesOf(after, kind)];
    if (!from || !to) return null;
    const at = before === after ? 0 : (tailOf(fraction) - from.x) / (to.x - from.x);
    return { low: value * between(from.low, to.low, at), high: value * between(from.high, to.high, at) };
  }

  #sharesOf(index: number, kind: Kind): (Span & { readonly x: number }) | null {
    const point = this.#points[index];
    const ends = kind === 'both' ? point?.band : point;
    if (!point || !ends || point.value_ms <= 0) return null;
    const share = (ms: number) => ms / point.value_ms;
    return { x: tailOf(point.percentile / 100), low: share(ends.low), high: share(ends.high ?? Infinity) };
  }

  /** The light band where it is known, else the dark one. */
  around(fraction: number, value: number): Span | null {
    return this.spanAt('both', fraction, value) ?? this.spanAt('sampling', fraction, value);
  }

  /** " (95.2 to 126)"; "": it is not known. */
  textAt(fraction: number, value: number): string {
    const span = this.around(fraction, value);
    if (!span) return '';
    return ` (${span.high === Infinity ? `at least ${formatTime(span.low)}` : formatInterval(span.low, span.high, value)})`;
  }

  /** The fractions at which it has corners, ascending: its points, and the curve's own between them. */
  cornersAmong(fractions: Float64Array): readonly number[] {
    const own = this.#fractions;
    const [first = 1, last = 0] = [own[0], own.at(-1)];
    const isNew = (fraction: number) => own.every((each) => Math.abs(each - fraction) > same);
    const inside = fractions.filter((fraction) => fraction > first && fraction < last && isNew(fraction));
    return [...own, ...inside].sort((a, b) => a - b);
  }

  draw(plot: uPlot, colour: string, fractions: Float64Array, valueAt: (fraction: number) => number | null): void {
    const { ctx: pen, bbox } = plot;
    const y = (ms: number) => (ms === Infinity ? bbox.top : plot.valToPos(ms, 'y', true));
    pen.fillStyle = colour;
    for (const kind of ['both', 'sampling'] as const) {
      const corners = this.cornersAmong(fractions).flatMap((fraction) => {
        const span = this.spanAt(kind, fraction, valueAt(fraction) ?? 0);
        return span ? [{ x: plot.valToPos(tailOf(fraction), 'x', true), ...span }] : [];
      });
      pen.globalAlpha = kind === 'both' ? 0.16 : 0.3;
      pen.beginPath();
      for (const { x, high } of corners) pen.lineTo(x, y(high));
      for (const { x, low } of corners.reverse()) pen.lineTo(x, y(low));
      pen.fill();
    }
    pen.globalAlpha = 1;
  }
}

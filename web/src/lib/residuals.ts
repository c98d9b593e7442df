// How far predictions are off what was measured, of times and of power in one form: what the calibration's charts and
// tables show.
import type { CalibrationAnswer, MeasuredFigure } from 'servecast';
import { formatNumber, formatPercent } from './format';

/** A measurement with its predictions, in a unit that the chart names. */
export interface Residual {
  readonly label: string;
  /** "TPOT": a chart shows one at a time. */
  readonly figure: string;
  /** On the axis. */
  readonly place: string;
  readonly measured: number;
  /** Null: not known. */
  readonly before: number | null;
  readonly after: number;
}

export type MeasuredPoint = CalibrationAnswer['points'][number];

/** In the order in which a chart offers them. */
const names: Readonly<Record<MeasuredFigure, string>> = { tpot: 'TPOT', e2e: 'E2E', ttft: 'TTFT' };
const order = Object.keys(names);

const short = (value: number): string =>
  value >= 1000
    ? `${formatNumber(value / 1000, value >= 1e5 ? 3 : 2).replace(/\.0+$/, '')}k`
    : `${Number(value.toPrecision(3))}`;

/** Tokens, batch (and context where that is long), rate. */
function placeOf({ of, at, context }: MeasuredPoint): string {
  if (of === 'step' && context >= 2048) return short(context);
  return at > 0 ? short(at) : '';
}

/** Times, in ms: by figure, then by load. */
export function residualsOf(points: readonly MeasuredPoint[]): readonly Residual[] {
  return [...points]
    .sort((a, b) => order.indexOf(a.figure) - order.indexOf(b.figure) || a.context - b.context || a.at - b.at)
    .map((point) => ({
      label: point.label,
      figure: names[point.figure],
      place: placeOf(point),
      measured: point.measured_ms,
      before: point.before_ms,
      after: point.after_ms,
    }));
}

/** Per cent of what was measured. */
export const percentOff = (predicted: number, measured: number): number => 100 * (predicted / measured - 1);

/** "+4.1 %", "−12.0 %". */
export const signedPercent = (percent: number): string =>
  `${percent > 0 ? '+' : percent < 0 ? '\u2212' : ''}${formatPercent(Math.abs(percent) / 100)}`;

/** Of the prediction before the fit, "not known" where there is none. */
export const offBefore = ({ before, measured }: Pick<Residual, 'before' | 'measured'>): string =>
  before === null ? 'not known' : signedPercent(percentOff(before, measured));

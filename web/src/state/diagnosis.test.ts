import type { DiagnosedFigure } from 'servecast';
import { describe, expect, it } from 'vitest';
import { axisOf, percentOf, shownCauses } from './diagnosis';

const figure = (name: string, measured: number, forecast: number | null, counts = true): DiagnosedFigure => ({
  name,
  words: name,
  unit: 'ms',
  measured,
  forecast,
  low: forecast === null ? null : forecast * 0.8,
  high: forecast === null ? null : forecast * 1.2,
  more: forecast === null ? null : measured / forecast - 1,
  counts,
  outside: null,
});

describe('a diagnosis', () => {
  it('an axis has twice and half equally far from the forecast, and no label upon another', () => {
    for (const width of [110, 300]) {
      for (const ratio of [0.1, 0.6, 1.1, 3, 40]) {
        const { at, labels } = axisOf([figure('ttft_ms.mean', 100 * ratio, 100)], width);
        const middle = at(1);
        expect(at(1.2) - middle).toBeCloseTo(middle - at(1 / 1.2), 9);
        expect(at(ratio)).toBeGreaterThanOrEqual(0);
        expect(at(ratio)).toBeLessThanOrEqual(width);
        expect(labels[0]?.text).toBe('forecast');
        for (const a of labels)
          for (const b of labels) if (a !== b) expect(Math.abs(at(a.ratio) - at(b.ratio))).toBeGreaterThanOrEqual(56);
      }
    }
  });

  it('a figure without a forecast moves no axis', () => {
    expect(axisOf([figure('ttft_ms.mean', 1e9, null)], 300).labels).toEqual(axisOf([], 300).labels);
  });

  it('a difference is a whole percentage with its sign', () => {
    expect(percentOf(0.63)).toBe('+63\u202f%');
    expect(percentOf(-0.254)).toBe('\u221225\u202f%');
    expect(percentOf(11.2)).toBe('+1,120\u202f%');
  });

  it('the rows of causes show figures that count', () => {
    const figures = [
      figure('ttft_ms.mean', 1, 1),
      figure('ttft_ms.p50', 1, 1),
      figure('ttft_ms.p99', 1, 1),
      figure('tpot_ms.mean', 1, 1),
      figure('itl_ms.p99', 1, 1, false),
    ];
    expect(shownCauses(figures)).toEqual([0, 2, 3]);
  });
});

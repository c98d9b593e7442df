import { describe, expect, it } from 'vitest';
import { axisTicks, tickLabel } from './ticks';

const labels = (low: number, high: number, log: boolean, most: number) =>
  axisTicks(low, high, log, most).map((value) => tickLabel(value).replace('\u202f', ' '));

describe('ticks', () => {
  it('Log_WideRange_LabelsEveryDecade', () => {
    expect(labels(9.6, 163_000, true, 8)).toEqual(['10 ms', '100 ms', '1 s', '10 s', '100 s']);
    expect(labels(0.9, 163_000, true, 8)).toEqual(['1 ms', '10 ms', '100 ms', '1 s', '10 s', '100 s']);
  });
  it('Log_Narrow_ThinsDecades', () => {
    expect(labels(0.9, 163_000, true, 4)).toEqual(['1 ms', '100 ms', '10 s']);
  });
  it('Log_FewDecades_LabelsBetweenThem', () => {
    expect(labels(8, 1200, true, 8)).toEqual(['10 ms', '100 ms', '1 s']);
    expect(labels(8, 600, true, 8)).toEqual(['10 ms', '20 ms', '50 ms', '100 ms', '200 ms', '500 ms']);
    expect(labels(22, 95, true, 6).length).toBeGreaterThanOrEqual(2);
    expect(labels(31, 39, true, 6).length).toBeGreaterThanOrEqual(2);
  });
  it('Log_AnyRange_HasTicksInsideThatFit', () => {
    for (let low = 0.01; low < 1e5; low *= 3.7) {
      for (const ratio of [1.3, 2, 8, 40, 900, 14_000, 3e6]) {
        for (const most of [2, 3, 5, 9]) {
          const ticks = axisTicks(low, low * ratio, true, most);
          expect(ticks.length, `${low} to ${low * ratio}`).toBeGreaterThanOrEqual(1);
          expect(ticks.length).toBeLessThanOrEqual(most + 1);
          for (const tick of ticks) expect(tick >= low * 0.999 && tick <= low * ratio * 1.001).toBe(true);
        }
      }
    }
  });
  it('Linear_IsRound', () => {
    expect(labels(0, 1700, false, 5)).toEqual(['0', '500 ms', '1 s', '1.5 s']);
    expect(labels(0, 0.05, false, 5)).toEqual(['0', '10 µs', '20 µs', '30 µs', '40 µs', '50 µs']);
  });
});

import { describe, expect, it } from 'vitest';
import { fractionOf, tailOf, valueAt } from './quantiles';

describe('quantiles', () => {
  it('counts nines, there and back', () => {
    expect([0.5, 0.9, 0.99, 0.999].map((fraction) => Number(tailOf(fraction).toFixed(3)))).toEqual([0.301, 1, 2, 3]);
    expect(fractionOf(tailOf(0.973))).toBeCloseTo(0.973, 12);
  });

  it('reads between quantiles, and nothing of none', () => {
    const fractions = Float64Array.of(0, 0.5, 1);
    const values = Float64Array.of(10, 20, 60);
    expect([0, 0.25, 0.5, 0.75, 1].map((fraction) => valueAt(values, fractions, fraction))).toEqual([
      10, 15, 20, 40, 60,
    ]);
    expect(valueAt(new Float64Array(0), fractions, 0.5)).toBeNull();
  });
});

import { describe, expect, it } from 'vitest';
import { BandAlong } from './band-along';

const point = (percentile: number, value: number, low: number, high: number, band: [number, number | null] | null) => ({
  percentile,
  value_ms: value,
  low,
  high,
  band: band && { low: band[0], high: band[1] },
});

describe('a band along a curve', () => {
  const along = new BandAlong([point(90, 100, 98, 104, [90, 120]), point(99, 200, 180, 240, [160, 300])]);
  it('is what the engine says at its points, of both kinds', () => {
    expect(along.spanAt('sampling', 0.9, 100)).toEqual({ low: 98, high: 104 });
    expect(along.spanAt('both', 0.99, 200)).toEqual({ low: 160, high: 300 });
    expect(along.textAt(0.99, 200)).toBe(' (160 to 300)');
  });
  it('follows the curve between them, by shares of its value on the scale of nines', () => {
    const half = 1 - 10 ** -1.5;
    const { low, high } = along.spanAt('both', half, 1000) ?? { low: 0, high: 0 };
    expect(low).toBeCloseTo(1000 * 0.85, 6);
    expect(high).toBeCloseTo(1000 * 1.35, 6);
  });
  it('says nothing outside of its points', () => {
    expect(along.spanAt('both', 0.5, 50)).toBeNull();
    expect(along.spanAt('both', 0.999, 400)).toBeNull();
    expect(along.textAt(0.5, 50)).toBe('');
  });
  it('has corners at its points, and at those of the curve between them', () => {
    const fractions = Float64Array.of(0.5, 0.89, 0.9, 0.95, 0.990000000001, 0.995);
    expect(along.cornersAmong(fractions)).toEqual([0.9, 0.95, 0.99]);
  });
  it('has an open end where the latency has no bound', () => {
    const open = new BandAlong([point(90, 100, 98, 104, [90, null]), point(99, 200, 180, 240, [160, null])]);
    expect(open.spanAt('both', 0.95, 150)?.high).toBe(Infinity);
    expect(open.textAt(0.9, 100)).toBe(' (at least 90.0\u202fms)');
  });
  it('is of sampling alone where the model’s error is not known, and says so', () => {
    const sampling = new BandAlong([point(90, 100, 98, 104, null), point(99, 200, 180, 240, null)]);
    expect(sampling.textAt(0.9, 100)).toBe(' (98.0 to 104)');
    expect(sampling.words).not.toContain('error');
    expect(sampling.rangeWords).toContain('95\u202f% interval of sampling');
    expect(along.rangeWords).toContain('90\u202f% band of sampling and model error');
  });
});

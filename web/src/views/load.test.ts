import type { Report } from 'servecast';
import { describe, expect, it, vi } from 'vitest';

vi.mock('./details', () => ({}));
const { countedOf } = await import('./load');

const report = (arrived: number, more = {}): Report =>
  ({
    arrived,
    certainty: { method: 'replications', runs: 10, requests_per_run: 9000, from_s: 26, until_s: 36, ...more },
  }) as unknown as Report;

describe('what of the drawn run is marked as not counted', () => {
  it('OfARunThatCounts_ItsWarmUpAndItsDrain', () => {
    expect(countedOf(report(9000))).toMatchObject({ from_s: 26, until_s: 36 });
  });
  it('OfAShorterOne_ItsDrainAlone', () => {
    expect(countedOf(report(2000))).toEqual({ from_s: 0, until_s: 36 });
  });
  it('Nothing_WhereNobodyKnows', () => {
    expect(countedOf(report(9000, { until_s: 20 }))).toBeNull();
    expect(countedOf(null)).toBeNull();
  });
});

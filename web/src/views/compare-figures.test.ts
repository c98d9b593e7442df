import type { Report } from 'servecast';
import { describe, expect, it } from 'vitest';
import { costOfServed } from './compare-figures';

function report(state: Report['verdict']['state'], goodput: number, more: Partial<Report> = {}): Report {
  const slo = [{ metric: 'ttft' }];
  const own = {
    cost_per_million_output_tokens: 0.1,
    goodput_per_s: goodput,
    requests_per_s: 20,
    slo,
    verdict: { state },
  };
  return { ...own, ...more } as unknown as Report;
}

describe('the cost of what is served within the targets', () => {
  it('Overloaded_ServesNothingWithinThem_AndIsNoBargain', () => {
    expect(costOfServed(report('overloaded', 0))).toBeNull();
    expect(costOfServed(report('overloaded', 0.05))).toBeNull();
  });
  it('Missed_CostsMore_TheLessIsWithin', () => {
    expect(costOfServed(report('misses', 10))).toBeCloseTo(0.2);
    expect(costOfServed(report('overloaded', 5))).toBeCloseTo(0.4);
  });
  it('Met_IsAsTheTileSaysIt', () => {
    expect(costOfServed(report('meets', 19.7))).toBe(0.1);
    expect(costOfServed(report('near', 19.7))).toBe(0.1);
    expect(costOfServed(report('no_slo', 0, { slo: [] }))).toBe(0.1);
    expect(costOfServed(report('meets', 19, { cost_per_million_output_tokens: null }))).toBeNull();
  });
});

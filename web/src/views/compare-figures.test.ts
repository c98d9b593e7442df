import type { Report } from 'servecast';
import { describe, expect, it } from 'vitest';
import { closestTarget, costOfServed } from './compare-figures';

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

function target(metric: string, value: number | null, limit: number, more: object = {}) {
  const margin = value === null ? null : 1 - value / limit;
  const own = { metric, percentile: 99, value_ms: value, limit_ms: limit, margin, low: null, high: null };
  return { ...own, unbounded: false, unserved_share: 0, ...more };
}

const closestOf = (...slo: object[]) => closestTarget({ slo } as unknown as Report)?.metric;

describe('the target that a row and a rung are about', () => {
  it('is the nearest to its limit, whatever comes first', () => {
    expect(closestOf(target('ttft', 50, 200), target('tpot', 19, 20))).toBe('tpot');
    expect(closestOf(target('ttft', 190, 200), target('tpot', 10, 20))).toBe('ttft');
    expect(closestTarget({ slo: [] })).toBeNull();
  });
  it('is the one that the verdict names: one that is missed before one that is nearer and may be met', () => {
    const missed = { band: { low: 1, high: 30, level: 0.9, probability: 0.05 } };
    const near = { band: { low: 1, high: 900, level: 0.9, probability: 0.4 } };
    expect(closestOf(target('ttft', 260, 200, near), target('tpot', 24, 20, missed))).toBe('tpot');
  });
  it('is one without a bound, or to which too few got an answer, before all others', () => {
    expect(closestOf(target('ttft', 500, 200), target('tpot', null, 20, { unbounded: true }))).toBe('tpot');
    expect(closestOf(target('ttft', 210, 200), target('tpot', 10, 20, { margin: null, unserved_share: 0.05 }))).toBe(
      'tpot',
    );
  });
});

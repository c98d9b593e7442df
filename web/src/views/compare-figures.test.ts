import type { Report } from 'servecast';
import { describe, expect, it } from 'vitest';
import { closestTarget, costOfServed, settingName } from './compare-figures';

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

describe('the name of a setting', () => {
  const name = (pointer: string, withUnit = true) => settingName(pointer, false, withUnit);
  it('Policy_IsNamedByItsObject', () => {
    const policies = ['router', 'decode_router', 'scaling'].map((object) => name(`/cluster/${object}/policy`));
    expect(policies).toEqual(['Router: policy', 'Decode router: policy', 'Scaling: policy']);
    expect(name('/engine/enable_prefix_caching')).toBe('Engine: enable prefix caching');
  });
  it('Unit_IsNoWordOfIt_AndStandsBehindWhereValuesHaveNone', () => {
    expect(name('/cluster/failures/mtbf_s', false)).toBe('Failures: time between failures');
    expect(name('/cluster/failures/restart_s', false)).toBe('Failures: restart');
    expect(name('/cluster/failures/restart_s')).toBe('Failures: restart, s');
    expect(name('/hardware/memory_bandwidth_gb_s')).toBe('Hardware: memory bandwidth, GB/s');
    expect(name('/engine/speculative/num_speculative_tokens')).toBe('Speculative: num speculative tokens');
    expect(name('/workload/arrivals/rate_per_s')).toBe('Rate, requests/s');
    expect(name('/workload/arrivals/rate_per_s', false)).toBe('Rate');
    expect(name('/workload/output_tokens/mean', false)).toBe('Output length, mean');
  });
  it('OfOneOfSeveralPools_SaysWhich', () => {
    expect(settingName('/cluster/pools/1/engine/block_size', true)).toBe('Engine: block size of pool 2');
    expect(settingName('/cluster/pools/1/replicas', true)).toBe('Replicas of pool 2');
  });
});

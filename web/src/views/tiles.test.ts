import type { Report } from 'servecast';
import { describe, expect, it } from 'vitest';
import { formatInterval, sentence } from '../lib/format';
import { decidingTarget, sideOf } from '../lib/targets';
import { goodputText } from './tiles';

type Target = Report['slo'][number];

const target = (more: Partial<Target>): Target =>
  ({
    metric: 'tpot',
    percentile: 99,
    limit_ms: 20,
    value_ms: 15,
    margin: 0.25,
    low: 14.5,
    high: 15.5,
    unbounded: false,
    unserved_share: 0,
    met: true,
    runs: 16,
    ...more,
  }) as Target;

describe('the side of a target', () => {
  it('is that of its whole interval', () => {
    expect(sideOf(target({}))).toBe('meets');
    expect(sideOf(target({ value_ms: 22, low: 21, high: 23 }))).toBe('misses');
    expect(sideOf(target({ value_ms: 19.5, low: 18, high: 21 }))).toBe('near');
  });
  it('is of the value where there is no interval', () => {
    expect(sideOf(target({ low: null, high: null }))).toBe('meets');
    expect(sideOf(target({ value_ms: null, low: null, high: null }))).toBeNull();
  });
  it('is that of its probability where its band is known', () => {
    const side = (probability: number) =>
      sideOf(target({ band: { low: 12, high: 24, level: 0.9, probability, model: { low: 12, high: 24 } } }));
    expect([0.95, 0.9, 0.5, 0.1].map(side)).toEqual(['meets', 'meets', 'near', 'misses']);
  });
  it('is that of the share, of attainment', () => {
    const share = { metric: 'attainment', limit_ms: null, value_ms: null, limit_share: 0.99 } as const;
    expect(sideOf(target({ ...share, share: 0.995, low: 0.992, high: 0.997 }))).toBe('meets');
    expect(sideOf(target({ ...share, share: 0.98, low: 0.975, high: 0.985 }))).toBe('misses');
    expect(sideOf(target({ ...share, share: 0.99, low: 0.985, high: 0.995 }))).toBe('near');
  });
  it('is beyond when it has no bound, or too many get no answer', () => {
    expect(sideOf(target({ unbounded: true, value_ms: null }))).toBe('misses');
    expect(sideOf(target({ unserved_share: 0.02 }))).toBe('misses');
  });
});

it('what decides is missed, else too close to call, else the most strained', () => {
  const name = (...targets: Target[]) => decidingTarget(targets)?.metric;
  const tight = target({ metric: 'ttft', value_ms: 19, low: 18.5, high: 19.5 });
  const across = target({ metric: 'e2e', value_ms: 24, low: 16, high: 32 });
  const missed = target({ metric: 'tpot', value_ms: 21, low: 20.5, high: 21.5 });
  expect(name(tight, target({}))).toBe('ttft');
  expect(name(tight, across)).toBe('e2e');
  expect(name(tight, across, missed)).toBe('tpot');
  expect(name(missed, target({ metric: 'itl', unbounded: true, value_ms: null }))).toBe('itl');
  expect(name()).toBeUndefined();
});

describe('words', () => {
  it('goodput is a share of what is served', () => {
    const of = (good: number) => goodputText({ goodput_per_s: good, requests_per_s: 40 });
    expect(of(40)).toBe('all');
    // Not all, so not 100 %.
    expect(of(39.999)).toBe('99.9\u202f%');
    expect(of(30)).toBe('75.0\u202f%');
    expect(of(0.00161)).toBe('none');
  });
  it('an interval is in the unit of its value', () => {
    expect(formatInterval(95.1, 101, 97.7)).toBe('95.1 to 101');
    expect(formatInterval(980, 1100, 1030)).toBe('0.980 to 1.10');
  });
  it('the engine’s sentences have signs as people write them', () => {
    expect(sentence('Llama-3.1-8B on 1 x H100 meets both targets')).toContain('on 1\u00a0×\u00a0H100');
  });
});

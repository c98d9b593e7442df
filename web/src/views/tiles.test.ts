import type { Report } from 'servecast';
import { describe, expect, it } from 'vitest';
import { formatInterval, sentence } from '../lib/format';
import { sideOf } from './tiles';

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

describe('words', () => {
  it('an interval is in the unit of its value', () => {
    expect(formatInterval(95.1, 101, 97.7)).toBe('95.1 to 101');
    expect(formatInterval(980, 1100, 1030)).toBe('0.980 to 1.10');
  });
  it('the engine’s sentences have signs as people write them', () => {
    expect(sentence('Llama-3.1-8B on 1 x H100 meets both targets')).toContain('on 1\u00a0×\u00a0H100');
  });
});

import { describe, expect, it } from 'vitest';
import { marginsOf } from './sheet-parts';
import type { Latency } from './tiles';

const target = (more: object) =>
  ({ metric: 'tpot', percentile: 99, value_ms: 36, limit_ms: 20, unserved_share: 0, ...more }) as unknown as Latency;

describe('the margin of a target', () => {
  it('is of latency and of requests without an answer, where both are missed', () => {
    expect(marginsOf(target({ unserved_share: 0.0134 }), 'misses')).toBe('80\u202f% over; 1.34\u202f% got no answer');
    expect(marginsOf(target({ unserved_share: 0.0134, value_ms: 10 }), 'misses')).toBe(
      '50\u202f% to spare; 1.34\u202f% got no answer',
    );
  });
  it('is of the latency alone where enough got an answer', () => {
    expect(marginsOf(target({}), 'misses')).toBe('80\u202f% over');
    expect(marginsOf(target({ value_ms: null, unserved_share: 0.5 }), 'misses')).toBe('50.0\u202f% got no answer');
  });
});

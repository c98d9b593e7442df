import { describe, expect, it } from 'vitest';
import { busiest, lanesOf, nextStart, stepAt, stepsByReplica } from './recorded-steps';

/** Two replicas of pool 0, and one of pool 1. */
const steps = {
  step_replica: Float64Array.of(0, 1, 0, 2),
  step_pool: Float64Array.of(0, 0, 0, 1),
  step_start_s: Float64Array.of(0, 0, 2, 0),
  step_end_s: Float64Array.of(1, 4, 4, 4),
  step_running: Float64Array.of(4, 1, 8, 5),
  step_waiting: Float64Array.of(0, 2, 0, 0),
  step_kv_usage: Float64Array.of(0.4, 0.2, 0.8, 1),
};

describe('recorded steps', () => {
  it('are lanes of one pool, added over its replicas, of nothing between steps', () => {
    const lanes = lanesOf(steps, 0, 2, 0, 4);
    const at = (seconds: number) => Math.floor(seconds * 100);
    expect(lanes['lane_running']?.[at(0.5)]).toBeCloseTo(5);
    expect(lanes['lane_running']?.[at(1.5)]).toBeCloseTo(1);
    expect(lanes['lane_running']?.[at(3)]).toBeCloseTo(9);
    expect(lanes['lane_waiting']?.[at(1.5)]).toBeCloseTo(2);
    expect(lanes['lane_kv']?.[at(3)]).toBeCloseTo(0.5);
  });

  it('are found by the moment at which they run', () => {
    const [first = []] = stepsByReplica(steps);
    expect(first).toEqual([0, 2]);
    expect([0, 0.5, 1, 1.5, 2, 3.9, 4].map((time) => stepAt(steps, first, time))).toEqual([
      0,
      0,
      null,
      null,
      2,
      2,
      null,
    ]);
  });

  it('are played from a busy moment', () => {
    expect(busiest(steps)).toBe(2);
    expect(busiest({})).toBe(0);
  });

  it('lead from one to the next and back', () => {
    expect([nextStart(steps, 0, true), nextStart(steps, 2, true), nextStart(steps, 3, false)]).toEqual([2, 2, 2]);
    expect(nextStart(steps, 2, false)).toBe(0);
  });
});

import type { MaxRate, PlanPoint } from 'servecast';
import { describe, expect, it } from 'vitest';
import { setAt, type Document } from './document';
import { headroomOf } from './headroom';
import { ratePointer } from './rate';
import type { Plan } from './store';

const document: Document = { model: { preset: 'small' }, workload: { arrivals: { rate_per_s: 40 } } };
const point = (at: number, strain: number | null) => ({ at, strain }) as PlanPoint;
const answer = (more: Partial<MaxRate>) =>
  ({ monotone: true, curve: [], answer: null, binding: null, ...more }) as MaxRate;
const plan = (more: Partial<Plan>): Plan => ({
  kind: 'answered',
  document,
  inputs: {} as Plan['inputs'],
  trace: null,
  progress: 1,
  answer: null,
  sentence: '',
  issues: [],
  ...more,
});
const known = (of: Plan | null, now: Document = document) =>
  headroomOf({ plans: of ? { 'max-rate': of } : {}, document: now });
const value = { value: 47.9, low: 46.6, high: 49.1, unit: 'requests/s' };

describe('what the scenario holds', () => {
  it('is the answer of the plan, with what it is sure of', () => {
    const sure = { at_90: 46.2, at_50: 47.8, best_at: 40, best: 0.99 };
    expect(known(plan({ answer: answer({ answer: value, sure, binding: 'TPOT p99' }) }))).toEqual({
      kind: 'found',
      answer: value,
      sure,
      binding: 'TPOT p99',
    });
  });
  it('does not depend on the rate, and on all else', () => {
    const found = plan({ answer: answer({ answer: value }) });
    expect(known(found, setAt(document, ratePointer, 12))?.kind).toBe('found');
    expect(known(found, setAt(document, '/model/preset', 'large'))).toBeNull();
    expect(known(null)).toBeNull();
  });
  it('is between the loads that were tried, while it is sought', () => {
    const curve = [point(60, null), point(40, 0.7), point(50, 1.2), point(45, 0.95)];
    expect(known(plan({ kind: 'running', answer: answer({ curve }) }))).toEqual({
      kind: 'sought',
      meets: 45,
      misses: 50,
    });
    expect(known(plan({ kind: 'running', answer: answer({ curve: [point(40, 0.7)] }) }))).toEqual({
      kind: 'sought',
      meets: 40,
      misses: null,
    });
    expect(known(plan({ kind: 'running', answer: answer({ curve: [point(40, 1.7)] }) }))).toEqual({
      kind: 'sought',
      meets: null,
      misses: 40,
    });
    expect(known(plan({ kind: 'running' }))).toEqual({ kind: 'sought', meets: null, misses: null });
  });
  it('is said in the engine’s words where it is no figure, and offered where it was not asked', () => {
    expect(known(plan({ answer: answer({}), sentence: 'No load meets it.' }))).toEqual({
      kind: 'said',
      sentence: 'No load meets it.',
    });
    expect(known(plan({ kind: 'stopped' }))).toEqual({ kind: 'offered' });
    expect(known(plan({ kind: 'failed', issues: [{ path: '', message: 'no rate' }] }))).toEqual({
      kind: 'failed',
      message: 'no rate',
    });
  });
});

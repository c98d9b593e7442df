import { describe, expect, it } from 'vitest';
import { equalJson, getAt, needsTrace, removeAt, setAt, withFormerArrivals } from './document';

describe('documents', () => {
  const document = { model: { preset: 'a' }, slo: [{ limit_ms: 1 }, { limit_ms: 2 }] };

  it('Get_ThroughListsAndObjects', () => {
    expect(getAt(document, '/slo/1/limit_ms')).toBe(2);
    expect(getAt(document, '/slo/9/limit_ms')).toBeUndefined();
    expect(getAt(document, '/model/preset/deeper')).toBeUndefined();
    expect(getAt(document, '/__proto__/toString')).toBeUndefined();
  });
  it('Set_MakesMissingParents_AndLeavesTheOldAlone', () => {
    const changed = setAt(document, '/cluster/pools/0/tensor_parallel', 2);
    expect(changed).toEqual({ ...document, cluster: { pools: [{ tensor_parallel: 2 }] } });
    expect(document).not.toHaveProperty('cluster');
  });
  it('Set_ProtoKey_TouchesNoPrototype', () => {
    setAt({}, '/__proto__/polluted', true);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
  it('Remove_LastMember_RemovesTheEmptyParent', () => {
    expect(removeAt(document, '/model/preset')).toEqual({ slo: document.slo });
    expect(removeAt(document, '/slo/0')).toEqual({ ...document, slo: [{ limit_ms: 2 }] });
    expect(removeAt(document, '/nothing/here')).toBe(document);
    expect(removeAt(document, '/slo/0/limit_ms'), 'an item stays: those after it keep their places').toEqual({
      ...document,
      slo: [{}, { limit_ms: 2 }],
    });
  });
  it('Trace_OfLengthsAlone_TakesTheFormerArrivals', () => {
    const replaying = { workload: { arrivals: { process: 'trace' }, prompt_tokens: { distribution: 'trace' } } };
    expect(needsTrace(replaying)).toBe(true);
    expect(needsTrace(document)).toBe(false);
    const former = { arrivals: { process: 'poisson', rate_per_s: 3 } };
    expect(withFormerArrivals(replaying, former)).toEqual({ workload: { ...replaying.workload, ...former } });
    expect(withFormerArrivals(replaying, null), 'the engine says what is wrong').toBe(replaying);
    const own = { workload: { arrivals: { process: 'gamma' }, prompt_tokens: { distribution: 'trace' } } };
    expect(withFormerArrivals(own, former)).toBe(own);
  });
  it('Equal_IgnoresKeyOrder', () => {
    expect(equalJson({ a: 1, b: [1, { c: 2 }] }, { b: [1, { c: 2 }], a: 1 })).toBe(true);
    expect(equalJson({ a: 1 }, { a: 1, b: 2 })).toBe(false);
    expect(equalJson([1], { 0: 1 })).toBe(false);
  });
});

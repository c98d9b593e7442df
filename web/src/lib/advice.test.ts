import type { AdvisedChange, Advice, BlameSide, TimeParts } from 'servecast';
import { describe, expect, it } from 'vitest';
import { costChange, culprit, freeChange, improving, sorted } from './advice';

function change(name: string, meets: boolean, effect: number, more: Partial<AdvisedChange> = {}): AdvisedChange {
  return {
    change: name,
    set: [],
    document: '{}',
    gpus: 1,
    cost_per_hour: null,
    effect,
    meets,
    overloaded: false,
    served_per_s: 5,
    slo: [],
    ...more,
  };
}
const advice = (changes: readonly AdvisedChange[]): Advice => ({ answer: '', base: null, changes });

describe('what is worth a row', () => {
  it('is what is enough, in the order of the engine, and then nothing that only helps', () => {
    const rows = sorted(advice([change('a', true, 0.2), change('b', true, 0.5), change('c', false, 0.1)]));
    expect(rows.enough.map(({ change: name }) => name)).toEqual(['a', 'b']);
    expect(rows.nearer).toEqual([]);
  });
  it('is what helps most where little is enough', () => {
    const rows = sorted(
      advice([change('a', false, 0.3), change('b', false, 0.2), change('c', false, 0.1), change('d', false, 0.001)]),
    );
    expect(rows.nearer.map(({ change: name }) => name)).toEqual(['a', 'b']);
    expect(rows.useless.map(({ change: name }) => name)).toEqual(['d']);
  });
  it('is nothing that cannot run', () => {
    const { effect: _effect, ...refused } = change('a', false, 0);
    const rows = sorted(advice([{ ...refused, issues: ['it does not fit'] }]));
    expect([...rows.enough, ...rows.nearer, ...rows.useless]).toEqual([]);
  });
});

describe('what gives a met target more room', () => {
  it('is by cost, then by how much, and what still meets all targets', () => {
    const { helping, others } = improving(
      advice([
        change('dear', true, 0.5, { cost_per_hour: 5 }),
        change('free', true, 0.1, { cost_per_hour: 2.5 }),
        change('free and more', true, 0.3, { cost_per_hour: 2.5 }),
        change('misses', false, 0.4, { cost_per_hour: 2.5 }),
        change('no more', true, 0, { cost_per_hour: 2.5 }),
      ]),
    );
    expect(helping.map(({ change: name }) => name)).toEqual(['free and more', 'free', 'dear']);
    expect(others.map(({ change: name }) => name)).toEqual(['misses', 'no more']);
  });
  it('puts a GPU without a price last', () => {
    const { helping } = improving(
      advice([change('unpriced', true, 0.5), change('dear', true, 0.1, { cost_per_hour: 90 })]),
    );
    expect(helping.map(({ change: name }) => name)).toEqual(['dear', 'unpriced']);
  });
});

describe('the change that goes with more GPUs', () => {
  const base = change('as it is', false, 0, { cost_per_hour: 2.5 });
  const of = (changes: readonly AdvisedChange[]) => freeChange({ ...advice(changes), base })?.change;
  it('is the one that helps most and costs nothing', () => {
    const free = { cost_per_hour: 2.5 };
    const dear = change('2 replicas', false, 0.9, { cost_per_hour: 5, gpus: 2 });
    expect(of([dear, change('a', false, 0.1, free), change('b', false, 0.3, free)])).toBe('b');
    expect(of([dear, change('a', false, 0.001, free)])).toBeUndefined();
  });
});

describe('what a change costs', () => {
  const base = change('as it is', false, 0, { cost_per_hour: 2.5 });
  it('is dollars an hour where both have a price', () => {
    expect(costChange(change('a', true, 0, { cost_per_hour: 5, gpus: 2 }), base)).toBe('+$2.50/h');
    expect(costChange(change('a', true, 0, { cost_per_hour: 2.5 }), base)).toBe('+$0.00/h');
    expect(costChange(change('a', true, 0, { cost_per_hour: 1 }), base)).toBe('\u2212$1.50/h');
  });
  it('is GPUs where one has none', () => {
    expect(costChange(change('a', true, 0, { gpus: 2 }), base)).toBe('+1 GPU');
    expect(costChange(change('a', true, 0), base)).toBe('no more GPUs');
  });
});

describe('what makes the slowest slow', () => {
  const none: TimeParts = {
    host: 0,
    queue: 0,
    prefill: 0,
    decode: 0,
    interference: 0,
    preempted: 0,
    transfer: 0,
    handover: 0,
  };
  const side = (parts: Partial<TimeParts>): BlameSide => {
    const parts_ms = { ...none, ...parts };
    const mean_ms = Object.values(parts_ms).reduce((sum, each) => sum + each);
    return { requests: 1, mean_ms, parts_ms, total_ns: mean_ms * 1e6, parts_ns: none };
  };
  it('is the part that grows most, not the largest', () => {
    const blame = {
      from_ms: 20,
      slowest: side({ decode: 12, interference: 10 }),
      all: side({ decode: 11, interference: 4 }),
    };
    expect(culprit(blame)).toMatchObject({ part: 'interference', ms: 6, lost: 7 });
  });
  it('is nothing where they are not slower', () => {
    expect(culprit({ from_ms: 1, slowest: side({ decode: 5 }), all: side({ decode: 5 }) })).toBeNull();
  });
});

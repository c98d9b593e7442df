import type { Catalog } from 'servecast';
import { describe, expect, it } from 'vitest';
import type { Document } from './document';
import { assign, fieldAt, isInherited, placedFields, valueInForce, type FormSource } from './fields';
import { splitsOf, withAnotherPool, withSplit, withoutPool, withoutRoles } from './pool-edits';
import { poolsInWords, poolsOf, withNamedPresets, withPoolFields } from './pools';
import { field } from './field-of-test';

const gpus = [
  { id: 'new', name: 'New GPU', description: '', document: { name: 'New GPU', memory_gib: 80, fp8: 9 } },
  { id: 'old', name: 'Old GPU', description: '', document: { name: 'Old GPU', memory_gib: 40 } },
];
const catalog = withPoolFields({
  presets: {
    models: [],
    hardware: gpus,
    engines: [{ id: 'vllm', name: 'vLLM', description: '', document: { name: 'vLLM', max_num_seqs: 256 } }],
    workloads: [],
    scenarios: [],
  },
  fields: [
    field('/hardware/preset', { type: 'choice', choices: ['new', 'old'] }),
    field('/hardware/name', { type: 'text', default: '' }),
    field('/hardware/memory_gib', { required: true }),
    field('/hardware/fp8', { default: 0 }),
    field('/hardware/price'),
    field('/engine/preset', { type: 'choice', choices: ['vllm'], default: 'vllm' }),
    field('/engine/name', { type: 'text', default: '' }),
    field('/engine/max_num_seqs', { default: 128 }),
    field('/engine/graphs', { type: 'choice', choices: ['no', 'yes'], default: 'no' }),
    field('/engine/graph_us', { default: 10, when: { path: '/engine/graphs', values: ['yes'] } }),
    field('/scheduler/policy', { type: 'choice', choices: ['vllm', 'orca'], default: 'vllm' }),
    field('/cluster/pools/-/replicas', { type: 'integer', default: 1 }),
    field('/cluster/pools/-/role', { type: 'choice', choices: ['mixed', 'prefill', 'decode'], default: 'mixed' }),
  ],
  policies: [],
} as unknown as Catalog);

function source(pools: readonly Document[], more: Document = {}): FormSource {
  return {
    catalog,
    document: { hardware: { preset: 'new', price: 2 }, engine: { preset: 'vllm' }, cluster: { pools }, ...more },
    resolved: null,
  };
}
const at = (from: FormSource, pointer: string) => valueInForce(from, { field: fieldAt(from, pointer)!, pointer });

describe('pools', () => {
  it('Field_OfAPool_IsThatOfTheScenario_Inherited', () => {
    const two = source([{}, { hardware: { preset: 'old' }, engine: { max_num_seqs: 9 } }]);
    expect(at(two, '/cluster/pools/0/hardware/memory_gib')).toBe(80);
    expect(at(two, '/cluster/pools/1/hardware/memory_gib')).toBe(40);
    expect(at(two, '/cluster/pools/1/hardware/fp8'), 'a preset has its own defaults').toBe(0);
    expect(at(two, '/cluster/pools/0/hardware/price'), 'what has no default is the scenario’s').toBe(2);
    expect(at(source([{ hardware: { preset: 'new' } }]), '/cluster/pools/0/hardware/price'), 'of the same GPU').toBe(2);
    expect(at(two, '/cluster/pools/1/hardware/price'), 'another GPU is not known to cost as much').toBeUndefined();
    expect(at(two, '/cluster/pools/0/engine/max_num_seqs')).toBe(256);
    expect(isInherited(two, '/cluster/pools/0/engine/max_num_seqs')).toBe(true);
    expect(isInherited(two, '/cluster/pools/1/engine/max_num_seqs')).toBe(false);
    expect(isInherited(two, '/engine/max_num_seqs')).toBe(false);
    expect(fieldAt(two, '/cluster/pools/1/hardware/memory_gib')?.required).toBe(false);
  });
  it('Field_ThatHangsOnAChoice_DoesSoInThePool', () => {
    const two = source([{}, { engine: { graphs: 'yes' } }]);
    const shown = placedFields(two, (path) => path.endsWith('graph_us')).map(({ pointer }) => pointer);
    expect(shown).toEqual(['/cluster/pools/1/engine/graph_us']);
    expect(
      assign(source([{}, { engine: { graphs: 'yes', graph_us: 5 } }]), '/cluster/pools/1/engine/graphs', 'no'),
    ).toMatchObject({ cluster: { pools: [{}, { engine: { graphs: 'no' } }] } });
  });
  it('Scheduler_OfAPool_IsTheScenarios_OrItsOwn', () => {
    const two = source([{}, { scheduler: { policy: 'orca' } }]);
    expect(at(two, '/cluster/pools/0/scheduler/policy')).toBe('vllm');
    expect(at(two, '/cluster/pools/1/scheduler/policy')).toBe('orca');
    expect(
      poolsOf({ document: withNamedPresets(catalog, source([{ scheduler: 'orca' }]).document), resolved: null })[0],
    ).toEqual({ scheduler: { policy: 'orca' } });
  });
  it('Gpu_OfAPool_ReplacesWhatItHadOfItsOwn', () => {
    const changed = assign(
      source([{ hardware: { preset: 'old', fp8: 1 }, replicas: 3 }]),
      '/cluster/pools/0/hardware/preset',
      'new',
    );
    expect(changed['cluster']).toEqual({ pools: [{ hardware: { preset: 'new' }, replicas: 3 }] });
  });
  it('Added_IsLikeTheLast_AndDecodesBesideRoles', () => {
    expect(
      poolsOf({
        document: withAnotherPool(source([{ name: 'a', replicas: 4, hardware: { preset: 'old' } }])),
        resolved: null,
      })[1],
    ).toEqual({ replicas: 1, hardware: { preset: 'old' } });
    expect(
      poolsOf({ document: withAnotherPool(source([{ role: 'prefill' }, { role: 'decode' }])), resolved: null })[2],
    ).toEqual({ replicas: 1, role: 'decode' });
    expect(withAnotherPool({ catalog, document: {}, resolved: null })).toEqual({
      cluster: { pools: [{}, { replicas: 1 }] },
    });
  });
  it('Removed_TakesRolesAlong_WhenNoPairIsLeft', () => {
    const apart = source([
      { role: 'prefill', replicas: 3 },
      { role: 'decode', replicas: 5 },
    ]);
    const link = {
      ...apart,
      document: {
        ...apart.document,
        cluster: {
          pools: poolsOf(apart),
          disaggregation: { bandwidth: 1 },
          decode_router: { policy: 'x' },
          router: { policy: 'y' },
        },
      },
    };
    expect(withoutPool(link, 1)['cluster']).toEqual({ pools: [{ replicas: 3 }], router: { policy: 'y' } });
    expect(withoutPool(source([{ role: 'prefill' }, { role: 'decode' }, { role: 'encode' }]), 1)['cluster']).toEqual({
      pools: [{}, { role: 'encode' }],
    });
    expect(withoutPool(source([{ replicas: 3 }, { role: 'encode' }]), 0)['cluster']).toEqual({ pools: [{}] });
    expect(
      withoutPool(source([{ role: 'prefill' }, { role: 'decode' }, { role: 'decode', replicas: 2 }]), 1)['cluster'],
    ).toEqual({ pools: [{ role: 'prefill' }, { role: 'decode', replicas: 2 }] });
  });
  it('Split_KeepsKindAndNumber_AndJoinUndoesIt', () => {
    const eight = source([{ replicas: 8, hardware: { preset: 'old' } }]);
    const split = withSplit(eight, 3)!;
    expect(poolsInWords(poolsOf({ document: split, resolved: null }))).toBe('3 prefill + 5 decode');
    expect(withoutRoles({ ...eight, document: split })).toEqual(eight.document);
    expect(withSplit(eight, 8)).toBeUndefined();
    expect(
      withSplit(source([{}, { hardware: { preset: 'old' } }]), 1),
      'unlike pools have no such split',
    ).toBeUndefined();
  });
  it('Splits_AreAllOfAFew_AndSomeOfMany', () => {
    expect(splitsOf(source([{ replicas: 4 }])).map(({ name }) => name)).toEqual([
      '4 replicas',
      '1 prefill + 3 decode',
      '2 prefill + 2 decode',
      '3 prefill + 1 decode',
    ]);
    expect(splitsOf(source([{ replicas: 1000 }])).length).toBe(9);
    expect(splitsOf(source([{}]))).toEqual([]);
    const unlike = source([{ role: 'prefill' }, { role: 'decode', hardware: { preset: 'old' }, replicas: 2 }]);
    expect(splitsOf(unlike).map(({ name }) => name)).toEqual(['3 replicas']);
  });
  it('WrittenOut_AsALinkHasIt_IsAPresetByName', () => {
    const named = (hardware: Document | string) =>
      poolsOf({ document: withNamedPresets(catalog, source([{}, { hardware }]).document), resolved: null })[1]?.[
        'hardware'
      ];
    expect(named('old')).toEqual({ preset: 'old' });
    expect(named({ preset: 'old', fp8: 3 })).toEqual({ preset: 'old', fp8: 3 });
    // Of the scenario's GPU all but these: its fp8 stays, which the preset has not.
    expect(named({ name: 'New GPU', memory_gib: 40 })).toEqual({ preset: 'new', memory_gib: 40 });
    expect(named({ name: 'My own', memory_gib: 40 })).toEqual({ name: 'My own', memory_gib: 40 });
    // Written out without a price it is at the scenario's; null is none, as the preset's.
    expect(named({ name: 'Old GPU', memory_gib: 40, fp8: 0 })).toEqual({ preset: 'old', price: 2 });
    expect(named({ name: 'Old GPU', memory_gib: 40, fp8: 0, price: null })).toEqual({ preset: 'old' });
  });
});

import type { Catalog, Field, Report } from 'servecast';
import { describe, expect, it } from 'vitest';
import type { Document } from '../state/document';
import type { FormSource } from '../state/fields';
import { departuresOf, headingOf, inputsOf, originOf } from './sheet-inputs';

function field(path: string, more: Partial<Field> = {}): Field {
  const plain = { type: 'number', unit: '', help: '', required: false, default: null, minimum: null, maximum: null };
  return { path, choices: [], ...plain, ...more } as Field;
}

const h100 = { id: 'h100', name: 'H100 SXM 80 GB', document: { name: 'H100 SXM 80 GB', memory_gib: 80 } };
const vllm = { id: 'vllm', name: 'vLLM', document: { name: 'vLLM', max_num_seqs: 256 } };
const chat = {
  id: 'chat',
  name: 'Chat on one H100',
  document: {
    name: 'Chat on one H100',
    description: 'Answers 40 requests per second on one H100.',
    hardware: { preset: 'h100' },
    engine: { preset: 'vllm' },
    workload: { arrivals: { process: 'poisson', rate_per_s: 40 }, requests: 2000 },
    slo: [{ metric: 'tpot', percentile: 99, limit_ms: 20 }],
  },
};
const catalog = {
  presets: { models: [], hardware: [h100], engines: [vllm], workloads: [], scenarios: [chat] },
  policies: [],
  fields: [
    field('/hardware/preset', { type: 'choice', default: 'h100' }),
    field('/hardware/memory_gib', { unit: 'GiB' }),
    field('/engine/preset', { type: 'choice', default: 'vllm' }),
    field('/engine/max_num_seqs', { type: 'integer' }),
    field('/engine/enable_prefix_caching', { type: 'boolean', default: true }),
    field('/workload/arrivals/process', { type: 'choice', default: 'poisson' }),
    field('/workload/arrivals/rate_per_s', { unit: 'req/s' }),
    field('/workload/requests', { type: 'integer', unit: 'requests', default: 1000 }),
    field('/slo/-/percentile', { default: 99 }),
    field('/workload/rate_factors', { type: 'list' }),
  ],
} as unknown as Catalog;

const hostile = '<img src=x onerror=alert(1)>';
const source = (document: Document): FormSource => ({ catalog, document, resolved: null });
const report = (scenario: Document, slo: object[] = []) => ({ scenario, slo, gpus: 8 }) as unknown as Report;

describe('what was asked', () => {
  it('names presets, GPUs of all replicas, the load and the targets, each with its unit', () => {
    const pools = [{ replicas: 2, tensor_parallel: 4 }];
    const document = {
      hardware: { preset: 'h100' },
      engine: { preset: 'vllm' },
      workload: { arrivals: { rate_per_s: 40 } },
    };
    const slo = [{ metric: 'tpot', percentile: 99, limit_ms: 20 }];
    const resolved = { hardware: { name: 'H100 SXM 80 GB' }, cluster: { pools } };
    const rows = new Map(
      inputsOf(source(document), report(resolved, slo), null).map(({ name, value }) => [name, value]),
    );
    expect(rows.get('Hardware')).toBe('2 replicas of 4 × H100 SXM 80 GB, 8 GPUs in all');
    expect(rows.get('Engine')).toBe('vLLM, 256 sequences');
    expect(rows.get('Load')).toBe('poisson, rate 40\u202freq/s');
    expect(rows.get('Targets')).toBe('TPOT p99 ≤\u00a020\u00a0ms');
  });
  it('names the trace that is replayed, and says where no target is set', () => {
    const rows = inputsOf(source({}), report({ model: { name: hostile } }), 'conv.csv');
    expect(rows.find(({ name }) => name === 'Load')?.value).toMatch(/^trace conv\.csv/);
    expect(rows.find(({ name }) => name === 'Targets')?.value).toBe('none');
    expect(rows.find(({ name }) => name === 'Model')?.value).toBe(hostile);
  });
});

describe('what differs from presets and defaults', () => {
  const found = (document: Document) =>
    departuresOf(source(document), null).map(({ name, value, otherwise }) => [name, value, otherwise]);
  it('is what would be another value if the document did not say it', () => {
    const engine = { preset: 'vllm', max_num_seqs: 128, enable_prefix_caching: true };
    expect(found({ engine, workload: { requests: 2000 } })).toEqual([
      ['Sequences (max_num_seqs)', '128', '256'],
      ['Workload: requests', '2,000', '1,000'],
    ]);
    expect(found({ engine: { preset: 'vllm', max_num_seqs: 256 } })).toEqual([]);
  });
  it('compares a section that is written out with the preset whose name it has', () => {
    expect(found({ hardware: { name: 'H100 SXM 80 GB', memory_gib: 80 } })).toEqual([]);
    expect(found({ hardware: { name: 'H100 SXM 80 GB', memory_gib: 96 } })).toEqual([
      ['Hardware: memory', '96\u202fGiB', '80\u202fGiB'],
    ]);
    expect(found({ hardware: { name: 'mine', memory_gib: 96 } })).toEqual([['Hardware: memory', '96\u202fGiB', '']]);
  });
  it('says how long a table is, not what it holds', () => {
    expect(
      found({
        workload: {
          rate_factors: [
            [0, 1],
            [300, 2],
          ],
        },
      }),
    ).toEqual([['Workload: rate factors', 'a table of 2 rows', '']]);
  });
});

describe('what differs from the preset of the scenario', () => {
  const origin = originOf(catalog, chat.document, null);
  const { workload } = chat.document;
  const found = (document: Document) =>
    departuresOf(source(document), origin).map(({ name, value, otherwise, from }) => [name, value, from, otherwise]);
  it('is nothing where the preset is as it was, whatever it says beside the defaults', () => {
    expect(found(chat.document)).toEqual([]);
    expect(found({ ...chat.document, slo: [{ metric: 'tpot', limit_ms: 20 }] })).toEqual([]);
    expect(found({ ...chat.document, hardware: { name: 'H100 SXM 80 GB', memory_gib: 80 } })).toEqual([]);
  });
  it('is the rate, the replicas, the targets and the limits that somebody edited, each with what the preset has', () => {
    const edited = {
      ...chat.document,
      engine: { preset: 'vllm', max_num_seqs: 128 },
      cluster: { pools: [{ replicas: 3 }] },
      workload: { ...workload, arrivals: { process: 'poisson', rate_per_s: 400 } },
      slo: [],
    };
    const hardware = '3 replicas of 1 × H100 SXM 80 GB, 3 GPUs in all';
    expect(found(edited)).toEqual([
      ['Hardware', hardware, 'preset', '1 × H100 SXM 80 GB'],
      ['Targets', 'none', 'preset', 'TPOT p99 ≤\u00a020\u00a0ms'],
      ['Sequences (max_num_seqs)', '128', 'preset', '256'],
      ['Rate', '400\u202freq/s', 'preset', '40\u202freq/s'],
    ]);
  });
  it('is the default where the preset says something else', () => {
    const { arrivals } = workload;
    expect(found({ ...chat.document, workload: { arrivals } })).toEqual([
      ['Workload: requests', '1,000', 'preset', '2,000'],
    ]);
  });
  it('leaves its title and note only to the unchanged; those of a user stay', () => {
    const { description: note, name } = chat.document;
    expect(headingOf(chat.document, origin, name, false)).toEqual({ title: name, note });
    expect(headingOf(chat.document, origin, name, true)).toEqual({
      title: `Changed from: ${name}`,
      note: `Changed from: ${note}`,
    });
    const own = { ...chat.document, name: 'Mine', description: 'For May.' };
    expect(headingOf(own, origin, 'Mine', true)).toEqual({ title: 'Mine', note: 'For May.' });
    expect(originOf(catalog, { name: 'Mine', description: note }, null)).toBe(chat);
    expect(originOf(catalog, { name: 'Mine' }, null)).toBeNull();
  });
});

import type { Catalog, Field } from 'servecast';
import { describe, expect, it } from 'vitest';
import type { Document } from './document';
import { engineInForce, engineVariants, enginesInWords, enginesOf, notCarried, scenarioUnder } from './engines';
import type { FormSource } from './fields';

const preset = (id: string, name: string, scheduler?: Record<string, unknown>) => ({
  id,
  name,
  description: '',
  document: { name, block_size: id.startsWith('vllm') ? 16 : 32, gpu_memory_utilization: 0.9 },
  ...(scheduler ? { scheduler } : {}),
});
const field = (path: string, standard: unknown, choices: readonly string[] = []) =>
  ({ path, type: choices.length > 0 ? 'choice' : 'text', default: standard, choices }) as unknown as Field;
const catalog = {
  presets: {
    models: [],
    hardware: [],
    engines: [
      preset('sglang-0.5.9', 'SGLang 0.5.9', { policy: 'sglang', version: '0.5.9' }),
      preset('sglang', 'SGLang 0.5.16', { policy: 'sglang' }),
      preset('trtllm-1.10', 'TensorRT-LLM 1.10', { policy: 'trtllm', free_gpu_memory_fraction: 0.9 }),
      preset('trtllm-1.2', 'TensorRT-LLM 1.2', { policy: 'trtllm', free_gpu_memory_fraction: 0.9 }),
      preset('trtllm', 'TensorRT-LLM 1.0'),
      preset('vllm-0.19', 'vLLM 0.19'),
      preset('vllm', 'vLLM V1'),
    ],
    workloads: [],
    scenarios: [],
  },
  fields: [
    field('/engine/preset', 'vllm'),
    field('/engine/max_num_seqs', 256),
    field('/engine/max_loras', 0),
    field('/engine/max_model_len', null),
    field('/scheduler/policy', 'vllm', ['vllm', 'orca', 'sglang', 'trtllm']),
    field('/scheduler/order', 'fcfs', ['fcfs', 'sjf']),
  ],
  policies: [],
} as unknown as Catalog;
const of = (document: Document, resolved: Document | null = null): FormSource => ({ catalog, document, resolved });
const names = (source: FormSource) => engineVariants(source).map(({ name }) => name);

describe('engines', () => {
  it('are the schedulers that presets of their name run by, the newest version of each', () => {
    expect(enginesOf(catalog).map((each) => [each.policy, each.preset.id])).toEqual([
      ['vllm', 'vllm'],
      ['sglang', 'sglang'],
      ['trtllm', 'trtllm-1.10'],
    ]);
    expect(enginesInWords(catalog)).toBe('vLLM, SGLang or TensorRT-LLM');
  });

  it('are rows after the scenario as it is, whichever version that has', () => {
    expect(names(of({}))).toEqual(['vLLM V1', 'SGLang 0.5.16', 'TensorRT-LLM 1.10']);
    expect(names(of({ engine: { preset: 'vllm-0.19' } }))).toEqual(['vLLM 0.19', 'SGLang 0.5.16', 'TensorRT-LLM 1.10']);
    expect(names(of({ engine: { preset: 'trtllm-1.2' } }))).toEqual(['TensorRT-LLM 1.2', 'vLLM V1', 'SGLang 0.5.16']);
    const own = { engine: { preset: 'sglang-0.5.9', max_model_len: 9 } };
    const [first] = engineVariants(of(own));
    expect(first).toMatchObject({ name: 'SGLang 0.5.9', isCurrent: true });
    expect(first?.document).toBe(own);
    expect(engineVariants(of({})).filter(({ isCurrent }) => isCurrent)).toHaveLength(1);
  });

  it('are known by their names where a link wrote them out', () => {
    const resolved = { engine: { name: 'SGLang 0.5.16' }, scheduler: { policy: 'sglang' } };
    expect(names(of(resolved, resolved))).toEqual(['SGLang 0.5.16', 'vLLM V1', 'TensorRT-LLM 1.10']);
    const nobody = { engine: { name: 'ours' }, scheduler: { policy: 'trtllm' } };
    expect(names(of(nobody, nobody))).toEqual(['ours', 'vLLM V1', 'SGLang 0.5.16']);
  });

  it('are all there beside a server that is none of them', () => {
    const engines = ['vLLM V1', 'SGLang 0.5.16', 'TensorRT-LLM 1.10'];
    expect(names(of({ engine: { preset: 'trtllm' } }))).toEqual(['TensorRT-LLM 1.0, scheduler vllm', ...engines]);
    expect(names(of({ scheduler: { policy: 'orca' } }))).toEqual(['vLLM V1, scheduler orca', ...engines]);
    const mixed = { cluster: { pools: [{}, { engine: { preset: 'sglang' } }] } };
    expect(names(of(mixed))).toEqual(['vLLM V1 + SGLang 0.5.16', ...engines]);
    expect(engineInForce(of(mixed))).toBeUndefined();
  });

  it('take over features, limits of the model and the host, so that they refuse what they lack', () => {
    const own = {
      engine: { preset: 'vllm', block_size: 64, max_model_len: 9, max_loras: 4, host: 'slow', max_num_seqs: 512 },
      scheduler: { order: 'sjf' },
      cluster: { pools: [{ role: 'prefill' }] },
      seed: 3,
    };
    expect(scenarioUnder(of(own), 'sglang')).toEqual({
      name: 'SGLang 0.5.16',
      document: {
        engine: { preset: 'sglang', max_model_len: 9, max_loras: 4, host: 'slow' },
        cluster: { pools: [{ role: 'prefill' }] },
        seed: 3,
      },
    });
    expect(notCarried(of(own))).toEqual(['/engine/block_size', '/engine/max_num_seqs', '/scheduler/order']);
    expect(scenarioUnder(of(own), 'orca')).toBeNull();
  });

  it('do not take what an engine’s preset or a default says for a choice', () => {
    const written = {
      engine: { name: 'vLLM V1', block_size: 16, gpu_memory_utilization: 0.9, max_num_seqs: 256, max_loras: 0 },
      scheduler: { policy: 'vllm', order: 'fcfs' },
    };
    expect(scenarioUnder(of(written), 'trtllm')?.document).toEqual({ engine: { preset: 'trtllm-1.10' } });
    expect(notCarried(of(written))).toEqual([]);
  });

  it('have the share of the memory that was set, not that of a preset’s scheduler', () => {
    const own = { engine: { gpu_memory_utilization: 0.5 } };
    expect(scenarioUnder(of(own), 'trtllm')?.document).toEqual({
      engine: { preset: 'trtllm-1.10', gpu_memory_utilization: 0.5 },
      scheduler: { free_gpu_memory_fraction: null },
    });
    expect(scenarioUnder(of(own), 'sglang')?.document).toEqual({
      engine: { preset: 'sglang', gpu_memory_utilization: 0.5 },
    });
  });

  it('serve every pool: what a pool has of its own engine goes, but for what every engine has', () => {
    const pools = [
      { replicas: 2, engine: { preset: 'vllm-0.19', max_num_seqs: 9, max_model_len: 5 } },
      { hardware: { preset: 'x' }, engine: { preset: 'vllm' }, scheduler: { order: 'sjf' } },
    ];
    const source = of({ cluster: { pools } });
    expect(engineInForce(source)?.policy).toBe('vllm');
    expect(scenarioUnder(source, 'sglang')?.document).toEqual({
      engine: { preset: 'sglang' },
      cluster: { pools: [{ replicas: 2, engine: { max_model_len: 5 } }, { hardware: { preset: 'x' } }] },
    });
    expect(notCarried(source)).toEqual(['/engine/max_num_seqs', '/scheduler/order']);
  });
});

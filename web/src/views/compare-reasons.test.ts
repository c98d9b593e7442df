import type { Report } from 'servecast';
import { expect, it } from 'vitest';
import { reasons } from './compare-reasons';

const report = (queue: number, interference: number, policy?: string) =>
  ({
    scenario: policy ? { scheduler: { policy } } : {},
    time_split: { n: 1, ttft_ms: {}, e2e_ms: { queue, prefill: 10, decode: 900, interference } },
  }) as unknown as Report;

it('names what differs by 2 %, the largest first, and what the schedulers do otherwise', () => {
  const found = reasons(report(40, 5, 'sglang'), report(0, 85));
  expect(found.map(({ text }) => text.replaceAll(/\s/g, ' '))).toEqual([
    'Waits for others’ prompts: 80.0 ms more in B',
    'Waits for admission: 40.0 ms less in B',
  ]);
  expect(found[0]?.why).toMatch(/SGLang computes prompts first/);
  expect(reasons(report(40, 5), report(0, 5))[0]?.why).toBe('');
  expect(reasons(report(40, 5), report(41, 5))).toEqual([]);
});

it('puts the rules of both schedulers beside each other, by their settings', () => {
  const by = (policy: string, settings: object) => {
    const made = report(policy === 'trtllm' ? 40 : 0, policy === 'trtllm' ? 5 : 85);
    return {
      ...made,
      scenario: { scheduler: { policy, ...settings }, engine: { max_num_batched_tokens: 8192 } },
    } as Report;
  };
  const found = reasons(by('vllm', {}), by('trtllm', {}), '');
  expect(found.map(({ text }) => text.replaceAll(/\s/g, ' '))).toEqual([
    'Waits for others’ prompts: 80.0 ms less',
    'Waits for admission: 40.0 ms more',
  ]);
  expect(found[0]?.why).toBe(
    'vLLM puts prompts and tokens in one step of up to 8,192 tokens; TensorRT-LLM puts whole prompts and tokens in one step of up to 8,192 tokens',
  );
  expect(found[1]?.why).toMatch(/guaranteed_no_evict/);
  const eager = by('trtllm', { capacity_scheduler_policy: 'max_utilization' });
  expect(reasons(by('sglang', {}), eager)[1]?.why).toMatch(
    /^SGLang admits .* until one has ended; TensorRT-LLM .*max_utilization/,
  );
  expect(reasons(by('orca', {}), eager)[0]?.why).toBe('');
  const mixed = by('vllm', {});
  const pools = [{}, { scheduler: { policy: 'sglang' } }];
  const scenario = { ...(mixed.scenario as object), cluster: { pools } };
  expect(reasons({ ...mixed, scenario } as Report, eager)[0]?.why, 'pools of several').toBe('');
});

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

import type { Report } from 'servecast';
import { describe, expect, it } from 'vitest';
import { groupOf, groups, labelOf } from './number-groups';

const report = {
  slo: [
    { metric: 'ttft', percentile: 99 },
    { metric: 'tpot', percentile: 99 },
  ],
} as unknown as Report;

describe('numbers', () => {
  it('every key has one of five groups', () => {
    expect(groups.length).toBe(5);
    expect(groupOf(['slo', '1', 'value_ms'])).toBe('latency');
    expect(groupOf(['output_tokens_per_s'])).toBe('rates');
    expect(groupOf(['first_run', 'kv', 'mean_usage'])).toBe('memory');
    expect(groupOf(['first_run', 'queued'])).toBe('load');
    expect(groupOf(['fingerprint'])).toBe('run');
    expect(groupOf(['something_new'])).toBe('run');
  });

  it('words are those of the page', () => {
    expect(labelOf(['slo', '2', 'band', 'low'], report)).toBe('Target TPOT p99 · band · low');
    expect(labelOf(['first_run', 'mfu'], report)).toBe('FLOP/s used, of the peak (MFU) (first run)');
    expect(labelOf(['memory', 'weights_gib'], report)).toBe('Memory · weights');
    expect(labelOf(['kv', 'blocks'], report)).toBe('KV cache · blocks');
  });
});

import type { Preset } from 'servecast';
import { describe, expect, it, vi } from 'vitest';

vi.stubGlobal('HTMLElement', class {});
vi.stubGlobal('customElements', { define: () => undefined, get: () => undefined });
const { rankOf } = await import('./preset-picker');

const preset = (id: string, name: string, description = ''): Preset => ({ id, name, description, document: {} });
const code = preset('qwen2.5-7b-l40s-code', 'Code completion on one L40S');
const apart = preset('disaggregated', 'Long prompts, prefill and decode apart');
const rag = preset('rag', 'RAG', 'Long prompts for retrieval, and code');

describe('the search of presets', () => {
  it('Words_ThatBeginAName_ComeBeforeTheirDescriptions_AndBeforeInfixes', () => {
    const order = [apart, rag, code].map((each) => ({ id: each.id, rank: rankOf(each, ['code']) }));
    expect(order.sort((a, b) => a.rank - b.rank).map(({ id }) => id)).toEqual([code.id, rag.id, apart.id]);
  });
  it('Words_ThatAreNowhere_AreNotFound', () => {
    expect(rankOf(code, ['code', 'zebra'])).toBeGreaterThan(3);
    expect(rankOf(code, [])).toBe(0);
    expect(rankOf(code, ['2.5-7b'])).toBeLessThan(4);
  });
});

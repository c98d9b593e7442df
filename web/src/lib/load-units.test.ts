import type { Report } from 'servecast';
import { describe, expect, it } from 'vitest';
import { perRequestPerS } from './load-units';

const report = { requests_per_s: 40, output_tokens_per_s: 4600, e2e_ms: { mean: 1250 } } as unknown as Report;

describe('a request a second', () => {
  it('is 60 a minute, whatever ran', () => {
    expect(perRequestPerS('rpm', null)).toBe(60);
  });
  it('is the mean answer in tokens, and the mean E2E in users', () => {
    expect(perRequestPerS('tokens', report)).toBe(115);
    expect(perRequestPerS('users', report)).toBe(1.25);
  });
  it('is not known where nothing ran or was served', () => {
    for (const unit of ['tokens', 'users'] as const) {
      expect(perRequestPerS(unit, null)).toBeNull();
      expect(
        perRequestPerS(unit, {
          ...report,
          requests_per_s: 0,
          output_tokens_per_s: 0,
          e2e_ms: { mean: null },
        } as unknown as Report),
      ).toBeNull();
    }
  });
});

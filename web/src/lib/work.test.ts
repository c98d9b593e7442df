import type { Report } from 'servecast';
import { describe, expect, it } from 'vitest';
import { tookLong, workOf } from './work';

const report = (of: object): Report => of as unknown as Report;

describe('the work of an answer', () => {
  it('IsStepsAndRequests_OfAllRuns', () => {
    const first = { arrived: 100, steps: 300 };
    expect(workOf(report({ ...first, certainty: null }))).toBe(400);
    expect(workOf(report({ ...first, certainty: { runs: 5, requests_per_run: 200 } }))).toBe(4000);
    expect(workOf(report({ arrived: 0, steps: 0, certainty: null }))).toBe(0);
  });
  it('OfManyLongRuns_IsLong', () => {
    expect(tookLong(report({ arrived: 1000, steps: 1000, certainty: null }))).toBe(false);
    expect(tookLong(report({ arrived: 1000, steps: 1000, certainty: { runs: 30, requests_per_run: 100_000 } }))).toBe(
      true,
    );
  });
});

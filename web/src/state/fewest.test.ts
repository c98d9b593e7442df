import { describe, expect, it } from 'vitest';
import type { Issue, MinGpus } from 'servecast';
import type { PlanListener, Planners } from '../engine/pool';
import type { PlanTask } from '../engine/plan-protocol';
import { getAt, type Document, type Json } from './document';
import { findFewest, hasFewest, type Fewest } from './fewest';
import { standardInputs } from './plans';

/** Answers by a table from tensor parallelism to replicas; null: none keep the targets; an issue: refused. */
function planned(table: Readonly<Record<number, number | null | Issue>>) {
  const asked: number[] = [];
  const ask = ({ scenario }: PlanTask, _trace: unknown, listener: PlanListener) => {
    const parallel = Number(getAt(JSON.parse(scenario) as Json, '/cluster/pools/0/tensor_parallel'));
    asked.push(parallel);
    const found = table[parallel] ?? null;
    if (found !== null && typeof found === 'object') listener.failed([found]);
    else
      listener.answered(
        { outcome: 'none', pools: found === null ? [] : [{ replicas: found }] } as unknown as MinGpus,
        'No number keeps them.',
      );
    return () => undefined;
  };
  let answer: { found: Fewest | null; issues: readonly Issue[] } | null = null;
  const document: Document = { cluster: { pools: [{ tensor_parallel: 4, replicas: 3 }] } };
  const plans = {
    planners: { ask } as unknown as Planners,
    options: { ...standardInputs, hours: [], days: 5, windows: 0 },
  };
  findFewest(plans, document, null, (found, issues) => (answer = { found, issues }));
  return { asked, answer: answer as { found: Fewest | null; issues: readonly Issue[] } | null };
}

const unfit: Issue = { path: '/model', message: 'does not fit', kind: 'does_not_fit' } as Issue;

describe('the fewest GPUs of a kind', () => {
  it('is one where one will do, whatever the scenario has', () => {
    expect(planned({ 1: 1 })).toEqual({
      asked: [1],
      answer: { found: { tensor_parallel: 1, replicas: 1 }, issues: [] },
    });
  });

  it('takes more GPUs to a replica where the model does not fit on fewer', () => {
    const { asked, answer } = planned({ 1: unfit, 2: 2 });
    expect(asked).toEqual([1, 2]);
    expect(answer?.found).toEqual({ tensor_parallel: 2, replicas: 2 });
  });

  it('asks for more to a replica only while that could take fewer', () => {
    const { asked, answer } = planned({ 1: 7, 2: 2, 4: 1 });
    expect(asked).toEqual([1, 2]);
    expect(answer?.found).toEqual({ tensor_parallel: 2, replicas: 2 });
    expect(planned({ 1: 7, 2: 4, 4: 1 })).toMatchObject({
      asked: [1, 2, 4],
      answer: { found: { tensor_parallel: 4, replicas: 1 } },
    });
  });

  it('says why there are none', () => {
    const { asked, answer } = planned({ 1: null, 2: null, 4: null, 8: null });
    expect(asked).toEqual([1, 2, 4, 8]);
    expect(answer).toEqual({ found: null, issues: [{ path: '', message: 'No number keeps them.' }] });
  });

  it('needs one pool and a target', () => {
    const slo = [{ metric: 'ttft', limit_ms: 200 }];
    expect(hasFewest({ slo }, null)).toBe(true);
    expect(hasFewest({ slo: [] }, null)).toBe(false);
    expect(hasFewest({ slo, cluster: { pools: [{ role: 'prefill' }, { role: 'decode' }] } }, null)).toBe(false);
  });
});

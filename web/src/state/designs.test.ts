import type { AdvisedChange, Advice, MinGpus, Report } from 'servecast';
import { describe, expect, it } from 'vitest';
import type { PlanListener, Planners } from '../engine/pool';
import type { PlanTask } from '../engine/plan-protocol';
import { designOf, findDesigns } from './designs';
import { getAt, setAt, type Document, type Json } from './document';
import { standardInputs } from './plans';
import type { Shown, WaysOut } from './store';

const document: Document = {
  model: { quantization: 'none' },
  slo: [{ metric: 'tpot', limit_ms: 20 }],
  cluster: { pools: [{ tensor_parallel: 1, replicas: 1 }] },
};
const plan = (replicas: number, more: Partial<MinGpus> = {}) =>
  ({
    pools: [{ replicas, price_per_gpu_hour: 2.5, curve: [{ at: replicas, slo: [{ value_ms: 19 }] }] }],
    ...more,
  }) as unknown as MinGpus;
const sure = (at_90: number | null) => ({ at_90, at_50: at_90, best_at: 1, best: 0.5 });

describe('a design that a plan found', () => {
  it('has its GPUs, its price and its figures', () => {
    const found = { tensor_parallel: 2, replicas: 3 };
    expect(designOf(document, 'fp8 weights', found, plan(3))).toEqual({
      document: setAt(document, '/cluster/pools', [found]),
      words: 'fp8 weights, 6 GPUs: tensor parallel 2, 3 replicas',
      gpus: 6,
      cost_per_hour: 15,
      slo: [{ value_ms: 19 }],
      sure: false,
    });
  });
  it('has as many replicas as the forecast’s own error takes', () => {
    const design = designOf(document, '', { tensor_parallel: 1, replicas: 3 }, plan(3, { sure: sure(4) }));
    expect(design).toMatchObject({ words: '4 GPUs: 4 replicas', cost_per_hour: 10, slo: null, sure: true });
    expect(designOf(document, '', { tensor_parallel: 1, replicas: 3 }, plan(3, { sure: sure(null) })).sure).toBe(false);
  });
});

describe('designs where no one change is enough', () => {
  const change = (name: string, more: Partial<AdvisedChange>): AdvisedChange =>
    ({
      change: name,
      gpus: 1,
      cost_per_hour: 2.5,
      effect: 0.3,
      meets: false,
      slo: [],
      document: '{}',
      ...more,
    }) as AdvisedChange;
  const fp8 = setAt(document, '/model/quantization', 'fp8');
  const advice: Advice = {
    answer: '',
    base: change('as it is', { effect: 0 }),
    changes: [change('fp8 weights', { document: JSON.stringify(fp8) })],
  };
  /** Those asked wait to be answered. */
  function sought() {
    const asked: { scenario: Json; listener: PlanListener; stopped: boolean }[] = [];
    const ask = ({ scenario }: PlanTask, _trace: unknown, listener: PlanListener) => {
      const one = { scenario: JSON.parse(scenario) as Json, listener, stopped: false };
      asked.push(one);
      return () => void (one.stopped = true);
    };
    const heard: Pick<WaysOut, 'designs' | 'seeks'>[] = [];
    const plans = {
      planners: { ask } as unknown as Planners,
      options: { ...standardInputs, hours: [], days: 5, windows: 0 },
    };
    const shown = { document, outcome: { report: { scenario: document } as unknown as Report } } as unknown as Shown;
    const stop = findDesigns(plans, shown, advice, null, (found) => heard.push(found));
    return { asked, heard, stop };
  }
  it('are of the scenario as it is, and with the change that helps for nothing', () => {
    const { asked, heard } = sought();
    expect(heard.at(-1)).toEqual({ designs: [], seeks: true });
    asked.at(-1)?.listener.answered(plan(2), '');
    // One replica of two GPUs could be fewer no more.
    expect(heard.at(-1)?.designs.map(({ words }) => words)).toEqual(['2 GPUs: 2 replicas']);
    expect(getAt(asked.at(-1)?.scenario, '/model/quantization')).toBe('fp8');
    asked.at(-1)?.listener.answered(plan(1), '');
    expect(heard.at(-1)?.designs.map(({ words }) => words)).toEqual([
      '2 GPUs: 2 replicas',
      'fp8 weights, 1 GPU: 1 replica',
    ]);
    expect(heard.at(-1)?.seeks).toBe(false);
  });
  it('are given up as a whole', () => {
    const { asked, stop } = sought();
    stop();
    expect(asked.map(({ stopped }) => stopped)).toEqual([true]);
    asked[0]?.listener.answered(plan(2), '');
    expect(asked).toHaveLength(1);
  });
});

import type { PlanAnswer, Report } from 'servecast';
import { describe, expect, it } from 'vitest';
import { standardInputs } from '../state/plans';
import type { AppState, Plan } from '../state/store';
import { boardOf } from './sheet-plan';

const slo = [{ metric: 'ttft', percentile: 99, limit_ms: 200 }];
const scenario = { hardware: { name: 'H100' }, workload: { arrivals: { rate_per_s: 40 } } };
const report = {
  slo,
  scenario,
  gpus: 1,
  classes: [],
  workload: { source: 'synthetic' },
  first_run: {},
} as unknown as Report;

function plan(kind: Plan['kind'], sentence = '', more: Partial<Plan> = {}): Plan {
  const nothing = { document: {}, trace: null, progress: 0, answer: null, issues: [] };
  return { kind, inputs: standardInputs, sentence, ...nothing, ...more };
}

const stateOf = (plans: AppState['plans'], more: Partial<AppState> = {}) => ({
  plans,
  search: null,
  shown: null,
  plan_inputs: null,
  ...more,
});

describe('plan answers of the report', () => {
  it('are those of the shown scenario, the rest is named as not asked', () => {
    const plans = {
      'max-rate': plan('answered', 'Keeps its targets up to 48.0 requests/s (46.8 to 49.1)'),
      growth: plan('answered', 'of another scenario'),
      drill: plan('running'),
      tornado: plan('offered'),
    };
    const board = boardOf(stateOf(plans), report, (question) => question !== 'growth', 'req/s');
    expect(board.answered).toEqual([
      {
        question: 'Highest rate that 1 × H100 holds within the target',
        answer: ['Keeps its targets up to 48.0 requests/s (46.8 to 49.1).'],
      },
    ]);
    expect(board.running).toEqual(['What if']);
    expect(board.unasked).toEqual(
      expect.arrayContaining(['Fewest GPUs', 'Growth', 'What moves it', 'Cheapest design']),
    );
    expect(board.unasked).not.toContain('Speculation');
    expect(board.quick).not.toContain('autoscale');
    expect(board.quick).not.toContain('day');
  });
  it('have what single runs say against them, why one failed, and a paragraph for each line', () => {
    const checked = [{ of: '48 requests/s', agrees: false, sentence: 'misses TTFT p99' }];
    const plans = {
      'max-rate': plan('answered', 'Held.', { answer: { checked } as unknown as PlanAnswer }),
      'min-gpus': plan('failed', '', {
        issues: [{ path: '', message: 'needs a rate' }],
      }),
      drill: plan('answered', 'as it is: meets\n2 times the load: misses'),
    };
    const { answered } = boardOf(stateOf(plans), report, () => true, 'req/s');
    expect(answered.map(({ answer }) => answer)).toEqual([
      ['Held.', 'But a run of 48 requests/s says otherwise: Misses TTFT p99.'],
      ['Needs a rate.'],
      ['As it is: meets.', '2 times the load: misses.'],
    ]);
  });
  it('say once what a single run says against them', () => {
    const checked = [{ of: '103 requests/s', agrees: false, sentence: 'overloaded' }];
    const said = 'Held. But a run of 103 requests/s says otherwise: overloaded';
    const plans = { 'max-rate': plan('answered', said, { answer: { checked } as unknown as PlanAnswer }) };
    const [row] = boardOf(stateOf(plans), report, () => true, 'req/s').answered;
    expect(row?.answer).toEqual([`${said}.`]);
  });
  it('are none, asked or not, where there is no target', () => {
    const board = boardOf(stateOf({}), { ...report, slo: [] }, () => true, 'req/s');
    expect(board).toEqual({ answered: [], running: [], unasked: [], quick: [] });
  });
});

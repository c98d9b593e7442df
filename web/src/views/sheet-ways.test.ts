import type { Advice, AdvisedChange, Report } from 'servecast';
import { describe, expect, it, vi } from 'vitest';
import type { AppState, FoundDesign, WaysOut } from '../state/store';
import { costOf, isTrying, triedFor, waysToldOf } from './sheet-ways';
import { rangeOf } from './ways-rows';

// Here is no document for style sheets.
vi.mock('../lib/part', () => ({ addStyles: () => undefined, needPart: () => undefined }));

const slo = [{ metric: 'tpot', percentile: 99, limit_ms: 20, margin: -0.5, value_ms: 30 }];
const scenario = { slo, cluster: { pools: [{}] }, workload: { arrivals: { rate_per_s: 60 } } };
const report = { slo, scenario, gpus: 1, classes: [], first_run: {} } as unknown as Report;
const outcome = { report, columns: {}, engine_ms: 1 };

function change(name: string, meets: boolean, ms: number, more: Partial<AdvisedChange> = {}): AdvisedChange {
  const at = { value_ms: ms, share: null, low: ms - 1, high: ms + 1 };
  const ran = { effect: 0.1, meets, overloaded: false, served_per_s: 60, slo: [at], evidence: 'calibrated' };
  return { change: name, set: [], document: '', gpus: 1, cost_per_hour: 2.5, ...ran, ...more } as AdvisedChange;
}

const base = change('', false, 30);
const advised = (changes: readonly AdvisedChange[]): Advice => ({ answer: '', base, changes });
const none: WaysOut = {
  of: outcome,
  missed: true,
  kind: 'tried',
  progress: 1,
  advice: null,
  message: '',
  designs: [],
  seeks: false,
};

function toldOf(found: Partial<WaysOut>, more: Partial<AppState> = {}) {
  const state = { shown: { outcome }, ways_out: null, plans: {}, document: scenario, ...more } as unknown as AppState;
  const { ways, told } = waysToldOf(state, { ...none, ...found }, report);
  return { rows: ways.map(({ words, note }) => `${words} ${note}`.trim()), told };
}

const held = (kind: 'answered' | 'running') => ({
  plans: {
    'max-rate': {
      kind,
      document: scenario,
      answer: {
        monotone: true,
        curve: [],
        answer: { value: 48, low: 47, high: 49, unit: 'requests/s' },
        sure: { at_90: 45 },
      },
    },
  } as unknown as AppState['plans'],
});
const design = {
  words: '2 GPUs: 2 replicas',
  gpus: 2,
  cost_per_hour: 5,
  slo: null,
  sure: true,
} as unknown as FoundDesign;

describe('ways out in the report', () => {
  it('are what meets, cheapest first, then the load that is held; what does not get there has its figure', () => {
    const advice = advised([
      change('tensor parallel 2', true, 12, { gpus: 2, cost_per_hour: 5 }),
      change('fp8 weights', true, 18),
      change('fp8 KV cache', false, 25),
    ]);
    const { rows, told } = toldOf({ advice }, held('answered'));
    expect(rows).toEqual(['fp8 weights', 'tensor parallel 2', '45.0 req/s on these GPUs turns away 25\u202f%']);
    expect(told).toMatch(
      /^Run, and do not get there: fp8 KV cache \(25\.0\u202fms\)\. Not run, as one change is enough: /,
    );
    expect(told).not.toContain('not known');
  });
  it('are the fewest GPUs where no one change is enough', () => {
    const advice = advised([change('2 replicas', false, 25)]);
    const { rows, told } = toldOf({ advice, designs: [design] }, held('answered'));
    expect(rows[0]).toBe('2 GPUs: 2 replicas the fewest, 90\u202f% sure');
    expect(told).toBe('Run, and do not get there: 2 replicas (25.0\u202fms).');
  });
  it('say what was still sought, and of a row that is not enough nothing twice', () => {
    const { rows, told } = toldOf({ advice: advised([change('2 replicas', false, 25)]), seeks: true }, held('running'));
    expect(rows).toEqual(['2 replicas not enough']);
    expect(told).toBe(
      'The fewest GPUs that meet were still being sought when this was made. How much of the load these GPUs hold was not known when this was made.',
    );
  });
  it.each([
    ['offered', /^Not run: the dozen changes/],
    ['trying', /^The changes that the page tries were still being run/],
    ['failed', /^The changes could not be run: No memory\./],
    ['cancelled', /Stopped when 40\u202f% of the changes had been run/],
  ] as const)('say that changes were not run: %s', (kind, words) => {
    const { rows, told } = toldOf({ kind, progress: 0.4, message: 'no memory' }, held('answered'));
    expect(rows, 'the load needs the advice to be compared with').toEqual([]);
    expect(told).toMatch(words);
  });
  it('name at most five that do not get there, and say that no number of GPUs was found or sought', () => {
    const advice = advised(['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => change(name, false, 30, { effect: 0 })));
    expect(toldOf({ advice }, held('answered')).told).toMatch(
      /a \(30\.0\u202fms\), .*, e \(30\.0\u202fms\), and 2 more\. No number of these GPUs was found that meets\.$/,
    );
    const pools = { document: { ...scenario, cluster: { pools: [{ role: 'prefill' }, { role: 'decode' }] } } };
    expect(toldOf({ advice }, pools).told).toContain('were not sought: the page seeks them of one pool');
  });
  it('of met targets are the three that give most for least, and how many were run', () => {
    const names = ['a', 'b', 'c', 'd'];
    const advice = advised(names.map((name, index) => change(name, true, 10, { cost_per_hour: 2 + index })));
    const { rows, told } = toldOf({ missed: false, advice });
    expect(rows).toEqual(['a', 'b', 'c']);
    expect(told).toBe('Each was run on the same requests, as was 1 change that gives less or costs more.');
    expect(toldOf({ missed: false, kind: 'offered' }).told).toBe('Not run: the dozen changes that the page can try.');
  });
  it('are of the shown result alone', () => {
    const shown = { outcome } as unknown as AppState['shown'];
    expect(triedFor({ shown, ways_out: none })).toBe(none);
    expect(triedFor({ shown, ways_out: { ...none, of: { ...outcome } } })).toBeNull();
    expect([isTrying(none), isTrying({ ...none, seeks: true }), isTrying({ ...none, kind: 'trying' })]).toEqual([
      false,
      true,
      true,
    ]);
  });
  it('cost so much in all, and so much more; GPUs where no price is known', () => {
    expect(costOf({ cost_per_hour: 5, gpus: 2 }, base)).toBe('$5.00/h (+$2.50/h)');
    expect(costOf({ cost_per_hour: 2.5, gpus: 1 }, base)).toBe('as now');
    expect(costOf({ cost_per_hour: null, gpus: 2 }, { ...base, cost_per_hour: null })).toBe('2 GPUs (+1 GPU)');
  });
});

describe('a figure of a change', () => {
  const sampled = { value_ms: 10.5, low: 10.3, high: 10.7 };
  const band = { low: 9.2, high: 12.1, level: 0.9, probability: 1 };

  it('has the band of all errors, where it is known, else the interval of sampling', () => {
    expect(rangeOf({ ...sampled, band })).toBe('90\u202f%: 9.20 to 12.1');
    expect(rangeOf(sampled)).toBe('10.3 to 10.7');
    expect(rangeOf({ ...sampled, band: { ...band, high: null } })).toBe('');
    expect(rangeOf({ share: 0.97, low: 0.96, high: 0.98 })).toBe('96.0 to 98.0');
  });
});

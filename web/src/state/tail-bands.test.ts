import type { Report } from 'servecast';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Document } from './document';
import { Store, initialState, tailBandsOf, type Shown } from './store';
import { bandsOf, keepTailBands, probed } from './tail-bands';

const target = (metric: string, percentile: number, more: object = {}) => ({
  metric,
  percentile,
  limit_ms: 200,
  value_ms: percentile,
  low: percentile - 1,
  high: percentile + 2,
  unbounded: false,
  ...more,
});

function reportWith(slo: readonly object[], more: object = {}): Report {
  const figures = { n: 9, mean: 5, p50: 4, p90: 8, p99: 9, max: 10 };
  return {
    scenario: { name: 'x', slo: [{ metric: 'ttft', limit_ms: 200 }] },
    certainty: { method: 'replications', runs: 10, requests_per_run: 100 },
    arrived: 100,
    steps: 100,
    ttft_ms: figures,
    tpot_ms: figures,
    e2e_ms: figures,
    slo,
    ...more,
  } as unknown as Report;
}

const own = reportWith([target('ttft', 99)]);

describe('bands of the tail', () => {
  it('ask for each percentile by a target that never decides, after the scenario’s own', () => {
    const { name, slo } = JSON.parse(probed(own)) as { name: string; slo: Document[] };
    expect(name).toBe('x');
    expect(slo[0]).toEqual({ metric: 'ttft', limit_ms: 200 });
    const of = (metric: string) => slo.filter((each) => each['metric'] === metric).map((each) => each['percentile']);
    expect(of('tpot')).toEqual([50, 75, 90, 95, 98, 99, 99.5, 99.9]);
    expect(of('ttft'), 'its own p99 is there').toEqual([undefined, 50, 75, 90, 95, 98, 99.5, 99.9]);
    expect(slo.slice(1).every((each) => each['limit_ms'] === 3.6e6)).toBe(true);
  });
  it('are of each percentile that has an interval, by ascending percentile', () => {
    const band = { low: 40, high: null, level: 0.9, probability: 1, model: { low: 40, high: null } };
    const known = bandsOf(
      reportWith([
        target('ttft', 99),
        target('ttft', 50, { band }),
        target('ttft', 75, { class: 'chat' }),
        target('ttft', 99.9, { low: null, high: null }),
        target('tpot', 99, { unbounded: true, value_ms: null }),
        target('tpot', 50),
        target('attainment', 99, { value_ms: null }),
      ]),
      own,
    );
    expect(Object.keys(known ?? {})).toEqual(['ttft']);
    expect(known?.ttft).toEqual([
      { percentile: 50, value_ms: 50, low: 49, high: 52, band: { low: 40, high: null } },
      { percentile: 99, value_ms: 99, low: 98, high: 101, band: null },
    ]);
  });
  it('are none where other runs were made for them', () => {
    const slo = [target('ttft', 50), target('ttft', 99)];
    expect(bandsOf(reportWith(slo), own)).not.toBeNull();
    const longer = { n: 90, mean: 5.1, p50: 4, p90: 8, p99: 9, max: 12 };
    expect(bandsOf(reportWith(slo, { tpot_ms: longer }), own)).toBeNull();
  });
});

describe('bands of what is shown', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  function page(report: Report) {
    const document: Document = { name: 'x' };
    const shown = {
      outcome: { report, columns: {}, engine_ms: 1 },
      document,
      completeness: 'final',
    } as unknown as Shown;
    const store = new Store({ ...initialState, document, shown });
    const asked: { scenario: string; hear: (report: Report | null) => void; stopped: boolean }[] = [];
    const band = (scenario: string, _trace: unknown, hear: (report: Report | null) => void) => {
      const job = { scenario, hear, stopped: false };
      asked.push(job);
      return () => void (job.stopped = true);
    };
    keepTailBands(store, { planners: { band }, trace: null } as unknown as Parameters<typeof keepTailBands>[1]);
    return { store, shown, asked };
  }
  const answer = reportWith([target('ttft', 50), target('ttft', 99)]);

  it('are asked for once it has stood for a moment, and put beside it', () => {
    const { store, asked } = page(own);
    expect(asked).toHaveLength(0);
    vi.advanceTimersByTime(600);
    expect(asked.map(({ scenario }) => scenario)).toEqual([probed(own)]);
    asked[0]?.hear(answer);
    expect(tailBandsOf(store.state)?.ttft).toHaveLength(2);
    store.update({ announcement: 'Copied' });
    vi.advanceTimersByTime(1000);
    expect(asked, 'once').toHaveLength(1);
  });
  it('are given up when another run begins, and are not those of its answer', () => {
    const { store, shown, asked } = page(own);
    vi.advanceTimersByTime(600);
    store.update({ run: { kind: 'running', progress: 0, slow: false } });
    expect(asked[0]?.stopped).toBe(true);
    asked[0]?.hear(answer);
    expect(store.state.tail_bands).toBeNull();
    store.update({ run: { kind: 'idle' }, shown: { ...shown, outcome: { ...shown.outcome } } });
    vi.advanceTimersByTime(600);
    expect(asked).toHaveLength(2);
    asked[1]?.hear(answer);
    expect(tailBandsOf(store.state)).not.toBeNull();
    store.update({ shown: { ...shown, outcome: { ...shown.outcome } } });
    expect(tailBandsOf(store.state)).toBeNull();
  });
  it('ask for less where the engine made other runs, down to the percentiles of the targets', () => {
    const { store, asked } = page(own);
    vi.advanceTimersByTime(600);
    const other = reportWith([], { ttft_ms: { n: 90 } });
    const most = () => {
      const { slo } = JSON.parse(asked.at(-1)?.scenario ?? '') as { slo: { metric: string; percentile?: number }[] };
      const of = (metric: string) => slo.flatMap((each) => (each.metric === metric ? (each.percentile ?? []) : []));
      return [Math.max(...of('ttft')), Math.max(0, ...of('tpot'))];
    };
    const seen = [most()];
    for (let turn = 0; turn < 3; turn += 1) {
      asked.at(-1)?.hear(other);
      seen.push(most());
    }
    expect(seen).toEqual([
      [99.9, 99.9],
      [99.5, 99.5],
      [98, 99],
      [98, 0],
    ]);
    asked.at(-1)?.hear(other);
    expect(asked).toHaveLength(4);
    expect(store.state.tail_bands).toBeNull();
  });
  it.each([
    ['one run', { certainty: { method: 'one_run', runs: 1, requests_per_run: 100 } }],
    ['no target', { slo: [] }],
    ['runs that took long', { certainty: { method: 'replications', runs: 10, requests_per_run: 1e6 } }],
  ])('are not asked for of %s', (_name, more) => {
    const { asked } = page({ ...own, ...more } as Report);
    vi.advanceTimersByTime(10_000);
    expect(asked).toHaveLength(0);
  });
});

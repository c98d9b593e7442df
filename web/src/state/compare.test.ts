import type { Catalog, Field, MinGpus, Report, RunFigures } from 'servecast';
import { describe, expect, it } from 'vitest';
import type { Engine, RunListener } from '../engine/client';
import type { PlanListener } from '../engine/pool';
import type { Lane } from '../engine/protocol';
import { Comparison, comparablePointers, differences, onTheSameRequests, variantsOf } from './compare';
import type { Document } from './document';
import type { FormSource } from './fields';
import type { Plans } from './plans';
import { Store, type Shown } from './store';
import { firstRun } from '../lib/first-run';
import { field as numberField } from './field-of-test';

const field = (path: string, choices: readonly string[], more: Partial<Field> = {}): Field =>
  numberField(path, { type: 'choice', choices, ...more });

const presets = ['small', 'large'].map((id) => ({ id, name: id.toUpperCase(), description: '', document: {} }));
const catalog = {
  presets: { models: presets, hardware: presets, engines: [], workloads: [], scenarios: [] },
  fields: [
    field('/engine/compat', ['none', 'blis'], { default: 'none' }),
    field('/scheduler/policy', ['vllm'], { default: 'vllm' }),
    field('/scheduler/order', ['fcfs', 'sjf'], { default: 'fcfs' }),
    field('/engine/async_scheduling', [], { type: 'boolean', default: true }),
    field('/hardware/preset', ['small', 'large']),
    field('/hardware/compared_as', ['none', 'small']),
    field('/workload/arrivals/process', ['poisson', 'static'], { default: 'poisson' }),
  ],
  policies: [],
} as unknown as Catalog;
const document: Document = { hardware: { preset: 'large', tflops: 5 }, workload: { requests: 9 } };
const source: FormSource = { catalog, document, resolved: null };

class RecordingEngine {
  readonly runs: { readonly document: Document; readonly lane: Lane | undefined; readonly listener: RunListener }[] =
    [];
  readonly cancelled: (Lane | undefined)[] = [];
  run(text: string, _traced: boolean, listener: RunListener, lane?: Lane): void {
    this.runs.push({ document: JSON.parse(text) as Document, lane, listener });
  }
  cancel(lane?: Lane): void {
    this.cancelled.push(lane);
  }
}

const noPlans = () => Promise.reject(new Error('nobody asks'));
const noBands = () => Promise.resolve(null);
const done = (report: Partial<Report & Pick<RunFigures, 'completed'>>) => ({
  report: report as Report,
  columns: {},
  engine_ms: 1,
});

describe('comparing', () => {
  it('climbs drafts one by one, each as likely to be accepted as before', () => {
    const numbers = (path: string) => field(path, [], { type: 'number', minimum: 1, maximum: 64 });
    const fields = [
      field('/engine/speculative/method', ['none', 'eagle3'], { default: 'none' }),
      field('/engine/speculative/num_speculative_tokens', [], { type: 'integer', minimum: 1, maximum: 64, default: 3 }),
      numbers('/engine/speculative/acceptance_length'),
    ];
    const speculative = { method: 'eagle3', num_speculative_tokens: 2, acceptance_length: 1.75 };
    const drafted: FormSource = { ...source, catalog: { ...catalog, fields }, document: { engine: { speculative } } };
    const variants = variantsOf(drafted, '/engine/speculative/num_speculative_tokens');
    expect(variants.map(({ name }) => name)).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8']);
    expect(variants[0]?.document).toMatchObject({ engine: { speculative: { method: 'none' } } });
    expect(variants[1]?.document).toMatchObject({ engine: { speculative: { acceptance_length: 1.5 } } });
    expect(variants[3]?.document).toMatchObject({ engine: { speculative: { acceptance_length: 1.875 } } });
    const none = { ...drafted, document: { engine: { speculative: { ...speculative, method: 'none' } } } };
    expect(variantsOf(none, '/engine/speculative/num_speculative_tokens')).toEqual([]);
  });

  it('offers what changes how requests are served, with more than one value, hardware first', () => {
    expect(comparablePointers(source)).toEqual([
      '/hardware/preset',
      '/engine/compat',
      '/engine/async_scheduling',
      '/scheduler/order',
    ]);
  });

  it('leaves the value in force untouched, overrides included, and puts it first', () => {
    const variants = variantsOf(source, '/hardware/preset');
    expect(variants.map(({ name, isCurrent }) => [name, isCurrent])).toEqual([
      ['LARGE', true],
      ['SMALL', false],
    ]);
    expect(variants[0]?.document).toBe(document);
    expect(variants[1]?.document).toEqual({ hardware: { preset: 'small' }, workload: { requests: 9 } });
  });

  it('runs one variant after the other, beside, and keeps why one cannot run', () => {
    const engine = new RecordingEngine();
    const store = new Store();
    const comparison = new Comparison(engine as unknown as Engine, store, noPlans, noBands);
    comparison.by('/engine/compat', source);
    expect(engine.runs.map(({ lane }) => lane)).toEqual(['beside']);
    engine.runs[0]!.listener.finished(done({ completed: 9 }), 1, false);
    expect(engine.runs[1]!.document).toEqual({ ...document, engine: { compat: 'blis' } });
    engine.runs[1]!.listener.refused('engine', [{ path: '/engine', message: 'no' }]);
    expect(engine.runs).toHaveLength(2);
    const rows = store.state.compared!.variants.map(({ name, report, issues }) => [
      name,
      report ? firstRun(report).completed : undefined,
      issues.length,
    ]);
    expect(rows).toEqual([
      ['none', 9, 0],
      ['blis', undefined, 1],
    ]);
  });

  it('waits while the shown run is under way, and ends when that begins', () => {
    const engine = new RecordingEngine();
    const store = new Store();
    const comparison = new Comparison(engine as unknown as Engine, store, noPlans, noBands);
    store.update({ run: { kind: 'running', progress: 0, slow: false } });
    comparison.by('/engine/compat', source);
    expect(engine.runs).toHaveLength(0);
    store.update({ run: { kind: 'idle' } });
    comparison.refresh(source);
    expect(engine.runs).toHaveLength(1);
    comparison.halt();
    engine.runs[0]!.listener.finished(done({ completed: 9 }), 1, false);
    expect(engine.runs).toHaveLength(1);
  });

  it('finds the bands of every row once all have an answer, and forgets those of an older question', async () => {
    const engine = new RecordingEngine();
    const store = new Store();
    const asked: { readonly document: Document; readonly answer: (report: Report | null) => void }[] = [];
    const bandOf = (of: Document) => new Promise<Report | null>((answer) => asked.push({ document: of, answer }));
    const comparison = new Comparison(engine as unknown as Engine, store, noPlans, bandOf);
    comparison.by('/engine/compat', source);
    engine.runs[0]!.listener.finished(done({ completed: 1 }), 1, false);
    expect(asked).toHaveLength(0);
    engine.runs[1]!.listener.finished(done({ completed: 2 }), 1, false);
    expect(asked.map((each) => each.document)).toEqual([engine.runs[0]!.document]);
    asked[0]!.answer({ completed: 3 } as unknown as Report);
    await expect.poll(() => asked.length).toBe(2);
    // Nothing is known of the second: its answer stays.
    asked[1]!.answer(null);
    await expect.poll(() => store.state.compared!.variants.every(({ isBanded }) => isBanded)).toBe(true);
    expect(store.state.compared!.variants.map(({ report }) => firstRun(report!).completed)).toEqual([3, 2]);
    comparison.by('/scheduler/order', source);
    engine.runs[2]!.listener.finished(done({ completed: 4 }), 1, false);
    engine.runs[3]!.listener.finished(done({ completed: 5 }), 1, false);
    comparison.by('', source);
    asked[2]!.answer({ completed: 6 } as unknown as Report);
    await Promise.resolve();
    expect(store.state.compared).toBeNull();
    expect(asked).toHaveLength(3);
  });

  it('gives the row of what is shown its bands while others are still looked for', async () => {
    const engine = new RecordingEngine();
    const store = new Store();
    const outcome = done({ completed: 1 });
    store.update({ shown: { outcome, document, completeness: 'final' } as unknown as Shown });
    const banded = { completed: 2 } as unknown as Report;
    const comparison = new Comparison(engine as unknown as Engine, store, noPlans, () => Promise.resolve(banded));
    comparison.by('/engine/compat', source);
    expect(store.state.compared!.variants[0]?.report).toBe(outcome.report);
    await expect.poll(() => store.state.compared!.variants[0]?.report).toBe(banded);
    expect(store.state.compared!.variants[1]?.report).toBeNull();
  });

  it('forgets answers to an older question', () => {
    const engine = new RecordingEngine();
    const store = new Store();
    const comparison = new Comparison(engine as unknown as Engine, store, noPlans, noBands);
    comparison.by('/engine/compat', source);
    comparison.by('/scheduler/order', source);
    engine.runs[0]!.listener.finished(done({ completed: 1 }), 1, false);
    expect(store.state.compared!.variants.every(({ report }) => report === null)).toBe(true);
    comparison.by('', source);
    engine.runs[1]!.listener.finished(done({ completed: 1 }), 1, false);
    expect(store.state.compared).toBeNull();
    expect(engine.runs).toHaveLength(2);
    expect(engine.cancelled).toContain('beside');
  });

  const rate = field('/workload/arrivals/rate_per_s', [], { type: 'number', minimum: 0, maximum: 100 });
  const gpus = field('/cluster/pools/-/tensor_parallel', [], { type: 'integer', default: 1, minimum: 1, maximum: 64 });
  const numbers: FormSource = {
    catalog: { ...catalog, fields: [...catalog.fields, rate, gpus] },
    document: { ...document, workload: { arrivals: { rate_per_s: 40 } }, cluster: { pools: [{ tensor_parallel: 2 }] } },
    resolved: null,
  };

  it('ascends numbers about the value in force, within what is allowed, GPUs by doubling', () => {
    expect(comparablePointers(numbers).slice(0, 3)).toEqual([
      '/hardware/preset',
      '/cluster/pools/0/tensor_parallel',
      '/workload/arrivals/rate_per_s',
    ]);
    const named = (pointer: string) =>
      variantsOf(numbers, pointer).map(({ name, isCurrent }) => (isCurrent ? `[${name}]` : name));
    expect(named('/workload/arrivals/rate_per_s')).toEqual(['20', '30', '[40]', '50', '60', '80']);
    expect(named('/cluster/pools/0/tensor_parallel')).toEqual(['1', '[2]', '4', '8']);
    const [first] = variantsOf(numbers, '/cluster/pools/0/tensor_parallel');
    expect(first?.document['cluster']).toEqual({ pools: [{ tensor_parallel: 1 }] });
  });

  it('gives a GPU on which the model does not fit as many as it takes, once', () => {
    const engine = new RecordingEngine();
    const store = new Store();
    new Comparison(engine as unknown as Engine, store, noPlans, noBands).by('/hardware/preset', numbers);
    engine.runs[0]!.listener.finished(done({ completed: 9 }), 1, false);
    const unfit = { pool: '', tensor_parallel: 2, enough_tensor_parallel: 8 } as Report['unfit'];
    const issues = [{ path: '', message: 'no', kind: 'does_not_fit' as const }];
    engine.runs[1]!.listener.refused('engine', issues, unfit);
    expect(engine.runs[2]!.document['cluster']).toEqual({ pools: [{ tensor_parallel: 8 }] });
    engine.runs[2]!.listener.refused('engine', issues, unfit);
    expect(engine.runs).toHaveLength(3);
    expect(store.state.compared!.variants[1]).toMatchObject({
      issues,
      adapted: expect.stringContaining('8 instead of 2'),
    });
  });

  it('runs the fewest of a GPU once they are found, beside the scenario as it is', async () => {
    const engine = new RecordingEngine();
    const store = new Store();
    const heard: PlanListener[] = [];
    const ask = (_task: unknown, _trace: unknown, listener: PlanListener) => {
      heard.push(listener);
      return () => undefined;
    };
    const plans = () => Promise.resolve({ planners: { ask } } as unknown as Plans);
    const comparison = new Comparison(engine as unknown as Engine, store, plans, noBands);
    const targeted = { ...numbers, document: { ...numbers.document, slo: [{ metric: 'ttft', limit_ms: 9 }] } };
    comparison.by('/hardware/preset', targeted);
    expect(store.state.compared!.fewest, 'by default').toBe(true);
    comparison.byFewest(true, targeted);
    await Promise.resolve();
    await Promise.resolve();
    expect(store.state.compared!.variants.map(({ isSought }) => isSought ?? false)).toEqual([false, true, true]);
    expect(heard).toHaveLength(2);
    engine.runs.at(-1)!.listener.finished(done({ completed: 9 }), 1, false);
    const before = engine.runs.length;
    // One GPU a replica: three replicas; then two a replica, of which one would be fewer.
    heard[1]!.answered({ outcome: 'found', pools: [{ replicas: 3 }] } as unknown as MinGpus, '');
    expect(engine.runs).toHaveLength(before);
    heard[2]!.answered({ outcome: 'found', pools: [{ replicas: 1 }] } as unknown as MinGpus, '');
    expect(engine.runs.at(-1)!.document['cluster']).toEqual({ pools: [{ tensor_parallel: 2, replicas: 1 }] });
    expect(store.state.compared!.variants[2]?.adapted).toBe('2 GPUs: tensor parallel 2');
    comparison.halt();
    heard[0]!.answered({ outcome: 'found', pools: [{ replicas: 1 }] } as unknown as MinGpus, '');
    expect(store.state.compared!.variants[1]?.isSought).toBe(true);
  });

  it('puts another server before the same requests, and keeps one as it was', () => {
    const engine = new RecordingEngine();
    const store = new Store();
    const comparison = new Comparison(engine as unknown as Engine, store, noPlans, noBands);
    comparison.keep(source.document, 'large', source);
    const changed = { ...source, document: { hardware: { preset: 'small' }, workload: { requests: 5 }, seed: 3 } };
    comparison.refresh(changed);
    expect(engine.runs.at(-1)!.document).toEqual({
      hardware: document['hardware'],
      workload: { requests: 5 },
      seed: 3,
    });
    engine.runs.at(-1)!.listener.finished(done({ completed: 5 }), 1, false);
    expect(store.state.beside).toMatchObject({ name: 'large', outcome: { report: { completed: 5 } } });
    const runs = engine.runs.length;
    comparison.refresh(changed);
    expect(engine.runs).toHaveLength(runs);
    expect(onTheSameRequests({ workload: { requests: 1 }, slo: [] }, {})).toEqual({});
  });

  it('compares the engines as rows, and puts one of them beside, named by its place', () => {
    const engine = new RecordingEngine();
    const store = new Store();
    const comparison = new Comparison(engine as unknown as Engine, store, noPlans, noBands);
    const engines = ['vllm', 'sglang'].map((id) => ({
      id,
      name: id.toUpperCase(),
      description: '',
      document: {},
      ...(id === 'vllm' ? {} : { scheduler: { policy: id } }),
    }));
    const policies = field('/scheduler/policy', ['vllm', 'orca', 'sglang'], { default: 'vllm' });
    const versions = field('/engine/preset', ['vllm', 'sglang'], { default: 'vllm' });
    const fields = [versions, policies, ...catalog.fields.filter(({ path }) => path !== policies.path)];
    const both: FormSource = { ...source, catalog: { ...catalog, fields, presets: { ...catalog.presets, engines } } };
    expect(comparablePointers(both).slice(0, 2)).toEqual(['/hardware/preset', '/engine']);
    comparison.by('/engine', both);
    expect(store.state.compared?.variants.map(({ name, isCurrent }) => [name, isCurrent])).toEqual([
      ['VLLM', true],
      ['SGLANG', false],
    ]);
    engine.runs[0]!.listener.finished(done({ completed: 9 }), 1, false);
    expect(engine.runs[1]!.document).toEqual({ ...document, engine: { preset: 'sglang' } });
    // An engine that lacks what the scenario asks for keeps its row, with the reason.
    const issues = [{ path: '/engine/max_loras', message: 'found 4, allowed 0' }];
    engine.runs[1]!.listener.refused('engine', issues);
    expect(store.state.compared?.variants[1]).toMatchObject({ name: 'SGLANG', report: null, issues });
    comparison.with('/engine/sglang', both);
    expect(store.state.beside).toMatchObject({ of: '/engine/sglang', name: 'SGLANG' });
    comparison.with('/engine/none', both);
    expect(store.state.beside).toBeNull();
  });

  it('says where two documents differ, down to the fields', () => {
    expect(
      differences(
        { name: 'a', engine: { x: 1, y: 2 }, cluster: { pools: [{ replicas: 1 }] } },
        { name: 'b', engine: { x: 1, y: 3 }, cluster: { pools: [{ replicas: 2 }] }, latency: { backend: 'z' } },
      ),
    ).toEqual([
      { pointer: '/engine/y', a: 2, b: 3 },
      { pointer: '/cluster/pools/0/replicas', a: 1, b: 2 },
      { pointer: '/latency/backend', a: undefined, b: 'z' },
    ]);
  });
});

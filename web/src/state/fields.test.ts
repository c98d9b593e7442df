import type { Catalog } from 'servecast';
import { describe, expect, it } from 'vitest';
import type { Json } from './document';
import {
  assign,
  explainedChoices,
  fieldAt,
  isDefaulted,
  issueText,
  placedFields,
  rangeText,
  valueInForce,
  withRateOfSessions,
  type FormSource,
} from './fields';
import { field } from './field-of-test';

const kind = '/workload/prompt_tokens/distribution';
const lognormal = { path: kind, values: ['lognormal'] };
const uniform = { path: kind, values: ['uniform'] };
const catalog = {
  presets: {
    models: [],
    hardware: [],
    engines: [{ id: 'vllm', name: 'vLLM', description: '', document: { name: 'V', max_num_seqs: 300 } }],
    workloads: [
      {
        id: 'azure',
        name: 'Azure',
        description: '',
        document: {
          prompt_tokens: {
            distribution: 'empirical',
            quantiles: [
              [0, 1],
              [1, 9],
            ],
          },
        },
      },
      {
        id: 'chat',
        name: 'Chat',
        description: '',
        document: { prompt_tokens: { distribution: 'lognormal', median: 96, max: 700 } },
      },
    ],
    scenarios: [],
  },
  fields: [
    field('/engine/max_num_seqs', { type: 'integer', default: 256, minimum: 1, maximum: 65536, unit: 'requests' }),
    field(kind, { type: 'choice', choices: ['uniform', 'lognormal'], default: 'uniform' }),
    field('/workload/prompt_tokens/max', { required: true, when: uniform }),
    field('/workload/prompt_tokens/quantiles', {
      type: 'list',
      required: true,
      when: { path: kind, values: ['empirical'] },
    }),
    field('/workload/prompt_tokens/median', { default: 256, when: lognormal }),
    field('/workload/prompt_tokens/max', { when: lognormal }),
    field('/slo/-/limit_ms', { required: true }),
    field('/scheduler/order', { type: 'choice', choices: ['fcfs', 'sjf'] }),
    field('/workload/arrivals/rate_per_s', { unit: 'req/s' }),
    field('/workload/arrivals/process', { type: 'choice', choices: ['poisson', 'static'], default: 'poisson' }),
    field('/workload/arrivals/profile', {
      type: 'choice',
      choices: ['flat', 'diurnal'],
      default: 'flat',
      when: { path: '/workload/arrivals/process', values: ['poisson'] },
    }),
    field('/workload/arrivals/peak_hour', {
      default: 14,
      when: { path: '/workload/arrivals/profile', values: ['diurnal'] },
    }),
    field('/workload/sessions/turns', { type: 'integer', default: 1 }),
    field('/engine/preset', { type: 'choice', choices: ['vllm'], default: 'vllm' }),
  ],
  policies: [
    { kind: 'order', name: 'fcfs', help: 'First come' },
    { kind: 'router', name: 'sjf', help: 'Another sjf' },
  ],
} as unknown as Catalog;

function source(document: FormSource['document'], resolved: FormSource['document'] | null = null): FormSource {
  return { catalog, document, resolved };
}

it('an issue names its place as people do', () => {
  const message = 'found -5, allowed 0.000001 to 1000000 req/s';
  expect(issueText({ path: '/workload/arrivals/rate_per_s', message })).toBe(
    'Rate: −5 is not allowed; from 0.000001 to 1,000,000 req/s.',
  );
  expect(issueText({ path: 'line 3', message: 'no number' })).toBe('Line 3: no number.');
  for (const [path, place] of [
    ['/workload/requests', 'Requests'],
    ['/workload/images/width', 'Images, width'],
    ['/workload/classes/1/prompt_tokens/mean', 'Classes 2, prompt tokens, mean'],
    ['/workload/arrivals/rate_factors/0', 'Arrivals, rate factors 1'],
    ['/cluster/pools/1/engine/block_size', 'Pool 2, block size'],
    ['/engine/block_size', 'Engine, block size'],
  ] as const)
    expect(issueText({ path, message: 'no number' })).toBe(`${place}: no number.`);
  expect(issueText({ path: '', message: 'no number' })).toBe('No number.');
});

describe('fields', () => {
  const chat = source({ workload: { preset: 'chat' } });
  const at = (from: FormSource, pointer: string) => ({ field: fieldAt(from, pointer)!, pointer });

  it('At_OnePlaceTwoFields_GivesTheOneThatCounts', () => {
    expect(fieldAt(chat, '/workload/prompt_tokens/max')?.required).toBe(false);
    expect(fieldAt(source({}), '/workload/prompt_tokens/max')?.required).toBe(true);
  });
  it('Value_ComesFromDocument_ThenPreset_ThenDefault', () => {
    const pointer = '/workload/prompt_tokens/median';
    expect(valueInForce(chat, at(chat, pointer))).toBe(96);
    const own = source({ workload: { preset: 'chat', prompt_tokens: { median: 5 } } });
    expect(valueInForce(own, at(own, pointer))).toBe(5);
    const bare = source({ workload: { prompt_tokens: { distribution: 'lognormal' } } });
    expect(valueInForce(bare, at(bare, pointer))).toBe(256);
    expect(isDefaulted(bare, at(bare, pointer))).toBe(true);
    expect(isDefaulted(chat, at(chat, pointer))).toBe(false);
  });
  it('Preset_InForceByDefault_IsKnownByItsName', () => {
    const resolved = source({}, { engine: { name: 'V', max_num_seqs: 300 } });
    expect(valueInForce(resolved, at(resolved, '/engine/preset'))).toBe('vllm');
    expect(fieldAt(resolved, '/engine/preset')?.choices).toEqual(['vllm']);
  });
  it('List_HasAFieldPerItem', () => {
    const two = source({ slo: [{ limit_ms: 1 }, { limit_ms: 2 }] });
    expect(placedFields(two, (path) => path.startsWith('/slo/')).map((placed) => placed.pointer)).toEqual([
      '/slo/0/limit_ms',
      '/slo/1/limit_ms',
    ]);
  });
  it('Assign_ItemOfAnUnwrittenList_StartsFromWhatIsInForce', () => {
    const resolved = source({}, { cluster: { pools: [{ replicas: 1, tensor_parallel: 1 }] } });
    expect(assign(resolved, '/cluster/pools/0/tensor_parallel', 2)).toEqual({
      cluster: { pools: [{ replicas: 1, tensor_parallel: 2 }] },
    });
  });
  it('Assign_WorkloadPreset_KeepsTheQuestion', () => {
    const own = source({ workload: { requests: 9, arrivals: { rate_per_s: 3 }, prompt_tokens: { median: 5 } } });
    expect(assign(own, '/workload/preset', 'chat')).toEqual({
      workload: { requests: 9, arrivals: { rate_per_s: 3 }, preset: 'chat' },
    });
  });
  it('Assign_EmpiricalWithoutATable_StartsFromAPresetsTable_AndLeavingForgetsIt', () => {
    const chosen = assign(
      source({ workload: { prompt_tokens: { distribution: 'lognormal', median: 5 } } }),
      kind,
      'empirical',
    );
    expect(chosen).toEqual({
      workload: {
        prompt_tokens: {
          distribution: 'empirical',
          quantiles: [
            [0, 1],
            [1, 9],
          ],
        },
      },
    });
    expect(assign(source(chosen), kind, 'lognormal')).toEqual({
      workload: { prompt_tokens: { distribution: 'lognormal' } },
    });
  });
  it('Assign_ChoiceThatOthersHangOn_TakesAlongWhatHangsOnThose', () => {
    const daily = source({ workload: { arrivals: { profile: 'diurnal', peak_hour: 9 } } });
    expect(assign(daily, '/workload/arrivals/process', 'static')).toEqual({
      workload: { arrivals: { process: 'static' } },
    });
  });
  it('Range_IsTheCatalogues', () => {
    expect(rangeText(catalog.fields[0]!)).toBe('Allowed: a whole number from 1 to 65,536 requests.');
    expect(rangeText(field('/x'))).toBe('Allowed: a number.');
  });
  it('InForce_NullAbove_TakesNothingFromThePreset', () => {
    const turns = '/workload/sessions/turns';
    const talk = {
      ...catalog,
      presets: {
        ...catalog.presets,
        workloads: [{ id: 'talk', name: 'Talk', description: '', document: { sessions: { turns: 8 } } }],
      },
    } as Catalog;
    const of = (workload: Json) => ({ catalog: talk, document: { workload }, resolved: null });
    expect(valueInForce(of({ preset: 'talk' }), at(chat, turns))).toBe(8);
    expect(valueInForce(of({ preset: 'talk', sessions: null }), at(chat, turns))).toBe(1);
  });
  it('Choices_AreExplained_ByPresetsAndByPoliciesOfTheirKind', () => {
    expect(explainedChoices(catalog, at(chat, '/scheduler/order'))).toEqual([
      { id: 'fcfs', name: 'fcfs', description: 'First come' },
    ]);
    expect(explainedChoices(catalog, at(chat, '/engine/preset')).map(({ name }) => name)).toEqual(['vLLM']);
    expect(explainedChoices(catalog, at(chat, kind))).toEqual([]);
  });
  it('Rate_WithSessions_IsOfSessions', () => {
    const rate = fieldAt(chat, '/workload/arrivals/rate_per_s')!;
    expect(withRateOfSessions(chat, rate).unit).toBe('req/s');
    expect(withRateOfSessions(source({ workload: { sessions: { turns: 5 } } }), rate).unit).toBe('sessions/s');
  });
});

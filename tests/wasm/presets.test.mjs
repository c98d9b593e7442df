// Presets that the module does not begin with: it names the file that it needs, takes that file and
// no other, and then answers as the command does.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { fetchedKinds, filesOf, fileText, load, provide, provideAll, root, simulationOf } from './module.mjs';

const { base } = JSON.parse(readFileSync(new URL('tests/golden/refusals.json', root), 'utf8'));
const documentOf = (changes) => JSON.stringify({ ...base, ...changes });
const issuesOf = (module, text) => JSON.parse(module.canonical(text)).issues;

test('Preset_ThatIsNotHere_IsAskedForByItsFile', async () => {
  const module = await load();
  const text = documentOf({ model: { preset: 'falcon-7b' }, hardware: { preset: 'a10' } });
  const issues = issuesOf(module, text);
  assert.deepEqual(
    issues.map(({ path, kind }) => [path, kind]),
    [
      ['presets/models/falcon-7b.json', 'missing_file'],
      ['presets/hardware/a10.json', 'missing_file'],
    ],
  );
  const before = JSON.parse(module.catalog()).presets.models.find(({ id }) => id === 'falcon-7b');
  assert.deepEqual(before, { id: 'falcon-7b', name: 'Falcon-7B', description: '', group: 'more' });
  assert.ok(provide(module, issues));
  assert.deepEqual(issuesOf(module, text), []);
  const after = JSON.parse(module.catalog()).presets.hardware.find(({ id }) => id === 'a10');
  assert.equal(after.document.memory_bandwidth_gb_s, 600);
  assert.equal(typeof after.document.compute_efficiency, 'number', 'of the GPU that it is like');
});

test('Preset_WhoseTextIsOfAnotherVersion_IsRefused', async () => {
  const module = await load();
  const file = 'presets/operators/h100-sxm.json';
  for (const text of [
    '',
    '<!doctype html>',
    fileText(file).slice(1),
    `${fileText(file)} `,
    fileText('presets/operators/l40s.json'),
  ]) {
    const [issue] = JSON.parse(module.provide(file, text));
    assert.match(issue.message, /this version's file/);
  }
  assert.notEqual(module.provide('presets/operators/none.json', '{}'), '[]');
  assert.notEqual(module.provide('presets/operators/../models/x.json', '{}'), '[]');
  const [issue] = JSON.parse(new module.Simulation(documentOf({ latency: { backend: 'operators' } })).error());
  assert.equal(issue.path, file);
});

test('OperatorTables_OfTheNearestGpu_AreAskedForOnlyWhenARunNeedsThem', async () => {
  const module = await load();
  const missing = (changes) => {
    const simulation = new module.Simulation(documentOf(changes));
    const issues = JSON.parse(simulation.error() || '[]');
    simulation.delete();
    return issues.map(({ path }) => path);
  };
  const operators = { backend: 'operators' };
  assert.deepEqual(missing({}), []);
  assert.deepEqual(missing({ latency: { backend: 'analytic' }, hardware: { preset: 'a100-80gb' } }), []);
  assert.deepEqual(missing({ latency: operators }), ['presets/operators/h100-sxm.json']);
  assert.deepEqual(missing({ hardware: { preset: 'a100-80gb' } }), ['presets/operators/a100-80gb.json']);
  simulationOf(module, documentOf({ latency: operators })).delete();
  assert.deepEqual(missing({ latency: operators }), [], 'once is enough');
});

const errorsOf = (module, text) => {
  const simulation = new module.Simulation(text);
  const errors = JSON.parse(simulation.error() || '[]');
  simulation.delete();
  return errors.map(({ path, kind }) => [path, kind]);
};
const wholeIsMissing = [['servecast.wasm', 'missing_file']];

for (const name of ['servecast', 'servecast-first']) {
  test(`EveryFileOfPresets_IsHereOrIsTaken_By_${name}`, async () => {
    const module = await load(name);
    const files = fetchedKinds.flatMap(filesOf);
    assert.ok(files.length > 60);
    for (const file of files) assert.equal(module.provide(file, fileText(file)), '[]', file);
    const { models, hardware } = JSON.parse(module.catalog()).presets;
    for (const preset of [...models, ...hardware]) {
      const section = models.includes(preset) ? 'model' : 'hardware';
      assert.deepEqual(issuesOf(module, documentOf({ [section]: { preset: preset.id } })), [], preset.id);
    }
  });
}

// What these models are checked for calls functions of their kinds of layers, which the first module leaves out.
test('Layers_ThatTheFirstModuleLacks_NameTheWholeModule_WithWhateverElseIsAsked', async () => {
  const [first, whole] = [await load('servecast-first'), await load()];
  for (const module of [first, whole]) provideAll(module);
  const engines = [
    {},
    { hybrid_kv_cache_manager: 'on' },
    { enable_prefix_caching: false },
    { enable_chunked_prefill: false },
    { kv_offload: { cpu_gib: 10 } },
    { kv_cache_dtype: 'fp8' },
    { speculative: { method: 'ngram', num_speculative_tokens: 3 }, async_scheduling: false },
  ];
  const clusters = [
    { pools: [{ tensor_parallel: 8 }] },
    { pools: [{ tensor_parallel: 8, pipeline_parallel: 2 }] },
    {
      pools: [
        { tensor_parallel: 8, role: 'prefill' },
        { tensor_parallel: 8, role: 'decode' },
      ],
    },
  ];
  const { models } = JSON.parse(whole.catalog()).presets;
  const listed = models.filter(({ document }) => document.layers || document.num_sliding_layers > 0);
  assert.ok(new Set(listed.flatMap(({ document }) => (document.layers ?? []).map(({ kind }) => kind))).size > 8);
  for (const { id } of listed) {
    for (const engine of engines) {
      for (const cluster of clusters) {
        const text = documentOf({ model: { preset: id }, hardware: { preset: 'b300-sxm' }, engine, cluster });
        assert.ok(Array.isArray(issuesOf(first, text)), text);
        JSON.parse(first.validate(text));
        if (issuesOf(first, text).length === 0) assert.deepEqual(errorsOf(first, text), wholeIsMissing, text);
        if (issuesOf(whole, text).length > 0) assert.ok(errorsOf(whole, text).length > 0, text);
      }
    }
  }
  // Layers of a kind that the first module has, in a model too large for its GPU, which a refusal measures.
  const large = documentOf({
    model: { preset: 'llama-3.3-70b', layers: [{ kind: 'full' }] },
    hardware: { preset: 'h100-sxm' },
    engine: { hybrid_kv_cache_manager: 'on' },
    cluster: { pools: [{ tensor_parallel: 1 }] },
  });
  assert.deepEqual(issuesOf(first, large), []);
  assert.deepEqual(errorsOf(first, large), wholeIsMissing);
});

test('Coefficients_ThatWerePublished_AreSectionsOfADocument', async () => {
  const module = await load();
  const text = documentOf({});
  assert.ok(provide(module, JSON.parse(module.coefficients(text, '')).issues));
  const { sets, issues } = JSON.parse(module.coefficients(text, ''));
  assert.deepEqual(issues, []);
  assert.equal(sets.length, 111);
  assert.match(sets[0].id, /^qwen3-14b\/h100\/tp1\//);
  assert.equal(sets[0].fits, true);
  for (const { id, latency } of sets.filter(({ faster_than_light: fast }) => fast))
    assert.deepEqual(issuesOf(module, documentOf({ latency })), [], id);
  assert.deepEqual(
    JSON.parse(module.coefficients('{', fileText('presets/coefficients/blis-blackbox.json'))).sets.length,
    111,
  );
  assert.ok(JSON.parse(module.coefficients(text, '{"physics_coefficients":{}}')).issues.length > 0);
});

test('Policy_ThatTheFirstModuleLacks_NamesTheWholeModule', async () => {
  const texts = [
    { engine: { preset: 'sglang' } },
    { engine: { compat: 'blis' } },
    { engine: { speculative: { method: 'ngram', num_speculative_tokens: 3 }, async_scheduling: false } },
    { engine: { max_num_queued_reqs: 5 } },
    { latency: { backend: 'physics' } },
    { latency: { backend: 'roofline' } },
    { latency: { backend: 'blackbox', alpha: [0, 0, 0], beta: [6000, 30, 10] } },
    { scheduler: { policy: 'orca' }, engine: { enable_prefix_caching: false } },
    { cluster: { pools: [{ replicas: 1, scheduler: { policy: 'sglang' } }, { replicas: 1 }] } },
  ].map(documentOf);
  const [first, whole] = [await load('servecast-first'), await load()];
  for (const text of texts) {
    assert.deepEqual(errorsOf(first, text), wholeIsMissing, text);
    assert.deepEqual(errorsOf(whole, text), [], text);
  }
});

// The page's module on the goldens: the native fingerprints, in slices, with the declared shape;
// and what a page that lives long needs: hostile links answered, malformed traces named, no memory
// lost. contract.test.mjs has the names and shapes themselves.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { Declarations } from './declarations.mjs';
import { load, root, simulationOf } from './module.mjs';

const declared = new Declarations(readFileSync(new URL('wasm/servecast.d.ts', root), 'utf8'));
const goldens = JSON.parse(readFileSync(new URL('tests/golden/goldens.json', root), 'utf8'));
const module = await load();
const catalog = JSON.parse(module.catalog());

const fits = (type, value, what) => assert.deepEqual(declared.problems(type, value), [], what);
const bytesOf = (text) => new TextEncoder().encode(text);
const documentOf = ({ document, preset }) =>
  JSON.stringify(document ?? catalog.presets.scenarios.find(({ id }) => id === preset)?.document);

/** A trace file as the module has read it; the caller deletes it. */
function read(bytes, name) {
  const trace = new module.Trace(name);
  trace.add(bytes);
  trace.finish();
  return trace;
}

/** Replays a file in a simulation: "" or JSON Issue[]. */
function setTrace(simulation, bytes, name) {
  const trace = read(bytes, name);
  try {
    return simulation.setTrace(trace);
  } finally {
    trace.delete();
  }
}

/** Runs to the end, hands the simulation to `use`, and deletes it in any case. */
function withRun(document, { trace, slice = 1000 }, use) {
  const simulation = simulationOf(module, document);
  try {
    if (trace !== undefined) assert.equal(setTrace(simulation, bytesOf(trace), 'golden.csv'), '');
    assert.equal(simulation.error(), '');
    while (!simulation.advance(slice));
    return use(simulation);
  } finally {
    simulation.delete();
  }
}

const counts = [
  'arrived',
  'completed',
  'queued',
  'running',
  'dropped',
  'timed_out',
  'length_capped',
  'preemptions',
  'steps',
  'output_tokens',
];

for (const golden of goldens) {
  test(`Golden_${golden.name.replace(/\W+/g, '_')}_HasTheNativeFingerprint`, () => {
    for (const slice of [97, 1e9]) {
      const trace = golden.trace?.join('\n');
      const report = withRun(documentOf(golden), { trace, slice }, (simulation) => JSON.parse(simulation.summary()));
      assert.equal(report.fingerprint, golden.expected.fingerprint);
      for (const key of counts) assert.equal(report[key], golden.expected[key], key);
      assert.equal(report.verdict.state, golden.expected.verdict);
      const { completed, queued, running, dropped, timed_out, rejected } = report;
      assert.equal(report.arrived, completed + queued + running + dropped + timed_out + rejected);
      fits('RunReport', report);
    }
  });
}

const traced = JSON.stringify({
  schema: 1,
  model: { preset: 'llama-3.1-8b' },
  hardware: { preset: 'h100-sxm' },
  workload: {
    arrivals: { process: 'trace' },
    prompt_tokens: { distribution: 'trace' },
    output_tokens: { distribution: 'trace' },
  },
});
const csv = 'arrival_s,input_tokens,output_tokens\n0,100,20\n0.5,200,10\n0.6,50,1\n';

test('Numbers_InCanonicalText_AreWrittenAsJavaScriptDoes', () => {
  for (const number of [1e-6, 0.1, 1 / 3, 12345.678, 1e6, 999999.9999999999, 2 ** -10, 1.5e-6]) {
    const document = JSON.parse(traced);
    document.workload.arrivals = { rate_per_s: number };
    const { text } = JSON.parse(module.canonical(JSON.stringify(document)));
    assert.equal(JSON.stringify(JSON.parse(text)), text);
    assert.equal(JSON.parse(text).workload.arrivals.rate_per_s, number);
  }
});

test('HostileLinks_GetIssues', () => {
  const preset = `p=${catalog.default_scenario}`;
  for (const fragment of [
    `${preset}&${'a.'.repeat(100000)}a=1`,
    `${preset}&x=${'['.repeat(100000)}`,
    `${preset}&slo.1000000000.x=1`,
    `${preset}&__proto__.x=1`,
    `${preset}&name=%ff`,
    '\ud800',
    'x'.repeat(1e6),
  ]) {
    const link = JSON.parse(module.parse(fragment));
    fits('Canonical', link, fragment.slice(0, 60));
    assert.equal(link.text, '', fragment.slice(0, 60));
    assert.ok(link.issues.length > 0);
  }
});

test('ModelThatDoesNotFit_SaysTheNumbers', () => {
  const simulation = new module.Simulation(traced.replace('8b', '70b'));
  const [issue] = JSON.parse(simulation.error());
  assert.match(issue.message, /weights 131 GiB/);
  assert.match(issue.message, /79\.19/);
  assert.match(issue.message, /tensor_parallel 2 would fit/);
  simulation.delete();
});

test('MalformedTrace_IsNamedAndNothingRuns_AGoodOneMayFollow', () => {
  const simulation = new module.Simulation(traced);
  const issues = JSON.parse(setTrace(simulation, bytesOf(`${csv}0.7,abc,1\n0.8,5\n`), 'bad.csv'));
  fits('readonly Issue[]', issues);
  assert.deepEqual(
    issues.map(({ path }) => path),
    ['line 5, column 5', 'line 6, column 6'],
  );
  assert.match(issues[0].message, /"abc"/);
  for (const file of [
    new Uint8Array(),
    Uint8Array.of(0x1f, 0x8b, 8, 0),
    Uint8Array.from({ length: 4096 }, (_, i) => i * 37),
  ]) {
    assert.equal(JSON.parse(setTrace(simulation, file, 'x.bin')).length, 1);
  }
  assert.equal(simulation.advance(10), true);
  assert.equal(simulation.summary(), 'null');
  assert.equal(setTrace(simulation, bytesOf(csv), 'good.csv'), '');
  while (!simulation.advance(5));
  assert.deepEqual([...simulation.column('prompt_tokens')], [100, 200, 50]);
  assert.equal(JSON.parse(simulation.summary()).workload.name, 'good.csv');
  simulation.delete();
});

test('Memory_OfFiftySimulations_IsThatOfOne', () => {
  const rows = '0.7,500,500\n'.repeat(2000);
  // The heap never shrinks, so its size after the run is the most that was ever needed.
  const heapBytes = () =>
    withRun(traced, { trace: csv + rows }, (simulation) => {
      simulation.summary();
      // Replicas stay, so nothing is said of them over time.
      for (const { name } of catalog.columns)
        assert.equal(simulation.column(name).length > 0, !/^series_(prefill_|decode_)?replicas_/.test(name), name);
      return simulation.column('arrival_s').buffer.byteLength;
    });
  for (let i = 0; i < 3; ++i) heapBytes();
  const before = heapBytes();
  for (let i = 0; i < 50; ++i) heapBytes();
  assert.equal(heapBytes(), before);
});

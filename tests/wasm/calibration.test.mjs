// A pack put into a scenario by the module: what the command makes of it, and what is then said.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import test from 'node:test';
import { command } from '../command.mjs';
import { inFolder } from '../in_folder.mjs';
import { load, provide, simulationOf } from './module.mjs';

const plain = {
  schema: 1,
  model: { preset: 'llama-3.1-8b' },
  hardware: { preset: 'h100-sxm' },
  engine: { preset: 'vllm-0.20' },
  workload: {
    requests: 40,
    arrivals: { rate_per_s: 4 },
    prompt_tokens: { distribution: 'fixed', value: 600 },
    output_tokens: { distribution: 'fixed', value: 60 },
  },
};
const pack = {
  kind: 'servecast-calibration',
  schema: 1,
  spec_version: '1.0',
  backend: 'analytic',
  parameters: { 'hardware.compute_efficiency': { value: 0.7, low: 0.65, high: 0.75, unit: '1' } },
  errors: [{ of: 'run', figure: 'tpot', held_out: true, points: 14, after: { median: 2.34, max: 5 } }],
  seen: { prompt_tokens: [100, 5000], output_tokens: [20, 400], rate_per_s: [1, 8] },
  warnings: [],
  provenance: {
    model: 'meta-llama/Llama-3.1-8B-Instruct',
    gpu: 'NVIDIA H100 80GB HBM3',
    engine: 'vllm 0.20.1',
    with: '16-bit weights',
    tensor_parallel: 1,
    files: ['a.json: 34 requests of vllm bench serve: all of it under load'],
    measurements: 34,
    date: '2026-11-25',
  },
};

/** With the files that it asks for. */
function used(module, document, text) {
  for (;;) {
    const said = JSON.parse(module.usePack(JSON.stringify(document), text));
    if (!provide(module, said.issues)) return said;
  }
}

function reportOf(module, text) {
  const simulation = simulationOf(module, text);
  try {
    assert.equal(simulation.error(), '');
    while (!simulation.advance(1e6));
    return JSON.parse(simulation.summary());
  } finally {
    simulation.delete();
  }
}

test('UsePack_TheScenarioCarriesIt_AsTheCommandsDoes', async () => {
  const module = await load();
  const { document, issues } = used(module, plain, JSON.stringify(pack));
  assert.deepEqual(issues, []);
  const report = reportOf(module, document);
  assert.equal(report.evidence.class, 'calibrated');
  assert.match(
    report.evidence.sentence,
    /^Calibrated by the scenario's own measurements: TPOT ±2\.3 % on 14 held-out rows \(runs\)\./,
  );
  assert.deepEqual(report.evidence.warnings, []);
  // A visit begins with the first module, which reads it and names the other for its run.
  const first = await load('servecast-first');
  assert.equal(JSON.parse(first.canonical(document)).text, JSON.parse(module.canonical(document)).text);
  const run = new first.Simulation(document);
  assert.equal(JSON.parse(run.error())[0].path, 'servecast.wasm');
  run.delete();

  const byHand = structuredClone(plain);
  byHand.hardware.compute_efficiency = 0.7;
  byHand.latency = { backend: 'analytic' };
  assert.equal(reportOf(module, JSON.stringify(byHand)).fingerprint, report.fingerprint);

  inFolder((file) => {
    const ran = spawnSync(
      command,
      [
        'run',
        file('plain.json', JSON.stringify(plain)),
        '--once',
        '--calibration',
        file('pack.json', JSON.stringify(pack)),
      ],
      { encoding: 'utf8' },
    );
    assert.equal(ran.status, 0, ran.stderr);
    assert.equal(ran.stderr, '');
    const { fingerprint, evidence } = JSON.parse(ran.stdout);
    assert.equal(fingerprint, report.fingerprint);
    assert.deepEqual(evidence, report.evidence);
    const decoded = spawnSync(
      command,
      [
        'link',
        'decode',
        spawnSync(command, ['link', 'encode', file('used.json', document)], { encoding: 'utf8' }).stdout.trim(),
      ],
      { encoding: 'utf8' },
    );
    assert.equal(decoded.stdout.trim(), JSON.parse(module.canonical(document)).text);
  });
});

test('UsePack_BadPack_IsRefusedWithItsIssues', async () => {
  const module = await load();
  const { document, issues } = used(module, plain, JSON.stringify({ ...pack, spec_version: '2.0' }));
  assert.equal(document, '');
  assert.deepEqual(issues, [{ path: '/spec_version', message: 'found "2.0", allowed "1.0"' }]);
});

// servecast calibrate and --calibration as a person types them: what is fitted and said, packs in and out,
// exit codes.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { inFolder } from '../in_folder.mjs';
import { command } from '../command.mjs';
import { of, server, steps } from './measured_steps.mjs';

function servecast(...words) {
  const { status, stdout, stderr } = spawnSync(command, words, { encoding: 'utf8' });
  return { status, stdout, stderr };
}

const preset = 'llama-3.1-8b-h100-chat';

test('Calibrate_Steps_MakeAPackThatRuns', () => {
  inFolder((file) => {
    const pack = file('pack.json');
    const { status, stdout, stderr } = servecast('calibrate', file('steps.csv', steps), '--rows', '-o', pack);
    assert.equal(status, 0, stderr);
    assert.equal(stdout, '');
    assert.match(stderr, /^found {4}steps\.csv: 5 decode steps/m);
    assert.match(stderr, /^hardware\.bandwidth_efficiency +0\.89 +0\.\d+ +0\.\d+ to 0\.\d+ +1$/m);
    assert.match(stderr, /cannot tell engine\.step_overhead_us from/);
    assert.match(stderr, /^steps\.csv, row 3 +tpot +9\.6/m);
    const read = JSON.parse(readFileSync(pack, 'utf8'));
    assert.equal(read.spec_version, '1.0');
    assert.deepEqual(read.seen.context_tokens, [256, 96000]);
    assert.equal(read.provenance.engine, 'vllm 0.20.1');
    const { value, low, high, unit } = read.parameters['hardware.bandwidth_efficiency'];
    assert.ok(low < value && value < high && unit === '1');
    const [error] = read.errors;
    assert.ok(error.after.mape < 4 && error.before.mape > error.after.mape, JSON.stringify(error));

    const plain = servecast('run', preset, '--once');
    const used = servecast('run', preset, '--once', '--calibration', pack);
    assert.equal(used.status, 0, used.stderr);
    assert.notEqual(JSON.parse(used.stdout).tpot_ms.p50, JSON.parse(plain.stdout).tpot_ms.p50);
    assert.doesNotMatch(used.stderr, /scenario has .*Llama|H100/);
    assert.match(
      servecast('run', preset, '--set', 'hardware={"preset": "l40s"}', '--once', '--calibration', pack).stderr,
      /warning: The calibration was measured on GPU .*H100.*, the scenario has .*L40S/,
    );
  });
});

test('Calibrate_Power_FitsTheCardAndIsUsed', () => {
  inFolder((file) => {
    const run = (
      rate,
      tokens,
      output,
    ) => `model,gpu,engine,engine_version,request_rate_rps,num_prompts,input_tokens_mean,output_tokens_mean,ttft_mean_ms
Llama-3.1-8B,H100,vllm,0.20.1,${rate},200,${tokens},${output},60
`;
    const pack = file('pack.json');
    const { status, stderr } = servecast(
      'calibrate',
      file('prompts.csv', run(16, 2000, 1)),
      file('prompts-power.csv', 'timestamp, power.draw [W]\n2026/11/25 12:00:30.123, 400.00 W\n'),
      file('answers.csv', run(20, 100, 200)),
      file('answers-power.prom', 'DCGM_FI_DEV_POWER_USAGE{gpu="0"} 350\n'),
      '-o',
      pack,
    );
    assert.equal(status, 0, stderr);
    assert.match(stderr, /^found {4}prompts-power\.csv: power in nvidia-smi's rows, 1 samples: 400 W a GPU$/m);
    assert.match(stderr, /^hardware\.busy_w +387 +\d[\d.]* +[\d.]+ to [\d.]+ +W$/m);
    assert.match(stderr, /^mean W of a GPU +before +after +measured$/m);
    const [, before, after] = stderr.match(/^off by per cent, mean +([\d.]+) +([\d.]+)$/m).map(Number);
    assert.ok(after < before && after < 5, stderr);
    const { value } = JSON.parse(readFileSync(pack, 'utf8')).power.parameters.busy_w;
    const power = (...words) => JSON.parse(servecast('run', preset, '--once', ...words).stdout).power.mean_w;
    assert.notEqual(power('--calibration', pack), power());
    const alone = servecast('calibrate', file('alone.csv', '300 W\n'), '--scenario', preset);
    assert.deepEqual([alone.status, alone.stdout], [2, '']);
    assert.ok(value > 0);
  });
});

test('Calibration_CarriedByTheScenario_HasTheSameBits', () => {
  inFolder((file) => {
    const pack = file('pack.json');
    assert.equal(servecast('calibrate', file('steps.csv', steps), '-o', pack).status, 0);
    const used = servecast('run', preset, '--once', '--calibration', pack);
    const report = JSON.parse(used.stdout);
    assert.equal(report.evidence.class, 'untested');
    assert.match(
      report.evidence.sentence,
      /^Calibrated by the scenario's own measurements: TPOT ±[\d.]+ % on 5 fitted rows \(decode steps\); nothing was held out/,
    );
    assert.match(report.evidence.sentence, /Fitted to 5 rows \(5 decode steps\) of .*Llama.* on NVIDIA H100/);
    assert.match(report.evidence.sentence, /, 20\d\d-\d\d-\d\d\.$/);
    assert.ok(report.evidence.warnings.some((line) => /^No run at a rate was measured/.test(line)));
    assert.match(used.stderr, /^warning: No run at a rate was measured/m);

    const link = servecast('link', 'encode', preset, '--calibration', pack);
    assert.equal(link.status, 0, link.stderr);
    assert.equal(servecast('link', 'open', link.stdout.trim(), '--once').stdout, used.stdout);
    const document = servecast('link', 'decode', link.stdout.trim()).stdout;
    const { parameters } = JSON.parse(document).calibration;
    assert.ok(parameters.some(({ path }) => path === 'hardware.bandwidth_efficiency'));
    const carried = servecast('run', file('carrying.json', document), '--once');
    assert.equal(carried.stdout, used.stdout);
    assert.match(carried.stderr, /^warning: No run at a rate was measured/m);
    const constants = Object.entries(JSON.parse(readFileSync(pack, 'utf8')).parameters).flatMap(([path, { value }]) => [
      '--set',
      `${path}=${value}`,
    ]);
    const plain = servecast('run', preset, '--once', '--set', 'latency.backend=analytic', ...constants);
    assert.equal(JSON.parse(plain.stdout).fingerprint, report.fingerprint);
    assert.notEqual(JSON.parse(plain.stdout).evidence.sentence, report.evidence.sentence);
  });
});

test('Calibrate_TheSameTwice_IsTheSamePack', () => {
  inFolder((file) => {
    const path = file('steps.csv', steps);
    const first = servecast('calibrate', path);
    assert.equal(first.status, 0, first.stderr);
    assert.equal(servecast('calibrate', path).stdout, first.stdout);
  });
});

test('Calibrate_BadInput_IsRefusedWhole', () => {
  inFolder((file) => {
    const bad = file('bad.csv', `${server},prompt_tokens,ttft_p50_ms\n${of},128,soon\n${of},0,5\n`);
    const pack = file('pack.json');
    const { status, stdout, stderr } = servecast('calibrate', file('steps.csv', steps), bad, '-o', pack);
    assert.equal(status, 2);
    assert.equal(stdout, '');
    assert.match(stderr, /bad\.csv, row 1, column ttft_p50_ms: found "soon", allowed a number above 0/);
    assert.match(stderr, /bad\.csv, row 2, column prompt_tokens: found "0"/);
    assert.throws(() => readFileSync(pack));
    assert.equal(servecast('calibrate').status, 2);
    assert.equal(servecast('calibrate', file('none.csv')).status, 2);
    assert.equal(servecast('calibrate', '--help').status, 0);
    const nameless = file('nameless.csv', 'batch,mean_context_tokens,itl_p50_ms\n1,256,8\n8,256,9\n');
    const unnamed = servecast('calibrate', nameless);
    assert.equal(unnamed.status, 2);
    assert.match(unnamed.stderr, /do not name the model, allowed --scenario/);
    assert.equal(servecast('calibrate', nameless, '--scenario', preset, '--set', 'engine.max_num_seqs=64').status, 0);
    assert.match(servecast('calibrate', nameless, '-o', nameless).stderr, /nameless/);
  });
});

test('Calibration_OfAnotherVersion_IsRefused', () => {
  inFolder((file) => {
    const pack = servecast('calibrate', file('steps.csv', steps)).stdout;
    const other = file('other.json', pack.replace('"spec_version": "1.0"', '"spec_version": "9.0"'));
    const { status, stderr } = servecast('run', preset, '--calibration', other);
    assert.equal(status, 2);
    assert.match(stderr, /\/spec_version: found "9\.0", allowed "1\.0"/);
    assert.equal(servecast('run', preset, '--calibration', file('broken.json', '{"kind": 1')).status, 2);
    assert.equal(servecast('run', preset, '--calibration', file('missing.json')).status, 2);
  });
});

test('StepTrace_Calibrate_CloseTheCircle', () => {
  inFolder((file) => {
    const trace = file('trace.json');
    const pack = file('pack.json');
    const asked = ['--set', 'workload.requests=150', '--set', 'latency.backend=physics'];
    const made = servecast('step-trace', preset, ...asked, '--rich-subsample-rate', '0.5', '-o', trace);
    assert.equal(made.status, 0, made.stderr);
    assert.equal(made.stdout, '');
    const trained = servecast('calibrate', trace, '-o', pack);
    assert.equal(trained.status, 0, trained.stderr);
    assert.match(trained.stderr, /^found {4}trace\.json: \d+ steps, \d+ of them with snapshots; 150 requests$/m);
    assert.match(trained.stderr, /^ +1 arithmetic of prefill +1[.\d]*e\+06 /m);
    const read = JSON.parse(readFileSync(pack, 'utf8'));
    assert.equal(read.backend, 'physics');
    // Times are whole nanoseconds, and tell this load's first coefficient to a thousandth.
    assert.ok(Math.abs(read.latency.beta_coefficients[0] / 1e6 - 1) < 1e-3, read.latency.beta_coefficients[0]);
    assert.ok(
      read.replay.every((one) => one.met && one.ks < 0.05),
      JSON.stringify(read.replay),
    );

    const run = (...more) => JSON.parse(servecast('run', preset, '--once', ...more).stdout);
    const used = run('--set', 'workload.requests=150', '--calibration', pack);
    assert.ok(Math.abs(used.tpot_ms.p50 / run(...asked).tpot_ms.p50 - 1) < 1e-5);
    // The same file is a coefficient file.
    assert.equal(servecast('run', preset, '--once', '--coefficients', pack).status, 0);
  });
});

test('Calibrate_TracesThatCannotBe_AreRefused', () => {
  inFolder((file) => {
    const trace = file('trace.json');
    servecast('step-trace', preset, '--set', 'workload.requests=20', '-o', trace);
    const mixed = servecast('calibrate', trace, file('steps.csv', steps));
    assert.equal(mixed.status, 2);
    assert.match(mixed.stderr, /steps\.csv.* is no trace of steps/);
    assert.match(
      servecast('calibrate', trace, '--backend', 'roofline').stderr,
      /--backend is analytic, physics or blackbox/,
    );
    assert.match(servecast('calibrate', file('steps.csv'), '--backend', 'physics').stderr, /needs traces of steps/);
    const nobody = file('bare.json', '{"resourceSpans":[]}\n');
    assert.match(servecast('calibrate', nobody).stderr, /bare\.json.*found no event step\.BATCH_SUMMARY/);
    assert.match(servecast('step-trace', preset, '--rich-subsample-rate', '0').stderr, /above 0 and at most 1, not 0/);
    assert.match(
      servecast('step-trace', preset, '--set', 'cluster.pools.0.replicas=2').stderr,
      /found several replicas, allowed one/,
    );
  });
});

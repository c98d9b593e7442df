// The command as a person types it: exit codes, what goes to stdout, what files hold. The engine
// behind it has tests of its own.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

const command = fileURLToPath(new URL('../../build/release/servecast', import.meta.url));
const chat = 'llama-3.1-8b-h100-chat';

function servecast(...words) {
  const { status, stdout, stderr } = spawnSync(command, words, { encoding: 'utf8', maxBuffer: 2 ** 28 });
  return { status, stdout, stderr };
}

/** The words of a row of a comparison, behind its name. */
const row = (text, name) => text.split('\n').find((line) => line.startsWith(name))?.slice(name.length).trim().split(/\s+/);

test('Compare_ASettingThatIsTheDefault_ChangesNothing', () => {
  const { status, stdout } = servecast('compare', chat, '--with', 'engine.max_num_seqs=256', '--with', 'engine.max_num_seqs=4', '--and', 'engine.max_num_batched_tokens=64');
  assert.equal(status, 0);
  for (const name of ['TTFT mean ms', 'E2E p99 ms', 'steps', 'output tokens/s']) {
    const [given, same, equals, other] = row(stdout, name);
    assert.equal(same, given, name);
    assert.equal(equals, '=', name);
    assert.notEqual(other, given, name);
  }
  assert.equal(row(stdout, 'completed')[0], '2000');
  assert.doesNotMatch(stdout, /BLIS/);
});

test('Compare_WithACompat_SaysByWhichRulesItDiffers', () => {
  const today = servecast('compare', chat, '--set', 'workload.requests=50', '--with', 'engine.compat=blis');
  const february = servecast('compare', chat, '--set', 'workload.requests=50', '--with', 'engine.compat=blis-2026-02');
  assert.equal(today.status, 0);
  assert.match(today.stdout, /BLIS's rules, in \(1\):\n {2}drain: /);
  assert.doesNotMatch(today.stdout, /phantom gap/);
  assert.match(february.stdout, /phantom gap/);
});

test('Compare_BadVariants_AreNamedAndNothingIsPrinted', () => {
  const bad = servecast('compare', chat, '--with', 'engine.max_num_seqs=0');
  assert.equal(bad.status, 2);
  assert.equal(bad.stdout, '');
  assert.match(bad.stderr, /engine\.max_num_seqs=0, \/engine\/max_num_seqs: found 0, allowed/);
  assert.equal(servecast('compare', chat).status, 2);
  assert.equal(servecast('compare', chat, '--and', 'seed=2').status, 2);
});

test('Run_RequestsFile_HasARowEachWithItsStateInWords', () => {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  const file = join(folder, 'requests.csv');
  const run = servecast('run', chat, '--set', 'workload.requests=200', '--set', 'measure.horizon_s=3', '--requests', file);
  const [header, ...rows] = readFileSync(file, 'utf8').trim().split('\n').map((line) => line.split(','));
  rmSync(folder, { recursive: true });
  const report = JSON.parse(run.stdout);
  const state = header.indexOf('state');
  assert.equal(rows.length, 200);
  for (const name of ['completed', 'running', 'queued']) {
    assert.equal(rows.filter((cells) => cells[state] === name).length, report[name], name);
  }
  assert.ok(report.completed > 0 && rows.some((cells) => cells[state] === 'pending'));
});

test('Coefficients_EachListedSet_CanBeUsed', () => {
  const ids = servecast('coefficients', 'llama-3.1-8b').stdout.trim().split('\n').map((line) => line.split(/\s+/)[0]);
  assert.ok(ids.length > 0);
  for (const id of ids) assert.equal(servecast('validate', chat, '--coefficients', id).status, 0, id);
  assert.equal(servecast('validate', chat, '--coefficients', 'nobody').status, 2);
});

test('CompareBackends_RunsTheSameRequestsUnderEach', () => {
  const { status, stdout } = servecast('compare', chat, '--backends', '--set', 'workload.requests=200');
  assert.equal(status, 0);
  assert.equal(row(stdout, 'completed').filter((word) => word === '200').length, 5);
  for (const backend of ['analytic', 'roofline', 'physics', 'blackbox']) assert.match(stdout, new RegExp(`"backend":"${backend}"`));
});

test('Estimate_StandsBesideTheSimulation', () => {
  const { status, stdout } = servecast('estimate', chat, '--set', 'latency.backend=physics');
  assert.equal(status, 0);
  const [closed, simulated] = row(stdout, 'TPOT mean ms').map(Number);
  assert.ok(Math.abs(closed / simulated - 1) < 0.1, stdout);
  assert.equal(servecast('estimate', chat, '--set', 'workload.arrivals={"process":"closed_loop"}').status, 2);
});

test('CoefficientFile_IsRead_WarnedOf_OrRefused', () => {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  const file = join(folder, 'trained.json');
  const trained = {
    spec_version: '1.0', variant: 'corrected', alpha_target: 'arrived_to_queued',
    trained_on: { model: 'Llama-3.1-8B', hardware: 'A100', tp: 1, engine_version: '0.11.0', training_date: '2026-01-01', n_samples_alpha: 1, n_samples_beta: 1, lambda_alpha: 1, lambda_beta: 1, gamma: 0.3, hold_out_rmse_alpha: 1, hold_out_rmse_beta: 1 },
    alpha_coefficients: Array(11).fill(0), beta_coefficients: [...Array(15).fill(0), 500],
  };
  const validate = (changes) => {
    writeFileSync(file, JSON.stringify({ physics_coefficients: { ...trained, ...changes } }));
    return servecast('validate', chat, '--coefficients', file);
  };
  const good = validate({});
  assert.equal(good.status, 0, good.stderr);
  assert.match(good.stderr, /warning: .*A100/);
  assert.match(good.stdout, /faster than light/);
  assert.match(good.stdout, /beta 1 \(arithmetic of prefill\) is 0/);
  for (const bad of [{ spec_version: '2.0' }, { beta_coefficients: [1, 2, 3] }, { trained_on: {} }]) {
    assert.equal(validate(bad).status, 2, JSON.stringify(bad));
  }
  rmSync(folder, { recursive: true });
});

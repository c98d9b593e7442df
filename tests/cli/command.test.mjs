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

function withFile(name, text, use) {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  try {
    const file = join(folder, name);
    writeFileSync(file, text);
    return use(file, folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('Trace_WhatItWasReadAs_IsSaid', () => {
  withFile('t.csv', 'Timestamp,Request tokens,Response tokens\n0,10,5\n1,20,5\n', (file) => {
    const { status, stdout, stderr } = servecast('run', chat, '--trace', file);
    assert.equal(status, 0);
    assert.match(stderr, /read as CSV with named columns: columns Timestamp \(s\), Request tokens, Response tokens; 2 requests/);
    assert.equal(JSON.parse(stdout).completed, 2);
  });
});

test('Trace_OfLengthsAlone_LeavesTheArrivals', () => {
  withFile('t.csv', 'input_tokens,output_tokens\n10,5\n20,5\n', (file) => {
    const { status, stdout, stderr } = servecast('run', chat, '--trace', file, '--set', 'workload.requests=30');
    assert.equal(status, 0, stderr);
    assert.match(stderr, /lengths only/);
    const report = JSON.parse(stdout);
    assert.equal(report.completed, 30);
    assert.equal(report.prompt_tokens, 15 * 30);
  });
});

test('Trace_BadLines_AreNamedAndTheRestCounted', () => {
  withFile('t.csv', `arrival_s,input_tokens,output_tokens\n${'x,1,1\n'.repeat(500)}`, (file) => {
    const { status, stderr } = servecast('run', chat, '--trace', file);
    assert.equal(status, 2);
    assert.equal(stderr.trim().split('\n').length, 101);
    assert.match(stderr, /t\.csv, line 2, column 1: found "x" as arrival_s, allowed seconds/);
    assert.match(stderr, /and 400 more malformed lines/);
  });
});

test('FitTrace_Scenario_RunsAndIsNearTheTrace', () => {
  const rows = Array.from({ length: 2000 }, (_, i) => `${i * 0.5},${100 + (i % 50)},${10 + (i % 7)}`);
  withFile('t.csv', `arrival_s,input_tokens,output_tokens\n${rows.join('\n')}\n`, (file, folder) => {
    const out = join(folder, 'fit.json');
    const { status, stdout, stderr } = servecast('fit-trace', file, '--json', out);
    assert.equal(status, 0, stderr);
    assert.equal(JSON.parse(stdout).requests, 2000);
    assert.equal(row(stderr, 'requests')[1], '2,000');
    assert.match(stderr, /prompt p99/);
    const report = JSON.parse(servecast('run', out).stdout);
    assert.equal(report.completed, 2000);
    assert.ok(Math.abs(report.prompt_tokens / 2000 - 124.5) < 2);
  });
  assert.equal(servecast('fit-trace').status, 2);
  assert.equal(servecast('fit-trace', 'nowhere.csv').status, 2);
});

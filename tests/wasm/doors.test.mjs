// What other programs write, in and out: the whole module says what the command says of the same text.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { command } from '../command.mjs';
import { fileText, load, provide, root } from './module.mjs';

function asked(input, ...words) {
  const { status, stdout, stderr } = spawnSync(command, words, { encoding: 'utf8', input, maxBuffer: 2 ** 28 });
  return { status, stdout, stderr };
}

/** With the files that it asks for. */
function answer(module, name, ...words) {
  for (;;) {
    const said = JSON.parse(module[name](...words));
    if (!provide(module, said.issues)) return said;
  }
}

/** As the command prints it, a line each. */
const printed = ({ warnings, kinds, taken, ignored, remarks, issues }) =>
  [
    ...warnings.map((warning) => `warning  ${warning}`),
    ...kinds.map((kind) => `found    ${kind}`),
    ...taken.map(({ what, why }) => `took     ${what}   (${why})`),
    ...ignored.map(({ what, why }) => `left out ${what}: ${why}`),
    ...remarks.map((remark) => `note     ${remark}`),
    ...issues.map(({ path, message }) => `wrong    ${path}: ${message}`),
  ].join('\n');

test('Import_EveryText_IsTheCommandsScenarioWithItsRemarks', async () => {
  let count = 0;
  for (const folder of ['tests/import/texts/', 'tests/import/configs/']) {
    for (const name of readdirSync(new URL(folder, root))) {
      // As on a page that has only begun.
      const module = await load();
      const text = fileText(folder + name);
      const said = answer(module, 'importText', text, '');
      const { stdout, stderr } = asked(text, 'import', '-');
      assert.equal(said.document, stdout, name);
      assert.equal(printed(said), stderr.trimEnd(), name);
      count += 1;
    }
  }
  assert.ok(count >= 55, `${count} texts`);
});

test('Import_OverAScenario_TakesTheRestFromIt', async () => {
  const module = await load();
  const base = fileText('presets/scenarios/qwen2.5-7b-l40s-code.json');
  const text = 'vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 64';
  const document = JSON.stringify(JSON.parse(base).document);
  const said = answer(module, 'importText', text, document);
  assert.equal(said.document, asked(text, 'import', '-', '--scenario', 'qwen2.5-7b-l40s-code').stdout);
  assert.equal(JSON.parse(said.document).hardware.preset, 'l40s');
});

test('Import_NothingUnderstood_HasNoDocument', async () => {
  const module = await load();
  const said = answer(module, 'importText', 'Dear all, see you on Monday.', '');
  assert.equal(said.document, '');
  assert.match(said.issues[0].message, /found nothing that can be imported/);
});

test('Export_ToEveryTarget_IsTheCommandsText', async () => {
  const module = await load();
  const targets = JSON.parse(module.exportTargets()).map(({ name }) => name);
  assert.ok(targets.includes('kubernetes') && targets.includes('bench'));
  for (const scenario of [
    'llama-3.1-8b-h100-chat',
    'llama-3.1-8b-h100x8-disaggregated',
    'llama-3.1-8b-h100-multi-turn',
  ]) {
    const { document } = JSON.parse(fileText(`presets/scenarios/${scenario}.json`));
    for (const target of targets) {
      const said = answer(module, 'exportTo', JSON.stringify(document), target);
      const { stdout, stderr } = asked('', 'export', scenario, '--to', target);
      assert.equal(said.text, stdout, `${scenario} ${target}`);
      assert.equal(said.left_out.map(({ what, why }) => `left out ${what}: ${why}\n`).join(''), stderr);
    }
  }
  assert.match(answer(module, 'exportTo', '{"schema": 1}', 'helm').issues[0].message, /allowed vllm, docker/);
});

test('Rewrite_IsTheCommandsDiff', async () => {
  const module = await load();
  const text = fileText('tests/import/texts/llm-d-values.yaml');
  const set = ['engine.max_num_seqs=99', 'cluster.pools.0.tensor_parallel=4', 'hardware.preset=h200-sxm'];
  const { document } = answer(module, 'importText', text, '');
  const changed = JSON.parse(document);
  changed.engine.max_num_seqs = 99;
  changed.cluster.pools[0].tensor_parallel = 4;
  changed.hardware = { preset: 'h200-sxm' };
  const said = answer(module, 'rewriteText', text, JSON.stringify(changed));
  const { stdout, stderr } = asked(text, 'rewrite', '-', ...set.flatMap((change) => ['--set', change]));
  assert.match(said.text, /^\+ +- "99"$/m);
  assert.equal(said.text.split('\n').slice(2).join('\n'), stdout.split('\n').slice(2).join('\n'));
  assert.equal(said.left_out.map(({ what, why }) => `left out ${what}: ${why}\n`).join(''), stderr);
  assert.match(answer(module, 'rewriteText', 'nothing', document).issues[0].message, /no server/);
});

function timeLine(module, text, from, most) {
  const recording = new module.Recording(text, from, most);
  assert.equal(recording.error(), '');
  recording.keepTimeLine();
  let written = '';
  for (let finished = false; !finished; ) {
    finished = recording.advance(100);
    written += recording.takeTimeLine(false);
  }
  written += recording.takeTimeLine(true);
  assert.equal(recording.takeTimeLine(true), '', 'it ends once');
  recording.delete();
  return written;
}

test('TimeLine_OfAllSteps_IsTheCommandsFile', async () => {
  const module = await load();
  const folder = mkdtempSync(join(tmpdir(), 'servecast-doors-'));
  for (const scenario of ['llama-3.1-8b-h100-chat', 'llama-3.1-8b-h100x8-disaggregated']) {
    const { document } = JSON.parse(fileText(`presets/scenarios/${scenario}.json`));
    document.workload.requests = 300;
    const file = join(folder, 'line.json');
    asked('', 'run', scenario, '--set', 'workload.requests=300', '--once', '--chrome-trace', file);
    assert.ok(timeLine(module, JSON.stringify(document), 0, 1e6) === readFileSync(file, 'utf8'), scenario);
  }
  rmSync(folder, { recursive: true });
});

test('TimeLine_OfAWindow_HasItsStepsAndTheRequestsUntilThen', async () => {
  const module = await load();
  const { document } = JSON.parse(fileText('presets/scenarios/llama-3.1-8b-h100-chat.json'));
  const { traceEvents: events } = JSON.parse(timeLine(module, JSON.stringify(document), 2, 100));
  const steps = events.filter(({ ph }) => ph === 'X');
  assert.equal(steps.length, 100);
  assert.ok(steps.every(({ ts }) => ts >= 2e6));
  const end = Math.max(...steps.map(({ ts, dur }) => ts + dur));
  const begun = events.filter(({ ph, name }) => ph === 'b' && name === 'queue');
  assert.ok(begun.length > 50 && begun.every(({ ts }) => ts <= end));
});

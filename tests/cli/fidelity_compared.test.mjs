// What is made of measurements is what they give today: presets/compared.json, for labels of known error, and
// docs/measured_runs.json, which the documentation opens.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { slow } from '../command.mjs';
import { servecast } from './measured_folders.mjs';

const root = join(import.meta.dirname, '../..');
const folders = [
  process.env.SERVECAST_GROUNDTRUTH ?? join(root, '../shared/groundtruth'),
  process.env.SERVECAST_GROUNDTRUTH_2026 ?? join(root, '../shared/groundtruth-2026-11'),
];

const skip = folders.every(existsSync) ? slow : 'no measurements';
const runs = JSON.parse(readFileSync(join(root, 'docs/measured_runs.json'), 'utf8')).rows;

test('Compared_BothRecords_AreWhatServersSay', { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  const data = folders.flatMap((each) => ['--data', each]);
  const written = ['compared.json', 'measured_runs.json'].map((name) => join(folder, name));
  assert.equal(servecast('fidelity', ...data, '--compared', written[0], '--runs', written[1]).status, 0);
  const recorded = ['presets/compared.json', 'docs/measured_runs.json'];
  for (const [index, path] of recorded.entries()) {
    assert.equal(
      readFileSync(written[index], 'utf8'),
      readFileSync(join(root, path), 'utf8'),
      'servecast fidelity --data DIR --data DIR --compared presets/compared.json --runs docs/measured_runs.json writes it',
    );
  }
  rmSync(folder, { recursive: true });
});

test('MeasuredRuns_OneOfEachForm_PredictWhatTheySay', () => {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  const scenario = join(folder, 'scenario.json');
  const forms = new Map(runs.map((run) => [run.what, run]));
  assert.ok(forms.size >= 4, 'serving runs, closed loops, decode steps and single prompts');
  for (const run of forms.values()) {
    writeFileSync(scenario, JSON.stringify(run.scenario));
    const { status, stdout, stderr } = servecast('run', scenario, '--once');
    assert.equal(status, 0, stderr);
    const { mean } = JSON.parse(stdout)[`${run.figure}_ms`];
    const off = mean / run.predicted_ms - 1;
    assert.ok(Math.abs(off) <= 0.05, `${run.gpu}, ${run.what}: ${mean} ms, ${run.predicted_ms} ms as written`);
  }
  rmSync(folder, { recursive: true });
});

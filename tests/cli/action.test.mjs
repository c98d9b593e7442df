// The script of the GitHub Action (.github/actions/check), as its runner calls it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { command } from '../command.mjs';

const script = fileURLToPath(new URL('../../.github/actions/check/check.sh', import.meta.url));
const preset = 'llama-3.1-8b-h100-chat';

function act(inputs) {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  try {
    const output = join(folder, 'output');
    const junit = join(folder, 'junit.xml');
    const env = {
      ...process.env,
      SERVECAST: command,
      SCENARIO: preset,
      GITHUB_OUTPUT: output,
      JUNIT: junit,
      ...inputs,
    };
    const { status, stdout } = spawnSync('sh', [script], { encoding: 'utf8', env });
    const read = (path) => {
      try {
        return readFileSync(path, 'utf8');
      } catch {
        return '';
      }
    };
    return { status, stdout, output: read(output), junit: read(junit) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('Action_TargetsThatAreMet_Passes', () => {
  const { status, stdout, output, junit } = act({ SET: 'workload.arrivals.rate_per_s=10\n' });
  assert.equal(status, 0);
  assert.equal(output, 'state=met\n');
  assert.match(stdout, /^::notice/m);
  assert.match(junit, /<testsuite /);
});

test('Action_ATargetThatIsMissed_Fails', () => {
  const { status, stdout, output } = act({ SET: 'workload.arrivals.rate_per_s=56', JUNIT: '' });
  assert.equal(status, 1);
  assert.equal(output, 'state=missed\n');
  assert.match(stdout, /^::error/m);
});

test('Action_TooCloseToCall_PassesOrFailsAsAsked', () => {
  const near = `workload.arrivals.rate_per_s=48\nworkload.requests=200`;
  const passes = act({ SET: near });
  assert.equal(passes.output, 'state=undecided\n');
  assert.equal(passes.status, 0);
  assert.equal(act({ SET: near, UNDECIDED: 'fail' }).status, 3);
});

test('Action_BadInput_FailsAndSaysWhat', () => {
  for (const inputs of [{ SET: 'no.such.field=1' }, { SCENARIO: 'no-such.json' }, { UNDECIDED: 'perhaps' }]) {
    const { status, output } = act(inputs);
    assert.equal(status, 2);
    assert.equal(output, '');
  }
});

test('Action_WordsOfAnInput_AreNotRunByTheShell', () => {
  const { status, stdout } = act({ SET: 'seed=$(echo 7); echo stolen' });
  assert.equal(status, 2);
  assert.doesNotMatch(stdout, /^stolen/m);
});

// servecast link as a person types it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { inflateRawSync } from 'node:zlib';
import { command } from '../command.mjs';

const preset = 'llama-3.1-8b-h100-chat';
const few = ['--set', 'workload.requests=200'];

function servecast(words, input = '') {
  const { status, stdout, stderr } = spawnSync(command, words, { encoding: 'utf8', maxBuffer: 2 ** 28, input });
  return { status, stdout, stderr };
}

test('Encode_AScenario_IsReadBackByDecode', () => {
  const { status, stdout } = servecast(['link', 'encode', preset, '--site', 'https://example.org/s/', ...few]);
  assert.equal(status, 0);
  assert.match(stdout, /^https:\/\/example\.org\/s\/#z1\.[A-Za-z0-9_-]+\n$/);
  const [, packed] = /z1\.(.*)\n/.exec(stdout);
  const canonical = inflateRawSync(Buffer.from(packed, 'base64url')).toString();
  assert.equal(JSON.parse(canonical).workload.requests, 200);
  assert.equal(servecast(['link', 'decode', stdout.trim()]).stdout, `${canonical}\n`);
});

test('EncodePinned_ThenOpen_IsVerified', () => {
  const { stdout: link } = servecast(['link', 'encode', preset, '--pin', ...few]);
  assert.match(link, /&v=1\.[\d.]+&r=[a-z_]+(,\d+)+&f=[0-9a-f]{16}\n$/);
  const { status, stdout, stderr } = servecast(['link', 'open', link.trim()]);
  assert.equal(status, 0, stderr);
  const report = JSON.parse(stdout);
  assert.match(stderr, new RegExp(`verified: the same bits, fingerprint ${report.fingerprint}`));
  assert.ok(link.includes(`f=${report.fingerprint}`));
  const direct = JSON.parse(servecast(['run', preset, '--sampling', ...few]).stdout);
  assert.equal(direct.fingerprint, report.fingerprint);
  assert.deepEqual(direct.slo, report.slo);
});

test('Open_AnotherResultOrVersion_SaysWhatDiffers_ExitsOne', () => {
  const { stdout } = servecast(['link', 'encode', preset, '--pin', ...few]);
  const changed = stdout.trim().replace(/r=([a-z_]+),\d+/, 'r=$1,1');
  const { status, stderr } = servecast(['link', 'open', changed]);
  assert.equal(status, 1);
  assert.match(stderr, /differs from the pinned result\n {2}pinned .*\n {2}here /);
  const older = servecast(['link', 'open', changed.replace(/v=1\.[\d.]+/, 'v=1.0.0.1')]);
  assert.equal(older.status, 1);
  assert.match(older.stderr, /which another version gave\n {2}pinned .*engine 0\.0\.1/);
  const same = servecast(['link', 'open', stdout.trim().replace(/v=1\.[\d.]+/, 'v=1.0.0.1')]);
  assert.equal(same.status, 0, 'the bits are the same');
  assert.match(same.stderr, /verified: the same bits.*another version gave: engine 0\.0\.1/);
});

test('Open_WithoutAPin_Runs_WithADamagedOne_RunsButIsNotVerified', () => {
  const link = `p=${preset}&workload.requests=100`;
  assert.equal(servecast(['link', 'open', link, '--once']).status, 0);
  const { status, stdout, stderr } = servecast(['link', 'open', `${link}&v=1.0.1.0&r=meets`, '--once']);
  assert.equal(status, 2);
  assert.equal(JSON.parse(stdout).finished, true);
  assert.match(stderr, /cut short or damaged, and not read/);
});

test('Decode_LinesOfAFileFromWindows_AreRead', () => {
  const { status, stdout } = servecast(['link', 'decode', '-'], `p=${preset}\r\np=${preset}&seed=2\r\n`);
  assert.equal(status, 0);
  assert.deepEqual(
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).seed),
    [undefined, 2],
  );
});

test('Open_ALinkOfATrace_AsksForTheFile_AndTakesIt', () => {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  const file = join(folder, 'my day.csv');
  writeFileSync(
    file,
    `arrival_s,input_tokens,output_tokens\n${Array.from({ length: 40 }, (_, i) => `${i / 4},${100 + i},20`).join('\n')}\n`,
  );
  const { stdout, stderr } = servecast(['link', 'encode', preset, '--trace', file, '--pin']);
  assert.match(stdout, /&trace=my%20day\.csv&v=/, stderr);
  const without = servecast(['link', 'open', stdout.trim()]);
  assert.equal(without.status, 2);
  assert.match(without.stderr, /replays the trace my day\.csv, which is not in it/);
  const { status, stderr: said } = servecast(['link', 'open', stdout.trim(), '--trace', file]);
  assert.equal(status, 0, said);
  assert.match(said, /verified: the same bits/);
  rmSync(folder, { recursive: true });
});

test('Link_BadWords_ExitTwoWithAMessage', () => {
  for (const [words, said] of [
    [['link'], /link needs encode, decode or open/],
    [['link', 'mend'], /found link mend, allowed encode, decode or open/],
    [['link', 'decode'], /no link given/],
    [['link', 'decode', '--x'], /unknown option --x/],
    [['link', 'decode', 'z1.AAAA'], /cut short or damaged/],
    [['link', 'decode', 'z2.AAAA'], /newer kind/],
    [['link', 'decode', 'https://example.org/'], /found the preset|found no link/],
    [['link', 'open', 'p=nothing'], /found the preset "nothing", allowed/],
    [['link', 'open', `p=${preset}`, '--set', 'seed=2'], /as it is/],
    [['link', 'encode', preset, '--site', 'https://x/#y'], /without #/],
  ]) {
    const { status, stdout, stderr } = servecast(words);
    assert.equal(status, 2, words.join(' '));
    assert.equal(stdout, '');
    assert.match(stderr, said);
  }
  assert.match(servecast(['link', '--help']).stdout, /servecast link encode/);
});

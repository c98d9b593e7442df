// Bands of servecast fidelity: presets/evidence.json is what the command writes of the kept forecasts, and its bands hold as
// they say.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { servecast } from './measured_folders.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const forecasts =
  process.env.SERVECAST_FORECASTS ?? join(root, '../shared/reference/error-model/as-forecast-2026-11-27.csv.gz');
const skip = existsSync(forecasts) ? false : 'no forecasts';

test('Evidence_IsWhatTheCommandWrites', { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  try {
    const file = join(folder, 'evidence.json');
    const { status, stdout } = servecast('fidelity', '--evidence', file, '--forecasts', forecasts);
    assert.equal(status, 0);
    assert.equal(readFileSync(file, 'utf8'), readFileSync(join(root, 'presets/evidence.json'), 'utf8'));
    assert.ok(
      readFileSync(join(root, 'docs/fidelity.md'), 'utf8').includes(stdout.trim()),
      'docs/fidelity.md, "Bands"',
    );
    // Set-ups left out, then laboratories: nine of ten hold, and better than one band for all.
    const [setups, laboratories] = stdout.split('Laboratories left out:');
    for (const text of [setups, laboratories]) {
      const [rows, of_rows, of_setups, score] = /^\| all \| (\d+) \| \d+ \| (\d+) \| (\d+) \| [\d.]+ \| ([\d.]+) \|/m
        .exec(text)
        .slice(1)
        .map(Number);
      assert.ok(rows > 600 && of_rows >= 87 && of_rows <= 94 && of_setups >= 85, text);
      assert.ok(score < 0.86 * Number(/Score of one band for all: ([\d.]+)\./.exec(text)[1]), text);
    }
    const sure = [...stdout.matchAll(/^\| 90 to 100 % \| \d+ \| \d+ \| (\d+) \|/gm)].map(([, kept]) => Number(kept));
    assert.equal(sure.length, 2);
    for (const kept of sure) assert.ok(kept >= 90);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('Evidence_OfAFileWithoutForecasts_IsRefused', () => {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  try {
    const file = join(folder, 'rows.csv');
    writeFileSync(file, 'set,row\na,b\n');
    const { status, stderr } = servecast('fidelity', '--evidence', join(folder, 'e.json'), '--forecasts', file);
    assert.equal(status, 2);
    assert.match(stderr, /has no column release/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

// presets/compared.json, of which labels of known error are made, is what measurements give today.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { servecast } from './measured_folders.mjs';

const root = join(import.meta.dirname, '../..');
const folders = [
  process.env.SERVECAST_GROUNDTRUTH ?? join(root, '../shared/groundtruth'),
  process.env.SERVECAST_GROUNDTRUTH_2026 ?? join(root, '../shared/groundtruth-2026-11'),
];

test('Compared_RecordOfLabels_IsWhatServersSay', {
  skip: folders.every(existsSync) ? false : 'no measurements',
}, () => {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  const written = join(folder, 'compared.json');
  assert.equal(
    servecast('fidelity', ...folders.flatMap((folder) => ['--data', folder]), '--compared', written).status,
    0,
  );
  const recorded = readFileSync(join(root, 'presets/compared.json'), 'utf8');
  assert.equal(
    readFileSync(written, 'utf8'),
    recorded,
    'servecast fidelity --data DIR --data DIR --compared presets/compared.json writes it',
  );
  rmSync(folder, { recursive: true });
});

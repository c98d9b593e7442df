// What stands in the way of a planted fault is said by name, and only where faults are planted.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';

const root = new URL('../../', import.meta.url).pathname;
const planter = readFileSync(join(root, 'tests/faults/faults.cmake'), 'utf8');
// The first fault, its source's name and the line that it looks for.
const [, name, number, what, found] = /^plant_in\((\w+) (\d+) "([^"]+)"\s+\[==\[(.*?)\]==\]/ms.exec(planter);

function plant(text) {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-faults-'));
  try {
    const source = join(folder, `${name}.cpp`);
    const output = join(folder, 'copy.cpp');
    writeFileSync(source, text);
    const args = [`-DNAME=${name}`, `-DSOURCE=${source}`, `-DOUTPUT=${output}`, '-P', 'tests/faults/faults.cmake'];
    const { status, stderr } = spawnSync('cmake', args, { cwd: root, encoding: 'utf8' });
    return { status, stderr };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('Planting_SourceWasEdited_NamesFaultAndFile', () => {
  const { status, stderr } = plant('// Nothing of the engine.\n');
  assert.notEqual(status, 0);
  assert.match(stderr, new RegExp(`${name}\\.cpp`));
  assert.ok(stderr.includes(`fault ${number} (${what})`), stderr);
});

test('Planting_TextOccursTwice_IsAProblemToo', () => {
  const { status, stderr } = plant(`${found}\n${found}\n`);
  assert.notEqual(status, 0);
  assert.ok(stderr.includes(`fault ${number} (${what})`), stderr);
});

// What the command refuses the page's module refuses, with the same issues, and nothing else:
// tests/golden/refusals.json, which tests/golden/refusals_test.cpp holds the engine to natively.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { load, root, simulationOf } from './module.mjs';

const module = await load();
const { base, cases } = JSON.parse(readFileSync(new URL('tests/golden/refusals.json', root), 'utf8'));

for (const { name, with: changes, issues } of cases) {
  test(`Refusal_${name.replace(/\W+/g, '_')}_IsThatOfTheCommand`, () => {
    const simulation = simulationOf(module, JSON.stringify({ ...base, ...changes }));
    const found = JSON.parse(simulation.error() || '[]');
    simulation.delete();
    // Which presets there are is left out there.
    for (const issue of found)
      if (issue.path.endsWith('/preset')) issue.message = issue.message.replace(/, allowed .*$/, ', allowed ...');
    assert.deepEqual(found, issues);
  });
}

// The page's two modules held against each other on random documents, drawn from the catalogue's own fields: what the
// first one runs, it runs as the whole one does; whatever it lacks, it names the whole one; and no document ends it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { load, provideAll, root } from './module.mjs';

const { base } = JSON.parse(readFileSync(new URL('tests/golden/refusals.json', root), 'utf8'));
const [first, whole] = [provideAll(await load('servecast-first')), provideAll(await load())];
const { fields, presets } = JSON.parse(whole.catalog());

const count = Number(process.env.SERVECAST_CASES ?? 400);
const seed = Number(process.env.SERVECAST_SEED ?? 1);

/** Uniform numbers, a function of the case's number alone (mulberry32). */
function dice(state) {
  const uniform = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const below = (n) => Math.floor(uniform() * n);
  return { below, pick: (of) => of[below(of.length)] };
}

/** Near the least or the usual one, as huge ones make long runs. */
function valueFor(field, { below, pick }) {
  if (field.type === 'boolean') return pick([true, false]);
  if (field.type === 'choice') return pick(field.choices);
  const [least, most] = [field.minimum ?? 0, field.maximum ?? Infinity];
  const usual = typeof field.default === 'number' ? field.default : least + 1 + below(8);
  const value = pick([least, usual, least + 1, usual * 2, usual / 2]);
  const within = Math.min(Math.max(value, least), most);
  return field.type === 'integer' ? Math.round(within) : within;
}

const drawable = fields.filter(({ type }) => ['integer', 'number', 'boolean', 'choice'].includes(type));
const sections = ['engine', 'scheduler', 'cluster', 'workload', 'latency', 'measure'];
const inSections = drawable.filter(
  ({ path }) =>
    sections.includes(path.split('/')[1]) && !path.includes('/-/') && !path.startsWith('/workload/requests'),
);
const ofPools = drawable.filter(({ path }) => path.startsWith('/cluster/pools/-/') && path.split('/').length === 5);

function setAt(document, path, value) {
  const names = path.split('/').slice(1);
  let at = document;
  for (const name of names.slice(0, -1)) at = at[name] ??= {};
  if (typeof at === 'object') at[names.at(-1)] = value;
}

/** What a person may have chosen: a model, a GPU, one or two pools, and up to four other fields. */
function documentOf(number) {
  const drawn = dice(number);
  const { below, pick } = drawn;
  const document = structuredClone(base);
  document.workload.requests = 20;
  document.model = { preset: pick(presets.models).id };
  document.hardware = { preset: pick(presets.hardware).id };
  const replicas = () => (below(3) === 0 ? 2 : 1);
  const pools = Array.from({ length: below(4) === 0 ? 2 : 1 }, () => ({
    replicas: replicas(),
    tensor_parallel: pick([1, 2, 8]),
  }));
  for (const pool of pools)
    if (below(4) === 0) {
      const field = pick(ofPools);
      pool[field.path.split('/').at(-1)] = valueFor(field, drawn);
    }
  document.cluster = { pools };
  for (let changes = below(5); changes > 0; changes -= 1) {
    const field = pick(inSections);
    setAt(document, field.path, valueFor(field, drawn));
    if (field.when && below(4) > 0) setAt(document, field.when.path, pick(field.when.values));
  }
  return JSON.stringify(document);
}

/** Its issues, or its report. */
function answerOf(module, text) {
  const simulation = new module.Simulation(text);
  try {
    const issues = JSON.parse(simulation.error() || '[]');
    if (issues.length > 0) return { issues };
    while (!simulation.advance(100_000));
    return { report: simulation.summary() };
  } finally {
    simulation.delete();
  }
}

test('FirstModule_RunsAsTheWholeOneDoes_OrNamesIt', () => {
  const seen = { same: 0, named: 0, refused: 0 };
  for (let number = seed; number < seed + count; number += 1) {
    const text = documentOf(number);
    let found;
    try {
      found = answerOf(first, text);
    } catch (error) {
      assert.fail(`case ${number} ended the first module: ${error}\n${text}`);
    }
    if (found.issues?.some(({ path }) => path === 'servecast.wasm')) {
      assert.equal(found.issues.length, 1);
      seen.named += 1;
      continue;
    }
    const expected = answerOf(whole, text);
    if (found.report !== undefined) {
      assert.deepEqual(found, expected, `case ${number}: ${text}`);
      seen.same += 1;
      continue;
    }
    // It may find fewer, and say of a place with two reasons the other one: what it lacks has checks of its own, which the
    // whole one asks once it is needed.
    for (const issue of found.issues)
      assert.ok(
        expected.issues?.some(({ path }) => path === issue.path),
        `case ${number} is refused by the first module alone: ${JSON.stringify(issue)}\n${text}`,
      );
    seen.refused += 1;
  }
  if (count >= 100)
    for (const [kind, times] of Object.entries(seen)) assert.ok(times > count / 20, `${kind}: ${times}`);
  console.log(JSON.stringify(seen));
});

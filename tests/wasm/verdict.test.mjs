// The page and the command give one verdict: the whole report of an experiment, its explanation and its advice, to
// the last digit, on documents of every state.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { after } from 'node:test';
import { command as binary } from '../command.mjs';
import { load, provide, simulationOf } from './module.mjs';

const module = await load('servecast-first');
const whole = await load();
const catalog = JSON.parse(module.catalog());
const folder = mkdtempSync(join(tmpdir(), 'servecast-verdict-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const chat = catalog.presets.scenarios.find(({ id }) => id === 'llama-3.1-8b-h100-chat').document;
const at = (rate, more = {}) => ({
  ...chat,
  ...more,
  workload: { ...chat.workload, ...more.workload, arrivals: { ...chat.workload.arrivals, rate_per_s: rate } },
});
const apart = catalog.presets.scenarios.find(({ id }) => id === 'llama-3.1-8b-h100x8-disaggregated').document;
const documents = {
  meets: at(40),
  near: at(48),
  misses: at(60),
  overloaded: at(200),
  'without targets': at(40, { slo: [] }),
  'few requests': at(40, { workload: { requests: 50 } }),
  'another seed, conversations': at(8, { seed: 7, workload: { sessions: { turns: 4 } } }),
};

/** Asked once of each document: it takes seconds with sanitizers. */
function command(words, document) {
  const asked = `${words} ${JSON.stringify(document)}`;
  if (!answers.has(asked)) answers.set(asked, commandAnew(words, document));
  return JSON.parse(answers.get(asked));
}
const answers = new Map();

function commandAnew(words, document) {
  const file = join(folder, 'scenario.json');
  writeFileSync(file, JSON.stringify(document));
  const { status, stdout, stderr } = spawnSync(binary, [...words.split(' '), file], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  assert.equal(status, 0, stderr);
  return stdout;
}

/** In slices that end in the middle of runs, handing in files on the way. */
function finished(document, kind, use, of = module) {
  const run = simulationOf(of, JSON.stringify(document), kind);
  try {
    assert.equal(run.error(), '');
    while (!run.advance(777)) provide(of, JSON.parse(run.error() || '[]'));
    return use(run);
  } finally {
    run.delete();
  }
}

/** Asked once of each module. */
function summary(document, kind, of) {
  const asked = `${kind} ${of === module} ${JSON.stringify(document)}`;
  if (!summaries.has(asked))
    summaries.set(
      asked,
      finished(document, kind, (run) => run.summary(), of),
    );
  return summaries.get(asked);
}
const summaries = new Map();

for (const [name, document] of Object.entries(documents)) {
  test(`Verdict_${name}_IsTheCommands`, () => {
    const native = command('run --sampling', document);
    const { scenario, ...page } = JSON.parse(summary(document, 'Experiment', module));
    assert.ok(scenario);
    assert.equal(JSON.stringify(page.verdict), JSON.stringify(native.verdict));
    assert.deepEqual(page, native);
  });
}

// Requests are drawn in slices where they are many; clusters are in the whole module alone.
const askedWithBands = {
  ...documents,
  'prefill and decode apart': apart,
  many: at(48, { workload: { requests: 25_000 } }),
};
for (const [name, document] of Object.entries(askedWithBands)) {
  test(`Band_${name}_IsTheCommands`, () => {
    const native = command('run', document);
    const banded = JSON.parse(summary(document, 'Band', whole));
    if (banded === null) {
      assert.equal(native.model_error, undefined);
      return;
    }
    const { scenario, ...page } = banded;
    assert.ok(scenario);
    assert.deepEqual(page, native);
  });
}

test('Band_OfWhatIsNear_HasAProbability_AndTwoParts', () => {
  const { verdict, slo } = JSON.parse(summary(documents.near, 'Band', whole));
  assert.ok(verdict.probability > 0.1 && verdict.probability < 0.9);
  for (const { value_ms: value, band } of slo) {
    assert.ok(band.low < value && value < band.high);
    assert.ok(band.low <= band.model.low && band.model.high <= band.high);
  }
});

test('Verdict_StatesOfTheseDocuments_AreThoseTheyAreNamedAfter', () => {
  for (const state of ['meets', 'near', 'misses', 'overloaded']) {
    assert.equal(command('run --sampling', documents[state]).verdict.state, state);
  }
});

test('FirstModule_LacksWhatReadsFiles_AndAnswersAsTheWholeOne', () => {
  assert.equal(module.Trace, undefined);
  assert.equal(module.Advice, undefined);
  assert.equal(module.Band, undefined);
  assert.equal(module.coefficients, undefined);
  assert.equal(summary(documents.near, 'Experiment', module), summary(documents.near, 'Experiment', whole));
  assert.equal(module.catalog(), whole.catalog());
});

test('Explanation_IsTheCommands', () => {
  const { limits, blame } = command('explain', documents.misses);
  const page = finished(documents.misses, 'Experiment', (run) => JSON.parse(run.explanation()));
  assert.deepEqual(page, { limits, blame });
});

test('Advice_IsTheCommands_AndItsDocumentsRun', () => {
  const native = command('advise', documents.misses);
  const page = finished(documents.misses, 'Advice', (run) => JSON.parse(run.summary()), whole);
  const without = ({ document, ...change }) => change;
  assert.deepEqual({ ...page, base: without(page.base), changes: page.changes.map(without) }, native);
  assert.ok(page.changes[0].meets);
  const used = command('run --sampling', JSON.parse(page.changes[0].document));
  assert.equal(used.verdict.state, 'meets');
});

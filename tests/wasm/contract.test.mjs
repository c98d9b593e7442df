// The module in build/wasm is what wasm/servecast.d.ts says: its names, the shape of all that it
// returns, and that nothing throws, whatever it is given.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { Declarations } from './declarations.mjs';
import { load, provide, root, simulationOf } from './module.mjs';

const declared = new Declarations(readFileSync(new URL('wasm/servecast.d.ts', root), 'utf8'));
const module = await load();
const first = await load('servecast-first');

const fits = (type, value) => assert.deepEqual(declared.problems(type, value), []);
const catalog = JSON.parse(module.catalog());

test('NoModule_NamesTheFolderThatItWasBuiltIn', () => {
  const folder = fileURLToPath(root);
  for (const name of ['servecast', 'servecast-first'])
    assert.ok(!readFileSync(new URL(`build/wasm/${name}.wasm`, root)).includes(folder), name);
});

/** Reads a file in two pieces, hands it to `use`, and deletes it in any case. */
function withTrace(bytes, name, use) {
  const trace = new module.Trace(name);
  try {
    trace.add(bytes.subarray(0, 20));
    trace.add(bytes.subarray(20));
    const read = JSON.parse(trace.finish());
    fits('TraceRead', read);
    return use(trace, read);
  } finally {
    trace.delete();
  }
}

/** The members of a bound class are the declared ones. */
function hasDeclaredNames(name) {
  const names = Object.getOwnPropertyNames(module[name].prototype).filter(
    (member) => member !== 'constructor' && !member.startsWith('$'),
  );
  const expected = declared.names(name).filter((member) => member !== 'delete');
  assert.deepEqual(names.sort(), expected.sort());
}

function finished(text, trace, kind = 'Simulation') {
  const simulation = simulationOf(module, text, kind);
  try {
    if (trace) assert.equal(simulation.setTrace(trace), '');
    assert.equal(simulation.error(), '');
    let before = 0;
    while (!simulation.advance(1000)) {
      const now = simulation.progress();
      assert.ok(now >= before && now <= 1, `progress went from ${before} to ${now}`);
      before = now;
    }
    assert.equal(simulation.progress(), 1);
    const columns = Object.fromEntries(catalog.columns.map(({ name }) => [name, simulation.column(name).slice()]));
    return { report: JSON.parse(simulation.summary()), columns };
  } finally {
    simulation.delete();
  }
}

const small = JSON.stringify({
  schema: 1,
  model: { preset: 'llama-3.1-8b' },
  hardware: { preset: 'h100-sxm' },
  workload: {
    arrivals: { process: 'poisson', rate_per_s: 5 },
    prompt_tokens: { distribution: 'fixed', value: 100 },
    output_tokens: { distribution: 'fixed', value: 20 },
    requests: 50,
  },
  slo: [{ metric: 'ttft', percentile: 99, limit_ms: 500 }],
});

test('Module_Names_AreTheDeclaredOnes', () => {
  // Emscripten's own: what it exports by itself (an empty module's names, and its internals).
  const own =
    /^(_.*|\$.*|HEAP.*|dynCall_.*|asm|wasm[A-Z].*|ready|run|calledRun|then|preloaded.*|preRun|postRun|preInit|on[A-Z].*|print|printErr|locateFile|instantiateWasm|setDelayFunction|flushPendingDeletes|getInheritedInstanceCount|getLiveInheritedInstances|count_emval_handles|get_first_emval|\w+Error|noExitRuntime|arguments|thisProgram|quit|inspect|INITIAL_MEMORY)$/;
  const namesOf = (of) => Object.keys(of).filter((name) => !own.test(name));
  assert.deepEqual(namesOf(module).sort(), declared.names('ServecastModule').sort());
  assert.deepEqual(namesOf(first).sort(), declared.names('FirstModule').sort());
});

test('Experiment_Summary_IsAReportWithIntervals', () => {
  const { report } = finished(small, undefined, 'Experiment');
  fits('Report', report);
  assert.equal(report.first_run.arrived, 50);
  assert.equal(report.certainty.runs, 10);
  assert.ok(report.slo[0].low <= report.slo[0].value_ms && report.slo[0].value_ms <= report.slo[0].high);
  assert.equal(report.fingerprint, finished(small).report.fingerprint);
});

test('Simulation_Names_AreTheDeclaredOnes', () => {
  hasDeclaredNames('Simulation');
  const simulation = new module.Simulation(small);
  assert.equal(typeof simulation.delete, 'function');
  simulation.delete();
});

test('Trace_Names_AreTheDeclaredOnes', () => {
  hasDeclaredNames('Trace');
});

test('Plan_AnswersEachQuestion_AsItIsDeclared', () => {
  hasDeclaredNames('Plan');
  const asked = (question, scenario, percent = 5, hours = [0.5, 1]) =>
    new module.Plan(question, scenario, percent, 3, 2, 5, 0.1, 0.4, hours, 5, 0);
  for (const [question, type] of [
    ['max-rate', 'MaxRate'],
    ['min-gpus', 'MinGpus'],
    ['growth', 'Growth'],
    ['day', 'Day'],
    ['autoscale', 'Autoscale'],
    ['drill', 'Drills'],
    ['tornado', 'Tornado'],
    ['cost', 'OwnCost'],
    ['speculation', 'Speculation'],
  ]) {
    const changing = {
      profile: 'piecewise',
      rate_factors: [
        [0, 0.2],
        [60, 1],
        [120, 0.2],
      ],
    }; // prettier-ignore
    const drafts = { engine: { preset: 'vllm', speculative: { method: 'eagle3' } } };
    const document = JSON.parse(small);
    if (question === 'speculation') Object.assign(document, drafts);
    if (question === 'autoscale') Object.assign(document.workload.arrivals, changing);
    const plan = asked(question, JSON.stringify(document), 5, question === 'day' ? [0.5, 1] : []);
    assert.equal(plan.error(), '');
    for (let before = 0; !plan.advance(20_000); ) {
      const soFar = JSON.parse(plan.answer());
      if (question !== 'drill' && Object.keys(soFar).length > 0) fits(type, soFar);
      assert.ok(plan.progress() >= before && plan.progress() < 1);
      before = plan.progress();
    }
    assert.equal(plan.progress(), 1);
    const answer = JSON.parse(plan.answer());
    for (const { report } of answer.drills ?? []) fits('Report', { ...report, scenario: {} });
    if (question !== 'drill') fits(type, answer);
    assert.match(plan.sentence(), /\w/);
    plan.delete();
  }
  for (const [plan, path] of [
    [asked('most', small), ''],
    [asked('growth', small, -1), ''],
    [asked('day', small, 5, [0]), ''],
    [asked('day', small, 5, []), ''],
    [asked('max-rate', '{'), ''],
    [asked('min-gpus', JSON.stringify({ ...JSON.parse(small), slo: [] })), '/slo'],
  ]) {
    const [issue] = JSON.parse(plan.error());
    assert.equal(issue.path, path);
    assert.equal(plan.advance(1), true);
    assert.equal(plan.answer(), 'null');
    plan.delete();
  }
});

test('Search_HandsOutTasks_AndTakesTheirPointsInAnyOrder', () => {
  hasDeclaredNames('Search');
  hasDeclaredNames('Design');
  const point = (task) => {
    const design = simulationOf(module, task, 'Design');
    assert.equal(design.error(), '');
    for (let before = 0; !design.advance(20_000); before = design.progress()) assert.ok(design.progress() >= before);
    assert.equal(design.progress(), 1);
    const text = design.point();
    design.delete();
    return text;
  };
  const search = new module.Search(small, '', '', 'energy');
  assert.equal(search.error(), '');
  for (let tasks = JSON.parse(search.tasks()); tasks.length > 0; tasks = JSON.parse(search.tasks())) {
    for (const task of tasks.reverse()) assert.equal(search.take(point(JSON.stringify(task))), '');
    fits('SearchAnswer', JSON.parse(search.answer()));
  }
  assert.equal(search.progress(), 1);
  const answer = JSON.parse(search.answer());
  assert.equal(answer.outcome, 'found');
  assert.ok(answer.frontier.includes(answer.cheapest));
  assert.ok(answer.frontier.includes(answer.least_energy));
  assert.equal(answer.points[answer.least_energy].j_per_output_token, answer.answer.value);
  assert.match(search.sentence(), /keep/);
  const cheapest = finished(search.document(answer.cheapest), undefined, 'Experiment');
  assert.equal(cheapest.report.verdict.state, 'meets');
  assert.equal(search.document(1e6), '');
  assert.notEqual(search.take('{'), '');
  search.delete();
});

test('Search_Axes_AreThoseThatAreNamed_AtPricesOfAList', () => {
  const asked = (axes, prices) => {
    for (;;) {
      const search = new module.Search(small, axes, prices, 'cost');
      const issues = JSON.parse(search.error() || '[]');
      if (!provide(module, issues)) {
        const answer = JSON.parse(search.answer());
        search.delete();
        return { issues, answer };
      }
      search.delete();
    }
  };
  const { answer } = asked('pp,roles', 'on-demand');
  assert.deepEqual(
    answer.axes.map(({ path }) => path),
    ['roles', 'cluster.pools.*.pipeline_parallel', 'prices'],
  );
  assert.match(asked('cpu', '').issues[0].message, /axes: found cpu/);
  fits('PricedText', JSON.parse(module.withPrices(small, 'on-demand')));
  const priced = JSON.parse(module.withPrices(JSON.stringify({ hardware: { preset: 'h200-sxm' } }), 'on-demand'));
  assert.equal(JSON.parse(priced.document).hardware.price_per_gpu_hour, 7.912);
  assert.match(JSON.parse(module.withPrices(small, 'free')).issues[0].message, /prices: found free/);
});

test('Search_OfWhatCannotBe_SaysWhy', () => {
  for (const text of ['{', JSON.stringify({ ...JSON.parse(small), slo: [] })]) {
    const search = new module.Search(text, '', '', 'cost');
    assert.ok(JSON.parse(search.error()).length > 0);
    assert.equal(search.tasks(), '[]');
    assert.equal(search.answer(), 'null');
    assert.equal(search.document(0), '');
    search.delete();
    const design = new module.Design(text);
    assert.ok(JSON.parse(design.error()).length > 0);
    assert.equal(design.advance(1), true);
    assert.equal(design.point(), 'null');
    design.delete();
  }
});

test('Recording_HasTheStepsOfTheRun_AndItsSlowestRequests', () => {
  const recorded = (from, most) => {
    const recording = new module.Recording(small, from, most);
    assert.equal(recording.error(), '');
    while (!recording.advance(1000));
    return recording;
  };
  hasDeclaredNames('Recording');

  const simulation = new module.Simulation(small);
  while (!simulation.advance(1000));
  const report = JSON.parse(simulation.summary());
  const all = recorded(0, 1e6);
  const [starts, ends, shares, done] = ['start_s', 'end_s', 'compute_share', 'finished'].map((name) =>
    all.column(`step_${name}`).slice(),
  );
  const sum = (values) => values.reduce((whole, value) => whole + value, 0);
  assert.equal(starts.length, report.steps);
  assert.equal(sum(done), report.completed);
  assert.equal(all.isFull(), false);
  const mfu = sum(shares.map((share, step) => share * (ends[step] - starts[step]))) / report.simulated_s;
  assert.ok(Math.abs(mfu / report.mfu - 1) < 1e-3, `${mfu} of steps, ${report.mfu} of the run`);

  all.choose('ttft', 1, 3);
  assert.equal(all.complete(), report.completed);
  const ttft = simulation.column('ttft_ms').slice();
  assert.deepEqual([...all.column('ttft_ms').slice()], [...ttft].sort((a, b) => b - a).slice(1, 4));
  for (const name of [
    'e2e_ms',
    'decode_ms',
    'interference_ms',
    'queue_ms',
    'prompt_tokens',
    'output_tokens',
    'arrival_s',
  ]) {
    const whole = simulation.column(name).slice();
    const chosen = [...all.column('request').slice()];
    assert.deepEqual(
      [...all.column(name).slice()],
      chosen.map((request) => whole[request]),
      name,
    );
  }
  const later = recorded(starts[5], 4);
  assert.deepEqual([...later.column('step_start_s').slice()], [...starts.slice(5, 9)]);
  assert.equal(later.isFull(), true);
  for (const each of [simulation, all, later]) each.delete();
});

test('Version_HasEngineAndSchema', () => {
  fits('{ engine_version: string; schema: number }', JSON.parse(module.version()));
});

test('Catalog_HasItsShape', () => {
  fits('Catalog', catalog);
  assert.ok(catalog.fields.length > 20);
  assert.ok(catalog.presets.scenarios.some(({ id }) => id === catalog.default_scenario));
});

test('ScenarioPresets_RunAsTheyAre', () => {
  for (const { id, document } of catalog.presets.scenarios) {
    const text = JSON.stringify(document);
    assert.equal(module.validate(text), '[]', id);
    fits('RunReport', finished(text).report);
  }
});

test('Report_HasItsShape', () => {
  const { report, columns } = finished(small);
  fits('RunReport', report);
  assert.equal(report.arrived, 50);
  assert.equal(report.completed, 50);
  assert.match(report.fingerprint, /^[0-9a-f]+$/);
  for (const { name, kind } of catalog.columns) {
    assert.ok(columns[name] instanceof Float64Array, name);
    if (kind === 'request') assert.equal(columns[name].length, 50, name);
    if (kind === 'cdf') assert.ok(columns[name].length > 0, name);
  }
});

test('Slices_DoNotChangeTheResult', () => {
  const whole = finished(small);
  const simulation = new module.Simulation(small);
  while (!simulation.advance(1)) {
    // A step at a time, and looked at in between.
    simulation.summary();
  }
  assert.equal(JSON.parse(simulation.summary()).fingerprint, whole.report.fingerprint);
  simulation.delete();
});

test('ResolvedScenario_RunsAgainToTheSameBits', () => {
  const { report } = finished(small);
  const again = finished(JSON.stringify(report.scenario)).report;
  assert.equal(again.fingerprint, report.fingerprint);
});

test('Canonical_IsAFixedPoint', () => {
  const first = JSON.parse(module.canonical(small));
  fits('Canonical', first);
  assert.match(first.id, /^[0-9a-f]{16}$/);
  assert.deepEqual(first.issues, []);
  assert.deepEqual(JSON.parse(module.canonical(first.text)), first);
});

test('Parse_ReadsTheReadableLink', () => {
  const link = JSON.parse(module.parse(`p=${catalog.default_scenario}&workload.arrivals.rate_per_s=3`));
  fits('Canonical', link);
  assert.deepEqual(link.issues, []);
  assert.equal(JSON.parse(link.text).workload.arrivals.rate_per_s, 3);
});

test('BadInput_IsAListOfIssues_NeverAnException', () => {
  const bad = [
    '',
    '{',
    'null',
    '[]',
    '"text"',
    '{"schema":1}',
    '{"schema":99}',
    '\u0000',
    '{"schema":1,"modle":{}}',
    small.replace('"requests":50', '"requests":-1'),
    small.replace('llama-3.1-8b', 'no-such-model'),
    small.replace('"rate_per_s":5', '"rate_per_s":1e999'),
    '['.repeat(100000),
    '{"a":'.repeat(100000),
  ];
  for (const text of bad) {
    const what = text.slice(0, 60);
    const issues = JSON.parse(module.validate(text));
    fits('readonly Issue[]', issues);
    assert.ok(issues.length > 0, what);
    const canonical = JSON.parse(module.canonical(text));
    fits('Canonical', canonical);
    assert.equal(canonical.text, '', what);
    const simulation = new module.Simulation(text);
    fits('readonly Issue[]', JSON.parse(simulation.error()));
    assert.equal(simulation.advance(10), true, what);
    simulation.summary();
    assert.equal(simulation.column('ttft_ms').length, 0);
    simulation.delete();
  }
  for (const fragment of ['', 'p=', 'p=nothing', '&&&', '=', 'p=%zz', `p=${catalog.default_scenario}&nothing.here=1`]) {
    const link = JSON.parse(module.parse(fragment));
    fits('Canonical', link);
    assert.ok(link.issues.length > 0, fragment);
  }
});

test('Advance_TakesAnyNumber', () => {
  for (const steps of [0, -1, 0.5, NaN, Infinity, -Infinity, 1e300]) {
    const simulation = new module.Simulation(small);
    assert.equal(typeof simulation.advance(steps), 'boolean', String(steps));
    simulation.delete();
  }
});

test('Column_Unknown_IsEmpty', () => {
  const simulation = new module.Simulation(small);
  assert.equal(simulation.column('no such column').length, 0);
  simulation.delete();
});

test('Trace_RunsAndAMalformedLineIsNamed', () => {
  const document = JSON.parse(small);
  document.workload = {
    arrivals: { process: 'trace' },
    prompt_tokens: { distribution: 'trace' },
    output_tokens: { distribution: 'trace' },
  };
  const text = JSON.stringify(document);
  const bytes = (lines) => new TextEncoder().encode(`${lines.join('\n')}\n`);
  const issues = JSON.parse(module.validate(text));
  assert.deepEqual(issues, []);
  const good = ['arrival_s,input_tokens,output_tokens', '0,100,10', '0.5,200,20'];
  withTrace(bytes(good), 'small.csv', (trace, read) => {
    assert.match(read.reading, /^Servecast CSV/);
    assert.equal(read.requests, 2);
    for (let run = 0; run < 2; run += 1) {
      const { report } = finished(text, trace);
      fits('RunReport', report);
      assert.equal(report.arrived, 2);
    }
    fits('TraceFit', JSON.parse(trace.fit()));
    // The command's rule: what replays a trace stays, all else is made to.
    assert.equal(trace.replaying(text), text);
    assert.equal(JSON.parse(trace.replaying(small)).workload.arrivals.process, 'trace');
  });
  withTrace(bytes([...good, '1,x,20']), 'small.csv', (trace, read) => {
    assert.match(read.issues[0].path, /^line 4/);
    const waiting = new module.Simulation(text);
    const refused = JSON.parse(waiting.setTrace(trace));
    fits('readonly Issue[]', refused);
    assert.deepEqual(refused, read.issues);
    fits('readonly Issue[]', JSON.parse(trace.fit()));
    waiting.delete();
  });
});

test('TraceOfLengthsAlone_HasNoRatesToFit', () => {
  withTrace(new TextEncoder().encode('input_tokens,output_tokens\n10,20\n30,40\n'), 't.csv', (trace, read) => {
    assert.equal(read.has_arrivals, false);
    const fit = JSON.parse(trace.fit());
    fits('TraceFit', fit);
    assert.equal(fit.rate, undefined);
    assert.equal(fit.workload.arrivals, undefined);
  });
});

test('Diagnosis_OfAPastedServer_HasTheDeclaredShape', () => {
  const text = readFileSync(new URL('tests/cli/diagnosed_server.txt', root), 'utf8');
  const imported = JSON.parse(module.importText(text, ''));
  fits('ImportedText', imported);
  assert.equal(imported.measured.find(({ name }) => name === 'kv_tokens').value, 415312);
  const run = new module.Diagnosis(imported.document, JSON.stringify(imported.measured), JSON.stringify(imported.said));
  try {
    const members = Object.getOwnPropertyNames(Object.getPrototypeOf(run)).filter((name) => name !== 'constructor');
    for (const name of ['error', 'setTrace', 'advance', 'progress', 'summary']) assert.ok(members.includes(name), name);
    let last = 0;
    for (;;) {
      const issues = JSON.parse(run.error() || '[]');
      if (issues.length > 0) assert.ok(provide(module, issues), run.error());
      if (run.advance(1e6) && run.error() === '') break;
      assert.ok(run.progress() >= last);
      last = run.progress();
    }
    const diagnosis = JSON.parse(run.summary());
    fits('Diagnosis', diagnosis);
    assert.equal(diagnosis.state, 'differs');
    for (const { document } of diagnosis.causes) fits('Canonical', JSON.parse(module.canonical(document)));
  } finally {
    run.delete();
  }
  const broken = new module.Diagnosis('{', 'no list', '{}');
  assert.notEqual(broken.error(), '');
  broken.delete();
});

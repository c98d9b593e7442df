// The command as a person types it: exit codes, what goes to stdout, what files hold. The engine
// behind it has tests of its own.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { command } from '../command.mjs';
import { Declarations } from '../wasm/declarations.mjs';

const chat = 'llama-3.1-8b-h100-chat';

function servecast(...words) {
  const { status, stdout, stderr } = spawnSync(command, words, { encoding: 'utf8', maxBuffer: 2 ** 28 });
  return { status, stdout, stderr };
}

/** The words of a row of a comparison, behind its name. */
const row = (text, name) =>
  text
    .split('\n')
    .find((line) => line.startsWith(name))
    ?.slice(name.length)
    .trim()
    .split(/\s+/);

test('Run_ByDefault_SaysHowSureItIs', () => {
  const many = JSON.parse(servecast('run', chat).stdout);
  const one = JSON.parse(servecast('run', chat, '--once').stdout);
  assert.equal(many.verdict.state, 'meets');
  assert.match(
    many.verdict.sentence,
    /^Llama-3\.1-8B on 1 x H100 meets both targets at 40 req\/s, more than 99 % sure; closest is TPOT p99, [\d.]+ of 20 ms \([\d.]+ to [\d.]+\)\.$/,
  );
  for (const { low, high, value_ms, band } of many.slo) {
    assert.ok(low < value_ms && value_ms < high);
    assert.ok(band.low <= band.model.low && band.low < low && high < band.high && band.level === 0.9);
  }
  assert.ok(many.verdict.probability > 0.99);
  assert.match(many.model_error.sentence, /^Step times are within [\d.]+ % of the forecast with 90 % probability/);
  const sampling = JSON.parse(servecast('run', chat, '--sampling').stdout);
  assert.equal(sampling.slo[0].band, undefined);
  assert.deepEqual([sampling.slo[0].low, sampling.slo[0].high], [many.slo[0].low, many.slo[0].high]);
  assert.equal(many.fingerprint, one.fingerprint);
  assert.equal(one.slo[0].low, null);
  assert.equal(one.certainty, undefined);
  assert.ok(one.requests_per_s < 38 && Math.abs(many.requests_per_s - 40) < 1, 'ramp and drain are not counted');
});

test('EveryCommand_OfStandardInput_SaysWhatItSaysOfTheFile', () => {
  const document = JSON.parse(servecast('catalog', '--json').stdout).presets.scenarios.find(
    ({ id }) => id === chat,
  ).document;
  const piped = (...words) => {
    const { status, stdout, stderr } = spawnSync(command, words, { encoding: 'utf8', input: JSON.stringify(document) });
    assert.equal(status, 0, `${words.join(' ')}: ${stderr}`);
    return stdout;
  };
  for (const [before, after] of [
    ['run', ['--set', 'seed=2', '--once']],
    ['compare', ['--with', 'engine.max_num_seqs=64']],
    ['advise', []],
    ['explain', []],
    ['check', []],
    ['estimate', []],
    ['validate', []],
    ['sweep', ['--over', 'seed=1,2', '--once']],
    ['export', ['--to', 'vllm']],
  ]) {
    const words = before.split(' ');
    assert.equal(piped(...words, '-', ...after), servecast(...words, chat, ...after).stdout, before);
  }
});

test('Explain_Blame_AddsUpAndLimitsFall', () => {
  const { status, stdout } = servecast('explain', chat, '--set', 'workload.arrivals.rate_per_s=60');
  assert.equal(status, 0);
  const { report, limits, blame } = JSON.parse(stdout);
  assert.equal(report.verdict.state, 'misses');
  assert.equal(limits[0].name, report.binding_constraint.name);
  for (const [index, { gain }] of limits.entries()) assert.ok(index === 0 || gain <= limits[index - 1].gain);
  for (const metric of ['ttft', 'tpot', 'e2e']) {
    const { slowest, all } = blame[metric];
    for (const { total_ns, parts_ns } of [slowest, all]) {
      assert.equal(
        Object.values(parts_ns).reduce((a, b) => a + b),
        total_ns,
        metric,
      );
    }
    assert.ok(slowest.mean_ms > all.mean_ms);
    assert.equal(slowest.requests, Math.ceil(all.requests / 100));
  }
});

test('Advise_AMissedTarget_RanksWhatMeetsItByCost', () => {
  const { status, stdout } = servecast('advise', chat, '--set', 'workload.arrivals.rate_per_s=60');
  assert.equal(status, 0);
  const { answer, changes } = JSON.parse(stdout);
  assert.ok(changes.length >= 8);
  assert.ok(changes[0].meets && answer.startsWith(changes[0].change), answer);
  const two = changes.find(({ change }) => change === '2 replicas');
  assert.ok(two.meets && two.gpus === 2);
  const budget = changes.find(({ change }) => change === 'max_num_batched_tokens 4,096');
  assert.ok(!budget.meets && Math.abs(budget.effect) < 0.05);
});

test('Advise_WhatMissesATarget_IsRankedByHowSureItIsToMeet', () => {
  // Near both limits: what lowers TPOT most is not what is most sure to meet both.
  const near = ['workload.arrivals.rate_per_s=50', 'slo.0.limit_ms=140', 'slo.1.limit_ms=19'];
  const { stdout } = servecast('advise', chat, ...near.flatMap((set) => ['--set', set]));
  const rest = JSON.parse(stdout).changes.filter(({ meets, issues }) => !meets && !issues);
  const sure = rest.map(({ overloaded, probability }) => (overloaded ? 0 : Math.round(100 * probability)));
  const rise = (values) => values.some((value, i) => value > values[i - 1]);
  assert.ok(!rise(sure), sure.join());
  assert.ok(rise(rest.map(({ effect }) => effect)));
});

test('Advise_WithoutATarget_SaysThatItNeedsOne', () => {
  const { status, stdout, stderr } = servecast('advise', chat, '--set', 'slo=[]');
  assert.equal(status, 2);
  assert.equal(stdout, '');
  assert.match(stderr, /\/slo: found no target/);
});

// A pool with a GPU of its own was run on the scenario's next one.
test('Advise_APoolWithItsOwnGpu_IsNotGivenTheScenariosNext', () => {
  const { stdout } = servecast(
    'advise',
    chat,
    '--set',
    'cluster.pools=[{"hardware":{"preset":"h100-sxm"}}]',
    '--set',
    'workload.requests=300',
  );
  const { changes } = JSON.parse(stdout);
  assert.ok(changes.length > 5);
  assert.ok(changes.every(({ change }) => !change.startsWith('GPU ')));
});

test('Advise_ATargetBelowASingleStep_NothingHelps', () => {
  const { stdout } = servecast(
    'advise',
    chat,
    '--set',
    'slo=[{"metric":"tpot","percentile":50,"limit_ms":0.001}]',
    '--set',
    'workload.arrivals.rate_per_s=1',
    '--set',
    'workload.requests=300',
  );
  assert.match(JSON.parse(stdout).answer, /No change is enough|No change that was tried helps/);
});

test('Compare_ASettingThatIsTheDefault_ChangesNothing', () => {
  const { status, stdout } = servecast(
    'compare',
    chat,
    '--with',
    'engine.max_num_seqs=256',
    '--with',
    'engine.max_num_seqs=4',
    '--and',
    'engine.max_num_batched_tokens=64',
  );
  assert.equal(status, 0);
  for (const name of ['TTFT mean ms', 'E2E p99 ms', 'steps', 'output tokens/s']) {
    const [given, same, equals, other] = row(stdout, name);
    assert.equal(same, given, name);
    assert.equal(equals, '=', name);
    assert.notEqual(other, given, name);
  }
  assert.equal(row(stdout, 'completed')[0], '2000');
  assert.doesNotMatch(stdout, /BLIS/);
  // The deciding target first, with the value, the rates and the sentence that run has.
  const run = JSON.parse(servecast('run', chat).stdout);
  const lines = stdout.split('\n');
  assert.match(lines[1], /^TPOT p99 ms /);
  for (const [name, value] of [
    ['TPOT p99 ms', run.slo.find(({ metric }) => metric === 'tpot').value_ms],
    ['TTFT p99 ms', run.slo.find(({ metric }) => metric === 'ttft').value_ms],
    ['requests/s', run.requests_per_s],
    ['output tokens/s', run.output_tokens_per_s],
  ])
    assert.ok(Math.abs(Number(row(stdout, name)[0]) / value - 1) < 1e-3, name);
  assert.ok(stdout.includes(`as given:  ${run.verdict.sentence}`));
});

test('CompareSweepAndAdvise_GiveTheVerdictOfRun_WithItsBands', () => {
  const of = ({ verdict, slo }) => ({ verdict, slo });
  // 46: sampling alone would say "meets". 52: a fifth of the runs would say "misses".
  for (const rate of ['workload.arrivals.rate_per_s=46', 'workload.arrivals.rate_per_s=52']) {
    const run = JSON.parse(servecast('run', chat, '--set', rate).stdout);
    assert.equal(run.verdict.state, 'near');
    const compared = JSON.parse(servecast('compare', chat, '--with', rate, '-o', 'json').stdout);
    assert.deepEqual(of(compared.runs[1].report), of(run));
    const swept = JSON.parse(servecast('sweep', chat, '--over', rate).stdout);
    assert.deepEqual(of(swept.report), of(run));
    const { base, changes } = JSON.parse(servecast('advise', chat, '--set', rate).stdout);
    assert.equal(base.probability, run.verdict.probability);
    assert.equal(base.meets, false);
    assert.deepEqual(
      base.slo.map(({ band }) => band.low),
      run.slo.map(({ band }) => band.low),
    );
    for (const { probability, meets } of changes) assert.equal(meets, probability >= 0.9);
    assert.ok(changes[0].meets);
    // The first of its changes is run as it would be alone.
    const [first] = changes;
    const alone = JSON.parse(servecast('run', chat, ...[rate, ...first.set].flatMap((set) => ['--set', set])).stdout);
    assert.equal(first.probability, alone.verdict.probability);
    assert.equal(first.sentence, alone.verdict.sentence);
  }
});

test('Compare_TargetsOfOneName_AreEachTheirOwn', () => {
  const slo = [
    { metric: 'attainment', percentile: 99, ttft_ms: 150, tpot_ms: 18 },
    { metric: 'attainment', percentile: 90, ttft_ms: 60, tpot_ms: 13 },
  ];
  const set = ['--set', `slo=${JSON.stringify(slo)}`, '--with', 'seed=2', '--once'];
  const { runs } = JSON.parse(servecast('compare', chat, ...set, '-o', 'json').stdout);
  const { stdout } = servecast('compare', chat, ...set, '-o', 'text');
  const shown = [...stdout.matchAll(/attainment >= \d+ % +([\d.]+) %/g)].map(([, share]) => Number(share));
  assert.equal(shown.length, 2);
  for (const [at, { share }] of runs[0].report.slo.entries())
    assert.ok(Math.abs(shown[at] - 100 * share) < 0.1, stdout);
});

test('CompareAndSweep_OfSampling_AreWithoutBands', () => {
  const [run] = JSON.parse(servecast('compare', chat, '--sampling', '--with', 'seed=2', '-o', 'json').stdout).runs;
  assert.ok(run.report.slo[0].high !== null && !('band' in run.report.slo[0]));
  const swept = JSON.parse(servecast('sweep', chat, '--sampling', '--over', 'seed=1').stdout);
  assert.deepEqual(swept.report.slo, run.report.slo);
});

test('Sweep_OfANameThatIsShort_SaysWhatIsMeant', () => {
  const { status, stdout, stderr } = servecast('sweep', chat, '--over', 'rate=20,40');
  assert.equal(status, 2);
  assert.equal(stdout, '');
  assert.match(stderr, /did you mean workload\.arrivals\.rate_per_s/);
});

test('Compare_WithACompat_SaysByWhichRulesItDiffers', () => {
  const today = servecast('compare', chat, '--set', 'workload.requests=50', '--with', 'engine.compat=blis');
  const february = servecast('compare', chat, '--set', 'workload.requests=50', '--with', 'engine.compat=blis-2026-02');
  assert.equal(today.status, 0);
  assert.match(today.stdout, /Other rules than vLLM's, in \(1\):\n {2}drain: /);
  assert.doesNotMatch(today.stdout, /phantom gap/);
  assert.match(february.stdout, /phantom gap/);
});

test('Compare_BadVariants_AreNamedAndNothingIsPrinted', () => {
  const bad = servecast('compare', chat, '--with', 'engine.max_num_seqs=0');
  assert.equal(bad.status, 2);
  assert.equal(bad.stdout, '');
  assert.match(bad.stderr, /engine\.max_num_seqs=0, \/engine\/max_num_seqs: found 0, allowed/);
  assert.equal(servecast('compare', chat).status, 2);
  assert.equal(servecast('compare', chat, '--and', 'seed=2').status, 2);
});

test('Run_RequestsFile_HasARowEachWithItsStateInWords', () => {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  const file = join(folder, 'requests.csv');
  const run = servecast(
    'run',
    chat,
    '--set',
    'workload.requests=200',
    '--set',
    'measure.horizon_s=3',
    '--requests',
    file,
  );
  const [header, ...rows] = readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split(','));
  rmSync(folder, { recursive: true });
  const { first_run: report } = JSON.parse(run.stdout);
  const state = header.indexOf('state');
  assert.equal(rows.length, 200);
  for (const name of ['completed', 'running', 'queued']) {
    assert.equal(rows.filter((cells) => cells[state] === name).length, report[name], name);
  }
  assert.ok(report.completed > 0 && rows.some((cells) => cells[state] === 'pending'));
});

/** One run with files; what is in them, and the summary. */
function runWithFiles(names, ...words) {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  const options = names.flatMap((name) => [`--${name}`, join(folder, name)]);
  const run = servecast('run', chat, '--once', ...words, ...options);
  const files = Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
  rmSync(folder, { recursive: true });
  assert.equal(run.status, 0, run.stderr);
  return { report: JSON.parse(run.stdout), ...files };
}

/** A CSV without quotes: a record per row. */
function table(text) {
  const [header, ...rows] = text
    .trim()
    .split('\n')
    .map((line) => line.split(','));
  return rows.map((cells) => {
    assert.equal(cells.length, header.length);
    return Object.fromEntries(header.map((name, i) => [name, cells[i]]));
  });
}

const sum = (rows, name) => rows.reduce((total, of) => total + Number(of[name]), 0);
const twoClasses = 'workload.classes=[{"name":"chat","share":3,"ttft_deadline_ms":60},{"name":"batch","turns":3}]';

test('Run_Report_IsAsDeclared', () => {
  const declarations = new Declarations(readFileSync(new URL('../../wasm/servecast.d.ts', import.meta.url), 'utf8'));
  for (const set of ['seed=2', twoClasses, 'engine.compat=blis']) {
    const words = ['--set', set, '--set', 'workload.requests=600'];
    const one = JSON.parse(runWithFiles(['json'], ...words).json);
    delete one.series;
    assert.deepEqual(declarations.problems('RunReport', one), [], set);
    const report = JSON.parse(servecast('run', chat, ...words).stdout);
    assert.deepEqual(declarations.problems('Report', { ...report, scenario: {} }), [], set);
  }
});

test('Run_TimeSplit_AddsUpToTheMeans', () => {
  const { report, requests } = runWithFiles(['requests'], '--set', 'engine.num_gpu_blocks_override=2500');
  const total = (parts) => Object.values(parts).reduce((a, b) => a + b);
  assert.ok(Math.abs(total(report.time_split.e2e_ms) - report.e2e_ms.mean) < 1e-6);
  assert.ok(Math.abs(total(report.time_split.ttft_ms) - report.ttft_ms.mean) < 1e-6);
  for (const of of table(requests)) {
    const parts = Object.keys(report.time_split.e2e_ms).map((part) => Number(of[`${part}_ms`]));
    assert.ok(Math.abs(parts.reduce((a, b) => a + b) - of.e2e_ms) < 1e-6);
  }
});

test('Run_Classes_AddUpToTheWhole', () => {
  const slo = 'slo=[{"metric":"ttft","limit_ms":60,"percentile":90,"class":"chat"},{"metric":"e2e","limit_ms":60000}]';
  const { report, requests } = runWithFiles(['requests'], '--set', twoClasses, '--set', slo);
  assert.deepEqual(
    report.classes.map((of) => of.name),
    ['chat', 'batch'],
  );
  const rows = table(requests);
  for (const of of report.classes) {
    const own = rows.filter((row) => row.class === of.name);
    assert.equal(own.length, of.arrived);
    assert.equal(own.filter((row) => row.state === 'completed').length, of.completed);
    assert.ok(Math.abs(sum(own, 'ttft_ms') / own.length - of.ttft_ms.mean) < 1e-9);
  }
  const late = rows.filter((row) => row.class === 'chat' && Number(row.ttft_ms) > 60).length;
  assert.equal(report.classes[0].deadline_misses, late);
  assert.equal(rows.filter((row) => row.deadline_missed === '1').length, late);
  assert.equal(report.classes[1].deadline_misses, null);
  assert.ok(Math.abs(report.classes[0].attainment - (1 - late / report.classes[0].arrived)) < 1e-12);
  assert.equal(report.classes[1].attainment, 1);
  assert.equal(report.slo[0].class, 'chat');
  const turns = rows.filter((row) => row.class === 'batch');
  assert.ok(turns.every((row) => ['0', '1', '2'].includes(row.turn)));
  assert.ok(turns.filter((row) => row.turn === '1').every((row) => rows[row.id - 1].session === row.session));
  assert.ok(report.fairness > 0.5 && report.fairness <= 1);
  const wrong = servecast('validate', chat, '--set', 'slo=[{"metric":"ttft","limit_ms":60,"class":"nobody"}]');
  assert.equal(wrong.status, 2);
  assert.match(wrong.stderr, /\/slo\/0\/class: found "nobody"/);
});

test('Run_Batches_HaveARowPerStep', () => {
  const { report, batches } = runWithFiles(['batches'], '--set', 'workload.requests=300');
  const rows = table(batches);
  assert.equal(rows.length, report.steps);
  assert.equal(sum(rows, 'prefill_tokens'), report.prompt_tokens);
  assert.equal(sum(rows, 'decode_tokens'), report.output_tokens - report.completed);
  assert.ok(rows.every((of, i) => Number(of.batch) === i && Number(of.start_s) >= Number(rows[i - 1]?.end_s ?? 0)));
  assert.equal(rows.at(-1).end_s, report.simulated_s.toFixed(9));
  assert.equal(
    Math.max(...rows.map((of) => Number(of.kv_blocks))),
    Math.round(report.kv.peak_usage * report.kv.blocks),
  );
});

test('Run_Series_HasWhatTheReportHas', () => {
  const { json, series } = runWithFiles(['json', 'series'], '--set', 'workload.requests=300');
  const columns = JSON.parse(json).series;
  const rows = table(series);
  for (const name of Object.keys(rows[0])) {
    assert.deepEqual(
      rows.map((of) => Number(of[name])),
      columns[name],
      name,
    );
  }
  assert.ok(rows.every((of) => Number(of.series_mfu) <= 1 && Number(of.series_bandwidth_use) <= 1));
});

test('Run_ChromeTrace_HasStepsRequestsAndCounters', () => {
  const { report, ...files } = runWithFiles(['chrome-trace'], '--set', 'workload.requests=100');
  const events = JSON.parse(files['chrome-trace']).traceEvents;
  const steps = events.filter((event) => event.ph === 'X');
  assert.equal(steps.length, report.steps);
  for (const [i, step] of steps.entries()) {
    assert.ok(i === 0 || step.ts >= steps[i - 1].ts + steps[i - 1].dur - 0.001);
  }
  for (const name of ['queue', 'prefill', 'decode']) {
    for (const ph of ['b', 'e']) {
      assert.equal(
        events.filter((event) => event.ph === ph && event.name === name).length,
        report.completed,
        `${ph} ${name}`,
      );
    }
  }
  for (const name of ['requests', 'kv_blocks', 'batch_tokens']) {
    assert.equal(events.filter((event) => event.ph === 'C' && event.name === name).length, report.steps);
  }
});

test('Run_ChromeTrace_HasAThreadForEachPipelineStage', () => {
  const { report, ...files } = runWithFiles(
    ['chrome-trace', 'batches'],
    '--set',
    'workload.requests=50',
    '--set',
    'cluster.pools.0.pipeline_parallel=3',
    '--set',
    'engine.async_scheduling=false',
  );
  const events = JSON.parse(files['chrome-trace']).traceEvents;
  assert.equal(report.pipeline.stages, 3);
  assert.equal(report.gpus, 3);
  const named = events.filter((event) => event.ph === 'M' && event.name === 'thread_name');
  assert.deepEqual(
    named.map((event) => event.args.name),
    ['stage 0', 'stage 1', 'stage 2'],
  );
  const rows = table(files.batches);
  assert.equal(rows.length, report.steps);
  for (const stage of [0, 1, 2]) {
    const spans = events.filter((event) => event.ph === 'X' && event.tid === stage);
    assert.equal(spans.length, report.steps);
    for (const [i, span] of spans.entries()) {
      assert.ok(i === 0 || span.ts >= spans[i - 1].ts + spans[i - 1].dur - 0.001, 'a stage has one batch at a time');
    }
  }
});

const tight = [
  '--set',
  'engine.num_gpu_blocks_override=600',
  '--set',
  'workload.requests=300',
  '--set',
  'engine.enable_prefix_caching=false',
];

test('Run_BlisRules_WriteStepsAndTheirMarks', () => {
  for (const compat of ['blis', 'blis-2026-02']) {
    const { report, batches, requests, ...files } = runWithFiles(
      ['batches', 'requests', 'chrome-trace'],
      '--set',
      `engine.compat=${compat}`,
      ...tight,
    );
    assert.ok(report.preemptions > 0);
    const rows = table(batches);
    assert.equal(rows.length, report.steps);
    assert.equal(sum(rows, 'finished'), report.completed);
    assert.equal(sum(rows, 'preempted'), report.preemptions);
    assert.ok(
      Math.abs(Math.max(...rows.map((of) => Number(of.kv_blocks))) - report.kv.peak_usage * report.kv.blocks) < 1e-6,
    );
    const events = JSON.parse(files['chrome-trace']).traceEvents;
    const marks = (name) => events.filter((event) => event.ph === 'n' && event.name === name);
    assert.equal(marks('preempted').length, report.preemptions);
    assert.equal(marks('left').length, report.completed);
    assert.equal(marks('scheduled').length, report.completed + report.preemptions);
    for (const tid of new Set(events.filter((event) => event.ph === 'X').map((event) => event.tid))) {
      const spans = events.filter((event) => event.ph === 'X' && event.tid === tid);
      assert.ok(
        spans.every((span, i) => i === 0 || span.ts >= spans[i - 1].ts + spans[i - 1].dur - 0.001),
        'steps of a thread do not overlap',
      );
    }
  }
});

test('Run_Steps_CountWhoFinishedAndWhoWasPreempted', () => {
  const { report, batches } = runWithFiles(['batches'], ...tight);
  assert.ok(report.preemptions > 0);
  assert.equal(sum(table(batches), 'finished'), report.completed);
  assert.equal(sum(table(batches), 'preempted'), report.preemptions);
});

test('Run_Requests_SayWhyEachEnded', () => {
  const { report, requests } = runWithFiles(
    ['requests'],
    '--set',
    'engine.max_model_len=400',
    '--set',
    'measure.horizon_s=20',
    '--set',
    'workload.classes=[{"name":"patient"},{"name":"hasty","timeout_s":0.5}]',
  );
  const rows = table(requests);
  for (const [reason, count] of Object.entries(report.finish_reasons)) {
    assert.equal(rows.filter((row) => row.finish_reason === reason).length, count, reason);
  }
  const { stop, length, dropped, timed_out: timedOut, unfinished, rejected } = report.finish_reasons;
  assert.ok(stop > 0 && length > 0 && dropped > 0 && timedOut > 0 && unfinished > 0);
  assert.deepEqual(
    [stop + length, length, dropped, timedOut],
    [report.completed, report.length_capped, report.dropped, report.timed_out],
  );
  assert.equal(rejected, 0);
  assert.equal(stop + length + dropped + timedOut + unfinished, report.arrived);
  assert.ok(
    rows
      .filter((row) => row.finish_reason === 'length')
      .every((row) => Number(row.prompt_tokens) + Number(row.output_tokens) === 400),
  );
});

test('Run_VidurNames_AreVidursAndInSeconds', () => {
  const { report, requests, batches } = runWithFiles(
    ['requests', 'batches'],
    '--names',
    'vidur',
    '--set',
    'workload.requests=200',
  );
  const rows = table(requests);
  assert.equal(rows.length, report.completed);
  assert.ok(Math.abs((1000 * sum(rows, 'request_e2e_time')) / rows.length - report.e2e_ms.mean) < 1e-6);
  assert.ok(Math.abs((1000 * sum(rows, 'prefill_e2e_time')) / rows.length - report.ttft_ms.mean) < 1e-6);
  assert.equal(sum(table(batches), 'batch_num_tokens'), report.prompt_tokens + report.output_tokens - report.completed);
  assert.equal(servecast('run', chat, '--names', 'orca').status, 2);
});

test('Run_VidurNames_ExecutionAndPreemptionAddUpToTheTime', () => {
  const options = [
    '--names',
    'vidur',
    '--set',
    'workload.requests=200',
    '--set',
    'engine.enable_prefix_caching=false',
    '--set',
    'engine.request_overhead_ms=0',
    '--set',
    'engine.prompt_token_overhead_us=0',
    '--set',
    'engine.delivery_overhead_us=0',
    '--set',
    'engine.host_stalls_per_s=0',
  ];
  for (const policy of ['vllm_v0', 'lightllm', 'sarathi']) {
    const rows = table(runWithFiles(['requests'], ...options, '--set', `scheduler.policy=${policy}`).requests);
    for (const row of rows) {
      const time = (name) => Number(row[`request_${name}`]);
      const parts = time('scheduling_delay') + time('execution_time') + time('preemption_time');
      assert.ok(Math.abs(parts - time('e2e_time')) < 1e-9, JSON.stringify(row));
    }
    // Of these three only sarathi has decodes in every batch.
    assert.equal(sum(rows, 'request_preemption_time') > 0, policy !== 'sarathi', policy);
  }
});

test('Run_VidurNames_NumberTheBatchesOfAllReplicas', () => {
  const { report, batches } = runWithFiles(
    ['batches'],
    '--names',
    'vidur',
    '--set',
    'workload.requests=50',
    '--set',
    'cluster={"pools":[{"replicas":3}],"router":{"policy":"kv_aware"}}',
  );
  assert.deepEqual(
    table(batches).map((batch) => Number(batch['Batch Id'])),
    [...Array(report.steps).keys()],
  );
  assert.equal(
    report.replicas.requests.reduce((a, b) => a + b),
    50,
  );
});

test('Run_BlocksOfAStep_AreThoseOfItsOwnReplica', () => {
  const of = (blocks) => ({ replicas: 1, engine: { num_gpu_blocks_override: blocks } });
  const cluster = JSON.stringify({ pools: [of(1000), of(100), of(5000)] });
  const lengths = ['prompt', 'output'].flatMap((side) => [
    '--set',
    `workload.${side}_tokens=${JSON.stringify({ distribution: 'fixed', value: side === 'prompt' ? 160 : 2 })}`,
  ]);
  const { batches, 'chrome-trace': trace } = runWithFiles(
    ['batches', 'chrome-trace'],
    '--set',
    'workload.requests=3',
    '--set',
    `cluster=${cluster}`,
    ...lengths,
  );
  const rows = table(batches);
  assert.deepEqual([...new Set(rows.map((row) => row.replica))], ['0', '1', '2']);
  for (const row of rows)
    assert.equal(Number(row.kv_blocks), Number(row.prefill_tokens) > 0 ? 10 : 11, JSON.stringify(row));
  const counters = JSON.parse(trace).traceEvents.filter(({ name, ph }) => name === 'kv_blocks' && ph === 'C');
  assert.deepEqual(counters.map(({ args }) => args.used).sort(), rows.map((row) => Number(row.kv_blocks)).sort());
  // lightllm counts tokens; a report's blocks are those of all others.
  const tokens = table(
    runWithFiles(
      ['batches'],
      '--set',
      'workload.requests=3',
      '--set',
      'scheduler.policy=lightllm',
      '--set',
      'engine.enable_prefix_caching=false',
      ...lengths,
    ).batches,
  );
  for (const row of tokens)
    assert.ok(Number(row.kv_blocks) >= 10 && Number(row.kv_blocks) <= 3 * 11, JSON.stringify(row));
});

test('Run_FilesThatCannotBe_ExitBeforeTheRun', () => {
  const nowhere = servecast('run', chat, '--batches', join(tmpdir(), 'no such folder', 'batches.csv'));
  assert.equal(nowhere.status, 2);
  assert.equal(nowhere.stdout, '');
  assert.match(nowhere.stderr, /cannot be written/);
  const vidur = servecast(
    'run',
    chat,
    '--set',
    'engine.compat=blis',
    '--names',
    'vidur',
    '--requests',
    join(tmpdir(), 'none.csv'),
  );
  assert.equal(vidur.status, 2);
  assert.match(vidur.stderr, /BLIS's rules/);
});

test('Run_SeriesOfReplicasThatComeAndGo_AreInTheFile', () => {
  const { series } = runWithFiles(
    ['series'],
    ...['--once', '--set', 'workload.requests=400', '--set', 'workload.arrivals.rate_per_s=10'],
    ...['--set', 'cluster.scaling={"policy":"schedule","schedule":[[10,3],[25,1]],"engine_s":2,"weights_gb_s":10}'],
  );
  const [head, ...rows] = series
    .trim()
    .split('\n')
    .map((line) => line.split(','));
  const column = (name) => rows.map((row) => Number(row[head.indexOf(name)]));
  assert.equal(Math.max(...column('series_replicas_up')), 3);
  assert.ok(Math.max(...column('series_replicas_starting')) > 0);
});

test('Catalog_NamesEveryColumnOfEveryFile', () => {
  const { requests, batches, series } = runWithFiles(
    ['requests', 'batches', 'series'],
    '--set',
    'workload.requests=10',
  );
  const { columns } = JSON.parse(servecast('catalog', '--json').stdout);
  const text = servecast('catalog').stdout;
  for (const [kind, csv] of [
    ['request', requests],
    ['batch', batches],
    ['series', series],
  ]) {
    // Replicas stay, so the file has nothing of them; the next test has one of them.
    const names = columns
      .filter((column) => column.kind === kind && !/^series_(prefill_|decode_)?replicas_/.test(column.name))
      .map((column) => column.name);
    assert.deepEqual(
      csv
        .split('\n')[0]
        .split(',')
        .filter((name) => name !== 'id'),
      names,
    );
    for (const name of names) assert.match(text, new RegExp(`^  ${kind} +${name} `, 'm'));
  }
});

test('Coefficients_EachListedSet_CanBeUsed', () => {
  const ids = servecast('coefficients', 'llama-3.1-8b')
    .stdout.trim()
    .split('\n')
    .map((line) => line.split(/\s+/)[0]);
  assert.ok(ids.length > 0);
  for (const id of ids) assert.equal(servecast('validate', chat, '--coefficients', id).status, 0, id);
  assert.equal(servecast('validate', chat, '--coefficients', 'nobody').status, 2);
});

test('CompareBackends_RunsTheSameRequestsUnderEach', () => {
  const { status, stdout } = servecast('compare', chat, '--backends', '--set', 'workload.requests=200');
  assert.equal(status, 0);
  assert.equal(row(stdout, 'completed').filter((word) => word === '200').length, 6);
  for (const backend of ['analytic', 'operators', 'roofline', 'physics', 'blackbox'])
    assert.match(stdout, new RegExp(`"backend":"${backend}"`));
});

test('Estimate_StandsBesideTheSimulation', () => {
  const { status, stdout } = servecast('estimate', chat, '--set', 'latency.backend=physics');
  assert.equal(status, 0);
  const [closed, simulated] = row(stdout, 'TPOT mean ms').map(Number);
  assert.ok(Math.abs(closed / simulated - 1) < 0.1, stdout);
  assert.equal(servecast('estimate', chat, '--set', 'workload.arrivals={"process":"closed_loop"}').status, 2);
  // What comes behind the first step is no wait for it, and stalls are short beside their interval.
  const waits = (...set) => servecast('estimate', chat, ...set).stdout.match(/both waits ms .*/)[0];
  const stalls = ['--set', 'engine.host_stall_ms=1e6', '--set', 'engine.host_stalls_per_s=1000'];
  assert.equal(waits(...stalls), waits('--set', 'engine.delivery_overhead_us=0', '--set', 'engine.host_stall_ms=0'));
  const delivery = Number(servecast('estimate', chat, ...stalls).stdout.match(/delivery ms +([\d.e+]+)/)[1]);
  assert.ok(delivery > 1 && delivery < 5, `${delivery}`);
  for (const [setting, path] of [
    ['engine.max_loras=2', '/engine/max_loras'],
    ['workload.arrivals.max_concurrency=4', '/workload/arrivals/max_concurrency'],
    ['engine.speculative={"method": "ngram_gpu"}', '/engine/speculative/method'],
  ]) {
    const refused = servecast('estimate', chat, '--set', setting);
    assert.equal(refused.status, 2, setting);
    assert.match(refused.stderr, new RegExp(`${path}: found .*allowed .* for an estimate`));
  }
  const four = servecast(
    'estimate',
    chat,
    '--set',
    'cluster.pools.0.replicas=4',
    '--set',
    'workload.arrivals.rate_per_s=160',
  ).stdout;
  assert.doesNotMatch(four, /overloaded/);
  assert.deepEqual(four.match(/at most [\d.]+/)[0], servecast('estimate', chat).stdout.match(/at most [\d.]+/)[0]);
});

test('CoefficientFile_IsRead_WarnedOf_OrRefused', () => {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  const file = join(folder, 'trained.json');
  const trained = {
    spec_version: '1.0',
    variant: 'corrected',
    alpha_target: 'arrived_to_queued',
    trained_on: {
      model: 'Llama-3.1-8B',
      hardware: 'A100',
      tp: 1,
      engine_version: '0.11.0',
      training_date: '2026-01-01',
      n_samples_alpha: 1,
      n_samples_beta: 1,
      lambda_alpha: 1,
      lambda_beta: 1,
      gamma: 0.3,
      hold_out_rmse_alpha: 1,
      hold_out_rmse_beta: 1,
    },
    alpha_coefficients: Array(11).fill(0),
    beta_coefficients: [...Array(15).fill(0), 500],
  };
  const validate = (changes) => {
    writeFileSync(file, JSON.stringify({ physics_coefficients: { ...trained, ...changes } }));
    return servecast('validate', chat, '--coefficients', file);
  };
  const good = validate({});
  assert.equal(good.status, 0, good.stderr);
  assert.match(good.stderr, /warning: .*A100/);
  assert.match(good.stdout, /faster than light/);
  assert.match(good.stdout, /beta 1 \(arithmetic of prefill\) is 0/);
  for (const bad of [{ spec_version: '2.0' }, { beta_coefficients: [1, 2, 3] }, { trained_on: {} }]) {
    assert.equal(validate(bad).status, 2, JSON.stringify(bad));
  }
  rmSync(folder, { recursive: true });
});

function withFile(name, text, use) {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  try {
    const file = join(folder, name);
    writeFileSync(file, text);
    return use(file, folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('Trace_WhatItWasReadAs_IsSaid', () => {
  withFile('t.csv', 'Timestamp,Request tokens,Response tokens\n0,10,5\n1,20,5\n', (file) => {
    const { status, stdout, stderr } = servecast('run', chat, '--trace', file);
    assert.equal(status, 0);
    assert.match(
      stderr,
      /read as CSV with named columns: columns Timestamp \(s\), Request tokens, Response tokens; 2 requests/,
    );
    assert.equal(JSON.parse(stdout).first_run.completed, 2);
  });
});

test('Trace_OfLengthsAlone_LeavesTheArrivals', () => {
  withFile('t.csv', 'input_tokens,output_tokens\n10,5\n20,5\n', (file) => {
    const { status, stdout, stderr } = servecast('run', chat, '--trace', file, '--set', 'workload.requests=30');
    assert.equal(status, 0, stderr);
    assert.match(stderr, /lengths only/);
    const report = JSON.parse(stdout).first_run;
    assert.equal(report.completed, 30);
    assert.equal(report.prompt_tokens, 15 * 30);
  });
});

test('Trace_BadLines_AreNamedAndTheRestCounted', () => {
  withFile('t.csv', `arrival_s,input_tokens,output_tokens\n${'x,1,1\n'.repeat(500)}`, (file) => {
    const { status, stderr } = servecast('run', chat, '--trace', file);
    assert.equal(status, 2);
    assert.equal(stderr.trim().split('\n').length, 101);
    assert.match(stderr, /t\.csv, line 2, column 1: found "x" as arrival_s, allowed seconds/);
    assert.match(stderr, /and 400 more malformed lines/);
  });
});

test('FitTrace_Scenario_RunsAndIsNearTheTrace', () => {
  const rows = Array.from({ length: 2000 }, (_, i) => `${i * 0.5},${100 + (i % 50)},${10 + (i % 7)}`);
  withFile('t.csv', `arrival_s,input_tokens,output_tokens\n${rows.join('\n')}\n`, (file, folder) => {
    const out = join(folder, 'fit.json');
    const { status, stdout, stderr } = servecast('fit-trace', file, '--json', out);
    assert.equal(status, 0, stderr);
    assert.equal(JSON.parse(stdout).requests, 2000);
    assert.equal(row(stderr, 'requests')[1], '2,000');
    assert.match(stderr, /prompt p99/);
    const report = JSON.parse(servecast('run', out).stdout).first_run;
    assert.equal(report.completed, 2000);
    assert.ok(Math.abs(report.prompt_tokens / 2000 - 124.5) < 2);
  });
  assert.equal(servecast('fit-trace').status, 2);
  assert.equal(servecast('fit-trace', 'nowhere.csv').status, 2);
});

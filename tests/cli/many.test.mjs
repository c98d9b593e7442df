// Commands over many scenarios, and for CI: sweep, merge, check.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { inFolder } from '../in_folder.mjs';
import { command } from '../command.mjs';

const chat = 'llama-3.1-8b-h100-chat';
const rate = (value) => ['--set', `workload.arrivals.rate_per_s=${value}`];
const over = ['--over', 'workload.arrivals.rate_per_s=20,40,60', '--over', 'engine.max_num_seqs=64,256'];
const sweep = ['sweep', chat, '--once', '--set', 'workload.requests=200', ...over];

function servecast(...words) {
  const { status, stdout, stderr } = spawnSync(command, words, { encoding: 'utf8', maxBuffer: 2 ** 28 });
  return { status, stdout, stderr };
}

test('Sweep_EveryCombination_IsALineWithItsReport', () => {
  const { status, stdout } = servecast(...sweep);
  assert.equal(status, 0);
  const lines = stdout.trimEnd().split('\n').map(JSON.parse);
  assert.deepEqual(
    lines.map(({ over: values }) => Object.values(values)),
    [20, 40, 60].flatMap((a) => [64, 256].map((b) => [a, b])),
  );
  const alone = servecast(
    'run',
    chat,
    '--once',
    '--set',
    'workload.requests=200',
    ...rate(60),
    '--set',
    'engine.max_num_seqs=64',
  );
  assert.deepEqual(lines[4].report, JSON.parse(alone.stdout));
});

test('Sweep_APointThatCannotRun_HasItsIssues', () => {
  const { status, stdout } = servecast(
    'sweep',
    chat,
    '--once',
    '--over',
    'engine.block_size=16,-1',
    '--over',
    'name="a,b",c',
  );
  assert.equal(status, 0);
  const lines = stdout.trimEnd().split('\n').map(JSON.parse);
  assert.equal(lines.length, 4);
  assert.equal(lines[0].report.name, 'a,b');
  assert.equal(lines[2].report, undefined);
  assert.equal(lines[2].issues[0].path, '/engine/block_size');
});

test('Merge_ShardsInAnyNumberAndOrder_AreTheSameBytes', () => {
  const whole = servecast(...sweep, '--threads', '1').stdout;
  assert.equal(servecast(...sweep, '--threads', '5').stdout, whole);
  inFolder((_path, folder) => {
    const shards = [1, 2, 3, 4].map((index) => {
      const file = join(folder, `${index}.jsonl`);
      writeFileSync(file, servecast(...sweep, '--shard', `${index}/4`).stdout);
      return file;
    });
    assert.equal(servecast('merge', ...shards.toReversed()).stdout, whole);
    // One was stopped within a line, and has been run again.
    const cut = join(folder, 'cut.jsonl');
    writeFileSync(cut, readFileSync(shards[1], 'utf8').slice(0, -100));
    const lacking = servecast('merge', shards[0], cut, shards[2], shards[3]);
    assert.deepEqual([lacking.status, lacking.stdout], [2, '']);
    assert.match(lacking.stderr, /missing points: 5/);
    assert.equal(servecast('merge', cut, ...shards).stdout, whole);
  });
});

test('Merge_WhatDoesNotBelongTogether_IsNamed', () => {
  inFolder((_path, folder) => {
    const [one, other, wrong] = ['one', 'other', 'wrong'].map((name) => join(folder, name));
    writeFileSync(one, servecast(...sweep).stdout);
    writeFileSync(other, servecast(...sweep, '--set', 'seed=5').stdout);
    writeFileSync(wrong, `${readFileSync(one, 'utf8').replace('"finished":true', '"finished":false')}junk\n`);
    assert.match(servecast('merge', one, other).stderr, /other:1.*is of sweep [0-9a-f]{16}/);
    const { status, stderr } = servecast('merge', one, wrong);
    assert.equal(status, 2);
    assert.match(stderr, /wrong:1.*point 0 differs from an earlier line/);
    assert.match(stderr, /wrong:7.*is no line of servecast sweep/);
    assert.equal(servecast('merge').status, 2);
  });
});

test('Sweep_WrongArguments_AreNamed', () => {
  for (const [words, message] of [
    [['sweep', chat], /needs --over/],
    [['sweep', chat, '--over', 'engine.block_size'], /--over: found engine.block_size, allowed path=a,b,c/],
    [['sweep', chat, '--over', 'engine.block_size=16,,32'], /--over: found/],
    [[...sweep, '--shard', '3/2'], /--shard: found 3\/2/],
    [[...sweep, '--threads', '0'], /--threads: found 0, allowed 1 to 1024/],
  ]) {
    const { status, stdout, stderr } = servecast(...words);
    assert.deepEqual([status, stdout], [2, ''], words.join(' '));
    assert.match(stderr, message);
  }
});

test('Check_ExitCode_IsTheCertainVerdict', () => {
  const met = servecast('check', chat);
  assert.equal(met.status, 0, met.stdout);
  assert.match(
    met.stdout,
    /^met +verdict: .*\nmet +TTFT p99 <= 200 ms: [\d.]+ ms \(90 %: [\d.]+ ms to [\d.]+ ms\), met with more than 99 %\n/,
  );
  const missed = servecast('check', chat, ...rate(60));
  assert.equal(missed.status, 1);
  assert.match(missed.stdout, /^missed +TPOT p99 <= 20 ms: /m);
  assert.equal(servecast('check', chat, ...rate(5000)).status, 1);
  // Between: by sampling alone it misses for certain.
  const between = servecast('check', chat, ...rate(50));
  assert.equal(between.status, 3, between.stdout);
  assert.match(between.stdout, /^undecided +verdict: .* with a probability of \d+ %;/);
  assert.equal(servecast('check', chat, ...rate(50), '--meets', '10', '--misses', '5').status, 3);
  assert.equal(servecast('check', chat, ...rate(50), '--misses', '60').status, 1);
  assert.equal(servecast('check', chat, '--meets', '5').status, 2);
  assert.equal(servecast('check', chat, '--set', 'model.preset=llama-3.1-70b').status, 1);
  inFolder((_path, folder) => {
    // One path, too short for batches: a miss is no certainty.
    const trace = join(folder, 'trace.csv');
    const rows = Array.from({ length: 50 }, (_, index) => `${index / 10},300,50`);
    writeFileSync(trace, `arrival_s,input_tokens,output_tokens\n${rows.join('\n')}\n`);
    const short = servecast('check', chat, '--trace', trace, '--set', 'slo.0.limit_ms=1');
    assert.equal(short.status, 3, short.stdout);
    assert.match(short.stdout, /^undecided +TTFT p99 <= 1 ms: [\d.]+ ms, one run$/m);
  });
  assert.equal(servecast('check', chat, '--set', 'slo=[]').status, 2);
});

test('Check_JUnitAndAnnotations_SayTheSame', () => {
  inFolder((_path, folder) => {
    const junit = join(folder, 'junit.xml');
    const name = ['--set', 'name=<a> & "b"'];
    const { status, stdout } = servecast('check', chat, ...rate(60), ...name, '--github', '--junit', junit);
    assert.equal(status, 1);
    assert.match(stdout, /^::error title=<a> & "b"%3A verdict::missed: /);
    assert.match(stdout, /^::error title=[^:]*TPOT p99 <= 20 ms::missed: [\d.]+ ms \(/m);
    const xml = readFileSync(junit, 'utf8');
    assert.match(xml, /<testsuite name="&lt;a&gt; &amp; &quot;b&quot;" tests="3" failures="3" skipped="0">/);
    assert.equal(xml.match(/<failure /g).length, 3);
  });
});

const plan = (...words) => {
  const { status, stdout, stderr } = servecast('plan', ...words);
  return { status, stderr, ...(stdout === '' ? {} : JSON.parse(stdout)) };
};

test('Plan_MinGpus_HasItsPoolsAndABound', () => {
  const { status, stderr, answer, least_gpus: least, pools } = plan('min-gpus', chat, ...rate(200));
  assert.equal(status, 0);
  assert.equal(answer.unit, 'GPUs');
  assert.ok(answer.low <= answer.value && answer.value <= answer.high && least < answer.value);
  assert.equal(pools[0].gpus, answer.value);
  assert.ok(pools[0].curve.length >= 2);
  assert.match(
    stderr,
    /^4 GPUs \(4 to 4\): 4 replicas; with fewer, .* No system could do with less than [\d.]+ GPUs\. With the forecast's error: \d+ replicas with 90 % probability, \d+ replicas at even odds\.$/m,
  );
});

test('Plan_Day_HasReplicasByTheHour', () => {
  const { status, stderr, answer, hours } = plan('day', chat, '--hours', '0.5,2');
  assert.equal(status, 0);
  assert.equal(answer.unit, 'GPU-hours');
  assert.deepEqual(
    hours.map(({ load, replicas }) => [load, replicas]),
    [
      [20, 1],
      [80, 2],
    ],
  );
  assert.match(
    stderr,
    /^3 GPU-hours \(3 to 3\) for 2 hours, with 1 to 2 replicas: 25 % less than with 2 throughout, \$7\.5/m,
  );
  for (const wrong of [[], ['--hours', '1,x'], ['--hours', '1,,2'], ['--hours', '0']]) {
    assert.equal(servecast('plan', 'day', chat, ...wrong).status, 2, wrong.join(' '));
  }
});

test('Plan_Growth_NamesTheMonthAndWhatIsNeeded', () => {
  const { status, stderr, answer, schedule } = plan(
    'growth',
    chat,
    '--percent',
    '12',
    '--months',
    '6',
    '--from',
    '2026-11',
  );
  assert.equal(status, 0);
  assert.deepEqual([answer.value, answer.unit], [1, 'months']);
  assert.deepEqual(
    schedule.map(({ gpus, needed_from }) => [gpus, needed_from]),
    [
      [1, '2026-11'],
      [2, '2027-01'],
    ],
  );
  assert.match(stderr, /^The targets break in 2027-01, 2 months from now.*: 2 GPUs are needed then\.$/m);
});

test('Plan_Drill_RunsEachAndJudgesIt', () => {
  const {
    status,
    drills,
    not_run: notRun,
  } = plan('drill', chat, '--set', 'cluster.pools.0.replicas=2', ...rate(40), '--seconds', '5');
  assert.equal(status, 0);
  assert.deepEqual(
    drills.map(({ drill, report }) => [drill, report.verdict.state]),
    [
      'as it is',
      'one replica fewer',
      'one replica at 70 % of its speed',
      'one replica fails for 153 s',
      'one replica twice as slow for 153 s',
      'a rolling update, 1 more and 0 down at a time',
      '2 times the load for 5 s',
    ].map((drill) => [drill, drill.includes('fails') ? 'near' : drill.includes('slow') ? 'misses' : 'meets']),
  );
  assert.deepEqual(notRun, [{ drill: 'a node of 8 replicas fails for 153 s', reason: 'it has all replicas' }]);
});

test('Plan_Tornado_TurnsEveryInput', () => {
  const { status, stderr, target, as_it_is: own, inputs } = plan('tornado', chat, ...rate(40));
  assert.equal(status, 0);
  assert.equal(target, 'TPOT p99 <= 20 ms');
  assert.equal(inputs[0].input, 'load');
  assert.ok(inputs[0].less.high < own.low && own.high < inputs[0].more.low);
  assert.match(stderr, /^TPOT p99 <= 20 ms, [\d.]+ ms, moves most with load \(/);
});

test('Plan_Cost_IsTheLoadAtWhichAnApiCostsAsMuch', () => {
  const { status, stderr, answer, own, api } = plan('cost', chat, '--input', '0.05', '--output', '0.1');
  assert.equal(status, 0);
  assert.equal(own.per_hour, 2.5);
  assert.ok(answer.low < answer.value && answer.value < answer.high);
  const share = (answer.value / 40) * (api.per_hour.value / own.per_hour);
  assert.ok(Math.abs(share - 1) < 1e-9, 'in proportion to the load');
  assert.match(stderr, /^The GPUs cost \$2\.5 an hour, \$1,825 a month of 730 hours; at 40 requests\/s/);
});

test('Plan_WrongQuestionsAndOptions_AreNamed', () => {
  for (const [words, message] of [
    [
      [],
      /found no question, allowed max-rate, min-gpus, growth, day, autoscale, drill, tornado, cost, speculation or search/,
    ],
    [['most', chat], /found most, allowed/],
    [['growth', chat], /needs --percent/],
    [['growth', chat, '--percent', '5', '--from', '2026-13'], /--from: found 2026-13/],
    [['max-rate', chat, '--percent', '5'], /unknown option --percent/],
    [['drill', chat, '--spike', 'nan'], /--spike: found nan, allowed a number/],
    [['growth', chat, '--percent', '0'], /growth: found 0 % a month, allowed 0\.1 to 1000/],
    [['drill', chat, '--spike', '0'], /spike: found 0, allowed 1 to 100/],
    [['min-gpus', chat, '--set', 'slo=[]'], /\/slo/],
    [['cost', chat, '--input', '-1'], /input: found -1, allowed 0 to 10000 \$ per million tokens/],
  ]) {
    const { status, stderr } = plan(...words);
    assert.equal(status, 2, words.join(' '));
    assert.match(stderr, message);
  }
});

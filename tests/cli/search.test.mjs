// servecast plan search: what it prints, that it is the same whoever computes it, and what it refuses.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import test from 'node:test';
import { command } from '../command.mjs';

const chat = 'llama-3.1-8b-h100-chat';
const axes = ['--over', 'hardware.preset=h100-sxm,l40s', '--over', 'model.quantization=none,fp8'];

function search(...words) {
  const { status, stdout, stderr } = spawnSync(command, ['plan', 'search', ...words], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  return { status, stdout, stderr, found: stdout === '' ? undefined : JSON.parse(stdout) };
}

test('Search_Cheapest_HasItsPriceItsPlaceAndItsReasons', () => {
  const { status, stderr, found } = search(chat, ...axes);
  assert.equal(status, 0, stderr);
  const { answer, cheapest, frontier, points, targets } = found;
  assert.equal(found.outcome, 'found');
  assert.deepEqual([answer.value, answer.unit], [2.5, '$/h']);
  assert.ok(answer.low <= answer.value && answer.value <= answer.high);
  assert.deepEqual(targets, ['TTFT p99 <= 200 ms', 'TPOT p99 <= 20 ms']);
  assert.equal(frontier[0], cheapest);
  assert.equal(points[cheapest].dollars_per_hour, answer.value);
  assert.deepEqual(
    points.map(({ id, values }) => [id, ...Object.values(values)]),
    [
      [0, 'h100-sxm', 'none'],
      [1, 'h100-sxm', 'fp8'],
      [2, 'l40s', 'none'],
      [3, 'l40s', 'fp8'],
    ],
  );
  for (const point of points) {
    const on = frontier.includes(point.id);
    assert.equal(point.reason === '', on, point.label);
    assert.ok(!on || point.rung === 'certain');
    if (point.dominated_by !== null) assert.ok(frontier.includes(point.dominated_by));
  }
  assert.ok(points[0].own);
  assert.match(points[2].reason, /^misses TPOT p99 <= 20 ms at any load/);
  const { meets, near } = found.counts;
  const close = near === 0 ? '' : `, ${near} ${near === 1 ? 'is' : 'are'} too close to call`;
  const said = '$2.50 an hour ($2.50 to $2.50): H100 SXM 80 GB, fp8, 1 replica.';
  assert.ok(stderr.includes(`${said} ${meets} of 4 designs keep the targets${close}.`), stderr);
});

test('Search_Threads_ChangeNoByte', () => {
  const [one, three] = ['1', '3'].map((threads) => search(chat, ...axes, '--threads', threads));
  assert.equal(one.status, 0);
  assert.ok(one.stdout === three.stdout, 'the bytes differ');
});

test('Search_LeastEnergy_HasItsColumnAndWhatIsNotKnown', () => {
  const { status, stderr, found } = search(chat, ...axes, '--least', 'energy');
  assert.equal(status, 0, stderr);
  const least = found.points[found.least_energy];
  assert.deepEqual([found.answer.unit, found.answer.value], ['J/token', least.j_per_output_token]);
  assert.ok(found.answer.low < found.answer.value && found.answer.value < found.answer.high);
  for (const point of found.points) {
    const known = point.values['hardware.preset'] === 'h100-sxm' && ['meets', 'near'].includes(point.state);
    assert.equal(point.j_per_output_token > 0, known, point.label);
    if (known) assert.ok(point.j_per_output_token >= least.j_per_output_token);
    else assert.deepEqual([point.j_per_output_token, point.mean_w], [null, null]);
  }
  assert.match(stderr, /^\d[\d.]* J per output token \([\d.]+ to [\d.]+\): H100 SXM 80 GB/);
  const { stdout } = spawnSync(command, ['plan', 'search', chat, ...axes, '--least', 'energy', '-o', 'text'], {
    encoding: 'utf8',
  });
  assert.match(stdout, /J\/token/);
  const other = search(chat, '--least', 'watts');
  assert.deepEqual(
    [other.status, other.stderr.split('\n')[0].includes('--least: found watts, allowed cost, energy')],
    [2, true],
  );
});

test('Search_GivenReplicas_AreAnAxis', () => {
  const { status, found } = search(chat, '--over', 'cluster.pools.0.replicas=1,2');
  assert.equal(status, 0);
  assert.deepEqual(
    found.points.map(({ gpus, state }) => [gpus, state]),
    [
      [1, 'meets'],
      [2, 'meets'],
    ],
  );
  assert.deepEqual(found.frontier, [0, 1]);
});

test('Search_NamedAxes_HaveTheirValuesUnlessTheyAreGiven', () => {
  const { status, found } = search(chat, '--axes', 'pp,roles', '--over', 'cluster.pools.*.pipeline_parallel=1,2');
  assert.equal(status, 0);
  assert.deepEqual(
    found.points.map(({ label }) => label),
    ['aggregated, PP 1', 'aggregated, PP 2', 'disaggregated, PP 1', 'disaggregated, PP 2'],
  );
  assert.deepEqual(
    found.points[2].pools.map(({ role }) => role),
    ['prefill', 'decode'],
  );
});

test('Search_Prices_AreOfOneList', () => {
  const gpus = ['--over', 'hardware.preset=h100-sxm,rtx-4090'];
  const { status, found } = search(chat, ...gpus, '--prices', 'on-demand');
  assert.equal(status, 0);
  assert.equal(found.answer.value, 6.88);
  assert.ok(found.points[0].own);
  assert.equal(found.points[1].state, 'refused');
  assert.match(found.points[1].reason, /found no price of rtx-4090 in the list on-demand/);
  const kept = search(chat, ...gpus, '--prices', 'on-demand', '--set', 'hardware.price_per_gpu_hour=3');
  assert.equal(kept.found.answer.value, 3);
});

test('Search_NothingThatHolds_IsSaid', () => {
  const { status, stderr, found } = search(chat, '--set', 'slo.1.limit_ms=1', '--over', 'model.quantization=none,fp8');
  assert.equal(status, 0);
  assert.deepEqual([found.outcome, found.answer, found.cheapest], ['none', null, null]);
  assert.match(stderr, /^None of 2 designs keeps the targets\.$/m);
});

test('Search_WrongOptionsAndAxes_AreNamed', () => {
  for (const [words, message] of [
    [[], /no scenario given/],
    [[chat, '--over', 'seed'], /--over: found seed, allowed path=a,b,c/],
    [[chat, '--over', 'seed=1', '--over', 'seed=2'], /found seed twice/],
    [[chat, '--over', 'hardwear.preset=l40s'], /\/hardwear.*did you mean "hardware"/],
    [
      [chat, '--axes', 'gpu,cpu'],
      /axes: found cpu, allowed gpu, roles, tp, pp, dp, ep, quantization, max_num_seqs, max_num_batched_tokens/,
    ],
    [[chat, '--prices', 'free'], /prices: found free, allowed on-demand or reserved-1y/],
    [[chat, '--threads', '0'], /--threads: found 0, allowed 1 to 1024/],
    [[chat, '--set', 'slo=[]'], /\/slo: found no target/],
    [[chat, '--over', `seed=${Array.from({ length: 10_001 }, (_, n) => n)}`], /more than 10000 designs/],
  ]) {
    const { status, stdout, stderr } = search(...words);
    assert.equal(status, 2, words.join(' ').slice(0, 80));
    assert.equal(stdout, '');
    assert.match(stderr, message);
  }
});

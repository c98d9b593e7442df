// servecast observe against a local server that behaves as asked and breaks as asked. Times are the
// machine's and are not asserted: counts, order, outcomes and the form of the result are.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { command } from '../command.mjs';
import { fakeServer } from './fake_server.mjs';

const { OPENAI_API_KEY: _none, ...environment } = process.env;

/** The command, beside servers of this process: so without blocking it. */
function servecast(words, { env = {}, program = command, started = () => undefined } = {}) {
  return new Promise((done) => {
    const child = spawn(program, words, { env: { ...environment, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    const said = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr']) child[name].on('data', (piece) => (said[name] += piece));
    started(child);
    child.on('close', (status) => done({ status, ...said }));
  });
}

/** `use` gets a server and a folder, which are gone when it is done. */
async function beside(settings, use) {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-observe-'));
  const server = await fakeServer(settings);
  try {
    await use(server, (name, text) => {
      const path = join(folder, name);
      if (text !== undefined) writeFileSync(path, text);
      return path;
    });
  } finally {
    server.stop();
    rmSync(folder, { recursive: true });
  }
}

/** A scenario with this workload. */
const scenario = (workload) =>
  JSON.stringify({
    schema: 1,
    model: { preset: 'llama-3.1-8b' },
    hardware: { preset: 'h100-sxm' },
    workload: {
      arrivals: { process: 'poisson', rate_per_s: 200 },
      prompt_tokens: { distribution: 'uniform', min: 5, max: 40 },
      output_tokens: { distribution: 'uniform', min: 2, max: 8 },
      ...workload,
    },
  });

/** A trace whose rows have prompts of 1, 2, 3 ... tokens, by which a server knows them. */
const rows = (count, output = 6) =>
  [
    'arrival_s,prompt_tokens,output_tokens',
    ...Array.from({ length: count }, (_, i) => `${i * 0.005},${i + 1},${output}`),
  ]
    .concat('')
    .join('\n');
const preset = 'llama-3.1-8b-h100-chat';

const observed = (path) => JSON.parse(readFileSync(path, 'utf8'));

test('Observe_AServer_SendsTheScenariosRequestsAndKeepsEachToken', () =>
  beside({}, async (server, file) => {
    const out = file('run.json');
    const mine = file('mine.json', scenario({ requests: 30 }));
    const { status, stdout, stderr } = await servecast(['observe', server.url, mine, '--salt', '7', '-o', out]);
    assert.equal(status, 0, stderr);
    assert.equal(stdout, '');
    assert.match(stderr, /model a-model: 30 requests/);
    assert.match(stderr, /^sent {5}30 of 30 requests in .* 30 answered whole$/m);
    const run = observed(out);
    assert.equal(run.completed, 30);
    assert.equal(run.failed, 0);
    assert.equal(run.model_id, 'a-model');
    assert.deepEqual(
      run.itls.map((gaps) => gaps.length + 1),
      run.output_lens,
    );
    assert.ok(run.ttfts.every((time) => time > 0) && run.itls.flat().every((gap) => gap >= 0));
    // What the server got is what the simulation has.
    const simulated = await servecast(['run', mine, '--once', '--requests', file('requests.csv')]);
    assert.equal(simulated.status, 0, simulated.stderr);
    const [head, ...lines] = readFileSync(file('requests.csv'), 'utf8')
      .trim()
      .split('\n')
      .map((l) => l.split(','));
    const column = (name) => lines.map((line) => Number(line[head.indexOf(name)]));
    assert.deepEqual(run.input_lens, column('prompt_tokens'));
    assert.deepEqual(run.output_lens, column('output_tokens'));
    run.servecast.due_times.forEach((due, i) => {
      assert.ok(Math.abs(due - column('arrival_s')[i]) < 1e-6);
      assert.ok(run.start_times[i] >= due);
    });
    for (const { body, path } of server.served) {
      assert.equal(path, '/v1/completions');
      assert.ok(body.stream && body.ignore_eos && body.stream_options.include_usage);
      assert.ok(body.prompt.every((id) => id >= 1000 && id < 31000));
    }
    // The same salt, the same prompts; without one, others.
    const prompts = (from) =>
      server.served
        .slice(from, from + 30)
        .map(({ body }) => String(body.prompt))
        .sort();
    await servecast(['observe', server.url, mine, '--salt', '7', '-o', out, '--warm-up', '0']);
    await servecast(['observe', server.url, mine, '-o', out, '--warm-up', '0']);
    assert.equal(server.served.length, 90);
    assert.deepEqual(prompts(30), prompts(0));
    assert.notDeepEqual(prompts(60), prompts(0));
  }));

test('Observe_ServersOfKnownLaws_CalibrateReadsThemInOrder', async () => {
  const tpot = [];
  for (const tokenMs of [2, 40]) {
    await beside({ law: { firstMs: 5, tokenMs } }, async (server, file) => {
      const out = file('run.json');
      const mine = file('mine.json', scenario({ requests: 20 }));
      assert.equal((await servecast(['observe', server.url, mine, '-o', out])).status, 0);
      tpot.push(observed(out).mean_tpot_ms);
      const { status, stderr } = await servecast(['calibrate', out, '--scenario', mine, '-o', file('pack.json')]);
      assert.equal(status, 0, stderr);
      assert.match(stderr, /found {4}run\.json: 20 requests of vllm bench serve, at their own times/);
      assert.match(stderr, /^ *run tpot, 1 /m);
      // Which of them twenty requests can tell is a matter of the server's jitter.
      const { parameters } = JSON.parse(readFileSync(file('pack.json'), 'utf8'));
      for (const { value } of Object.values(parameters)) assert.ok(Number.isFinite(value));
      const again = await servecast(['run', preset, '--once', '--trace', out]);
      assert.equal(again.status, 0, again.stderr);
    });
  }
  assert.ok(tpot[0] < tpot[1], `${tpot}`);
});

test('Observe_OpenLoop_WaitsForNoAnswer', () => {
  // Nobody is answered before all have come.
  let all;
  const everybody = new Promise((done) => (all = done));
  const behave = (_, index) => (index === 5 ? all() : everybody);
  return beside({ behave }, async (server, file) => {
    const { status, stderr } = await servecast([
      'observe',
      server.url,
      preset,
      '--trace',
      file('t.csv', rows(6)),
      '-o',
      file('o'),
    ]);
    assert.equal(status, 0, stderr);
    assert.equal(observed(file('o')).completed, 6);
    assert.equal(server.served.at(-1).atOnce, 6);
  });
});

test('Observe_MaxConcurrency_HoldsTheOthersBackInOrder', () =>
  beside({ law: { firstMs: 20, tokenMs: 1 } }, async (server, file) => {
    const out = file('o');
    const words = [
      'observe',
      server.url,
      preset,
      '--trace',
      file('t.csv', rows(8)),
      '--max-concurrency',
      '2',
      '-o',
      out,
    ];
    assert.equal((await servecast(words)).status, 0);
    const run = observed(out);
    assert.equal(run.max_concurrency, 2);
    assert.ok(server.served.every(({ atOnce }) => atOnce <= 2));
    assert.ok(run.start_times.every((time, i) => i < 2 || time > run.start_times[i - 2]));
    assert.ok(run.servecast.held_s.at(-1) > 0);
    assert.equal(run.servecast.held_s[0], 0);
  }));

test('Observe_Sessions_SendATurnOnceTheOneBeforeIsAnswered', () => {
  const answered = [];
  return beside({}, async (server, file) => {
    const mine = scenario({
      arrivals: { process: 'static' },
      prompt_tokens: { distribution: 'fixed', value: 10 },
      sessions: { turns: 3, think_time_s: 0.001 },
      requests: 6,
    });
    const { status, stderr } = await servecast(['observe', server.url, file('mine.json', mine), '-o', file('o')]);
    assert.equal(status, 0, stderr);
    const run = observed(file('o'));
    assert.equal(run.completed, 6);
    for (const first of [0, 3]) {
      for (const turn of [first, first + 1]) {
        const ended = run.start_times[turn] + run.ttfts[turn] + run.itls[turn].reduce((a, b) => a + b, 0);
        assert.ok(run.start_times[turn + 1] > ended);
      }
    }
    answered.push(...server.served);
    // Later turns repeat what was asked before.
    const prompts = answered.map(({ body }) => body.prompt).sort((a, b) => a.length - b.length);
    const begins = (long, short) => short.every((id, i) => long[i] === id);
    assert.ok(prompts.slice(2).every((long) => prompts.slice(0, 2).some((short) => begins(long, short))));
  });
});

test('Observe_AServerThatBreaks_SaysHowOfEachAndKeepsTheOthers', () => {
  const ways = [
    undefined,
    '429',
    '503',
    '500',
    'reset',
    'half',
    'early',
    'error',
    'whole',
    'garbage',
    'endless',
    'undone',
  ];
  const behave = ({ body }) => ways[body.prompt.length - 1];
  return beside({ behave }, async (server, file) => {
    const out = file('o');
    const words = ['observe', server.url, preset, '--trace', file('t.csv', rows(ways.length)), '-o', out];
    const { status, stderr } = await servecast(words);
    assert.equal(status, 0, stderr);
    const run = observed(out);
    assert.equal(server.served.length, ways.length);
    assert.deepEqual(run.servecast.outcomes, [
      'answered',
      'refused',
      'refused',
      'status',
      'unconnected',
      'cut_short',
      'cut_short',
      'malformed',
      'malformed',
      'malformed',
      'malformed',
      'answered',
    ]);
    const expected = [
      /^$/,
      /^status 429: queue is full$/,
      /^status 503: starting$/,
      /^status 500: no memory$/,
      /reset|empty reply/i,
      /closed|outstanding/i,
      /^the stream ended before \[DONE\]$/,
      /^engine died$/,
      /^found an answer without output/,
      /^found an event .*allowed an object of JSON/,
      /^found more than/,
      /^$/,
    ];
    for (const [i, error] of run.errors.entries()) assert.match(error, expected[i]);
    assert.equal(run.completed, 2);
    assert.equal(run.failed, 10);
    assert.deepEqual(
      run.itls.map((gaps) => gaps.length),
      [5, ...Array(10).fill(0), 5],
    );
    assert.match(stderr, /^failed {3}refused {6}2: status 429: queue is full$/m);
    const { status: read, stderr: warned } = await servecast(['calibrate', out, '--scenario', preset]);
    assert.equal(read, 0, warned);
    assert.match(warned, /10 requests failed and are left out/);
  });
});

test('Observe_Retries_TryAgainWhatNeverBegan', () => {
  const tries = new Map();
  const behave = ({ body }) => {
    const row = body.prompt.length;
    const before = tries.get(row) ?? 0;
    tries.set(row, before + 1);
    return [[undefined], ['429', '429'], ['reset'], ['half'], ['503', '503', '503']][row - 1][before];
  };
  return beside({ behave }, async (server, file) => {
    const out = file('o');
    const words = ['observe', server.url, preset, '--trace', file('t.csv', rows(5)), '--retries', '2', '-o', out];
    const { status, stderr } = await servecast(words);
    assert.equal(status, 0, stderr);
    const run = observed(out);
    assert.deepEqual(run.servecast.outcomes, ['answered', 'answered', 'answered', 'cut_short', 'refused']);
    assert.deepEqual(run.servecast.tries, [1, 3, 2, 1, 3]);
    assert.deepEqual(run.errors.slice(0, 3), ['', '', '']);
    // The start is that of the try that was answered; by how much it waited is there, too.
    assert.ok(run.start_times[1] - run.servecast.due_times[1] > run.servecast.late_s[1]);
  });
});

test('Observe_ServersThatAreSlow_EndByTimeoutsAndThePatienceOfClients', () => {
  const behave = ({ body }) => ['silent', 'stall', undefined][body.prompt.length - 1];
  return beside({ behave }, async (server, file) => {
    const out = file('o');
    const trace = ['--trace', file('t.csv', rows(3))];
    await servecast(['observe', server.url, preset, ...trace, '--timeout', '2.5', '--stall', '1', '-o', out]);
    let run = observed(out);
    assert.deepEqual(run.servecast.outcomes, ['timed_out', 'timed_out', 'answered']);
    assert.match(run.errors[0], /^silent for 1 s$/);
    assert.match(run.errors[1], /^silent for 1 s$/);
    await servecast(['observe', server.url, preset, ...trace, '--timeout', '0.3', '--warm-up', '0', '-o', out]);
    run = observed(out);
    assert.deepEqual(run.servecast.outcomes.slice(0, 2), ['timed_out', 'timed_out']);
    assert.match(run.errors[1], /^no whole answer within 0\.3 s$/);
    const mine = file(
      'mine.json',
      scenario({
        requests: 3,
        classes: [{ name: 'hasty', timeout_s: 0.3 }],
        arrivals: { process: 'static' },
        prompt_tokens: { distribution: 'fixed', value: 1 },
      }),
    );
    const { status } = await servecast(['observe', server.url, mine, '-o', out]);
    assert.equal(status, 1);
    assert.deepEqual(observed(out).servecast.outcomes, ['gave_up', 'gave_up', 'gave_up']);
  });
});

test('Observe_AnswerThatIsWhole_EndsWithItsLastEvent', { timeout: 120_000 }, () =>
  beside({ behave: () => 'open' }, async (server, file) => {
    const out = file('o');
    const words = ['observe', server.url, preset, '--trace', file('t.csv', rows(4)), '--max-concurrency', '1'];
    const { status, stderr } = await servecast([...words, '-o', out]);
    assert.equal(status, 0, stderr);
    assert.deepEqual(observed(out).servecast.outcomes, Array(4).fill('answered'));
    for (const { atOnce } of server.served) assert.equal(atOnce, 1);
  }),
);

test('Observe_Interrupted_WritesWhatHasCome', () => {
  let child;
  const behave = ({ body }, index) => {
    if (index === 3) child.kill('SIGINT');
    return body.prompt.length > 2 ? 'silent' : undefined;
  };
  return beside({ behave }, async (server, file) => {
    const out = file('o');
    // The last one is due in an hour.
    const trace = `${rows(4)}3600,5,6\n`;
    const words = ['observe', server.url, preset, '--trace', file('t.csv', trace), '-o', out];
    const { status, stderr } = await servecast(words, { started: (started) => (child = started) });
    assert.equal(status, 130, stderr);
    const run = observed(out);
    assert.ok(run.servecast.interrupted);
    assert.equal(run.servecast.planned, 5);
    assert.deepEqual(run.servecast.rows, [0, 1, 2, 3]);
    assert.deepEqual(run.servecast.outcomes.slice(2), ['interrupted', 'interrupted']);
    assert.deepEqual(readdirSync(file('.')).sort(), ['o', 't.csv']);
  });
});

test('Observe_AKey_IsSentToTheServerAndShownNowhere', () => {
  const env = { OPENAI_API_KEY: 'sk-very-secret' };
  const behave = ({ body }) => (body.prompt.includes(' ') ? undefined : '401');
  return beside({ behave }, async (server, file) => {
    const out = file('o');
    const words = ['observe', server.url, preset, '--trace', file('t.csv', rows(2)), '--prompts', 'words', '-o', out];
    const { status, stderr } = await servecast(words, { env });
    assert.equal(status, 0, stderr);
    assert.ok(server.served.every(({ headers }) => headers.authorization === 'Bearer sk-very-secret'));
    assert.ok(server.served.every(({ body }) => /^[a-z ]+$/.test(body.prompt)));
    assert.deepEqual(observed(out).errors, ['status 401: wrong key: Bearer [key]', '']);
    assert.doesNotMatch(stderr + readFileSync(out, 'utf8'), /secret/);
  });
});

test('Observe_WhatCannotBeObserved_IsRefusedBeforeItBegins', () =>
  beside({ warmUp: '500' }, async (server, file) => {
    const out = file('o');
    const refused = async (words, expected, env) => {
      const { status, stdout, stderr } = await servecast(['observe', ...words, '-o', out], { env });
      assert.deepEqual({ status, stdout }, { status: 2, stdout: '' }, stderr);
      for (const each of [expected].flat()) assert.match(stderr, each);
    };
    await refused([server.url, preset], /^URL: found status 500: no memory from http.* in the warm-up, allowed/m);
    await refused(
      ['http://127.0.0.1:1', preset],
      /^URL: found .*onnect.* allowed a server that answers it, or --model/m,
    );
    await refused(['http://127.0.0.1:1', preset, '--model', 'm'], /^URL: found .*onnect.*in the warm-up/m);
    await refused(
      ['localhost', 'no-such-file.json', '--retries', 'many'],
      [/^URL: found localhost, allowed http/m, /^--retries: found many, allowed a whole number/m],
    );
    await refused([server.url, 'no-such-file.json', '--trace', 'no-trace'], [/no-such-file\.json/, /no-trace/]);
    await refused(
      [server.url, preset, '--set', 'workload.requests=300000'],
      /^\/workload\/requests: found 300000 requests/m,
    );
    await refused([server.url, preset], /^OPENAI_API_KEY: found characters/m, { OPENAI_API_KEY: 'a b' });
    assert.deepEqual(readdirSync(file('.')), []);
    assert.equal(server.served.length, 0);
  }));

test('Observe_WithoutItsProgramBesideTheCommand_SaysHowToMakeIt', () =>
  beside({}, async (_, file) => {
    copyFileSync(command, file('lone'));
    const { status, stdout, stderr } = await servecast(['observe', '--help'], { program: file('lone') });
    assert.deepEqual({ status, stdout }, { status: 2, stdout: '' });
    assert.match(stderr, /servecast-observe cannot be run: it is not there, and \.\/dev build observe makes it/);
    const help = await servecast(['observe', '--help']);
    assert.equal(help.status, 0);
    assert.match(help.stdout, /^servecast observe URL FILE\|PRESET/);
  }));

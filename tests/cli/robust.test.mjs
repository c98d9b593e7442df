// The command on bad days: a trace for a scenario that says how to replay it, files that would
// overwrite each other, disks and memory that end, and documents made to be tiresome.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { gzipSync } from 'node:zlib';
import { inFolder } from '../in_folder.mjs';
import { boundless, command } from '../command.mjs';

const chat = 'llama-3.1-8b-h100-chat';

function run(program, words) {
  const { status, stdout, stderr } = spawnSync(program, words, { encoding: 'utf8', maxBuffer: 2 ** 28 });
  return { status, stdout, stderr };
}
const servecast = (...words) => run(command, words);
/** Under a limit of the shell. */
const limited = (limit, ...words) => run('bash', ['-c', `ulimit ${limit} && exec "$0" "$@"`, command, ...words]);

const hundredRows = `arrival_s,input_tokens,output_tokens\n${Array.from({ length: 100 }, (_, i) => `${i},200,20`).join('\n')}\n`;
const base = { schema: 1, model: { preset: 'llama-3.1-8b' }, hardware: { preset: 'h100-sxm' } };
function write(file, value) {
  writeFileSync(file, typeof value === 'string' ? value : JSON.stringify(value));
  return file;
}

// --- Replays -------------------------------------------------------------------------------------

test('Trace_ForAScenarioThatReplays_KeepsWhatItSaysOfTheReplay', () => {
  inFolder((path) => {
    const trace = write(path('t.csv'), hundredRows);
    const scenario = write(path('s.json'), {
      ...base,
      workload: {
        arrivals: { process: 'trace', rate_scale: 10, keep: 0.5 },
        prompt_tokens: { distribution: 'trace', scale: 3 },
        output_tokens: { distribution: 'fixed', value: 7 },
        prefix: { groups: 1, tokens: 500 },
      },
    });
    const { status, stdout, stderr } = servecast('run', scenario, '--trace', trace, '--json', path('r.json'));
    assert.equal(status, 0, stderr);
    assert.match(stderr, /output lengths are the scenario's own/);
    const { fingerprint, first_run: report } = JSON.parse(stdout);
    assert.ok(report.completed > 30 && report.completed < 70, `${report.completed} of 100 rows`);
    assert.equal(report.prompt_tokens, report.completed * (3 * 200 + 500));
    assert.equal(report.output_tokens, report.completed * 7);
    assert.ok(report.simulated_s < 11);
    // The resolved scenario runs again as it is, in run and in compare.
    const resolved = write(path('again.json'), JSON.parse(readFileSync(path('r.json'), 'utf8')).scenario);
    assert.equal(JSON.parse(servecast('run', resolved, '--trace', trace).stdout).fingerprint, fingerprint);
    const compared = servecast('compare', scenario, '--trace', trace, '--with', 'seed=2').stdout;
    assert.match(compared, new RegExp(`^completed +${report.completed} `, 'm'));
  });
});

test('Trace_ForTheExampleOfTheDocs_IsReplayedAsItSays', () => {
  const docs = readFileSync(new URL('../../docs/scenario.md', import.meta.url), 'utf8');
  const whole = JSON.parse(/```json\n(\{[\s\S]*?\n\})\n```/.exec(docs)[1]);
  const arrivals = JSON.parse(/^"arrivals": (\{"process": "trace".*\})$/m.exec(docs)[1]);
  inFolder((path) => {
    const scenario = write(path('s.json'), { ...whole, workload: { ...whole.workload, arrivals } });
    const { status, stdout, stderr } = servecast('run', scenario, '--trace', write(path('t.csv'), hundredRows));
    assert.equal(status, 0, stderr);
    // Half of 100 rows, three times.
    const { arrived } = JSON.parse(stdout).first_run;
    assert.ok(arrived > 100 && arrived < 200, `${arrived}`);
  });
});

// --- Files ---------------------------------------------------------------------------------------

test('Outputs_ThatWouldOverwriteAnInputOrEachOther_AreRefusedBeforeTheRun', () => {
  inFolder((path, folder) => {
    const scenario = write(path('s.json'), JSON.stringify({ ...base, workload: { preset: 'chat', requests: 10 } }));
    const trace = write(path('t.csv'), hundredRows);
    mkdirSync(path('sub'));
    symlinkSync(scenario, path('link.json'));
    linkSync(scenario, path('hard.json'));
    const before = readFileSync(scenario, 'utf8');
    const cases = [
      ['run', scenario, '--json', scenario],
      ['run', scenario, '--json', join(folder, 'sub', '..', 's.json').replace('sub/..', 'sub/../.')],
      ['run', scenario, '--json', path('link.json')],
      ['run', scenario, '--json', path('hard.json')],
      ['run', chat, '--trace', trace, '--requests', trace],
      ['run', chat, '--json', path('new'), '--requests', path('./new')],
      ['run', chat, '--json', `${folder}/sub/../new`, '--series', path('new')],
      ['fit-trace', trace, '--json', trace],
      ['fidelity', '--data', folder, '--record', trace],
      ['fidelity', '--data', folder, '--compared', path('new'), '--runs', path('./new')],
    ];
    for (const words of cases) {
      const { status, stdout, stderr } = servecast(...words);
      assert.equal(status, 2, words.join(' '));
      assert.equal(stdout, '');
      assert.match(stderr, /would be (overwritten, and it is read|written twice)/, words.join(' '));
    }
    assert.equal(readFileSync(scenario, 'utf8'), before);
    assert.equal(readFileSync(trace, 'utf8'), hundredRows);
    assert.ok(!existsSync(path('new')));
    assert.equal(
      servecast('run', scenario, '--json', '/dev/null', '--requests', '/dev/null').status,
      0,
      'nothing is lost there',
    );
  });
});

test('Names_ThatAreEmpty_AreRefused', () => {
  for (const option of ['--json', '--requests', '--trace', '--coefficients', '--set']) {
    const { status, stdout, stderr } = servecast('run', chat, option, '');
    assert.equal(status, 2, option);
    assert.equal(stdout, '');
    assert.match(stderr, /needs a value, found none/);
  }
  assert.equal(servecast('fit-trace', 't.csv', '--json', '').status, 2);
  assert.equal(servecast('fidelity', '--data', '').status, 2);
});

test('Outputs_OnADiskThatIsFull_LeaveWhatWasThere_AndSayNothingOfSuccess', () => {
  inFolder((path, folder) => {
    writeFileSync(path('requests.csv'), 'the old one');
    writeFileSync(path('r.json'), 'the old one, too');
    // A limit on the size of files ends a write as a full disk does.
    const { status, stdout, stderr } = limited(
      '-f 16',
      'run',
      chat,
      '--set',
      'workload.requests=5000',
      '--requests',
      path('requests.csv'),
      '--json',
      path('r.json'),
    );
    assert.equal(status, 2, stderr);
    assert.equal(stdout, '');
    assert.match(stderr, /requests\.csv: cannot be written: /);
    assert.equal(readFileSync(path('requests.csv'), 'utf8'), 'the old one');
    assert.equal(readFileSync(path('r.json'), 'utf8'), 'the old one, too');
    assert.deepEqual(readdirSync(folder).sort(), ['r.json', 'requests.csv']);
  });
});

test('Outputs_OfARunThatIsEnded_LeaveNothing', () => {
  inFolder((path, folder) => {
    writeFileSync(path('b.csv'), 'the old one');
    const { status, stdout } = run('timeout', [
      '-s',
      'TERM',
      '1',
      command,
      'run',
      chat,
      '--set',
      'workload.requests=5000000',
      '--batches',
      path('b.csv'),
    ]);
    assert.equal(status, 124);
    assert.equal(stdout, '');
    assert.deepEqual(readdirSync(folder), ['b.csv']);
    assert.equal(readFileSync(path('b.csv'), 'utf8'), 'the old one');
  });
});

test('Outputs_InThePlaceOfAFile_KeepItsModeAndLinks', () => {
  inFolder((path) => {
    writeFileSync(path('r.json'), 'old');
    chmodSync(path('r.json'), 0o640);
    symlinkSync('r.json', path('link.json'));
    assert.equal(servecast('run', chat, '--set', 'workload.requests=5', '--json', path('link.json')).status, 0);
    assert.equal(JSON.parse(readFileSync(path('r.json'), 'utf8')).first_run.completed, 5);
    assert.equal(statSync(path('r.json')).mode & 0o777, 0o640);
  });
});

test('Issues_NameTheFileAndTheRun', () => {
  inFolder((path) => {
    const bad = write(path('s.json'), { schema: 1, seed: -1 });
    assert.match(servecast('run', bad).stderr, /^[^\n]*s\.json, \/model: missing/m);
    assert.match(servecast('run', write(path('t.json'), 'nothing')).stderr, /t\.json: not JSON at line 1/);
    const good = write(path('g.json'), { ...base, workload: { preset: 'chat', requests: 10 } });
    assert.match(
      servecast('compare', good, '--set', 'seed=-1', '--with', 'seed=2').stderr,
      /g\.json, as given, \/seed: found -1/,
    );
    assert.match(
      servecast('compare', chat, '--set', 'seed=-1', '--with', 'seed=2').stderr,
      /^as given, \/seed: found -1/,
    );
    assert.match(servecast('run', good, '--set', 'hardware.memory_gib=2').stderr, /g\.json, \/model: .* does not fit/);
  });
});

test('Issues_OfATiresomeDocument_AreFewAndSafe', () => {
  inFolder((path) => {
    const members = Array.from({ length: 100_000 }, (_, i) => `"x${i}":1`).join(',');
    const { status, stderr } = servecast('validate', write(path('many.json'), `{${members}}`));
    assert.equal(status, 2);
    assert.equal(stderr.trimEnd().split('\n').length, 101);
    assert.match(stderr, /and 9990\d more issues$/m);
    assert.ok(stderr.length < 100_000, `${stderr.length}`);
    const raw = servecast(
      'validate',
      write(path('raw.json'), `{"\\u001b[31m\\u202e\u009b${'k'.repeat(1_000_000)}": 1, "\u2066": 2}`),
    ).stderr;
    assert.ok(raw.length < 5000, `${raw.length}`);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: it looks for them
    assert.doesNotMatch(raw.replaceAll('\n', ''), /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
    assert.ok(!servecast('run', chat, '--\u001b[31m').stderr.includes('\u001b'));
  });
});

// --- Memory and time -----------------------------------------------------------------------------

test('Run_BeyondTheMemoryOfItsProcess_IsRefusedWithTheNumbers', { skip: boundless }, () => {
  const { status, stdout, stderr } = limited('-v 300000', 'run', chat, '--set', 'workload.requests=5000000');
  assert.equal(status, 2, stderr);
  assert.equal(stdout, '');
  assert.match(
    stderr,
    /\/workload: found 5000000 requests, whose run takes about 1\.\d+ GB; allowed what fits 0\.\d+ GB \(the limit of its address space/,
  );
  assert.equal(limited('-v 300000', 'run', chat).status, 0, 'a small one runs');
});

test('Memory_ThatEndsUnforeseen_IsAnAnswerAndNoBug', { skip: boundless }, () => {
  inFolder((path) => {
    const rows = `arrival_s,input_tokens,output_tokens\n${'1,10,5\n'.repeat(2_000_000)}`;
    const { status, stderr } = limited('-v 40000', 'run', chat, '--trace', write(path('t.csv'), rows));
    assert.equal(status, 2, stderr);
    assert.match(stderr, /out of memory/);
  });
});

test('Trace_OfAGigabyteOfEmptyLines_IsGivenUpSoon', () => {
  inFolder((path) => {
    const file = write(path('t.csv.gz'), '');
    writeFileSync(file, gzipSync(Buffer.alloc(2 ** 26, '\n')));
    const { status, stderr } = servecast('run', chat, '--trace', file);
    assert.equal(status, 2);
    assert.match(stderr, /line 10000001, column 1: found more than 10000000 empty lines/);
  });
});

test('Fidelity_WithoutItsProgramBesideTheCommand_SaysHowToMakeIt', () => {
  inFolder((path) => {
    const lone = path('lone');
    copyFileSync(command, lone);
    const { status, stdout, stderr } = run(lone, ['fidelity', '--help']);
    assert.deepEqual({ status, stdout }, { status: 2, stdout: '' });
    assert.match(stderr, /servecast-fidelity cannot be run: it is not there, and \.\/dev build fidelity makes it/);
    symlinkSync(command, path('link'));
    assert.deepEqual(run(path('link'), ['fidelity', '--help']), servecast('fidelity', '--help'));
    assert.equal(servecast('fidelity', '--help').status, 0);
  });
});

test('Fidelity_OfNothingThatCanBeCompared_IsBadInput', () => {
  inFolder((path, folder) => {
    const empty = servecast('fidelity', '--data', folder);
    assert.equal(empty.status, 2);
    assert.match(empty.stderr, /holds no measurements/);
    write(path('notes.csv'), 'a,b\n1,2\n');
    assert.equal(servecast('fidelity', '--data', folder).status, 2);
  });
});

// --- Bugs ----------------------------------------------------------------------------------------

test('a crash says so on stderr, with the exit code of a bug', { skip: process.platform === 'win32' }, async () => {
  for (const signal of ['SIGSEGV', 'SIGFPE', 'SIGABRT']) {
    const child = spawn(command, ['mcp'], { stdio: ['pipe', 'pipe', 'pipe'] });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
    child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
    await once(child.stdout, 'data'); // it runs
    child.kill(signal);
    const [status] = await once(child, 'close');
    assert.equal(status, 70, signal);
    assert.match(stderr, new RegExp(`bug of servecast \\(${signal}`), signal);
  }
});

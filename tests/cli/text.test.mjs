// Answers as text, JSON, lines, tables and fields. Golden files are in tests/cli/text; of another engine they are written anew:
//   SERVECAST_UPDATE_GOLDENS=1 node --test tests/cli/text.test.mjs
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { command, slow } from '../command.mjs';

const folder = fileURLToPath(new URL('text/', import.meta.url));
const small = 'small.json';
const busy = ['--set', 'workload.arrivals.rate_per_s=150'];
/** A target that few runs decide. */
const median = ['--set', 'slo=[{"metric":"tpot","percentile":50,"limit_ms":12}]'];
/** A load that three replicas of few seats hold at its highest. */
const rising = [
  'engine.max_num_seqs=4',
  'workload.requests=6000',
  'workload.output_tokens.value=100',
  'workload.arrivals={"profile":"piecewise","rate_factors":[[0,2],[300,12],[600,2]],"rate_per_s":1}',
  'cluster.router.policy=least_outstanding',
  'cluster.scaling={"policy":"hpa","engine_s":20,"weights_gb_s":4}',
  'slo=[{"metric":"e2e","percentile":90,"limit_ms":3000}]',
].flatMap((each) => ['--set', each]);
const utf8 = { LC_ALL: 'C.UTF-8' };
const ascii = { LC_ALL: 'C' };
const update = process.env.SERVECAST_UPDATE_GOLDENS === '1';

function servecast(words, env = utf8) {
  const { status, stdout, stderr } = spawnSync(command, words, {
    cwd: folder,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, ...env },
    maxBuffer: 2 ** 28,
  });
  return { status, stdout, stderr };
}

/** What a terminal shows of a line: no colours, a letter each. */
const esc = String.fromCharCode(27);
const shown = (line) => [
  ...line
    .split(esc)
    .map((part, i) => (i === 0 ? part : part.slice(part.indexOf('m') + 1)))
    .join(''),
];

/** One option of a command to copy, with nothing else on its line: it is not broken. */
const isWholeOption = (line) => /^ {15}--set \S+( \\)?$/.test(line);

/** The text of a command is that of tests/cli/text/NAME.txt, in at most 80 columns. */
function golden(name, words, { env = utf8, status = 0, skip = false } = {}) {
  test(`Text_${name}_IsThatOfItsFile`, { skip }, () => {
    const answer = servecast([...words, '-o', 'text'], env);
    assert.equal(answer.status, status, answer.stderr);
    const path = `${folder}${name}.txt`;
    if (update) writeFileSync(path, answer.stdout);
    assert.equal(answer.stdout, readFileSync(path, 'utf8'), 'SERVECAST_UPDATE_GOLDENS=1 writes it anew');
    for (const line of answer.stdout.split('\n')) assert.ok(shown(line).length <= 80 || isWholeOption(line), line);
  });
}

golden('run', ['run', small]);
golden('run_ascii', ['run', small, ...busy, '--once'], { env: ascii });
golden('run_colour', ['run', small, ...busy, '--once', '--color=always']);
golden('run_unfit', ['run', small, '--set', 'model.preset=llama-3.1-70b'], { status: 2 });
golden('check', ['check', small]);
golden('check_ascii', ['check', small], { env: ascii, skip: slow });
golden('explain', ['explain', small]);
golden('advise', ['advise', small], { skip: slow });
test('Advise_ChangeThatCannotRun_SaysWhy', () => {
  const failing = ['cluster.pools.0.replicas=2', 'cluster.failures.mtbf_s=600', 'cluster.failures.restart_s=20'];
  const { stdout } = servecast(['advise', small, ...failing.flatMap((each) => ['--set', each]), '-o', 'text']);
  assert.match(stdout, /router prefix_affinity +not run\n/);
  assert.match(
    stdout,
    /\d not run: \/cluster\/failures: found\s.*allowed\s+none\s+with\s+cluster\.router\.policy\s+"prefix_affinity"/s,
  );
});
golden('compare', ['compare', small, '--once', '--with', 'model.quantization=fp8', '--with', 'engine.max_num_seqs=4']);
golden(
  'compare_bands',
  ['compare', small, '--with', 'workload.arrivals.rate_per_s=60', '--with', 'engine.max_num_seqs=4'],
  {
    skip: slow,
  },
);
golden('sweep', [
  ...['sweep', small, '--once', '--over', 'workload.arrivals.rate_per_s=20,150,-1'],
  ...['--over', 'engine.max_num_seqs=64,128'],
]);
golden('max_rate', ['plan', 'max-rate', small, ...median], { skip: slow });
golden('min_gpus', ['plan', 'min-gpus', small, ...median, ...busy], { skip: slow });
golden('growth', ['plan', 'growth', small, '--percent', '20', ...median], { skip: slow });
golden('tornado', ['plan', 'tornado', small, ...median], { skip: slow });
golden('autoscale', ['plan', 'autoscale', small, ...rising], { skip: slow });
golden('search', ['plan', 'search', small, '--axes', 'tp'], { skip: slow });
golden('search_ascii', ['plan', 'search', small, '--axes', 'tp'], { env: ascii, skip: slow });

test('Next_ThatIsTooLongForALine_CanBeCopied', () => {
  const words = ['run', small, '--set', 'workload.arrivals.rate_per_s=150', '--set', 'engine.max_num_seqs=64'];
  const { stdout } = servecast([...words, '-o', 'text'], utf8);
  const [, first] = /\n {2}next {7}servecast ((?:.*\\\n)+.*)/.exec(stdout);
  const again = execFileSync('sh', ['-c', `for word in ${first.replace(/ {2}#.*/, '')}; do echo "$word"; done`]);
  assert.deepEqual(String(again).trim().split('\n'), ['explain', ...words.slice(1)]);
});

test('Run_OfWhatNoPlanTakes_NamesNoPlanNext', () => {
  const scenarios = [['workload.arrivals.max_concurrency=64'], ['cluster.scaling={"policy":"hpa"}'], []];
  for (const sets of scenarios) {
    const words = [small, ...sets.flatMap((each) => ['--set', each])];
    const { stdout } = servecast(['run', ...words, '-o', 'text']);
    const next = stdout.slice(stdout.indexOf('\n  next ')).match(/servecast [a-z]+( [a-z]+-[a-z]+)?/g);
    assert.ok(next.length > 0, stdout);
    const planned = next.filter((each) => each.startsWith('servecast plan'));
    assert.equal(planned.length > 0, sets.length === 0, stdout);
    if (sets.length > 0) assert.equal(servecast(['plan', 'max-rate', ...words]).status, 2);
  }
});
test('Text_OfOneRun_LeavesJsonAsItIs', () => {
  const words = ['run', small, '--once'];
  const piped = servecast(words).stdout;
  assert.equal(servecast([...words, '-o', 'json']).stdout, piped);
  assert.deepEqual(JSON.parse(servecast([...words, '--output=jsonl']).stdout), JSON.parse(piped));
  assert.equal(servecast([...words, '-o', 'jsonl']).stdout.split('\n').length, 2);
});

test('Csv_OfOneRun_HasAColumnForEachFigure', () => {
  const report = JSON.parse(servecast(['run', small, '--once']).stdout);
  const [names, values, end] = servecast(['run', small, '--once', '-o', 'csv']).stdout.split('\n');
  assert.equal(end, '');
  const at = names.split(',').indexOf('fingerprint');
  assert.ok(at > 0 && values.includes(`,${report.fingerprint},`));
  assert.ok(names.includes('ttft_ms.p99') && names.includes('slo.1.value_ms'));
});

test('Fields_ForAShell_ArePrintedInOrder', () => {
  const report = JSON.parse(servecast(['run', small, '--once']).stdout);
  const fields = ['run', small, '--once', '--fields', 'verdict.state,slo.0.value_ms,gpus'];
  assert.equal(servecast(fields).stdout, `${report.verdict.state}\t${report.slo[0].value_ms}\t1\n`);
  assert.deepEqual(JSON.parse(servecast([...fields, '-o', 'json']).stdout), {
    'verdict.state': report.verdict.state,
    'slo.0.value_ms': report.slo[0].value_ms,
    gpus: 1,
  });
  assert.equal(servecast([...fields, '-o', 'csv']).stdout.split('\n')[0], 'verdict.state,slo.0.value_ms,gpus');
  const { status, stderr } = servecast(['run', small, '--once', '--fields', 'verdict.stat']);
  assert.equal(status, 2);
  assert.match(stderr, /no verdict\.stat; did you mean verdict\.state\?/);
});

test('Sweep_InEachForm_HasTheSamePoints', () => {
  const words = ['sweep', small, '--once', '--over', 'workload.arrivals.rate_per_s=20,40'];
  const lines = servecast(words).stdout;
  assert.equal(servecast([...words, '-o', 'jsonl']).stdout, lines);
  assert.deepEqual(
    JSON.parse(servecast([...words, '-o', 'json']).stdout),
    lines
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)),
  );
  const fields = [...words, '-o', 'csv', '--fields', 'over.workload.arrivals.rate_per_s,report.verdict.state'];
  assert.equal(
    servecast(fields).stdout,
    'over.workload.arrivals.rate_per_s,report.verdict.state\n20,meets\n40,meets\n',
  );
});

test('Sweep_InWhichNothingRan_IsBadInput', () => {
  const of = (rates) => servecast(['sweep', small, '--once', '--over', `workload.arrivals.rate_per_s=${rates}`]);
  assert.equal(of('-1,-2').status, 2);
  assert.equal(of('-1,20').status, 0);
});

test('Compare_AsJson_HasTheReports', () => {
  const words = ['compare', small, '--once', '--with', 'engine.max_num_seqs=4'];
  const { runs } = JSON.parse(servecast([...words, '-o', 'json']).stdout);
  assert.deepEqual(
    runs.map(({ set }) => set),
    ['', 'engine.max_num_seqs=4'],
  );
  assert.deepEqual(runs[0].report, JSON.parse(servecast(['run', small, '--once']).stdout));
});

test('Check_AsJson_SaysWhatItsLinesSay', { skip: slow }, () => {
  const lines = servecast(['check', small]).stdout.trimEnd().split('\n');
  const { status, stdout } = servecast(['check', small, '-o', 'json']);
  const answer = JSON.parse(stdout);
  assert.deepEqual([answer.exit, answer.outcome, answer.report.verdict.state], [status, 'met', 'meets']);
  assert.deepEqual(
    answer.findings.map(({ name, outcome, text }) => `${outcome.padEnd(10)} ${name}: ${text}`),
    lines,
  );
});

test('Issues_WithJsonAskedFor_AreJson', () => {
  for (const words of [
    ['run', small, '--set', 'workload.requests=-1', '-o', 'json'],
    ['run', 'no-such-file', '--output=json'],
    ['run', '--output', 'jsonl'],
    ['nonsense', '-o', 'json'],
  ]) {
    const { status, stdout, stderr } = servecast(words);
    assert.equal(status, 2);
    assert.equal(stdout, '');
    const { issues } = JSON.parse(stderr);
    assert.ok(issues.length > 0 && issues.every(({ path, message }) => typeof path === 'string' && message !== ''));
  }
});

test('Forms_ThatAreNone_AreRefused', () => {
  assert.match(servecast(['run', small, '-o', 'yaml']).stderr, /found yaml, allowed text, json, jsonl or csv/);
  assert.match(
    servecast(['run', small, '--color', 'yes']).stderr,
    /allowed auto, always or never; see servecast run --help/,
  );
});

const terminal = spawnSync('script', ['--version']).status === 0;
test('Text_OnATerminal_IsTheDefault', { skip: !terminal && 'script (util-linux) is not there' }, () => {
  const on = (env) =>
    spawnSync('script', ['-qec', `'${command}' run small.json --once`, '/dev/null'], {
      cwd: folder,
      encoding: 'utf8',
      env: { PATH: process.env.PATH, TERM: 'xterm', ...env },
    }).stdout;
  assert.ok(on(utf8).startsWith(`${esc}[32m✓ MEETS`));
  assert.match(on({ ...ascii, NO_COLOR: '1' }), /^\+ MEETS/);
});

test('Help_OfEachCommand_IsTheSameEitherWay', () => {
  assert.equal(servecast(['help', 'run']).stdout, servecast(['run', '--help']).stdout);
  assert.equal(servecast(['help']).stdout, servecast(['--help']).stdout);
  assert.match(servecast(['runn']).stderr, /unknown command runn; did you mean run\?/);
});

test('Init_AndShow_PrintDocumentsThatRun', () => {
  const init = servecast(['init']);
  assert.equal(servecast(['show', 'llama-3.1-8b-h100-chat']).status, 0);
  const of = (...words) =>
    spawnSync(command, words, { encoding: 'utf8', input: init.stdout, env: { PATH: process.env.PATH } });
  assert.equal(of('run', '-', '--once', '--set', 'workload.requests=20').status, 0);
  const changed = JSON.parse(servecast(['init', '--set', 'model.preset=qwen3-32b']).stdout);
  assert.equal(changed.model.preset, 'qwen3-32b');
  assert.equal(servecast(['init', '-o', small]).status, 2);
  assert.match(servecast(['show', 'llama-3.1-8b-h100-cat']).stderr, /did you mean llama-3\.1-8b-h100-chat\?/);
});

test('Set_ByAnotherName_SaysWhatIsMeant', () => {
  const said = (change) => servecast(['run', small, '--set', change]).stderr;
  assert.match(said('rate=5'), /did you mean workload\.arrivals\.rate_per_s/);
  assert.match(said('hardware.preset=H100'), /did you mean "h100-sxm"\?/);
  assert.match(said('model.preset=meta-llama/Llama-3.1-8B-Instruct'), /did you mean "llama-3\.1-8b"\?/);
});

test('Over_ARange_IsItsNumbers', () => {
  const rates = (range) =>
    servecast([
      ...['sweep', small, '--once', '--over', `workload.arrivals.rate_per_s=${range}`],
      ...['--set', 'workload.requests=5', '--fields', 'over.workload.arrivals.rate_per_s'],
    ]);
  assert.equal(rates('10..40:10').stdout, '10\n20\n30\n40\n');
  assert.equal(rates('1..3,7').stdout, '1\n2\n3\n7\n');
  assert.equal(rates('0.1..0.3:0.1').stdout, '0.1\n0.2\n0.3\n');
  assert.match(rates('40..10').stderr, /allowed path=a,b,c or path=10\.\.100:10/);
});

test('Outputs_NamedByADash_AreStdout', () => {
  const words = ['run', small, '--once', '--set', 'workload.requests=5'];
  const rows = servecast([...words, '--requests', '-'])
    .stdout.trimEnd()
    .split('\n');
  assert.equal(rows.length, 6);
  assert.match(servecast(['check', small, '--junit', '-']).stdout, /^<\?xml[\s\S]*<\/testsuites>\n$/);
});

test('Catalog_OfAKindOrAWord_IsPartOfTheWhole', { skip: slow }, () => {
  const all = JSON.parse(servecast(['catalog', '--json']).stdout);
  assert.deepEqual(JSON.parse(servecast(['catalog', 'gpus', '--json']).stdout), all.presets.hardware);
  assert.match(servecast(['catalog', 'models']).stdout, /^ {2}llama-3\.1-8b {2,}Llama-3\.1-8B$/m);
  const found = servecast(['catalog', 'field', 'rate_per_s']).stdout;
  assert.match(found, /^workload\.arrivals\.rate_per_s\n {4}number, [^\n]*req\/s/m);
  for (const line of found.split('\n')) assert.ok(line.length <= 80, line);
  const json = servecast(['catalog', 'gpus', '--json']).stdout;
  assert.equal(servecast(['catalog', 'gpus', '-o', 'json']).stdout, json);
  assert.equal(servecast(['catalog', 'gpus', '--output=json']).stdout, json);
  assert.equal(servecast(['catalog', 'models', '-o', 'text']).stdout, servecast(['catalog', 'models']).stdout);
  assert.match(servecast(['catalog', '-o', 'csv']).stderr, /-o: found csv, allowed text or json/);
  assert.equal(servecast(['catalog', 'nonsense']).status, 2);
  assert.equal(servecast(['catalog', 'field', 'no-such-word']).status, 2);
  // A word of its choices, or of what a field comes with.
  const planner = servecast(['catalog', 'field', 'dynamo']).stdout;
  assert.match(planner, /^cluster\.scaling\.policy$/m);
  assert.match(
    planner,
    /^cluster\.scaling\.optimization_target\n(?: {4}.*\n)+? {4}with cluster\.scaling\.policy dynamo$/m,
  );
  const encoders = servecast(['catalog', 'field', 'encode_router']).stdout;
  assert.match(encoders, /choice: round_robin random least_outstanding power_of_two/);
  assert.doesNotMatch(encoders, /prefix|kv_/);
});

test('Estimate_AsJson_HasTheFiguresOfItsText', () => {
  const words = ['estimate', small];
  const text = servecast(words).stdout;
  assert.equal(servecast([...words, '-o', 'text']).stdout, text);
  const { figures } = JSON.parse(servecast([...words, '-o', 'json']).stdout);
  const tpot = figures.find(({ name }) => name === 'tpot_ms');
  assert.match(
    text,
    new RegExp(`TPOT mean ms +${Number(tpot.closed_form.toPrecision(4))} +${Number(tpot.simulated.toPrecision(4))}`),
  );
});

/** The commands under "next", each in one line. */
const nextOf = (words) =>
  servecast([...words, '-o', 'text'])
    .stdout.split('  next ')[1]
    .replaceAll(/\\\n +/g, '')
    .replaceAll(/ +#.*/g, '');

test('Next_IsAboutWhatAPlanFound', () => {
  const fleet = ['plan', 'min-gpus', small, '--set', 'workload.arrivals.rate_per_s=300'];
  const { pools } = JSON.parse(servecast([...fleet, '-o', 'json']).stdout);
  assert.ok(pools[0].replicas > 1);
  assert.match(nextOf(fleet), new RegExp(`plan drill .* --set cluster\\.pools\\.0\\.replicas=${pools[0].replicas}\n`));
  const search = ['plan', 'search', small, '--over', 'engine.max_num_seqs=8,64', '--axes', 'tp,gpu,roles'];
  const asked = [...search, '--over', 'hardware.preset=h200,l40s', '--set', 'workload.requests=300'];
  const found = JSON.parse(servecast([...asked, '-o', 'json']).stdout);
  const best = found.points.find(({ id }) => id === found.cheapest);
  const words = nextOf(asked).split('\n')[0].trim().split(' ').slice(3);
  const sets = words.map((word) => word.replaceAll("'", ''));
  const again = servecast(['run', ...sets, '--once', '-o', 'json']);
  assert.equal(again.status, 0, again.stderr);
  const report = JSON.parse(again.stdout);
  assert.equal(report.gpus ?? best.gpus, best.gpus);
});

test('Help_NamesDrillsAndRouters', () => {
  const drills = servecast(['plan', '--help']).stdout;
  for (const each of ['one replica fewer', 'twice as slow', 'a rolling update', 'a spike', "a node's replicas"]) {
    assert.ok(drills.includes(each), each);
  }
  const routers = servecast(['import', '--help']).stdout;
  for (const each of ['sglang_router.launch_router', 'smg launch', 'vllm-router'])
    assert.ok(routers.includes(each), each);
});

test('Explain_HasTheVerdictOfRun_AndSaysWhatAReliefIs', () => {
  // By sampling alone a target is missed; with the forecast's error it may be kept.
  const chat = ['llama-3.1-8b-h100-chat', '--set', 'workload.arrivals.rate_per_s=52'];
  const json = (...words) => JSON.parse(servecast([...words, '-o', 'json']).stdout);
  const { verdict } = json('run', ...chat);
  const explained = json('explain', ...chat).report.verdict;
  assert.deepEqual([explained.state, explained.sentence], [verdict.state, verdict.sentence]);
  assert.notEqual(verdict.sentence, json('run', ...chat, '--sampling').verdict.sentence);
  assert.equal(
    json('explain', ...chat, '--sampling').report.verdict.sentence,
    json('run', ...chat, '--sampling').verdict.sentence,
  );
  // One figure, one value: of an overload what is served.
  const few = ['llama-3.1-8b-h100-chat', '--set', 'engine.num_gpu_blocks_override=800'];
  const text = servecast(['explain', ...few, '-o', 'text']).stdout;
  assert.match(text, /10 % more of +serves more\n/);
  const [, share] = /KV memory: 10 % more of it serves ([\d.]+ %) more/.exec(text);
  assert.ok(new RegExp(`KV blocks +${share}`).test(text), text);
  // Long runs have their reliefs, too.
  assert.match(
    servecast(['explain', 'llama-3.1-8b-h100-multi-turn', '-o', 'text']).stdout,
    /10 % more of +takes off the slowest/,
  );
});

test('Explain_SaysThatTheSlowestWereOnASlowReplica', () => {
  const slow = ['explain', small, '--set', 'cluster.slowdowns={"mean_gap_s":5,"for_s":1,"factor":3}'];
  const { slowdowns } = JSON.parse(servecast([...slow, '-o', 'json']).stdout).report.first_run;
  const text = servecast([...slow, '-o', 'text']).stdout.replaceAll(/\s+/g, ' ');
  assert.ok(slowdowns.tail_share > 0);
  assert.ok(
    text.includes(`slow ${Math.round(100 * slowdowns.tail_share)} % of the slowest 1 % of requests were on a slow`),
  );
});

test('Import_TakesAnOptionInOneWord', () => {
  const words = ['import', 'vllm serve Qwen/Qwen3-8B'];
  const apart = servecast([...words, '--scenario', 'llama-3.1-8b-h100-chat']);
  assert.equal(servecast([...words, '--scenario=llama-3.1-8b-h100-chat']).stdout, apart.stdout);
  assert.equal(apart.status, 0, apart.stderr);
});

test('Help_OfEveryCommand_SaysItsExitCodes', { skip: slow }, () => {
  for (const name of servecast(['completion', 'words', '--', '']).stdout.trimEnd().split('\n')) {
    if (['observe', 'fidelity'].includes(name)) continue; // programs of their own
    assert.match(servecast(['help', name]).stdout, /exit (code )?\d/i, name);
  }
});

test('Completion_KnowsWhatTheHelpNames', { skip: slow }, () => {
  const offered = (...words) =>
    servecast(['completion', 'words', '--', ...words])
      .stdout.trimEnd()
      .split('\n');
  const commands = offered('');
  const help = servecast(['--help']).stdout;
  for (const [, name] of help.matchAll(/^ {2}servecast ([a-z][a-z-]*)/gm)) assert.ok(commands.includes(name), name);
  for (const name of commands.filter((each) => !['observe', 'fidelity', 'plan', 'link', 'completion'].includes(each))) {
    const text = servecast(['help', name]).stdout;
    const options = offered(name, '-');
    for (const [option] of text.matchAll(/(?<![\w`-])--[a-z][a-z-]+/g)) {
      // Named as those of other programs, or of other commands.
      if (['--help', '--save-result', '--save-detailed', '--calibration', '--chunk-size'].includes(option)) continue;
      assert.ok(options.includes(option), `${name} ${option}`);
    }
    assert.ok(options.length > 0);
  }
  assert.ok(offered('plan', 'search', small, '--a').includes('--axes'));
  assert.deepEqual(offered('run', small, '-o', 'j'), ['json', 'jsonl']);
  assert.deepEqual(offered('run', small, '--set', 'workload.arrivals.rate_p'), ['workload.arrivals.rate_per_s=']);
  assert.ok(offered('run', small, '--set', 'hardware.preset=h1').includes('hardware.preset=h100-sxm'));
  assert.ok(offered('check', 'llama').includes('llama-3.1-8b-h100-chat'));
});

test('Completion_InBash_OffersPathsAndPresets', () => {
  const bash = (line) =>
    spawnSync(
      'bash',
      [
        '-c',
        `servecast() { '${command}' "$@"; }; source <(servecast completion bash)
         COMP_LINE='${line}'; COMP_POINT=\${#COMP_LINE}; _servecast 2>/dev/null; printf '%s\\n' "\${COMPREPLY[@]}"`,
      ],
      { encoding: 'utf8' },
    ).stdout.trimEnd();
  assert.equal(bash('servecast run x --set workload.arrivals.rate_p'), 'workload.arrivals.rate_per_s=');
  assert.equal(bash('servecast run x --set hardware.preset=h100-s'), 'h100-sxm');
  assert.equal(bash('servecast comple'), 'completion');
});

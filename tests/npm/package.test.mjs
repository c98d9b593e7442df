// The npm package as a person gets it: packed, installed into an empty folder, and used there under node, with types,
// through Vite, and as a bare module script in Chromium. Each says what the command says.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:http';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import test, { after } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { command as binary } from '../command.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const web = join(root, 'web/node_modules');
const { chromium } = createRequire(join(root, 'web/package.json'))('playwright-core');
const folder = mkdtempSync(join(tmpdir(), 'servecast-npm-'));
after(() => rmSync(folder, { recursive: true, force: true }));

function ran(program, words, options = {}) {
  const { status, stdout, stderr } = spawnSync(program, words, {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    ...options,
  });
  assert.equal(status, 0, `${program} ${words.join(' ')}: ${stdout}${stderr}`);
  return stdout;
}

ran(process.execPath, [join(root, 'npm/tools/build.mjs')], { cwd: root });
const [{ filename, files }] = JSON.parse(
  ran('npm', ['pack', '--json', '--pack-destination', folder], { cwd: join(root, 'build/npm') }),
);
writeFileSync(join(folder, 'package.json'), '{"name": "tried", "private": true, "type": "module"}');
ran('npm', ['install', '--offline', '--no-audit', '--no-fund', `./${filename}`]);

const preset = 'llama-3.1-8b-h100-chat';
const said = JSON.parse(ran(binary, ['run', preset, '--sampling']));
const sentence = said.verdict.sentence;
// Of an engine that the first module lacks.
const { document: ofPreset } = JSON.parse(readFileSync(join(root, `presets/scenarios/${preset}.json`)));
const sglang = { ...ofPreset, engine: { preset: 'sglang-0.5.9' } };
const sglangSaid = JSON.parse(ran(binary, ['run', '-', '--sampling'], { input: JSON.stringify(sglang) })).verdict
  .sentence;

test('Tarball_HasWhatItsExportsName_AndNoSources', () => {
  const names = new Set(files.map(({ path }) => path));
  const { exports } = JSON.parse(readFileSync(join(folder, 'node_modules/servecast/package.json')));
  const targets = Object.values(exports).flatMap((each) => (typeof each === 'string' ? [each] : Object.values(each)));
  for (const each of targets.filter((target) => !target.includes('*'))) {
    assert.ok(names.has(each.slice(2)), `${each} is exported, and not in the tarball`);
  }
  for (const name of ['README.md', 'LICENSE.txt', 'NOTICE.txt']) assert.ok(names.has(name), name);
  assert.ok(![...names].some((name) => /tools|test|\.cpp$/.test(name)));
});

test('Readme_ItsFiveLines_SayWhatTheCommandSays', () => {
  const readme = readFileSync(join(folder, 'node_modules/servecast/README.md'), 'utf8');
  assert.match(readme, /Sizes: \d+ KB gzip/);
  const [, code] = readme.match(/```js\n([^`]*)```/);
  writeFileSync(join(folder, 'readme.mjs'), code.replace(', seed: 2', ''));
  assert.equal(ran(process.execPath, ['readme.mjs']).trim(), sentence);
  writeFileSync(join(folder, 'readme.mjs'), code);
  assert.notEqual(ran(process.execPath, ['readme.mjs']).trim(), sentence);
});

test('Npx_IsTheCommand_ByteForByte', () => {
  const npx = join(folder, 'node_modules/.bin/servecast');
  const document = ran(binary, ['show', preset, '--set', 'workload.requests=100']);
  const trace = gzipSync(`arrival_s,input_tokens,output_tokens\n${'1,200,20\n2,300,30\n'.repeat(50)}`);
  writeFileSync(join(folder, 'trace.csv.gz'), trace);
  writeFileSync(join(folder, 'cut.csv.gz'), trace.subarray(0, trace.length / 2));
  const input = { encoding: 'utf8', cwd: folder, input: document, maxBuffer: 2 ** 28 };
  const said = (program, words) => {
    const { status, stdout, stderr } = spawnSync(program, words, input);
    return { words, status, stdout, stderr };
  };
  for (const line of [
    '--version',
    'help plan',
    'run - --once -o text',
    'run - --once --trace trace.csv.gz',
    'run - --once --trace cut.csv.gz',
    `run ${preset}x`,
    'run - --set engine.max_num_seqs=-1 -o json',
    'run - --once --requests rows.csv --fields verdict.state',
    'compare - --once --with hardware.preset=h200-sxm -o text',
    'plan cost - --input 0.5 --output 1.5',
    'validate -',
    'show -',
    'estimate -',
    'import -',
    ['import', 'vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 128'],
    'sweep - --over workload.arrivals.rate_per_s=2,4 --once',
    'export - --to vllm',
    'catalog',
    'catalog field replicas',
    'catalog models --json',
  ]) {
    const words = typeof line === 'string' ? line.split(' ') : line;
    const native = said(binary, words);
    const rows = existsSync(join(folder, 'rows.csv')) && readFileSync(join(folder, 'rows.csv'), 'utf8');
    assert.deepEqual(said(npx, words), native);
    if (rows) assert.equal(readFileSync(join(folder, 'rows.csv'), 'utf8'), rows);
  }
  // A link may be packed otherwise, by another zlib, and says the same.
  const link = ran(npx, ['link', 'encode', '-'], { input: document }).trim();
  assert.deepEqual(said(npx, ['link', 'decode', link]), said(binary, ['link', 'decode', link]));
  assert.match(said(npx, ['mcp']).stderr, /native command/);
});

test('Node_RunsAdvisesPlans_AndTellsWhatIsWrong', async () => {
  const at = (file) => import(pathToFileURL(join(folder, 'node_modules/servecast', file)));
  const { createServecast, createServecastSync, ServecastError } = await at('full-node.mjs');
  const servecast = await createServecast();
  const document = servecast.preset(preset);

  const shares = [];
  const { report, columns } = await servecast.run(document, {
    columns: ['prompt_tokens'],
    onProgress: (share) => shares.push(share),
  });
  assert.equal(report.verdict.sentence, sentence);
  assert.deepEqual(report.slo, said.slo);
  assert.equal(columns['prompt_tokens'].length, report.first_run.arrived);
  assert.deepEqual(
    shares,
    [...shares].sort((a, b) => a - b),
  );

  const sync = createServecastSync();
  assert.deepEqual(sync.run(document).report, (await servecast.run(document)).report);
  assert.equal(sync.run(document, { once: true }).report.certainty, undefined);

  const slow = { ...document, workload: { ...document.workload, arrivals: { rate_per_s: 60 } } };
  const { explanation } = await servecast.run(slow, { explain: true });
  const { report: _, ...why } = JSON.parse(ran(binary, ['explain', '-'], { input: JSON.stringify(slow) }));
  assert.deepEqual(explanation, why);
  const advice = await servecast.advise(slow);
  const without = ({ document: _, ...change }) => change;
  const native = JSON.parse(ran(binary, ['advise', '-'], { input: JSON.stringify(slow) }));
  assert.deepEqual({ ...advice, base: without(advice.base), changes: advice.changes.map(without) }, native);
  const { answer, sentence: planned } = await servecast.plan('max-rate', document);
  assert.equal(answer.outcome, 'found');
  assert.match(planned, /requests\/s/);

  // A preset that is a file of its own.
  const measured = { ...document, model: { preset: 'gemma-2-9b' } };
  assert.match(sync.run(measured, { once: true }).report.scenario.model.name, /gemma-2-9b/i);

  const wrong = { ...document, model: { preset: 'nonesuch' }, engine: { max_num_seqs: -1 } };
  assert.deepEqual((await servecast.validate(wrong)).map(({ path }) => path).sort(), [
    '/engine/max_num_seqs',
    '/model/preset',
  ]);
  await assert.rejects(servecast.run(wrong), (error) => error instanceof ServecastError && error.issues.length === 2);
  assert.throws(() => sync.run(wrong), ServecastError);
  assert.throws(() => sync.preset('nonesuch'), /allowed: /);
  assert.ok(sync.presets().includes(preset));
  await assert.rejects(servecast.run(document, { colums: [] }), /found the option colums; allowed: columns/);
  assert.throws(() => sync.plan('max-rate', document, { months: 3, percents: 5 }), ServecastError);

  // Settings by path, as of --set.
  const set = { 'workload.arrivals.rate_per_s': 60, 'engine.max_num_seqs': 64 };
  const words = Object.entries(set).map(([path, value]) => `${path}=${value}`);
  const changed = JSON.parse(ran(binary, ['run', preset, '--sampling', ...words.flatMap((each) => ['--set', each])]));
  assert.notEqual(changed.verdict.sentence, sentence);
  assert.equal((await servecast.run(document, { set })).report.verdict.sentence, changed.verdict.sentence);
  assert.equal(sync.run(JSON.stringify(document), { set: words }).report.verdict.sentence, changed.verdict.sentence);
  const settled = await servecast.plan('max-rate', document, { set: { 'engine.max_num_seqs': 64 } });
  assert.notEqual(settled.sentence, planned);
  const unknown = servecast.run(document, { set: { 'engine.max_num_seq': 64 } });
  const refused = spawnSync(binary, ['run', preset, '--set', 'engine.max_num_seq=64', '-o', 'json'], {
    encoding: 'utf8',
  });
  await assert.rejects(unknown, ({ issues }) => {
    assert.deepEqual(issues, JSON.parse(refused.stderr).issues);
    return issues[0].path === '/engine/max_num_seq';
  });
  assert.throws(() => sync.run(document, { set: 'engine.max_num_seqs=64' }), /set: found/);
  assert.throws(() => sync.run(document, { set: ['engine.max_num_seqs'] }), ServecastError);

  const controller = new AbortController();
  const long = { ...document, workload: { ...document.workload, requests: 2_000_000 } };
  const aborted = servecast.run(long, {
    signal: controller.signal,
    onProgress: () => controller.abort(new Error('enough')),
  });
  await assert.rejects(aborted, /enough/);
});

test('First_AScenarioOfAnotherEngine_IsAnsweredByTheWholeOne', async () => {
  const at = (file) => import(pathToFileURL(join(folder, 'node_modules/servecast', file)));
  const { createServecast, createServecastSync } = await at('node.mjs');
  const servecast = await createServecast();
  assert.equal((await servecast.run(sglang)).report.verdict.sentence, sglangSaid);
  assert.equal((await servecast.run(ofPreset)).report.verdict.sentence, sentence);
  assert.equal(createServecastSync().run(sglang).report.verdict.sentence, sglangSaid);
  assert.deepEqual(await servecast.validate(sglang), []);
  // In a browser the synchronous one cannot fetch it.
  const program = readFileSync(join(folder, 'node_modules/servecast/engine/servecast-first.wasm'));
  const { createServecastSync: handed } = await at('index.mjs');
  assert.throws(() => handed({ wasm: program }).run(sglang), /servecast\/full/);
});

test('Types_HoldForAProgramOfAUser', () => {
  writeFileSync(
    join(folder, 'use.ts'),
    `import { createServecast, createServecastSync, ServecastError, type Scenario } from 'servecast';
     import { createServecast as createFull } from 'servecast/full';
     import { createServecastWorker } from 'servecast/worker';
     const scenario: Scenario = { schema: 1, model: { preset: 'gemma-2-9b' }, hardware: { preset: 'h100-sxm' }, workload: { preset: 'chat' }, engine: { max_num_seqs: 64 } };
     const servecast = await createServecast();
     const state: string = (await servecast.run(scenario, { columns: ['prompt_tokens'] })).report.verdict.state;
     const full = await createFull();
     const planned: string = (await full.plan('max-rate', scenario)).sentence;
     const worker = await createServecastWorker();
     const advice = await worker.advise(scenario, { onProgress: (share: number) => void share });
     const synced = createServecastSync().run(scenario).report.slo[0]?.low ?? null;
     export { state, planned, advice, synced, ServecastError };
     // @ts-expect-error: no such engine option
     export const refused: Scenario = { ...scenario, engine: { max_num_seq: 64 } };
     // @ts-expect-error: no such GPU
     export const unknown: Scenario = { ...scenario, hardware: { preset: 'h1000' } };`,
  );
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2023', '--lib', 'es2023,dom'];
  ran(process.execPath, [join(web, 'typescript/bin/tsc'), ...options, '--types', '', 'use.ts']);
});

// ---- In a browser -------------------------------------------------------------------------------

const mime = { '.html': 'text/html', '.js': 'text/javascript', '.mjs': 'text/javascript', '.json': 'application/json' };

/** A folder under an address of its own; `.wasm` comes without its MIME type, as from some servers. */
async function served(path, use) {
  const server = createServer((request, response) => {
    const file = join(path, new URL(request.url, 'http://local').pathname);
    const found = existsSync(file) && statSync(file).isFile();
    response.writeHead(found ? 200 : 404, { 'content-type': mime[extname(file)] ?? 'application/octet-stream' });
    response.end(found ? readFileSync(file) : '');
  });
  // The browser first: where there is none, no server is left that would keep the test from ending.
  const browser = await chromium.launch({ executablePath: process.env.SERVECAST_CHROMIUM, args: ['--no-sandbox'] });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const page = await browser.newPage();
    const failures = [];
    page.on('pageerror', (error) => failures.push(error.message));
    page.on(
      'response',
      (response) => response.status() >= 400 && failures.push(`${response.status()} ${response.url()}`),
    );
    await use(page, `http://127.0.0.1:${server.address().port}`, failures);
  } finally {
    await browser.close();
    server.close();
  }
}

const program = (from) => `
  import { createServecast } from '${from}';
  const servecast = await createServecast();
  const { report } = await servecast.run(servecast.preset('${preset}'));
  const other = await servecast.run(${JSON.stringify(sglang)});
  document.title = [report.verdict.sentence, other.report.verdict.sentence].join(' | ');`;

const inWorker = (from) => `
  import { createServecastWorker } from '${from}';
  const servecast = await createServecastWorker();
  const document_ = await servecast.preset('${preset}');
  const { report } = await servecast.run(document_);
  const stopped = new AbortController();
  const long = servecast.run({ ...document_, workload: { ...document_.workload, requests: 2000000 } },
    { signal: stopped.signal, onProgress: () => stopped.abort() });
  const word = await long.then(() => 'ran', (error) => (error.issues ? 'refused' : 'stopped'));
  const wrong = await servecast.run({ ...document_, seed: -1 }).catch((error) => error.issues[0].path);
  document.title = [report.verdict.sentence, word, wrong].join(' | ');`;

async function titleOf(page, address, failures) {
  await page.goto(address);
  await page.waitForFunction(() => document.title !== 'waiting', null, { timeout: 60_000 }).catch(() => undefined);
  assert.deepEqual(failures, []);
  return page.title();
}

const html = (script) => `<!doctype html><meta charset="utf-8"><title>waiting</title>${script}`;
const icon = '<link rel="icon" href="data:,">';

test('BareModuleScript_RunsInChromium', { timeout: 180_000 }, async () => {
  const base = './node_modules/servecast';
  writeFileSync(
    join(folder, 'bare.html'),
    html(`${icon}<script type="module">${program(`${base}/index.mjs`)}</script>`),
  );
  writeFileSync(
    join(folder, 'thread.html'),
    html(`${icon}<script type="module">${inWorker(`${base}/worker.mjs`)}</script>`),
  );
  await served(folder, async (page, address, failures) => {
    assert.equal(await titleOf(page, `${address}/bare.html`, failures), `${sentence} | ${sglangSaid}`);
    assert.equal(await titleOf(page, `${address}/thread.html`, failures), `${sentence} | stopped | /seed`);
  });
});

test('Vite_BuildsWhatRunsInChromium', { timeout: 180_000 }, async () => {
  writeFileSync(join(folder, 'index.html'), html(`${icon}<script type="module" src="./main.js"></script>`));
  writeFileSync(join(folder, 'main.js'), program('servecast'));
  writeFileSync(join(folder, 'thread.html'), html(`${icon}<script type="module" src="./thread.js"></script>`));
  writeFileSync(join(folder, 'thread.js'), inWorker('servecast/worker'));
  writeFileSync(
    join(folder, 'vite.config.mjs'),
    `export default { worker: { format: 'es' }, build: { target: 'esnext', rolldownOptions: { input: ['index.html', 'thread.html'] } } };`,
  );
  // As a user's own: Vite is found from the folder.
  for (const name of ['vite']) symlinkSync(join(web, name), join(folder, 'node_modules', name));
  ran(process.execPath, [join(web, 'vite/bin/vite.js'), 'build', '--logLevel', 'warn']);
  await served(join(folder, 'dist'), async (page, address, failures) => {
    assert.equal(await titleOf(page, `${address}/index.html`, failures), `${sentence} | ${sglangSaid}`);
    assert.equal(await titleOf(page, `${address}/thread.html`, failures), `${sentence} | stopped | /seed`);
  });
});

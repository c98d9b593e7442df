// node tests/documents/run.mjs [CASES [FIRST SEED]]: random documents (generate.mjs), asked of the
// command and of the page's module. Nothing may crash, hang or exit with 70, and both must answer
// alike: the same issues, the same canonical text, the same report with its fingerprint. Prints each
// difference with its seed, what was seen of everything, and "N passed, N failed"; exit 1 when one
// failed. Documents that differ are written to build/documents; one alone: CASES 1 and its seed.
// SERVECAST_MODULES: names of modules in build/wasm to compare, separated by commas.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { isDeepStrictEqual } from 'node:util';
import { ask } from './ask.mjs';
import { makeDocument } from './generate.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const wasm = join(root, 'build/wasm');
const names = (process.env.SERVECAST_MODULES ?? 'servecast').split(',');
const [cases = 400, first = 1] = process.argv.slice(2).map(Number);
const most = { requests: 5000, steps: 100_000 };
const patienceMs = 60_000;
const shownAtMost = 20;

const temporary = mkdtempSync(join(tmpdir(), 'servecast-documents-'));
const found = join(root, 'build/documents');

const run = (words, input) => ask(words, input, patienceMs);

/** The modules' thread: one document at a time, started anew after a hang. */
class Modules {
  #worker = null;
  #settle = () => undefined;
  #start() {
    this.#worker = new Worker(new URL('answer.mjs', import.meta.url), { workerData: { folder: wasm, names, most } });
    this.#worker.on('message', (answer) => this.#settle(answer));
    this.#worker.on('error', (error) => this.#give(String(error.stack ?? error)));
  }
  #give(what) {
    this.end();
    this.#settle({ answers: [{ module: names.join(' or '), run: { kind: 'thrown', what } }] });
  }
  async ask(document) {
    if (this.#worker === null) this.#start();
    const timer = setTimeout(() => this.#give(`no answer within ${patienceMs / 1000} s`), patienceMs);
    const answer = await new Promise((resolve) => {
      this.#settle = resolve;
      this.#worker.postMessage(document);
    });
    clearTimeout(timer);
    return { text: document.text, ...answer };
  }
  end() {
    this.#worker?.terminate();
    this.#worker = null;
  }
}

/** What the command prints of issues: a line each, control characters and all. */
const printed = (issues) =>
  issues.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`)).join('\n');

/** The first place where two values differ, as text. */
function difference(a, b, path = '') {
  if (isDeepStrictEqual(a, b)) return '';
  const isObject = (value) => typeof value === 'object' && value !== null;
  if (isObject(a) && isObject(b)) {
    for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
      const inside = difference(a[name], b[name], `${path}/${name}`);
      if (inside !== '') return inside;
    }
  }
  const short = (value) => (JSON.stringify(value) ?? 'nothing').slice(0, 300);
  return `${path}: ${short(a)} and ${short(b)}`;
}

/**
 * What is wrong with the answers to a document; "" when nothing. `report` is the command's; null when
 * what the modules were given was not what the command ran.
 */
function judge(answers, native, report, seen) {
  for (const {
    module,
    run: { kind, what },
  } of answers) {
    if (kind === 'thrown') return `${module}: ${what}`;
  }
  if (native.status !== 0 && native.status !== 2)
    return `the command ended with ${native.status}: ${native.stderr.slice(0, 500)}`;
  const [one] = answers;
  for (const other of answers) {
    for (const part of ['canonical', 'id', 'issues', 'validated']) {
      const differs = difference(one[part], other[part], part);
      if (differs !== '') return `${one.module} and ${other.module}: ${differs}`;
    }
    const differs = difference(other.issues, other.validated, 'issues');
    if (differs !== '') return `${other.module}: canonical and validate: ${differs}`;
  }
  if (report === null) return '';
  const said = native.stderr.replace(/\n$/, '').replaceAll(/^stdin(, |(?=:))/gm, '');
  for (const {
    module,
    run: { kind, issues, summary, columns },
  } of answers) {
    seen[kind] = (seen[kind] ?? 0) + 1;
    if (kind === 'long') continue;
    if (kind === 'refused') {
      if (native.status !== 2) return `${module} refuses what the command runs: ${printed(issues)}`;
      if (!said.endsWith(printed(issues))) return `${module} says\n${printed(issues)}\nand the command\n${said}`;
      continue;
    }
    if (native.status !== 0) return `${module} runs what the command refuses: ${said}`;
    const { series, ...whole } = report;
    const differs = difference(JSON.parse(summary), whole, '');
    if (differs !== '') return `${module} and the command: ${differs}`;
    for (const [name, column] of Object.entries(columns)) {
      const own = name.startsWith('series_') ? series?.[name.slice('series_'.length)] : undefined;
      if (own === undefined) continue;
      const apart = difference(
        column.map((value) => (Number.isFinite(value) ? value : null)),
        own,
        name,
      );
      if (apart !== '') return `${module} and the command: ${apart}`;
    }
  }
  return '';
}

async function check(catalog, modules, seed, seen) {
  const made = makeDocument(catalog, seed);
  const { text, answers } = await modules.ask(made);
  const document = { text, trace: made.trace };
  const long = answers.some(({ run: { kind } }) => kind === 'long');
  const json = join(temporary, `${seed}.json`);
  const file = document.trace && join(temporary, String(seed), document.trace.name);
  if (file) {
    mkdirSync(join(file, '..'));
    writeFileSync(file, document.trace.text);
  }
  const words = long ? ['validate', '-'] : ['run', '-', '--once', '--json', json, ...(file ? ['--trace', file] : [])];
  const native = await run(words, document.text);
  const report = native.status === 0 && !long ? JSON.parse(readFileSync(json, 'utf8')) : undefined;
  let wrong = judge(answers, native, file ? null : report, seen);
  if (wrong === '' && file && report) {
    // The command puts its trace into the document: the modules are given what that has come to. How
    // they write it themselves is another matter.
    const { scenario_id: id, scenario, ...rest } = report;
    const { answers: again } = await modules.ask({ ...document, text: JSON.stringify(scenario) });
    for (const { run: answer } of again) {
      if (!answer.summary) continue;
      answer.summary = JSON.stringify({ ...JSON.parse(answer.summary), scenario_id: undefined, scenario: undefined });
    }
    wrong = judge(again, native, rest, seen);
  }
  for (const each of [json, join(temporary, String(seed))]) rmSync(each, { recursive: true, force: true });
  return wrong === '' ? '' : { wrong, document };
}

const { stdout } = await run(['catalog', '--json'], '');
const catalog = JSON.parse(stdout);
const seen = {};
let next = first;
let failed = 0;
async function lane() {
  const modules = new Modules();
  while (next < first + cases) {
    const seed = next;
    next += 1;
    const result = await check(catalog, modules, seed, seen);
    if (result === '') continue;
    failed += 1;
    mkdirSync(found, { recursive: true });
    writeFileSync(join(found, `${seed}.json`), result.document.text);
    if (result.document.trace)
      writeFileSync(join(found, `${seed}-${result.document.trace.name}`), result.document.trace.text);
    if (failed <= shownAtMost) console.log(`seed ${seed} (build/documents/${seed}.json): ${result.wrong}`);
  }
  modules.end();
}
await Promise.all(Array.from({ length: Math.min(availableParallelism(), 8) }, lane));
rmSync(temporary, { recursive: true });
console.log(
  `modules ${names.join(', ')}; their answers: ${Object.entries(seen)
    .map(([kind, count]) => `${count} ${kind}`)
    .join(', ')}`,
);
if (cases >= 200 && !(seen.report > cases / 5 && seen.refused > cases / 10)) {
  console.log('the documents are no longer of all kinds');
  failed += 1;
}
console.log(`${cases - Math.min(failed, cases)} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);

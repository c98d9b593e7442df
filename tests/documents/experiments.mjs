// node tests/documents/experiments.mjs [CASES [FIRST SEED]]: random documents (generate.mjs), each asked of the command
// as people ask, that is with the experiment. Nothing may crash, and no check of the report's sanity may fail. Prints
// what failed, the five that took the most processor time and memory, and "N passed, N failed"; exit 1 when one failed.
// Whether an answer takes too long is for the reader to say: no machine decides it.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { command } from '../command.mjs';
import { ask } from './ask.mjs';
import { makeDocument, repaired } from './generate.mjs';

const [cases = 20_000, first = 1] = process.argv.slice(2).map(Number);
const patienceMs = 600_000;
const ticksPerSecond = Number(execFileSync('getconf', ['CLK_TCK']));
const temporary = mkdtempSync(join(tmpdir(), 'servecast-experiments-'));

/** Why the engine does not take a text. */
function issuesOf(text) {
  const { stderr } = spawnSync(command, ['validate', '-'], { input: text, encoding: 'utf8' });
  return [...stderr.matchAll(/^stdin(?:, |:) ?(\/[^:\n]*): (.*)$/gm)].map(([, path, message]) => ({
    path,
    kind: /does not fit/.test(message) ? 'does_not_fit' : '',
  }));
}

/** {seconds of the processor, mib at most} of a process so far; null once it is gone. */
function usedBy(pid) {
  try {
    const times = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
    const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    if (peak === null) return null;
    return { seconds: (Number(times[11]) + Number(times[12])) / ticksPerSecond, mib: Number(peak[1]) / 1024 };
  } catch {
    return null;
  }
}

/** {status, stdout, stderr, used} of the command. */
async function run(words, input) {
  let used = { seconds: 0, mib: 0 };
  const answer = await ask(words, input, patienceMs, (pid) => (used = usedBy(pid) ?? used));
  return { ...answer, used };
}

/** What is wrong with an answer; "" when nothing. */
function judge({ status, stdout, stderr }) {
  if (status === 2) return '';
  if (status !== 0) return `the command ended with ${status}: ${stderr.slice(0, 500)}`;
  const report = JSON.parse(stdout);
  const sanity = report.sanity ?? report.first_run?.sanity;
  if (!sanity) return 'no check of sanity was made';
  const failed = sanity.filter(({ ok }) => !ok);
  return failed.map(({ name, simulated, bound }) => `${name}: ${simulated} beside ${bound}`).join('; ');
}

const catalog = JSON.parse(execFileSync(command, ['catalog', '--json'], { maxBuffer: 2 ** 28 }));
const found = join(import.meta.dirname, '../../build/documents');
const ran = [];
let next = first;
let failed = 0;
async function lane() {
  while (next < first + cases) {
    const seed = next;
    next += 1;
    const made = makeDocument(catalog, seed);
    const text = made.repair ? repaired(made.text, issuesOf) : made.text;
    const file = made.trace && join(temporary, String(seed), made.trace.name);
    if (file) {
      mkdirSync(join(file, '..'));
      writeFileSync(file, made.trace.text);
    }
    if (seed > first && (seed - first) % 1000 === 0)
      console.log(
        `${seed - first} of ${cases}, ${failed} failed; longest ${most('seconds', 's', 1)}; largest ${most('mib', 'MiB', 1)}`,
      );
    const answer = await run(['run', '-', '--sampling', ...(file ? ['--trace', file] : [])], text);
    if (file) rmSync(join(file, '..'), { recursive: true });
    if (answer.status === 0) ran.push({ seed, ...answer.used });
    const wrong = judge(answer);
    if (wrong === '') continue;
    failed += 1;
    mkdirSync(found, { recursive: true });
    writeFileSync(join(found, `${seed}.json`), text);
    console.log(`seed ${seed} (build/documents/${seed}.json): ${wrong}`);
  }
}
const most = (what, unit, count) =>
  ran
    .toSorted((a, b) => b[what] - a[what])
    .slice(0, count)
    .map((one) => `${one[what].toFixed(1)} ${unit} (seed ${one.seed})`)
    .join(', ');
await Promise.all(Array.from({ length: Math.min(availableParallelism(), 8) }, lane));
rmSync(temporary, { recursive: true });
console.log(`${ran.length} of ${cases} ran; longest ${most('seconds', 's', 5)}; largest ${most('mib', 'MiB', 5)}`);
if (cases >= 200 && ran.length < cases / 5) {
  console.log('too few of the documents run');
  failed += 1;
}
console.log(`${cases - Math.min(failed, cases)} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);

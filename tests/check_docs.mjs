// Checks that CONTRIBUTING.md and the decisions name what exists. Run: node tests/check_docs.mjs.
// Prints each offence; exit 1 if any.
//
// - Every word of `code` of CONTRIBUTING.md is a path (<name>, NAME and * stand for anything), a ./dev
//   command that `./dev help` lists, an option (-x), or a text that a tracked file has. Not in the
//   section about C++ that is to be avoided.
// - There are at most 30 decisions, each accepted (line 3) and of at most 45 lines; no tracked file names one that does not exist.
// - ARCHITECTURE.md has at most 150 lines and names every folder at the top and in core/src; CONTRIBUTING.md has at most 120.
// - Every policy's name stands in docs/model.md.
// - What README.md, docs/modelled.md and docs/fidelity.md say of the error of a set, or of all serving runs, is what tests/fidelity
//   has recorded.
// - Every relative link of these, of README.md, ARCHITECTURE.md, docs/ and folders' README.md leads somewhere; every fence is closed.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
const read = (file) => readFileSync(join(root, file), 'utf8');
const tracked = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter((file) => file !== '' && existsSync(join(root, file)));
const offences = [];
const offend = (file, line, text) => offences.push(`${file}:${line}: ${text}`);

// --- CONTRIBUTING.md -----------------------------------------------------------------------------

const help = read('dev');
const sources = tracked
  .filter(
    (file) => /\.(h|cpp|mjs|ts|json|cmake|txt|py|yml|sh|css)$|^dev$/.test(file) && !/package-lock|corpus/.test(file),
  )
  .map(read)
  .join('\n');

function exists(code) {
  if (/^\.\/dev /.test(code)) {
    const [, command, word] = /^\.\/dev (\w+)(?: ([a-z]+))?/.exec(code) ?? [];
    return new RegExp(`^  ${command}\\b`, 'm').test(help) && (!word || help.includes(`${command} ${word}`));
  }
  if (code.includes(' ') && !sources.includes(code)) return code.split(' ').every(exists);
  if (code.startsWith('-') || /^[A-Z]+$/.test(code)) return true;
  const [variable] = /^[A-Z]+_[A-Z_]+(?=$|=)/.exec(code) ?? [];
  if (variable) return sources.includes(variable);
  const path = code.replace(/\/$/, '').replaceAll(/<\w+>|[A-Z]{4,}/g, '*');
  if (path.includes('*')) {
    const pattern = new RegExp(`(^|/)${path.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}(/|$)`);
    if (tracked.some((file) => pattern.test(file))) return true;
  }
  if (
    tracked.some(
      (file) => file === path || file.endsWith(`/${path}`) || file.startsWith(`${path}/`) || file.includes(`/${path}/`),
    )
  )
    return true;
  // What a build makes is in no folder of ours; its name is in CMake's files.
  const name = path.replace(/^(\.\.|build)\/(.*\/)?/, '').replace(/_?\*$/, '');
  return sources.includes(code) || sources.includes(name);
}

let avoided = false;
for (const [index, line] of read('CONTRIBUTING.md').split('\n').entries()) {
  if (line.startsWith('## ')) avoided = line.includes('C++');
  if (avoided) continue;
  for (const [, code] of line.matchAll(/`([^`]+)`/g)) {
    if (!exists(code)) offend('CONTRIBUTING.md', index + 1, `\`${code}\` is nowhere`);
  }
}

// --- Decisions -----------------------------------------------------------------------------------

const decisions = readdirSync(join(root, 'docs/decisions')).filter((name) => /^\d{3}-/.test(name));
const numbers = new Set(decisions.map((name) => name.slice(0, 3)));
if (decisions.length > 30) offend('docs/decisions', 1, `${decisions.length} pages, allowed 30: fold one into another`);
for (const name of decisions) {
  const file = `docs/decisions/${name}`;
  const lines = read(file).split('\n');
  if (!lines[0].startsWith(`# ${name.slice(0, 3)} `)) offend(file, 1, 'the title must begin with the number');
  if (!/^Status: accepted/.test(lines[2] ?? '')) {
    offend(
      file,
      3,
      'a decision says "Status: accepted" here; one that no longer holds is folded into what replaced it',
    );
  }
  if (lines.length > 46) offend(file, lines.length, 'a decision has at most 45 lines');
}

// "decision 012", "decisions 012 and 033", "[decision 012](...)", "docs/decisions/012", also across a line's end of a comment.
// Only README.md of the decisions may name numbers that were folded.
const named =
  /\b(?:[Dd]ecisions?|ADRs?)(?:\s+(?:\/\/|#|\*)?\s*)\[?(\d{3}(?:(?:, | and )\[?\d{3})*)|\bdecisions\/(\d{3})/g;
for (const file of tracked) {
  if (file === 'docs/decisions/README.md' || /\.(png|jpg|woff2|gz|zip)$|package-lock|corpus\//.test(file)) continue;
  const text = read(file);
  for (const match of text.matchAll(named)) {
    for (const number of (match[1] ?? match[2]).match(/\d{3}/g)) {
      if (numbers.has(number)) continue;
      const line = text.slice(0, match.index).split('\n').length;
      offend(file, line, `there is no decision ${number}: docs/decisions/README.md says where it went`);
    }
  }
}

// --- The map -------------------------------------------------------------------------------------

for (const [file, most] of [
  ['ARCHITECTURE.md', 150],
  ['CONTRIBUTING.md', 120],
]) {
  const lines = read(file).trimEnd().split('\n').length;
  if (lines > most) offend(file, lines, `${lines} lines, allowed ${most}: the rest belongs in a folder's README.md`);
}

const map = read('ARCHITECTURE.md');
const folders = tracked
  .filter((file) => file.includes('/') && !file.startsWith('.'))
  .map((file) => (file.startsWith('core/src/') ? dirname(file) : file.slice(0, file.indexOf('/'))));
for (const folder of new Set(folders)) {
  if (!map.includes(`\`${folder}/`)) offend('ARCHITECTURE.md', 1, `says nothing of ${folder}/`);
}

// --- Policies ------------------------------------------------------------------------------------

const model = read('docs/model.md');
for (const file of tracked.filter((name) => name.startsWith('core/src/policies/'))) {
  for (const [, name] of read(file).matchAll(/^const \w+Entry \w+ = \{\s*(?:\.name = )?"(\w+)"/gm)) {
    if (!model.includes(`\`${name}\``)) offend(file, 1, `docs/model.md says nothing of \`${name}\``);
  }
}

// --- Accuracy ------------------------------------------------------------------------------------

const recorded = ['', '-2026-11', '-2026-12'].map((release) =>
  JSON.parse(read(`tests/fidelity/recorded${release}.json`)),
);
const inPercent = (share) => (100 * share).toFixed(1);
const errorOf = (figure) => (figure ? `${inPercent(figure.median)} / ${inPercent(figure.p90)}` : '');
const figures = ['ttft', 'tpot', 'e2e', 'ttft_p99', 'throughput'];

let release = -1;
for (const [index, line] of read('docs/fidelity.md').split('\n').entries()) {
  const cells = line.split('|').map((cell) => cell.trim());
  if (/^\| set \| rows \|/.test(line)) release += 1;
  const all = line.startsWith('| **serving runs');
  const set = all ? recorded[release]?.overall : recorded[release]?.sets.find(({ name }) => cells[1] === `\`${name}\``);
  if (!set || cells.length !== figures.length + 5) continue;
  for (const [i, figure] of figures.entries()) {
    const right = errorOf(set[figure] ?? (figure === 'tpot' ? set.itl : undefined));
    if (cells[i + 4] !== right)
      offend('docs/fidelity.md', index + 1, `${cells[1]}, ${figure}: found ${cells[i + 4]}, recorded ${right}`);
  }
}
if (release !== 2) offend('docs/fidelity.md', 1, `${release + 1} tables of recorded errors instead of 3`);

// Sentences with these figures in this order, "TPOT 1.6 %, E2E ...".
const serving = recorded[0].overall;
const loops = recorded[0].sets.find(({ name }) => name.startsWith('tpot-many-systems/')).tpot;
const medians = (...names) => names.map((name) => inPercent(serving[name].median));
for (const [file, row, right] of [
  ['README.md', /^\| 35 serving runs of vLLM/, medians('tpot', 'ttft', 'ttft_p99')],
  ['README.md', /^\| 698 closed loops/, [inPercent(loops.median), inPercent(loops.p90)]],
  ['docs/modelled.md', /^\| serving runs of vLLM/, medians('tpot', 'e2e', 'ttft', 'ttft_p99')],
  ['docs/modelled.md', /^\| TPOT of 698 closed loops/, [inPercent(loops.median), inPercent(loops.p90)]],
  ['docs/fidelity.md', /^In one sentence/, medians('tpot', 'e2e', 'ttft', 'ttft_p99')],
]) {
  const lines = read(file).split('\n');
  const at = lines.findIndex((line) => row.test(line));
  const text =
    lines[at]?.split(' | ').at(-1) + (lines[at]?.startsWith('|') ? '' : lines.slice(at + 1, at + 3).join(' '));
  const found = [...text.matchAll(/\d+\.\d+/g)].map(([figure]) => figure).slice(0, right.length);
  if (at < 0 || found.join(' ') !== right.join(' '))
    offend(file, at + 1, `says ${found.join(', ')}, recorded ${right.join(', ')}`);
}

// --- Links ---------------------------------------------------------------------------------------

const generated = [...read('docs/tools/reference.mjs').matchAll(/^ {2}page\(\s*'(\w+)'/gm)].map((match) => match[1]);

for (const file of tracked.filter((each) => /^(\w+\.md|(docs|presets|core|wasm|tests|web)\/.*\.md)$/.test(each))) {
  const fences = read(file).match(/^```/gm)?.length ?? 0;
  if (fences % 2 !== 0) offend(file, 1, `${fences} lines begin with \`\`\`: one block is not closed`);
  for (const [index, line] of read(file).split('\n').entries()) {
    for (const [, target] of line.matchAll(/\]\((?!\w+:|#)([^)#\s]+)[^)]*\)/g)) {
      const path = normalize(join(dirname(file), target));
      if (/^docs\/reference\/\w+\.md$/.test(path) && generated.includes(path.slice(15, -3))) continue;
      if (!existsSync(join(root, path))) offend(file, index + 1, `${target} is not there`);
    }
  }
}

for (const offence of offences) console.log(offence);
process.exit(offences.length > 0 ? 1 : 0);

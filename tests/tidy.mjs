// clang-tidy on what changed: against where the branch left origin/main, or else since before the last commit to
// what it reads; `--all`, or without such a history: on everything. Changed files of a folder are read as one; of a
// changed header, a file that includes it. Where a branch changed none of it, that is said as skipped. Needs
// build/tidy, configured.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, '');
const tree = join(root, 'build/tidy');
const folders = ['core', 'host', 'cli', 'fidelity', 'observe'];
const ours = new RegExp(`^(${folders.join('|')})/.*\\.(cpp|h)$`);
const git = (...words) => {
  try {
    return execFileSync('git', words, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return '';
  }
};

function base() {
  const head = git('rev-parse', 'HEAD');
  const left = git('merge-base', 'HEAD', 'origin/main');
  if (left !== '' && left !== head) return left;
  const sources = folders.flatMap((name) => [`:(glob)${name}/**/*.cpp`, `:(glob)${name}/**/*.h`]);
  const last = git('log', '--first-parent', '--format=%H', '-n', '1', '--', ...sources);
  // A history that is cut short lacks the parent of its first.
  return git('rev-parse', '--verify', '--quiet', `${last}^`);
}

// Each source with the command of its group or of its own.
const commands = new Map();
for (const { file, command } of JSON.parse(readFileSync(join(tree, 'compile_commands.json'), 'utf8'))) {
  const sources = file.endsWith('.cxx')
    ? [...readFileSync(file, 'utf8').matchAll(/^#include "(.*)"$/gm)].map((match) => match[1])
    : [file];
  for (const source of sources) {
    const path = source.slice(root.length + 1);
    if (source.startsWith(root) && ours.test(path) && path.endsWith('.cpp') && !commands.has(path))
      commands.set(path, { group: file, command });
  }
}

const since = process.argv.includes('--all') ? '' : base();
let sources = [...commands.keys()];
if (since !== '') {
  const changed = `${git('diff', '--name-only', since)}\n${git('ls-files', '--others', '--exclude-standard')}`
    .split('\n')
    .filter((name) => ours.test(name) && existsSync(join(root, name)));
  const asked = new Set(changed.filter((name) => commands.has(name)));
  for (const header of changed.filter((name) => name.endsWith('.h'))) {
    const included = `#include "${header.replace(/^core\/(src|include)\//, '')}"`;
    const readers = sources.filter((name) => readFileSync(join(root, name), 'utf8').includes(included));
    const own = readers.find((name) => basename(name, '.cpp') === basename(header, '.h'));
    if (readers.length > 0 && !readers.some((name) => asked.has(name))) asked.add(own ?? readers[0]);
  }
  sources = [...asked];
}

const folder = join(tree, 'changed');
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
const groups = new Map();
for (const name of sources) {
  const { group } = commands.get(name);
  groups.set(group, [...(groups.get(group) ?? []), name]);
}
const database = [...groups.values()].map((names, index) => {
  const { group, command } = commands.get(names[0]);
  const file = join(folder, `${index}-${basename(dirname(names[0]))}.cxx`);
  writeFileSync(file, names.map((name) => `#include "${join(root, name)}"\n`).join(''));
  return { directory: tree, file, command: command.replaceAll(group, file) };
});
writeFileSync(join(folder, 'compile_commands.json'), JSON.stringify(database));

let failed = 0;
const waiting = database.map(({ file }) => file);
const work = async () => {
  for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
    const child = spawn('clang-tidy', ['-quiet', '-p', folder, file], { stdio: ['ignore', 'inherit', 'ignore'] });
    const code = await new Promise((done) => child.on('error', () => done(127)).on('close', done));
    if (code !== 0) failed += 1;
  }
};
await Promise.all(Array.from({ length: Number(process.env.SERVECAST_JOBS ?? availableParallelism()) }, work));
console.log(
  `${sources.length} of ${commands.size} files${since === '' ? '' : `, changed since ${since.slice(0, 10)}`}`,
);
console.log(`${database.length - failed} passed, ${failed} failed${sources.length === 0 ? ', 1 skipped' : ''}`);
process.exit(failed > 0 ? 1 : 0);

// Every servecast line of README and docs, run in the order of its page, with the files that the page takes for granted; what the page prints
// below a line is what the line prints. SERVECAST_UPDATE_DOCS=1 writes the output of lines that begin with "$" anew:
//   SERVECAST_UPDATE_DOCS=1 node --test tests/cli/docs.test.mjs
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { inFolder } from '../in_folder.mjs';
import { command } from '../command.mjs';
import { prompts, steps } from './measured_steps.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const preset = 'llama-3.1-8b-h100-chat';
const update = process.env.SERVECAST_UPDATE_DOCS === '1';

/** Lines that no test runs, each with its reason. */
const notRun = new Map([
  [
    'servecast observe http://localhost:8000 mine.json -o run.json',
    'a real server; observe.test.mjs has one that plays its part',
  ],
  [
    'servecast fidelity [--data DIR]...  # DIR: SERVECAST_GROUNDTRUTH, see tests/README.md',
    'measurements that are not part of the project; fidelity.test.mjs runs it on some',
  ],
  [
    'servecast fidelity --evidence presets/evidence.json [--forecasts FILE]',
    'forecasts that are not part of the project; fidelity_bands.test.mjs runs it where they are',
  ],
]);
/** Lines that a test shortens, as whole they take minutes: what stands there, and what is run. */
const shortened = new Map([
  ['servecast plan search mine.json', ' --axes tp'],
  ['servecast plan search mine.json --least energy', ' --axes tp'],
  [
    'servecast plan search mine.json --axes gpu,roles,tp,pp,quantization',
    ' --over model.quantization=none,fp8 --over hardware.preset=h100-sxm',
  ],
]);
/** Commands that end with another code than 0, by what they say. */
const codes = new Map([
  ['servecast check deploy/scenario.json --junit targets.xml', [0, 1, 3]],
  ['servecast check llama-3.1-8b-h100-chat --set workload.arrivals.rate_per_s=55', [1]],
]);

/** Files that pages take for granted: what each is, made when a page begins. */
function prepare(folder, servecast) {
  const write = (name, text) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  };
  const imported = servecast(`import 'vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 128'`);
  const scenario = JSON.stringify({
    ...JSON.parse(imported),
    engine: { preset: 'vllm-0.20', max_num_seqs: 128 },
    workload: {
      requests: 400,
      arrivals: { process: 'poisson', rate_per_s: 3 },
      prompt_tokens: { distribution: 'fixed', value: 512 },
      output_tokens: { distribution: 'fixed', value: 128 },
    },
  });
  for (const name of [
    'mine.json',
    'base.json',
    'server.json',
    'a100-server.json',
    'h100-server.json',
    'deploy/scenario.json',
  ]) {
    write(name, scenario);
  }
  copyFileSync(join(root, 'tests/cli/diagnosed_server.txt'), join(folder, 'server.txt'));
  write('result.json', runResult(3, 40, 12));
  write('launch.sh', 'vllm serve Qwen/Qwen3-14B --max-num-seqs 64\n');
  copyFileSync(join(root, 'tests/import/configs/qwen3-14b.json'), join(folder, 'config.json'));
  write('steps.csv', steps);
  write('prompts.csv', prompts);
  write('run.json', runResult(4, 24, 8.1));
  write('other.json', runResult(2, 23, 7.9));
  write('run-power.csv', 'timestamp, power.draw [W]\n2026/11/25 12:00:30.123, 400.00 W\n');
  write('other-power.csv', 'timestamp, power.draw [W]\n2026/11/25 12:20:30.123, 320.00 W\n');
  servecast(`calibrate steps.csv -o pack.json`);
  for (const name of ['traces.json', 'a100.json', 'h100.json']) {
    servecast(`step-trace ${preset} --set workload.requests=400 -o ${name}`);
  }
}

/** A result of vllm bench serve as a server like the preset's might have written it. */
function runResult(rate, ttft, tpot) {
  return JSON.stringify({
    model_id: 'meta-llama/Llama-3.1-8B-Instruct',
    num_prompts: 400,
    request_rate: rate,
    burstiness: 1,
    completed: 400,
    duration: 400 / rate,
    total_input_tokens: 512 * 400,
    total_output_tokens: 128 * 400,
    mean_ttft_ms: ttft,
    mean_tpot_ms: tpot,
    mean_e2el_ms: ttft + 127 * tpot,
  });
}

function pages() {
  const found = ['README.md'];
  const walk = (folder) => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      if (entry.name === 'node_modules' || entry.name.startsWith('.')) continue;
      if (entry.isDirectory()) walk(`${folder}/${entry.name}`);
      else if (entry.name.endsWith('.md')) found.push(`${folder}/${entry.name}`);
    }
  };
  walk('docs');
  return found;
}

/** Blocks of code as lists of lines with their numbers; what indents them is taken off. */
function blocksOf(lines) {
  const blocks = [];
  let fence = '';
  let block = null;
  for (const [number, line] of lines.entries()) {
    const mark = /^ *(```+|~~~+)/.exec(line)?.[1] ?? '';
    if (mark !== '' && (fence === '' || line.trim() === fence)) {
      fence = fence === '' ? mark : '';
      block = null;
    } else if (fence !== '' || /^ {4}/.test(line)) {
      if (block === null) blocks.push((block = []));
      block.push({ number, indent: fence === '' ? 4 : 0, text: fence === '' ? line.slice(4) : line });
    } else {
      block = null;
    }
  }
  return blocks;
}

const isCommand = (text) => /^\s*(\$ )?(\S*\/)?servecast [a-z-]/.test(text);

/** The commands of a page in their order: the words, what is printed below, and where. */
function commandsOf(lines) {
  const commands = [];
  for (const block of blocksOf(lines)) {
    let last = null;
    for (const { number, indent, text } of block) {
      if (last?.words.endsWith('\\')) {
        last.words = `${last.words.slice(0, -1)}${text.trim()}`;
        last.end = number + 1;
      } else if (isCommand(text)) {
        last = {
          words: text
            .trim()
            .replace(/^\$ /, '')
            .replace(/^\S*\/servecast/, 'servecast'),
          exact: /^\s*\$ /.test(text),
          output: [],
          indent,
          number,
          end: number + 1,
        };
        commands.push(last);
      } else if (last !== null && !/^(\.\/dev|#)/.test(text)) {
        last.output.push(text);
      }
    }
  }
  return commands;
}

const squeezed = (text) =>
  text
    .replaceAll(/\s+/g, '')
    .replaceAll(/[\d.]*\d/g, '0')
    .replaceAll('rows', 'row');

for (const page of pages()) {
  const path = join(root, page);
  const lines = readFileSync(path, 'utf8').split('\n');
  const commands = commandsOf(lines);
  if (commands.length === 0) continue;
  test(`Docs_LinesOf_${page}_PrintWhatThePageSays`, () => {
    inFolder((_, folder) => {
      mkdirSync(join(folder, 'bin'));
      symlinkSync(command, join(folder, 'bin/servecast'));
      const env = { ...process.env, PATH: `${join(folder, 'bin')}:${process.env.PATH}` };
      const shell = (words) =>
        spawnSync('sh', ['-c', words], { cwd: folder, env, encoding: 'utf8', maxBuffer: 2 ** 28 });
      prepare(folder, (words) => {
        const { status, stdout, stderr } = shell(`servecast ${words}`);
        assert.equal(status, 0, `servecast ${words}: ${stderr}`);
        return stdout;
      });
      let moved = 0; // lines that were written more than there were
      for (const { words, exact, output, indent, number, end } of commands) {
        if (notRun.has(words)) continue;
        const { status, stdout, stderr } = shell(words + (shortened.get(words) ?? ''));
        const where = `${page}, line ${number + 1}: ${words}`;
        assert.ok((codes.get(words) ?? [0]).includes(status), `${where}: exit ${status}\n${stderr}`);
        const shown = output.join('\n').trimEnd();
        if (shown === '') continue;
        const printed = (stdout + (stdout === '' ? stderr : '')).trimEnd();
        if (exact && update) {
          const blank = ' '.repeat(indent);
          const anew = printed.split('\n').map((line) => (line === '' ? '' : blank + line));
          lines.splice(end + moved, shown.split('\n').length, ...anew);
          moved += anew.length - shown.split('\n').length;
        } else if (exact) {
          assert.equal(printed, shown, `${where}\nSERVECAST_UPDATE_DOCS=1 writes it anew`);
        } else {
          // "..." stands for what is left out, and figures are of somebody's server.
          const parts = squeezed(shown)
            .replaceAll(/[\d.]*\d/g, '0')
            .split('...');
          const all = squeezed(stdout);
          let from = 0;
          for (const part of parts) {
            const found = all.indexOf(part, from);
            assert.ok(found >= 0, `${where}: prints no ${part}`);
            from = found + part.length;
          }
        }
      }
      if (update) writeFileSync(path, lines.join('\n'));
    });
  });
}

test('Docs_EveryCommandThatIsNamed_IsThere', () => {
  const { stdout: help } = spawnSync(command, ['--help'], { encoding: 'utf8' });
  for (const page of pages()) {
    for (const [, name] of readFileSync(join(root, page), 'utf8').matchAll(/`servecast ([a-z-]+)/g)) {
      assert.match(help, new RegExp(`\\b${name}\\b`), `${page}: servecast ${name}`);
    }
  }
});

test('Docs_LinesThatAreNotRun_AreThere', () => {
  const all = pages().flatMap((page) =>
    commandsOf(readFileSync(join(root, page), 'utf8').split('\n')).map(({ words }) => words),
  );
  for (const words of [...notRun.keys(), ...shortened.keys(), ...codes.keys()]) assert.ok(all.includes(words), words);
  assert.ok(all.length > 25);
});

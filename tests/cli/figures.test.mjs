// Every figure of a report is described once, in core/src/io/report_*.h, and `servecast catalog report --json` lists
// them. Held to that list: the report's types in wasm/servecast.d.ts, and the units of the page's numbers
// (web/src/views/figure-units.ts). SERVECAST_UPDATE_DOCS=1 writes both anew:
//   SERVECAST_UPDATE_DOCS=1 node --test tests/cli/figures.test.mjs
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { command } from '../command.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const update = process.env.SERVECAST_UPDATE_DOCS === '1';
const listed = (...words) => execFileSync(command, ['catalog', 'report', ...words], { encoding: 'utf8' });
const { types, units } = JSON.parse(listed('--json'));

/** What an interface is of, and what it has besides the figures that are listed. */
const about = {
  Distribution: 'Times in ms; null statistics when n is 0.',
  TimeParts: 'Mean times of completed requests by where they went, ms.',
  Counted:
    'What pooled figures rest on: requests_per_s = completed / seconds, output_tokens_per_s = output_tokens / seconds, goodput_per_s = attainment * (completed + lost) / seconds.',
  Power: "By the GPUs' laws of power (docs/model.md), hosts and cooling not counted but where said.",
  KvTier: "Found behind the GPU's hit by first admissions, as shares of what the prefix cache was asked for.",
  ClassReport: 'The requests of a class of the workload.',
  ClassRun: 'The requests of a class in one run.',
  PoolReport: 'One of several pools.',
  PoolRun: 'What a pool did in one run; shares and usage are of all its replicas.',
  PoolScaling: "A pool's replicas that came and went.",
  Evidence: 'How far step times are off.',
  SanityCheck: 'A figure beside the bound that no run can be beyond, or the law that all follow.',
  RunFigures: 'Figures of one run, from its beginning to its end.',
  Report:
    'Of an Experiment distributions, rates, attainment, cost and targets are pooled over what counts of all its runs, and what is of the first run alone is in `first_run`.',
};
const more = {
  Report: [
    {
      name: 'first_run',
      type: 'RunFigures',
      optional: true,
      help: 'From its beginning to its end. Absent of a Simulation, which gives a RunReport.',
    },
    {
      name: 'scenario',
      type: 'Record<string, unknown>',
      help: 'The resolved scenario: presets inlined; runs again as it is.',
    },
  ],
};

/** A comment of at most 120 columns. */
function comment(text, indent) {
  const lines = [''];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== '' && indent.length + 4 + last.length + word.length > 116) lines.push(word);
    else lines[lines.length - 1] += last === '' ? word : ` ${word}`;
  }
  return `${indent}/** ${lines.join(`\n${indent}    `)} */\n`;
}

function member({ name, help, type, optional, list, members }, indent) {
  const own = members ? `{\n${members.map((each) => member(each, `${indent}  `)).join('')}${indent}}` : type;
  const line = `${indent}readonly ${name}${optional ? '?' : ''}: ${list ? 'readonly ' : ''}${own}${list ? '[]' : ''};`;
  // A long choice has a line for each.
  const laidOut =
    members || line.length <= 120
      ? line
      : line.replaceAll(/(?::| \|) (?=')/g, (sign) => `${sign[0] === ':' ? ':' : ''}\n${indent}  | `);
  return `${help ? comment(help, indent) : ''}${laidOut}\n`;
}

const declarations = types
  .map(({ name, members }) => {
    assert.ok(about[name], `tests/cli/figures.test.mjs does not say what the interface ${name} is of`);
    const all = [...members, ...(more[name] ?? [])].map((each) => member(each, '  ')).join('');
    return `${comment(about[name], '')}export interface ${name} {\n${all}}\n`;
  })
  .join('\n');

/** Compares `text` with what stands in the file between the marks, or writes it there. */
function hold(file, begin, end, text) {
  const path = root + file;
  const now = readFileSync(path, 'utf8');
  const from = now.indexOf(begin) + begin.length;
  const to = now.indexOf(end, from);
  assert.ok(from >= begin.length && to >= from, `${file} lacks its marks`);
  const then = now.slice(0, from) + text + now.slice(to);
  if (update) writeFileSync(path, then);
  else assert.equal(now, then, `${file} is not of these figures: SERVECAST_UPDATE_DOCS=1 writes it anew`);
}

test('Figures_OfAReport_AreInTheDeclarations', () => {
  hold(
    'wasm/servecast.d.ts',
    '// Figures of a report, written by tests/cli/figures.test.mjs.\n\n',
    '\n// End of what is written.\n',
    declarations,
  );
});

test('Figures_OfAReport_HaveTheirUnitsOnThePage', () => {
  const line = ([path, unit]) => `  ${/^\w+$/.test(path) ? path : `'${path}'`}: '${unit}',\n`;
  hold(
    'web/src/views/figure-units.ts',
    'export const figureUnits: Readonly<Record<string, string>> = {\n',
    '};\n',
    Object.entries(units).map(line).join(''),
  );
});

test('Figures_AsText_HaveUnitAndHelp', () => {
  assert.match(listed(), /\n {2}requests_per_s {2}number {2}requests\/s\n {4}Completed\.\n/);
});

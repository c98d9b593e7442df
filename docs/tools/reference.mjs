// Writes what the command says of itself as pages of the documentation: docs/reference/*.md, and the sentence of each
// <Live> and <Said> as docs/.vitepress/sentences.json. Exits 1 when a scenario of a text is refused.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deflateRawSync } from 'node:zlib';

const docs = fileURLToPath(new URL('../', import.meta.url));
const command = process.env.SERVECAST_COMMAND ?? join(docs, '../build/release/servecast');
const said = (...words) => execFileSync(command, words, { encoding: 'utf8', maxBuffer: 1 << 26 });
const catalog = JSON.parse(said('catalog', '--json'));

// Texts of the catalogue are text, never markup: in a cell of a table, too.
const cell = (text) => String(text).replaceAll(/[&<>|{}\\`*_[\]]/g, (c) => `&#${c.codePointAt(0)};`);
const code = (text) => (text === '' ? '' : `<code v-pre>${cell(text)}</code>`);
const table = (heads, rows) =>
  [heads, heads.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
const page = (name, text) => {
  mkdirSync(join(docs, 'reference'), { recursive: true });
  // Tables are wide: they take the outline's place.
  writeFileSync(join(docs, 'reference', `${name}.md`), `---\naside: false\n---\n\n${text}\n`);
};

function grouped(all, keyOf) {
  const groups = new Map();
  for (const each of all) groups.set(keyOf(each), [...(groups.get(keyOf(each)) ?? []), each]);
  return groups;
}

function fieldsPage() {
  const groups = grouped(catalog.fields, (field) => /^\/(.*)\//.exec(field.path)?.[1].split('/')[0] ?? 'scenario');
  const range = ({ minimum, maximum, choices }) => {
    if (choices.length) return choices.map(code).join(', ');
    if (minimum === null && maximum === null) return '';
    if (maximum === null) return `at least ${minimum}`;
    return minimum === null ? `at most ${maximum}` : `${minimum} to ${maximum}`;
  };
  const parts = [...groups].map(([group, fields]) => {
    const rows = fields.map((field) => [
      code(field.path),
      cell(field.help),
      [field.type, field.unit].filter(Boolean).map(cell).join(', '),
      field.required
        ? 'required'
        : code(typeof field.default === 'string' ? field.default : JSON.stringify(field.default)),
      range(field),
    ]);
    return `## ${group}\n\n${table(['field', 'what it does', 'type', 'default', 'allowed'], rows)}`;
  });
  const policies = grouped(catalog.policies, (policy) => policy.kind);
  const named = [...policies].map(
    ([kind, all]) =>
      `### ${kind}\n\n${table(
        ['name', 'what it does'],
        all.map((policy) => [code(policy.name), cell(policy.help)]),
      )}`,
  );
  page(
    'fields',
    `# Fields of a scenario\n\nEvery field that a scenario may have, as \`servecast catalog\` lists them (version ${catalog.engine_version}). ` +
      `[Scenario documents](../scenario.md) says how they work together.\n\n${parts.join('\n\n')}\n\n## Policies\n\n${named.join('\n\n')}`,
  );
}

function commandsPage() {
  const help = said('--help');
  const names = [...new Set([...help.matchAll(/^ {2}servecast (\w[\w-]*)/gm)].map((match) => match[1]))];
  const parts = names.map((name) => `## ${name}\n\n\`\`\`text\n${said(name, '--help').trimEnd()}\n\`\`\``);
  page('commands', `# Commands\n\n\`\`\`text\n${help.trimEnd()}\n\`\`\`\n\n${parts.join('\n\n')}`);
}

function termsPage() {
  const terms = catalog.definitions.map(({ name, title, text }) => [`**${cell(name)}**`, cell(title), cell(text)]);
  const kinds = grouped(catalog.columns, (column) => column.kind);
  const columns = [...kinds].map(
    ([kind, all]) =>
      `### Of a ${kind}\n\n${table(
        ['column', 'unit', 'what it is'],
        all.map((c) => [code(c.name), cell(c.unit), cell(c.help)]),
      )}`,
  );
  const left = catalog.not_modelled.map((each) => `- ${cell(each)}`);
  page(
    'terms',
    `# Terms and columns\n\n${table(['term', '', 'definition'], terms)}\n\n## Columns of the files\n\n${columns.join('\n\n')}` +
      `\n\n## Not modelled\n\n${left.join('\n')}`,
  );
}

function reportPage() {
  const { types } = JSON.parse(said('catalog', 'report', '--json'));
  const rowsOf = (members, path) =>
    members.flatMap((one) => [
      [
        code(path + one.name),
        cell(`${one.type ?? ''}${one.list ? '[]' : ''}`),
        cell(one.unit ?? ''),
        cell(one.help ?? ''),
        one.optional ? 'may be absent' : '',
      ],
      ...rowsOf(one.members ?? [], `${path}${one.name}${one.list ? '[]' : ''}.`),
    ]);
  const parts = types.map(
    ({ name, members }) => `## ${name}\n\n${table(['member', 'type', 'unit', 'what it is', ''], rowsOf(members, ''))}`,
  );
  page(
    'report',
    `# Figures of a report\n\nEvery member of what \`servecast run\` prints, as \`servecast catalog report\` lists them. A share is from 0 ` +
      `to 1. Of several runs, \`Report\` is of all, and \`first_run\` has \`RunFigures\` of the first.\n\n${parts.join('\n\n')}`,
  );
}

/** What was measured and predicted in a run, as a link to its scenario. */
function openedRun({ figure, measured_ms: measured, predicted_ms: predicted, scenario }) {
  const time = (ms) => (ms < 1000 ? `${Number(ms.toPrecision(3))} ms` : `${Number((ms / 1000).toPrecision(3))} s`);
  const words = `${figure.toUpperCase()} ${time(measured)} measured, ${time(predicted)} predicted`;
  return `<a href="../../#${linkOf(scenario)}" target="_self">${cell(words)}</a>`;
}

const linkOf = (scenario) => `z1.${deflateRawSync(JSON.stringify(scenario), { level: 9 }).toString('base64url')}`;

function accuracyPage() {
  const compared = JSON.parse(readFileSync(join(docs, '../presets/compared.json'), 'utf8'));
  const { rows: runs } = JSON.parse(readFileSync(join(docs, 'measured_runs.json'), 'utf8'));
  const key = ({ model, gpu, engine, what, with: features }) => [model, gpu, engine, what, features].join();
  const runOf = new Map(runs.map((run) => [key(run), openedRun(run)]));
  // Each can be opened.
  execFileSync(command, ['link', 'decode', '-'], {
    input: runs.map(({ scenario }) => linkOf(scenario)).join('\n'),
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  const percent = (errors, key) => (errors ? `${(100 * errors[key]).toFixed(1)}\u00a0%` : '–');
  const rows = compared.rows.map((row) => [
    cell(row.model),
    cell(row.gpu),
    cell(row.engine),
    cell([row.what, row.with].filter(Boolean).join(', ')),
    String(row.runs),
    ...['ttft', 'tpot', 'e2e'].flatMap((metric) => [percent(row[metric], 'median'), percent(row[metric], 'p90')]),
    runOf.get(key(row)) ?? '–',
  ]);
  page(
    'accuracy',
    '# Accuracy\n\nWhat the forecasts of each step-time model were off by where measured servers say the truth. A row is a GPU and an ' +
      'engine; errors are those of means per run: half of the runs are off by less than the median, nine of ten by less than p90. ' +
      'The page says the row that fits in the tip of a tile’s evidence. [How it was compared](../fidelity.md) has data, method and ' +
      'sources.\n\nThe last column has the run whose error is in the middle, or the nearest to it that a scenario can tell: its ' +
      'link opens server and load as they were measured. What it predicts there is one draw of the requests, within a ' +
      'twentieth of what stands here. Recorded requests are opened as a workload fitted to them; single prompts and decode ' +
      'steps as requests that are nothing else. A dash: no scenario comes so near.\n\n' +
      table(
        ['model', 'GPU', 'engine', 'runs of', 'runs', 'TTFT', 'p90', 'TPOT', 'p90', 'E2E', 'p90', 'in the middle'],
        rows,
      ),
  );
}

function* texts(folder = docs) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && !['node_modules', 'reference', '.vitepress'].includes(entry.name)) yield* texts(path);
    else if (entry.name.endsWith('.md')) yield path;
  }
}

function sentences() {
  const all = {};
  for (const file of texts())
    for (const [, scenario] of readFileSync(file, 'utf8').matchAll(
      /<(?:Live|Said)\b[^>]*\sscenario="((?:p=|z1\.)[^"]*)"/g,
    )) {
      const run = spawnSync(command, ['link', 'open', `#${scenario}`], { encoding: 'utf8', maxBuffer: 1 << 26 });
      if (run.status !== 0) throw new Error(`${file}: ${scenario}\n${run.stderr}`);
      all[scenario] = JSON.parse(run.stdout).verdict.sentence;
    }
  writeFileSync(join(docs, '.vitepress/sentences.json'), `${JSON.stringify(all, null, 2)}\n`);
}

fieldsPage();
commandsPage();
termsPage();
reportPage();
accuracyPage();
sentences();

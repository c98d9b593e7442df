// The page's module in a thread of their own, so that a hang can be seen from outside. Is sent
// {text, trace, repair}; answers {text, answers: [{module, canonical, issues, validated, run}]}, the text
// repaired if it was to be, with run
//   {kind: 'refused', issues} | {kind: 'report', summary, columns}
//   | {kind: 'long'} (more work than a test has time for) | {kind: 'thrown', what}
import { readFileSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';
import { provideAll } from '../wasm/module.mjs';
import { repaired } from './generate.mjs';

const { folder, names, most } = workerData;
const load = async (name) => {
  const { default: create } = await import(`${folder}/${name}.mjs`);
  return provideAll(await create({ wasmBinary: readFileSync(`${folder}/${name}.wasm`) }));
};
const modules = await Promise.all(names.map(load));

/** Asks for more requests than a test has time for. */
function isLarge(canonical, rows) {
  if (canonical === '') return false;
  const { workload = {} } = JSON.parse(canonical);
  const arrivals = workload.arrivals ?? {};
  const repeats = arrivals.process === 'trace' ? rows * Math.max(1, arrivals.repeat ?? 1) : 0;
  return (
    Math.max(workload.requests ?? 1000, arrivals.concurrency ?? 0, repeats) > most.requests || arrivals.repeat === 0
  );
}

function simulate(module, text, trace) {
  const simulation = new module.Simulation(text);
  let rows = null;
  try {
    if (trace !== undefined) {
      rows = new module.Trace(trace.name);
      rows.add(new TextEncoder().encode(trace.text));
      const { issues } = JSON.parse(rows.finish());
      if (issues.length > 0) return { kind: 'refused', issues };
      simulation.setTrace(rows);
    }
    const error = simulation.error();
    if (error !== '') return { kind: 'refused', issues: JSON.parse(error) };
    let steps = 0;
    while (!simulation.advance(5000)) {
      if ((steps += 5000) > most.steps) return { kind: 'long' };
    }
    const summary = simulation.summary();
    const columns = {};
    for (const name of ['series_running', 'series_kv_usage', 'cdf_ttft_ms', 'cdf_e2e_ms'])
      columns[name] = [...simulation.column(name)];
    return { kind: 'report', summary, columns };
  } finally {
    simulation.delete();
    rows?.delete();
  }
}

async function answerOf(index, { text, trace }) {
  const name = names[index];
  try {
    const module = modules[index];
    const { text: canonical, id, issues } = JSON.parse(module.canonical(text));
    const validated = JSON.parse(module.validate(text));
    const large = isLarge(canonical, trace?.text.split('\n').length ?? 0);
    return {
      module: name,
      canonical,
      id,
      issues,
      validated,
      run: large ? { kind: 'long' } : simulate(module, text, trace),
    };
  } catch (error) {
    // A trap leaves the module in an unknown state.
    modules[index] = await load(name);
    return { module: name, run: { kind: 'thrown', what: String(error.stack ?? error) } };
  }
}

/** Why the engine does not take it. */
function issuesOf(text) {
  const simulation = new (modules.at(-1).Simulation)(text);
  const issues = JSON.parse(simulation.error() || '[]');
  simulation.delete();
  return issues.filter(({ kind }) => kind !== 'trace_missing');
}

parentPort.on('message', async ({ text: given, trace, repair }) => {
  let text = given;
  try {
    // What asks for more than can be held is not made for that.
    if (repair && !isLarge(JSON.parse(modules.at(-1).canonical(given)).text, 0)) text = repaired(given, issuesOf);
  } catch {
    // It is seen below, too.
  }
  const answers = [];
  for (const index of names.keys()) answers.push(await answerOf(index, { text, trace }));
  parentPort.postMessage({ text, answers });
});

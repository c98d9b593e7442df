// The page's module as tests load it, and what its worker does when a file is missing.
import { readdirSync, readFileSync } from 'node:fs';

export const root = new URL('../../', import.meta.url);

/** The whole module, or servecast-first, which a visit begins with. */
export async function load(name = 'servecast') {
  const { default: create } = await import(new URL(`build/wasm/${name}.mjs`, root));
  return create({ wasmBinary: readFileSync(new URL(`build/wasm/${name}.wasm`, root)) });
}

export const fileText = (file) => readFileSync(new URL(file, root), 'utf8');

/** The files that issues ask for, handed in; false when they ask for none. */
export function provide(module, issues) {
  const files = issues.filter(({ kind }) => kind === 'missing_file').map(({ path }) => path);
  for (const file of files) {
    const refused = module.provide(file, fileText(file));
    if (refused !== '[]') throw new Error(refused);
  }
  return files.length > 0;
}

/** The kinds of presets that the module does not begin with, and their files. */
export const fetchedKinds = ['coefficients', 'hardware', 'models', 'operators', 'prices'];
export const filesOf = (kind) =>
  readdirSync(new URL(`presets/${kind}`, root))
    .filter((name) => name.endsWith('.json'))
    .map((name) => `presets/${kind}/${name}`);

/** All of them: then no question leads to another. */
export function provideAll(module) {
  for (const file of fetchedKinds.flatMap(filesOf)) module.provide(file, fileText(file));
  return module;
}

/** With all its files; the caller deletes it. `kind`: Simulation, Experiment, Advice or Design. */
export function simulationOf(module, text, kind = 'Simulation') {
  for (;;) {
    const simulation = kind === 'Experiment' ? new module.Experiment(text, true) : new module[kind](text);
    if (!provide(module, JSON.parse(simulation.error() || '[]'))) return simulation;
    simulation.delete();
  }
}

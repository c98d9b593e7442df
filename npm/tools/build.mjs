// The package: what is written here, the engine's modules, the presets, the type of a scenario from the catalogue, and
// the custom element, in ../build/npm. Needs the modules (./dev build module) and the page (./dev build page).
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { scenarioType } from './scenario-type.mjs';

const root = new URL('../../', import.meta.url);
const here = new URL('npm/', root);
const wasm = new URL('build/wasm/', root);
const target = new URL('build/npm/', root);

const read = (file, from = root) => readFileSync(new URL(file, from));
rmSync(target, { recursive: true, force: true });
mkdirSync(new URL('engine/', target), { recursive: true });

for (const name of readdirSync(here)) {
  if (/\.(mjs|d\.ts)$/.test(name)) cpSync(new URL(name, here), new URL(name, target));
}
for (const name of ['servecast', 'servecast-first']) {
  for (const kind of ['mjs', 'wasm'])
    cpSync(new URL(`${name}.${kind}`, wasm), new URL(`engine/${name}.${kind}`, target));
}
cpSync(new URL('wasm/servecast.d.ts', root), new URL('engine/servecast.d.ts', target));
// Models, too: with their sources, which the modules lack and exports name.
for (const kind of ['coefficients', 'measured_hardware', 'measured_models', 'models', 'operators', 'prices']) {
  cpSync(new URL(`presets/${kind}`, root), new URL(`presets/${kind}`, target), {
    recursive: true,
    filter: (path) => !/\.[a-z]+$/.test(path) || path.endsWith('.json'),
  });
}
for (const name of ['servecast-embed.js', 'LICENSE.txt', 'NOTICE.txt']) {
  cpSync(new URL(`web/dist/${name}`, root), new URL(name, target));
}

const { createServecastSync } = await import(new URL('full-node.mjs', target));
const servecast = createServecastSync();
for (const kind of readdirSync(new URL('presets/', target))) {
  for (const name of readdirSync(new URL(`presets/${kind}`, target))) {
    const file = `presets/${kind}/${name}`;
    servecast.module.provide(file, read(file, target).toString());
  }
}
writeFileSync(new URL('scenario.d.ts', target), scenarioType(servecast.catalog()));

const description = { name: '', version: servecast.version, ...JSON.parse(read('package.json', here)) };
writeFileSync(new URL('package.json', target), `${JSON.stringify(description, null, 2)}\n`);

/** Of an entry, what a browser fetches before the first run, gzip. */
function kilobytes(files) {
  return Math.round(files.reduce((sum, file) => sum + gzipSync(read(file, target), { level: 9 }).length, 0) / 1000);
}
const common = ['servecast.mjs', 'fetched.mjs'];
const engine = (name) => [`engine/${name}.mjs`, `engine/${name}.wasm`];
const sizes =
  `${kilobytes([...common, 'index.mjs', ...engine('servecast-first')])} KB gzip for \`servecast\`, ` +
  `${kilobytes([...common, 'full.mjs', ...engine('servecast')])} KB for \`servecast/full\``;
writeFileSync(new URL('README.md', target), read('README.md', here).toString().replace('SIZES', sizes));
console.log(`build/npm: ${sizes}`);

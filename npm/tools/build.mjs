// The package: what is written here, the engine's modules, the presets, the type of a scenario from the catalogue, and
// the custom element, in ../build/npm. Needs the modules and the command for node (./dev build
// module node-command) and the page (./dev build page).
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
// The command itself, for node: `npx servecast`.
const command = read('servecast-command.js', wasm).toString();
writeFileSync(new URL('servecast-command.cjs', target), `#!/usr/bin/env node\n${command}`, { mode: 0o755 });
cpSync(new URL('servecast-command.wasm', wasm), new URL('servecast-command.wasm', target));
cpSync(new URL('wasm/servecast.d.ts', root), new URL('engine/servecast.d.ts', target));
// Models, too: with their sources, which the modules lack and exports name.
for (const kind of ['coefficients', 'hardware', 'models', 'operators', 'prices']) {
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
// Where a release is made of a repository that has an address.
const repository = process.env['GITHUB_REPOSITORY'];
if (repository) description.repository = { type: 'git', url: `git+https://github.com/${repository}.git` };
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

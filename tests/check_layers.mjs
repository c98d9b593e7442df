// Checks which way #include and import lines point (ARCHITECTURE.md, "Layers"), and what the engine
// may not touch at all. Run: node tests/check_layers.mjs. Prints each offence; exit 1 if any.
//
// A folder that is not in a table here is an offence: whoever adds one decides where it belongs.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const offences = [];
const offend = (file, line, text) => offences.push(`${relative(root, file)}:${line}: ${text}`);

function filesUnder(folder, pattern) {
  const path = join(root, folder);
  if (!existsSync(path)) return [];
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) => {
    if (entry.name === 'node_modules' || entry.name === 'dist') return [];
    const child = join(folder, entry.name);
    if (entry.isDirectory()) return filesUnder(child, pattern);
    return pattern.test(entry.name) ? [join(root, child)] : [];
  });
}

// Lines without comments and, on request, without the contents of string literals. Good enough for
// #include lines and call names; not a parser.
function codeLines(file, { keepStrings }) {
  let text = readFileSync(file, 'utf8');
  const blank = (match) => match.replace(/[^\n]/g, ' ');
  text = text.replace(/\/\*[\s\S]*?\*\/|"(?:[^"\\\n]|\\.)*"|\/\/[^\n]*/g, (match) =>
    match.startsWith('"') ? (keepStrings ? match : blank(match)) : blank(match),
  );
  return text.split('\n');
}

// --- C++ -----------------------------------------------------------------------------------------

// What each layer may include besides itself. "public" is core/include/servecast without
// simulation.h, which is the layer "simulation" with core/src/*.cpp.
const layers = {
  base: [],
  public: [],
  cost: ['base', 'public'],
  workload: ['base', 'public'],
  // What forecasts were off by, and the bands that follow.
  evidence: ['base', 'public'],
  metrics: ['base', 'public', 'cost', 'workload'],
  serving: ['base', 'public', 'cost', 'workload', 'metrics'],
  // Policies see the extension points and what they decide about, never who calls them (policiesMay).
  policies: ['base', 'public', 'cost', 'workload', 'serving'],
  io: ['base', 'public', 'cost', 'workload', 'metrics', 'serving', 'policies'],
  // What other programs write, as they mean it.
  formats: ['base', 'public', 'io'],
  // Scenarios from and to what other programs write.
  import: ['base', 'public', 'io', 'formats'],
  export: ['base', 'public', 'io', 'import'],
  simulation: ['base', 'public', 'cost', 'workload', 'metrics', 'serving', 'policies', 'io'],
  // What asks more than one simulation.
  experiment: ['base', 'public', 'cost', 'workload', 'evidence', 'metrics', 'serving', 'policies', 'io', 'simulation'],
  // What measurements of a server say of a model's parameters.
  calibrate: [
    'base',
    'public',
    'cost',
    'workload',
    'evidence',
    'metrics',
    'serving',
    'io',
    'formats',
    'import',
    'simulation',
    'experiment',
  ],
  plan: [
    'base',
    'public',
    'cost',
    'workload',
    'evidence',
    'metrics',
    'serving',
    'policies',
    'io',
    'simulation',
    'experiment',
  ],
};
const engine = Object.keys(layers);
for (const layer of ['host', 'testing']) layers[layer] = [...engine];
for (const layer of ['cli', 'fidelity', 'observe', 'wasm']) layers[layer] = [...engine, 'host'];
layers.tests = [...engine, 'testing', 'host', 'observe'];

// Of serving, what a policy may see: the interfaces and what these speak of, none of who calls them.
const policiesMay =
  /^serving\/(policy|features|batch|microseconds|replica\/scheduler_entry|batch\/batch_scheduler|cluster\/(router|prefix_index|epp\/(picker_router|approximate_index|prefix_blocks))|scaling\/(scaler|hpa_params))\.h$/;

// Whose inputs and outputs are JSON.
const readsJson = ['io', 'formats', 'import', 'export', 'calibrate'];

// Standard headers that would let the world, or another platform's bits, into the engine.
const forbiddenInEngine = new Map(
  Object.entries({
    fstream: 'files',
    filesystem: 'files',
    iostream: 'output',
    ostream: 'output',
    sstream: 'locale',
    locale: 'locale',
    chrono: 'clocks',
    ctime: 'clocks',
    'time.h': 'clocks',
    thread: 'threads',
    mutex: 'threads',
    future: 'threads',
    condition_variable: 'threads',
    random: 'distributions differ between libraries',
    execution: 'threads',
    'unistd.h': 'the system',
  }),
);
// Their last bit, or the order that they leave ties in, differs between the native libraries and
// WebAssembly's; base/math and base/random have ours.
const forbiddenCalls =
  /\bstd::(log|log2|log10|log1p|exp|exp2|expm1|pow|sin|cos|tan|sinh|cosh|tanh|atan2?|asin|acos|cbrt|hypot|erfc?|t?gamma|lgamma|random_shuffle|shuffle)\s*\(|\b(getenv|rand|srand|time|clock)\s*\(|\b(try|catch|throw)\b/;

// The oracles share no engine code: public types, the request table, the latency interface and the
// vocabulary that these speak; draws are keyed alike.
const oracle =
  /^testing\/((blis_)?reference(_sim|_kv|_rules|_order|_drafts|_slow|_stalls|_take_up)?|(scheduled|pd|sglang|trtllm)_reference(_\w+)?)\.(h|cpp)$/;
const oracleMay =
  /^(servecast\/(?!simulation\.h).*|base\/(base|math|random)\.h|workload\/request_table\.h|metrics\/causes\.h|serving\/(batch|policy|cluster\/router|hooks)\.h|testing\/(reference_(sim|rules|sights|order|drafts|slow|stalls|take_up|encoder)|router_choice|epp_reference_router|blis_reference(_kv)?|(scheduled|pd|sglang|trtllm)_reference(_\w+)?)\.h)$/;

function layerOf(name) {
  if (name === 'servecast/simulation.h') return 'simulation';
  if (name === 'servecast/experiment.h') return 'experiment';
  if (name === 'servecast/plan.h') return 'plan';
  if (name.startsWith('servecast/')) return 'public';
  if (name.startsWith('testing/')) return 'testing';
  if (!name.includes('/')) return 'simulation';
  return name.slice(0, name.indexOf('/'));
}

// The name by which the file is included, and its layer.
function identify(file) {
  const path = relative(root, file);
  for (const [prefix, layer] of [
    ['core/include/', null],
    ['core/src/', null],
    ['tests/testing/', 'testing'],
    ['host/', 'host'],
    ['cli/', 'cli'],
    ['fidelity/', 'fidelity'],
    ['observe/', 'observe'],
    ['wasm/', 'wasm'],
    ['tests/', 'tests'],
  ]) {
    if (!path.startsWith(prefix)) continue;
    const name = layer === null ? path.slice(prefix.length) : path.slice(path.startsWith('tests/') ? 6 : 0);
    return { name, layer: layer ?? layerOf(name) };
  }
  throw new Error(`no layer for ${path}`);
}

function stem(name) {
  return name.replace(/\.[^./]*$/, '');
}

function checkInclude(file, line, self, included) {
  if (/^(nlohmann|fmt)\//.test(included)) {
    if (included.startsWith('nlohmann/') && engine.includes(self.layer) && !readsJson.includes(self.layer)) {
      offend(file, line, `only ${readsJson.join(', ')} read and write JSON, not ${self.layer}`);
    }
    return;
  }
  if (included.startsWith('curl/')) {
    if (self.layer !== 'observe') offend(file, line, 'only observe/ knows a network');
    return;
  }
  if (included.startsWith('emscripten')) {
    if (self.layer !== 'wasm') offend(file, line, 'only wasm/ knows Emscripten');
    return;
  }
  if (/^(gtest|gmock)\//.test(included)) {
    if (!['tests', 'testing'].includes(self.layer)) offend(file, line, 'GoogleTest outside tests/');
    return;
  }
  const folders = [dirname(file), join(root, 'core/include'), join(root, 'core/src'), join(root, 'tests'), root];
  const ours = folders.map((folder) => resolve(folder, included)).find((path) => existsSync(path));
  if (ours === undefined) {
    const why = forbiddenInEngine.get(included);
    if (why && engine.includes(self.layer)) {
      offend(file, line, `<${included}> (${why}) in the engine`);
    }
    return;
  }
  const { layer } = identify(ours);
  if (layer !== self.layer && !(layers[self.layer] ?? []).includes(layer)) {
    offend(file, line, `${self.layer} must not include ${layer} ("${included}")`);
  }
  if (self.layer === 'policies' && self.name !== 'policies/registry.cpp') {
    if (layer === 'serving' && !policiesMay.test(included)) {
      offend(file, line, `a policy must not include "${included}"`);
    }
    if (layer === 'policies' && stem(included) !== stem(self.name)) {
      offend(file, line, `a policy must not include another ("${included}")`);
    }
  }
  if (oracle.test(self.name) && !oracleMay.test(included)) {
    offend(file, line, `a reference simulator must not include "${included}"`);
  }
}

for (const folder of ['core', 'host', 'cli', 'fidelity', 'observe', 'wasm', 'tests']) {
  for (const file of filesUnder(folder, /\.(h|cpp|inc)$/)) {
    const self = identify(file);
    if (!(self.layer in layers)) {
      offend(file, 1, `folder "${self.layer}" has no layer in tests/check_layers.mjs`);
      continue;
    }
    codeLines(file, { keepStrings: true }).forEach((text, index) => {
      const include = /^\s*#\s*include\s*[<"]([^>"]+)[>"]/.exec(text);
      if (include) checkInclude(file, index + 1, self, include[1]);
    });
    if (!engine.includes(self.layer)) continue;
    codeLines(file, { keepStrings: false }).forEach((text, index) => {
      const call = forbiddenCalls.exec(text);
      if (call) offend(file, index + 1, `${call[0].trim()} in the engine`);
      if (/\b__EMSCRIPTEN__\b/.test(text)) offend(file, index + 1, 'the engine knows no platform');
    });
  }
}

// --- The page ------------------------------------------------------------------------------------

// What a folder of web/src may import; files directly in web/src are entry points and may import
// anything but the worker's inside.
const webLayers = {
  lib: [],
  styles: [],
  engine: ['lib'],
  share: ['lib', 'engine'],
  charts: ['lib', 'styles', 'engine'],
  state: ['lib', 'engine', 'share'],
  views: ['lib', 'styles', 'engine', 'share', 'charts', 'state'],
};
// Outside engine/, only these of its files: the rest runs in the worker.
const engineFront = /^engine\/(calibrators|client|pool|protocol)(\.[jt]s)?$/;

// What a file imports of web/src, types too. A part that is fetched later (import()) may import what fetches it.
const webImports = new Map();

for (const file of filesUnder('web/src', /(?<!\.d)\.ts$/)) {
  const name = relative(join(root, 'web/src'), file);
  const folder = name.includes('/') ? name.slice(0, name.indexOf('/')) : '';
  if (folder !== '' && !(folder in webLayers)) {
    offend(file, 1, `folder "${folder}" has no layer in tests/check_layers.mjs`);
    continue;
  }
  const isTest = /\.test\.ts$/.test(name);
  const text = readFileSync(file, 'utf8');
  for (const match of text.matchAll(
    /^[ \t]*(?:import|export)\b(?<type>\s+type\b)?[^;"']*?(?:from\s*)?["'](?<path>[^"']+)["']|\bimport\(\s*["'](?<dynamic>[^"']+)["']/gm,
  )) {
    const line = text.slice(0, match.index).split('\n').length;
    const path = match.groups.path ?? match.groups.dynamic;
    if (/^(https?:)?\/\//.test(path)) offend(file, line, 'an import from the network');
    // An entry point may name the .wasm, so that fetching it starts before anything else.
    if (
      !match.groups.type &&
      folder !== 'engine' &&
      (path === 'servecast' || (folder && /^servecast\.wasm/.test(path)))
    ) {
      offend(file, line, 'only engine/ loads the module; others import its types');
    }
    if (!path.startsWith('.')) continue;
    const target = relative(join(root, 'web/src'), resolve(dirname(file), path));
    if (target.startsWith('..')) {
      // Types of the boundary live with the module.
      if (!isTest && !/wasm\/servecast(\.d)?(\.ts|\.mjs|\.js)?$/.test(target) && folder !== 'engine') {
        offend(file, line, `"${path}" leaves web/src`);
      }
      continue;
    }
    const layer = target.includes('/') ? target.slice(0, target.indexOf('/')) : '';
    if (!isTest && match.groups.path && !/^\s*import\(/.test(match[0])) {
      if (!webImports.has(name)) webImports.set(name, []);
      webImports.get(name).push({ to: target.endsWith('.ts') ? target : `${target}.ts`, line });
    }
    if (isTest || layer === folder) continue;
    if (folder !== '' && !webLayers[folder].includes(layer)) {
      offend(file, line, `${folder} must not import ${layer || 'an entry point'} ("${path}")`);
    } else if (layer === 'engine' && !match.groups.type && !engineFront.test(target)) {
      offend(file, line, `only engine/client, pool, calibrators and protocol are for others, not "${path}"`);
    }
  }
}

// No circles: walks imports depth first; one that leads back to a file of the present way closes a circle.
const seen = new Set();
function walk(name, way) {
  seen.add(name);
  for (const { to, line } of webImports.get(name) ?? []) {
    const at = [...way, name].indexOf(to);
    if (at >= 0) {
      const circle = [...way, name].slice(at);
      offend(join(root, 'web/src', name), line, `a circle of imports: ${[...circle, to].join(' -> ')}`);
    } else if (!seen.has(to)) {
      walk(to, [...way, name]);
    }
  }
}
for (const name of webImports.keys()) if (!seen.has(name)) walk(name, []);

for (const offence of offences) console.log(offence);
if (offences.length > 0) console.log(`${offences.length} offence(s) against the layers`);
process.exit(offences.length > 0 ? 1 : 0);

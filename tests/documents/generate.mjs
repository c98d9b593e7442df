// Random scenario documents over the whole catalogue: every field, presets, pools with sections of
// their own, roles, classes, sessions, tiers, compat, and what may stand in a trace; most mean
// something, many hold values at or just beyond a bound, or are not even documents. A function of
// the seed and of the catalogue alone.

/** Uniform draws from a seed (SplitMix32). */
class Dice {
  #state;
  constructor(seed) {
    this.#state = (seed ^ 0x9e3779b9) | 0;
  }
  unit() {
    this.#state = (this.#state + 0x9e3779b9) | 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 16), 0x85ebca6b);
    z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
    return ((z ^ (z >>> 16)) >>> 0) / 2 ** 32;
  }
  below(n) {
    return Math.floor(this.unit() * n);
  }
  chance(share) {
    return this.unit() < share;
  }
  pick(list) {
    return list[this.below(list.length)];
  }
}

// Stand where a value should: of the wrong type, beyond what a number holds, or hostile.
const odd = [
  null,
  true,
  false,
  '',
  '1',
  'NaN',
  '<b>x</b>',
  '\u001b[31m',
  '\u202e',
  'x'.repeat(3000),
  [],
  {},
  [1],
  [[0, 1], [1]],
  { a: 1 },
  -0,
  0,
  -1,
  0.5,
  1e308,
  -1e308,
  5e-324,
  2 ** 53,
  2 ** 53 + 2,
  2 ** 63,
  2 ** 64,
  -(2 ** 63),
];
const oddNames = [
  '__proto__',
  'constructor',
  'toString',
  'ratee_per_s',
  '',
  ' ',
  'a/b~c',
  '0',
  '\u0000',
  '\ud83d\ude00',
  'x'.repeat(500),
];
// Of what only a text can say.
const oddTexts = [
  (text) => text.slice(0, -1),
  (text) => text.slice(0, text.length >> 1),
  (text) => `${text}${text}`,
  (text) => `\ufeff${text}`,
  (text) => text.replace('{', '{"schema":1,"schema":1,'),
  (text) => text.replace(/:(\d+)/, ':1e400'),
  (text) => text.replace(/:(\d+)/, ':$1.0'),
  (text) => text.replace(/:(\d+)/, ':$1e0'),
  (text) => text.replace(/:(\d+)/, ':-$1'),
  (text) => text.replace(/:(\d+)/, ':12345678901234567890123'),
  (text) => text.replace(/:(\d+)/, ':1e-400'),
  (text) => text.replace('"schema":1', '"schema":2'),
  (text) => text.replace('"schema":1', '"schema":"1"'),
  (text) => text.replace('"schema":1,', ''),
  (text) => text.replace('{', '{"name":"\\ud800",'),
  (text) => text.replace('{', `{"deep":${'['.repeat(2000)}${']'.repeat(2000)},`),
  () => '',
  () => 'null',
  () => '[]',
];

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

// Of llm-d's endpoint picker.
const CONFIGS = [
  {},
  { schedulingProfiles: [{ name: 'default', plugins: [{ pluginRef: 'random-picker' }] }] },
  {
    plugins: [{ type: 'prefix-cache-affinity-filter', parameters: { affinityThreshold: 0.5 } }],
    schedulingProfiles: [
      { plugins: [{ pluginRef: 'prefix-cache-affinity-filter' }, { pluginRef: 'queue-scorer', weight: 2 }] },
    ],
  },
  { plugins: [{ type: 'no-such-plugin' }], featureGates: ['flowControl'] },
  {
    plugins: [{ type: 'concurrency-detector', parameters: { maxConcurrency: 3 } }],
    featureGates: ['flowControl'],
    saturationDetector: { pluginRef: 'concurrency-detector' },
    flowControl: { maxRequests: 20, defaultRequestTTL: '2s', priorityBands: [{ priority: 0, maxRequests: 9 }] },
  },
];

/** A value that the field allows; rarely at its very ends, which are mostly absurd. */
function allowed(dice, field) {
  const { type, minimum, maximum, choices } = field;
  if (type === 'choice') return dice.pick(choices);
  if (type === 'boolean') return dice.chance(0.5);
  if (type === 'text') return dice.pick(['', 'a', 'b', 'chat', 'Ünï 😀', '<i>&amp;']);
  if (type === 'list') return list(dice, field);
  if (type === 'object') return dice.pick(CONFIGS);
  const whole = (value) => (type === 'integer' ? Math.round(value) : value);
  const ends = dice.below(20);
  if (ends === 0) return minimum;
  if (ends === 1) return maximum;
  const usual = typeof field.default === 'number' ? field.default : clamp(100, minimum, maximum);
  if (ends < 5) return usual;
  // Of about the size of the usual value.
  const scale = 10 ** (2 * dice.unit() - 1);
  const low = Math.max(minimum, 0);
  return whole(clamp(usual === 0 ? dice.pick([0.5, 1, 3, 20, 100]) * scale : usual * scale, low, maximum));
}

function list(dice, field) {
  if (/quantiles$/.test(field.path)) {
    let value = 1 + dice.below(50);
    const rows = [0, 0.25 + dice.unit() / 4, 0.6 + dice.unit() / 4, 1];
    return rows.map((at) => [at, (value += dice.below(400))]);
  }
  if (/rate_factors$/.test(field.path)) return [0, 1, 2].map((at) => [at * (1 + dice.below(30)), dice.unit() * 3]);
  if (/spikes$/.test(field.path))
    return Array.from({ length: dice.below(3) }, (_, at) => [10 * at, 1 + dice.below(5), dice.unit() * 5]);
  if (!Array.isArray(field.default)) return [];
  return field.default.map((usual) => (dice.chance(0.3) ? usual * 2 * dice.unit() : usual));
}

/** At or beyond a bound, or no such value at all. */
function refused(dice, field) {
  const { type, minimum, maximum } = field;
  if (dice.chance(0.5) || minimum === null || maximum === null) return dice.pick(odd);
  const step = type === 'integer' ? 1 : Math.max(Math.abs(minimum), 1e-300) * 2 ** -52;
  return dice.pick([
    minimum,
    maximum,
    minimum - step,
    minimum - 1,
    maximum + 1,
    maximum * (1 + 2 ** -52),
    -minimum,
    -maximum,
    minimum + 0.5,
    maximum * 10,
    minimum / 2,
  ]);
}

function put(document, path, value) {
  let at = document;
  for (const name of path.slice(0, -1)) at = at[name] ??= {};
  // Not by assignment: "__proto__" has to become a member. A copy: later faults may go into it.
  Object.defineProperty(at, path.at(-1), {
    value: structuredClone(value),
    enumerable: true,
    configurable: true,
    writable: true,
  });
}

/**
 * Sets some of the fields under a prefix of the catalogue ("/workload/classes/-") in `document`. Of a
 * choice those members that it brings.
 */
function fill(dice, fields, prefix, document, share, except = /^$/) {
  const own = fields.filter(({ path }) => path.startsWith(`${prefix}/`) && !path.slice(prefix.length).includes('/-/'));
  const chosen = new Map();
  const pathOf = (field) => field.path.slice(prefix.length + 1).split('/');
  const valueAt = (path) => pathOf({ path }).reduce((at, name) => at?.[name], document);
  for (const field of own) {
    if (except.test(field.path) || chosen.has(field.path)) continue;
    if (field.when) {
      const choice = valueAt(field.when.path) ?? own.find(({ path }) => path === field.when.path)?.default;
      const applies = field.when.values.includes(choice);
      if (!applies && !dice.chance(0.002)) continue;
      if (!applies || dice.chance(field.required ? 0.99 : 0.5)) put(document, pathOf(field), allowed(dice, field));
    } else if (dice.chance(share)) {
      put(document, pathOf(field), allowed(dice, field));
    }
    chosen.set(field.path, field);
  }
  return document;
}

function lengths(dice, kinds) {
  const median = Math.round(4 * 10 ** (dice.unit() * 2.2));
  const distribution = dice.pick(kinds);
  const least = Math.max(1, Math.round(median / 4));
  return {
    fixed: { distribution, value: median },
    uniform: { distribution, min: least, max: median * 3 },
    lognormal: { distribution, median, p99: median * (1 + 5 * dice.unit()), min: least, max: median * 8 },
    normal: { distribution, mean: median, stddev: median / 3, min: least, max: median * 4 },
    zipf: { distribution, min: least, max: median * 6, theta: dice.unit() * 1.5, scrambled: dice.chance(0.5) },
    empirical: {
      distribution,
      quantiles: [
        [0, 1],
        [0.5, median],
        [1, median * 3],
      ],
    },
    ratio: { distribution, ratio: 0.5 + 10 * dice.unit() },
    trace: { distribution, scale: dice.pick([0.5, 1, 2]) },
  }[distribution];
}

const model = (dice) => ({
  num_hidden_layers: 1 + dice.below(80),
  hidden_size: 128 * (1 + dice.below(64)),
  num_attention_heads: 8 * (1 + dice.below(12)),
  num_key_value_heads: 8,
  head_dim: dice.pick([64, 128]),
  intermediate_size: 256 * (1 + dice.below(100)),
  vocab_size: 1000 * (1 + dice.below(150)),
  max_position_embeddings: dice.pick([2048, 8192, 131072]),
});
const hardware = (dice) => ({
  memory_gib: 16 + dice.below(200),
  memory_bandwidth_gb_s: 300 + dice.below(8000),
  peak_bf16_tflops: 50 + dice.below(2000),
  interconnect_gb_s: 10 + dice.below(900),
  compute_efficiency: 0.3 + 0.7 * dice.unit(),
  bandwidth_efficiency: 0.3 + 0.7 * dice.unit(),
});

/** A trace in one of the common forms; some are none. */
function trace(dice) {
  const rows = 1 + dice.below(40);
  const lines = [];
  let at = 0;
  for (let row = 0; row < rows; row += 1) {
    at += dice.unit();
    lines.push([at.toFixed(3), 1 + dice.below(900), 1 + dice.below(120)]);
  }
  if (dice.chance(0.2))
    lines[dice.below(rows)][dice.below(3)] = dice.pick(['', '-1', 'x', '1e9', '1e400', 'NaN', '0', '"', '1.5']);
  return dice.pick([
    {
      name: 'trace.csv',
      text: `arrival_s,input_tokens,output_tokens\n${lines.map((line) => line.join(',')).join('\n')}\n`,
    },
    {
      name: 'lengths.csv',
      text: `num_prefill_tokens,num_decode_tokens\r\n${lines.map((line) => line.slice(1).join(',')).join('\r\n')}\r\n`,
    },
    {
      name: 'requests.json',
      text: JSON.stringify(
        lines.map(([arrival_s, input_tokens, output_tokens]) => ({
          arrival_s: Number(arrival_s),
          input_tokens,
          output_tokens,
        })),
      ),
    },
    {
      name: 'mooncake.jsonl',
      text: lines
        .map(([s, input_length, output_length]) =>
          JSON.stringify({
            timestamp: Math.round(s * 1000),
            input_length,
            output_length,
            hash_ids: Array.from({ length: clamp(Math.ceil(Number(input_length) / 512) || 1, 1, 100) }, (_, k) => k),
          }),
        )
        .join('\n'),
    },
    {
      name: 'semicolons.csv',
      text: `arrival_s;input_tokens;output_tokens\n${lines.map((line) => line.join(';')).join('\n')}\n`,
    },
  ]);
}

function pools(dice, fields, presets, document) {
  const apart = dice.chance(0.35);
  const pool = (role) => {
    const made = fill(dice, fields, '/cluster/pools/-', {}, 0.1, /replicas|parallel|role/);
    if (role) made.role = role;
    made.replicas = 1 + dice.below(4);
    for (const [name, most] of [
      ['tensor_parallel', 8],
      ['pipeline_parallel', 4],
      ['attention_data_parallel', 8],
    ]) {
      if (dice.chance(0.3))
        made[name] = dice.chance(0.8) ? 2 ** dice.below(Math.log2(most) + 1) : dice.pick([3, 5, 64, 1024]);
    }
    if (dice.chance(0.2))
      made.engine = fill(
        dice,
        fields,
        '/engine',
        dice.chance(0.5) ? { preset: dice.pick(presets.engines).id } : {},
        0.05,
        /preset|compat/,
      );
    if (dice.chance(0.15)) made.scheduler = fill(dice, fields, '/scheduler', {}, 0.4);
    if (dice.chance(0.15)) made.hardware = { preset: dice.pick(presets.hardware).id };
    return made;
  };
  document.cluster = {
    pools: apart ? [pool('prefill'), pool('decode')] : Array.from({ length: 1 + dice.below(3) }, () => pool()),
  };
  if (dice.chance(0.1)) document.cluster.pools.push(pool(dice.pick(['mixed', 'prefill', 'decode', undefined])));
  if (dice.chance(0.7)) fill(dice, fields, '/cluster/router', (document.cluster.router = {}), 0.9);
  if (apart || dice.chance(0.05)) {
    if (dice.chance(0.5)) fill(dice, fields, '/cluster/decode_router', (document.cluster.decode_router = {}), 0.9);
    if (dice.chance(0.5)) fill(dice, fields, '/cluster/disaggregation', (document.cluster.disaggregation = {}), 0.4);
  }
}

function workload(dice, fields, presets, replays) {
  const made = { requests: 1 + dice.below(150) };
  if (dice.chance(0.3)) made.preset = dice.pick(presets.workloads).id;
  made.arrivals = fill(
    dice,
    fields,
    '/workload/arrivals',
    replays ? { process: dice.pick(['trace', 'trace', 'poisson']) } : {},
    0.8,
    replays ? /process/ : /repeat/,
  );
  if (!replays && made.arrivals.process === 'trace' && dice.chance(0.9)) made.arrivals = { process: 'poisson' };
  if ('rate_per_s' in made.arrivals) made.arrivals.rate_per_s = 10 ** (4 * dice.unit() - 1);
  if ('repeat' in made.arrivals) made.arrivals.repeat = dice.below(4);
  const kinds = ['fixed', 'uniform', 'lognormal', 'normal', 'zipf', 'empirical'];
  const traced = replays && dice.chance(0.7) ? ['trace'] : kinds;
  if (!made.preset || dice.chance(0.3)) made.prompt_tokens = lengths(dice, traced);
  if (!made.preset || dice.chance(0.3)) made.output_tokens = lengths(dice, dice.chance(0.1) ? ['ratio'] : traced);
  if (made.output_tokens && dice.chance(0.1)) made.output_tokens.correlation = 2 * dice.unit() - 1;
  if (dice.chance(0.2)) made.prefix = { groups: dice.below(5), tokens: dice.below(600) };
  if (dice.chance(0.2)) made.sessions = { turns: 1 + dice.below(6), think_time_s: dice.below(20) };
  if (dice.chance(0.25)) {
    made.classes = Array.from({ length: 1 + dice.below(3) }, (_, number) => {
      const own = fill(
        dice,
        fields,
        '/workload/classes/-',
        { name: dice.pick(['a', 'b', 'c', `class ${number}`]) },
        0.12,
        /name|_tokens\//,
      );
      if ('turns' in own) own.turns = 1 + dice.below(5);
      if (dice.chance(0.3)) own.prompt_tokens = lengths(dice, kinds);
      if (dice.chance(0.3)) own.output_tokens = lengths(dice, kinds);
      return own;
    });
  }
  return made;
}

/** Paths of all values of a document, to spoil some. */
function pathsOf(value, path = []) {
  if (typeof value !== 'object' || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([name, member]) => pathsOf(member, [...path, name]))].filter(
    (each) => each.length > 0,
  );
}

function spoil(dice, fields, document) {
  for (let faults = 1 + dice.below(3); faults > 0; faults -= 1) {
    const paths = pathsOf(document);
    const path = dice.pick(paths);
    const kind = dice.below(8);
    if (kind < 3) {
      // A field of the catalogue, there or not.
      const field = dice.pick(fields);
      const at = field.path
        .slice(1)
        .split('/')
        .map((name) => (name === '-' ? String(dice.below(2)) : name));
      try {
        put(document, at, refused(dice, field));
      } catch {
        // Something that has no members stands in its way.
      }
    } else if (kind < 5) {
      const pointer = `/${path.map((name) => (/^\d+$/.test(name) ? '-' : name)).join('/')}`;
      const field = fields.find((each) => each.path === pointer);
      put(document, path, field ? refused(dice, field) : dice.pick(odd));
    } else if (kind === 5) {
      const parent = path.slice(0, -1).reduce((at, name) => at[name], document);
      if (Array.isArray(parent)) parent.pop();
      else delete parent[path.at(-1)];
    } else {
      put(document, [...path.slice(0, -1), dice.pick(oddNames)], dice.pick(odd));
    }
  }
}

/**
 * A text without what its issues point at, a few times over, so that more of it is run. `issuesOf` gives
 * Issue[] of a text.
 */
export function repaired(text, issuesOf) {
  for (let round = 0; round < 5; round += 1) {
    const issues = issuesOf(text);
    if (issues.length === 0) break;
    let document;
    try {
      document = JSON.parse(text);
    } catch {
      break;
    }
    for (const { path, kind } of issues) {
      if (kind === 'does_not_fit') {
        document.model = { preset: 'qwen3-0.6b' };
        continue;
      }
      const names = path
        .split('/')
        .slice(1)
        .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
      if (names.length === 0) continue;
      const parent = names.slice(0, -1).reduce((at, name) => at?.[name], document);
      if (typeof parent !== 'object' || parent === null) continue;
      if (Array.isArray(parent)) parent.splice(Number(names.at(-1)), 1);
      else delete parent[names.at(-1)];
    }
    text = JSON.stringify(document);
  }
  return text;
}

/** A target of the share of requests that are within several limits. */
function attainment(dice, { limit_ms, ...target }) {
  const limits = ['ttft_ms', 'tpot_ms', 'e2e_ms'].filter(() => dice.chance(0.6));
  return {
    ...target,
    metric: 'attainment',
    ...Object.fromEntries(limits.map((name) => [name, limit_ms * dice.unit()])),
  };
}

/** {text, trace?: {name, text}, repair: whether it is to be repaired} of a seed. */
export function makeDocument(catalog, seed) {
  const dice = new Dice(seed);
  const { fields, presets } = catalog;
  if (dice.chance(0.04)) {
    const document = structuredClone(dice.pick(presets.scenarios).document);
    document.workload.requests = 50;
    if (dice.chance(0.5)) spoil(dice, fields, document);
    return { text: JSON.stringify(document), repair: false };
  }
  const document = { schema: 1 };
  fill(dice, fields, '', document, 0.1, /\/.*\//);
  if (typeof document.seed === 'number') document.seed = dice.below(1000);
  document.model = dice.chance(0.8) ? { preset: dice.pick(presets.models).id } : model(dice);
  if (dice.chance(0.2)) fill(dice, fields, '/model', document.model, 0.06, /preset/);
  document.hardware = dice.chance(0.85) ? { preset: dice.pick(presets.hardware).id } : hardware(dice);
  if (dice.chance(0.2)) fill(dice, fields, '/hardware', document.hardware, 0.1, /preset/);
  document.engine = dice.chance(0.7) ? { preset: dice.pick(presets.engines).id } : {};
  if (dice.chance(0.7))
    fill(dice, fields, '/engine', document.engine, dice.pick([0.03, 0.1]), /preset|compat|kv_offload/);
  if (dice.chance(0.12)) document.engine.compat = dice.pick(['blis', 'blis-2026-02', 'vidur']);
  if (dice.chance(0.1)) fill(dice, fields, '/engine/kv_offload', (document.engine.kv_offload = {}), 0.7);
  if (document.engine.kv_offload && dice.chance(0.8)) document.engine.kv_offload.cpu_gib = dice.below(50);
  if (dice.chance(0.15)) document.engine.num_gpu_blocks_override = 2 + dice.below(400);
  if (dice.chance(0.4)) document.scheduler = fill(dice, fields, '/scheduler', {}, 0.4);
  if (dice.chance(0.5)) pools(dice, fields, presets, document);
  if (dice.chance(0.3)) document.latency = fill(dice, fields, '/latency', {}, 0.9);
  const replays = dice.chance(0.12);
  document.workload = workload(dice, fields, presets, replays);
  if (dice.chance(0.5)) {
    document.slo = Array.from({ length: 1 + dice.below(3) }, () => {
      const limit = { metric: dice.pick(['ttft', 'tpot', 'itl', 'e2e']), limit_ms: 1 + dice.below(3000) };
      if (dice.chance(0.5)) limit.percentile = dice.pick([0, 50, 90, 99, 99.9, 100]);
      if (dice.chance(0.05)) limit.class = 'a';
      return dice.chance(0.15) ? attainment(dice, limit) : limit;
    });
  }
  if (dice.chance(0.2)) document.measure = fill(dice, fields, '/measure', {}, 0.5);
  const repair = dice.chance(0.6);
  if (!repair && dice.chance(0.7)) spoil(dice, fields, document);
  let text = JSON.stringify(document);
  if (!repair && dice.chance(0.1)) text = dice.pick(oddTexts)(text);
  return replays && dice.chance(0.95) ? { text, repair, trace: trace(dice) } : { text, repair };
}

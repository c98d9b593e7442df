// Links that are cut, bent or meant badly, the same ones every time: `hostileLinks(count)`. What reads links has to have
// an answer to each: a scenario, or a sentence that says what is wrong.
import { deflateRawSync, inflateRawSync } from 'node:zlib';

/** A small generator of 32 bits (mulberry32). */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let word = state;
    word = Math.imul(word ^ (word >>> 15), word | 1);
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61);
    return ((word ^ (word >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const packed = (text, level = 9) => `z1.${deflateRawSync(Buffer.from(text), { level }).toString('base64url')}`;

/** Whether something follows the end of what is packed: browsers refuse that, node's streams do not see it. */
export function hasTail(link) {
  if (!link.startsWith('z1.')) return false;
  const bytes = Buffer.from(link.slice(3).split('&')[0], 'base64url');
  try {
    return inflateRawSync(bytes, { info: true }).engine.bytesWritten < bytes.length;
  } catch {
    return false;
  }
}

const preset = 'llama-3.1-8b-h100-chat';
const scenario = {
  schema: 1,
  model: { preset: 'llama-3.1-8b' },
  hardware: { preset: 'h100-sxm' },
  workload: { requests: 200, arrivals: { process: 'poisson', rate_per_s: 4 } },
  slo: [{ metric: 'ttft', percentile: 99, limit_ms: 800 }],
};
const pin = '&v=1.0.1.0&r=meets,95120&f=0123456789abcdef';
const good = [
  packed(JSON.stringify(scenario)),
  `${packed(JSON.stringify(scenario))}&trace=day%201.csv`,
  packed(JSON.stringify(scenario)) + pin,
  `p=${preset}&workload.arrivals.rate_per_s=14&engine.max_num_seqs=64`,
  `p=${preset}&slo.0.limit_ms=500&ui=chart&lock=1${pin}`,
];

const markup = [
  '<img src=x onerror=alert(1)>',
  '"><script>alert(1)</script>',
  "'-alert(1)-'",
  '</textarea><svg/onload=alert(1)>',
  'javascript:alert(1)',
  '\u0024{alert(1)}',
  '{{constructor.constructor("alert(1)")()}}',
  '\u202eabc\u0000\u001b[31m',
];
const prototypeKeys = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', '__defineGetter__'];

const kinds = {
  truncated: (random, link) => link.slice(0, Math.floor(random() * link.length)),
  flipped: (random, link) => {
    const at = Math.floor(random() * link.length);
    return link.slice(0, at) + String.fromCharCode(33 + Math.floor(random() * 94)) + link.slice(at + 1);
  },
  spliced: (random, link) => {
    const at = Math.floor(random() * link.length);
    return link.slice(0, at) + link.slice(Math.floor(random() * link.length));
  },
  doubled: (_random, link) => `${link}&${link}`,
  noise: (random) =>
    `z1.${Buffer.from(Array.from({ length: 1 + Math.floor(random() * 200) }, () => Math.floor(random() * 256))).toString('base64url')}`,
  version: (random, link) => link.replace(/^(z1\.|p=)/, `z${Math.floor(random() * 1000)}.`),
  escapes: (random, link) => `${link}&%${String.fromCharCode(33 + Math.floor(random() * 94))}=%E0%A4%A&trace=%`,
  markup: (random) => {
    const text = markup[Math.floor(random() * markup.length)];
    const place = Math.floor(random() * 5);
    if (place === 0) return `p=${text}`;
    if (place === 1) return `p=${preset}&${encodeURIComponent(text)}=1`;
    if (place === 2) return `p=${preset}&name=${encodeURIComponent(text)}&nope=${text}`;
    if (place === 3) return packed(JSON.stringify({ ...scenario, name: text, [text]: text }));
    return `${good[0]}&trace=${encodeURIComponent(text)}&v=${text}&r=${text}&f=${text}`;
  },
  prototype: (random) => {
    const key = prototypeKeys[Math.floor(random() * prototypeKeys.length)];
    const place = Math.floor(random() * 4);
    if (place === 0) return `p=${preset}&${key}.polluted=true`;
    if (place === 1) return `p=${preset}&workload.${key}=1&${key}=1`;
    if (place === 2) return `p=${key}`;
    return packed(`{"schema":1,"${key}":{"polluted":true},"workload":{"${key}":{"polluted":true}}}`);
  },
  json: (random) =>
    packed(
      [
        '[1,2,3]',
        'null',
        '"text"',
        '{',
        '[',
        '['.repeat(50_000),
        `${'{"a":'.repeat(20_000)}1`,
        '{"schema":1e999}',
        '{"schema":2}',
        '{"schema":1,"workload":{"requests":-1e308}}',
        `{"schema":1,"slo":[${'{},'.repeat(5000)}{}]}`,
        '\ufeff{"schema":1}',
        '{"schema":1,"schema":1}',
        `{"schema":1,"name":"${'x'.repeat(100_000)}"}`,
      ][Math.floor(random() * 14)],
    ),
  bytes: (random) =>
    `z1.${deflateRawSync(Buffer.from(Array.from({ length: 50 }, () => Math.floor(random() * 256)))).toString('base64url')}`,
  path: (random) =>
    `p=${preset}&${['a.'.repeat(1 + Math.floor(random() * 4000)), 'slo.99999999999.x', 'workload..x', '.', '=', 'slo.-1.limit_ms'][Math.floor(random() * 6)]}=1`,
  number: (random) =>
    `p=${preset}&workload.arrivals.rate_per_s=${['1e999', '-1', '0', 'NaN', 'Infinity', '9'.repeat(400), '0x10', '1e-400', 'true', '{}', '[[[[', ''][Math.floor(random() * 12)]}`,
  pin: (random) =>
    good[0] +
    [
      '&v=1.0.1.0',
      '&v=&r=&f=',
      `&v=1.0.1.0&r=meets${',9'.repeat(500)}&f=0123456789abcdef`,
      '&v=1.0.1.0&r=meets,999999999999999999999&f=0123456789abcdef',
      '&v=1.0.1.0&r=MEETS,1&f=0123456789abcdef',
      '&v=1.0.1.0&r=meets,1&f=0123456789abcdeg',
      '&f=0123456789abcdef&r=meets,1&v=1.0.1.0',
      `&v=1.0.1.0&r=meets,1&f=${'0'.repeat(100_000)}`,
    ][Math.floor(random() * 8)],
};

/** Each is made of its own number: a failing one can be made alone. */
export function hostileLink(number) {
  const random = randomFrom(number);
  const names = Object.keys(kinds);
  const name = names[number % names.length];
  return { name, link: kinds[name](random, good[Math.floor(random() * good.length)]) };
}

/** The first ones are large: bombs, and links longer than any. */
export function hostileLinks(count) {
  const large = [
    packed(`{"name":"${'a'.repeat(3_000_000)}"}`),
    packed('\0'.repeat(50_000_000)),
    `p=${'x'.repeat(300_000)}`,
    `z1.${'A'.repeat(300_000)}`,
    `p=${preset}${'&a=1'.repeat(60_000)}`,
  ].map((link) => ({ name: 'large', link }));
  return [...large, ...Array.from({ length: count - large.length }, (_, index) => hostileLink(index))];
}

/** A scenario as people vary one: small enough to be run in a moment. */
export function randomScenario(seed) {
  const random = randomFrom(seed * 7919);
  const pick = (list) => list[Math.floor(random() * list.length)];
  const letters = 'aZ09 _-"\\/&=#%+.,\u00fc\u4e2d\u{1f600}<>';
  const name = Array.from({ length: Math.floor(random() * 12) }, () => pick([...letters])).join('');
  return {
    schema: 1,
    ...(name === '' ? {} : { name }),
    seed: 1 + Math.floor(random() * 1e6),
    model: { preset: pick(['llama-3.1-8b', 'qwen2.5-7b']) },
    hardware: { preset: pick(['h100-sxm', 'a100-80gb', 'l40s']) },
    engine: { max_num_seqs: pick([8, 64, 256]), enable_prefix_caching: random() < 0.5 },
    workload: {
      requests: 20 + Math.floor(random() * 60),
      arrivals: { process: 'poisson', rate_per_s: Number((0.5 + random() * 20).toPrecision(5)) },
      prompt_tokens: { distribution: 'uniform', min: 10, max: 10 + Math.floor(random() * 900) },
      output_tokens: { distribution: 'fixed', value: 2 + Math.floor(random() * 60) },
    },
    slo: [
      {
        metric: pick(['ttft', 'tpot', 'e2e']),
        percentile: pick([50, 90, 99]),
        limit_ms: 1 + Math.floor(random() * 2000),
      },
    ],
  };
}

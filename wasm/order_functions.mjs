// node order_functions.mjs MODULE.wasm MODULE.wat: sorts the functions of the text so that gzip packs the module better.
// gzip looks 32 KB back, so functions that are alike belong near each other. Nothing but the order changes. MODULE.wat is
// what wasm-opt -S prints of MODULE.wasm, whose bytes are compared.
// Greedy: the next function is the one that shares most with those written last, relative to its length.
import { readFileSync, writeFileSync } from 'node:fs';

/** Functions are compared by their runs of this many bytes. */
const run = 6;
/** A run that more functions have says nothing about any of them. */
const most = 100;
/** Bytes written last that count: what gzip looks back, less a margin. */
const window = 28_000;
/** Exponent of a function's length in its score: near 1 prefers short functions, near 0 long ones. */
const weight = 0.6;
/** The first functions stay: they are called most, and their numbers take one byte. */
const kept = 120;

const [binary, text] = process.argv.slice(2);

/** The code of each function. */
function codeOf(bytes) {
  let at = 8;
  const number = () => {
    for (let value = 0, shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  for (;;) {
    const section = bytes[at++];
    const size = number();
    if (section !== 10) {
      at += size;
      continue;
    }
    return Array.from({ length: number() }, () => {
      const length = number();
      at += length;
      return bytes.toString('latin1', at - length, at);
    });
  }
}

/** The runs of each function, as numbers, without those that it alone has. */
function runsOf(codes) {
  const all = codes.map((code) => {
    const runs = new Set();
    for (let i = 0; i + run <= code.length; ++i) runs.add(code.slice(i, i + run));
    return runs;
  });
  const users = new Map();
  for (const runs of all) for (const each of runs) users.set(each, (users.get(each) ?? 0) + 1);
  const numbers = new Map();
  for (const [each, count] of users) if (count > 1 && count <= most) numbers.set(each, numbers.size);
  return all.map((runs) => [...runs].flatMap((each) => numbers.get(each) ?? []));
}

function ordered(codes) {
  const runs = runsOf(codes);
  const users = [];
  runs.forEach((each, i) => {
    for (const one of each) {
      users[one] ??= [];
      users[one].push(i);
    }
  });
  const near = new Int32Array(users.length);
  const shared = new Int32Array(codes.length);
  const weights = codes.map((code) => (code.length + 5) ** weight);
  const left = new Set(codes.keys());
  const order = [];
  let first = 0;
  let length = 0;
  for (let next = 0; next >= 0; ) {
    left.delete(next);
    order.push(next);
    length += codes[next].length;
    for (const one of runs[next]) if (near[one]++ === 0) for (const user of users[one]) ++shared[user];
    for (; length > window && first + 1 < order.length; ++first) {
      length -= codes[order[first]].length;
      for (const one of runs[order[first]]) if (--near[one] === 0) for (const user of users[one]) --shared[user];
    }
    if (order.length < kept) {
      ++next;
      continue;
    }
    next = -1;
    let best = -1;
    for (const each of left) {
      const score = shared[each] / weights[each];
      if (score > best) [next, best] = [each, score];
    }
  }
  return order;
}

const codes = codeOf(readFileSync(binary));
const forms = readFileSync(text, 'utf8').split(/^(?= \()/m);
const places = [...forms.keys()].filter((i) => forms[i].startsWith(' (func '));
if (places.length !== codes.length)
  throw new Error(`${text} has ${places.length} functions, ${binary} ${codes.length}`);
// The last form has the parenthesis that ends the module.
const last = forms.length - 1;
if (places.at(-1) !== last) throw new Error(`${text} does not end with a function`);
forms[last] = forms[last].replace(/\)\s*$/, '');
const functions = places.map((i) => forms[i]);
ordered(codes).forEach((from, to) => {
  forms[places[to]] = functions[from];
});
writeFileSync(text, `${forms.join('')})\n`);

// servecast card: a picture that any viewer of SVG takes, of what servecast run says, whatever a scenario is named.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import test from 'node:test';
import { command } from '../command.mjs';

const chat = 'llama-3.1-8b-h100-chat';

function servecast(words, input = '') {
  const { status, stdout, stderr } = spawnSync(command, words, { encoding: 'utf8', input, maxBuffer: 2 ** 26 });
  return { status, stdout, stderr };
}
const card = (...words) => {
  const { status, stdout, stderr } = servecast(['card', ...words]);
  assert.equal(status, 0, stderr);
  return stdout;
};

const entities = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"' };
/** Elements by name, with their text; fails where a tag is not closed or an entity unknown. */
function elements(svg) {
  const open = [];
  const found = [];
  for (const [, closing, name, attributes, self, text] of svg.matchAll(
    /<(\/?)([a-z]+)((?:\s+[\w:-]+="[^"<]*")*)\s*(\/?)>([^<]*)/g,
  )) {
    if (closing) assert.equal(open.pop(), name);
    else if (!self) open.push(name);
    if (!closing) {
      const plain = text.replace(/&\w*;?/g, (each) => entities[each] ?? assert.fail(`entity ${each}`));
      found.push({ name, attributes, text: plain.trim() });
    }
  }
  assert.deepEqual(open, []);
  assert.equal(svg.match(/</g).length, svg.match(/<\/?[a-z]+[^<]*>/g).length);
  return found;
}
const texts = (svg) => elements(svg).flatMap(({ name, text }) => (name === 'text' ? [text] : []));

test('Card_SaysWhatRunSays_WithIntervalsAndTail', () => {
  const report = JSON.parse(servecast(['run', chat, '--sampling']).stdout);
  const svg = card(chat);
  const said = texts(svg).join(' ');
  assert.ok(svg.includes(`<title>${report.name ?? report.scenario.name}</title>`));
  assert.ok(said.includes(report.verdict.sentence), said);
  assert.ok(said.includes(report.fingerprint));
  for (const { low, high } of report.slo) {
    for (const value of [low, high])
      assert.ok(said.includes(Number(value.toPrecision(3)).toString()), `${value}: ${said}`);
  }
  const [, curve] = svg.match(/<path d="M([\d. L]+)" fill="none" stroke="#0072b2"/);
  assert.ok(curve.split('L').length > 20);
  assert.equal(svg, card(chat));
});

test('Card_DrawsTheTargetThatDecides_InTextToBeReadAt640Px', () => {
  for (const [tpot, ttft, decides] of [
    [20, 200, 'TPOT'],
    [100, 120, 'TTFT'],
  ]) {
    const target = (metric, limit) => `{"metric":"${metric}","percentile":99,"limit_ms":${limit}}`;
    const svg = card(chat, '--set', `slo=[${target('ttft', ttft)},${target('tpot', tpot)}]`);
    assert.ok(texts(svg).includes(`${decides} of one run, by share of requests`), decides);
    for (const [, size] of svg.matchAll(/font-size="(\d+)"/g)) assert.ok((size * 640) / 960 >= 12, size);
  }
});

test('Card_OfALink_IsThatOfItsScenario_AndCarriesItsLink', () => {
  const site = 'https://example.org/servecast/';
  const link = servecast(['link', 'encode', chat, '--site', site]).stdout.trim();
  assert.equal(card(link), card(chat, '--site', site));
  assert.equal(card(link.slice(site.length + 1)), card(chat));
  const [, address] = card(link).match(/<a href="([^"]*)"/);
  assert.equal(address, link);
  assert.ok(!card(chat).includes('<a '));
});

test('Card_EveryVerdict_IsOneInColourAndShape', () => {
  const of = (...changes) => ['card', chat, ...changes.flatMap((each) => ['--set', each])];
  const states = {
    meets: [],
    near: ['workload.arrivals.rate_per_s=48'],
    misses: ['workload.arrivals.rate_per_s=60'],
    overloaded: ['workload.arrivals.rate_per_s=200'],
    'no targets': ['slo=[]'],
    attainment: ['slo=[{"metric":"attainment","percentile":99,"ttft_ms":200,"tpot_ms":20}]'],
  };
  const seen = new Set();
  for (const [name, changes] of Object.entries(states)) {
    const { status, stdout, stderr } = servecast(of(...changes));
    assert.equal(status, 0, `${name}: ${stderr}`);
    texts(stdout);
    seen.add(
      stdout.match(
        /translate\(\d+ 98\)" fill="none" stroke="#\w+" stroke-width="3"><circle r="18" stroke-width="2"\/><path d="([^"]+)"/,
      )[1],
    );
  }
  assert.equal(seen.size, 5);
});

test('Badge_IsALine_OfVerdictAndClosestTarget', () => {
  const [left, right] = texts(card(chat, '--badge'));
  assert.equal(left, 'forecast');
  assert.match(right, /^meets, TPOT p99 [\d.]+ ms$/);
  assert.match(texts(card(chat, '--badge', '--set', 'workload.arrivals.rate_per_s=200'))[1], /^overloaded$/);
});

test('Card_AHostileName_IsText', () => {
  const hostile = `</title><script>alert(1)</script> "&amp; \u0007 ${'long '.repeat(80)}${'x'.repeat(300)}`;
  const { status, stdout } = servecast(['card', '-', '--title', hostile], JSON.stringify(document()));
  assert.equal(status, 0);
  assert.ok(!elements(stdout).some(({ name }) => name === 'script'));
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are they
  assert.doesNotMatch(stdout, /[\u0000-\u0008\u000b-\u001f]/);
  const named = servecast(['card', '-'], JSON.stringify({ ...document(), name: '<b>&' })).stdout;
  assert.equal(elements(named).find(({ name }) => name === 'title').text, '<b>&');
});

test('Card_WhatCannotRun_SaysWhy', () => {
  for (const words of [
    ['nonesuch'],
    ['z1.nonsense'],
    [chat, '--set', 'engine.max_num_seqs=-1'],
    [chat, '--site', 'https://example.org/#x'],
    ['#p=llama-3.1-8b-h100-chat', '--set', 'seed=2'],
    [],
  ]) {
    const { status, stdout, stderr } = servecast(['card', ...words]);
    assert.equal(status, 2, words.join(' '));
    assert.equal(stdout, '');
    assert.notEqual(stderr, '');
  }
});

function document() {
  const { presets } = JSON.parse(servecast(['catalog', '--json']).stdout);
  return presets.scenarios.find(({ id }) => id === chat).document;
}

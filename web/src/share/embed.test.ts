// What embeds are told and say, and what others' pages are given: all of it may come from anybody.
import type { Report } from 'servecast';
import { describe, expect, it } from 'vitest';
import { cardOf, wrapped } from './card';
import { names, pointerOfPath, readOptions, withoutOptions } from './embed-options';
import { decodeLink } from './link';
import { readSet, resultOf } from './messages';
import { commandOf, elementOf, iframeOf, markdownOf, type Shared } from './snippets';

const evil = '<img src=x onerror=alert(1)>"\'](javascript:alert(1)) `x` \u0000';
const report = {
  schema: 1,
  engine_version: '0.1.0',
  finished: true,
  fingerprint: '0123456789abcdef',
  scenario_id: 'a'.repeat(16),
  output_tokens_per_s_per_gpu: 1234,
  verdict: { state: 'meets', sentence: `${evil} meets both targets`, limit: '', note: '' },
  slo: [
    { metric: 'ttft', percentile: 99, limit_ms: 800, value_ms: 95, low: 94, high: 97, met: true, unbounded: false },
    { metric: 'attainment', percentile: 99, limit_ms: null, value_ms: null, low: null, high: null, met: true },
  ],
} as unknown as Report;
const shared: Shared = { site: 'https://example.org/x/', link: 'p=a&b.c=1', title: evil, report };
const look = { ui: 'what-if', theme: 'dark', autorun: 'visible', lock: false, knobs: ['/a/b', '/c/d'] } as const;

describe('options of an embed', () => {
  it('AreRead_AndTakenAwayFromTheLink', () => {
    const fragment = '#p=a&b.c=1&ui=what-if&metric=ttft&autorun=0&theme=dark&lock=1&knobs=a.b,c_d.e%2Cf.0.g&v=1.0.1.0';
    expect(readOptions(fragment)).toEqual({
      ui: 'what-if',
      metric: 'ttft',
      autorun: '0',
      theme: 'dark',
      lock: true,
      knobs: ['/a/b', '/c_d/e', '/f/0/g'],
      problems: [],
    });
    expect(withoutOptions(fragment)).toBe('p=a&b.c=1&v=1.0.1.0');
  });
  it.each(names)('%s_IsNoPartOfAScenario_ForTheDecoderEither', async (name) => {
    expect(withoutOptions(`p=a&${name}=x&b.c=1`)).toBe('p=a&b.c=1');
    expect(await decodeLink(`p=a&${name}=x&b.c=1`)).toMatchObject({ kind: 'readable', text: 'p=a&b.c=1' });
  });
  it('SaidTwice_TheLastCounts', () => {
    // An element's attributes stand behind the link that it was given.
    expect(readOptions('#p=a&ui=compact&theme=dark&ui=full')).toMatchObject({ ui: 'full', theme: 'dark' });
  });
  it('NotSaid_AreAChartThatRunsWhenItIsSeen', () => {
    expect(readOptions('#p=a')).toEqual({
      ui: 'chart',
      metric: null,
      autorun: 'visible',
      theme: 'auto',
      lock: false,
      knobs: [],
      problems: [],
    });
  });
  it.each([
    'ui=<b>',
    'metric=__proto__',
    'autorun=2',
    'theme=',
    'lock=yes',
    'knobs=a.b,c.d,e.f,g.h',
    'knobs=__proto__.x',
  ])('Unknown_%s_IsNamedAndLeftOut', (option) => {
    const { problems, ...others } = readOptions(`#p=a&${option}`);
    expect(problems).toHaveLength(1);
    expect(problems[0]).not.toMatch(/[<>]|__/);
    expect(others.ui).toBe('chart');
  });
  it.each(['', 'a', 'a..b', '.a.b', 'a/b.c', 'constructor.__proto__', 'A.b', `${'a.'.repeat(200)}b`])(
    'Path_%s_IsNone',
    (path) => {
      expect(pointerOfPath(path)).toBeNull();
    },
  );
});

describe('messages to an embed', () => {
  const set = (more: object) => ({ type: 'servecast', v: 1, kind: 'set', ...more });
  it('Set_IsTaken', () => {
    const change = readSet(set({ values: { 'a.b': 3, 'c.d': 'x', 'e.f': true }, theme: 'dark' }));
    expect([...(change?.values ?? [])]).toEqual([
      ['/a/b', 3],
      ['/c/d', 'x'],
      ['/e/f', true],
    ]);
    expect(change).toMatchObject({ theme: 'dark', problem: '' });
    expect(readSet(set({}))).toMatchObject({ problem: '' });
  });
  it.each([
    null,
    1,
    'set',
    [],
    {},
    { type: 'servecast', v: 2, kind: 'set' },
    { type: 'servecast', v: 1, kind: 'ready' },
    { type: 'other', v: 1, kind: 'set' },
  ])('Others_%j_AreIgnored', (data) => {
    expect(readSet(data)).toBeNull();
  });
  it.each([
    { values: [] },
    { values: { a: 1 } },
    { values: { 'a.b': {} } },
    { values: { 'a.b': NaN } },
    { values: { 'a.b': null } },
    { values: { 'a.b': 'x'.repeat(1000) } },
    { values: JSON.parse('{"__proto__.x": 1}') },
    { values: Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`a.b${index}`, 1])) },
    { theme: 'pink' },
  ])('Bad_%j_IsRefusedInASentence', (more) => {
    const change = readSet(set(more));
    expect(change?.problem).toMatch(/^[a-z].*\.$/);
    expect(change?.values.size).toBe(0);
  });
  it('Result_IsPlain', () => {
    expect(structuredClone(resultOf(report))).toMatchObject({ state: 'meets', fingerprint: report.fingerprint });
  });
});

describe('snippets', () => {
  it('Iframe_HasItsOptions_AndNoMarkupOfTheScenario', () => {
    const text = iframeOf(shared, look);
    expect(text).toContain(
      'src="https://example.org/x/embed.html#p=a&amp;b.c=1&amp;ui=what-if&amp;theme=dark&amp;knobs=a.b,c.d"',
    );
    expect(text.match(/</g)).toHaveLength(2);
  });
  it('Element_HasTheSentenceTheLinkAndATable', () => {
    const text = elementOf(shared, look);
    expect(text).toMatch(/^<div>\n[\s\S]*\S\n<\/div>$/);
    expect(text).not.toContain('\n\n');
    expect(text).toContain('<script async src="https://example.org/x/servecast-embed.js"></script>');
    expect(text).toContain('<servecast-embed scenario="p=a&amp;b.c=1" ui="what-if" theme="dark" knobs="a.b,c.d">');
    expect(text).toContain('<a href="https://example.org/x/#p=a&amp;b.c=1">');
    expect(text).toMatch(/<th>TTFT p99<\/th><td>95.*<td>94.* to 97.*<td>800/);
    expect(text).not.toContain('<img');
  });
  it('Locked_HasNoKnobs', () => {
    expect(iframeOf(shared, { ...look, lock: true })).toMatch(/&amp;lock=1"/);
  });
  it('Markdown_IsOneLineWithoutMarkup', () => {
    const text = markdownOf(shared);
    expect(text.startsWith('[\\<img')).toBe(true);
    expect(text).toContain('](https://example.org/x/#p=a&b.c=1): ');
    expect(text).not.toContain('\n');
    expect(text).not.toMatch(/[^\\]</);
  });
  it('Command_IsQuotedForAShell', () => {
    expect(commandOf({ ...shared, link: "p=a&name=it's" }, "o'k.csv")).toBe(
      "servecast link open 'p=a&name=it'\\''s' --trace 'o'\\''k.csv'",
    );
    expect(commandOf(shared, '')).toContain("--trace 'FILE'");
  });
  it('Card_IsSvgWithItsTextsEscaped', () => {
    const columns = {
      cdf_fraction: Float64Array.from([0, 0.5, 0.9, 0.99, 1]),
      cdf_ttft_ms: Float64Array.from([1, 50, 80, 95, 100]),
    };
    const text = cardOf(evil, report, columns, 'https://example.org/x/#p=a&b.c=1');
    expect(text).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
    expect(text).toContain('<a href="https://example.org/x/#p=a&amp;b.c=1">');
    expect(text).toContain('engine 0.1.0 · fingerprint 0123456789abcdef');
    expect(text).toContain('limit 800');
    expect(text).not.toContain('<img');
    expect(text).not.toContain('\u0000');
  });
  it('Wrapped_KeepsToItsLines', () => {
    expect(wrapped('a bb ccc dddd', 5, 2)).toEqual(['a bb', 'ccc…']);
    expect(wrapped('x'.repeat(12), 5, 3)).toEqual(['xxxxx', 'xxxxx', 'xx']);
  });
});

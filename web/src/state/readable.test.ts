import { describe, expect, it } from 'vitest';
import { readableLink, readableLinks } from './readable';

const presets = [
  { id: 'chat', document: { model: { preset: 'm' }, workload: { requests: 9, arrivals: { process: 'poisson' } } } },
  { id: 'other', document: { name: 'x'.repeat(50) } },
];
const first = (document: object) => readableLinks(presets, document as never)[0];

describe('readable links', () => {
  it('APreset_IsItsName', () => expect(first(presets[0]!.document)).toBe('p=chat'));
  it('AChange_IsAMember', () =>
    expect(first({ model: { preset: 'm' }, workload: { requests: 9, arrivals: { process: 'poisson', cv: 2 } } })).toBe(
      'p=chat&workload.arrivals.cv=2',
    ));
  it('WhatDecidesWhichMembersThereAre_StandsFirst', () =>
    expect(
      first({
        model: { preset: 'm' },
        workload: { requests: 9, arrivals: { concurrency: 3, process: 'closed_loop' } },
      }),
    ).toBe('p=chat&workload.arrivals.process=closed_loop&workload.arrivals.concurrency=3'));
  it('AWordThatLooksLikeANumber_StaysAWord', () =>
    expect(first({ ...presets[0]!.document, name: '12' })).toBe('p=chat&name=%2212%22'));
  it('WhatPartsALink_IsEscaped', () =>
    expect(first({ ...presets[0]!.document, name: 'a&b=c#d%41' })).toBe('p=chat&name=a%26b%3Dc%23d%2541'));
  it('APresetThatCameFromALink_WithoutItsDefaults_IsStillItsName', async () => {
    // The engine leaves out defaults, here the process and in a list the percentile; a path can reach into neither.
    const spelt = { id: 'p99', document: { rate: 1, slo: [{ limit_ms: 200, percentile: 99 }] } };
    const canonical = { rate: 1, slo: [{ limit_ms: 200 }] };
    const asked: string[] = [];
    const parse = (link: string) => {
      asked.push(link);
      const rate = /&rate=(\d+)/.exec(link)?.[1];
      const text = JSON.stringify({ ...canonical, rate: Number(rate ?? 1) });
      return Promise.resolve({ text, id: '', issues: [] });
    };
    const link = (document: object) => readableLink([spelt], document as never, JSON.stringify(document), parse);
    expect(await link(canonical)).toBe('p=p99');
    expect(await link({ ...canonical, rate: 7 })).toBe('p=p99&rate=7');
    expect(await readableLink([spelt], canonical as never, 'something else', parse)).toBeNull();
    expect(asked.length).toBeLessThan(10);
  });
  it('AKeyThatNoPathCanSay_HasNoReadableLink', () => expect(readableLinks(presets, { 'a.b': 1 } as never)).toEqual([]));
});

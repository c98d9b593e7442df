import type { Canonical, Issue } from 'servecast';
import { describe, expect, it } from 'vitest';
import type { Question } from '../engine/protocol';
import type { Document } from './document';
import { nearestDocument, nearestFragment, without } from './salvage';

const unknown = (path: string): Issue => ({ path, message: 'unknown key' });

/** An engine that knows `good` members of `workload` only; counts what it is asked. */
function engineThatKnows(good: readonly string[]) {
  const asked: string[] = [];
  const ask = (_question: Question, text: string): Promise<Canonical> => {
    asked.push(text);
    const document = JSON.parse(text) as { workload?: Document };
    const issues = Object.keys(document.workload ?? {})
      .filter((key) => !good.includes(key))
      .map((key) => unknown(`/workload/${key}`));
    return Promise.resolve({ text: issues.length > 0 ? '' : text, id: '', issues });
  };
  return { ask, asked };
}

/** An object that counts how often a member of it is read, by whatever means. */
function counting(members: Document): { readonly object: Document; readonly reads: () => number } {
  let reads = 0;
  const object = new Proxy(members, {
    get: (target, key) => {
      reads += 1;
      return Reflect.get(target, key) as unknown;
    },
  });
  return { object, reads: () => reads };
}

describe('salvage', () => {
  it('Without_ManyMembers_ReadsEachMemberOnce', () => {
    const members = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`x${i}`, i]));
    const { object, reads } = counting({ ...members, kept: 1 });
    const rest = without(
      { workload: object },
      Array.from({ length: 100 }, (_, i) => `/workload/x${i}`),
    );
    expect(Object.keys(rest['workload'] as Document)).toHaveLength(9_901);
    expect(reads(), 'one copy, not one for each pointer').toBeLessThan(2 * 10_001);
  });
  it('Without_ItemsAndEmptiedObjects_KeepPlacesOfOthers', () => {
    const document = { slo: [{ a: 1 }, { b: 2 }, { c: 3 }], engine: { x: 1 }, seed: 1 };
    expect(without(document, ['/slo/0', '/slo/1/b', '/engine/x'])).toEqual({ slo: [{}, { c: 3 }], seed: 1 });
    expect(without(document, ['/slo/1/b', '/slo/1']), 'whatever the order').toEqual({
      slo: [{ a: 1 }, { c: 3 }],
      engine: { x: 1 },
      seed: 1,
    });
  });
  it('Document_BadMembers_AreLeftOutTogether', async () => {
    const engine = engineThatKnows(['requests']);
    const text = JSON.stringify({ workload: { requests: 5, a: 1, b: 2 } });
    const nearest = await nearestDocument(engine.ask, text, [unknown('/workload/a'), unknown('/workload/b')], null);
    expect(nearest).toEqual({
      document: { workload: { requests: 5 } },
      trace_name: null,
      dropped: ['/workload/b', '/workload/a'],
    });
    expect(engine.asked).toHaveLength(1);
  });
  it('Document_MoreIssuesThanAreListed_IsNotSalvaged_AndNothingIsAsked', async () => {
    const engine = engineThatKnows([]);
    const issues = [
      ...Array.from({ length: 100 }, (_, i) => unknown(`/workload/x${i}`)),
      { path: '', message: 'and 9900 more issues', kind: 'more' as const },
    ];
    expect(await nearestDocument(engine.ask, '{"workload":{"x0":1}}', issues, null)).toBeNull();
    expect(await nearestFragment(engine.ask, 'p=a&workload.x0=1', issues)).toBeNull();
    expect(engine.asked).toHaveLength(0);
  });
  it('Fragment_PartsOfBadPlaces_AreLeftOut', async () => {
    const ask = (_question: Question, text: string): Promise<Canonical> =>
      Promise.resolve(
        text === 'p=a&seed=2'
          ? { text: '{"seed":2}', id: '', issues: [] }
          : { text: '', id: '', issues: [unknown('/x')] },
      );
    const parts = 'p=a&engine.max.deep=1&engine.max=2&seed=2&workload.classes.0.name=n';
    const nearest = await nearestFragment(ask, parts, [unknown('/engine/max'), unknown('/workload/classes/0')]);
    expect(nearest?.dropped).toEqual(['engine.max.deep', 'engine.max', 'workload.classes.0.name']);
    expect(nearest?.document).toEqual({ seed: 2 });
    const above = await nearestFragment(ask, 'p=a&engine={}&seed=2', [unknown('/engine/max')]);
    expect(above?.dropped).toEqual(['engine']);
  });
});

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Outcome } from '../engine/protocol';
import type { Document } from './document';
import { ageText, Kept, parseKept, type Shelf } from './kept';
import { Store } from './store';

const linkTo = async (document: Document) => `z1.${JSON.stringify(document)}`;
const outcome = (sentence: string) => ({ report: { verdict: { sentence } } }) as unknown as Outcome;

function memory(text: string | null = null): Shelf & { text: string | null } {
  return {
    text,
    read() {
      return this.text;
    },
    write(written) {
      this.text = written;
    },
  };
}

function shows(store: Store, document: Document, sentence = 'Meets.'): void {
  store.update({ document, shown: { outcome: outcome(sentence), document, completeness: 'final', progress: 1 } });
}

describe('scenarios of this machine', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const rest = () => vi.advanceTimersByTimeAsync(3001);

  it('AreWhatWasAtRest_OneForAllEditsOfWhatWasOpened', async () => {
    const store = new Store();
    const kept = new Kept(store, linkTo, memory());
    kept.watch();
    store.update({ base: { seed: 1 } });
    shows(store, { seed: 2 });
    await vi.advanceTimersByTimeAsync(1000);
    expect(kept.items).toEqual([]);
    await rest();
    shows(store, { seed: 3 }, 'Misses.');
    await rest();
    expect(kept.items.map(({ link, verdict }) => [link, verdict])).toEqual([['z1.{"seed":3}', 'Misses.']]);
    store.update({ base: { seed: 9 } });
    shows(store, { seed: 10 });
    await rest();
    expect(kept.items.map(({ link }) => link)).toEqual(['z1.{"seed":10}', 'z1.{"seed":3}']);
  });

  it('AreNoPresetsAsTheyAre_AndNothingThatIsNotCertain', async () => {
    const store = new Store();
    const kept = new Kept(store, linkTo, memory());
    kept.watch();
    store.update({ base: { seed: 1 }, preset_id: 'a' });
    shows(store, { seed: 1 });
    await rest();
    store.update({ document: { seed: 5 } });
    await rest();
    expect(kept.items).toEqual([]);
  });

  it('StayWhenTheyAreKept_WithTitleAndNote_UntilTheyAreRemoved', async () => {
    const shelf = memory();
    const store = new Store();
    const kept = new Kept(store, linkTo, shelf);
    kept.watch();
    const named = { name: 'Chat', description: 'for May' };
    shows(store, named);
    await kept.keep();
    await rest();
    for (let seed = 0; seed < 20; ++seed) {
      store.update({ base: { seed } });
      shows(store, { seed: seed + 100 });
      await rest();
    }
    const again = new Kept(new Store(), linkTo, shelf);
    expect(again.items.length).toBe(9);
    expect(again.items[0]).toMatchObject({ name: 'Chat', note: 'for May', verdict: 'Meets.', kept: true });
    expect(again.presets[0]?.description).toMatch(/^Kept .*\. for May$/);
    again.remove(await linkTo(named));
    expect(parseKept(shelf.text).length).toBe(8);
  });

  it('OnceRemoved_AreNotNotedAgain', async () => {
    const store = new Store();
    const kept = new Kept(store, linkTo, memory());
    kept.watch();
    shows(store, { name: 'Chat' });
    await kept.keep();
    kept.remove(await linkTo({ name: 'Chat' }));
    await rest();
    expect(kept.items).toEqual([]);
  });

  it('ThatDoNotFit_TakeNoOtherAway_AndAreSaid', async () => {
    const store = new Store();
    const kept = new Kept(store, linkTo, memory());
    for (const name of ['a', 'b']) {
      shows(store, { name });
      expect(await kept.keep()).toBe(true);
    }
    shows(store, { name: 'c'.repeat(1_000_001) });
    expect(await kept.keep()).toBe(false);
    for (let i = 0; i < 120; ++i) {
      shows(store, { name: `n${i}` });
      expect(await kept.keep()).toBe(i < 98);
    }
    expect(kept.items.slice(-2).map(({ name }) => name)).toEqual(['b', 'a']);
    const unread = new Kept(store, async () => '', memory());
    expect(await unread.keep()).toBe(false);
  });

  it('ByTheAddressOfAPreset_AreNone', async () => {
    for (const [link, count] of [
      ['p=chat', 0],
      ['p=chat&v=1.0&r=meets,1&f=0123456789abcdef', 0],
      ['p=chat&workload.requests=9', 1],
    ] as const) {
      const store = new Store();
      const kept = new Kept(store, linkTo, memory());
      kept.watch();
      const document = { seed: 1 };
      store.update({ base: document, link });
      shows(store, document);
      await rest();
      expect(kept.items.length).toBe(count);
    }
  });

  it('AreOfThisVisit_WhereABrowserHasNoStorage', async () => {
    const refuses = () => {
      throw new Error('denied');
    };
    const store = new Store();
    const kept = new Kept(store, linkTo, { read: refuses, write: refuses });
    shows(store, { name: 'Chat' });
    await kept.keep();
    expect(kept.isForgetful).toBe(true);
    expect(kept.items.map(({ name }) => name)).toEqual(['Chat']);
  });

  it('AreReadFromWhateverStandsThere', () => {
    for (const text of [null, '', '{', '{}', '"a"', '[1,null,"a",{"link":1}]', '[{"link":"a","name":"b","at":null}]'])
      expect(parseKept(text)).toEqual([]);
    expect(parseKept('[{"link":"a","name":"b","at":1,"kept":"yes","note":3}]')).toEqual([
      { link: 'a', name: 'b', note: '', verdict: '', at: 1, kept: false },
    ]);
  });

  it('SayHowLongAgo', () => {
    const texts = [0, 59_999, 60_000, 7_200_000, 86_400_000, 3 * 86_400_000].map(ageText);
    expect(texts).toEqual(['just now', 'just now', '1 minute ago', '2 hours ago', 'yesterday', '3 days ago']);
  });
});

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Outcome } from '../engine/protocol';
import { isUncertain, Store, whenAnswered, type Shown } from './store';

const shown = (completeness: Shown['completeness']): Shown => ({
  outcome: {} as Outcome,
  document: {},
  completeness,
  progress: 1,
});

describe('the first answer', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());
  const heard = async (store: Store) => {
    let answered = false;
    void whenAnswered(store).then(() => (answered = true));
    return async () => {
      await vi.advanceTimersByTimeAsync(0);
      return answered;
    };
  };

  it('IsNoPartOfARun_ButWhenThatTakesLong', async () => {
    const store = new Store();
    const answered = await heard(store);
    store.update({ shown: shown('partial') });
    expect(await answered()).toBe(false);
    await vi.advanceTimersByTimeAsync(3000);
    expect(await answered()).toBe(true);
  });
  it('IsACertainOne_OrTheNewsThatThereIsNone', async () => {
    for (const change of [
      { shown: shown('final') },
      { run: { kind: 'refused', reason: 'scenario', issues: [] } } as const,
      { failure: 'no engine' },
    ]) {
      const store = new Store();
      const answered = await heard(store);
      store.update(change);
      expect(await answered()).toBe(true);
    }
  });
  it('Coarse_IsAVerdictWhileAHandMoves_AndNoneOnceItIsWaitedFor', () => {
    const store = new Store();
    store.update({ shown: shown('coarse') });
    expect(isUncertain(store.state)).toBe(false);
    store.update({ run: { kind: 'running', progress: 0, slow: true } });
    expect(isUncertain(store.state)).toBe(true);
    store.update({ run: { kind: 'idle' }, shown: { ...shown('coarse'), cancelled: true } });
    expect(isUncertain(store.state)).toBe(true);
  });
});

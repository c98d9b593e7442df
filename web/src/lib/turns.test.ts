import { describe, expect, it } from 'vitest';
import { cameTogether, inTurn, inTurnIf } from './turns';

function busy(ms: number): void {
  const begin = performance.now();
  while (performance.now() - begin < ms);
}

describe('turns', () => {
  it('come in the order of being asked for, not before the present task ends', async () => {
    const heard: number[] = [];
    const all = [1, 2, 3].map((each) => inTurn(() => heard.push(each)));
    expect(heard).toEqual([]);
    await Promise.resolve();
    expect(heard).toEqual([]);
    await Promise.all(all);
    expect(heard).toEqual([1, 2, 3]);
  });

  it('are of several tasks when they are long', async () => {
    const heard: string[] = [];
    const first = inTurn(() => busy(20));
    const second = inTurn(() => heard.push('second'));
    await first;
    expect(heard).toEqual([]);
    await second;
    expect(heard).toEqual(['second']);
  });

  it('tell of what one throws, and go on', async () => {
    const bad = inTurn(() => {
      throw new Error('no');
    });
    const good = inTurn(() => undefined);
    await expect(bad).rejects.toThrow('no');
    await good;
  });

  it('are not waited for once the page has come together', async () => {
    const heard: string[] = [];
    const waits = inTurnIf(true, () => heard.push('waits'));
    inTurnIf(false, () => heard.push('at once'));
    await waits;
    cameTogether();
    inTurnIf(true, () => heard.push('no more'));
    expect(heard).toEqual(['at once', 'waits', 'no more']);
  });
});

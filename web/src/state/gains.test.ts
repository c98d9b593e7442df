import type { MaxRate } from 'servecast';
import { describe, expect, it } from 'vitest';
import type { PlanListener, Planners } from '../engine/pool';
import { findHeld, type Held } from './gains';
import { standardInputs } from './plans';

const value = { value: 58, low: 56, high: 60, unit: 'requests/s' };

describe('how much each of several scenarios holds', () => {
  function asked() {
    const open: { scenario: string; listener: PlanListener; stopped: boolean }[] = [];
    const ask = ({ scenario }: { scenario: string }, _trace: unknown, listener: PlanListener) => {
      const one = { scenario, listener, stopped: false };
      open.push(one);
      return () => void (one.stopped = true);
    };
    const held: Held[] = [];
    const plans = {
      planners: { ask } as unknown as Planners,
      options: { ...standardInputs, hours: [], days: 5, windows: 0 },
    };
    const stop = findHeld(plans, ['a', 'b'], null, (place, found) => void (held[place] = found));
    return { open, held, stop };
  }
  it('is asked one after the other', () => {
    const { open, held } = asked();
    expect(held).toEqual(['sought']);
    open[0]?.listener.answered({ monotone: true, answer: value } as unknown as MaxRate, '');
    expect(held).toEqual([value, 'sought']);
    open[1]?.listener.failed([]);
    expect(held).toEqual([value, null]);
    expect(open.map(({ scenario }) => scenario)).toEqual(['a', 'b']);
  });
  it('is given up', () => {
    const { open, stop } = asked();
    stop();
    expect(open.map(({ stopped }) => stopped)).toEqual([true]);
  });
});

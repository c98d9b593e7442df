import type { Report } from 'servecast';
import { expect, test } from 'vitest';
import { unknownPower } from './unknown-power';

const h100 = { name: 'H100 SXM 80 GB', power_cap_w: 700, busy_w: 387, compute_w: 651, memory_w: 0 };
const a100 = { name: 'A100 SXM 80 GB', power_cap_w: 400, busy_w: 0, compute_w: 0, memory_w: 0 };
const of = (scenario: object, more: object = {}) => unknownPower({ scenario, ...more } as unknown as Report);

test('a card without a law is named, with the field that would give it one', () => {
  expect(of({ hardware: a100 })).toEqual({
    reason: 'No power law of A100 SXM 80 GB is known: its power was not measured beside runs that can be simulated.',
    pointer: '/hardware/busy_w',
  });
  expect(of({ hardware: { ...h100, name: '', power_cap_w: 0 } })).toEqual({
    reason: 'No power law of this GPU is known: the most that it draws is not stated.',
    pointer: '/hardware/power_cap_w',
  });
});

test('of several pools it is the one whose card has none', () => {
  const pools = [{ role: 'prefill' }, { role: 'decode', hardware: a100 }];
  expect(of({ hardware: h100, cluster: { pools } }).pointer).toBe('/cluster/pools/1/hardware/busy_w');
});

test('rules and runs that have no power say so, whatever the card', () => {
  expect(of({ hardware: h100, engine: { compat: 'blis' } })).toMatchObject({ pointer: null });
  expect(of({ hardware: h100, engine: { compat: 'blis' } }).reason).toMatch(/BLIS/);
  const grown = of({ hardware: h100 }, { first_run: { scaling: { starts: 2, stops: 0 } } });
  expect(grown.reason).toMatch(/start and stop/);
  expect(of({ hardware: h100 }, { scaling: { starts: 0, stops: 0 } }).reason).toBe('No time was simulated.');
});

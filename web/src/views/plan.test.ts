import { describe, expect, it } from 'vitest';
import { shareOfLimit } from '../charts/shares';
import { axesOf, leastOf, pricesOf, standardInputs } from '../state/plans';
import { inputsOf, withInputs } from './plan-inputs';

const at = 'https://example.org/servecast/';

describe('what an address asks of plans', () => {
  it('is read back as it was written, and leaves the rest of the address', () => {
    const inputs = { ...standardInputs, rate: 160, percent: 7.5, spike: 3 };
    const address = withInputs(`${at}?view=plan#p=chat`, inputs);
    expect(new URL(address).hash).toBe('#p=chat');
    expect(new URL(address).searchParams.get('view')).toBe('plan');
    expect(inputsOf(address)).toEqual(inputs);
  });

  it('is nothing where all is standard, and where it says nothing', () => {
    expect(withInputs(`${at}?plan=rate:3`, standardInputs)).toBe(at);
    expect(inputsOf(at)).toBeNull();
  });

  it('takes no value that is out of range, no name that is none, no text', () => {
    const hostile = `${at}?plan=rate:-1,percent:1e9,months:2.5,__proto__:3,spike:<b>,spike_s:`;
    expect(inputsOf(hostile)).toEqual(standardInputs);
    expect(inputsOf(`${at}?plan=prices:3,roles:0.5,pipeline:2`)).toEqual(standardInputs);
  });

  it('says what a search varies, and whose prices it takes', () => {
    expect([axesOf(standardInputs), pricesOf(standardInputs)]).toEqual(['gpu,tp,quantization', '']);
    const asked = inputsOf(`${at}?plan=pipeline:1,experts:1,roles:1,prices:2`) ?? standardInputs;
    expect([axesOf(asked), pricesOf(asked)]).toEqual(['gpu,tp,quantization,roles,pp,dp,ep', 'on-demand']);
    expect([standardInputs, inputsOf(`${at}?plan=energy:1`) ?? standardInputs].map(leastOf)).toEqual([
      'cost',
      'energy',
    ]);
  });
});

describe('shareOfLimit', () => {
  const latency = { name: 'TPOT p99 <= 20 ms', limit_ms: 20, least_share: null };
  it('is of the limit, and of attainment what is beyond of what may be', () => {
    expect(shareOfLimit(latency, { value_ms: 15, low: 14, high: 16 }, 'value_ms')).toBe(0.75);
    expect(shareOfLimit(latency, { value_ms: 15, low: 14, high: 16 }, 'high')).toBe(0.8);
    const attainment = { name: '', limit_ms: null, least_share: 0.99 };
    expect(shareOfLimit(attainment, { share: 0.98 }, 'value_ms')).toBeCloseTo(2, 9);
  });
  it('is nothing where nothing is known', () => {
    expect(shareOfLimit(latency, { value_ms: null }, 'value_ms')).toBeNull();
    expect(shareOfLimit(latency, undefined, 'low')).toBeNull();
  });
});

import type { Report } from 'servecast';
import { describe, expect, it } from 'vitest';
import { withPin } from './encode';
import { differences, pinOf, readPin } from './pin';

const target = { percentile: 99, limit_ms: 800, unbounded: false };
const report = {
  schema: 1,
  engine_version: '0.1.0',
  finished: true,
  fingerprint: '0123456789abcdef',
  verdict: { state: 'meets' },
  slo: [
    { ...target, metric: 'ttft', value_ms: 95.1203999 },
    { ...target, metric: 'tpot', value_ms: null },
    { ...target, metric: 'e2e', value_ms: 3, unbounded: true },
    { ...target, metric: 'attainment', value_ms: null, share: 0.9915 },
  ],
} as unknown as Report;
const pin = 'v=1.0.1.0&r=meets,95120,-,-,991500&f=0123456789abcdef';

describe('pins', () => {
  it('OfAReport_HasWhatDecides_AndIsReadBack', () => {
    expect(pinOf(report)).toBe(pin);
    expect(readPin(pin)).toEqual({
      schema: 1,
      engine_version: '0.1.0',
      state: 'meets',
      values: [95120, null, null, 991500],
      fingerprint: '0123456789abcdef',
    });
  });
  it('OfTwoTargets_IsAbout60Characters', () => {
    const two = { ...report, slo: report.slo.slice(0, 2).map((slo) => ({ ...slo, value_ms: 95.12 })) } as Report;
    expect(withPin('p=a', pinOf(two)).length - 'p=a'.length).toBeLessThanOrEqual(62);
  });
  it('OfAPartialRun_IsNone', () => {
    expect(pinOf({ ...report, finished: false })).toBe('');
  });
  it('WithPin_TakesThePlaceOfAnotherOne', () => {
    expect(withPin(`p=a&b.c=1&${pin}`, 'v=1.2&r=near&f=0')).toBe('p=a&b.c=1&v=1.2&r=near&f=0');
    expect(withPin(`p=a&${pin}&trace=x`, '')).toBe('p=a&trace=x');
  });
  it.each([
    '',
    'v=1.0.1.0',
    'v=1.0.1.0&r=meets,1',
    `${pin}0`,
    pin.toUpperCase(),
    pin.replace('95120', '-5'),
    pin.replace('meets', '<b>'),
    pin.replace('0.1.0', 'x'.repeat(100)),
    `v=1.0.1.0&r=meets${',1'.repeat(33)}&f=0123456789abcdef`,
  ])('Damaged_%s_IsNone', (text) => {
    expect(readPin(text)).toBeNull();
  });
  it('Differences_NameWhatDiffers', () => {
    const own = readPin(pin)!;
    expect(differences(own, own)).toEqual([]);
    expect(differences({ ...own, engine_version: '0.2.0', values: [95121, null, null] }, own)).toEqual([
      { what: 'engine', index: 0 },
      { what: 'target', index: 0 },
      { what: 'target', index: 3 },
    ]);
    expect(differences({ ...own, fingerprint: 'f'.repeat(16), state: 'near' }, own).map(({ what }) => what)).toEqual([
      'verdict',
      'fingerprint',
    ]);
  });
});

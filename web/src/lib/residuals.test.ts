import { expect, test } from 'vitest';
import { offBefore, percentOff, residualsOf, signedPercent, type MeasuredPoint } from './residuals';

const point = (more: Partial<MeasuredPoint>): MeasuredPoint => ({
  label: 'a row',
  of: 'run',
  figure: 'ttft',
  held_out: false,
  at: 4,
  context: 0,
  measured_ms: 50,
  before_ms: 60,
  after_ms: 51,
  ...more,
});

test('times are shown TPOT first, by load', () => {
  const found = residualsOf([point({}), point({ figure: 'tpot', at: 8 }), point({ figure: 'tpot', at: 2 })]);
  expect(found.map(({ figure, place }) => `${figure} ${place}`)).toEqual(['TPOT 2', 'TPOT 8', 'TTFT 4']);
  expect(found[2]).toEqual({ label: 'a row', figure: 'TTFT', place: '4', measured: 50, before: 60, after: 51 });
});

test('a place is tokens, a batch, or its context where that is long', () => {
  const place = (more: Partial<MeasuredPoint>) => residualsOf([point(more)])[0]?.place;
  expect(place({ of: 'step', at: 128, context: 200 })).toBe('128');
  expect(place({ of: 'step', at: 1, context: 16_000 })).toBe('16k');
  expect(place({ of: 'prompt', at: 65_536 })).toBe('66k');
  expect(place({ at: 0 })).toBe('');
});

test('a prediction is off by a share of what was measured, with its sign', () => {
  expect(signedPercent(percentOff(60, 50))).toBe('+20.0\u202f%');
  expect(signedPercent(percentOff(40, 50))).toBe('\u221220.0\u202f%');
  expect(offBefore({ before: null, measured: 50 })).toBe('not known');
  expect(offBefore({ before: 55, measured: 50 })).toBe('+10.0\u202f%');
});

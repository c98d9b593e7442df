import { expect, test } from 'vitest';
import { powerFitOf } from './power-fit';

const busy = { value: 402.5, low: 380, high: 425, unit: 'W', before: 383 };
const rows = [
  { of: 'prompts-power.csv', held_out: false, measured_w: 400, before_w: 390, after_w: 399 },
  { of: 'answers-power.prom', held_out: true, measured_w: 350, before_w: null, after_w: 341 },
];
const fitOf = (power: unknown, warnings: readonly string[] = []) =>
  powerFitOf({ pack: JSON.stringify({ kind: 'servecast-calibration', ...(power ? { power } : {}) }), warnings });

test('a pack says which constants of power were fitted, and to what', () => {
  const fit = fitOf({ parameters: { busy_w: busy }, rows });
  expect(fit?.constants).toEqual([{ name: 'busy_w', before: 383, value: 402.5, low: 380, high: 425, unit: 'W' }]);
  expect(fit?.rows).toEqual([
    { label: 'prompts-power.csv', held_out: false, measured_w: 400, before_w: 390, after_w: 399 },
    { label: 'answers-power.prom', held_out: true, measured_w: 350, before_w: null, after_w: 341 },
  ]);
});

test('without measured power there is nothing to show', () => {
  expect(fitOf(null)).toBeNull();
  expect(fitOf({ rows: [] })).toBeNull();
  expect(fitOf({ rows: 'many' })).toBeNull();
  expect(powerFitOf({ pack: 'no JSON', warnings: [] })).toBeNull();
  expect(powerFitOf({ pack: '[]', warnings: [] })).toBeNull();
});

test('what is no number is left out', () => {
  const fit = fitOf({
    parameters: { busy_w: { ...busy, value: '402' }, compute_w: 3, memory_w: busy },
    rows: [...rows, { of: 'bad', measured_w: null, after_w: 1 }, 7],
  });
  expect(fit?.constants.map(({ name }) => name)).toEqual(['memory_w']);
  expect(fit?.rows.length).toBe(2);
});

test('warnings of power are apart: of the law, and of a file', () => {
  const apart = [
    'the measured power cannot tell hardware.compute_w from hardware.busy_w: it stays at 320 W; what tells it: ...',
    'hardware.busy_w ends at its limit of 0: the card draws less than the law’s other parts say',
    'no power to fit: all of it is held out, or above 95 % of the card’s cap',
    'prompts-power.csv has 2 GPUs, the run 1: its mean counts for those of the run',
  ];
  const others = ['cannot tell engine.step_overhead_us from hardware.bandwidth_efficiency', 'power.csvx is odd'];
  const fit = fitOf({ rows }, [...others, ...apart]);
  expect(fit?.constants).toEqual([]);
  expect(fit?.warnings).toEqual(apart);
  expect(fit?.others).toEqual(others);
});

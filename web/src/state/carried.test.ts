import { expect, test } from 'vitest';
import { carriedBy, withoutCalibration } from './carried';

const carrying = {
  schema: 1,
  hardware: { preset: 'h100-sxm', compute_efficiency: 0.7, bandwidth_efficiency: 0.9 },
  engine: { preset: 'vllm-0.20', step_overhead_us: 900 },
  latency: { backend: 'analytic' },
  calibration: {
    spec_version: '1.0',
    stated: 'a model on a GPU, an engine',
    files: '5 single prompts',
    measurements: 5,
    parameters: [
      { path: 'hardware.compute_efficiency', value: 0.7, low: 0.6, high: 0.8 },
      { path: 'engine.step_overhead_us', value: 500, low: 400, high: 600 },
    ],
    seen: [{ of: 'prompt_tokens', low: 128, high: 4096 }],
  },
};

test('a scenario says what it carries', () => {
  expect(carriedBy(carrying)).toEqual({
    stated: 'a model on a GPU, an engine',
    files: '5 single prompts',
    date: '',
    rows: 5,
    parameters: carrying.calibration.parameters,
    seen: carrying.calibration.seen,
  });
  expect(carriedBy({ schema: 1 })).toBeNull();
  expect(carriedBy({ calibration: {} })).toBeNull();
  expect(carriedBy({ calibration: 'text' })).toBeNull();
  expect(carriedBy({ calibration: { spec_version: '1.0', seen: 3, parameters: [null, 4] } })?.parameters).toEqual([]);
});

test('without it constants are the presets’ again, but for those that were changed since', () => {
  expect(withoutCalibration(carrying)).toEqual({
    schema: 1,
    hardware: { preset: 'h100-sxm', bandwidth_efficiency: 0.9 },
    engine: { preset: 'vllm-0.20', step_overhead_us: 900 },
  });
  const trained = { schema: 1, latency: { backend: 'physics', beta: [1] }, calibration: { backend: 'physics' } };
  expect(withoutCalibration(trained)).toEqual({ schema: 1 });
});

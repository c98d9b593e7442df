import { expect, test } from 'vitest';
import type { CalibrationAnswer } from 'servecast';
import type { FromCalibrator } from '../engine/calibrators';
import { Calibrations, type Fitting } from './calibrations';

/** Whoever fits is asked by hand. */
class ByHand implements Fitting {
  readonly asked: { files: readonly { name: string; held_out: boolean }[]; hear: (message: FromCalibrator) => void }[] =
    [];
  stopped = 0;
  fit(files: readonly { name: string; held_out: boolean }[], _document: string, hear: (m: FromCalibrator) => void) {
    this.asked.push({ files, hear });
    return () => void (this.stopped += 1);
  }
  get last() {
    return this.asked.at(-1)!;
  }
}

const file = (name: string) => new File(['x'], name);
const answer = { state: 'good' } as CalibrationAnswer;

test('files are fitted together, and each is said to be what it is', () => {
  const fitting = new ByHand();
  const calibrations = new Calibrations(fitting, () => '{}');
  calibrations.add([file('a.csv'), file('b.csv')]);
  expect(fitting.last.files.map(({ name }) => name)).toEqual(['a.csv', 'b.csv']);
  expect(calibrations.progress.kind).toBe('working');
  fitting.last.hear({ kind: 'file', index: 1, read: { found: '3 decode steps', issues: [] } });
  expect(calibrations.files[1]?.found).toBe('3 decode steps');
  fitting.last.hear({ kind: 'answer', answer });
  expect(calibrations.progress.kind).toBe('done');
  expect(calibrations.answer).toBe(answer);
});

test('a change of the files gives up the fit that is under way', () => {
  const fitting = new ByHand();
  const calibrations = new Calibrations(fitting, () => '{}');
  calibrations.add([file('a.csv')]);
  calibrations.add([file('b.csv')]);
  expect(fitting.stopped).toBe(1);
  calibrations.holdOut(1, true);
  expect(fitting.stopped).toBe(2);
  expect(fitting.last.files).toMatchObject([{ held_out: false }, { name: 'b.csv', held_out: true }]);
  calibrations.remove(0);
  expect(fitting.last.files).toMatchObject([{ name: 'b.csv' }]);
  calibrations.remove(0);
  expect(calibrations.progress.kind).toBe('empty');
  expect(fitting.asked.length).toBe(4);
});

test('a file is moved before the one above it, and all are fitted again', () => {
  const fitting = new ByHand();
  const calibrations = new Calibrations(fitting, () => '{}');
  calibrations.add([file('power.csv'), file('run.json'), file('c.csv')]);
  calibrations.moveUp(1);
  expect(fitting.last.files.map(({ name }) => name)).toEqual(['run.json', 'power.csv', 'c.csv']);
  expect(fitting.stopped).toBe(1);
});

test('power without any run is refused with what is missing', () => {
  const fitting = new ByHand();
  const calibrations = new Calibrations(fitting, () => '{}');
  calibrations.add([file('power.csv')]);
  fitting.last.hear({ kind: 'advice', advice: { measurements: [], expected: [] } });
  expect(calibrations.progress).toMatchObject({
    kind: 'failed',
    issues: [{ message: expect.stringContaining('power alone') }],
  });
});

test('the same name again takes the place of the former file', () => {
  const calibrations = new Calibrations(new ByHand(), () => '{}');
  calibrations.add([file('a.csv')]);
  calibrations.add([file('a.csv')]);
  expect(calibrations.files.length).toBe(1);
});

test('more than 32 files are said to be too many', () => {
  const calibrations = new Calibrations(new ByHand(), () => '{}');
  calibrations.add(Array.from({ length: 40 }, (_none, index) => file(`${index}.csv`)));
  expect(calibrations.files.length).toBe(32);
  expect(calibrations.tooMany).toBe(true);
});

test('a refusal leaves no answer behind, a cancel can be taken back', () => {
  const fitting = new ByHand();
  const calibrations = new Calibrations(fitting, () => '{}');
  calibrations.add([file('a.csv')]);
  fitting.last.hear({ kind: 'answer', answer });
  calibrations.again();
  fitting.last.hear({ kind: 'failed', issues: [{ path: '', message: 'no' }] });
  expect(calibrations.answer).toBeNull();
  calibrations.again();
  calibrations.cancel();
  expect(calibrations.progress.kind).toBe('cancelled');
  calibrations.again();
  expect(calibrations.progress.kind).toBe('working');
});

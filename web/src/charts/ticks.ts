// Where a latency axis has ticks, and what they say. Every tick has a label, so an axis is never
// without numbers: decades on a log axis, thinned where they would touch, finer where decades are few.
import { decimalText } from '../lib/format';

const thin = '\u202f';

/** At most `most` ticks between low and high (both above 0 on a log axis). */
export function axisTicks(low: number, high: number, log: boolean, most: number): number[] {
  const room = Math.max(2, Math.floor(most));
  if (!log) return evenTicks(low, high, room);
  const decades = digitTicks(low, high, [1]);
  if (decades.length > room) return thinned(decades, room);
  if (decades.length >= 3) return decades;
  const finer = [digitTicks(low, high, [1, 2, 5]), digitTicks(low, high, [1, 3])].find(
    (ticks) => ticks.length >= 2 && ticks.length <= room,
  );
  if (finer) return finer;
  return decades.length >= 2 ? decades : evenTicks(low, high, room);
}

function digitTicks(low: number, high: number, digits: readonly number[]): number[] {
  const ticks: number[] = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high * 1.000001; power += 1) {
    for (const digit of digits) {
      const value = Number(`${digit}e${power}`);
      if (value >= low * 0.999999 && value <= high * 1.000001) ticks.push(value);
    }
  }
  return ticks;
}

/** Every n-th, counted from the one at 1 (ms), so that ticks stay where they are as the range moves. */
function thinned(decades: readonly number[], room: number): number[] {
  const stride = Math.ceil(decades.length / room);
  return decades.filter((value) => Math.round(Math.log10(value)) % stride === 0);
}

function evenTicks(low: number, high: number, room: number): number[] {
  const rough = (high - low) / room;
  if (!(rough > 0)) return [low];
  const power = Math.floor(Math.log10(rough));
  const step =
    [1, 2, 5, 10].map((digit) => Number(`${digit}e${power}`)).find((each) => each >= rough * 0.999999) ?? rough;
  const ticks: number[] = [];
  for (let index = Math.ceil(low / step - 1e-9); index * step <= high * 1.000001; index += 1)
    ticks.push(Number((index * step).toPrecision(12)));
  return ticks;
}

/** "10 ms", "100 s": a tick is a round number and reads as one. */
export function tickLabel(ms: number): string {
  const show = (value: number) => decimalText(Number(value.toPrecision(6)), 0, 6);
  if (ms === 0) return '0';
  if (ms >= 1000) return `${show(ms / 1000)}${thin}s`;
  return ms < 0.1 ? `${show(ms * 1000)}${thin}µs` : `${show(ms)}${thin}ms`;
}

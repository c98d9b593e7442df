import { describe, expect, it } from 'vitest';
import { stepped } from './steps';

const real = { isWhole: false, minimum: 0, maximum: 1e6, doubles: false };
const whole = { isWhole: true, minimum: 1, maximum: 1024, doubles: false };

describe('stepped', () => {
  it('goes by the second digit', () => {
    expect(stepped(40, 1, real)).toBe(41);
    expect(stepped(200, 1, real)).toBe(210);
    expect(stepped(2.5, -1, real)).toBe(2.4);
    expect(stepped(0.9, 1, real)).toBe(0.91);
  });
  it('takes the smaller step below a power of ten, and comes back', () => {
    expect(stepped(100, -1, real)).toBe(99);
    expect(stepped(99, 1, real)).toBe(100);
    expect(stepped(100, 1, real)).toBe(110);
  });
  it('keeps whole numbers whole and stays within the limits', () => {
    expect(stepped(3, 1, whole)).toBe(4);
    expect(stepped(1, -1, whole)).toBe(1);
    expect(stepped(1024, 1, whole)).toBe(1024);
    expect(stepped(0, 1, real)).toBe(0.1);
    expect(stepped(0, -1, real)).toBe(0);
  });
  it('doubles and halves', () => {
    const gpus = { ...whole, doubles: true };
    expect(stepped(1, 1, gpus)).toBe(2);
    expect(stepped(8, -1, gpus)).toBe(4);
    expect(stepped(1, -1, gpus)).toBe(1);
  });
});

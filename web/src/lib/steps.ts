// What an arrow key makes of a number: about a hundredth part more or less, in round steps.
export interface StepLimits {
  readonly isWhole: boolean;
  readonly minimum: number | null;
  readonly maximum: number | null;
  /** By doubling and halving, for what only powers of two make sense of. */
  readonly doubles: boolean;
}

/** The next number in a direction, within the limits. */
export function stepped(value: number, direction: 1 | -1, limits: StepLimits): number {
  const { isWhole, minimum, maximum, doubles } = limits;
  let next: number;
  if (doubles) {
    next = direction > 0 ? value * 2 : Math.floor(value / 2);
  } else {
    const size = Math.abs(value);
    // Down from 100 a step is that of 99.
    const decade = Math.floor(Math.log10(size === 0 ? 1 : size * (direction * value < 0 ? 1 - 1e-9 : 1)));
    const step = 10 ** Math.max(decade - 1, isWhole ? 0 : -9);
    next = Number(((Math.round(value / step) + direction) * step).toPrecision(12));
  }
  return Math.min(maximum ?? Infinity, Math.max(minimum ?? -Infinity, next));
}

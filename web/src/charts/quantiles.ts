// Reading a distribution that is given as values at ascending fractions.

/** Linear between quantiles; columns ascend. */
export function valueAt(x: Float64Array, fractions: Float64Array, fraction: number): number | null {
  const after = fractions.findIndex((value) => value >= fraction);
  if (after < 0 || x.length === 0) return null;
  const before = Math.max(0, after - 1);
  const [f0 = 0, f1 = 0, x0 = 0, x1 = 0] = [fractions[before], fractions[after], x[before], x[after]];
  return f1 === f0 ? x1 : x0 + ((x1 - x0) * (fraction - f0)) / (f1 - f0);
}

/** Nines: 1 is p90, 2 is p99, 3 is p99.9. */
export const tailOf = (fraction: number): number => -Math.log10(1 - fraction);
export const fractionOf = (tail: number): number => 1 - 10 ** -tail;

// What is typed into the blanks of questions, and where the address holds it.
import { readNumber } from '../lib/format';
import { priceLists, standardInputs } from '../state/plans';
import type { PlanInputs } from '../state/store';

export type InputName = keyof PlanInputs;
export type Range = readonly [number, number];
export const ranges: Readonly<Record<Exclude<InputName, 'rate'>, Range>> = {
  percent: [0.1, 1000],
  months: [1, 120],
  spike: [1, 100],
  spike_s: [1, 3600],
  input_price: [0, 10_000],
  output_price: [0, 10_000],
  night: [1, 100],
  quiet: [1, 95],
  span_h: [0.25, 24],
  pipeline: [0, 1],
  experts: [0, 1],
  roles: [0, 1],
  limits: [0, 1],
  energy: [0, 1],
  prices: [0, priceLists.length - 1],
};
const whole: ReadonlySet<string> = new Set<InputName>([
  'months',
  'pipeline',
  'experts',
  'roles',
  'limits',
  'energy',
  'prices',
]);
const parameter = 'plan';

/** What an address asks; null: nothing. Values out of range are the standard ones. */
export function inputsOf(address: string): PlanInputs | null {
  const text = new URL(address).searchParams.get(parameter);
  if (text === null) return null;
  const inputs: Record<string, number | null> = { ...standardInputs };
  for (const part of text.split(',')) {
    const [name = '', typed = ''] = part.split(':');
    const value = readNumber(typed);
    const [least, most] =
      name === 'rate' ? [1e-6, 1e6] : Object.hasOwn(ranges, name) ? ranges[name as Exclude<InputName, 'rate'>] : [1, 0];
    if (value !== undefined && value >= least && value <= most && (!whole.has(name) || Number.isInteger(value)))
      inputs[name] = value;
  }
  return inputs as unknown as PlanInputs;
}

/** The address with what differs from the standard; it goes before the "#". */
export function withInputs(address: string, inputs: PlanInputs): string {
  const url = new URL(address);
  const said = Object.entries(inputs).filter(([name, value]) => value !== standardInputs[name as InputName]);
  if (said.length === 0) url.searchParams.delete(parameter);
  else url.searchParams.set(parameter, said.map(([name, value]) => `${name}:${value}`).join(','));
  return url.href;
}

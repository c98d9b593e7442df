// The fit of a card's power that a calibration's pack carries (its member `power`), and what was said of it.
import type { CalibrationAnswer } from 'servecast';
import { isObject, type Document, type Json } from './document';

export interface PowerConstant {
  /** A field of the hardware: "busy_w". */
  readonly name: string;
  readonly before: number;
  readonly value: number;
  /** 95 %. */
  readonly low: number;
  readonly high: number;
  readonly unit: string;
}

/** Mean power of a GPU over a run. */
export interface PowerRow {
  readonly label: string;
  readonly held_out: boolean;
  readonly measured_w: number;
  /** Null: no law of the card was known. */
  readonly before_w: number | null;
  readonly after_w: number;
}

export interface PowerFit {
  /** Empty: power was measured, and could not be fitted; a warning says why. */
  readonly constants: readonly PowerConstant[];
  readonly rows: readonly PowerRow[];
  readonly warnings: readonly string[];
  /** Of the answer, about anything else. */
  readonly others: readonly string[];
}

const numbersOf = <Key extends string>(of: Document, keys: readonly Key[]): Record<Key, number> | null =>
  keys.every((key) => typeof of[key] === 'number') ? (of as Record<Key, number>) : null;

function constantsOf(parameters: Json | undefined): readonly PowerConstant[] {
  if (!isObject(parameters)) return [];
  return Object.entries(parameters).flatMap(([name, of]) => {
    const found = isObject(of) ? numbersOf(of, ['before', 'value', 'low', 'high']) : null;
    if (!found || !isObject(of)) return [];
    const { before, value, low, high } = found;
    return [{ name, before, value, low, high, unit: typeof of['unit'] === 'string' ? of['unit'] : 'W' }];
  });
}

function rowsOf(rows: Json | undefined): readonly PowerRow[] {
  return (Array.isArray(rows) ? rows : []).filter(isObject).flatMap((of) => {
    const found = numbersOf(of, ['measured_w', 'after_w']);
    if (!found) return [];
    const { of: label, before_w: before, held_out: heldOut } = of;
    return [
      {
        label: typeof label === 'string' ? label : '',
        held_out: heldOut === true,
        measured_w: found.measured_w,
        before_w: typeof before === 'number' ? before : null,
        after_w: found.after_w,
      },
    ];
  });
}

const ofPower = /^(the measured power|no power to fit)\b|^hardware\.(busy|compute|memory)_w\b/;

/** null: no power was measured. */
export function powerFitOf({ pack, warnings }: Pick<CalibrationAnswer, 'pack' | 'warnings'>): PowerFit | null {
  let power: Json | undefined;
  try {
    const read = JSON.parse(pack) as Json;
    power = isObject(read) ? read['power'] : undefined;
  } catch {
    return null;
  }
  if (!isObject(power)) return null;
  const rows = rowsOf(power['rows']);
  if (rows.length === 0) return null;
  // Those of a file begin with its name.
  const isOfPower = (warning: string) =>
    ofPower.test(warning) || rows.some(({ label }) => label !== '' && warning.startsWith(`${label} `));
  return {
    constants: constantsOf(power['parameters']),
    rows,
    warnings: warnings.filter(isOfPower),
    others: warnings.filter((warning) => !isOfPower(warning)),
  };
}

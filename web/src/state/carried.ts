// The calibration that a scenario carries (its member `calibration`): what of it is shown, and the scenario without it.
import { getAt, isObject, removeAt, type Document, type Json } from './document';

export interface CarriedCalibration {
  readonly stated: string;
  readonly files: string;
  readonly date: string;
  readonly rows: number;
  readonly parameters: readonly {
    readonly path: string;
    readonly value: number;
    readonly low: number;
    readonly high: number;
  }[];
  readonly seen: readonly { readonly of: string; readonly low: number; readonly high: number }[];
}

const text = (of: Document, key: string): string => (typeof of[key] === 'string' ? of[key] : '');
const number = (of: Document, key: string): number => (typeof of[key] === 'number' ? of[key] : 0);
const list = (value: Json | undefined): readonly Document[] => (Array.isArray(value) ? value.filter(isObject) : []);

/** null: it carries none. */
export function carriedBy(document: Document): CarriedCalibration | null {
  const carried = document['calibration'];
  if (!isObject(carried) || text(carried, 'spec_version') === '') return null;
  return {
    stated: text(carried, 'stated'),
    files: text(carried, 'files'),
    date: text(carried, 'date'),
    rows: number(carried, 'measurements'),
    parameters: list(carried['parameters']).map((each) => ({
      path: text(each, 'path'),
      value: number(each, 'value'),
      low: number(each, 'low'),
      high: number(each, 'high'),
    })),
    seen: list(carried['seen']).map((each) => ({
      of: text(each, 'of'),
      low: number(each, 'low'),
      high: number(each, 'high'),
    })),
  };
}

/** The constants are the presets' again, but for those that were changed since. */
export function withoutCalibration(document: Document): Document {
  const carried = document['calibration'];
  let rest = removeAt(document, '/calibration');
  if (!isObject(carried)) return rest;
  if ((carried['backend'] ?? 'analytic') !== 'analytic') return removeAt(rest, '/latency');
  for (const each of list(carried['parameters'])) {
    const pointer = `/${text(each, 'path').replace('.', '/')}`;
    if (getAt(rest, pointer) === number(each, 'value')) rest = removeAt(rest, pointer);
  }
  return removeAt(rest, '/latency/backend');
}

// Scenario documents as immutable JSON, addressed by JSON pointers (RFC 6901). Knows nothing of
// what the fields mean: that is the catalogue's.
import type { Preset } from 'servecast';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type Document = { readonly [key: string]: Json };

export function isObject(value: unknown): value is Document {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value);
}

/** The same places are asked for again and again, with every change of the form. */
const known = new Map<string, readonly string[]>();
const mostKnown = 5000;

export function segmentsOf(pointer: string): readonly string[] {
  const found = known.get(pointer);
  if (found) return found;
  const parts = pointer === '' ? [] : pointer.slice(1).split('/');
  const segments = parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  if (known.size >= mostKnown) known.clear();
  known.set(pointer, segments);
  return segments;
}

export function pointerOf(segments: readonly string[]): string {
  return segments.map((part) => `/${part.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

export function parentOf(pointer: string): string {
  return pointer.slice(0, Math.max(0, pointer.lastIndexOf('/')));
}

export function lastOf(pointer: string): string {
  return segmentsOf(pointer).at(-1) ?? '';
}

function childOf(value: Json | undefined, key: string): Json | undefined {
  if (isList(value)) return /^\d+$/.test(key) ? value[Number(key)] : undefined;
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

export function getAt(document: Json | undefined, pointer: string): Json | undefined {
  let value = document;
  for (const key of segmentsOf(pointer)) value = childOf(value, key);
  return value;
}

/** Missing parents become objects, or lists where the next segment is a number. */
export function setAt(document: Document, pointer: string, value: Json): Document {
  const changed = write(document, segmentsOf(pointer), value);
  return isObject(changed) ? changed : document;
}

function write(node: Json | undefined, segments: readonly string[], value: Json): Json {
  const [key, ...rest] = segments;
  if (key === undefined) return value;
  const list = isList(node) ? [...node] : null;
  if (list || (!isObject(node) && /^\d+$/.test(key))) {
    const items = list ?? [];
    const index = Math.min(Number(key), items.length);
    items[index] = write(items[index], rest, value);
    return items;
  }
  const object = isObject(node) ? node : {};
  return { ...object, [key]: write(childOf(object, key), rest, value) };
}

/** Removes the member and any parent object that becomes empty with it, but for items of lists: the others would move. */
export function removeAt(document: Document, pointer: string): Document {
  const key = lastOf(pointer);
  const parentPointer = parentOf(pointer);
  const parent = getAt(document, parentPointer);
  if (isList(parent)) {
    const items = parent.filter((_, index) => String(index) !== key);
    return setAt(document, parentPointer, items);
  }
  if (!isObject(parent) || !Object.hasOwn(parent, key)) return document;
  const rest = Object.fromEntries(Object.entries(parent).filter(([name]) => name !== key));
  if (parentPointer === '') return rest;
  const isItem = isList(getAt(document, parentOf(parentPointer)));
  return Object.keys(rest).length === 0 && !isItem
    ? removeAt(document, parentPointer)
    : setAt(document, parentPointer, rest);
}

export function equalJson(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true;
  if (isList(a) && isList(b)) return a.length === b.length && a.every((item, index) => equalJson(item, b[index]));
  if (!isObject(a) || !isObject(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => equalJson(a[key], childOf(b, key)));
}

const arrivals = '/workload/arrivals';
const tracePointers: readonly (readonly [string, Document])[] = [
  [arrivals, { process: 'trace' }],
  ['/workload/prompt_tokens', { distribution: 'trace' }],
  ['/workload/output_tokens', { distribution: 'trace' }],
];

/** Rows without arrivals leave those of before another trace (`former`), which the page remembers. */
export function withFormerArrivals(document: Document, former: Document | null): Document {
  const before = former?.['arrivals'];
  return before === undefined || getAt(document, `${arrivals}/process`) !== 'trace'
    ? document
    : setAt(document, arrivals, before);
}

/** The fitted workload in place of the document's; without arrivals of its own it takes those of `former`. */
export function withFit(document: Document, workload: Document, former: Document | null): Document {
  if (workload['arrivals'] !== undefined) return setAt(document, '/workload', workload);
  const own = getAt(document, arrivals);
  const kept = isObject(own) && own['process'] !== 'trace' ? own : former?.['arrivals'];
  return setAt(document, '/workload', kept === undefined ? workload : { ...workload, arrivals: kept });
}

export function needsTrace(document: Document): boolean {
  return tracePointers.some(([pointer, value]) => {
    const found = getAt(document, pointer);
    return isObject(found) && Object.entries(value).every(([key, word]) => found[key] === word);
  });
}

/** What a scenario is called: as the preset that it is, else by its own name. */
export function titleOf(document: Document, preset?: Preset): string {
  const own = document['name'];
  return preset?.name ?? (typeof own === 'string' && own !== '' ? own : 'Own scenario');
}

/** null: no JSON object. */
export function readDocument(text: string): Document | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

// The form's view of the catalogue: which concrete fields a document has, what value is in force,
// where it comes from, and how a choice drags its dependent fields along. Holds no range, unit or
// default of its own.
import type { Catalog, Field, Issue, Preset } from 'servecast';
import { allowedInWords, decimalText, sentence } from '../lib/format';
import { getAt, isObject, lastOf, parentOf, removeAt, segmentsOf, setAt, type Document, type Json } from './document';

/** A catalogue field at a concrete place ("-" replaced by an index). */
export interface PlacedField {
  readonly field: Field;
  readonly pointer: string;
}

export interface FormSource {
  readonly catalog: Catalog;
  readonly document: Document;
  /** With presets inlined, from the last report; null before the first. */
  readonly resolved: Document | null;
}

const anyItem = '-';
/** What a pool may have of its own, and where the scenario's stands that it inherits. */
const poolOwn = /^(\/cluster\/pools\/\d+)(\/(?:hardware|engine|scheduler)\/.+)$/;

const fieldsByPath = new WeakMap<Catalog, Map<string, Field[]>>();

function fieldsAt(catalog: Catalog, pointer: string): readonly Field[] {
  let index = fieldsByPath.get(catalog);
  if (!index) {
    index = new Map();
    for (const field of catalog.fields) index.set(field.path, [...(index.get(field.path) ?? []), field]);
    fieldsByPath.set(catalog, index);
  }
  return index.get(pointer.replace(/\/\d+(?=\/|$)/g, `/${anyItem}`)) ?? [];
}

/** Of several fields at one place (one per choice beside it) the one that counts now. */
export function fieldAt(source: FormSource, pointer: string): Field | undefined {
  const found = fieldsAt(source.catalog, pointer);
  return found.find((field) => isRelevant(source, { field, pointer })) ?? found[0];
}

export function isPoolOwn(pointer: string): boolean {
  return poolOwn.test(pointer);
}

/** A pool's hardware, engine and scheduler are the scenario's, but for what it says. */
export function isInherited(source: FormSource, pointer: string): boolean {
  return poolOwn.test(pointer) && ownAt(source, pointer) === undefined;
}

/** What a pool's own field has when it says nothing: of the preset that it names, or its default beside one, else the scenario's. */
export function inheritedInPool(source: FormSource, pointer: string): Json | undefined {
  const [, pool = '', place = ''] = poolOwn.exec(pointer) ?? [];
  const section = `/${segmentsOf(place)[0] ?? ''}`;
  const named = getAt(source.document, `${pool}${section}/preset`);
  const preset = presetsFor(source.catalog, `${section}/preset`).find((entry) => entry.id === named);
  const field = fieldAt(source, place);
  if (!field) return undefined;
  const scenarios = valueInForce(source, { field, pointer: place });
  // One whose file is not here has nothing to say yet.
  if (!preset?.document || place === `${section}/preset`) return scenarios;
  const rest = isAnotherGpu(source, section, preset) ? undefined : scenarios;
  return (
    getAt({ [segmentsOf(place)[0] ?? '']: preset.document as Document }, place) ??
    ((field.default ?? rest) as Json | undefined)
  );
}

/** The scenario's GPU has a price, another has not. */
function isAnotherGpu(source: FormSource, section: string, preset: Preset): boolean {
  const name = fieldAt(source, '/hardware/name');
  return (
    section === '/hardware' &&
    name !== undefined &&
    valueInForce(source, { field: name, pointer: '/hardware/name' }) !== preset.document?.['name']
  );
}

/** What the document says; of a pool's GPU that is written out, its name. */
function ownAt({ document }: FormSource, pointer: string): Json | undefined {
  const own = getAt(document, pointer);
  return own === undefined && poolOwn.test(pointer) && pointer.endsWith('/preset')
    ? getAt(document, `${parentOf(pointer)}/name`)
    : own;
}

/** As people write it. */
export function unitOf(field: Field): string {
  return field.unit === '1' ? '' : field.unit.replace(/^us$/, 'µs');
}

/** Of a conversation; 1: every request stands alone. */
export function turnsOf(source: FormSource): number {
  const pointer = '/workload/sessions/turns';
  const field = fieldAt(source, pointer);
  return field ? Number(valueInForce(source, { field, pointer })) : 1;
}

/** With sessions, arrivals are first turns: their rate is not one of requests. */
export function withRateOfSessions(source: FormSource, field: Field): Field {
  return field.unit === 'req/s' && turnsOf(source) > 1 ? { ...field, unit: 'sessions/s' } : field;
}

/** What the engine would use: the document's own value, else the preset's, else the default. */
export function valueInForce(source: FormSource, placed: PlacedField): Json | undefined {
  const own = ownAt(source, placed.pointer);
  if (own !== undefined) return own;
  if (poolOwn.test(placed.pointer))
    return placed.pointer.endsWith('/preset') ? undefined : inheritedInPool(source, placed.pointer);
  const inherited = inheritedAt(source, placed.pointer);
  if (inherited !== undefined) return inherited;
  return (placed.field.default ?? undefined) as Json | undefined;
}

/** Nobody chose it: neither the document nor a preset that it names. */
export function isDefaulted(source: FormSource, placed: PlacedField): boolean {
  const unresolved = { ...source, resolved: null };
  const chosen = getAt(source.document, placed.pointer) ?? inheritedAt(unresolved, placed.pointer);
  return chosen === undefined && placed.field.default !== null;
}

/** From the preset, unless the document says null above it: that takes nothing from there. */
function inheritedAt(source: FormSource, pointer: string): Json | undefined {
  for (let above = parentOf(pointer); above !== ''; above = parentOf(above)) {
    if (getAt(source.document, above) === null) return undefined;
  }
  return getAt(presetBehind(source, pointer), pointer);
}

/** Values below an object that names a preset come from there; the last report has them inlined. */
function presetBehind(source: FormSource, pointer: string): Document | undefined {
  const section = segmentsOf(pointer)[0] ?? '';
  const chosen = getAt(source.document, `/${section}/preset`);
  const presets = presetsFor(source.catalog, `/${section}/preset`);
  const preset = presets.find((entry) => entry.id === chosen);
  if (preset) return preset.document && { [section]: preset.document as Document };
  const { resolved } = source;
  if (!resolved || presets.length === 0) return resolved ?? undefined;
  // No preset is named: one that is in force by default is known by its name.
  const inForce = presets.find((entry) => entry.document?.['name'] === getAt(resolved, `/${section}/name`));
  const own = getAt(resolved, `/${section}`);
  const isDefault = inForce && getAt(source.document, `/${section}/name`) === undefined && isObject(own);
  return isDefault ? { ...resolved, [section]: { ...own, preset: inForce.id } } : resolved;
}

export function isRelevant(source: FormSource, placed: PlacedField): boolean {
  const condition = placed.field.when;
  if (!condition) return true;
  const pointer = besides(placed, condition.path);
  const field = fieldAt(source, pointer);
  if (!field) return true;
  const value = valueInForce(source, { field, pointer });
  return condition.values.includes(String(value));
}

/** The same list item: indices of the placed field put into another field's path. */
function besides(placed: PlacedField, path: string): string {
  const own = segmentsOf(placed.pointer);
  const parts = segmentsOf(path).map((part, index) => (part === anyItem ? (own[index] ?? part) : part));
  return `/${parts.join('/')}`;
}

/** What a person may set: where constants come from says the view that calibrates. */
export function placedFields(source: FormSource, accept: (path: string) => boolean): PlacedField[] {
  const settable = source.catalog.fields.filter(({ path }) => !path.startsWith('/calibration/') && accept(path));
  const placed = settable.flatMap((field) => place(source, field));
  return placed.filter((entry) => isRelevant(source, entry));
}

function place(source: FormSource, field: Field): PlacedField[] {
  const segments = segmentsOf(field.path);
  const star = segments.indexOf(anyItem);
  if (star < 0) return [{ field, pointer: field.path }];
  const listPointer = `/${segments.slice(0, star).join('/')}`;
  const list = getAt(source.document, listPointer) ?? getAt(source.resolved ?? undefined, listPointer);
  const count = Array.isArray(list) ? list.length : 0;
  return Array.from({ length: count }, (_, index) => {
    const concrete = segments.map((part, place) => (place === star ? String(index) : part));
    return { field, pointer: `/${concrete.join('/')}` };
  });
}

export function presetsFor(catalog: Catalog, pointer: string): readonly Preset[] {
  switch (poolOwn.exec(pointer)?.[2] ?? pointer) {
    case '/model/preset':
      return catalog.presets.models;
    case '/hardware/preset':
      return catalog.presets.hardware;
    case '/engine/preset':
      return catalog.presets.engines;
    case '/workload/preset':
      return catalog.presets.workloads;
    default:
      return [];
  }
}

export interface Choice {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  /** Those that menus list apart. */
  readonly group?: string;
}

/** A choice as people read it. */
export function choiceText(catalog: Catalog, pointer: string, id: string): string {
  return presetsFor(catalog, pointer).find((preset) => preset.id === id)?.name ?? id;
}

/** What the catalogue says of a field's choices: a policy's kind is the field's name or its section's. */
export function explainedChoices(catalog: Catalog, { field, pointer }: PlacedField): readonly Choice[] {
  const presets = presetsFor(catalog, pointer);
  if (presets.length > 0) return presets;
  const kinds = segmentsOf(field.path).slice(-2);
  return catalog.policies
    .filter(({ kind, name }) => kinds.includes(kind) && field.choices.includes(name))
    .map(({ name, help }) => ({ id: name, name, description: help }));
}

/** Writes a value and keeps the document whole: lists are seeded from what is in force, a new
    preset forgets overrides of the old one, a new choice forgets fields that no longer exist. */
export function assign(source: FormSource, pointer: string, value: Json): Document {
  const seeded = seedList(source, pointer);
  if (presetsFor(source.catalog, pointer).length > 0) return assignPreset(seeded, pointer, value);
  const changed = setAt(seeded, pointer, value);
  const field = fieldAt(source, pointer);
  return field?.type === 'choice' ? followChoice({ ...source, document: changed }, pointer) : changed;
}

function seedList(source: FormSource, pointer: string): Document {
  const segments = segmentsOf(pointer);
  const index = segments.findIndex((part) => /^\d+$/.test(part));
  if (index < 0) return source.document;
  const listPointer = `/${segments.slice(0, index).join('/')}`;
  if (getAt(source.document, listPointer) !== undefined) return source.document;
  const list = getAt(source.resolved ?? undefined, listPointer);
  return list === undefined ? source.document : setAt(source.document, listPointer, list);
}

function assignPreset(document: Document, pointer: string, value: Json): Document {
  const section = parentOf(pointer);
  if (section !== '/workload') return setAt(document, section, { preset: value });
  // The rate and the number of requests are the user's question, not part of what a request is.
  const cleared = ['prompt_tokens', 'output_tokens', 'prefix', 'sessions', 'classes'].reduce(
    (rest, key) => removeAt(rest, `${section}/${key}`),
    document,
  );
  const traced = getAt(cleared, `${section}/arrivals/process`) === 'trace';
  return setAt(traced ? removeAt(cleared, `${section}/arrivals`) : cleared, pointer, value);
}

function followChoice(source: FormSource, pointer: string): Document {
  const parent = parentOf(pointer);
  const siblings = source.catalog.fields
    .filter((field) => field.when)
    .flatMap((field) => place(source, field))
    .filter((entry) => entry.field.when && besides(entry, entry.field.when.path) === pointer);
  let document = source.document;
  let leftover: number | null = null;
  for (const entry of siblings) {
    if (siblings.some((other) => other.pointer === entry.pointer && isRelevant(source, other))) continue;
    const old = valueInForce(source, entry);
    if (typeof old === 'number') leftover ??= old;
    document = removeAt(document, entry.pointer);
    // A choice that goes takes along what hangs on it.
    if (entry.field.type === 'choice') document = followChoice({ ...source, document }, entry.pointer);
  }
  for (const entry of siblings) {
    const missing =
      (entry.field.required || entry.field.type === 'list') && getAt(document, entry.pointer) === undefined;
    if (!missing || !isRelevant({ ...source, document }, entry)) continue;
    const start =
      entry.field.type === 'list'
        ? tableOfAPreset(source.catalog, entry.pointer)
        : (entry.field.default ?? leftover ?? entry.field.minimum);
    if (start !== null && start !== undefined) document = setAt(document, entry.pointer, start as Json);
  }
  return isObject(getAt(document, parent)) ? document : source.document;
}

/** A table that runs, to be edited: nobody types one from nothing. */
function tableOfAPreset(catalog: Catalog, pointer: string): Json | null {
  const [section = '', ...rest] = segmentsOf(pointer);
  const presets = presetsFor(catalog, `/${section}/preset`);
  const tables = presets.map((preset) => getAt(preset.document as Document | undefined, `/${rest.join('/')}`));
  return tables.find((table) => Array.isArray(table)) ?? null;
}

export function rangeText(field: Field): string {
  const unit = unitOf(field) === '' ? '' : ` ${unitOf(field)}`;
  const kind = field.type === 'integer' ? 'a whole number' : 'a number';
  if (field.minimum !== null && field.maximum !== null) {
    return `Allowed: ${kind} from ${plain(field.minimum)} to ${plain(field.maximum)}${unit}.`;
  }
  if (field.minimum !== null) return `Allowed: ${kind} from ${plain(field.minimum)}${unit}.`;
  if (field.maximum !== null) return `Allowed: ${kind} up to ${plain(field.maximum)}${unit}.`;
  return field.type === 'integer' || field.type === 'number' ? `Allowed: ${kind}${unit}.` : '';
}

function plain(value: number): string {
  return Math.abs(value) >= 1e15 ? value.toExponential() : decimalText(value, 0, 9);
}

/** What the rail calls them. */
const names: Readonly<Record<string, string>> = {
  rate_per_s: 'Rate',
  concurrency: 'Clients',
  tensor_parallel: 'GPUs each',
  price_per_gpu_hour: 'Price',
  limit_ms: 'Limit',
  mtbf_s: 'Time between failures',
};

/** "restart_s": its unit stands beside the value. */
const unitSuffix = /_(per_s|s|ms|us|gib|mib|gb_s|w|tflops)$/;

export const unitInName = (pointer: string): string => unitSuffix.exec(lastOf(pointer))?.[1] ?? '';

export function labelOf(pointer: string): string {
  const name = names[lastOf(pointer)];
  if (name !== undefined) return name;
  const words = lastOf(pointer).replace(unitSuffix, '').replaceAll('_', ' ');
  return /^p\d/.test(words) ? words : words.charAt(0).toUpperCase() + words.slice(1);
}

/** An issue to a person: by the name of its place, not by its pointer. */
export function issueText({ path, message }: Pick<Issue, 'path' | 'message'>): string {
  const place = path === '' ? '' : `${path.startsWith('/') ? placeName(path) : path}: `;
  return sentence(place + allowedInWords(message));
}

/** As its label says it, with the pool, section or object where that alone would not tell: "Classes 2, prompt tokens, mean". */
export function placeName(pointer: string): string {
  const segments = segmentsOf(pointer);
  const label = labelOf(pointer);
  const [section = '', list, index] = segments;
  if (segments.length === 1 || (section === 'workload' && lastOf(pointer) in names)) return label;
  if (section === 'workload') {
    const words = segments
      .slice(1)
      .map((each) => (/^\d+$/.test(each) ? ` ${Number(each) + 1}` : `, ${labelOf(`/${each}`).toLowerCase()}`));
    return labelOf(`/${list}`) + words.slice(1).join('');
  }
  const pool = list === 'pools' && segments.length > 3 ? `Pool ${Number(index) + 1}` : null;
  return `${pool ?? labelOf(`/${section}`)}, ${label.toLowerCase()}`;
}

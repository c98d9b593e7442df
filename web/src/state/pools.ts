// A cluster's pools: each may say how its GPU and engine differ from the scenario's, and whether its
// replicas serve whole requests, prefills or decodes. Functions from documents to documents that the
// engine can run.
import type { Catalog, Field } from 'servecast';
import { equalJson, getAt, isObject, setAt, type Document, type Json } from './document';
import { presetsFor, type FormSource } from './fields';

export const poolList = '/cluster/pools';
export const ownSections = ['hardware', 'engine', 'scheduler'] as const;

/** The catalogue lists the fields of hardware, engine and scheduler once: a pool's own are the same, and inherited by default. */
export function withPoolFields(catalog: Catalog): Catalog {
  const under = (path: string) => `${poolList}/-${path}`;
  const own = catalog.fields
    .filter(({ path }) => ownSections.some((section) => path.startsWith(`/${section}/`)))
    .map(
      (field): Field => ({
        ...field,
        path: under(field.path),
        required: false,
        default: null,
        ...(field.when ? { when: { ...field.when, path: under(field.when.path) } } : {}),
      }),
    );
  return { ...catalog, fields: [...catalog.fields, ...own] };
}

export function poolsOf({ document, resolved }: Pick<FormSource, 'document' | 'resolved'>): readonly Document[] {
  const list = getAt(document, poolList) ?? getAt(resolved ?? undefined, poolList);
  return Array.isArray(list) ? (list as readonly Json[]).filter(isObject) : [{}];
}

export const roleOf = (pool: Document): string => String(pool['role'] ?? 'mixed');
export const replicasOf = (pool: Document): number => (typeof pool['replicas'] === 'number' ? pool['replicas'] : 1);

export function replicasInAll(pools: readonly Document[]): number {
  return pools.reduce((sum, pool) => sum + replicasOf(pool), 0);
}

export function hasRoles(pools: readonly Document[]): boolean {
  return pools.some((pool) => roleOf(pool) !== 'mixed');
}

/** "3 prefill + 5 decode", "8 replicas". */
export function poolsInWords(pools: readonly Document[]): string {
  const replicas = replicasInAll(pools);
  if (!hasRoles(pools)) return `${replicas} ${replicas === 1 ? 'replica' : 'replicas'}`;
  return pools.map((pool) => `${replicasOf(pool)} ${roleOf(pool)}`).join(' + ');
}

/** A pool's "hardware": "a100" as an object, and a preset that is written out (as in links) by its name again. */
export function withNamedPresets(catalog: Catalog, document: Document): Document {
  return poolsOf({ document, resolved: null }).reduce((changed, pool, index) => {
    return ownSections.reduce((rest, section) => {
      const own = pool[section];
      const at = `${poolList}/${index}/${section}`;
      if (typeof own === 'string') return setAt(rest, at, { [section === 'scheduler' ? 'policy' : 'preset']: own });
      const named = isObject(own) && own['preset'] === undefined ? byName(catalog, document, section, own) : undefined;
      return named ? setAt(rest, at, named) : rest;
    }, changed);
  }, document);
}

/** The same values said as a preset and what differs from it; undefined when no preset has that name. */
function byName(catalog: Catalog, document: Document, section: string, own: Document): Document | undefined {
  const presets = presetsFor(catalog, `/${section}/preset`);
  const preset = presets.find((entry) => entry.document?.['name'] === own['name']);
  const fields = catalog.fields.filter(({ path }) => path.startsWith(`/${section}/`));
  const chosen = getAt(document, `/${section}/preset`) ?? fields.find(({ path }) => path.endsWith('/preset'))?.default;
  const scenarios = getAt(document, `/${section}`);
  const all = {
    ...presets.find((entry) => entry.id === chosen)?.document,
    ...(isObject(scenarios) ? scenarios : {}),
  } as Document;
  const standards = new Map(
    fields
      .filter((field) => !field.when)
      .map((field) => [field.path.slice(section.length + 2), (field.default ?? null) as Json]),
  );
  // What hangs on a choice, or is an object, stays written out.
  const keys = [...new Set([...Object.keys(own), ...Object.keys(all), ...Object.keys(preset?.document ?? {})])].filter(
    (key) => key !== 'preset',
  );
  if (!preset?.document || keys.some((key) => !standards.has(key))) return undefined;
  const differing = keys.flatMap((key): (readonly [string, Json])[] => {
    const standard = standards.get(key) ?? null;
    const value = Object.hasOwn(own, key) ? own[key] : all[key];
    // What has no default is the scenario's beside a preset, too, but for the price of another GPU.
    const inherited = section === 'hardware' && all['name'] !== preset.document?.['name'] ? null : all[key];
    const named = (preset.document?.[key] ?? standard ?? inherited ?? null) as Json;
    return equalJson(value ?? standard, named) ? [] : [[key, value ?? standard]];
  });
  return { preset: preset.id, ...Object.fromEntries(differing) };
}

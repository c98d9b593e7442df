// A scenario in the link grammar that people write: a preset and what differs from it. Fetched with the first link.
import type { Canonical } from 'servecast';
import { equalJson, isObject, readDocument, type Document, type Json } from './document';

/** The engine is asked about so many presets, each twice. */
const tried = 2;

export interface NamedDocument {
  readonly id: string;
  readonly document: Document;
}

/**
 * Over every preset, the shortest first. Whether one says it all is the engine's to tell: a member that only the preset
 * has may be a default, or cannot be taken away.
 */
export function readableLinks(presets: readonly NamedDocument[], document: Document): readonly string[] {
  const links = presets.flatMap((preset) => {
    const changes = changesOf(preset.document, document, []);
    return changes ? [[`p=${preset.id}`, ...changes].join('&')] : [];
  });
  return links.sort((a, b) => a.length - b.length);
}

/** The link's preset as the engine writes it: what comes from a link has lost the defaults that presets spell out. */
async function asRead(link: string, parse: (link: string) => Promise<Canonical>): Promise<NamedDocument[]> {
  const id = link.slice('p='.length).split('&', 1)[0] ?? '';
  const document = readDocument((await parse(`p=${id}`)).text);
  return document ? [{ id, document }] : [];
}

/** The shortest that the engine reads as this canonical text; null: there is none. */
export async function readableLink(
  presets: readonly NamedDocument[],
  document: Document,
  canonical: string,
  parse: (link: string) => Promise<Canonical>,
): Promise<string | null> {
  const links = readableLinks(presets, document).slice(0, tried);
  const read = await Promise.all(links.map((link) => asRead(link, parse)));
  const all = new Set([...readableLinks(read.flat(), document), ...links]);
  for (const link of [...all].sort((a, b) => a.length - b.length))
    if ((await parse(link)).text === canonical) return link;
  return null;
}

/** What decides which other members there may be is said before these. */
const deciding = ['preset', 'process', 'distribution', 'backend', 'policy'];
const inOrder = (keys: Iterable<string>) =>
  [...new Set(keys)].sort((a, b) => Number(deciding.includes(b)) - Number(deciding.includes(a)));

function changesOf(from: Json, to: Json, path: readonly string[]): string[] | null {
  if (equalJson(from, to)) return [];
  if (!isObject(from) || !isObject(to)) return path.length > 0 ? [`${path.join('.')}=${written(to)}`] : null;
  const changes: string[] = [];
  for (const key of inOrder(Object.keys(to))) {
    if (!isPart(key)) return null;
    const before = Object.hasOwn(from, key) ? from[key] : undefined;
    const after = to[key] as Json;
    const below = before === undefined ? addedAt(after, [...path, key]) : changesOf(before, after, [...path, key]);
    if (!below) return null;
    changes.push(...below);
  }
  return changes;
}

/** What was not there is said member by member, as people would. */
function addedAt(value: Json, path: readonly string[]): string[] | null {
  if (!isObject(value) || Object.keys(value).length === 0) return [`${path.join('.')}=${written(value)}`];
  const parts = inOrder(Object.keys(value)).map((key) =>
    isPart(key) ? addedAt(value[key] as Json, [...path, key]) : null,
  );
  return parts.some((part) => part === null) ? null : parts.flatMap((part) => part ?? []);
}

const isPart = (key: string) => /^[\w-]+$/.test(key);

/** Words stand as they are, unless they would be read as something else. */
function written(value: Json): string {
  const text = typeof value === 'string' && !isJson(value) ? value : JSON.stringify(value);
  // What an address may hold, but for what parts a link.
  return encodeURIComponent(text).replaceAll(/%(?:2C|3A|2F|5B|5D|7B|7D|22|20)/g, (code) =>
    code === '%20' || code === '%22' || code === '%7B' || code === '%7D' ? code : decodeURIComponent(code),
  );
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

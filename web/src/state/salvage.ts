// What remains of a scenario when the members that are refused are left out. Work is proportional to
// the text and its issues; of more issues than the engine lists nothing near remains.
import type { Canonical, Issue } from 'servecast';
import type { Question } from '../engine/protocol';
import { getAt, isObject, parentOf, readDocument, segmentsOf, type Document, type Json } from './document';
import type { LinkProblem } from './store';

const salvageRounds = 5;
type Ask = (question: Question, text: string) => Promise<Canonical>;

const isCut = (issues: readonly Issue[]) => issues.some((issue) => issue.kind === 'more');

/** Leaves out what is refused, as often as that uncovers something else. */
export async function nearestDocument(
  ask: Ask,
  text: string,
  issues: readonly Issue[],
  traceName: string | null,
): Promise<LinkProblem['nearest']> {
  if (isCut(issues)) return null;
  let document = readDocument(text);
  let bad = issues;
  const dropped: string[] = [];
  for (let round = 0; document && round < salvageRounds && !isCut(bad); round += 1) {
    const gone = membersAt(document, bad);
    if (gone.length === 0) return null;
    document = without(document, gone);
    dropped.push(...gone);
    if (Object.keys(document).length === 0) return null;
    bad = (await ask('canonical', JSON.stringify(document))).issues;
    if (bad.length === 0) return { document, trace_name: traceName, dropped };
  }
  return null;
}

/** The same of a readable link, by its parts. */
export async function nearestFragment(
  ask: Ask,
  fragment: string,
  issues: readonly Issue[],
): Promise<LinkProblem['nearest']> {
  if (isCut(issues)) return null;
  let parts = fragment.split('&');
  let bad = issues;
  const dropped: string[] = [];
  for (let round = 0; round < salvageRounds && !isCut(bad); round += 1) {
    const refused = new Refused(bad);
    const isBad = (part: string) =>
      !part.startsWith('p=') && refused.touches(`/${(part.split('=')[0] ?? '').replaceAll('.', '/')}`);
    const gone = parts.filter(isBad);
    if (gone.length === 0) return null;
    parts = parts.filter((part) => !isBad(part));
    dropped.push(...gone.map((part) => part.split('=')[0] ?? ''));
    const canonical = await ask('parse', parts.join('&'));
    const document = readDocument(canonical.text);
    bad = canonical.issues;
    if (bad.length === 0) return document ? { document, trace_name: null, dropped } : null;
  }
  return null;
}

/** The members that issues speak of, or what holds them where they are missing; last items first. */
function membersAt(document: Document, issues: readonly Issue[]): string[] {
  const found = new Set<string>();
  for (const { path } of issues) {
    let pointer = path.startsWith('/') ? path : '';
    while (pointer !== '' && getAt(document, pointer) === undefined) pointer = parentOf(pointer);
    if (pointer !== '') found.add(pointer);
  }
  return [...found].sort((a, b) => b.localeCompare(a, 'en', { numeric: true }));
}

/** Pointers as a tree. `gone`: one ends here. */
interface Tree {
  gone: boolean;
  readonly inner: Map<string, Tree>;
}

function treeOf(pointers: readonly string[]): Tree {
  const root: Tree = { gone: false, inner: new Map() };
  for (const pointer of pointers) {
    let at = root;
    for (const key of segmentsOf(pointer)) {
      const next = at.inner.get(key) ?? { gone: false, inner: new Map<string, Tree>() };
      at.inner.set(key, next);
      at = next;
    }
    at.gone = true;
  }
  return root;
}

/** All of them removed in one go, with objects that become empty, but for items of lists: theirs are places. */
export function without(document: Document, pointers: readonly string[]): Document {
  const rest = pruned(document, treeOf(pointers));
  return isObject(rest) ? rest : {};
}

function pruned(node: Json, tree: Tree): Json | undefined {
  if (Array.isArray(node)) {
    return (node as readonly Json[]).flatMap((item, index) => {
      const inner = tree.inner.get(String(index));
      if (!inner) return [item];
      return inner.gone ? [] : [pruned(item, inner) ?? {}];
    });
  }
  if (!isObject(node)) return node;
  // Built at once: an object that members are taken from one by one would be copied for each.
  const kept: [string, Json][] = [];
  for (const [key, value] of Object.entries(node)) {
    const inner = tree.inner.get(key);
    const rest = inner ? (inner.gone ? undefined : pruned(value, inner)) : value;
    if (rest !== undefined) kept.push([key, rest]);
  }
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** Places that issues name, to be looked up by any number of pointers. */
class Refused {
  readonly #paths = new Set<string>();
  readonly #above = new Set<string>();
  #deepest = 0;

  constructor(issues: readonly Issue[]) {
    for (const { path } of issues) {
      if (path === '') continue;
      this.#paths.add(path);
      let depth = 1;
      for (let above = parentOf(path); above !== ''; above = parentOf(above), depth += 1) this.#above.add(above);
      this.#deepest = Math.max(this.#deepest, depth);
    }
  }

  /** Whether an issue is of that place, of something in it, or of what it is in. */
  touches(pointer: string): boolean {
    if (this.#above.has(pointer) || this.#paths.has(pointer)) return true;
    let end = pointer.indexOf('/', 1);
    for (let depth = 1; end > 0 && depth <= this.#deepest; depth += 1, end = pointer.indexOf('/', end + 1)) {
      if (this.#paths.has(pointer.slice(0, end))) return true;
    }
    return false;
  }
}

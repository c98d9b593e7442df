// What remains of a scenario when the members that are refused are left out.
import type { Canonical, Issue } from 'servecast';
import type { Question } from '../engine/protocol';
import { getAt, parentOf, readDocument, removeAt, type Document } from './document';
import type { LinkProblem } from './store';

const salvageRounds = 5;
type Ask = (question: Question, text: string) => Promise<Canonical>;

/** Leaves out what is refused, as often as that uncovers something else. */
export async function nearestDocument(ask: Ask, text: string, issues: readonly Issue[], traceName: string | null): Promise<LinkProblem['nearest']> {
  let document = readDocument(text);
  let bad = issues;
  const dropped: string[] = [];
  for (let round = 0; document && round < salvageRounds; round += 1) {
    const gone = membersAt(document, bad);
    if (gone.length === 0) return null;
    for (const pointer of gone) document = removeAt(document, pointer);
    dropped.push(...gone);
    if (Object.keys(document).length === 0) return null;
    bad = (await ask('canonical', JSON.stringify(document))).issues;
    if (bad.length === 0) return { document, trace_name: traceName, dropped };
  }
  return null;
}

/** The same of a readable link, by its parts. */
export async function nearestFragment(ask: Ask, fragment: string, issues: readonly Issue[]): Promise<LinkProblem['nearest']> {
  let parts = fragment.split('&');
  let bad = issues;
  const dropped: string[] = [];
  for (let round = 0; round < salvageRounds; round += 1) {
    const isBad = (part: string) => !part.startsWith('p=') && bad.some((issue) => touches(`/${(part.split('=')[0] ?? '').replaceAll('.', '/')}`, issue.path));
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

function touches(pointer: string, path: string): boolean {
  return path !== '' && (pointer === path || pointer.startsWith(`${path}/`) || path.startsWith(`${pointer}/`));
}

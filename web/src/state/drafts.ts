// Texts in fields that are no values, by the place of their field: what becomes of them when the document changes.
import { getAt, lastOf, parentOf, type Document } from './document';
import { fieldAt, isRelevant, type FormSource } from './fields';

export type Drafts = ReadonlyMap<string, string>;

/** What is typed in an item of a list goes with it; in those after it, it moves along. */
export function withoutItem(drafts: Drafts, pointer: string): Drafts {
  const list = parentOf(pointer);
  const gone = Number(lastOf(pointer));
  const kept = [...drafts].flatMap(([at, text]): [string, string][] => {
    if (!at.startsWith(`${list}/`)) return [[at, text]];
    const [index = '', ...rest] = at.slice(list.length + 1).split('/');
    if (Number(index) === gone) return [];
    return [[[list, Number(index) > gone ? Number(index) - 1 : index, ...rest].join('/'), text]];
  });
  return new Map(kept);
}

/** Without the one at `edited`, and those whose fields the new document does not have: they would stop every run. */
export function stillThere(drafts: Drafts, source: FormSource | null, document: Document, edited: string): Drafts {
  const isThere = (at: string) => {
    const field = source && fieldAt({ ...source, document }, at);
    const inItem = /^(.*\/\d+)\//.exec(at)?.[1];
    return (
      field &&
      isRelevant({ ...source, document }, { field, pointer: at }) &&
      (!inItem || !getAt(document, parentOf(inItem)) || getAt(document, inItem) !== undefined)
    );
  };
  return new Map([...drafts].filter(([at]) => at !== edited && isThere(at)));
}

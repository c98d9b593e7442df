// Scenarios of this machine: those that a person kept, and the last that were looked at. They are in the browser's own
// storage, on no server and in no embed; each is its link, which is opened like any other.
import type { Preset } from 'servecast';
import { equalJson, titleOf, type Document } from './document';
import { reportOf, type Store } from './store';

export interface KeptScenario {
  readonly link: string;
  readonly name: string;
  readonly note: string;
  /** The sentence of its verdict; "": it was kept before there was one. */
  readonly verdict: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** By a person: it stays until it is removed. */
  readonly kept: boolean;
}

/** Where the text is between visits; both may throw where a browser allows no storage. */
export interface Shelf {
  read(): string | null;
  write(text: string): void;
}

const restMs = 3000;
const mostRecent = 8;
const mostPicked = 2;
const mostKept = 100;
const longest = 1_000_000;
/** The address of a preset as it is, perhaps with its author's result. */
const ofPreset = /^p=[^&]+(&v=.*)?$/;
const sizeOf = ({ link, note }: KeptScenario) => link.length + note.length;

const ages = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
] as const;

/** "2 hours ago". */
export function ageText(ms: number): string {
  const [unit, length] = ages.find(([, each]) => ms >= each) ?? ['minute', 60_000];
  const words = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
  return ms < 60_000 ? 'just now' : words.format(-Math.floor(ms / length), unit);
}

/** What is no list of such scenarios is none: others may have written there. */
export function parseKept(text: string | null): readonly KeptScenario[] {
  try {
    const list = JSON.parse(text ?? '[]') as unknown;
    if (!Array.isArray(list)) return [];
    return list.flatMap((each: Partial<Record<keyof KeptScenario, unknown>> | null) => {
      const { link, name, note, verdict, at, kept } = each ?? {};
      const isOne = typeof link === 'string' && link !== '' && typeof name === 'string' && typeof at === 'number';
      if (!isOne || !Number.isFinite(at)) return [];
      const words = (value: unknown) => (typeof value === 'string' ? value : '');
      return [{ link, name, note: words(note), verdict: words(verdict), at, kept: kept === true }];
    });
  } catch {
    return [];
  }
}

export class Kept {
  readonly #store: Store;
  readonly #linkTo: (document: Document) => Promise<string>;
  readonly #shelf: Shelf;
  #items: readonly KeptScenario[] = [];
  /** What was looked at last, and what was opened for it: its next edit takes its place. */
  #last: { readonly base: Document; readonly link: string } | null = null;
  readonly #removed = new Set<string>();
  /** Nothing can be kept beyond this visit. */
  isForgetful = false;

  constructor(store: Store, linkTo: (document: Document) => Promise<string>, shelf: Shelf) {
    this.#store = store;
    this.#linkTo = linkTo;
    this.#shelf = shelf;
    this.#read();
  }

  /** Those that were kept, then those that were looked at; of each the newest first. */
  get items(): readonly KeptScenario[] {
    return this.#items;
  }

  /** As the picker lists them: of what was looked at the newest alone. */
  get presets(): readonly Preset[] {
    const kept = this.#items.filter((each) => each.kept);
    return this.#items.slice(0, kept.length + mostPicked).map(({ link, name, note, verdict, at, kept }) => ({
      id: link,
      name,
      description: `${kept ? 'Kept' : 'Looked at'} ${ageText(Date.now() - at)}. ${note || verdict}`,
    }));
  }

  /** Notes what is at rest on the page, but for presets as they are. */
  watch(): void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    this.#store.subscribe(() => {
      clearTimeout(timer);
      timer = setTimeout(() => void this.#note(), restMs);
    });
  }

  /** What is on the page; false: it cannot be read, or there is no more room. */
  async keep(): Promise<boolean> {
    const { document } = this.#store.state;
    const link = await this.#linkTo(document);
    if (link === '') return false;
    const entry = this.#entry(document, link, true);
    const kept = [entry, ...this.#read().filter((each) => each.kept && each.link !== link)];
    if (kept.length > mostKept || kept.reduce((sum, each) => sum + sizeOf(each), 0) > longest) return false;
    this.#removed.delete(link);
    this.#put(entry);
    return true;
  }

  /** It is not noted again in this visit. */
  remove(link: string): void {
    this.#removed.add(link);
    this.#write(this.#read().filter((each) => each.link !== link));
  }

  async #note(): Promise<void> {
    const { shown, document, base, preset_id: preset, link: address, link_problem: problem } = this.#store.state;
    if (problem !== null || shown?.completeness !== 'final' || shown.document !== document) return;
    if (equalJson(document, base) && (preset !== null || ofPreset.test(address))) return;
    const link = await this.#linkTo(document);
    if (link === '' || this.#removed.has(link) || document !== this.#store.state.document) return;
    const former = this.#last?.base === base ? this.#last.link : '';
    this.#last = { base, link };
    const known = this.#read().find((each) => each.link === link);
    if (known && former === link) return;
    this.#put(this.#entry(document, link, known?.kept === true), former);
  }

  #entry(document: Document, link: string, kept: boolean): KeptScenario {
    const { shown, catalog, preset_id: id } = this.#store.state;
    const preset = catalog?.presets.scenarios.find((each) => each.id === id);
    const verdict = shown?.document === document ? reportOf(shown).verdict.sentence : '';
    const note = typeof document['description'] === 'string' ? document['description'] : '';
    const isOwn = catalog?.presets.scenarios.every((each) => each.document?.['description'] !== note) ?? true;
    return { link, name: titleOf(document, preset), note: isOwn ? note : '', verdict, at: Date.now(), kept };
  }

  #put(entry: KeptScenario, former = ''): void {
    const others = this.#read().filter(({ link, kept }) => link !== entry.link && (kept || link !== former));
    this.#write([entry, ...others]);
  }

  /** Another tab may have written meanwhile. */
  #read(): readonly KeptScenario[] {
    if (this.isForgetful) return this.#items;
    try {
      this.#items = ordered(parseKept(this.#shelf.read()));
    } catch {
      this.isForgetful = true;
    }
    return this.#items;
  }

  #write(items: readonly KeptScenario[]): void {
    this.#items = ordered(items);
    try {
      if (!this.isForgetful) this.#shelf.write(JSON.stringify(this.#items));
    } catch {
      this.isForgetful = true;
    }
    this.#store.update({});
  }
}

function ordered(items: readonly KeptScenario[]): readonly KeptScenario[] {
  const newest = [...items].sort((a, b) => b.at - a.at);
  const seen = newest.filter((each) => !each.kept && sizeOf(each) < longest / mostRecent);
  return [...newest.filter((each) => each.kept), ...seen.slice(0, mostRecent)];
}

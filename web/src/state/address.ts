// The address bar: the link of what is on the page, written after a pause; and the browser's history, whose entries are
// what was opened, one after the other. An entry of this visit is brought back as it was left, edits and all.
import type { Canonical } from 'servecast';
import { needsTrace, type Document } from './document';
import type { Store, ThemeChoice } from './store';
import { momentOf, type Moment } from './moment';

export interface Surroundings {
  /** The fragment with or without "#". */
  readFragment(): string;
  /** Into the current entry of the history, or into one that follows it. */
  writeFragment(fragment: string, entry: string, follows: boolean): void;
  /** The name of the current entry; "": it has none. */
  readEntry(): string;
  saveTheme(theme: ThemeChoice): void;
}

const linkPauseMs = 250;

export class Address {
  readonly #around: Surroundings;
  readonly #store: Store;
  readonly #readable: (canonical: string) => Promise<string | null>;
  readonly #moments = new Map<string, Moment>();
  readonly #visit = String(performance.timeOrigin);
  #entry = '';
  #count = 0;
  /** What the canonical text in the store is of. */
  #of: Document | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `readable`: the same in the grammar that people write; null: it cannot be said there. */
  constructor(around: Surroundings, store: Store, readable: (canonical: string) => Promise<string | null>) {
    this.#around = around;
    this.#store = store;
    this.#readable = readable;
  }

  /** Something is opened that the browser did not go to by itself: Back returns to what is there now. */
  follow(): void {
    this.#keep();
    this.#name(true);
  }

  /** Something is opened from the address: this entry is its. */
  settle(): void {
    this.#keep();
    if (this.#around.readEntry() !== this.#entry || this.#entry === '') this.#name(false);
  }

  /** The browser went to another entry: what was there; null: it is not of this visit, or it is where we are. */
  arrive(): Moment | null {
    const entry = this.#around.readEntry();
    if (entry === this.#entry) return null;
    const moment = this.#moments.get(entry) ?? null;
    if (!moment) return null;
    this.#keep();
    this.#entry = entry;
    return moment;
  }

  /** Whether what is in the address bar was brought there by this page. */
  get isKnown(): boolean {
    const entry = this.#around.readEntry();
    return entry !== '' && (entry === this.#entry || this.#moments.has(entry));
  }

  /** What is in the address bar is opened, or was refused: the document is not of this entry. */
  get #isForeign(): boolean {
    const { run, link_problem: problem } = this.#store.state;
    return problem !== null || (run.kind === 'running' && run.opening === true);
  }

  #keep(): void {
    const { state } = this.#store;
    if (this.#entry !== '' && Object.keys(state.document).length > 0 && !this.#isForeign)
      this.#moments.set(this.#entry, momentOf(state));
  }

  #name(follows: boolean): void {
    clearTimeout(this.#timer);
    this.#count += 1;
    this.#entry = `${this.#visit}-${this.#count}`;
    this.#around.writeFragment(this.#around.readFragment().replace(/^#/, ''), this.#entry, follows);
  }

  accept(canonical: Canonical, of: Document): void {
    if (canonical.text === '' || of !== this.#store.state.document) return;
    this.#of = of;
    this.#store.update({ canonical: { text: canonical.text, id: canonical.id } });
    this.keep();
  }

  /** The address becomes that of the document again. */
  keep(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#write(), linkPauseMs);
  }

  async #write(): Promise<void> {
    const { canonical, document, wanted_trace: traceName } = this.#store.state;
    // Of a document that is no longer wanted: the newest one writes its own.
    if (!canonical || this.#isForeign || this.#of !== document) return;
    const entry = this.#entry;
    const traced = needsTrace(document);
    const written = await import('../share/encode').catch(() => null);
    if (!written) return; // no connection: the next edit tries again
    const packed = await written.encodeLink(canonical.text, traced ? traceName : null);
    const readable = traced ? null : await this.#readable(canonical.text);
    const bare = readable !== null && readable.length < packed.length ? readable : packed;
    // What was pinned by the author stays while it is of what is on the page.
    const { pin } = this.#store.state;
    const link = written.withPin(bare, pin?.document === document ? pin.text : '');
    // Packing takes a moment: another scenario may be on the page by now, and writes its own.
    if (canonical !== this.#store.state.canonical || entry !== this.#entry) return;
    if (this.#isForeign || this.#of !== this.#store.state.document) return;
    if (link === this.#store.state.link && link === this.#around.readFragment().replace(/^#/, '')) return;
    this.#store.update({ link });
    this.#around.writeFragment(link, entry, false);
  }

  /** The current link, now: copying must not wait for the pause. */
  async current(): Promise<string> {
    clearTimeout(this.#timer);
    await this.#write();
    return this.#store.state.link;
  }
}

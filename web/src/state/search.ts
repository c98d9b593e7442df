// The cheapest of many designs: asked for by a person, as it takes seconds. Its answer fills as it goes.
import type { Planners, Searching } from '../engine/pool';
import type { TraceFile } from '../engine/client';
import { needsTrace, readDocument, type Document } from './document';
import type { Search, Store } from './store';

type Asked = Pick<Search, 'rate' | 'axes' | 'prices' | 'least'> & { readonly of: Document };

export class Searches {
  readonly #planners: Planners;
  readonly #store: Store;
  #running: Searching | null = null;

  constructor(planners: Planners, store: Store) {
    this.#planners = planners;
    this.#store = store;
  }

  /** `document`: what is shown, at the rate that is asked for. */
  begin(document: Document, { of, rate, axes, prices, least }: Asked, trace: TraceFile | null): void {
    this.#running?.close();
    const withTrace = needsTrace(document);
    this.#store.update({
      search: {
        kind: 'running',
        document: of,
        rate,
        axes,
        prices,
        least,
        progress: 0,
        answer: null,
        sentence: '',
        issues: [],
      },
    });
    const asked = { scenario: JSON.stringify(document), axes, prices, least };
    const running = this.#planners.search(asked, withTrace, withTrace ? trace : null, {
      found: ({ progress, answer, sentence }) => {
        const { search: now } = this.#store.state;
        if (this.#running !== running || !now) return;
        const kind = now.kind === 'running' && progress === 1 ? 'answered' : now.kind;
        this.#store.update({ search: { ...now, kind, progress, answer, sentence } });
      },
      failed: (issues) => {
        const { search: now } = this.#store.state;
        if (this.#running === running && now) this.#store.update({ search: { ...now, kind: 'failed', issues } });
      },
    });
    this.#running = running;
  }

  stop(): void {
    const { search } = this.#store.state;
    if (search?.kind !== 'running') return;
    this.#running?.stop();
    this.#store.update({ search: { ...search, kind: 'stopped' } });
  }

  /** The scenario that is a point; null: there is none. */
  async documentOf(point: number): Promise<Document | null> {
    return readDocument((await this.#running?.documentOf(point)) ?? '');
  }
}

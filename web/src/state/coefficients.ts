// Sets of coefficients for a step-time model: the published ones, or those of a file; one is chosen.
import type { Coefficients, CoefficientSet } from 'servecast';
import type { Engine } from '../engine/client';
import type { Document } from './document';
import { issueText } from './fields';
import type { Store } from './store';

/** Bytes; the engine's own limit of a document. */
const longestScenario = 4 * 1024 * 1024;

export class CoefficientSets {
  readonly #engine: Engine;
  readonly #store: Store;
  readonly #choose: (latency: Document) => void;

  constructor(engine: Engine, store: Store, choose: (latency: Document) => void) {
    this.#engine = engine;
    this.#store = store;
    this.#choose = choose;
  }

  /** The published ones; their file is fetched with the first look. */
  list(): Promise<void> {
    return this.#read('Published by BLIS', Promise.resolve(''));
  }

  /** One set is taken at once, of several one is chosen. */
  open(file: File): Promise<void> {
    return this.#read(
      file.name,
      file.size <= longestScenario
        ? file.text().then((text) => text || ' ')
        : Promise.reject(new Error(`${file.name} is larger than 4 MiB`)),
    );
  }

  async #read(name: string, file: Promise<string>): Promise<void> {
    this.#store.update({ coefficients: { kind: 'reading' } });
    try {
      const words = [JSON.stringify(this.#store.state.document), await file];
      const { sets, issues } = (await this.#engine.whole('coefficients', words)) as Coefficients;
      if (issues.length > 0) throw new Error(issues.map(issueText).join(' '));
      this.#store.update({ coefficients: { kind: 'listed', name, sets, chosen: null } });
      const [only] = sets;
      if (only && sets.length === 1) this.take(only);
    } catch (error) {
      this.#store.update({
        coefficients: { kind: 'failed', message: error instanceof Error ? error.message : String(error) },
      });
    }
  }

  take(chosen: CoefficientSet): void {
    const { coefficients } = this.#store.state;
    if (coefficients.kind === 'listed') this.#store.update({ coefficients: { ...coefficients, chosen } });
    this.#choose(chosen.latency as Document);
  }
}

// Texts of other programs as a scenario, and the scenario as their texts, both by the whole module in the worker.
import type { ExportedText, ExportTarget, ImportedText } from 'servecast';
import type { Engine } from '../engine/client';
import type { Store } from './store';

export class Doors {
  readonly #engine: Engine;
  readonly #store: Store;

  constructor(engine: Engine, store: Store) {
    this.#engine = engine;
    this.#store = store;
  }

  /** What the text does not say is as in the open scenario, or as the command has it. */
  async imported(text: string, overOpen: boolean): Promise<ImportedText> {
    const base = overOpen ? JSON.stringify(this.#store.state.document) : '';
    return (await this.#engine.whole('importText', [text, base])) as ImportedText;
  }

  async exported(target: string): Promise<ExportedText> {
    const words = [JSON.stringify(this.#store.state.document), target];
    return (await this.#engine.whole('exportTo', words)) as ExportedText;
  }

  async targets(): Promise<readonly ExportTarget[]> {
    return (await this.#engine.whole('exportTargets', [])) as readonly ExportTarget[];
  }
}

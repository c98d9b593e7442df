// Texts of other programs as a scenario, and the scenario as their texts, both by the whole module in the worker; and what
// a member that no text says comes to.
import type { ExportedText, ExportTarget, ImportedText, Report } from 'servecast';
import type { Engine } from '../engine/client';
import { getAt, needsTrace, readDocument, setAt } from './document';
import type { Store } from './store';

const own = 'own';

/** Whether servers sample by top-p unless told otherwise: a file beside a config says it. */
export const topP = 'model.top_p_by_default';
const topPPointer = '/model/top_p_by_default';

export const samplesByTopP = (document: string): boolean => getAt(readDocument(document) ?? {}, topPPointer) === true;

export const withTopP = (document: string, on: boolean): string =>
  JSON.stringify(setAt(readDocument(document) ?? {}, topPPointer, on), null, 2);

export class Doors {
  readonly #engine: Engine;
  readonly #store: Store;
  #taken = '';

  constructor(engine: Engine, store: Store) {
    this.#engine = engine;
    this.#store = store;
  }

  /** What the text does not say is as in the open scenario, or as the command has it. */
  async imported(text: string, overOpen: boolean): Promise<ImportedText> {
    const base = overOpen ? JSON.stringify(this.#store.state.document) : '';
    return (await this.#engine.whole('importText', [text, base])) as ImportedText;
  }

  /** The text that the open scenario came from, for `exported('own')`. */
  took(text: string): void {
    this.#taken = text;
  }

  async exported(target: string): Promise<ExportedText> {
    const document = JSON.stringify(this.#store.state.document);
    const question =
      target === own
        ? this.#engine.whole('rewriteText', [this.#taken, document])
        : this.#engine.whole('exportTo', [document, target]);
    return (await question) as ExportedText;
  }

  async targets(): Promise<readonly ExportTarget[]> {
    const targets = (await this.#engine.whole('exportTargets', [])) as readonly ExportTarget[];
    return this.#taken === ''
      ? targets
      : [{ name: own, help: 'What to change in the text that you imported' }, ...targets];
  }

  /** Its report, run beside what the page shows; null: it cannot run as it is. Never settles when another takes its place. */
  tried(scenario: string): Promise<Report | null> {
    const nothing = () => undefined;
    return new Promise((resolve) =>
      this.#engine.run(
        scenario,
        needsTrace(readDocument(scenario) ?? {}),
        {
          accepted: nothing,
          loading: nothing,
          progress: nothing,
          refused: () => resolve(null),
          finished: (outcome, _progress, cancelled) => resolve(cancelled ? null : (outcome?.report ?? null)),
          broken: () => resolve(null),
        },
        'beside',
      ),
    );
  }

  stop(): void {
    this.#engine.cancel('beside');
  }
}

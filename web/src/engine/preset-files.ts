// Files that a module asks for when it needs them, fetched from where the page came and handed in.
import type { Catalog, FirstModule, Issue } from 'servecast';
import { inWords } from './compile';

/** As the engine names the whole module where the first one lacks a scheduler. */
const wholeModule = 'servecast.wasm';

/** The scenario asks for what the first module lacks. */
export class NeedsWholeModule extends Error {}

export class PresetFiles {
  /** The address that presets/ is at. */
  site = '';
  readonly #known: (catalog: Catalog) => void;
  readonly #underWay = new Map<string, { readonly module: FirstModule; readonly done: Promise<void> }>();

  /** `known`: hears of a catalogue that knows more. */
  constructor(known: (catalog: Catalog) => void) {
    this.#known = known;
  }

  /** Asks the module until no file is missing. Throws, in words, when one cannot be had, and NeedsWholeModule. */
  async with<Answer>(
    module: FirstModule,
    ask: () => Answer,
    issuesOf: (answer: Answer) => readonly Issue[],
    waits?: () => void,
  ): Promise<Answer> {
    for (;;) {
      const answer = ask();
      const files = issuesOf(answer).flatMap(({ kind, path }) => (kind === 'missing_file' ? [path] : []));
      if (files.length === 0) return answer;
      waits?.();
      if (files.includes(wholeModule)) throw new NeedsWholeModule();
      await Promise.all(files.map((file) => this.fetch(module, file)));
    }
  }

  /** Once, whoever asks meanwhile. */
  fetch(module: FirstModule, file: string): Promise<void> {
    const asked = this.#underWay.get(file);
    if (asked?.module === module) return asked.done;
    const done = this.#fetchOnce(module, file).finally(() => this.#underWay.delete(file));
    this.#underWay.set(file, { module, done });
    return done;
  }

  async #fetchOnce(module: FirstModule, file: string): Promise<void> {
    const failed = (why: string) => new Error(`${file} is fetched when it is first needed, and could not be: ${why}`);
    let text: string;
    try {
      const response = await fetch(new URL(`${file}?${presetsVersion}`, this.site));
      if (!response.ok) throw new Error(`the server answered ${response.status}`);
      text = await response.text();
    } catch (error) {
      throw failed(inWords(error));
    }
    const [issue] = JSON.parse(module.provide(file, text)) as readonly Issue[];
    if (issue) throw failed(issue.message);
    if (!/^presets\/(operators|coefficients|prices)\//.test(file)) this.#known(JSON.parse(module.catalog()) as Catalog);
  }
}

// What is handed out of the page: the certain result of what is asked now, its link and its title.
import { pinOf } from '../share/pin';
import { withPin } from '../share/encode';
import type { Shared } from '../share/snippets';
import { needsTrace, titleOf } from '../state/document';
import { reportOf, type AppState, type Shown } from '../state/store';

/** Null: what is shown is of another document, of one that cannot be opened, or of a part of a run. */
export function certainOf({ shown, document, link_problem: problem }: AppState): Shown | null {
  if (problem !== null) return null;
  return shown?.completeness === 'final' && shown.document === document ? shown : null;
}

/** `link`: to the document, without a result; with one where `pinned`. */
export function sharedOf(state: AppState, link: string, pinned: boolean): Shared {
  const { document, catalog, preset_id: preset } = state;
  const shown = certainOf(state);
  const report = shown ? reportOf(shown) : null;
  const named = catalog?.presets.scenarios.find(({ id }) => id === preset);
  return {
    site: new URL('.', location.href).href,
    link: withPin(link, pinned && report ? pinOf(report) : ''),
    title: titleOf(document, named),
    report,
  };
}

/** The file that the scenario replays, "" when that has no name yet; null: none. */
export function traceOf({ document, wanted_trace: name }: AppState): string | null {
  return needsTrace(document) ? (name ?? '') : null;
}

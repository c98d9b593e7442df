// The views below the verdict as tabs: which there are, their bar, and where the address holds the chosen one, and the
// tile that is shown beside the standard ones.
import { html, nothing, type TemplateResult } from 'lit';
import type { Report } from 'servecast';
import { firstRun } from '../lib/first-run';

interface Tab {
  readonly id: string;
  readonly label: string;
  /** The digit that opens it. */
  readonly key: string;
  /** Of a scenario that has it; absent: of every one. */
  readonly isOf?: (report: Report) => boolean;
  /** Opened from the header, in place of the forecast: no tab. */
  readonly aside?: true;
}

export const tabs = [
  { id: 'why', label: 'Why', key: '1' },
  { id: 'time', label: 'Over time', key: '2' },
  { id: 'compare', label: 'Compare', key: '3' },
  { id: 'plan', label: 'Plan', key: '4' },
  { id: 'numbers', label: 'Numbers', key: '5' },
  { id: 'document', label: 'Document', key: '6' },
  { id: 'cluster', label: 'Cluster', key: '7', isOf: (report: Report) => firstRun(report).replicas !== undefined },
  { id: 'calibrate', label: 'Calibrate', key: 'c', aside: true },
] as const satisfies readonly Tab[];

export type TabId = (typeof tabs)[number]['id'];
const standard: TabId = 'why';
const parameter = 'view';

/** The view that an address names; the standard one where it names none that there is. */
export function tabOf(address: string): TabId {
  const named = new URL(address).searchParams.get(parameter);
  return tabs.find(({ id }) => id === named)?.id ?? standard;
}

/** The address with that view in it; it goes before the "#", so that the scenario's link stays as it is. */
export const withTab = (address: string, id: TabId): string => withWord(address, parameter, id === standard ? '' : id);

function withWord(address: string, name: string, word: string): string {
  const url = new URL(address);
  if (word === '') url.searchParams.delete(name);
  else url.searchParams.set(name, word);
  return url.href;
}

/** Shown when it is asked for: a group of the page. */
export const powerTile = 'power';
const tiles = 'tiles';

export const hasPower = (address: string): boolean => new URL(address).searchParams.get(tiles) === powerTile;

export const withPower = (address: string, shown: boolean): string => withWord(address, tiles, shown ? powerTile : '');

/** Without a report nobody knows yet which of them the scenario has. */
export function tabsOf(report: Report | null): readonly (Tab & { readonly id: TabId })[] {
  return tabs.filter((tab) => !('isOf' in tab) || (report !== null && tab.isOf(report)));
}

/** The chosen one, or the standard one where the scenario has no such view. */
export function tabInForce(chosen: TabId, report: Report | null): TabId {
  return report === null || tabsOf(report).some(({ id }) => id === chosen) ? chosen : standard;
}

export function renderTabs(report: Report | null, current: TabId, choose: (id: TabId) => void): TemplateResult {
  const there = tabsOf(report).filter((tab) => !('aside' in tab));
  const onKey = (event: KeyboardEvent) => {
    const at = there.findIndex(({ id }) => id === current);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: there.length - 1 }[event.key];
    const next = to === undefined ? undefined : there.at(to % there.length);
    if (!next) return;
    event.preventDefault();
    choose(next.id);
  };
  return html`<div class="tabs" role="tablist" aria-label="Views" @keydown=${onKey}>
    ${there.map(
      ({ id, label, key }) => html`<button
        type="button"
        role="tab"
        id="tab-${id}"
        aria-selected=${id === current}
        aria-controls=${id === current ? id : nothing}
        aria-keyshortcuts=${key}
        tabindex=${id === current ? 0 : -1}
        @click=${() => choose(id)}
      >${label} <kbd aria-hidden="true">${key}</kbd></button>`,
    )}
  </div>`;
}

// The load over time as a chart: of the forecast, and of embeds.
import { html, nothing, type TemplateResult } from 'lit';
import type { Report } from 'servecast';
import type { Counted, Pane } from '../charts/series-chart';
import type { Columns } from '../engine/protocol';
import { countOf } from '../lib/format';
import type { ViewContext } from './context';
import { renderPoolKv, renderPrefixCache, renderSpeculation } from './details';
import { firstRun, whichRun } from '../lib/first-run';

const loadPanes: readonly Pane[] = [
  {
    unit: 'requests',
    lane: true,
    series: [{ column: 'series_running', label: 'Running', meaning: 'running', fill: 'solid' }],
  },
  {
    unit: 'requests',
    lane: true,
    series: [{ column: 'series_waiting', label: 'Waiting', meaning: 'waiting', fill: 'hatched' }],
  },
  {
    unit: '%',
    share: true,
    lane: true,
    series: [{ column: 'series_kv_usage', label: 'KV memory in use', meaning: 'kv', fill: 'solid' }],
  },
];
/** Of replicas that come and go, or fail: all, or those of a role. */
function replicasPane(columns: string, label: string): Pane {
  return {
    unit: 'replicas',
    lane: true,
    series: [
      { column: `${columns}_up`, label, meaning: 'batch', fill: 'solid' },
      { column: `${columns}_starting`, label: 'starting', meaning: 'waiting', fill: 'hatched' },
    ],
  };
}
const replicaPanes = [
  replicasPane('series_prefill_replicas', 'Replicas that prefill'),
  replicasPane('series_decode_replicas', 'Replicas that decode'),
];

function panesOf(report: Report | null, columns: Columns | null): readonly Pane[] {
  const panes = (report?.pools?.length ?? 1) > 1 ? loadPanes.slice(0, 2) : loadPanes;
  const has = ({ series }: Pane) => columns?.[series[0]?.column ?? '']?.length;
  const ofRoles = replicaPanes.filter(has);
  return [
    ...(ofRoles.length > 0 ? ofRoles : [replicasPane('series_replicas', 'Replicas that serve')].filter(has)),
    ...panes,
  ];
}

/** What the charts and views are about. */
export interface About {
  readonly report: Report | null;
  readonly columns: Columns | null;
  readonly waitingFor: string;
  readonly stem: string;
}

/** The course of a run, which one by name. */
function subjectOf(report: Report | null): string {
  const which = report ? whichRun(report) : '';
  return which === '' ? 'Load over time' : `Load over time, ${which}`;
}

export function renderLoad(view: ViewContext, { report, columns, waitingFor, stem }: About): TemplateResult {
  return html`<sc-series-chart .subject=${subjectOf(report)} .note=${report ? html`${basisOf(report)}${renderPoolKv(report)}${renderPrefixCache(report)}${renderSpeculation(report)}` : nothing} .panes=${panesOf(report, columns)} .counted=${countedOf(report)} .columns=${columns} .theme=${view.theme} .fileStem=${stem} .waitingFor=${waitingFor}></sc-series-chart>`;
}

/**
 * Of the run that is drawn, which is the first. Where those that count are longer, their warm-up is none of it: its drain
 * alone is marked. Null where nobody can say when the warm-up ended: of one run.
 */
export function countedOf(report: Report | null): Counted | null {
  const certainty = report?.certainty;
  if (!certainty || certainty.until_s <= certainty.from_s) return null;
  return isShorter(report) ? { from_s: 0, until_s: certainty.until_s } : certainty;
}

/** The run that is drawn is shorter than those that the verdict rests on. */
function isShorter(report: Report): boolean {
  const { certainty } = report;
  return certainty?.method === 'replications' && firstRun(report).arrived < certainty.requests_per_run;
}

function basisOf(report: Report): TemplateResult | typeof nothing {
  const { certainty } = report;
  if (!certainty || !isShorter(report)) return nothing;
  return html`<p class="help">One run of ${countOf(firstRun(report).arrived, 'request')}; the verdict rests on ${certainty.runs} of ${countOf(certainty.requests_per_run, 'request')}.</p>`;
}

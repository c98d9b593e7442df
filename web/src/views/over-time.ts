// What happened over time: single requests, steps, pools, the batches as they formed. The steps are of the first run,
// which is run once more to be kept step by step. Loaded when it is opened.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { Report } from 'servecast';
import '../charts/kv-map-chart';
import '../charts/request-chart';
import '../charts/roofline-chart';
import '../charts/series-chart';
import type { Counted, Pane } from '../charts/series-chart';
import type { Columns, Outcome, Recorded } from '../engine/protocol';
import { countOf, formatCount, formatNumber, formatPercent, formatTime, sentence } from '../lib/format';
import { download } from '../lib/download';
import { addStyles } from '../lib/part';
import { handToPerfetto, openPerfetto } from '../share/perfetto';
import { mostRequestsDrawn, transfersUnderWay } from '../lib/requests';
import { lanesOf } from '../lib/recorded-steps';
import { onWindow, windowShown } from '../lib/time-window';
import type { Shown } from '../state/store';
import styles from '../styles/over-time.css?inline';
import type { ViewContext } from './context';
import './playback';
import { firstRun } from '../lib/first-run';
import { tookLong } from '../lib/work';

/** Of all replicas; 16 numbers each. */
const mostSteps = 100_000;
/** About 700 bytes each in the time line. */
const mostStepsWritten = 50_000;
/** Single requests of a run that has more than are fetched. */
const rowsOfMany = 200;
/** Between the last move of a window and its recording. */
const restMs = 300;

const stepPanes: readonly Pane[] = [
  { unit: 'tokens', series: [{ column: 'series_batch_tokens', label: 'Tokens per step', meaning: 'batch' }] },
  {
    unit: 'tokens/s',
    series: [{ column: 'series_output_tokens_per_s', label: 'Output', meaning: 'output', dash: [7, 3] }],
  },
  {
    unit: 'count',
    none: 'none: no request was preempted',
    series: [{ column: 'series_preemptions', label: 'Preemptions', meaning: 'preempted', fill: 'solid' }],
  },
];
const transferPane: Pane = {
  unit: 'requests',
  series: [
    {
      column: 'series_kv_transfers',
      label: 'KV transfers under way, prefill to decode',
      meaning: 'transfer',
      fill: 'solid',
    },
  ],
};
/** Of a pool, each with its highest interval. */
function lanePanes(columns: Columns): readonly Pane[] {
  const peak = (name: string) =>
    (columns[name] ?? new Float64Array(0)).reduce((most, value) => Math.max(most, value), 0);
  // A mean: the peak of the memory, of which the rail speaks, is of a moment.
  const requests = (name: string) => `, busiest interval ${formatNumber(peak(name))}`;
  return [
    {
      unit: 'requests',
      series: [
        { column: 'lane_running', label: `Running${requests('lane_running')}`, meaning: 'running', fill: 'solid' },
      ],
    },
    {
      unit: 'requests',
      none: 'none waits',
      series: [
        { column: 'lane_waiting', label: `Waiting${requests('lane_waiting')}`, meaning: 'waiting', fill: 'hatched' },
      ],
    },
    {
      unit: '%',
      share: true,
      series: [
        {
          column: 'lane_kv',
          label: `KV memory, busiest interval ${formatPercent(peak('lane_kv'))}`,
          meaning: 'kv',
          fill: 'solid',
        },
      ],
    },
  ];
}

type Order = 'ttft' | 'e2e' | 'arrival';

export class OverTimeElement extends PlainElement {
  static override properties = {
    view: { attribute: false },
    load: { attribute: false },
    counted: { attribute: false },
    fileStem: { attribute: false },
    waitingFor: { attribute: false },
    recorded: { state: true },
    progress: { state: true },
    problem: { state: true },
    handing: { state: true },
  };
  declare view: ViewContext;
  /** The chart of the load, as the page shows it. */
  declare load: TemplateResult;
  declare counted: Counted | null;
  declare fileStem: string;
  declare waitingFor: string;
  declare recorded: { readonly of: Outcome; readonly from_s: number; readonly data: Recorded } | null;
  /** null: nothing is recorded now. */
  declare progress: number | null;
  declare problem: string;
  /** What became of the time line, in words. */
  declare handing: string;
  #asked: Outcome | null = null;
  #order: Order = 'ttft';
  #lanes: {
    readonly of: Recorded;
    readonly lanes: readonly { readonly columns: Columns; readonly panes: readonly Pane[] }[];
  } | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #leave: () => void = () => undefined;

  constructor() {
    super();
    this.counted = null;
    this.fileStem = 'servecast';
    this.waitingFor = '';
    this.recorded = null;
    this.progress = null;
    this.problem = '';
    this.handing = '';
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#leave = onWindow(() => this.#windowMoved());
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    clearTimeout(this.#timer);
    this.#leave();
    this.view.app.watchRequests(false);
  }

  protected override firstUpdated(): void {
    this.view.app.watchRequests(true);
  }

  protected override willUpdate(): void {
    const { shown, run } = this.view.state;
    if (shown?.completeness !== 'final' || run.kind !== 'idle' || this.#asked === shown.outcome) return;
    this.#asked = shown.outcome;
    if (!tookLong(shown.outcome.report)) void this.#record(shown, 0);
  }

  /** Steps that were not kept come into view. */
  #windowMoved(): void {
    clearTimeout(this.#timer);
    const { shown } = this.view.state;
    const { recorded } = this;
    const from = windowShown()?.from_s ?? 0;
    if (!shown || recorded?.of !== shown.outcome) return;
    const last = recorded.data.steps['step_start_s']?.at(-1) ?? 0;
    const isThere = from >= recorded.from_s && (!recorded.data.is_cut || from < last);
    if (!isThere) this.#timer = setTimeout(() => void this.#record(shown, from), restMs);
  }

  async #record(shown: Shown, from: number): Promise<void> {
    const { outcome } = shown;
    this.problem = '';
    this.progress = 0;
    const many = firstRun(outcome.report).arrived > mostRequestsDrawn;
    const what = {
      from_s: from,
      most_steps: mostSteps,
      requests: many ? { order: this.#order, first: 0, count: rowsOfMany } : null,
    };
    try {
      const data = await this.view.app.record(shown, what, (share) => (this.progress = share));
      if (this.view.state.shown?.outcome === outcome) this.recorded = { of: outcome, from_s: from, data };
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
    }
    this.progress = null;
  }

  #timeLine(): TemplateResult {
    return html`<p class="recording">
      <button type="button" ?disabled=${this.progress !== null} @click=${() => void this.#handOver()}>Open in Perfetto</button>
      <button type="button" ?disabled=${this.progress !== null} @click=${() => void this.#saveTimeLine()}>Save the time line</button>
      <span class="quiet-text" role="status">${this.handing === '' ? 'A window of ui.perfetto.dev takes the steps and requests from this one: they stay in your browser.' : this.handing}</span>
    </p>`;
  }

  /** The first run once more, written as a time line; null when it cannot be, or another one has begun. */
  async #written(): Promise<Blob | null> {
    const { shown } = this.view.state;
    if (!shown) return null;
    this.handing = 'Writing the time line…';
    this.progress = 0;
    try {
      const what = {
        from_s: windowShown()?.from_s ?? 0,
        most_steps: mostStepsWritten,
        requests: null,
        time_line: true,
      };
      const { time_line: line, is_cut: isCut } = await this.view.app.record(
        shown,
        what,
        (share) => (this.progress = share),
      );
      this.handing = isCut ? `It has the first ${formatCount(mostStepsWritten)} steps of what the charts show.` : '';
      return line;
    } catch (error) {
      this.handing = sentence(error instanceof Error ? error.message : String(error));
      return null;
    } finally {
      this.progress = null;
    }
  }

  async #handOver(): Promise<void> {
    const opened = openPerfetto();
    if (!opened) {
      this.handing = 'The browser opened no window. Save the time line, and open its file at ui.perfetto.dev.';
      return;
    }
    const line = await this.#written();
    if (!line) return opened.close();
    const name = String(this.view.state.document['name'] ?? '') || 'Servecast';
    const isTaken = await handToPerfetto(opened, await line.arrayBuffer(), name, `${this.fileStem}.json`);
    if (!isTaken) this.handing = 'Perfetto did not answer. Save the time line, and open its file there.';
    else if (this.handing === '') this.handing = 'Perfetto has it.';
  }

  async #saveTimeLine(): Promise<void> {
    const line = await this.#written();
    if (line) download(`${this.fileStem}-time-line.json`, line);
  }

  protected override render(): TemplateResult {
    const { shown, requests } = this.view.state;
    const report = shown?.outcome.report ?? null;
    const columns = shown?.outcome.columns ?? null;
    const recorded = shown && this.recorded?.of === shown.outcome ? this.recorded : null;
    const few = requests && requests.of === shown?.outcome ? requests.columns : null;
    const chosen = recorded && (recorded.data.requests['request']?.length ?? 0) > 0 ? recorded.data.requests : null;
    const ofRequests = few ?? chosen;
    const transfers = columns && few && transfersUnderWay(columns['series_time_s'] ?? new Float64Array(0), few);
    const { theme } = this.view;
    return html`
      ${this.load}
      ${shown ? this.#status(shown, recorded?.data ?? null) : nothing}
      ${recorded && report ? this.#recorded(report, recorded.data) : nothing}
      <sc-request-chart .report=${report} .columns=${ofRequests} .complete=${few ? 0 : (recorded?.data.complete ?? 0)} .theme=${theme} .fileStem=${this.fileStem} .waitingFor=${this.#waitsForRequests(report, columns !== null)} @order=${(event: CustomEvent<Order>) => this.#reorder(event.detail)}></sc-request-chart>
      <sc-series-chart .subject=${'Steps over time'} .panes=${transfers ? [transferPane, ...stepPanes] : stepPanes} .counted=${this.counted} .columns=${transfers ? { ...columns, series_kv_transfers: transfers } : columns} .theme=${theme} .fileStem=${this.fileStem} .waitingFor=${this.waitingFor}></sc-series-chart>`;
  }

  #waitsForRequests(report: Report | null, isShown: boolean): string {
    if (!isShown || !report) return this.waitingFor;
    if (firstRun(report).arrived <= mostRequestsDrawn) return 'Fetching what each request did…';
    return this.progress === null
      ? `The slowest of ${formatCount(firstRun(report).arrived)} requests are found by running the first run again.`
      : 'Looking for the slowest requests…';
  }

  /** Of a run with more requests than are fetched. */
  #reorder(order: Order): void {
    this.#order = order;
    const { shown } = this.view.state;
    if (shown && firstRun(shown.outcome.report).arrived > mostRequestsDrawn)
      void this.#record(shown, this.recorded?.from_s ?? 0);
  }

  #status(shown: Shown, data: Recorded | null): TemplateResult | typeof nothing {
    if (this.problem !== '') return html`<p class="recording">No steps: ${sentence(this.problem)}</p>`;
    if (this.progress !== null)
      return html`<p class="recording"><progress max="1" .value=${this.progress} aria-label="Recorded so far"></progress> Recording the steps of the first run…</p>`;
    if (shown.completeness !== 'final') return nothing;
    if (!data)
      return html`<p class="recording"><button type="button" @click=${() => void this.#record(shown, 0)}>Record the steps</button> <span class="quiet-text">runs the first run once more; it was not done unasked, as this one took ${formatTime(shown.outcome.engine_ms)}</span></p>`;
    if (!data.is_cut) return nothing;
    const last = data.steps['step_end_s']?.at(-1) ?? 0;
    return html`<p class="recording quiet-text">${countOf(data.steps['step_start_s']?.length ?? 0, 'step')} are kept, up to ${formatTime(1000 * last)}; zoom a chart over time to where later ones are wanted.</p>`;
  }

  #recorded(report: Report, data: Recorded): TemplateResult {
    const { theme } = this.view;
    const { steps } = data;
    const pools = report.pools ?? [];
    const names = pools.flatMap(({ name, role, replicas }) => Array.from({ length: replicas }, () => name || role));
    const last = steps['step_end_s']?.at(-1) ?? 0;
    const first = steps['step_start_s']?.[0] ?? 0;
    if (this.#lanes?.of !== data)
      this.#lanes = {
        of: data,
        lanes: pools.map(({ replicas }, pool) => {
          const columns = lanesOf(steps, pool, replicas, first, last);
          return { columns, panes: lanePanes(columns) };
        }),
      };
    return html`
      ${
        pools.length > 1
          ? html`<div class="lanes">${pools.map(
              ({ name, role, gpus, gpu }, pool) =>
                html`<sc-series-chart .subject=${`${name || role} pool, ${gpus} × ${gpu}`} .panes=${this.#lanes?.lanes[pool]?.panes ?? []} .counted=${this.counted} .columns=${this.#lanes?.lanes[pool]?.columns ?? null} .theme=${theme} .fileStem=${this.fileStem}></sc-series-chart>`,
            )}</div>`
          : nothing
      }
      <sc-playback .steps=${steps} .names=${names} .theme=${theme}></sc-playback>
      ${this.#timeLine()}
      <div class="lanes">
        <sc-kv-map-chart .columns=${steps} .theme=${theme} .fileStem=${this.fileStem}></sc-kv-map-chart>
        <sc-roofline-chart .columns=${steps} .theme=${theme} .fileStem=${this.fileStem}></sc-roofline-chart>
      </div>`;
  }
}

addStyles(styles);
customElements.define('sc-over-time', OverTimeElement);

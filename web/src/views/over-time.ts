// Over time: the load, what each request did, and the steps. Loaded when it is opened.
import { LitElement, html, type TemplateResult } from 'lit';
import '../charts/request-chart';
import '../charts/series-chart';
import type { Counted, Pane } from '../charts/series-chart';
import { transfersUnderWay } from '../lib/requests';
import type { ViewContext } from './context';

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

export class OverTimeElement extends LitElement {
  static override properties = {
    view: { attribute: false },
    load: { attribute: false },
    counted: { attribute: false },
    stem: { attribute: false },
    waitingFor: { attribute: false },
  };
  declare view: ViewContext;
  /** The chart of the load, as the page shows it. */
  declare load: TemplateResult;
  declare counted: Counted | null;
  declare stem: string;
  declare waitingFor: string;

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  protected override firstUpdated(): void {
    this.view.app.watchRequests(true);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.view.app.watchRequests(false);
  }

  protected override render(): TemplateResult {
    const { view, counted, stem, waitingFor } = this;
    const { shown, requests, link_problem: problem } = view.state;
    const report = problem ? null : (shown?.outcome.report ?? null);
    const columns = report && shown ? shown.outcome.columns : null;
    const ofRequests = requests && requests.of === shown?.outcome ? requests.columns : null;
    const transfers =
      columns && ofRequests && transfersUnderWay(columns['series_time_s'] ?? new Float64Array(0), ofRequests);
    return html`
      ${this.load}
      <sc-series-chart .subject=${'Steps over time'} .panes=${transfers ? [transferPane, ...stepPanes] : stepPanes} .counted=${counted} .columns=${transfers ? { ...columns, series_kv_transfers: transfers } : columns} .theme=${view.theme} .fileStem=${stem} .waitingFor=${waitingFor}></sc-series-chart>
      <sc-request-chart .report=${report} .columns=${ofRequests} .theme=${view.theme} .fileStem=${stem} .waitingFor=${columns ? 'Fetching what each request did…' : waitingFor}></sc-request-chart>`;
  }
}

customElements.define('sc-over-time', OverTimeElement);

// The top of the results: the verdict sentence with its sign and word, or why there is none; the
// progress of a long run; the four numbers and where they come from.
import { html, nothing, svg, type TemplateResult } from 'lit';
import type { Issue, Report } from 'servecast';
import { countOf, formatGivenTime, formatNumber, formatQuantity, formatTime, sentence, timeQuantity, type Quantity } from '../lib/format';
import { getAt, needsTrace, type Document } from '../state/document';
import { fieldAt } from '../state/fields';
import { pricePointer } from './form';
import type { AppState } from '../state/store';
import type { ViewContext } from './context';

type Sign = 'partial' | 'meets' | 'near' | 'misses' | 'overloaded' | 'no_fit' | 'no_slo' | 'empty' | 'problem';

const words: Record<Sign, string> = {
  partial: 'Partial',
  meets: 'Meets',
  near: 'Near',
  misses: 'Misses',
  overloaded: 'Overloaded',
  no_fit: 'Does not fit',
  no_slo: 'No limit set',
  empty: 'Nothing to measure',
  problem: 'Not simulated',
};

const paths: Record<Sign, TemplateResult> = {
  partial: svg`<path d="M14 7v7l4.5 3" />`,
  meets: svg`<path d="M7 14.5l4.5 4.5L21 9.5" />`,
  near: svg`<path d="M5 15.5c2-4 4.5-4 7-1.5s5 2.5 7-1.5l3.5-3" />`,
  misses: svg`<path d="M9 9l10 10M19 9L9 19" />`,
  overloaded: svg`<path d="M8 15l6-6 6 6M8 21l6-6 6 6" />`,
  no_fit: svg`<path d="M6 9.5l8-4 8 4v9.5l-8 4-8-4zM6 9.5l8 4 8-4M14 13.5V23" />`,
  no_slo: svg`<path d="M8 14h12" />`,
  empty: svg`<circle cx="14" cy="14" r="5" stroke-dasharray="3 3" />`,
  problem: svg`<path d="M14 7v9M14 20v1" />`,
};

function renderSign(sign: Sign): TemplateResult {
  return html`<span class="sign is-${sign}">
    <svg viewBox="0 0 28 28" width="28" height="28" aria-hidden="true">${paths[sign]}</svg>
    <b>${words[sign]}</b>
  </span>`;
}

export function renderVerdict(view: ViewContext): TemplateResult {
  return html`<section class="card verdict" id="verdict" aria-labelledby="verdict-title" tabindex="-1">
    <h2 class="visually-hidden" id="verdict-title">Verdict</h2>
    ${verdictBody(view)} ${renderProgress(view)}
  </section>`;
}

function verdictBody(view: ViewContext): TemplateResult {
  const { state } = view;
  if (state.failure !== null) return problem('problem', 'The engine could not be loaded.', html`<p>${sentence(state.failure)} Reload the page to try again.</p>`);
  if (state.link_problem) return linkProblem(view);
  if (state.trace.kind === 'failed') return problem('problem', 'The trace file cannot be read. Nothing was simulated.', html`<p>${state.trace.message}</p>${traceButtons(view)}`);
  const bad = badFields(state);
  if (bad.length > 0) return badValues(view, bad);
  switch (state.run.kind) {
    case 'broken':
      return broken(view, state.run.message);
    case 'refused':
      return refused(view, state.run.reason, state.run.issues);
    default:
      return state.shown ? reported(view, state.shown.outcome.report) : html`<p class="sentence quiet-text" role="status">${waiting(view)}</p>`;
  }
}

function waiting(view: ViewContext): string {
  const { catalog, trace } = view.state;
  if (!catalog) return 'Loading the engine…';
  return trace.kind === 'reading' ? `Reading ${trace.name}…` : 'Simulating…';
}

export function wordOf(report: Report): string {
  return words[report.verdict.state];
}

function reported(view: ViewContext, report: Report): TemplateResult {
  const { verdict } = report;
  const { shown } = view.state;
  const partial = shown && shown.completeness !== 'final';
  // What a part of a run shows is no verdict yet, however good it looks.
  const sign = report.finished ? verdict.state : 'partial';
  return html`<div class="verdict-line" data-state=${sign} data-complete=${shown?.completeness ?? ''}>
      ${renderSign(sign)}
      <div>
        <p class="sentence" role="status">${sentence(verdict.sentence)}</p>
        ${verdict.limit === '' ? nothing : html`<p>${sentence(verdict.limit)}</p>`}
        ${verdict.note === '' ? nothing : html`<p class="quiet-text">${sentence(verdict.note)}</p>`}
        ${knownError(report)} ${otherTrace(view)}
        ${partial && shown.completeness === 'cancelled'
          ? html`<p class="cancelled"><b>Cancelled at ${percent(shown.progress)}.</b> What is shown covers only that part.
              <button type="button" @click=${() => view.app.runOrCancel()}>Run again</button></p>`
          : nothing}
      </div>
    </div>`;
}

const sources: Readonly<Record<Report['latency_model']['provenance'], string>> = {
  measured: 'measured',
  interpolated: 'interpolated between measurements',
  extrapolated: 'extrapolated from measurements',
  datasheet: 'from the data sheet',
  coefficients: 'from given coefficients',
};

/** What the sentence rests on: one draw, which model of step times, from what, and how far it was off where it was compared. */
function knownError({ latency_model: model, workload }: Report): TemplateResult {
  const draw = workload.source === 'trace' ? 'One run of this trace.' : `One run of ${countOf(workload.requests, 'request')}; the tails of another seed may differ.`;
  return html`<p class="quiet-text" id="known-error">${draw} Step times: model ${model.backend}, ${sources[model.provenance]}. ${model.known_error === '' ? 'Its error is not known.' : model.known_error}</p>`;
}

/** A link names the file of its author; nothing but the name is known of that. */
function otherTrace(view: ViewContext): TemplateResult | typeof nothing {
  const { trace, link_trace: named } = view.state;
  if (named === null || trace.kind !== 'loaded' || trace.name === named) return nothing;
  return html`<p class="quiet-text long-name">The link was made with the trace ${named}; this is ${trace.name}.</p>`;
}

function percent(progress: number): string {
  return `${Math.floor(progress * 100)}\u202f%`;
}

function renderProgress(view: ViewContext): TemplateResult | typeof nothing {
  const { run, shown } = view.state;
  if (run.kind !== 'running' || !run.slow) return nothing;
  return html`<div class="progress-line">
    <progress max="1" .value=${run.progress} aria-label="Simulated so far"></progress>
    <span>${run.loading ? 'Fetching what this scenario needs' : run.progress === 0 ? 'Preparing the requests' : `${percent(run.progress)} simulated`}${shown?.completeness === 'partial' ? ', partial results below' : ''}</span>
    <button type="button" @click=${() => view.app.cancel()}>Cancel</button>
  </div>`;
}

function problem(sign: Sign, title: string, body: TemplateResult | typeof nothing): TemplateResult {
  return html`<div class="verdict-line" data-state=${sign}>
    ${renderSign(sign)}
    <div class="problem"><p class="sentence" role="alert">${title}</p>${body}</div>
  </div>`;
}

/** Every field that stops a run: what is typed and no value, and what the engine refuses. */
function badFields(state: AppState): readonly Issue[] {
  const { drafts, beside_drafts: beside, run } = state;
  if (drafts.size === 0) return run.kind === 'refused' && run.reason === 'scenario' ? run.issues : [];
  const typed = [...drafts].map(([path, text]) => ({ path, message: text.trim() === '' ? 'needs a value' : `“${text}” is not a value of this field` }));
  return [...typed, ...beside];
}

function badValues(view: ViewContext, issues: readonly Issue[]): TemplateResult {
  const { source } = view.app;
  const count = new Set(issues.map((issue) => issue.path)).size;
  const areFields = source !== null && issues.every((issue) => fieldAt(source, issue.path) !== undefined);
  const title = areFields ? `${countOf(count, 'field needs', 'fields need')} a value in range.` : `${countOf(issues.length, 'value needs', 'values need')} attention.`;
  return problem('problem', `${title} Nothing was simulated.`, html`${renderIssues(view, issues)}
    ${isStale(view.state) ? html`<p class="stale-note">The numbers and charts below are of the last scenario that ran, not of this one.</p>` : nothing}`);
}

/** What is shown belongs to an older document than the form's. */
export function isStale(state: AppState): boolean {
  return state.shown !== null && badFields(state).length > 0;
}

function linkProblem(view: ViewContext): TemplateResult {
  const link = view.state.link_problem;
  const dropped = link?.nearest?.dropped ?? [];
  return problem(
    'problem',
    `This ${link?.from ?? 'link'} cannot be opened. Nothing was simulated.`,
    html`<p>${link?.message}</p>
      ${renderIssues(view, link?.issues ?? [])}
      <div class="button-row">
        ${dropped.length === 0 ? nothing : html`<button class="primary" type="button" @click=${() => view.app.openNearest()}>Open the nearest valid scenario</button>`}
        <button class=${dropped.length === 0 ? 'primary' : ''} type="button" @click=${() => view.app.openDefault()}>Open the default scenario</button>
      </div>
      ${dropped.length === 0 ? nothing : html`<p class="quiet-text long-name">The nearest one leaves out ${dropped.join(', ')}.</p>`}`,
  );
}

function refused(view: ViewContext, reason: string, issues: readonly Issue[]): TemplateResult {
  switch (reason) {
    case 'trace_missing': {
      const name = view.state.wanted_trace;
      return problem(
        'problem',
        name === null ? 'This scenario replays a trace: choose the file.' : `This scenario replays the trace ${name}: choose that file.`,
        html`<p>A link never carries a trace. Drop the file anywhere on the page, or pick it here; it stays on this machine.</p>${traceButtons(view)}`,
      );
    }
    case 'trace':
      return problem(
        'problem',
        `The trace cannot be used: ${countOf(issues.length, 'problem')}. Nothing was simulated.`,
        html`${renderIssues(view, issues.map((issue) => inFile(view, issue)))} ${traceButtons(view)}`,
      );
    case 'engine':
      return problem(issues[0]?.kind === 'does_not_fit' ? 'no_fit' : 'problem', sentence(issues[0]?.message ?? 'This scenario cannot run.'), renderIssues(view, issues.slice(1)));
    default:
      return badValues(view, issues);
  }
}

/** "conv.csv, line 3, column 3": the message alone must say which file. */
function inFile(view: ViewContext, issue: Issue): Issue {
  const { trace } = view.state;
  if (trace.kind !== 'loaded' || issue.path.startsWith('/')) return issue;
  return { ...issue, path: [trace.name, issue.path].filter(Boolean).join(', ') };
}

function traceButtons(view: ViewContext): TemplateResult {
  const { document } = view.state;
  return html`<div class="button-row">
    <button class="primary" type="button" @click=${() => view.chooseTrace()}>Choose a trace file</button>
    ${needsTrace(document) || view.state.trace.kind !== 'none'
      ? html`<button type="button" @click=${() => view.app.removeTrace()}>Remove trace</button>`
      : nothing}
  </div>`;
}

function broken(view: ViewContext, message: string): TemplateResult {
  const { document, canonical } = view.state;
  const href = `data:application/json;charset=utf-8,${encodeURIComponent(JSON.stringify(document, null, 2))}`;
  return problem(
    'problem',
    'The engine stopped on this scenario: a defect of Servecast, not of your input.',
    html`<p>A fresh engine is ready; change the scenario, or report it with the file below.</p>
      <p class="quiet-text">${message}${canonical ? html` · scenario <code>${canonical.id}</code>` : nothing}</p>
      <div class="button-row"><a class="button" download="scenario.json" href=${href}>Download the scenario</a></div>`,
  );
}

const issuesShown = 20;

function renderIssues(view: ViewContext, issues: readonly Issue[]): TemplateResult | typeof nothing {
  if (issues.length === 0) return nothing;
  // The engine lists some, and says how many more there are.
  const cut = issues.find((issue) => issue.kind === 'more');
  const listed = issues.filter((issue) => issue !== cut);
  const rest = listed.length - issuesShown;
  return html`<ul class="issues">
      ${listed.slice(0, issuesShown).map((issue) => html`<li>${issuePlace(view, issue)} ${sentence(issue.message)}</li>`)}
    </ul>
    ${rest > 0 ? html`<p>And ${rest.toLocaleString('en-US')} more${cut ? `, ${cut.message}` : ''}.</p>` : nothing}`;
}

function issuePlace(view: ViewContext, issue: Issue): TemplateResult | typeof nothing {
  if (issue.path === '') return nothing;
  if (!issue.path.startsWith('/') || view.state.link_problem) return html`<b>${issue.path}</b>:`;
  return html`<button class="as-link" type="button" @click=${() => view.focusField(issue.path)}>${issue.path}</button>:`;
}

// --- The four numbers ----------------------------------------------------------------------------

export function renderNumbers(view: ViewContext): TemplateResult | typeof nothing {
  const { shown } = view.state;
  if (!shown || view.state.link_problem) return nothing;
  const { report } = shown.outcome;
  const open = view.openGroups.has('provenance');
  const mark = html`<button
    class="mark ${report.latency_model.provenance}"
    type="button"
    aria-expanded=${open}
    title=${report.latency_model.description}
    @click=${() => view.toggleGroup('provenance', !open)}
  ><span class="visually-hidden">Where it comes from: </span>${report.latency_model.provenance}</button>`;
  return html`<section class="numbers" aria-label="Key numbers">
      ${tile('TTFT p99', timeQuantity(report.ttft_ms.p99), percentileNote(report, 'ttft'), mark)}
      ${tile('TPOT p99', timeQuantity(report.tpot_ms.p99), percentileNote(report, 'tpot'), mark)}
      ${tile('Output per GPU', { number: formatNumber(report.output_tokens_per_s_per_gpu), unit: 'tokens/s' }, throughputNote(report), mark)}
      ${costTile(view, report, mark)}
    </section>
    ${open
      ? html`<p class="provenance-note"><b>${report.latency_model.backend}, ${report.latency_model.provenance}:</b> ${sentence(report.latency_model.description)}
</p>`
      : nothing}`;
}

function tile(label: string, value: Quantity, note: string, mark: TemplateResult): TemplateResult {
  return html`<div class="card tile">
    <h3>${label}</h3>
    <p class="value">${value.number}${value.unit === '' ? nothing : html`<span class="unit">\u202f${value.unit}</span>`}</p>
    <p class="tile-note">${note.replace(/(\d|limit|median) /g, '$1\u00a0')}</p>
    ${mark}
  </div>`;
}

function percentileNote(report: Report, metric: 'ttft' | 'tpot'): string {
  const distribution = metric === 'ttft' ? report.ttft_ms : report.tpot_ms;
  const limit = report.slo.find((slo) => slo.metric === metric && slo.percentile === 99);
  const median = distribution.p50 === null ? '' : `median ${formatTime(distribution.p50)}`;
  return [median, limit ? `limit ${formatGivenTime(limit.limit_ms)}` : ''].filter(Boolean).join(' · ');
}

function throughputNote(report: Report): string {
  const gpus = report.gpus === 1 ? '' : `, ${formatNumber(report.output_tokens_per_s)} together`;
  return `${formatQuantity(report.requests_per_s, 'requests/s')} on ${countOf(report.gpus, 'GPU')}${gpus}`;
}

/** Where the price that is missing goes: to the first pool with a GPU of its own that has none. */
function unpriced(report: Report, price: string | null): string | null {
  const pool = (report.pools ?? []).findIndex((each, index) => each.cost_per_hour === null && getAt(report.scenario as Document, `/cluster/pools/${index}/hardware`) !== undefined);
  return price === null || pool < 0 ? price : `/cluster/pools/${pool}${price}`;
}

function costTile(view: ViewContext, report: Report, mark: TemplateResult): TemplateResult {
  const cost = report.cost_per_million_output_tokens;
  const source = view.app.source;
  const pointer = source ? unpriced(report, pricePointer(source)) : null;
  if (cost === null) {
    return html`<div class="card tile">
      <h3>$ per million output tokens</h3>
      <p class="value quiet-text">–</p>
      <p class="tile-note">${pointer === null ? 'No price is known.' : html`<button class="as-link" type="button" @click=${() => view.focusField(pointer)}>Set a GPU price</button>`}</p>
    </div>`;
  }
  const price = pointer === null ? undefined : getAt(report.scenario as Document, pointer);
  const hourly = report.pools?.reduce((sum, pool) => sum + (pool.cost_per_hour ?? 0), 0);
  const note = hourly !== undefined ? `all pools: $${formatNumber(hourly)} per hour` : typeof price === 'number' ? `at $${price} per GPU-hour` : 'from the price of the GPU';
  return tile('$ per million output tokens', { number: cost >= 0.01 ? cost.toFixed(cost < 100 ? 2 : 0) : formatNumber(cost, 2), unit: '' }, note, mark);
}

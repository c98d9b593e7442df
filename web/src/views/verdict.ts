// The top of the results: the verdict sentence with its sign and word and what it rests on, or why there is none; the
// progress of a long run.
import { html, nothing, svg, type TemplateResult } from 'lit';
import type { Issue, Report, VerdictState } from 'servecast';
import { countOf, levelText, sentence } from '../lib/format';
import { needsTrace } from '../state/document';
import { fieldAt, placeName } from '../state/fields';
import { isBefore, isUncertain, reportOf, type AppState } from '../state/store';
import { needPart } from '../lib/part';
import type { ViewContext } from './context';
import { firstRun } from '../lib/first-run';

type Sign = VerdictState | 'problem';
/** What the part views/problem, fetched when there is one, tells more of. */
export type ProblemKind = 'link' | 'unfit' | 'broken';

const words: Record<Sign, string> = {
  partial: 'Partial',
  meets: 'Meets',
  near: 'Near',
  misses: 'Misses',
  overloaded: 'Overloaded',
  does_not_fit: 'Does not fit',
  not_judged: 'Not judged',
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
  does_not_fit: svg`<path d="M13 8H7v13h13v-6M15 13l7-7M16.500 5.500H22.500V11.500" />`,
  not_judged: svg`<path d="M14 6l9 16H5zM14 12v5M14 19.500v.5" />`,
  no_slo: svg`<path d="M8 14h12" />`,
  empty: svg`<circle cx="14" cy="14" r="5" stroke-dasharray="3 3" />`,
  problem: svg`<path d="M14 7v9M14 20v1" />`,
};

export function renderSign(sign: Sign, word = words[sign]): TemplateResult {
  return html`<span class="sign is-${sign}">
    <svg viewBox="0 0 28 28" width="28" height="28" aria-hidden="true">${paths[sign]}</svg>
    <b>${word}</b>
  </span>`;
}

export function renderVerdict(view: ViewContext): TemplateResult {
  return html`<section class="card verdict" id="verdict" aria-labelledby="verdict-title" tabindex="-1">
    <h2 class="visually-hidden" id="verdict-title">Verdict</h2>
    <div class="verdict-body">${verdictBody(view)}${pinned(view)}</div>
    ${renderProgress(view)}
  </section>`;
}

/** The author's result, while what is on the page is what it is of. */
function pinned(view: ViewContext): TemplateResult | typeof nothing {
  const { pin, document } = view.state;
  if (pin?.document !== document) return nothing;
  needPart('sc-pin', () => import('./pin'));
  return html`<sc-pin .view=${view} .text=${pin.text}></sc-pin>`;
}

/** What stood there before this was loaded stays until the engine is there; an embed and tests have none. */
const intro = globalThis.document?.querySelector('#page .verdict-body.waiting > .intro') ?? null;

function verdictBody(view: ViewContext): TemplateResult {
  const { state } = view;
  if (state.failure !== null)
    return problem(
      'problem',
      'The engine could not be loaded.',
      html`<p>${sentence(state.failure)} Reload the page to try again.</p>`,
    );
  if (state.link_problem)
    return problem(
      'problem',
      `This ${state.link_problem.from} cannot be opened. Nothing was simulated.`,
      detail(view, 'link'),
    );
  if (state.trace.kind === 'failed')
    return problem(
      'problem',
      'The trace file cannot be read. Nothing was simulated.',
      html`<p>${state.trace.message}</p>${traceButtons(view)}`,
    );
  const bad = badFields(state);
  if (bad.length > 0) return badValues(view, bad);
  switch (state.run.kind) {
    case 'broken':
      return problem(
        'problem',
        'The engine stopped on this scenario: a defect of Servecast, not of your input.',
        detail(view, 'broken'),
      );
    case 'refused':
      return refused(view, state.run.reason, state.run.issues, state.run.unfit);
    default:
      return state.shown
        ? reported(view, reportOf(state.shown))
        : !state.catalog && intro
          ? html`<div class="verdict-body waiting">${intro}</div>`
          : html`<div class="verdict-body waiting"><p class="sentence quiet-text" role="status">${waiting(view)}</p></div>`;
  }
}

function waiting(view: ViewContext): string {
  const { catalog, trace } = view.state;
  if (!catalog) return 'Loading the engine…';
  return trace.kind === 'reading' ? `Reading ${trace.name}…` : 'Simulating…';
}

function reported(view: ViewContext, report: Report): TemplateResult {
  const { verdict } = report;
  const { shown } = view.state;
  const old = isBefore(view.state);
  const partial = shown && shown.completeness !== 'final';
  // What a part of a run shows is no verdict yet, however good it looks.
  const uncertain = isUncertain(view.state);
  const sign = report.finished && !uncertain ? verdict.state : 'partial';
  return html`<div class="verdict-line ${old ? 'before' : ''}" data-state=${sign} data-complete=${old ? 'before' : (shown?.completeness ?? '')}>
      ${renderSign(sign, uncertain ? 'Coarse' : undefined)}
      <div>
        <p class="sentence ${!old && report.slo.length > 0 && sign !== 'overloaded' && !shown?.banded && shown?.completeness !== 'cancelled' ? 'awaits' : ''}" role="status">${old ? 'Before your change: ' : uncertain ? 'In one short run: ' : ''}${sentence(verdict.sentence)}</p>
        ${holds(view, report)} ${verdict.limit === '' ? nothing : html`<p class="limit-line">${sentence(verdict.limit)}</p>`}
        ${shown?.completeness === 'coarse' ? coarseBasis(view, report) : basis(view, report)} ${disagreement(report)} ${otherTrace(view)} ${fitted(view)}
        ${
          partial && shown.completeness === 'cancelled'
            ? html`<p class="cancelled"><b>Cancelled at ${percent(shown.progress)}.</b> What is shown covers only that part.
              ${runAgain(view)}</p>`
            : nothing
        }
        ${
          old && view.state.run.kind === 'idle'
            ? html`<p class="cancelled"><b>Cancelled before there was an answer.</b> ${runAgain(view)}</p>`
            : nothing
        }
      </div>
    </div>`;
}

function runAgain(view: ViewContext): TemplateResult {
  return html`<button type="button" @click=${() => view.app.runOrCancel()}>Run again</button>`;
}

/** In the same place, so that nothing moves when the certain answer comes. */
function coarseBasis(view: ViewContext, report: Report): TemplateResult {
  const { arrived } = firstRun(report);
  const follows = view.state.shown?.cancelled
    ? html`The certain run was cancelled. ${runAgain(view)}`
    : view.state.run.kind === 'running' && view.state.run.slow
      ? 'The certain answer is on its way.'
      : 'The certain answer follows when you pause.';
  return html`<p class="quiet-text" id="known-error"><b>Coarse:</b> one run of ${countOf(arrived, 'request')}, whose interval is not known. ${follows}</p>`;
}

/** How much load it holds: where targets are kept or missed; its code comes after the first verdict. Part of a run keeps
    its place. */
function holds(view: ViewContext, { slo, verdict: { state } }: Report): TemplateResult | typeof nothing {
  if (slo.length > 0 && state === 'partial' && view.state.shown?.completeness === 'partial')
    return html`<p class="quiet-text holds-room" aria-hidden="true"></p>`;
  if (slo.length === 0 || !['meets', 'near', 'misses', 'overloaded'].includes(state)) return nothing;
  needPart('sc-holds', () => import('./holds'));
  return html`<sc-holds .view=${view}></sc-holds>`;
}

/** How many runs, in a line; the rest when somebody asks. The question is first: it stays where it is whatever follows. */
function basis(view: ViewContext, report: Report): TemplateResult {
  const open = view.openGroups.has('sure');
  if (open) needPart('sc-sure', () => import('./sure'));
  return html`<p class="quiet-text" id="known-error"><button class="as-link" type="button" aria-expanded=${open} @click=${() => view.toggleGroup('sure', !open)}>How sure?</button> ${runsInWords(report)}</p>
    ${open ? html`<sc-sure .report=${report}></sc-sure>` : nothing}`;
}

/** A simulation that breaks a law is a defect of ours: nothing else on the page is to be believed. */
export function disagreement(report: Report): TemplateResult | typeof nothing {
  const broken = firstRun(report).sanity.filter(({ ok }) => !ok);
  if (broken.length === 0) return nothing;
  return html`<p class="sanity-bad"><b>Simulation and bound disagree:</b> ${broken.map(({ help }) => help).join(' ')} This is a defect of Servecast.</p>`;
}

export function runsInWords(report: Report): string {
  const { certainty, slo } = report;
  const banded = slo.find(({ band }) => band)?.band;
  const brackets = banded ? `, ${levelText(banded.level)} bands` : slo.length > 0 ? ', 95\u202f% intervals' : '';
  if (certainty?.method === 'replications')
    return `${countOf(certainty.runs, 'run')} of ${countOf(certainty.requests_per_run, 'request')}${brackets}.`;
  return `One run of ${countOf(firstRun(report).arrived, 'request')}${certainty?.method === 'batch_means' ? brackets : ''}.`;
}

/** A fit is smoother than its trace: what that came to itself stays in view. */
function fitted(view: ViewContext): TemplateResult | typeof nothing {
  const { fit, document } = view.state;
  if (fit.kind !== 'fitted' || fit.said === '' || needsTrace(document)) return nothing;
  return html`<p id="trace-itself">This is the fitted workload. <b>The trace itself:</b> ${fit.said}.</p>`;
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
  const { run } = view.state;
  if (run.kind !== 'running' || !run.slow) return nothing;
  const what = run.loading
    ? 'Fetching what this needs'
    : run.drawing
      ? `Drawing requests, ${percent(run.progress)}`
      : run.progress === 0
        ? 'Preparing the requests'
        : `${percent(run.progress)} simulated`;
  return html`<div class="progress-line">
    <progress max="1" .value=${run.progress} aria-label="Simulated so far"></progress>
    <span>${what}</span>
    <button type="button" @click=${() => view.app.cancel()}>Cancel</button>
  </div>`;
}

/** What is said besides, of what seldom happens: its code comes then. */
function detail(view: ViewContext, of: ProblemKind): TemplateResult {
  needPart('sc-problem', () => import('./problem'));
  return html`<sc-problem .view=${view} .of=${of}></sc-problem>`;
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
  const typed = [...drafts].map(([path, text]) => ({
    path,
    message: text.trim() === '' ? 'needs a value' : `“${text}” is not a value of this field`,
  }));
  return [...typed, ...beside];
}

function badValues(view: ViewContext, issues: readonly Issue[]): TemplateResult {
  const { source } = view.app;
  const count = new Set(issues.map((issue) => issue.path)).size;
  const areFields = source !== null && issues.every((issue) => fieldAt(source, issue.path) !== undefined);
  const title = areFields
    ? `${countOf(count, 'field needs', 'fields need')} a value in range.`
    : `${countOf(issues.length, 'value needs', 'values need')} attention.`;
  return problem(
    'problem',
    `${title} Nothing was simulated.`,
    html`${renderIssues(view, issues)}
    ${isStale(view.state) ? html`<p class="stale-note">The numbers and charts below are of the last scenario that ran, not of this one.</p>` : nothing}`,
  );
}

/** What is shown belongs to an older document than the form's. */
export function isStale(state: AppState): boolean {
  return state.shown !== null && (badFields(state).length > 0 || isBefore(state));
}

function refused(view: ViewContext, reason: string, issues: readonly Issue[], unfit: Report['unfit']): TemplateResult {
  switch (reason) {
    case 'trace_missing': {
      const name = view.state.wanted_trace;
      return problem(
        'problem',
        name === null
          ? 'This scenario replays a trace: choose the file.'
          : `This scenario replays the trace ${name}: choose that file.`,
        html`<p>A link never carries a trace. Drop the file anywhere on the page, or pick it here; it stays on this machine.</p>${traceButtons(view)}`,
      );
    }
    case 'trace':
      return problem(
        'problem',
        `The trace cannot be used: ${countOf(issues.length, 'problem')}. Nothing was simulated.`,
        html`${renderIssues(
          view,
          issues.map((issue) => inFile(view, issue)),
        )} ${traceButtons(view)}`,
      );
    case 'engine':
      return problem(
        issues[0]?.kind === 'does_not_fit' ? 'does_not_fit' : 'problem',
        sentence(issues[0]?.message ?? 'This scenario cannot run.'),
        html`${unfit ? detail(view, 'unfit') : nothing}${renderIssues(view, issues.slice(1))}`,
      );
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
    ${
      needsTrace(document) || view.state.trace.kind !== 'none'
        ? html`<button type="button" @click=${() => view.app.removeTrace()}>Remove trace</button>`
        : nothing
    }
  </div>`;
}

const issuesShown = 20;

export function renderIssues(view: ViewContext, issues: readonly Issue[]): TemplateResult | typeof nothing {
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
  if (!issue.path.startsWith('/')) return html`<b>${issue.path}</b>:`;
  if (view.state.link_problem) {
    // A key that nobody knows stays as it was written.
    const isKnown = view.app.source && fieldAt(view.app.source, issue.path);
    return html`<b title=${issue.path}>${isKnown ? placeName(issue.path) : issue.path.slice(1).replaceAll('/', '.')}</b>:`;
  }
  return html`<button class="as-link" type="button" title=${issue.path} @click=${() => view.focusField(issue.path)}>${placeName(issue.path)}</button>:`;
}

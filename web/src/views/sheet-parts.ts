// The parts of the sheet: black on white, without anything to press but the link, as they are printed and saved. Every text is
// put in as text, whoever wrote it.
import { html, nothing, type TemplateResult } from 'lit';
import type { MaxRate, Preset, Report } from 'servecast';
import { shortTarget } from '../charts/shares';
import {
  countOf,
  formatGib,
  formatGivenTime,
  formatNumber,
  formatPercent,
  formatQuantity,
  formatTime,
  levelText,
  marginText,
  sentence,
} from '../lib/format';
import { isLost, sideOf, type Side } from '../lib/targets';
import type { Shared } from '../share/snippets';
import { addressOf, commandOf } from '../share/snippets';
import { issueText, placeName, type FormSource } from '../state/fields';
import type { Headroom } from '../state/headroom';
import { rateOf } from '../state/rate';
import type { AppState, Variant } from '../state/store';
import { closestTarget, costHead, costOfServed, nameOfTarget, settingName, type Target } from './compare-figures';
import { pricePointer } from './form';
import { departuresOf, inputsOf, type Asked } from './sheet-inputs';
import type { Board } from './sheet-plan';
import { restsOn } from './sure';
import { comparedRate, loadUnit, sureText } from './sure-words';
import {
  chanceText,
  costsOf,
  evidenceWords,
  goodputText,
  marginWords,
  priceText,
  rangeText,
  type Latency,
} from './tiles';
import { disagreement, renderSign, runsInWords } from './verdict';

/** A chart as a picture, with what it shows in words. */
export interface Picture {
  readonly source: string;
  readonly title: string;
  readonly words: string;
}

/** Whatever the direction of its letters, what follows keeps its own. */
export const ofUser = (text: string): TemplateResult => html`<bdi>${text}</bdi>`;

export const section = (title: string, body: unknown): TemplateResult =>
  html`<section><h2>${title}</h2>${body}</section>`;
export const scrolled = (label: string, table: TemplateResult): TemplateResult =>
  html`<div class="wide" tabindex="0" role="region" aria-label=${label}>${table}</div>`;

export function verdictPart(report: Report, held: Headroom | null): TemplateResult {
  const { verdict } = report;
  const { probability } = verdict;
  // Most sentences have it.
  const sure =
    probability === undefined || /\bsure\b|probability|even odds/.test(verdict.sentence)
      ? ''
      : `All targets are met with a probability of ${chanceText(probability)}`;
  const lines = [sure, heldText(held, report), verdict.limit, verdict.note].filter(Boolean).map(sentence);
  return html`<div class="verdict-of">
      ${renderSign(verdict.state)}
      <div>
        <h1>${ofUser(sentence(verdict.sentence))}</h1>
        ${lines.map((line) => html`<p>${ofUser(line)}</p>`)}${disagreement(report)}
      </div>
    </div>`;
}

/** "Holds up to 48.0 req/s (46.8 to 49.1) ..."; "": it is not known. */
function heldText(held: Headroom | null, report: Report): string {
  if (held?.kind === 'said') return held.sentence;
  if (held?.kind !== 'found') return '';
  const { value, low, high, unit } = held.answer;
  const own = rateOf(report);
  const beside = own === null ? '' : `, ${comparedRate(value / own)}`;
  return `Holds up to ${formatNumber(value)} ${loadUnit(unit)} (95\u202f% interval ${formatNumber(low)} to ${formatNumber(high)})${beside}${held.sure ? `; ${sureText(held.sure)}` : ''}`;
}

const mostDepartures = 24;

export function inputsPart(
  source: FormSource,
  report: Asked,
  trace: string | null,
  origin: Preset | null,
): TemplateResult {
  const departures = departuresOf(source, origin);
  const rest = departures.length - mostDepartures;
  return section(
    'What was asked',
    html`<dl>${inputsOf(source, report, trace).map(({ name, value }) => html`<dt>${name}</dt><dd>${ofUser(value)}</dd>`)}
      ${origin ? html`<dt>Preset</dt><dd>${origin.name}</dd>` : nothing}<dt>Changed</dt><dd>${
        departures.length === 0
          ? `nothing: all settings are those of ${origin ? 'the preset' : 'presets and defaults'}`
          : html`${departures.slice(0, mostDepartures).map(({ name, value, otherwise, from }, index) => html`${index > 0 ? '; ' : ''}${name} <b>${ofUser(value)}</b> (${from}: ${ofUser(otherwise || 'none')})`)}${rest > 0 ? `; and ${countOf(rest, 'more setting')} of the linked scenario` : nothing}`
      }</dd></dl>`,
  );
}

const isLatency = (target: Target): target is Latency => target.limit_ms !== null;

export function figuresPart(report: Report, source: FormSource): TemplateResult {
  const level = report.slo.find(({ band }) => band)?.band?.level ?? null;
  const judged = !['overloaded', 'not_judged', 'partial'].includes(report.verdict.state);
  const table =
    report.slo.length === 0
      ? html`<p>No target is set.</p>`
      : scrolled(
          'Targets',
          html`<table><thead><tr><th scope="col">Target</th><th scope="col">value</th>${level === null ? nothing : html`<th scope="col">${bandHead(level)}</th>`}<th scope="col">sampling, 95\u202f%</th><th scope="col">limit</th><th scope="col">margin</th>${level === null ? nothing : html`<th scope="col">met</th>`}</tr></thead>
          <tbody>${report.slo.map((target) => targetRow(target, level !== null, judged))}</tbody></table>`,
        );
  return section(
    'Targets and figures',
    html`${table}<dl class="figures">${figures(report, source).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`,
  );
}

const bandHead = (level: number | null): string =>
  `${level === null ? '' : `${levelText(level)} `}band, sampling and model`;

function targetRow(target: Target, banded: boolean, judged: boolean): TemplateResult {
  const { band, low, high, unbounded, value_ms: value, share, limit_share: least } = target;
  const name = target.metric === 'attainment' ? `Requests ${nameOfTarget(target)}` : nameOfTarget(target);
  const ends = (from: number | null | undefined, to: number | null | undefined): string => {
    if (from === null || from === undefined || unbounded) return '–';
    if (!isLatency(target))
      return to === null || to === undefined ? '–' : `${formatPercent(from)} to ${formatPercent(to)}`;
    if (value === null) return '–';
    const text = rangeText(from, to ?? null, value);
    return text.startsWith('at least') ? text : `${text}\u202f${formatTime(value).split('\u202f')[1] ?? ''}`;
  };
  const side = judged ? sideOf(target) : null;
  return html`<tr><th scope="row">${ofUser(name)}</th><td data-head="value"><b>${unbounded ? 'no bound' : isLatency(target) ? formatTime(value) : formatPercent(share)}</b></td>
    ${banded ? html`<td data-head=${bandHead(band?.level ?? null)}>${ends(band?.low, band?.high)}</td>` : nothing}<td data-head="sampling, 95\u202f%">${high === null && low === null ? '–' : ends(low, high)}</td>
    <td data-head="limit">${isLatency(target) ? formatGivenTime(target.limit_ms) : `at least ${formatPercent(least)}`}</td>
    <td data-head="margin" class=${side ?? ''}>${!judged ? 'not judged' : unbounded ? 'missed' : isLatency(target) ? marginsOf(target, side) : side === 'meets' ? 'kept' : side === 'misses' ? 'missed' : 'too close to call'}</td>
    ${banded ? html`<td data-head="met">${band && judged ? chanceText(band.probability) : '–'}</td>` : nothing}</tr>`;
}

/** Where requests got no answer, the others may be late, too. */
export function marginsOf(target: Latency, side: Side | null): string {
  const words = marginWords(target, side);
  const { value_ms: value, limit_ms: limit } = target;
  return isLost(target) && value !== null ? `${marginText(value / limit)}; ${words}` : words;
}

function figures(report: Report, source: FormSource): readonly (readonly [string, string])[] {
  const { overload, cost_per_million_output_tokens: cost } = report;
  const served = overload
    ? `${formatQuantity(overload.served_per_s, 'requests/s')} (95\u202f%: ${formatNumber(overload.low)} to ${formatNumber(overload.high)}) of ${formatQuantity(overload.offered_per_s, 'requests/s')} offered`
    : `${formatQuantity(report.requests_per_s, 'requests/s')}${report.slo.length > 0 ? `, ${goodputText(report)} within the limits` : ''}`;
  const output = `${formatQuantity(report.output_tokens_per_s, 'tokens/s')} on ${countOf(report.gpus, 'GPU')}, ${formatQuantity(report.output_tokens_per_s_per_gpu, 'tokens/s')} each`;
  const medians = (['ttft', 'tpot', 'e2e'] as const).flatMap((metric) => {
    const value = report[`${metric}_ms`].p50;
    return value === null ? [] : [`${metric.toUpperCase()} ${formatTime(value)}`];
  });
  const pointer = pricePointer(source);
  const costs =
    cost === null
      ? 'no price is known'
      : `${costsOf(report, cost).month} a month, $${formatNumber(cost)} per million output tokens, ${costsOf(report, cost).thousand} per 1,000 requests, ${priceText(report, pointer)}`;
  return [
    ['Served', served],
    ['Output', output],
    ...(overload || medians.length === 0 ? [] : [['Medians', medians.join(', ')] as const]),
    ['Cost', costs],
  ];
}

export function chartsPart(title: string, pictures: readonly Picture[], note: string): TemplateResult | typeof nothing {
  if (pictures.length === 0) return nothing;
  return section(
    title,
    html`<div class="pictures ${pictures.length > 1 ? 'beside' : ''}">${pictures.map(({ source, title: name, words }) => html`<figure><figcaption>${name}</figcaption><img src=${source} alt=${words} /></figure>`)}</div><p class="small">${note}</p>`,
  );
}

export function planPart({ answered, running, unasked }: Board): TemplateResult | typeof nothing {
  if (answered.length + running.length + unasked.length === 0) return nothing;
  return section(
    'Plan',
    html`${
      answered.length === 0
        ? nothing
        : html`<table class="plan-rows"><tbody>${answered.map(({ question, answer }) => html`<tr><th scope="row">${ofUser(question)}</th><td>${answer.map((line) => html`<p>${ofUser(line)}</p>`)}</td></tr>`)}</tbody></table>`
    }
    ${running.length === 0 ? nothing : html`<p class="small">Not answered when this was made: ${running.join(', ')}.</p>`}
    ${unasked.length === 0 ? nothing : html`<p class="small">Not asked of this scenario: ${unasked.join(', ')}.</p>`}`,
  );
}

/** As the rate chart draws them. */
const lines: Readonly<Record<string, string>> = { TTFT: 'solid', TPOT: 'dashed', ITL: 'thin', E2E: 'dotted' };

/** "TTFT p99 (solid), TPOT p99 (dashed)". */
export const ratedTargets = (plan: MaxRate): string =>
  plan.targets
    .map(({ name }) => `${shortTarget(name)} (${lines[/^(TTFT|TPOT|ITL|E2E)/.exec(name)?.[0] ?? ''] ?? 'dashed'})`)
    .join(', ');

const mostVariants = 5;
const bestFirst = ['meets', 'near', 'no_slo', 'not_judged', 'misses', 'overloaded', 'does_not_fit'];

export function comparePart(
  compared: NonNullable<AppState['compared']>,
  several: boolean,
): TemplateResult | typeof nothing {
  const ran = compared.variants.filter(
    (each): each is Variant & { report: Report } => each.report !== null && each.isSought !== true,
  );
  if (ran.length < 2) return nothing;
  const rank = ({ report }: { report: Report }) => bestFirst.indexOf(report.verdict.state);
  const cost = ({ report }: { report: Report }) => costOfServed(report) ?? Infinity;
  const best = [...ran].sort((a, b) => rank(a) - rank(b) || cost(a) - cost(b)).slice(0, mostVariants);
  const name = settingName(compared.pointer, several);
  return section(
    'The same load elsewhere',
    html`${scrolled(
      `Compared: ${name}`,
      html`<table><thead><tr><th scope="col">${name}</th><th scope="col">GPUs</th><th scope="col">${costHead}</th><th scope="col">verdict, all met</th><th scope="col">closest target</th><th scope="col">evidence</th></tr></thead>
      <tbody>${best.map(({ name: value, isCurrent, report }) => {
        const paid = costOfServed(report);
        const chance = report.verdict.probability;
        return html`<tr><th scope="row">${ofUser(value)}${isCurrent ? ' (this one)' : ''}</th><td data-head="GPUs">${report.gpus}</td><td data-head=${costHead}>${paid === null ? '–' : `$${formatNumber(paid)}`}</td><td data-head="verdict, all met"><span>${renderSign(report.verdict.state)}${chance === undefined ? nothing : ` ${chanceText(chance)}`}</span></td><td data-head="closest target">${ofUser(closestText(closestTarget(report)))}</td><td data-head="evidence">${evidenceWords[report.evidence.class]}</td></tr>`;
      })}</tbody></table>`,
    )}<p class="small">${ranText(best.length, ran.length, compared.variants.length)}${compared.fewest ? ' Each with the fewest GPUs that keep all targets.' : ''}</p>`,
  );
}

function ranText(shown: number, ran: number, all: number): string {
  const known = ran < all ? `${ran} of ${all} had been run when this was made` : `all ${all} were run`;
  return `${shown < ran ? `The best ${shown}, by verdict, then by cost; ${known}.` : sentence(known)} Cost is of what is served within the targets.`;
}

function closestText(target: Target | null): string {
  if (!target) return 'no limit is set';
  const { value_ms: value, unbounded, share } = target;
  return `${nameOfTarget(target)} ${unbounded ? 'no bound' : isLatency(target) ? `${formatTime(value)} of ${formatGivenTime(target.limit_ms)}` : formatPercent(share)}`;
}

export function evidencePart(report: Report): TemplateResult {
  const warnings = [...report.evidence.warnings, ...(report.departures ?? [])];
  return section(
    'How sure',
    html`<p><b>${evidenceWords[report.evidence.class]}.</b> ${runsInWords(report)} ${restsOn(report)}</p>
    ${warnings.length === 0 ? nothing : html`<ul>${warnings.map((warning) => html`<li>${ofUser(sentence(warning))}</li>`)}</ul>`}`,
  );
}

/** Why there is no answer: the memory sum of what does not fit, else the problems that the page lists. */
export function refusalPart({ run, drafts, wanted_trace: trace }: AppState): TemplateResult {
  const reason = (title: string, lines: readonly string[]) => html`<div class="verdict-of">
      ${renderSign('problem')}
      <div><h1>${ofUser(title)}</h1>${lines.map((line) => html`<p>${ofUser(line)}</p>`)}</div>
    </div>`;
  if (drafts.size > 0)
    return reason('Nothing was simulated: a field holds no value.', [...drafts.keys()].map(placeName));
  if (run.kind === 'broken') return reason('The engine stopped on this scenario.', [run.message]);
  if (run.kind !== 'refused') return reason('This scenario has no answer yet.', ['Its run is not done.']);
  const { issues, unfit } = run;
  const [first] = issues;
  if (run.reason === 'trace_missing')
    return reason('Nothing was simulated: the trace that this scenario replays is not open.', trace ? [trace] : []);
  if (first?.kind !== 'does_not_fit') return reason('Nothing was simulated.', issues.map(issueText));
  const others = issues.slice(1).map(({ message }) => sentence(message));
  return html`<div class="verdict-of">
      ${renderSign('does_not_fit')}
      <div><h1>${ofUser(sentence(first.message))}</h1>${others.map((line) => html`<p>${ofUser(line)}</p>`)}</div>
    </div>
    ${unfit ? section('Memory of each GPU', html`<dl>${memoryOf(unfit).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`) : nothing}`;
}

function memoryOf(unfit: NonNullable<Report['unfit']>): readonly (readonly [string, string])[] {
  const enough = unfit.enough_tensor_parallel;
  return [
    ['Weights', formatGib(unfit.weights_gib)],
    ['KV cache', `${formatGib(unfit.kv_gib)}, the smallest that serves`],
    ['Other', formatGib(unfit.overhead_gib)],
    ['Needed', formatGib(unfit.needed_gib)],
    ['Usable', formatGib(unfit.usable_gib)],
    ...(enough === undefined ? [] : [['Fits with', `tensor parallel ${enough}`] as const]),
  ];
}

/** Longer ones are for machines: on paper nobody types them. */
const mostTyped = 600;

/** `report`: null where there is none. */
export function proofPart(shared: Shared, trace: string | null, report: Report | null, now: Date): TemplateResult {
  const address = addressOf(shared);
  const command = commandOf(shared, trace);
  const isLong = address.length > mostTyped;
  return html`<footer>
    <p>To run it again: <a href=${address} rel="noopener noreferrer">${isLong ? `${address.slice(0, 80)}…` : address}</a>${isLong ? `, a link of ${address.length.toLocaleString('en-US')} characters, which the saved file holds whole` : nothing}</p>
    ${isLong ? nothing : html`<p><code>${command}</code></p>`}
    ${trace === null ? nothing : html`<p>It replays ${trace === '' ? 'a trace' : html`the trace ${ofUser(trace)}`}, which no link carries.</p>`}
    <p>${report ? html`Servecast engine ${report.engine_version} · fingerprint <code>${report.fingerprint}</code>: the same scenario gives the same one on any machine` : 'Servecast: nothing was simulated'} · ${dateText(now)}</p>
  </footer>`;
}

export const dateText = (now: Date): string =>
  now.toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric' }).replaceAll(' ', '\u00a0');

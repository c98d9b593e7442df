// Answers to questions of capacity, drawn: a figure with its interval for the line of the board, and what it rests on.
import { html, nothing, type TemplateResult } from 'lit';
import type { Drills, Growth, MaxRate, MinGpus, PlanAnswer, PlanPoint, PlanTargetOf, VerdictState } from 'servecast';
import { dayIn, dayText } from '../charts/growth-chart';
import { dollarText } from '../charts/pareto-chart';
import { shareOfLimit, shortTarget } from '../charts/shares';
import {
  countOf,
  formatCount,
  formatGivenTime,
  formatInterval,
  formatNumber,
  formatPercent,
  formatTime,
  head,
  sentence,
} from '../lib/format';
import { poolList } from '../state/pools';
import { ratePointer, type Plans } from '../state/plans';
import type { Plan } from '../state/store';
import { closestTarget, nameOfTarget } from './compare-figures';
import type { ViewContext } from './context';
import { doubtsText, sureWords } from './sure-words';
import { renderSign } from './verdict';

export interface AnswerContext {
  readonly view: ViewContext;
  readonly plans: Plans;
  readonly plan: Plan;
  readonly answer: PlanAnswer;
  readonly now: Date;
}

/** What is said of a question, and what is behind it. */
export interface Answered {
  readonly figure: TemplateResult;
  readonly body: TemplateResult | null;
}

export function headline(figure: string, more: TemplateResult | string): TemplateResult {
  return html`<p class="plan-figure">${figure === '' ? nothing : html`<b>${figure}</b> `}<span>${more}</span></p>`;
}

/** What is said of a plan that found no figure. */
export function noFigure(plan: Plan): TemplateResult {
  return html`<p class="plan-figure"><span>${plan.kind === 'answered' ? sentence(plan.sentence) : 'Not known yet.'}</span></p>`;
}

/** Runs of the answer's own scenarios that say otherwise. */
export function renderDoubts(answer: PlanAnswer): TemplateResult | typeof nothing {
  const doubts = doubtsText(answer);
  return doubts === '' ? nothing : html`<p class="plan-note"><b>${doubts}</b></p>`;
}

function basis(runs: number, requests: number): string {
  return `${countOf(runs, 'run')}, ${formatCount(requests)} requests in all, the same seeds at every point.`;
}

// ---- The highest load ---------------------------------------------------------------------------

/** "47.8 requests/s", "6.2 times the trace". */
export function renderHighest(context: AnswerContext): Answered {
  const answer = context.answer as MaxRate;
  const { view, plan, plans } = context;
  const { shown } = view.state;
  const found = answer.answer;
  const unit = found?.unit ?? 'requests/s';
  const first =
    answer.binding === 'capacity'
      ? 'Beyond it, less is served than comes.'
      : answer.binding
        ? `${shortTarget(answer.binding)} breaks first.`
        : '';
  const open = (rate: number) => () =>
    view.app.useVariant(plans.with(plan.document, ratePointer, Number(rate.toPrecision(3))));
  const isRate = unit === 'requests/s' && shown?.outcome.report.classes.length === 0;
  const figure = found
    ? headline(
        `${formatNumber(found.value)} ${found.unit}`,
        html`${formatNumber(found.low)} to ${formatNumber(found.high)}. ${first}${answer.sure ? html` ${sureWords(answer.sure)}.` : nothing}`,
      )
    : noFigure(plan);
  const body = html`<sc-rate-chart .plan=${answer} .unit=${unit} .columns=${columnsOf(answer)} .theme=${view.theme} .fileStem=${'servecast-rate'}></sc-rate-chart>
    <p class="plan-note">${basis(answer.runs, answer.requests)}
      ${answer.monotone ? nothing : html`<b>Not monotone: a heavier load than one that misses is certain to meet the targets.</b>`}
      ${answer.knee === null ? nothing : `Most requests within all targets: at ${formatNumber(answer.knee)} ${unit}.`}
      ${found && isRate ? html`<button class="as-link" type="button" @click=${open(found.low)}>Open at ${formatNumber(found.low)}</button>` : nothing}
    </p>`;
  return { figure, body };
}

function columnsOf({ curve, targets }: MaxRate): Readonly<Record<string, Float64Array>> {
  const column = (of: (point: PlanPoint) => number | null | undefined) =>
    Float64Array.from(curve, (point) => of(point) ?? NaN);
  const ofTargets = targets.flatMap(({ name }, index) => [
    [shortTarget(name), column(({ slo }) => slo[index]?.value_ms ?? slo[index]?.share)] as const,
    [`${shortTarget(name)} low`, column(({ slo }) => slo[index]?.low)] as const,
    [`${shortTarget(name)} high`, column(({ slo }) => slo[index]?.high)] as const,
  ]);
  return Object.fromEntries([
    ['load', column(({ at }) => at)],
    ...ofTargets,
    ['goodput_per_s', column((point) => point.goodput_per_s)],
    ['runs', column(({ runs }) => runs)],
  ]);
}

// ---- The fewest GPUs ----------------------------------------------------------------------------

/** Rows of a table beside the answer, to either side. */
const rowsBeside = 3;

export function renderFewest(context: AnswerContext): Answered {
  const answer = context.answer as MinGpus;
  const { plan } = context;
  const found = answer.answer;
  if (!found) return { figure: noFigure(plan), body: null };
  const prices = answer.pools.map(({ gpus, price_per_gpu_hour: price }) => (price === null ? NaN : price * gpus));
  const price = prices.reduce((sum, each) => sum + each, 0);
  const binding = answer.binding === null ? '' : fewerText(answer.binding, answer);
  const between = found.low === found.high ? '' : `${found.low} to ${found.high}. `;
  const paid = Number.isFinite(price) ? `, ${dollarText(price)} an hour` : '';
  const figure = headline(`${countOf(found.value, 'GPU')}${paid}`, `${between}${binding}`);
  const body = html`${answer.pools.length === 1 ? onePool(context, answer) : severalPools(context, answer)}
    <p class="plan-note">${answer.least_gpus === null || answer.least_gpus <= 0 ? nothing : html`No system could do with less than <b>${formatNumber(answer.least_gpus)}</b> GPUs: so many the load keeps busy at the peaks of the data sheet. `}${basis(answer.runs, answer.requests)}</p>`;
  return { figure, body };
}

function fewerText(binding: string, { pools }: MinGpus): string {
  if (pools.every(({ replicas }) => replicas === 1)) return 'It needs no more than one.';
  return binding === 'capacity'
    ? 'With fewer, less is served than comes.'
    : `With fewer, ${shortTarget(binding)} is missed.`;
}

/** What is certain of a place: its worst target's interval against the limit. */
function stateOf(point: PlanPoint, targets: readonly PlanTargetOf[]): VerdictState {
  if (point.overloaded) return 'overloaded';
  const worst = (end: 'low' | 'high') =>
    targets.reduce((most, target, index) => Math.max(most, shareOfLimit(target, point.slo[index], end) ?? Infinity), 0);
  return worst('high') <= 1 ? 'meets' : worst('low') > 1 ? 'misses' : 'near';
}

/** The target that is nearest to its limit, by its index. */
function closestOf(point: PlanPoint, targets: readonly PlanTargetOf[]): number {
  const shares = targets.map((target, index) => shareOfLimit(target, point.slo[index], 'value_ms') ?? -1);
  return shares.indexOf(Math.max(...shares));
}

function figureOf(point: PlanPoint, index: number): TemplateResult | string {
  const found = point.slo[index];
  // One run that never got into its stride has no rate.
  if (point.overloaded || !found)
    return point.requests_per_s > 0 ? `serves ${formatNumber(point.requests_per_s)}/s` : 'no bound';
  if (found.share !== undefined) return formatPercent(found.share);
  const { value_ms: value, low, high } = found;
  if (typeof value !== 'number') return '–';
  const between = typeof low === 'number' && typeof high === 'number' ? formatInterval(low, high, value) : '';
  return html`${formatTime(value)} <small>${between}</small>`;
}

function onePool({ view, plans, plan }: AnswerContext, { pools, targets }: MinGpus): TemplateResult {
  const [pool] = pools;
  if (!pool) return html``;
  const each = pool.gpus / pool.replicas;
  const at = pool.curve.findIndex((point) => point.at === pool.replicas);
  const near = pool.curve.slice(Math.max(0, at - rowsBeside), at + rowsBeside + 1);
  const { rate } = plan.inputs;
  const use = (replicas: number) => () => {
    const loaded = rate === null ? plan.document : plans.with(plan.document, ratePointer, rate);
    view.app.useVariant(plans.with(loaded, `${poolList}/0/replicas`, replicas));
  };
  const row = (point: PlanPoint) => {
    const closest = closestOf(point, targets);
    const best = point.at === pool.replicas;
    return html`<tr class=${best ? 'best' : ''}>
      <th scope="row">${countOf(point.at * each, 'GPU')}</th>
      <td class="state" data-head="Verdict">${renderSign(stateOf(point, targets))}</td>
      <td data-head="Closest target">${point.overloaded ? nothing : shortTarget(targets[closest]?.name ?? '')} ${figureOf(point, closest)}</td>
      <td data-head="$/h">${pool.price_per_gpu_hour === null ? '–' : dollarText(point.at * each * pool.price_per_gpu_hour)}</td>
      <td><button type="button" aria-label=${`Use ${countOf(point.at * each, 'GPU')}`} @click=${use(point.at)}>Use</button></td>
    </tr>`;
  };
  return html`<div class="table-scroll" tabindex="0" role="region" aria-label="Numbers of GPUs that were tried">
    <table><thead><tr><th scope="col">GPUs</th><th scope="col">Verdict</th><th scope="col">Closest target</th><th scope="col">$/h</th><th scope="col"><span class="visually-hidden">Use it</span></th></tr></thead>
    <tbody>${near.map(row)}</tbody></table></div>`;
}

function severalPools({ view, plans, plan }: AnswerContext, { pools }: MinGpus): TemplateResult {
  const { rate } = plan.inputs;
  const use = () => {
    const loaded = rate === null ? plan.document : plans.with(plan.document, ratePointer, rate);
    view.app.useVariant(
      pools.reduce(
        (document, { replicas }, index) => plans.with(document, `${poolList}/${index}/replicas`, replicas),
        loaded,
      ),
    );
  };
  return html`<div class="table-scroll" tabindex="0" role="region" aria-label="Fewest replicas by pool">
    <table><thead><tr><th scope="col">Pool</th><th scope="col">Replicas</th><th scope="col">95 % interval</th><th scope="col">GPUs</th><th scope="col">Least by any system</th></tr></thead>
    <tbody>${pools.map(
      (
        pool,
      ) => html`<tr><th scope="row">${pool.name === '' ? pool.role : pool.name}</th><td data-head="Replicas">${pool.replicas}</td>
        <td data-head="95 % interval">${pool.low} to ${pool.high}</td><td data-head="GPUs">${pool.gpus}</td>
        <td data-head="Least by any system">${formatNumber(Math.max(pool.least_replicas_by_compute, pool.least_replicas_by_bandwidth))}</td></tr>`,
    )}</tbody></table></div>
    <p><button type="button" @click=${use}>Use these</button></p>`;
}

// ---- Growth -------------------------------------------------------------------------------------

export function renderGrowth({ answer: any, view, plan, now }: AnswerContext): Answered {
  const answer = any as Growth;
  const [first, second] = answer.schedule;
  if (!first?.answer || first.months === undefined) return { figure: noFigure(plan), body: null };
  const ahead = answer.looks_ahead_months;
  const day = (months: number | undefined) => dayText(dayIn(months ?? 0, now));
  const needed = second?.answer
    ? ` ${countOf(second.gpus, 'GPU')} ${second.gpus === 1 ? 'is' : 'are'} needed then.`
    : '';
  const { value, low, high, unit } = first.answer;
  const held = `${formatNumber(value)} ${unit} (${formatNumber(low)} to ${formatNumber(high)})`;
  const figure =
    first.months < 0
      ? headline(
          'Already today',
          `${countOf(first.gpus, 'GPU')} ${first.gpus === 1 ? 'holds' : 'hold'} ${held}.${needed.replace('then', 'now')}`,
        )
      : first.months > ahead
        ? headline(`Not within ${countOf(ahead, 'month')}.`, `${held} are held.`)
        : headline(
            `About ${day(first.months)}`,
            `${(first.months_low ?? 0) < 0 ? 'today' : day(first.months_low)} to ${day(first.months_high)}.${needed}`,
          );
  const body = html`<sc-growth-chart .plan=${answer} .now=${now} .columns=${growthColumns(answer)} .theme=${view.theme} .fileStem=${'servecast-growth'}></sc-growth-chart>
    <p class="plan-note">From ${formatNumber(answer.load)} ${first.answer.unit} today, ${formatPercent(answer.growth_per_month)} more every month: the growth is your assumption. Bands: the 95 % interval of what so many GPUs hold.</p>`;
  return { figure, body };
}

function growthColumns({ schedule }: Growth): Readonly<Record<string, Float64Array>> {
  const column = (of: (step: Growth['schedule'][number]) => number | null | undefined) =>
    Float64Array.from(schedule, (step) => of(step) ?? NaN);
  return {
    gpus: column(({ gpus }) => gpus),
    holds: column(({ answer }) => answer?.value),
    holds_low: column(({ answer }) => answer?.low),
    holds_high: column(({ answer }) => answer?.high),
    until_months: column(({ months }) => months),
  };
}

// ---- What if ------------------------------------------------------------------------------------

const bad = new Set<VerdictState>(['misses', 'overloaded', 'does_not_fit']);

export function renderDrills({ answer: any, plan }: AnswerContext): Answered {
  const { drills, not_run: notRun } = any as Drills;
  const broken = drills.filter(({ report }) => bad.has(report.verdict.state)).map(({ drill }) => drill);
  const near = drills.filter(({ report }) => report.verdict.state === 'near').map(({ drill }) => drill);
  const said =
    plan.kind !== 'answered'
      ? 'Not known yet.'
      : broken.length > 0
        ? `Breaks: ${broken.join(', ')}.`
        : near.length > 0
          ? `Too close to call: ${near.join(', ')}.`
          : 'Holds in every case.';
  const body = html`<div class="table-scroll" tabindex="0" role="region" aria-label="Cases">
      <table><thead><tr><th scope="col">Case</th><th scope="col">Verdict</th><th scope="col">Closest target</th><th scope="col">Serves, req/s</th></tr></thead>
      <tbody>${drills.map(({ drill, report }) => {
        const target = closestTarget(report);
        const unserved = Math.max(0, ...report.slo.map(({ unserved_share: share }) => share));
        return html`<tr><th scope="row">${head(drill)}</th>
          <td class="state" data-head="Verdict">${renderSign(report.verdict.state)}</td>
          <td data-head="Closest target">${target ? targetText(target) : '–'}${unserved > 0 ? html`<small>; ${formatPercent(unserved)} of requests unserved</small>` : nothing}</td>
          <td data-head="Serves, req/s">${formatNumber(report.overload?.served_per_s ?? report.requests_per_s)}</td></tr>`;
      })}${notRun.map(
        ({ drill, reason }) =>
          html`<tr><th scope="row">${head(drill)}</th><td colspan="3">Not run: ${reason}</td></tr>`,
      )}</tbody></table>
    </div>
    <p class="plan-note">${drills.some(({ drill }) => drill.includes('fails')) ? 'A replica that fails loses the requests that it has, and comes back with empty caches; the router notices at once.' : 'Not modelled: requests in flight on a replica that fails.'}</p>`;
  return { figure: headline(said, ''), body };
}

function targetText(target: NonNullable<ReturnType<typeof closestTarget>>): TemplateResult | string {
  const { value_ms: value, limit_ms: limit, low, high, unbounded, share } = target;
  const name = nameOfTarget(target);
  if (limit === null) return `${name} ${formatPercent(share)}`;
  if (unbounded || value === null) return `${name}: no bound`;
  const between = low === null || high === null ? '' : formatInterval(low, high, value);
  return html`${name} ${formatTime(value)} of ${formatGivenTime(limit)} <small>${between}</small>`;
}

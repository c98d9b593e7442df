// What the GPUs cost by the hour, beside an API that is paid by the token.
import { html, nothing } from 'lit';
import type { MaxRate, OwnCost } from 'servecast';
import { formatCount, formatNumber, formatPercent, sentence } from '../lib/format';
import { priceLists } from '../state/plans';
import { headline, type AnswerContext, type Answered } from './plan-answers';

export function renderCost({ view, plan, answer: given, plans }: AnswerContext): Answered {
  const answer = given as OwnCost;
  const { own, api, load, unit } = answer;
  const listed = plan.inputs.prices === 0 ? '' : (priceLists[plan.inputs.prices]?.[1] ?? '');
  const equal = answer.answer;
  const held = heldBy(view.state.plans['max-rate'], plans, unit);
  const at = `${formatNumber(load)} ${unit}`;
  const figure =
    equal && api
      ? headline(
          cheaper(load, equal),
          `at ${at}: ${dollars(own.per_month)} a month against ${dollars(api.per_month.value)} (${dollars(api.per_month.low)} to ${dollars(api.per_month.high)}). Both cost as much at ${formatNumber(equal.value)} ${unit} (${formatNumber(equal.low)} to ${formatNumber(equal.high)}).`,
        )
      : headline(
          `${dollars(own.per_month)} a month`,
          `of ${formatCount(Math.round(own.per_month / own.per_hour))} hours, ${dollars(own.per_hour)} an hour. Give an API’s price per million tokens to compare.`,
        );
  const body = html`${held === null ? nothing : html`<p>${heldText(held, load, equal?.value ?? null, unit)}</p>`}
    <p class="plan-note">Own GPUs at ${at}: ${dollars(own.per_million_tokens)} per million tokens in and out, ${dollars(own.per_million_output_tokens)} if only answers count. ${
      plan.kind === 'answered' && equal
        ? 'Every token of a prompt is billed by the API, also what a cache would hold.'
        : ''
    } Prices of GPUs are ${listed === '' ? 'the scenario’s' : `of a list, ${listed}, but for one that the scenario gives`}; staff, power and idle spares are in neither.</p>`;
  return { figure, body };
}

/** "$1,825", "$0.151". */
export const dollars = (value: number): string =>
  `$${value >= 100 ? formatCount(Math.round(value)) : formatNumber(value)}`;

function cheaper(load: number, { low, high }: { low: number; high: number }): string {
  return load > high ? 'Own GPUs are cheaper' : load < low ? 'The API is cheaper' : 'About the same';
}

type Held = NonNullable<MaxRate['answer']>;

/** What the deployment holds within its targets; null: not known, or of something else. */
function heldBy(plan: AnswerContext['plan'] | undefined, plans: AnswerContext['plans'], unit: string): Held | null {
  if (plan?.kind !== 'answered' || !plan.answer || !('monotone' in plan.answer)) return null;
  const { answer } = plan.answer;
  return plans.isOf('max-rate', plan) && answer?.unit === unit ? answer : null;
}

function heldText({ value, low, high }: Held, load: number, equal: number | null, unit: string): string {
  const holds = `This deployment holds ${formatNumber(value)} ${unit} (${formatNumber(low)} to ${formatNumber(high)})`;
  const idle = load <= value ? `, so ${formatPercent(1 - load / value)} of it is idle` : ', less than comes';
  const never = equal !== null && equal > high ? ' It is full before it is the cheaper one.' : '';
  return sentence(`${holds}${idle}`) + never;
}

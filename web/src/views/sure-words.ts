// How far a load that a plan found can be relied on: the same words in the verdict and in the Plan view.
import { html, type TemplateResult } from 'lit';
import type { PlanAnswer, PlanSure } from 'servecast';
import { formatGiven, formatNumber, sentence } from '../lib/format';

/** "req/s": as the verdict's sentence has it. */
export const loadUnit = (unit: string): string => unit.replace(/^requests\/s$/, 'req/s');

/** With the forecast's own error beside sampling. */
export const sureText = (sure: PlanSure): string =>
  sure.at_90 === null ? 'nowhere 90\u202f% sure' : `90\u202f% sure up to ${formatNumber(sure.at_90)}`;

export function sureWords(sure: PlanSure): TemplateResult {
  const tip = html`<span class="tip" role="tooltip">In brackets: the 95\u202f% interval of sampling. With the forecast’s own error all targets are met with a probability of 90\u202f% ${sure.at_90 === null ? 'at no rate that was tried' : `up to ${formatNumber(sure.at_90)}`}, and at even odds ${sure.at_50 === null ? 'at none' : `up to ${formatNumber(sure.at_50)}`}.</span>`;
  return html`<span class="term" tabindex="0">${sureText(sure)}${tip}</span>`;
}

/** "20 % above this rate", "3.2 times this rate". */
export function comparedRate(ratio: number): string {
  if (ratio >= 2) return `${formatNumber(ratio, 2)} times this rate`;
  const share = Math.abs(ratio - 1);
  if (share < 0.005) return 'just this rate';
  return `${formatGiven(Number((100 * share).toPrecision(2)))}\u202f% ${ratio > 1 ? 'above' : 'below'} this rate`;
}

/** Whole sentences; "": single runs agree with the answer. */
export function doubtsText(answer: PlanAnswer): string {
  const doubts = 'checked' in answer ? answer.checked.filter(({ agrees }) => !agrees) : [];
  return doubts.map((doubt) => `But a run of ${doubt.of} says otherwise: ${sentence(doubt.sentence)}`).join(' ');
}

// How far a load that a plan found can be relied on: the same words in the verdict and in the Plan view.
import { html, type TemplateResult } from 'lit';
import type { PlanSure } from 'servecast';
import { formatNumber } from '../lib/format';

/** "req/s": as the verdict's sentence has it. */
export const loadUnit = (unit: string): string => unit.replace(/^requests\/s$/, 'req/s');

/** With the forecast's own error beside sampling. */
export function sureWords(sure: PlanSure): TemplateResult {
  const tip = html`<span class="tip" role="tooltip">In brackets: the 95\u202f% interval of sampling. With the forecast’s own error all targets are met with a probability of 90\u202f% ${sure.at_90 === null ? 'at no rate that was tried' : `up to ${formatNumber(sure.at_90)}`}, and at even odds ${sure.at_50 === null ? 'at none' : `up to ${formatNumber(sure.at_50)}`}.</span>`;
  return html`<span class="term" tabindex="0">${sure.at_90 === null ? html`nowhere 90\u202f% sure` : html`90\u202f% sure up to ${formatNumber(sure.at_90)}`}${tip}</span>`;
}

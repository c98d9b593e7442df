// Which scaler keeps the targets over a load that changes, beside replicas that are fixed and a schedule that knows it.
import { html, nothing, type TemplateResult } from 'lit';
import type { Autoscale, AutoscalePolicy } from 'servecast';
import { linesOf, replicasAt } from '../charts/scaling-chart';
import { shareOfLimit, shortTarget } from '../charts/shares';
import { countOf, formatCount, formatInterval, formatNumber, formatPercent, formatTime, sentence } from '../lib/format';
import type { AnswerContext, Answered } from './plan-answers';
import { renderSign } from './verdict';

export function renderAutoscale({ answer: any, view, plans, plan }: AnswerContext): Answered {
  const answer = any as Autoscale;
  const said = plan.kind === 'answered' ? sentence(plan.sentence) : 'Not known yet.';
  const name = answer.chosen === null ? '' : (answer.policies[answer.chosen]?.name ?? '');
  const figure =
    name !== '' && said.toLowerCase().startsWith(name.toLowerCase())
      ? html`<b>${sentence(name).replace(/\.$/, '')}</b> <span>${said.slice(name.length)}</span>`
      : html`<span>${said}</span>`;
  const ended = answer.policies.filter(({ days }) => days >= answer.days);
  const others = answer.policies.length - ended.length;
  const use = (policy: AutoscalePolicy) => {
    const pointers = Object.entries(policy.settings).map(
      ([path, value]) => [`/${path.replaceAll('.', '/')}`, value] as const,
    );
    const changed = plans.changing(plan.document, plan.inputs);
    view.app.useVariant(pointers.reduce((document, [pointer, value]) => plans.with(document, pointer, value), changed));
  };
  const body = html`${linesOf(answer).length > 0 ? html`<sc-scaling-chart .plan=${answer} .columns=${columnsOf(answer)} .theme=${view.theme} .fileStem=${'servecast-autoscale'}></sc-scaling-chart>` : nothing}
    ${ended.length > 0 ? renderTable(answer, ended, plan.kind === 'answered' ? use : null) : nothing}
    <p class="plan-note">${countOf(answer.runs, 'run')}, ${formatCount(answer.requests)} requests in all; figures are means of ${countOf(answer.days, 'day')}, each with arrivals of its own.
      ${others > 0 ? `${others} more were run for a day and left out.` : ''}
      ${answer.cold_start_s > 0 ? `A replica starts in ${formatNumber(answer.cold_start_s)} s.` : ''} A schedule’s % is the load of each replica, of what those throughout have at the peak. By sampling alone: the forecast’s own error is not in it.</p>`;
  return { figure: html`<p class="plan-figure">${figure}</p>`, body };
}

function renderTable(
  answer: Autoscale,
  policies: readonly AutoscalePolicy[],
  use: ((policy: AutoscalePolicy) => void) | null,
): TemplateResult {
  const chosen = answer.chosen === null ? null : answer.policies[answer.chosen];
  return html`<div class="table-scroll" tabindex="0" role="region" aria-label="Policies"><table>
    <thead><tr><th scope="col">Replicas by</th><th scope="col">Targets</th><th scope="col">GPU-hours</th><th scope="col">Closest target</th>
      <th scope="col">5 min kept</th><th scope="col"><span class="visually-hidden">Use</span></th></tr></thead>
    <tbody>${policies.map(
      (policy) => html`<tr><th scope="row">${policy === chosen ? html`<b>${policy.name}</b>` : policy.name}</th>
        <td class="state" data-head="Targets">${renderSign(policy.state)}${policy.days_met < policy.days ? html` <small>${policy.days_met} of ${countOf(policy.days, 'day')}</small>` : nothing}</td>
        <td data-head="GPU-hours">${hoursText(policy.gpu_hours)}</td>
        <td data-head="Closest target">${closestText(answer, policy)}</td>
        <td data-head="5 min kept">${formatPercent(policy.windows_kept)}</td>
        <td>${use && policy.kind === 'scaler' ? html`<button type="button" aria-label=${`Use ${policy.name}`} @click=${() => use(policy)}>Use</button>` : nothing}</td></tr>`,
    )}</tbody></table></div>`;
}

/** Of who comes and goes the same on every day there is no interval. */
function hoursText({ value, low, high }: AutoscalePolicy['gpu_hours']): TemplateResult | string {
  return low !== null && high !== null && low < high
    ? html`${formatNumber(value)} <small>${formatInterval(low, high, value)}</small>`
    : formatNumber(value);
}

/** "TTFT p99 94.9 ms, 47 % of the limit". */
function closestText({ targets }: Autoscale, policy: AutoscalePolicy): string {
  const shares = targets.map((target, index) => {
    const { share, value_ms: value = null } = policy.targets[index] ?? {};
    return shareOfLimit(target, typeof share === 'number' ? { share } : { value_ms: value }, 'value_ms') ?? Infinity;
  });
  const closest = shares.indexOf(Math.max(...shares));
  const [target, found, taken] = [targets[closest], policy.targets[closest], shares[closest]];
  if (!target || !found || taken === undefined) return '–';
  if (taken === Infinity) return `${shortTarget(target.name)}: no bound`;
  const value = typeof found.share === 'number' ? formatPercent(found.share) : formatTime(found.value_ms);
  return `${shortTarget(target.name)} ${value}, ${formatPercent(taken)} of the limit`;
}

/** Of the chart's file: replicas by policy at each change. */
function columnsOf(answer: Autoscale): Readonly<Record<string, Float64Array>> {
  const lines = linesOf(answer);
  const times = [...new Set([0, ...lines.flatMap(({ policy }) => policy.at_s)])].sort((a, b) => a - b);
  return {
    at_s: Float64Array.from(times),
    ...Object.fromEntries(
      lines.map(({ name, policy }) => [
        name.replaceAll(' ', '_'),
        Float64Array.from(times, (time) => replicasAt(policy, time)),
      ]),
    ),
  };
}

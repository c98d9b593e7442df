// How many GPUs each hour of a day needs, between its quietest and its busiest one.
import { html } from 'lit';
import type { Day } from 'servecast';
import { countOf, formatCount, formatNumber, formatPercent } from '../lib/format';
import { headline, noFigure, type AnswerContext, type Answered } from './plan-answers';
import { dollars } from './plan-cost';

export function renderDay({ answer: any, plan }: AnswerContext): Answered {
  const answer = any as Day;
  const { answer: found, unit, gpu_hours_at_peak: peak, idle_share: idle, price_per_gpu_hour: price } = answer;
  if (!found || peak === null || idle === null) return { figure: noFigure(plan), body: null };
  const less = peak > 0 ? 1 - found.value / peak : 0;
  const paid = price === null ? '' : `, ${dollars(found.value * price)} instead of ${dollars(peak * price)}`;
  const gpus = (replicas: number) => formatCount(replicas * answer.gpus_per_replica);
  const saved =
    less > 0
      ? `${formatPercent(less)} less than with the busiest hour’s GPUs all day${paid}.`
      : 'Every hour needs what the busiest one does.';
  const figure = headline(
    `${formatCount(found.value)} GPU-hours a day`,
    `${formatCount(found.low)} to ${formatCount(found.high)}. ${saved} ${formatPercent(idle)} of what is held is idle.`,
  );
  const body = html`<div class="table-scroll" tabindex="0" role="region" aria-label="Hours"><table>
      <thead><tr><th scope="col">Hours from the quietest</th><th scope="col">Load, ${unit}</th><th scope="col">GPUs</th>
        <th scope="col">95 % interval</th><th scope="col">They hold, ${unit}</th></tr></thead>
      <tbody>${spans(answer).map(
        ({
          first,
          last,
          least,
          most,
          of,
        }) => html`<tr><th scope="row">${first === last ? first : `${first} to ${last}`}</th>
          <td data-head="Load, ${unit}">${least === most ? formatNumber(least) : `${formatNumber(least)} to ${formatNumber(most)}`}</td>
          <td data-head="GPUs"><b>${gpus(of.replicas)}</b></td><td data-head="95 % interval">${gpus(of.low)} to ${gpus(of.high)}</td>
          <td data-head="They hold, ${unit}">${formatNumber(of.held)}</td></tr>`,
      )}</tbody></table></div>
    <p class="plan-note">${countOf(answer.runs, 'run')}. The load comes and goes as a cosine over 24 hours, which is an assumption; the command takes any hours (plan day --hours). Replicas come and go at once, and no request waits from one hour into the next.</p>`;
  return { figure, body };
}

interface Span {
  readonly first: number;
  last: number;
  least: number;
  most: number;
  readonly of: Day['hours'][number];
}

/** Hours after each other that need the same. */
export function spans({ hours }: Day): readonly Span[] {
  const all: Span[] = [];
  for (const of of hours) {
    const span = all.at(-1);
    if (span && span.of.replicas === of.replicas && span.of.low === of.low && span.of.high === of.high) {
      span.last = of.hour;
      span.least = Math.min(span.least, of.load);
      span.most = Math.max(span.most, of.load);
    } else all.push({ first: of.hour, last: of.hour, least: of.load, most: of.load, of });
  }
  return all;
}

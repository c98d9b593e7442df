// Until which load speculative decoding pays: a figure with its interval, and the pairs of runs that it rests on.
import { html } from 'lit';
import type { Speculation } from 'servecast';
import { countOf, formatCount, formatNumber, formatTime } from '../lib/format';
import { headline, noFigure, type AnswerContext, type Answered } from './plan-answers';

export function renderSpeculation({ answer: any, plan }: AnswerContext): Answered {
  const { answer: found, pairs, runs, requests } = any as Speculation;
  const unit = found?.unit ?? 'load';
  const figure = found
    ? headline(
        `${formatNumber(found.value)} ${found.unit}`,
        `${formatNumber(found.low)} to ${formatNumber(found.high)}. Beyond it the mean request is complete sooner without drafts.`,
      )
    : noFigure(plan);
  const body = html`<div class="table-scroll" tabindex="0" role="region" aria-label="With and without drafts">
      <table><thead><tr><th scope="col">At, ${unit}</th><th scope="col">With drafts</th><th scope="col">Without</th><th scope="col">Ratio</th></tr></thead>
      <tbody>${pairs.map(
        (pair) => html`<tr><th scope="row">${formatNumber(pair.at)}</th>
          <td data-head="With drafts">${formatTime(pair.with_ms)}</td>
          <td data-head="Without">${formatTime(pair.without_ms)}</td>
          <td data-head="Ratio">${formatNumber(pair.ratio)} <small>${formatNumber(pair.low)} to ${formatNumber(pair.high)}</small></td></tr>`,
      )}</tbody></table>
    </div>
    <p class="plan-note">Until a mean request is complete. Drafts save steps and cost arithmetic, which is to spare while few run. ${countOf(runs, 'run')}, ${formatCount(requests)} requests in all.</p>`;
  return { figure, body };
}

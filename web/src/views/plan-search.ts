// The cheapest of many designs: its line among the plans.
import { html, nothing, type TemplateResult } from 'lit';
import type { SearchAnswer, SearchPoint } from 'servecast';
import { dollarText, shortLabel } from '../charts/pareto-chart';
import { countOf, formatCount, formatNumber, formatPercent, sentence } from '../lib/format';
import { isSearchOf, standardInputs, type Plans } from '../state/plans';
import type { ViewContext } from './context';
import { headline, type Answered } from './plan-answers';
import { renderLine, setOpen } from './plan-line';
import { evidenceWords } from './tiles';
import { renderSign } from './verdict';

const axisNames: Readonly<Record<string, string>> = {
  'hardware.preset': 'GPU',
  roles: 'prefill and decode',
  'cluster.pools.*.tensor_parallel': 'tensor parallel',
  'cluster.pools.*.pipeline_parallel': 'pipeline parallel',
  'cluster.pools.*.attention_data_parallel': 'replicas that share experts',
  'engine.enable_expert_parallel': 'expert parallel',
  'model.quantization': 'weights',
  'engine.max_num_seqs': 'max_num_seqs',
  'engine.max_num_batched_tokens': 'max_num_batched_tokens',
  prices: 'prices',
};

/** `load`: the blank of the fewest GPUs, in words; `varied`: what may be varied besides. */
export function renderSearch(
  view: ViewContext,
  plans: Plans | null,
  load: string,
  varied: TemplateResult,
  changed: () => void,
): TemplateResult {
  const { search } = view.state;
  const inputs = view.state.plan_inputs ?? standardInputs;
  const isOld = search !== null && !isSearchOf(search, view.state);
  const begin = () => {
    setOpen('search', true);
    plans?.search();
  };
  const ask = html`<button type="button" ?disabled=${!plans} @click=${begin}>Search</button>`;
  const tone = `plan-answer ${isOld ? 'former' : ''}`;
  const said = search?.kind === 'answered' ? search.sentence : 'Not known yet';
  const known = search?.answer ? found(view, plans, search.answer, said) : null;
  return renderLine({
    name: 'search',
    label: 'Cheapest design',
    asked: html`${inputs.energy === 1 ? 'Least energy' : 'Cheapest'} of all GPUs with a price, tensor parallel and weights for ${load}?`,
    said:
      search === null
        ? html`<p>Each design with the fewest replicas that keep the targets: some seconds. ${ask}</p>`
        : html`${status(search, isOld, ask, plans)}${known ? html`<div class=${tone}>${known.figure}</div>` : nothing}`,
    body: html`${varied}${known ? html`<div class=${tone}>${known.body}</div>` : nothing}`,
    changed,
  });
}

function status(
  { kind, progress, issues }: NonNullable<ViewContext['state']['search']>,
  isOld: boolean,
  ask: TemplateResult,
  plans: Plans | null,
): TemplateResult | typeof nothing {
  if (kind === 'running')
    return html`<p class="plan-progress" role="status"><progress max="1" .value=${progress} aria-label="Searched so far"></progress>
      <button type="button" @click=${() => plans?.searches.stop()}>Stop</button></p>`;
  if (kind === 'failed') return html`<p>${issues.map(({ message }) => sentence(message)).join(' ')} ${ask}</p>`;
  if (isOld) return html`<p class="quiet-text">Of the former settings. ${ask}</p>`;
  return kind === 'stopped' ? html`<p>Stopped before all were looked at. ${ask}</p>` : nothing;
}

function found(view: ViewContext, plans: Plans | null, answer: SearchAnswer, said: string): Answered {
  const isRunning = view.state.search?.kind === 'running';
  const cheapest = answer.points.find(({ id }) => id === answer.cheapest);
  const low = cheapest?.low_dollars_per_hour ?? null;
  const high = cheapest?.high_dollars_per_hour ?? null;
  const between = low === null || high === null || low === high ? '' : `${dollarText(low)} to ${dollarText(high)}. `;
  const { meets = 0, near = 0 } = answer.counts;
  const close = near === 0 ? '' : `, ${formatCount(near)} ${near === 1 ? 'is' : 'are'} too close to call`;
  const byId = new Map(answer.points.map((point) => [point.id, point]));
  const frontier = answer.frontier.flatMap((id) => byId.get(id) ?? []);
  const figure =
    cheapest?.dollars_per_hour && !asksEnergy(answer)
      ? headline(
          `${shortLabel(cheapest)}, ${dollarText(cheapest.dollars_per_hour)} an hour`,
          `${cheapest.rung === 'certain' ? '' : 'One run, so far. '}${between}${formatCount(meets)} of ${formatCount(answer.points.length)} keep the targets${close}.`,
        )
      : headline('', sentence(said));
  const body = html`<sc-pareto-chart .search=${answer} .columns=${columnsOf(answer)} .theme=${view.theme} .fileStem=${'servecast-designs'}></sc-pareto-chart>
    ${frontier.length === 0 ? nothing : table(view, plans, frontier, answer)}
    ${isRunning ? nothing : others(answer)}
    <p class="plan-note">${answer.axes.map(({ path, values }) => `${axisNames[path] ?? path}: ${values.join(', ')}`).join('; ')}.
      ${countOf(answer.runs, 'run')}, ${formatCount(answer.requests)} requests in all. Designs that may be on the frontier have intervals, all others one run a number of replicas.</p>
    ${answer.warnings.map((warning) => html`<p class="plan-note">${warning}</p>`)}`;
  return { figure, body };
}

function table(
  view: ViewContext,
  plans: Plans | null,
  points: readonly SearchPoint[],
  answer: SearchAnswer,
): TemplateResult {
  const energy = asksEnergy(answer);
  const best = energy ? answer.least_energy : answer.cheapest;
  const use = async (id: number) => {
    const document = await plans?.searches.documentOf(id);
    if (document) view.app.useVariant(document);
  };
  return html`<div class="table-scroll" tabindex="0" role="region" aria-label="Designs that nothing is cheaper and better than">
    <table><thead><tr><th scope="col">Design</th><th scope="col">Verdict</th><th scope="col">Closest target, of its limit</th><th scope="col">$/h</th>${energy ? html`<th scope="col">J per output token</th>` : nothing}<th scope="col">Evidence</th><th scope="col"><span class="visually-hidden">Use it</span></th></tr></thead>
    <tbody>${points.map(
      (point) => html`<tr class=${point.id === best ? 'best' : ''}>
        <th scope="row">${shortLabel(point)}${poolsOf(point)}${point.own && !point.label.startsWith('as it is') ? html` <small>as it is</small>` : nothing}</th>
        <td class="state" data-head="Verdict">${point.state === 'meets' || point.state === 'near' ? renderSign(point.state) : nothing}</td>
        <td data-head="Closest target, of its limit">${formatPercent(point.strain)} <small>${point.rung === 'certain' ? `${formatPercent(point.strain_low)} to ${formatPercent(point.strain_high)}` : 'one run'}</small></td>
        <td data-head="$/h">${point.dollars_per_hour === null ? '–' : dollarText(point.dollars_per_hour)}</td>
        ${energy ? html`<td data-head="J per output token">${energyText(point)}</td>` : nothing}
        <td data-head="Evidence"><span class="mark ${point.evidence}">${evidenceWords[point.evidence]}</span></td>
        <td><button type="button" aria-label=${`Use ${shortLabel(point)}`} @click=${() => void use(point.id)}>Use</button></td>
      </tr>`,
    )}</tbody></table></div>`;
}

const asksEnergy = (answer: SearchAnswer): boolean => answer.least_energy !== undefined;
const energyText = ({ j_per_output_token: joules }: SearchPoint): string =>
  joules === null || joules === undefined ? 'not known' : formatNumber(joules);

/** " (3 prefill + 5 decode)". */
const poolsOf = ({ pools }: SearchPoint): string =>
  pools.length > 1 ? ` (${pools.map(({ replicas, role }) => `${replicas} ${role}`).join(' + ')})` : '';

/** Every design that is not on the frontier, with the reason. */
function others({ points, frontier }: SearchAnswer): TemplateResult | typeof nothing {
  const on = new Set(frontier);
  const rest = points.filter(({ id, reason }) => !on.has(id) && reason !== '');
  if (rest.length === 0) return nothing;
  return html`<details class="plan-others"><summary>Why not the other ${formatCount(rest.length)}</summary>
    <ul class="plain-list">${rest.map((point) => html`<li><b>${point.label}</b>: ${sentence(point.reason)}</li>`)}</ul></details>`;
}

function columnsOf({ points, frontier }: SearchAnswer): Readonly<Record<string, Float64Array>> {
  const on = new Set(frontier);
  const column = (of: (point: SearchPoint) => number | null) => Float64Array.from(points, (point) => of(point) ?? NaN);
  return {
    id: column(({ id }) => id),
    gpus: column(({ gpus }) => gpus),
    dollars_per_hour: column(({ dollars_per_hour: dollars }) => dollars),
    ...(points.some(({ j_per_output_token: joules }) => joules !== undefined) && {
      j_per_output_token: column(({ j_per_output_token: joules }) => joules ?? null),
      mean_w: column(({ mean_w: watts }) => watts ?? null),
    }),
    share_of_limit: column(({ strain }) => strain),
    on_frontier: column(({ id }) => Number(on.has(id))),
  };
}

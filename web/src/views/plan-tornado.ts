// What each input moves, as bars on one scale around the value as it is; the table beside them has every figure.
import { html, nothing, type TemplateResult } from 'lit';
import type { Tornado, TornadoRefusal, TornadoSide } from 'servecast';
import { shortTarget } from '../charts/shares';
import { formatInterval, formatPercent, formatTime, head } from '../lib/format';
import { headline, type AnswerContext, type Answered } from './plan-answers';

type Side = TornadoSide | TornadoRefusal | null;
const hasRun = (side: Side): side is TornadoSide => side !== null && side.state !== 'cannot_run';

interface Scale {
  /** 0 to 100, %. */
  readonly at: (value: number) => number;
  readonly text: (value: number) => string;
}

function scaleOf({ as_it_is: own, limit, unit, inputs }: Tornado): Scale {
  const sides = inputs.flatMap(({ less, more }) => [less, more]).filter(hasRun);
  const values = [own, ...sides].flatMap(({ value }) => (value === null ? [] : [value]));
  const least = Math.min(limit, ...values);
  const most = Math.max(limit, ...values);
  const margin = (most - least || 1) * 0.04;
  return {
    at: (value) => (100 * (value - least + margin)) / (most - least + 2 * margin),
    text: unit === 'share' ? formatPercent : formatTime,
  };
}

export function renderTornado({ answer: any, plan }: AnswerContext): Answered {
  const answer = any as Partial<Tornado>;
  if (!isKnown(answer)) return { figure: headline('', 'Not known yet.'), body: null };
  const scale = scaleOf(answer);
  const { as_it_is: own, inputs } = answer;
  const most = inputs[0];
  const now = own.value === null ? (own.unbounded ? 'grows without limit' : 'has no sample') : scale.text(own.value);
  const figure =
    plan.kind === 'answered' && most
      ? headline(head(most.input), `moves ${shortTarget(answer.target)} most; as it is: ${now}.`)
      : headline('', `Not known yet. ${shortTarget(answer.target)} as it is: ${now}.`);
  const body = html`<div class="table-scroll" tabindex="0" role="region" aria-label="Inputs">
      <table class="tornado">
        <thead><tr>
          <th scope="col">Input</th>
          <td class="tornado-scale" aria-hidden="true">${own.value === null ? nothing : html`<i class="own" .style=${`left:${scale.at(own.value)}%`}></i>`}<i class="limit" .style=${`left:${scale.at(answer.limit)}%`}><span>limit</span></i></td>
          <th scope="col"><i class="tornado-key less"></i>20\u202f% less</th>
          <th scope="col"><i class="tornado-key more"></i>20\u202f% more</th>
        </tr></thead>
        <tbody>${inputs.map(
          ({ input, less, more }) => html`<tr>
            <th scope="row">${head(input)}</th>
            <td class="tornado-bars" aria-hidden="true">
              ${bar(less, 'less', answer, scale)}${bar(more, 'more', answer, scale)}
              ${own.value === null ? nothing : html`<i class="own" .style=${`left:${scale.at(own.value)}%`}></i>`}
              <i class="limit" .style=${`left:${scale.at(answer.limit)}%`}></i>
            </td>
            <td data-head="20 % less">${sideText(less, scale)}</td>
            <td data-head="20 % more">${sideText(more, scale)}</td>
          </tr>`,
        )}</tbody>
      </table>
    </div>
    <p class="plan-note">One input at a time, each with as many runs as its 95 % interval needs, on the same seeds. Less of host time is a slower host.</p>`;
  return { figure, body };
}

function isKnown(answer: Partial<Tornado>): answer is Tornado {
  return answer.as_it_is !== undefined;
}

/** From the value as it is to that of the side; without limit: to the end of the scale. */
function bar(side: Side, name: string, { as_it_is: own }: Tornado, scale: Scale): TemplateResult | typeof nothing {
  if (!hasRun(side) || own.value === null || (side.value === null && !side.unbounded)) return nothing;
  const from = scale.at(own.value);
  const to = side.value === null ? 100 : scale.at(side.value);
  return html`<b class="${name} ${side.unbounded ? 'unbounded' : ''}" .style=${`left:${Math.min(from, to)}%;width:${Math.abs(to - from)}%`}></b>`;
}

function sideText(side: Side, { text }: Scale): TemplateResult | string {
  if (side === null) return '…';
  if (!hasRun(side)) return html`cannot run: ${side.reason}`;
  if (side.unbounded) return 'grows without limit';
  if (side.value === null) return 'no sample';
  const isShare = text === formatPercent;
  const interval =
    side.low === null || side.high === null
      ? ''
      : isShare
        ? `${formatPercent(side.low)} to ${formatPercent(side.high)}`
        : formatInterval(side.low, side.high, side.value);
  return html`${text(side.value)} <small>${interval}</small>`;
}

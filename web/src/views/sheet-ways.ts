// What the sheet says of changes that were run: of missed targets the ways out, cheapest first, of met ones what would change
// them most. Nothing is run for the sheet, so it says what was not.
import { html, nothing, type TemplateResult } from 'lit';
import type { Advice, Report } from 'servecast';
import { costChange, type Ran } from '../lib/advice';
import { countOf, decimalText, levelText, sentence } from '../lib/format';
import type { Document } from '../state/document';
import { hasFewest } from '../state/fewest';
import { headroomOf } from '../state/headroom';
import { rateOf } from '../state/rate';
import type { AppState, WaysOut } from '../state/store';
import { nameOfTarget } from './compare-figures';
import { ofUser, scrolled, section } from './sheet-parts';
import { chanceText, evidenceWords } from './tiles';
import { figures, gainsOf, listed, shownTargets, waysOf, type Taking, type Way } from './ways-rows';

const nobody: Taking = { change: () => undefined, design: () => undefined, rate: () => undefined };
/** Of what gives met targets more room: the report is one page. */
const mostGains = 3;
const mostListed = 5;

type Known = Pick<AppState, 'shown' | 'ways_out' | 'plans' | 'document'>;

/** What was tried for the shown result; null: there is nothing to try for. */
export function triedFor({ shown, ways_out: found }: Pick<Known, 'shown' | 'ways_out'>): WaysOut | null {
  return found && found.of === shown?.outcome ? found : null;
}

export const waysTitle = ({ missed }: Pick<WaysOut, 'missed'>): string =>
  missed ? 'Ways out' : 'What would change it most';

/** Under way, as the page's own runs are. */
export const isTrying = ({ kind, seeks }: WaysOut): boolean => kind === 'trying' || seeks;

/** The rows, and whole sentences below them. */
export function waysToldOf(
  state: Known,
  found: WaysOut,
  report: Report,
): { readonly ways: readonly Way[]; readonly told: string } {
  const rows = found.advice ? rowsOf(state, found, found.advice, report) : { ways: [], others: [] };
  return { ways: rows.ways, told: [...toldOf(found, rows, report), ...missingOf(state, found, report)].join(' ') };
}

export function waysPart(state: Known, report: Report): TemplateResult | typeof nothing {
  const found = triedFor(state);
  if (!found) return nothing;
  const { ways, told } = waysToldOf(state, found, report);
  return section(
    waysTitle(found),
    html`${ways.length > 0 ? table(ways, found.advice?.base ?? null, report) : nothing}
    ${told === '' ? nothing : html`<p class="small">${ofUser(told)}</p>`}`,
  );
}

interface Rows {
  readonly ways: readonly Way[];
  readonly others: readonly Ran[];
}

function rowsOf(state: Known, found: WaysOut, advice: Advice, report: Report): Rows {
  if (found.missed) {
    const { ways, near, others } = waysOf(found, advice, report, headroomOf(state), nobody);
    const rows = [...ways, ...near];
    return { ways: rows, others: others.filter(({ change }) => !rows.some(({ words }) => words === change)) };
  }
  const { helping, ways, others } = gainsOf(advice, nobody);
  return { ways: ways.slice(0, mostGains), others: [...helping.slice(mostGains), ...others] };
}

function table(ways: readonly Way[], base: Advice['base'], report: Report): TemplateResult {
  const columns = shownTargets(report).flatMap((index) => {
    const target = report.slo[index];
    return target ? [{ index, name: nameOfTarget(target) }] : [];
  });
  const cells = (way: Way) =>
    html`${columns.map(({ index, name }) => html`<td data-head=${name}><span>${way.slo ? figures(way.slo[index]) : '–'}</span></td>`)}`;
  const rows = html`<table>
    <thead><tr><th scope="col">Change</th>${columns.map(({ name }) => html`<th scope="col">${name}</th>`)}<th scope="col">all met</th><th scope="col">cost</th><th scope="col">evidence</th></tr></thead>
    <tbody>${ways.map(
      (
        way,
      ) => html`<tr><th scope="row">${ofUser(way.words)}${way.note === '' ? nothing : html` <span class="small">${way.note}</span>`}</th>${cells(way)}
        <td data-head="all met">${way.probability === null ? (way.meets ? 'yes' : 'no') : chanceText(way.probability)}</td>
        <td data-head="cost"><span>${costOf(way, base)}</span></td>
        <td data-head="evidence">${way.evidence ? evidenceWords[way.evidence] : '–'}</td></tr>`,
    )}</tbody></table>`;
  return scrolled('Changes that were run', rows);
}

/** "$5.00/h (+$2.50/h)", "2 GPUs (+1 GPU)" where no price is known, "as now". */
export function costOf(way: Pick<Way, 'cost_per_hour' | 'gpus'>, base: Advice['base']): string {
  const { cost_per_hour: cost, gpus } = way;
  if (base?.gpus === gpus && base.cost_per_hour === cost) return 'as now';
  const digits = cost !== null && cost >= 100 ? 0 : 2;
  const all = cost === null ? countOf(gpus, 'GPU') : `$${decimalText(cost, digits, digits)}/h`;
  return base ? `${all} (${costChange(way, base)})` : all;
}

function toldOf({ kind, missed, advice }: WaysOut, { ways, others }: Rows, report: Report): readonly string[] {
  if (!advice) return [];
  const more = countOf(others.length, 'change');
  if (!missed) {
    if (ways.length === 0) return [`None of the ${more} that were run gives more room.`];
    return [
      others.length === 0
        ? 'Each was run on the same requests.'
        : `Each was run on the same requests, as ${others.length === 1 ? 'was' : 'were'} ${more} that ${others.length === 1 ? 'gives less or costs' : 'give less or cost'} more.`,
    ];
  }
  const rest = others.length > mostListed ? `, and ${others.length - mostListed} more` : '';
  return [
    ...(ways.length === 0 && kind === 'tried' ? ['No change that was run meets all targets.'] : []),
    ...(others.length === 0
      ? []
      : [
          `Run, and do not get there: ${listed(others.slice(0, mostListed), report, advice.base?.overloaded === true)}${rest}.`,
        ]),
  ];
}

/** What nobody ran, or not yet. */
function missingOf(state: Known, found: WaysOut, report: Report): readonly string[] {
  const { kind, missed, advice, seeks, designs, progress, message } = found;
  const told: Readonly<Record<WaysOut['kind'], string>> = {
    offered: 'Not run: the dozen changes that the page can try.',
    trying: 'The changes that the page tries were still being run when this was made.',
    cancelled: `Stopped when ${levelText(progress)} of the changes had been run; the others were not.`,
    failed: `The changes could not be run: ${sentence(message)}`,
    tried: '',
  };
  const single = advice?.changes.some(({ meets }) => meets) === true;
  const isDone = missed && kind === 'tried';
  const fewest = seeks
    ? 'The fewest GPUs that meet were still being sought when this was made.'
    : single
      ? 'Not run, as one change is enough: two changes together, and the fewest GPUs that meet.'
      : designs.length > 0
        ? ''
        : hasFewest(state.document, report.scenario as Document)
          ? 'No number of these GPUs was found that meets.'
          : 'The fewest GPUs that meet were not sought: the page seeks them of one pool that serves whole requests.';
  const held = headroomOf(state)?.kind;
  const isRated = missed && rateOf(report) !== null && held !== 'found' && held !== 'said';
  return [
    told[kind],
    isDone ? fewest : '',
    isRated ? 'How much of the load these GPUs hold was not known when this was made.' : '',
  ].filter(Boolean);
}

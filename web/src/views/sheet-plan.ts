// What the sheet says of the questions of capacity: those that are answered for what is shown, those under way, and the
// names of those that nobody asked.
import type { PlanQuestion, Report } from 'servecast';
import { formatGiven, sentence } from '../lib/format';
import { applies, isQuick, isSearchOf, rateOf, type Plans } from '../state/plans';
import type { AppState, Plan, PlanInputs } from '../state/store';
import { allTargets, deploymentText, loadWord, questionNames } from './question-words';
import { doubtsText } from './sure-words';

export interface Answered {
  readonly question: string;
  /** Whole sentences, a paragraph each. */
  readonly answer: readonly string[];
}

export interface Board {
  readonly answered: readonly Answered[];
  readonly running: readonly string[];
  readonly unasked: readonly string[];
  /** Of those that were not asked, what takes a moment. */
  readonly quick: readonly PlanQuestion[];
}

/** As the Plan view has them. */
const order: readonly PlanQuestion[] = [
  'max-rate',
  'min-gpus',
  'speculation',
  'growth',
  'drill',
  'cost',
  'day',
  'autoscale',
  'tornado',
];
const searchName = 'Cheapest design';

export function boardOf(
  state: Pick<AppState, 'plans' | 'search' | 'shown' | 'plan_inputs'>,
  report: Report,
  isOf: Plans['isOf'],
  rateUnit: string,
): Board {
  const asked = order.filter((question) => applies(question, report) && report.slo.length > 0);
  const known = (question: PlanQuestion): Plan | null => {
    const plan = state.plans[question];
    return plan && isOf(question, plan) ? plan : null;
  };
  const isDone = (question: PlanQuestion) => ['answered', 'failed'].includes(known(question)?.kind ?? '');
  const isRunning = (question: PlanQuestion) => known(question)?.kind === 'running';
  const unasked = asked.filter((question) => !isDone(question) && !isRunning(question));
  const search = state.search && isSearchOf(state.search, state) ? state.search : null;
  const hasSearch = search?.kind === 'answered' || search?.kind === 'failed';
  return {
    answered: [
      ...asked.filter(isDone).flatMap((question) => {
        const plan = known(question);
        return plan
          ? [{ question: questionText(question, plan.inputs, report, rateUnit), answer: answerText(plan) }]
          : [];
      }),
      ...(hasSearch
        ? [{ question: 'Cheapest design of all GPUs with a price', answer: answerText({ ...search, answer: null }) }]
        : []),
    ],
    running: [...asked.filter(isRunning).map(nameOf), ...(search?.kind === 'running' ? [searchName] : [])],
    unasked: [
      ...unasked.map(nameOf),
      ...(report.slo.length === 0 || hasSearch || search?.kind === 'running' ? [] : [searchName]),
    ],
    quick: unasked.filter((question) => isQuick(question, report)),
  };
}

const nameOf = (question: PlanQuestion): string => questionNames[question];

function answerText({ kind, sentence: said, issues, answer }: Pick<Plan, 'kind' | 'sentence' | 'issues' | 'answer'>) {
  const lines = kind === 'failed' ? issues.map(({ message }) => message) : said.split('\n');
  // The answer's own sentence may have them already.
  const doubts = answer && lines.every((line) => !line.includes('says otherwise')) ? doubtsText(answer) : '';
  return [...lines, doubts].filter((line) => line.trim() !== '').map(sentence);
}

/** As the Plan view asks it, with what stands in its blanks. */
function questionText(question: PlanQuestion, inputs: PlanInputs, report: Report, rateUnit: string): string {
  const { gpus } = report;
  const rate = inputs.rate ?? rateOf(report);
  switch (question) {
    case 'max-rate':
      return `Highest ${loadWord(report)} that ${deploymentText(report)} ${gpus === 1 ? 'holds' : 'hold'} within ${allTargets(report)}`;
    case 'min-gpus':
      return `Fewest GPUs for ${rate === null ? 'this load' : `${formatGiven(rate)} ${rateUnit}`} within ${allTargets(report)}`;
    case 'speculation':
      return `Until which ${loadWord(report)} speculation pays`;
    case 'growth':
      return `Load that grows by ${formatGiven(inputs.percent)}\u202f% a month, ${formatGiven(inputs.months)} months ahead`;
    case 'drill':
      return `A replica fails or slows down, or ${formatGiven(inputs.spike)} times the load comes for ${formatGiven(inputs.spike_s)}\u202fs`;
    case 'cost':
      return inputs.input_price + inputs.output_price > 0
        ? `Own GPUs, or an API at $${formatGiven(inputs.input_price)} per million tokens in and $${formatGiven(inputs.output_price)} out`
        : 'Cost of own GPUs';
    case 'day':
      return `Hours of a day whose quietest has ${formatGiven(inputs.night)}\u202f% of the load`;
    case 'autoscale':
      return `Autoscaler that keeps ${allTargets(report)}`;
    case 'tornado':
      return 'What moves the closest target most, each input 20\u202f% less or more';
  }
}

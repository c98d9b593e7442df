// Questions of capacity about the scenario: which are asked, and what is known of each. Workers of their own answer them,
// so that the page stays as quick as it is. Loaded when their view is first opened.
import type { Issue, PlanAnswer, PlanOptions, PlanQuestion, Report } from 'servecast';
import type { Engine, TraceFile } from '../engine/client';
import { Planners } from '../engine/pool';
import { equalJson, needsTrace, removeAt, setAt, type Document, type Json } from './document';
import { assign } from './fields';
import type { FormSource } from './fields';
import { headroomOf } from './headroom';
import { rateOf, ratePointer } from './rate';
import { Searches } from './search';
import type { AppState, Plan, PlanInputs, Search, Store } from './store';
import { firstRun } from '../lib/first-run';
import { tookLong } from '../lib/work';

/** In the order of being asked: what takes longest last. */
export const questions: readonly PlanQuestion[] = [
  'cost',
  'max-rate',
  'min-gpus',
  'speculation',
  'drill',
  'growth',
  'tornado',
  'day',
  'autoscale',
];
/** Many answers or runs in one: only when somebody asks. */
const long: ReadonlySet<PlanQuestion> = new Set(['day', 'autoscale']);
/** Of a load that rises and falls: a row of its profile every so often, s. */
const stepOfLoadS = 300;
export { rateOf, ratePointer } from './rate';
/** A certain answer that has stood for so long is being read: until then the engine belongs to whoever works. */
const readMs = 600;

export const standardInputs: PlanInputs = {
  percent: 5,
  months: 24,
  spike: 2,
  spike_s: 60,
  input_price: 0,
  output_price: 0,
  night: 30,
  quiet: 30,
  span_h: 6,
  pipeline: 0,
  experts: 0,
  roles: 0,
  limits: 0,
  energy: 0,
  prices: 0,
  rate: null,
};

/** Lists that the engine knows, and their names; the first is none. */
export const priceLists = [
  ['', 'as in the scenario'],
  ['reserved-1y', 'reserved for a year'],
  ['on-demand', 'on demand at AWS'],
] as const;
export const pricesOf = ({ prices }: PlanInputs): string => priceLists[prices]?.[0] ?? '';
export const leastOf = ({ energy }: PlanInputs): 'cost' | 'energy' => (energy === 1 ? 'energy' : 'cost');

/** What a search varies, by the engine's names. */
export function axesOf({ pipeline, experts, roles, limits }: PlanInputs): string {
  const more = [
    roles && 'roles',
    pipeline && 'pp',
    experts && 'dp,ep',
    limits && 'max_num_seqs,max_num_batched_tokens',
  ];
  return ['gpu,tp,quantization', ...more].filter(Boolean).join(',');
}

/** What the engine is asked. Hours of a day begin with the quietest; the load is a cosine, times the busiest hour's. */
const optionsOf = (inputs: PlanInputs, question?: PlanQuestion): PlanOptions => ({
  ...inputs,
  days: 5,
  windows: 0,
  hours:
    question === 'autoscale'
      ? []
      : Array.from(
          { length: 24 },
          (_, hour) => 1 - ((1 - inputs.night / 100) * (1 + Math.cos((Math.PI * hour) / 12))) / 2,
        ),
});

export class Plans {
  readonly searches: Searches;
  readonly #engine: Engine;
  readonly #store: Store;
  readonly #source: () => FormSource | null;
  /** Also of those who compare. */
  readonly planners: Planners;
  readonly #stops = new Map<PlanQuestion, () => void>();
  #watched = false;
  /** The highest load is asked for by itself. */
  #keepsHeadroom = false;
  #reading: ReturnType<typeof setTimeout> | undefined;

  constructor(engine: Engine, store: Store, source: () => FormSource | null) {
    this.#engine = engine;
    this.#store = store;
    this.#source = source;
    this.planners = new Planners(engine.site);
    this.searches = new Searches(this.planners, store);
    store.subscribe(() => this.#tick());
  }

  /** Of the rate, as long as nothing else differs. */
  #tick(): void {
    const { held_rate: shown, plans, document } = this.#store.state;
    const plan = plans['max-rate'];
    // The same words with another file.
    if (plan && plan.kind !== 'running' && plan.trace !== this.#traceOf(document)) {
      const { 'max-rate': _gone, ...others } = plans;
      this.#store.update({ plans: others });
      return;
    }
    const known = headroomOf(this.#store.state);
    const answer = known?.kind === 'found' ? known.answer : null;
    const isOfRate = answer?.unit === 'requests/s' || answer?.unit === 'conversations/s';
    const held = answer && isOfRate ? Number(answer.value.toPrecision(3)) : null;
    if (held !== shown) this.#store.update({ held_rate: held });
  }

  /** That the page has. */
  get trace(): TraceFile | null {
    return this.#engine.traceFile;
  }

  get inputs(): PlanInputs {
    return this.#store.state.plan_inputs ?? standardInputs;
  }

  get options(): PlanOptions {
    return optionsOf(this.inputs);
  }

  /** Of a blank that only this question reads; null: the search, which waits to be asked. */
  put(inputs: PlanInputs, of: PlanQuestion | null): void {
    this.#store.update({ plan_inputs: inputs });
    if (of) this.ask(of);
  }

  /** Whether the view is open: its questions are then asked after every run. */
  watch(on: boolean): void {
    this.#watched = on;
    if (on) this.refresh();
    else this.#leave();
  }

  /** What is asked for without the view goes on. */
  #leave(): void {
    for (const question of this.#stops.keys()) if (question !== 'max-rate' || !this.#keepsHeadroom) this.stop(question);
    this.searches.stop();
  }

  /** From now on the highest load is asked for after every certain answer, once that has stood for a moment. */
  keepHeadroom(): void {
    this.#keepsHeadroom = true;
    this.refresh();
  }

  /** A run begins: what is asked is of another scenario. */
  halt(): void {
    clearTimeout(this.#reading);
    for (const question of this.#stops.keys()) this.stop(question);
    this.searches.stop();
  }

  /** What was known until then stays. */
  stop(question: PlanQuestion): void {
    const plan = this.#store.state.plans[question];
    this.#stops.get(question)?.();
    this.#stops.delete(question);
    if (plan?.kind === 'running') this.#set(question, { ...plan, kind: 'stopped' });
  }

  /** To be called when the shown run has ended. */
  refresh(): void {
    clearTimeout(this.#reading);
    if (this.#watched) for (const question of questions) this.#renew(question);
    else if (this.#keepsHeadroom) this.#reading = setTimeout(() => this.#renew('max-rate'), readMs);
  }

  /** Asks, or offers to ask, what is not known of the shown scenario. */
  #renew(question: PlanQuestion): void {
    const { shown, plans } = this.#store.state;
    if (shown?.completeness !== 'final' || shown.outcome.report.slo.length === 0) return;
    const { report } = shown.outcome;
    if (!applies(question, report)) return;
    const known = plans[question];
    if (known && !['offered', 'stopped'].includes(known.kind) && this.isOf(question, known)) return;
    if (isQuick(question, report)) this.ask(question);
    else this.#set(question, this.#offered(shown.document, this.inputs));
  }

  /** Whether the answer is one to the scenario as it is shown. */
  isOf(question: PlanQuestion, { document, inputs, trace }: Plan): boolean {
    const { shown } = this.#store.state;
    if (!shown || trace !== this.#traceOf(shown.document)) return false;
    const free = (each: Document) => (question === 'max-rate' ? removeAt(each, ratePointer) : each);
    return (
      equalJson(free(document), free(shown.document)) && equalJson(read(question, inputs), read(question, this.inputs))
    );
  }

  /** For the load that the fewest GPUs are asked for. */
  search(): void {
    const { shown } = this.#store.state;
    if (!shown) return;
    const { document } = shown;
    const { inputs } = this;
    const asked = this.#documentOf('min-gpus', document, inputs);
    const of = {
      of: document,
      rate: inputs.rate,
      axes: axesOf(inputs),
      prices: pricesOf(inputs),
      least: leastOf(inputs),
    };
    this.searches.begin(asked, of, this.#engine.traceFile);
  }

  ask(question: PlanQuestion): void {
    const { shown, plans } = this.#store.state;
    if (!shown) return;
    this.stop(question);
    const { inputs } = this;
    const { document } = shown;
    const former = plans[question];
    const plan: Plan = {
      ...this.#offered(document, inputs),
      kind: 'running',
      answer: former && this.isOf(question, former) ? former.answer : null,
    };
    this.#set(question, plan);
    const asked = this.#documentOf(question, document, inputs);
    const put = (change: Partial<Plan>) => {
      const now = this.#store.state.plans[question];
      if (now?.document === document && now.inputs === inputs) this.#set(question, { ...now, ...change });
    };
    const done = (change: Partial<Plan>) => {
      this.#stops.delete(question);
      put(change);
    };
    const { trace } = plan;
    const stop = this.planners.ask(
      {
        question,
        scenario: JSON.stringify(asked),
        options: optionsOf(inputs, question),
        prices: question === 'cost' ? pricesOf(inputs) : '',
        with_trace: trace !== null,
      },
      trace,
      {
        progress: (progress, answer) => put({ progress, ...(isTelling(answer) ? { answer } : {}) }),
        answered: (answer, sentence) => done({ kind: 'answered', progress: 1, answer, sentence }),
        failed: (issues: readonly Issue[]) => done({ kind: 'failed', issues, answer: null }),
      },
    );
    this.#stops.set(question, stop);
  }

  /** The scenario with a load that changes: its own, or one that rises to its rate and falls again. */
  changing(document: Document, { quiet, span_h: span }: PlanInputs): Document {
    const { shown } = this.#store.state;
    const rate = shown && rateOf(shown.outcome.report);
    if (!shown || rate === null || changes(shown.outcome.report)) return document;
    const seconds = span * 3600;
    const least = quiet / 100;
    const rows: [number, number][] = [];
    for (let at = 0; at < seconds; at += stepOfLoadS) {
      const middle = Math.min(at + stepOfLoadS / 2, seconds);
      const factor = least + ((1 - least) * (1 - Math.cos((2 * Math.PI * middle) / seconds))) / 2;
      rows.push([at, Number(factor.toPrecision(3))]);
    }
    const { turns = 1 } =
      (shown.outcome.report.scenario['workload'] as { sessions?: { turns?: number } }).sessions ?? {};
    const mean = (rate * turns * seconds * (1 + least)) / 2;
    const settings: readonly (readonly [string, Json])[] = [
      ['/workload/arrivals/profile', 'piecewise'],
      ['/workload/arrivals/rate_factors', rows],
      ['/workload/requests', Math.ceil(1.02 * mean + 100)],
      ['/measure/horizon_s', seconds],
    ];
    return settings.reduce((changed, [pointer, value]) => this.with(changed, pointer, value), document);
  }

  /** The scenario with what a blank says. */
  #documentOf(question: PlanQuestion, document: Document, inputs: PlanInputs): Document {
    const { shown } = this.#store.state;
    const { rate } = inputs;
    if (question === 'autoscale') return this.changing(document, inputs);
    const has = shown !== null && rateOf(shown.outcome.report) !== null;
    return question === 'min-gpus' && rate !== null && has ? this.with(document, ratePointer, rate) : document;
  }

  with(document: Document, pointer: string, value: Json): Document {
    const source = this.#source();
    return source ? assign({ ...source, document }, pointer, value) : setAt(document, pointer, value);
  }

  #traceOf(document: Document): TraceFile | null {
    return needsTrace(document) ? this.#engine.traceFile : null;
  }

  #offered(document: Document, inputs: PlanInputs): Plan {
    const trace = this.#traceOf(document);
    return { kind: 'offered', document, inputs, trace, progress: 0, answer: null, sentence: '', issues: [] };
  }

  #set(question: PlanQuestion, plan: Plan): void {
    this.#store.update({ plans: { ...this.#store.state.plans, [question]: plan } });
  }
}

/** Some pool drafts tokens. */
export const speculates = (report: Report): boolean => firstRun(report).speculative !== undefined;

/** Replicas by the hour are those of the only pool. */
export const hasHours = ({ pools }: Report): boolean => (pools?.length ?? 1) === 1;

const arrivalsOf = ({ scenario }: Report): { profile?: unknown; spikes?: unknown } =>
  (scenario['workload'] as { arrivals?: { profile?: unknown; spikes?: unknown } } | undefined)?.arrivals ?? {};

/** Its load does not stay the same. */
export function changes(report: Report): boolean {
  const { profile, spikes } = arrivalsOf(report);
  const spiked = Array.isArray(spikes) && spikes.length > 0;
  return report.workload.source === 'trace' || spiked || (profile !== undefined && profile !== 'flat');
}

/** Replicas of its only pool may come and go with the load. */
export const mayScale = (report: Report): boolean => hasHours(report) && (rateOf(report) !== null || changes(report));

/** Whether it is a question about such a scenario. */
export function applies(question: PlanQuestion, report: Report): boolean {
  if (question === 'speculation') return speculates(report);
  if (question === 'day') return hasHours(report);
  return question !== 'autoscale' || mayScale(report);
}

/** It may be asked without a person: what a load costs needs no runs; a day, those of many deployments. */
export const isQuick = (question: PlanQuestion, report: Report): boolean =>
  (!tookLong(report) && !long.has(question)) || question === 'cost';

/** Whether the search is one for the scenario as it is shown, and for what the blanks say. */
export function isSearchOf(
  search: Search,
  { shown, plan_inputs: typed }: Pick<AppState, 'shown' | 'plan_inputs'>,
): boolean {
  const inputs = typed ?? standardInputs;
  return (
    search.document === shown?.document &&
    search.rate === inputs.rate &&
    search.axes === axesOf(inputs) &&
    search.prices === pricesOf(inputs) &&
    search.least === leastOf(inputs)
  );
}

/** What a question reads of the inputs. */
function read(question: PlanQuestion, inputs: PlanInputs): Json {
  const { percent, months, spike, spike_s: seconds, night, rate } = inputs;
  if (question === 'cost') return [inputs.input_price, inputs.output_price, inputs.prices];
  if (question === 'growth') return [percent, months];
  if (question === 'day') return [night];
  if (question === 'autoscale') return [inputs.quiet, inputs.span_h];
  if (question === 'drill') return [spike, seconds];
  return question === 'min-gpus' ? [rate] : [];
}

/** Something to draw. */
function isTelling(answer: PlanAnswer | null): answer is PlanAnswer {
  if (!answer) return false;
  if ('curve' in answer) return answer.curve.length > 1;
  if ('gpu_hours_at_peak' in answer) return answer.answer !== null;
  if ('policies' in answer) return answer.policies.length > 0;
  if ('schedule' in answer) return Boolean(answer.schedule[0]?.answer);
  if ('pairs' in answer) return answer.pairs.length > 0;
  if ('inputs' in answer) return answer.inputs.length > 0;
  if ('own' in answer) return true;
  return 'drills' in answer && answer.drills.length > 0;
}

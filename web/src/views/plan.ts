// The board of plans: questions of capacity about the scenario, each a sentence with blanks, its answer beside it, and what
// that rests on below, when it is opened. Loaded with its view.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { PlanQuestion, Report } from 'servecast';
import '../charts/growth-chart';
import '../charts/pareto-chart';
import '../charts/rate-chart';
import '../charts/scaling-chart';
import { formatGiven, readNumber, sentence } from '../lib/format';
import { addStyles } from '../lib/part';
import { fieldAt, unitOf, withRateOfSessions } from '../state/fields';
import {
  changes,
  rateOf,
  ratePointer,
  hasHours,
  mayScale,
  priceLists,
  speculates,
  standardInputs,
  type Plans,
} from '../state/plans';
import type { Plan, PlanInputs } from '../state/store';
import styles from '../styles/plan.css?inline';
import { listedOn, listedPrice } from './api-prices';
import type { ViewContext } from './context';
import { addLimit } from './form';
import {
  renderDoubts,
  renderDrills,
  renderFewest,
  renderGrowth,
  renderHighest,
  type AnswerContext,
  type Answered,
} from './plan-answers';
import { renderAutoscale } from './plan-autoscale';
import { renderCost } from './plan-cost';
import { renderDay } from './plan-day';
import { renderLine, setOpen } from './plan-line';
import { renderSpeculation } from './plan-speculation';
import { renderTornado } from './plan-tornado';
import { renderSearch } from './plan-search';
import { allTargets, deploymentText, loadWord, questionNames, targetText } from './question-words';
import { inputsOf, ranges, withInputs, type InputName, type Range } from './plan-inputs';

export class PlanElement extends PlainElement {
  static override properties = { view: { attribute: false }, plans: { state: true }, wrong: { state: true } };
  declare view: ViewContext;
  declare plans: Plans | null;
  /** Blanks that hold no value. */
  declare wrong: ReadonlyMap<InputName, string>;
  readonly #now = new Date();

  constructor() {
    super();
    this.plans = null;
    this.wrong = new Map();
  }

  protected override firstUpdated(): void {
    const named = inputsOf(location.href);
    if (this.view.state.plan_inputs === null && named) this.view.app.store.update({ plan_inputs: named });
    void this.view.app.plans().then((plans) => {
      this.plans = plans;
      if (this.isConnected) plans.watch(true);
    });
    addEventListener('keydown', this.#key);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener('keydown', this.#key);
    this.plans?.watch(false);
  }

  readonly #key = (event: KeyboardEvent): void => {
    if (event.key === 'Escape' && !event.defaultPrevented && this.view.state.run.kind !== 'running') this.plans?.halt();
  };

  protected override render(): TemplateResult {
    const { shown } = this.view.state;
    if (!shown) return html`<p class="quiet-text">Empty: nothing was simulated.</p>`;
    const { report } = shown.outcome;
    if (report.slo.length === 0)
      return html`<p>A plan keeps targets, and this scenario has none.
        <button type="button" @click=${() => this.#addTarget()}>Add a target</button></p>`;
    const deployment = deploymentText(report);
    return html`
      <p class="plan-targets">
        <span>${report.slo.length === 1 ? 'Target:' : report.slo.length === 2 ? 'Both targets:' : 'All targets:'}</span>
        ${report.slo.map((slo, index) => html`<button type="button" class="quiet" @click=${() => this.view.focusField(`/slo/${index}`)}><b>${targetText(slo)}</b></button>`)}
        <span class="quiet-text">Each answer comes from many runs on the same seeds; Esc stops them.</span>
      </p>
      <div class="card plan-board">
      ${this.#card('max-rate', html`Highest ${loadWord(report)} that ${deployment} ${report.gpus === 1 ? 'holds' : 'hold'} within ${allTargets(report)}?`, renderHighest)}
      ${this.#card('min-gpus', html`Fewest GPUs for ${this.#rateBlank(report)} within ${allTargets(report)}?`, renderFewest)}
      ${speculates(report) ? this.#card('speculation', html`Until which ${loadWord(report)} does speculation pay?`, renderSpeculation) : nothing}
      ${renderSearch(this.view, this.plans, this.#loadText(report), this.#varied(report), () => this.requestUpdate())}
      ${this.#card('growth', html`When does a load that grows by ${this.#blank('percent', '% a month')} break ${deployment}? Looking ${this.#blank('months', 'months')} ahead.`, renderGrowth)}
      ${this.#card('drill', html`What if a replica fails or slows down, or ${this.#blank('spike', 'times')} the load comes for ${this.#blank('spike_s', 's')}?`, renderDrills)}
      ${this.#card('cost', html`Own GPUs at prices ${this.#prices()}, or an API at ${this.#blank('input_price', '$ per million tokens in')} and ${this.#blank('output_price', '$ out')}?`, renderCost, this.#listed(report))}
      ${hasHours(report) ? this.#card('day', html`If the load falls to ${this.#blank('night', '%')} of this in the quietest hour of a day, what does each hour need?`, renderDay) : nothing}
      ${mayScale(report) ? this.#card('autoscale', changes(report) ? html`Which autoscaler keeps ${allTargets(report)} over this load, for the fewest GPU-hours?` : html`If the load rises from ${this.#blank('quiet', '%')} to this and falls again within ${this.#blank('span_h', 'h')}, which autoscaler keeps ${allTargets(report)}?`, renderAutoscale) : nothing}
      ${this.#card('tornado', html`What moves the closest target most, each input 20\u202f% less or 20\u202f% more?`, renderTornado)}
      </div>
    `;
  }

  #addTarget(): void {
    const { source } = this.view.app;
    if (source) addLimit(this.view, source, []);
  }

  #card(
    name: PlanQuestion,
    asked: TemplateResult,
    answer: (context: AnswerContext) => Answered,
    below: TemplateResult | typeof nothing = nothing,
  ): TemplateResult {
    const plan = this.view.state.plans[name];
    const line = { name, label: questionNames[name], asked, changed: () => this.requestUpdate() };
    if (!plan || !this.plans) return renderLine({ ...line, said: waits, body: null });
    const isOld = plan.kind !== 'running' && !this.plans.isOf(name, plan);
    const former = isOld || plan.kind === 'stopped' || (plan.kind === 'running' && plan.sentence === '');
    const tone = `plan-answer ${former ? 'former' : ''}`;
    const known = plan.answer && answer({ ...this.#context(this.plans), plan, answer: plan.answer });
    return renderLine({
      ...line,
      said: html`${this.#status(name, plan, isOld, this.plans)}
        ${known ? html`<div class=${tone}>${known.figure}</div>` : nothing}${plan.answer ? renderDoubts(plan.answer) : nothing}`,
      body:
        known?.body || below !== nothing
          ? html`${below}${known?.body ? html`<div class=${tone}>${known.body}</div>` : nothing}`
          : null,
    });
  }

  /** How far the answer is; nothing of one that stands. */
  #status(question: PlanQuestion, plan: Plan, isOld: boolean, plans: Plans): TemplateResult | typeof nothing {
    const asks = () => {
      setOpen(question, true);
      plans.ask(question);
    };
    const ask = html`<button type="button" @click=${asks}>Ask</button>`;
    const words: Record<Plan['kind'], TemplateResult | typeof nothing> = {
      offered: html`<p>${offers[question] ?? 'This scenario’s run took long, and an answer takes many.'} ${ask}</p>`,
      running: html`<p class="plan-progress" role="status"><progress max="1" .value=${plan.progress} aria-label="Answered so far"></progress>
        <button type="button" @click=${() => plans.stop(question)}>Stop</button></p>`,
      stopped: html`<p>Stopped before it was answered. ${ask}</p>`,
      failed: isOld
        ? waits
        : html`<p>${plan.issues.map(({ message }) => sentence(message)).join(' ')} ${plan.issues.every(({ path }) => path === '') ? ask : nothing}</p>`,
      answered: isOld ? html`<p class="quiet-text">Of the former settings. ${ask}</p>` : nothing,
    };
    return words[plan.kind];
  }

  #context(plans: Plans): Omit<AnswerContext, 'plan' | 'answer'> {
    return { view: this.view, plans, now: this.#now };
  }

  /** "40 requests/s", or the load in words where no one number is it. */
  #rateBlank(report: Report): TemplateResult | string {
    const { source } = this.view.app;
    const field = source && fieldAt(source, ratePointer);
    const own = rateOf(report);
    if (!source || !field || own === null) return 'the scenario’s load';
    const unit = unitOf(withRateOfSessions(source, field));
    const [least, most] = [field.minimum ?? 1e-6, field.maximum ?? 1e6];
    return this.#blank('rate', unit, own, [least, most]);
  }

  #loadText(report: Report): string {
    const own = rateOf(report);
    const rate = own === null ? null : (this.view.state.plan_inputs?.rate ?? own);
    const { source } = this.view.app;
    const field = source && fieldAt(source, ratePointer);
    return source && field && rate !== null
      ? `${formatGiven(rate)} ${unitOf(withRateOfSessions(source, field))}`
      : 'this load';
  }

  #blank(
    name: InputName,
    unit: string,
    own?: number,
    [least, most]: Range = ranges[name as Exclude<InputName, 'rate'>],
  ): TemplateResult {
    const inputs = this.view.state.plan_inputs ?? standardInputs;
    const value = inputs[name] ?? own ?? 0;
    const wrong = this.wrong.get(name);
    // A price of $0 is none: the blank asks for one.
    const isPrice = name === 'input_price' || name === 'output_price';
    const shown = isPrice && value === 0 ? '' : formatGiven(value);
    const otherwise = isPrice ? 0 : own;
    const change = (event: Event) => {
      const { value: typed } = event.target as HTMLInputElement;
      const number = typed.trim() === '' && otherwise !== undefined ? otherwise : readNumber(typed);
      const whole = name !== 'months' || Number.isInteger(number);
      const rest = new Map(this.wrong);
      rest.delete(name);
      if (number === undefined || number < least || number > most || !whole) {
        this.wrong = rest.set(
          name,
          sentence(
            `${typed.trim() === '' ? 'nothing' : typed.slice(0, 40).replace(/^-/, '−')} is not allowed; from ${formatGiven(least)} to ${formatGiven(most)}${name === 'months' ? ', whole' : ''}`,
          ),
        );
        return;
      }
      this.wrong = rest;
      this.#put({ ...inputs, [name]: number === own ? null : number }, name);
    };
    return html`<label class="blank ${wrong ? 'invalid' : ''}"><input
        type="text" inputmode="decimal" aria-label=${labels[name]} .style=${`width:${Math.max(isPrice ? 4 : 2, shown.length) + 1}ch`} .value=${shown} placeholder=${isPrice ? 'price' : nothing}
        aria-invalid=${wrong ? 'true' : nothing} aria-describedby=${wrong ? `wrong-${name}` : nothing} title=${wrong ?? nothing} @change=${change}
      /> ${unit}</label>${wrong ? html`<span class="field-error" id=${`wrong-${name}`}>${wrong}</span>` : nothing}`;
  }

  /** Where no price is typed: what a list has, with its date. */
  #listed({ scenario }: Report): TemplateResult | typeof nothing {
    const inputs = this.view.state.plan_inputs ?? standardInputs;
    const model = (this.view.state.document['model'] ?? scenario['model']) as { preset?: unknown } | undefined;
    const found = inputs.input_price === 0 && inputs.output_price === 0 ? listedPrice(model?.preset) : null;
    if (!found) return nothing;
    const { input, output, provider, of } = found;
    return html`<p class="plan-note">Listed for this model: $${formatGiven(input)} in and $${formatGiven(output)} out at ${provider}, in the middle of ${of} providers (${listedOn}).
      <button class="as-link" type="button" id="use-listed" @click=${() => this.#put({ ...inputs, input_price: input, output_price: output }, 'input_price')}>Use this price</button></p>`;
  }

  /** What the search varies besides, and whose prices it takes. */
  #varied({ scenario }: Report): TemplateResult {
    const experts = (scenario['model'] as { num_local_experts?: number } | undefined)?.num_local_experts ?? 0;
    return html`<p class="plan-varied">Vary also
      ${this.#tick('pipeline', 'pipeline parallel')}
      ${experts > 0 ? this.#tick('experts', 'expert parallel') : nothing}
      ${this.#tick('roles', 'prefill and decode apart')}
      ${this.#tick('limits', 'limits of the engine')}
      Prices of GPUs ${this.#prices()}
      ${this.#tick('energy', 'least energy instead of the lowest price')}</p>`;
  }

  #tick(name: 'pipeline' | 'experts' | 'roles' | 'limits' | 'energy', text: string): TemplateResult {
    const inputs = this.view.state.plan_inputs ?? standardInputs;
    const change = (event: Event) =>
      this.#put({ ...inputs, [name]: Number((event.target as HTMLInputElement).checked) }, name);
    return html`<label><input type="checkbox" .checked=${inputs[name] === 1} @change=${change} /> ${text}</label>`;
  }

  #prices(): TemplateResult {
    const inputs = this.view.state.plan_inputs ?? standardInputs;
    const change = (event: Event) =>
      this.#put({ ...inputs, prices: Number((event.target as HTMLSelectElement).value) }, 'prices');
    return html`<select aria-label=${labels.prices} .value=${String(inputs.prices)} @change=${change}>${priceLists.map(
      ([, name], index) => html`<option value=${index} ?selected=${index === inputs.prices}>${name}</option>`,
    )}</select>`;
  }

  #put(inputs: PlanInputs, name: InputName): void {
    history.replaceState(history.state, '', withInputs(location.href, inputs));
    this.plans?.put(inputs, askedBy[name]);
  }
}

const waits = html`<p class="quiet-text">Waits for the scenario’s own run.</p>`;
/** Why it waits to be asked. */
const offers: Partial<Record<PlanQuestion, string>> = {
  day: 'Each number of replicas takes an answer of its own: some seconds.',
  autoscale: 'Some forty runs over all of this load, cold starts among them: up to minutes.',
};
/** null: the search, when it is asked for. */
const askedBy: Readonly<Record<InputName, PlanQuestion | null>> = {
  rate: 'min-gpus',
  percent: 'growth',
  months: 'growth',
  spike: 'drill',
  spike_s: 'drill',
  input_price: 'cost',
  output_price: 'cost',
  night: 'day',
  quiet: 'autoscale',
  span_h: 'autoscale',
  pipeline: null,
  experts: null,
  roles: null,
  limits: null,
  energy: null,
  prices: 'cost',
};
const labels: Readonly<Record<InputName, string>> = {
  rate: 'Load',
  percent: 'Growth, % a month',
  months: 'Months ahead',
  spike: 'Times the load',
  spike_s: 'Seconds of it',
  input_price: '$ per million tokens of prompts',
  output_price: '$ per million tokens of answers',
  night: 'Load of the quietest hour, %',
  quiet: 'Load at the beginning and the end, %',
  span_h: 'Hours until it is there again',
  pipeline: 'Pipeline parallel',
  experts: 'Expert parallel',
  roles: 'Prefill and decode apart',
  limits: 'Limits of the engine',
  energy: 'Least energy instead of the lowest price',
  prices: 'Prices of GPUs',
};

addStyles(styles);
customElements.define('sc-plan', PlanElement);

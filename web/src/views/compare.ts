// The comparison: one setting, or the engine, a row for each of its values, all on the same requests; and two whole
// scenarios side by side. Loaded when it is opened.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { Report } from 'servecast';
import { formatGivenTime, formatPercent, formatTime, levelText, sentence } from '../lib/format';
import { addStyles } from '../lib/part';
import { isLost, sideOf } from '../lib/targets';
import { comparablePointers, isLadder } from '../state/compare';
import { enginePlace, enginesInWords, notCarried } from '../state/engines';
import { issueText } from '../state/fields';
import type { Variant } from '../state/store';
import styles from '../styles/compare.css?inline';
import type { ViewContext } from './context';
import {
  changeText,
  closestTarget,
  costHead,
  rowFigures,
  nameOfTarget,
  settingName,
  type Figure,
  type Target,
} from './compare-figures';
import { renderEngineReasons } from './compare-reasons';
import { renderBeside } from './compare-two';
import { chanceText, evidenceWords, isLatency, marginBar, rangeText } from './tiles';
import { renderSign } from './verdict';

type SortKey = 'value' | 'verdict' | 'closest' | 'evidence' | number;
const bestFirst: readonly Report['verdict']['state'][] = [
  'meets',
  'near',
  'no_slo',
  'not_judged',
  'misses',
  'overloaded',
  'does_not_fit',
];
const costIndex = rowFigures.findIndex(({ head }) => head === costHead);
const surest = ['calibrated', 'compared', 'untested', 'known_bad'];

/** What a row is sorted by; null goes last. */
function sortValue({ report }: Variant, key: SortKey, place: number): number | null {
  if (key === 'value') return place;
  if (!report) return null;
  if (key === 'verdict') return bestFirst.indexOf(report.verdict.state);
  if (key === 'evidence') return surest.indexOf(report.evidence.class);
  if (key === 'closest') return -(closestTarget(report)?.margin ?? -Infinity);
  return rowFigures[key]?.of(report) ?? null;
}

export class CompareElement extends PlainElement {
  static override properties = { view: { attribute: false }, sortBy: { state: true }, falling: { state: true } };
  declare view: ViewContext;
  /** null: nobody chose. GPUs are then sorted by cost, all else by value. */
  declare sortBy: SortKey | null;
  declare falling: boolean;

  constructor() {
    super();
    this.sortBy = null;
    this.falling = false;
  }

  get #sortKey(): SortKey {
    const pointer = this.view.state.compared?.pointer ?? '';
    return this.sortBy ?? (pointer.endsWith('/hardware/preset') ? costIndex : 'value');
  }

  protected override render(): TemplateResult {
    const { app, state } = this.view;
    const { compared } = state;
    const source = app.source;
    if (!source || !compared) return html`<p class="quiet-text">Empty: nothing was simulated.</p>`;
    const pointers = comparablePointers(source);
    const several = (state.shown?.outcome.report.pools?.length ?? 1) > 1;
    const current = compared.variants.find(({ isCurrent }) => isCurrent);
    const isOld = current !== undefined && current.document !== state.document;
    const option = (pointer: string) =>
      html`<option value=${pointer} ?selected=${pointer === compared.pointer}>${settingName(pointer, several)}</option>`;
    const numbers = pointers.filter(isLadder);
    const choices = pointers.filter((pointer) => !isLadder(pointer));
    // The questions that most people ask come before the groups.
    const first = choices.filter((pointer, index) => index === 0 || pointer === enginePlace);
    const byEngine = compared.pointer === enginePlace;
    return html`
      <p class="compare-by">
        <label>Compare every
          <select id="compare-by" @change=${(event: Event) => void app.compareBy((event.target as HTMLSelectElement).value)}>
            ${pointers.includes(compared.pointer) ? nothing : html`<option value="" selected>choose</option>`}
            ${first.map(option)}
            <optgroup label="Numbers">${numbers.map(option)}</optgroup>
            <optgroup label="Choices">${choices.filter((pointer) => !first.includes(pointer)).map(option)}</optgroup>
          </select>
        </label>
        ${
          compared.fewest === null
            ? nothing
            : html`<label>with
          <select id="compare-fewest" @change=${(event: Event) => void app.compareFewest((event.target as HTMLSelectElement).value === 'fewest')}>
            <option value="same" ?selected=${!compared.fewest}>as many as now</option>
            <option value="fewest" ?selected=${compared.fewest}>the fewest that keep all targets</option>
          </select>
        </label>`
        }
        ${pointers.includes(enginePlace) ? html`<button type="button" id="engines" aria-pressed=${byEngine} @click=${() => void app.compareBy(enginePlace)}>${enginesInWords(source.catalog)}?</button>` : nothing}
        <span class="quiet-text">on the same requests; ${byEngine ? 'same model, GPUs and pools, each engine by its own defaults' : 'all else as it is'}${isOld ? ' in the last scenario that ran' : ''}</span>
      </p>
      ${byEngine ? engineOwn(notCarried(source).map((pointer) => settingName(pointer, several))) : nothing}
      ${
        compared.variants.length === 0
          ? html`<p class="quiet-text">Empty: this scenario has no such choice.</p>`
          : this.#table(compared.variants, settingName(compared.pointer, several))
      }
      ${isLadder(compared.pointer) || byEngine ? this.#ladder(compared.variants, settingName(compared.pointer, several)) : nothing}
      ${byEngine ? renderEngineReasons(compared.variants, (policy) => void this.#beside(policy)) : nothing}
      ${compared.variants.map(({ name, report }) => (report?.departures ? rules(byEngine ? `Rules of ${name}` : `Where ${name} differs from the engine’s own rules`, report.departures) : nothing))}
      ${renderBeside(this.view)}
    `;
  }

  /** One engine beside the one in force, with all that is said of two scenarios. */
  async #beside(policy: string): Promise<void> {
    await this.view.app.compareWith(`${enginePlace}/${policy}`);
    this.querySelector('.two')?.scrollIntoView({ block: 'start' });
    this.querySelector<HTMLElement>('#compare-with')?.focus({ preventScroll: true });
  }

  #table(variants: readonly Variant[], label: string): TemplateResult {
    const current = variants.find(({ isCurrent }) => isCurrent);
    const order = variants
      .map((variant, place) => ({ variant, by: sortValue(variant, this.#sortKey, place), place }))
      .sort((a, b) => {
        if (a.by === null || b.by === null) return Number(a.by === null) - Number(b.by === null);
        return (this.falling ? b.by - a.by : a.by - b.by) || a.place - b.place;
      });
    return html`<div class="table-scroll" tabindex="0" role="region" aria-label="Comparison">
      <table id="compared">
        <caption>${label}. Small figures: difference from the current one. ${intervalsOf(variants)} Cost is of what is served within the targets.</caption>
        <thead><tr>
          ${this.#head('value', this.view.state.compared?.pointer === enginePlace ? 'Engine' : 'Value')} ${this.#head('verdict', 'Verdict')} ${this.#head('closest', 'Closest target')}
          ${rowFigures.map(({ head }, index) => this.#head(index, head, 'more'))}
          ${this.#head('evidence', 'Evidence')}
          <th scope="col"><span class="visually-hidden">Use it</span></th>
        </tr></thead>
        <tbody>${order.map(({ variant }) => this.#row(variant, current?.report ?? null))}</tbody>
      </table>
    </div>`;
  }

  #head(key: SortKey, text: string, kind = ''): TemplateResult {
    const isSorted = this.#sortKey === key;
    const direction = isSorted ? (this.falling ? 'descending' : 'ascending') : 'none';
    return html`<th scope="col" class=${kind} aria-sort=${direction}>
      <button type="button" class="sort" @click=${() => this.#sort(key)}>${text}<span aria-hidden="true">${isSorted ? (this.falling ? ' ▾' : ' ▴') : ''}</span></button>
    </th>`;
  }

  #sort(key: SortKey): void {
    this.falling = this.#sortKey === key && !this.falling;
    this.sortBy = key;
  }

  #row(variant: Variant, base: Report | null): TemplateResult {
    const { name, isCurrent, report, adapted, document } = variant;
    const use = isCurrent
      ? html`<span class="quiet-text">current</span>`
      : html`<button type="button" aria-label=${`Use ${name}`} @click=${() => this.view.app.useVariant(document)}>Use</button>`;
    return html`<tr class=${isCurrent ? 'current' : ''}>
      <th scope="row">${name}${isCurrent ? html`<br /><small>yours, as it is</small>` : nothing}${adapted ? html`<br /><small>${adapted}</small>` : nothing}</th>
      ${
        report
          ? html`<td class="state">${renderSign(report.verdict.state)}${chanceOf(report)}</td>
            <td class="closest">${closest(report)}</td>
            ${rowFigures.map((figure) => cell(figure, report, isCurrent ? null : base))}
            <td class="evidence"><span class="mark ${report.evidence.class}" title=${report.evidence.sentence}>${evidenceWords[report.evidence.class]}</span></td>`
          : this.#unknown(variant)
      }
      <td class="use">${report ? use : nothing}</td>
    </tr>`;
  }

  #unknown({ issues, isSought }: Variant): TemplateResult {
    const { run, shown } = this.view.state;
    const pending =
      run.kind === 'running'
        ? 'Waits for the scenario’s own run.'
        : shown?.completeness === 'final'
          ? isSought
            ? 'Looking for the fewest…'
            : 'Simulating…'
          : 'Not simulated.';
    if (issues.length === 0) return html`<td class="why" colspan=${rowFigures.length + 3}>${pending}</td>`;
    const unfit = issues.some(({ kind }) => kind === 'does_not_fit');
    return html`<td class="state">${renderSign(unfit ? 'does_not_fit' : 'problem')}</td>
      <td class="why" colspan=${rowFigures.length + 2}>${issues.map(unfit ? ({ message }) => sentence(message) : refusal).join(' ')}</td>`;
  }

  /** A bar a value: the share of its limit that its own closest target takes; a click uses the value. */
  #ladder(variants: readonly Variant[], label: string): TemplateResult | typeof nothing {
    const rungs = variants.map((variant) => ({ variant, target: variant.report && closestTarget(variant.report) }));
    const drawn = rungs.filter(({ target }) => target).length;
    if (drawn < (isLadder(this.view.state.compared?.pointer ?? '') ? 1 : 2)) return nothing;
    const top = Math.max(1.3, ...rungs.map(({ target }) => Math.min(2, (target && shareOfLimit(target)) ?? 0)));
    return html`<section class="card ladder" aria-label=${`${label}: the closest target by value`}>
      <h3>${label} <span class="quiet-text">the closest target of each value; the line is its limit</span></h3>
      <div class="rungs" .style=${`--limit:${(100 / top).toFixed(2)}%`}>
        ${rungs.map(({ variant, target }) => this.#rung(variant, target, top))}
      </div>
    </section>`;
  }

  #rung({ name, isCurrent, report, document }: Variant, target: Target | null, top: number): TemplateResult {
    const share = target && shareOfLimit(target);
    const beyond = target !== null && (target.unbounded || isLost(target));
    const height = beyond ? 100 : Math.min(100, (100 * (share ?? 0)) / top);
    const value = target?.metric === 'attainment' ? formatPercent(target.share) : formatTime(target?.value_ms);
    const text = target?.unbounded ? 'no bound' : beyond ? 'no answer' : share === null ? '' : value;
    return html`<button type="button" class="rung ${isCurrent ? 'current' : ''}" title=${target ? `${nameOfTarget(target)} ${valueText(target)}` : ''} ?disabled=${!report || isCurrent} @click=${() => this.view.app.useVariant(document)}>
      <span class="shaft"><span class="bar is-${report?.verdict.state ?? 'empty'}" .style=${`height:${height.toFixed(1)}%`}><b>${text}</b></span></span>
      <span>${name}</span>
      ${target ? html`<small>${nameOfTarget(target)}</small>` : nothing}
      ${report ? renderSign(report.verdict.state) : html`<small>${report === null ? 'not run' : ''}</small>`}
    </button>`;
  }
}

/** The probability that all targets are met, where the verdict is one of latencies. */
function chanceOf({ verdict }: Report): TemplateResult | typeof nothing {
  const { probability, state } = verdict;
  if (probability === undefined || !['meets', 'near', 'misses'].includes(state)) return nothing;
  return html`<small title="The probability that all targets are met">${chanceText(probability)}</small>`;
}

/** 1: it lies on its limit. null: nothing is known. */
function shareOfLimit({ margin, unbounded }: Target): number | null {
  return unbounded || margin === null ? null : 1 - margin;
}

function closest(report: Report): TemplateResult | string {
  const target = closestTarget(report);
  if (!target) return 'no limit is set';
  const { verdict } = report;
  const reason =
    ['meets', 'no_slo'].includes(verdict.state) || verdict.limit === ''
      ? nothing
      : html`<br /><small>${sentence(verdict.limit)}</small>`;
  const bar =
    isLatency(target) && target.value_ms !== null
      ? html`<span data-side=${sideOf(target) ?? ''}>${marginBar(target)}</span>`
      : nothing;
  return html`${bar}${nameOfTarget(target)} ${valueText(target)}${reason}`;
}

function valueText(target: Target): string {
  const { value_ms: value, limit_ms: limit, unbounded, share, limit_share: least } = target;
  const { low, high } = target.band ?? target;
  if (limit === null) return `${formatPercent(share)}, at least ${formatPercent(least)}`;
  if (unbounded) return `no bound, limit ${formatGivenTime(limit)}`;
  if (isLost(target)) return `${formatPercent(target.unserved_share)} got no answer, limit ${formatGivenTime(limit)}`;
  const range = low === null || value === null ? '' : rangeText(low, high, value);
  const interval = range === '' ? '' : ` (${range})`;
  const [found, most] = [formatTime(value), formatGivenTime(limit)];
  const [number, unit] = found.split(/\s/);
  return `${unit === most.split(/\s/)[1] ? number : found} of ${most}${interval}`;
}

function intervalsOf(variants: readonly Variant[]): string {
  const bands = variants.flatMap(({ report }) => report?.slo.flatMap(({ band }) => band ?? []) ?? []);
  if (bands.length === 0) return 'Intervals are of sampling alone.';
  return `In brackets: ${levelText(bands[0]?.level ?? 0)} bands, sampling and model error${variants.some(({ report, isBanded }) => report && !isBanded) ? ', where they are known so far' : ''}.`;
}

function cell({ head, of, format }: Figure, report: Report, base: Report | null): TemplateResult {
  const value = of(report);
  const before = base && of(base);
  const change = value === null || before === null || before === 0 ? null : value / before - 1;
  const noPrice = head === costHead && report.cost_per_million_output_tokens === null;
  return html`<td class=${head === costHead ? 'more cost' : 'more'} data-head=${head}>${noPrice ? 'no price' : format(value)}${change === null ? nothing : html`<br /><small>${changeText(change)}</small>`}</td>`;
}

/** Settings of the scenario that the other rows do not have. */
function engineOwn(settings: readonly string[]): TemplateResult | typeof nothing {
  return settings.length === 0
    ? nothing
    : html`<p class="quiet-text" id="engine-own">Not carried over: ${settings.join(', ')}. Every other engine has its own.</p>`;
}

/** Names the setting; leaves out what was found where that is an object or a list. */
function refusal({ path, message }: Variant['issues'][number]): string {
  return issueText({ path, message: message.replace(/^found [[{].*?, allowed /, 'allowed ') });
}

function rules(heading: string, sentences: readonly string[]): TemplateResult {
  return html`<h3>${heading}</h3>
    <ul class="plain-list">${sentences.map((rule) => html`<li>${sentence(rule)}</li>`)}</ul>`;
}

addStyles(styles);
customElements.define('sc-compare', CompareElement);

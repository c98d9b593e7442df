// The rate in the words that people have for it: requests a minute, output tokens a second, users at a time. What is
// typed there changes the rate. Loaded after the first verdict.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import { live } from 'lit/directives/live.js';
import type { Report } from 'servecast';
import { formatGiven, readNumber } from '../lib/format';
import { addStyles } from '../lib/part';
import { perRequestPerS, type LoadUnit } from '../lib/load-units';
import { getAt } from '../state/document';
import { turnsOf } from '../state/fields';
import { ratePointer } from '../state/rate';
import styles from '../styles/load-as.css?inline';
import type { ViewContext } from './context';

const units: readonly (readonly [LoadUnit, string, string])[] = [
  ['rpm', 'RPM', 'Requests a minute'],
  ['tokens', 'tok/s', 'Output tokens a second, by the mean answer of the shown run'],
  ['users', 'users', 'Requests under way at a time, by Little’s law: the rate times the mean E2E of the shown run'],
];

export class LoadAsElement extends PlainElement {
  static override properties = { view: { attribute: false }, unit: { state: true }, typed: { state: true } };
  declare view: ViewContext;
  declare unit: LoadUnit;
  declare typed: string | null;

  constructor() {
    super();
    this.unit = 'rpm';
    this.typed = null;
  }

  get #report(): Report | null {
    return this.view.state.shown?.outcome.report ?? null;
  }

  protected override render(): TemplateResult | typeof nothing {
    const { document, shown } = this.view.state;
    const rate =
      getAt(document, ratePointer) ?? getAt((shown?.outcome.report.scenario ?? {}) as typeof document, ratePointer);
    const { source } = this.view.app;
    // Of sessions the rate is another one.
    if (typeof rate !== 'number' || !source || turnsOf(source) > 1) return nothing;
    const factor = perRequestPerS(this.unit, this.#report);
    const text = factor === null ? '' : formatGiven(Number((rate * factor).toPrecision(3)));
    const title = units.find(([unit]) => unit === this.unit)?.[2] ?? '';
    return html`<div class="field line">
      <div class="name"><label for="load-as">the same as</label></div>
      <div class="control"><div class="number">
        <input id="load-as" type="text" inputmode="decimal" autocomplete="off" title=${title} aria-label=${`Load, ${title}`} ?disabled=${factor === null}
          .value=${live(this.typed ?? text)} @input=${(event: Event) => this.#put((event.target as HTMLInputElement).value, factor)} @blur=${() => (this.typed = null)} />
        <select class="unit" aria-label="Unit of the load" .value=${this.unit} @change=${(event: Event) => (this.unit = (event.target as HTMLSelectElement).value as LoadUnit)}>
          ${units.map(([unit, name]) => html`<option value=${unit} ?selected=${unit === this.unit}>${name}</option>`)}
        </select>
      </div></div>
    </div>`;
  }

  #put(text: string, factor: number | null): void {
    this.typed = text;
    const value = readNumber(text);
    if (value !== undefined && value > 0 && factor !== null)
      this.view.app.setValue(ratePointer, Number((value / factor).toPrecision(6)));
  }
}

addStyles(styles);
customElements.define('sc-load-as', LoadAsElement);

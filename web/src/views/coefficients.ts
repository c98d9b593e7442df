// Coefficients of a latency model: those that were published, searched by model and GPU, or those of a
// file. What they are and what to beware of comes from the engine.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { CoefficientSet } from 'servecast';
import { countOf, sentence } from '../lib/format';
import { addStyles } from '../lib/part';
import styles from '../styles/coefficients.css?inline';
import type { ViewContext } from './context';

const mostShown = 30;

class CoefficientsElement extends PlainElement {
  static override properties = { view: { attribute: false }, query: { state: true } };
  declare view: ViewContext;
  declare query: string;

  constructor() {
    super();
    this.query = '';
  }

  protected override render(): TemplateResult {
    const { app, state } = this.view;
    const { coefficients } = state;
    return html`<div class="trace-box" id="coefficients">
      <h3>Step times that were fitted</h3>
      ${coefficients.kind === 'failed' ? html`<p class="field-error" role="alert">${coefficients.message}</p>` : nothing}
      ${coefficients.kind === 'listed' ? this.#list(coefficients.name, coefficients.sets, coefficients.chosen) : nothing}
      <div class="button-row">
        <button type="button" ?disabled=${coefficients.kind === 'reading'} @click=${() => void app.coefficients().then((sets) => sets.list())}>${coefficients.kind === 'reading' ? 'Reading…' : 'Published coefficients'}</button>
        <button type="button" @click=${() => this.querySelector<HTMLInputElement>('input[type=file]')?.click()}>Open a coefficient file</button>
        <input type="file" accept=".json" hidden aria-label="Coefficient file" @change=${(event: Event) => this.#picked(event)} />
      </div>
    </div>`;
  }

  #list(name: string, sets: readonly CoefficientSet[], chosen: CoefficientSet | null): TemplateResult {
    const words = this.query.toLowerCase().split(/\s+/).filter(Boolean);
    const found = sets.filter(({ id }) => words.every((word) => id.toLowerCase().includes(word)));
    return html`
      ${chosen ? html`<p class="long-name"><strong>${chosen.id}</strong></p>${chosen.warnings.map((warning) => html`<p class="field-error">${sentence(warning)}</p>`)}` : nothing}
      ${
        sets.length > 1
          ? html`<p class="quiet-text">${name}: ${countOf(sets.length, 'set')}, those for this model and GPU first.</p>
            <input type="text" aria-label="Search coefficients by model and GPU" placeholder="Model, GPU, tp2" autocomplete="off" spellcheck="false" .value=${this.query} @input=${(event: Event) => (this.query = (event.target as HTMLInputElement).value)} />
            <ul class="sets" aria-label="Coefficient sets">
              ${found.slice(0, mostShown).map((set) => html`<li><button class="quiet" type="button" aria-pressed=${set === chosen} @click=${() => void this.view.app.coefficients().then((sets) => sets.take(set))}>${set.id}</button>${set.fits ? html` <span class="tag">fits</span>` : nothing}${set.faster_than_light ? html` <span class="tag warn">faster than light</span>` : nothing}</li>`)}
            </ul>
            ${found.length > mostShown ? html`<p class="quiet-text">And ${found.length - mostShown} more: search.</p>` : nothing}
            ${found.length === 0 ? html`<p class="quiet-text">No set has these words.</p>` : nothing}`
          : nothing
      }`;
  }

  #picked(event: Event): void {
    const input = event.target as HTMLInputElement;
    const file = input.files?.[0];
    input.value = '';
    if (file) void this.view.app.coefficients().then((sets) => sets.open(file));
  }
}

addStyles(styles);
customElements.define('sc-coefficients', CoefficientsElement);

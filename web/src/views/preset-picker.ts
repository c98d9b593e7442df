// The scenario picker in the header: a combobox (type to search, arrows, Enter, Escape) over the
// scenario presets with their one-sentence descriptions; a search finds GPUs and models for the open one, too.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import { live } from 'lit/directives/live.js';
import type { Preset } from 'servecast';

/** Presets of one kind, and what choosing one does. */
export interface Offer {
  readonly presets: readonly Preset[];
  /** Beside the name, of those whose description says nothing of what a click does; "": the description. */
  readonly note: string;
  choose(id: string): void;
}

interface Match {
  readonly preset: Preset;
  readonly offer: Offer;
  readonly rank: number;
}

/** Every word begins one of the name (0), or of what is said of it (1), or is part of the name (2), or of any (3), or is not there. */
export function rankOf({ id, name, description, document }: Preset, words: readonly string[]): number {
  const named = `${id} ${name}`.toLowerCase();
  const whole = JSON.stringify(document ?? '').toLowerCase();
  const said = `${named} ${description.toLowerCase()}${whole.includes('"prefill"') ? ' pd disaggregated' : ''}`;
  const begins = (text: string) =>
    words.every((word) => ` ${text}`.replaceAll(/[^a-z0-9.]+/g, ' ').includes(` ${word}`));
  const has = (text: string) => words.every((word) => text.includes(word));
  const found = [begins(named), begins(said), has(named), has(`${said} ${whole}`)].indexOf(true);
  return found < 0 ? 4 : found;
}
/** Of presets that are put into the scenario: only their names are searched. */
const byName: readonly number[] = [0, 2];

export class PresetPicker extends PlainElement {
  static override properties = {
    offers: { attribute: false },
    current: { attribute: false },
    currentId: { attribute: false },
    query: { state: true },
    active: { state: true },
    open: { state: true },
  };
  /** Presets of scenarios, then one's own, which stand above them without a search; the others, which have notes, answer only
      to a search for their names. */
  declare offers: readonly Offer[];
  declare current: string;
  declare currentId: string | null;
  declare query: string | null;
  declare active: number;
  declare open: boolean;

  constructor() {
    super();
    this.offers = [];
    this.current = '';
    this.currentId = null;
    this.query = null;
    this.active = 0;
    this.open = false;
  }

  focusSearch(): void {
    const input = this.querySelector('input');
    input?.focus();
    input?.select();
    this.#show();
  }

  get #matches(): readonly Match[] {
    const words = (this.query ?? '').toLowerCase().split(/\s+/).filter(Boolean);
    const scenarios = this.offers.filter(({ note }) => note === '');
    return (words.length > 0 ? this.offers : scenarios.reverse()).flatMap((offer) =>
      offer.presets
        .map((preset) => ({ preset, offer, rank: rankOf(preset, words) }))
        .filter(({ rank }) => (offer.note === '' ? rank < 4 : byName.includes(rank)))
        .sort((a, b) => a.rank - b.rank),
    );
  }

  protected override render(): TemplateResult {
    const matches = this.#matches;
    return html`
      <div class="picker">
        <input
          type="text"
          role="combobox"
          aria-label="Scenario preset"
          aria-expanded=${this.open}
          aria-controls="preset-list"
          aria-autocomplete="list"
          aria-activedescendant=${this.open && matches[this.active] ? `preset-${this.active}` : nothing}
          autocomplete="off"
          spellcheck="false"
          title=${this.current}
          .value=${live(this.query ?? this.current)}
          @focus=${(event: Event) => (event.target as HTMLInputElement).select()}
          @click=${() => this.#show()}
          @input=${(event: Event) => this.#search((event.target as HTMLInputElement).value)}
          @keydown=${(event: KeyboardEvent) => this.#key(event)}
          @blur=${() => this.#close()}
        />
        <span class="chevron" aria-hidden="true"></span>
        <ul id="preset-list" role="listbox" aria-label="Scenario presets" ?hidden=${!this.open}>
          ${matches.map((match, index) => this.#option(match, index))}
          ${matches.length === 0 ? html`<li role="option" aria-disabled="true" aria-selected="false" class="quiet-text">No preset has these words.</li>` : nothing}
        </ul>
      </div>
    `;
  }

  #option({ preset, offer }: Match, index: number): TemplateResult {
    return html`<li
      id="preset-${index}"
      role="option"
      aria-selected=${preset.id === this.currentId}
      class=${index === this.active ? 'active' : ''}
      @mousedown=${(event: Event) => event.preventDefault()}
      @click=${() => this.#pick(offer, preset)}
    >
      <b>${preset.name}</b><span>${offer.note || preset.description}</span>
    </li>`;
  }

  #show(): void {
    if (this.open) return;
    this.open = true;
    this.active = Math.max(
      0,
      this.#matches.findIndex(({ preset }) => preset.id === this.currentId),
    );
  }

  #search(text: string): void {
    this.query = text;
    this.active = 0;
    this.open = true;
  }

  #close(): void {
    this.open = false;
    this.query = null;
  }

  #pick(offer: Offer, preset: Preset): void {
    this.#close();
    this.querySelector('input')?.blur();
    offer.choose(preset.id);
  }

  #key(event: KeyboardEvent): void {
    const count = this.#matches.length;
    switch (event.key) {
      case 'ArrowDown':
      case 'ArrowUp': {
        event.preventDefault();
        if (!this.open) {
          this.#show();
          return;
        }
        const step = event.key === 'ArrowDown' ? 1 : -1;
        this.active = count === 0 ? 0 : (this.active + step + count) % count;
        return;
      }
      case 'Enter': {
        const match = this.#matches[this.active];
        if (this.open && match) this.#pick(match.offer, match.preset);
        return;
      }
      case 'Escape':
        this.#close();
        this.querySelector('input')?.blur();
        return;
    }
  }
}

customElements.define('sc-preset-picker', PresetPicker);

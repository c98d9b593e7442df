// The scenario picker in the header: a combobox (type to search, arrows, Enter, Escape) over the
// scenario presets with their one-sentence descriptions.
import { LitElement, html, nothing, type TemplateResult } from 'lit';
import { live } from 'lit/directives/live.js';
import type { Preset } from 'servecast';

export class PresetPicker extends LitElement {
  static override properties = {
    presets: { attribute: false },
    current: { attribute: false },
    currentId: { attribute: false },
    choose: { attribute: false },
    query: { state: true },
    active: { state: true },
    open: { state: true },
  };
  declare presets: readonly Preset[];
  declare current: string;
  declare currentId: string | null;
  declare choose: (id: string) => void;
  declare query: string | null;
  declare active: number;
  declare open: boolean;

  constructor() {
    super();
    this.presets = [];
    this.current = '';
    this.currentId = null;
    this.choose = () => undefined;
    this.query = null;
    this.active = 0;
    this.open = false;
  }

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  focusSearch(): void {
    const input = this.querySelector('input');
    input?.focus();
    input?.select();
  }

  get #matches(): readonly Preset[] {
    const words = (this.query ?? '').toLowerCase().split(/\s+/).filter(Boolean);
    return this.presets.filter((preset) => {
      const text = `${preset.id} ${preset.name} ${preset.description}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
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
          ${matches.map((preset, index) => this.#option(preset, index))}
          ${matches.length === 0 ? html`<li role="option" aria-disabled="true" aria-selected="false" class="quiet-text">No preset has these words.</li>` : nothing}
        </ul>
      </div>
    `;
  }

  #option(preset: Preset, index: number): TemplateResult {
    return html`<li
      id="preset-${index}"
      role="option"
      aria-selected=${preset.id === this.currentId}
      class=${index === this.active ? 'active' : ''}
      @mousedown=${(event: Event) => event.preventDefault()}
      @click=${() => this.#pick(preset)}
    >
      <b>${preset.name}</b><span>${preset.description}</span>
    </li>`;
  }

  #show(): void {
    if (this.open) return;
    this.open = true;
    this.active = Math.max(
      0,
      this.#matches.findIndex((preset) => preset.id === this.currentId),
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

  #pick(preset: Preset): void {
    this.#close();
    this.querySelector('input')?.blur();
    this.choose(preset.id);
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
        const preset = this.#matches[this.active];
        if (this.open && preset) this.#pick(preset);
        return;
      }
      case 'Escape':
        this.#close();
        return;
    }
  }
}

customElements.define('sc-preset-picker', PresetPicker);

// One field of the form, made from its catalogue entry: control by type, unit, range when the value
// is outside it, mark when it is the default, reset, help. Keeps only the text being typed.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import { live } from 'lit/directives/live.js';
import type { Field, Issue } from 'servecast';
import { formatGiven, formatNumber, head, readNumber, sentence } from '../lib/format';
import type { App } from '../state/app';
import { isObject, lastOf, type Json } from '../state/document';
import { stepped } from '../lib/steps';
import { inTurnIf } from '../lib/turns';
import { rangeText, unitOf, type Choice } from '../state/fields';

// Models that people begin to serve now, by the names of their presets.
const currentModels =
  /^(deepseek-v(3\.2|4)|gemma-4|glm-5|gpt-oss|kimi-k(2\.|3)|mimo|minimax-m|nemotron-3|qwen3\.[5-9]|step-3)/;
// Types that are typed as JSON.
const JSON_KINDS: Readonly<Record<string, string>> = { list: 'a JSON list', object: 'a JSON object' };

export interface FieldModel {
  readonly pointer: string;
  readonly field: Field;
  readonly label: string;
  /** In force: own, inherited or default. */
  readonly value: Json | undefined;
  /** What a reset returns to. */
  readonly base: Json | undefined;
  readonly isChanged: boolean;
  readonly isDefault: boolean;
  /** Of a pool's own: what it has when it says nothing, in words; a reset returns to that. Null elsewhere. */
  readonly inherited: string | null;
  readonly issues: readonly Issue[];
  readonly draft: string | undefined;
  /** Of those choices that the catalogue explains. */
  readonly choices: readonly Choice[];
  /** What the value means, said below the field; may be "". */
  readonly hint: string;
  readonly slider: boolean;
  /** Where the slider has a tick: the most that the targets allow. */
  readonly held: number | null;
  /** A value that every scenario shares, around which the slider spans; null when there is none. */
  readonly anchor: number | null;
  /** The label is the document's own key (vLLM's name of the knob), set in a monospaced face. */
  readonly verbatim: boolean;
  /** As it stands behind the number. */
  readonly unit: string;
  /** What the label opens below the field; null: nothing. */
  readonly more: Disclosure | null;
}

export interface Disclosure {
  readonly open: boolean;
  readonly title: string;
  toggle(): void;
}

const sliderSteps = 1000;
/** A slider spans the decades around its anchor, one more on each side; the number field takes the rest. */
const decadesBeside = 1;

export class FieldElement extends PlainElement {
  static override properties = {
    app: { attribute: false },
    model: { attribute: false },
    idPrefix: { attribute: false },
    typed: { state: true },
    helpOpen: { state: true },
    typical: { state: true },
  };
  declare app: App;
  declare model: FieldModel;
  declare idPrefix: string;
  declare typed: string | null;
  declare helpOpen: boolean;
  declare typical: string;

  constructor() {
    super();
    this.idPrefix = '';
    this.typed = null;
    this.helpOpen = false;
    this.typical = '';
  }

  get #id(): string {
    return `${this.idPrefix}${this.model.pointer}`;
  }

  /** By its place (/slo/0/limit_ms), for jumping to it from a message. */
  focusControl(): void {
    this.querySelector<HTMLElement>('input:not([type=range]), select, textarea')?.focus();
  }

  /** At first in its turn: a form has many. */
  protected override scheduleUpdate(): Promise<void> | undefined {
    return inTurnIf(!this.hasUpdated, () => super.scheduleUpdate());
  }

  protected override render(): TemplateResult {
    const { model } = this;
    const problems = this.#problems();
    const invalid = problems.length > 0;
    const layout = model.verbatim || model.field.type in JSON_KINDS ? 'stack' : 'line';
    const { isChanged, inherited, verbatim } = model;
    const saysSo = model.value === undefined && inherited !== null;
    const tag =
      verbatim && !isChanged && (model.isDefault || inherited !== null) && !saysSo
        ? html`<span class="tag">${inherited === null ? 'default' : 'inherited'}</span>`
        : nothing;
    return html`
      <div class="field ${layout} ${isChanged ? 'changed' : ''} ${invalid ? 'invalid' : ''}">
        <div class="name">${this.#label()}</div>
        ${model.slider ? this.#slider() : nothing}
        <div class="control">${this.#control(invalid)}</div>
        <div class="aside">
          ${isChanged ? this.#resetButton() : tag}
          ${model.field.help === '' ? nothing : this.#helpButton()}
        </div>
        ${model.hint === '' || invalid ? nothing : html`<p class="help">${model.hint}</p>`}
        ${invalid ? html`<p class="field-error" id="${this.#id}-error">${problems.join(' ')}</p>` : nothing}
        ${this.helpOpen ? this.#help() : nothing}
      </div>
    `;
  }

  #label(): TemplateResult {
    const { label, verbatim, pointer, more } = this.model;
    if (more)
      return html`<button class="more" type="button" aria-expanded=${more.open} title=${more.title} @click=${more.toggle}>${label}</button>`;
    return html`<label class=${verbatim ? 'verbatim' : ''} for=${this.#id} title=${lastOf(pointer)}>${label}</label>`;
  }

  #problems(): string[] {
    const { field, issues, draft } = this.model;
    if (draft !== undefined)
      return [`“${draft}” is not ${JSON_KINDS[field.type] ?? 'a number'}.`, rangeText(field)].filter(Boolean);
    if (issues.length === 0) return [];
    const messages = issues.map((issue) => sentence(issue.message));
    // The engine's sentence mostly says what is allowed; when it does not, the catalogue does.
    return messages.some((message) => /allowed/i.test(message))
      ? messages
      : [...messages, rangeText(field)].filter(Boolean);
  }

  #resetButton(): TemplateResult {
    const { base, label, inherited } = this.model;
    const target =
      inherited !== null ? `the inherited ${inherited}` : base === undefined ? 'the default' : this.#words(base);
    return html`<button class="reset" type="button" title="Reset to ${target}" aria-label="Reset ${label} to ${target}" @click=${() => this.#reset()}>
      ↺
    </button>`;
  }

  #reset(): void {
    this.typed = null;
    if (this.model.inherited === null) this.app.resetValue(this.model.pointer);
    else this.app.inheritValue(this.model.pointer);
  }

  #words(value: Json): string {
    const choice = this.model.choices.find((entry) => entry.id === value);
    if (choice) return choice.name;
    const text =
      typeof value === 'object' ? 'its former table' : typeof value === 'number' ? formatGiven(value) : String(value);
    return unitOf(this.model.field) === '' ? text : `${text} ${unitOf(this.model.field)}`;
  }

  #helpButton(): TemplateResult {
    return html`<button
      class="help-button"
      type="button"
      aria-label="About ${this.model.label}"
      aria-expanded=${this.helpOpen}
      @click=${() => this.#toggleHelp()}
    >
      ?
    </button>`;
  }

  #toggleHelp(): void {
    this.helpOpen = !this.helpOpen;
    // What is typical comes when somebody asks; without a connection the catalogue's words stand alone.
    if (this.helpOpen && this.typical === '')
      void import('./typical').then(
        ({ typicalOf }) => (this.typical = typicalOf(this.model.field.path)),
        () => undefined,
      );
  }

  #help(): TemplateResult {
    const { field, pointer } = this.model;
    const choices = this.model.choices.filter(({ group, description }) => group === undefined && description !== '');
    const standard = field.default === null ? '' : `Default: ${this.#words(field.default as Json)}.`;
    return html`<p class="help">${sentence(field.help)}${this.typical === '' ? nothing : html` <span class="typical">${this.typical}</span>`} ${[rangeText(field), standard].filter(Boolean).join(' ')} <code>${pointer}</code></p>
      ${choices.length === 0 ? nothing : html`<ul class="help">${choices.map((choice) => html`<li><b>${choice.name}</b>: ${sentence(choice.description)}</li>`)}</ul>`}`;
  }

  #control(invalid: boolean): TemplateResult {
    switch (this.model.field.type) {
      case 'choice':
        return this.#choice(invalid);
      case 'boolean':
        return this.#boolean(invalid);
      case 'integer':
      case 'number':
        return this.#number(invalid);
      case 'text':
        return this.#input(invalid, 'text', (text) => text);
      case 'list':
        return this.#json(invalid, (value) => Array.isArray(value));
      case 'object':
        return this.#json(invalid, (value) => isObject(value));
    }
  }

  #describedBy(invalid: boolean): string | typeof nothing {
    return invalid ? `${this.#id}-error` : nothing;
  }

  #choice(invalid: boolean): TemplateResult {
    const { field, value, choices, pointer, inherited } = this.model;
    const current = value === undefined || value === null ? '' : String(value);
    const listed = field.choices.length > 0 ? field.choices : choices.map((choice) => choice.id);
    // A pool's GPU or engine: none of its own is a choice, too.
    const known = inherited !== null && pointer.endsWith('/preset') ? ['', ...listed] : listed;
    const apart = choices.filter((choice) => choice.group !== undefined && !known.includes(choice.id));
    const options =
      known.includes(current) || apart.some((choice) => choice.id === current) ? known : [current, ...known];
    const item = (option: string) =>
      html`<option value=${option} title=${explanation(option, choices)} ?selected=${option === current}>${textOf(option)}</option>`;
    const textOf = (option: string) =>
      option === '' && inherited !== null ? `${inherited}, as above` : optionText(option, choices);
    const choose = (option: string) =>
      option === '' ? this.app.inheritValue(pointer) : this.app.setValue(pointer, option, 'dragging');
    return html`<select
      id=${this.#id}
      aria-label=${this.model.label}
      title=${[textOf(current), explanation(current, choices)].filter(Boolean).join(': ')}
      aria-invalid=${invalid}
      aria-describedby=${this.#describedBy(invalid)}
      .value=${live(current)}
      @change=${(event: Event) => choose((event.target as HTMLSelectElement).value)}
    >
      ${
        pointer === '/model/preset'
          ? this.#models([...options, ...apart.map(({ id }) => id)], item)
          : [
              options.map(item),
              this.#group(
                apart[0]?.group ?? '',
                apart.map(({ id }) => item(id)),
              ),
            ]
      }
    </select>`;
  }

  #group(label: string, items: readonly TemplateResult[]): TemplateResult | typeof nothing {
    return items.length === 0 ? nothing : html`<optgroup label=${head(label)}>${items}</optgroup>`;
  }

  /** What people ask for now stands first. */
  #models(ids: readonly string[], item: (id: string) => TemplateResult): unknown {
    const group = (label: string, is: boolean) =>
      this.#group(
        label,
        ids
          .filter((id) => id !== '' && currentModels.test(id) === is)
          .sort()
          .map(item),
      );
    return [ids.includes('') ? item('') : nothing, group('current', true), group('earlier', false)];
  }

  #boolean(invalid: boolean): TemplateResult {
    const { value, pointer } = this.model;
    return html`<input
      id=${this.#id}
      type="checkbox"
      aria-invalid=${invalid}
      aria-describedby=${this.#describedBy(invalid)}
      .checked=${live(value === true)}
      @change=${(event: Event) => this.app.setValue(pointer, (event.target as HTMLInputElement).checked, 'dragging')}
    />`;
  }

  #number(invalid: boolean): TemplateResult {
    return html`<div class="number">
      ${this.#input(invalid, 'decimal', (text) => readNumber(text))}<span class="unit">${this.model.unit}</span>
    </div>`;
  }

  #input(invalid: boolean, mode: 'decimal' | 'text', read: (text: string) => Json | undefined): TemplateResult {
    const { value, draft, pointer, field } = this.model;
    const current =
      value === undefined || value === null ? '' : typeof value === 'number' ? formatGiven(value) : String(value);
    // Separators are for reading: while it is edited a number is plain.
    const onFocus = (event: Event) => {
      if (draft !== undefined || typeof value !== 'number' || Math.abs(value) < 1000) return;
      const input = event.target as HTMLInputElement;
      this.typed = String(value);
      // At once, or what the focus selected would be lost with the next rendering.
      input.value = this.typed;
      input.select();
    };
    const onInput = (event: Event) => {
      const text = (event.target as HTMLInputElement).value;
      this.typed = text;
      if (text.trim() === '' && !field.required && mode === 'decimal') return this.app.clearValue(pointer);
      const parsed = read(text);
      if (parsed === undefined) this.app.setDraft(pointer, text);
      else this.app.setValue(pointer, parsed);
    };
    return html`<input
      id=${this.#id}
      type="text"
      aria-label=${unitOf(field) === '' ? this.model.label : `${this.model.label}, ${unitOf(field)}`}
      inputmode=${mode}
      autocomplete="off"
      spellcheck="false"
      aria-invalid=${invalid}
      aria-describedby=${this.#describedBy(invalid)}
      .value=${live(this.typed ?? draft ?? current)}
      @focus=${onFocus}
      @input=${onInput}
      @keydown=${(event: KeyboardEvent) => this.#step(event)}
      @blur=${() => (this.typed = null)}
    />`;
  }

  /** The arrows up and down change a number; nothing else does, least of all a wheel. */
  #step(event: KeyboardEvent): void {
    const { draft, pointer, field } = this.model;
    // A key may come before the page has drawn what the one before did.
    const value = this.typed !== null && draft === undefined ? Number(this.typed) : this.model.value;
    const direction = event.key === 'ArrowUp' ? 1 : event.key === 'ArrowDown' ? -1 : null;
    const isWhole = field.type === 'integer';
    if (direction === null || typeof value !== 'number' || draft !== undefined || !(isWhole || field.type === 'number'))
      return;
    event.preventDefault();
    const { minimum, maximum } = field;
    const next = stepped(value, direction, {
      isWhole,
      minimum,
      maximum,
      doubles: lastOf(pointer) === 'tensor_parallel',
    });
    this.typed = String(next);
    this.app.setValue(pointer, next, 'dragging');
  }

  /** A table: one item a line, as JSON. */
  #json(invalid: boolean, fits: (value: Json) => boolean): TemplateResult {
    const { value, draft, pointer, label } = this.model;
    const current = value === undefined || value === null ? '' : JSON.stringify(value).replaceAll('],[', '],\n[');
    const onInput = (event: Event) => {
      const text = (event.target as HTMLTextAreaElement).value;
      this.typed = text;
      const parsed = readJson(text);
      if (parsed === undefined || !fits(parsed)) this.app.setDraft(pointer, text);
      else this.app.setValue(pointer, parsed);
    };
    return html`<textarea
      id=${this.#id}
      rows=${current.includes('\n') ? 5 : 2}
      aria-label=${label}
      autocomplete="off"
      spellcheck="false"
      aria-invalid=${invalid}
      aria-describedby=${this.#describedBy(invalid)}
      .value=${live(this.typed ?? draft ?? current)}
      @input=${onInput}
      @blur=${() => (this.typed = null)}
    ></textarea>`;
  }

  #slider(): TemplateResult {
    const { field, value, label, pointer, held } = this.model;
    const current = typeof value === 'number' ? value : 0;
    const [low, high] = this.#sliderEnds(current);
    const shareOf = (each: number) => Math.log(Math.max(each, low) / low) / Math.log(high / low);
    const position = Math.round(sliderSteps * shareOf(current));
    const onInput = (event: Event) => {
      const share = Number((event.target as HTMLInputElement).value) / sliderSteps;
      const raw = low * (high / low) ** share;
      const rounded = Number(raw.toPrecision(3));
      this.typed = null;
      this.app.setValue(pointer, field.type === 'integer' ? Math.max(1, Math.round(rounded)) : rounded, 'dragging');
    };
    return html`<div class="slide"><input
      type="range"
      min="0"
      max=${sliderSteps}
      step="2"
      aria-label="${label} (slider)"
      aria-valuetext="${formatGiven(current)} ${unitOf(field)}"
      title="${formatGiven(low)} to ${formatGiven(high)} ${unitOf(field)}"
      .value=${live(String(position))}
      @input=${onInput}
    />${held === null || held > high ? nothing : html`<i class="held" .style=${`--at:${shareOf(held)}`} title="The highest that keeps all targets: ${formatNumber(held)}"></i>`}</div>`;
  }

  /** Never from the scenario that happens to be open: the same value is at the same place after a reload. */
  #sliderEnds(current: number): [number, number] {
    const { anchor, field } = this.model;
    const around = anchor !== null && anchor > 0 ? anchor : current > 0 ? current : 1;
    const decade = (value: number, round: (power: number) => number) =>
      Number(`1e${round(Math.log10(value) + (round === Math.floor ? -decadesBeside : decadesBeside))}`);
    let low = decade(around, Math.floor);
    let high = decade(around, Math.ceil);
    while (current > 0 && current < low) low /= 10;
    while (current > high && high < 1e15) high *= 10;
    if (field.minimum !== null && field.minimum > 0) low = Math.max(low, field.minimum);
    if (field.maximum !== null) high = Math.min(high, field.maximum);
    return [low, Math.max(low * 2, high)];
  }
}

function optionText(option: string, choices: readonly Choice[]): string {
  if (option === '') return 'not set';
  return choices.find((choice) => choice.id === option)?.name ?? option;
}

function explanation(option: string, choices: readonly Choice[]): string {
  return choices.find((choice) => choice.id === option)?.description ?? '';
}

function readJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

customElements.define('sc-field', FieldElement);

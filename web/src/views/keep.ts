// Of the dialog of sharing: a title and a note, which go with every link, and the scenarios that are kept on this machine.
import { html, nothing, type TemplateResult } from 'lit';
import { FollowingElement } from '../lib/plain-element';
import type { App } from '../state/app';
import { titleOf } from '../state/document';
import { ageText, type KeptScenario } from '../state/kept';

export class KeepElement extends FollowingElement {
  static override properties = {
    app: { attribute: false },
    renamed: { attribute: false },
    said: { state: true },
  };
  declare app: App;
  /** The scenario has another title or note. */
  declare renamed: () => void;
  declare said: string;

  constructor() {
    super();
    this.said = '';
  }

  #label(pointer: '/name' | '/description', value: string): void {
    const text = value.trim();
    if (text === '') this.app.clearValue(pointer);
    else this.app.setValue(pointer, text, 'dragging');
    this.renamed();
  }

  async #keep(): Promise<void> {
    const { shelf } = this.app;
    if (!(await shelf?.keep())) this.said = 'Not kept: it cannot be read, or there is no room; remove one below.';
    else if (shelf?.isForgetful) this.said = 'This browser allows the page no storage: it is kept until you leave.';
    else this.said = 'Kept. The list of scenarios has it, on this machine alone.';
  }

  protected override render(): TemplateResult {
    const { document, catalog, preset_id: id } = this.app.store.state;
    const preset = catalog?.presets.scenarios.find((each) => each.id === id);
    const note = document['description'];
    const items = this.app.shelf?.items ?? [];
    return html`<div class="keep">
      <label>Title <input type="text" maxlength="120" .value=${titleOf(document, preset)} @change=${(event: Event) => this.#label('/name', (event.target as HTMLInputElement).value)} /></label>
      <label>Note <textarea rows="2" maxlength="1000" .value=${typeof note === 'string' ? note : ''} @change=${(event: Event) => this.#label('/description', (event.target as HTMLTextAreaElement).value)}></textarea></label>
      <p class="quiet-text">Both go with every link to it.</p>
      <div class="button-row"><button type="button" class="primary" @click=${() => void this.#keep()}>Keep on this machine</button></div>
      <p role="status">${this.said}</p>
      ${items.length === 0 ? nothing : html`<ul class="kept" aria-label="On this machine">${items.map((item) => this.#row(item))}</ul>`}
    </div>`;
  }

  #row({ link, name, note, verdict, at, kept }: KeptScenario): TemplateResult {
    return html`<li>
      <a href="#${link}" @click=${() => this.closest('dialog')?.close()}>${name}</a>
      <span class="quiet-text">${kept ? 'Kept' : 'Looked at'} ${ageText(Date.now() - at)}. ${note || verdict}</span>
      <button type="button" class="quiet" aria-label="Remove ${name}" @click=${() => this.app.shelf?.remove(link)}>Remove</button>
    </li>`;
  }
}

customElements.define('sc-keep', KeepElement);

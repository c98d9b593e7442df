// The keys of the page, in a dialog. Loaded when it is asked for.
import { html, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import { addStyles } from '../lib/part';
import styles from '../styles/keys.css?inline';
import { tabs } from './tabs';

const keys: readonly (readonly [string, string])[] = [
  ['Space', 'Run, or cancel the run'],
  ['/', 'Search the scenario presets'],
  ['f', 'Find a setting'],
  ['s', 'Share: link, embed, card, files'],
  ['Ctrl Z', 'Undo; with Shift: redo'],
  [`${tabs[0].key} – ${tabs.at(-2)!.key}`, 'Open a view: the digit stands beside its name'],
  [tabs.at(-1)!.key, 'Calibrate with your own measurements'],
  ['← →', 'Move the cursor in a chart (Shift: ten times as far); ↑ ↓ between requests'],
  [
    '+ − < > Esc',
    'Zoom a chart over time, move along it, show all; so does the wheel, with Ctrl or in a focused chart',
  ],
  ['?', 'This help'],
];

export class KeysElement extends PlainElement {
  show(): void {
    void this.updateComplete.then(() => this.#dialog?.showModal());
  }

  get #dialog(): HTMLDialogElement | null {
    return this.querySelector('dialog');
  }

  protected override render(): TemplateResult {
    return html`<dialog id="keys" aria-labelledby="keys-title">
      <h2 id="keys-title">Keys</h2>
      <dl class="keys">${keys.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
      <form method="dialog"><button class="primary" @click=${(event: Event) => this.#close(event)}>Close</button></form>
    </dialog>`;
  }

  #close(event: Event): void {
    // The policy forbids form actions, a dialog's own included in some browsers: close by hand.
    event.preventDefault();
    this.#dialog?.close();
  }
}

addStyles(styles);
customElements.define('sc-keys', KeysElement);

// The scenario as a document: edited as text, resolved; and what is not modelled. Loaded when it is opened.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { Issue } from 'servecast';
import { download } from '../lib/download';
import { sentence } from '../lib/format';
import { addStyles } from '../lib/part';
import styles from '../styles/scenario-text.css?inline';
import type { ViewContext } from './context';

/** What is being typed: the page keeps it while another view is open. */
export interface ScenarioDraft {
  /** null: the current document. */
  text: string | null;
  issues: readonly Issue[];
  /** The document that was there: one from elsewhere replaces what is typed. */
  of: unknown;
}

export class ScenarioTextElement extends PlainElement {
  static override properties = { view: { attribute: false }, draft: { attribute: false } };
  declare view: ViewContext;
  declare draft: ScenarioDraft;

  protected override render(): TemplateResult {
    const { document, shown } = this.view.state;
    if (this.draft.of !== document) Object.assign(this.draft, { text: null, issues: [], of: document });
    const { text, issues } = this.draft;
    const current = JSON.stringify(document, null, 2);
    const resolved = shown ? JSON.stringify(shown.outcome.report.scenario, null, 2) : '';
    const save = (name: string, content: string) =>
      download(name, new Blob([`${content}\n`], { type: 'application/json' }));
    return html`
      <div class="scenario-texts">
        <div>
          <label for="scenario-text">Scenario document (JSON)</label>
          <textarea
            id="scenario-text"
            rows="22"
            spellcheck="false"
            autocomplete="off"
            aria-invalid=${issues.length > 0}
            aria-describedby=${issues.length > 0 ? 'scenario-issues' : nothing}
            .value=${text ?? current}
            @input=${(event: Event) => this.#edit((event.target as HTMLTextAreaElement).value)}
          ></textarea>
          ${
            issues.length > 0
              ? html`<ul class="issues" id="scenario-issues" role="alert">${issues.map((issue) => html`<li>${issue.path === '' ? nothing : html`<b>${issue.path.replace(/^\//, '').replaceAll('/', '.')}</b>: `}${sentence(issue.message)}</li>`)}</ul>`
              : nothing
          }
          <div class="button-row">
            <button class="primary" type="button" ?disabled=${text === null} @click=${() => void this.#apply()}>Apply</button>
            <button type="button" ?disabled=${text === null} @click=${() => this.#edit(null)}>Revert</button>
            <button type="button" @click=${() => save('scenario.json', current)}>Download scenario.json</button>
          </div>
        </div>
        <div>
          <label for="resolved-text">Resolved: presets inlined, runs as it is</label>
          <textarea id="resolved-text" rows="22" readonly .value=${resolved}></textarea>
          <div class="button-row"><button type="button" ?disabled=${resolved === ''} @click=${() => save('scenario-resolved.json', resolved)}>Download resolved.json</button></div>
        </div>
      </div>
      ${this.#notModelled()}
    `;
  }

  #notModelled(): TemplateResult {
    const { catalog } = this.view.state;
    const list = (items: readonly string[] = []) =>
      html`<ul class="plain-list">${items.map((item) => html`<li>${item}</li>`)}</ul>`;
    return html`<div class="side-by-side">
      <div><h3 id="not-modelled">Not modelled</h3>${list(catalog?.not_modelled)}</div>
      <div><h3>Notices</h3>${list(catalog?.notices)}</div>
    </div>`;
  }

  #edit(text: string | null): void {
    Object.assign(this.draft, { text, issues: [] });
    this.requestUpdate();
  }

  async #apply(): Promise<void> {
    const { text } = this.draft;
    if (text === null) return;
    const issues = await this.view.app.applyText(text);
    Object.assign(this.draft, issues.length > 0 ? { issues } : { text: null });
    this.requestUpdate();
  }
}

addStyles(styles);
customElements.define('sc-scenario-text', ScenarioTextElement);

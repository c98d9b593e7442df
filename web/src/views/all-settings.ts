// Every field of the catalogue, searched by its name or the words of its help, else in groups. Loaded when it is opened.
import type { Field } from 'servecast';
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import { repeat } from 'lit/directives/repeat.js';
import { countOf } from '../lib/format';
import { addStyles, needPart } from '../lib/part';
import { getAt, lastOf, needsTrace, parentOf, segmentsOf } from '../state/document';
import { answers } from '../lib/search';
import { labelOf, placedFields, type FormSource, type PlacedField } from '../state/fields';
import { ownSections, poolList } from '../state/pools';
import styles from '../styles/all-settings.css?inline';
import type { ViewContext } from './context';
import { issuesAt, renderPlaced } from './placed';

const classesList = '/workload/classes';
/** Without effect when arrivals come from a trace: shown only where something is wrong with them. */
const byTrace = ['/workload/preset', '/workload/name', '/workload/requests'];

type When = NonNullable<Field['when']>;

interface Group {
  readonly id: string;
  readonly title: string;
  accepts(path: string): boolean;
}

/** What pools have of their own stands with them. */
const isOwn = (path: string) => ownSections.some((section) => path.startsWith(`${poolList}/-/${section}/`));
const groups: readonly Group[] = [
  { id: 'engine', title: 'Engine and scheduler', accepts: (path) => /^\/(engine|scheduler)\//.test(path) },
  { id: 'workload', title: 'Workload details', accepts: (path) => path.startsWith('/workload/') },
  { id: 'everything', title: 'Everything', accepts: (path) => !isOwn(path) },
];

export class AllSettingsElement extends PlainElement {
  static override properties = { view: { attribute: false }, query: { state: true } };
  declare view: ViewContext;
  declare query: string;

  constructor() {
    super();
    this.query = '';
  }

  focusSearch(): void {
    const input = this.querySelector<HTMLInputElement>('#settings-search');
    input?.focus();
    input?.select();
  }

  /** So that a field in a group can be shown. */
  showGroups(): void {
    this.query = '';
  }

  protected override render(): TemplateResult | typeof nothing {
    const { source } = this.view.app;
    if (!source) return nothing;
    return html`<input
        id="settings-search"
        type="search"
        aria-label="Search all settings"
        placeholder="Name, vLLM option, or a word of its help"
        autocomplete="off"
        spellcheck="false"
        .value=${this.query}
        @input=${(event: Event) => (this.query = (event.target as HTMLInputElement).value)}
        @keydown=${(event: KeyboardEvent) => event.key === 'Escape' && this.showGroups()}
      />
      ${this.query.trim() === '' ? groups.map((group) => this.#group(source, group)) : this.#found(source)}`;
  }

  #found(source: FormSource): TemplateResult {
    const found = placedFields(source, (path) => !isOwn(path))
      .map((placed) => ({ placed, rank: answers(placed.field, this.query) }))
      .filter(({ rank }) => rank > 0)
      .sort((a, b) => b.rank - a.rank);
    const apart = this.#apart(source, new Set(found.map(({ placed }) => placed.field.path)));
    const count = found.length + apart.length;
    return html`<p class="quiet-text" role="status">${count === 0 ? 'No setting has these words.' : countOf(count, 'setting')}${/\brpm\b/i.test(this.query) ? ' 60 requests a minute are 1 req/s.' : ''}</p>
      ${apart.map(
        ({
          path,
          when,
        }) => html`<p class="apart"><b>${labelOf(path)}</b> <code>${path}</code> <span class="quiet-text">applies where ${titleOf(when.path)} is ${when.values.join(' or ')}.</span>
        <button class="as-link" type="button" @click=${() => this.view.app.setValue(when.path, when.values[0] as string, 'dragging')}>Set ${titleOf(when.path)} to ${when.values[0]}</button></p>`,
      )}
      ${repeat(
        found,
        ({ placed }) => placed.pointer,
        ({ placed }) =>
          html`<div><p class="quiet-text place">${titleOf(parentOf(placed.pointer))}</p>${renderPlaced(this.view, source, placed, { verbatim: true }, 'search')}</div>`,
      )}`;
  }

  /** Those by whose name people ask, and that another setting leaves without effect. */
  #apart(source: FormSource, found: ReadonlySet<string>): readonly { path: string; when: When }[] {
    return source.catalog.fields.flatMap((field) => {
      const { path, when } = field;
      const asked = when && when.values.length > 0 && !path.includes('/-/') && !found.has(path);
      return asked && answers(field, this.query) === 2 ? [{ path, when }] : [];
    });
  }

  #group(source: FormSource, { id, title, accepts }: Group): TemplateResult {
    const { view } = this;
    const open = view.openGroups.has(id);
    const replaced = getAt(source.document, '/workload/arrivals/process') === 'trace' ? byTrace : [];
    const isShown = (path: string) =>
      !replaced.includes(path) || issuesAt(view, path).length > 0 || view.state.drafts.has(path);
    const fields = open ? placedFields(source, (path) => accepts(path) && isShown(path)) : [];
    const sections = new Map<string, PlacedField[]>();
    for (const placed of fields) {
      const section = parentOf(placed.pointer);
      sections.set(section, [...(sections.get(section) ?? []), placed]);
    }
    return html`<details class="fields" .open=${open} @toggle=${(event: Event) => view.toggleGroup(id, (event.target as HTMLDetailsElement).open)}>
      <summary>${title}</summary>
      ${replaced.some(accepts) ? html`<p class="quiet-text">The trace brings its own requests, in place of a preset and a number of requests.</p>` : nothing}
      ${[...sections].map(([section, members]) => this.#section(source, id, section, members, sections.size > 1))}
      ${open && accepts(`${classesList}/-/name`) ? renderAddClass(view, source) : nothing}
    </details>`;
  }

  #section(
    source: FormSource,
    id: string,
    section: string,
    members: readonly PlacedField[],
    titled: boolean,
  ): TemplateResult {
    const { view } = this;
    if (section === '/latency') needPart('sc-coefficients', () => import('./coefficients'));
    return html`
      ${titled ? html`<h4>${titleOf(section)}</h4>` : nothing}
      ${repeat(
        members,
        (placed) => placed.pointer,
        (placed) => renderPlaced(view, source, placed, { verbatim: true }, id),
      )}
      ${section === '/latency' ? html`<sc-coefficients .view=${view}></sc-coefficients>` : nothing}
      ${
        classesList === parentOf(section)
          ? html`<div class="button-row"><button type="button" @click=${() => view.app.removeItem(section)}>Remove class ${Number(lastOf(section)) + 1}</button></div>`
          : nothing
      }
    `;
  }
}

/** People count from 1; pointers, where they are shown, from 0. */
function titleOf(pointer: string): string {
  const words = segmentsOf(pointer).map((part) =>
    /^\d+$/.test(part) ? String(Number(part) + 1) : part.replaceAll('_', ' '),
  );
  return words.join(' · ') || 'scenario';
}

/** Client classes are a list in the document; without any, all requests are alike. */
function renderAddClass(view: ViewContext, source: FormSource): TemplateResult | typeof nothing {
  if (needsTrace(source.document) || !source.catalog.fields.some((field) => field.path.startsWith(`${classesList}/-/`)))
    return nothing;
  const list = getAt(source.document, classesList) ?? getAt(source.resolved ?? undefined, classesList);
  const count = Array.isArray(list) ? list.length : 0;
  const added = { name: `class ${count + 1}`, share: 1 };
  return html`<div class="button-row"><button type="button" @click=${() => view.app.setValue(`${classesList}/${count}`, added, 'dragging')}>Add a class of clients</button></div>`;
}

addStyles(styles);
customElements.define('sc-all-settings', AllSettingsElement);

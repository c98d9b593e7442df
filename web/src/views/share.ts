// Sharing: the scenario as a link, in others' pages, as a picture, a file or a command, each as it will be read. Loaded when it
// is asked for.
import { html, nothing, type TemplateResult } from 'lit';
import { FollowingElement } from '../lib/plain-element';
import type { ExportTarget, ExportedText } from 'servecast';
import { download } from '../lib/download';
import { sentence } from '../lib/format';
import { addStyles } from '../lib/part';
import { cardOf } from '../share/card';
import { pointerOfPath, uis, type EmbedOptions } from '../share/embed-options';
import { holds, withPin } from '../share/encode';
import { addressOf, commandOf, elementOf, iframeOf, markdownOf, type Shared } from '../share/snippets';
import type { App } from '../state/app';
import { fieldAt, placeName, placedFields } from '../state/fields';
import { reportOf, type Shown } from '../state/store';
import styles from '../styles/share.css?inline';
import './keep';
import { certainOf, sharedOf, traceOf } from './shared';

const kinds = [
  ['link', 'Link'],
  ['markdown', 'Markdown'],
  ['iframe', 'Iframe'],
  ['element', 'Element'],
  ['card', 'Card'],
  ['report', 'Report'],
  ['json', 'JSON'],
  ['result', 'Result'],
  ['command', 'Command'],
  ['deploy', 'Deploy'],
  ['keep', 'Keep'],
] as const;
type Kind = (typeof kinds)[number][0];
const copied: Readonly<Record<Kind, string>> = {
  link: 'Link copied',
  markdown: 'Markdown copied',
  iframe: 'Iframe copied',
  element: 'Element copied',
  card: 'Card copied, as SVG',
  report: '',
  json: 'Scenario copied, as JSON',
  result: 'Result copied, as JSON',
  command: 'Command copied',
  deploy: 'Deployment copied',
  keep: '',
};
const longLink = 2000;
const standardKnob = 'workload.arrivals.rate_per_s';

export class ShareElement extends FollowingElement {
  static override properties = {
    app: { attribute: false },
    kind: { state: true },
    link: { state: true },
    pinned: { state: true },
    look: { state: true },
    knobs: { state: true },
    said: { state: true },
    targets: { state: true },
    target: { state: true },
    exported: { state: true },
  };
  declare app: App;
  declare kind: Kind;
  /** Of what is on the page, without a result. */
  declare link: string;
  /** The result goes with it. */
  declare pinned: boolean;
  declare look: Pick<EmbedOptions, 'ui' | 'theme' | 'autorun' | 'lock'>;
  /** As typed. */
  declare knobs: string;
  declare said: string;
  declare targets: readonly ExportTarget[];
  declare target: string;
  /** null: it is under way. */
  declare exported: ExportedText | null;

  constructor() {
    super();
    this.kind = 'link';
    this.link = '';
    this.pinned = true;
    this.look = { ui: 'chart', theme: 'auto', autorun: 'visible', lock: false };
    this.knobs = standardKnob;
    this.said = '';
    this.targets = [];
    this.target = 'vllm';
    this.exported = null;
  }

  async show(): Promise<void> {
    const link = withPin(await this.app.currentLink(), '');
    // After one that cannot be opened the last link is still that of the scenario before.
    this.link = this.app.store.state.link_problem ? '' : link;
    this.requestUpdate();
    await this.updateComplete;
    this.querySelector('dialog')?.showModal();
    this.#text()?.select();
  }

  /** Its title is part of it. */
  async #linkAnew(): Promise<void> {
    const { document } = this.app.store.state;
    const link = await this.app.linkTo(document);
    if (link !== '' && document === this.app.store.state.document) this.link = link;
  }

  /** The certain run of what is on the page. */
  get #shown(): Shown | null {
    return certainOf(this.app.store.state);
  }

  get #shared(): Shared {
    return sharedOf(this.app.store.state, this.link, this.pinned);
  }

  /** Those that the scenario has. */
  get #pointers(): readonly string[] {
    const { source } = this.app;
    return this.knobs
      .split(/[\s,]+/)
      .flatMap((path) => pointerOfPath(path) ?? [])
      .filter((pointer) => source !== null && fieldAt(source, pointer) !== undefined)
      .slice(0, 3);
  }

  #content(): string {
    const shared = this.#shared;
    const look = { ...this.look, knobs: this.look.ui === 'compact' || this.look.ui === 'chart' ? [] : this.#pointers };
    switch (this.kind) {
      case 'link':
        return addressOf(shared);
      case 'markdown':
        return markdownOf(shared);
      case 'iframe':
        return iframeOf(shared, look);
      case 'element':
        return elementOf(shared, look);
      case 'card':
        return this.#cardText();
      case 'json':
        return `${JSON.stringify(this.app.store.state.document, null, 2)}\n`;
      case 'result':
        return this.#resultText();
      case 'command':
        return commandOf(shared, traceOf(this.app.store.state));
      case 'deploy':
        return this.exported?.text ?? '';
      case 'report':
      case 'keep':
        return '';
    }
  }

  /** What `servecast run` prints of it. */
  #resultText(): string {
    const report = this.#shown && reportOf(this.#shown);
    return report ? `${JSON.stringify(report, null, 2)}\n` : '';
  }

  #cardText(): string {
    const shown = this.#shown;
    const shared = this.#shared;
    return shown ? cardOf(shared.title, reportOf(shown), shown.outcome.columns, addressOf(shared)) : '';
  }

  protected override render(): TemplateResult {
    if (this.link === '') return this.#nothing();
    const content = this.#content();
    return html`<dialog id="share" aria-labelledby="share-title" @close=${() => this.remove()}>
      <h2 id="share-title">Share</h2>
      <div class="share-kinds" role="group" aria-label="As">
        ${kinds.map(([kind, name]) => html`<button type="button" aria-pressed=${kind === this.kind} @click=${() => this.#choose(kind)}>${name}</button>`)}
      </div>
      ${this.kind === 'iframe' || this.kind === 'element' ? this.#looks() : nothing}
      ${this.kind === 'deploy' ? this.#deployment() : nothing}
      ${this.kind === 'keep' ? html`<sc-keep .app=${this.app} .renamed=${() => void this.#linkAnew()}></sc-keep>` : nothing}
      ${this.kind === 'report' ? this.#report() : nothing}
      ${this.kind === 'keep' || this.kind === 'report' ? nothing : this.kind === 'card' ? this.#picture() : content === '' && this.kind === 'result' ? html`<p>There is no result before a run is done.</p>` : this.#field(content)}
      ${this.kind === 'deploy' ? this.#leftOut() : this.#about()}
      <div class="button-row">
        ${content === '' ? nothing : html`<button type="button" class="primary" @click=${() => void this.#copy()}>Copy</button>`}
        ${this.kind === 'card' && content !== '' ? html`<button type="button" @click=${() => this.#saveSvg()}>Save SVG</button><button type="button" @click=${() => void this.#savePng()}>Save PNG</button>` : nothing}
        ${this.kind === 'result' && content !== '' ? html`<button type="button" @click=${() => this.#saveResult()}>Save result.json</button>` : nothing}
        ${this.kind === 'json' || this.#isLong ? html`<button type="button" @click=${() => this.#saveJson()}>Save scenario.json</button>` : nothing}
        <button type="button" @click=${() => this.querySelector('dialog')?.close()}>Close</button>
      </div>
      <p class="share-said" role="status">${this.said}</p>
    </dialog>`;
  }

  /** A link that cannot be opened, say, is none to pass on. */
  #nothing(): TemplateResult {
    return html`<dialog id="share" aria-labelledby="share-title" @close=${() => this.remove()}>
      <h2 id="share-title">Share</h2>
      <p>There is nothing to share before a scenario can be read.</p>
      <div class="button-row"><button type="button" class="primary" @click=${() => this.querySelector('dialog')?.close()}>Close</button></div>
    </dialog>`;
  }

  get #isLong(): boolean {
    return addressOf(this.#shared).length > longLink;
  }

  #field(content: string): TemplateResult {
    const name = kinds.find(([kind]) => kind === this.kind)?.[1];
    return this.kind === 'link'
      ? html`<input id="share-text" type="text" readonly aria-label=${name} .value=${content} />`
      : html`<textarea id="share-text" readonly rows=${this.kind === 'deploy' ? 16 : ['json', 'result', 'element'].includes(this.kind) ? 10 : 4} aria-label=${name} .value=${content}></textarea>`;
  }

  #picture(): TemplateResult {
    const svg = this.#cardText();
    if (svg === '') return html`<p>There is no card before a run is done.</p>`;
    return html`<img class="share-card" alt=${this.#shown ? reportOf(this.#shown).verdict.sentence : ''} src=${`data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`} />`;
  }

  #report(): TemplateResult {
    return html`<p>The answer as a sheet of paper, to print or to save as one file: verdict, inputs, figures with their intervals, latency tail, ways out and plan answers so far, evidence, and the link that runs it again.</p>
      ${this.#shown || ['refused', 'broken'].includes(this.app.store.state.run.kind) ? html`<div class="button-row"><button type="button" class="primary" id="open-report" @click=${() => void this.#openReport()}>Open the report</button></div>` : html`<p>There is no report before a run is done.</p>`}`;
  }

  async #openReport(): Promise<void> {
    try {
      const { openSheet } = await import('./sheet');
      this.querySelector('dialog')?.close();
      openSheet(this.app);
    } catch {
      this.said = 'There is no connection.';
    }
  }

  #about(): TemplateResult | typeof nothing {
    if (['json', 'card', 'report', 'result', 'keep'].includes(this.kind)) return nothing;
    const address = addressOf(this.#shared);
    const words = holds(address, traceOf(this.app.store.state));
    return html`<label class="share-pin"><input type="checkbox" .checked=${this.pinned && this.#shown !== null} ?disabled=${this.#shown === null} @change=${(event: Event) => (this.pinned = (event.target as HTMLInputElement).checked)} />
        With my result: whoever opens it sees whether their run gives the same bits</label>
      <p class="quiet-text" id="share-holds">It holds ${words}${this.#isLong ? ' That is long for a chat: send scenario.json instead.' : ''}</p>`;
  }

  #looks(): TemplateResult {
    const { ui, theme, autorun, lock } = this.look;
    const select = <T extends string>(
      label: string,
      value: T,
      choices: readonly (readonly [T, string])[],
      set: (value: T) => void,
    ) =>
      html`<label>${label} <select @change=${(event: Event) => set((event.target as HTMLSelectElement).value as T)}>
        ${choices.map(([id, name]) => html`<option value=${id} ?selected=${id === value}>${name}</option>`)}
      </select></label>`;
    const put = (change: Partial<ShareElement['look']>) => (this.look = { ...this.look, ...change });
    const { source } = this.app;
    const paths = source
      ? placedFields(source, () => true).map(({ pointer }) => pointer.slice(1).replaceAll('/', '.'))
      : [];
    return html`<div class="share-looks">
      ${select(
        'Shows',
        ui,
        uis.map(
          (id) => [id, { compact: 'a line', chart: 'a chart', 'what-if': 'knobs', full: 'everything' }[id]] as const,
        ),
        (value) => put({ ui: value }),
      )}
      ${select(
        'Runs',
        autorun,
        [
          ['visible', 'when seen'],
          ['1', 'at once'],
          ['0', 'at a click'],
        ] as const,
        (value) => put({ autorun: value }),
      )}
      ${select(
        'Theme',
        theme,
        [
          ['auto', 'the reader’s'],
          ['light', 'light'],
          ['dark', 'dark'],
        ] as const,
        (value) => put({ theme: value }),
      )}
      <label><input type="checkbox" .checked=${lock} @change=${(event: Event) => put({ lock: (event.target as HTMLInputElement).checked })} /> Locked</label>
      ${
        lock || ui === 'compact' || ui === 'chart'
          ? nothing
          : html`<label class="share-knobs">Knobs, one to three <input type="text" list="share-paths" .value=${this.knobs} @input=${(event: Event) => (this.knobs = (event.target as HTMLInputElement).value)} /></label>
            <datalist id="share-paths">${paths.map((path) => html`<option value=${path}></option>`)}</datalist>`
      }
    </div>`;
  }

  async #export(target: string): Promise<void> {
    this.target = target;
    this.exported = null;
    try {
      const doors = await this.app.doors();
      if (this.targets.length === 0) this.targets = await doors.targets();
      const exported = await doors.exported(target);
      if (this.target === target) this.exported = exported;
    } catch (error) {
      this.said = error instanceof Error ? error.message : String(error);
    }
  }

  #deployment(): TemplateResult {
    return html`<label class="share-target">As <select id="share-target" @change=${(event: Event) => void this.#export((event.target as HTMLSelectElement).value)}>
      ${this.targets.map(({ name, help }) => html`<option value=${name} ?selected=${name === this.target}>${help}</option>`)}
    </select></label>`;
  }

  #leftOut(): TemplateResult {
    const { left_out: left, issues } = this.exported ?? { left_out: [], issues: [] };
    if (left.length + issues.length === 0)
      return html`<p class="quiet-text">${this.exported ? 'Nothing of the scenario was left out.' : 'Reading…'}</p>`;
    return html`<ul class="share-left-out" aria-label="Left out">
      ${issues.map(({ path, message }) => html`<li>${path === '' ? nothing : html`<b title=${path}>${placeName(path)}</b>: `}${sentence(message)}</li>`)}
      ${left.map(({ what, why }) => html`<li>Left out <b>${what}</b>: ${why}</li>`)}
    </ul>`;
  }

  #text(): HTMLInputElement | HTMLTextAreaElement | null {
    return this.querySelector('#share-text');
  }

  #choose(kind: Kind): void {
    this.kind = kind;
    this.said = '';
    if (kind === 'deploy') void this.#export(this.target);
  }

  async #copy(): Promise<void> {
    try {
      await navigator.clipboard.writeText(this.#content());
      this.said = `${copied[this.kind]}.`;
    } catch {
      this.#text()?.select();
      this.said = 'The browser does not let pages copy here: the text is selected, press Ctrl C.';
    }
  }

  get #stem(): string {
    return `servecast-${this.#shown?.outcome.report.fingerprint.slice(0, 8) ?? 'scenario'}`;
  }

  #saveJson(): void {
    const { document } = this.app.store.state;
    download('scenario.json', new Blob([`${JSON.stringify(document, null, 2)}\n`], { type: 'application/json' }));
    this.said = 'scenario.json saved.';
  }

  #saveResult(): void {
    download(`${this.#stem}-result.json`, new Blob([this.#resultText()], { type: 'application/json' }));
    this.said = 'Result saved, as JSON.';
  }

  #saveSvg(): void {
    download(`${this.#stem}.svg`, new Blob([this.#cardText()], { type: 'image/svg+xml' }));
    this.said = 'Card saved, as SVG.';
  }

  async #savePng(): Promise<void> {
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(this.#cardText())}`;
    const canvas = document.createElement('canvas');
    const done = (blob: Blob | null) => {
      if (blob) download(`${this.#stem}.png`, blob);
      this.said = blob ? 'Card saved, as PNG.' : 'The browser could not draw the card.';
    };
    try {
      await image.decode();
      [canvas.width, canvas.height] = [image.naturalWidth * 2, image.naturalHeight * 2];
      canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(done);
    } catch {
      done(null);
    }
  }
}

addStyles(styles);
customElements.define('sc-share', ShareElement);

/** The dialog, over the page, until it is closed. */
export function openShare(app: App): void {
  if (document.querySelector('sc-share')) return;
  const element = document.createElement('sc-share') as ShareElement;
  element.app = app;
  document.querySelector('sc-page')?.append(element);
  void element.show();
}

// The box for what other programs say of a deployment: pasted or dropped, read in the worker, and shown before it is used.
// Loaded when it is asked for.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { ImportedText, ImportNote, Report } from 'servecast';
import { formatInterval, formatTime, sentence } from '../lib/format';
import type { DiagnoseTask } from '../engine/plan-protocol';
import { addStyles, needPart } from '../lib/part';
import { issueText } from '../state/fields';
import type { App } from '../state/app';
import { samplesByTopP, topP, withTopP, type Doors } from '../state/doors';
import styles from '../styles/import-box.css?inline';

const mostBytes = 2 ** 24;
const pauseMs = 200;

class ImportElement extends PlainElement {
  static override properties = {
    app: { attribute: false },
    text: { state: true },
    overOpen: { state: true },
    imported: { state: true },
    problem: { state: true },
    sampling: { state: true },
    diagnosed: { state: true },
  };
  declare app: App;
  declare text: string;
  declare overOpen: boolean;
  /** Of the text; null before. */
  declare imported: ImportedText | null;
  declare problem: string;
  /** Of a model whose files do not say whether servers sample by top-p; null: they do. */
  declare sampling: Sampling | null;
  /** What stands in place of the notes once somebody asks what is wrong with the server. */
  declare diagnosed: DiagnoseTask | null;
  #doors: Doors | null = null;
  #isTrying = false;
  #pause: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    super();
    this.text = '';
    this.overOpen = true;
    this.imported = null;
    this.problem = '';
    this.sampling = null;
    this.diagnosed = null;
  }

  async show(file?: File): Promise<void> {
    await this.updateComplete;
    this.querySelector('dialog')?.showModal();
    this.querySelector('textarea')?.focus();
    if (file) await this.take(file);
  }

  async take(file: File): Promise<void> {
    if (file.size > mostBytes) this.problem = `${file.name} is larger than 16 MiB: no more than that is read.`;
    else this.#write(await file.text());
  }

  #write(text: string): void {
    Object.assign(this, { text, imported: null, problem: '', sampling: null, diagnosed: null });
    this.#stopTrying();
    clearTimeout(this.#pause);
    if (text.trim() !== '') this.#pause = setTimeout(() => void this.#read(), pauseMs);
  }

  async #read(): Promise<void> {
    const { text, overOpen } = this;
    const isCurrent = () => this.text === text && this.overOpen === overOpen;
    try {
      this.#doors ??= await this.app.doors();
      const imported = await this.#doors.imported(text, overOpen);
      if (!isCurrent()) return;
      this.imported = imported;
      if (imported.assumed.includes(topP) && imported.issues.length === 0) void this.#tryBoth(this.#doors, imported);
    } catch (error) {
      if (isCurrent()) this.problem = error instanceof Error ? error.message : String(error);
    }
  }

  /** What is assumed decides more than most that is said: both are run. */
  async #tryBoth(doors: Doors, imported: ImportedText): Promise<void> {
    const { document } = imported;
    const put = (change: Partial<Sampling>) => {
      if (this.imported === imported && this.sampling) this.sampling = { ...this.sampling, ...change };
    };
    this.sampling = { on: samplesByTopP(document), with: undefined, without: undefined };
    this.#isTrying = true;
    this.app.tryOut(true);
    put({ with: await doors.tried(withTopP(document, true)) });
    if (this.imported === imported) put({ without: await doors.tried(withTopP(document, false)) });
  }

  #asked(): TemplateResult | typeof nothing {
    const { sampling } = this;
    if (!sampling) return nothing;
    return html`<label class="import-base"><input type="checkbox" id="import-top-p" .checked=${sampling.on} @change=${(event: Event) => (this.sampling = { ...sampling, on: (event.target as HTMLInputElement).checked })} />
        <span>Servers of this model sample by top-p (its generation_config.json says it; assumed from its family)</span></label>
      <p id="import-effect"><b>${effectText(sampling)}</b></p>`;
  }

  /** The document as it would be used. */
  #document({ document }: ImportedText): string {
    return this.sampling ? withTopP(document, this.sampling.on) : document;
  }

  #diagnose(imported: ImportedText): void {
    this.#stopTrying();
    needPart('sc-diagnosis', () => import('./diagnosis'));
    this.diagnosed = { scenario: this.#document(imported), measured: imported.measured, said: imported.said };
  }

  protected override render(): TemplateResult {
    const { imported, diagnosed } = this;
    const canRun = imported !== null && imported.document !== '' && imported.issues.length === 0;
    const isMeasured = canRun && isServer(imported);
    return html`<dialog id="import" class=${diagnosed ? 'diagnosed' : ''} aria-labelledby="import-title" @close=${() => this.#closed()} @dragover=${(event: Event) => event.preventDefault()} @drop=${(event: DragEvent) => this.#drop(event)}>
      <h2 id="import-title">${diagnosed ? 'What is wrong with this server?' : 'Import'}</h2>
      ${diagnosed ? html`<sc-diagnosis .app=${this.app} .task=${diagnosed} .use=${(document: string, words: string) => void this.#take(document, words)}></sc-diagnosis>` : nothing}
      <label for="import-text">A launch command, YAML of Kubernetes or Compose, a config.json, a benchmark’s result, a server’s log or metrics, or nvidia-smi, also several of them: paste it, or drop its file. It stays on this machine.</label>
      <textarea id="import-text" rows="6" spellcheck="false" autocomplete="off" .value=${this.text} @input=${(event: Event) => this.#write((event.target as HTMLTextAreaElement).value)}></textarea>
      <label class="import-base"><input type="checkbox" .checked=${this.overOpen} @change=${(event: Event) => this.#over((event.target as HTMLInputElement).checked)} /> What it does not say stays as in the open scenario; otherwise it is as in the preset llama-3.1-8b-h100-chat</label>
      <div role="status" id="import-said">${this.#answer()}</div>
      ${this.#asked()}
      <div class="button-row">
        ${isMeasured && !diagnosed ? html`<button type="button" class="primary" id="diagnose" @click=${() => this.#diagnose(imported)}>What is wrong with it?</button>` : nothing}
        <button type="button" class=${isMeasured ? '' : 'primary'} ?disabled=${!canRun} @click=${() => void this.#use()}>Use</button>
        <button type="button" @click=${() => this.#close()}>Close</button>
      </div>
    </dialog>`;
  }

  #answer(): TemplateResult | typeof nothing {
    if (this.problem !== '') return html`<p>${sentence(this.problem)}</p>`;
    if (this.imported) return this.#said(this.imported);
    return this.text.trim() === '' ? nothing : html`<p>Reading…</p>`;
  }

  #said({ document, warnings, kinds, taken, ignored, remarks, issues }: ImportedText): TemplateResult {
    const understood =
      document === ''
        ? html`<p><strong>Nothing was understood.</strong> Nothing changes.</p>`
        : html`<p><strong>Found ${kinds.join(', ')}.</strong> Nothing changes before you use it.</p>`;
    const problems = issues.map((issue) => html`<li>${issueText(issue)}</li>`);
    return html`${understood}${warnings.map((warning) => html`<p><strong>${sentence(warning)}</strong></p>`)}
      ${issues.length > 0 ? html`<ul class="issues" aria-label="Issues">${problems}</ul>` : nothing}
      ${this.#list('Left out', ignored)}${this.#list('Taken', taken)}
      ${remarks.filter((remark) => !this.sampling || !remark.includes(topP)).map((remark) => html`<p class="quiet-text">${sentence(remark)}</p>`)}`;
  }

  #list(name: string, notes: readonly ImportNote[]): TemplateResult | typeof nothing {
    if (notes.length === 0) return nothing;
    return html`<h3>${name}: ${notes.length}</h3>
      <ul class="import-notes" aria-label=${name}>
        ${notes.map(({ what, why }) => html`<li><code>${what}</code> <span>${why}</span></li>`)}
      </ul>`;
  }

  #over(on: boolean): void {
    this.overOpen = on;
    this.#write(this.text);
  }

  #drop(event: DragEvent): void {
    const file = event.dataTransfer?.files[0];
    if (!file) return;
    event.preventDefault();
    event.stopPropagation();
    void this.take(file);
  }

  async #use(): Promise<void> {
    if (!this.imported) return;
    await this.#take(this.#document(this.imported), this.imported.kinds.join(', '));
    this.#doors?.took(this.text);
  }

  async #take(document: string, words: string): Promise<void> {
    const issues = await this.app.applyText(document);
    if (issues.length > 0) {
      this.problem = issues.map(issueText).join(' ');
      return;
    }
    this.#close();
    this.app.announce(`Imported ${words}. Undo brings back what was open.`);
    setTimeout(() => this.app.announce(''), 6000);
  }

  #close(): void {
    this.querySelector('dialog')?.close();
  }

  #closed(): void {
    this.#stopTrying();
    this.remove();
  }

  /** What was compared goes on. */
  #stopTrying(): void {
    if (!this.#isTrying) return;
    this.#isTrying = false;
    this.#doors?.stop();
    this.app.tryOut(false);
  }
}

/** Whether the text says enough of a running server to stand beside its forecast. */
const isServer = ({ measured }: ImportedText): boolean =>
  measured.some(({ name }) => /^(?:ttft|tpot|itl|e2e)_ms\.|^requests_per_s$|^kv_tokens$/.test(name));

interface Sampling {
  readonly on: boolean;
  /** undefined: not run yet; null: it cannot run. */
  readonly with: Report | null | undefined;
  readonly without: Report | null | undefined;
}

type Figure = Pick<Report['slo'][number], 'value_ms' | 'low' | 'high'>;

/** As the tile says it: of all runs where it has a target. */
function tpotOf({ slo, tpot_ms: tpot }: Report): Figure {
  const target = slo.find(({ metric, percentile, class: of }) => metric === 'tpot' && percentile === 99 && !of);
  return target ?? { value_ms: tpot.p99, low: null, high: null };
}

function effectText({ with: on, without: off }: Sampling): string {
  if (on === undefined || off === undefined) return 'Simulating both…';
  const [sampled, plain] = [on && tpotOf(on), off && tpotOf(off)];
  if (!sampled?.value_ms || !plain?.value_ms) return 'What that comes to is known once the scenario can run.';
  const text = ({ value_ms: value, low, high }: Figure) =>
    `${formatTime(value)}${value === null || low === null || high === null ? '' : ` (${formatInterval(low, high, value)})`}`;
  const more = sampled.value_ms / plain.value_ms - 1;
  return `If they do, TPOT p99 is ${text(sampled)}, if not ${text(plain)}: a difference of ${Math.round(100 * Math.abs(more))}\u202f%.`;
}

addStyles(styles);
customElements.define('sc-import', ImportElement);

/** The dialog, over the page, until it is closed; with a file that was dropped. */
export function openImport(app: App, file?: File): void {
  const open = document.querySelector<ImportElement>('sc-import');
  if (open) return void (file && open.take(file));
  const element = document.createElement('sc-import') as ImportElement;
  element.app = app;
  document.querySelector('sc-page')?.append(element);
  void element.show(file);
}

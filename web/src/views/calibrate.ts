// Constants from one's own measurements: drop results, see what they tell and how far the model is off before and after,
// use the pack. Loaded when it is opened.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { CalibrationAnswer, Issue, ReplayDistance } from 'servecast';
import '../charts/residual-chart';
import { countOf, formatBytes, formatCount, formatNumber, formatPercent, formatTime, sentence } from '../lib/format';
import { addStyles } from '../lib/part';
import { residualsOf, type MeasuredPoint } from '../lib/residuals';
import { download } from '../lib/download';
import type { Calibrations } from '../state/calibrations';
import { carriedBy, withoutCalibration } from '../state/carried';
import { issueText } from '../state/fields';
import { powerFitOf } from '../state/power-fit';
import styles from '../styles/calibrate.css?inline';
import { renderPowerFit } from './calibrate-power';
import type { ViewContext } from './context';
import { renderSign } from './verdict';

type Told = CalibrationAnswer['parameters'][number]['told'];
const chips: Record<Told, { readonly state: string; readonly sign: string }> = {
  found: { state: 'meets', sign: '✓' },
  weak: { state: 'near', sign: '~' },
  'cannot tell': { state: 'misses', sign: '✕' },
  'at its limit': { state: 'near', sign: '▲' },
};
const stateWords = { good: 'Good', partly: 'Partly', poor: 'Poor' } as const;
const stateSigns = { good: 'meets', partly: 'near', poor: 'misses' } as const;
const figureNames = { ttft: 'TTFT', tpot: 'TPOT', itl: 'ITL', e2e: 'E2E' } as const;
const formNames = { prompt: 'single prompts', step: 'decode steps', run: 'runs' } as const;

const charts = [
  { of: 'step', held_out: false, heading: 'Decode steps', unit: 'batch, then contexts of batch 1' },
  { of: 'prompt', held_out: false, heading: 'Single prompts', unit: 'prompt tokens, one request at a time' },
  { of: 'run', held_out: false, heading: 'Runs that were fitted', unit: 'requests a second, or clients' },
  { of: 'step', held_out: true, heading: 'Not in the fit: decode steps', unit: 'batch, then contexts' },
  { of: 'prompt', held_out: true, heading: 'Not in the fit: single prompts', unit: 'prompt tokens' },
  { of: 'run', held_out: true, heading: 'Not in the fit: runs', unit: 'requests a second, or clients' },
] as const;

export class CalibrateElement extends PlainElement {
  static override properties = {
    view: { attribute: false },
    calibrations: { state: true },
    said: { state: true },
    close: { attribute: false },
  };
  declare view: ViewContext;
  declare calibrations: Calibrations | null;
  /** What a button did. */
  declare said: string;
  /** Back to the forecast. */
  declare close: () => void;
  #unsubscribe: (() => void) | null = null;

  constructor() {
    super();
    this.calibrations = null;
    this.said = '';
    this.close = () => undefined;
  }

  protected override firstUpdated(): void {
    void this.#begin();
    addEventListener('keydown', this.#key);
  }

  async #begin(): Promise<Calibrations> {
    const calibrations = await this.view.app.calibrations();
    if (!this.calibrations) {
      this.calibrations = calibrations;
      this.#unsubscribe = calibrations.subscribe(() => this.requestUpdate());
    }
    return calibrations;
  }

  /** Of the open scenario, which comes a moment after the page. */
  protected override updated(): void {
    if (Object.keys(this.view.state.document).length > 0) this.calibrations?.askAdvice();
  }

  override connectedCallback(): void {
    super.connectedCallback();
    if (this.hasUpdated) this.firstUpdated();
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener('keydown', this.#key);
    this.#unsubscribe?.();
    this.#unsubscribe = null;
    this.calibrations = null;
  }

  readonly #key = (event: KeyboardEvent): void => {
    if (event.key === 'Escape' && !event.defaultPrevented && this.calibrations?.progress.kind === 'working')
      this.calibrations.cancel();
  };

  /** Files that were dropped on the page, or chosen: a pack among them is used at once. */
  async take(files: readonly File[]): Promise<void> {
    const calibrations = await this.#begin();
    this.said = '';
    const [first] = files;
    if (first && files.length === 1 && /"servecast-calibration"/.test(await first.slice(0, 256).text())) {
      const issues = await this.view.app.usePack(await first.text());
      this.said = issues.length > 0 ? issuesText(issues) : usedText;
      return;
    }
    calibrations.add(files);
  }

  protected override render(): TemplateResult {
    const { calibrations } = this;
    return html`
      ${this.#verdict(calibrations)}
      <div class="calibrate-grid">
        <div class="calibrate-column">
          ${this.#carried()} ${this.#files(calibrations)} ${this.#missing(calibrations)} ${this.#errors(calibrations)} ${this.#replays(calibrations)}
        </div>
        <div class="calibrate-column">${this.#told(calibrations)} ${this.#charts(calibrations)} ${this.#power(calibrations)}</div>
      </div>
      <p class="quiet-text calibrate-foot">Files never leave this machine. Constants are fitted by least squares through the simulator; what the files cannot tell stays as it is.</p>
    `;
  }

  #verdict(calibrations: Calibrations | null): TemplateResult {
    const answer = calibrations?.answer;
    const working = calibrations?.progress.kind === 'working';
    const back = html`<button type="button" @click=${() => this.close()}>Back to the forecast</button>`;
    if (!answer || working)
      return html`<section class="card calibrate-verdict" aria-labelledby="calibrate-title">
        <div>
          <h2 class="sentence" id="calibrate-title">${working ? 'Calibrating…' : 'Calibrate the forecast with your own server’s measurements.'}</h2>
          ${calibrations && working ? this.#progress(calibrations) : html`<p class="quiet-text">Drop results of benchmarks: the model’s constants are fitted to them, and you see how far it is off before and after.</p>`}
          ${this.#problems(calibrations)}
          <p class="calibrate-said" role="status">${this.said}</p>
        </div>
        <div class="button-row">${back}</div>
      </section>`;
    return html`<section class="card calibrate-verdict" aria-labelledby="calibrate-title">
      <div class="calibrate-sign">${signOf(answer)}</div>
      <div>
        <h2 class="sentence" id="calibrate-title">${sentence(answer.sentence)}</h2>
        <p class="quiet-text">${answer.detail}</p>
        <p class="calibrate-said" role="status">${this.said}</p>
      </div>
      <div class="button-row">
        <button type="button" class="primary" ?disabled=${answer.document === ''} @click=${() => void this.#use(answer)}>Use for this scenario</button>
        <button type="button" @click=${() => this.#save(answer)}>Save pack</button>
        <button type="button" ?disabled=${answer.document === ''} @click=${() => void this.#share(answer)}>Share</button>
        ${back}
      </div>
    </section>`;
  }

  #progress(calibrations: Calibrations): TemplateResult {
    const { progress } = calibrations;
    if (progress.kind !== 'working') return html``;
    const words =
      progress.phase === 'reading'
        ? `Reading, ${formatPercent(progress.share)}`
        : `Fitting: ${countOf(progress.tried, 'server')} tried`;
    return html`<div class="calibrate-progress" role="status">
      <progress max="1" .value=${progress.share} aria-label="Calibrated so far"></progress>
      <span>${words}</span>
      <button type="button" @click=${() => calibrations.cancel()}>Cancel</button>
    </div>`;
  }

  #problems(calibrations: Calibrations | null): TemplateResult | typeof nothing {
    const progress = calibrations?.progress;
    if (progress?.kind === 'cancelled')
      return html`<p role="status">Cancelled. <button type="button" @click=${() => calibrations?.again()}>Fit again</button></p>`;
    if (progress?.kind !== 'failed') return nothing;
    const all = [...(calibrations?.files ?? []).flatMap(({ issues }) => issues), ...progress.issues];
    return html`<div role="alert" class="calibrate-problem"><p><b>Nothing was calibrated.</b> ${all.length === 0 ? 'The reason is not known.' : nothing}</p>${issueList(all)}</div>`;
  }

  #files(calibrations: Calibrations | null): TemplateResult {
    const files = calibrations?.files ?? [];
    return html`<section class="card calibrate-card" aria-labelledby="calibrate-files">
      <h3 id="calibrate-files">${files.length === 0 ? 'Results' : `Found in ${countOf(files.length, 'file')}`}</h3>
      ${calibrations?.tooMany ? html`<p class="quiet-text">More than 32 files: the first 32 are taken.</p>` : nothing}
      <ul class="calibrate-files">
        ${files.map(
          ({ file, found, issues, held_out: heldOut }, index) => html`<li>
            <div><code>${file.name}</code> <span class="quiet-text">${formatBytes(file.size)}</span>
              <p>${issues.length > 0 ? html`<b class="calibrate-refused">Refused</b>` : withoutName(found, file.name) || 'Waits to be read.'}</p>
              <label><input type="checkbox" .checked=${heldOut} @change=${(event: Event) => calibrations?.holdOut(index, (event.target as HTMLInputElement).checked)} /> Hold out: judge the fit by it</label>
            </div>
            ${index > 0 ? html`<button type="button" class="quiet icon" aria-label=${`Move ${file.name} up`} title="Move up: power goes right behind its run" @click=${() => calibrations?.moveUp(index)}>↑</button>` : nothing}
            <button type="button" class="quiet icon" aria-label=${`Remove ${file.name}`} title="Remove" @click=${() => calibrations?.remove(index)}>✕</button>
          </li>`,
        )}
      </ul>
      <div class="calibrate-drop">
        <p>Drop results here. They stay on this machine.</p>
        <button type="button" @click=${() => this.querySelector<HTMLInputElement>('#calibrate-file')?.click()}>Choose files</button>
        <input id="calibrate-file" type="file" multiple hidden accept=".json,.csv,.gz,.txt,.prom,.metrics,application/json,text/csv" @change=${(event: Event) => this.#picked(event)} />
      </div>
      <p class="quiet-text">Results of vllm bench serve, GuideLLM, aiperf and inference-perf, metrics of a server, tables (CSV) of prompts, decode steps and runs, and power by nvidia-smi or DCGM right behind the file of the run that it was measured beside; plain or .gz.</p>
    </section>`;
  }

  /** What the open scenario carries: of this person's own fit, or of whoever made the link. */
  #carried(): TemplateResult | typeof nothing {
    const carried = carriedBy(this.view.state.document);
    if (!carried) return nothing;
    const { stated, files, date, rows, parameters, seen } = carried;
    const of = [`${countOf(rows, 'row')}${files === '' ? '' : ` (${files})`}`, stated, date].filter(
      (part) => part !== '',
    );
    return html`<section class="card calibrate-card" aria-labelledby="calibrate-carried">
      <h3 id="calibrate-carried">The scenario carries a calibration</h3>
      <p>Fitted to ${of.join('; ')}.</p>
      <details class="calibrate-more"><summary>What was fitted, with 95 % intervals, and for which load it holds</summary>
        <ul>
          ${parameters.map(({ path, value, low, high }) => html`<li><code>${path}</code> ${formatNumber(value)}, ${formatNumber(low)} to ${formatNumber(high)}</li>`)}
          ${seen.map(({ of: what, low, high }) => html`<li>Measured: ${what.replaceAll('_', ' ')} ${formatNumber(low)} to ${formatNumber(high)}</li>`)}
        </ul>
      </details>
      <div class="button-row"><button type="button" @click=${() => void this.#drop()}>Take it out</button></div>
    </section>`;
  }

  async #drop(): Promise<void> {
    const issues = await this.view.app.applyText(JSON.stringify(withoutCalibration(this.view.state.document)));
    this.said =
      issues.length > 0
        ? issuesText(issues)
        : 'The constants are the presets’ again. Undo brings the calibration back.';
  }

  #missing(calibrations: Calibrations | null): TemplateResult | typeof nothing {
    const advice = calibrations?.answer?.advice ?? (calibrations?.files.length === 0 ? calibrations.advice : null);
    const [first, ...rest] = advice?.measurements ?? [];
    if (!advice || !first) return nothing;
    const open = advice.expected.filter(({ then }) => then === null).map(({ title }) => title.toLowerCase());
    const has = calibrations?.answer !== null;
    return html`<section class="card calibrate-card" aria-labelledby="calibrate-next">
      <h3 id="calibrate-next">${has ? 'One more run would tell most' : 'Begin with these five runs'}</h3>
      ${command(first, (text) => void this.#copy(text))}
      ${rest.length > 0 ? html`<details class="calibrate-more" ?open=${!has}><summary>${has ? `${rest.length} more, the most telling first` : 'The other four'}</summary>${rest.map((each) => command(each, (text) => void this.#copy(text)))}</details>` : nothing}
      <p class="quiet-text">Chosen so that what is not known shrinks most. ${open.length > 0 ? html`After all of them, no run like these tells ${open.join(', ')}.` : nothing}</p>
    </section>`;
  }

  #errors(calibrations: Calibrations | null): TemplateResult | typeof nothing {
    const answer = calibrations?.answer;
    if (!answer) return nothing;
    return html`<section class="card calibrate-card">
      <div class="table-scroll" tabindex="0" role="region" aria-label="Errors before and after">
        <table class="calibrate-errors">
          <thead><tr><th scope="col">Error, %: median, most</th><th scope="col">n</th><th scope="col">before</th><th scope="col">now</th></tr></thead>
          <tbody>
            ${answer.errors.map(
              (error) => html`<tr>
                <th scope="row">${figureNames[error.figure]}, ${formNames[error.of]}${error.held_out ? ', held out' : ''}</th>
                <td>${error.points}</td>
                <td>${percentOff(error.before.median)} <small>${percentOff(error.before.max)}</small></td>
                <td><b>${percentOff(error.after.median)}</b> <small>${percentOff(error.after.max)}</small></td>
              </tr>`,
            )}
          </tbody>
        </table>
      </div>
    </section>`;
  }

  /** Requests of benchmarks that say the times of each, through the simulator. */
  #replays(calibrations: Calibrations | null): TemplateResult | typeof nothing {
    const replays = calibrations?.answer?.replays ?? [];
    if (replays.length === 0) return nothing;
    const several = replays.filter(({ held_out: heldOut }) => !heldOut).length > 1;
    return html`<section class="card calibrate-card">
      <div class="table-scroll" tabindex="0" role="region" aria-label="Requests replayed one by one">
        <table class="calibrate-errors">
          <thead><tr><th scope="col">Replay: KS distance</th><th scope="col">before</th><th scope="col">now</th><th scope="col">median, %</th></tr></thead>
          <tbody>
            ${replays.map(({ label, held_out: heldOut, figures }) => figures.map((figure) => replayRow(figure, `${heldOut ? ', held out' : ''}${several ? `, ${label}` : ''}`)))}
          </tbody>
        </table>
      </div>
      <p class="quiet-text">How far the distributions of the replay and of what was measured are apart, 0 to 1, and how far the replay’s median is off. ▲: 0.15 and more, or 20&#8239;%.</p>
    </section>`;
  }

  #told(calibrations: Calibrations | null): TemplateResult {
    const answer = calibrations?.answer;
    if (!answer)
      return html`<section class="card calibrate-card"><h3>What the files can tell</h3><p class="empty">Empty: nothing was calibrated yet.</p></section>`;
    const warnings = powerFitOf(answer)?.others ?? answer.warnings;
    return html`<section class="card calibrate-card">
      <div class="table-scroll" tabindex="0" role="region" aria-label="What the files can tell">
        <table class="calibrate-told">
          <thead><tr><th scope="col">What the files can tell</th><th scope="col" class="wide">before</th><th scope="col" class="wide">fitted</th><th scope="col">95&#8239;% interval</th><th scope="col"><span class="visually-hidden">Verdict</span></th></tr></thead>
          <tbody>${answer.parameters.map((parameter) => parameterRow(parameter))}</tbody>
        </table>
      </div>
      ${warnings.length > 0 ? html`<details class="calibrate-more"><summary>${countOf(warnings.length, 'warning')}</summary><ul>${warnings.map((warning) => html`<li>${sentence(warning)}</li>`)}</ul></details>` : nothing}
    </section>`;
  }

  #charts(calibrations: Calibrations | null): TemplateResult | typeof nothing {
    const answer = calibrations?.answer;
    if (!answer) return nothing;
    const drawn = charts.flatMap((chart) => {
      const points = answer.points.filter(({ of, held_out: heldOut }) => of === chart.of && heldOut === chart.held_out);
      return points.length > 0 ? [{ ...chart, points }] : [];
    });
    return html`<div class="calibrate-charts">
      ${drawn.map(({ heading, unit, points }) => html`<sc-residual-chart .heading=${heading} .unit=${unit} .points=${residualsOf(points)} .format=${formatTime} .columns=${columnsOf(points)} .theme=${this.view.theme} .fileStem=${'servecast-calibration'}></sc-residual-chart>`)}
    </div>`;
  }

  #power(calibrations: Calibrations | null): TemplateResult | typeof nothing {
    const fit = calibrations?.answer ? powerFitOf(calibrations.answer) : null;
    return fit ? renderPowerFit(this.view, fit) : nothing;
  }

  #picked(event: Event): void {
    const input = event.target as HTMLInputElement;
    const files = [...(input.files ?? [])];
    input.value = '';
    if (files.length > 0) void this.take(files);
  }

  async #use({ document }: CalibrationAnswer): Promise<boolean> {
    const issues = await this.view.app.applyText(document);
    this.said = issues.length > 0 ? issuesText(issues) : usedText;
    return issues.length === 0;
  }

  #save({ pack }: CalibrationAnswer): void {
    download('calibration.json', new Blob([pack], { type: 'application/json' }));
    this.said = 'Saved. servecast run FILE --calibration calibration.json uses it, too.';
  }

  async #share(answer: CalibrationAnswer): Promise<void> {
    if (await this.#use(answer)) this.view.share();
  }

  async #copy(text: string): Promise<void> {
    await navigator.clipboard.writeText(text).then(
      () => (this.said = 'Copied.'),
      () => (this.said = 'This browser does not let the page copy: select the command instead.'),
    );
    this.view.app.announce(this.said);
    setTimeout(() => this.view.app.announce(''), 3000);
  }
}

const usedText = 'The scenario carries the calibration. Undo brings back what was open.';
const issuesText = (issues: readonly Issue[]): string => issues.map(issueText).join(' ');

function signOf({ state }: CalibrationAnswer): TemplateResult {
  return html`${renderSign(stateSigns[state], stateWords[state])}`;
}

function command(
  { command: text, what, tells }: CalibrationAnswer['advice']['measurements'][number],
  copy: (text: string) => void,
): TemplateResult {
  return html`<div class="calibrate-command">
    <p class="quiet-text">${sentence(what)} ${tells.length > 0 ? `Tells ${tells.join(', ').toLowerCase()}.` : nothing}</p>
    <pre tabindex="0" aria-label="Command">${text}</pre>
    <button type="button" @click=${() => copy(text)}>Copy command</button>
  </div>`;
}

function replayRow(figure: ReplayDistance, of: string): TemplateResult {
  const off = figure.measured_p50_ms > 0 ? 100 * Math.abs(figure.simulated_p50_ms / figure.measured_p50_ms - 1) : 0;
  return html`<tr>
    <th scope="row">${figureNames[figure.figure]}${of} <small>${formatCount(figure.values)}</small></th>
    <td>${figure.ks_before === undefined ? '–' : figure.ks_before.toFixed(2)}</td>
    <td><b>${figure.ks.toFixed(2)}</b>${figure.met ? nothing : html` <span title="Beyond its limits" aria-label="beyond its limits">▲</span>`}</td>
    <td>${percentOff(off)}</td>
  </tr>`;
}

/** Two digits, and no more than matter. */
const percentOff = (percent: number): string => formatNumber(Math.round(percent * 100) / 100, 2);

function parameterRow(p: CalibrationAnswer['parameters'][number]): TemplateResult {
  const { state, sign } = chips[p.told];
  const interval =
    p.value === null || p.half === undefined
      ? '–'
      : p.told === 'at its limit'
        ? 'at its limit'
        : `${formatNumber(p.low ?? 0)} to ${formatNumber(p.high ?? 0)}`;
  const why = p.like ? `Not told apart from ${p.like.toLowerCase()}. ` : '';
  return html`<tr>
    <th scope="row">${p.title} <span class="quiet-text wide">${p.of}</span></th>
    <td class="wide">${formatNumber(p.before)}</td>
    <td class="wide">${p.value === null ? '–' : formatNumber(p.value)}</td>
    <td>${interval}</td>
    <td><span class="calibrate-chip is-${state}" title=${p.told === 'found' ? '' : `${why}What tells it: ${p.told_by}.`}><span aria-hidden="true">${sign}</span> ${p.told}</span></td>
  </tr>`;
}

/** A file's line begins with its name, which stands above it already. */
function withoutName(found: string, name: string): string {
  const text = found.startsWith(`${name}: `) ? found.slice(name.length + 2) : found;
  return text === '' ? '' : sentence(text);
}

function issueList(issues: readonly Issue[]): TemplateResult {
  return html`<ul class="issues">${issues.slice(0, 20).map((issue) => html`<li>${issueText(issue)}</li>`)}</ul>`;
}

function columnsOf(points: readonly MeasuredPoint[]): Record<string, Float64Array> {
  const column = (of: (point: MeasuredPoint) => number) => Float64Array.from(points, of);
  return {
    at: column(({ at }) => at),
    context: column(({ context }) => context),
    measured_ms: column(({ measured_ms: ms }) => ms),
    before_ms: column(({ before_ms: ms }) => ms),
    after_ms: column(({ after_ms: ms }) => ms),
  };
}

addStyles(styles);
customElements.define('sc-calibrate', CalibrateElement);

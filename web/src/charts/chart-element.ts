// What every chart on the page has: a titled card, a tool bar (table, save), a text summary, a reachable cursor with
// a read-out, zoom by wheel and keys, a reason when it is empty. Subclasses say what is drawn.
import { html, nothing, render, type PropertyValues, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type uPlot from 'uplot';
import type { Columns } from '../engine/protocol';
import { addStyles } from '../lib/part';
import { inTurn, inTurnIf } from '../lib/turns';
import styles from '../styles/chart.css?inline';
import { readPalette, type Palette } from './palette';

export interface TableView {
  readonly caption: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Of every axis. */
export function axisStyle({ muted, font, grid }: Palette) {
  const line = { stroke: grid, width: 1 };
  return { stroke: muted, font, labelFont: font, labelSize: 20, grid: line, ticks: { ...line, size: 4 } };
}

addStyles(styles);

const undrawn = new Set<ChartElement>();

function drawSoon(chart: ChartElement): void {
  if (undrawn.has(chart)) return;
  undrawn.add(chart);
  void inTurn(() => {
    undrawn.delete(chart);
    chart.draw();
    // For those who measure.
    if (undrawn.size === 0) document.dispatchEvent(new Event('sc-drawn'));
  });
}

/**
 * Scripts do not run while a page is printed: before, charts are drawn for half a page's width, or a whole one's, px. Paper
 * shows the half at 0.73: text of 7 pt, whatever the window's width was.
 */
export const paper = { on: false, half: 464, whole: 690 };

/** What keys and the wheel do to a chart: comes after the first verdict (chart-moves). */
export const moves: {
  key?: (chart: ChartElement, event: KeyboardEvent) => void;
  wheel?: (chart: ChartElement, event: WheelEvent) => void;
} = {};

export abstract class ChartElement extends PlainElement {
  static override properties = {
    columns: { attribute: false },
    theme: { attribute: false },
    fileStem: { attribute: false },
    waitingFor: { attribute: false },
    note: { attribute: false },
    showsTable: { state: true },
  };
  declare columns: Columns | null;
  /** Redraws when it changes: "light" or "dark". */
  declare theme: string;
  declare fileStem: string;
  /** Why there are no columns. */
  declare waitingFor: string;
  /** Said below the chart. */
  declare note: TemplateResult | typeof nothing;
  declare showsTable: boolean;

  plots: uPlot[] = [];
  #observer: ResizeObserver | null = null;
  #structure = '';
  #inputs: readonly unknown[] | null = null;
  #hadFocus = false;

  constructor() {
    super();
    this.columns = null;
    this.theme = 'light';
    this.fileStem = 'servecast';
    this.waitingFor = '';
    this.note = nothing;
    this.showsTable = false;
  }

  protected abstract readonly heading: string;
  /** Column names of the CSV, in order. */
  protected abstract csvColumns(): readonly string[];
  protected abstract emptyReason(): string | null;
  protected abstract summary(): string;
  protected abstract tableView(): TableView;
  /** Changes when the plots must be made anew rather than given new data. */
  protected abstract structure(): string;
  protected abstract buildPlots(host: HTMLElement, palette: Palette, width: number): uPlot[];
  protected abstract updatePlots(): void;
  /** All that plots of one structure draw: while these are the same, what a hand has zoomed to stays. Null: not known. */
  protected inputs(): readonly unknown[] | null {
    return null;
  }
  protected abstract readout(plot: uPlot): TemplateResult | string;
  /** What stands above each plot, for files. */
  protected plotTitles(): readonly string[] {
    return [];
  }
  protected tools(): TemplateResult | typeof nothing {
    return nothing;
  }
  /** Of one, where the chart is so wide. */
  protected plotWidth(width: number): number {
    return width;
  }
  /** How far an arrow key moves the cursor, px. */
  abstract cursorStep(plot: uPlot): number;
  /** The same up and down; 0: there is nothing to choose. */
  rowStep(): number {
    return 0;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.classList.add('chart-host');
    this.#observer = new ResizeObserver(() => this.resize());
    this.#observer.observe(this);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#observer?.disconnect();
    this.#drop();
  }

  protected override render(): TemplateResult {
    const empty = this.emptyReason();
    return html`
      <figure class="card chart">
        <figcaption class="chart-head">
          <h3>${this.heading}</h3>
          <div class="tools" role="group" aria-label=${`${this.heading}: view and export`}>
            ${empty === null ? this.#toolbar() : nothing}
          </div>
        </figcaption>
        ${empty === null ? this.#body() : html`<p class="empty">${empty}</p>`}
        ${this.note}
      </figure>
    `;
  }

  #toolbar(): TemplateResult {
    return html`
      ${this.showsTable ? nothing : this.tools()}
      <button class="quiet" type="button" aria-pressed=${this.showsTable} @click=${() => (this.showsTable = !this.showsTable)}>Table</button>
      <select class="save" aria-label=${`Save ${this.heading}`} @change=${(event: Event) => void this.#save(event.target as HTMLSelectElement)}>
        <option value="">Save</option>
        ${['CSV', ...(this.showsTable ? [] : ['PNG', 'SVG'])].map((kind) => html`<option>${kind}</option>`)}
      </select>
    `;
  }

  #body(): TemplateResult {
    if (this.showsTable) return this.#table();
    return html`
      <p class="visually-hidden">${this.summary()}</p>
      <div
        class="plots"
        tabindex="0"
        role="group"
        aria-label=${`${this.heading}, chart. Arrow keys move the cursor.`}
        @keydown=${(event: KeyboardEvent) => moves.key?.(this, event)}
        @wheel=${(event: WheelEvent) => moves.wheel?.(this, event)}
      ></div>
      <p class="readout" aria-live="polite"></p>
    `;
  }

  #table(): TemplateResult {
    const { caption, head, rows } = this.tableView();
    return html`
      <div class="table-scroll" tabindex="0" role="region" aria-label=${caption}>
        <table>
          <caption>${caption}</caption>
          <thead><tr>${head.map((cell) => html`<th scope="col">${cell}</th>`)}</tr></thead>
          <tbody>
            ${rows.map(([first, ...rest]) => html`<tr><th scope="row">${first}</th>${rest.map((cell) => html`<td>${cell}</td>`)}</tr>`)}
          </tbody>
        </table>
      </div>
    `;
  }

  /** At first in its turn: others come with it. */
  protected override scheduleUpdate(): Promise<void> | undefined {
    return inTurnIf(!this.hasUpdated, () => super.scheduleUpdate());
  }

  protected override willUpdate(_changed: PropertyValues): void {
    const plots = this.querySelector('.plots');
    this.#hadFocus ||= plots !== null && plots === document.activeElement;
  }

  /** A chart that is empty while a result is made anew gives its focus back, unless something else took it. */
  protected override updated(_changed: PropertyValues): void {
    const plots = this.querySelector<HTMLElement>('.plots');
    if (this.#hadFocus && plots) {
      this.#hadFocus = false;
      if (document.activeElement === document.body) plots.focus({ preventScroll: true });
    }
    drawSoon(this);
  }

  /** Called by the queue, never directly. */
  draw(): void {
    const host = this.querySelector<HTMLElement>('.plots');
    if (!host || this.emptyReason() !== null) {
      this.#drop();
      return;
    }
    const structure = `${this.theme}|${this.structure()}`;
    if (this.plots.length > 0 && structure === this.#structure && host.firstChild) {
      if (!this.#hasDrawn()) this.updatePlots();
    } else {
      this.#drop();
      host.replaceChildren();
      this.#structure = structure;
      this.plots = this.buildPlots(host, readPalette(this), Math.max(240, host.clientWidth));
    }
    this.#inputs = this.inputs();
    this.showReadout(this.plots[0]);
  }

  #hasDrawn(): boolean {
    const now = this.inputs();
    const former = this.#inputs;
    return now !== null && former?.length === now.length && now.every((each, index) => Object.is(each, former[index]));
  }

  #drop(): void {
    for (const plot of this.plots) plot.destroy();
    this.plots = [];
  }

  /** To its place, or to that on paper. */
  resize(): void {
    const own = this.querySelector<HTMLElement>('.plots')?.clientWidth ?? 0;
    const host = paper.on ? (this.closest('.charts') ? paper.half : paper.whole) : own;
    const width = this.plotWidth(host);
    for (const plot of this.plots) {
      if (host > 0 && plot.width !== width) plot.setSize({ width, height: plot.height });
    }
  }

  protected showReadout(plot: uPlot | undefined): void {
    const line = this.querySelector<HTMLElement>('.readout');
    if (line && plot) render(this.readout(plot), line);
  }

  /** As SVG text, so wide and in these colours, without its heading; "": it is empty. The element need not be in the page. */
  async picture(palette: Palette, width: number): Promise<string> {
    if (this.emptyReason() !== null) return '';
    const { asSvg } = await import('./chart-files');
    return asSvg({ heading: '', palette, titles: [] }, (host) => this.buildPlots(host, palette, width));
  }

  async #save(select: HTMLSelectElement): Promise<void> {
    const kind = select.value;
    select.value = '';
    const files = await import('./chart-files').catch(() => null);
    const names = this.csvColumns();
    const width = Math.max(240, this.querySelector<HTMLElement>('.plots')?.clientWidth ?? 0);
    await files?.saveChart(kind, {
      name: `${this.fileStem}-${this.heading.toLowerCase().replace(/[^a-z0-9]+/g, '-')}`,
      heading: this.heading,
      palette: readPalette(this),
      columns: names.map((name) => ({ name, values: this.columns?.[name] ?? new Float64Array(0) })),
      plots: this.plots,
      titles: this.plotTitles(),
      draw: (host) => this.buildPlots(host, readPalette(this), width),
    });
  }
}

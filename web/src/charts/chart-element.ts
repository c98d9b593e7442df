// What every chart on the page has: a titled card, a tool bar (table, CSV, PNG), a text summary, a
// reachable cursor with a read-out, a reason when it is empty. Subclasses say what is drawn.
import { LitElement, html, nothing, render, type PropertyValues, type TemplateResult } from 'lit';
import type uPlot from 'uplot';
import type { Columns } from '../engine/protocol';
import { download } from '../lib/download';
import { readPalette, type Palette } from './palette';

export interface TableView {
  readonly caption: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

// Charts are drawn in tasks of their own, right after what they are of has been said: several in one while that is
// short, so that answers keep up with a hand that drags, and no task grows with the number of charts.
const drawMs = 8;
const undrawn = new Set<ChartElement>();
const turns = new MessageChannel();
turns.port1.onmessage = () => drawNext();

function drawSoon(chart: ChartElement): void {
  undrawn.add(chart);
  if (undrawn.size === 1) turns.port2.postMessage(null);
}

function drawNext(): void {
  const begin = performance.now();
  for (const chart of undrawn) {
    undrawn.delete(chart);
    chart.draw();
    if (performance.now() - begin > drawMs) break;
  }
  if (undrawn.size > 0) turns.port2.postMessage(null);
  // For those who measure.
  else document.dispatchEvent(new Event('sc-drawn'));
}

export abstract class ChartElement extends LitElement {
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

  protected plots: uPlot[] = [];
  #observer: ResizeObserver | null = null;
  #structure = '';

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
  protected abstract readout(plot: uPlot): TemplateResult | string;
  protected tools(): TemplateResult | typeof nothing {
    return nothing;
  }
  /** How far an arrow key moves the cursor, px. */
  protected abstract cursorStep(plot: uPlot): number;
  /** The same up and down; 0: there is nothing to choose. */
  protected rowStep(): number {
    return 0;
  }

  protected override createRenderRoot(): HTMLElement {
    return this;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#observer = new ResizeObserver(() => this.#resize());
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
      <button class="quiet" type="button" @click=${() => this.#saveCsv()}>CSV</button>
      <button class="quiet" type="button" ?disabled=${this.showsTable} @click=${() => this.#savePng()}>PNG</button>
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
        @keydown=${(event: KeyboardEvent) => this.#moveCursor(event)}
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

  protected override updated(_changed: PropertyValues): void {
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
      this.updatePlots();
    } else {
      this.#drop();
      host.replaceChildren();
      this.#structure = structure;
      this.plots = this.buildPlots(host, readPalette(this), Math.max(240, host.clientWidth));
    }
    this.showReadout(this.plots[0]);
  }

  #drop(): void {
    for (const plot of this.plots) plot.destroy();
    this.plots = [];
  }

  #resize(): void {
    const width = this.querySelector<HTMLElement>('.plots')?.clientWidth ?? 0;
    for (const plot of this.plots) {
      if (width > 0 && plot.width !== width) plot.setSize({ width, height: plot.height });
    }
  }

  protected showReadout(plot: uPlot | undefined): void {
    const line = this.querySelector<HTMLElement>('.readout');
    if (line && plot) render(this.readout(plot), line);
  }

  #moveCursor(event: KeyboardEvent): void {
    const plot = this.plots[0];
    if (!plot) return;
    const width = plot.over.clientWidth;
    const step = this.cursorStep(plot) * (event.shiftKey ? 10 : 1);
    const from = plot.cursor.left !== undefined && plot.cursor.left >= 0 ? plot.cursor.left : width / 2;
    const row = this.rowStep();
    const middle = plot.over.clientHeight / 2;
    const height = row > 0 && (plot.cursor.top ?? -1) >= 0 ? (plot.cursor.top ?? middle) : row > 0 ? row / 2 : middle;
    const places: Record<string, [number, number]> = {
      ArrowLeft: [from - step, height],
      ArrowRight: [from + step, height],
      Home: [0, height],
      End: [width - 1, height],
      ...(row > 0 ? { ArrowUp: [from, height - row], ArrowDown: [from, height + row] } : {}),
    };
    const place = places[event.key];
    if (place === undefined) {
      this.#zoom(event, plot, from / width);
      return;
    }
    event.preventDefault();
    for (const each of this.plots) {
      const top = row > 0 ? Math.min(each.over.clientHeight - 1, Math.max(0, place[1])) : each.over.clientHeight / 2;
      each.setCursor({ left: Math.min(width - 1, Math.max(0, place[0])), top });
    }
  }

  /** + and - about the cursor, 0 back to all, where dragging zooms too. */
  #zoom(event: KeyboardEvent, plot: uPlot, share: number): void {
    const factor = { '+': 0.5, '=': 0.5, '-': 2, '0': Infinity }[event.key];
    if (factor === undefined || !plot.cursor.drag?.x) return;
    event.preventDefault();
    const { min = 0, max = 1 } = plot.scales['x'] ?? {};
    const [low, high] = [min ?? 0, max ?? 1];
    const data = plot.data[0];
    const ends = [data[0] ?? low, data[data.length - 1] ?? high] as const;
    const about = low + share * (high - low);
    const next = {
      min: Math.max(ends[0], about - share * (high - low) * factor),
      max: Math.min(ends[1], about + (1 - share) * (high - low) * factor),
    };
    if (factor === Infinity) Object.assign(next, { min: ends[0], max: ends[1] });
    if (next.max > next.min) for (const each of this.plots) each.setScale('x', next);
  }

  #saveCsv(): void {
    const names = this.csvColumns();
    const columns = names.map((name) => this.columns?.[name] ?? new Float64Array(0));
    const length = Math.max(0, ...columns.map((column) => column.length));
    const lines = [names.join(',')];
    for (let row = 0; row < length; row += 1) lines.push(columns.map((column) => String(column[row] ?? '')).join(','));
    download(`${this.fileStem}-${slug(this.heading)}.csv`, new Blob([`${lines.join('\n')}\n`], { type: 'text/csv' }));
  }

  #savePng(): void {
    const palette = readPalette(this);
    const ratio = devicePixelRatio;
    const canvases = this.plots.map((plot) => plot.ctx.canvas);
    const image = document.createElement('canvas');
    const margin = 16 * ratio;
    image.width = Math.max(...canvases.map((canvas) => canvas.width)) + 2 * margin;
    image.height = canvases.reduce((sum, canvas) => sum + canvas.height, 40 * ratio) + margin;
    const pen = image.getContext('2d');
    if (!pen) return;
    pen.fillStyle = palette.surface;
    pen.fillRect(0, 0, image.width, image.height);
    pen.fillStyle = palette.ink;
    pen.font = palette.font.replace('13px', `600 ${15 * ratio}px`);
    pen.fillText(this.heading, margin, 26 * ratio);
    let top = 40 * ratio;
    for (const canvas of canvases) {
      pen.drawImage(canvas, margin, top);
      top += canvas.height;
    }
    image.toBlob((blob) => blob && download(`${this.fileStem}-${slug(this.heading)}.png`, blob), 'image/png');
  }
}

function slug(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, '-');
}

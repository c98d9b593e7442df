// How far predictions are off what was measured, before a calibration and after it: a place a measurement. Loaded with the
// calibration.
import { html, nothing, type TemplateResult } from 'lit';
import uPlot from 'uplot';
import { formatPercent } from '../lib/format';
import { offBefore, percentOff, signedPercent, type Residual } from '../lib/residuals';
import { ChartElement, axisStyle, type TableView } from './chart-element';
import { paneKey } from './pane-key';
import type { Palette } from './palette';

const off = ({ after, measured }: Residual): number => percentOff(after, measured);
const offFormerly = ({ before, measured }: Residual): number | null =>
  before === null ? null : percentOff(before, measured);

export class ResidualChart extends ChartElement {
  static override properties = {
    ...ChartElement.properties,
    points: { attribute: false },
    heading: { attribute: false },
    unit: { attribute: false },
    scatter: { attribute: false },
    grey: { attribute: false },
    format: { attribute: false },
    figure: { state: true },
  };
  /** In the order in which they are shown. */
  declare points: readonly Residual[];
  declare heading: string;
  /** Below the axis. */
  declare unit: string;
  /** Per cent either way that say nothing against a prediction, and why. */
  declare scatter: number;
  declare grey: string;
  /** A value with its unit. */
  declare format: (value: number) => string;
  /** Null: the first that was measured. */
  declare figure: string | null;
  #palette: Palette | null = null;

  constructor() {
    super();
    this.points = [];
    this.heading = '';
    this.unit = '';
    this.scatter = 2;
    this.grey = 'what repeats differ by';
    this.format = String;
    this.figure = null;
  }

  protected csvColumns(): readonly string[] {
    return Object.keys(this.columns ?? {});
  }

  get #figures(): readonly string[] {
    return [...new Set(this.points.map(({ figure }) => figure))];
  }

  get #chosen(): string | undefined {
    return this.figure !== null && this.#figures.includes(this.figure) ? this.figure : this.#figures[0];
  }

  get #rows(): readonly Residual[] {
    return this.points.filter(({ figure }) => figure === this.#chosen);
  }

  protected override tools(): TemplateResult | typeof nothing {
    if (this.#figures.length < 2) return nothing;
    return html`${this.#figures.map((figure) => html`<button class="quiet" type="button" aria-pressed=${figure === this.#chosen} @click=${() => (this.figure = figure)}>${figure}</button>`)}`;
  }

  protected emptyReason(): string | null {
    return this.points.length > 0 ? null : 'Empty: nothing of this kind was measured.';
  }

  protected summary(): string {
    const rows = this.#rows;
    const most = (values: readonly (number | null)[]) => {
      const known = values.filter((value) => value !== null);
      return known.length === 0 ? 'not known' : formatPercent(Math.max(...known.map(Math.abs)) / 100);
    };
    return `${this.heading}: off by at most ${most(rows.map(offFormerly))} before, ${most(rows.map(off))} after.`;
  }

  protected tableView(): TableView {
    return {
      caption: 'Measured and predicted',
      head: ['measurement', 'figure', 'measured', 'before', 'off', 'after', 'off'],
      rows: this.points.map((point) => [
        point.label,
        point.figure,
        this.format(point.measured),
        point.before === null ? 'not known' : this.format(point.before),
        offBefore(point),
        this.format(point.after),
        signedPercent(off(point)),
      ]),
    };
  }

  protected structure(): string {
    return `${this.#chosen} ${this.unit} ${this.#rows.map(({ place }) => place).join()}`;
  }

  cursorStep(plot: uPlot): number {
    return plot.over.clientWidth / Math.max(1, this.#rows.length);
  }

  protected buildPlots(host: HTMLElement, palette: Palette, width: number): uPlot[] {
    this.#palette = palette;
    const axis = axisStyle(palette);
    const rows = this.#rows;
    const pane = document.createElement('div');
    const title = this.#chosen ? `${this.#chosen}, predicted less measured` : '';
    host.append(
      paneKey(
        [
          { label: 'before', mark: 'swatch residual-before' },
          { label: 'after', mark: 'swatch residual-after' },
        ],
        title,
      ),
      pane,
    );
    const dot = (index: number) => (plot: uPlot) => this.#dots(plot, index);
    const options: uPlot.Options = {
      width,
      height: 200,
      legend: { show: false },
      padding: [12, 12, 0, 0],
      cursor: { y: false, drag: { x: false, y: false } },
      scales: {
        x: { time: false, range: () => [-0.5, Math.max(rows.length - 0.5, 0.5)] },
        y: {
          range: (_plot, low, high) => [
            Math.min(low ?? 0, -2 * this.scatter) * 1.1,
            Math.max(high ?? 0, 2 * this.scatter) * 1.1,
          ],
        },
      },
      axes: [
        {
          ...axis,
          size: 28,
          label: this.unit,
          grid: { show: false },
          splits: () => rows.map((_row, index) => index),
          filter: (_plot, splits) => thinned(splits, width),
          values: (_plot, splits) => splits.map((index) => (index === null ? '' : (rows[index]?.place ?? ''))),
        },
        {
          ...axis,
          size: 64,
          values: (_plot, splits) => splits.map((value) => (value === 0 ? '0' : signedPercent(value))),
        },
      ],
      series: [
        {},
        { stroke: palette.muted, paths: () => null, points: { show: false } },
        { stroke: palette.of('ttft'), paths: () => null, points: { show: false } },
      ],
      hooks: {
        drawClear: [(plot) => this.#band(plot)],
        draw: [dot(1), dot(2)],
        setCursor: [(plot) => this.showReadout(plot)],
      },
    };
    return [new uPlot(options, this.#data(), pane)];
  }

  #data(): uPlot.AlignedData {
    const rows = this.#rows;
    return [rows.map((_row, index) => index), rows.map(offFormerly), rows.map(off)];
  }

  protected updatePlots(): void {
    this.plots[0]?.setData(this.#data());
  }

  /** The grey band, and the line of no error. */
  #band(plot: uPlot): void {
    const palette = this.#palette;
    if (!palette) return;
    const { ctx: pen, bbox } = plot;
    const y = (value: number) => plot.valToPos(value, 'y', true);
    pen.save();
    pen.fillStyle = palette.grid;
    pen.fillRect(bbox.left, y(this.scatter), bbox.width, y(-this.scatter) - y(this.scatter));
    pen.strokeStyle = palette.muted;
    pen.lineWidth = devicePixelRatio;
    pen.beginPath();
    pen.moveTo(bbox.left, y(0));
    pen.lineTo(bbox.left + bbox.width, y(0));
    pen.stroke();
    pen.restore();
  }

  /** Before hollow, after filled. */
  #dots(plot: uPlot, series: number): void {
    const palette = this.#palette;
    if (!palette) return;
    const { ctx: pen } = plot;
    const ratio = devicePixelRatio;
    pen.save();
    pen.lineWidth = 2 * ratio;
    pen.strokeStyle = series === 1 ? palette.muted : palette.of('ttft');
    pen.fillStyle = series === 1 ? palette.surface : palette.of('ttft');
    for (const [index, value] of (plot.data[series] ?? []).entries()) {
      if (value === null || value === undefined) continue;
      pen.beginPath();
      pen.arc(plot.valToPos(index, 'x', true), plot.valToPos(value, 'y', true), 4 * ratio, 0, 2 * Math.PI);
      pen.fill();
      pen.stroke();
    }
    pen.restore();
  }

  protected readout(plot: uPlot): TemplateResult | string {
    const { idx } = plot.cursor;
    const row = idx === null || idx === undefined ? undefined : this.#rows[idx];
    if (!row) return `Grey: ${this.grey}, ${this.scatter}\u202f%.`;
    return html`<b>${row.label}</b> <span>measured ${this.format(row.measured)}</span>
      <span>before ${offBefore(row)}</span>
      <span>after ${signedPercent(off(row))}</span>`;
  }
}

/** Labels that would touch are left out. */
function thinned(splits: readonly number[], width: number): (number | null)[] {
  const every = Math.max(1, Math.ceil(splits.length / Math.max(1, Math.floor(width / 52))));
  return splits.map((split, index) => (index % every === 0 ? split : null));
}

customElements.define('sc-residual-chart', ResidualChart);

// How far predictions are off what was measured, before a calibration and after it: a place a measurement, in order of its
// load. Loaded with the calibration.
import { html, nothing, type TemplateResult } from 'lit';
import type { CalibrationAnswer, MeasuredFigure } from 'servecast';
import uPlot from 'uplot';
import { formatNumber, formatPercent, formatTime } from '../lib/format';
import { ChartElement, axisStyle, type TableView } from './chart-element';
import { paneKey } from './pane-key';
import type { Palette } from './palette';

export type MeasuredPoint = CalibrationAnswer['points'][number];

/** Repeats of a measurement differ by so much, per cent. */
const scatter = 2;
const names: Record<MeasuredFigure, string> = { ttft: 'TTFT', tpot: 'TPOT', e2e: 'E2E' };
const figures: readonly MeasuredFigure[] = ['tpot', 'e2e', 'ttft'];

const off = (ms: number, measured: number): number => 100 * (ms / measured - 1);
const signed = (percent: number): string =>
  `${percent > 0 ? '+' : percent < 0 ? '\u2212' : ''}${formatPercent(Math.abs(percent) / 100)}`;
const short = (value: number): string =>
  value >= 1000
    ? `${formatNumber(value / 1000, value >= 1e5 ? 3 : 2).replace(/\.0+$/, '')}k`
    : `${Number(value.toPrecision(3))}`;

/** What stands below its place: tokens, batch (and context where that is long), rate. */
export function placeOf({ of, at, context }: MeasuredPoint): string {
  if (of === 'step' && context >= 2048) return `${short(context)}`;
  return at > 0 ? short(at) : '';
}

export class ResidualChart extends ChartElement {
  static override properties = {
    ...ChartElement.properties,
    points: { attribute: false },
    heading: { attribute: false },
    unit: { attribute: false },
    figure: { state: true },
  };
  declare points: readonly MeasuredPoint[];
  declare heading: string;
  /** Below the axis. */
  declare unit: string;
  /** Null: the first that was measured. */
  declare figure: MeasuredFigure | null;
  #palette: Palette | null = null;

  constructor() {
    super();
    this.points = [];
    this.heading = '';
    this.unit = '';
    this.figure = null;
  }

  protected csvColumns(): readonly string[] {
    return Object.keys(this.columns ?? {});
  }

  get #figures(): readonly MeasuredFigure[] {
    return figures.filter((figure) => this.points.some((point) => point.figure === figure));
  }

  get #chosen(): MeasuredFigure | undefined {
    return this.figure && this.#figures.includes(this.figure) ? this.figure : this.#figures[0];
  }

  get #rows(): readonly MeasuredPoint[] {
    return this.points
      .filter(({ figure }) => figure === this.#chosen)
      .sort((a, b) => a.context - b.context || a.at - b.at);
  }

  protected override tools(): TemplateResult | typeof nothing {
    if (this.#figures.length < 2) return nothing;
    return html`${this.#figures.map((figure) => html`<button class="quiet" type="button" aria-pressed=${figure === this.#chosen} @click=${() => (this.figure = figure)}>${names[figure]}</button>`)}`;
  }

  protected emptyReason(): string | null {
    return this.points.length > 0 ? null : 'Empty: nothing of this kind was measured.';
  }

  protected summary(): string {
    const rows = this.#rows;
    const most = (of: (point: MeasuredPoint) => number) => Math.max(0, ...rows.map((row) => Math.abs(of(row))));
    const before = most((row) => off(row.before_ms, row.measured_ms));
    const after = most((row) => off(row.after_ms, row.measured_ms));
    return `${this.heading}: off by at most ${formatPercent(before / 100)} before, ${formatPercent(after / 100)} after.`;
  }

  protected tableView(): TableView {
    return {
      caption: 'Measured and predicted',
      head: ['measurement', 'figure', 'measured', 'before', 'off', 'after', 'off'],
      rows: this.points.map((point) => [
        point.label,
        names[point.figure],
        formatTime(point.measured_ms),
        formatTime(point.before_ms),
        signed(off(point.before_ms, point.measured_ms)),
        formatTime(point.after_ms),
        signed(off(point.after_ms, point.measured_ms)),
      ]),
    };
  }

  protected structure(): string {
    return `${this.#chosen} ${this.unit} ${this.#rows.map(placeOf).join()}`;
  }

  cursorStep(plot: uPlot): number {
    return plot.over.clientWidth / Math.max(1, this.#rows.length);
  }

  protected buildPlots(host: HTMLElement, palette: Palette, width: number): uPlot[] {
    this.#palette = palette;
    const axis = axisStyle(palette);
    const rows = this.#rows;
    const pane = document.createElement('div');
    const title = this.#chosen ? `${names[this.#chosen]}, predicted less measured` : '';
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
          range: (_plot, low, high) => [Math.min(low ?? 0, -2 * scatter) * 1.1, Math.max(high ?? 0, 2 * scatter) * 1.1],
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
          values: (_plot, splits) =>
            splits.map((index) => (index === null ? '' : placeOf(rows[index] as MeasuredPoint))),
        },
        { ...axis, size: 64, values: (_plot, splits) => splits.map((value) => (value === 0 ? '0' : signed(value))) },
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
    return [
      rows.map((_row, index) => index),
      rows.map((row) => off(row.before_ms, row.measured_ms)),
      rows.map((row) => off(row.after_ms, row.measured_ms)),
    ];
  }

  protected updatePlots(): void {
    this.plots[0]?.setData(this.#data());
  }

  /** What repeats differ by, and the line of no error. */
  #band(plot: uPlot): void {
    const palette = this.#palette;
    if (!palette) return;
    const { ctx: pen, bbox } = plot;
    const y = (value: number) => plot.valToPos(value, 'y', true);
    pen.save();
    pen.fillStyle = palette.grid;
    pen.fillRect(bbox.left, y(scatter), bbox.width, y(-scatter) - y(scatter));
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
    if (!row) return `Grey: what repeats differ by, ${scatter}\u202f%.`;
    return html`<b>${row.label}</b> <span>measured ${formatTime(row.measured_ms)}</span>
      <span>before ${signed(off(row.before_ms, row.measured_ms))}</span>
      <span>after ${signed(off(row.after_ms, row.measured_ms))}</span>`;
  }
}

/** Labels that would touch are left out. */
function thinned(splits: readonly number[], width: number): (number | null)[] {
  const every = Math.max(1, Math.ceil(splits.length / Math.max(1, Math.floor(width / 52))));
  return splits.map((split, index) => (index % every === 0 ? split : null));
}

customElements.define('sc-residual-chart', ResidualChart);

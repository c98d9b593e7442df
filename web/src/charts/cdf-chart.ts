// Cumulative distributions of TTFT, ITL and E2E on one latency axis, with the SLO limits as labelled
// lines and marks at p50, p95 and p99. uPlot gives scales, axes and cursor; the curves are drawn
// here, because each has its own abscissae (the engine's columns are quantiles).
import { html, type TemplateResult } from 'lit';
import uPlot from 'uplot';
import type { Report } from 'servecast';
import { formatPercent, formatTime } from '../lib/format';
import { ChartElement, type TableView } from './chart-element';
import type { Palette } from './palette';

const curves = [
  { column: 'cdf_ttft_ms', label: 'TTFT', meaning: 'ttft', dash: [], of: (report: Report) => report.ttft_ms },
  { column: 'cdf_itl_ms', label: 'ITL', meaning: 'itl', dash: [7, 3], of: (report: Report) => report.itl_ms },
  { column: 'cdf_e2e_ms', label: 'E2E', meaning: 'e2e', dash: [2, 3], of: (report: Report) => report.e2e_ms },
] as const;

const guides = [
  { fraction: 0.5, label: 'p50', shift: 4 },
  { fraction: 0.95, label: 'p95', shift: 10 },
  { fraction: 0.99, label: 'p99', shift: -2 },
] as const;

/** A linear axis hides the shortest curve when the longest is this many times longer. */
const logFrom = 30;

export class CdfChart extends ChartElement {
  static override properties = { ...ChartElement.properties, report: { attribute: false }, chosenScale: { state: true } };
  declare report: Report | null;
  declare chosenScale: 'log' | 'linear' | null;
  protected readonly heading = 'Latency distribution';
  #palette: Palette | null = null;

  constructor() {
    super();
    this.report = null;
    this.chosenScale = null;
  }

  protected csvColumns(): readonly string[] {
    return ['cdf_fraction', ...curves.map((curve) => curve.column)];
  }

  #curve(column: string): { x: Float64Array; y: Float64Array } {
    const none = new Float64Array(0);
    return { x: this.columns?.[column] ?? none, y: this.columns?.['cdf_fraction'] ?? none };
  }

  #span(): { low: number; high: number } {
    let low = Infinity;
    let high = 0;
    for (const { column } of curves) {
      const { x } = this.#curve(column);
      const first = x.find((value) => value > 0);
      low = Math.min(low, first ?? Infinity);
      high = Math.max(high, x.at(-1) ?? 0);
    }
    for (const slo of this.report?.slo ?? []) {
      if (slo.limit_ms < high * 3 && slo.limit_ms > low / 3) {
        high = Math.max(high, slo.limit_ms * 1.1);
        low = Math.min(low, slo.limit_ms);
      }
    }
    return { low: Number.isFinite(low) ? low : 1, high: Math.max(high, low) };
  }

  get #isLog(): boolean {
    const { low, high } = this.#span();
    return this.chosenScale === null ? high / low >= logFrom : this.chosenScale === 'log';
  }

  protected emptyReason(): string | null {
    if (!this.columns || !this.report) return this.waitingFor;
    if (curves.some((curve) => (this.columns?.[curve.column]?.length ?? 0) > 0 && this.#curve(curve.column).x.some(Number.isFinite))) return null;
    if (this.report.arrived === 0) return 'Empty: no request arrived.';
    return this.report.finished
      ? 'Empty: no request counts. None got a first token, or all arrived in the warm-up.'
      : 'Empty: no request has got its first token yet.';
  }

  protected summary(): string {
    const { report } = this;
    if (!report) return '';
    return curves
      .map((curve) => {
        const d = curve.of(report);
        return `${curve.label}: median ${formatTime(d.p50)}, 95th percentile ${formatTime(d.p95)}, 99th percentile ${formatTime(d.p99)}.`;
      })
      .join(' ');
  }

  protected tableView(): TableView {
    const percents = [1, 5, 10, 25, 50, 75, 90, 95, 99, 100];
    const y = this.columns?.['cdf_fraction'] ?? new Float64Array(0);
    const rows = percents.map((percent) => [`p${percent}`, ...curves.map(({ column }) => formatTime(valueAt(this.#curve(column).x, y, percent / 100)))]);
    return { caption: 'Latency by percentile', head: ['Percentile', ...curves.map((curve) => curve.label)], rows };
  }

  protected structure(): string {
    return this.#isLog ? 'log' : 'linear';
  }

  protected override tools(): TemplateResult {
    return html`<button class="quiet" type="button" aria-pressed=${this.#isLog} @click=${() => (this.chosenScale = this.#isLog ? 'linear' : 'log')}>
      Log axis
    </button>`;
  }

  protected cursorStep(plot: uPlot): number {
    return plot.over.clientWidth / 100;
  }

  #range(): [number, number] {
    const { low, high } = this.#span();
    return this.#isLog ? [low / 1.15, high * 1.15] : [0, high * 1.04];
  }

  protected buildPlots(host: HTMLElement, palette: Palette, width: number): uPlot[] {
    this.#palette = palette;
    const axis = { stroke: palette.muted, font: palette.font, labelFont: palette.font, labelSize: 20, grid: { stroke: palette.grid, width: 1 }, ticks: { stroke: palette.grid, width: 1, size: 4 } };
    const options: uPlot.Options = {
      width,
      height: 304,
      legend: { show: false },
      padding: [20, 40, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: {
        x: { time: false, distr: this.#isLog ? 3 : 1, range: () => this.#range() },
        y: { range: [0, 1] },
      },
      axes: [
        { ...axis, label: 'Latency', grid: { stroke: palette.grid, width: 1, filter: (_plot, splits) => splits.map((value) => (this.#isLog && !isDecade(value) ? null : value)) }, values: (_plot, splits) => splits.map((value) => tickLabel(value, this.#isLog)), size: 28, space: 64 },
        { ...axis, label: 'Share of requests or tokens', splits: () => [0, 0.25, 0.5, 0.75, 1], values: (_plot, splits) => splits.map((value) => `${value * 100}\u2009%`), size: 52 },
      ],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: { draw: [(plot) => this.#drawCurves(plot)], setCursor: [(plot) => this.showReadout(plot)] },
    };
    return [new uPlot(options, this.#data(), host)];
  }

  #data(): uPlot.AlignedData {
    return [this.#range(), [0, 1]];
  }

  protected updatePlots(): void {
    this.plots[0]?.setData(this.#data());
  }

  #drawCurves(plot: uPlot): void {
    const palette = this.#palette;
    if (!palette || !this.report) return;
    const { ctx: pen, bbox } = plot;
    const ratio = devicePixelRatio;
    pen.save();
    pen.font = palette.font.replace('13px', `${13 * ratio}px`);
    pen.lineJoin = 'round';
    for (const guide of guides) {
      const y = plot.valToPos(guide.fraction, 'y', true);
      pen.strokeStyle = palette.grid;
      pen.lineWidth = ratio;
      line(pen, bbox.left, y, bbox.left + bbox.width, y);
      pen.fillStyle = palette.muted;
      pen.textAlign = 'left';
      pen.fillText(guide.label, bbox.left + bbox.width + 6 * ratio, y + guide.shift * ratio);
    }
    for (const curve of curves) this.#drawCurve(plot, palette, curve);
    this.#drawLimits(plot, palette);
    this.#labelCurves(plot, palette);
    pen.restore();
  }

  #drawCurve(plot: uPlot, palette: Palette, curve: (typeof curves)[number]): void {
    const { ctx: pen, bbox } = plot;
    const ratio = devicePixelRatio;
    const { x, y } = this.#curve(curve.column);
    if (x.length === 0) return;
    pen.save();
    pen.beginPath();
    pen.rect(bbox.left, bbox.top - 2 * ratio, bbox.width, bbox.height + 4 * ratio);
    pen.clip();
    pen.strokeStyle = palette.of(curve.meaning);
    pen.lineWidth = 2 * ratio;
    pen.setLineDash(curve.dash.map((part) => part * ratio));
    pen.beginPath();
    const floor = this.#range()[0];
    for (let index = 0; index < x.length; index += 1) {
      const left = plot.valToPos(Math.max(x[index] ?? 0, floor), 'x', true);
      const top = plot.valToPos(y[index] ?? 0, 'y', true);
      if (index === 0) pen.moveTo(left, top);
      else pen.lineTo(left, top);
    }
    pen.stroke();
    pen.setLineDash([]);
    for (const { fraction } of guides) {
      const at = valueAt(x, y, fraction);
      if (at === null) continue;
      pen.beginPath();
      pen.arc(plot.valToPos(at, 'x', true), plot.valToPos(fraction, 'y', true), 3 * ratio, 0, 2 * Math.PI);
      pen.fillStyle = palette.of(curve.meaning);
      pen.fill();
      pen.lineWidth = ratio;
      pen.strokeStyle = palette.surface;
      pen.stroke();
    }
    pen.restore();
  }

  /** Beside each curve, at a height of its own so that labels never meet. */
  #labelCurves(plot: uPlot, palette: Palette): void {
    const { ctx: pen, bbox } = plot;
    const ratio = devicePixelRatio;
    const heights = [0.38, 0.24, 0.1];
    const placed = curves
      .map((curve) => ({ curve, ...this.#curve(curve.column) }))
      .filter(({ x }) => x.length > 0)
      .sort((a, b) => (valueAt(a.x, a.y, 0.3) ?? 0) - (valueAt(b.x, b.y, 0.3) ?? 0));
    placed.forEach(({ curve, x, y }, index) => {
      const height = heights[index] ?? 0.1;
      const at = valueAt(x, y, height);
      if (at === null) return;
      pen.textAlign = 'left';
      const width = pen.measureText(curve.label).width;
      let left = plot.valToPos(Math.max(at, this.#range()[0]), 'x', true) + 8 * ratio;
      if (left + width > bbox.left + bbox.width) left -= width + 16 * ratio;
      const top = plot.valToPos(height, 'y', true);
      haloText(pen, palette, curve.label, left, top + 3 * ratio);
    });
  }

  #drawLimits(plot: uPlot, palette: Palette): void {
    const { ctx: pen, bbox } = plot;
    const ratio = devicePixelRatio;
    const [low, high] = this.#range();
    let freeFrom = -Infinity;
    const limits = [...(this.report?.slo ?? [])].sort((a, b) => a.limit_ms - b.limit_ms);
    for (const slo of limits) {
      if (slo.limit_ms < low || slo.limit_ms > high) continue;
      const left = Math.round(plot.valToPos(slo.limit_ms, 'x', true));
      pen.strokeStyle = palette.ink;
      pen.lineWidth = ratio;
      pen.setLineDash([4 * ratio, 3 * ratio]);
      line(pen, left, bbox.top - 4 * ratio, left, bbox.top + bbox.height);
      pen.setLineDash([]);
      const label = `${slo.metric.toUpperCase()} limit ${formatTime(slo.limit_ms)}`;
      const width = pen.measureText(label).width;
      const start = Math.min(Math.max(left - width / 2, bbox.left), bbox.left + bbox.width + 36 * ratio - width);
      // Above the plot where there is room, else beside the line inside it.
      const inside = start < freeFrom;
      pen.textAlign = inside && left + width > bbox.left + bbox.width ? 'right' : 'left';
      const gap = (pen.textAlign === 'right' ? -4 : 4) * ratio;
      haloText(pen, palette, label, inside ? left + gap : start, inside ? bbox.top + 44 * ratio : bbox.top - 8 * ratio);
      if (inside) continue;
      freeFrom = start + width + 8 * ratio;
    }
  }

  protected readout(plot: uPlot): TemplateResult | string {
    const left = plot.cursor.left ?? -1;
    if (left < 0) {
      return html`${curves.map((curve) => html`<span class="key"><i class="swatch ${curve.meaning}"></i>${curve.label} p50 ${formatTime(this.report ? curve.of(this.report).p50 : null)}</span>`)}`;
    }
    const at = plot.posToVal(left, 'x');
    return html`<b>${formatTime(at)} or less</b> ${curves.map(
        (curve) => html`<span class="key"><i class="swatch ${curve.meaning}"></i>${curve.label} ${formatPercent(fractionAt(this.#curve(curve.column), at))}</span>`,
      )}`;
  }
}

/** Readable over lines: the surface's colour around the letters. */
function haloText(pen: CanvasRenderingContext2D, palette: Palette, text: string, left: number, top: number): void {
  pen.strokeStyle = palette.surface;
  pen.lineWidth = 4 * devicePixelRatio;
  pen.strokeText(text, left, top);
  pen.fillStyle = palette.ink;
  pen.fillText(text, left, top);
}

function line(pen: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

function isDecade(value: number): boolean {
  const power = Math.log10(value);
  return Math.abs(power - Math.round(power)) < 1e-9;
}

/** Log axes label powers of ten only. */
function tickLabel(value: number | null, log: boolean): string {
  if (value === null) return '';
  if (log && !isDecade(value)) return '';
  if (value < 1000) return `${value}\u2009ms`;
  return `${(value / 1000).toLocaleString('en-US')}\u2009s`;
}

/** Linear between quantiles; columns ascend. */
export function valueAt(x: Float64Array, fractions: Float64Array, fraction: number): number | null {
  const after = fractions.findIndex((value) => value >= fraction);
  if (after < 0 || x.length === 0) return null;
  const before = Math.max(0, after - 1);
  const [f0 = 0, f1 = 0, x0 = 0, x1 = 0] = [fractions[before], fractions[after], x[before], x[after]];
  return f1 === f0 ? x1 : x0 + ((x1 - x0) * (fraction - f0)) / (f1 - f0);
}

function fractionAt({ x, y }: { x: Float64Array; y: Float64Array }, at: number): number | null {
  if (x.length === 0) return null;
  const after = x.findIndex((value) => value > at);
  if (after < 0) return 1;
  if (after === 0) return 0;
  const [x0 = 0, x1 = 0, y0 = 0, y1 = 0] = [x[after - 1], x[after], y[after - 1], y[after]];
  return x1 === x0 ? y1 : y0 + ((y1 - y0) * (at - x0)) / (x1 - x0);
}

customElements.define('sc-cdf-chart', CdfChart);

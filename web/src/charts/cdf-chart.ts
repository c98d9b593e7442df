// All of the latencies, not their tail alone: cumulative distributions of TTFT, TPOT and E2E (ITL when asked for or limited) on one latency axis,
// marks at p50, p95 and p99, and the SLO limits: each a line in the colour and dash of its curve, named
// above the plot, with a ring at its percentile that the curve must pass on the left. uPlot gives
// scales, axes and cursor; the curves are drawn here, because each has its own abscissae. Loaded when it is asked for.
import { html, nothing, type TemplateResult } from 'lit';
import uPlot from 'uplot';
import type { Report } from 'servecast';
import { formatGivenTime, formatPercent, formatTime } from '../lib/format';
import { ChartElement, axisStyle, type TableView } from './chart-element';
import type { Palette } from './palette';
import { valueAt } from './quantiles';
import { axisTicks, tickLabel } from './ticks';
import { firstRun } from '../lib/first-run';

const allCurves = [
  { column: 'cdf_ttft_ms', label: 'TTFT', meaning: 'ttft', dash: [], width: 2, of: (report: Report) => report.ttft_ms },
  {
    column: 'cdf_tpot_ms',
    label: 'TPOT',
    meaning: 'tpot',
    dash: [7, 3],
    width: 2,
    of: (report: Report) => report.tpot_ms,
  },
  {
    column: 'cdf_itl_ms',
    label: 'ITL',
    meaning: 'itl',
    dash: [],
    width: 1,
    of: (report: Report) => firstRun(report).itl_ms,
  },
  { column: 'cdf_e2e_ms', label: 'E2E', meaning: 'e2e', dash: [2, 3], width: 2, of: (report: Report) => report.e2e_ms },
] as const;
type Curve = (typeof allCurves)[number];

const guides = [
  { fraction: 0.5, label: 'p50', shift: 4 },
  { fraction: 0.95, label: 'p95', shift: 10 },
  { fraction: 0.99, label: 'p99', shift: -2 },
] as const;

const axisLeft = 72;
const axisRight = 40;
const limitRow = 20;
const tickSpace = 56;
/** More would leave the curves no room: limits beyond have a line and no label. */
const labelRows = 4;

type Limit = Report['slo'][number] & { readonly limit_ms: number };

/** Of latencies: a share of the requests has no place on this axis. */
function limitsOf(report: Report | null | undefined): Limit[] {
  return (report?.slo ?? []).flatMap((slo) => (slo.limit_ms === null ? [] : [{ ...slo, limit_ms: slo.limit_ms }]));
}

interface PlacedLimit {
  readonly slo: Limit;
  readonly label: string;
  /** Px from the plot's left edge. */
  readonly line: number;
  readonly start: number;
  readonly width: number;
  /** 0 is the one next to the plot; null: no room. */
  readonly row: number | null;
}

/** A linear axis hides the shortest curve when the longest is this many times longer. */
const logFrom = 30;

export class CdfChart extends ChartElement {
  static override properties = {
    ...ChartElement.properties,
    report: { attribute: false },
    chosenScale: { state: true },
    withItl: { state: true },
    switcher: { attribute: false },
  };
  declare report: Report | null;
  declare chosenScale: 'log' | 'linear' | null;
  declare withItl: boolean;
  /** Buttons that show another chart instead. */
  declare switcher: TemplateResult | typeof nothing;
  readonly heading = 'Latency distribution';
  #palette: Palette | null = null;

  constructor() {
    super();
    this.report = null;
    this.chosenScale = null;
    this.withItl = false;
    this.switcher = nothing;
  }

  /** A limit on ITL must not stand without its curve. */
  get #itlLimited(): boolean {
    return this.report?.slo.some((slo) => slo.metric === 'itl') ?? false;
  }

  get #curves(): readonly Curve[] {
    return allCurves.filter((curve) => curve.meaning !== 'itl' || this.withItl || this.#itlLimited);
  }

  protected csvColumns(): readonly string[] {
    return ['cdf_fraction', ...allCurves.map((curve) => curve.column)];
  }

  #curve(column: string): { x: Float64Array; y: Float64Array } {
    const none = new Float64Array(0);
    return { x: this.columns?.[column] ?? none, y: this.columns?.['cdf_fraction'] ?? none };
  }

  #span(): { low: number; high: number } {
    let low = Infinity;
    let high = 0;
    for (const { column } of this.#curves) {
      const { x } = this.#curve(column);
      const first = x.find((value) => value > 0);
      low = Math.min(low, first ?? Infinity);
      high = Math.max(high, x.at(-1) ?? 0);
    }
    for (const slo of limitsOf(this.report)) {
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
    if (
      this.#curves.some(
        (curve) => (this.columns?.[curve.column]?.length ?? 0) > 0 && this.#curve(curve.column).x.some(Number.isFinite),
      )
    )
      return null;
    if (firstRun(this.report).arrived === 0) return 'Empty: no request arrived.';
    return this.report.finished
      ? 'Empty: no request counts. None got a first token, or all arrived in the warm-up.'
      : 'Empty: no request has got its first token yet.';
  }

  protected summary(): string {
    const { report } = this;
    if (!report) return '';
    return allCurves
      .map((curve) => {
        const d = curve.of(report);
        return `${curve.label}: median ${formatTime(d.p50)}, 95th percentile ${formatTime(d.p95)}, 99th percentile ${formatTime(d.p99)}.`;
      })
      .join(' ');
  }

  protected tableView(): TableView {
    const percents = [1, 5, 10, 25, 50, 75, 90, 95, 99, 100];
    const y = this.columns?.['cdf_fraction'] ?? new Float64Array(0);
    const rows = percents.map((percent) => [
      `p${percent}`,
      ...allCurves.map(({ column }) => formatTime(valueAt(this.#curve(column).x, y, percent / 100))),
    ]);
    return { caption: 'Latency by percentile', head: ['Percentile', ...allCurves.map((curve) => curve.label)], rows };
  }

  protected structure(): string {
    return `${this.#isLog ? 'log' : 'linear'} ${JSON.stringify(this.report?.slo.map((slo) => [slo.metric, slo.percentile, slo.limit_ms]))}`;
  }

  protected override tools(): TemplateResult {
    return html`${this.switcher}<button class="quiet" type="button" aria-pressed=${this.#isLog} @click=${() => (this.chosenScale = this.#isLog ? 'linear' : 'log')}>
      Log axis
    </button>
    <button class="quiet" type="button" title=${this.#itlLimited ? 'Shown: a limit is set on it' : 'Also show the time between two tokens'} aria-pressed=${this.withItl || this.#itlLimited} ?disabled=${this.#itlLimited} @click=${() => (this.withItl = !this.withItl)}>
      ITL
    </button>`;
  }

  cursorStep(plot: uPlot): number {
    return plot.over.clientWidth / 100;
  }

  #range(): [number, number] {
    const { low, high } = this.#span();
    return this.#isLog ? [low / 1.15, high * 1.15] : [0, high * 1.04];
  }

  protected buildPlots(host: HTMLElement, palette: Palette, width: number): uPlot[] {
    this.#palette = palette;
    const axis = axisStyle(palette);
    const options: uPlot.Options = {
      width,
      height: 304,
      legend: { show: false },
      padding: [(plot) => this.#headroom(plot), axisRight, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      scales: {
        x: { time: false, distr: this.#isLog ? 3 : 1, range: () => this.#range() },
        y: { range: [0, 1] },
      },
      axes: [
        {
          ...axis,
          label: 'Latency',
          size: 28,
          // The ticks are ours; these two only keep uPlot from finding that none fits.
          incrs: [1e12],
          space: 1,
          splits: (plot, _axis, low, high) =>
            axisTicks(low, high, this.#isLog, (plot.width - axisLeft - axisRight) / tickSpace),
          filter: (_plot, splits) => splits,
          values: (_plot, splits) => splits.map((value) => tickLabel(value)),
        },
        {
          ...axis,
          label: 'Share of requests or tokens',
          splits: () => [0, 0.25, 0.5, 0.75, 1],
          values: (_plot, splits) => splits.map((value) => `${value * 100}\u202f%`),
          size: 52,
        },
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
    this.#drawLimits(plot, palette);
    for (const curve of this.#curves) this.#drawCurve(plot, palette, curve);
    this.#ringLimits(plot, palette);
    this.#labelCurves(plot, palette);
    pen.restore();
  }

  #drawCurve(plot: uPlot, palette: Palette, curve: Curve): void {
    const { ctx: pen, bbox } = plot;
    const ratio = devicePixelRatio;
    const { x, y } = this.#curve(curve.column);
    if (x.length === 0) return;
    pen.save();
    pen.beginPath();
    pen.rect(bbox.left, bbox.top - 2 * ratio, bbox.width, bbox.height + 4 * ratio);
    pen.clip();
    pen.strokeStyle = palette.of(curve.meaning);
    pen.lineWidth = curve.width * ratio;
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
    const heights = [0.42, 0.3, 0.18, 0.07];
    const placed = this.#curves
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

  /** Labels stand above the plot, in as many rows as keep them apart, never beyond its edges. */
  #placeLimits(plotWidth: number, measure: (text: string) => number): PlacedLimit[] {
    const [low, high] = this.#range();
    const scale = this.#isLog ? Math.log : (value: number) => value;
    const ends: number[] = [];
    return limitsOf(this.report)
      .filter((slo) => slo.limit_ms >= low && slo.limit_ms <= high)
      .sort((a, b) => a.limit_ms - b.limit_ms)
      .map((slo) => {
        const label = `${slo.metric.toUpperCase()} p${slo.percentile} limit ${formatGivenTime(slo.limit_ms)}`;
        const width = measure(label) + 10;
        const line = (plotWidth * (scale(slo.limit_ms) - scale(low))) / (scale(high) - scale(low));
        const start = Math.max(0, Math.min(line - width / 2, plotWidth + axisRight - width));
        const free = ends.findIndex((end) => end + 6 <= start);
        const row = free >= 0 ? free : ends.length < labelRows ? ends.length : null;
        if (row !== null) ends[row] = start + width;
        return { slo, label, line, start, width, row };
      });
  }

  #measured(pen: CanvasRenderingContext2D): (text: string) => number {
    pen.font = (this.#palette?.font ?? '13px sans-serif').replace('13px', `${13 * devicePixelRatio}px`);
    return (text) => pen.measureText(text).width / devicePixelRatio;
  }

  #headroom(plot: uPlot): number {
    plot.ctx.save();
    const placed = this.#placeLimits(plot.width - axisLeft - axisRight, this.#measured(plot.ctx));
    plot.ctx.restore();
    return 12 + limitRow * Math.max(0, ...placed.map(({ row }) => (row ?? 0) + 1));
  }

  #drawLimits(plot: uPlot, palette: Palette): void {
    const { ctx: pen, bbox } = plot;
    const ratio = devicePixelRatio;
    const placed = this.#placeLimits(bbox.width / ratio, this.#measured(pen));
    const topOf = (row: number) => bbox.top - (6 + limitRow * (row + 1)) * ratio;
    // All lines first: a label of a lower row covers the lines that pass behind it.
    for (const { slo, line: at, row } of placed) {
      const left = Math.round(bbox.left + at * ratio);
      pen.strokeStyle = palette.of(slo.metric);
      pen.lineWidth = 1.5 * ratio;
      pen.setLineDash(dashOf(slo.metric).map((part) => part * ratio));
      line(pen, left, topOf(row ?? 0) + limitRow * ratio, left, bbox.top + bbox.height);
      pen.setLineDash([]);
    }
    for (const { slo, label, start, width, row } of placed) {
      if (row === null) continue;
      const left = bbox.left + start * ratio;
      pen.fillStyle = palette.surface;
      pen.fillRect(left, topOf(row), width * ratio, (limitRow - 2) * ratio);
      pen.strokeStyle = palette.of(slo.metric);
      pen.lineWidth = ratio;
      pen.strokeRect(left, topOf(row), width * ratio, (limitRow - 2) * ratio);
      pen.fillStyle = palette.ink;
      pen.textAlign = 'left';
      pen.textBaseline = 'middle';
      pen.fillText(label, left + 5 * ratio, topOf(row) + (limitRow / 2 - 1) * ratio);
      pen.textBaseline = 'alphabetic';
    }
  }

  /** Where a limit holds: its curve is to pass left of the ring. */
  #ringLimits(plot: uPlot, palette: Palette): void {
    const { ctx: pen } = plot;
    const ratio = devicePixelRatio;
    for (const { slo } of this.#placeLimits(plot.bbox.width / ratio, () => 0)) {
      pen.beginPath();
      pen.arc(
        plot.valToPos(slo.limit_ms, 'x', true),
        plot.valToPos(slo.percentile / 100, 'y', true),
        4.5 * ratio,
        0,
        2 * Math.PI,
      );
      pen.fillStyle = palette.surface;
      pen.fill();
      pen.lineWidth = 2 * ratio;
      pen.strokeStyle = palette.of(slo.metric);
      pen.stroke();
    }
  }

  protected readout(plot: uPlot): TemplateResult | string {
    const left = plot.cursor.left ?? -1;
    if (left < 0) {
      const unnamed = this.#placeLimits(plot.width - axisLeft - axisRight, this.#measured(plot.ctx)).filter(
        ({ row }) => row === null,
      ).length;
      return html`${unnamed > 0 ? html`<span>${unnamed} more limits have a line and no label: All numbers lists them.</span>` : nothing}${this.#curves.map((curve) => html`<span class="key"><i class="swatch ${curve.meaning}"></i>${curve.label} p50 ${formatTime(this.report ? curve.of(this.report).p50 : null)}</span>`)}`;
    }
    const at = plot.posToVal(left, 'x');
    return html`<b>${formatTime(at)} or less</b> ${this.#curves.map(
      (curve) =>
        html`<span class="key"><i class="swatch ${curve.meaning}"></i>${curve.label} ${formatPercent(fractionAt(this.#curve(curve.column), at))}</span>`,
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

function dashOf(metric: string): readonly number[] {
  return allCurves.find((curve) => curve.meaning === metric)?.dash ?? [];
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

// The tail of the latencies, a panel each: ms over 50, 90, 99 and 99.9 % of the requests on a scale of nines. A limit is
// a hatched corner that ends at its percentile, below which the curve must pass. Bands go along the curve once they are
// known (band-along); until then a dot has the interval of its target. Curves are of all runs, but for ITL's, which is of the first. Another run may be drawn behind. Figures stand in
// the head of their panel and at the axis: inside the plot there are marks alone, so that nothing collides where it
// matters, near the limit.
import { html, nothing, render, type PropertyValues, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import uPlot from 'uplot';
import type { Report } from 'servecast';
import type { Outcome } from '../engine/protocol';
import { formatGivenTime, formatInterval, formatPercent, formatTime } from '../lib/format';
import { needPart } from '../lib/part';
import type { TailBands } from '../lib/tail-bands';
import type { BandAlong } from './band-along';
import { ChartElement, axisStyle, type TableView } from './chart-element';
import { hatch, type Palette } from './palette';
import { paneKey } from './pane-key';
import { fractionOf, tailOf, valueAt } from './quantiles';
import { axisTicks, tickLabel } from './ticks';
import { firstRun } from '../lib/first-run';

type Metric = 'ttft' | 'tpot' | 'itl' | 'e2e';
const metrics: readonly Metric[] = ['ttft', 'tpot', 'itl', 'e2e'];
const dashes: Readonly<Record<Metric, readonly number[]>> = { ttft: [], tpot: [6, 3], itl: [], e2e: [2, 3] };
const marks = [0.5, 0.9, 0.99, 0.999];
const gap = 16;
/** Two panels side by side take so much. */
const wideEnough = 480;
/** More limits in a panel would cover each other's names at the axis. */
const mostNamed = 3;
/** Between two figures at the axis, px. */
const apart = 15;
const none = new Float64Array(0);
const columnOf = (metric: Metric) => `cdf_${metric}_ms`;

type Limit = Report['slo'][number] & { readonly limit_ms: number };

/** Sampling and model error together where that is known, else sampling alone. */
const spanOf = (target: Limit | undefined) => target?.band ?? target ?? { low: null, high: null };

let Along: typeof BandAlong | null = null;

/** To be awaited by who draws bands without an element in the page. */
export async function needBands(): Promise<void> {
  Along ??= (await import('./band-along')).BandAlong;
}

export class TailChart extends ChartElement {
  static override properties = {
    ...ChartElement.properties,
    heading: { attribute: false },
    report: { attribute: false },
    bands: { attribute: false },
    other: { attribute: false },
    switcher: { attribute: false },
    only: { attribute: false },
    withE2e: { state: true },
  };
  declare heading: string;
  declare report: Report | null;
  /** Of the report's percentiles; null: they are not known. */
  declare bands: TailBands | null;
  /** A, when what is shown is B. */
  declare other: Outcome | null;
  declare switcher: TemplateResult | typeof nothing;
  /** The one panel to show, where it is not to be all. */
  declare only: Metric | null;
  declare withE2e: boolean;
  #palette: Palette | null = null;
  /** Of the panels: what is said in their heads. */
  #heads: HTMLElement[] = [];

  constructor() {
    super();
    this.heading = 'Latency';
    this.report = null;
    this.bands = null;
    this.other = null;
    this.switcher = nothing;
    this.only = null;
    this.withE2e = false;
  }

  #limits(metric: Metric): readonly Limit[] {
    return (this.report?.slo ?? []).filter((slo): slo is Limit => slo.metric === metric && slo.limit_ms !== null);
  }

  get #panels(): readonly Metric[] {
    return metrics.filter(
      (metric) =>
        this.only === metric ||
        (this.only === null &&
          (metric === 'ttft' ||
            metric === 'tpot' ||
            this.#limits(metric).length > 0 ||
            (metric === 'e2e' && this.withE2e))),
    );
  }

  #column(metric: Metric, of: 'own' | 'other' = 'own'): Float64Array {
    return (of === 'own' ? this.columns : this.other?.columns)?.[columnOf(metric)] ?? none;
  }

  #valueAt(metric: Metric, fraction: number, of: 'own' | 'other' = 'own'): number | null {
    const columns = of === 'own' ? this.columns : this.other?.columns;
    return valueAt(this.#column(metric, of), columns?.['cdf_fraction'] ?? none, fraction);
  }

  protected override willUpdate(changed: PropertyValues): void {
    super.willUpdate(changed);
    if (this.bands && !Along)
      needBands().then(
        () => this.requestUpdate(),
        () => undefined, // No connection: the chart does without.
      );
  }

  #along(metric: Metric): BandAlong | null {
    const points = metric === 'itl' ? undefined : this.bands?.[metric];
    return points && Along ? new Along(points) : null;
  }

  /** "107 ms (95.2 to 126)", with the band where it is known. */
  #timeAt(metric: Metric, fraction: number): string {
    const value = this.#valueAt(metric, fraction);
    return `${formatTime(value)}${this.#along(metric)?.textAt(fraction, value ?? 0) ?? ''}`;
  }

  /** That of one of the panels; null: none has bands. */
  get #anyAlong(): BandAlong | null {
    return this.#panels.flatMap((metric) => this.#along(metric) ?? [])[0] ?? null;
  }

  protected csvColumns(): readonly string[] {
    return ['cdf_fraction', ...metrics.map(columnOf)];
  }

  protected emptyReason(): string | null {
    const { report } = this;
    if (!this.columns || !report) return this.waitingFor;
    if (this.#panels.some((metric) => this.#column(metric).some(Number.isFinite))) return null;
    if (firstRun(report).arrived === 0) return 'Empty: no request arrived.';
    return report.finished
      ? 'Empty: no request counts. None got a first token, or all arrived in the warm-up.'
      : 'Empty: no request has got its first token yet.';
  }

  protected summary(): string {
    return metrics
      .map((metric) => {
        const at = marks.map((fraction) => this.#timeAt(metric, fraction));
        return `${metric.toUpperCase()}: median ${at[0]}, p90 ${at[1]}, p99 ${at[2]}, p99.9 ${at[3]}.`;
      })
      .concat(this.#anyAlong?.rangeWords ?? [])
      .join(' ');
  }

  protected tableView(): TableView {
    const rows = [1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100].map((percent) => [
      `p${percent}`,
      ...metrics.map((metric) => this.#timeAt(metric, percent / 100)),
    ]);
    const ranges = this.#anyAlong?.rangeWords;
    const caption = `Latency by percentile${ranges ? `. ${ranges}` : ''}`;
    return { caption, head: ['Percentile', ...metrics.map((m) => m.toUpperCase())], rows };
  }

  protected override tools(): TemplateResult {
    const isLimited = this.#limits('e2e').length > 0;
    return html`${this.switcher}<button class="quiet" type="button" title=${isLimited ? 'Shown: a limit is set on it' : 'Also show the time from arrival to the last token'} aria-pressed=${this.withE2e || isLimited} ?disabled=${isLimited} @click=${() => (this.withE2e = !this.withE2e)}>E2E</button>`;
  }

  protected structure(): string {
    return `${this.#panels.join()} ${this.other !== null}`;
  }

  protected override inputs(): readonly unknown[] {
    return [this.columns, this.report, this.#along('ttft') && this.bands, this.other];
  }

  cursorStep(plot: uPlot): number {
    return plot.over.clientWidth / 100;
  }

  protected override plotWidth(width: number): number {
    const panels = this.#panels.length;
    const beside = Math.max(1, Math.min(panels, Math.floor((width + gap) / (wideEnough / 2))));
    return Math.floor((width + gap) / beside) - gap;
  }

  protected buildPlots(host: HTMLElement, palette: Palette, width: number): uPlot[] {
    this.#palette = palette;
    const wide = this.plotWidth(width);
    const heads: HTMLElement[] = [];
    const plots = this.#panels.map((metric) => {
      const panel = document.createElement('div');
      panel.className = 'tail-panel';
      const head = paneKey([{ label: metric.toUpperCase(), mark: `swatch ${metric}` }]);
      const figure = document.createElement('span');
      figure.className = 'tail-figure';
      head.append(figure);
      heads.push(figure);
      panel.append(head);
      host.append(panel);
      return new uPlot(this.#options(metric, palette, wide, wide < width), this.#data(metric), panel);
    });
    this.#heads = heads;
    this.#sayFigures();
    return plots;
  }

  #sayFigures(): void {
    for (const [index, metric] of this.#panels.entries()) {
      const head = this.#heads[index];
      if (head) render(this.#figure(metric), head);
    }
  }

  /** The target whose value the dot has. */
  #target(metric: Metric): Limit | undefined {
    return this.#limits(metric).find((slo) => slo.percentile === 99 && slo.class === undefined);
  }

  /** p99, of all runs where there is a target, with its band, as the tile has it; the limit stands at the axis. */
  #figure(metric: Metric): TemplateResult {
    const target = this.#target(metric);
    if (target?.unbounded) return html`p99 <b>no bound</b>`;
    const { value_ms: value = this.#valueAt(metric, 0.99) } = target ?? {};
    const { low, high } = spanOf(target);
    const other = this.other ? this.#valueAt(metric, 0.99, 'other') : null;
    const span =
      value === null || low === null
        ? (this.#along(metric)?.textAt(0.99, value ?? 0) ?? '')
        : ` (${high === null ? `at least ${formatTime(low)}` : formatInterval(low, high, value)})`;
    return html`p99 <b>${formatTime(value)}</b>${span}${other === null ? nothing : html`, A (dotted) <b>${formatTime(other)}</b>`}`;
  }

  protected override plotTitles(): readonly string[] {
    return this.#panels.map((metric, index) => `${metric.toUpperCase()} ${this.#heads[index]?.textContent ?? ''}`);
  }

  #options(metric: Metric, palette: Palette, width: number, beside: boolean): uPlot.Options {
    const axis = axisStyle(palette);
    return {
      width,
      height: beside ? 296 : 200,
      legend: { show: false },
      padding: [12, 28, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false }, sync: { key: 'tail' } },
      scales: {
        x: { time: false, range: () => [tailOf(0.5), tailOf(0.999)] },
        y: { range: (_plot, _low, high) => [0, high > 0 ? high : 1] },
      },
      axes: [
        {
          ...axis,
          size: 28,
          incrs: [1e12],
          space: 1,
          splits: () => marks.map(tailOf),
          filter: (_plot, splits) => splits,
          values: (_plot, splits) => splits.map((tail) => `p${Number((fractionOf(tail) * 100).toFixed(1))}`),
        },
        {
          ...axis,
          size: 60,
          incrs: [1e15],
          space: 1,
          splits: (plot, _axis, low, high) => this.#ticks(plot, metric, low, high),
          filter: (_plot, splits) => splits,
          values: (_plot, splits) => splits.map((value) => tickLabel(value)),
        },
      ],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: { draw: [(plot) => this.#drawPanel(plot, metric)], setCursor: [(plot) => this.showReadout(plot)] },
    };
  }

  /** Where a limit is written at the axis, the first of those that would touch. */
  #namedLimits(plot: uPlot, metric: Metric): readonly Limit[] {
    const named: Limit[] = [];
    const top = (slo: Limit) => plot.valToPos(slo.limit_ms, 'y');
    for (const slo of this.#limits(metric)) {
      const inside = top(slo) >= 0 && named.every((other) => Math.abs(top(other) - top(slo)) >= apart);
      if (inside && named.length < mostNamed) named.push(slo);
    }
    return named;
  }

  /** Limits take the place of ticks that they would touch. */
  #ticks(plot: uPlot, metric: Metric, low: number, high: number): number[] {
    const { height } = plot.over.getBoundingClientRect();
    const px = (ms: number) => (ms / (high - low)) * (height || plot.height - 40);
    const limits = this.#limits(metric);
    const free = (tick: number) => limits.every(({ limit_ms: limit }) => Math.abs(px(tick) - px(limit)) >= apart);
    return axisTicks(low, high, false, plot.height / 48).filter(free);
  }

  /** Two points that span the scales: what is drawn has abscissae of its own. */
  #data(metric: Metric): uPlot.AlignedData {
    const p99 = this.#valueAt(metric, 0.99) ?? 0;
    const limits = this.#limits(metric);
    const high = Math.max(
      Math.min(this.#valueAt(metric, 0.999) ?? 0, p99 * 3),
      this.#valueAt(metric, 0.99, 'other') ?? 0,
      ...limits.map(({ limit_ms: limit }) => (limit < p99 * 8 ? limit * 1.2 : 0)),
      ...limits.map((slo) => (slo.unbounded ? 0 : (spanOf(slo).high ?? 0))),
      Math.min(this.#along(metric)?.around(0.99, p99)?.high ?? 0, p99 * 3),
    );
    return [
      [tailOf(0.5), tailOf(0.999)],
      [0, high * 1.06],
    ];
  }

  protected updatePlots(): void {
    for (const [index, metric] of this.#panels.entries()) this.plots[index]?.setData(this.#data(metric));
    this.#sayFigures();
  }

  #drawPanel(plot: uPlot, metric: Metric): void {
    const palette = this.#palette;
    if (!palette || !this.report) return;
    const { ctx: pen, bbox } = plot;
    pen.save();
    pen.beginPath();
    pen.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    pen.clip();
    this.#drawLimits(plot, palette, metric);
    const fractions = this.columns?.['cdf_fraction'] ?? none;
    const valueAt = (fraction: number) => this.#valueAt(metric, fraction);
    this.#along(metric)?.draw(plot, palette.of(metric), fractions, valueAt);
    if (this.other) this.#drawCurve(plot, palette, metric, 'other');
    this.#drawCurve(plot, palette, metric, 'own');
    this.#drawDot(plot, palette, metric);
    pen.restore();
    this.#writeLimits(plot, palette, metric);
  }

  /** At the axis, as its bold ticks. */
  #writeLimits(plot: uPlot, palette: Palette, metric: Metric): void {
    const { ctx: pen, bbox } = plot;
    const ratio = devicePixelRatio;
    pen.save();
    pen.font = palette.font.replace('13px', `600 ${13 * ratio}px`);
    pen.fillStyle = palette.ink;
    pen.textAlign = 'right';
    pen.textBaseline = 'middle';
    for (const slo of this.#namedLimits(plot, metric))
      pen.fillText(
        formatGivenTime(slo.limit_ms),
        bbox.left - 8 * ratio,
        Math.max(bbox.top + 4 * ratio, plot.valToPos(slo.limit_ms, 'y', true)),
      );
    pen.restore();
  }

  #drawLimits(plot: uPlot, palette: Palette, metric: Metric): void {
    const { ctx: pen, bbox } = plot;
    const ratio = devicePixelRatio;
    for (const slo of this.#limits(metric)) {
      const corner = plot.valToPos(tailOf(Math.min(0.999, slo.percentile / 100)), 'x', true);
      const level = plot.valToPos(slo.limit_ms, 'y', true);
      if (level < bbox.top || corner < bbox.left) continue;
      pen.fillStyle = hatch(pen, palette.of(slo.met ? 'limit' : 'beyond'));
      pen.fillRect(bbox.left, bbox.top, corner - bbox.left, level - bbox.top);
      pen.strokeStyle = palette.muted;
      pen.lineWidth = 1.5 * ratio;
      pen.beginPath();
      pen.moveTo(bbox.left, level);
      pen.lineTo(corner, level);
      pen.lineTo(corner, bbox.top);
      pen.stroke();
    }
  }

  #drawCurve(plot: uPlot, palette: Palette, metric: Metric, of: 'own' | 'other'): void {
    const { ctx: pen } = plot;
    const ratio = devicePixelRatio;
    const fractions = (of === 'own' ? this.columns : this.other?.columns)?.['cdf_fraction'] ?? none;
    const values = this.#column(metric, of);
    if (values.length === 0) return;
    pen.strokeStyle = of === 'own' ? palette.of(metric) : palette.ink;
    pen.lineWidth = (of === 'own' ? 2 : 1) * ratio;
    pen.lineJoin = 'round';
    pen.setLineDash((of === 'own' ? dashes[metric] : [1, 3]).map((part) => part * ratio));
    pen.beginPath();
    fractions.forEach((fraction, index) => {
      const tail = tailOf(fraction);
      if (fraction < 0.45 || !Number.isFinite(tail)) return;
      pen.lineTo(plot.valToPos(tail, 'x', true), plot.valToPos(values[index] ?? 0, 'y', true));
    });
    pen.stroke();
    pen.setLineDash([]);
  }

  /** p99; where it has a target, and no band goes along the curve, in the target's band (a light box) and its interval of
      sampling (a whisker). */
  #drawDot(plot: uPlot, palette: Palette, metric: Metric): void {
    const { ctx: pen } = plot;
    const ratio = devicePixelRatio;
    const target = this.#target(metric);
    if (target?.unbounded) return;
    const value = target?.value_ms ?? this.#valueAt(metric, 0.99);
    if (value === null || value === undefined) return;
    const left = plot.valToPos(tailOf(0.99), 'x', true);
    const top = (ms: number) => plot.valToPos(ms, 'y', true);
    const isAlone = this.#along(metric) === null;
    if (isAlone && target?.band) {
      const { low, high } = target.band;
      const above = high === null ? plot.bbox.top : top(high);
      pen.fillStyle = palette.of(metric);
      pen.globalAlpha = 0.3;
      pen.fillRect(left - 6 * ratio, above, 12 * ratio, top(low) - above);
      pen.globalAlpha = 1;
    }
    pen.strokeStyle = palette.ink;
    pen.lineWidth = 1.5 * ratio;
    if (isAlone && target && target.low !== null && target.high !== null) {
      pen.beginPath();
      pen.moveTo(left, top(target.low));
      pen.lineTo(left, top(target.high));
      for (const end of [target.low, target.high]) {
        pen.moveTo(left - 4 * ratio, top(end));
        pen.lineTo(left + 4 * ratio, top(end));
      }
      pen.stroke();
    }
    pen.beginPath();
    pen.arc(left, top(value), 4 * ratio, 0, 2 * Math.PI);
    pen.fillStyle = palette.of(metric);
    pen.fill();
    pen.strokeStyle = palette.surface;
    pen.stroke();
  }

  get #words(): string {
    const targets = this.#panels.map((metric) => this.#target(metric));
    const around = targets.some((target) => spanOf(target).low !== null);
    const what = targets.some((target) => target?.band) ? 'band' : '95\u202f% interval of sampling';
    const limited = this.#panels.some((metric) => this.#limits(metric).length > 0);
    const dot = this.#anyAlong?.words ?? `The dot is p99${around ? `, with its ${what}` : ''}.`;
    return `${dot}${limited ? ' Hatched: beyond a limit.' : ''}`;
  }

  protected readout(plot: uPlot): TemplateResult | string {
    const left = plot.cursor.left ?? -1;
    if (left < 0) {
      const unnamed = this.#panels.reduce((sum, metric, index) => {
        const panel = this.plots[index];
        return sum + this.#limits(metric).length - (panel ? this.#namedLimits(panel, metric).length : 0);
      }, 0);
      return html`${unnamed > 0 ? html`<span>${unnamed} more limits have a line and no label: All numbers lists them.</span>` : nothing}<span>${this.#words}${this.#panels.includes('itl') && (this.report?.certainty?.runs ?? 1) > 1 ? ' The curve of ITL is of the first run.' : ''}</span>`;
    }
    const fraction = fractionOf(plot.posToVal(left, 'x'));
    return html`<b>${formatPercent(fraction)} have</b> ${this.#panels.map((metric) => {
      const other = this.#valueAt(metric, fraction, 'other');
      return html`<span class="key"><i class="swatch ${metric}"></i>${metric.toUpperCase()} ${this.#timeAt(metric, fraction)} or less${other === null ? nothing : html` (A: ${formatTime(other)})`}</span>`;
    })}`;
  }
}

/** The tail, or all of the distribution when that is asked for. */
export class LatencyChart extends PlainElement {
  static override properties = {
    report: { attribute: false },
    bands: { attribute: false },
    columns: { attribute: false },
    theme: { attribute: false },
    fileStem: { attribute: false },
    waitingFor: { attribute: false },
    isWhole: { state: true },
  };
  declare report: Report | null;
  declare bands: TailBands | null;
  declare columns: TailChart['columns'];
  declare theme: string;
  declare fileStem: string;
  declare waitingFor: string;
  declare isWhole: boolean;

  constructor() {
    super();
    this.bands = null;
    this.isWhole = false;
  }

  protected override render(): TemplateResult {
    const { report, bands, columns, theme, fileStem, waitingFor } = this;
    const pick = (whole: boolean, text: string, title: string) =>
      html`<button class="quiet" type="button" title=${title} aria-pressed=${whole === this.isWhole} @click=${() => (this.isWhole = whole)}>${text}</button>`;
    const switcher = html`${pick(false, 'Tail', 'The slower half, on a scale of nines')}${pick(true, 'All', 'All requests, on one axis')}`;
    if (!this.isWhole)
      return html`<sc-tail-chart .report=${report} .bands=${bands} .columns=${columns} .theme=${theme} .fileStem=${fileStem} .waitingFor=${waitingFor} .switcher=${switcher}></sc-tail-chart>`;
    needPart('sc-cdf-chart', () => import('./cdf-chart'));
    return html`<sc-cdf-chart .report=${report} .columns=${columns} .theme=${theme} .fileStem=${fileStem} .waitingFor=${waitingFor} .switcher=${switcher}></sc-cdf-chart>`;
  }
}

customElements.define('sc-tail-chart', TailChart);
customElements.define('sc-latency-chart', LatencyChart);

// Quantities over simulated time: panes one above the other on one time axis, with one cursor for
// all of them (and for every other series chart on the page).
import { html, type TemplateResult } from 'lit';
import uPlot from 'uplot';
import { formatNumber, formatPercent, formatQuantity, formatTime } from '../lib/format';
import { showWindow } from '../lib/time-window';
import { ChartElement, axisStyle, type TableView } from './chart-element';
import { hatch, type Palette } from './palette';
import { paneKey } from './pane-key';

/** What has a colour (--mark-*) and a swatch in chart.css; of power, in power.css. */
export type Mark =
  | 'ttft'
  | 'tpot'
  | 'itl'
  | 'e2e'
  | 'running'
  | 'waiting'
  | 'kv'
  | 'batch'
  | 'output'
  | 'transfer'
  | 'preempted'
  | 'power';

export interface PaneSeries {
  readonly column: string;
  readonly label: string;
  readonly meaning: Mark;
  readonly dash?: readonly number[];
  readonly fill?: 'hatched' | 'solid';
}

export interface Pane {
  readonly unit: string;
  readonly series: readonly PaneSeries[];
  /** Fractions are shown as per cent on an axis of 0 to 100 %. */
  readonly share?: boolean;
  /** In place of an empty pane, where all is 0. */
  readonly none?: string;
  /** Its scale is of its own values, whose mean and busiest interval stand beside its name. */
  readonly lane?: boolean;
}

/** What comes before and after is drawn, but not counted; simulated seconds. */
export interface Counted {
  readonly from_s: number;
  readonly until_s: number;
}

/** Ticks at whole numbers: what is drawn here is counted. */
const wholeSteps = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();
const timeColumn = 'series_time_s';
const axisHeight = 48;
const laneHeight = 64;

export class SeriesChart extends ChartElement {
  static override properties = {
    ...ChartElement.properties,
    panes: { attribute: false },
    subject: { attribute: false },
    counted: { attribute: false },
  };
  declare panes: readonly Pane[];
  declare subject: string;
  /** null: all of it. */
  declare counted: Counted | null;
  /** Beside the names of lanes. */
  readonly #figures = new Map<Pane, HTMLElement>();

  constructor() {
    super();
    this.panes = [];
    this.subject = '';
    this.counted = null;
  }

  protected get heading(): string {
    return this.subject;
  }

  get #series(): readonly PaneSeries[] {
    return this.panes.flatMap((pane) => pane.series);
  }

  /** Those with something to draw. */
  get #drawn(): readonly Pane[] {
    return this.panes.filter((pane) => !this.#isNone(pane));
  }

  #isNone(pane: Pane): boolean {
    return (
      pane.none !== undefined && pane.series.every(({ column }) => this.#column(column).every((value) => value === 0))
    );
  }

  /** Names of the ends that are not counted, as far as they can be seen. */
  #uncounted(): readonly (readonly [string, number, number])[] {
    const end = this.#column(timeColumn).at(-1) ?? 0;
    const { from_s: from, until_s: until } = this.counted ?? { from_s: 0, until_s: end };
    const ends = [
      ['warm-up', 0, Math.min(from, end)],
      ['drain', Math.max(until, 0), end],
    ] as const;
    return this.counted ? ends.filter(([, low, high]) => high - low > end * 0.005) : [];
  }

  #column(name: string): Float64Array {
    return this.columns?.[name] ?? new Float64Array(0);
  }

  protected csvColumns(): readonly string[] {
    return [timeColumn, ...this.#series.map((series) => series.column)];
  }

  protected emptyReason(): string | null {
    if (!this.columns) return this.waitingFor;
    return this.#column(timeColumn).length > 0 ? null : 'Empty: no time has been simulated.';
  }

  protected summary(): string {
    return this.panes
      .flatMap((pane) => pane.series.map((series) => ({ pane, series })))
      .map(({ pane, series }) => {
        if (this.#isNone(pane)) return `${series.label}: ${pane.none ?? ''}.`;
        const { mean, high } = spread(this.#column(series.column));
        const show = (value: number) => (pane.share ? formatPercent(value) : `${formatNumber(value)} ${pane.unit}`);
        return `${series.label}: mean ${show(mean)}, ${show(high)} as the mean of the busiest interval.`;
      })
      .join(' ');
  }

  protected tableView(): TableView {
    const times = this.#column(timeColumn);
    const stride = Math.max(1, Math.ceil(times.length / 60));
    const rows: string[][] = [];
    for (let row = 0; row < times.length; row += stride) {
      const cells = this.panes.flatMap((pane) =>
        pane.series.map((series) => shown(pane, this.#column(series.column)[row])),
      );
      rows.push([formatTime((times[row] ?? 0) * 1000), ...cells]);
    }
    const caption =
      stride === 1 ? `${this.heading} over time` : `${this.heading} over time, one row in ${stride}; the CSV has all`;
    const units = this.panes.flatMap((pane) => pane.series.map((series) => series.label));
    return { caption, head: ['Simulated time', ...units], rows };
  }

  protected structure(): string {
    const ends = this.#uncounted().map(([name]) => name);
    return `${timeUnit(this.#column(timeColumn).at(-1) ?? 0).name} ${ends} ${this.#drawn.length} ${JSON.stringify(this.panes)}`;
  }

  protected override inputs(): readonly unknown[] {
    const { from_s: from, until_s: until } = this.counted ?? {};
    return [...this.csvColumns().map((name) => this.columns?.[name]), from, until];
  }

  cursorStep(plot: uPlot): number {
    return Math.max(1, plot.over.clientWidth / Math.max(1, this.#column(timeColumn).length));
  }

  protected buildPlots(host: HTMLElement, palette: Palette, width: number): uPlot[] {
    const drawn = this.#drawn;
    const last = drawn.at(-1);
    const height = drawn[0]?.lane ? laneHeight : Math.max(88, Math.round(224 / Math.max(1, drawn.length)));
    this.#figures.clear();
    const ends = this.#uncounted().map(([name]) => name);
    const plots = this.panes.flatMap((pane, index) => {
      const key = pane.series.map(({ label, meaning }) => ({ label, mark: `swatch ${meaning}` }));
      if (index === 0 && ends.length > 0)
        key.push({ label: `${ends.join(' and ')}, not counted`, mark: 'swatch uncounted' });
      const heading = paneKey(key);
      host.append(heading);
      if (pane.lane) {
        const figure = document.createElement('span');
        heading.firstElementChild?.after(figure);
        this.#figures.set(pane, figure);
      }
      if (!drawn.includes(pane)) {
        const none = document.createElement('span');
        none.append(pane.none ?? '');
        heading.append(none);
        return [];
      }
      const options = this.#options(pane, palette, width, height + (pane === last ? axisHeight : 8), pane === last);
      return [new uPlot(options, this.#data(pane), host)];
    });
    this.#sayFigures();
    return plots;
  }

  #sayFigures(): void {
    for (const [pane, figure] of this.#figures) {
      const { mean, high } = spread(this.#column(pane.series[0]?.column ?? ''));
      figure.textContent = `mean ${pane.share ? formatPercent(mean) : formatNumber(mean)}, busiest interval ${shown(pane, high)}`;
    }
  }

  #options(pane: Pane, palette: Palette, width: number, height: number, withTime: boolean): uPlot.Options {
    const axis = axisStyle(palette);
    const times = this.#column(timeColumn);
    const unit = timeUnit(times.at(-1) ?? 0);
    const timeAxis = unit.seconds >= 60 ? { ...axis, incrs: wholeSteps.map((step) => step * unit.seconds) } : axis;
    return {
      width,
      height,
      legend: { show: false },
      padding: [8, 16, withTime ? 0 : 4, 0],
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false },
        sync: { key: 'simulated-time', scales: ['x', null] },
      },
      scales: {
        x: { time: false },
        y:
          pane.share && !pane.lane
            ? { range: [0, 1] }
            : { range: (_plot, _low, high) => [0, high > 0 ? high * 1.08 : 1] },
      },
      axes: [
        withTime
          ? {
              ...timeAxis,
              label: `Simulated time (${unit.name})`,
              values: (_plot, splits) => splits.map((value) => formatTick(value / unit.seconds)),
              size: 28,
            }
          : { ...timeAxis, size: 0, values: () => [], ticks: { show: false } },
        {
          ...axis,
          ...(pane.lane ? { size: 48 } : { label: pane.unit, size: 64 }),
          space: 28,
          ...(pane.share ? (pane.lane ? {} : { splits: () => [0, 0.5, 1] }) : { incrs: wholeSteps }),
          values: (_plot, splits) =>
            splits.map((value) =>
              pane.share ? `${formatTick(value * 100)}${pane.lane ? '\u202f%' : ''}` : formatTick(value),
            ),
        },
      ],
      series: [
        {},
        ...pane.series.map((series): uPlot.Series => {
          const colour = palette.of(series.meaning);
          const stepped = uPlot.paths.stepped?.({ align: 1 });
          return {
            stroke: colour,
            width: 1.5,
            points: { show: false },
            ...(stepped ? { paths: stepped } : {}),
            ...(series.dash ? { dash: [...series.dash] } : {}),
            ...(series.fill
              ? { fill: (plot: uPlot) => (series.fill === 'hatched' ? hatch(plot.ctx, colour) : `${colour}55`) }
              : {}),
          };
        }),
      ],
      hooks: {
        drawClear: [(plot) => this.#hatchUncounted(plot, palette)],
        setCursor: [(plot) => this.showReadout(plot)],
        setScale: [(plot, scale) => scale === 'x' && this.#tellWindow(plot)],
      },
    };
  }

  /** What is in view, for the charts that show single requests and steps. */
  #tellWindow(plot: uPlot): void {
    const times = this.#column(timeColumn);
    const { min, max } = plot.scales['x'] ?? {};
    if (typeof min !== 'number' || typeof max !== 'number' || times.length === 0) return;
    const isAll = min <= (times[0] ?? 0) && max >= (times.at(-1) ?? 0);
    showWindow(isAll ? null : { from_s: min, to_s: max });
  }

  #hatchUncounted(plot: uPlot, palette: Palette): void {
    const { ctx: pen, bbox } = plot;
    pen.save();
    pen.fillStyle = hatch(pen, palette.grid);
    for (const [, low, high] of this.#uncounted()) {
      const [from, to] = [low, high].map((seconds) =>
        Math.min(bbox.left + bbox.width, Math.max(bbox.left, plot.valToPos(seconds, 'x', true))),
      ) as [number, number];
      pen.fillRect(from, bbox.top, to - from, bbox.height);
    }
    pen.restore();
  }

  #data(pane: Pane): uPlot.AlignedData {
    return [
      this.#column(timeColumn),
      ...pane.series.map((series) => this.#column(series.column)),
    ] as unknown as uPlot.AlignedData;
  }

  protected updatePlots(): void {
    const drawn = this.#drawn;
    this.plots.forEach((plot, index) => {
      const pane = drawn[index];
      if (pane) plot.setData(this.#data(pane));
    });
    this.#sayFigures();
  }

  protected readout(plot: uPlot): TemplateResult | string {
    const row = plot.cursor.idx;
    if (row === null || row === undefined || (plot.cursor.left ?? -1) < 0)
      return 'Point at a chart, or use the arrow keys, to read values.';
    const time = formatTime((this.#column(timeColumn)[row] ?? 0) * 1000);
    return html`<b>at ${time}</b> ${this.panes.flatMap((pane) =>
      pane.series.map(
        (series) =>
          html`<span class="key"><i class="swatch ${series.meaning}"></i>${series.label} ${shown(pane, this.#column(series.column)[row])}</span>`,
      ),
    )}`;
  }
}

function shown(pane: Pane, value: number | undefined): string {
  return pane.share ? formatPercent(value) : formatQuantity(value, pane.unit === 'count' ? '' : pane.unit);
}

function spread(values: Float64Array): { mean: number; high: number } {
  let sum = 0;
  let high = 0;
  for (const value of values) {
    sum += value;
    if (value > high) high = value;
  }
  return { mean: values.length > 0 ? sum / values.length : 0, high };
}

function timeUnit(seconds: number): { name: string; seconds: number } {
  if (seconds >= 60_000) return { name: 'h', seconds: 3600 };
  if (seconds >= 1000) return { name: 'min', seconds: 60 };
  if (seconds > 0 && seconds < 1) return { name: 'ms', seconds: 0.001 };
  return { name: 's', seconds: 1 };
}

function formatTick(value: number): string {
  return Number(value.toPrecision(6)).toLocaleString('en-US', {
    maximumFractionDigits: 3,
    notation: value < 1e6 ? 'standard' : 'compact',
  });
}

customElements.define('sc-series-chart', SeriesChart);

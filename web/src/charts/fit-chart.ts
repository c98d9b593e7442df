// A fitted summary against its trace: the rate over time and the distributions of lengths, each with
// its own axis. Loaded when there is a fit to show.
import { html, type PropertyValues, type TemplateResult } from 'lit';
import type { TraceFit } from 'servecast';
import uPlot from 'uplot';
import { formatNumber } from '../lib/format';
import { ChartElement, axisStyle, type TableView } from './chart-element';
import type { Palette } from './palette';
import { paneKey } from './pane-key';
import { axisTicks } from './ticks';

interface FitPane {
  readonly title: string;
  readonly across: string;
  readonly up: string;
  readonly log: boolean;
  /** Ascending across, then the trace's values and the fit's. */
  readonly data: readonly [
    readonly number[],
    readonly (number | null | undefined)[],
    readonly (number | null | undefined)[],
  ];
}

const sides = [
  { label: 'Trace', meaning: 'batch', dash: undefined },
  { label: 'Fit', meaning: 'preempted', dash: [6, 3] },
] as const;
const plotHeight = 150;

export class FitChart extends ChartElement {
  static override properties = { ...ChartElement.properties, fit: { attribute: false } };
  declare fit: TraceFit | null;
  protected readonly heading = 'Fit and trace';
  #panes: readonly FitPane[] = [];

  constructor() {
    super();
    this.fit = null;
  }

  protected override willUpdate(changed: PropertyValues): void {
    super.willUpdate(changed);
    if (!changed.has('fit')) return;
    this.#panes = this.fit ? panesOf(this.fit) : [];
    this.columns = this.fit ? columnsOf(this.fit) : null;
  }

  protected csvColumns(): readonly string[] {
    return Object.keys(this.columns ?? {});
  }

  protected emptyReason(): string | null {
    return this.fit ? null : this.waitingFor;
  }

  protected summary(): string {
    return (this.fit?.comparison ?? [])
      .map((row) => `${row.name}: trace ${formatNumber(row.trace)}, fit ${formatNumber(row.fit)} ${row.unit}.`)
      .join(' ');
  }

  protected tableView(): TableView {
    const rows = (this.fit?.comparison ?? []).map((row) => {
      const off =
        Math.abs(row.trace) < 1e-3 ? '' : `${((100 * (row.fit - row.trace)) / Math.abs(row.trace)).toFixed(1)} %`;
      return [
        row.unit === '' ? row.name : `${row.name} (${row.unit})`,
        formatNumber(row.trace),
        formatNumber(row.fit),
        off,
      ];
    });
    return {
      caption: 'Figures of the trace and of its fit, for seed 1',
      head: ['', 'Trace', 'Fit', 'Fit is off by'],
      rows,
    };
  }

  protected structure(): string {
    return this.#panes.map((pane) => `${pane.title} ${pane.log}`).join('|');
  }

  cursorStep(plot: uPlot): number {
    return Math.max(1, plot.over.clientWidth / 60);
  }

  protected buildPlots(host: HTMLElement, palette: Palette, width: number): uPlot[] {
    return this.#panes.map((pane) => {
      const key = sides.map(({ label, meaning }) => ({ label, mark: `swatch ${meaning}` }));
      host.append(paneKey(key, pane.title));
      return new uPlot(this.#options(pane, palette, width), pane.data as unknown as uPlot.AlignedData, host);
    });
  }

  #options(pane: FitPane, palette: Palette, width: number): uPlot.Options {
    const axis = axisStyle(palette);
    const low = pane.data[0][0] ?? 1;
    const high = Math.max(pane.data[0].at(-1) ?? 1, low * 1.01);
    return {
      width,
      height: plotHeight,
      legend: { show: false },
      padding: [8, 28, 0, 0],
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false } },
      scales: {
        x: { time: false, distr: pane.log ? 3 : 1, range: () => [low, high] },
        y: pane.up === '%' ? { range: [0, 100] } : { range: (_plot, _low, most) => [0, most > 0 ? most * 1.08 : 1] },
      },
      axes: [
        {
          ...axis,
          label: pane.across,
          size: 28,
          splits: () => axisTicks(low, high, pane.log, width / 90),
          values: (_plot, splits) => splits.map(formatTick),
        },
        { ...axis, label: pane.up, space: 28, size: 64, values: (_plot, splits) => splits.map(formatTick) },
      ],
      series: [
        {},
        ...sides.map((side): uPlot.Series => {
          const stepped = pane.up === '%' ? undefined : uPlot.paths.stepped?.({ align: 1 });
          return {
            stroke: palette.of(side.meaning),
            width: 1.5,
            spanGaps: true,
            points: { show: false },
            ...(side.dash ? { dash: [...side.dash] } : {}),
            ...(stepped ? { paths: stepped } : {}),
          };
        }),
      ],
      hooks: { setCursor: [(plot) => this.showReadout(plot)] },
    };
  }

  protected updatePlots(): void {
    this.plots.forEach((plot, index) => {
      const pane = this.#panes[index];
      if (pane) plot.setData(pane.data as unknown as uPlot.AlignedData);
    });
  }

  protected readout(plot: uPlot): TemplateResult | string {
    const pane = this.#panes[this.plots.indexOf(plot)];
    const row = plot.cursor.idx;
    if (!pane || row === null || row === undefined || (plot.cursor.left ?? -1) < 0)
      return 'Point at a chart, or use the arrow keys, to read values.';
    return html`<b>${pane.title}, ${formatNumber(pane.data[0][row] ?? 0)} (${pane.across})</b> ${sides.map(
      (side, index) =>
        html`<span class="key"><i class="swatch ${side.meaning}"></i>${side.label} ${formatNumber(nearest(pane.data[index === 0 ? 1 : 2], row))} ${pane.up}</span>`,
    )}`;
  }
}

function formatTick(value: number): string {
  return Number(value.toPrecision(6)).toLocaleString('en-US', {
    notation: Math.abs(value) < 1e5 ? 'standard' : 'compact',
  });
}

/** The value at a row, or the last one before it. */
function nearest(values: readonly (number | null | undefined)[], row: number): number {
  for (let at = row; at >= 0; at -= 1) {
    const value = values[at];
    if (value !== null && value !== undefined) return value;
  }
  return 0;
}

function panesOf(fit: TraceFit): readonly FitPane[] {
  const {
    probability,
    prompt_trace: prompts,
    prompt_fit: promptFits,
    output_trace: outputs,
    output_fit: outputFits,
  } = fit.lengths;
  const lengths = [
    cumulative('Prompts', probability, prompts, promptFits),
    cumulative('Outputs', probability, outputs, outputFits),
  ];
  if (!fit.rate) return lengths;
  const { from_s: from, trace, fit: fitted } = fit.rate;
  return [{ title: 'Arrivals', across: 'Time (s)', up: 'req/s', log: false, data: [from, trace, fitted] }, ...lengths];
}

/** Per cent of requests up to so many tokens, on one axis for both. */
function cumulative(
  title: string,
  probability: readonly number[],
  trace: readonly number[],
  fit: readonly number[],
): FitPane {
  const share = (tokens: readonly number[]) =>
    new Map(tokens.map((value, index) => [value, 100 * (probability[index] ?? 0)]));
  const sides = [share(trace), share(fit)] as const;
  const across = [...new Set([...trace, ...fit])].sort((a, b) => a - b);
  const log = (across.at(-1) ?? 1) / Math.max(across[0] ?? 1, 1) >= 30;
  return {
    title,
    across: 'Length (tokens)',
    up: '%',
    log,
    data: [across, across.map((tokens) => sides[0].get(tokens)), across.map((tokens) => sides[1].get(tokens))],
  };
}

function columnsOf(fit: TraceFit): Record<string, Float64Array> {
  const { lengths, rate } = fit;
  const rates: Record<string, readonly number[]> = rate
    ? { from_s: rate.from_s, rate_trace_per_s: rate.trace, rate_fit_per_s: rate.fit }
    : {};
  return Object.fromEntries(
    Object.entries({ ...rates, ...lengths }).map(([name, values]) => [name, Float64Array.from(values)]),
  );
}

customElements.define('sc-fit-chart', FitChart);

// Replicas over the time of a load that changes: the fewest throughout, by a scaler, and by a schedule that knows the
// load. Loaded with the plans.
import { html, type TemplateResult } from 'lit';
import type { Autoscale, AutoscalePolicy } from 'servecast';
import uPlot from 'uplot';
import { countOf, formatNumber, formatPercent } from '../lib/format';
import { ChartElement, axisStyle, type TableView } from './chart-element';
import type { Palette } from './palette';

interface Line {
  readonly name: string;
  readonly policy: AutoscalePolicy;
  readonly dash?: readonly number[];
}

/** What is drawn, in the order of the key. */
export function linesOf({ policies, fixed, schedule, chosen }: Autoscale): readonly Line[] {
  const line = (place: number | null, name: string, dash?: readonly number[]): Line[] => {
    const policy = place === null ? undefined : policies[place];
    return policy ? [{ name, policy, ...(dash ? { dash } : {}) }] : [];
  };
  return [
    ...line(fixed, 'throughout', [8, 4]),
    ...line(chosen, 'this scaler'),
    ...line(schedule, 'schedule that knows the load', [2, 3]),
  ];
}

/** Replicas of a policy at a time, s. */
export function replicasAt({ at_s: times, replicas }: AutoscalePolicy, time: number): number {
  let now = replicas[0] ?? 0;
  for (const [index, at] of times.entries()) if (at <= time) now = replicas[index] ?? now;
  return now;
}

export class ScalingChart extends ChartElement {
  static override properties = { ...ChartElement.properties, plan: { attribute: false } };
  declare plan: Autoscale;
  readonly heading = 'Replicas on the first day';

  protected csvColumns(): readonly string[] {
    return Object.keys(this.columns ?? {});
  }

  protected emptyReason(): string | null {
    return linesOf(this.plan).length > 0 ? null : 'Empty: no policy keeps the targets.';
  }

  protected summary(): string {
    return linesOf(this.plan)
      .map(({ name, policy }) => `${name}: up to ${countOf(Math.max(...policy.replicas), 'replica')}.`)
      .join(' ');
  }

  protected tableView(): TableView {
    const lines = linesOf(this.plan);
    return {
      caption: 'Replicas over time',
      head: ['h', ...lines.map(({ name }) => name)],
      rows: timesOf(this.plan).map((time) => [
        formatNumber(time / 3600),
        ...lines.map(({ policy }) => String(replicasAt(policy, time))),
      ]),
    };
  }

  protected structure(): string {
    return linesOf(this.plan)
      .map(({ name }) => name)
      .join();
  }

  cursorStep(plot: uPlot): number {
    return plot.over.clientWidth / 100;
  }

  protected buildPlots(host: HTMLElement, palette: Palette, width: number): uPlot[] {
    const axis = axisStyle(palette);
    const stepped = uPlot.paths.stepped?.({ align: 1 });
    const options: uPlot.Options = {
      width,
      height: 200,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false } },
      scales: { x: { time: false }, y: { range: (_plot, _low, high) => [0, (high ?? 1) + 1] } },
      axes: [
        { ...axis, size: 28, label: 'Simulated time, h', space: 64 },
        { ...axis, size: 48, label: 'replicas', incrs: [1, 2, 5, 10, 20, 50, 100, 200] },
      ],
      series: [
        {},
        ...linesOf(this.plan).map(
          ({ dash }): uPlot.Series => ({
            stroke: dash ? palette.muted : palette.ink,
            width: dash ? 1.5 : 2,
            points: { show: false },
            ...(stepped ? { paths: stepped } : {}),
            ...(dash ? { dash: [...dash] } : {}),
          }),
        ),
      ],
      hooks: { setCursor: [(plot) => this.showReadout(plot)] },
    };
    return [new uPlot(options, this.#data(), host)];
  }

  #data(): uPlot.AlignedData {
    const times = timesOf(this.plan);
    return [
      times.map((time) => time / 3600),
      ...linesOf(this.plan).map(({ policy }) => times.map((time) => replicasAt(policy, time))),
    ] as uPlot.AlignedData;
  }

  protected updatePlots(): void {
    this.plots[0]?.setData(this.#data());
  }

  protected readout(plot: uPlot): TemplateResult | string {
    const { idx } = plot.cursor;
    const lines = linesOf(this.plan);
    if (idx === null || idx === undefined)
      return 'Line: this scaler. Dashes: the fewest replicas throughout. Dots: a schedule that knows the load.';
    const hours = Number(plot.data[0][idx] ?? 0);
    return html`<b>${formatNumber(hours)} h, ${formatPercent((hours * 3600) / this.plan.span_s)} of the time</b>
      ${lines.map(({ name, policy }) => html`<span>${name} ${replicasAt(policy, hours * 3600)}</span> `)}`;
  }
}

/** Of all changes, from 0 to the end. */
function timesOf(plan: Autoscale): number[] {
  const times = new Set([0, plan.span_s]);
  for (const { policy } of linesOf(plan)) for (const at of policy.at_s) if (at <= plan.span_s) times.add(at);
  return [...times].sort((a, b) => a - b);
}

customElements.define('sc-scaling-chart', ScalingChart);

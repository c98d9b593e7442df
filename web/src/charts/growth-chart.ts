// A load that grows month by month, and the loads that so many GPUs hold: where they cross, more are needed. Loaded with
// the plans.
import { html, type TemplateResult } from 'lit';
import type { Growth } from 'servecast';
import uPlot from 'uplot';
import { countOf, formatInterval, formatNumber } from '../lib/format';
import { ChartElement, axisStyle, type TableView } from './chart-element';
import type { Palette } from './palette';

const daysAMonth = 365.25 / 12;

/** The day that is so many months from now. */
export function dayIn(months: number, now: Date): Date {
  return new Date(now.getTime() + months * daysAMonth * 86_400_000);
}
export const dayText = (date: Date): string =>
  date.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });
const monthText = (date: Date): string =>
  `${date.toLocaleDateString('en-GB', { month: 'short' })} ${String(date.getFullYear() % 100).padStart(2, '0')}`;

export class GrowthChart extends ChartElement {
  static override properties = { ...ChartElement.properties, plan: { attribute: false }, now: { attribute: false } };
  declare plan: Growth;
  declare now: Date;
  readonly heading = 'The load, and what so many GPUs hold';
  #palette: Palette | null = null;

  protected csvColumns(): readonly string[] {
    return Object.keys(this.columns ?? {});
  }

  get #held(): readonly {
    readonly gpus: number;
    readonly value: number;
    readonly low: number;
    readonly high: number;
    readonly months: number;
  }[] {
    return this.plan.schedule.flatMap(({ gpus, answer, months = 0 }) => (answer ? [{ gpus, ...answer, months }] : []));
  }

  get #unit(): string {
    return this.plan.schedule.find(({ answer }) => answer)?.answer?.unit ?? '';
  }

  #load(month: number): number {
    return this.plan.load * (1 + this.plan.growth_per_month) ** month;
  }

  /** As far as there is something to see: a little beyond the last crossing. */
  get #until(): number {
    const last = this.#held.reduce((most, { months }) => Math.max(most, months), 0);
    return Math.max(1, Math.min(this.plan.looks_ahead_months, Math.ceil(last * 1.15) + 1));
  }

  protected emptyReason(): string | null {
    return this.#held.length > 0 ? null : 'Empty: no load is held within the targets.';
  }

  protected summary(): string {
    return this.#held
      .map(
        ({ gpus, value, months }) =>
          `${countOf(gpus, 'GPU')} hold ${formatNumber(value)} ${this.#unit}, ${months < 0 ? 'less than today’s load' : `until ${dayText(dayIn(months, this.now))}`}.`,
      )
      .join(' ');
  }

  protected tableView(): TableView {
    return {
      caption: 'What is needed when',
      head: ['GPUs', `hold, ${this.#unit}`, '95 % interval', 'until'],
      rows: this.#held.map(({ gpus, value, low, high, months }) => [
        String(gpus),
        formatNumber(value),
        formatInterval(low, high, value),
        months < 0 ? 'too few today' : dayText(dayIn(months, this.now)),
      ]),
    };
  }

  protected structure(): string {
    return this.#unit;
  }

  cursorStep(plot: uPlot): number {
    return plot.over.clientWidth / 100;
  }

  protected buildPlots(host: HTMLElement, palette: Palette, width: number): uPlot[] {
    this.#palette = palette;
    const axis = axisStyle(palette);
    const options: uPlot.Options = {
      width,
      height: 260,
      legend: { show: false },
      padding: [12, 72, 0, 0],
      cursor: { y: false, drag: { x: false, y: false } },
      scales: {
        x: { time: false },
        y: { range: (_plot, low, high) => [Math.max(0, (low ?? 0) * 0.92), (high ?? 1) * 1.05] },
      },
      axes: [
        {
          ...axis,
          size: 28,
          incrs: [1, 2, 3, 6, 12, 24, 48],
          space: 64,
          values: (_plot, splits) => splits.map((month) => monthText(dayIn(month, this.now))),
        },
        {
          ...axis,
          size: 60,
          label: this.#unit,
          values: (_plot, splits) => splits.map((value) => (value === 0 ? '0' : formatNumber(value))),
        },
      ],
      series: [
        {},
        { stroke: palette.ink, width: 2, points: { show: false } },
        { paths: () => null, points: { show: false } },
      ],
      hooks: { draw: [(plot) => this.#mark(plot)], setCursor: [(plot) => this.showReadout(plot)] },
    };
    return [new uPlot(options, this.#data(), host)];
  }

  /** The load; then what spans the scale besides. */
  #data(): uPlot.AlignedData {
    const until = this.#until;
    const months = Array.from({ length: 4 * until + 1 }, (_none, index) => index / 4);
    const held = this.#held.map(({ value }) => value);
    const ends = [Math.min(this.plan.load, ...held), Math.max(this.plan.load, ...held)];
    return [months, months.map((month) => this.#load(month)), months.map((_month, index) => ends[index] ?? null)];
  }

  protected updatePlots(): void {
    this.plots[0]?.setData(this.#data());
  }

  #mark(plot: uPlot): void {
    const palette = this.#palette;
    if (!palette) return;
    const { ctx: pen, bbox } = plot;
    const ratio = devicePixelRatio;
    const y = (load: number) => plot.valToPos(load, 'y', true);
    pen.save();
    pen.font = palette.font.replace(/^\d+px/, `${12 * ratio}px`);
    pen.fillStyle = pen.strokeStyle = palette.ink;
    let lastLabel = Infinity;
    for (const { gpus, value, low, high, months } of this.#held) {
      pen.globalAlpha = 0.14;
      pen.fillRect(bbox.left, y(high), bbox.width, Math.max(ratio, y(low) - y(high)));
      pen.globalAlpha = 1;
      pen.lineWidth = ratio;
      pen.beginPath();
      pen.moveTo(bbox.left, y(value));
      pen.lineTo(bbox.left + bbox.width, y(value));
      pen.stroke();
      pen.textBaseline = 'middle';
      pen.textAlign = 'left';
      // Labels that would touch the one below are left out.
      if (lastLabel - y(value) > 14 * ratio) {
        pen.fillText(countOf(gpus, 'GPU'), bbox.left + bbox.width + 6 * ratio, y(value));
        lastLabel = y(value);
      }
      if (months < 0 || months > this.#until) continue;
      const x = plot.valToPos(months, 'x', true);
      pen.fillStyle = palette.of('beyond');
      pen.beginPath();
      pen.arc(x, y(value), 4 * ratio, 0, 2 * Math.PI);
      pen.fill();
      pen.fillStyle = palette.ink;
      pen.textAlign = x > bbox.left + bbox.width / 3 ? 'right' : 'left';
      pen.textBaseline = 'bottom';
      pen.fillText(
        dayText(dayIn(months, this.now)),
        x - (pen.textAlign === 'right' ? 6 : -6) * ratio,
        y(value) - 4 * ratio,
      );
    }
    pen.restore();
  }

  protected readout(plot: uPlot): TemplateResult | string {
    const { idx } = plot.cursor;
    if (idx === null || idx === undefined)
      return 'Line: the load, whose growth is your assumption. Level lines: the highest load of so many GPUs, with its 95 % interval.';
    const month = Number(plot.data[0][idx] ?? 0);
    const load = this.#load(month);
    const enough = this.#held.find(({ value }) => value >= load);
    return html`<b>${dayText(dayIn(month, this.now))}</b> <span>${formatNumber(load)} ${this.#unit}</span>
      <span>${enough ? `needs ${countOf(enough.gpus, 'GPU')}` : 'needs more than was looked at'}</span>`;
  }
}

customElements.define('sc-growth-chart', GrowthChart);

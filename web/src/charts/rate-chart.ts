// How near each target is to its limit as the load grows, with the load at which the first one breaks; below, how much of
// the load is served within all targets. Loaded with the plans.
import { html, type TemplateResult } from 'lit';
import type { MaxRate, PlanPoint, PlanTargetOf } from 'servecast';
import uPlot from 'uplot';
import { countOf, formatInterval, formatNumber, formatPercent, formatTime, sentence } from '../lib/format';
import { ChartElement, axisStyle, type TableView } from './chart-element';
import type { Palette } from './palette';
import { paneKey } from './pane-key';
import { shareOfLimit, shortTarget } from './shares';

/** Shares of a limit beyond that say nothing more. */
const mostShare = 2;
/** As the curves of the forecast have them. */
const dashes: Readonly<Record<string, readonly number[]>> = { tpot: [7, 3], e2e: [2, 3], output: [7, 3] };
/** Points of a metric's first target, of its second, and so on. */
const pointSigns = ['●', '○', '⬤', '◯'] as const;

/** What a line's colour means. */
function meaningOf({ name }: PlanTargetOf): string {
  return /^(TTFT|TPOT|ITL|E2E)/.exec(name)?.[0].toLowerCase() ?? 'output';
}

export class RateChart extends ChartElement {
  static override properties = { ...ChartElement.properties, plan: { attribute: false }, unit: { attribute: false } };
  declare plan: MaxRate;
  declare unit: string;
  readonly heading = 'Targets as the load grows';
  #palette: Palette | null = null;

  protected csvColumns(): readonly string[] {
    return Object.keys(this.columns ?? {});
  }

  /** Of places at which there is something to draw. */
  get #points(): readonly PlanPoint[] {
    const { curve, answer } = this.plan;
    const last = answer ? answer.high * 1.5 : Infinity;
    const beyond = curve.findIndex(({ at }) => at > last);
    return beyond < 0 ? curve : curve.slice(0, beyond + 1);
  }

  protected emptyReason(): string | null {
    return this.#points.length > 1 ? null : 'Empty: fewer than two loads were tried.';
  }

  protected summary(): string {
    return this.#points
      .map((point) => `At ${formatNumber(point.at)} ${this.unit}: ${this.#inWords(point).join(', ')}.`)
      .join(' ');
  }

  /** How many targets before it are drawn in its colour. */
  #repeat(index: number): number {
    const meanings = this.plan.targets.slice(0, index + 1).map(meaningOf);
    return meanings.filter((meaning) => meaning === meanings[index]).length - 1;
  }

  #inWords(point: PlanPoint): readonly string[] {
    if (point.overloaded) return ['overloaded'];
    return this.plan.targets.map((target, index) => {
      const found = point.slo[index];
      const name = shortTarget(target.name);
      if (found?.share !== undefined) return `${name} ${formatPercent(found.share)}`;
      const value = found?.value_ms;
      const { low, high } = found ?? {};
      const between =
        typeof value === 'number' && typeof low === 'number' && typeof high === 'number'
          ? ` (${formatInterval(low, high, value)})`
          : '';
      return `${name} ${formatTime(value)}${between}`;
    });
  }

  protected tableView(): TableView {
    return {
      caption: 'Loads that were tried',
      head: [this.unit, ...this.plan.targets.map(({ name }) => sentence(name)), 'within all, /s', 'runs'],
      rows: this.#points.map((point) => [
        formatNumber(point.at),
        ...(point.overloaded
          ? this.plan.targets.map(() => 'overloaded')
          : this.#inWords(point).map((words) => words.replace(/^\D*? (?=[\d–])/, ''))),
        formatNumber(point.goodput_per_s),
        String(point.runs),
      ]),
    };
  }

  protected structure(): string {
    return `${this.plan.targets.map(({ name }) => name).join()} ${this.unit}`;
  }

  cursorStep(plot: uPlot): number {
    return plot.over.clientWidth / 100;
  }

  protected buildPlots(host: HTMLElement, palette: Palette, width: number): uPlot[] {
    this.#palette = palette;
    const first = document.createElement('div');
    const second = document.createElement('div');
    const key = this.plan.targets.map((target, index) => ({
      label: `${pointSigns[this.#repeat(index) % pointSigns.length] ?? ''} ${sentence(target.name).replace(/\.$/, '')}`,
      mark: `swatch ${meaningOf(target)}`,
    }));
    host.append(paneKey(key), first, paneKey([], 'Within all targets, per second'), second);
    return [
      new uPlot(this.#shares(palette, width), this.#shareData(), first),
      new uPlot(this.#goodput(palette, width), this.#goodputData(), second),
    ];
  }

  protected updatePlots(): void {
    this.plots[0]?.setData(this.#shareData());
    this.plots[1]?.setData(this.#goodputData());
  }

  #common(palette: Palette, width: number, height: number, label: string, percent: boolean): uPlot.Options {
    const axis = axisStyle(palette);
    return {
      width,
      height,
      legend: { show: false },
      padding: [12, 12, 0, 0],
      cursor: { y: false, drag: { x: false, y: false }, sync: { key: 'plan-rate' } },
      scales: {
        x: { time: false, range: (_plot, _low, high) => [0, high] },
        y: { range: (_plot, _low, high) => [0, percent ? mostShare : (high ?? 1) * 1.1] },
      },
      axes: [
        { ...axis, size: 28, label, labelSize: label === '' ? 0 : 20 },
        {
          ...axis,
          size: 56,
          ...(percent
            ? {
                splits: () => [0, 0.5, 1, 1.5, 2],
                values: (_plot: uPlot, splits: number[]) => splits.map((value) => `${value * 100}\u202f%`),
              }
            : {
                space: 32,
                values: (_plot: uPlot, splits: number[]) =>
                  splits.map((value) => (value === 0 ? '0' : formatNumber(value))),
              }),
        },
      ],
      series: [{}],
      hooks: { draw: [(plot) => this.#mark(plot, percent)], setCursor: [(plot) => this.showReadout(plot)] },
    };
  }

  #shares(palette: Palette, width: number): uPlot.Options {
    const options = this.#common(palette, width, 220, '', true);
    const line = (target: PlanTargetOf, index: number): uPlot.Series => ({
      stroke: palette.of(meaningOf(target)),
      width: meaningOf(target) === 'itl' ? 1 : 2,
      dash: [...(dashes[meaningOf(target)] ?? [])],
      points: {
        show: true,
        size: this.#repeat(index) > 1 ? 9 : 5,
        fill: this.#repeat(index) % 2 === 0 ? palette.of(meaningOf(target)) : palette.surface,
      },
    });
    const edge: uPlot.Series = { stroke: 'transparent', points: { show: false } };
    const { targets } = this.plan;
    const count = targets.length;
    return {
      ...options,
      series: [{}, ...targets.map(line), ...targets.flatMap(() => [edge, edge])],
      bands: targets.map((target, index) => ({
        series: [1 + count + 2 * index + 1, 1 + count + 2 * index],
        fill: `${palette.of(meaningOf(target))}38`,
      })),
    };
  }

  /** Loads; the targets' shares; then of each the low end and the high one. What has no bound leaves at the top. */
  #shareData(): uPlot.AlignedData {
    const points = this.#points;
    const column = (index: number, end: 'value_ms' | 'low' | 'high') =>
      points.map((point) => {
        const target = this.plan.targets[index];
        if (!target) return null;
        if (point.overloaded) return mostShare * 1.5;
        const share = shareOfLimit(target, point.slo[index], end);
        return share === null ? null : Math.min(share, mostShare * 1.5);
      });
    const indices = this.plan.targets.map((_target, index) => index);
    return [
      points.map(({ at }) => at),
      ...indices.map((index) => column(index, 'value_ms')),
      ...indices.flatMap((index) => [column(index, 'low'), column(index, 'high')]),
    ];
  }

  #goodput(palette: Palette, width: number): uPlot.Options {
    const options = this.#common(palette, width, 130, `${this.unit}, asked`, false);
    return {
      ...options,
      series: [{}, { stroke: palette.ink, width: 2, points: { show: true, size: 5, fill: palette.ink } }],
    };
  }

  #goodputData(): uPlot.AlignedData {
    return [this.#points.map(({ at }) => at), this.#points.map(({ goodput_per_s: goodput }) => goodput)];
  }

  /** The limit, and the load that is held with its interval. */
  #mark(plot: uPlot, percent: boolean): void {
    const palette = this.#palette;
    const { answer } = this.plan;
    if (!palette) return;
    const { ctx: pen, bbox } = plot;
    const ratio = devicePixelRatio;
    pen.save();
    pen.font = palette.font.replace(/^\d+px/, `${12 * ratio}px`);
    pen.fillStyle = pen.strokeStyle = palette.ink;
    pen.lineWidth = 1.5 * ratio;
    pen.textBaseline = 'bottom';
    if (percent) {
      const top = plot.valToPos(1, 'y', true);
      pen.beginPath();
      pen.moveTo(bbox.left, top);
      pen.lineTo(bbox.left + bbox.width, top);
      pen.stroke();
      pen.textAlign = 'left';
      pen.fillText('limit', bbox.left + 4 * ratio, top - 3 * ratio);
    }
    if (answer) {
      const [low, at, high] = [answer.low, answer.value, answer.high].map((load) => plot.valToPos(load, 'x', true));
      pen.globalAlpha = 0.12;
      pen.fillRect(low ?? 0, bbox.top, Math.max(ratio, (high ?? 0) - (low ?? 0)), bbox.height);
      pen.globalAlpha = 1;
      pen.setLineDash([4 * ratio, 3 * ratio]);
      pen.beginPath();
      pen.moveTo(at ?? 0, bbox.top);
      pen.lineTo(at ?? 0, bbox.top + bbox.height);
      pen.stroke();
      if (percent) {
        pen.textAlign = 'right';
        pen.textBaseline = 'top';
        pen.fillText(formatNumber(answer.value), (low ?? 0) - 4 * ratio, bbox.top + 2 * ratio);
      }
    }
    pen.restore();
  }

  protected readout(plot: uPlot): TemplateResult | string {
    const { idx } = plot.cursor;
    const point = idx === null || idx === undefined ? undefined : this.#points[idx];
    if (!point)
      return 'Points: loads that were tried, on the same seeds. Bands and shade: 95 % intervals. Points of one run lie further out.';
    return html`<b>${formatNumber(point.at)} ${this.unit}</b>
      ${this.#inWords(point).map((words) => html`<span>${words}</span>`)}
      <span>within all ${formatNumber(point.goodput_per_s)}/s</span><span>${countOf(point.runs, 'run')}</span>`;
  }
}

customElements.define('sc-rate-chart', RateChart);

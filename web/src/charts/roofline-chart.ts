// Steps on the roofline of their GPU: how much of its arithmetic a step uses over how many FLOPs it needs a byte, both
// against the GPU's own peaks. Loaded with the view over time.
import { html, type TemplateResult } from 'lit';
import uPlot from 'uplot';
import { formatCount, formatNumber, formatPercent } from '../lib/format';
import { ChartElement, axisStyle, type TableView } from './chart-element';
import type { Palette } from './palette';
import { paneKey } from './pane-key';

/** More points than pixels say nothing more. */
const mostPoints = 4000;
const none = new Float64Array(0);
const kinds = ['prompts only', 'both', 'decodes only'] as const;

export class RooflineChart extends ChartElement {
  readonly heading = 'Steps on the roofline';
  #palette: Palette | null = null;

  #column(name: string): Float64Array {
    return this.columns?.[`step_${name}`] ?? none;
  }

  /** Those that are drawn, evenly taken of all. */
  #points(): readonly { step: number; intensity: number; compute: number; bandwidth: number; kind: number }[] {
    const compute = this.#column('compute_share');
    const stride = Math.max(1, Math.ceil(compute.length / mostPoints));
    const points = [];
    for (let step = 0; step < compute.length; step += stride) {
      const share = compute[step] ?? NaN;
      const bandwidth = this.#column('bandwidth_share')[step] ?? NaN;
      const [prefills, decodes] = [this.#column('prefills')[step] ?? 0, this.#column('decodes')[step] ?? 0];
      if (share > 0 && bandwidth > 0)
        points.push({
          step,
          intensity: share / bandwidth,
          compute: share,
          bandwidth,
          kind: decodes === 0 ? 0 : prefills > 0 ? 1 : 2,
        });
    }
    return points;
  }

  protected csvColumns(): readonly string[] {
    return ['start_s', 'end_s', 'prefills', 'decodes', 'compute_share', 'bandwidth_share'].map(
      (name) => `step_${name}`,
    );
  }

  protected emptyReason(): string | null {
    if (!this.columns) return this.waitingFor;
    return this.#points().length > 0
      ? null
      : 'Empty: what steps need of the GPU is not known, with pipeline stages or the rules of another simulator.';
  }

  #means(): readonly (readonly [string, number, number, number])[] {
    const points = this.#points();
    return kinds.map((name, kind) => {
      const own = points.filter((point) => point.kind === kind);
      const mean = (of: (point: (typeof own)[number]) => number) =>
        own.reduce((sum, point) => sum + of(point), 0) / Math.max(1, own.length);
      return [name, own.length, mean(({ compute }) => compute), mean(({ bandwidth }) => bandwidth)];
    });
  }

  protected summary(): string {
    return this.#means()
      .filter(([, count]) => count > 0)
      .map(
        ([name, , compute, bandwidth]) =>
          `Steps of ${name}: ${formatPercent(compute)} of the arithmetic and ${formatPercent(bandwidth)} of the bandwidth in the mean.`,
      )
      .join(' ');
  }

  protected tableView(): TableView {
    return {
      caption: 'Means over steps, of the GPU’s peaks',
      head: ['Steps of', 'Drawn', 'Arithmetic', 'Bandwidth'],
      rows: this.#means().map(([name, count, compute, bandwidth]) => [
        name,
        formatCount(count),
        count > 0 ? formatPercent(compute) : '–',
        count > 0 ? formatPercent(bandwidth) : '–',
      ]),
    };
  }

  protected structure(): string {
    return 'roofline';
  }

  cursorStep(plot: uPlot): number {
    return plot.over.clientWidth / 100;
  }

  #range(): [number, number] {
    const all = this.#points().map(({ intensity }) => intensity);
    const low = all.reduce((least, value) => Math.min(least, value), 0.1);
    const high = all.reduce((most, value) => Math.max(most, value), 10);
    return [10 ** Math.floor(Math.log10(low)), 10 ** Math.ceil(Math.log10(high))];
  }

  protected buildPlots(host: HTMLElement, palette: Palette, width: number): uPlot[] {
    this.#palette = palette;
    const key = kinds.map((name, kind) => ({
      label: `${name} ${['●', '■', '▲'][kind] ?? ''}`,
      mark: `block ${['prefill', 'interference', 'decode'][kind] ?? ''}`,
    }));
    host.append(paneKey(key));
    const axis = axisStyle(palette);
    const options: uPlot.Options = {
      width,
      height: 260,
      legend: { show: false },
      padding: [12, 16, 0, 0],
      cursor: { points: { show: false }, drag: { x: false, y: false } },
      scales: {
        x: { time: false, distr: 3, range: () => this.#range() },
        y: { distr: 3, range: [0.001, 1.5] },
      },
      axes: [
        {
          ...axis,
          label: 'Arithmetic intensity, 1 = the ridge',
          size: 28,
          values: (_plot, splits) =>
            splits.map((value) => (Number.isInteger(Math.log10(value)) ? formatNumber(value, 1) : '')),
        },
        {
          ...axis,
          label: 'Arithmetic, of its peak',
          size: 64,
          splits: () => [0.001, 0.01, 0.1, 1],
          values: (_plot, splits) => splits.map((value) => `${Number((value * 100).toPrecision(3))}\u202f%`),
        },
      ],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: { draw: [(plot) => this.#drawSteps(plot)], setCursor: [(plot) => this.showReadout(plot)] },
    };
    return [new uPlot(options, this.#data(), host)];
  }

  #data(): uPlot.AlignedData {
    return [this.#range(), [0.001, 1]];
  }

  protected updatePlots(): void {
    this.plots[0]?.setData(this.#data());
  }

  #drawSteps(plot: uPlot): void {
    const palette = this.#palette;
    if (!palette) return;
    const { ctx: pen, bbox } = plot;
    const ratio = devicePixelRatio;
    const [low, high] = this.#range();
    const place = (x: number, y: number) => [plot.valToPos(x, 'x', true), plot.valToPos(y, 'y', true)] as const;
    pen.save();
    pen.beginPath();
    pen.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    pen.clip();
    pen.strokeStyle = palette.ink;
    pen.lineWidth = 1.5 * ratio;
    pen.beginPath();
    pen.moveTo(...place(low, low));
    pen.lineTo(...place(1, 1));
    pen.lineTo(...place(high, 1));
    pen.stroke();
    for (const { intensity, compute, kind } of this.#points()) {
      const [left, top] = place(intensity, compute);
      const size = 2.5 * ratio;
      pen.fillStyle = palette.of(['prefill', 'interference', 'decode'][kind] ?? 'decode');
      pen.beginPath();
      if (kind === 0) pen.arc(left, top, size, 0, 2 * Math.PI);
      else if (kind === 1) pen.rect(left - size, top - size, 2 * size, 2 * size);
      else {
        pen.moveTo(left, top - size);
        pen.lineTo(left + size, top + size);
        pen.lineTo(left - size, top + size);
        pen.closePath();
      }
      pen.fill();
    }
    pen.restore();
  }

  /** The step that is nearest to the cursor. */
  protected readout(plot: uPlot): TemplateResult | string {
    const { left = -1, top = -1 } = plot.cursor;
    const points = this.#points();
    if (left < 0 || points.length === 0)
      return 'The line is what the GPU can do at best: sloping by its bandwidth, level by its arithmetic. A step far below it waits on something else.';
    let best = points[0];
    let distance = Infinity;
    for (const point of points) {
      const away = Math.hypot(plot.valToPos(point.intensity, 'x') - left, plot.valToPos(point.compute, 'y') - top);
      if (away < distance) [best, distance] = [point, away];
    }
    if (!best) return '';
    const { step, compute, bandwidth } = best;
    return html`<b>Step at ${formatNumber(this.#column('start_s')[step], 4)} s</b>
      <span>${formatCount(this.#column('prefill_tokens')[step])} prompt tokens, ${formatCount(this.#column('decodes')[step])} decodes</span>
      <span>arithmetic ${formatPercent(compute)}, bandwidth ${formatPercent(bandwidth)} of the peaks</span>`;
  }

  override rowStep(): number {
    return 12;
  }
}

customElements.define('sc-roofline-chart', RooflineChart);

// A chart of rows over time, from the top down: axes and what is clipped; subclasses draw.
import uPlot from 'uplot';
import { ChartElement, axisStyle } from './chart-element';
import type { Palette } from './palette';
import { axisTicks, tickLabel } from './ticks';

export abstract class RowChart extends ChartElement {
  #palette: Palette | null = null;

  protected abstract rowCount(): number;
  abstract override rowStep(): number;
  /** Simulated time, so that it zooms with other charts; or since arrival. */
  protected abstract isSimulatedTime(): boolean;
  /** Of all that is drawn, s. */
  protected abstract timeRange(): [number, number];
  /** `size`: of their column, px. */
  protected abstract rowNames(): { readonly label: string; readonly size: number; readonly names: string[] };
  protected abstract drawRows(plot: uPlot, pen: CanvasRenderingContext2D, palette: Palette): void;

  cursorStep(plot: uPlot): number {
    return plot.over.clientWidth / 100;
  }

  protected buildPlots(host: HTMLElement, palette: Palette, width: number): uPlot[] {
    this.#palette = palette;
    // The ticks are ours; these only keep uPlot from finding that none fits.
    const own = { incrs: [1e15], space: 1, filter: (_plot: uPlot, splits: number[]) => splits };
    const axis = { ...axisStyle(palette), ...own };
    const rows = this.rowCount();
    const { label, size } = this.rowNames();
    const simulated = this.isSimulatedTime();
    const options: uPlot.Options = {
      width,
      height: rows * this.rowStep() + 64,
      legend: { show: false },
      padding: [8, 16, 0, 0],
      cursor: {
        points: { show: false },
        drag: { x: true, y: false },
        ...(simulated ? { sync: { key: 'simulated-time', scales: ['x', null] } } : {}),
      },
      scales: { x: { time: false }, y: { dir: -1, range: [0, rows] } },
      axes: [
        {
          ...axis,
          label: simulated ? 'Simulated time' : 'Time since arrival',
          size: 28,
          splits: (plot, _axis, low, high) => axisTicks(low, high, false, (plot.width - 80) / 72),
          values: (_plot, splits) => splits.map((value) => tickLabel(1000 * value)),
        },
        {
          ...axis,
          label,
          grid: { show: false },
          size,
          splits: () => Array.from({ length: rows }, (_, row) => row + 0.5),
          values: () => this.rowNames().names,
        },
      ],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: { draw: [(plot) => this.#draw(plot)], setCursor: [(plot) => this.showReadout(plot)] },
    };
    return [new uPlot(options, this.#data(), host)];
  }

  #data(): uPlot.AlignedData {
    return [this.timeRange(), [0, 1]];
  }

  protected updatePlots(): void {
    this.plots[0]?.setData(this.#data());
  }

  #draw(plot: uPlot): void {
    const { ctx: pen, bbox } = plot;
    if (!this.#palette) return;
    pen.save();
    pen.beginPath();
    pen.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    pen.clip();
    this.drawRows(plot, pen, this.#palette);
    pen.restore();
  }
}

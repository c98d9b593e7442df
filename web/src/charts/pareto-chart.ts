// Designs by what they cost and how near their closest target is to its limit; the frontier is what nothing else is both
// cheaper and better than. A GPU has a shape. Loaded with the plans.
import { html, type TemplateResult } from 'lit';
import type { SearchAnswer, SearchPoint } from 'servecast';
import uPlot from 'uplot';
import { countOf, formatNumber, formatPercent } from '../lib/format';
import { ChartElement, axisStyle, type TableView } from './chart-element';
import { hatch, type Palette } from './palette';
import { paneKey } from './pane-key';

/** Shares of a limit beyond that are drawn at the top. */
const mostShare = 1.5;
const shapes = ['■', '◆', '▲', '▼', '●', '✚', '★', '✖'] as const;

export const dollarText = (value: number): string =>
  `$${value.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;

/** The part of a label that names the GPU. */
const gpuOf = ({ label }: SearchPoint): string => label.split(', ')[0] ?? label;

type Point = SearchPoint & { readonly dollars_per_hour: number; readonly strain: number };

interface Drawn {
  /** By rising cost. */
  readonly points: readonly Point[];
  readonly frontier: readonly Point[];
  readonly gpus: readonly string[];
  /** A few designs cost many times what others do, and say nothing to who looks for a cheap one: they are not drawn. */
  readonly mostDollars: number;
}

function drawnOf(search: SearchAnswer): Drawn {
  const points = search.points
    .filter((point): point is Point => point.dollars_per_hour !== null && point.strain !== null)
    .sort((a, b) => a.dollars_per_hour - b.dollars_per_hour);
  const on = new Set(search.frontier);
  const frontier = points.filter(({ id }) => on.has(id));
  const least = points[0]?.dollars_per_hour ?? 1;
  const most = points.at(-1)?.dollars_per_hour ?? 1;
  return {
    points,
    frontier,
    gpus: [...new Set(points.map(gpuOf))].sort(),
    mostDollars: Math.max((frontier.at(-1)?.dollars_per_hour ?? 0) * 1.3, Math.min(most, least * 8)),
  };
}

export class ParetoChart extends ChartElement {
  static override properties = { ...ChartElement.properties, search: { attribute: false } };
  declare search: SearchAnswer;
  readonly heading = 'Cost against the closest target';
  #palette: Palette | null = null;
  #made: { readonly of: SearchAnswer; readonly drawn: Drawn } | null = null;

  protected csvColumns(): readonly string[] {
    return Object.keys(this.columns ?? {});
  }

  /** Made once an answer: a search of a thousand designs answers often. */
  get #drawn(): Drawn {
    if (this.#made?.of !== this.search) this.#made = { of: this.search, drawn: drawnOf(this.search) };
    return this.#made.drawn;
  }

  protected emptyReason(): string | null {
    return this.#drawn.points.length > 0 ? null : 'Empty: no design that has a price was run yet.';
  }

  protected summary(): string {
    return `On the frontier: ${this.#drawn.frontier.map((point) => `${point.label}, ${dollarText(point.dollars_per_hour)} an hour, ${formatPercent(point.strain)} of the limit`).join('; ')}.`;
  }

  protected tableView(): TableView {
    const on = new Set(this.search.frontier);
    return {
      caption: 'Designs that were run',
      head: ['Design', 'GPUs', '$/h', 'closest target, of its limit', 'on the frontier'],
      rows: this.#drawn.points.map((point) => [
        point.label,
        formatNumber(point.gpus),
        dollarText(point.dollars_per_hour),
        formatPercent(point.strain),
        on.has(point.id) ? 'yes' : '',
      ]),
    };
  }

  protected structure(): string {
    return this.#drawn.gpus.join();
  }

  cursorStep(plot: uPlot): number {
    return plot.over.clientWidth / 100;
  }

  protected buildPlots(host: HTMLElement, palette: Palette, width: number): uPlot[] {
    this.#palette = palette;
    const box = document.createElement('div');
    const key = this.#drawn.gpus.map((gpu, index) => ({ label: `${shapes[index % shapes.length] ?? ''} ${gpu}` }));
    host.append(paneKey(key), box);
    const axis = axisStyle(palette);
    const options: uPlot.Options = {
      width,
      height: 280,
      legend: { show: false },
      padding: [12, 12, 0, 0],
      cursor: { points: { show: false }, drag: { x: false, y: false } },
      scales: {
        x: { time: false, range: (_plot, _low, high) => [0, (high ?? 1) * 1.05] },
        y: { range: () => [0, mostShare] },
      },
      axes: [
        {
          ...axis,
          size: 28,
          label: 'cost per hour',
          values: (_plot, splits) => splits.map((value) => `$${formatNumber(value)}`),
        },
        {
          ...axis,
          size: 56,
          splits: () => [0, 0.5, 1, 1.5],
          values: (_plot, splits) => splits.map((value) => (value === 1 ? 'limit' : `${value * 100}\u202f%`)),
        },
      ],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: { draw: [(plot) => this.#drawPoints(plot)], setCursor: [(plot) => this.showReadout(plot)] },
    };
    return [new uPlot(options, this.#data(), box)];
  }

  /** What spans the scale. */
  #data(): uPlot.AlignedData {
    return [
      [0, this.#drawn.mostDollars],
      [0, mostShare],
    ];
  }

  protected updatePlots(): void {
    this.plots[0]?.setData(this.#data());
  }

  #drawPoints(plot: uPlot): void {
    const palette = this.#palette;
    if (!palette) return;
    const { ctx: pen, bbox } = plot;
    const ratio = devicePixelRatio;
    const x = (dollars: number) => plot.valToPos(dollars, 'x', true);
    const y = (share: number) => plot.valToPos(Math.min(share, mostShare * 0.98), 'y', true);
    pen.save();
    pen.beginPath();
    pen.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    pen.clip();
    pen.fillStyle = hatch(pen, palette.grid);
    pen.fillRect(bbox.left, bbox.top, bbox.width, y(1) - bbox.top);
    pen.strokeStyle = pen.fillStyle = palette.ink;
    pen.lineWidth = 1.5 * ratio;
    pen.beginPath();
    pen.moveTo(bbox.left, y(1));
    pen.lineTo(bbox.left + bbox.width, y(1));
    pen.stroke();
    this.#drawFrontier(pen, x, y, bbox.left + bbox.width);
    pen.font = palette.font.replace(/^\d+px/, `${13 * ratio}px`);
    pen.textAlign = 'center';
    pen.textBaseline = 'middle';
    const { points, frontier, gpus } = this.#drawn;
    const on = new Set(frontier);
    const shapeOf = new Map(gpus.map((gpu, index) => [gpu, shapes[index % shapes.length] ?? '■']));
    // Those of the frontier above others.
    for (const last of [false, true])
      for (const point of points) {
        if (on.has(point) !== last) continue;
        pen.fillStyle = last ? palette.of('running') : palette.muted;
        pen.globalAlpha = last ? 1 : 0.55;
        pen.fillText(shapeOf.get(gpuOf(point)) ?? '■', x(point.dollars_per_hour), y(point.strain));
      }
    pen.globalAlpha = 1;
    this.#nameFrontier(pen, palette, x, y);
    pen.restore();
  }

  /** The cheapest first; a name that would touch another one is left out. */
  #nameFrontier(
    pen: CanvasRenderingContext2D,
    palette: Palette,
    x: (dollars: number) => number,
    y: (share: number) => number,
  ): void {
    const ratio = devicePixelRatio;
    const { frontier } = this.#drawn;
    const cheapest = frontier.filter(({ id }) => id === this.search.cheapest);
    const taken: { left: number; right: number; top: number }[] = [];
    pen.textAlign = 'left';
    pen.textBaseline = 'top';
    for (const point of [...cheapest, ...frontier]) {
      const [left, top] = [x(point.dollars_per_hour) + 9 * ratio, y(point.strain) + 6 * ratio];
      const right = left + pen.measureText(shortLabel(point)).width;
      const touches = (other: (typeof taken)[number]) =>
        Math.abs(other.top - top) < 18 * ratio && left < other.right && right > other.left;
      if (right > pen.canvas.width || taken.some(touches)) continue;
      taken.push({ left, right, top });
      pen.fillStyle = palette.surface;
      pen.globalAlpha = 0.8;
      pen.fillRect(left - 2 * ratio, top - ratio, right - left + 4 * ratio, 16 * ratio);
      pen.globalAlpha = 1;
      pen.fillStyle = palette.ink;
      pen.fillText(shortLabel(point), left, top);
    }
  }

  /** In steps: what costs more is better, or it would not be there. */
  #drawFrontier(
    pen: CanvasRenderingContext2D,
    x: (dollars: number) => number,
    y: (share: number) => number,
    end: number,
  ): void {
    const { frontier } = this.#drawn;
    if (frontier.length === 0) return;
    pen.beginPath();
    frontier.forEach((point, index) => {
      const at = x(point.dollars_per_hour);
      if (index === 0) pen.moveTo(at, y(point.strain));
      else pen.lineTo(at, y(frontier[index - 1]?.strain ?? 0));
      pen.lineTo(at, y(point.strain));
    });
    pen.lineTo(end, y(frontier.at(-1)?.strain ?? 0));
    pen.stroke();
  }

  /** The design that is nearest to the cursor. */
  protected readout(plot: uPlot): TemplateResult | string {
    const { left = -1, top = -1 } = plot.cursor;
    const { points: all, mostDollars } = this.#drawn;
    const points = all.filter(({ dollars_per_hour: dollars }) => dollars <= mostDollars);
    const beyond = all.length - points.length;
    if (left < 0)
      return `Line: nothing is cheaper and better. Above the limit a target is missed. A point: the fewest replicas of a design.${beyond > 0 ? ` ${countOf(beyond, 'design')} further right: in the table.` : ''}`;
    let best: (typeof points)[number] | undefined;
    let distance = Infinity;
    for (const point of points) {
      const away = Math.hypot(
        plot.valToPos(point.dollars_per_hour, 'x') - left,
        plot.valToPos(Math.min(point.strain, mostShare * 0.98), 'y') - top,
      );
      if (away < distance) [best, distance] = [point, away];
    }
    if (!best) return '';
    return html`<b>${best.label}</b> <span>${countOf(best.gpus ?? 0, 'GPU')}, ${dollarText(best.dollars_per_hour)} an hour</span>
      <span>${formatPercent(best.strain)} of the limit</span> <span>${best.reason}</span>`;
  }

  override rowStep(): number {
    return 12;
  }
}

/** "2 × H100 SXM 80 GB, fp8" */
export function shortLabel(point: SearchPoint): string {
  if (point.label.startsWith('as it is')) return `${countOf(point.gpus ?? 0, 'GPU')}, ${point.label}`;
  const [gpu = '', ...rest] = point.label.split(', ');
  return [`${point.gpus ?? '?'} × ${gpu}`, ...rest].join(', ');
}

customElements.define('sc-pareto-chart', ParetoChart);

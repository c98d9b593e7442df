// A chart as a file: its numbers as CSV, its pixels as PNG, or as SVG, for which uPlot and the charts draw on a context
// that writes commands down instead of painting them. Loaded when a chart is saved.
import type uPlot from 'uplot';
import { download } from '../lib/download';
import type { Palette } from './palette';

const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign] ?? sign);
const short = (value: number): string => String(Number(value.toFixed(2)));

/** What Path2D and a context have in common, as path data. */
class PathWriter {
  data = '';
  moveTo(x: number, y: number): void {
    this.data += `M${short(x)} ${short(y)}`;
  }
  lineTo(x: number, y: number): void {
    this.data += `${this.data === '' ? 'M' : 'L'}${short(x)} ${short(y)}`;
  }
  rect(x: number, y: number, width: number, height: number): void {
    this.data += `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`;
  }
  /** Whole circles, which is what charts draw. */
  arc(x: number, y: number, radius: number): void {
    const r = short(radius);
    this.data += `M${short(x - radius)} ${short(y)}a${r} ${r} 0 1 0 ${short(2 * radius)} 0a${r} ${r} 0 1 0 ${short(-2 * radius)} 0z`;
  }
  bezierCurveTo(...at: number[]): void {
    this.data += `C${at.map(short).join(' ')}`;
  }
  closePath(): void {
    this.data += 'z';
  }
}

interface Hatching {
  readonly hatching: string;
}
type Paint = string | Hatching;

interface Settings {
  strokeStyle: Paint;
  fillStyle: Paint;
  lineWidth: number;
  font: string;
  textAlign: string;
  textBaseline: string;
  lineJoin: string;
  globalAlpha: number;
  dash: readonly number[];
  matrix: string;
  clip: string;
}

const initial: Settings = {
  strokeStyle: '#000',
  fillStyle: '#000',
  lineWidth: 1,
  font: '12px sans-serif',
  textAlign: 'start',
  textBaseline: 'alphabetic',
  lineJoin: 'miter',
  globalAlpha: 1,
  dash: [],
  matrix: '',
  clip: '',
};

const anchors: Readonly<Record<string, string>> = { center: 'middle', right: 'end', end: 'end' };
const baselines: Readonly<Record<string, string>> = { top: 'hanging', middle: 'central', bottom: 'text-after-edge' };
let clips = 0;

class Recorder extends PathWriter {
  readonly shapes: string[] = [];
  readonly definitions = new Map<string, string>();
  readonly canvas: HTMLCanvasElement;
  readonly #measure: CanvasRenderingContext2D | null;
  #now: Settings = { ...initial };
  readonly #saved: Settings[] = [];

  constructor(canvas: HTMLCanvasElement, measure: CanvasRenderingContext2D | null) {
    super();
    this.canvas = canvas;
    this.#measure = measure;
    for (const name of Object.keys(initial) as (keyof Settings)[]) {
      if (name === 'dash' || name === 'matrix' || name === 'clip') continue;
      Object.defineProperty(this, name, {
        get: () => this.#now[name],
        set: (value: never) => (this.#now = { ...this.#now, [name]: value }),
      });
    }
  }

  save(): void {
    this.#saved.push({ ...this.#now });
  }
  restore(): void {
    this.#now = this.#saved.pop() ?? { ...initial };
  }
  beginPath(): void {
    this.data = '';
  }
  setLineDash(dash: readonly number[]): void {
    this.#now = { ...this.#now, dash };
  }
  translate(x: number, y: number): void {
    if (x !== 0 || y !== 0)
      this.#now = { ...this.#now, matrix: `${this.#now.matrix}translate(${short(x)} ${short(y)})` };
  }
  rotate(angle: number): void {
    this.#now = { ...this.#now, matrix: `${this.#now.matrix}rotate(${short((angle * 180) / Math.PI)})` };
  }
  setTransform(): void {
    this.#now = { ...this.#now, matrix: '' };
  }
  clip(path?: PathWriter): void {
    clips += 1;
    const id = `clip-${clips}`;
    this.definitions.set(id, `<clipPath id="${id}"><path d="${(path ?? this).data}"/></clipPath>`);
    this.#now = { ...this.#now, clip: ` clip-path="url(#${id})"` };
  }
  clearRect(x: number, y: number, width: number, height: number): void {
    const { width: wide, height: high } = this.canvas;
    if (x <= 0 && y <= 0 && width >= wide && height >= high) this.shapes.length = 0;
  }
  measureText(text: string): TextMetrics | { width: number } {
    if (!this.#measure) return { width: 7 * text.length };
    this.#measure.font = this.#now.font;
    return this.#measure.measureText(text);
  }
  stroke(path?: PathWriter): void {
    this.#path((path ?? this).data, false);
  }
  fill(path?: PathWriter): void {
    this.#path((path ?? this).data, true);
  }
  fillRect(x: number, y: number, width: number, height: number): void {
    this.#path(`M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`, true);
  }
  strokeRect(x: number, y: number, width: number, height: number): void {
    this.#path(`M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`, false);
  }
  strokeText(text: string, x: number, y: number): void {
    this.#text(text, x, y, `fill="none" ${this.#stroke()} stroke-linejoin="round"`);
  }
  fillText(text: string, x: number, y: number): void {
    this.#text(text, x, y, `fill="${this.#paint(this.#now.fillStyle)}"`);
  }
  /** Of a tile that this drew on: its lines in their colour. */
  createPattern(tile: HTMLCanvasElement): Hatching {
    const { colour, size } = tiles.get(tile) ?? { colour: '#888', size: 7 };
    const id = `hatch-${escaped(colour).replace(/\W/g, '')}`;
    this.definitions.set(
      id,
      `<pattern id="${id}" width="${size}" height="${size}" patternUnits="userSpaceOnUse"><path d="M0 ${size}L${size} 0" stroke="${escaped(colour)}" stroke-width="${short(size / 7)}"/></pattern>`,
    );
    return { hatching: `url(#${id})` };
  }

  #paint(paint: Paint): string {
    return typeof paint === 'string' ? escaped(paint) : paint.hatching;
  }
  #stroke(): string {
    const { strokeStyle, lineWidth, dash } = this.#now;
    const dashes = dash.some((part) => part > 0) ? ` stroke-dasharray="${dash.map(short).join(' ')}"` : '';
    return `stroke="${this.#paint(strokeStyle)}" stroke-width="${short(lineWidth)}"${dashes}`;
  }
  #around(): string {
    const { matrix, clip, globalAlpha } = this.#now;
    return `${matrix === '' ? '' : ` transform="${matrix}"`}${clip}${globalAlpha === 1 ? '' : ` opacity="${globalAlpha}"`}`;
  }
  #path(data: string, filled: boolean): void {
    if (data === '') return;
    tiles.set(this.canvas, { colour: String(this.#now.strokeStyle), size: this.canvas.width });
    const paint = filled ? `fill="${this.#paint(this.#now.fillStyle)}"` : `fill="none" ${this.#stroke()}`;
    this.shapes.push(`<path d="${data}" ${paint}${this.#around()}/>`);
  }
  #text(text: string, x: number, y: number, paint: string): void {
    const { font, textAlign, textBaseline } = this.#now;
    const anchor = anchors[textAlign] ? ` text-anchor="${anchors[textAlign]}"` : '';
    const baseline = baselines[textBaseline] ? ` dominant-baseline="${baselines[textBaseline]}"` : '';
    this.shapes.push(
      `<text x="${short(x)}" y="${short(y)}" style="font:${escaped(font)}"${anchor}${baseline} ${paint}${this.#around()}>${escaped(text)}</text>`,
    );
  }
}

const titleHeight = 24;
const tiles = new Map<HTMLCanvasElement, { readonly colour: string; readonly size: number }>();

/** One file with the heading and all plots that `draw` makes, below each other; heading "": the plots alone, without a margin. */
export async function asSvg(
  { heading, palette, titles }: Pick<SavedChart, 'heading' | 'palette' | 'titles'>,
  draw: (host: HTMLElement) => readonly uPlot[],
): Promise<string> {
  const recorders = new Map<HTMLCanvasElement, Recorder>();
  const measure = document.createElement('canvas').getContext('2d');
  const { getContext } = HTMLCanvasElement.prototype;
  const RealPath = globalThis.Path2D;
  const host = document.createElement('div');
  let plots: readonly uPlot[] = [];
  try {
    HTMLCanvasElement.prototype.getContext = function (this: HTMLCanvasElement) {
      let recorder = recorders.get(this);
      if (!recorder) recorders.set(this, (recorder = new Recorder(this, measure)));
      return recorder as unknown as CanvasRenderingContext2D;
    } as unknown as typeof getContext;
    globalThis.Path2D = PathWriter as unknown as typeof Path2D;
    plots = draw(host);
    // uPlot draws in a microtask of its own.
    await Promise.resolve().then(() => undefined);
    await Promise.resolve();
  } finally {
    HTMLCanvasElement.prototype.getContext = getContext;
    globalThis.Path2D = RealPath;
    tiles.clear();
  }
  const drawn = plots.map(({ ctx }) => ctx as unknown as Recorder);
  for (const plot of plots) plot.destroy();
  const ratio = devicePixelRatio;
  const margin = heading === '' ? 0 : 16 * ratio;
  const width = Math.max(...drawn.map(({ canvas }) => canvas.width)) + 2 * margin;
  let top = heading === '' ? 0 : 40 * ratio;
  const titled = (title: string) =>
    `<text x="${margin}" y="${top - 6 * ratio}" style="font:${escaped(palette.font.replace('13px', `${13 * ratio}px`))}" fill="${palette.ink}">${escaped(title)}</text>`;
  const parts = drawn.map(({ canvas, shapes }, index) => {
    const title = titles[index];
    if (title !== undefined) top += titleHeight * ratio;
    const group = `${title === undefined ? '' : titled(title)}<g transform="translate(${margin} ${top})">${shapes.join('')}</g>`;
    top += canvas.height;
    return group;
  });
  const definitions = new Map(drawn.flatMap((recorder) => [...recorder.definitions]));
  const height = top + margin;
  const title =
    heading === ''
      ? ''
      : `<text x="${margin}" y="${26 * ratio}" style="font:${escaped(palette.font.replace('13px', `600 ${15 * ratio}px`))}" fill="${palette.ink}">${escaped(heading)}</text>`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${short(width / ratio)}" height="${short(height / ratio)}" viewBox="0 0 ${short(width)} ${short(height)}"><defs>${[...definitions.values()].join('')}</defs><rect width="100%" height="100%" fill="${palette.surface}"/>${title}${parts.join('')}</svg>\n`;
}

export interface SavedChart {
  /** Of the file, without its kind. */
  readonly name: string;
  readonly heading: string;
  readonly palette: Palette;
  readonly columns: readonly { readonly name: string; readonly values: Float64Array }[];
  readonly plots: readonly uPlot[];
  /** Above each plot; none where its axes say it. */
  readonly titles: readonly string[];
  draw(host: HTMLElement): readonly uPlot[];
}

export async function saveChart(kind: string, chart: SavedChart): Promise<void> {
  if (kind === 'CSV') saveCsv(chart);
  else if (kind === 'PNG') savePng(chart);
  else if (kind === 'SVG') {
    const text = await asSvg(chart, (host) => chart.draw(host));
    download(`${chart.name}.svg`, new Blob([text], { type: 'image/svg+xml' }));
  }
}

function saveCsv({ name, columns }: SavedChart): void {
  const length = Math.max(0, ...columns.map(({ values }) => values.length));
  const lines = [columns.map((column) => column.name).join(',')];
  for (let row = 0; row < length; row += 1)
    lines.push(columns.map(({ values }) => String(values[row] ?? '')).join(','));
  download(`${name}.csv`, new Blob([`${lines.join('\n')}\n`], { type: 'text/csv' }));
}

function savePng({ name, heading, palette, plots, titles }: SavedChart): void {
  const ratio = devicePixelRatio;
  const canvases = plots.map((plot) => plot.ctx.canvas);
  const image = document.createElement('canvas');
  const margin = 16 * ratio;
  image.width = Math.max(...canvases.map((canvas) => canvas.width)) + 2 * margin;
  image.height =
    canvases.reduce((sum, canvas) => sum + canvas.height, (40 + titles.length * titleHeight) * ratio) + margin;
  const pen = image.getContext('2d');
  if (!pen) return;
  pen.fillStyle = palette.surface;
  pen.fillRect(0, 0, image.width, image.height);
  pen.fillStyle = palette.ink;
  pen.font = palette.font.replace('13px', `600 ${15 * ratio}px`);
  pen.fillText(heading, margin, 26 * ratio);
  let top = 40 * ratio;
  pen.font = palette.font.replace('13px', `${13 * ratio}px`);
  for (const [index, canvas] of canvases.entries()) {
    const title = titles[index];
    if (title !== undefined) pen.fillText(title, margin, (top += titleHeight * ratio) - 6 * ratio);
    pen.drawImage(canvas, margin, top);
    top += canvas.height;
  }
  image.toBlob((blob) => blob && download(`${name}.png`, blob), 'image/png');
}

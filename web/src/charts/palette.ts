// Colours of the charts, read from the style sheet so that a theme is described once.
export interface Palette {
  readonly ink: string;
  readonly muted: string;
  readonly grid: string;
  readonly surface: string;
  readonly font: string;
  /** A meaning's colour, e.g. "ttft", "waiting": the same everywhere on the page. */
  of(meaning: string): string;
}

export function readPalette(element: Element): Palette {
  const style = getComputedStyle(element);
  const read = (name: string) => style.getPropertyValue(name).trim();
  return {
    ink: read('--ink'),
    muted: read('--ink-muted'),
    grid: read('--grid'),
    surface: read('--surface'),
    font: `13px ${style.fontFamily}`,
    of: (meaning) => read(`--mark-${meaning}`),
  };
}

/** Diagonal lines: the second sign, beside colour, of what waits. */
export function hatch(context: CanvasRenderingContext2D, colour: string): CanvasPattern | string {
  const tile = tileOf(colour);
  return (tile && context.createPattern(tile, 'repeat')) ?? colour;
}

const tiles = new Map<string, HTMLCanvasElement>();

/** Drawn once: a chart asks for it with every answer. */
function tileOf(colour: string): HTMLCanvasElement | null {
  const ratio = devicePixelRatio;
  const key = `${colour} ${ratio}`;
  const known = tiles.get(key);
  if (known) return known;
  const tile = document.createElement('canvas');
  tile.width = tile.height = Math.round(7 * ratio);
  const pen = tile.getContext('2d');
  if (!pen) return null;
  pen.strokeStyle = colour;
  pen.lineWidth = ratio;
  for (const shift of [-tile.width, 0, tile.width]) {
    pen.moveTo(shift, tile.height);
    pen.lineTo(shift + tile.width, 0);
  }
  pen.stroke();
  tiles.set(key, tile);
  return tile;
}

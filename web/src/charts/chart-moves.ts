// What keys and the wheel do to a chart: the cursor along it, zoom, and back. Nothing of it is needed for a first verdict.
import uPlot from 'uplot';
import { moves, type ChartElement } from './chart-element';

moves.key = (chart, event) => {
  const plot = chart.plots[0];
  if (!plot) return;
  const width = plot.over.clientWidth;
  const step = chart.cursorStep(plot) * (event.shiftKey ? 10 : 1);
  const from = plot.cursor.left !== undefined && plot.cursor.left >= 0 ? plot.cursor.left : width / 2;
  const row = chart.rowStep();
  const middle = plot.over.clientHeight / 2;
  const height = row > 0 && (plot.cursor.top ?? -1) >= 0 ? (plot.cursor.top ?? middle) : row > 0 ? row / 2 : middle;
  const places: Record<string, [number, number]> = {
    ArrowLeft: [from - step, height],
    ArrowRight: [from + step, height],
    Home: [0, height],
    End: [width - 1, height],
    ...(row > 0 ? { ArrowUp: [from, height - row], ArrowDown: [from, height + row] } : {}),
  };
  const place = places[event.key];
  if (place === undefined) {
    zoom(chart, event, plot, from / width);
    return;
  }
  event.preventDefault();
  for (const each of chart.plots) {
    const top = row > 0 ? Math.min(each.over.clientHeight - 1, Math.max(0, place[1])) : each.over.clientHeight / 2;
    const at = { left: Math.min(width - 1, Math.max(0, place[0])), top };
    // Told to the charts that share its axis, which the types of uPlot do not know of.
    (each.setCursor as (at: uPlot.Cursor, fire: boolean, tell: boolean) => void)(at, true, true);
  }
};

/** With Ctrl, or on a chart that has the focus: else the wheel scrolls the page. */
moves.wheel = (chart, event) => {
  // Between two of them, the first.
  const plot = chart.plots.find(({ root }) => root.contains(event.target as Node)) ?? chart.plots[0];
  const isMeant = event.ctrlKey || event.metaKey || document.activeElement === event.currentTarget;
  if (!plot?.cursor.drag?.x || !isMeant) return;
  event.preventDefault();
  const { left, width } = plot.over.getBoundingClientRect();
  const along = event.shiftKey ? event.deltaY : event.deltaX;
  const share = Math.min(1, Math.max(0, (event.clientX - left) / width));
  if (along !== 0) zoomBy(chart, plot, 1, share, along / width);
  else zoomBy(chart, plot, 2 ** (event.deltaY / 240), share, 0);
};

/** + and - about the cursor, < and > along, 0 or Esc back to all, where dragging zooms too. */
function zoom(chart: ChartElement, event: KeyboardEvent, plot: uPlot, share: number): void {
  const factor = { '+': 0.5, '=': 0.5, '-': 2, '0': Infinity, Escape: Infinity, '<': 1, '>': 1 }[event.key];
  if (factor === undefined || !plot.cursor.drag?.x) return;
  const along = { '<': -0.25, '>': 0.25 }[event.key] ?? 0;
  if (zoomBy(chart, plot, factor, share, along)) event.preventDefault();
}

/** False when that changes nothing: it shows all. */
function zoomBy(chart: ChartElement, plot: uPlot, factor: number, share: number, along: number): boolean {
  const times = plot.data[0];
  const [first = 0, last = 1] = [times[0], times[times.length - 1]];
  const { min, max } = plot.scales['x'] ?? {};
  const [low, high] = [min ?? first, max ?? last];
  const wide = Math.min(last - first, (high - low) * factor);
  const about = low + share * (high - low);
  const wanted = about - share * wide + along * (high - low);
  const from = Math.min(last - wide, Math.max(first, wanted));
  if (!(wide > 0) || (from === low && from + wide === high)) return false;
  const key = plot.cursor.sync?.key;
  for (const each of key ? uPlot.sync(key).plots : chart.plots) each.setScale('x', { min: from, max: from + wide });
  return true;
}

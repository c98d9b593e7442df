// KV memory of every replica over time: a row each, filled as high as its blocks are in use. Loaded with the view over
// time.
import { html, type TemplateResult } from 'lit';
import type uPlot from 'uplot';
import { formatPercent, formatTime } from '../lib/format';
import { stepAt, stepsByReplica } from '../lib/recorded-steps';
import type { TableView } from './chart-element';
import type { Palette } from './palette';
import { RowChart } from './row-chart';

const none = new Float64Array(0);
/** More rows would each be too low to read. */
const mostRows = 32;

export class KvMapChart extends RowChart {
  readonly heading = 'KV memory by replica';
  #rows: readonly (readonly number[])[] = [];
  #rowsOf: unknown = null;

  #column(name: string): Float64Array {
    return this.columns?.[`step_${name}`] ?? none;
  }

  #byReplica(): readonly (readonly number[])[] {
    if (this.#rowsOf !== this.columns) {
      this.#rowsOf = this.columns;
      this.#rows = stepsByReplica(this.columns ?? {}).slice(0, mostRows);
    }
    return this.#rows;
  }

  protected csvColumns(): readonly string[] {
    return ['replica', 'start_s', 'end_s', 'kv_usage'].map((name) => `step_${name}`);
  }

  protected emptyReason(): string | null {
    if (!this.columns) return this.waitingFor;
    return this.#column('kv_usage').some(Number.isFinite) ? null : 'Empty: no step ran.';
  }

  #peaks(): readonly (readonly [number, number])[] {
    return this.#byReplica().map((own) => {
      let [area, time, peak] = [0, 0, 0];
      for (const step of own) {
        const length = (this.#column('end_s')[step] ?? 0) - (this.#column('start_s')[step] ?? 0);
        const usage = this.#column('kv_usage')[step] ?? 0;
        [area, time, peak] = [area + usage * length, time + length, Math.max(peak, usage)];
      }
      return [time > 0 ? area / time : 0, peak];
    });
  }

  protected summary(): string {
    return this.#peaks()
      .map(
        ([mean, peak], replica) =>
          `Replica ${replica + 1}: ${formatPercent(mean)} in use while steps run, at most ${formatPercent(peak)}.`,
      )
      .join(' ');
  }

  protected tableView(): TableView {
    return {
      caption: 'KV blocks in use while steps run',
      head: ['Replica', 'Mean', 'Peak'],
      rows: this.#peaks().map(([mean, peak], replica) => [`${replica + 1}`, formatPercent(mean), formatPercent(peak)]),
    };
  }

  protected structure(): string {
    return `${this.#byReplica().length}`;
  }

  protected rowCount(): number {
    return this.#byReplica().length;
  }

  rowStep(): number {
    return Math.max(14, Math.min(48, 240 / Math.max(1, this.rowCount())));
  }

  protected isSimulatedTime(): boolean {
    return true;
  }

  protected timeRange(): [number, number] {
    return [this.#column('start_s')[0] ?? 0, this.#column('end_s').at(-1) ?? 1];
  }

  protected rowNames() {
    return { label: 'Replica', size: 64, names: this.#byReplica().map((_own, row) => `${row + 1}`) };
  }

  /** A column of pixels has the highest use of its steps. */
  protected drawRows(plot: uPlot, pen: CanvasRenderingContext2D, palette: Palette): void {
    const { bbox } = plot;
    const ratio = devicePixelRatio;
    const { min, max } = plot.scales['x'] ?? {};
    this.#byReplica().forEach((own, row) => {
      const base = plot.valToPos(row + 0.95, 'y', true);
      const high = base - plot.valToPos(row + 0.1, 'y', true);
      pen.fillStyle = palette.grid;
      pen.fillRect(bbox.left, base - high, bbox.width, high);
      pen.fillStyle = palette.of('kv');
      let [column, most] = [NaN, 0];
      const flush = (until: number) => {
        if (most > 0) pen.fillRect(column, base - high * most, Math.max(1, until - column), high * most);
      };
      for (const step of own) {
        const start = this.#column('start_s')[step] ?? 0;
        const end = this.#column('end_s')[step] ?? 0;
        if (end < (min ?? -Infinity) || start > (max ?? Infinity)) continue;
        const left = Math.floor(plot.valToPos(start, 'x', true));
        const usage = Math.min(1, this.#column('kv_usage')[step] ?? 0);
        if (left !== column) {
          flush(left);
          [column, most] = [left, usage];
        } else most = Math.max(most, usage);
      }
      flush(column + ratio);
      pen.fillStyle = palette.muted;
      pen.fillRect(bbox.left, base, bbox.width, ratio);
    });
  }

  protected readout(plot: uPlot): TemplateResult | string {
    const { left = -1, top = -1 } = plot.cursor;
    const own = this.#byReplica()[Math.floor(plot.posToVal(top, 'y'))];
    if (left < 0 || !own) return 'Full height: all KV blocks of a replica are in use. Drag, or press + − 0, to zoom.';
    const time = plot.posToVal(left, 'x');
    const step = stepAt(this.columns ?? {}, own, time);
    const replica = Math.floor(plot.posToVal(top, 'y')) + 1;
    return html`<b>at ${formatTime(1000 * time)}</b> <span>replica ${replica}: ${step === null ? 'no step runs' : formatPercent(this.#column('kv_usage')[step])}</span>`;
  }
}

customElements.define('sc-kv-map-chart', KvMapChart);

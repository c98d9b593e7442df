// Requests one by one, a bar each: where its time went, in order. Loaded with the view over time.
// uPlot gives axes, zoom and cursor; bars are drawn here, because each row has spans of its own.
import { html, nothing, type TemplateResult } from 'lit';
import type uPlot from 'uplot';
import type { Report } from 'servecast';
import { formatCount, formatTime } from '../lib/format';
import { addStyles } from '../lib/part';
import styles from '../styles/requests.css?inline';
import { onWindow, windowShown } from '../lib/time-window';
import { parts, requestColumns, spansOf, type Part, type Span } from '../lib/requests';
import { ChartElement, type TableView } from './chart-element';
import { hatch, type Palette } from './palette';
import { paneKey } from './pane-key';
import { RowChart } from './row-chart';

const words: Readonly<Record<Part, string>> = {
  host: 'Host',
  queue: 'Queued',
  prefill: 'Prefill',
  transfer: 'KV transfer',
  handover: 'Waits for hand-over',
  decode: 'Decode',
  interference: 'Interference',
  preempted: 'Preempted',
};
/** Not colour alone: what waits is hatched. */
const hatched: ReadonlySet<Part> = new Set(['queue', 'handover', 'preempted']);

const orders = { ttft: 'Slowest first tokens', e2e: 'Slowest requests', arrival: 'By arrival' } as const;
type Order = keyof typeof orders;

const rowCount = 20;
const rowHeight = 18;
/** A transfer is short beside a decode, and must be seen. */
const thinnest = 2;

interface Row {
  readonly request: number;
  readonly spans: readonly Span[];
}

export class RequestChart extends RowChart {
  static override properties = {
    ...ChartElement.properties,
    report: { attribute: false },
    complete: { attribute: false },
    order: { state: true },
    first: { state: true },
  };
  declare report: Report | null;
  /** Of which the columns have some, in the chosen order; 0: they have all. */
  declare complete: number;
  declare order: Order;
  declare first: number;
  protected readonly heading = 'Requests';
  #rows: readonly Row[] = [];
  #rowsOf: unknown[] = [];
  #leave: () => void = () => undefined;

  constructor() {
    super();
    this.report = null;
    this.complete = 0;
    this.order = 'ttft';
    this.first = 0;
  }

  override connectedCallback(): void {
    super.connectedCallback();
    this.#leave = onWindow(() => this.order === 'arrival' && this.requestUpdate());
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#leave();
  }

  /** As people count them. */
  #number(request: number): number {
    return (this.columns?.['request']?.[request] ?? request) + 1;
  }

  #at(name: string, request: number): number {
    return this.columns?.[name]?.[request] ?? NaN;
  }

  /** Those that are drawn. */
  #chosen(): readonly Row[] {
    const within = this.order === 'arrival' ? windowShown() : null;
    const key = [this.columns, this.order, this.first, within];
    if (key.every((each, index) => each === this.#rowsOf[index])) return this.#rows;
    this.#rowsOf = key;
    const e2e = this.columns?.['e2e_ms'] ?? new Float64Array(0);
    const isIn = (request: number) => {
      const arrival = this.#at('arrival_s', request);
      return !within || (arrival <= within.to_s && arrival + this.#at('e2e_ms', request) / 1000 >= within.from_s);
    };
    const complete = Array.from(e2e.keys()).filter((request) => Number.isFinite(e2e[request]) && isIn(request));
    const by =
      this.order === 'arrival'
        ? (request: number) => -this.#at('arrival_s', request)
        : (request: number) => this.#at(`${this.order}_ms`, request);
    const sorted = complete.sort((a, b) => by(b) - by(a) || a - b);
    this.first = Math.max(0, Math.min(this.first, sorted.length - rowCount));
    this.#rowsOf[2] = this.first;
    this.#rows = sorted
      .slice(this.first, this.first + rowCount)
      .map((request) => ({ request, spans: spansOf(this.columns ?? {}, request) }));
    return this.#rows;
  }

  protected csvColumns(): readonly string[] {
    return requestColumns;
  }

  protected emptyReason(): string | null {
    if (!this.columns) return this.waitingFor;
    const rows = this.#chosen();
    if (rows.length === 0) return 'Empty: no request is complete.';
    return rows.some(({ spans }) => spans.length > 0)
      ? null
      : 'Empty: the rules of this engine do not say where the time of a request goes.';
  }

  protected summary(): string {
    return `${orders[this.order]}: ${this.#chosen()
      .slice(0, 5)
      .map(({ request, spans }) => `request ${this.#number(request)}, ${inWords(spans)}`)
      .join('; ')}. The table has all that are drawn.`;
  }

  protected tableView(): TableView {
    const used = this.#usedParts();
    const rows = this.#chosen().map(({ request, spans }) => [
      `${this.#number(request)}`,
      this.#where(request),
      formatTime(1000 * this.#at('arrival_s', request)),
      ...['ttft_ms', 'e2e_ms'].map((name) => formatTime(this.#at(name, request))),
      ...used.map((part) => formatTime(lengthOf(spans, part))),
    ]);
    return {
      caption: orders[this.order],
      head: ['Request', 'Replica', 'Arrived', 'TTFT', 'E2E', ...used.map((part) => words[part])],
      rows,
    };
  }

  #usedParts(): readonly Part[] {
    return parts.filter((part) => this.#chosen().some(({ spans }) => lengthOf(spans, part) > 0));
  }

  /** "412 + 96": what the row is about; its number is no information. */
  #lengths(request: number): string {
    return `${formatCount(this.#at('prompt_tokens', request))} + ${formatCount(this.#at('output_tokens', request))}`;
  }

  /** "2 → 7" where one prefilled and another decoded. */
  #where(request: number): string {
    const [from, to] = [this.#at('prefill_replica', request), this.#at('replica', request)];
    return Number.isFinite(from) && from !== to ? `${from + 1} → ${to + 1}` : Number.isFinite(to) ? `${to + 1}` : '–';
  }

  protected override tools(): TemplateResult | typeof nothing {
    const last = Math.max(0, (this.columns?.['e2e_ms']?.length ?? 0) - rowCount);
    return html`<select class="order" aria-label="Which requests" @change=${(event: Event) => this.#reorder((event.target as HTMLSelectElement).value as Order)}>
        ${Object.entries(orders).map(([order, text]) => html`<option value=${order} ?selected=${order === this.order}>${text}</option>`)}
      </select>
      <button class="quiet" type="button" aria-label="Requests before these" ?disabled=${this.first === 0} @click=${() => (this.first = Math.max(0, this.first - rowCount))}>◂</button>
      <button class="quiet" type="button" aria-label="Requests after these" ?disabled=${this.first >= last} @click=${() => (this.first = Math.min(last, this.first + rowCount))}>▸</button>`;
  }

  #reorder(order: Order): void {
    this.order = order;
    this.first = 0;
    this.dispatchEvent(new CustomEvent('order', { detail: order }));
  }

  protected structure(): string {
    return `${this.order} ${this.#chosen().length} ${this.#usedParts().join()}`;
  }

  protected override inputs(): readonly unknown[] {
    return [this.#chosen()];
  }

  protected rowCount(): number {
    return this.#chosen().length;
  }

  rowStep(): number {
    return rowHeight;
  }

  protected isSimulatedTime(): boolean {
    return this.order === 'arrival';
  }

  /** Seconds from the axis's 0 to the request's arrival. */
  #offset(request: number): number {
    return this.order === 'arrival' ? this.#at('arrival_s', request) : 0;
  }

  protected timeRange(): [number, number] {
    const rows = this.#chosen();
    const starts = rows.map(({ request }) => this.#offset(request));
    const ends = rows.map(({ request, spans }) => {
      const decode = spans.find(({ part }) => part === 'decode')?.from ?? 0;
      const end =
        this.order === 'ttft' ? Math.max(decode, this.#at('ttft_ms', request)) * 1.1 : (spans.at(-1)?.to ?? 0);
      return this.#offset(request) + end / 1000;
    });
    const low = Math.min(...starts);
    const high = Math.max(...ends);
    return [low, high > low ? high : low + 0.001];
  }

  protected rowNames() {
    const names = this.#chosen().map(({ request }) => this.#lengths(request));
    return { label: 'Tokens in and out', size: 112, names };
  }

  protected override buildPlots(host: HTMLElement, palette: Palette, width: number): uPlot[] {
    host.append(paneKey(this.#usedParts().map((part) => ({ label: words[part], mark: `block ${part}` }))));
    return super.buildPlots(host, palette, width);
  }

  protected drawRows(plot: uPlot, pen: CanvasRenderingContext2D, palette: Palette): void {
    const ratio = devicePixelRatio;
    this.#chosen().forEach(({ request, spans }, row) => {
      const top = plot.valToPos(row + 0.15, 'y', true);
      const height = plot.valToPos(row + 0.85, 'y', true) - top;
      const left = (ms: number) => plot.valToPos(this.#offset(request) + ms / 1000, 'x', true);
      // The shortest last, or a long neighbour would cover what is widened to be seen.
      for (const span of [...spans].sort((a, b) => b.to - b.from - (a.to - a.from))) {
        const from = left(span.from);
        const wide = Math.max(span.part === 'transfer' ? thinnest * ratio : 0, left(span.to) - from);
        const colour = palette.of(span.part);
        pen.fillStyle = hatched.has(span.part) ? hatch(pen, colour) : colour;
        pen.fillRect(from, top, wide, height);
        if (hatched.has(span.part)) {
          pen.strokeStyle = colour;
          pen.lineWidth = ratio;
          pen.strokeRect(from, top, wide, height);
        }
        if (span.part === 'transfer') this.#label(pen, palette, 'KV', from, wide, top + height / 2);
      }
      const first = left(this.#at('ttft_ms', request));
      pen.fillStyle = palette.ink;
      pen.fillRect(Math.round(first) - ratio, top - 2 * ratio, 2 * ratio, height + 4 * ratio);
    });
  }

  #label(
    pen: CanvasRenderingContext2D,
    palette: Palette,
    text: string,
    left: number,
    width: number,
    middle: number,
  ): void {
    pen.font = palette.font.replace('13px', `600 ${11 * devicePixelRatio}px`);
    if (pen.measureText(text).width + 6 * devicePixelRatio > width) return;
    pen.textAlign = 'center';
    pen.textBaseline = 'middle';
    pen.fillStyle = '#191c20';
    pen.fillText(text, left + width / 2, middle);
  }

  protected readout(plot: uPlot): TemplateResult | string {
    const { left = -1, top = -1 } = plot.cursor;
    const rows = this.#chosen();
    const row = rows[Math.floor(plot.posToVal(top, 'y'))];
    if (left < 0 || !row)
      return `${this.order === 'ttft' ? 'Up to the first decode; a' : 'A'} thick line is the first token. Point at a bar, or use the arrow keys, to read where its time went; drag, or press + − 0, to zoom.`;
    const { request, spans } = row;
    const cached = this.#at('cached_tokens', request);
    return html`<b>Request ${formatCount(this.#number(request))}</b> <span>on ${this.#where(request)}</span>
      <span>${formatCount(this.#at('prompt_tokens', request))}${cached > 0 ? html` (${formatCount(cached)} cached)` : nothing} in, ${formatCount(this.#at('output_tokens', request))} out</span>
      <span>TTFT ${formatTime(this.#at('ttft_ms', request))}</span>
      ${parts.filter((part) => lengthOf(spans, part) > 0).map((part) => html`<span class="key"><i class="block ${part}"></i>${words[part]} ${formatTime(lengthOf(spans, part))}</span>`)}`;
  }
}

function lengthOf(spans: readonly Span[], part: Part): number {
  return spans.reduce((sum, span) => sum + (span.part === part ? span.to - span.from : 0), 0);
}

function inWords(spans: readonly Span[]): string {
  return parts
    .filter((part) => lengthOf(spans, part) > 0)
    .map((part) => `${words[part].toLowerCase()} ${formatTime(lengthOf(spans, part))}`)
    .join(', ');
}

addStyles(styles);
customElements.define('sc-request-chart', RequestChart);

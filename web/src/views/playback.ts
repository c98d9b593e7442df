// A run played back: which requests the batch of a replica holds at the playhead, how many wait, how full its KV memory
// is. From recorded steps; nothing between them is made up. Part of the view over time.
import { html, nothing, type PropertyValues, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import uPlot from 'uplot';
import { hatch, readPalette } from '../charts/palette';
import type { Columns } from '../engine/protocol';
import { countOf, formatCount, formatPercent, formatTime } from '../lib/format';
import { busiest, nextStart, stepAt, stepsByReplica } from '../lib/recorded-steps';

const speeds = [0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000];
const bounds = ['overhead', 'compute', 'bandwidth'];
const square = 12;
const pitch = 15;
/** More in a part are drawn as this many and named as a number. */
const mostSquares = 600;
const settled = matchMedia('(prefers-reduced-motion: reduce)');

export class PlaybackElement extends PlainElement {
  static override properties = {
    steps: { attribute: false },
    names: { attribute: false },
    theme: { attribute: false },
    time: { state: true },
    replica: { state: true },
    speed: { state: true },
    isPlaying: { state: true },
    shownStep: { state: true },
  };
  declare steps: Columns;
  /** Of each replica's pool; "" where there is one. */
  declare names: readonly string[];
  declare theme: string;
  /** The playhead, simulated seconds. */
  declare time: number;
  declare replica: number;
  declare speed: number;
  declare isPlaying: boolean;
  declare shownStep: number | null;
  #byReplica: readonly (readonly number[])[] = [];
  #last = 0;
  #frame = 0;

  constructor() {
    super();
    this.steps = {};
    this.names = [];
    this.theme = 'light';
    this.time = 0;
    this.replica = 0;
    this.speed = 1;
    this.isPlaying = false;
    this.shownStep = null;
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.#pause();
  }

  get #span(): readonly [number, number] {
    const starts = this.steps['step_start_s'];
    const ends = this.steps['step_end_s'];
    return [starts?.[0] ?? 0, ends?.at(-1) ?? 0];
  }

  protected override willUpdate(changed: PropertyValues): void {
    if (changed.has('steps')) {
      this.#byReplica = stepsByReplica(this.steps);
      this.#pause();
      this.time = busiest(this.steps);
      if (!this.#byReplica[this.replica]) this.replica = 0;
    }
    this.shownStep = stepAt(this.steps, this.#byReplica[this.replica] ?? [], this.time);
  }

  protected override updated(): void {
    this.#draw();
    if (this.shownStep === null && this.time === 0) return;
    for (const plot of uPlot.sync('simulated-time').plots) {
      const left = plot.valToPos(this.time, 'x');
      if (left >= 0 && left <= plot.over.clientWidth) plot.setCursor({ left, top: plot.over.clientHeight / 2 });
    }
  }

  protected override render(): TemplateResult {
    const [from, to] = this.#span;
    const replicas = this.#byReplica.length;
    return html`<section class="card playback" aria-labelledby="playback-title" @keydown=${(event: KeyboardEvent) => this.#key(event)}>
      <div class="chart-head">
        <h3 id="playback-title">How batches form</h3>
        <div class="tools">
          ${
            replicas > 1
              ? html`<select aria-label="Replica" @change=${(event: Event) => (this.replica = Number((event.target as HTMLSelectElement).value))}>
            ${Array.from({ length: replicas }, (_, index) => html`<option value=${index} ?selected=${index === this.replica}>Replica ${index + 1}${this.names[index] ? `, ${this.names[index]}` : ''}</option>`)}
          </select>`
              : nothing
          }
          ${settled.matches ? nothing : this.#speedChoice()}
        </div>
      </div>
      <div class="transport">
        <button type="button" aria-label="Step before" @click=${() => this.#step(false)}>◂</button>
        ${settled.matches ? nothing : html`<button type="button" class="play" aria-pressed=${this.isPlaying} @click=${() => this.#toggle()}>${this.isPlaying ? 'Pause' : 'Play'}</button>`}
        <button type="button" aria-label="Step after" @click=${() => this.#step(true)}>▸</button>
        <input type="range" aria-label="Playhead" min=${from} max=${to} step="any" .value=${String(this.time)} aria-valuetext=${`${this.time.toFixed(3)} s of ${to.toFixed(1)} s`} @input=${(event: Event) => this.#scrub(Number((event.target as HTMLInputElement).value))} />
        <output>${this.time.toFixed(3)} s</output>
      </div>
      <canvas role="img" aria-label="Requests that wait and run at the playhead; the line below says how many"></canvas>
      <p class="readout" aria-live=${this.isPlaying ? 'off' : 'polite'}>${this.#words()}</p>
      <p class="quiet-text">A square is a request. Space plays, ← → go a step, [ ] change the speed.</p>
    </section>`;
  }

  #speedChoice(): TemplateResult {
    return html`<select aria-label="Speed" @change=${(event: Event) => (this.speed = Number((event.target as HTMLSelectElement).value))}>
      ${speeds.map((speed) => html`<option value=${speed} ?selected=${speed === this.speed}>${speed}×</option>`)}
    </select>`;
  }

  #at(name: string): number {
    return this.shownStep === null ? 0 : (this.steps[`step_${name}`]?.[this.shownStep] ?? 0);
  }

  /** In the running list, and not computed in the step. */
  get #idle(): number {
    return Math.max(0, this.#at('running') - this.#at('prefills') - this.#at('decodes'));
  }

  #words(): TemplateResult | string {
    if (this.shownStep === null) return 'No step runs at this moment.';
    const preempted = this.#at('preempted');
    const idle = this.#idle;
    return html`<b>Step of ${formatTime(1000 * (this.#at('end_s') - this.#at('start_s')))}</b>
      <span class="key"><i class="block prefill"></i>${countOf(this.#at('prefills'), 'prompt')}, ${formatCount(this.#at('prefill_tokens'))} tokens</span>
      <span class="key"><i class="block decode"></i>${countOf(this.#at('decodes'), 'decode')}</span>
      <span class="key"><i class="block queue"></i>${formatCount(this.#at('waiting'))} wait</span>
      ${idle > 0 ? html`<span class="key"><i class="block host"></i>${formatCount(idle)} not in this step</span>` : nothing}
      <span>KV ${formatPercent(this.#at('kv_usage'))}</span>
      <span>mostly ${bounds[this.#at('bound')] ?? 'overhead'}</span>
      ${preempted > 0 ? html`<span>${countOf(preempted, 'request')} preempted</span>` : nothing}`;
  }

  #draw(): void {
    const canvas = this.querySelector('canvas');
    const pen = canvas?.getContext('2d');
    if (!canvas || !pen) return;
    const ratio = devicePixelRatio;
    const wide = canvas.clientWidth;
    const palette = readPalette(this);
    const perRow = Math.max(1, Math.floor((wide - 24) / pitch));
    const parts = [
      ['decode', this.#at('decodes')],
      ['prefill', this.#at('prefills')],
      ['host', this.#idle],
      ['queue', this.#at('waiting')],
    ] as const;
    const high = canvas.clientHeight;
    canvas.width = wide * ratio;
    canvas.height = high * ratio;
    pen.scale(ratio, ratio);
    pen.font = palette.font.replace('13px', '12px');
    this.#drawKv(pen, palette.of('kv'), palette.ink, wide, high);
    let place = 0;
    const rows = Math.floor(high / pitch);
    for (const [part, count] of parts) {
      const colour = palette.of(part);
      for (let index = 0; index < Math.min(count, mostSquares); index += 1, place += 1) {
        const left = (place % perRow) * pitch;
        const row = Math.floor(place / perRow);
        if (row >= rows - 1 && place % perRow > perRow - 8) break;
        if (row >= rows) break;
        pen.fillStyle = part === 'queue' ? hatch(pen, colour) : colour;
        pen.strokeStyle = colour;
        pen.fillRect(left, row * pitch, square, square);
        pen.strokeRect(left + 0.5, row * pitch + 0.5, square - 1, square - 1);
      }
      // What waits begins a row of its own.
      if (part === 'host' && place % perRow !== 0) place += perRow - (place % perRow);
    }
  }

  #drawKv(pen: CanvasRenderingContext2D, colour: string, ink: string, wide: number, high: number): void {
    const full = high * Math.min(1, this.#at('kv_usage'));
    pen.strokeStyle = ink;
    pen.fillStyle = colour;
    pen.fillRect(wide - 16, high - full, 15, full);
    pen.strokeRect(wide - 16.5, 0.5, 16, high - 1);
  }

  #scrub(time: number): void {
    this.#pause();
    this.time = time;
  }

  #step(forward: boolean): void {
    this.#pause();
    this.time = nextStart(this.steps, this.time, forward);
  }

  #toggle(): void {
    if (this.isPlaying) return void this.#pause();
    if (this.time >= this.#span[1]) this.time = this.#span[0];
    this.isPlaying = true;
    this.#last = performance.now();
    this.#frame = requestAnimationFrame((now) => this.#advance(now));
  }

  #pause(): void {
    cancelAnimationFrame(this.#frame);
    this.isPlaying = false;
  }

  #advance(now: number): void {
    const seconds = Math.max(0, now - this.#last) / 1000;
    this.#last = now;
    this.time = Math.min(this.#span[1], this.time + seconds * this.speed);
    if (this.time >= this.#span[1]) return void this.#pause();
    this.#frame = requestAnimationFrame((next) => this.#advance(next));
  }

  #key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (target.closest('select') || event.ctrlKey || event.metaKey || event.altKey) return;
    const faster = (by: number) => {
      this.speed = speeds[Math.min(speeds.length - 1, Math.max(0, speeds.indexOf(this.speed) + by))] ?? 1;
    };
    const [from, to] = this.#span;
    const actions: Record<string, () => void> = {
      ArrowLeft: () => this.#step(false),
      ArrowRight: () => this.#step(true),
      Home: () => this.#scrub(from),
      End: () => this.#scrub(to),
      '[': () => faster(-1),
      ']': () => faster(1),
      ...(target.closest('button') ? {} : { ' ': () => (settled.matches ? this.#step(true) : this.#toggle()) }),
    };
    const act = actions[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
}

customElements.define('sc-playback', PlaybackElement);

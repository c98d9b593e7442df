// The report: what the page shows now as a sheet of paper, to print, or to save as one file that needs neither scripts nor a
// network. It takes the page's place until it is closed, and asks nothing by itself. Loaded when it is asked for.
import { html, nothing, type TemplateResult } from 'lit';
import { FollowingElement } from '../lib/plain-element';
import type { Preset, Report } from 'servecast';
import '../charts/rate-chart';
import type { RateChart } from '../charts/rate-chart';
import '../charts/forecast';
import { needBands, type TailChart } from '../charts/tail-chart';
import { readPalette } from '../charts/palette';
import { download } from '../lib/download';
import { formatTime } from '../lib/format';
import { addStyles } from '../lib/part';
import { withPin } from '../share/encode';
import type { App } from '../state/app';
import type { Document, Json } from '../state/document';
import { fieldAt, unitOf, withRateOfSessions, type FormSource } from '../state/fields';
import { headroomOf, isMaxRate } from '../state/headroom';
import { ratePointer, type Plans } from '../state/plans';
import { reportOf, tailBandsOf, type AppState, type Shown } from '../state/store';
import paper from '../styles/paper.css?inline';
import styles from '../styles/sheet.css?inline';
import { nameOfTarget } from './compare-figures';
import { certainOf, sharedOf, traceOf } from './shared';
import { rangeText } from './tiles';
import {
  chartsPart,
  comparePart,
  dateText,
  evidencePart,
  figuresPart,
  inputsPart,
  ofUser,
  planPart,
  proofPart,
  refusalPart,
  ratedTargets,
  verdictPart,
  type Picture,
} from './sheet-parts';
import { departuresOf, gpusOf, headingOf, originOf, targetsIn, type Heading } from './sheet-inputs';
import { boardOf, type Board } from './sheet-plan';
import { isTrying, triedFor, waysPart, waysTitle } from './sheet-ways';

const parts = [
  ['inputs', 'What was asked'],
  ['figures', 'Targets and figures'],
  ['tail', 'Latency tail'],
  ['ways', 'Ways out'],
  ['plan', 'Plan answers'],
  ['rate', 'Targets as the load grows'],
  ['compare', 'The same load elsewhere'],
  ['evidence', 'How sure'],
  ['note', 'Note'],
] as const;
type Part = (typeof parts)[number][0];

/** Of a chart, px: two beside each other, or one, on the 702 px of an A4 page within its margins. */
const half = 340;
const whole = 702;

export class SheetElement extends FollowingElement {
  static override properties = {
    app: { attribute: false },
    left: { state: true },
    link: { state: true },
    plans: { state: true },
    tail: { state: true },
    rate: { state: true },
    said: { state: true },
  };
  declare app: App;
  /** What is left out. */
  declare left: ReadonlySet<Part>;
  /** Of the document, without a result. */
  declare link: string;
  declare plans: Plans | null;
  declare tail: readonly Picture[];
  declare rate: readonly Picture[];
  declare said: string;
  close: () => void = () => undefined;
  readonly #now = new Date();
  #drawing: Promise<void> = Promise.resolve();
  #linked: Document | null = null;
  /** What the charts are asked for, and what they show, of: report, columns, plan of the highest load, bands of the tail. */
  #asked: readonly unknown[] = [];
  #drawn: readonly unknown[] = [];

  constructor() {
    super();
    // Two charts seldom leave one page.
    this.left = new Set<Part>(['rate']);
    this.link = '';
    this.plans = null;
    this.tail = [];
    this.rate = [];
    this.said = '';
  }

  override connectedCallback(): void {
    super.connectedCallback();
    addEventListener('keydown', this.#key, { capture: true });
    void this.app.plans().then((plans) => (this.plans = plans));
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    removeEventListener('keydown', this.#key, { capture: true });
  }

  /** Keys of the page behind do nothing meanwhile. */
  readonly #key = (event: KeyboardEvent): void => {
    event.stopPropagation();
    if (event.key === 'Escape') this.close();
  };

  get #board(): Board | null {
    const { state } = this.app.store;
    const shown = certainOf(state);
    const { source } = this.app;
    const field = source && fieldAt(source, ratePointer);
    if (!shown || !this.plans || !source) return null;
    const { plans } = this;
    const unit = field ? unitOf(withRateOfSessions(source, field)) : 'requests/s';
    return boardOf(state, reportOf(shown), (question, plan) => plans.isOf(question, plan), unit);
  }

  protected override render(): TemplateResult {
    const shown = certainOf(this.app.store.state);
    const board = this.#board;
    const isReady = this.link !== '' && (shown ? board !== null : isRefused(this.app.store.state));
    const found = triedFor(this.app.store.state);
    const ways = found && !this.left.has('ways') ? found : null;
    const running = [
      ...(ways && isTrying(ways) ? [waysTitle(ways)] : []),
      ...(board && !this.left.has('plan') ? board.running : []),
    ];
    return html`<aside class="sheet-tools" aria-label="What the report has">
        <h2>Report</h2>
        <p>What the page shows now, black on white, for A4 or Letter. What is ticked is in it.</p>
        <div class="sheet-parts">${parts
          .filter(([part]) => this.#has(part) && (shown || part === 'inputs' || part === 'note'))
          .map(
            ([part, name]) =>
              html`<label><input type="checkbox" .checked=${!this.left.has(part)} @change=${() => this.#toggle(part)} /> ${part === 'ways' && found ? waysTitle(found) : name}</label>`,
          )}</div>
        ${board && board.quick.length > 0 && !this.left.has('plan') ? html`<button type="button" id="ask-quick" @click=${() => this.#ask(board)}>Ask the plan’s quick questions</button>` : nothing}
        ${ways && (ways.kind === 'offered' || ways.kind === 'cancelled') ? html`<button type="button" id="ask-ways" @click=${() => this.app.reasons.look()}>Try a dozen changes</button>` : nothing}
        <div class="button-row">
          <button type="button" class="primary" id="print-report" ?disabled=${!isReady} @click=${() => print()}>Print or PDF</button>
          <button type="button" id="save-report" ?disabled=${!isReady} @click=${() => this.#save()}>Save HTML</button>
          <button type="button" id="close-report" @click=${() => this.close()}>Close</button>
        </div>
        <p role="status">${running.length === 0 ? nothing : `Still being answered: ${running.join(', ')}. What is printed or saved now goes without. `}${this.said}</p>
      </aside>
      <main class="sheet-desk" aria-label="Report">${shown ? this.#paper(shown, board) : this.#refusal()}</main>`;
  }

  #has(part: Part): boolean {
    const { state } = this.app.store;
    const { document, compared } = state;
    if (part === 'ways') return triedFor(state) !== null;
    if (part === 'note') return text(document['description']) !== '';
    if (part === 'compare') return (compared?.variants.filter(({ report }) => report !== null).length ?? 0) > 1;
    return part !== 'rate' || this.rate.length > 0;
  }

  /** Without a result: why, and of what. */
  #refusal(): TemplateResult {
    const { app, left, link } = this;
    const { state } = app.store;
    const { document } = state;
    const source = app.source && { ...app.source, resolved: null };
    const { title, note } = headingNow(state, source);
    const asked = {
      scenario: document as Report['scenario'],
      slo: source ? targetsIn(source) : [],
      gpus: gpusOf(document),
    };
    const isIn = (name: Part) => !left.has(name) && this.#has(name);
    return html`<article class="paper" data-ready=${link !== '' && isRefused(state)}>
      <header><b>Servecast</b><p>${ofUser(title)} · ${dateText(this.#now)}</p></header>
      ${refusalPart(state)}
      ${isIn('note') ? html`<p class="note">${ofUser(note)}</p>` : nothing}
      ${isIn('inputs') && source ? inputsPart(source, asked, traceOf(state), originNow(state)) : nothing}
      ${link === '' ? nothing : proofPart(sharedOf(state, link, false), traceOf(state), null, this.#now)}
    </article>`;
  }

  #paper(shown: Shown, board: Board | null): TemplateResult {
    const { app, left, link } = this;
    const { state } = app.store;
    const report = reportOf(shown);
    const shared = sharedOf(state, link, true);
    const { source } = app;
    const { title, note } = headingNow(state, source);
    const part = (name: Part, render: () => unknown) => (left.has(name) || !this.#has(name) ? nothing : render());
    return html`<article class="paper" data-ready=${link !== '' && board !== null && this.#isDrawn(shown)}>
      <header><b>Servecast</b><p>${ofUser(title)} · ${dateText(this.#now)}</p></header>
      ${verdictPart(report, headroomOf(state))}
      ${part('note', () => html`<p class="note">${ofUser(note)}</p>`)}
      ${part('inputs', () => (source ? inputsPart(source, report, traceOf(state), originNow(state)) : nothing))}
      ${part('figures', () => (source ? figuresPart(report, source) : nothing))}
      ${part('tail', () => chartsPart('Latency tail', this.tail, tailBandsOf(state) ? `Hatched: beyond the limit. ${bandWords(report)}` : 'Latency over the share of requests, on a scale of nines. Hatched: beyond the limit. A dot is p99 with its band.'))}
      ${part('ways', () => waysPart(state, report))}
      ${part('plan', () => (board ? planPart(board) : nothing))}
      ${part('rate', () => chartsPart('Targets as the load grows', this.rate, 'Above: each target as a share of its limit, over the load. Below: requests within all targets, per second. Shaded: the load that is held, with its interval.'))}
      ${part('compare', () => (state.compared ? comparePart(state.compared, (report.pools?.length ?? 1) > 1) : nothing))}
      ${part('evidence', () => evidencePart(report))}
      ${link === '' ? nothing : proofPart(shared, traceOf(state), report, this.#now)}
    </article>`;
  }

  protected override updated(): void {
    const { document } = this.app.store.state;
    if (this.#linked !== document) {
      this.#linked = document;
      this.link = '';
      void this.#relink(document);
    }
    this.#draw();
  }

  async #relink(document: Document): Promise<void> {
    const link = withPin(await this.app.currentLink(), '');
    if (this.#linked === document) this.link = link;
  }

  #inputs(shown: Shown): readonly unknown[] {
    const plan = this.app.store.state.plans['max-rate'];
    const isOf = plan && this.plans?.isOf('max-rate', plan) && plan.kind === 'answered';
    const { state } = this.app.store;
    return [reportOf(shown), shown.outcome.columns, isOf ? plan.answer : null, tailBandsOf(state)];
  }

  #isDrawn(shown: Shown): boolean {
    return isSame(this.#inputs(shown), this.#drawn);
  }

  /** One after the other: while a chart is written down, no canvas of the page is one. */
  #draw(): void {
    const shown = certainOf(this.app.store.state);
    const host = this.querySelector('.paper');
    if (!shown || !host) return;
    const inputs = this.#inputs(shown);
    if (isSame(inputs, this.#asked)) return;
    this.#asked = inputs;
    this.#drawing = this.#drawing.then(async () => {
      if (this.#asked !== inputs) return;
      const bands = tailBandsOf(this.app.store.state);
      if (bands) await needBands().catch(() => undefined);
      const palette = readPalette(host);
      const report = reportOf(shown);
      const tail: Picture[] = [];
      for (const metric of metricsOf(report)) {
        const chart = document.createElement('sc-tail-chart') as TailChart;
        Object.assign(chart, { report, bands, columns: shown.outcome.columns, only: metric });
        const svg = await chart.picture(palette, half);
        if (svg !== '') tail.push(pictureOf(svg, ...tailWords(report, metric)));
      }
      const answer = inputs[2] as Parameters<typeof isMaxRate>[0];
      const rate: Picture[] = [];
      if (isMaxRate(answer)) {
        const chart = document.createElement('sc-rate-chart') as RateChart;
        Object.assign(chart, { plan: answer, unit: answer.answer?.unit ?? 'requests/s', columns: {} });
        const svg = await chart.picture(palette, whole);
        const title = `Targets: ${ratedTargets(answer)}`;
        if (svg !== '') rate.push(pictureOf(svg, title, `${title}, as shares of their limits over the load`));
      }
      this.#drawn = inputs;
      [this.tail, this.rate] = [tail, rate];
    });
  }

  #toggle(part: Part): void {
    const left = new Set(this.left);
    if (!left.delete(part)) left.add(part);
    this.left = left;
  }

  #ask({ quick }: Board): void {
    for (const question of quick) this.plans?.ask(question);
  }

  #save(): void {
    const sheet = this.querySelector('.paper');
    const shown = certainOf(this.app.store.state);
    if (!sheet) return;
    const name = `servecast-${shown ? reportOf(shown).fingerprint.slice(0, 8) : 'no-result'}-report.html`;
    download(name, new Blob([fileOf(sheet, document.title)], { type: 'text/html' }));
    this.said = `${name} saved.`;
  }
}

const text = (value: Json | undefined): string => (typeof value === 'string' ? value.trim() : '');

/** Nothing was simulated, and nothing is under way. */
const isRefused = ({ run, drafts }: AppState): boolean =>
  run.kind === 'refused' || run.kind === 'broken' || drafts.size > 0;

function originNow({ catalog, document, base, preset_id: id }: AppState): Preset | null {
  return catalog && (originOf(catalog, document, id) ?? originOf(catalog, base, null));
}

/** Its title and note, which are those of a preset only while it is that preset. */
function headingNow(state: AppState, source: FormSource | null): Heading {
  const origin = originNow(state);
  const isChanged = source !== null && origin !== null && departuresOf(source, origin).length > 0;
  return headingOf(state.document, origin, sharedOf(state, '', false).title, isChanged);
}

const isSame = (a: readonly unknown[], b: readonly unknown[]): boolean =>
  a.length === b.length && a.every((each, index) => each === b[index]);

/** Along the curves. */
const bandWords = (report: Report): string =>
  report.slo.some(({ band }) => band)
    ? 'Bands: dark is sampling, 95\u202f%; light adds the model’s error, 90\u202f%.'
    : 'Band: sampling, 95\u202f%.';

/** The panels of the chart on the page. */
function metricsOf(report: Report): readonly ('ttft' | 'tpot' | 'itl' | 'e2e')[] {
  return (['ttft', 'tpot', 'itl', 'e2e'] as const).filter(
    (metric) => metric === 'ttft' || metric === 'tpot' || report.slo.some((slo) => slo.metric === metric),
  );
}

/** What stands above the panel of a metric, and what it shows in words. */
function tailWords(report: Report, metric: 'ttft' | 'tpot' | 'itl' | 'e2e'): readonly [string, string] {
  const name = metric.toUpperCase();
  const target = report.slo.find((slo) => slo.metric === metric && slo.class === undefined);
  if (!target) return [name, `${name} over the share of requests`];
  const { value_ms: value, unbounded } = target;
  const { low, high } = target.band ?? target;
  const between = unbounded || value === null ? '' : rangeText(low, high, value);
  const said = `${nameOfTarget(target)} ${unbounded ? 'no bound' : formatTime(value)}${between === '' ? '' : ` (${between})`}`;
  return [said, `${name} over the share of requests; ${said}, limit ${formatTime(target.limit_ms)}`];
}

const pictureOf = (svg: string, title: string, words: string): Picture => ({
  source: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`,
  title,
  words,
});

/** One file: what is on the sheet, written by the browser from its nodes, with the sheet's rules and their colours. */
function fileOf(sheet: Element, title: string): string {
  const copy = sheet.cloneNode(true) as Element;
  // Lit's own marks, and what only the page needs.
  const walker = document.createTreeWalker(copy, NodeFilter.SHOW_COMMENT);
  const marks: Node[] = [];
  while (walker.nextNode()) marks.push(walker.currentNode);
  for (const mark of marks) mark.parentNode?.removeChild(mark);
  copy.removeAttribute('data-ready');
  const style = getComputedStyle(sheet);
  const names = [...new Set(paper.match(/--[\w-]+/g) ?? [])];
  const tokens = names.map((name) => `${name}:${style.getPropertyValue(name).trim()};`).join('');
  const head = document.createElement('title');
  head.textContent = title;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
${head.outerHTML}
<style>:root{color-scheme:light}body{margin:0;background:#fff}.paper{${tokens}}
${paper}</style></head>
<body>${copy.outerHTML}</body></html>
`;
}

addStyles(paper);
addStyles(styles);
customElements.define('sc-sheet', SheetElement);

/** In the page's place, until it is closed. */
export function openSheet(app: App): void {
  if (document.querySelector('sc-sheet')) return;
  const page = document.querySelector<HTMLElement>('#page');
  const element = document.createElement('sc-sheet') as SheetElement;
  element.app = app;
  const [title, top] = [document.title, scrollY];
  document.title = `${headingNow(app.store.state, app.source).title}: Servecast report`;
  if (page) page.hidden = true;
  element.close = () => {
    element.remove();
    document.title = title;
    if (page) page.hidden = false;
    scrollTo(0, top);
    document.querySelector<HTMLElement>('.header-share .primary')?.focus({ preventScroll: true });
  };
  document.body.append(element);
  scrollTo(0, 0);
  void element.updateComplete.then(() => element.querySelector<HTMLElement>('#print-report')?.focus());
}

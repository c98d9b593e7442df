// Why: where the time of the slowest 1 % of requests went, above that of all, for each latency; and what relief of
// each limit would do. Loaded when it is opened.
import { html, nothing, svg, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { Blame, BlameSide, Explanation, Report } from 'servecast';
import { formatCount, formatNumber, formatPercent, formatTime, levelText } from '../lib/format';
import { addStyles } from '../lib/part';
import styles from '../styles/why.css?inline';
import { culprit } from '../lib/advice';
import { parts, type Part } from '../lib/requests';
import type { AppState, Shown } from '../state/store';
import './better';
import type { ViewContext } from './context';
import { term } from './tiles';

const partWords: Readonly<Record<Part, string>> = {
  host: 'host',
  queue: 'queue',
  prefill: 'own prefill',
  transfer: 'KV transfer',
  handover: 'hand-over',
  decode: 'own decode',
  interference: 'others’ prompts',
  preempted: 'preempted',
};

const limitWords: Readonly<Record<string, string>> = {
  compute: 'arithmetic',
  bandwidth: 'memory bandwidth',
  link: 'the link between GPUs',
  host: 'host speed',
  kv_blocks: 'KV memory',
  seats: 'max_num_seqs',
  adapter_seats: 'max_loras',
  token_budget: 'max_num_batched_tokens',
  transfer: 'the link between prefill and decode',
  router: 'even routing',
};

const metrics = ['ttft', 'tpot', 'e2e'] as const;
type Metric = (typeof metrics)[number];

/** A tenth of the widest bar has room for its number. */
const labelled = 0.08;
/** Of the width; the rest is for the total. */
const widest = 0.86;

export class WhyElement extends PlainElement {
  static override properties = { view: { attribute: false } };
  declare view: ViewContext;

  protected override firstUpdated(): void {
    this.view.app.reasons.askWhy(true);
  }

  override disconnectedCallback(): void {
    super.disconnectedCallback();
    this.view.app.reasons.askWhy(false);
  }

  protected override render(): TemplateResult {
    const { shown, explanation: found } = this.view.state;
    if (!shown) return html`<p class="quiet-text">Empty: nothing was simulated.</p>`;
    return html`${this.view.state.ways_out?.missed === false ? html`<sc-better .view=${this.view}></sc-better>` : nothing}${this.#reasons(shown, found)}`;
  }

  #reasons(shown: Shown, found: AppState['explanation']): TemplateResult {
    if (found?.of !== shown.outcome)
      return html`<p class="quiet-text">${shown.completeness === 'final' ? 'Asking where the time went…' : 'Empty: known when the run has ended.'}</p>`;
    const { explanation } = found;
    const there = metrics.flatMap((metric) => {
      const blame = explanation.blame?.[metric];
      return blame ? [{ metric, blame }] : [];
    });
    if (there.length === 0) return html`<p class="quiet-text">Empty: ${whyEmpty(shown.outcome.report)}.</p>`;
    return html`${patterns} ${headline(there)}
      <div class="blames">${there.map(({ metric, blame }) => this.#chart(metric, blame))}</div>
      ${limits(explanation, shown.outcome.report)}`;
  }

  #chart(metric: Metric, blame: Blame): TemplateResult {
    const { slowest, all } = blame;
    const scale = widest / Math.max(slowest.mean_ms, all.mean_ms, 1e-9);
    const seen = parts.filter((part) => slowest.parts_ms[part] > 0 || all.parts_ms[part] > 0);
    const name = metric.toUpperCase();
    const unit = metric === 'tpot' ? 'ms a token' : 'ms';
    return html`<figure class="blame">
      <figcaption><h3>${term(this.view.state.catalog, name, name)}, ${unit}</h3>
        <span class="blame-keys">${seen.map((part) => html`<span class="blame-key"><svg width="12" height="12" aria-hidden="true">${svg`<rect class="part ${part}" x="0.500" y="0.500" width="11" height="11" />`}</svg>${partWords[part]}</span>`)}</span>
      </figcaption>
      ${bar('Slowest 1\u202f%', slowest, scale)} ${bar('All', all, scale)}
      <p class="quiet-text">${formatCount(slowest.requests)} of ${formatCount(all.requests)} requests, from ${formatTime(blame.from_ms)} up; the parts add up exactly.</p>
    </figure>`;
  }
}

function whyEmpty(report: Report): string {
  const { compat } = (report.scenario['engine'] ?? {}) as { compat?: string };
  if (compat?.startsWith('blis')) return 'by the rules of another simulator nobody follows where the time goes';
  return report.slo.length === 0 ? 'without a limit there is nothing to explain' : 'no request was completed';
}

const longer: Readonly<Record<Metric, string>> = { ttft: ' for the first token', tpot: ' a token', e2e: '' };
const culpritWords: Readonly<Partial<Record<Part, string>>> = {
  queue: 'time in the queue',
  prefill: 'their own prefill',
  decode: 'their own decode',
  interference: 'others’ prompts in the same steps',
};

function headline(there: readonly { metric: Metric; blame: Blame }[]): TemplateResult | typeof nothing {
  const lines = there.flatMap(({ metric, blame }) => {
    const found = culprit(blame);
    if (!found) return [];
    // More than all of it where other parts are shorter.
    const share = found.ms >= 0.995 * found.lost ? 'all' : levelText(found.ms / found.lost);
    return [
      html`<li><b>${metric.toUpperCase()}</b>: the slowest 1\u202f% ${metric === 'ttft' ? 'wait' : 'take'} ${formatTime(found.lost)} longer${longer[metric]}; ${share} of it is ${culpritWords[found.part] ?? partWords[found.part]}.</li>`,
    ];
  });
  return lines.length === 0 ? nothing : html`<ul class="blame-lines">${lines}</ul>`;
}

function bar(label: string, side: BlameSide, scale: number): TemplateResult {
  let at = 0;
  const spans = parts.map((part) => {
    const share = side.parts_ms[part] * scale;
    const span = { part, from: at, share };
    at += share;
    return span;
  });
  const percent = (share: number) => `${(share * 100).toFixed(3)}%`;
  const figures = parts
    .filter((part) => side.parts_ms[part] > 0)
    .map((part) => `${partWords[part]} ${formatNumber(side.parts_ms[part])}`)
    .join(', ');
  return html`<div class="blame-row">
    <span>${label}</span>
    <svg class="blame-bar" width="100%" height="28" role="img" aria-label=${`${label}: ${formatNumber(side.mean_ms)} ms; ${figures}`}>
      ${spans.map(
        ({ part, from, share }) =>
          svg`<rect class="part ${part}" x=${percent(from)} y="2" width=${percent(share)} height="24"><title>${partWords[part]}: ${formatTime(side.parts_ms[part])}</title></rect>`,
      )}
      ${spans
        .filter(({ share }) => share >= labelled)
        .map(
          ({ part, from, share }) =>
            svg`<text class="on-bar" x=${percent(from + share / 2)} y="19" text-anchor="middle">${formatNumber(side.parts_ms[part])}</text>`,
        )}
      ${svg`<text class="total" x=${percent(at)} dx="8" y="19">${formatNumber(side.mean_ms)}</text>`}
    </svg>
  </div>`;
}

function limits({ limits: reliefs }: Explanation, report: Report): TemplateResult | typeof nothing {
  const helping = reliefs.filter(({ gain }) => gain >= 0.01);
  if (helping.length === 0) return nothing;
  const what =
    report.verdict.state === 'overloaded'
      ? 'the time that a completion takes'
      : 'the slowest latencies of the target that decides';
  return html`<p>10\u202f% more of one thing, all else as it is, takes off ${what}: ${helping.map(({ name, gain }) => `${limitWords[name] ?? name} ${formatPercent(gain)}`).join(', ')}. All else takes off less than 1\u202f%.</p>`;
}

/** Once, and never hidden: a pattern in what is not displayed vanishes. */
const patterns = html`<svg class="blame-patterns" width="0" height="0" aria-hidden="true">${svg`
  <pattern id="part-queue" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="ground queue" width="6" height="6" /><path d="M0 0V6" /></pattern>
  <pattern id="part-interference" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)"><rect class="ground interference" width="6" height="6" /><path d="M0 0V6" /></pattern>
  <pattern id="part-preempted" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="ground preempted" width="6" height="6" /><path d="M0 0V6M0 0H6" /></pattern>
  <pattern id="part-transfer" width="5" height="5" patternUnits="userSpaceOnUse"><rect class="ground transfer" width="5" height="5" /><circle cx="2.500" cy="2.500" r="1" /></pattern>`}</svg>`;

addStyles(styles);
customElements.define('sc-why', WhyElement);

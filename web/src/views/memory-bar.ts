// The memory of one GPU as a bar: weights, other, KV blocks used at the peak, KV blocks left, free. What does not fit
// runs over the mark of what is usable. Loaded after the first answer.
import { html, nothing, svg, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { Report } from 'servecast';
import { formatGib, formatNumber, formatPercent } from '../lib/format';
import { addStyles } from '../lib/part';
import type { AppState } from '../state/store';
import styles from '../styles/memory.css?inline';
import { firstRun } from '../lib/first-run';

interface Part {
  readonly name: 'weights' | 'other' | 'kv-used' | 'kv-left' | 'free' | 'kv-needed';
  readonly gib: number;
}

export class MemoryElement extends PlainElement {
  static override properties = { state: { attribute: false } };
  declare state: AppState;

  protected override render(): TemplateResult | typeof nothing {
    const { run, shown, link_problem: problem } = this.state;
    if (problem || !shown) return run.kind === 'refused' && run.unfit ? doesNotFit(run.unfit) : nothing;
    return fits(shown.outcome.report);
  }
}

function fits(report: Report): TemplateResult {
  const { memory } = report;
  const { kv } = firstRun(report);
  const [first] = kv.pools;
  const peak = first?.peak_usage ?? kv.peak_usage;
  const used = memory.kv_gib * peak;
  const free = memory.total_gib - memory.weights_gib - memory.overhead_gib - memory.kv_gib;
  const words = `KV ${gib(memory.kv_gib)}, peak ${formatPercent(peak)}`;
  return bar(
    // Of several pools it is the first one's.
    kv.pools.length > 1 ? `In ${first?.name || 'the first pool'}` : '',
    [
      { name: 'weights', gib: memory.weights_gib },
      { name: 'other', gib: memory.overhead_gib },
      { name: 'kv-used', gib: used },
      { name: 'kv-left', gib: memory.kv_gib - used },
      { name: 'free', gib: Math.max(0, free) },
    ],
    memory.total_gib,
    null,
    { 'kv-used': words, 'kv-left': '', free: `free ${formatGib(Math.max(0, free))}` },
  );
}

function doesNotFit(unfit: NonNullable<Report['unfit']>): TemplateResult {
  const { weights_gib: weights, overhead_gib: other, kv_gib: kv, needed_gib: needed, usable_gib: usable } = unfit;
  return bar(
    'Does not fit',
    [
      { name: 'weights', gib: weights },
      { name: 'other', gib: other },
      { name: 'kv-needed', gib: kv },
    ],
    needed,
    usable,
    { 'kv-needed': `smallest KV cache ${formatGib(kv)}` },
    `usable ${formatGib(usable)}`,
  );
}

const patterns = svg`<pattern id="memory-left" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="3" height="6" /></pattern>
  <pattern id="memory-over" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="2" height="6" /></pattern>`;

function percent(share: number): string {
  return `${(100 * share).toFixed(3)}%`;
}

function gib(value: number): string {
  return formatNumber(value);
}

function bar(
  title: string,
  parts: readonly Part[],
  whole: number,
  usable: number | null,
  words: Partial<Record<Part['name'], string>>,
  last = '',
): TemplateResult {
  let from = 0;
  const drawn = parts.map(({ name, gib: size }) => {
    const x = from / whole;
    from += size;
    return svg`<rect class="memory-${name}" x=${percent(x)} width=${percent(size / whole)} height="16" />`;
  });
  const said = parts
    .map(({ name, gib: size }) => ({ name, text: words[name] ?? `${name} ${gib(size)}` }))
    .filter(({ text }) => text !== '');
  const at = usable === null ? 1 : Math.min(1, usable / whole);
  const over = svg`<rect class="memory-over" x=${percent(at)} width=${percent(1 - at)} height="16" /><rect class="memory-mark" x=${percent(at)} width="2" height="16" />`;
  return html`<div role="img" aria-label=${`Memory of one GPU. ${[title, ...said.map(({ text }) => text), last].filter(Boolean).join('; ')}`}>
    <svg class="memory-bar" width="100%" height="16" aria-hidden="true">${patterns}${drawn}${usable === null ? nothing : over}</svg>
    <p class="memory-legend" aria-hidden="true">
      ${title === '' ? nothing : html`<span><b>${title}</b></span>`}
      ${said.map(({ name, text }) => html`<span><svg width="10" height="10">${svg`<rect class="memory-${name}" x="0.5" y="0.5" width="9" height="9" />`}</svg>${text}</span>`)}
      ${last === '' ? nothing : html`<span>${last}</span>`}
    </p>
  </div>`;
}

addStyles(styles);
customElements.define('sc-memory', MemoryElement);

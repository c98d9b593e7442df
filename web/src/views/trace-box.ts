// The trace file that is open, or asked for, and what may be done with it. Loaded with the first one.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import { countOf, formatBytes, formatPercent } from '../lib/format';
import { needsTrace } from '../state/document';
import type { ViewContext } from './context';

export class TraceBoxElement extends PlainElement {
  static override properties = { view: { attribute: false } };
  declare view: ViewContext;

  protected override render(): TemplateResult {
    const { view } = this;
    const { trace, shown, document } = view.state;
    const traced = needsTrace(document);
    const requests =
      shown?.outcome.report.workload.source === 'trace'
        ? `, ${countOf(shown.outcome.report.workload.requests, 'request')}`
        : '';
    return html`<div class="trace-box">
      ${trace.kind === 'loaded' ? html`<p class="long-name"><strong>${trace.name}</strong><br />${formatBytes(trace.bytes)} unpacked${requests}</p>${trace.read.reading === '' ? nothing : html`<p class="quiet-text" id="trace-reading">Read as ${trace.read.reading}.</p>`}` : nothing}
      ${trace.kind === 'reading' ? html`<p class="long-name">Reading ${trace.name}… ${formatPercent(trace.progress)}</p>` : nothing}
      ${trace.kind === 'failed' ? html`<p class="field-error" role="alert">${trace.message}</p>` : nothing}
      ${trace.kind === 'none' ? html`<p class="quiet-text">Drop a .csv, .jsonl or .json file, plain or .gz, anywhere on the page. It stays on this machine.</p>` : nothing}
      <div class="button-row">
        ${trace.kind === 'reading' ? html`<button type="button" @click=${() => view.app.cancelTrace()}>Cancel reading</button>` : nothing}
        ${fitButtons(view)}
        <button type="button" @click=${() => view.chooseTrace()}>${traced && trace.kind === 'loaded' ? 'Choose another file' : 'Choose a trace file'}</button>
        ${(traced && trace.kind !== 'reading') || trace.kind === 'failed' || trace.kind === 'loaded' ? html`<button type="button" @click=${() => view.app.removeTrace()}>Remove trace</button>` : nothing}
      </div>
    </div>`;
  }
}

function fitButtons(view: ViewContext): TemplateResult | typeof nothing {
  const { trace, fit, document } = view.state;
  if (trace.kind !== 'loaded' || trace.read.issues.length > 0) return nothing;
  const failed =
    fit.kind === 'failed' ? html`<p class="field-error" role="alert">No fitted summary: ${fit.message}</p>` : nothing;
  if (!needsTrace(document)) {
    if (fit.kind !== 'fitted') return nothing;
    return html`<p class="quiet-text">The workload resembles the trace; the link holds it.</p>
      <button type="button" @click=${() => view.app.replayTrace()}>Replay the trace itself</button>`;
  }
  return html`<button type="button" ?disabled=${fit.kind === 'fitting'} @click=${() => void view.app.fitTrace()}>
      ${fit.kind === 'fitting' ? 'Fitting…' : 'Replace by a fitted summary (for a link)'}</button>${failed}`;
}

customElements.define('sc-trace-box', TraceBoxElement);

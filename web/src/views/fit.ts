// What stands in for a trace: the buttons beside the file, and the picture of fit against trace,
// whose code is fetched with the first fit.
import { html, nothing, type TemplateResult } from 'lit';
import { needPart } from '../lib/part';
import { needsTrace } from '../state/document';
import type { ViewContext } from './context';

export function renderFitButtons(view: ViewContext): TemplateResult | typeof nothing {
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

export function renderFit(view: ViewContext): TemplateResult | typeof nothing {
  const { fit } = view.state;
  if (fit.kind !== 'fitted') return nothing;
  needPart('sc-fit-chart', () => import('../charts/fit-chart'));
  return html`<section id="fit" tabindex="-1" aria-label="Fit and trace">
    <sc-fit-chart .fit=${fit.fit} .theme=${view.theme} .fileStem=${'servecast'}></sc-fit-chart>
  </section>`;
}

// What stands in for a trace: the picture of fit against trace, whose code is fetched with the first fit.
import { html, nothing, type TemplateResult } from 'lit';
import { needPart } from '../lib/part';
import type { ViewContext } from './context';

export function renderFit(view: ViewContext): TemplateResult | typeof nothing {
  const { fit } = view.state;
  if (fit.kind !== 'fitted') return nothing;
  needPart('sc-fit-chart', () => import('../charts/fit-chart'));
  return html`<section id="fit" tabindex="-1" aria-label="Fit and trace">
    <sc-fit-chart .fit=${fit.fit} .theme=${view.theme} .fileStem=${'servecast'}></sc-fit-chart>
  </section>`;
}

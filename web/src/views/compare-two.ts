// Two whole scenarios on the same requests: A, which was kept, is a preset or this
// scenario by another engine, and B, which is on the page.
import { html, nothing, type TemplateResult } from 'lit';
import type { Report } from 'servecast';
import { marginText, sentence } from '../lib/format';
import { differences } from '../state/compare';
import { engineInForce, enginePlace, enginesOf } from '../state/engines';
import { reportOf, type Beside } from '../state/store';
import type { Document } from '../state/document';
import { changeText, closestTarget, figures, nameOfTarget, settingName, settingText } from './compare-figures';
import { renderReasons } from './compare-reasons';
import type { ViewContext } from './context';
import { renderSign } from './verdict';

const nobody = '-';

export function renderBeside(view: ViewContext): TemplateResult {
  const { app, state } = view;
  const { beside, catalog, shown } = state;
  const kept = app.kept;
  const chosen = beside?.of ?? nobody;
  const choose = (event: Event) => {
    const { value } = event.target as HTMLSelectElement;
    void app.compareWith(value === nobody ? null : value);
  };
  return html`<section class="two" aria-labelledby="two-title">
    <h3 id="two-title">Two whole scenarios on the same requests</h3>
    <p class="compare-by">
      <label>Compare with
        <select id="compare-with" @change=${choose}>
          <option value=${nobody} ?selected=${chosen === nobody}>nothing</option>
          ${kept === null ? nothing : html`<option value="" ?selected=${chosen === ''}>Kept: ${kept}</option>`}
          ${engineOptions(view, chosen)}
          ${(catalog?.presets.scenarios ?? []).map(({ id, name }) => html`<option value=${id} ?selected=${chosen === id}>${name}</option>`)}
        </select>
      </label>
      <button type="button" id="keep" @click=${() => void app.keepToCompare(nameOf(view))}>Keep this one as A</button>
      ${state.former === null ? nothing : html`<button type="button" id="keep-former" @click=${() => void app.compareWithFormer()}>Take what was open before as A</button>`}
      <span class="quiet-text">then change anything: A stays as it was, on the requests and targets that are asked now</span>
    </p>
    ${beside ? sideBySide(view, beside, shown?.completeness === 'final' ? reportOf(shown) : null) : nothing}
  </section>`;
}

/** This scenario under each of the other engines. */
function engineOptions({ app }: ViewContext, chosen: string): readonly TemplateResult[] {
  const { source } = app;
  if (!source) return [];
  const own = engineInForce(source)?.policy;
  return enginesOf(source.catalog)
    .map(({ policy, preset }) => ({ policy, name: preset.name, place: `${enginePlace}/${policy}` }))
    .filter(({ policy, place }) => policy !== own || place === chosen)
    .map(
      ({ name, place }) => html`<option value=${place} ?selected=${place === chosen}>this scenario by ${name}</option>`,
    );
}

function nameOf({ state }: ViewContext): string {
  const own = state.document['name'];
  const preset = state.catalog?.presets.scenarios.find(({ id }) => id === state.preset_id)?.name;
  return preset ?? (typeof own === 'string' && own !== '' ? `${own}, edited` : 'the scenario of before');
}

function sideBySide(view: ViewContext, beside: Beside, own: Report | null): TemplateResult {
  const { app, state, theme } = view;
  const other = beside.banded ?? beside.outcome?.report ?? null;
  if (beside.issues.length > 0)
    return html`<p>A, ${beside.name}, cannot run: ${beside.issues.map(({ message }) => sentence(message)).join(' ')}</p>`;
  if (!other || !own)
    return html`<p class="quiet-text">${state.run.kind === 'running' ? 'Waits for the scenario’s own run.' : 'Simulating A…'}</p>`;
  const several = (own.pools?.length ?? 1) > 1;
  const differing = differences(other.scenario as Document, own.scenario as Document);
  const isSame = other.fingerprint === own.fingerprint;
  return html`
    <div class="table-scroll" tabindex="0" role="region" aria-label="A beside B">
      <table id="two">
        <thead><tr><th scope="col">Figure</th><th scope="col">A: ${beside.name}</th><th scope="col">B: on the page</th><th scope="col">B against A</th></tr></thead>
        <tbody>
          <tr><th scope="row">Verdict</th>${[other, own].map((report) => html`<td class="state">${renderSign(report.verdict.state)}</td>`)}<td></td></tr>
          <tr><th scope="row">Closest target</th>${[other, own].map((report) => html`<td>${targetInWords(report)}</td>`)}<td></td></tr>
          ${figures.map(({ head, of, format }) => {
            const [a, b] = [of(other), of(own)];
            if (a === null && b === null) return nothing;
            const change = a === null || b === null || a === 0 ? '' : changeText(b / a - 1);
            return html`<tr><th scope="row">${head}</th><td>${format(a)}</td><td>${format(b)}</td><td>${change}</td></tr>`;
          })}
        </tbody>
      </table>
    </div>
    ${isSame ? nothing : renderReasons(beside.name, other, own)}
    <p><button type="button" ?disabled=${isSame} @click=${() => app.useVariant(beside.document)}>Use A</button></p>
    <sc-tail-chart .heading=${'Latency of A and B'} .report=${own} .columns=${state.shown?.outcome.columns ?? null} .other=${beside.outcome} .theme=${theme} .fileStem=${'servecast-a-b'}></sc-tail-chart>
    <h3>${isSame ? 'A and B are the same' : `What differs, of all fields: ${differing.length}`}</h3>
    ${
      differing.length === 0
        ? nothing
        : html`<div class="table-scroll" tabindex="0" role="region" aria-label="Fields that differ">
      <table id="differing">
        <thead><tr><th scope="col">Setting</th><th scope="col">A</th><th scope="col">B</th></tr></thead>
        <tbody>${differing.map(({ pointer, a, b }) => html`<tr><th scope="row" title=${pointer}>${settingName(pointer, several)}</th><td>${settingText(a)}</td><td>${settingText(b)}</td></tr>`)}</tbody>
      </table>
    </div>`
    }`;
}

function targetInWords(report: Report): string {
  const target = closestTarget(report);
  return target
    ? `${nameOfTarget(target)}${target.margin === null ? '' : `, ${marginText(1 - target.margin)}`}`
    : 'no limit is set';
}

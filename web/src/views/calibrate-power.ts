// What measured power says of the card's power law: its constants, each run's W a GPU, and how far the law is off. Part of
// the calibration.
import { html, nothing, type TemplateResult } from 'lit';
import { formatNumber, formatQuantity, sentence } from '../lib/format';
import { offBefore, percentOff, signedPercent, type Residual } from '../lib/residuals';
import { fieldAt } from '../state/fields';
import type { PowerConstant, PowerFit, PowerRow } from '../state/power-fit';
import type { ViewContext } from './context';

/** Per cent, as the engine takes it for the intervals (docs/how-to/calibrate.md). */
const offOfReading = 5;
const watts = (value: number): string => formatQuantity(value, 'W');

export function renderPowerFit(view: ViewContext, fit: PowerFit): TemplateResult {
  const { constants, rows, warnings } = fit;
  // Without a law the constants of before are none.
  const hadLaw = rows.some(({ before_w: before }) => before !== null);
  const residuals = rows.map((row, index) => residualOf(row, index));
  return html`<section class="card calibrate-card" aria-labelledby="calibrate-power">
      <h3 id="calibrate-power">Power of the card</h3>
      ${
        constants.length === 0
          ? html`<p><b>Power was measured, and no constant was fitted.</b></p>`
          : html`<div class="table-scroll" tabindex="0" role="region" aria-label="Constants of power before and after">
          <table class="calibrate-power">
            <thead><tr><th scope="col">Adds to a GPU’s power</th><th scope="col">before</th><th scope="col">fitted</th><th scope="col">95&#8239;% interval</th></tr></thead>
            <tbody>${constants.map((constant) => constantRow(view, constant, hadLaw))}</tbody>
          </table>
        </div>`
      }
      ${warnings.length > 0 ? html`<ul class="calibrate-warnings">${warnings.map((warning) => html`<li>${sentence(warning)}</li>`)}</ul>` : nothing}
      <div class="table-scroll" tabindex="0" role="region" aria-label="Power of the measured runs">
        <table class="calibrate-power calibrate-watts">
          <thead><tr><th scope="col">Mean W a GPU</th><th scope="col">measured</th><th scope="col">before</th><th scope="col">after</th></tr></thead>
          <tbody>${rows.map((row, index) => measuredRow(row, residuals[index] as Residual, index))}</tbody>
        </table>
      </div>
      ${constants.length > 0 ? html`<p class="quiet-text">The pack carries the fitted constants, and a scenario that uses it shows power by them. No step time depends on them.</p>` : nothing}
    </section>
    <div class="calibrate-charts">
      <sc-residual-chart .heading=${'Power of the measured runs'} .unit=${'run, as numbered above'} .scatter=${offOfReading} .grey=${'how far off a card’s reading of its power may be'} .points=${residuals} .format=${watts} .columns=${columnsOf(rows)} .theme=${view.theme} .fileStem=${'servecast-calibration-power'}></sc-residual-chart>
    </div>`;
}

function residualOf(
  { label, measured_w: measured, before_w: before, after_w: after }: PowerRow,
  index: number,
): Residual {
  return { label, figure: 'W a GPU', place: String(index + 1), measured, before, after };
}

function constantRow(
  { app }: ViewContext,
  { name, before, value, low, high, unit }: PowerConstant,
  hadLaw: boolean,
): TemplateResult {
  const help = app.source ? fieldAt(app.source, `/hardware/${name}`)?.help : undefined;
  const shown = (number: number) => formatQuantity(number, unit);
  return html`<tr>
    <th scope="row"><code>hardware.<wbr />${name}</code> <span class="quiet-text wide">${help ?? ''}</span></th>
    <td>${hadLaw ? shown(before) : 'not known'}</td>
    <td><b>${shown(value)}</b></td>
    <td>${formatNumber(low)} to ${shown(high)}</td>
  </tr>`;
}

function measuredRow({ label, held_out: heldOut }: PowerRow, of: Residual, index: number): TemplateResult {
  return html`<tr>
    <th scope="row">${index + 1}. ${label}${heldOut ? ', held out' : ''}</th>
    <td>${watts(of.measured)}</td>
    <td>${of.before === null ? 'not known' : html`${watts(of.before)} <small>${offBefore(of)}</small>`}</td>
    <td><b>${watts(of.after)}</b> <small>${signedPercent(percentOff(of.after, of.measured))}</small></td>
  </tr>`;
}

function columnsOf(rows: readonly PowerRow[]): Record<string, Float64Array> {
  return {
    measured_w: Float64Array.from(rows, ({ measured_w: value }) => value),
    before_w: Float64Array.from(rows, ({ before_w: value }) => value ?? NaN),
    after_w: Float64Array.from(rows, ({ after_w: value }) => value),
  };
}

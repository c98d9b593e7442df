// What a verdict rests on, in full, for who asks "How sure?": the runs, the model of step times, and how far that was off
// where it was compared. Loaded when it is opened.
import { html, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { Report } from 'servecast';
import { levelText } from '../lib/format';

const sources: Readonly<Record<Report['latency_model']['provenance'], string>> = {
  measured: 'measured',
  interpolated: 'interpolated between measurements',
  extrapolated: 'extrapolated from measurements',
  datasheet: 'from the data sheet',
  coefficients: 'from given coefficients',
};

export class SureElement extends PlainElement {
  static override properties = { report: { attribute: false } };
  declare report: Report;

  protected override render(): TemplateResult {
    return html`<p class="quiet-text">${runs(this.report)} ${restsOn(this.report)}</p>`;
  }
}

/** The model of step times, and how far it was off where it was compared. */
export function restsOn({ latency_model: model, evidence, model_error: error }: Report): string {
  const known = evidence.sentence || model.known_error || 'Its error is not known.';
  return `Step times: model ${model.backend}, ${sources[model.provenance]}. ${known}${error ? ` ${error.sentence}` : ''}`;
}

function runs({ certainty, workload, slo }: Report): string {
  const band = slo.find((target) => target.band)?.band;
  const brackets = band ? ` In brackets: ${levelText(band.level)} bands, sampling and model error.` : '';
  switch (certainty?.method) {
    case 'replications':
      return `Runs differ in their seeds; warm-up and drain do not count.${brackets}`;
    case 'batch_means':
      return `${workload.source === 'trace' ? 'A trace is one path: its' : 'The'} interval comes from ${certainty.batches ?? 0} batches of the run.${brackets}`;
    default:
      return 'One run has no interval.';
  }
}

customElements.define('sc-sure', SureElement);

// The result that a link's author pinned to it, beside one's own: the same bits, or what differs. Loaded with the first
// pinned link.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { Report } from 'servecast';
import { countOf, formatGivenTime, formatPercent, formatTime } from '../lib/format';
import { addStyles } from '../lib/part';
import { differences, pinOf, readPin, type Difference, type Pin } from '../share/pin';
import styles from '../styles/pin.css?inline';
import type { ViewContext } from './context';

type Target = Report['slo'][number];

/** A verdict's state as people say it; an unknown one as it stands. */
const stateText = (state: string) => state.replaceAll('_', ' ');

function nameOf(target: Target | undefined, index: number): string {
  if (!target) return `Target ${index + 1}`;
  const { metric, percentile, limit_ms: limit, class: of } = target;
  const named =
    metric === 'attainment'
      ? `Within all limits, at least ${percentile}\u202f%`
      : `${metric.toUpperCase()} p${percentile}, limit ${formatGivenTime(limit)}`;
  return of === undefined ? named : `${named}, ${of}`;
}

/** A value in millionths, of a second or of one. */
function valueText(value: number | null | undefined, target: Target | undefined): string {
  if (value === undefined) return 'not there';
  if (value === null) return 'none';
  if (!target) return `${value} millionths`;
  return target.metric === 'attainment' ? formatPercent(value / 1e6) : formatTime(value / 1e3);
}

/** "meets; TTFT p99 95.1 ms": in a line. Of what a target's value is, and in which unit, only the target says. */
export function pinInWords(pin: Pin, targets: readonly Target[]): string {
  const values = targets.slice(0, pin.values.length).map((target, index) => {
    const name =
      target.metric === 'attainment' ? 'within all limits' : `${target.metric.toUpperCase()} p${target.percentile}`;
    return `${name} ${valueText(pin.values[index], target)}`;
  });
  return [stateText(pin.state), ...values].join('; ');
}

export class PinElement extends PlainElement {
  static override properties = { view: { attribute: false }, text: { attribute: false } };
  declare view: ViewContext;
  declare text: string;

  protected override render(): TemplateResult {
    const pin = readPin(this.text);
    if (!pin)
      return html`<p class="pin" data-pin="unreadable">This link carries a result of its author that is cut short or damaged. The scenario is whole.</p>`;
    const { shown, document } = this.view.state;
    const report = shown?.completeness === 'final' && shown.document === document ? shown.outcome.report : null;
    const own = report ? readPin(pinOf(report)) : null;
    if (!report || !own)
      return html`<p class="pin" data-pin="waiting"><b>The author’s result:</b> ${pinInWords(pin, shown?.document === document ? shown.outcome.report.slo : [])}, by engine ${pin.engine_version}. Yours is compared with it when your run is done.</p>`;
    const found = differences(pin, own);
    if (found.length === 0)
      return html`<p class="pin" data-pin="verified"><b>Verified: the same bits.</b> Your run gave the author’s result, fingerprint <code>${own.fingerprint}</code>.</p>`;
    if (found.every(({ what }) => what === 'engine' || what === 'schema'))
      return html`<p class="pin" data-pin="verified"><b>Verified: the same bits, by another version.</b> The link was made with engine ${pin.engine_version}; yours, ${own.engine_version}, gave the author’s result, fingerprint <code>${own.fingerprint}</code>.</p>`;
    return this.#differing(pin, own, found, report);
  }

  #differing(pin: Pin, own: Pin, found: readonly Difference[], report: Report): TemplateResult {
    const engine = found.some(({ what }) => what === 'engine' || what === 'schema');
    const count = Math.max(pin.values.length, own.values.length);
    const row = (name: string, author: string, yours: string) =>
      html`<tr><th scope="row">${name}</th><td>${author}</td><td>${yours}</td><td>${author === yours ? 'same' : html`<b>differs</b>`}</td></tr>`;
    const version = ({ engine_version: engineVersion, schema }: Pin) => `${engineVersion}, schema ${schema}`;
    return html`<div class="pin" data-pin="differs">
      <p><b>This is not the author’s result.</b> ${
        engine
          ? `The link was made with engine ${pin.engine_version}; this is ${own.engine_version}.`
          : 'The engine is of the same version: the link may have been changed after its result was pinned, or a trace is another one.'
      }</p>
      <div class="pin-table"><table>
        <thead><tr><td></td><th scope="col">Author</th><th scope="col">You</th><td></td></tr></thead>
        <tbody>
          ${row('Engine', version(pin), version(own))} ${row('Verdict', stateText(pin.state), stateText(own.state))}
          ${Array.from({ length: count }, (_, index) => {
            const target = report.slo[index];
            const differs = found.some((each) => each.what === 'target' && each.index === index);
            const author = valueText(pin.values[index], target);
            const yours = valueText(own.values[index], target);
            // Digits that are not shown may differ.
            return differs && author === yours
              ? row(
                  nameOf(target, index),
                  `${author} (${pin.values[index] ?? '-'})`,
                  `${yours} (${own.values[index] ?? '-'})`,
                )
              : row(nameOf(target, index), author, yours);
          })}
          ${row('Fingerprint', pin.fingerprint, own.fingerprint)}
        </tbody>
      </table></div>
      ${pin.values.length === own.values.length ? nothing : html`<p>The author’s result has ${countOf(pin.values.length, 'target')}, yours ${own.values.length}.</p>`}
    </div>`;
  }
}

addStyles(styles);
customElements.define('sc-pin', PinElement);

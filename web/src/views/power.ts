// Power beside the key numbers: W a GPU with its band and over time, energy, and what both cost where prices are stated. Of
// the first run. Loaded when it is asked for.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { Power, Report } from 'servecast';
import '../charts/series-chart';
import type { Pane } from '../charts/series-chart';
import { firstRun, whichRun } from '../lib/first-run';
import { countOf, formatInterval, formatNumber, formatQuantity } from '../lib/format';
import { addStyles } from '../lib/part';
import { unknownPower } from '../state/unknown-power';
import { getAt, type Document } from '../state/document';
import { reportOf } from '../state/store';
import styles from '../styles/power.css?inline';
import type { ViewContext } from './context';
import { countedOf } from './load';

const panes: readonly Pane[] = [
  { unit: 'W', series: [{ column: 'series_power_w', label: 'Mean W a GPU', meaning: 'power', fill: 'solid' }] },
];

export class PowerElement extends PlainElement {
  static override properties = { view: { attribute: false } };
  declare view: ViewContext;

  protected override render(): TemplateResult | typeof nothing {
    const { state, theme } = this.view;
    if (!state.shown) return nothing;
    const report = reportOf(state.shown);
    const { power } = firstRun(report);
    if (!power) return this.#unknown(report);
    const { columns } = state.shown.outcome;
    return html`<section class="card tile" aria-label="Power">
        ${head(whichRun(report))}
        <p class="value">${formatNumber(power.mean_w)}<span class="unit">\u202fW a GPU</span>${bandOf(power)}</p>
        <dl class="power-figures">${this.#figures(report, power).map(([name, value, note]) => html`<div><dt>${name}</dt><dd>${value}${note === '' ? nothing : html` <small>${note}</small>`}</dd></div>`)}</dl>
      </section>
      <sc-series-chart .subject=${'Power over time'} .panes=${panes} .counted=${countedOf(report)} .columns=${columns} .theme=${theme} .fileStem=${`servecast-${report.fingerprint.slice(0, 8)}-power`}></sc-series-chart>`;
  }

  #unknown(report: Report): TemplateResult {
    const { reason, pointer } = unknownPower(report);
    return html`<section class="card tile is-unknown" aria-label="Power">
      ${head('')}
      <p class="value words">not known</p>
      <p class="tile-note">${reason}</p>
      ${pointer === null ? nothing : html`<p class="tile-note"><button class="as-link" type="button" @click=${() => this.view.focusField(pointer)}>State the card’s power</button>, or let Calibrate fit it to power that nvidia-smi or DCGM measured beside a run.</p>`}
    </section>`;
  }

  /** Name, value with its unit, and what the value is of. */
  #figures(report: Report, power: Power): readonly (readonly [string, unknown, string])[] {
    const { j_per_output_token: token, j_per_request: request, site_kwh_per_hour: site } = power;
    const gpus = countOf(report.gpus, 'GPU');
    const pools = firstRun(report).pools ?? [];
    return [
      ['Peak', formatQuantity(power.peak_w, 'W'), 'a GPU, in the busiest interval'],
      ['While steps run', formatQuantity(power.serving_w, 'W'), 'a GPU'],
      ...pools.flatMap((pool, index) =>
        pool.power
          ? [
              [
                `${pool.name || (report.pools?.[index]?.role ?? '')} pool`,
                formatQuantity(pool.power.mean_w, 'W'),
                'a GPU',
              ] as const,
            ]
          : [],
      ),
      ['Per output token', joules(token), bandText(power.j_per_output_token_low, power.j_per_output_token_high, token)],
      ['Per request', joules(request), ''],
      ['Per hour', formatQuantity(power.kwh_per_hour, 'kWh'), gpus],
      ...(site === undefined ? [] : [['With hosts, cooling', formatQuantity(site, 'kWh'), 'per hour'] as const]),
      this.#stated(report, 'Electricity', power.electricity_per_hour, 'price_per_kwh'),
      this.#stated(report, 'CO₂', power.co2_kg_per_hour, 'co2_g_per_kwh'),
    ];
  }

  /** What depends on a figure that somebody has to state. */
  #stated(
    report: Report,
    name: string,
    value: number | undefined,
    field: 'price_per_kwh' | 'co2_g_per_kwh',
  ): readonly [string, unknown, string] {
    const isPrice = field === 'price_per_kwh';
    if (value === undefined) {
      const ask = html`<button class="as-link" type="button" @click=${() => this.view.focusField(`/hardware/${field}`)}>${isPrice ? 'State a price' : 'State an intensity'}</button>`;
      return [name, ask, 'per kWh'];
    }
    const scenario = report.scenario as Document;
    const pools = getAt(scenario, '/cluster/pools');
    const isOne =
      !Array.isArray(pools) || pools.every((_pool, at) => !getAt(scenario, `/cluster/pools/${at}/hardware`));
    const per = Number(getAt(scenario, `/hardware/${field}`) ?? 0);
    const stated = isPrice ? `$${formatNumber(per)}` : formatQuantity(per, 'g');
    return [
      name,
      isPrice ? `$${formatNumber(value)}` : formatQuantity(value, 'kg'),
      isOne ? `per hour, at ${stated} per kWh as stated` : 'per hour, as stated for each pool',
    ];
  }
}

function head(which: string): TemplateResult {
  return html`<div class="tile-head"><h3>Power</h3>${which === '' ? nothing : html`<span>${which}</span>`}</div>`;
}

const joules = (value: number | null): string => formatQuantity(value, 'J');

function bandText(low: number | undefined, high: number | undefined, value: number | null): string {
  if (value === null) return '';
  return low === undefined || high === undefined ? 'error not known' : `90\u202f%: ${formatInterval(low, high, value)}`;
}

function bandOf({ mean_w: mean, mean_w_low: low, mean_w_high: high }: Power): TemplateResult {
  const isKnown = low !== undefined && high !== undefined;
  return html`<span class="interval of-target term" tabindex="0">${bandText(low, high, mean)}<span class="tip" role="tooltip">${
    isKnown
      ? 'Of the set-ups that the card’s power law was not fitted to, 90\u202f% were within this band. Other figures of energy are as far off.'
      : 'The hardware does not say how far its power law is off (power_error, energy_error).'
  }</span></span>`;
}

addStyles(styles);
customElements.define('sc-power', PowerElement);

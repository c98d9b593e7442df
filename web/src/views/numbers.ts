// Every number of the report, in tables. Loaded when it is opened.
import { html, nothing, type TemplateResult } from 'lit';
import { PlainElement } from '../lib/plain-element';
import type { ClassReport, ClassRun, Distribution, Report, RunFigures, TimeParts } from 'servecast';
import {
  formatCount,
  formatGivenTime,
  formatNumber,
  formatPercent,
  formatQuantity,
  formatTime,
  levelText,
} from '../lib/format';
import { groupOf, groups, labelOf, type GroupId } from '../lib/number-groups';
import { addStyles } from '../lib/part';
import styles from '../styles/numbers.css?inline';
import { isObject, type Json } from '../state/document';
import { figureUnits } from './figure-units';
import { firstRun, whichRun } from '../lib/first-run';

const distributions = [
  ['ttft_ms', 'Time to first token (TTFT)'],
  ['tpot_ms', 'Per output token (TPOT)'],
  ['e2e_ms', 'End to end (E2E)'],
  ['scheduling_delay_ms', 'Scheduling delay'],
] as const;
const gaps = [
  ['itl_ms', 'Between tokens (ITL)'],
  ['step_delay_ms', 'Between steps'],
] as const;

const statistics = ['mean', 'min', 'p50', 'p90', 'p95', 'p99', 'max'] as const;

function renderNumbers(report: Report): TemplateResult {
  const { classes } = report;
  const run = firstRun(report);
  const { time_split: split } = run;
  const which = whichRun(report);
  const ofRun = which === '' ? '' : `, ${which}`;
  const runs = report.counted?.runs ?? 1;
  const own: Readonly<Record<GroupId, readonly (TemplateResult | typeof nothing)[]>> = {
    latency: [
      table(
        `Latencies of ${runs > 1 ? `${runs} runs` : 'one run'} (n is the number of samples)`,
        ['Metric', 'n', ...statistics],
        distributions.map(([key, label]) => distributionRow(label, report[key])),
      ),
      table(
        `Gaps${ofRun}`,
        ['Metric', 'n', ...statistics],
        gaps.map(([key, label]) => distributionRow(label, run[key])),
      ),
      split
        ? table(
            `Where the mean time of completed requests goes${ofRun}`,
            ['Metric', ...parts],
            [partsRow('TTFT', split.ttft_ms), partsRow('E2E', split.e2e_ms)],
          )
        : nothing,
    ],
    rates: [classes.length > 0 ? table('By class', classColumns, classes.map(classRow)) : nothing],
    load: [
      run.classes.length > 0
        ? table(`Requests by class${ofRun}`, classRunColumns, run.classes.map(classRunRow))
        : nothing,
    ],
    memory: [],
    run: [
      run.sanity.length > 0
        ? table(
            `Simulation beside laws and bounds${ofRun}`,
            ['Check', 'simulated', 'law or bound', 'holds'],
            run.sanity.map(sanityRow),
          )
        : nothing,
    ],
  };
  const rows = flatten(report);
  return html`${groups.map(
    ({ id, title }) => html`<section aria-labelledby="numbers-${id}">
      <h3 id="numbers-${id}">${title}</h3>
      ${own[id]}
      <dl class="all-numbers">${rows.filter(({ group }) => group === id).map(({ label, value }) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`)}</dl>
    </section>`,
  )}`;
}

/** The first cell of a row is its heading. */
function table(caption: string, head: readonly string[], rows: readonly (readonly string[])[]): TemplateResult {
  return html`
    <div class="table-scroll" tabindex="0" role="region" aria-label=${caption}>
      <table>
        <caption>${caption}</caption>
        <thead><tr>${head.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
        <tbody>${rows.map(([name, ...cells]) => html`<tr><th scope="row">${name}</th>${cells.map((cell, index) => html`<td data-head=${head[index + 1] ?? nothing}>${cell}</td>`)}</tr>`)}</tbody>
      </table>
    </div>
  `;
}

const parts = ['host', 'queue', 'prefill', 'decode', 'interference', 'preempted', 'transfer', 'handover'] as const;
const partsRow = (name: string, of: TimeParts): string[] => [name, ...parts.map((part) => formatTime(of[part]))];

function sanityRow({ help, unit, simulated, bound, ok }: RunFigures['sanity'][number]): string[] {
  const shown = (value: number) => (unit.startsWith('share') ? formatPercent(value) : formatQuantity(value, unit));
  return [help, shown(simulated), shown(bound), ok ? '✓ agrees' : '✗ disagrees'];
}

const classColumns = [
  'Class',
  'TTFT p50',
  'p99',
  'TPOT p50',
  'p99',
  'E2E p50',
  'p99',
  'requests/s',
  'tokens/s',
  'goodput/s',
  'attainment',
];
const classRunColumns = ['Class', 'arrived', 'completed', 'deadlines missed'];

function classRow(of: ClassReport): string[] {
  return [
    of.name,
    ...[of.ttft_ms, of.tpot_ms, of.e2e_ms].flatMap((d) => [formatTime(d.p50), formatTime(d.p99)]),
    ...[of.requests_per_s, of.output_tokens_per_s, of.goodput_per_s].map((rate) => formatNumber(rate)),
    of.attainment === null ? '–' : formatPercent(of.attainment),
  ];
}

function classRunRow(of: ClassRun): string[] {
  return [
    of.name,
    ...[of.arrived, of.completed].map(formatCount),
    of.deadline_misses === null ? '–' : formatCount(of.deadline_misses),
  ];
}

function distributionRow(label: string, distribution: Distribution): string[] {
  return [
    label + (distribution.exact ? '' : ' (about)'),
    formatCount(distribution.n) +
      (distribution.censored > 0 ? ` (${formatCount(distribution.censored)} unfinished)` : ''),
    ...statistics.map((name) => formatTime(distribution[name])),
  ];
}

const shownElsewhere = new Set([
  'schema',
  'verdict',
  'scenario',
  'latency_model',
  'sanity',
  'evidence',
  'model_error',
  'unfit',
  'time_split',
  'classes',
  'replicas',
  'pools',
  'kv_transfer',
  ...[...distributions, ...gaps].map(([key]) => key as string),
]);

interface Row {
  readonly group: GroupId;
  readonly label: string;
  readonly value: string;
}

function flatten(report: Report): readonly Row[] {
  const rows: Row[] = [];
  // `whole`: the figure whose interval or band this is; its ends have its unit.
  const walk = (value: Json, path: readonly string[], named = path, whole?: readonly string[]): void => {
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) walk(item, [...path, String(index + 1)]);
    } else if (isObject(value)) {
      const key = ['share', 'value_ms', 'served_per_s'].find((each) => each in value);
      const within = key === undefined ? whole : [...path, key];
      for (const [key, item] of Object.entries(value).filter(
        ([key]) => path[0] !== 'first_run' || !shownElsewhere.has(key),
      )) {
        const own = [...path, key];
        walk(item, own, within && ['low', 'high'].includes(key) ? within : own, within);
      }
    } else {
      const text = valueText(named, value as null | boolean | number | string);
      rows.push({ group: groupOf(path), label: labelOf(path, report), value: text });
    }
  };
  for (const [key, value] of Object.entries(report)) {
    if (!shownElsewhere.has(key) && (report.finished || key !== 'fingerprint')) walk(value as Json, [key]);
  }
  return rows;
}

/** The label has these already: "J per output token". */
const labelled = new Set(['J', 'kWh', 'kg']);

function valueText(path: readonly string[], value: null | boolean | number | string): string {
  if (value === null) return '–';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'string') return value === '' ? '–' : value;
  const key = path.at(-1);
  if (key === 'probability' && (value > 0.99 || value < 0.01)) return value > 0.5 ? '> 99\u202f%' : '< 1\u202f%';
  if (key === 'probability') return levelText(value);
  if (key === 'limit_ms') return formatGivenTime(value);
  const unit = unitOf(path);
  if (unit === 'ms') return formatTime(value);
  if (unit === 's') return formatTime(value * 1000);
  if (unit === 'share') return formatPercent(value);
  if (unit === 'W' || unit === 'GiB') return `${formatNumber(value)}\u202f${unit}`;
  const text = Number.isInteger(value) ? formatCount(value) : formatNumber(value);
  return unit === undefined || labelled.has(unit) ? text : `${text}\u202f${unit}`;
}

/** As the engine describes the figure, in one run or in all. */
function unitOf(path: readonly string[]): string | undefined {
  const named = path.filter((part) => part !== 'first_run' && !/^\d+$/.test(part));
  // Of a list by name, such as shares of constraints, the list's.
  return figureUnits[named.join('.')] ?? figureUnits[named.slice(0, -1).join('.')];
}

export class NumbersElement extends PlainElement {
  static override properties = { report: { attribute: false } };
  declare report: Report | null;

  constructor() {
    super();
    this.report = null;
  }

  protected override render(): TemplateResult | typeof nothing {
    return this.report ? renderNumbers(this.report) : nothing;
  }
}

addStyles(styles);
customElements.define('sc-numbers', NumbersElement);

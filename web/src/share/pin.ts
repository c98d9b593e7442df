// The author's result in a link, about 60 characters behind the scenario:
//   v=<schema>.<engine version>   r=<verdict>,<value of each target>   f=<fingerprint>
// Values are whole millionths, of a second or, for a share, of one; "-" where there is none: both the page
// and the command (host/link.cpp) write them, to the same digit. Fetched with the first pinned link.
import type { Report } from 'servecast';

export interface Pin {
  readonly schema: number;
  readonly engine_version: string;
  /** A verdict's state, as reports name it; one of a later engine may be unknown here. */
  readonly state: string;
  readonly values: readonly (number | null)[];
  readonly fingerprint: string;
}

const mostValues = 32;

/** Of a report that is finished; "" of one that is not: a part of a run cannot be made again. */
export function pinOf(report: Report): string {
  if (!report.finished) return '';
  const values = report.slo.map(({ metric, value_ms: ms, share, unbounded }) => {
    const value = metric === 'attainment' ? millionths(share, 1e6) : millionths(ms, 1e3);
    return value === null || unbounded ? '-' : String(value);
  });
  const result = [report.verdict.state, ...values].join(',');
  return `v=${report.schema}.${report.engine_version}&r=${result}&f=${report.fingerprint}`;
}

function millionths(value: number | null | undefined, factor: number): number | null {
  return value === null || value === undefined ? null : Math.floor(value * factor + 0.5);
}

/** null: it is cut short, damaged, or of a form that nobody released. */
export function readPin(text: string): Pin | null {
  const found = /^v=(\d{1,4})\.([0-9A-Za-z.+-]{1,24})&r=([a-z_]{1,32})((?:,(?:\d{1,15}|-))*)&f=([0-9a-f]{16})$/.exec(
    text,
  );
  if (!found) return null;
  const [, schema = '', version = '', state = '', list = '', fingerprint = ''] = found;
  const values = list.split(',').slice(1);
  if (values.length > mostValues) return null;
  return {
    schema: Number(schema),
    engine_version: version,
    state,
    values: values.map((value) => (value === '-' ? null : Number(value))),
    fingerprint,
  };
}

export interface Difference {
  readonly what: 'schema' | 'engine' | 'verdict' | 'target' | 'fingerprint';
  /** Of a target: its place in the list. */
  readonly index: number;
}

/** What of the author's result another run did not give; [] when the bits are the same. */
export function differences(pin: Pin, own: Pin): readonly Difference[] {
  const found: Difference[] = [];
  const say = (what: Difference['what'], differs: boolean, index = 0) => differs && found.push({ what, index });
  say('schema', pin.schema !== own.schema);
  say('engine', pin.engine_version !== own.engine_version);
  say('verdict', pin.state !== own.state);
  for (let index = 0; index < Math.max(pin.values.length, own.values.length); index += 1)
    say('target', pin.values[index] !== own.values[index], index);
  say('fingerprint', pin.fingerprint !== own.fingerprint);
  return found;
}

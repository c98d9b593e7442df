// A link as others' pages and shells take it. Names come from the scenario, which anybody may have written: each is escaped
// for where it stands.
import type { Report } from 'servecast';
import { formatGivenTime, formatTime } from '../lib/format';
import type { EmbedOptions } from './embed-options';

export type EmbedLook = Pick<EmbedOptions, 'ui' | 'theme' | 'autorun' | 'knobs' | 'lock'>;

export interface Shared {
  /** Where the page is, with its last slash. */
  readonly site: string;
  /** What stands after "#". */
  readonly link: string;
  readonly title: string;
  /** Without a finished run there is no sentence. */
  readonly report: Report | null;
}

/** What an embed takes in a column of 600 px, px; in a wider one it takes less. With each knob two lines more. The whole one
    has the author's result, too. */
const heights: Readonly<Record<EmbedLook['ui'], number>> = { compact: 86, chart: 538, 'what-if': 152, full: 1495 };
const heightOf = ({ ui, knobs, lock }: EmbedLook): number =>
  heights[ui] + (lock || knobs.length === 0 ? 0 : 44 * knobs.length + (ui === 'full' ? 18 : 0));

/** For HTML, and for MDX, where braces would be code. */
const markup = (text: string) =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll('{', '&#123;')
    .replaceAll('}', '&#125;');
const oneLine = (text: string) => text.replaceAll(/\s+/g, ' ').trim();

export const addressOf = ({ site, link }: Shared): string => `${site}#${link}`;
const sentenceOf = ({ report, title }: Shared) =>
  oneLine(report?.verdict.sentence ?? `${title}: a forecast by Servecast.`);

export function markdownOf(shared: Shared): string {
  const escaped = (text: string) => text.replaceAll(/[\\`*_{}[\]<>#|!~]/g, (letter) => `\\${letter}`);
  const address = addressOf(shared).replaceAll('(', '%28').replaceAll(')', '%29').replaceAll(' ', '%20');
  return `[${escaped(oneLine(shared.title))}](${address}): ${escaped(sentenceOf(shared))}`;
}

function optionsOf({ ui, theme, autorun, knobs, lock }: EmbedLook): readonly (readonly [string, string])[] {
  const paths = knobs.map((pointer) => pointer.slice(1).replaceAll('/', '.')).join(',');
  return [
    ['ui', ui],
    ...(autorun === 'visible' ? [] : [['autorun', autorun] as const]),
    ...(theme === 'auto' ? [] : [['theme', theme] as const]),
    ...(lock ? [['lock', '1'] as const] : []),
    ...(paths === '' || lock ? [] : [['knobs', paths] as const]),
  ];
}

export function iframeOf(shared: Shared, look: EmbedLook): string {
  const said = optionsOf(look).map(([name, value]) => `&${name}=${value}`);
  const source = `${shared.site}embed.html#${shared.link}${said.join('')}`;
  return `<iframe src="${markup(source)}" title="${markup(oneLine(shared.title))}" width="100%" height="${heightOf(look)}" style="border:0" loading="lazy"></iframe>`;
}

/**
 * With what stands there where no script runs: the sentence, a link, and each target with its limit. In a div, as Python's
 * Markdown (MkDocs) puts elements that it does not know into a paragraph, which ends at the first one within.
 */
export function elementOf(shared: Shared, look: EmbedLook): string {
  const said = optionsOf(look).map(([name, value]) => ` ${name}="${markup(value)}"`);
  const rows = (shared.report?.slo ?? []).flatMap((slo) => {
    const { metric, percentile, limit_ms: limit, value_ms: value, low, high } = slo;
    if (limit === null) return [];
    const interval = low === null || high === null ? '' : `${formatTime(low)} to ${formatTime(high)}`;
    return [
      `    <tr><th>${metric.toUpperCase()} p${percentile}</th><td>${formatTime(value)}</td><td>${interval}</td><td>${formatGivenTime(limit)}</td></tr>`,
    ];
  });
  const table =
    rows.length === 0
      ? []
      : [
          '  <table><tbody>',
          '    <tr><th></th><th>value</th><th>95 % interval</th><th>limit</th></tr>',
          ...rows,
          '  </tbody></table>',
        ];
  const fingerprint = shared.report ? [`  <p>Fingerprint <code>${shared.report.fingerprint}</code></p>`] : [];
  return [
    '<div>',
    `<script async src="${markup(shared.site)}servecast-embed.js"></script>`,
    `<servecast-embed scenario="${markup(shared.link)}"${said.join('')}>`,
    `  <p>${markup(sentenceOf(shared))} <a href="${markup(addressOf(shared))}">Open in Servecast</a></p>`,
    ...table,
    ...fingerprint,
    '</servecast-embed>',
    '</div>',
  ].join('\n');
}

/** For a POSIX shell. */
export function commandOf(shared: Shared, trace: string | null): string {
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  return `servecast link open ${quoted(shared.link)}${trace === null ? '' : ` --trace ${quoted(trace === '' ? 'FILE' : trace)}`}`;
}

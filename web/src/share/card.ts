// A forecast as a picture, SVG text: title, verdict, numbers, the tail of a latency, and how to check it. It is made of
// shapes and text alone, in both themes' light colours, and every text is escaped.
import type { Report } from 'servecast';
import { formatGivenTime, formatNumber, formatTime, sentence } from '../lib/format';
import { decidingTarget } from '../lib/targets';

const width = 960;
const height = 504;
const left = 48;
/** The smallest text: 12 px in the dialog of sharing, which shows the card at 670 px. */
const small = 18;
const mostAddress = 84;
const ink = '#14181f';
const quiet = '#5e6876';
const colours: Readonly<Record<string, string>> = {
  meets: '#006b4e',
  near: '#7a5000',
  misses: '#a83700',
  overloaded: '#a83700',
};
const shapes: Readonly<Record<string, string>> = {
  meets: 'M-9 1l6 6L10-6',
  near: 'M-10 3c3-6 6-6 10-1s7 2 10-3',
  misses: 'M-7-7L7 7M7-7L-7 7',
  overloaded: 'M-8 0L0-8 8 0M-8 8L0 0 8 8',
};

// Whatever XML has no letter for is left out.
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are they
const unprintable = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Surrogate}/gu;

const markup = (text: string) =>
  text
    .replaceAll(unprintable, '')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');

/** By words; the last line says that there is more. */
export function wrapped(text: string, most: number, lines: number): readonly string[] {
  const found: string[] = [];
  for (const word of text.split(/\s+/).flatMap((each) => each.match(new RegExp(`.{1,${most}}`, 'gu')) ?? [])) {
    const last = found.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= most) found[found.length - 1] = `${last} ${word}`;
    else found.push(word);
  }
  return found.length <= lines ? found : [...found.slice(0, lines - 1), `${found[lines - 1]}…`];
}

function text(x: number, y: number, size: number, content: string, more = ''): string {
  return `<text x="${x}" y="${y}" font-size="${size}" ${more}>${markup(content)}</text>`;
}

type Latency = Report['slo'][number] & { readonly limit_ms: number };

/** Latency over the share of requests on a scale of nines, with the limit as a line. */
function tail(
  report: Report,
  columns: Readonly<Record<string, Float64Array>>,
  box: readonly [number, number, number, number],
): string {
  const target = decidingTarget(report.slo.filter((slo): slo is Latency => slo.limit_ms !== null)) as
    | Latency
    | undefined;
  const metric = target?.metric ?? 'ttft';
  const shares = columns['cdf_fraction'] ?? new Float64Array(0);
  const values = columns[`cdf_${metric}_ms`] ?? new Float64Array(0);
  const [x, y, wide, high] = box;
  const at = (share: number) => x + (wide * Math.min(3, -Math.log10(1 - share) - Math.log10(2))) / (3 - Math.log10(2));
  const points = [...shares].flatMap((share, index) => {
    const value = values[index] ?? NaN;
    return share >= 0.5 && share <= 0.999 && Number.isFinite(value) ? [[share, value] as const] : [];
  });
  if (points.length < 2) return '';
  const top = 1.1 * Math.max(target?.limit_ms ?? 0, ...points.map(([, value]) => value));
  const down = (value: number) => y + high - (high * value) / top;
  const path = points.map(([share, value]) => `${at(share).toFixed(1)} ${down(value).toFixed(1)}`).join('L');
  const ticks = [0.5, 0.9, 0.99, 0.999].map((share) =>
    text(
      at(share),
      y + high + 22,
      small,
      `p${Number((share * 100).toPrecision(4))}`,
      `fill="${quiet}" text-anchor="middle"`,
    ),
  );
  // Said above: inside, it would lie on the curve where that is near.
  const [limit, said] =
    target === undefined
      ? ['', '']
      : [
          `<path d="M${x} ${down(target.limit_ms).toFixed(1)}h${wide}" stroke="${ink}" stroke-dasharray="4 4"/>`,
          `dashed: limit ${formatGivenTime(target.limit_ms)} at p${target.percentile}`,
        ];
  const name =
    text(x, y - 38, small, `${metric.toUpperCase()}, by share of requests`, `fill="${quiet}"`) +
    text(x, y - 14, small, said, `fill="${quiet}"`);
  return `<g>${name}<path d="M${x} ${y}v${high}h${wide}" fill="none" stroke="#788391"/>${limit}<path d="M${path}" fill="none" stroke="#0072b2" stroke-width="2.5"/>${ticks.join('')}</g>`;
}

/** Of a report that is finished; `address`: the link by which it can be checked, shown whole where there is room. */
export function cardOf(
  title: string,
  report: Report,
  columns: Readonly<Record<string, Float64Array>>,
  address: string,
): string {
  const { state } = report.verdict;
  const colour = colours[state] ?? quiet;
  const words = sentence(report.verdict.sentence);
  const lines = wrapped(words, 57, 3).map((line, index) =>
    text(left + 48, 106 + index * 34, 26, line, 'font-weight="600"'),
  );
  const figures = report.slo
    .filter(({ limit_ms: limit }) => limit !== null)
    .slice(0, 2)
    .map(({ metric, percentile, value_ms: value, limit_ms: limit, unbounded, band, ...sampling }) => {
      const { low, high } = band ?? sampling;
      return [
        `${metric.toUpperCase()} p${percentile}`,
        unbounded ? 'no bound' : formatTime(value),
        `limit ${formatGivenTime(limit)}`,
        unbounded || low === null || high === null ? '' : `${formatTime(low)} to ${formatTime(high)}`,
      ];
    });
  figures.push(['Output per GPU', formatNumber(report.output_tokens_per_s_per_gpu), 'tokens/s']);
  const tiles = figures.map(
    ([name = '', value = '', note = '', interval = ''], index) =>
      `<g>${text(left, 234 + index * 72, small, name, `fill="${quiet}"`)}${text(left, 266 + index * 72, 30, value)}${text(left + 150, 266 + index * 72, small, note, `fill="${quiet}"`)}${text(left + 150, 244 + index * 72, small, interval, `fill="${quiet}"`)}</g>`,
  );
  const plain = address.replace(/^https?:\/\//, '');
  const place = plain.length <= mostAddress ? plain : `${plain.split('#')[0]}#…`;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" fill="${ink}" role="img" aria-label="${markup(words)}">
<title>${markup(title)}</title>
<rect width="${width}" height="${height}" fill="#ffffff"/><rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" fill="none" stroke="#dadee4"/>
${text(left, 52, 20, wrapped(title, 84, 1)[0] ?? '', `fill="${quiet}"`)}
<g transform="translate(${left + 14} 98)" fill="none" stroke="${colour}" stroke-width="3"><circle r="18" stroke-width="2"/><path d="${shapes[state] ?? 'M-8 0H8'}"/></g>
${lines.join('\n')}
${tiles.join('\n')}
${tail(report, columns, [440, 244, 460, 144])}
<a href="${markup(address)}">${text(left, height - 46, small, place, `fill="${ink}" text-decoration="underline"`)}</a>
${text(left, height - 20, small, `engine ${report.engine_version} · fingerprint ${report.fingerprint}`, `fill="${quiet}"`)}
</svg>
`;
}

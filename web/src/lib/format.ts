// How numbers read on the page: three significant digits, thousands separated, a thin space before
// the unit at which no line breaks, times switching unit at 1,000. Never used for what crosses to the engine.
const thin = '\u202f';
const missing = '–';

/** Making a formatter takes longer than a hundred uses of one. */
const formatters = new Map<number, Intl.NumberFormat>();

/** With so many decimals at least and at most, thousands separated. */
export function decimalText(value: number, least: number, most: number): string {
  const key = least * 100 + most;
  const known = formatters.get(key);
  if (known) return known.format(value);
  const made = new Intl.NumberFormat('en-US', { minimumFractionDigits: least, maximumFractionDigits: most });
  formatters.set(key, made);
  return made.format(value);
}

export function formatNumber(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return missing;
  if (value === 0) return '0';
  const rounded = Number(value.toPrecision(digits));
  const magnitude = Math.floor(Math.log10(Math.abs(rounded)));
  if (magnitude < -6) return rounded.toExponential();
  const decimals = Math.max(0, digits - 1 - magnitude);
  return decimalText(rounded, decimals, decimals).replace('-', '−');
}

/** Every digit: for counts, where rounding would lie. */
export function formatCount(value: number | null | undefined): string {
  return value === null || value === undefined || !Number.isFinite(value) ? missing : decimalText(value, 0, 0);
}

export function countOf(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

/** "found -5, allowed 1 to 9000" as people say it: "-5 is not allowed; from 1 to 9,000". Other texts stay. */
export function allowedInWords(message: string): string {
  const [, found, allowed] = /^found (.+), allowed (-?[\d.e+-]+ to .+)$/.exec(message) ?? [];
  if (found === undefined || allowed === undefined) return message;
  const grouped = allowed.replaceAll(/(?<![\d.])\d{4,}(?![\d.])/g, (digits) => formatCount(Number(digits)));
  return `${found.replace(/^-/, '−')} is not allowed; from ${grouped}`;
}

/** A text of the engine's as a sentence, its signs as people write them; no number parts from its unit. */
export function sentence(message: string): string {
  const text = allowedInWords(message);
  // A name of the document's, of a file or a model is none of a sentence's: max_num_seqs, config.json, gpt-oss-120b.
  const upper = /^\w+[_.]\w|^[a-z][\w-]*\d/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1);
  return `${upper}${/[.!?]$/.test(upper) ? '' : '.'}`
    .replaceAll('<=', '≤')
    .replaceAll('>=', '≥')
    .replace(/(\d) x (?=\S)/g, '$1\u00a0×\u00a0')
    .replace(/([\d≤≥]) (?=\d|%|[mµ]?s\b|min\b|h\b|Gi?B)/g, '$1\u00a0');
}

/** The same as the head of a row or of a group: without a full stop. */
export const head = (text: string): string => sentence(text).replace(/\.$/, '');

export function formatQuantity(value: number | null | undefined, unit: string): string {
  const text = formatNumber(value);
  return text === missing || unit === '' ? text : `${text}${thin}${unit}`;
}

export interface Quantity {
  readonly number: string;
  readonly unit: string;
}

const timeUnits: readonly (readonly [string, number])[] = [
  ['µs', 1000],
  ['ms', 1000],
  ['s', 1000],
  ['min', 60],
  ['h', Infinity],
];

/** `ms` is in milliseconds; the unit of the answer is the one that keeps it below 1,000. */
export function timeQuantity(ms: number | null | undefined): Quantity {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return { number: missing, unit: '' };
  let value = ms;
  let index = 1;
  if (value !== 0 && Math.abs(value) < 0.1) {
    value *= 1000;
    index = 0;
  }
  // 999.6 would read "1,000": compare what will be shown.
  while (index < timeUnits.length - 1 && Math.abs(Number(value.toPrecision(3))) >= 1000) {
    value /= index < 2 ? 1000 : 60;
    index += 1;
  }
  return { number: formatNumber(value), unit: timeUnits[index]?.[0] ?? '' };
}

const sizes: Readonly<Record<string, number>> = { µs: 1e-3, ms: 1, s: 1e3, min: 6e4, h: 36e5 };

/** "95.1 to 101": in the unit of the value beside which it stands. */
export function formatInterval(low: number, high: number, of: number): string {
  const size = sizes[timeQuantity(of).unit] ?? 1;
  return `${formatNumber(low / size)} to ${formatNumber(high / size)}`;
}

export function formatTime(ms: number | null | undefined): string {
  const { number, unit } = timeQuantity(ms);
  return unit === '' ? number : `${number}${thin}${unit}`;
}

/** How far a value lies from its limit, of which it is so much: the same words wherever it is said. */
export function marginText(ratio: number): string {
  if (ratio >= 2) return `${formatNumber(ratio, 2)} × the limit`;
  const share = `${formatNumber(Math.abs(1 - ratio) * 100, 2)}${thin}%`;
  return ratio > 1 ? `${share} over` : `${share} to spare`;
}

/** A time that a person gave: no digits that nobody wrote ("20 ms", not "20.0 ms"). */
export function formatGivenTime(ms: number | null | undefined): string {
  const { unit } = timeQuantity(ms);
  if (ms === null || ms === undefined || unit === '') return missing;
  const value = ms / (sizes[unit] ?? 1);
  return `${formatGiven(Number(value.toPrecision(12)))}${thin}${unit}`;
}

/** A number that a person gave, whole, with separators. */
export function formatGiven(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-6)) return String(value);
  return decimalText(value, 0, 12);
}

/** The smallest of 1, 2, 5 times a power of ten that is not below the value. */
export function roundUp(value: number): number {
  const power = Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((digit) => Number(`${digit}e${power}`)).find((each) => each >= value * (1 - 1e-12)) ?? value;
}

/** "20 simulated minutes": words for the footer. */
export function spokenDuration(seconds: number): string {
  if (seconds >= 2 * 3600) return `${formatNumber(seconds / 3600)} simulated hours`;
  if (seconds >= 120) return `${formatNumber(seconds / 60)} simulated minutes`;
  return `${formatNumber(seconds)} simulated seconds`;
}

/** Of a probability, or a level of confidence: no more digits than it has. */
export function levelText(share: number): string {
  return `${Math.round(share * 100)}${thin}%`;
}

export function formatPercent(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return missing;
  return `${formatNumber(share * 100)}${thin}%`;
}

/** GiB; what is less than a tenth of one, in MiB. */
export function formatGib(gib: number): string {
  return gib > 0 && gib < 0.1 ? `${formatNumber(gib * 1024)}${thin}MiB` : `${formatNumber(gib)}${thin}GiB`;
}

export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let value = bytes;
  let index = 0;
  while (value >= 1000 && index < units.length - 1) {
    value /= 1000;
    index += 1;
  }
  return `${index === 0 ? formatCount(value) : formatNumber(value)}${thin}${units[index] ?? ''}`;
}

/** What a person types: "2,000", " 14 ", "1e3"; undefined when it is not one number. */
export function readNumber(text: string): number | undefined {
  const plain = text.replace(/[\s_]/g, '').replace(/,(?=\d{3}(\D|$))/g, '');
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(plain)) return undefined;
  const value = Number(plain);
  return Number.isFinite(value) ? value : undefined;
}

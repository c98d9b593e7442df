import { describe, expect, it } from 'vitest';
import {
  allowedInWords,
  countOf,
  formatBytes,
  formatCount,
  formatGib,
  formatGiven,
  formatGivenTime,
  formatNumber,
  formatPercent,
  formatQuantity,
  formatTime,
  marginText,
  readNumber,
  roundUp,
  sentence,
  spokenDuration,
} from './format';

const plain = (text: string) => text.replaceAll('\u202f', ' ');

describe('what is allowed', () => {
  it.each([
    ['found -5, allowed 0.000001 to 1000000 req/s', '−5 is not allowed; from 0.000001 to 1,000,000 req/s'],
    ['found 1e+300, allowed 1 to 5000000', '1e+300 is not allowed; from 1 to 5,000,000'],
    ['found "eagle", allowed "none" here', 'found "eagle", allowed "none" here'],
  ])('%s', (message, text) => expect(allowedInWords(message)).toBe(text));
  it.each(['max_num_seqs is the limit', 'gpt-oss-120b on 1 GPU meets its target'])(
    '%s: a name stays as it is',
    (text) => expect(sentence(text)).toBe(`${text}.`),
  );
});

describe('numbers', () => {
  it.each([
    [0, '0'],
    [41.234, '41.2'],
    [551.9, '552'],
    [1763.4, '1,760'],
    [0.4249, '0.425'],
    [999.7, '1,000'],
    [-12.345, '−12.3'],
    [1e-9, '1e-9'],
    [123456789, '123,000,000'],
  ])('Number_%f_HasThreeDigits', (value, text) => expect(formatNumber(value)).toBe(text));

  it.each([null, undefined, Number.NaN, Infinity])('Number_%s_IsADash', (value) =>
    expect(formatNumber(value)).toBe('–'),
  );

  it.each([
    [0, '0 ms'],
    [0.05, '50.0 µs'],
    [41.2, '41.2 ms'],
    [999.4, '999 ms'],
    [999.6, '1.00 s'],
    [552_000, '552 s'],
    [1_200_000, '20.0 min'],
    [86_400_000, '24.0 h'],
    [null, '–'],
  ])('Time_%s_SwitchesUnitAtAThousand', (ms, text) => expect(plain(formatTime(ms))).toBe(text));

  it.each([
    [20, '20 ms'],
    [0.5, '0.5 ms'],
    [0.05, '50 µs'],
    [1500, '1.5 s'],
    [12_345.6, '12.3456 s'],
    [1_200_000, '20 min'],
    [null, '–'],
  ])('GivenTime_%s_HasNoDigitsThatNobodyWrote', (ms, text) => expect(plain(formatGivenTime(ms))).toBe(text));
  it.each([
    [2000, '2,000'],
    [0.9, '0.9'],
    [1e300, '1e+300'],
    [1e-9, '1e-9'],
  ])('Given_%s', (value, text) => expect(formatGiven(value)).toBe(text));
  it.each([
    [1, 1],
    [1.01, 2],
    [22.8, 50],
    [0.3, 0.5],
    [663, 1000],
  ])('RoundUp_%f', (value, up) => expect(roundUp(value)).toBe(up));

  it('Count_KeepsEveryDigit', () => expect(formatCount(19366)).toBe('19,366'));
  it('Quantity_HasThinSpace', () => expect(formatQuantity(1763, 'tokens/s')).toBe('1,760\u202ftokens/s'));
  it('Percent_OfShare', () => expect(plain(formatPercent(0.2213))).toBe('22.1 %'));
  it.each([
    [70.2, '70.2 GiB'],
    [0.009766, '10.0 MiB'],
    [0, '0 GiB'],
  ])('Gib_%f', (gib, text) => expect(plain(formatGib(gib))).toBe(text));
  it.each([
    [0.66, '34 % to spare'],
    [1.012, '1.2 % over'],
    [1.343, '34 % over'],
    [2.3, '2.3 × the limit'],
    [79.5, '80 × the limit'],
  ])('Margin_%f', (ratio, text) => expect(plain(marginText(ratio))).toBe(text));
  it('Bytes_SwitchUnit', () => expect(plain(formatBytes(1_234_567))).toBe('1.23 MB'));
  it('Spoken_Minutes', () => expect(spokenDuration(1200)).toBe('20.0 simulated minutes'));

  it.each([
    ['2,000', 2000],
    [' 14 ', 14],
    ['1e3', 1000],
    ['.5', 0.5],
    ['-3', -3],
    ['1 000', 1000],
  ])('Read_%s', (text, value) => expect(readNumber(text)).toBe(value));

  it.each(['', 'abc', 'NaN', 'Infinity', '1,2', '0x10', '1e999', '12 ms', '--1'])('Read_%s_IsNoNumber', (text) =>
    expect(readNumber(text)).toBeUndefined(),
  );
});

describe('words', () => {
  it.each([
    ['meets TTFT p99 <= 800 ms with a margin of 31 %', 'Meets TTFT p99 ≤~800~ms with a margin of 31~%.'],
    ['It needs 140.1 GiB; 2 of 4 requests wait 3 s.', 'It needs 140.1~GiB; 2 of 4 requests wait 3~s.'],
    ['TTFT p99 is 77.7 min, E2E p99 is 2 h.', 'TTFT p99 is 77.7~min, E2E p99 is 2~h.'],
    ['5 samples and 3 hits', '5 samples and 3 hits.'],
    ['found -5, allowed 1 to 9000 ms', '−5 is not allowed; from 1 to 9,000~ms.'],
  ])('Sentence_%s_KeepsNumbersWithTheirUnits', (text, words) =>
    expect(sentence(text)).toBe(words.replaceAll('~', '\u00a0')),
  );
  it('CountOf_One_IsSingular', () => {
    expect(countOf(1, 'request')).toBe('1 request');
    expect(countOf(19_366, 'request')).toBe('19,366 requests');
    expect(countOf(2, 'field needs', 'fields need')).toBe('2 fields need');
  });
});

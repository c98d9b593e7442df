import { deflateSync, strToU8 } from 'fflate';
import { describe, expect, it } from 'vitest';
import { decodeLink, encodeLink } from './link';

const text = '{"model":{"preset":"llama-3.1-8b"},"name":"Ünïcode “quotes”","schema":1}';

function packed(bytes: Uint8Array): string {
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
  return `z1.${btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`;
}

describe('links', () => {
  it('Packed_RoundTrip_GivesTheText', () => {
    expect(decodeLink(`#${encodeLink(text, null)}`)).toEqual({ kind: 'packed', text, trace_name: null });
  });
  it('Packed_WithTrace_NamesTheFileOnly', () => {
    const link = encodeLink(text, 'my trace & more.csv.gz');
    expect(link).not.toContain(' ');
    expect(decodeLink(link)).toEqual({ kind: 'packed', text, trace_name: 'my trace & more.csv.gz' });
  });
  it('Packed_UsesOnlyFragmentSafeLetters', () => {
    expect(encodeLink(text, null)).toMatch(/^z1\.[A-Za-z0-9_-]+$/);
  });
  it('Readable_IsHandedOnAsItIs', () => {
    const fragment = 'p=llama-3.1-8b-h100-chat&workload.arrivals.rate_per_s=14';
    expect(decodeLink(`#${fragment}`)).toEqual({ kind: 'readable', text: fragment });
  });
  it('Empty_IsNone', () => {
    expect(decodeLink('')).toEqual({ kind: 'none' });
    expect(decodeLink('#')).toEqual({ kind: 'none' });
  });
  it.each([
    ['cut short', encodeLink(text, null).slice(0, 30)],
    ['not base64url', 'z1.<script>'],
    ['nothing', 'z1.'],
    ['noise', 'z1.AAAA____zzzz'],
    ['bad escape in the trace name', `${encodeLink(text, null)}&trace=%E0%A4%A`],
    ['a later grammar', 'z9.AAAA'],
  ])('Hostile_%s_IsUnreadable', (_name, fragment) => {
    expect(decodeLink(fragment).kind).toBe('unreadable');
  });
  it('Hostile_Bomb_IsRefusedWithoutUnpackingAll', () => {
    const bomb = packed(deflateSync(new Uint8Array(50_000_000), { level: 9 }));
    const begin = performance.now();
    expect(decodeLink(bomb)).toMatchObject({ kind: 'unreadable', reason: expect.stringContaining('more than') });
    expect(performance.now() - begin).toBeLessThan(500);
  });
  it('Hostile_HugeFragment_IsRefused', () => {
    expect(decodeLink('p='.padEnd(300_000, 'x')).kind).toBe('unreadable');
  });
  it('Text_JustBelowTheLimit_IsRead', () => {
    const long = `"${'x'.repeat(200_000)}"`;
    expect(decodeLink(packed(deflateSync(strToU8(long))))).toMatchObject({ kind: 'packed', text: long });
  });
});

import { describe, expect, it } from 'vitest';
import { encodeLink, holds } from './encode';
import { decodeLink } from './link';

const text = '{"model":{"preset":"llama-3.1-8b"},"name":"Ünïcode “quotes”","schema":1}';

function packed(bytes: Uint8Array): string {
  const binary = Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
  return `z1.${btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')}`;
}

async function deflated(bytes: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

describe('links', async () => {
  it('Packed_RoundTrip_GivesTheText', async () => {
    expect(await decodeLink(`#${await encodeLink(text, null)}`)).toEqual({
      kind: 'packed',
      text,
      trace_name: null,
      pin: '',
    });
  });
  it('Packed_WithTrace_NamesTheFileOnly', async () => {
    const link = await encodeLink(text, 'my trace & more.csv.gz');
    expect(link).not.toContain(' ');
    expect(await decodeLink(link)).toEqual({ kind: 'packed', text, trace_name: 'my trace & more.csv.gz', pin: '' });
  });
  it('Packed_UsesOnlyFragmentSafeLetters', async () => {
    expect(await encodeLink(text, null)).toMatch(/^z1\.[A-Za-z0-9_-]+$/);
  });
  it('Readable_IsHandedOnAsItIs', async () => {
    const fragment = 'p=llama-3.1-8b-h100-chat&workload.arrivals.rate_per_s=14';
    expect(await decodeLink(`#${fragment}`)).toEqual({ kind: 'readable', text: fragment, pin: '' });
  });
  it('Readable_WithPinAndOptionsOfAnEmbed_IsTheScenarioAlone', async () => {
    const pin = 'v=1.0.1.0&r=meets,95120&f=0123456789abcdef';
    expect(await decodeLink(`#p=a&b.c=1&ui=chart&lock=1&${pin}&knobs=x.y`)).toEqual({
      kind: 'readable',
      text: 'p=a&b.c=1',
      pin,
    });
    expect(await decodeLink('#ui=compact')).toEqual({ kind: 'none' });
  });
  it('Empty_IsNone', async () => {
    expect(await decodeLink('')).toEqual({ kind: 'none' });
    expect(await decodeLink('#')).toEqual({ kind: 'none' });
  });
  it.each([
    ['cut short', (await encodeLink(text, null)).slice(0, 30)],
    ['not base64url', 'z1.<script>'],
    ['nothing', 'z1.'],
    ['noise', 'z1.AAAA____zzzz'],
    ['bad escape in the trace name', `${await encodeLink(text, null)}&trace=%E0%A4%A`],
    ['a later grammar', 'z9.AAAA'],
  ])('Hostile_%s_IsUnreadable', async (_name, fragment) => {
    expect((await decodeLink(fragment)).kind).toBe('unreadable');
  });
  it('Hostile_Bomb_IsRefusedWithoutUnpackingAll', async () => {
    const bomb = packed(await deflated(new Uint8Array(50_000_000)));
    const begin = performance.now();
    expect(await decodeLink(bomb)).toMatchObject({ kind: 'unreadable', reason: expect.stringContaining('more than') });
    expect(performance.now() - begin).toBeLessThan(500);
  });
  it('Hostile_HugeFragment_IsRefused', async () => {
    expect((await decodeLink('p='.padEnd(300_000, 'x'))).kind).toBe('unreadable');
  });
  it('Text_JustBelowTheLimit_IsRead', async () => {
    const long = `"${'x'.repeat(200_000)}"`;
    expect(await decodeLink(packed(await deflated(new TextEncoder().encode(long))))).toMatchObject({
      kind: 'packed',
      text: long,
    });
  });
  it('ACopiedLink_SaysWhatItHolds_AndThatATraceIsNotInIt', () => {
    expect(holds('https://x/#z1.A', null)).toMatch(
      /^the whole scenario in 15 characters\. It is compressed, not encrypted/,
    );
    expect(holds('https://x/#p=a', null)).toMatch(/characters\. It is not encrypted/);
    expect(holds('https://x/#p=a', 'day.csv')).toMatch(/The trace day\.csv is not in it/);
  });
});

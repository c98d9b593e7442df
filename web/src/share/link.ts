// Scenario links: the text after "#". Two grammars, one decoder:
//   z1.<base64url(deflate-raw(canonical text))>[&trace=<file name>]     what the page writes
//   p=<preset>&path.to.field=value...                                   what people write
// Traces never go into links; the name says which file a reader needs. All input is hostile here:
// lengths are bounded before work is done, and nothing is trusted to be a scenario.
import { Inflate, deflateSync, strFromU8, strToU8 } from 'fflate';

export type DecodedLink =
  | { readonly kind: 'none' }
  | { readonly kind: 'packed'; readonly text: string; readonly trace_name: string | null }
  | { readonly kind: 'readable'; readonly text: string }
  | { readonly kind: 'unreadable'; readonly reason: string };

const prefix = 'z1.';
const maxFragment = 256 * 1024;
const maxText = 256 * 1024;
/** Deflate grows at most about 1,032 times: a slice of this size cannot surprise us by much. */
const inflateSlice = 512;

export function encodeLink(canonicalText: string, traceName: string | null): string {
  const packed = deflateSync(strToU8(canonicalText), { level: 9 });
  const suffix = traceName === null ? '' : `&trace=${encodeURIComponent(traceName)}`;
  return `${prefix}${toBase64Url(packed)}${suffix}`;
}

export function decodeLink(fragment: string): DecodedLink {
  const text = fragment.startsWith('#') ? fragment.slice(1) : fragment;
  if (text === '') return { kind: 'none' };
  if (text.length > maxFragment) return { kind: 'unreadable', reason: 'The link is longer than any scenario.' };
  if (!text.startsWith(prefix)) {
    if (/^z\d+\./.test(text)) return { kind: 'unreadable', reason: 'The link is of a newer kind than this page knows.' };
    return { kind: 'readable', text };
  }
  const [body = '', ...rest] = text.slice(prefix.length).split('&');
  try {
    const document = inflateBounded(fromBase64Url(body));
    return { kind: 'packed', text: document, trace_name: traceNameOf(rest) };
  } catch (error) {
    const reason = error instanceof LinkTooLarge ? 'The link unpacks to more than any scenario needs.' : 'The link is cut short or damaged.';
    return { kind: 'unreadable', reason };
  }
}

class LinkTooLarge extends Error {}

function traceNameOf(parameters: readonly string[]): string | null {
  const found = parameters.find((part) => part.startsWith('trace='));
  return found === undefined ? null : decodeURIComponent(found.slice('trace='.length)).slice(0, 200);
}

function inflateBounded(packed: Uint8Array): string {
  const parts: Uint8Array[] = [];
  let total = 0;
  let complete = false;
  const inflate = new Inflate((chunk, final) => {
    total += chunk.length;
    if (total > maxText) throw new LinkTooLarge();
    parts.push(chunk);
    complete = final;
  });
  for (let offset = 0; offset < packed.length; offset += inflateSlice) {
    const end = offset + inflateSlice;
    inflate.push(packed.subarray(offset, end), end >= packed.length);
  }
  if (!complete) throw new Error('incomplete');
  const bytes = new Uint8Array(total);
  let offset = 0;
  for (const part of parts) {
    bytes.set(part, offset);
    offset += part.length;
  }
  return strFromU8(bytes);
}

function toBase64Url(bytes: Uint8Array): string {
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

function fromBase64Url(text: string): Uint8Array {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) throw new Error('not base64url');
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
}

// Scenario links: the text after "#". Two grammars, one decoder:
//   z1.<base64url(deflate-raw(canonical text))>[&trace=<file name>]     what the page writes
//   p=<preset>&path.to.field=value...                                   what people write
// Behind both may stand the author's result, &v=&r=&f= (share/pin.ts), and how an embed looks, &ui= and
// others (share/embed-options.ts). Traces never go into links; the name says which file a reader needs.
// What starts with a prefix that was released is read for ever (tests/links). All input is hostile here:
// lengths are bounded before work is done, and nothing is trusted to be a scenario.

export type DecodedLink =
  | { readonly kind: 'none' }
  /** `pin`: "v=...&r=...&f=...", as it stands in the link; "": none. */
  | { readonly kind: 'packed'; readonly text: string; readonly trace_name: string | null; readonly pin: string }
  | { readonly kind: 'readable'; readonly text: string; readonly pin: string }
  | { readonly kind: 'unreadable'; readonly reason: string };

export const prefix = 'z1.';
const maxFragment = 256 * 1024;
const maxText = 256 * 1024;
const ofPin = /^[vrf]=/;
/** What is no part of a scenario. */
const aside = /^([vrf]|ui|metric|autorun|theme|lock|knobs)=/;

export async function decodeLink(fragment: string): Promise<DecodedLink> {
  const text = fragment.startsWith('#') ? fragment.slice(1) : fragment;
  if (text.length > maxFragment) return { kind: 'unreadable', reason: 'The link is longer than any scenario.' };
  const parts = text.split('&');
  const pin = parts.filter((part) => ofPin.test(part)).join('&');
  if (!text.startsWith(prefix)) {
    if (/^z\d+\./.test(text))
      return { kind: 'unreadable', reason: 'The link is of a newer kind than this page knows.' };
    const asked = parts.filter((part) => !aside.test(part)).join('&');
    return asked === '' ? { kind: 'none' } : { kind: 'readable', text: asked, pin };
  }
  const [body = '', ...rest] = parts;
  try {
    const unpacked = through(fromBase64Url(body.slice(prefix.length)), new DecompressionStream('deflate-raw'));
    const document = new TextDecoder('utf-8', { fatal: true }).decode(await bytesOf(unpacked, maxText));
    return { kind: 'packed', text: document, trace_name: traceNameOf(rest), pin };
  } catch (error) {
    const reason =
      error instanceof LinkTooLarge
        ? 'The link unpacks to more than any scenario needs.'
        : 'The link is cut short or damaged.';
    return { kind: 'unreadable', reason };
  }
}

class LinkTooLarge extends Error {}

function traceNameOf(parameters: readonly string[]): string | null {
  const found = parameters.find((part) => part.startsWith('trace='));
  return found === undefined ? null : decodeURIComponent(found.slice('trace='.length)).slice(0, 200);
}

export function through(
  bytes: Uint8Array<ArrayBuffer>,
  transform: ReadableWritablePair<Uint8Array, BufferSource>,
): ReadableStream<Uint8Array> {
  return new Blob([bytes]).stream().pipeThrough(transform);
}

/** All of a stream; gives up as soon as it is longer than `most`. */
export async function bytesOf(stream: ReadableStream<Uint8Array>, most: number): Promise<Uint8Array> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let total = 0;
  const reader = stream.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    total += next.value.length;
    if (total > most) {
      await reader.cancel();
      throw new LinkTooLarge();
    }
    parts.push(next.value as Uint8Array<ArrayBuffer>);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  if (!/^[A-Za-z0-9_-]+$/.test(text)) throw new Error('not base64url');
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
}

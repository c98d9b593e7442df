// Scenario links: the text after "#". Two grammars, one decoder:
//   z1.<base64url(deflate-raw(canonical text))>[&trace=<file name>]     what the page writes
//   p=<preset>&path.to.field=value...                                   what people write
// Traces never go into links; the name says which file a reader needs. All input is hostile here:
// lengths are bounded before work is done, and nothing is trusted to be a scenario.

export type DecodedLink =
  | { readonly kind: 'none' }
  | { readonly kind: 'packed'; readonly text: string; readonly trace_name: string | null }
  | { readonly kind: 'readable'; readonly text: string }
  | { readonly kind: 'unreadable'; readonly reason: string };

export const prefix = 'z1.';
const maxFragment = 256 * 1024;
const maxText = 256 * 1024;

export async function decodeLink(fragment: string): Promise<DecodedLink> {
  const text = fragment.startsWith('#') ? fragment.slice(1) : fragment;
  if (text === '') return { kind: 'none' };
  if (text.length > maxFragment) return { kind: 'unreadable', reason: 'The link is longer than any scenario.' };
  if (!text.startsWith(prefix)) {
    if (/^z\d+\./.test(text))
      return { kind: 'unreadable', reason: 'The link is of a newer kind than this page knows.' };
    return { kind: 'readable', text };
  }
  const [body = '', ...rest] = text.slice(prefix.length).split('&');
  try {
    const unpacked = through(fromBase64Url(body), new DecompressionStream('deflate-raw'));
    const document = new TextDecoder('utf-8', { fatal: true }).decode(await bytesOf(unpacked, maxText));
    return { kind: 'packed', text: document, trace_name: traceNameOf(rest) };
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

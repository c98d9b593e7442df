// Writes the packed grammar of share/link.ts. Fetched with the first link.
import { bytesOf, prefix, through } from './link';

export async function encodeLink(canonicalText: string, traceName: string | null): Promise<string> {
  const packed = await bytesOf(
    through(new TextEncoder().encode(canonicalText), new CompressionStream('deflate-raw')),
    Infinity,
  );
  const suffix = traceName === null ? '' : `&trace=${encodeURIComponent(traceName)}`;
  return `${prefix}${toBase64Url(packed)}${suffix}`;
}

/** The link with this result of its author; what it carried before is gone. "": without one. */
export function withPin(link: string, pin: string): string {
  const bare = link.split('&').filter((part) => !/^[vrf]=/.test(part));
  return [...bare, ...(pin === '' ? [] : [pin])].join('&');
}

function toBase64Url(bytes: Uint8Array): string {
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
}

/** What a link holds and what it lacks; `trace`: the file that its scenario replays, "" when that has no name yet. */
export function holds(link: string, trace: string | null): string {
  const whole = `the whole scenario in ${link.length.toLocaleString('en-US')} characters.`;
  const open = `It is ${link.includes(`#${prefix}`) ? 'compressed, not encrypted' : 'not encrypted'}: whoever has the link can read it.`;
  return trace === null
    ? `${whole} ${open}`
    : `${whole} ${open} The trace${trace && ` ${trace}`} is not in it: send the file along.`;
}

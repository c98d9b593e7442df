// The page's module as tests load it.
import { readFileSync } from 'node:fs';

export const root = new URL('../../', import.meta.url);

export async function load() {
  const { default: create } = await import(new URL('build/wasm/servecast.mjs', root));
  return create({ wasmBinary: readFileSync(new URL('build/wasm/servecast.wasm', root)) });
}

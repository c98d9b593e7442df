// The module, compiled and made; and why it could not be.
import type { InstantiateOptions } from 'servecast';

/** Of what is fetched: browsers' own words are none for people. */
export function inWords(error: unknown): string {
  if (error instanceof TypeError) return 'there is no connection';
  return error instanceof Error ? error.message : String(error);
}

/** Streams and compiles while it downloads; servers without the wasm MIME type still work. */
export async function compileModule(url: string): Promise<WebAssembly.Module> {
  const response = await fetch(url).catch((error: unknown) => {
    throw new Error(inWords(error));
  });
  if (!response.ok) throw new Error(`the engine could not be loaded (${response.status})`);
  if (response.headers.get('content-type')?.startsWith('application/wasm')) {
    return WebAssembly.compileStreaming(response);
  }
  return WebAssembly.compile(await response.arrayBuffer());
}

export function instantiate<Module>(
  create: (options?: InstantiateOptions) => Promise<Module>,
  compiled: WebAssembly.Module,
): Promise<Module> {
  // instantiateWasm is Emscripten's own hook: the page compiles once, every worker shares that.
  return create({
    instantiateWasm(imports: WebAssembly.Imports, done: (instance: WebAssembly.Instance) => void) {
      void WebAssembly.instantiate(compiled, imports).then(done);
      return {};
    },
  });
}

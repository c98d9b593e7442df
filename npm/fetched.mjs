// Presets where there is no file system: beside this file. A bundler sees the pattern and takes them with it.
export async function fetchedPreset(path) {
  const [, kind, name] = path.match(/^presets\/(\w+)\/([\w.-]+)\.json$/) ?? [];
  const response = await fetch(new URL(`./presets/${kind}/${name}.json`, import.meta.url));
  if (!response.ok) throw new Error(`${path} could not be loaded: the server answered ${response.status}`);
  return response.text();
}

/** Of the synchronous variant, which cannot fetch. */
export function handedPreset(path) {
  throw new Error(`this scenario needs ${path}: give createServecastSync a function \`files\` that returns its text`);
}

export function noWholeModule() {
  throw new Error('this needs the whole engine: import createServecastSync from servecast/full');
}

export function handedProgram() {
  throw new Error(
    'createServecastSync needs `wasm`, the bytes of ./engine/servecast-first.wasm or a WebAssembly.Module',
  );
}

declare module 'servecast.wasm?url' {
  export const url: string;
  export default url;
}

declare module 'servecast-first.wasm?url' {
  export const url: string;
  export default url;
}

declare module 'servecast-first' {
  import type { FirstModule, InstantiateOptions } from 'servecast';
  const createFirst: (options?: InstantiateOptions) => Promise<FirstModule>;
  export default createFirst;
}

declare module '*.css?inline' {
  const text: string;
  export default text;
}

/** Of the files of presets/ as they were built: a new version is not read from a cache (vite.config.ts). */
declare const presetsVersion: string;

declare module 'servecast.wasm?url' {
  export const url: string;
  export default url;
}

declare module '*.css?inline' {
  const text: string;
  export default text;
}

/** Of the files of presets/ as they were built: a new version is not read from a cache (vite.config.ts). */
declare const presetsVersion: string;

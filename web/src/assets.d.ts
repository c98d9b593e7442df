declare module 'servecast.wasm?url' {
  export const url: string;
  export default url;
}

declare module '*.css?inline' {
  const text: string;
  export default text;
}

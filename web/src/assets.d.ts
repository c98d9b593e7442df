declare module 'servecast.wasm?url' {
  export const url: string;
  export default url;
}

declare module 'servecast.wasm?url' {
  export const url: string;
  export default url;
}
declare module 'servecast-full.wasm?url' {
  export const url: string;
  export default url;
}
declare module 'servecast-full' {
  export { default } from 'servecast';
}

declare module '*.css?inline' {
  const text: string;
  export default text;
}

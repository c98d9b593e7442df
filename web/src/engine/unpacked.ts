/** What is read of a person's file: as it is, or unpacked where it begins like gzip. */
export interface Unpacked {
  readonly gzip: boolean;
  readonly reader: ReadableStreamDefaultReader<Uint8Array>;
  /** Bytes of the file itself that were read so far. */
  readonly taken: () => number;
}

/** A damaged gzip file fails as it is read. */
export async function unpacked(file: Blob): Promise<Unpacked> {
  const head = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  const gzip = head[0] === 0x1f && head[1] === 0x8b;
  let taken = 0;
  const counting = new TransformStream<Uint8Array, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      taken += chunk.byteLength;
      controller.enqueue(chunk as Uint8Array<ArrayBuffer>);
    },
  });
  const source = file.stream().pipeThrough(counting);
  const stream: ReadableStream<Uint8Array> = gzip ? source.pipeThrough(new DecompressionStream('gzip')) : source;
  return { gzip, reader: stream.getReader(), taken: () => taken };
}

// The same operations in a worker, so that a page stays live while a scenario runs.
import { ServecastError } from './servecast.mjs';

const names = ['catalog', 'presets', 'preset', 'validate', 'canonical', 'run', 'advise', 'plan'];

/** `wasm`, when given: what a worker can be sent, an address or a WebAssembly.Module. */
export async function createServecastWorker({ wasm } = {}) {
  const worker = new Worker(new URL('./worker-thread.mjs', import.meta.url), { type: 'module' });
  const waiting = new Map();
  let last = 0;
  worker.onmessage = ({ data: { id, kind, value } }) => {
    const asked = waiting.get(id);
    if (kind === 'progress') return void asked?.onProgress?.(value);
    waiting.delete(id);
    if (kind === 'answer') asked?.resolve(value);
    else asked?.reject(value.issues ? new ServecastError(value.issues) : new Error(value.message));
  };
  const broken = (event) => {
    for (const { reject } of waiting.values()) reject(new Error(event.message || 'the worker could not be loaded'));
    waiting.clear();
  };
  worker.onerror = broken;
  const ask = (name, values, onProgress) =>
    new Promise((resolve, reject) => {
      last += 1;
      waiting.set(last, { resolve, reject, onProgress });
      worker.postMessage({ id: last, name, values });
    });
  const version = await ask('open', [{ wasm }]);
  const operations = names.map((name) => [
    name,
    (...values) => {
      const { onProgress, signal, ...options } = values.at(-1) ?? {};
      if (!onProgress && !signal) return ask(name, values);
      signal?.throwIfAborted();
      const answer = ask(name, [...values.slice(0, -1), options], onProgress);
      const id = last;
      signal?.addEventListener('abort', () => worker.postMessage({ id, name: 'abort', values: [] }), { once: true });
      return answer;
    },
  ]);
  return {
    version,
    ...Object.fromEntries(operations),
    terminate() {
      worker.terminate();
      broken({ message: 'ended' });
    },
  };
}

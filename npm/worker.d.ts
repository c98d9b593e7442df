import type { Catalog, Planning, Scenario, Servecast } from './index.js';

export interface WorkerOptions {
  /** What a worker can be sent. */
  readonly wasm?: string | WebAssembly.Module;
}

/** As Servecast, in a worker of its own; options take no trace. */
export interface ServecastWorker extends Omit<Servecast, 'module' | 'catalog' | 'preset' | 'presets'>, Planning {
  catalog(): Promise<Catalog>;
  presets(): Promise<readonly string[]>;
  preset(id: string): Promise<Scenario>;
  /** What is under way rejects. */
  terminate(): void;
}

export function createServecastWorker(options?: WorkerOptions): Promise<ServecastWorker>;

import type { OpenOptions, OpenSyncOptions, Planning, PlanningSync, Servecast, ServecastSync } from './index.js';
import type { ServecastModule } from './engine/servecast.js';

export * from './index.js';

export function createServecast(options?: OpenOptions): Promise<Servecast<ServecastModule> & Planning>;
export function createServecastSync(options?: OpenSyncOptions): ServecastSync<ServecastModule> & PlanningSync;

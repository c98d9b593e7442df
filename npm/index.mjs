import create from './engine/servecast-first.mjs';
import { fetchedPreset, handedPreset, handedProgram, noWholeModule } from './fetched.mjs';
import { opener, syncOpener } from './servecast.mjs';

const program = () => new URL('./engine/servecast-first.wasm', import.meta.url);
const whole = async () => ({
  create: (await import('./engine/servecast.mjs')).default,
  wasm: new URL('./engine/servecast.wasm', import.meta.url),
});

export const createServecast = opener(create, program, fetchedPreset, whole);
export const createServecastSync = syncOpener(create, handedProgram, handedPreset, noWholeModule);
export { ServecastError } from './servecast.mjs';

import create from './engine/servecast.mjs';
import { fetchedPreset, handedPreset, handedProgram } from './fetched.mjs';
import { opener, syncOpener } from './servecast.mjs';

const program = () => new URL('./engine/servecast.wasm', import.meta.url);

export const createServecast = opener(create, program, fetchedPreset);
export const createServecastSync = syncOpener(create, handedProgram, handedPreset);
export { ServecastError } from './servecast.mjs';

import create from './engine/servecast-first.mjs';
import { readPreset, readProgram } from './files.mjs';
import { opener, syncOpener } from './servecast.mjs';

const program = () => readProgram('servecast-first');

export const createServecast = opener(create, program, readPreset);
export const createServecastSync = syncOpener(create, program, readPreset);
export { ServecastError } from './servecast.mjs';

import create from './engine/servecast.mjs';
import { readPreset, readProgram } from './files.mjs';
import { opener, syncOpener } from './servecast.mjs';

const program = () => readProgram('servecast');

export const createServecast = opener(create, program, readPreset);
export const createServecastSync = syncOpener(create, program, readPreset);
export { ServecastError } from './servecast.mjs';

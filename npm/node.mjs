import create from './engine/servecast-first.mjs';
import createWhole from './engine/servecast.mjs';
import { readPreset, readProgram } from './files.mjs';
import { opener, syncOpener } from './servecast.mjs';

const program = () => readProgram('servecast-first');
const whole = () => ({ create: createWhole, wasm: readProgram('servecast') });

export const createServecast = opener(create, program, readPreset, async () => whole());
export const createServecastSync = syncOpener(create, program, readPreset, whole);
export { ServecastError } from './servecast.mjs';

// The command that tests run: the optimised one, or that of SERVECAST_COMMAND.
import { fileURLToPath } from 'node:url';

const root = new URL('../', import.meta.url);

export const command = fileURLToPath(new URL(process.env.SERVECAST_COMMAND ?? 'build/release/servecast', root));
const sanitized = (process.env.SERVECAST_COMMAND ?? '').startsWith('build/dev/');
/** Why a limit on the address space cannot be tried; false where it can. */
export const boundless = sanitized && 'sanitizers take terabytes of addresses';
/** Why what takes a minute with sanitizers is left to `./dev test all`, whose command has none; false there. */
export const slow = sanitized && 'a minute with sanitizers: ./dev test all has it';

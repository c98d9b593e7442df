// The command that tests run: the optimised one, or that of SERVECAST_COMMAND.
import { fileURLToPath } from 'node:url';

const root = new URL('../', import.meta.url);

export const command = fileURLToPath(new URL(process.env.SERVECAST_COMMAND ?? 'build/release/servecast', root));
/** Why a limit on the address space cannot be tried; false where it can. */
export const boundless =
  (process.env.SERVECAST_COMMAND ?? '').startsWith('build/dev/') && 'sanitizers take terabytes of addresses';

// The command as the tests of links ask it.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { command } from '../command.mjs';

export const isBuilt = existsSync(command);

/** {status, stdout, stderr} of `servecast link WORDS...`. */
export function link(words, input = '') {
  const { status, stdout, stderr } = spawnSync(command, ['link', ...words], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    input,
  });
  return { status, stdout, stderr };
}

// Under node: the module's program and its presets beside this file.
import { readFileSync } from 'node:fs';

export const readProgram = (name) => readFileSync(new URL(`./engine/${name}.wasm`, import.meta.url));

export function readPreset(path) {
  if (!/^presets\/\w+\/[\w.-]+\.json$/.test(path)) throw new Error(`${path} is not a preset`);
  return readFileSync(new URL(path, import.meta.url), 'utf8');
}

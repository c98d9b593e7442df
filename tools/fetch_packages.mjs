// node fetch_packages.mjs FOLDER NAME VERSION INTEGRITY...: packages of npm's registry, or of the mirror that npm is told of,
// into FOLDER/node_modules, as npm would put them there. Any Node does, also one too old for npm or without it.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';

function registry() {
  if (process.env.npm_config_registry) return process.env.npm_config_registry;
  for (const file of [`${homedir()}/.npmrc`, '/etc/npmrc']) {
    try {
      const [, address] = readFileSync(file, 'utf8').match(/^registry\s*=\s*(\S+)/m) ?? [];
      if (address) return address;
    } catch {
      // none
    }
  }
  return 'https://registry.npmjs.org';
}

const [folder, ...words] = process.argv.slice(2);
while (words.length > 0) {
  const [name, version, integrity] = words.splice(0, 3);
  const address = `${registry().replace(/\/$/, '')}/${name}/-/${name}-${version}.tgz`;
  const answer = await fetch(address, { signal: AbortSignal.timeout(120_000) });
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  const packed = Buffer.from(await answer.arrayBuffer());
  const found = `sha512-${createHash('sha512').update(packed).digest('base64')}`;
  if (found !== integrity) throw new Error(`${address}: found ${found}, allowed ${integrity}`);
  const into = `${folder}/node_modules/${name}`;
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into, { recursive: true });
  execFileSync('tar', ['-xzf', '-', '--strip-components=1', '-C', into], { input: packed });
}

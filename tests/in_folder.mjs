// A folder that is gone when its user is done.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** `use` gets what makes a path in it, of a file with `content` if there is any, and the folder. */
export function inFolder(use) {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  try {
    return use((name, content) => {
      const path = join(folder, name);
      if (content !== undefined) writeFileSync(path, content);
      return path;
    }, folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

// A static host in miniature: a built site under a path, every request remembered.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';

const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.wasm': 'application/wasm',
  '.txt': 'text/plain; charset=utf-8',
};
export const subPath = '/some/path/';

export async function serve(folder, under = subPath) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const path = decodeURIComponent(new URL(request.url ?? '/', 'http://localhost').pathname);
    requests.push(path);
    const asked = path.slice(under.length);
    const inside = path.startsWith(under) ? normalize(/(^|\/)$/.test(asked) ? `${asked}index.html` : asked) : '..';
    try {
      if (inside.startsWith('..')) throw new Error('outside');
      const body = await readFile(join(folder, inside));
      response.writeHead(200, { 'content-type': types[extname(inside)] ?? 'application/octet-stream' });
      response.end(body);
    } catch {
      response.writeHead(404, { 'content-type': 'text/plain' });
      response.end('not found');
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${server.address().port}${under}`;
  return { url, requests, close: () => server.close() };
}

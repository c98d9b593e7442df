// Serves a built site as a static host would: `node serve.mjs FOLDER [PORT]` prints one address.
// Takes the next free port when PORT is taken. Sends no header that a plain host would not, so what
// works here works there.
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, resolve, sep } from 'node:path';

const types = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.txt': 'text/plain; charset=utf-8',
  '.wasm': 'application/wasm',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
};

const folder = resolve(process.argv[2] ?? '.');
const firstPort = Number(process.argv[3] ?? 8080);
const lastPort = firstPort + 100;

function fileFor(url) {
  let path;
  try {
    path = decodeURIComponent(new URL(url, 'http://localhost').pathname);
  } catch {
    return null;
  }
  if (path.includes('\0')) return null;
  let file = join(folder, path);
  if (file !== folder && !file.startsWith(folder + sep)) return null;
  try {
    if (statSync(file).isDirectory()) file = join(file, 'index.html');
    return statSync(file).isFile() ? file : null;
  } catch {
    return null;
  }
}

function answer(request, response) {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.writeHead(405, { Allow: 'GET, HEAD' }).end();
    return;
  }
  const file = fileFor(request.url ?? '/');
  if (file === null) {
    response.writeHead(404, { 'Content-Type': 'text/plain; charset=utf-8' }).end('Not found\n');
    return;
  }
  response.writeHead(200, {
    'Content-Type': types[extname(file).toLowerCase()] ?? 'application/octet-stream',
    'Content-Length': statSync(file).size,
    'Cache-Control': 'no-cache',
  });
  if (request.method === 'HEAD') response.end();
  else
    createReadStream(file)
      .on('error', () => response.destroy())
      .pipe(response);
}

function listen(host, port) {
  return new Promise((done, fail) => {
    const server = createServer(answer);
    server.once('error', fail);
    server.listen(port, host, () => done(server));
  });
}

// "localhost" is either of two addresses: hold both, or another server could answer in our place.
async function listenOnBoth(port) {
  const first = await listen('127.0.0.1', port);
  try {
    await listen('::1', port);
  } catch (error) {
    if (error.code !== 'EADDRINUSE') return; // no IPv6 here
    first.close();
    throw error;
  }
}

if (!statSync(join(folder, 'index.html'), { throwIfNoEntry: false })) {
  console.error(`${folder} has no index.html: build the site first (./dev build)`);
  process.exit(1);
}
for (let port = firstPort; ; ++port) {
  try {
    await listenOnBoth(port);
    console.log(`http://localhost:${port}/`);
    break;
  } catch (error) {
    if ((error.code !== 'EADDRINUSE' && error.code !== 'EACCES') || port === lastPort) {
      console.error(`no free port from ${firstPort} to ${lastPort}: ${error.message}`);
      process.exit(1);
    }
  }
}

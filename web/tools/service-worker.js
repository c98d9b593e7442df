// The page without a connection. Built into sw.js by vite.config.ts, which puts in what stands in capitals: a version made
// of the contents of all files, and their names. A first visit fetches them when its verdict is there; each version has a
// cache of its own, so that a page and its parts are always of one. The version before is kept for pages that still show it.
const name = 'servecast-VERSION';
const files = FILES;
const scope = self.registration.scope;

/** Files whose addresses are made of their contents, or of their version, never change. */
const isHashed = (file) => /^(assets|embed)\/|\?/.test(file);

async function install() {
  const cache = await caches.open(name);
  // One after the other: whatever the page asks for meanwhile goes first.
  for (const file of files) {
    const address = new URL(file, scope);
    const known = isHashed(file) ? await caches.match(address) : undefined;
    const found = known ?? (await fetch(address, isHashed(file) ? {} : { cache: 'no-cache' }));
    // A host may serve the page without the texts that its footer leads to.
    if (!found.ok && file.endsWith('.txt')) continue;
    if (!found.ok) throw new Error(`${file}: ${found.status}`);
    await cache.put(address, found);
  }
  await self.skipWaiting();
}

async function activate() {
  const names = (await caches.keys()).filter((each) => each.startsWith('servecast-') && each !== name);
  await Promise.all(names.slice(0, -1).map((each) => caches.delete(each)));
  await self.clients.claim();
}

async function answer(request) {
  const { pathname } = new URL(request.url);
  const root = new URL(scope).pathname;
  const asked = pathname === root || pathname === `${root}index.html` ? scope : request;
  const own = await caches.open(name);
  // A page of the version before finds its own parts and presets there; only the page itself may be asked for with more.
  return (
    (await own.match(asked)) ??
    (await caches.match(asked)) ??
    (request.mode === 'navigate' ? await own.match(asked, { ignoreSearch: true }) : undefined) ??
    fetch(request)
  );
}

self.addEventListener('install', (event) => event.waitUntil(install()));
self.addEventListener('activate', (event) => event.waitUntil(activate()));
self.addEventListener('fetch', (event) => {
  if (event.request.method === 'GET' && event.request.url.startsWith(scope)) event.respondWith(answer(event.request));
});

// The worker of worker.mjs: it has the whole module, and answers each message by its id.
import { createServecast } from './full.mjs';

let servecast = null;
const underWay = new Map();

self.onmessage = async ({ data: { id, name, values } }) => {
  if (name === 'abort') return void underWay.get(id)?.abort();
  const reply = (kind, value) => self.postMessage({ id, kind, value });
  try {
    if (name === 'open') {
      servecast = await createServecast(Object.fromEntries(Object.entries(values[0]).filter(([, each]) => each)));
      return reply('answer', servecast.version);
    }
    if (!['run', 'advise', 'plan'].includes(name)) return reply('answer', await servecast[name](...values));
    const asked = name === 'plan' ? 2 : 1;
    const abort = new AbortController();
    underWay.set(id, abort);
    const more = { ...values[asked], signal: abort.signal, onProgress: (progress) => reply('progress', progress) };
    reply('answer', await servecast[name](...values.slice(0, asked), more));
  } catch (error) {
    reply('error', { message: error instanceof Error ? error.message : String(error), issues: error.issues });
  } finally {
    underWay.delete(id);
  }
};

// A server of /v1/completions that behaves as asked, and breaks as asked.
import { createServer } from 'node:http';

const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const event = (value) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;
const chunk = (text, reason = null) => event({ choices: [{ index: 0, text, finish_reason: reason }] });
const usage = (prompt, output) => event({ choices: [], usage: { prompt_tokens: prompt, completion_tokens: output } });

/** Streams an answer of `tokens` chunks: the first after `firstMs`, each other `tokenMs` after the one before. */
async function stream(response, tokens, { firstMs, tokenMs }) {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  for (let i = 0; i < tokens && !response.destroyed; ++i) {
    await wait(i === 0 ? firstMs : tokenMs);
    response.write(chunk(' a'));
  }
}

/** What a server may do with a request instead of answering it. */
const breaks = {
  429: (response) =>
    response.writeHead(429, { 'retry-after': '0' }).end(JSON.stringify({ error: { message: 'queue is full' } })),
  503: (response) => response.writeHead(503).end('starting'),
  500: (response) => response.writeHead(500).end(JSON.stringify({ detail: 'no memory' })),
  // As careless servers do.
  401: (response) =>
    response
      .writeHead(401)
      .end(JSON.stringify({ error: { message: `wrong key: ${response.req.headers.authorization}` } })),
  reset: (response) => response.socket.resetAndDestroy(),
  // Closed, not reset: a reset may take back what was not read yet.
  async half(response, tokens, law) {
    await stream(response, Math.ceil(tokens / 2), law);
    response.socket.end();
  },
  // Ends as it should, but for what was promised.
  async early(response, tokens, law) {
    await stream(response, Math.ceil(tokens / 2), law);
    response.end();
  },
  async error(response, _tokens, law) {
    await stream(response, 1, law);
    response.end(event({ error: { message: 'engine died', code: 500 } }));
  },
  // Whole, as some servers end it.
  async undone(response, tokens, law) {
    await stream(response, tokens - 1, law);
    response.end(chunk(' a', 'length'));
  },
  // The connection stays open behind the last event.
  async open(response, tokens, law) {
    await stream(response, tokens, law);
    response.write(event('[DONE]'));
  },
  whole: (response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"choices": [{"text": "a b c"}]}'),
  garbage: (response) => response.writeHead(200).end('data: {"choices": [\n\ndata: \u0007\n\n'),
  endless(response) {
    response.writeHead(200);
    const more = () => {
      while (!response.destroyed && response.write(chunk(' a'.repeat(1000))));
      if (!response.destroyed) response.once('drain', more);
    };
    more();
  },
  silent() {},
  // A token, and then nothing.
  stall: (response, _tokens, law) => stream(response, 1, law),
};

/**
 * Starts a server on a free port. `behave(request, response)` says what becomes of each request but warm-ups: a name
 * in `breaks`, or nothing for an answer; it may be a promise. `served` has the requests as they came: body, headers,
 * count at once.
 */
export async function fakeServer({ behave = () => undefined, law = { firstMs: 1, tokenMs: 1 }, warmUp } = {}) {
  const served = [];
  let atOnce = 0;
  let seen = 0;
  const complete = async (request, response, body) => {
    const warm = seen++ === 0;
    const entry = { body, headers: request.headers, atOnce: ++atOnce, path: request.url };
    const leave = () => {
      if (entry.over) return;
      entry.over = true;
      --atOnce;
    };
    response.once('close', leave);
    if (!warm) served.push(entry);
    const broken = breaks[warm ? warmUp : await behave(entry, served.length - 1)];
    if (broken) return broken(response, body.max_tokens, law);
    await stream(response, body.max_tokens, law);
    if (response.destroyed) return;
    const prompt = typeof body.prompt === 'string' ? body.prompt.split(' ').length : body.prompt.length;
    leave();
    response.end(usage(prompt, body.max_tokens) + event('[DONE]'));
  };
  const server = createServer((request, response) => {
    if (request.url === '/v1/models') {
      response.end(JSON.stringify({ data: [{ id: 'a-model' }] }));
      return;
    }
    let text = '';
    request.on('data', (piece) => (text += piece));
    request.on('end', () => complete(request, response, JSON.parse(text)));
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    served,
    stop() {
      server.closeAllConnections();
      server.close();
    },
  };
}

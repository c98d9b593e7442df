// Entry of embed.html, the only page that others may frame: the scenario and the options of its fragment, an engine that
// starts when it is wanted, and the messages to the page around. It stores nothing, and its address stays as it is.
import wasmUrl from 'servecast-first.wasm?url';
import { EngineClient, compileModule } from './engine/client';
import { readOptions } from './share/embed-options';
import { isOf, readSet, resultOf, type FromEmbed } from './share/messages';
import type { Issue } from 'servecast';
import { App, type Surroundings } from './state/app';
import { fieldAt } from './state/fields';
import type { AppState } from './state/store';
import './styles/page.css';
import './styles/embed.css';
import './views/embed';
import type { EmbedElement } from './views/embed';

/** Another embed of the same page may start when this one has an answer, or after so long, counted from its turn. */
const turnMs = 10_000;
const readyEveryMs = 500;
const readyTimes = 40;

const around = window.parent === window ? null : window.parent;
const options = readOptions(location.hash);
const fragment = location.hash;
const element = document.createElement('sc-embed') as EmbedElement;
element.options = options;
element.fragment = fragment;
element.wanted = () => void begin();
document.querySelector('#embed')?.replaceChildren(element);

// --- The engine ----------------------------------------------------------------------------------

const surroundings: Surroundings = {
  readFragment: () => fragment,
  writeFragment: () => undefined,
  readEntry: () => '',
  saveTheme: () => undefined,
};

let begun: Promise<App | null> | null = null;

/** Once, however often it is asked for. */
function begin(): Promise<App | null> {
  element.asked = true;
  begun ??= inTurn(start);
  return begun;
}

async function start(): Promise<App | null> {
  try {
    const worker = () => new Worker(new URL('./engine/worker.ts', import.meta.url), { type: 'module' });
    const engine = new EngineClient(compileModule(wasmUrl), worker, new URL('.', location.href).href);
    const app = new App(engine, surroundings);
    element.app = app;
    // Bands need the whole module, which is fetched once the answer is there.
    if (!(navigator as { connection?: { saveData?: boolean } }).connection?.saveData) app.reasons.askBands();
    app.store.subscribe(() => tell(app));
    await app.start();
    return app;
  } catch {
    // A sandbox without allow-same-origin has no workers.
    element.failure = 'This frame may not run the simulator.';
    post({ kind: 'error', message: element.failure });
    return null;
  }
}

/** The element gives its frames turns; whoever is framed without it has none to wait for. */
function permitted(): Promise<void> {
  if (around === null || window.name !== 'servecast-turn') return Promise.resolve();
  return new Promise((resolve) => {
    addEventListener('message', ({ source, data }) => source === around && isOf('turn', data) && resolve());
    post({ kind: 'turn' });
  });
}

/** Engines of one page start one after the other, where an element, or the browser, lets embeds know of each other. */
async function inTurn(act: () => Promise<App | null>): Promise<App | null> {
  await permitted();
  let done: Promise<App | null> | null = null;
  const once = () => (done ??= act());
  try {
    await new Promise<void>((resolve, reject) => {
      void navigator.locks
        .request('servecast-engine', async () => {
          resolve();
          const done = once().then((app) => app && answered(app));
          await Promise.race([done, new Promise((pass) => setTimeout(pass, turnMs))]);
        })
        .catch(reject);
    });
  } catch {
    // No locks here: then nobody waits.
  }
  return once();
}

function answered(app: App): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      const { run, shown } = app.store.state;
      if (run.kind === 'running' || (run.kind === 'idle' && shown?.completeness === 'coarse')) return;
      resolve();
      unsubscribe();
    };
    const unsubscribe = app.store.subscribe(look);
    look();
  });
}

if (options.autorun === '1') void begin();
else if (options.autorun === 'visible') {
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
    observer.disconnect();
    void begin();
  });
  observer.observe(document.documentElement);
}
// The page around gives another scenario, or other options.
addEventListener('hashchange', () => location.reload());

// --- Messages ------------------------------------------------------------------------------------

/** To whoever frames it: a message holds what its frame shows, and nothing of the reader. */
function post(message: FromEmbed): void {
  around?.postMessage({ type: 'servecast', v: 1, ...message }, '*');
}

let said: unknown = null;
let height = 0;

/** With the setting that it is about. */
const inWords = ({ path, message }: Issue) =>
  path.startsWith('/') ? `${path.slice(1).replaceAll('/', '.')}: ${message}` : message;

function errorOf({ failure, link_problem: problem, run }: AppState): string | null {
  if (failure !== null) return failure;
  if (problem) return [problem.message, ...problem.issues.slice(0, 1).map(inWords)].join(' ');
  if (run.kind === 'broken') return run.message;
  if (run.kind !== 'refused') return null;
  if (run.reason === 'trace_missing') return 'This scenario replays a trace, which no link carries.';
  return run.issues[0] ? inWords(run.issues[0]) : run.reason;
}

/** What is new of a run. */
function tell(app: App): void {
  const { run, shown } = app.store.state;
  const error = errorOf(app.store.state);
  if (error !== null) {
    if (said !== error) post({ kind: 'error', message: error });
    said = error;
  } else if (run.kind === 'running') {
    if (run.slow) post({ kind: 'progress', progress: run.progress });
  } else if (shown?.completeness === 'final' && said !== shown.outcome) {
    said = shown.outcome;
    post({ kind: 'result', ...resultOf(shown.outcome.report) });
  }
}

async function receive(event: MessageEvent): Promise<void> {
  if (around === null || event.source !== around) return;
  const change = readSet(event.data);
  if (!change) return;
  if (!heard) sayAgain();
  if (change.theme) element.options = { ...element.options, theme: change.theme };
  if (change.values.size === 0 || options.lock) {
    const problem = change.problem || (change.values.size > 0 ? 'This embed is locked: nothing can be changed.' : '');
    if (problem !== '') post({ kind: 'error', message: problem });
    return;
  }
  const app = await begin();
  if (!app) return;
  for (const [pointer, value] of change.values) {
    const { source } = app;
    if (source && fieldAt(source, pointer)) app.setValue(pointer, value, 'dragging');
    else post({ kind: 'error', message: `There is no setting ${pointer.slice(1).replaceAll('/', '.')}.` });
  }
}

/** Somebody listens from now on: what was said before may not have been heard. */
function sayAgain(): void {
  heard = true;
  clearInterval(readyTimer);
  if (height > 0) post({ kind: 'resize', height });
  for (const message of options.problems) post({ kind: 'error', message });
  said = null;
  if (element.app) tell(element.app);
}

let heard = false;
let ready = 0;
const sayReady = () => {
  if ((ready += 1) > readyTimes) clearInterval(readyTimer);
  else post({ kind: 'ready' });
};
const readyTimer = setInterval(sayReady, readyEveryMs);
addEventListener('message', (event) => void receive(event));
sayReady();
for (const message of options.problems) post({ kind: 'error', message });
new ResizeObserver(() => {
  const now = Math.ceil(element.getBoundingClientRect().height);
  if (now !== height) post({ kind: 'resize', height: (height = now) });
}).observe(element);

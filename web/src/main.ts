// Entry: starts the engine before anything else, then puts the page together.
import wasmUrl from 'servecast-first.wasm?url';
import { EngineClient, compileModule } from './engine/client';
import { holdParts } from './lib/part';
import { inTurn } from './lib/turns';
import { App, type Surroundings } from './state/app';
import { Store, initialState, whenAnswered, type ThemeChoice } from './state/store';
import './styles/page.css';
import type { PageElement } from './views/page';

const themeKey = 'servecast-theme';

function savedTheme(): ThemeChoice {
  try {
    const saved = localStorage.getItem(themeKey);
    return saved === 'light' || saved === 'dark' ? saved : 'auto';
  } catch {
    return 'auto';
  }
}

const surroundings: Surroundings = {
  readFragment: () => location.hash,
  writeFragment(fragment, entry, follows) {
    const address = fragment === location.hash.slice(1) ? undefined : `#${fragment}`;
    if (follows) history.pushState({ entry }, '', address);
    else history.replaceState({ entry }, '', address);
  },
  readEntry: () => String((history.state as { entry?: string } | null)?.entry ?? ''),
  saveTheme(theme) {
    try {
      localStorage.setItem(themeKey, theme);
    } catch {
      // Storage may be forbidden: the choice then lasts as long as the page.
    }
  },
};

/** Only embed.html may be in a frame of others: here, whatever they lay over it, there is nothing to press but a link. */
function refuseFrame(): void {
  const link = document.createElement('a');
  Object.assign(link, {
    href: location.href,
    target: '_blank',
    rel: 'noopener',
    textContent: 'Open Servecast in a tab of its own',
  });
  document.querySelector('#page')?.replaceChildren(link);
}

function begin(): void {
  const engine = new EngineClient(
    compileModule(wasmUrl),
    () => new Worker(new URL('./engine/worker.ts', import.meta.url), { type: 'module' }),
    new URL('.', location.href).href,
  );

  const app = new App(engine, surroundings, new Store({ ...initialState, theme: savedTheme() }));
  app.reasons.askBands();
  app.reasons.offerWays();
  // Both come when an address is written by hand; whoever is second finds that the first one has done it.
  for (const kind of ['popstate', 'hashchange']) addEventListener(kind, () => void app.arrive());

  // In a task after it, in which it is drawn.
  const answered = whenAnswered(app.store).then(() => new Promise<void>((resolve) => setTimeout(resolve)));
  holdParts(answered);
  void app.start();
  import('./views/page').then(
    () => {
      const page = document.createElement('sc-page') as PageElement;
      page.app = app;
      document.querySelector('#page')?.replaceChildren(page);
    },
    () => document.querySelector('#loading')?.replaceChildren('The page could not be loaded: there is no connection.'),
  );

  // What a first verdict does not need, the service worker that fetches all the rest with it.
  void answered.then(() =>
    setTimeout(
      () =>
        void import('./later').then(
          ({ begin }) => begin(app),
          () => undefined,
        ),
      100,
    ),
  );
}

// Not from here: what notes where it was asked from (a fetch, a worker) would read all of this file anew for that.
if (window.top === window) void inTurn(begin);
else refuseFrame();

// What comes after the first verdict, when nothing waits for it: the keys of undo and cancel, the page without a
// connection, the tour of a first visit.
import { paper, type ChartElement } from './charts/chart-element';
import './charts/chart-moves';
import { addStyles } from './lib/part';
import { Kept } from './state/kept';
import type { App } from './state/app';
import styles from './styles/later.css?inline';
import { Undo } from './state/undo';

const keptKey = 'servecast-scenarios';

export function begin(app: App): void {
  addStyles(styles);
  app.remember(new Undo());
  app.shelf = new Kept(app.store, (document) => app.linkTo(document), {
    read: () => localStorage.getItem(keptKey),
    write: (text) => localStorage.setItem(keptKey, text),
  });
  app.shelf.watch();
  app
    .plans()
    .then((plans) => {
      plans.keepHeadroom();
      return import('./state/tail-bands').then(({ keepTailBands }) => keepTailBands(app.store, plans));
    })
    .catch(() => undefined);
  addEventListener('keydown', (event) => key(app, event));
  addEventListener('beforeprint', () => print(true));
  addEventListener('afterprint', () => print(false));
  matchMedia('print').addEventListener('change', ({ matches }) => print(matches));
  // Over http elsewhere than on this machine, browsers have none.
  if (import.meta.env.PROD && 'serviceWorker' in navigator)
    navigator.serviceWorker.register(new URL('sw.js', document.baseURI)).catch(() => undefined);
  // On a phone it would lie over the numbers.
  if (seenTour() || innerWidth < 720) return;
  void import('./views/tour').then(
    ({ showTour }) => showTour(rememberTour),
    () => undefined,
  );
}

function print(on: boolean): void {
  paper.on = on;
  for (const chart of document.querySelectorAll<ChartElement>('.chart-host')) chart.resize();
}

const typed = 'input:not([type=range]):not([type=checkbox]), textarea, select, dialog[open]';

function key(app: App, event: KeyboardEvent): void {
  const target = event.target instanceof HTMLElement ? event.target : null;
  const { run } = app.store.state;
  if (event.key === 'Escape' && run.kind === 'running' && run.slow && !target?.closest('dialog[open]')) app.cancel();
  if (event.defaultPrevented || target?.closest(typed)) return;
  if (!(event.ctrlKey || event.metaKey) || event.altKey || event.key.toLowerCase() !== 'z') return;
  event.preventDefault();
  if (event.shiftKey) app.redo();
  else app.undo();
}

const tourKey = 'servecast-tour';

function seenTour(): boolean {
  try {
    return localStorage.getItem(tourKey) !== null;
  } catch {
    return true; // what cannot be remembered would come every time
  }
}

function rememberTour(): void {
  try {
    localStorage.setItem(tourKey, 'seen');
  } catch {
    // Then it was shown for this visit only.
  }
}

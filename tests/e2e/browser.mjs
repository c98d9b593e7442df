// Chromium as the tests use it, and the page as a person sees it: waits are for what is on screen.
import { existsSync } from 'node:fs';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

// The packages are the page's: these scripts lie outside web/ and need none of their own.
const require = createRequire(new URL('../../web/package.json', import.meta.url));
const { chromium } = require('playwright-core');
export const { AxeBuilder } = require('@axe-core/playwright');

export const root = fileURLToPath(new URL('../../', import.meta.url));

function executable() {
  const named = process.env.CHROMIUM || process.env.SERVECAST_CHROMIUM;
  const found =
    named ||
    ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome']
      .map((name) => `/usr/bin/${name}`)
      .find((path) => existsSync(path));
  if (!found) throw new Error('no Chromium: set CHROMIUM to its path');
  return found;
}

const quiet = [
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export async function launch() {
  const profile = mkdtempSync(join(tmpdir(), 'servecast-e2e-'));
  const browser = await chromium.launch({
    executablePath: executable(),
    args: ['--no-sandbox', ...quiet],
    env: { ...process.env, TMPDIR: profile },
  });
  return {
    browser,
    async close() {
      await browser.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

/** Runs before the page's own scripts: notes violations, long tasks, and when the verdict was there. */
function watch() {
  const seen = { violations: [], longest_task_ms: 0, verdict_ms: null, layout_shift: 0 };
  window.seen = seen;
  addEventListener('securitypolicyviolation', (event) =>
    seen.violations.push(`${event.violatedDirective} ${event.blockedURI}`),
  );
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) seen.longest_task_ms = Math.max(seen.longest_task_ms, entry.duration);
  }).observe({ type: 'longtask', buffered: true });
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) seen.layout_shift += entry.value;
  }).observe({ type: 'layout-shift', buffered: true });
  new MutationObserver((_changes, observer) => {
    if (!document.querySelector('[data-complete="final"]')) return;
    seen.verdict_ms = performance.now();
    observer.disconnect();
  }).observe(document, { subtree: true, childList: true, attributes: true });
}

/** As for those who have been here before. */
function dismissTour() {
  try {
    localStorage.setItem('servecast-tour', 'seen');
  } catch {
    // A page without storage, such as about:blank.
  }
}

/**
 * A fresh context and page; `problems` gathers console errors and exceptions. Without the service worker, which fetches
 * everything after a first verdict, unless it is asked for.
 */
export async function openPage(browser, { tour = false, ...options } = {}) {
  const context = await browser.newContext({
    viewport: { width: 1440, height: 1000 },
    serviceWorkers: 'block',
    ...options,
  });
  const page = await context.newPage();
  // Others run beside it: a wait ends when it has what it waits for.
  page.setDefaultTimeout(300_000);
  if (!tour) await page.addInitScript(dismissTour);
  const problems = [];
  const blocked = /registration blocked by Playwright/;
  page.on('console', (message) => {
    const text = message.text();
    if (['error', 'warning'].includes(message.type()) && !blocked.test(text)) problems.push(text);
  });
  page.on('pageerror', (error) => problems.push(String(error)));
  await page.addInitScript(watch);
  return { page, problems, close: () => context.close() };
}

/** Asked twenty times a second: to ask at every frame, as Playwright does, makes the browser draw one. */
const seldom = { timeout: 300_000, polling: 50 };

/** The sentence of the answer to what the form says now: an edit is heard of a moment before the page shows it. */
export async function verdict(page) {
  await page.waitForFunction(
    () => {
      const state = document.querySelector('sc-page')?.app?.store.state;
      const answered = state?.run.kind === 'idle' && state.shown?.completeness === 'final';
      return answered && document.querySelector('[data-complete="final"] .sentence');
    },
    undefined,
    seldom,
  );
  return page.textContent('[data-complete="final"] .sentence');
}

/** The verdict with bands, which takes the place of the first one. */
export async function banded(page) {
  await verdict(page);
  await page.waitForFunction(
    () => document.querySelector('sc-page')?.app?.store.state.shown?.banded,
    undefined,
    seldom,
  );
  await page.locator('.tile .interval.term').first().waitFor();
  return verdict(page);
}
/** Bands along the curves of latencies, some time after the others. */
export async function bandedTail(page) {
  await banded(page);
  await page.waitForFunction(
    () => {
      const { shown, tail_bands: known } = document.querySelector('sc-page').app.store.state;
      return known && known.of === shown?.outcome;
    },
    undefined,
    seldom,
  );
  await page.locator('sc-tail-chart .readout', { hasText: 'Bands: dark sampling' }).waitFor();
}
/** What the verdict rests on, in full. */
export async function sureness(page) {
  const ask = page.locator('#known-error').getByRole('button', { name: 'How sure?' });
  if ((await ask.getAttribute('aria-expanded')) === 'false') await ask.click();
  await page.locator('sc-sure p').waitFor();
  return (await page.textContent('sc-sure')).replaceAll(/\s+/g, ' ');
}
export const problem = (page) =>
  page
    .waitForSelector('[data-state="problem"] .sentence, [data-state="does_not_fit"] .sentence')
    .then((element) => element.textContent());
export const fingerprint = (page) => page.textContent('#fingerprint');
export const field = (page, pointer) => page.locator(`sc-field[data-pointer="${pointer}"]`).first();

/** Ways out, tried; on a busy machine a run takes so long that the page asks before it tries them. */
export async function waysOut(page) {
  const tried = page.locator('.ways-rest');
  const ask = page.locator('.ways').getByRole('button', { name: 'Try them' });
  await tried.or(ask).first().waitFor();
  if (await ask.isVisible()) await ask.click();
  await tried.waitFor();
}

/** Waits until the fingerprint on the page is another one: a new result is shown. */
export async function nextResult(page, before) {
  await page.waitForFunction(
    (old) => {
      const now = document.querySelector('#fingerprint')?.textContent;
      return now && now !== old && document.querySelector('[data-complete="final"]');
    },
    before,
    seldom,
  );
}

export async function dropFile(page, name, bytes) {
  await page.evaluate(
    ({ fileName, base64 }) => {
      const content = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
      const transfer = new DataTransfer();
      transfer.items.add(new File([content], fileName));
      for (const kind of ['dragover', 'drop']) {
        document.body.dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer: transfer }));
      }
    },
    { fileName: name, base64: Buffer.from(bytes).toString('base64') },
  );
}

/** Opens a view by the name on its tab. */
export async function openTab(page, name) {
  const tab = page.getByRole('tab', { name });
  await tab.click();
  return page.locator(`#${await tab.getAttribute('aria-controls')}`);
}

/** Opens one view after the other. */
export async function inEveryTab(page, body) {
  for (const tab of await page.getByRole('tab').all()) {
    await tab.click();
    await page.waitForTimeout(300);
    await body(await tab.innerText());
  }
}

/** Opens all settings, where they are not open yet. */
export async function openSettings(page) {
  const button = page.getByRole('button', { name: 'All settings' });
  if ((await button.getAttribute('aria-expanded')) === 'false') await button.click();
  await page.locator('#settings-search').waitFor();
}

/** Opens, or closes, a group of all settings. */
export async function turnGroup(page, title) {
  await openSettings(page);
  await page.locator('sc-all-settings details > summary', { hasText: title }).click();
}

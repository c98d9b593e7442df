// How soon the page answers: from a slider's event to the verdict and the charts that are redrawn for it, from the first
// event after the load on; the longest task while it loads and while somebody drags for ten seconds; memory after 100 runs.
// Figures are printed beside their targets, never asserted: machines are noisy, and a browser that shares two cores with
// other work is several times as slow as one that does not. `node tests/bench/page.mjs [EVENTS]`
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { launch, openPage, root, verdict } from '../e2e/browser.mjs';
import { serve } from '../e2e/server.mjs';

const events = Number(process.argv[2] ?? 150);
const preset = 'llama-3.1-8b-h100-chat';
const slider = 'sc-field[data-pointer="/workload/arrivals/rate_per_s"] input[type=range]';
const site = await serve(join(root, 'web/dist'));
const { browser, close } = await launch();

const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
const ms = (value) => `${value.toFixed(1)} ms`;
const line = (what, figures, target) => console.log(`${what.padEnd(46)} ${figures.padEnd(58)} ${target}`);

/** In the page: moves the slider, waits until all of an answer is drawn, and goes on at the next frame. */
async function dragged({ selector, count }) {
  const input = document.querySelector(selector);
  const from = Number(input.value);
  const shown = () => document.querySelector('#fingerprint')?.textContent ?? '';
  const times = [];
  const frames = [];
  for (let event = 0; event < count; event += 1) {
    const before = shown();
    const begin = performance.now();
    const drawn = new Promise((resolve) => {
      const look = () => {
        if (shown() === before) return;
        document.removeEventListener('sc-drawn', look);
        resolve();
      };
      document.addEventListener('sc-drawn', look);
    });
    // There and back about where it was, in steps that each change the value.
    input.value = String(from + 4 * (1 + (event % 20)) * (event % 40 < 20 ? -1 : 1));
    input.dispatchEvent(new Event('input', { bubbles: true }));
    await drawn;
    times.push(performance.now() - begin);
    await new Promise(requestAnimationFrame);
    frames.push(performance.now() - begin);
  }
  return { times, frames };
}

async function live(requests, target) {
  const { page, close: done } = await openPage(browser);
  await page.goto(`${site.url}#p=${preset}&workload.requests=${requests}`);
  await verdict(page);
  const { times, frames } = await page.evaluate(dragged, { selector: slider, count: events });
  const state = await page.getAttribute('[data-complete]', 'data-complete');
  const [first] = times;
  const sorted = times.toSorted((a, b) => a - b);
  const painted = frames.toSorted((a, b) => a - b);
  line(
    `${requests.toLocaleString('en-US')} requests, event to redrawn (${state})`,
    `first ${ms(first)}, median ${ms(quantile(sorted, 0.5))}, p95 ${ms(quantile(sorted, 0.95))}, in a frame after ${ms(quantile(painted, 0.5))}`,
    target,
  );
  await done();
}

async function tasks() {
  const { page, close: done } = await openPage(browser);
  await page.goto(site.url);
  await verdict(page);
  await page.waitForTimeout(1000);
  const seen = await page.evaluate(() => window.seen);
  line(
    'Load',
    `verdict ${ms(seen.verdict_ms)}, longest task ${ms(seen.longest_task_ms)}`,
    'verdict 1,000 ms, task 50 ms',
  );
  await page.evaluate(() => {
    window.seen.longest_task_ms = 0;
    window.seen.answers = 0;
    new MutationObserver(() => (window.seen.answers += 1)).observe(document.querySelector('#fingerprint'), {
      characterData: true,
      childList: true,
      subtree: true,
    });
  });
  const box = await page.locator(slider).boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  const begin = performance.now();
  let moves = 0;
  for (; performance.now() - begin < 10_000; moves += 1) {
    await page.mouse.move(box.x + box.width * (0.5 + 0.3 * Math.sin(moves / 40)), box.y + box.height / 2);
    await page.waitForTimeout(8);
  }
  await page.mouse.up();
  const drag = await page.evaluate(() => window.seen);
  line(
    'Drag of 10 s',
    `${moves} moves, ${drag.answers} answers, longest task ${ms(drag.longest_task_ms)}`,
    'task 50 ms',
  );
  await done();
}

/** Of what runs in the browser, MB: the page's heap after a collection, and its process as the system sees it. */
async function memoryOf(page) {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  const { nodes } = await session.send('Memory.getDOMCounters');
  const whole = await browser.newBrowserCDPSession();
  const { processInfo } = await whole.send('SystemInfo.getProcessInfo');
  const resident = processInfo
    .filter(({ type }) => type === 'renderer')
    .map(({ id }) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, 'utf8'))?.[1] ?? 0));
  return { heap: usedSize / 1e6, nodes, process: Math.max(...resident) / 1000 };
}

async function memory() {
  const { page, close: done } = await openPage(browser);
  await page.goto(`${site.url}#p=${preset}&workload.requests=1000`);
  await verdict(page);
  await page.evaluate(dragged, { selector: slider, count: 20 });
  const before = await memoryOf(page);
  await page.evaluate(dragged, { selector: slider, count: 100 });
  const after = await memoryOf(page);
  const change = (name, unit) => `${before[name].toFixed(1)} to ${after[name].toFixed(1)} ${unit}`;
  line(
    'Memory, 20 runs to 120',
    `heap ${change('heap', 'MB')}, process ${change('process', 'MB')}, ${before.nodes} to ${after.nodes} nodes`,
    'steady',
  );
  await done();
}

/** Of a thousand designs, which are drawn as they come. */
async function search() {
  const { page, close: done } = await openPage(browser);
  await page.goto(`${site.url}?view=plan#p=${preset}&workload.arrivals.rate_per_s=40`);
  await verdict(page);
  const card = page.locator('#plan-search');
  await card.getByLabel('limits of the engine').check();
  await page.waitForTimeout(8000);
  await page.evaluate(() => (window.seen.longest_task_ms = 0));
  const begin = performance.now();
  await card.getByRole('button', { name: 'Search' }).click();
  await page.waitForFunction(
    () => document.querySelector('sc-page').app.store.state.search?.kind === 'answered',
    undefined,
    { timeout: 300_000 },
  );
  const seconds = (performance.now() - begin) / 1000;
  const { answer } = await page.$eval('sc-page', ({ app }) => app.store.state.search);
  const { longest_task_ms: longest } = await page.evaluate(() => window.seen);
  line(
    `Search of ${answer.points.length} designs`,
    `${seconds.toFixed(1)} s, longest task ${ms(longest)}`,
    '1,000 in 10 s, task 50 ms',
  );
  await done();
}

await live(1000, 'median 16 ms, p95 33 ms');
await live(10_000, 'median 50 ms');
await live(1_000_000, '');
await tasks();
await memory();
await search();
await close();
site.close();

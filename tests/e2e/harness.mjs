// What every task of the page's tests needs: the built site under a sub-path, Chromium, a line a task
// and the counts.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { AxeBuilder, launch, openPage, openSettings, root } from './browser.mjs';
import { serve } from './server.mjs';

export const preset = 'llama-3.1-8b-h100-chat';
export const site = await serve(join(root, 'web/dist'));
// run.mjs [--main | --others | --alone] [--part=K/N, each Nth task from the Kth on] [part of a task's name]
// Tasks that are `alone` measure times: with one of the others named they are left out.
const words = process.argv.slice(2);
const [want] = words.filter((word) => word.startsWith('--') && !word.startsWith('--part='));
const [only] = words.filter((word) => !word.startsWith('--'));
if (want && !['--main', '--others', '--alone'].includes(want))
  throw new Error(`found ${want}, allowed --main, --others or --alone`);
const [part, parts] = words
  .find((word) => word.startsWith('--part='))
  ?.slice('--part='.length)
  .split('/')
  .map(Number) ?? [1, 1];
if (!(part >= 1 && part <= parts)) throw new Error('found another --part, allowed K/N with K from 1 to N');
let main = true;
let turn = 0;
/** The tasks that follow are not among the main ones. */
export const beginOthers = () => (main = false);
/** Whether the tasks that come now were asked for. */
export const wanted = () => !want || want === '--alone' || main === (want === '--main');
const { browser, close } = await launch();
const counts = { passed: 0, failed: 0, skipped: 0 };

export async function task(name, body, options = {}) {
  const { fragment = '', before, expectsProblems = false, alone = false, ...context } = options;
  if (!wanted() || (want && alone !== (want === '--alone')) || (only && !name.includes(only))) return;
  turn += 1;
  if (turn % parts !== part % parts) return;
  const opened = await openPage(browser, context);
  await before?.(opened.page);
  const begin = performance.now();
  try {
    await opened.page.goto(site.url + fragment);
    const note = (await body(opened.page)) ?? '';
    const seen = await opened.page.evaluate(() => window.seen);
    assert.deepEqual(seen.violations, [], 'violations of the content security policy');
    if (!expectsProblems) assert.deepEqual(opened.problems, [], 'console errors and warnings');
    counts.passed += 1;
    console.log(`ok      ${name} (${Math.round(performance.now() - begin)} ms)${note === '' ? '' : `: ${note}`}`);
  } catch (error) {
    counts.failed += 1;
    console.log(
      `FAILED  ${name}\n        ${String(error.stack ?? error)
        .split('\n')
        .slice(0, 12)
        .join('\n        ')}`,
    );
    await opened.page
      .screenshot({ path: join(root, 'build', `e2e-${name.replaceAll(/\W+/g, '-')}.png`) })
      .catch(() => undefined);
  }
  await opened.close();
}

export function skip(name, why) {
  if (!wanted() || want === '--alone' || part > 1) return;
  counts.skipped += 1;
  console.log(`skipped ${name}: ${why}`);
}

/** What the server was asked for since then, but for the browser's own look, some time after a load, for a newer worker. */
export const heard = (before) => site.requests.slice(before).filter((path) => !path.endsWith('/sw.js'));

export function smallTrace(rows) {
  const lines = Array.from(
    { length: rows },
    (_, index) => `${(index * 0.25).toFixed(2)},${200 + ((index * 37) % 300)},${20 + ((index * 13) % 60)}`,
  );
  return `arrival_s,input_tokens,output_tokens\n${lines.join('\n')}\n`;
}

/**
 * Violations alone are written down: what is right takes several times as long to write as to find. `without`: rules that
 * another task holds against the same elements; contrast takes most of the time.
 */
export async function audit(page, without = []) {
  const { violations } = await new AxeBuilder({ page })
    .setLegacyMode(true)
    .options({
      resultTypes: ['violations'],
      rules: Object.fromEntries(without.map((rule) => [rule, { enabled: false }])),
    })
    .analyze();
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(' ')).join('; ')}`);
  assert.deepEqual(found, [], 'axe-core');
}

export async function openEverything(page) {
  if (await page.locator('.rail > summary').isVisible()) await page.locator('.rail:not([open]) > summary').click();
  await openSettings(page);
  const closed = page.locator('details:not([open]) > summary:visible');
  while ((await closed.count()) > 0) await closed.first().click();
  await page.waitForTimeout(300);
}

/** Ends the process: 1 when a task failed. */
export async function finish() {
  await close();
  site.close();
  console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
  process.exit(counts.failed === 0 ? 0 : 1);
}

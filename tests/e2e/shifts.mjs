// Tasks of what moves while a page loads: every scenario of the catalogue, on a desktop and on a phone. Part of run.mjs.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './browser.mjs';
import { task } from './harness.mjs';

/** Cumulative, from navigation to rest. */
const mostShift = 0.05;

/** At rest: the verdict has its band, what follows by itself is answered, charts are drawn, and two frames have passed. */
async function rest(page) {
  await page.waitForFunction(
    () => {
      const {
        run,
        shown,
        tail_bands: tails,
        ways_out: ways,
      } = document.querySelector('sc-page')?.app?.store.state ?? {};
      if (run?.kind !== 'idle' || shown?.completeness !== 'final' || !shown.banded) return false;
      if (tails?.of !== shown.outcome || ways?.kind === 'trying' || ways?.seeks) return false;
      const holds = document.querySelector('sc-holds');
      return !holds || /^(found|said|offered|failed)$/.test(holds.querySelector('.holds')?.dataset.kind ?? '');
    },
    undefined,
    { polling: 50 },
  );
  await page.locator('sc-tail-chart canvas').first().waitFor({ state: 'attached' });
  await page.locator('sc-series-chart canvas').first().waitFor({ state: 'attached' });
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

for (const scenario of readdirSync(join(root, 'presets/scenarios')).map((name) => name.replace('.json', '')))
  for (const [size, viewport] of Object.entries({
    desktop: { width: 1280, height: 800 },
    phone: { width: 390, height: 844 },
  }))
    await task(
      `load: nothing jumps in ${scenario}, ${size}`,
      async (page) => {
        await rest(page);
        const moved = await page.evaluate(() => window.seen.layout_shift);
        assert.ok(moved <= mostShift, `cumulative layout shift ${moved.toFixed(3)}`);
        return `cumulative layout shift ${moved.toFixed(3)}`;
      },
      { viewport, fragment: `#p=${scenario}` },
    );

// Every page of the built documentation in Chromium: nothing is missing, no error, and each forecast in a text answers.
// Run after ./dev docs. Prints a line a page and the counts; exits 1 when one failed.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { AxeBuilder, launch, openPage, root } from './browser.mjs';
import { serve } from './server.mjs';

const dist = join(root, 'web/dist');
const site = await serve(dist, '/');
const { browser, close } = await launch();
const counts = { passed: 0, failed: 0 };

function* pages(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) yield* pages(join(folder, entry.name));
    else if (entry.name.endsWith('.html') && entry.name !== '404.html') yield relative(dist, join(folder, entry.name));
  }
}

/** Frames of forecasts, once each has a verdict. */
async function forecasts(page) {
  const elements = await page.locator('servecast-embed').all();
  for (const element of elements) {
    assert.match(
      (await element.textContent()).trim(),
      /(req|conversations)\/s/,
      'a sentence for readers without scripts',
    );
    await element.scrollIntoViewIfNeeded();
    const frame = element.locator('iframe').contentFrame();
    await frame.locator('.sentence', { hasText: 'Llama' }).first().waitFor({ timeout: 300_000 });
  }
  return elements.length;
}

let live = 0;
for (const path of pages(join(dist, 'docs'))) {
  const { page, problems, close: closePage } = await openPage(browser, {});
  try {
    const answer = await page.goto(site.url + path);
    assert.equal(answer.status(), 200);
    assert.notEqual((await page.locator('h1').first().innerText()).trim(), '');
    const count = await forecasts(page);
    live += count;
    if (count > 0) {
      const { violations } = await new AxeBuilder({ page }).setLegacyMode(true).include('main').analyze();
      assert.deepEqual(
        violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(' ')).join('; ')}`),
        [],
      );
    }
    assert.deepEqual(problems, [], 'console errors and warnings');
    counts.passed += 1;
    console.log(`ok      ${path}${count ? `: ${count} live` : ''}`);
  } catch (error) {
    counts.failed += 1;
    console.log(
      `FAILED  ${path}\n        ${String(error.stack ?? error)
        .split('\n')
        .slice(0, 12)
        .join('\n        ')}`,
    );
  }
  await closePage();
}
if (live < 8) {
  counts.failed += 1;
  console.log(`FAILED  found ${live} live forecasts, at least 8 are written`);
}
await close();
site.close();
console.log(`${counts.passed} passed, ${counts.failed} failed, 0 skipped`);
process.exit(counts.failed === 0 ? 0 : 1);

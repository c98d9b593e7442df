// Tasks of answers that follow the hand, of what is said while they are late, of going back, and of no connection. Part of
// run.mjs.
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { field, fingerprint, nextResult, openTab, problem, root, verdict } from './browser.mjs';
import { heard, openEverything, preset, site, task } from './harness.mjs';
import { serve } from './server.mjs';

const rate = (page) => field(page, '/workload/arrivals/rate_per_s');
const rateIs = (page, text) =>
  page.waitForFunction(
    (wanted) =>
      document.querySelector('sc-field[data-pointer="/workload/arrivals/rate_per_s"] input[type=text]')?.value ===
      wanted,
    text,
  );

for (const requests of [1000, 10_000, 1_000_000])
  await task(
    `drag: the first one after the load is followed, ${requests} requests`,
    async (page) => {
      await verdict(page);
      const last = await fingerprint(page);
      await page.evaluate(() => {
        window.answers = [];
        new MutationObserver(() =>
          window.answers.push(document.querySelector('[data-complete]')?.getAttribute('data-complete')),
        ).observe(document.querySelector('#fingerprint'), { characterData: true, childList: true, subtree: true });
      });
      const box = await rate(page).locator('input[type=range]').boundingBox();
      await page.mouse.move(box.x + box.width * 0.4, box.y + box.height / 2);
      await page.mouse.down();
      for (let step = 0; step < 40; step += 1)
        await page.mouse.move(box.x + box.width * (0.4 + step / 200), box.y + box.height / 2);
      const answers = await page.evaluate(() => window.answers);
      await page.mouse.up();
      assert.ok(answers.length >= 5, `${answers.length} answers to 40 moves`);
      assert.ok(answers.includes('coarse'), answers.join(' '));
      await nextResult(page, last);
      return `${answers.length} answers to 40 moves`;
    },
    { fragment: `#p=${preset}&workload.requests=${requests}` },
  );

for (const [pointer, value] of [
  ['/engine/preset', 'sglang'],
  ['/scheduler/policy', 'sarathi'],
  ['/engine/speculative/method', 'eagle3'],
])
  await task(
    `second module: the first edit that needs it, ${value}, ends in the certain answer`,
    async (page) => {
      await verdict(page);
      const first = await fingerprint(page);
      await openEverything(page);
      await page.locator(`sc-field[data-pointer="${pointer}"] select`).first().selectOption(value);
      await nextResult(page, first);
      assert.equal(await page.getAttribute('[data-complete]', 'data-complete'), 'final');
    },
    // Far from every limit, so that few runs settle it.
    { fragment: `#p=${preset}&slo.0.limit_ms=5000&slo.1.limit_ms=500` },
  );

await task('history: an address that changes faster than it is read, the newest wins', async (page) => {
  await verdict(page);
  const links = ['llama-3.1-8b-h100-chat', 'qwen2.5-7b-l40s-code', 'llama-3.1-8b-h100-chat&seed=5'];
  for (const pause of [20, 60, 100, 140]) {
    for (const link of [...links, ...links]) {
      await page.evaluate((fragment) => (location.hash = fragment), `p=${link}`);
      await page.waitForTimeout(pause);
    }
    await page.waitForFunction(() => {
      const { state } = document.querySelector('sc-page').app.store;
      return state.shown?.completeness === 'final' && state.run.kind === 'idle' && state.document.seed === 5;
    });
    assert.match(await page.evaluate(() => location.hash), /seed=5/);
    await page.evaluate(() => {
      for (let step = 0; step < 4; step += 1) history.back();
    });
    await page.waitForTimeout(pause);
    await page.evaluate(() => history.go(3));
    await page.waitForFunction(() => {
      const { state } = document.querySelector('sc-page').app.store;
      return (
        state.shown?.completeness === 'final' && state.run.kind === 'idle' && state.shown.document === state.document
      );
    });
    await page.waitForFunction(() => {
      const { state } = document.querySelector('sc-page').app.store;
      return location.hash.slice(1) === state.link;
    });
  }
});

await task('late: what is shown is marked as of before the change, and nothing moves', async (page) => {
  await verdict(page);
  const before = await page.locator('.numbers').boundingBox();
  const first = await fingerprint(page);
  // The preset's file takes its time.
  await page.route(/presets\/hardware\//, async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 1500));
    await route.continue();
  });
  const gpu = field(page, '/hardware/preset').locator('select');
  const apart = await gpu.locator('optgroup option').first().getAttribute('value');
  await gpu.selectOption(apart);
  await page.waitForSelector('[data-complete="before"]', { timeout: 1000 });
  assert.match(await page.textContent('.sentence'), /^Before your change: /);
  assert.equal((await page.locator('.numbers').boundingBox()).y, before.y);
  await page.waitForFunction((old) => document.querySelector('#fingerprint')?.textContent !== old, first);
  await page.waitForFunction(() => !document.querySelector('[data-complete="before"]'));
});

await task(
  'cancel: within 100 ms at 5,000,000 requests, and the last answer stays',
  async (page) => {
    await verdict(page);
    const last = await fingerprint(page);
    await field(page, '/workload/requests').locator('input[type=text]').fill('5000000');
    const took = [];
    for (const wait of [400, 1500, 3000]) {
      const cancel = page.getByRole('button', { name: 'Cancel', exact: true });
      await cancel.waitFor();
      await page.waitForTimeout(wait);
      took.push(
        await page.evaluate(async () => {
          const button = [...document.querySelectorAll('.progress-line button')].find(
            (each) => each.textContent === 'Cancel',
          );
          const begin = performance.now();
          button.click();
          while (document.querySelector('.progress-line')) await new Promise((resolve) => setTimeout(resolve, 1));
          return Math.round(performance.now() - begin);
        }),
      );
      await page.locator('.sentence').first().waitFor();
      await page.getByRole('button', { name: 'Run again' }).click();
    }
    await page.keyboard.press('Escape');
    // The middle one: the machine does other work, too.
    assert.ok(took.toSorted((a, b) => a - b)[1] <= 100, `${took} ms`);
    const rateField = rate(page).locator('input[type=text]');
    await field(page, '/workload/requests').locator('input[type=text]').fill('1000');
    await rateField.fill('7');
    await nextResult(page, last);
    return `${took.join(', ')} ms`;
  },
  { fragment: `#p=${preset}&workload.requests=1000` },
);

await task('history: Back returns from a preset to what was edited; Undo and Redo go by steps', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await rate(page).locator('input[type=text]').fill('11');
  await nextResult(page, first);
  const edited = await fingerprint(page);
  await page.keyboard.press('Tab');
  await page.keyboard.press('/');
  await page.keyboard.type('rag');
  await page.keyboard.press('Enter');
  await nextResult(page, edited);
  await page.goBack();
  await rateIs(page, '11');
  await page.waitForFunction(
    (wanted) =>
      document.querySelector('#fingerprint')?.textContent === wanted &&
      document.querySelector('[data-complete="final"]'),
    edited,
  );
  await page.waitForFunction(() => location.hash.endsWith('rate_per_s=11'));
  await page.locator('h1').click();
  await page.keyboard.press('Control+z');
  await page.waitForFunction(() => /Retrieval/.test(document.querySelector('sc-preset-picker input')?.value ?? ''));
  await page.keyboard.press('Control+z');
  await rateIs(page, '11');
  await page.getByRole('button', { name: 'Undo' }).click();
  await rateIs(page, '40');
  await page.keyboard.press('Control+Shift+z');
  await rateIs(page, '11');
});

await task(
  'offline: the second load needs no connection',
  async (page) => {
    await verdict(page);
    const first = await fingerprint(page);
    await page.evaluate(() => navigator.serviceWorker.ready);
    await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
    const before = site.requests.length;
    await page.context().setOffline(true);
    await page.reload();
    await verdict(page);
    assert.equal(await fingerprint(page), first);
    // A preset and a part that were never on the page.
    const gpu = field(page, '/hardware/preset').locator('select');
    await gpu.selectOption(await gpu.locator('optgroup option').first().getAttribute('value'));
    await nextResult(page, first);
    await openTab(page, 'Numbers');
    await page.locator('sc-numbers tbody th').first().waitFor();
    // The footer's texts, and the page of embeds.
    for (const file of ['method.txt', 'accuracy.txt', 'embed.html']) {
      const text = await page.evaluate((name) => fetch(name).then((found) => found.text()), file);
      assert.ok(text.length > 500, `${file}: ${text.length}`);
    }
    assert.deepEqual(heard(before), [], 'the server hears nothing');
    const caches = await page.evaluate(() => caches.keys());
    assert.equal(caches.length, 1, caches.join(' '));
  },
  { expectsProblems: true, serviceWorkers: 'allow' },
);

/** The built site in a folder of its own, and what makes another version of it there: its entry says which one it is. */
async function twoVersions() {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-versions-'));
  cpSync(join(root, 'web/dist'), folder, { recursive: true });
  const host = await serve(folder);
  const publish = () => {
    const assets = readdirSync(join(folder, 'assets'));
    const named = (part) => assets.find((name) => name.startsWith(`${part}-`) && name.endsWith('.js'));
    const [entry, numbers, next] = [named('index'), named('numbers'), 'index-next.js'];
    const text = readFileSync(join(folder, 'assets', entry), 'utf8');
    writeFileSync(join(folder, 'assets', next), `${text}\ndocument.documentElement.dataset.version = 'next';\n`);
    // A host has the files of one version: this one has no numbers, and other presets.
    for (const name of [entry, numbers]) rmSync(join(folder, 'assets', name));
    for (const name of ['index.html', 'sw.js']) {
      const now = readFileSync(join(folder, name), 'utf8')
        .replaceAll(entry, next)
        .replace(`"assets/${numbers}",`, '')
        .replaceAll(/\.json\?\w+/g, '.json?next')
        .replace(/servecast-[0-9a-f]{12}/, 'servecast-next');
      writeFileSync(join(folder, name), now);
    }
  };
  const close = () => {
    host.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { url: host.url, publish, close };
}

await task(
  'offline: a new version comes whole, and a page of the one before keeps its own parts',
  async (page) => {
    const versions = await twoVersions();
    try {
      await page.goto(versions.url);
      await verdict(page);
      await page.waitForFunction(() => navigator.serviceWorker.controller !== null, undefined, { timeout: 300_000 });
      const version = () => page.evaluate(() => document.documentElement.dataset.version ?? 'first');
      assert.equal(await version(), 'first');
      const names = await page.evaluate(() => caches.keys());
      versions.publish();
      await page.evaluate(async () => {
        const registration = await navigator.serviceWorker.ready;
        const changed = new Promise((resolve) => navigator.serviceWorker.addEventListener('controllerchange', resolve));
        await registration.update();
        await changed;
      });
      assert.deepEqual(await page.evaluate(() => caches.keys()), [...names, 'servecast-next']);
      // A part and a preset that the open page never had, and that only its own version has.
      await page.context().setOffline(true);
      await openTab(page, 'Numbers');
      await page.locator('sc-numbers tbody th').first().waitFor();
      const first = await fingerprint(page);
      const gpu = field(page, '/hardware/preset').locator('select');
      await gpu.selectOption(await gpu.locator('optgroup option').first().getAttribute('value'));
      await nextResult(page, first);
      assert.equal(await version(), 'first');
      await page.reload();
      await verdict(page);
      assert.equal(await version(), 'next', 'the next load is of the new version, without a connection, too');
      await openTab(page, 'Compare');
      await page.locator('#compared tbody th').first().waitFor();
    } finally {
      await page.context().setOffline(false);
      versions.close();
    }
  },
  { expectsProblems: true, serviceWorkers: 'allow' },
);

await task(
  'offline: without the engine the page says so in words',
  async (page) => {
    await page.route(/\.wasm$/, (route) => route.abort());
    await page.reload();
    await page.getByText('The engine could not be loaded.').waitFor();
    const said = await page.textContent('.verdict');
    assert.match(said, /There is no connection/);
    assert.doesNotMatch(said, /TypeError|Failed to fetch/);
    return (await problem(page)).trim();
  },
  { expectsProblems: true },
);

await task(
  'tour: comes once, and not again',
  async (page) => {
    await verdict(page);
    const tour = page.getByRole('complementary', { name: 'A short tour' });
    await tour.getByRole('button', { name: 'Next' }).click();
    await tour.getByRole('button', { name: 'Next' }).click();
    await tour.getByRole('button', { name: 'Done' }).click();
    await page.reload();
    await verdict(page);
    await page.waitForTimeout(600);
    assert.equal(await tour.count(), 0);
  },
  { tour: true },
);

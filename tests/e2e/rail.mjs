// Tasks of the form beside the answer. Part of run.mjs.
import assert from 'node:assert/strict';
import { field, fingerprint, nextResult, openSettings, verdict } from './browser.mjs';
import { audit, preset, task } from './harness.mjs';

const box = (page, pointer) => field(page, pointer).locator('input[type=text]');
const numbers = (text) => [...text.matchAll(/[\d.]+/g)].map(([digits]) => Number(digits));

await task('rail: five headings, at most 18 rows of 28 px, and what is typical of each', async (page) => {
  await verdict(page);
  assert.deepEqual(await page.locator('.part h3').allInnerTexts(), [
    'Model',
    'Hardware',
    'Traffic',
    'Targets',
    'Engine',
  ]);
  const rows = page.locator('.rail sc-field');
  const count = await rows.count();
  assert.ok(count <= 18, `${count} rows`);
  const heights = await rows.evaluateAll((all) => all.map((row) => row.getBoundingClientRect().height));
  assert.deepEqual([...new Set(heights)], [28]);
  const beyond = await page.locator('.rail').evaluate((rail) => rail.scrollHeight - rail.clientHeight);
  assert.equal(beyond, 0, 'the short form needs no scrolling');
  assert.equal(await field(page, '/engine/max_num_seqs').locator('label').getAttribute('title'), 'max_num_seqs');
  for (const row of await rows.all()) {
    await row.hover();
    await row.locator('.help-button').click();
    await row.locator('.help .typical').waitFor();
  }
  await audit(page);
  return `${count} rows`;
});

/** An edit is shown with its answer, or a moment later without it. */
async function becomes(input, text) {
  for (let turn = 0; turn < 50 && (await input.inputValue()) !== text; turn += 1) await input.page().waitForTimeout(20);
  assert.equal(await input.inputValue(), text);
}

await task('rail: arrows step, GPUs double, and resets take it back', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  const rate = box(page, '/workload/arrivals/rate_per_s');
  await rate.focus();
  for (const key of ['ArrowUp', 'ArrowUp', 'ArrowDown']) await page.keyboard.press(key);
  await becomes(rate, '41');
  await nextResult(page, first);
  const same = page.locator('#load-as');
  await becomes(same, '2,460');
  const second = await fingerprint(page);
  await page.getByLabel('Unit of the load').selectOption('users');
  const users = Number(await same.inputValue());
  await same.fill(String(users / 2));
  await nextResult(page, second);
  assert.ok(Math.abs(Number(await rate.inputValue()) - 20.5) < 0.2, await rate.inputValue());
  await rate.fill('41');
  await page.waitForFunction((before) => document.querySelector('#fingerprint')?.textContent === before, second);
  const gpus = box(page, '/cluster/pools/0/tensor_parallel');
  await gpus.focus();
  for (const key of ['ArrowUp', 'ArrowUp']) await page.keyboard.press(key);
  await becomes(gpus, '4');
  await page.waitForFunction(() => document.querySelectorAll('.field.changed').length === 2);
  await field(page, '/cluster/pools/0/tensor_parallel').locator('.reset').click();
  await becomes(gpus, '1');
  await box(page, '/slo/0/limit_ms').fill('soon');
  await page.getByRole('button', { name: 'Reset all' }).click();
  await page.waitForFunction((print) => document.querySelector('#fingerprint')?.textContent === print, first);
  assert.equal(await page.locator('.field.changed').count(), 0);
  assert.equal(await page.getByRole('button', { name: 'Reset all' }).count(), 0);
});

await task('rail: every setting is found by its name and by its words', async (page) => {
  await verdict(page);
  await page.keyboard.press('f');
  await page.locator('#settings-search:focus').waitFor();
  await page.keyboard.type('watermark');
  const found = page.locator('sc-all-settings sc-field');
  await found.first().waitFor();
  assert.equal(await found.first().getAttribute('data-pointer'), '/engine/watermark');
  await page.locator('#settings-search').fill('batch size');
  await page.locator('sc-all-settings sc-field[data-pointer="/engine/max_num_seqs"]').waitFor();
  await page.locator('#settings-search').fill('xyzzy');
  await page.getByText('No setting has these words.').waitFor();
  await audit(page);
  const first = await fingerprint(page);
  await page.locator('#settings-search').fill('kv cache dtype');
  await found.first().locator('select').selectOption('fp8');
  await nextResult(page, first);
  await page.keyboard.press('Escape');
});

await task('rail: the memory of a GPU adds up to what it has', async (page) => {
  await verdict(page);
  const legend = page.locator('.memory-legend');
  await legend.waitFor();
  const [weights, other, kv, peak, free] = numbers(await legend.innerText());
  assert.ok(Math.abs(weights + other + kv + free - 79.2) < 1, `${weights} + ${other} + ${kv} + ${free} GiB`);
  assert.ok(peak > 0 && peak < 100);
  const first = await fingerprint(page);
  await field(page, '/model/quantization').locator('select').selectOption('fp8');
  await nextResult(page, first);
  const [fewer] = numbers(await legend.innerText());
  assert.ok(fewer < 0.6 * weights);
});

await task(
  'rail: what does not fit runs over the mark',
  async (page) => {
    await page.locator('[data-state="does_not_fit"]').waitFor();
    await page.locator('.memory-over').waitFor();
    const [bar, over] = await Promise.all(
      ['.memory-bar', '.memory-over'].map((part) => page.locator(part).boundingBox()),
    );
    assert.ok(over.width > bar.width / 4, 'more than a quarter of 70B is too much for an RTX 4090');
    assert.match(await page.locator('.memory-legend').innerText(), /usable 2\d(\.\d+)?\sGiB/);
  },
  { fragment: `#p=${preset}&hardware.preset=rtx-4090&model.preset=llama-3.1-70b` },
);

for (const width of [320, 390])
  await task(
    `phone: verdict, a row that changes it, tiles two by two, nothing cut, at ${width} px`,
    async (page) => {
      await verdict(page);
      const top = async (selector) => (await page.locator(selector).first().boundingBox()).y;
      const [sentence, change, tile] = [await top('.verdict'), await top('.rail > summary'), await top('.tile')];
      assert.ok(sentence < change && change < tile, `${sentence}, ${change}, ${tile}`);
      const tiles = await page.locator('.tile').evaluateAll((all) => all.map((each) => each.getBoundingClientRect().x));
      assert.deepEqual([tiles[0], tiles[1]], [tiles[2], tiles[3]]);
      assert.notEqual(tiles[0], tiles[1]);
      assert.equal(await page.locator('.part').first().isVisible(), false);
      await page.locator('.rail > summary').click();
      await openSettings(page);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0);
    },
    { viewport: { width, height: 800 }, hasTouch: true },
  );

await task('presets: a search ranks names first, and finds GPUs and short words', async (page) => {
  await verdict(page);
  const options = page.locator('#preset-list li:visible');
  const search = async (words) => {
    await page.keyboard.press('Escape');
    await page.locator('sc-preset-picker input').fill(words);
    await options.first().waitFor();
    return options.locator('b').allInnerTexts();
  };
  assert.match((await search('pd'))[0], /prefill and decode apart/);
  const named = await search('chat');
  assert.equal(named[0], 'Chat on one H100');
  assert.match((await search('h200'))[0], /^H200/);
  const first = await fingerprint(page);
  await page.keyboard.press('Enter');
  await nextResult(page, first);
  assert.equal(await field(page, '/hardware/preset').locator('select').inputValue(), 'h200-sxm');
});

await task(
  'phone: what is typed keeps the focus when the verdict above it grows',
  async (page) => {
    await verdict(page);
    await page.locator('.rail > summary').click();
    const rate = box(page, '/workload/arrivals/rate_per_s');
    await rate.fill('-5');
    await page.getByText('1 field needs a value in range').waitFor();
    assert.equal(await rate.evaluate((input) => input === document.activeElement), true);
    assert.equal(await rate.inputValue(), '-5');
  },
  { viewport: { width: 390, height: 800 }, fragment: `?view=numbers#p=${preset}` },
);

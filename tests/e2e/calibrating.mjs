// Tasks of the view that calibrates. Part of run.mjs.
import assert from 'node:assert/strict';
import { fingerprint, sureness, verdict } from './browser.mjs';
import { audit, site, task } from './harness.mjs';
import {
  answersPower,
  answersRun,
  benchResult,
  calibrated,
  chosen,
  prompts,
  promptsPower,
  promptsRun,
  steps,
} from './measured.mjs';

await task('calibrate: opened by its key, the link holds it, and back', async (page) => {
  await verdict(page);
  await page.keyboard.press('c');
  await page.locator('sc-calibrate .calibrate-drop').waitFor();
  assert.equal(new URL(page.url()).searchParams.get('view'), 'calibrate');
  await page.reload();
  await page.locator('sc-calibrate .calibrate-drop').waitFor();
  await page.locator('.calibrate-command').first().waitFor({ timeout: 300_000 });
  assert.match(await page.innerText('.calibrate-command pre'), /^vllm bench serve --model /);
  assert.equal(await page.locator('.calibrate-command').count(), 5);
  await page.getByRole('button', { name: 'Back to the forecast' }).click();
  await verdict(page);
});

await task('calibrate: two tables, what they tell, the pack in the scenario', async (page) => {
  await verdict(page);
  await page.keyboard.press('c');
  await chosen(page, [prompts, steps]);
  await calibrated(page);
  assert.match(await page.innerText('#calibrate-title'), /not for load/);
  assert.equal(await page.locator('.calibrate-files li').count(), 2);
  assert.match(await page.innerText('.calibrate-files'), /5 single prompts/);
  const told = await page.innerText('.calibrate-told');
  for (const word of ['Arithmetic', 'found', 'cannot tell']) assert.ok(told.includes(word), word);
  assert.ok((await page.locator('sc-residual-chart').count()) === 2, 'a chart a form');
  await audit(page);
  await page.getByRole('button', { name: 'Use for this scenario' }).click();
  await page.getByText('The scenario carries the calibration').waitFor();
  await page.getByRole('button', { name: 'Back to the forecast' }).click();
  await verdict(page);
  await page.waitForFunction(() => location.hash.length > 2);
  const document = await page.evaluate(() => document.querySelector('sc-page').app.store.state.document);
  assert.ok(document.hardware.compute_efficiency > 0.05);
});

await task(
  'calibrate: the link carries it, opened elsewhere the verdict rests on it, and it can be taken out',
  async (page) => {
    await verdict(page);
    const before = await fingerprint(page);
    await page.keyboard.press('c');
    await chosen(page, [prompts, steps]);
    await calibrated(page);
    await page.getByRole('button', { name: 'Use for this scenario' }).click();
    await page.getByText('The scenario carries the calibration').first().waitFor();
    await page.getByRole('button', { name: 'Back to the forecast' }).click();
    await verdict(page);
    await sureness(page);
    await page.waitForFunction(() => /Calibrated by the scenario/.test(document.querySelector('sc-sure')?.textContent));
    const own = await fingerprint(page);
    assert.notEqual(own, before);
    await page.waitForFunction(() => /^#z1\.|calibration/.test(location.hash));
    const { hash } = new URL(page.url());

    // Elsewhere: nothing but the link.
    await page.goto('about:blank');
    await page.goto(site.url + hash);
    await verdict(page);
    const line = await sureness(page);
    assert.match(
      line,
      /Calibrated by the scenario's own measurements: TPOT ±[\d.]+ % on 6 fitted rows \(decode steps\)/,
    );
    assert.match(
      line,
      /Fitted to 11 rows \(5 single prompts; 6 decode steps\) of meta-llama\/Llama-3.1-8B-Instruct on H100, vllm 0\.20\.1/,
    );
    assert.match(await page.textContent('sc-page'), /No run at a rate was measured/);
    assert.equal(await fingerprint(page), own);
    await audit(page);

    await page.keyboard.press('c');
    const card = page.locator('section[aria-labelledby="calibrate-carried"]');
    await card.getByText('What was fitted').click();
    assert.match(await card.innerText(), /hardware\.compute_efficiency/);
    await audit(page);
    await card.getByRole('button', { name: 'Take it out' }).click();
    await card.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Back to the forecast' }).click();
    await page.waitForFunction((former) => document.querySelector('#fingerprint')?.textContent === former, before);
    assert.doesNotMatch(await sureness(page), /Calibrated by the scenario/);
    return `${hash.length} characters`;
  },
);

await task(
  'calibrate: power beside runs, its constants, what it cannot tell, and the scenario has them',
  async (page) => {
    await verdict(page);
    await page.keyboard.press('c');
    await chosen(page, [promptsPower(400)]);
    await page.locator('.calibrate-problem').waitFor();
    assert.match(await page.innerText('.calibrate-problem'), /power alone/);
    // A file of power belongs to the run of the file before it.
    await chosen(page, [promptsRun]);
    await page.locator('.calibrate-problem', { hasText: 'power without a run' }).waitFor();
    await page.getByRole('button', { name: 'Move prompts-run.csv up' }).click();
    await calibrated(page);
    const card = page.locator('section[aria-labelledby="calibrate-power"]');
    const constants = card.getByRole('region', { name: 'Constants of power before and after' }).locator('tbody tr');
    const runs = card.getByRole('region', { name: 'Power of the measured runs' }).locator('tbody tr');
    assert.equal(await constants.count(), 1);
    assert.match(await card.innerText(), /cannot tell hardware\.\w+_w from hardware\.busy_w/);
    assert.match(await runs.first().innerText(), /^1\. prompts-power\.csv\s+400\sW\s+\d+\sW [+−][\d.]+\s%\s+\d+\sW/);
    const others = await page.locator('.calibrate-more', { hasText: 'warning' }).allTextContents();
    assert.doesNotMatch(others.join(' '), /busy_w/, 'those of power are with power');

    await chosen(page, [answersRun, answersPower]);
    await page.waitForFunction(
      () => document.querySelectorAll('.calibrate-watts tbody tr').length === 2 && !document.querySelector('progress'),
    );
    assert.equal(await constants.count(), 2);
    assert.match(
      await constants.first().innerText(),
      /hardware\.busy_w.*\s\d[\d.]*\sW\s+\d[\d.]*\sW\s+[\d.]+ to [\d.]+\sW/s,
    );
    assert.match(await runs.nth(1).innerText(), /^2\. <img src=x>\.prom\s+350\sW/);
    assert.equal(await page.locator('sc-calibrate img').count(), 0);
    const chart = page.locator('sc-residual-chart', { hasText: 'Power of the measured runs' });
    await chart.locator('canvas').waitFor();
    assert.match(await chart.innerText(), /W a GPU, predicted less measured/);
    await audit(page);

    await page.getByRole('button', { name: 'Use for this scenario' }).click();
    await page.getByText('The scenario carries the calibration').first().waitFor();
    const fitted = await page.evaluate(
      () => document.querySelector('sc-page').app.store.state.document.hardware.busy_w,
    );
    const [, shown] = (await constants.first().innerText()).match(/([\d.,]+)\sW\s+[\d.]+ to/);
    assert.ok(Math.abs(fitted / Number(shown.replace(',', '')) - 1) < 0.01, `${fitted} W, shown as ${shown} W`);

    // At the card's cap, which every law that reaches it explains.
    await page.getByRole('button', { name: 'Remove answers-run.csv' }).click();
    await page.getByRole('button', { name: 'Remove <img src=x>.prom' }).click();
    await chosen(page, [promptsRun, promptsPower(700)]);
    await card.getByText('no constant was fitted').waitFor();
    assert.match(await card.innerText(), /No power to fit: all of it is held out, or above 95\s% of the card.s cap/);
    assert.equal(await constants.count(), 0);
    assert.equal(await runs.count(), 1);
  },
);

await task('calibrate: bad files are refused with what is wrong, and removed', async (page) => {
  await verdict(page);
  await page.keyboard.press('c');
  const file = (name, text) => ({ name, mimeType: 'application/json', buffer: Buffer.from(text) });
  const one = JSON.parse(benchResult(4, 3));
  for (const [name, text, said] of [
    ['empty.json', '', /found nothing/i],
    ['cut.json', '{"ttfts": [1', /cut\.json/],
    ['units.json', JSON.stringify({ ...one, mean_ttft_ms: 31, ttfts: [31, 31, 31, 31] }), /allowed seconds/],
    ['hostile.json', JSON.stringify({ ...one, ttfts: ['<img src=x onerror=alert(1)>', 1, 1, 1] }), /<img src=x/],
    ['other.json', '{"a": 1}', /GuideLLM/],
  ]) {
    await chosen(page, [file(name, text)]);
    await page.locator('.calibrate-problem').waitFor();
    assert.match(await page.innerText('.calibrate-problem'), said, name);
    assert.equal(await page.locator('.calibrate-problem img').count(), 0);
    await page.getByRole('button', { name: `Remove ${name}` }).click();
    await page.locator('.calibrate-problem').waitFor({ state: 'detached' });
  }
});

await task('calibrate: 50 MB within 10 s, with progress and no frozen frame', async (page) => {
  await verdict(page);
  await page.keyboard.press('c');
  await page.locator('sc-calibrate .calibrate-drop').waitFor();
  const text = benchResult(4000, 650);
  await page.evaluate(() => {
    window.longest = 0;
    let last = performance.now();
    const frame = () => {
      const now = performance.now();
      window.longest = Math.max(window.longest, now - last);
      last = now;
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  // Made in the page: what crosses from the test would freeze it.
  const begin = Date.now();
  await page.evaluate(
    async (blobText) => {
      const [head, tail] = blobText;
      const element = document.querySelector('sc-calibrate');
      await element.take([new File([head, tail], 'large.json')]);
      window.longest = 0;
    },
    [text.slice(0, text.length / 2), text.slice(text.length / 2)],
  );
  await page.locator('.calibrate-progress').waitFor();
  await calibrated(page);
  const seconds = (Date.now() - begin) / 1000;
  const longest = await page.evaluate(() => window.longest);
  assert.ok(longest < 500, `a frame of ${Math.round(longest)} ms`);
  return `${(text.length / 1e6).toFixed(0)} MB in ${seconds.toFixed(1)} s, longest frame ${Math.round(longest)} ms`;
});

await task('calibrate: a fit is cancelled, and asked again', async (page) => {
  await verdict(page);
  await page.keyboard.press('c');
  await chosen(page, [
    { name: 'long.json', mimeType: 'application/json', buffer: Buffer.from(benchResult(3000, 100)) },
  ]);
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await page.getByText('Cancelled.').waitFor();
  await page.getByRole('button', { name: 'Fit again' }).click();
  await calibrated(page);
  const replays = page.getByRole('region', { name: 'Requests replayed one by one' }).locator('tbody tr');
  assert.deepEqual(await replays.evaluateAll((rows) => rows.map((row) => row.cells[0].innerText)), [
    'TTFT 2,000',
    'ITL 198,000',
    'E2E 2,000',
    'TTFT, held out 1,000',
    'ITL, held out 99,000',
    'E2E, held out 1,000',
  ]);
  assert.match(await replays.first().innerText(), /^TTFT 2,000\s+\d\.\d\d\s+\d\.\d\d/);
});

for (const [theme, size] of [
  ['dark', { width: 1440, height: 1000 }],
  ['light', { width: 390, height: 844 }],
]) {
  await task(
    `calibrate: ${theme}, ${size.width} wide, no violation and no sideways scroll`,
    async (page) => {
      await page.waitForFunction(() => document.querySelector('sc-calibrate .calibrate-drop') !== null);
      await chosen(page, [prompts, steps]);
      await calibrated(page);
      await audit(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${wide} px too wide`);
    },
    { viewport: size, colorScheme: theme, fragment: '?view=calibrate' },
  );
}

// Tasks of what people do by mistake, or to see what happens. Part of run.mjs.
import assert from 'node:assert/strict';
import { dropFile, field, fingerprint, nextResult, openTab, problem, verdict } from './browser.mjs';
import { audit, openEverything, preset, task } from './harness.mjs';

const shows = (page, expected) =>
  page.waitForFunction((wanted) => document.querySelector('#fingerprint')?.textContent === wanted, expected, {
    timeout: 300_000,
  });

await task('mishap: junk in every field, and each can be undone', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await openEverything(page);
  const pointers = await page.$$eval('sc-field', (fields) =>
    fields
      .filter((each) => each.offsetParent && each.querySelector('input[type=text], textarea'))
      .map((each) => each.dataset.pointer),
  );
  for (const pointer of new Set(pointers)) {
    const input = page
      .locator(`sc-field[data-pointer="${pointer}"]:visible`)
      .first()
      .locator('input[type=text], textarea')
      .first();
    const before = await input.inputValue();
    for (const text of ['<b>-1e308', '']) {
      await input.fill(text);
      assert.equal(await input.inputValue(), text, `${pointer} keeps what is typed`);
    }
    await input.fill(before);
  }
  await verdict(page);
  await shows(page, first);
  return `${new Set(pointers).size} fields`;
});

await task('mishap: a text in a limit goes with the limit', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await field(page, '/slo/0/limit_ms').locator('input[type=text]').fill('soon');
  await problem(page);
  await page.locator('.limit .icon').first().click();
  await nextResult(page, first);
});

await task('mishap: back and forward show each scenario again', async (page) => {
  await verdict(page);
  const seen = [await fingerprint(page)];
  for (const rate of [5, 9]) {
    await page.waitForTimeout(600);
    await page.evaluate((hash) => (location.hash = hash), `p=${preset}&workload.arrivals.rate_per_s=${rate}`);
    await nextResult(page, seen.at(-1));
    seen.push(await fingerprint(page));
  }
  for (const [step, index] of [
    ['goBack', 1],
    ['goBack', 0],
    ['goForward', 1],
    ['goForward', 2],
  ]) {
    await page[step]();
    await shows(page, seen[index]);
    await page.waitForTimeout(400);
  }
});

await task('mishap: files that are no traces end in a sentence', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  const files = {
    'photo.png': Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'),
    'empty.csv': Buffer.alloc(0),
    'deep.json': Buffer.from('['.repeat(200_000)),
    '<img src=x onerror=document.title="owned">.csv': Buffer.from('a,b\n1,2\n'),
  };
  for (const [name, bytes] of Object.entries(files)) {
    await dropFile(page, name, bytes);
    await page.locator('.verdict .issues', { hasText: name }).waitFor();
    assert.match(await problem(page), /trace cannot be used/);
    assert.notEqual(await page.title(), 'owned');
  }
  await page.getByRole('button', { name: 'Remove trace' }).first().click();
  await shows(page, first);
});

await task('mishap: a scenario file that is dropped is opened', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  const scenario = {
    schema: 1,
    model: { preset: 'llama-3.1-8b' },
    hardware: { preset: 'l40s' },
    workload: { preset: 'chat', requests: 120, arrivals: { rate_per_s: 2 } },
  };
  await dropFile(page, 'scenario.json', Buffer.from(JSON.stringify(scenario)));
  await nextResult(page, first);
  assert.match(await page.textContent('.footer'), /120 requests/);
  assert.equal(await field(page, '/hardware/preset').locator('select').inputValue(), 'l40s');
  await dropFile(page, 'scenario.json', Buffer.from(JSON.stringify({ ...scenario, sedd: 1 })));
  assert.match(await problem(page), /This file cannot be opened/);
  assert.match(await page.textContent('.issues'), /sedd/);
  await page.getByRole('button', { name: 'Open the nearest valid scenario' }).click();
  await verdict(page);
  assert.match(await page.textContent('.footer'), /120 requests/);
});

await task(
  'mishap: many limits leave the curves their room',
  async (page) => {
    await verdict(page);
    await page.getByText(/\d+ more limits have a line and no label/).waitFor();
    const charts = await page.$$eval('sc-tail-chart .u-over', ([over]) => over.getBoundingClientRect().height);
    assert.ok(charts > 120, `the plot is ${charts} px high`);
    await audit(page);
  },
  {
    fragment: `#p=${preset}&slo=[${Array.from({ length: 32 }, (_, index) => `{"metric":"ttft","limit_ms":${50 + index * 7},"percentile":${50 + index}}`).join(',')}]`,
  },
);

await task(
  'mishap: long names stay inside',
  async (page) => {
    await verdict(page);
    await openTab(page, 'Numbers');
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), 0);
    await page.locator('#numbers tbody th').first().waitFor();
    const table = await page.$eval('#numbers tbody th', (head) => head.getBoundingClientRect().width);
    assert.ok(table <= 400, `${table} px`);
  },
  {
    fragment: `#p=${preset}&name=${'x'.repeat(1500)}&workload.classes=[{"name":"${'y'.repeat(600)}","share":1},{"name":"b"}]&hardware.name=${'z'.repeat(300)}`,
    viewport: { width: 390, height: 844 },
  },
);

await task('mishap: sizes and paper, charts follow and buttons are not printed', async (page) => {
  await verdict(page);
  await openTab(page, 'Over time');
  await page.locator('sc-request-chart canvas').waitFor();
  for (const [width, height] of [
    [320, 600],
    [1600, 900],
    [900, 500],
    [1440, 900],
  ]) {
    await page.setViewportSize({ width, height });
    await page.waitForFunction(
      () =>
        document.documentElement.scrollWidth <= innerWidth &&
        [...document.querySelectorAll('.plots')].every((host) => {
          // Side by side they reach the edge together.
          const ends = [...host.querySelectorAll('.uplot')].map((plot) => plot.getBoundingClientRect().right);
          return Math.abs(Math.max(...ends) - host.getBoundingClientRect().right) <= 2;
        }),
    );
  }
  await page.emulateMedia({ media: 'print' });
  assert.equal(
    await page.locator('button:visible').count(),
    // Those that are the names of inputs are read.
    await page.locator('.mark:visible, .as-link:visible, .form .more:visible').count(),
  );
  assert.ok(await page.getByText('Llama-3.1-8B · H100').isVisible(), 'what was simulated is said');
});

await task(
  'no engine: a page that cannot load it says so',
  async (page) => {
    assert.match(await problem(page), /engine could not be loaded/);
  },
  {
    expectsProblems: true,
    before: (page) => page.route('**/*.wasm', (route) => route.fulfill({ status: 404, body: '' })),
  },
);

await task(
  'no script: the page says what it needs',
  async (page) => {
    assert.match(await page.textContent('#page'), /forecasts how an LLM serving deployment behaves/);
    assert.match(await page.textContent('noscript'), /needs JavaScript/);
  },
  { javaScriptEnabled: false },
);

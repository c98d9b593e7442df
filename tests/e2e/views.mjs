// Tasks of the views below the verdict. Part of run.mjs.
import assert from 'node:assert/strict';
import { banded, field, fingerprint, nextResult, openTab, problem, verdict } from './browser.mjs';
import { audit, preset, task } from './harness.mjs';

const chosen = (page) => page.locator('[role=tab][aria-selected=true]').getAttribute('id');
const shows = (page, id) => page.locator(`#tab-${id}[aria-selected=true]`).waitFor();

await task('views: tabs by keys, and the address has the view', async (page) => {
  await verdict(page);
  assert.equal(await chosen(page), 'tab-why');
  assert.equal(new URL(page.url()).search, '', 'the standard view needs no word in the link');
  assert.equal(await page.locator('[role=tab][tabindex="0"]').count(), 1);
  await page.locator('#tab-why').focus();
  for (const [key, id] of [
    ['ArrowRight', 'time'],
    ['End', 'document'],
    ['ArrowRight', 'why'],
    ['ArrowLeft', 'document'],
    ['Home', 'why'],
    ['ArrowRight', 'time'],
  ]) {
    await page.keyboard.press(key);
    await shows(page, id);
    assert.equal(await page.evaluate(() => document.activeElement?.id), `tab-${id}`);
  }
  assert.equal(new URL(page.url()).searchParams.get('view'), 'time');
  assert.equal(await page.locator('[role=tabpanel]').getAttribute('id'), 'time');
});

await task('views: back and forward go through them, an edit stays', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await openTab(page, 'Numbers');
  await page.waitForTimeout(1100);
  await openTab(page, 'Compare');
  await page.goBack();
  await shows(page, 'numbers');
  await page.goForward();
  await shows(page, 'compare');
  await field(page, '/workload/arrivals/rate_per_s').locator('input[type=text]').fill('9');
  await nextResult(page, first);
  assert.equal(await chosen(page), 'tab-compare', 'an edit leaves the view');
  await page.waitForFunction(() => location.hash.includes('rate_per_s=9'));
  const second = await fingerprint(page);
  await page.reload();
  await verdict(page);
  assert.equal(await fingerprint(page), second);
  assert.equal(await chosen(page), 'tab-compare', 'so does the link');
});

await task(
  'views: a strip stands above all but the first',
  async (page) => {
    await verdict(page);
    assert.equal(await chosen(page), 'tab-numbers');
    const strip = await page.locator('.strip').boundingBox();
    assert.equal(Math.round(strip.height), 56);
    assert.match(await page.locator('.strip').innerText(), /TTFT p99\s+[\d.,]+\sm?s.*tokens\/s per GPU/s);
    assert.equal(await page.locator('.tile:visible, sc-cdf-chart:visible').count(), 0);
    const ends = await page.locator('.all-numbers div', { hasText: /^Target TTFT p99 · (low|high)/ }).allInnerTexts();
    assert.equal(ends.length, 2);
    for (const end of ends) assert.match(end, /\d\s?ms$/, 'the unit of its value');
    await page.keyboard.press('1');
    await page.locator('.tile').first().waitFor();
    const height = await page.locator('#tab-why').evaluate((tab) => tab.getBoundingClientRect().height);
    assert.equal(height, 36);
    await page.keyboard.press('5');
    await field(page, '/workload/arrivals/rate_per_s').locator('input[type=text]').fill('-5');
    assert.match(await problem(page), /needs a value in range/, 'what stops a run is said in full');
    assert.equal(await page.locator('.strip').count(), 0);
  },
  { fragment: `?view=numbers#p=${preset}` },
);

await task(
  'views: one that the scenario has not, or that there is not, is the standard one',
  async (page) => {
    await verdict(page);
    assert.equal(await chosen(page), 'tab-why');
    await page.goto(page.url().replace('view=cluster', 'view=constructor'));
    await verdict(page);
    assert.equal(await chosen(page), 'tab-why');
  },
  { fragment: `?view=cluster#p=${preset}` },
);

/** What paper needs comes after the first verdict. */
const forPaper = (page) =>
  page.waitForFunction(() =>
    [...document.styleSheets, ...document.adoptedStyleSheets].some((sheet) =>
      [...sheet.cssRules].some((rule) => rule instanceof CSSMediaRule && rule.cssText.includes('@page')),
    ),
  );

await task('views: the answer is one page of paper', async (page) => {
  // With the band its sentence is longest.
  await banded(page);
  await page.locator('.blame').first().waitFor();
  await forPaper(page);
  for (const format of ['A4', 'Letter']) {
    const pdf = await page.pdf({ format, printBackground: true });
    assert.equal(pdf.toString('latin1').match(/\/Type *\/Page\b/g).length, 1, format);
  }
  await page.emulateMedia({ media: 'print' });
  const sizes = await page
    .locator('.charts canvas')
    .evaluateAll((all) => all.map(({ clientWidth, clientHeight }) => [clientWidth, clientHeight]));
  assert.ok(sizes.length >= 4, `${sizes.length} plots`);
  for (const [width, height] of sizes) assert.ok(width > 100 && height > 80, `a chart of ${width} by ${height} px`);
});

await task(
  'views: the strip is one line of a cluster, too, and shows its sentence whole, whatever the width',
  async (page) => {
    await verdict(page);
    await page.locator('#replicas').waitFor();
    assert.equal(Math.round((await page.locator('.card.strip').boundingBox()).height), 56);
    const [row] = await page.locator('.evenness-strip').evaluateAll((all) => all.map((svg) => svg.clientHeight));
    assert.ok(row < 56, `${row} px`);
    for (const width of [1360, 1200, 1024, 900, 390]) {
      await page.setViewportSize({ width, height: 900 });
      const [room, needed] = await page
        .locator('.strip .sentence')
        .evaluate((element) => [element.clientHeight, element.scrollHeight]);
      assert.ok(needed <= room, `${needed} of ${room} px at ${width}`);
    }
  },
  { fragment: '?view=cluster#p=llama-3.1-8b-h100x8-disaggregated&workload.requests=400' },
);

await task('views: figures stay in their tiles, whatever the width', async (page) => {
  await verdict(page);
  for (const width of [1360, 1280, 1200, 1100, 390, 320]) {
    await page.setViewportSize({ width, height: 900 });
    const beyond = await page
      .locator('.tile')
      .evaluateAll((all) =>
        all.map(
          (tile) =>
            Math.max(...[...tile.querySelectorAll('*')].map((each) => each.getBoundingClientRect().right)) -
            tile.getBoundingClientRect().right,
        ),
      );
    assert.ok(Math.max(...beyond) <= 0, `${beyond} px at ${width}`);
  }
});

await task(
  'views: on paper the inputs are read, and charts as well, from a window of any width',
  async (page) => {
    await verdict(page);
    await page.locator('.charts canvas').nth(2).waitFor();
    await forPaper(page);
    await page.emulateMedia({ media: 'print' });
    const form = await page.locator('.form').innerText();
    for (const name of ['Rate', 'Sequences', 'Replicas']) assert.ok(form.includes(name), `${name}: ${form}`);
    assert.equal(await page.locator('.form input[type=range]:visible').count(), 0);
    assert.equal(await page.getByLabel('Rate, req/s', { exact: true }).inputValue(), '40');
    const drawn = await page
      .locator('.charts .plots')
      .evaluateAll((all) =>
        all.map((host) =>
          Math.max(...[...host.querySelectorAll('canvas')].map(({ width }) => width / devicePixelRatio)),
        ),
      );
    // Half of a page has room for 340 px, two plots side by side each for half of that: 13 px are 7 pt on paper.
    assert.ok(drawn.length === 2 && drawn.every((width) => width <= 464), `${drawn}`);
    const text = (13 * 340) / 464;
    assert.ok(text * 0.75 >= 7, `${text} px`);
  },
  { viewport: { width: 2200, height: 1200 } },
);

await task('views: power beside the numbers when it is asked for, with bands and what is stated', async (page) => {
  await verdict(page);
  const ask = page.locator('.numbers').getByRole('button', { name: 'Power' });
  assert.equal(await page.locator('sc-power').count(), 0, 'not in a first view');
  assert.equal(await ask.getAttribute('aria-expanded'), 'false');
  await ask.click();
  const tile = page.locator('sc-power');
  await tile.locator('.value').waitFor();
  await tile.locator('sc-series-chart canvas').waitFor();
  const power = () =>
    page.evaluate(() => document.querySelector('sc-page').app.store.state.shown.outcome.report.first_run.power);
  const figure = async (name) => (await tile.locator('.power-figures > div', { hasText: name }).innerText()).trim();
  const near = (text, value) =>
    assert.ok(Math.abs(Number(text.match(/[\d.]+/)[0]) / value - 1) < 0.006, `${text} is not ${value}`);
  const known = await power();
  near(await tile.locator('.value').innerText(), known.mean_w);
  assert.match(await tile.locator('.value').innerText(), /W a GPU\s+90\s%: \d+ to \d+/);
  near((await figure('Per output token')).replace('Per output token', ''), known.j_per_output_token);
  assert.match(await figure('Per output token'), /\sJ\s+90\s%: [\d.]+ to [\d.]+/);
  assert.match(await figure('Peak'), /\d+\sW a GPU/);
  assert.match(await figure('Electricity'), /State a price per kWh/);
  await audit(page);

  // The address has it, beside the view; a stated price and intensity give cost and CO2.
  assert.equal(new URL(page.url()).search, '?tiles=power');
  await openTab(page, 'Numbers');
  await page.goBack();
  await tile.locator('.value').waitFor();
  const first = await fingerprint(page);
  await tile.getByRole('button', { name: 'State a price' }).click();
  await field(page, '/hardware/price_per_kwh').locator('input[type=text]').fill('0.25');
  await page.locator('.power-figures', { hasText: 'at $0.250 per kWh as stated' }).waitFor();
  await verdict(page);
  assert.equal(await fingerprint(page), first, 'which changes no step');
  near((await figure('Electricity')).replace('Electricity', ''), (await power()).electricity_per_hour);
  await page.reload();
  await verdict(page);
  await tile.locator('.value').waitFor();

  await ask.click();
  await tile.waitFor({ state: 'detached' });
  assert.equal(new URL(page.url()).search, '');
});

for (const [theme, size] of [
  ['dark', { width: 1440, height: 1000 }],
  ['light', { width: 390, height: 844 }],
])
  await task(
    `views: power of a card without a law is not known, and why, ${size.width} wide`,
    async (page) => {
      await verdict(page);
      const tile = page.locator('sc-power .tile');
      await tile.waitFor();
      assert.match(
        await tile.innerText(),
        /not known\s+No power law of A100 SXM 80 GB is known: its power was not measured/,
      );
      assert.doesNotMatch(await tile.innerText(), /\d\sW\b|\d\sJ\b/);
      await audit(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${wide} px too wide`);
      await tile.getByRole('button', { name: 'State the card’s power' }).click();
      const busy = field(page, '/hardware/busy_w').locator('input[type=text]');
      await busy.fill('250');
      await page.locator('sc-power .value', { hasText: 'W a GPU' }).waitFor();
      assert.match(await page.locator('sc-power').innerText(), /error not known/);
    },
    {
      viewport: size,
      colorScheme: theme,
      fragment: `?tiles=power#p=${preset}&hardware.preset=a100-80gb&workload.arrivals.rate_per_s=8`,
    },
  );

// A person's tasks on the built site: under a sub-path, with the production policy, in Chromium.
// Prints a line a task and, last, the counts; exits 1 when one failed. One task after the other. Those
// before beginOthers() are the main ones.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import {
  bandedTail,
  dropFile,
  field,
  fingerprint,
  inEveryTab,
  nextResult,
  openTab,
  problem,
  turnGroup,
  verdict,
} from './browser.mjs';
import { audit, beginOthers, finish, heard, openEverything, preset, site, smallTrace, task } from './harness.mjs';

// --- Loading -----------------------------------------------------------------------------------

await task(
  'load: first verdict',
  async (page) => {
    const times = [];
    let longest = Infinity;
    for (let round = 0; round < 3; round += 1) {
      await page.goto('about:blank');
      const cdp = await page.context().newCDPSession(page);
      await cdp.send('Network.clearBrowserCache');
      await page.goto(site.url);
      await verdict(page);
      await page.waitForTimeout(500);
      const seen = await page.evaluate(() => window.seen);
      times.push(Math.round(seen.verdict_ms));
      longest = Math.min(longest, seen.longest_task_ms);
    }
    assert.ok(Math.min(...times) <= 1000, `first verdict after ${times} ms; at most 1,000 are allowed`);
    return `verdict ${times.join(', ')} ms after navigation start; longest main-thread task ${Math.round(longest)} ms`;
  },
  { alone: true },
);

await task(
  'load: nothing is requested afterwards',
  async (page) => {
    await verdict(page);
    // All that belongs to this version is fetched once, when the verdict is there.
    await page.evaluate(() => navigator.serviceWorker.ready);
    await page.waitForFunction(() => navigator.serviceWorker.controller !== null);
    await page.waitForTimeout(300);
    const before = site.requests.length;
    const other = [];
    page.on(
      'request',
      (request) => request.url().startsWith('data:') || request.url().startsWith('blob:') || other.push(request),
    );
    const first = await fingerprint(page);
    await field(page, '/workload/arrivals/rate_per_s').locator('input[type=text]').fill('9');
    await nextResult(page, first);
    await openEverything(page);
    await inEveryTab(page, () => {});
    const synthetic = await fingerprint(page);
    await dropFile(page, 'small.csv', Buffer.from(smallTrace(40)));
    await nextResult(page, synthetic);
    // Parts of the page and tables of operators come when they are needed, from where the page came; nothing is sent, and
    // the trace stays on this machine.
    const strange = other.filter(
      (request) =>
        request.method() !== 'GET' ||
        !request.url().startsWith(site.url) ||
        !/\/(assets|presets\/operators)\/[^/?]+(\?\w+)?$/.test(request.url()),
    );
    assert.deepEqual(
      strange.map((request) => `${request.method()} ${request.url()}`),
      [],
    );
    assert.deepEqual(heard(before), [], 'what was fetched with the first visit is not asked for again');
  },
  { serviceWorkers: 'allow' },
);

// --- Editing -----------------------------------------------------------------------------------

/** Cumulative, at load and where ways out come. */
const mostShift = 0.05;

await task('load: what the first verdict needs is within the budget, and nothing jumps', async (page) => {
  // Of what comes later, parts, charts and the worker's fill, nothing is asked for before the certain verdict.
  const asked = await page.evaluate(async () => {
    await new Promise((resolve) => {
      const look = () => (document.querySelector('[data-complete="final"]') ? resolve() : requestAnimationFrame(look));
      look();
    });
    return performance
      .getEntriesByType('resource')
      .filter(({ startTime }) => startTime < window.seen.verdict_ms)
      .map(({ name }) => new URL(name).pathname.split('/').at(-1));
  });
  const later = asked.filter((name) => /^(forecast|chart-element|series-chart|later|why|tour|memory-bar)\b/.test(name));
  assert.deepEqual(later, [], 'parts of the page before its first verdict');
  await page.locator('sc-tail-chart canvas').first().waitFor();
  await page.locator('sc-series-chart canvas').first().waitFor();
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  const moved = await page.evaluate(() => window.seen.layout_shift);
  assert.ok(moved <= mostShift, `cumulative layout shift ${moved.toFixed(3)}`);
  return `${asked.length} files, cumulative layout shift ${moved.toFixed(3)}`;
});

let letEngineIn;
const engineHeld = new Promise((resolve) => (letEngineIn = resolve));
await task(
  'load: until the engine is there, the page says what it does and how much it loads',
  async (page) => {
    const intro = page.locator('sc-page .verdict .intro');
    await intro.waitFor();
    assert.match(await intro.innerText(), /^Servecast forecasts how[\s\S]*Loading the engine, about \d+ KB\.$/);
    const before = await page.evaluate(() => window.seen.layout_shift);
    letEngineIn();
    await verdict(page);
    assert.equal(await intro.count(), 0);
    const moved = await page.evaluate(() => window.seen.layout_shift);
    assert.ok(moved <= mostShift, `cumulative layout shift ${moved.toFixed(3)}`);
    return `cumulative layout shift ${before.toFixed(3)} before, ${moved.toFixed(3)} after`;
  },
  {
    viewport: { width: 390, height: 844 },
    before: (page) => page.route(/\.wasm$/, (route) => engineHeld.then(() => route.continue())),
  },
);

for (const [name, viewport, more] of [
  ['on a phone', { width: 390, height: 844 }, ''],
  ['on a phone, and ways out come', { width: 390, height: 844 }, '&workload.arrivals.rate_per_s=55'],
  ['and ways out come', { width: 1440, height: 1000 }, '&workload.arrivals.rate_per_s=55'],
])
  await task(
    `load: nothing jumps ${name}`,
    async (page) => {
      await page.locator('[data-complete="final"] .sentence:not(.awaits)').waitFor();
      if (more !== '') await page.locator('sc-ways-out tbody tr').first().waitFor();
      await page.locator('#verdict').waitFor();
      assert.equal(
        await page.evaluate(() => getComputedStyle(document.querySelector('.charts')).visibility),
        'visible',
      );
      const moved = await page.evaluate(() => window.seen.layout_shift);
      assert.ok(moved <= mostShift, `cumulative layout shift ${moved.toFixed(3)}`);
      return `cumulative layout shift ${moved.toFixed(3)}`;
    },
    { viewport, fragment: `#p=${preset}${more}` },
  );

await task('preset: another one runs', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await page.keyboard.press('/');
  await page.locator('#preset-list li:visible').first().waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('/');
  await page.keyboard.type('rag');
  await page.locator('#preset-list li:visible').first().waitFor();
  await page.keyboard.press('Enter');
  await nextResult(page, first);
  assert.match(await page.inputValue('sc-preset-picker input'), /rag|retriev/i);
  const second = await fingerprint(page);
  await page.keyboard.press('/');
  await page.keyboard.type('code');
  await page.keyboard.press('Enter');
  await nextResult(page, second);
  assert.match(await page.inputValue('sc-preset-picker input'), /^Code/, 'starts of words come first');
});

await task('rate: typing and dragging change the result', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  const rate = field(page, '/workload/arrivals/rate_per_s');
  await rate.locator('input[type=text]').fill('8');
  await nextResult(page, first);
  const second = await fingerprint(page);
  await page.evaluate(() => (window.seen.longest_task_ms = 0));
  const slider = rate.locator('input[type=range]');
  const box = await slider.boundingBox();
  await page.mouse.move(box.x + box.width * 0.4, box.y + box.height / 2);
  await page.mouse.down();
  for (let step = 0; step < 20; step += 1)
    await page.mouse.move(box.x + box.width * (0.4 + step / 100), box.y + box.height / 2);
  await page.mouse.up();
  await nextResult(page, second);
  await page.waitForTimeout(300);
  const longest = await page.evaluate(() => window.seen.longest_task_ms);
  const third = await fingerprint(page);
  await rate.locator('.reset').click();
  await nextResult(page, third);
  assert.equal(await fingerprint(page), first, 'a reset gives the first result again');
  return `longest main-thread task while dragging ${Math.round(longest)} ms`;
});

await task('overload: far above capacity ends and says so', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await field(page, '/workload/arrivals/rate_per_s').locator('input[type=text]').fill('5000');
  await nextResult(page, first);
  assert.equal(await page.getAttribute('[data-complete]', 'data-state'), 'overloaded');
});

await task('no limit: the verdict is still an answer', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  for (;;) {
    const remove = page.locator('.limit .icon').first();
    if ((await remove.count()) === 0) break;
    await remove.click();
    await page.waitForTimeout(400);
  }
  await nextResult(page, first);
  assert.equal(await page.getAttribute('[data-complete]', 'data-state'), 'no_slo');
  await page.getByRole('button', { name: 'Add a target' }).click();
  await page.locator('.limit').first().waitFor();
  await page.waitForSelector('[data-complete="final"]:not([data-state="no_slo"])');
  assert.notEqual(await page.getAttribute('[data-complete]', 'data-state'), 'misses', 'a new limit is one that is met');
  assert.match(await field(page, '/slo/0/limit_ms').locator('input[type=text]').inputValue(), /^[125]0*$/);
});

await task(
  'empty: the card is as high as its words',
  async (page) => {
    await verdict(page);
    const [card, svg, word] = await Promise.all(
      ['.verdict', '.sign svg', '.sign b'].map((part) => page.locator(part).boundingBox()),
    );
    assert.ok(
      card.height < 140 && word.y - svg.y - svg.height < 12,
      `a card ${card.height} px high, ${word.y - svg.y - svg.height} px between sign and word`,
    );
  },
  { fragment: `#p=${preset}&measure.warmup_s=100000` },
);

await task('prefix cache: said in a card, where something is shared', async (page) => {
  await verdict(page);
  assert.equal(await page.locator('#prefix-cache').count(), 0, 'independent prompts find nothing');
  const first = await fingerprint(page);
  await turnGroup(page, 'Workload details');
  await field(page, '/workload/sessions/turns').locator('input[type=text]').fill('5');
  await nextResult(page, first);
  assert.match(
    await page.textContent('.chart #prefix-cache'),
    /% of prompt tokens hit\s+\([\d.]+\s*% of blocks\), counted when a prompt is first admitted/,
  );
  const rate = field(page, '/workload/arrivals/rate_per_s');
  assert.equal(await rate.locator('.unit').textContent(), 'sessions/s');
  assert.equal(await rate.locator('.help').textContent(), '40 sessions/s × 5 turns = 200 req/s');
});

await task('words: help is sentences, choices are explained, one is one', async (page) => {
  await verdict(page);
  await turnGroup(page, 'Engine and scheduler');
  const order = field(page, '/scheduler/order');
  await order.locator('.help-button').click();
  assert.match(await order.locator('p.help').textContent(), /^[A-Z].*first\. Default: fcfs\./);
  assert.equal(await order.locator('.help li').count(), await order.locator('option').count());
  assert.equal(await order.locator('option[value=sjf]').getAttribute('title'), 'Shortest prompt first');
  const first = await fingerprint(page);
  const requests = field(page, '/workload/requests').locator('input[type=text]');
  await requests.fill('1');
  await nextResult(page, first);
  assert.match(await page.textContent('.footer'), /\s1 request\s/);
});

await task('price: that of the GPU with its terms and date, or one’s own', async (page) => {
  await verdict(page);
  const says = (pattern) =>
    page.waitForFunction(
      (text) => new RegExp(text).test(document.querySelector('.numbers')?.textContent ?? ''),
      pattern,
    );
  await says('\\$2\\.50\\sper GPU-hour, reserved for a year, \\w+ 20\\d\\d');
  await field(page, '/hardware/price_per_gpu_hour').locator('input[type=text]').fill('3');
  await says('\\$3\\.00\\sper GPU-hour, your price');
});

await task('invalid: a value out of range shows the range', async (page) => {
  await verdict(page);
  const rate = field(page, '/workload/arrivals/rate_per_s');
  const input = rate.locator('input[type=text]');
  for (const bad of ['-5', '1e300']) {
    await input.fill(bad);
    await rate.locator('.field-error').waitFor();
    assert.match(await rate.locator('.field-error').textContent(), /allowed.* to [\d,]+ req\/s/i);
    assert.equal(await input.getAttribute('aria-invalid'), 'true');
    assert.match(await problem(page), /1 field needs a value in range/);
    assert.equal(await page.locator('.results.stale .numbers').count(), 1, 'the numbers stay, marked stale');
    const coloured = await page
      .locator('.stale .key')
      .evaluateAll(
        (keys) =>
          keys.filter(
            (key) =>
              !key.closest('.plots, .readout') || getComputedStyle(key.closest('.plots, .readout')).filter === 'none',
          ).length,
      );
    assert.equal(coloured, 0, 'legends are grey as their curves');
  }
  await input.fill('NaN');
  await page.getByText('“NaN” is not a number').waitFor();
  await input.fill('14');
  await verdict(page);
  assert.equal(await input.getAttribute('aria-invalid'), 'false');
});

await task('invalid: every bad field says so, whatever is wrong with it', async (page) => {
  await verdict(page);
  const rate = field(page, '/workload/arrivals/rate_per_s');
  const requests = field(page, '/workload/requests');
  const bothMarked = async () => {
    await page.getByText('2 fields need a value in range').waitFor();
    for (const each of [rate, requests]) assert.match(await each.locator('.field-error').textContent(), /allowed/i);
    assert.equal(await page.locator('.results.stale .numbers').count(), 1);
  };
  await rate.locator('input[type=text]').fill('NaN');
  await requests.locator('input[type=text]').fill('0');
  await bothMarked();
  await rate.locator('input[type=text]').fill('14');
  await page.getByText('1 field needs a value in range').waitFor();
  await rate.locator('input[type=text]').fill('x');
  await bothMarked();
  await requests.locator('input[type=text]').fill('500');
  await rate.locator('input[type=text]').fill('14');
  await verdict(page);
  assert.equal(await page.locator('.stale').count(), 0);
});

await task('invalid: a message leads to a field in a closed group', async (page) => {
  await verdict(page);
  await openTab(page, 'Document');
  const text = JSON.parse(await page.inputValue('#scenario-text'));
  await page.fill('#scenario-text', JSON.stringify({ ...text, measure: { warmup_s: -1 } }));
  await page.getByRole('button', { name: 'Apply' }).click();
  await page.locator('#scenario-issues').getByText('measure.warmup_s').waitFor();
  await page.fill('#scenario-text', '{"a": ');
  await page.getByRole('button', { name: 'Apply' }).click();
  await page.locator('#scenario-issues li').first().waitFor();
  await page.getByRole('button', { name: 'Revert' }).click();
  await turnGroup(page, 'Everything');
  await field(page, '/measure/warmup_s').locator('input[type=text]').fill('-1');
  await problem(page);
  await turnGroup(page, 'Everything');
  await page.getByRole('button', { name: 'Measure, warmup' }).click();
  await page.waitForFunction(
    () => document.activeElement?.closest('sc-field')?.dataset.pointer === '/measure/warmup_s',
  );
});

await task('empirical: chosen from the menu it has a table that runs', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await page.getByRole('button', { name: 'Prompt, p50', exact: true }).click();
  await field(page, '/workload/prompt_tokens/distribution').locator('select').selectOption('empirical');
  await nextResult(page, first);
  const table = field(page, '/workload/prompt_tokens/quantiles').locator('textarea');
  const second = await fingerprint(page);
  await table.fill('[[0, 10], [1, 500]]');
  await nextResult(page, second);
  await table.fill('[[0, 10]');
  await page.getByText(/is not a JSON list/).waitFor();
});

await task('does not fit: the numbers are said', async (page) => {
  await verdict(page);
  await field(page, '/model/preset').locator('select').selectOption('llama-3.1-70b');
  await field(page, '/hardware/preset').locator('select').selectOption('rtx-4090');
  await page.waitForSelector('[data-state="does_not_fit"]');
  assert.match(await problem(page), /\d.*\sGi?B/);
});

await task('scenario text: applied', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await openTab(page, 'Document');
  const text = JSON.parse(await page.inputValue('#scenario-text'));
  await page.fill('#scenario-text', JSON.stringify({ ...text, name: 'Mine <b>bold</b>', seed: 7 }));
  await page.getByRole('button', { name: 'Apply' }).click();
  await nextResult(page, first);
  assert.equal(await page.inputValue('sc-preset-picker input'), 'Mine <b>bold</b>');
});

await task('classes: one is added, edited and removed', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await openEverything(page);
  await page.getByRole('button', { name: 'Add a class of clients' }).first().click();
  await nextResult(page, first);
  const added = await fingerprint(page);
  await page.locator('sc-field[data-pointer="/workload/classes/0/timeout_s"]:visible input').first().fill('0.001');
  await nextResult(page, added);
  assert.match(await page.textContent('#verdict-note'), /timed out/);
  await page
    .locator('h4:visible', { hasText: /^workload · classes · 1$/ })
    .first()
    .waitFor();
  assert.equal(await page.locator('h4:visible', { hasText: '· 0' }).count(), 0, 'people count from 1');
  await page.getByRole('button', { name: 'Remove class 1' }).first().click();
  await page.waitForFunction((before) => document.querySelector('#fingerprint')?.textContent === before, first);
});

// --- Long runs ---------------------------------------------------------------------------------

await task(
  'long run: progress, partial results, cancel',
  async (page) => {
    await page.locator('.progress-line').waitFor({ timeout: 300_000 });
    await page.locator('[data-complete="partial"]').waitFor();
    const begin = performance.now();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByText(/Cancelled at \d+/).waitFor();
    const took = Math.round(performance.now() - begin);
    await page.waitForTimeout(300);
    assert.equal(await page.locator('.progress-line').count(), 0);
    assert.ok(parseFloat((await page.textContent('.cancelled b')).match(/[\d.]+/)) < 100, 'it stops before its end');
    assert.equal(await page.textContent('.sign b'), 'Partial');
    assert.equal(await page.locator('#fingerprint').count(), 0, 'a part of a run cannot be reproduced');
    const longest = await page.evaluate(() => window.seen.longest_task_ms);
    return `${(await page.textContent('.cancelled b')).trim()} seen ${took} ms after the click; longest main-thread task ${Math.round(longest)} ms`;
  },
  { fragment: `#p=${preset}&workload.requests=3000000` },
);

await task(
  'long run: an edit replaces it',
  async (page) => {
    await page.locator('.progress-line').waitFor({ timeout: 300_000 });
    await field(page, '/workload/requests').locator('input[type=text]').fill('500');
    await verdict(page);
    assert.match(await page.textContent('.footer'), /500 requests/);
  },
  { fragment: `#p=${preset}&workload.requests=3000000` },
);

await task('keys: space runs, ? helps, digits open views', async (page) => {
  await verdict(page);
  await page.keyboard.press('?');
  await page.locator('#keys[open]').waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('5');
  await page.locator('#numbers table').first().waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.id), 'tab-numbers');
  await page.keyboard.press('7');
  assert.equal(await page.locator('#numbers').count(), 1, 'one replica has no cluster to look at');
  await page.keyboard.press('1');
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press('Space');
  await verdict(page);
  await page.locator('sc-tail-chart .plots').focus();
  await page.keyboard.press('ArrowRight');
  await page
    .getByText(/or less/)
    .first()
    .waitFor();
});

await task(
  'charts: table, CSV, PNG and SVG',
  async (page) => {
    await verdict(page);
    await page.locator('sc-tail-chart .u-wrap').first().waitFor();
    for (const kind of ['CSV', 'PNG', 'SVG']) {
      const [file] = await Promise.all([page.waitForEvent('download'), page.selectOption('sc-tail-chart .save', kind)]);
      assert.ok(file.suggestedFilename().endsWith(`.${kind.toLowerCase()}`));
      const bytes = readFileSync(await file.path());
      if (kind === 'CSV')
        assert.match(bytes.toString('utf8'), /^cdf_fraction,cdf_ttft_ms,cdf_tpot_ms,cdf_itl_ms,cdf_e2e_ms\n0/);
      else if (kind === 'PNG') assert.ok(bytes.length > 5000);
      else {
        const text = bytes.toString('utf8');
        assert.match(text, /^<svg [\s\S]*p99\.9[\s\S]*>200\u202fms<[\s\S]*<\/svg>\n$/);
        assert.ok((text.match(/L/g) ?? []).length > 200, 'the curves are there');
      }
    }
    await page.locator('sc-tail-chart').getByRole('button', { name: 'Table' }).click();
    await page.locator('sc-tail-chart').getByRole('rowheader', { name: 'p99', exact: true }).waitFor();
  },
  { acceptDownloads: true },
);

await task(
  'charts: bands go along the tail of every run, with the tile’s figures, in the table and in the file',
  async (page) => {
    await page.locator('sc-tail-chart .readout').filter({ hasText: 'The dot is p99, with its band.' }).waitFor();
    await bandedTail(page);
    const chart = page.locator('sc-tail-chart');
    const heads = await chart.locator('.tail-figure').allInnerTexts();
    const tiles = await page.locator('.tile .interval.term').allInnerTexts();
    const known = await page.evaluate(() => {
      const { bands } = document.querySelector('sc-page').app.store.state.tail_bands;
      return Object.entries(bands).map(([metric, points]) => [
        metric,
        points.every(
          ({ low, high, value_ms: value, band }) => band && band.low <= low && low <= value && value <= high,
        ),
        points.map(({ percentile }) => percentile),
      ]);
    });
    assert.deepEqual(
      known,
      ['ttft', 'tpot', 'e2e'].map((metric) => [metric, true, [50, 75, 90, 95, 98, 99, 99.5, 99.9]]),
    );
    const [file] = await Promise.all([page.waitForEvent('download'), page.selectOption('sc-tail-chart .save', 'SVG')]);
    const shades = readFileSync(await file.path(), 'utf8').match(/opacity="0\.\d+"/g) ?? [];
    assert.deepEqual(
      shades,
      ['opacity="0.16"', 'opacity="0.3"', 'opacity="0.16"', 'opacity="0.3"'],
      'two in each panel',
    );
    await chart.getByRole('button', { name: 'E2E' }).click();
    await chart
      .locator('.tail-figure', { hasText: /p99 [\d.,]+\sm?s \([\d.,]+ to [\d.,]+\)/ })
      .nth(2)
      .waitFor();
    await chart.getByRole('button', { name: 'Table' }).click();
    const row = await chart.getByRole('row', { name: /^p99 / }).innerText();
    for (const [index, head] of heads.entries()) {
      const [, between] = /\((.+)\)$/.exec(head);
      assert.ok(
        tiles[index].includes(between) && row.includes(`(${between})`),
        `${between} in "${tiles[index]}", "${row}"`,
      );
    }
    assert.match(await chart.locator('caption').innerText(), /the 90\s% band of sampling and model error/);
    assert.ok((await page.evaluate(() => window.seen.layout_shift)) <= mostShift);
    return heads.join(', ');
  },
  { acceptDownloads: true },
);

await task(
  'charts: one run has no band, and none is claimed',
  async (page) => {
    await verdict(page);
    await page.waitForTimeout(2000);
    assert.equal(await page.locator('sc-tail-chart .readout').innerText(), 'The dot is p99.');
    assert.deepEqual(
      (await page.locator('sc-tail-chart .tail-figure').allInnerTexts()).map((each) => /\(/.test(each)),
      [false, false],
    );
  },
  { fragment: `#p=${preset}&slo=[]` },
);

await import('./verdicts.mjs');
await import('./stories.mjs');
await import('./views.mjs');
await import('./rail.mjs');

beginOthers();
await import('./shifts.mjs');
await import('./over-time.mjs');
await import('./files-and-links.mjs');
await import('./sharing.mjs');
await import('./doors.mjs');
await import('./calibrating.mjs');
await import('./embedding.mjs');
await import('./comparing.mjs');
await import('./planning.mjs');
await import('./presets.mjs');
await import('./clusters.mjs');
await import('./mishaps.mjs');
await import('./living.mjs');

// --- Everybody ---------------------------------------------------------------------------------

for (const [name, options] of Object.entries({
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true },
})) {
  await task(
    `axe: ${name}, at first, in every view, and with everything open`,
    async (page) => {
      await verdict(page);
      await page.waitForTimeout(300);
      await audit(page);
      await inEveryTab(page, () => audit(page));
      await openEverything(page);
      await audit(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `the page is ${wide} px wider than the window`);
    },
    options,
  );
}
await task(
  'narrow: a limit is one line, large numbers are whole, units stay',
  async (page) => {
    await page.locator('.progress-line').waitFor({ timeout: 300_000 });
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.locator('.rail > summary').click();
    const requests = field(page, '/workload/requests').locator('input[type=text]');
    assert.equal(await requests.inputValue(), '5,000,000');
    assert.ok(await requests.evaluate((input) => input.scrollWidth <= input.clientWidth), 'the number is cut');
    const limit = page.locator('.limit').first();
    const boxes = await Promise.all(
      [limit.locator('.icon'), limit.locator('input[type=text]')].map((part) => part.boundingBox()),
    );
    assert.ok(Math.abs(boxes[0].y - boxes[1].y) < 8, 'the remove button is beside its limit');
    const apart = /(\d|limit|median)[ \u2009](%|\d|[mµ]?s\b|min\b|h\b|GPU|tokens\/s|requests\/s)/;
    for (const text of await page.locator('.sentence, .tile').allInnerTexts()) assert.doesNotMatch(text, apart);
  },
  { viewport: { width: 320, height: 800 }, fragment: `#p=${preset}&workload.requests=5000000` },
);
await task(
  'axe: errors',
  async (page) => {
    await verdict(page);
    await field(page, '/workload/arrivals/rate_per_s').locator('input[type=text]').fill('-5');
    await problem(page);
    const listed = await page.locator('.issues li').first().innerText();
    assert.match(listed, /^Rate:\s+−5 is not allowed; from 0\.000001 to 1,000,000.req\/s\.$/);
    assert.ok(!(await page.locator('main').innerText()).includes('/workload/'), 'no pointer is said');
    await audit(page);
  },
  { colorScheme: 'dark' },
);

await task(
  'theme: chosen and kept',
  async (page) => {
    await verdict(page);
    await page.getByLabel('Theme').selectOption('dark');
    await page.reload();
    await verdict(page);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  },
  { colorScheme: 'light' },
);

await finish();

// Tasks of several pools, of prefill and decode apart, and of the requests' timeline. Part of run.mjs.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { field, fingerprint, nextResult, openTab, problem, verdict } from './browser.mjs';
import { audit, openEverything, task } from './harness.mjs';

// Well below what they serve: verdicts there are soon certain.
const aggregated = '#p=llama-3.1-8b-h100x8-aggregated&workload.requests=400&workload.arrivals.rate_per_s=15';
const apart = '#p=llama-3.1-8b-h100x8-disaggregated&workload.requests=400&workload.arrivals.rate_per_s=15';
const pool = (index, key) => `/cluster/pools/${index}/${key}`;
const button = (page, name) => page.getByRole('button', { name, exact: true });
const cells = (page, table) =>
  page.$$eval(`${table} tbody tr`, (rows) =>
    rows.map((row) => [...row.cells].map((cell) => cell.innerText.replaceAll(/\s+/g, ' '))),
  );

await task(
  'pools: GPU and engine of one are edited, and inherited again',
  async (page) => {
    await verdict(page);
    const first = await fingerprint(page);
    const gpu = field(page, pool(1, 'hardware/preset'));
    assert.match(await gpu.locator('option:checked').textContent(), /^H100.*as above$/);
    await gpu.locator('select').selectOption('a100-80gb');
    await nextResult(page, first);
    const slower = await fingerprint(page);
    await page.locator('.pool').nth(1).locator('summary', { hasText: 'Engine of this pool' }).click();
    const seats = field(page, pool(1, 'engine/max_num_seqs'));
    assert.equal(await seats.locator('.tag').textContent(), 'inherited');
    await seats.locator('input[type=text]').fill('16');
    await nextResult(page, slower);
    await seats.locator('.reset').click();
    await page.waitForFunction((old) => document.querySelector('#fingerprint')?.textContent === old, slower);
    assert.equal(await seats.locator('input[type=text]').inputValue(), '256');
    await gpu.locator('.reset').click();
    await page.waitForFunction((old) => document.querySelector('#fingerprint')?.textContent === old, first);
    assert.match(await gpu.locator('option:checked').textContent(), /as above$/);
  },
  { fragment: apart },
);

await task(
  'pools: a link brings the same pools again, GPU by name',
  async (page) => {
    await verdict(page);
    const first = await fingerprint(page);
    await field(page, pool(1, 'hardware/preset')).locator('select').selectOption('h200-sxm');
    await nextResult(page, first);
    const second = await fingerprint(page);
    await page.locator('.pool').nth(0).locator('summary', { hasText: 'Engine of this pool' }).click();
    await field(page, pool(0, 'engine/max_num_batched_tokens')).locator('input[type=text]').fill('8192');
    await nextResult(page, second);
    const edited = await fingerprint(page);
    await page.waitForTimeout(800);
    await page.goto('about:blank');
    await page.goBack();
    await verdict(page);
    assert.equal(await fingerprint(page), edited);
    assert.equal(await field(page, pool(1, 'hardware/preset')).locator('select').inputValue(), 'h200-sxm');
    assert.match(
      await page.locator('.pool').nth(1).innerText(),
      /1 of its own/,
      'a preset, not its figures written out',
    );
    assert.match(await page.locator('.pool').nth(0).innerText(), /Engine of this pool 1 of its own/);
    assert.equal(await field(page, pool(0, 'replicas')).locator('input[type=text]').inputValue(), '3');
    return `${(await page.evaluate(() => location.href)).length} characters`;
  },
  { fragment: apart },
);

await task(
  'pools: added and removed, split and joined, always a scenario that runs',
  async (page) => {
    await verdict(page);
    const first = await fingerprint(page);
    assert.equal(await page.locator('.pool').count(), 0, 'one pool has no card');
    await button(page, 'Split prefill and decode').click();
    await nextResult(page, first);
    const split = await fingerprint(page);
    assert.equal(await page.locator('.pool').count(), 2);
    assert.equal(await field(page, pool(0, 'replicas')).locator('input[type=text]').inputValue(), '4');
    await page.locator('summary', { hasText: 'Routers and link' }).click();
    await field(page, '/cluster/disaggregation/bandwidth_gb_s').locator('input[type=text]').fill('20');
    await nextResult(page, split);
    const narrow = await fingerprint(page);
    await button(page, 'Add a pool').click();
    await nextResult(page, narrow);
    assert.equal(await field(page, pool(2, 'role')).locator('select').inputValue(), 'decode');
    const three = await fingerprint(page);
    await page.getByRole('button', { name: 'Remove pool 3' }).click();
    await nextResult(page, three);
    assert.equal(await fingerprint(page), narrow);
    await button(page, 'Join prefill and decode').click();
    await page.waitForFunction((old) => document.querySelector('#fingerprint')?.textContent === old, first);
    await button(page, 'Add a pool').click();
    await nextResult(page, first);
    await page.getByRole('button', { name: 'Remove pool 2' }).click();
    await page.waitForFunction((old) => document.querySelector('#fingerprint')?.textContent === old, first);
  },
  { fragment: aggregated },
);

await task(
  'pools: what is wrong stands at the field, and the message leads there',
  async (page) => {
    await verdict(page);
    const five = await fingerprint(page);
    const replicas = field(page, pool(1, 'replicas'));
    await replicas.locator('input[type=text]').fill('5000');
    await replicas.locator('.field-error').waitFor();
    assert.match(await replicas.locator('.field-error').textContent(), /5000.*allowed.*1,?024/);
    await replicas.locator('input[type=text]').fill('');
    await replicas.locator('input[type=text]').blur();
    await nextResult(page, five); // the former one stays in view, marked, until then
    assert.equal(
      await replicas.locator('input[type=text]').inputValue(),
      '1',
      'emptied, the default is in force and the pool stays',
    );
    const summary = page.locator('.pool').nth(1).locator('summary', { hasText: 'Engine of this pool' });
    await summary.click();
    await field(page, pool(1, 'engine/block_size')).locator('input[type=text]').fill('32');
    await problem(page);
    await summary.click();
    await page
      .locator('.issues')
      .getByRole('button', { name: /^Pool 2, / })
      .click();
    await page.waitForFunction(
      (at) => document.activeElement?.closest('sc-field')?.dataset.pointer === at,
      pool(1, 'engine/block_size'),
    );
    assert.match(
      await field(page, pool(1, 'engine/block_size')).locator('.field-error').textContent(),
      /32.*allowed 16/,
    );
    await audit(page);
    await page.locator(`sc-field[data-pointer="${pool(1, 'engine/block_size')}"] .reset`).click();
    await verdict(page);
    await field(page, pool(0, 'role')).locator('select').selectOption('mixed');
    await problem(page);
    assert.match(await page.textContent('.issues'), /role/);
    assert.ok((await page.locator('.pool .field-error').count()) > 0);
  },
  { fragment: apart },
);

await task(
  'pools: a text that is no number goes with its pool',
  async (page) => {
    await verdict(page);
    await field(page, pool(1, 'tensor_parallel')).locator('input[type=text]').fill('two');
    await problem(page);
    await page.getByRole('button', { name: 'Remove pool 2' }).click();
    await verdict(page);
  },
  { fragment: apart },
);

await task(
  'pools: by the keyboard alone',
  async (page) => {
    await verdict(page);
    const first = await fingerprint(page);
    await field(page, '/hardware/preset').locator('select').focus();
    for (let step = 0; step < 40; step += 1) {
      await page.keyboard.press('Tab');
      if (
        await page.evaluate(
          (at) => document.activeElement?.closest('sc-field')?.dataset.pointer === at,
          pool(0, 'replicas'),
        )
      )
        break;
    }
    await page.keyboard.press('Control+A');
    await page.keyboard.type('2');
    await nextResult(page, first);
    assert.equal(await field(page, pool(0, 'replicas')).locator('input[type=text]').inputValue(), '2');
  },
  { fragment: apart },
);

await task(
  'compare: whole requests and every split, one click away',
  async (page) => {
    await verdict(page);
    await button(page, 'Compare splits').click();
    await page.waitForFunction(
      () =>
        document.querySelector('#compared')?.rows.length > 8 &&
        !document.querySelector('#compared').textContent.includes('Simulating'),
      null,
      { timeout: 300_000 },
    );
    const rows = await cells(page, '#compared');
    assert.match(rows[0][0], /^8 replicas yours, as it is/);
    assert.deepEqual(
      rows.slice(1).map(([name]) => name),
      [1, 2, 3, 4, 5, 6, 7].map((prefill) => `${prefill} prefill + ${8 - prefill} decode`),
    );
    const heads = await page.$$eval('#compared thead th', (head) => head.map((cell) => cell.innerText));
    const goodput = heads.findIndex((text) => text.startsWith('Goodput'));
    assert.ok(
      rows.every((row) => /\d/.test(row[goodput])),
      'each has its goodput',
    );
    const wide = await page.$eval('#compare .table-scroll', (region) => region.scrollWidth - region.clientWidth);
    assert.ok(wide <= 0, `the table is ${wide} px wider than its card`);
    await field(page, pool(0, 'replicas')).locator('input[type=text]').fill('1');
    await page.getByText('Empty: this scenario has no such choice').waitFor();
    await page.selectOption('#compare-by', '/hardware/preset');
    await page.waitForFunction(() => document.querySelector('#compared')?.rows.length > 2);
  },
  { fragment: aggregated },
);

await task(
  'timeline: a chart that has the focus keeps it when the result is another',
  async (page) => {
    await verdict(page);
    await openTab(page, 'Over time');
    const plots = page.locator('sc-request-chart .plots');
    await plots.locator('canvas').first().waitFor();
    await plots.focus();
    const first = await fingerprint(page);
    await plots.evaluate((element) => (window.focused = element));
    await page.evaluate(() => (location.hash += '&seed=3'));
    await nextResult(page, first);
    await page.waitForFunction(() => {
      const { activeElement } = document;
      return activeElement?.matches('sc-request-chart .plots') && activeElement !== window.focused;
    });
  },
  { fragment: aggregated },
);

await task(
  'timeline: KV transfers are drawn, named and in the table',
  async (page) => {
    await verdict(page);
    await openTab(page, 'Over time');
    const chart = page.locator('sc-request-chart');
    await chart.locator('canvas').waitFor();
    assert.match(await chart.locator('.pane-key').innerText(), /KV transfer/);
    await page.getByText('KV transfers under way, prefill to decode', { exact: true }).waitFor();
    await chart.locator('.plots').focus();
    // On a slow machine the first key may come before the requests are there to walk along.
    const readout = () => page.evaluate(() => document.querySelector('sc-request-chart .readout')?.innerText ?? '');
    for (let turn = 0; turn < 100 && !/KV transfer [\d.]+\sms/.test(await readout()); turn += 1) {
      await page.keyboard.press('ArrowDown');
      await page.waitForTimeout(100);
    }
    assert.match(await readout(), /KV transfer [\d.]+\sms/);
    const [top] = await chart.locator('.readout b').allInnerTexts();
    await page.keyboard.press('ArrowDown');
    await page.waitForFunction((old) => document.querySelector('sc-request-chart .readout b')?.innerText !== old, top);
    for (const key of ['+', '+', '0', '-']) await page.keyboard.press(key);
    await chart.getByLabel('Which requests').selectOption('arrival');
    await chart.getByRole('button', { name: 'Requests after these' }).click();
    await chart.getByRole('button', { name: 'Table' }).click();
    const rows = await cells(page, 'sc-request-chart table');
    assert.equal(rows.length, 20);
    assert.match(rows[0][0], /^21$/);
    assert.match(rows[0][1], /\d → \d/);
    const [file] = await Promise.all([page.waitForEvent('download'), chart.locator('.save').selectOption('CSV')]);
    const lines = readFileSync(await file.path(), 'utf8')
      .trim()
      .split('\n');
    assert.equal(lines.length, 401);
    assert.ok(lines[0].includes('transfer_ms'));
    await audit(page);
  },
  { fragment: apart, acceptDownloads: true },
);

await task('timeline: follows edits, and finds the slowest of many requests', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await openTab(page, 'Over time');
  await page.locator('sc-request-chart canvas').waitFor();
  await field(page, '/workload/requests').locator('input[type=text]').fill('60000');
  await nextResult(page, first);
  const asked = page.getByRole('button', { name: 'Record the steps' });
  await page.locator('.recording button, sc-playback canvas').first().waitFor();
  if (await asked.isVisible()) await asked.click();
  await page.locator('sc-request-chart canvas').waitFor({ timeout: 300_000 });
  await page.locator('sc-request-chart').getByRole('button', { name: 'Table' }).click();
  const slowest = await cells(page, 'sc-request-chart table');
  assert.equal(slowest.length, 20);
  const ms = ([, , , ttft]) => parseFloat(ttft) * (/\dms/.test(ttft.replaceAll(/\s/g, '')) ? 1 : 1000);
  for (const [index, row] of slowest.entries()) assert.ok(index === 0 || ms(row) <= ms(slowest[index - 1]), `${row}`);
  await page.locator('sc-request-chart').getByRole('button', { name: 'Table' }).click();
  const second = await fingerprint(page);
  await field(page, '/workload/requests').locator('input[type=text]').fill('7');
  await nextResult(page, second);
  await page.locator('sc-request-chart').getByRole('button', { name: 'Table' }).click();
  assert.equal((await cells(page, 'sc-request-chart table')).length, 7);
});

await task(
  'cluster: pools, transfers, evenness and replicas in tables',
  async (page) => {
    await verdict(page);
    await page.keyboard.press('7');
    await page.locator('#pools').waitFor();
    assert.deepEqual(
      (await cells(page, '#pools')).map((row) => row[0]),
      ['1, prefill', '2, decode'],
    );
    assert.match(
      await page.textContent('#kv-transfer'),
      /400 requests sent .* from prefill to decode, mean [\d.]+\s*ms, p99/,
    );
    assert.equal((await cells(page, '#replicas')).length, 8);
    await audit(page);
    return (await page.textContent('#kv-transfer')).replaceAll(/\s+/g, ' ');
  },
  { fragment: apart },
);

await task(
  'cluster: a thousand replicas are sorted, and shown in parts',
  async (page) => {
    await verdict(page);
    await openTab(page, 'Cluster');
    await page.locator('#replicas').waitFor();
    assert.equal((await cells(page, '#replicas')).length, 32);
    assert.match((await cells(page, '#evenness'))[0].join(' '), /^Requests \d+ \d+ \d+ \d/);
    await page.evaluate(() => (window.seen.longest_task_ms = 0));
    await page.getByRole('button', { name: 'Show 100 more' }).click();
    await page.waitForTimeout(200);
    const longest = await page.evaluate(() => window.seen.longest_task_ms);
    assert.equal((await cells(page, '#replicas')).length, 132);
    await page.locator('#replicas').getByRole('button', { name: 'Replica' }).click();
    assert.deepEqual(
      (await cells(page, '#replicas')).slice(0, 3).map(([name]) => name),
      ['1', '2', '3'],
    );
    assert.equal(await page.locator('#replicas th[aria-sort=ascending]').count(), 1);
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'CSV of all replicas' }).click(),
    ]);
    assert.equal(
      readFileSync(await file.path(), 'utf8')
        .trim()
        .split('\n').length,
      1001,
    );
    return `longest main-thread task ${Math.round(longest)} ms`;
  },
  {
    fragment:
      '#p=llama-3.1-8b-h100x8-aggregated&cluster.pools.0.replicas=1000&workload.arrivals.rate_per_s=3000&workload.requests=5000',
    acceptDownloads: true,
  },
);

await task(
  'cluster: the price of all pools is said',
  async (page) => {
    await verdict(page);
    await field(page, '/hardware/price_per_gpu_hour').locator('input[type=text]').fill('2');
    await page.waitForFunction(() =>
      /all pools: \$16\.0\sper hour/.test(document.querySelector('.numbers')?.textContent ?? ''),
    );
  },
  { fragment: apart },
);

await task(
  'parts: without a connection the page says what is missing, and goes on',
  async (page) => {
    await verdict(page);
    await page.route(/\/(over-time|cluster)-/, (route) => route.abort());
    for (const [name, tag] of [
      ['Over time', 'sc-over-time'],
      ['Cluster', 'sc-cluster'],
    ]) {
      await openTab(page, name);
      await page.waitForFunction(
        (part) => /could not be/.test(getComputedStyle(document.querySelector(part), '::before').content),
        tag,
      );
    }
    await openTab(page, 'Why');
    await page.locator('#load sc-series-chart canvas').first().waitFor();
  },
  { fragment: apart, expectsProblems: true },
);

await task(
  'axe: pools on a phone, everything open',
  async (page) => {
    await verdict(page);
    await openEverything(page);
    for (const name of ['Over time', 'Cluster']) {
      await openTab(page, name);
      if (name === 'Over time') await page.locator('sc-request-chart canvas').waitFor();
      else await page.locator('#pools').waitFor();
      await audit(page, ['color-contrast']); // wide, everything is open in both themes, too
      const wide = await page.evaluate(() => {
        if (document.documentElement.scrollWidth <= innerWidth) return [];
        const beyond = [...document.querySelectorAll('*')].filter(
          (e) => e.getBoundingClientRect().right > innerWidth && !e.closest('.tabs'),
        );
        return beyond.map((e) => `${e.localName}.${e.className} to ${Math.round(e.getBoundingClientRect().right)} px`);
      });
      assert.deepEqual(wide, [], `${name} is wider than the window`);
    }
  },
  { fragment: apart, viewport: { width: 320, height: 800 }, hasTouch: true, colorScheme: 'dark' },
);

// Tasks of what a visit does not begin with: presets of measured servers, tables of operators, published
// coefficients. And of checks that once were the command's alone. Part of run.mjs.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { deflateRawSync } from 'node:zlib';
import { dropFile, field, fingerprint, nextResult, problem, root, turnGroup, verdict } from './browser.mjs';
import { site, task } from './harness.mjs';

const gpu = (page) => field(page, '/hardware/preset').locator('select');
const fetched = (before) => site.requests.slice(before).filter((url) => url.includes('/presets/'));

await task('checks: attention on GPUs that are not there is an error of its field, no verdict', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await field(page, '/model/preset').locator('select').selectOption('qwen3-30b-a3b');
  await nextResult(page, first);
  await turnGroup(page, 'Everything');
  const attention = page.locator('sc-field[data-pointer="/cluster/pools/0/attention_data_parallel"]:visible').first();
  await attention.locator('input[type=text]').fill('8');
  await attention.locator('.field-error').waitFor();
  assert.match(await attention.locator('.field-error').innerText(), /a divisor of replicas 1/);
  assert.equal(await page.locator('[data-complete]:not([data-complete="stale"])[data-state="meets"]').count(), 0);
});

// Each asks for another part of what the first module leaves out.
for (const [model, gpus] of [
  ['gpt-oss-120b', 1],
  ['deepseek-v4-flash', 4],
  ['kimi-k2.5', 8],
])
  await task(`presets: ${model} is answered from its link`, async (page) => {
    const document = {
      schema: 1,
      model: { preset: model },
      hardware: { preset: 'b300-sxm' },
      cluster: { pools: [{ tensor_parallel: gpus }] },
      workload: { preset: 'chat' },
      slo: [{ metric: 'ttft', percentile: 99, limit_ms: 2000 }],
    };
    await page.goto('about:blank');
    await page.goto(`${site.url}#z1.${deflateRawSync(JSON.stringify(document)).toString('base64url')}`);
    assert.match(await verdict(page), /\b(meets|misses|near|overloaded)\b/i);
    const menu = field(page, '/model/preset').locator('select');
    assert.equal(await menu.inputValue(), model);
    assert.ok((await menu.locator('optgroup[label="Current"] option').count()) > 20);
  });

await task('presets: a GPU of measured servers is fetched once, when it is chosen', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  const before = site.requests.length;
  await gpu(page).selectOption('l40s');
  await nextResult(page, first);
  const second = await fingerprint(page);
  assert.deepEqual(fetched(before), []);
  await gpu(page).selectOption('h100-nvl');
  await nextResult(page, second);
  assert.equal(await gpu(page).inputValue(), 'h100-nvl');
  await gpu(page).selectOption('l40s');
  await page.waitForFunction((print) => document.querySelector('#fingerprint')?.textContent === print, second);
  await gpu(page).selectOption('h100-nvl');
  await nextResult(page, second);
  assert.deepEqual(
    fetched(before).map((url) => url.replace(/.*\/presets\//, '')),
    ['hardware/h100-nvl.json'],
  );
  await turnGroup(page, 'Everything');
  assert.notEqual(
    await page.locator('sc-field[data-pointer="/hardware/memory_bandwidth_gb_s"]:visible input').first().inputValue(),
    '',
    'the form has its figures',
  );
});

await task('presets: operators are fetched for a GPU where auto is these', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  const before = site.requests.length;
  await gpu(page).selectOption('a100-80gb');
  await nextResult(page, first);
  assert.deepEqual(
    fetched(before).map((url) => url.replace(/.*\/presets\//, '')),
    ['operators/a100-80gb.json'],
  );
});

await task(
  'presets: without a connection, or with another version, it says what is missing',
  async (page) => {
    await verdict(page);
    const first = await fingerprint(page);
    await page.route(/presets\//, (route) => route.abort());
    await gpu(page).selectOption('a10');
    assert.match(
      await problem(page),
      /a10\.json is fetched when it is first needed, and could not be: there is no connection/,
    );
    await page.unroute(/presets\//);
    await page.route(/presets\//, (route) => route.fulfill({ status: 200, body: '<!doctype html>' }));
    await gpu(page).selectOption('l4');
    await page
      .getByText(/allowed the \d+ of this version/)
      .first()
      .waitFor();
    await page.unroute(/presets\//);
    await page.route(/presets\//, (route) => route.fulfill({ status: 404, body: '' }));
    await gpu(page).selectOption('mi300x');
    await page
      .getByText(/the server answered 404/)
      .first()
      .waitFor();
    assert.doesNotMatch(await page.textContent('.verdict'), /TypeError/);
    await page.unroute(/presets\//);
    await gpu(page).selectOption('h100-sxm');
    await page.waitForFunction((print) => document.querySelector('#fingerprint')?.textContent === print, first);
  },
  { expectsProblems: true },
);

await task('coefficients: a published set is found, taken and marked; a file is opened', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await turnGroup(page, 'Everything');
  await page.getByRole('button', { name: 'Published coefficients' }).click();
  const sets = page.locator('ul.sets li');
  await sets.first().waitFor();
  assert.match(await sets.first().innerText(), /llama-3.1-8b.*h100.*fits/s);
  await page.getByLabel('Search coefficients by model and GPU').fill('granite h100 tp1');
  await sets.filter({ hasText: 'faster than light' }).first().locator('button').click();
  await nextResult(page, first);
  assert.match(await page.locator('#coefficients').innerText(), /bill prefill at 0\.271 of the least time/);
  assert.equal(
    await page.locator('sc-field[data-pointer="/latency/backend"]:visible select').first().inputValue(),
    'blackbox',
  );
  const second = await fingerprint(page);
  const { sets: all, ...rest } = JSON.parse(readFileSync(`${root}/presets/coefficients/blis-blackbox.json`, 'utf8'));
  await dropFile(page, 'one.json', Buffer.from(JSON.stringify({ ...rest, sets: [all[0]] })));
  await nextResult(page, second);
  await dropFile(page, 'bad.json', Buffer.from('{"physics_coefficients":{"spec_version":"7"}}'));
  await page.locator('#coefficients .field-error').waitFor();
  assert.match(await page.locator('#coefficients .field-error').innerText(), /spec version/);
});

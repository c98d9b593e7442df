// A person's tasks on the built site: under a sub-path, with the production policy, in Chromium.
// Prints a line a task and, last, the counts; exits 1 when one failed.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { deflateRawSync, gzipSync } from 'node:zlib';
import { AxeBuilder, dropFile, field, fingerprint, launch, nextResult, openPage, problem, root, verdict } from './browser.mjs';
import { serve } from './server.mjs';

const preset = 'llama-3.1-8b-h100-chat';
const groundtruth = process.env.SERVECAST_GROUNDTRUTH ?? join(root, '../shared/groundtruth');
const azure = join(groundtruth, 'traces/raw/AzureLLMInferenceTrace_conv.csv.gz');
const command = join(root, 'build/release/servecast');
const only = process.argv[2];

const site = await serve(join(root, 'web/dist'));
const { browser, close } = await launch();
const counts = { passed: 0, failed: 0, skipped: 0 };

async function task(name, body, options = {}) {
  if (only && !name.includes(only)) return;
  const { fragment = '', before, expectsProblems = false, ...context } = options;
  const opened = await openPage(browser, context);
  await before?.(opened.page);
  const begin = performance.now();
  try {
    await opened.page.goto(site.url + fragment);
    const note = (await body(opened.page)) ?? '';
    const seen = await opened.page.evaluate(() => window.seen);
    assert.deepEqual(seen.violations, [], 'violations of the content security policy');
    if (!expectsProblems) assert.deepEqual(opened.problems, [], 'console errors and warnings');
    counts.passed += 1;
    console.log(`ok      ${name} (${Math.round(performance.now() - begin)} ms)${note === '' ? '' : `: ${note}`}`);
  } catch (error) {
    counts.failed += 1;
    console.log(`FAILED  ${name}\n        ${String(error.stack ?? error).split('\n').slice(0, 12).join('\n        ')}`);
    await opened.page.screenshot({ path: join(root, 'build', `e2e-${name.replaceAll(/\W+/g, '-')}.png`) }).catch(() => undefined);
  }
  await opened.close();
}

function skip(name, why) {
  counts.skipped += 1;
  console.log(`skipped ${name}: ${why}`);
}

function smallTrace(rows) {
  const lines = Array.from({ length: rows }, (_, index) => `${(index * 0.25).toFixed(2)},${200 + ((index * 37) % 300)},${20 + ((index * 13) % 60)}`);
  return `arrival_s,input_tokens,output_tokens\n${lines.join('\n')}\n`;
}

/** Mooncake's JSON lines: every request begins with the same 1,024 tokens. */
function sharingTrace(rows) {
  const line = (index) => JSON.stringify({ timestamp: index * 250, input_length: 1200, output_length: 20, hash_ids: [1, 2, 100 + index] });
  return `${Array.from({ length: rows }, (_, index) => line(index)).join('\n')}\n`;
}

async function audit(page) {
  const { violations } = await new AxeBuilder({ page }).setLegacyMode(true).analyze();
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(' ')).join('; ')}`);
  assert.deepEqual(found, [], 'axe-core');
}

async function openEverything(page) {
  const closed = page.locator('details:not([open]) > summary:visible');
  while ((await closed.count()) > 0) await closed.first().click();
  await page.waitForTimeout(300);
}

// --- Loading -----------------------------------------------------------------------------------

await task('load: first verdict', async (page) => {
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
});

await task('load: nothing is requested afterwards', async (page) => {
  await verdict(page);
  await page.waitForTimeout(300);
  const before = site.requests.length;
  const other = [];
  page.on('request', (request) => request.url().startsWith('data:') || request.url().startsWith('blob:') || other.push(request.url()));
  const first = await fingerprint(page);
  await field(page, '/workload/arrivals/rate_per_s').locator('input[type=text]').fill('9');
  await nextResult(page, first);
  await openEverything(page);
  await dropFile(page, 'small.csv', Buffer.from(smallTrace(40)));
  await page.waitForTimeout(500);
  assert.deepEqual(other, []);
  assert.equal(site.requests.length, before);
});

// --- Editing -----------------------------------------------------------------------------------

await task('preset: another one runs', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await page.keyboard.press('/');
  await page.keyboard.type('rag');
  await page.locator('#preset-list li:visible').first().waitFor();
  await page.keyboard.press('Enter');
  await nextResult(page, first);
  assert.match(await page.inputValue('sc-preset-picker input'), /rag|retriev/i);
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
  for (let step = 0; step < 20; step += 1) await page.mouse.move(box.x + box.width * (0.4 + step / 100), box.y + box.height / 2);
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
  await page.getByRole('button', { name: 'Add a limit' }).click();
  await page.locator('.limit').first().waitFor();
  await page.waitForSelector('[data-complete="final"]:not([data-state="no_slo"])');
  assert.notEqual(await page.getAttribute('[data-complete]', 'data-state'), 'misses', 'a new limit is one that is met');
  assert.match(await field(page, '/slo/0/limit_ms').locator('input').inputValue(), /^[125]0*$/);
});

await task('price: gives the cost', async (page) => {
  await verdict(page);
  const link = page.getByRole('button', { name: 'Set a GPU price' });
  if ((await link.count()) === 0) return 'the preset has a price';
  await link.click();
  await page.keyboard.type('2.5');
  await page.waitForFunction(() => /\$2\.5 per GPU-hour/.test(document.querySelector('.numbers')?.textContent ?? ''));
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
  await page.locator('#scenario > summary').click();
  const text = JSON.parse(await page.inputValue('#scenario-text'));
  await page.fill('#scenario-text', JSON.stringify({ ...text, measure: { warmup_s: -1 } }));
  await page.getByRole('button', { name: 'Apply' }).click();
  await page.locator('#scenario-issues').getByText('/measure/warmup_s').waitFor();
  await page.fill('#scenario-text', '{"a": ');
  await page.getByRole('button', { name: 'Apply' }).click();
  await page.locator('#scenario-issues li').first().waitFor();
  await page.getByRole('button', { name: 'Revert' }).click();
  await page.locator('details.fields > summary', { hasText: 'Everything' }).click();
  await field(page, '/measure/warmup_s').locator('input').fill('-1');
  await problem(page);
  await page.locator('details.fields > summary', { hasText: 'Everything' }).click();
  await page.getByRole('button', { name: '/measure/warmup_s' }).click();
  await page.waitForFunction(() => document.activeElement?.closest('sc-field')?.dataset.pointer === '/measure/warmup_s');
});

await task('empirical: chosen from the menu it has a table that runs', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
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
  await page.waitForSelector('[data-state="no_fit"]');
  assert.match(await problem(page), /\d.* G(i)?B/);
});

await task('scenario text: applied', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await page.locator('#scenario > summary').click();
  const text = JSON.parse(await page.inputValue('#scenario-text'));
  await page.fill('#scenario-text', JSON.stringify({ ...text, name: 'Mine <b>bold</b>', seed: 7 }));
  await page.getByRole('button', { name: 'Apply' }).click();
  await nextResult(page, first);
  assert.equal(await page.inputValue('sc-preset-picker input'), 'Mine <b>bold</b>');
});

// --- Traces ------------------------------------------------------------------------------------

await task('trace: dropped, plain and gzipped alike, then removed', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await dropFile(page, 'small.csv', Buffer.from(smallTrace(200)));
  await nextResult(page, first);
  const plain = await fingerprint(page);
  assert.match(await page.textContent('.footer'), /200 requests/);
  await page.getByRole('button', { name: 'Remove trace' }).first().click();
  await nextResult(page, plain);
  assert.equal(await fingerprint(page), first);
  await dropFile(page, 'small.csv', gzipSync(smallTrace(200)));
  await nextResult(page, first);
  assert.equal(await fingerprint(page), plain, 'gzip is told by its first bytes, not by the name');
});

await task('trace: JSON lines with shared prefixes hit the prefix cache', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await dropFile(page, 'shared.jsonl', Buffer.from(sharingTrace(50)));
  await nextResult(page, first);
  const traced = await fingerprint(page);
  assert.match(await page.textContent('.footer'), /50 requests/);
  await openEverything(page);
  const caching = page.locator('sc-field[data-pointer="/engine/enable_prefix_caching"]:visible input').first();
  if (!(await caching.isChecked())) {
    assert.equal(await page.locator('#prefix-cache').count(), 0);
    await caching.check();
    await nextResult(page, traced);
  }
  // 49 of 50 prompts find 1,024 of their 1,200 tokens, which are 64 of their 75 blocks.
  assert.match(await page.textContent('#prefix-cache'), /83\.6\s*% of prompt tokens hit\s+\(83\.6\s*% of blocks\)/);
  return (await page.textContent('#prefix-cache')).replaceAll(/\s+/g, ' ');
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
  assert.match(await page.textContent('.verdict'), /timed out/);
  await page.getByRole('button', { name: 'Remove class 1' }).first().click();
  await page.waitForFunction((before) => document.querySelector('#fingerprint')?.textContent === before, first);
});

await task('trace: malformed lines are named and nothing is simulated', async (page) => {
  await verdict(page);
  const lines = smallTrace(60).trimEnd().split('\n');
  lines[11] = lines[11].replace(/,\d+$/, ',many');
  await dropFile(page, 'bad.csv', Buffer.from(lines.join('\n')));
  assert.match(await problem(page), /trace cannot be used/);
  assert.match(await page.textContent('.issues'), /bad\.csv, line 12, column \d+.*many/s);
  assert.equal(await page.locator('.charts:visible').count(), 0, 'empty charts do not take the screen');
  assert.equal(await page.locator('#fingerprint').count(), 0);
  await page.locator('.verdict').getByRole('button', { name: 'Remove trace' }).click();
  await verdict(page);
});

await task('trace: many problems are counted, twenty shown', async (page) => {
  await verdict(page);
  await dropFile(page, 'worse.csv', Buffer.from(smallTrace(80).replaceAll(/,(\d+)\n/g, ',x$1\n')));
  await problem(page);
  const shown = await page.locator('.verdict .issues li').count();
  assert.ok(shown >= 1 && shown <= 20);
  return `${shown} shown`;
});

await task('trace: a damaged gzip file is refused', async (page) => {
  await verdict(page);
  await dropFile(page, 'cut.csv.gz', gzipSync(smallTrace(5000)).subarray(0, 900));
  assert.match(await problem(page), /cannot be read/);
});

await task('trace: a link asks for the file', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await dropFile(page, 'my day.csv', Buffer.from(smallTrace(50)));
  await nextResult(page, first);
  const traced = await fingerprint(page);
  await page.waitForFunction(() => location.hash.includes('&trace=my%20day.csv'));
  await page.reload();
  assert.match(await problem(page), /my day\.csv/);
  await page.setInputFiles('#trace-file', { name: 'my day.csv', mimeType: 'text/csv', buffer: Buffer.from(smallTrace(50)) });
  await verdict(page);
  assert.equal(await fingerprint(page), traced);
});

if (existsSync(azure) && existsSync(command)) {
  await task('trace: Azure conversations give the command’s fingerprint', async (page) => {
    await verdict(page);
    const first = await fingerprint(page);
    const report = JSON.parse(execFileSync(command, ['run', preset, '--trace', azure], { encoding: 'utf8', maxBuffer: 2 ** 28 }));
    await dropFile(page, 'AzureLLMInferenceTrace_conv.csv.gz', readFileSync(azure));
    await nextResult(page, first);
    assert.equal(await fingerprint(page), report.fingerprint);
    assert.match(await page.textContent('.footer'), /19,366 requests/);
    return report.fingerprint;
  });
} else {
  skip('trace: Azure conversations give the command’s fingerprint', existsSync(azure) ? `${command} is not built` : `${azure} is not here`);
}

// --- Long runs ---------------------------------------------------------------------------------

await task(
  'long run: progress, partial results, cancel',
  async (page) => {
    await page.locator('.progress-line').waitFor({ timeout: 20_000 });
    await page.locator('[data-complete="partial"]').waitFor();
    const begin = performance.now();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByText(/Cancelled at \d+/).waitFor();
    const took = Math.round(performance.now() - begin);
    assert.ok(took < 1500, `cancelling took ${took} ms`);
    await page.waitForTimeout(300);
    assert.equal(await page.locator('.progress-line').count(), 0);
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
    await page.locator('.progress-line').waitFor({ timeout: 20_000 });
    await field(page, '/workload/requests').locator('input[type=text]').fill('500');
    await verdict(page);
    assert.match(await page.textContent('.footer'), /500 requests/);
  },
  { fragment: `#p=${preset}&workload.requests=3000000` },
);

await task('keys: space runs, ? helps, digits jump', async (page) => {
  await verdict(page);
  await page.keyboard.press('?');
  await page.locator('#keys[open]').waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('5');
  await page.locator('#numbers[open]').waitFor();
  assert.ok(await page.evaluate(() => document.activeElement?.closest('#numbers') !== null));
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press('Space');
  await verdict(page);
  await page.locator('sc-cdf-chart .plots').focus();
  await page.keyboard.press('ArrowRight');
  await page.getByText(/or less/).waitFor();
});

await task('charts: table, CSV and PNG', async (page) => {
  await verdict(page);
  await page.locator('sc-cdf-chart .u-wrap').waitFor();
  for (const kind of ['CSV', 'PNG']) {
    const [file] = await Promise.all([page.waitForEvent('download'), page.locator('sc-cdf-chart').getByRole('button', { name: kind }).click()]);
    assert.ok(file.suggestedFilename().endsWith(`.${kind.toLowerCase()}`));
    const bytes = readFileSync(await file.path());
    if (kind === 'CSV') assert.match(bytes.toString('utf8'), /^cdf_fraction,cdf_ttft_ms,cdf_tpot_ms,cdf_itl_ms,cdf_e2e_ms\n0/);
    else assert.ok(bytes.length > 5000);
  }
  await page.locator('sc-cdf-chart').getByRole('button', { name: 'Table' }).click();
  await page.locator('sc-cdf-chart').getByRole('rowheader', { name: 'p99' }).waitFor();
}, { acceptDownloads: true });

// --- Links -------------------------------------------------------------------------------------

await task('link: a reload gives the same fingerprint', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await field(page, '/workload/arrivals/rate_per_s').locator('input[type=text]').fill('11');
  await nextResult(page, first);
  const edited = await fingerprint(page);
  await page.waitForFunction(() => location.hash.startsWith('#z1.') && /\d+ characters/.test(document.querySelector('.share')?.textContent ?? ''));
  await page.waitForTimeout(400);
  const slider = field(page, '/workload/arrivals/rate_per_s').locator('input[type=range]');
  const place = await slider.inputValue();
  await page.reload();
  await verdict(page);
  assert.equal(await fingerprint(page), edited);
  assert.equal(await slider.inputValue(), place, 'the same value is at the same place of the slider');
  assert.equal(await field(page, '/workload/arrivals/rate_per_s').locator('input[type=text]').inputValue(), '11');
  return `${(await page.evaluate(() => location.href)).length} characters`;
});

await task(
  'link: readable, and a change of the hash',
  async (page) => {
    await verdict(page);
    const rate = field(page, '/workload/arrivals/rate_per_s').locator('input[type=text]');
    assert.equal(await rate.inputValue(), '9');
    const first = await fingerprint(page);
    await page.evaluate((id) => (location.hash = `#p=${id}&workload.arrivals.rate_per_s=10`), preset);
    await nextResult(page, first);
    assert.equal(await rate.inputValue(), '10');
  },
  { fragment: `#p=${preset}&workload.arrivals.rate_per_s=9` },
);

const hostile = {
  'unknown preset': '#p=nothing-like-this',
  'unknown path': `#p=${preset}&workload.arivals.rate_per_s=9`,
  'value out of range': `#p=${preset}&workload.arrivals.rate_per_s=-1e9`,
  'HTML in a value': `#p=${preset}&name=<img src=x onerror=document.title='owned'>&nope=1`,
  'cut short': '#z1.q1YqTi0uzszPU7JSqo4FAA',
  'not base64': '#z1.%3Cscript%3E',
  'JSON that is no scenario': `#z1.${deflated('[1,2,3]')}`,
  'deeply nested': `#z1.${deflated('['.repeat(100_000))}`,
  'a bomb': `#z1.${deflated(`{"name":"${'a'.repeat(3_000_000)}"}`)}`,
  'prototype keys': `#z1.${deflated('{"__proto__":{"polluted":true},"constructor":1}')}`,
  'bad escapes': '#p=%E0%A4%A&x=%',
};
function deflated(text) {
  return deflateRawSync(Buffer.from(text), { level: 9 }).toString('base64url');
}
for (const [name, fragment] of Object.entries(hostile)) {
  await task(
    `hostile link: ${name}`,
    async (page) => {
      assert.match(await problem(page), /link cannot be opened/);
      assert.notEqual(await page.title(), 'owned');
      await page.getByRole('button', { name: 'Open the default scenario' }).click();
      await verdict(page);
    },
    { fragment },
  );
}

for (const [name, fragment] of Object.entries({
  readable: `#p=${preset}&workload.arivals.rate_per_s=9&workload.requests=300`,
  packed: `#z1.${deflated(JSON.stringify({ schema: 1, model: { preset: 'llama-3.1-8b' }, hardware: { preset: 'h100-sxm' }, workload: { requests: 300, arrivals: { process: 'poisson', rate_per_s: 2 } }, sedd: 1 }))}`,
})) {
  await task(
    `link: the nearest valid scenario, ${name}`,
    async (page) => {
      await problem(page);
      await page.getByRole('button', { name: 'Open the nearest valid scenario' }).click();
      await verdict(page);
      assert.match(await page.textContent('.footer'), /300 requests/);
    },
    { fragment },
  );
}

// --- Everybody ---------------------------------------------------------------------------------

for (const [name, options] of Object.entries({
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true },
})) {
  await task(
    `axe: ${name}, closed and with everything open`,
    async (page) => {
      await verdict(page);
      await page.waitForTimeout(300);
      await audit(page);
      await openEverything(page);
      await audit(page);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `the page is ${wide} px wider than the window`);
    },
    options,
  );
}
await task('axe: errors', async (page) => {
  await verdict(page);
  await field(page, '/workload/arrivals/rate_per_s').locator('input[type=text]').fill('-5');
  await problem(page);
  await audit(page);
}, { colorScheme: 'dark' });

await task('theme: chosen and kept', async (page) => {
  await verdict(page);
  await page.getByLabel('Theme').selectOption('dark');
  await page.reload();
  await verdict(page);
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
}, { colorScheme: 'light' });

await task('no engine: a page that cannot load it says so', async (page) => {
  assert.match(await problem(page), /engine could not be loaded/);
}, { expectsProblems: true, before: (page) => page.route('**/*.wasm', (route) => route.fulfill({ status: 404, body: '' })) });

await task('no script: the page says what it needs', async (page) => {
  assert.match(await page.textContent('noscript'), /needs JavaScript/);
}, { javaScriptEnabled: false });

await close();
site.close();
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exit(counts.failed === 0 ? 0 : 1);

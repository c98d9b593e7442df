// Tasks of the certain verdict: its states, what it says of itself, ways out and why. Part of run.mjs.
import assert from 'node:assert/strict';
import { banded, field, nextResult, openTab, sureness, verdict, fingerprint, waysOut } from './browser.mjs';
import { audit, preset, task } from './harness.mjs';

const at = (rate, more = '') => ({ fragment: `#p=${preset}&workload.arrivals.rate_per_s=${rate}${more}` });
const state = (page) => page.getAttribute('[data-complete]', 'data-state');

await task(
  'verdict: certain, with interval, margin and what it rests on',
  async (page) => {
    const sentence = await banded(page);
    assert.match(
      sentence,
      /^Llama-3\.1-8B on 1\s×\sH100 meets both targets at 40\sreq\/s, more than 99\s% sure; closest is TPOT p99, [\d.]+ of 20\sms \([\d.]+ to [\d.]+\)\.$/,
    );
    assert.equal(await page.textContent('.sign b'), 'Meets');
    assert.match(await page.textContent('#known-error'), /^How sure\? 10 runs of 3,000 requests, 90.% bands\./);
    assert.match(
      await sureness(page),
      /^Runs differ in their seeds.*model analytic, from the data sheet\. .*\d+ serving runs.*TTFT/,
    );
    const tiles = await page.locator('.tile').allInnerTexts();
    for (const text of tiles.slice(0, 2))
      assert.match(text, /90.%: [\d.]+ to [\d.]+[\s\S]*% to spare\s*limit[\s\S]*met: > 99.%/);
    const heads = await page.locator('.tail-figure').allInnerTexts();
    const bands = tiles.slice(0, 2).map((text) => /90.%: ([\d.]+ to [\d.]+)/.exec(text)[1]);
    assert.ok(
      bands.every((band, index) => heads[index].endsWith(`(${band})`)),
      `one figure has one band: ${bands}; ${heads}`,
    );
    const tip = await page.textContent('.tile .interval .tip');
    assert.match(
      tip,
      /^Sampling and model error together\. Sampling alone, 95.%: .* Model error alone, 90.%: .* narrows this most/,
    );
    assert.equal(await page.locator('.margin-bar .whisker').count(), 2);
    assert.equal(await page.locator('.tile[data-side="meets"]').count(), 2);
    assert.match(tiles[2], /40\.\d.requests\/s while they arrive/, 'neither ramp nor drain is counted');
    await page.getByText('not counted').first().waitFor();
    assert.equal(await page.locator('sc-ways-out').count(), 0, 'nothing is missed');
  },
  at(40),
);

await task(
  'verdict: its band comes without moving anything, and is dropped by an edit',
  async (page) => {
    await verdict(page);
    const places = () =>
      page
        .locator('.tile, .verdict, .tabs')
        .evaluateAll((all) => all.map((each) => JSON.stringify(each.getBoundingClientRect())));
    const without = (await page.locator('.tile .interval.term').count()) === 0 ? await places() : null;
    await banded(page);
    if (without) assert.deepEqual(await places(), without);
    const before = await fingerprint(page);
    await field(page, '/workload/arrivals/rate_per_s').locator('input[type=text]').fill('48');
    await nextResult(page, before);
    assert.match(await banded(page), /at 48\sreq\/s with a probability of/);
  },
  at(40),
);

await task(
  'verdict: of a scheduler that the first module lacks, by the whole one',
  async (page) => {
    assert.match(await verdict(page), /at 10\sreq\/s/);
    await openTab(page, 'Document');
    assert.equal(JSON.parse(await page.inputValue('#scenario-text')).engine.preset, 'sglang');
  },
  at(10, '&engine.preset=sglang'),
);

await task(
  'verdict: near its limit it has a probability, and says what would tell',
  async (page) => {
    assert.match(
      await banded(page),
      /meets both targets at 48\sreq\/s with a probability of \d+\s%; closest is TPOT p99/,
    );
    assert.equal(await state(page), 'near');
    assert.match(await page.textContent('#verdict-note'), /the limit lies within the interval of TPOT p99/);
    assert.match(await page.textContent('.tile[data-side="near"]'), /met: \d+.%/);
  },
  at(48),
);

await task(
  'verdict: an overload is a rate, and what grows has no bound',
  async (page) => {
    assert.match(await verdict(page), /^Overloaded: serves [\d.]+ \([\d.]+ to [\d.]+\) of 200\sreq\/s/);
    assert.equal(await state(page), 'overloaded');
    const tiles = await page.locator('.tile').allInnerTexts();
    assert.match(tiles[0], /no bound[\s\S]*grows without limit[\s\S]*missed/);
    assert.match(tiles[1], /not judged/);
    assert.match(tiles[2], /Served\s+of\s200\sreq\/s/);
    await audit(page);
  },
  at(200),
);

await task(
  'verdict: a model that does not fit says by how much, and what would',
  async (page) => {
    await page.waitForSelector('[data-state="does_not_fit"]');
    assert.equal(await page.textContent('.sign b'), 'Does not fit');
    await page.locator('.unfit-bar').waitFor();
    assert.match(await page.textContent('.verdict'), /Needed with the smallest KV cache: [\d.]+\sGiB on each GPU/);
    await page.getByRole('button', { name: /^Use tensor parallel \d+$/ }).click();
    await verdict(page);
  },
  { fragment: `#p=${preset}&model.preset=llama-3.1-70b&hardware.preset=a100-80gb` },
);

await task(
  'ways out: run under a miss, and one is used',
  async (page) => {
    await verdict(page);
    assert.equal(await state(page), 'misses');
    const offered = page.getByRole('button', { name: 'Try them' });
    if ((await offered.count()) > 0) await offered.click();
    await waysOut(page);
    const rows = await page.locator('.ways tbody tr').allInnerTexts();
    assert.ok(rows.length >= 2 && rows.length <= 6, rows.join('\n'));
    assert.match(rows[0], /ms \(90\s%: [\d.]+ to [\d.]+\)/);
    assert.match(await page.textContent('.ways-rest'), /\d+ changes that do not get there/);
    await page.getByRole('button', { name: /^Use [\d.]+ req\/s on these GPUs$/ }).waitFor();
    await audit(page);
    const before = await fingerprint(page);
    await page.getByRole('button', { name: 'Use 2 replicas' }).click();
    await nextResult(page, before);
    assert.equal(await state(page), 'meets');
    assert.equal(await field(page, '/cluster/pools/0/replicas').locator('input[type=text]').inputValue(), '2');
    assert.equal(await page.locator('sc-ways-out').count(), 0);
  },
  at(60),
);

await task(
  'why: the slowest above all, with the parts in words and figures',
  async (page) => {
    await verdict(page);
    await page.locator('.blame').nth(2).waitFor();
    assert.match(
      await page.textContent('.blame-lines'),
      /TPOT: the slowest 1\s% take [\d.]+\sms longer a token; (all|\d+\s%) of it is/,
    );
    const bars = await page
      .locator('.blame-bar')
      .evaluateAll((all) => all.map((bar) => bar.getAttribute('aria-label')));
    assert.equal(bars.length, 6);
    for (const text of bars) {
      const [, total, parts] = /: ([\d,.]+) ms; (.*)$/.exec(text);
      const number = (digits) => Number(digits.replaceAll(',', ''));
      const sum = parts.split(', ').reduce((all, part) => all + number(part.split(' ').at(-1)), 0);
      assert.ok(Math.abs(sum / number(total) - 1) < 0.02, text);
    }
    await audit(page);
  },
  at(60),
);

await task(
  'verdict: a long change has a coarse answer, which cancelling leaves',
  async (page) => {
    await verdict(page);
    await field(page, '/workload/requests').locator('input[type=text]').fill('3000000');
    await page.locator('[data-complete="coarse"]').waitFor();
    assert.match(await page.textContent('#known-error'), /^Coarse: one run of [\d,]+ requests/);
    await page.getByText(/^Drawing requests, \d+/).waitFor();
    await page.getByText(/\d+\s%\ssimulated/).waitFor({ timeout: 300_000 });
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Run again' }).waitFor();
    assert.equal(await page.locator('[data-complete="before"]').count(), 0);
  },
  at(40),
);

await task(
  'verdict: a long run that is opened shows a part, which cancelling leaves',
  async (page) => {
    await page.locator('[data-complete="partial"]').waitFor({ timeout: 300_000 });
    assert.match(await page.textContent('.sentence'), /^After a part of the first run: /);
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByText(/Cancelled at \d+/).waitFor();
    assert.equal(await page.textContent('.sign b'), 'Partial');
  },
  { fragment: `${at(40).fragment}&workload.requests=3000000` },
);

await task('words: TTFT says what it means on focus', async (page) => {
  await verdict(page);
  const word = page.locator('.tile .term').first();
  assert.equal(await word.locator('.tip').isVisible(), false);
  await word.focus();
  assert.match(await word.locator('.tip').innerText(), /^Time to first token\. From a request/);
});

await task('preemptions: none are said to be none', async (page) => {
  await verdict(page);
  await openTab(page, 'Over time');
  await page.locator('.pane-key', { hasText: 'none: no request was preempted' }).waitFor();
});

// What people come for, each with the clicks that it takes: a click, a choice in a menu is two. Part of run.mjs.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { command } from '../command.mjs';
import { banded, field, fingerprint, nextResult, verdict, waysOut } from './browser.mjs';
import { preset, skip, task } from './harness.mjs';
import { calibrated, prompts, steps } from './measured.mjs';

/** A hand that counts. */
function hand(page) {
  let clicks = 0;
  return {
    click: (what) => {
      clicks += 1;
      return what.click();
    },
    choose: (select, value) => {
      clicks += 2;
      return select.selectOption(value);
    },
    within: (most) => {
      assert.ok(clicks <= most, `${clicks} clicks, at most ${most}`);
      return `${clicks} clicks of ${most}`;
    },
    tab: (name) => {
      clicks += 1;
      return page.getByRole('tab', { name }).click();
    },
  };
}

const clipboard = { permissions: ['clipboard-read', 'clipboard-write'] };

await task('story: 70B on four H100 for retrieval, an answer and a way out', async (page) => {
  await verdict(page);
  const { click, within } = hand(page);
  const first = await fingerprint(page);
  await click(page.getByRole('combobox', { name: /scenario/i }).first());
  await page.keyboard.type('rag');
  await page.locator('#preset-list li:visible').first().waitFor();
  await page.keyboard.press('Enter');
  await nextResult(page, first);
  // The preset's own load is too close to call.
  const second = await fingerprint(page);
  const rate = field(page, '/workload/arrivals/rate_per_s').locator('input[type=text]');
  await click(rate);
  await rate.fill('2.2');
  await nextResult(page, second);
  assert.match(await verdict(page), /^Llama-3\.1-70B on 4\s×\sH100 misses 1 of 2 targets/);
  assert.equal(await page.getAttribute('[data-complete="final"]', 'data-state'), 'misses');
  await waysOut(page);
  const third = await fingerprint(page);
  await click(page.locator('.ways tbody').getByRole('button', { name: /^Use/ }).first());
  await nextResult(page, third);
  // Both targets are kept; how much room is left is another question.
  assert.match(await page.getAttribute('[data-complete="final"]', 'data-state'), /^(meets|near)$/);
  return within(6);
});

await task('story: how much more it holds, and what would change it most, without a click', async (page) => {
  await banded(page);
  const places = () =>
    page
      .locator('.tile, .verdict, .tabs')
      .evaluateAll((all) => all.map((each) => JSON.stringify(each.getBoundingClientRect())));
  const before = await places();
  await page.locator('[data-kind="found"]').waitFor();
  assert.deepEqual(await places(), before, 'nothing moves');
  const words = async () => (await page.locator('.holds > :last-child').innerText()).replaceAll(/\s+/g, ' ');
  const [, value, low, high, sure] =
    /^Holds up to ([\d.]+) req\/s \(([\d.]+) to ([\d.]+)\), \d+ % above this rate; 90 % sure up to ([\d.]+)\./.exec(
      await words(),
    );
  assert.ok(Number(low) <= Number(value) && Number(value) <= Number(high) && Number(sure) <= Number(high));
  const tick = page.locator('sc-field[data-pointer="/workload/arrivals/rate_per_s"] .held');
  assert.match(await tick.getAttribute('title'), new RegExp(`: ${value}$`), 'one figure has one value');
  await page.locator('sc-better tbody tr').nth(1).waitFor();
  assert.match(await page.innerText('sc-better thead'), /TPOT p99, at most 20\sms \(now [\d.]+\sms\)/);
  assert.match(await page.innerText('sc-better .ways-others summary'), /\d+ changes? that give less or cost more/);
  await page.getByRole('button', { name: 'How much would each hold?' }).click();
  await page.waitForFunction(() =>
    /^[\d.]+ \([\d.]+ to/.test(document.querySelector('sc-better tbody td:nth-child(5)')?.innerText),
  );
  assert.match(await page.innerText('sc-better thead'), new RegExp(`holds \\(now ${value} req/s\\)`));
  const first = await fingerprint(page);
  await field(page, '/workload/arrivals/rate_per_s').locator('input[type=text]').fill('42');
  await nextResult(page, first);
  assert.ok((await words()).startsWith(`Holds up to ${value} req/s`), 'it does not depend on the rate');
  await page.selectOption('sc-field[data-pointer="/hardware/preset"] select', 'a100-80gb');
  const seen = await page.waitForFunction(
    () =>
      /A100/.test(document.querySelector('.sentence')?.textContent) &&
      (document.querySelector('.holds > :last-child')?.textContent ?? 'not yet'),
  );
  assert.doesNotMatch(await seen.jsonValue(), /up to/, 'with the first answer of another GPU, it is gone');
  assert.equal(await tick.count(), 0);
  return `${value} req/s, 0 clicks`;
});

await task(
  'story: a link is shared, and opened by somebody who had another scenario open',
  async (page) => {
    await verdict(page);
    await page.waitForFunction(() => document.querySelector('.share .primary:not([disabled])') !== null);
    const sharing = hand(page);
    await sharing.click(page.locator('.share .primary:visible'));
    await page.waitForFunction(() => document.querySelector('#share-text')?.value.includes('&f='));
    await sharing.click(page.getByRole('button', { name: 'Copy', exact: true }));
    await page.getByText('Link copied.').waitFor();
    const link = await page.evaluate(() => navigator.clipboard.readText());
    await page.goto('about:blank');
    await page.goto(link.replace(/#.*/, `#p=${preset}&engine.max_num_batched_tokens=512`));
    await verdict(page);
    await page.evaluate((hash) => (location.hash = hash), new URL(link).hash);
    await page.locator('[data-pin="verified"]').waitFor();
    const { tab, click, within } = hand(page);
    await tab('Compare');
    await click(page.getByRole('button', { name: 'Take what was open before as A' }));
    await page.waitForFunction(() => document.querySelector('#differing')?.innerText.includes('512'));
    return `${sharing.within(2)} to share, ${within(2)} to what differs`;
  },
  { fragment: `#p=${preset}&workload.arrivals.rate_per_s=30`, ...clipboard },
);

await task(
  'story: an element for a page of documentation',
  async (page) => {
    await verdict(page);
    await page.waitForFunction(() => document.querySelector('.share .primary:not([disabled])') !== null);
    const { click, within } = hand(page);
    await click(page.locator('.share .primary:visible'));
    await click(page.locator('.share-kinds').getByRole('button', { name: 'Element', exact: true }));
    await click(page.getByRole('button', { name: 'Copy', exact: true }));
    await page.getByText(/copied\./).waitFor();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /<servecast-embed scenario="/);
    return within(3);
  },
  clipboard,
);

if (existsSync(command)) {
  await task('story: the scenario of the page is what a build checks', async (page) => {
    await verdict(page);
    const { tab, within } = hand(page);
    await tab('Document');
    const text = await page.inputValue('#scenario-text');
    const checked = execFileSync(command, ['check', '-'], {
      input: text,
      encoding: 'utf8',
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    assert.match(checked, /^met /m);
    return within(1);
  });
} else {
  skip('story: the scenario of the page is what a build checks', `${command} is not built`);
}

await task('story: schedulers on the same requests', async (page) => {
  await verdict(page);
  const { choose, tab, within } = hand(page);
  await tab('Compare');
  await choose(page.locator('#compare-by'), '/scheduler/policy');
  await page.waitForFunction(() => {
    const table = document.querySelector('#compared');
    return table?.rows.length > 5 && !table.textContent.includes('Simulating');
  });
  assert.match(await page.innerText('#compared'), /sarathi/);
  return within(3);
});

await task('story: own measurements, a calibration, used for the scenario', async (page) => {
  await verdict(page);
  const { click, within } = hand(page);
  await click(page.locator('.share').getByRole('button', { name: 'Calibrate' }).first());
  await page.locator('.calibrate-drop').waitFor();
  const chooser = page.waitForEvent('filechooser');
  await click(page.getByRole('button', { name: 'Choose files' }));
  await (await chooser).setFiles([prompts, steps]);
  await calibrated(page);
  await click(page.getByRole('button', { name: 'Use for this scenario' }));
  await page.getByText('The scenario carries the calibration').waitFor();
  return within(3);
});

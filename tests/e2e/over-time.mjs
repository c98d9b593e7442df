// Tasks of the view over time: playback, recorded steps, zoom. Part of run.mjs.
import assert from 'node:assert/strict';
import { openTab, verdict } from './browser.mjs';
import { audit, task } from './harness.mjs';

async function openOverTime(page) {
  await verdict(page);
  await openTab(page, 'Over time');
  const asked = page.getByRole('button', { name: 'Record the steps' });
  await page.locator('.recording button, sc-playback canvas').first().waitFor();
  if (await asked.isVisible()) await asked.click();
  await page.locator('sc-playback canvas').waitFor({ timeout: 300_000 });
}

const playhead = (page) => page.$eval('sc-playback', ({ time }) => time);

await task('playback: plays, pauses, is scrubbed, and goes by steps with the keys', async (page) => {
  await openOverTime(page);
  const slider = page.getByLabel('Playhead', { exact: true });
  await slider.focus();
  // It begins where there is something to see.
  const [first, ...starts] = await page.$eval('sc-playback', ({ steps, time }) => {
    const { step_start_s: all, step_running: running, step_waiting: waiting } = steps;
    const load = (step) => running[step] + waiting[step];
    const busy = [...all.keys()].reduce((best, step) => (load(step) > load(best) ? step : best), 0);
    return [time, ...all.slice(busy, busy + 4)];
  });
  assert.equal(first, starts[0]);
  for (const next of starts.slice(1)) {
    await page.keyboard.press('ArrowRight');
    assert.equal(await playhead(page), next);
  }
  await page.keyboard.press('ArrowLeft');
  assert.equal(await playhead(page), starts[2]);
  assert.match(await page.locator('sc-playback .readout').innerText(), /Step of .*decode/s);
  await page.keyboard.press(']');
  assert.equal(await page.getByLabel('Speed').inputValue(), '3');
  await page.keyboard.press('Space');
  await page.waitForFunction((from) => document.querySelector('sc-playback').time > from + 0.2, starts[2]);
  await page.getByRole('button', { name: 'Pause' }).click();
  const paused = await playhead(page);
  await page.waitForTimeout(200);
  assert.equal(await playhead(page), paused);
  // What the charts over time show at the playhead is said below them.
  assert.match(await page.locator('sc-over-time .readout').first().innerText(), /^at /);
  await audit(page);
});

await task(
  'playback: without motion it goes by steps alone',
  async (page) => {
    await openOverTime(page);
    assert.equal(await page.getByRole('button', { name: 'Play' }).count(), 0);
    await page.getByRole('button', { name: 'Step after' }).click();
    assert.ok((await playhead(page)) > 0);
  },
  { reducedMotion: 'reduce' },
);

await task('charts: the wheel and the keys zoom all charts over time, and Esc shows all', async (page) => {
  await openOverTime(page);
  const whole = await page.$eval('sc-series-chart', ({ plots: [{ scales }] }) => scales.x.max - scales.x.min);
  /** Until all charts show this share of the run, give or take. */
  const showing = (share, give) =>
    page.waitForFunction(
      ([span, off]) => {
        const plots = [...document.querySelectorAll('sc-series-chart')].flatMap((chart) => chart.plots);
        return plots.length >= 4 && plots.every(({ scales }) => Math.abs(scales.x.max - scales.x.min - span) < off);
      },
      [whole * share, whole * give],
    );
  const plots = page.locator('sc-over-time .plots').first();
  await plots.focus();
  await page.keyboard.press('ArrowRight');
  assert.match(
    await page.locator('sc-over-time sc-series-chart .readout').last().innerText(),
    /^at /,
    'one cursor through all',
  );
  await page.keyboard.press('+');
  await showing(1 / 2, 0.02);
  await page.getByLabel('Which requests').selectOption('arrival');
  const arrivals = await page.$eval('sc-request-chart', (chart) => {
    const [low, high] = [chart.plots[0].scales.x.min, chart.plots[0].scales.x.max];
    return [low, high];
  });
  assert.ok(arrivals[0] > 0, 'requests of before the window are not among these');
  await plots.hover();
  await plots.focus();
  await page.mouse.wheel(0, -240);
  await page.waitForFunction((half) => {
    const [{ scales }] = document.querySelector('sc-over-time sc-series-chart').plots;
    return scales.x.max - scales.x.min < half * 0.6;
  }, whole / 2);
  await page.keyboard.press('Escape');
  await showing(1, 0.02);
  const box = await page.locator('sc-over-time .u-over').first().boundingBox();
  await page.mouse.move(box.x + box.width * 0.25, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 20, { steps: 4 });
  await page.mouse.up();
  await showing(1 / 4, 0.05);
  await plots.focus();
  await page.keyboard.press('Escape');
  await showing(1, 0.02);
});

await task('charts: the whole distribution is one click from its tail', async (page) => {
  await verdict(page);
  await page.locator('#latency').getByRole('button', { name: 'All', exact: true }).click();
  await page.locator('sc-cdf-chart canvas').waitFor();
  await page.locator('#latency').getByRole('button', { name: 'Log axis' }).click();
  await audit(page);
  await page.locator('#latency').getByRole('button', { name: 'Tail', exact: true }).click();
  await page.locator('sc-tail-chart canvas').first().waitFor();
});

await task(
  'pools: running, waiting and KV of each in lanes of their own',
  async (page) => {
    await openOverTime(page);
    const lanes = page.locator('.lanes sc-series-chart');
    assert.equal(await lanes.count(), 2);
    assert.match((await lanes.first().innerText()).replaceAll(/\s+/g, ' '), /prefill pool/i);
    const peaks = await lanes.evaluateAll((charts) => charts.map(({ columns }) => Math.max(...columns.lane_kv)));
    assert.ok(peaks.every((peak) => peak > 0 && peak <= 1) && peaks[0] !== peaks[1], `${peaks}`);
    assert.equal(await page.getByLabel('Replica', { exact: true }).locator('option').count(), 8);
    await audit(page);
  },
  { fragment: '#p=llama-3.1-8b-h100x8-disaggregated' },
);

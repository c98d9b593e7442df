// Tasks of the comparison panel. Part of run.mjs.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { command } from '../command.mjs';
import { dropFile, field, fingerprint, nextResult, openTab, verdict } from './browser.mjs';
import { audit, preset, site, skip, smallTrace, task } from './harness.mjs';

/** Of GPUs with as many as there are, unless the fewest that keep the targets are asked for. */
async function openComparison(page, pointer, fewest = false) {
  await verdict(page);
  await openTab(page, 'Compare');
  if (pointer) await page.selectOption('#compare-by', pointer);
  else if (!fewest) {
    await page.locator('#compare-by').waitFor();
    if ((await page.locator('#compare-fewest').count()) > 0) await page.selectOption('#compare-fewest', 'same');
  }
  if (!fewest) await compared(page);
}

/** The rows, once no variant is still running. */
async function compared(page) {
  await page.waitForFunction(() => {
    const table = document.querySelector('#compared');
    return table?.rows.length > 1 && !table.textContent.includes('Simulating');
  });
  return page.$$eval('#compared tbody tr', (rows) =>
    rows.map((row) => [...row.cells].map((cell) => cell.innerText.replaceAll(/\s+/g, ' '))),
  );
}

await task('compare: every GPU, by the cost of what is served within the targets', async (page) => {
  await openComparison(page);
  const costs = (await compared(page)).map((row) => Number(/^\$([\d.,]+)/.exec(row[7])?.[1]?.replace(',', '')));
  const priced = costs.filter(Number.isFinite);
  assert.deepEqual(
    priced,
    [...priced].sort((a, b) => a - b),
    'cheapest first',
  );
  assert.ok(costs.slice(0, priced.length).every(Number.isFinite), 'what serves nothing within them is last');
  // An overloaded GPU is no bargain.
  const current = await page.locator('#compared tbody tr.current').evaluate((row) => row.rowIndex);
  const states = await page.$$eval('#compared tbody tr', (rows) =>
    rows.map((row) => row.querySelector('.state b')?.textContent),
  );
  assert.ok(
    states.slice(0, current).every((state) => state === 'Meets' || state === 'Near'),
    states.join(),
  );
  await page.getByRole('button', { name: /^Value/ }).click();
  const rows = await compared(page);
  const gpus = await page.locator('sc-field[data-pointer="/hardware/preset"] select > option').count();
  assert.equal(rows.length, gpus);
  assert.match(rows[0][0], /H100.*as it is/);
  assert.equal(rows.filter(([name]) => name.includes('as it is')).length, 1);
  assert.ok(
    rows.slice(1).some((row) => /[+−×]/.test(row[3])),
    'differences are shown',
  );
  const figure = rows.slice(1).find((row) => row[7].startsWith('$'))?.[7] ?? '';
  assert.match(figure, /^\$[\d.,]+\s*(?:[+−×]|the same)/, 'the difference is beside it');
  const names = await page.$$eval('#compare-by option', (options) => options.map(({ textContent }) => textContent));
  assert.deepEqual(names, [...new Set(names)], 'each setting has a name of its own');
  const first = await fingerprint(page);
  await field(page, '/workload/arrivals/rate_per_s').locator('input[type=text]').fill('3');
  await nextResult(page, first);
  assert.notDeepEqual(await compared(page), rows, 'an edit compares again');
  return `${rows.length} rows`;
});

await task(
  'compare: the fewest of each GPU that keep all targets, with more or fewer to a replica',
  async (page) => {
    await openComparison(page, undefined, true);
    assert.equal(await page.inputValue('#compare-fewest'), 'fewest', 'a decision is about what keeps the targets');
    // Of four H100 to a replica one would do: groups become smaller as well as larger. Other GPUs are found after it.
    const row = page.locator('#compared tbody tr', { has: page.locator('th', { hasText: 'fewest' }) });
    const use = row.getByRole('button');
    await use.waitFor({ timeout: 120_000 });
    assert.match(await row.innerText(), /1 GPU: 1 replica/);
    assert.match(await row.locator('.state').innerText(), /Meets/);
    const first = await fingerprint(page);
    await use.click();
    await nextResult(page, first);
    assert.match(await page.textContent('.verdict .sentence'), /on 1\s×\sH100/);
  },
  { fragment: `#p=${preset}&cluster.pools.0.tensor_parallel=4` },
);

await task('compare: a variant that cannot run says why', async (page) => {
  await openComparison(page, '/latency/backend');
  const rows = await compared(page);
  assert.match(rows.find(([name]) => name.startsWith('blackbox')).join(' '), /needs the times of a step/);
  assert.match(rows.find(([name]) => name.startsWith('roofline')).join(' '), /ms/);
});

await task('compare: a trace is compared on its own requests', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await dropFile(page, 'small.csv', Buffer.from(smallTrace(60)));
  await nextResult(page, first);
  await openComparison(page, '/scheduler/order');
  const rows = await compared(page);
  const refused = rows.filter((row) => row.length < 5);
  assert.deepEqual(refused, []);
  const completed = await page.$eval('sc-page', ({ app }) =>
    app.store.state.compared.variants.map(({ report }) => report.first_run.completed),
  );
  assert.deepEqual(
    completed,
    rows.map(() => 60),
  );
});

await task('compare: the rules of BLIS beside ours, with the reasons', async (page) => {
  await verdict(page);
  const before = site.requests.length;
  await openComparison(page, '/engine/compat');
  const rows = await compared(page);
  assert.deepEqual(
    rows.map(([name]) => name.split(' ')[0]),
    ['none', 'blis-2026-02', 'blis', 'vidur'],
  );
  // Vidur has no scheduler of vLLM V1, and its row says so.
  for (const row of rows.slice(0, 3)) assert.ok(row.length > 5, row.join(' '));
  assert.match(rows[3].join(' '), /vllm_v0/);
  await page
    .getByText(/when a batch drains/)
    .first()
    .waitFor();
  const fetched = site.requests.slice(before);
  // BLIS's rules are in the whole module. What the page itself fetches when it is idle may come now, too; the parts
  // of other questions may not; plans come with the comparison of GPUs, which is open first.
  assert.ok(
    fetched.filter((url) => url.endsWith('.wasm')).every((url) => /\/servecast-(?!first)/.test(url)),
    fetched.join(' '),
  );
  assert.ok(!fetched.some((url) => /\/(calibrat|pools-|share-|import-|trace)/.test(url)), fetched.join(' '));
});

await task('compare: a ladder of rates is sorted, drawn, and used', async (page) => {
  await openComparison(page, '/workload/arrivals/rate_per_s');
  const rates = (await compared(page)).map(([name]) => parseFloat(name));
  assert.deepEqual(rates, [20, 30, 40, 50, 60, 80]);
  assert.equal(await page.locator('#compared tr.current th').first().innerText(), '40\nyours, as it is');
  await page.locator('#compared').getByRole('button', { name: 'Output tokens/s' }).click();
  await page.locator('#compared').getByRole('button', { name: 'Output tokens/s' }).click();
  assert.equal(await page.locator('th[aria-sort=descending]').innerText(), 'Output tokens/s ▾');
  const falling = (await compared(page)).map(([name]) => parseFloat(name));
  assert.deepEqual(falling, rates.toReversed());
  assert.equal(await page.locator('.rung').count(), rates.length);
  assert.match(await page.locator('.rung').last().innerText(), /Overloaded/);
  await audit(page);
  const first = await fingerprint(page);
  await page.getByRole('button', { name: 'Use 30', exact: true }).click();
  await nextResult(page, first);
  assert.equal(await field(page, '/workload/arrivals/rate_per_s').locator('input[type=text]').inputValue(), '30');
});

await task(
  'compare: a GPU that needs more of them gets them, and says so',
  async (page) => {
    await openComparison(page);
    const rows = await compared(page);
    const card = rows.find(([name]) => name.startsWith('RTX 4090'));
    assert.match(card[0], /needs \d+ GPUs each: tensor parallel \d+ instead of 4/);
    assert.ok(card.length > 5, card.join(' '));
    return card[0];
  },
  { fragment: '#p=llama-3.1-70b-h100x4-rag' },
);

await task('compare: the kept scenario beside what it becomes, on the same requests', async (page) => {
  await openComparison(page, '/scheduler/order');
  await page.getByRole('button', { name: 'Keep this one as A' }).click();
  const first = await fingerprint(page);
  await page.$eval('sc-page', ({ app }) => app.setValue('/engine/max_num_batched_tokens', 512, 'dragging'));
  await nextResult(page, first);
  await field(page, '/workload/arrivals/rate_per_s').locator('input[type=text]').fill('20');
  await page.waitForFunction(() => document.querySelector('#differing')?.innerText.includes('512'));
  await page.waitForFunction(
    () =>
      document.querySelector('sc-page').app.store.state.beside.outcome?.report.scenario.workload.arrivals.rate_per_s ===
      20,
  );
  assert.match(await page.innerText('#differing'), /Tokens per step \(max_num_batched_tokens\)\s+2,048\s+512/);
  assert.equal(await page.locator('#differing tbody tr').count(), 1);
  await page.locator('#two sc-tail-chart canvas, sc-compare sc-tail-chart canvas').first().waitFor();
  await audit(page);
  const second = await fingerprint(page);
  await page.getByRole('button', { name: 'Use A' }).click();
  await nextResult(page, second);
  await page.getByText('A and B are the same').waitFor();
});

/** The rows of the engines, once each has its answer and its bands, or was refused. */
async function engines(page) {
  await page.waitForFunction(() => {
    const { compared } = document.querySelector('sc-page').app.store.state;
    const rows = compared?.pointer === '/engine' ? compared.variants : [];
    return rows.length > 2 && rows.every(({ issues, isBanded }) => issues.length > 0 || isBanded);
  });
  return compared(page);
}

await task(
  'compare: vLLM, SGLang or TensorRT-LLM on the same requests by one click, with the reasons',
  async (page) => {
    await verdict(page);
    await openTab(page, 'Compare');
    await page.getByRole('button', { name: 'vLLM, SGLang or TensorRT-LLM?' }).click();
    const rows = await engines(page);
    assert.deepEqual(
      rows.map(([name]) => name.split(' ')[0]),
      ['vLLM', 'SGLang', 'TensorRT-LLM'],
    );
    assert.match(rows[0][0], /yours, as it is/);
    for (const row of rows) assert.match(row.join(' '), / of 20 ms .*\$[\d.]+ .*(Calibrated|Compared|Untested)/);
    const scenarios = await page.$eval('sc-page', ({ app }) =>
      app.store.state.compared.variants.map(({ report }) => report.scenario),
    );
    assert.deepEqual(
      scenarios.map(({ scheduler }) => scheduler.policy),
      ['vllm', 'sglang', 'trtllm'],
    );
    for (const scenario of scenarios.slice(1)) {
      for (const section of ['workload', 'model', 'hardware', 'cluster', 'slo', 'seed']) {
        assert.deepEqual(scenario[section], scenarios[0][section], `the same ${section}`);
      }
    }
    assert.equal(await page.locator('.rung').count(), 3);
    assert.match(await page.innerText('#reasons-sglang'), /(more|less): vLLM .*; SGLang /);
    assert.match(await page.innerText('#reasons-trtllm'), /(more|less): vLLM .*; TensorRT-LLM /);
    assert.match(await page.innerText('#engines-did'), /Requests in a step\s+[\d.]+\s+[\d.]+ [+−]/);
    await audit(page);
    const first = await fingerprint(page);
    await page.getByRole('button', { name: 'Use SGLang 0.5.16', exact: true }).click();
    await nextResult(page, first);
    const after = await engines(page);
    assert.match(after[0][0], /^SGLang 0\.5\.16 yours/);
    assert.match(after[1][0], /^vLLM/);
    return await page.innerText('#reasons-trtllm');
  },
);

await task(
  'compare: an engine that lacks what the scenario has keeps its row, with the reason',
  async (page) => {
    await verdict(page);
    await openTab(page, 'Compare');
    await page.selectOption('#compare-by', '/engine');
    const rows = await engines(page);
    assert.match(rows[0].join(' '), /^vLLM .* of /);
    assert.match(rows[1].join(' '), /^SGLang .*max loras: found 4, allowed 0 .*its seats of adapters are not modelled/);
    assert.match(rows[2].join(' '), /^TensorRT-LLM .*its pages of adapters are not modelled/);
    assert.equal(await page.locator('#compared button:not(.sort)').count(), 0, 'none of them can be used');
    assert.match(await page.innerText('#engine-own'), /max_num_seqs/);
  },
  { fragment: `#p=${preset}&engine.max_loras=4&engine.max_num_seqs=512` },
);

await task('compare: another engine beside the scenario, with all figures', async (page) => {
  await verdict(page);
  await openTab(page, 'Compare');
  await page.locator('#engines').click();
  await engines(page);
  await page.getByRole('button', { name: /^All figures of SGLang/ }).click();
  await page.locator('#reasons li').first().waitFor();
  const [a, b] = await page.$eval('sc-page', ({ app }) => {
    const { beside, shown } = app.store.state;
    return [beside.outcome.report, shown.outcome.report];
  });
  assert.equal(a.scenario.scheduler.policy, 'sglang');
  assert.deepEqual(a.scenario.workload, b.scenario.workload, 'the same requests');
  assert.match(await page.innerText('#two thead'), /A: SGLang 0\.5\.16/);
  assert.match(await page.innerText('#reasons'), /(more|less) in B: .*SGLang/);
  assert.match(await page.innerText('#did'), /Preempted or retracted/);
  assert.match(await page.innerText('#differing'), /policy/i);
  await audit(page);
  const first = await fingerprint(page);
  await page.getByRole('button', { name: 'Use A', exact: true }).click();
  await nextResult(page, first);
  assert.equal(await fingerprint(page), a.fingerprint, 'SGLang is on the page');
  await page.getByText('A and B are the same').waitFor();
  await page.selectOption('#compare-with', { label: 'this scenario by TensorRT-LLM 1.2' });
  await page.waitForFunction(() => document.querySelector('#two thead')?.innerText.includes('A: TensorRT-LLM 1.2'));
});

if (existsSync(command)) {
  const fragment = `p=${preset}&engine.compat=blis-2026-02`;
  await task(
    'compat: the page gives the command’s fingerprint',
    async (page) => {
      await verdict(page);
      const report = JSON.parse(
        execFileSync(command, ['run', preset, '--sampling', '--set', 'engine.compat=blis-2026-02'], {
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'ignore'],
        }),
      );
      assert.equal(await fingerprint(page), report.fingerprint);
      return report.fingerprint;
    },
    { fragment: `#${fragment}` },
  );
} else {
  skip('compat: the page gives the command’s fingerprint', `${command} is not built`);
}

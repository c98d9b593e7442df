// Tasks with what comes from outside: trace files and links, also bad ones. Part of run.mjs.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { deflateRawSync, gzipSync } from 'node:zlib';
import { command } from '../command.mjs';
import { dropFile, field, fingerprint, nextResult, problem, root, verdict } from './browser.mjs';
import { audit, openEverything, preset, site, skip, smallTrace, task } from './harness.mjs';

const groundtruth = process.env.SERVECAST_GROUNDTRUTH ?? join(root, '../shared/groundtruth');
const azure = join(groundtruth, 'traces/raw/AzureLLMInferenceTrace_conv.csv.gz');

/** Mooncake's JSON lines: every request begins with the same 1,024 tokens. */
function sharingTrace(rows) {
  const line = (index) =>
    JSON.stringify({ timestamp: index * 250, input_length: 1200, output_length: 20, hash_ids: [1, 2, 100 + index] });
  return `${Array.from({ length: rows }, (_, index) => line(index)).join('\n')}\n`;
}

// --- Traces ------------------------------------------------------------------------------------

await task('trace: dropped, plain and gzipped alike, then removed', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await dropFile(page, 'small.csv', Buffer.from(smallTrace(200)));
  await nextResult(page, first);
  const plain = await fingerprint(page);
  assert.match(await page.textContent('.footer'), /200 requests/);
  assert.match(await page.textContent('#prefix-cache'), /no hits/);
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
  for (const replaced of ['preset', 'name', 'requests']) {
    assert.equal(
      await page.locator(`sc-field[data-pointer="/workload/${replaced}"]`).count(),
      0,
      `${replaced} has no effect on a trace`,
    );
  }
  await page
    .getByText(/The trace brings its own requests/)
    .first()
    .waitFor();
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

await task('trace: a bad value that it replaces can still be reached', async (page) => {
  await verdict(page);
  const requests = field(page, '/workload/requests').locator('input[type=text]');
  await requests.fill('0');
  await problem(page);
  await dropFile(page, 'small.csv', Buffer.from(smallTrace(20)));
  await page.locator('.trace-box strong').waitFor();
  await page
    .locator('.issues')
    .getByRole('button', { name: /^Requests/ })
    .click();
  await requests.fill('5');
  await verdict(page);
  assert.match(await page.textContent('.footer'), /20 requests/);
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
  // What a script writes into the address is what a reload opens only a moment later.
  await page.waitForTimeout(400);
  await page.reload();
  assert.match(await problem(page), /my day\.csv/);
  await page.setInputFiles('#trace-file', {
    name: 'my day.csv',
    mimeType: 'text/csv',
    buffer: Buffer.from(smallTrace(50)),
  });
  await verdict(page);
  assert.equal(await fingerprint(page), traced);
  assert.doesNotMatch(await page.textContent('.verdict'), /made with/);
  await dropFile(page, 'other.csv', Buffer.from(smallTrace(60)));
  await nextResult(page, traced);
  assert.match(await page.textContent('.verdict'), /made with the trace my day\.csv; this is other\.csv/);
  await page.getByRole('button', { name: 'Remove trace' }).first().click();
  await page.waitForFunction(() => !/made with/.test(document.querySelector('.verdict')?.textContent ?? ''));
});

await task('trace: what a file was read as stands beside its name', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await dropFile(page, 'burst.csv', Buffer.from('Timestamp,Request tokens,Response tokens\n0,100,20\n1,200,30\n'));
  await nextResult(page, first);
  assert.match(
    await page.textContent('#trace-reading'),
    /CSV with named columns: columns Timestamp \(s\), Request tokens, Response tokens/,
  );
  const named = await fingerprint(page);
  await dropFile(
    page,
    'bench.json',
    Buffer.from(
      JSON.stringify({
        input_lens: [100, 200, 50],
        output_lens: [20, 40, 0],
        start_times: [7.5, 8.5, 9],
        errors: ['', '', 'gone'],
      }),
    ),
  );
  await nextResult(page, named);
  assert.match(await page.textContent('#trace-reading'), /vLLM bench serve result: .*1 failed requests left out/);
});

await task('trace: lengths alone leave the arrivals', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await dropFile(page, 'lengths.csv', Buffer.from('input_tokens,output_tokens\n100,20\n300,40\n'));
  await nextResult(page, first);
  assert.match(await page.textContent('#trace-reading'), /lengths only/);
  assert.match(await page.textContent('.footer'), /2,000 requests/);
});

await task('trace: a fitted summary takes its place, in a link without a file', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await dropFile(page, 'day.csv', Buffer.from(smallTrace(2000)));
  await nextResult(page, first);
  const traced = await fingerprint(page);
  await page.getByRole('button', { name: 'Replace by a fitted summary' }).first().click();
  await nextResult(page, traced);
  const fitted = await fingerprint(page);
  await page.locator('sc-fit-chart canvas').nth(2).waitFor();
  assert.equal(await page.locator('sc-fit-chart canvas').count(), 3, 'arrivals, prompts, outputs');
  await audit(page);
  await page.locator('sc-fit-chart').getByRole('button', { name: 'Table' }).click();
  assert.match(await page.textContent('sc-fit-chart table'), /prompt p99 \(tokens\)/);
  await page.waitForFunction(() => location.hash.length > 100 && !location.hash.includes('trace='));
  const { hash } = new URL(page.url());
  assert.ok(hash.length < 2000, `${hash.length} characters`);
  await page.getByRole('button', { name: 'Replay the trace itself' }).first().click();
  await nextResult(page, fitted);
  assert.equal(await fingerprint(page), traced);
  await page.goto('about:blank');
  await page.goto(site.url + hash);
  await verdict(page);
  assert.equal(await fingerprint(page), fitted);
  return `${hash.length} characters`;
});

/** Makes a file in the page, so that its bytes need not be carried there, and drops it. */
async function dropLarge(page, rows) {
  await page.evaluate((count) => {
    const parts = ['arrival_s,input_tokens,output_tokens\n'];
    for (let row = 0; row < count; row += 1)
      parts.push(`${row / 100},${200 + ((row * 37) % 300)},${2 + ((row * 13) % 6)}\n`);
    window.large = new DataTransfer();
    window.large.items.add(new File(parts, 'large.csv'));
  }, rows);
  // The making of it is no task of the page's.
  await page.waitForTimeout(300);
  await page.evaluate(() => {
    window.seen.longest_task_ms = 0;
    document.body.dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer: window.large }));
  });
}

await task('trace: a million rows are read without freezing the page', async (page) => {
  await verdict(page);
  await dropLarge(page, 1_000_000);
  await page.locator('#trace-reading').first().waitFor({ timeout: 300_000 });
  const longest = await page.evaluate(() => window.seen.longest_task_ms);
  assert.ok(longest < 500, `a task of ${Math.round(longest)} ms`);
  await page.waitForFunction(
    () => /1,000,000 requests/.test(document.querySelector('.footer')?.textContent ?? ''),
    null,
    { timeout: 300_000 },
  );
  return `longest task of the page ${Math.round(longest)} ms`;
});

await task('trace: reading a large file can be given up', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await dropLarge(page, 3_000_000);
  await page.getByRole('button', { name: 'Cancel reading' }).first().click({ timeout: 10_000 });
  await page.getByRole('button', { name: 'drop or choose a trace' }).waitFor();
  await page.waitForFunction((old) => document.querySelector('#fingerprint')?.textContent === old, first);
});

await task('trace: a gzip bomb ends in a sentence', async (page) => {
  await verdict(page);
  const rows = Buffer.alloc(64 << 20, '0,1,1\n');
  await dropFile(
    page,
    'bomb.csv.gz',
    gzipSync(Buffer.concat([Buffer.from('arrival_s,input_tokens,output_tokens\n'), rows]), { level: 9 }),
  );
  assert.match(await problem(page), /trace cannot be used/);
  assert.match(await page.textContent('.issues'), /more than 5000000 requests/i);
});

const published = {
  'Azure conversations': [azure, '19,366'],
  'Azure code': [join(groundtruth, 'traces/raw/AzureLLMInferenceTrace_code.csv.gz'), '8,819'],
  'Mooncake conversations': [join(groundtruth, 'traces/raw/mooncake_conversation_trace.jsonl.gz'), '12,031'],
  'Mooncake synthetic': [join(groundtruth, 'traces/mooncake_synthetic.csv.gz'), '3,993'],
};
for (const [name, [file, requests]] of Object.entries(published)) {
  const title = `trace: ${name} give the command’s fingerprint`;
  if (!existsSync(file) || !existsSync(command)) {
    skip(title, existsSync(file) ? `${command} is not built` : `${file} is not here`);
    continue;
  }
  await task(title, async (page) => {
    await verdict(page);
    const first = await fingerprint(page);
    const report = JSON.parse(
      execFileSync(command, ['run', preset, '--sampling', '--trace', file], {
        encoding: 'utf8',
        maxBuffer: 2 ** 28,
        stdio: ['ignore', 'pipe', 'ignore'],
      }),
    );
    await dropFile(page, basename(file), readFileSync(file));
    await nextResult(page, first);
    assert.equal(await fingerprint(page), report.fingerprint);
    assert.match(await page.textContent('.footer'), new RegExp(`${requests} requests`));
    return report.fingerprint;
  });
}

// --- Links -------------------------------------------------------------------------------------

await task('link: a reload gives the same fingerprint', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await field(page, '/workload/arrivals/rate_per_s').locator('input[type=text]').fill('11');
  await nextResult(page, first);
  const edited = await fingerprint(page);
  await page.waitForFunction(
    () =>
      location.hash === '#p=llama-3.1-8b-h100-chat&workload.arrivals.rate_per_s=11' &&
      document.querySelector('.share .primary')?.disabled === false,
  );
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

// Tasks of the doors to other tools: what they write becomes the scenario, and the scenario what they read. Part of run.mjs.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { dropFile, field, fingerprint, nextResult, openTab, problem, verdict } from './browser.mjs';
import { audit, preset, task } from './harness.mjs';

const textOf = (name) => readFileSync(new URL(`../import/texts/${name}`, import.meta.url), 'utf8');
const notes = (page, name) => page.locator(`ul[aria-label="${name}"] li`).allInnerTexts();
const value = (page, pointer) => field(page, pointer).locator('input[type=text], select').first().inputValue();
const command = `vllm serve meta-llama/Llama-3.1-8B-Instruct --tensor-parallel-size 2 \\
  --max-num-seqs 64 --api-key <b>secret</b> --no-such-flag 3`;

/** A launch command, a start-up log and what a benchmark printed. */
const diagnosed = readFileSync(new URL('../cli/diagnosed_server.txt', import.meta.url), 'utf8');

async function openImport(page) {
  await verdict(page);
  await page.getByRole('button', { name: 'Import', exact: true }).and(page.locator(':visible')).click();
  await page.locator('#import[open]').waitFor();
}

await task(
  'import: a command says what is taken and what is not, and is used over the open scenario',
  async (page) => {
    await openImport(page);
    const first = await fingerprint(page);
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'import-text');
    await page.fill('#import-text', command);
    await page.getByText('Found a command of vLLM').waitFor();
    const taken = await notes(page, 'Taken');
    assert.ok(
      taken.some((note) => /max_num_seqs = 64\s+--max-num-seqs 64/.test(note)),
      taken.join('\n'),
    );
    const left = await notes(page, 'Left out');
    assert.ok(
      left.some((note) => /--no-such-flag/.test(note)),
      left.join('\n'),
    );
    assert.ok(left.some((note) => note.includes('<b>secret</b>')));
    await audit(page);
    assert.equal(await fingerprint(page), first, 'nothing changes before it is used');
    await page.getByRole('button', { name: 'Use', exact: true }).click();
    await nextResult(page, first);
    assert.equal(await value(page, '/engine/max_num_seqs'), '64');
    assert.equal(await value(page, '/workload/arrivals/rate_per_s'), '9', 'what it does not say stays');
    await page.getByText('Undo brings back what was open').waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.waitForFunction((before) => document.querySelector('#fingerprint')?.textContent === before, first);
  },
  { fragment: `#p=${preset}&workload.arrivals.rate_per_s=9` },
);

await task('import: what is not understood is said, and changes nothing', async (page) => {
  await openImport(page);
  const first = await fingerprint(page);
  const use = page.getByRole('button', { name: 'Use', exact: true });
  assert.ok(await use.isDisabled());
  await page.fill('#import-text', 'Dear all, see you on Monday.');
  await page.getByText('Nothing was understood').waitFor();
  assert.match(await page.textContent('#import-said'), /Found nothing that can be imported; allowed are/);
  assert.ok(await use.isDisabled());
  await page.fill('#import-text', '{"architectures": ["NoSuchModel"], "hidden_size": 64}');
  await page.locator('#import-said').getByText('NoSuchModel').first().waitFor();
  await audit(page);
  await page.keyboard.press('Escape');
  await page.locator('sc-import').waitFor({ state: 'detached' });
  assert.equal(await fingerprint(page), first);
  assert.ok(await page.getByRole('button', { name: 'Undo' }).isDisabled());
});

/** A model that no preset is. */
const unknownConfig = JSON.stringify({
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  hidden_size: 3072,
  intermediate_size: 9216,
  num_hidden_layers: 30,
  num_attention_heads: 24,
  num_key_value_heads: 8,
  vocab_size: 128256,
  torch_dtype: 'bfloat16',
  max_position_embeddings: 131072,
});

await task('import: what an assumed top-p comes to is shown, and can be chosen', async (page) => {
  await openImport(page);
  const first = await fingerprint(page);
  await page.fill('#import-text', unknownConfig);
  await page
    .locator('#import-effect', {
      hasText: /If they do, TPOT p99 is [\d.]+.ms.*, if not [\d.]+.ms.*: a difference of \d+.%/,
    })
    .waitFor();
  const effect = await page.textContent('#import-effect');
  const [sampled, plain] = [/is ([\d.]+).ms/, /not ([\d.]+).ms/].map((each) => each.exec(effect)[1]);
  assert.ok(Number(sampled) > Number(plain), effect);
  const box = page.getByLabel(/Servers of this model sample by top-p/);
  assert.ok(await box.isChecked(), 'llamas do');
  await audit(page);
  await box.uncheck();
  await page.getByRole('button', { name: 'Use', exact: true }).click();
  await nextResult(page, first);
  const tile = page.locator('.tile', { hasText: 'TPOT' }).locator('.value');
  assert.ok((await tile.innerText()).startsWith(plain), `${plain}: ${await tile.innerText()}`);
  assert.equal(
    await page.evaluate(() => document.querySelector('sc-page').app.store.state.document.model.top_p_by_default),
    false,
  );
  // Of a preset the files are known: nothing is asked.
  await page.getByRole('button', { name: 'Import', exact: true }).and(page.locator(':visible')).click();
  await page.fill('#import-text', command);
  await page.getByText('Found a command of vLLM').waitFor();
  assert.equal(await page.locator('#import-top-p').count(), 0);
});

for (const [name, viewport] of [
  ['', { width: 1440, height: 1000 }],
  [', on a phone', { width: 390, height: 844 }],
])
  await task(
    `import: a command with its log and result says what is wrong with the server in two clicks${name}`,
    async (page) => {
      await openImport(page);
      const first = await fingerprint(page);
      await page.fill('#import-text', diagnosed);
      await page.locator('#diagnose').click();
      const sentence = page.locator('.diagnosis-sentence');
      await sentence.waitFor();
      assert.match(
        await sentence.innerText(),
        /The server is slower than its forecast: TTFT p99 is 352.ms.* Most likely:/,
      );
      assert.match(await page.locator('.check-differs').first().innerText(), /The KV cache holds 415,312 tokens/);
      assert.equal(await page.locator('.diagnosis-figures tbody tr').count(), 8);
      assert.match(
        await page.locator('.diagnosis-figures tbody tr').first().innerText(),
        /TTFT mean.*140.ms.*outside/s,
      );
      const wider = await page.evaluate(() => {
        const dialog = document.querySelector('#import');
        return dialog.scrollWidth - dialog.clientWidth;
      });
      assert.ok(wider <= 0, `${wider} px wider than its dialog`);
      await audit(page);
      assert.equal(await fingerprint(page), first, 'nothing changes before it is used');
      await page.locator('.diagnosis-causes button').first().click();
      await nextResult(page, first);
      await page.getByText('Undo brings back what was open').waitFor();
      const { preset: gpu } = await page.evaluate(
        () => document.querySelector('sc-page').app.store.state.document.hardware,
      );
      assert.equal(gpu, 'h100-pcie');
    },
    { viewport },
  );

await task('import: files that are dropped, each as what it is', async (page) => {
  await verdict(page);
  for (const [name, found] of [
    ['kserve.yaml', /Found a manifest/],
    ['metrics.txt', /Found .*metrics/],
    ['generation_config.json', /Found .*generation_config/],
  ]) {
    await dropFile(page, name, Buffer.from(textOf(name)));
    await page.waitForFunction(
      (source) => new RegExp(source, 'i').test(document.querySelector('#import-said')?.textContent ?? ''),
      found.source,
    );
    await page.keyboard.press('Escape');
    await page.locator('sc-import').waitFor({ state: 'detached' });
  }
  await dropFile(page, 'broken.csv', Buffer.from('nonsense'));
  await problem(page);
  assert.equal(await page.locator('sc-import').count(), 0, 'a trace is read as one');
});

await task(
  'share: a deployment for vLLM, Docker and Kubernetes, copied, and imported again',
  async (page) => {
    await verdict(page);
    const first = await fingerprint(page);
    await page.keyboard.press('s');
    await page.locator('.share-kinds').getByRole('button', { name: 'Deploy' }).click();
    const shown = async (pattern) => {
      await page.waitForFunction(
        (source) => new RegExp(source).test(document.querySelector('#share-text')?.value ?? ''),
        pattern,
      );
      return page.inputValue('#share-text');
    };
    await shown('^vllm serve meta-llama/Llama-3\\.1-8B-Instruct \\\\\n[^]*--max-num-seqs 256');
    assert.ok((await notes(page, 'Left out')).some((note) => note.includes('slo: targets are no settings')));
    await page.selectOption('#share-target', 'docker');
    await shown('^docker run [^]*--max-num-seqs 256');
    await page.selectOption('#share-target', 'kubernetes');
    const manifest = await shown('^apiVersion: apps/v1[^]*nvidia\\.com/gpu');
    await audit(page);
    await page.getByRole('button', { name: 'Copy', exact: true }).click();
    await page.getByText('Deployment copied.').waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), manifest);
    await page.keyboard.press('Escape');
    await openImport(page);
    await page.fill('#import-text', manifest);
    await page.getByText('Nothing changes before you use it').waitFor();
    await page.getByRole('button', { name: 'Use', exact: true }).click();
    await page.getByText('Imported a manifest').waitFor();
    await verdict(page);
    assert.equal(await fingerprint(page), first, 'the same bits');
  },
  { permissions: ['clipboard-read', 'clipboard-write'] },
);

await task('share: what to change in the text that was imported', async (page) => {
  await verdict(page);
  await openImport(page);
  await page.fill('#import-text', 'vllm serve Qwen/Qwen3-8B --max-num-seqs 64');
  await page.getByText('Nothing changes before you use it').waitFor();
  await page.getByRole('button', { name: 'Use', exact: true }).click();
  await verdict(page);
  await page.evaluate(() =>
    document.querySelector('sc-page').app.applyText(
      JSON.stringify({
        ...document.querySelector('sc-page').app.store.state.document,
        engine: { ...document.querySelector('sc-page').app.store.state.document.engine, max_num_seqs: 96 },
      }),
    ),
  );
  await page.keyboard.press('s');
  await page.locator('.share-kinds').getByRole('button', { name: 'Deploy' }).click();
  await page.selectOption('#share-target', 'own');
  await page.waitForFunction(() =>
    /^\+vllm serve Qwen\/Qwen3-8B --max-num-seqs 96$/m.test(document.querySelector('#share-text')?.value ?? ''),
  );
});

/** Answers as Perfetto does, and keeps what it was handed. */
const perfetto = `<!doctype html><title>Perfetto</title><script>
addEventListener('message', ({ source, origin, data }) => {
  if (data === 'PING') source.postMessage('PONG', origin);
  else window.handed = data.perfetto;
});
</script>`;
const standIn = (page, body) =>
  page.context().route('https://ui.perfetto.dev/**', (route) => route.fulfill({ contentType: 'text/html', body }));

await task(
  'time line: handed to a window of Perfetto, and saved',
  async (page) => {
    await standIn(page, perfetto);
    await verdict(page);
    await openTab(page, 'Over time');
    const open = page.getByRole('button', { name: 'Open in Perfetto' });
    await open.waitFor();
    const [opened] = await Promise.all([page.waitForEvent('popup'), open.click()]);
    await opened.waitForFunction(() => window.handed !== undefined);
    const handed = await opened.evaluate(() => {
      const { title, fileName, buffer } = window.handed;
      const { traceEvents: events } = JSON.parse(new TextDecoder().decode(buffer));
      return { title, fileName, steps: events.filter(({ ph }) => ph === 'X').length };
    });
    assert.match(handed.title, /H100/);
    assert.match(handed.fileName, /^servecast-[0-9a-f]{8}\.json$/);
    assert.ok(handed.steps > 1000, `${handed.steps} steps`);
    await page.getByText('Perfetto has it.').waitFor();
    await opened.close();
    await audit(page);
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save the time line' }).click(),
    ]);
    assert.equal(JSON.parse(readFileSync(await file.path(), 'utf8')).displayTimeUnit, 'ms');
    return `${handed.steps} steps`;
  },
  // A message to a window that is not there yet is an error on the console.
  { acceptDownloads: true, expectsProblems: true },
);

await task(
  'time line: a window that is closed before it answers is said',
  async (page) => {
    await standIn(page, '<!doctype html><title>silent</title>');
    await verdict(page);
    await openTab(page, 'Over time');
    const open = page.getByRole('button', { name: 'Open in Perfetto' });
    const [opened] = await Promise.all([page.waitForEvent('popup'), open.click()]);
    await opened.close();
    await page.getByText('Perfetto did not answer').waitFor();
  },
  { expectsProblems: true },
);

for (const [name, options] of Object.entries({
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true },
})) {
  await task(
    `axe: importing and deploying, ${name}`,
    async (page) => {
      const fits = async (id) => {
        await audit(page);
        const [inner, outer] = await page.locator(id).evaluate((dialog) => [dialog.scrollWidth, dialog.clientWidth]);
        assert.ok(inner <= outer, `${id} holds ${inner} px in ${outer}`);
        const box = await page.locator(id).boundingBox();
        assert.ok(box.x >= 0 && box.x + box.width <= (await page.evaluate(() => innerWidth)));
      };
      await openImport(page);
      await page.fill('#import-text', command);
      await page.getByText('Found a command of vLLM').waitFor();
      await fits('#import');
      await page.keyboard.press('Escape');
      await page.keyboard.press('s');
      await page.locator('.share-kinds').getByRole('button', { name: 'Deploy' }).click();
      await page.waitForFunction(() => document.querySelector('#share-text')?.value.startsWith('vllm serve'));
      await fits('#share');
    },
    options,
  );
}

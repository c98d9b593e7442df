// Tasks of sharing: the dialog, what it hands out, and links with their author's result. Part of run.mjs.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { banded, field, fingerprint, nextResult, openTab, verdict, waysOut } from './browser.mjs';
import { audit, preset, site, task } from './harness.mjs';

const clipboard = { permissions: ['clipboard-read', 'clipboard-write'] };
const pasted = (page) => page.evaluate(() => navigator.clipboard.readText());
const kind = (page, name) => page.locator('.share-kinds').getByRole('button', { name, exact: true }).click();
const shownText = (page) => page.inputValue('#share-text');

async function openDialog(page) {
  await verdict(page);
  await page.waitForFunction(() => document.querySelector('.share .primary:not([disabled])') !== null);
  await page.keyboard.press('s');
  await page.locator('#share[open]').waitFor();
  await page.waitForFunction(() => document.querySelector('#share-text')?.value.includes('#'));
}

await task(
  'share: s opens the link with its result, which its reader verifies',
  async (page) => {
    await openDialog(page);
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'share-text');
    const link = await shownText(page);
    assert.match(link, /#p=[\w.-]+&v=1\.[\d.]+&r=[a-z_]+(,\d+)+&f=[0-9a-f]{16}$/);
    await page.getByRole('button', { name: 'Copy', exact: true }).click();
    await page.getByText('Link copied.').waitFor();
    assert.equal(await pasted(page), link);
    assert.match(await page.textContent('#share-holds'), /in \d+ characters\. It is not encrypted/);
    await page.getByLabel('With my result').uncheck();
    assert.doesNotMatch(await shownText(page), /&f=/);
    await page.keyboard.press('Escape');
    await page.locator('sc-share').waitFor({ state: 'detached' });
    await page.goto('about:blank');
    await page.goto(link);
    await verdict(page);
    await page.locator('[data-pin="verified"]').waitFor();
    assert.match(await page.textContent('.pin'), /the same bits/);
    await audit(page);
    await page.waitForTimeout(500);
    const pin = link.slice(link.indexOf('&v='));
    assert.ok((await page.evaluate(() => location.href)).endsWith(pin), 'a reload still knows the author’s result');
    return `${link.length} characters, ${link.length - link.indexOf('&v=')} of them the result`;
  },
  clipboard,
);

await task(
  'keep: a scenario with its title and note is in the list of the next visit, until it is removed',
  async (page) => {
    await openDialog(page);
    await kind(page, 'Keep');
    await page.getByLabel('Title').fill('Chat for <b>May</b>');
    await page.getByLabel('Note').fill('one H100 & a half');
    await page.getByRole('button', { name: 'Keep on this machine' }).click();
    await page.getByText('Kept. The list of scenarios has it').waitFor();
    await audit(page);
    await kind(page, 'Link');
    await page.waitForFunction(() => document.querySelector('#share-text')?.value.includes('#z1.'));
    await page.keyboard.press('Escape');
    const picker = page.getByRole('combobox', { name: 'Scenario preset' });
    assert.equal(await picker.inputValue(), 'Chat for <b>May</b>');
    await page.goto('about:blank');
    await page.goto(site.url);
    await verdict(page);
    // What is kept comes after the first verdict.
    const kept = page.locator('#preset-list li', { hasText: 'Chat for <b>May</b>' });
    await kept.waitFor({ state: 'attached' });
    await picker.click();
    assert.match(await kept.innerText(), /Kept .*one H100 & a half/s);
    await audit(page);
    await kept.click();
    await page.waitForFunction(() => document.querySelector('.picker input')?.value === 'Chat for <b>May</b>');
    await openDialog(page);
    await kind(page, 'Keep');
    assert.equal(await page.getByLabel('Note').inputValue(), 'one H100 & a half');
    await page.getByRole('button', { name: 'Remove Chat for <b>May</b>' }).click();
    await page.waitForFunction(() => !document.querySelector('.kept')?.textContent.includes('Kept'));
    return `${await page.evaluate(() => localStorage.getItem('servecast-scenarios').length)} characters are left`;
  },
);

await task(
  'pin: another result and another version are said, beside one’s own',
  async (page) => {
    await verdict(page);
    await page.locator('[data-pin="differs"]').waitFor();
    const text = (await page.textContent('.pin')).replaceAll(/\s+/g, ' ');
    assert.match(text, /made with engine 0\.0\.9; this is/);
    assert.match(text, /Verdict ?misses ?meets ?differs/);
    assert.match(text, /TTFT p99.*1\.00.s/);
    await audit(page);
    const first = await fingerprint(page);
    await field(page, '/workload/arrivals/rate_per_s').locator('input[type=text]').fill('9');
    await nextResult(page, first);
    assert.equal(await page.locator('sc-pin').count(), 0, 'the result is not of what was edited');
    await page.waitForFunction(() => !location.hash.includes('&f='));
  },
  { fragment: `#p=${preset}&v=1.0.0.9&r=misses,1000000,15000&f=0123456789abcdef` },
);

await task('pin: the same bits by another version are verified, and Back brings the result again', async (page) => {
  await openDialog(page);
  const link = (await shownText(page)).replace(/&v=1\.[\d.]+&/, '&v=1.0.0.9&');
  await page.goto('about:blank');
  await page.goto(link);
  await page.locator('[data-pin="verified"]').waitFor();
  assert.match(await page.textContent('.pin'), /by another version.*made with engine 0\.0\.9; yours/);
  const first = await fingerprint(page);
  await page.keyboard.press('/');
  await page.keyboard.type('rag');
  await page.locator('#preset-list li:visible').first().waitFor();
  await page.keyboard.press('Enter');
  await nextResult(page, first);
  assert.equal(await page.locator('sc-pin').count(), 0);
  await page.goBack();
  await page.locator('[data-pin="verified"]').waitFor();
  await page.waitForFunction(() => location.hash.includes('&v=1.0.0.9&'));
});

await task(
  'share: a link that people wrote stays as short; one that cannot be opened is not passed on',
  async (page) => {
    await openDialog(page);
    assert.match(await shownText(page), /#p=llama-3\.1-8b-h100-chat&workload\.arrivals\.rate_per_s=41&v=/);
    assert.match(await page.textContent('#share-holds'), /It is not encrypted/);
    await page.keyboard.press('Escape');
    await page.evaluate(() => (location.hash = '#z1.AAAA'));
    await page.getByText('This link cannot be opened').waitFor();
    await page.keyboard.press('s');
    await page.getByText('There is nothing to share').waitFor();
    assert.equal(await page.locator('#share-text').count(), 0);
  },
  { fragment: `#p=${preset}&workload.arrivals.rate_per_s=41` },
);

await task(
  'share: opened during a run, the dialog has its result when it is done',
  async (page) => {
    await page.waitForFunction(() => document.querySelector('.share .primary:not([disabled])') !== null);
    await page.keyboard.press('s');
    await page.locator('#share[open]').waitFor();
    assert.equal(await page.getByLabel('With my result').isEnabled(), false, 'the run lasts longer than this');
    await page.waitForFunction(() => /&f=[0-9a-f]{16}$/.test(document.querySelector('#share-text')?.value));
    assert.equal(await page.getByLabel('With my result').isChecked(), true);
  },
  { fragment: `#p=${preset}&workload.requests=400000` },
);

await task(
  'pin: a damaged one leaves the scenario whole',
  async (page) => {
    await verdict(page);
    await page.locator('[data-pin="unreadable"]').waitFor();
  },
  { fragment: `#p=${preset}&v=1.0.1.0&r=meets` },
);

await task(
  'share: Markdown, iframe, element, scenario, result and command, each copied',
  async (page) => {
    await openDialog(page);
    for (const [name, pattern, said] of [
      ['Markdown', /^\[.+\]\(http.+#p=.+\): .+/, 'Markdown copied.'],
      ['Iframe', /^<iframe src="http.+embed\.html#p=.+&amp;ui=chart" title=".+"/, 'Iframe copied.'],
      [
        'Element',
        /<servecast-embed scenario="p=.+" ui="chart">[\s\S]+<a href="http.+">[\s\S]+TTFT p99/,
        'Element copied.',
      ],
      ['JSON', /^\{\n {2}"/, 'Scenario copied, as JSON.'],
      ['Result', /^\{\n {2}"[\s\S]+"fingerprint": "[0-9a-f]{16}"/, 'Result copied, as JSON.'],
      ['Command', /^servecast link open 'p=.+'$/, 'Command copied.'],
    ]) {
      await kind(page, name);
      const text = await shownText(page);
      assert.match(text, pattern, name);
      await page.getByRole('button', { name: 'Copy', exact: true }).click();
      await page.getByText(said, { exact: true }).waitFor();
      assert.equal(await pasted(page), text);
    }
    await kind(page, 'Iframe');
    await page.getByLabel('Shows').selectOption('what-if');
    await page.getByLabel('Knobs, one to three').fill('workload.arrivals.rate_per_s, engine.max_num_seqs');
    assert.match(await shownText(page), /knobs=workload\.arrivals\.rate_per_s,engine\.max_num_seqs"/);
    await page.getByLabel('Locked').check();
    assert.match(await shownText(page), /&amp;lock=1"/);
  },
  clipboard,
);

await task(
  'share: the card as SVG and PNG',
  async (page) => {
    await openDialog(page);
    await kind(page, 'Card');
    await page.waitForFunction(() => document.querySelector('.share-card')?.naturalWidth > 0);
    for (const type of ['SVG', 'PNG']) {
      const [file] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: `Save ${type}` }).click(),
      ]);
      assert.ok(file.suggestedFilename().endsWith(`.${type.toLowerCase()}`));
      const bytes = readFileSync(await file.path());
      if (type === 'PNG') assert.ok(bytes.length > 10_000);
      else
        assert.match(bytes.toString('utf8'), /^<svg [\s\S]*TTFT p99[\s\S]*fingerprint [0-9a-f]{16}[\s\S]*<\/svg>\n$/);
    }
  },
  { acceptDownloads: true },
);

const hostile = '<img src=x onerror=alert(1)>';

async function openReport(page) {
  await openDialog(page);
  await openSheetOf(page);
}

async function openSheetOf(page) {
  await kind(page, 'Report');
  await page.getByRole('button', { name: 'Open the report' }).click();
  await page.locator('.paper[data-ready=true]').waitFor();
}

/** The saved file as somebody opens it: what it asks for, beside itself, and whether anything in it runs. */
async function opened(page, text) {
  const other = await page.context().newPage();
  const asked = [];
  other.on('request', (request) => request.url().startsWith('data:') || asked.push(request.url()));
  other.on('dialog', (dialog) => asked.push(`a dialog: ${dialog.message()}`) && dialog.dismiss());
  await other.setContent(text, { waitUntil: 'load' });
  return { other, asked };
}

await task(
  'report: what the page shows is one page of paper in light colours, and one file without scripts that asks for nothing',
  async (page) => {
    await banded(page);
    const sentence = await page.locator('.verdict .sentence').innerText();
    const top = await page.title();
    await openReport(page);
    const sheet = page.locator('.paper');
    assert.equal(await sheet.locator('h1').innerText(), sentence);
    const text = await sheet.innerText();
    assert.ok(text.includes(`${hostile} ·`), 'the title, as text');
    assert.match(text, /Load\n.*rate 41\sreq\/s/);
    assert.match(text, /Sequences \(max_num_seqs\) 128\srequests \(preset: 256\srequests\)/);
    assert.match(text, /Changed\n.*Rate 41\sreq\/s \(preset: 40\sreq\/s\)/);
    assert.doesNotMatch(text, /Workload: requests/, 'the preset has it');
    assert.match(text, /\nChanged from: Llama-3.1-8B answers 40 chat/, 'the note, which is the preset’s');
    assert.match(
      text,
      /TTFT p99\s+[\d.]+\sms\s+[\d.]+ to [\d.]+\sms\s+[\d.]+ to [\d.]+\sms\s+200\sms\s+\d+\s% to spare/,
    );
    assert.match(text, /Not asked of this scenario: .*Fewest GPUs/);
    assert.match(text, /Calibrated\. \d+ runs of/);
    assert.match(text, /engine \d+\.\d+\.\d+ · fingerprint [0-9a-f]{16}/);
    assert.equal(await page.locator('#page').isVisible(), false);
    assert.equal(await page.locator('img[src="x"]').count(), 0);
    assert.equal(await sheet.locator('.pictures img').count(), 2);
    await audit(page);
    for (const format of ['A4', 'Letter']) {
      const pdf = await page.pdf({ format, printBackground: true });
      assert.equal(pdf.toString('latin1').match(/\/Type *\/Page\b/g).length, 1, format);
    }
    await page.emulateMedia({ media: 'print' });
    const colours = await page.evaluate(() =>
      ['.paper', ':root'].map((each) => getComputedStyle(document.querySelector(each)).backgroundColor),
    );
    assert.deepEqual(colours, ['rgb(255, 255, 255)', 'rgb(255, 255, 255)'], 'on paper, of a dark page');
    assert.equal(await page.locator('.sheet-tools').isVisible(), false);
    await page.emulateMedia({ media: null });
    await page.getByLabel('How sure').uncheck();
    assert.doesNotMatch(await sheet.innerText(), /Calibrated\. \d+ runs of/);
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save HTML' }).click(),
    ]);
    assert.match(file.suggestedFilename(), /^servecast-[0-9a-f]{8}-report\.html$/);
    const saved = readFileSync(await file.path(), 'utf8');
    assert.doesNotMatch(saved, /<script|<link|<iframe|<!--|@import|url\((?!%23)/);
    assert.deepEqual(
      [...saved.matchAll(/\s(?:src|srcset|href|action|on\w+)="([^"]{0,9})/g)]
        .map(([, to]) => to)
        .filter((to) => !to.startsWith('data:')),
      ['http://12'],
      'the link alone leads away',
    );
    assert.ok(saved.includes('&lt;img src=x onerror=alert(1)&gt;') && !saved.includes('<img src=x'));
    const { other, asked } = await opened(page, saved);
    assert.equal(await other.locator('h1').innerText(), sentence);
    assert.match(await other.title(), /^<img src=x onerror=alert\(1\)>: Servecast report$/);
    assert.equal(
      await other.evaluate(() => [...document.images].every(({ naturalWidth }) => naturalWidth > 300)),
      true,
    );
    assert.equal(await other.locator('h1').evaluate((each) => getComputedStyle(each).color), 'rgb(20, 24, 31)');
    const link = await other.locator('footer a').getAttribute('href');
    assert.deepEqual(asked, []);
    await other.close();
    await page.keyboard.press('Escape');
    await page.locator('sc-sheet').waitFor({ state: 'detached' });
    assert.equal(await page.title(), top);
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Share');
    await page.goto('about:blank');
    await page.goto(link);
    await page.locator('[data-pin="verified"]').waitFor();
    return `${saved.length} bytes`;
  },
  {
    fragment: `#p=${preset}&workload.arrivals.rate_per_s=41&engine.max_num_seqs=128&name=${encodeURIComponent(hostile)}`,
    acceptDownloads: true,
    colorScheme: 'dark',
  },
);

await task(
  'report: a title that turns the direction of text leaves the date as it is',
  async (page) => {
    await openReport(page);
    const [title, date] = await page.locator('.paper header p').evaluate((each) => {
      const range = document.createRange();
      range.selectNodeContents(each.querySelector('bdi'));
      const left = range.getBoundingClientRect().left;
      const rest = [...each.childNodes].find(({ textContent }) => textContent.includes('20'));
      range.selectNodeContents(rest);
      const dates = range.getBoundingClientRect();
      range.setStart(rest, rest.textContent.length - 1);
      const last = range.getBoundingClientRect();
      return [left < dates.left, last.right >= dates.right - 1];
    });
    assert.ok(title && date);
  },
  { fragment: `#p=${preset}&name=${encodeURIComponent('May \u202efor')}` },
);

await task(
  'report: what does not fit has its memory sum, and the link that opens it',
  async (page) => {
    await page.locator('[data-state=does_not_fit]').waitFor();
    await page.waitForFunction(() => document.querySelector('.share .primary:not([disabled])') !== null);
    await page.keyboard.press('s');
    await page.locator('#share[open]').waitFor();
    await openSheetOf(page);
    const text = await page.locator('.paper').innerText();
    assert.match(text, /^Servecast\s+Changed from: Chat on one H100 · /);
    assert.match(text, /Weights\n[\d.]+\sGiB[\s\S]*Needed\n[\d.]+\sGiB[\s\S]*Usable\n[\d.]+\sGiB/);
    assert.match(text, /Fits with\ntensor parallel \d/);
    assert.match(text, /Changed\nModel Llama-3\.1-70B \(preset: Llama-3\.1-8B\)/);
    assert.ok((await page.locator('.paper footer a').getAttribute('href')).includes('#'));
    await audit(page);
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save HTML' }).click(),
    ]);
    assert.match(readFileSync(await file.path(), 'utf8'), /Fits with/);
  },
  { fragment: `#p=${preset}&model.preset=llama-3.1-70b`, acceptDownloads: true },
);

await task('report: a comparison is in it whole, whatever its rows are called', async (page) => {
  await verdict(page);
  await openTab(page, 'Compare');
  await page.getByRole('button', { name: 'vLLM, SGLang or TensorRT-LLM?' }).click();
  await page.waitForFunction(
    () =>
      document.querySelector('sc-page').app.store.state.compared?.variants.filter(({ report }) => report).length === 3,
  );
  await openReport(page);
  assert.match(await page.locator('.paper').innerText(), /The same load elsewhere\n.*\n.*TensorRT-LLM/s);
  const cut = await page.evaluate(() =>
    [...document.querySelectorAll('.paper .wide')].map((each) => each.scrollWidth - each.clientWidth),
  );
  assert.ok(cut.length > 1 && cut.every((px) => px <= 0), `tables of the report are cut by ${cut} px`);
});

await task(
  'report: under a miss the ways out that were run, with their costs, and what was not run',
  async (page) => {
    await banded(page);
    await waysOut(page);
    await page.locator('.holds[data-kind=found]').waitFor();
    const onPage = await page.locator('.ways tbody th').allInnerTexts();
    await openReport(page);
    const sheet = page.locator('.paper');
    const part = sheet.locator('section', { has: page.getByRole('heading', { name: 'Ways out' }) });
    assert.deepEqual(await part.locator('tbody th').allInnerTexts(), onPage, 'the rows of the page');
    const text = await part.innerText();
    assert.match(text, /2 replicas\s.*ms \(90\s%: [\d.]+ to [\d.]+\).*\$5\.00\/h \(\+\$2\.50\/h\)\s+Calibrated/);
    assert.match(text, /req\/s on these GPUs turns away \d+\s%/);
    assert.match(text, /Run, and do not get there: .*fp8 KV cache \([\d.]+\sms\).*Not run, as one change is enough: /);
    const cut = await page.evaluate(() =>
      [...document.querySelectorAll('.paper .wide')].map((each) => each.scrollWidth - each.clientWidth),
    );
    assert.ok(cut.length === 2 && cut.every((px) => px <= 0), `tables of the report are cut by ${cut} px`);
    const pdf = await page.pdf({ format: 'A4', printBackground: true });
    assert.equal(pdf.toString('latin1').match(/\/Type *\/Page\b/g).length, 1);
    await audit(page);
    await page.getByRole('checkbox', { name: 'Ways out' }).uncheck();
    assert.equal(await part.count(), 0);
  },
  { fragment: `#p=${preset}&workload.arrivals.rate_per_s=60` },
);

await task(
  'report: of met targets what would change them most, or that it was not run',
  async (page) => {
    await verdict(page);
    await page.waitForFunction(() => document.querySelector('sc-page').app.store.state.shown?.banded);
    await openReport(page);
    const part = page.locator('.paper section', {
      has: page.getByRole('heading', { name: 'What would change it most' }),
    });
    assert.equal(await part.innerText().then((text) => /Not run: the dozen changes/.test(text)), true);
    await page.locator('#ask-ways').click();
    await part.locator('tbody tr').nth(2).waitFor();
    assert.match(
      await part.innerText(),
      /Each was run on the same requests, as were \d+ changes that give less or cost more\./,
    );
    assert.equal(await page.locator('#ask-ways').count(), 0);
  },
  { fragment: `?view=numbers#p=${preset}` },
);

await task('report: asks nothing by itself, and takes up what is asked there', async (page) => {
  await page.locator('.holds[data-kind=found]').waitFor();
  const held = await page.locator('.holds b').innerText();
  await openReport(page);
  const sheet = page.locator('.paper');
  assert.ok((await sheet.innerText()).includes(`Holds up to ${held}`));
  assert.equal(await sheet.locator('.plan-rows tr').count(), 1);
  await page.getByLabel('Targets as the load grows').check();
  await page.waitForFunction(() => document.querySelectorAll('.paper .pictures img').length === 3);
  await page.getByRole('button', { name: 'Ask the plan’s quick questions' }).click();
  await page.locator('.sheet-tools', { hasText: 'Still being answered: ' }).waitFor();
  assert.match(await sheet.innerText(), /Not answered when this was made: /);
  assert.doesNotMatch(await sheet.innerText(), /Still/);
  await sheet.locator('.plan-rows th', { hasText: 'Fewest GPUs for 40 req/s' }).waitFor();
  // Others may still be under way.
  assert.match(await sheet.innerText(), /Not asked of this scenario: Hours of a day, Autoscaling, Cheapest design\./);
  assert.equal(await page.locator('#ask-quick').count(), 0);
  await page.locator('.paper[data-ready=true]').waitFor();
  await audit(page);
});

await task(
  'share: a long link offers the file',
  async (page) => {
    await openDialog(page);
    assert.match(await page.textContent('#share-holds'), /compressed, not encrypted.*long for a chat/);
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save scenario.json' }).click(),
    ]);
    assert.equal(JSON.parse(readFileSync(await file.path(), 'utf8')).schema, 1);
    return `${(await shownText(page)).length} characters`;
  },
  { fragment: `#p=${preset}&workload.prompt_tokens=${JSON.stringify(longTable())}`, acceptDownloads: true },
);

/** Lengths that do not compress well. */
function longTable() {
  const rows = 300;
  const quantiles = Array.from({ length: rows }, (_, index) => [
    Number((index / (rows - 1)).toPrecision(6)),
    10 + index * 3 + ((index * 7919) % 3),
  ]);
  return { distribution: 'empirical', quantiles };
}

for (const [name, options] of Object.entries({
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true },
})) {
  await task(
    `axe: sharing, ${name}`,
    async (page) => {
      await openDialog(page);
      for (const each of ['Link', 'Element', 'Card', 'Report', 'JSON']) {
        await kind(page, each);
        await audit(page);
      }
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `the page is ${wide} px wider than the window`);
      const dialog = await page.locator('#share').boundingBox();
      assert.ok(dialog.x >= 0 && dialog.x + dialog.width <= (await page.evaluate(() => innerWidth)));
      await page.keyboard.press('Escape');
      await openReport(page);
      await audit(page);
      const sheet = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(sheet <= 0, `the report is ${sheet} px wider than the window`);
      const cut = await page.evaluate(() =>
        [...document.querySelectorAll('.paper .wide')].map((each) => each.scrollWidth - each.clientWidth),
      );
      assert.ok(cut.length > 0 && cut.every((px) => px <= 0), `tables of the report are cut by ${cut} px`);
    },
    options,
  );
}

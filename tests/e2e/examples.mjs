// The examples of embedding (docs/examples), each built as its reader would and opened in Chromium: the forecast answers with
// a verdict, follows its knob and stays in its column. Run after ./dev build page: node tests/e2e/examples.mjs [html | mkdocs |
// sphinx | docusaurus]... Prints a line each and the counts; exits 1 when one failed. Pictures lie in build/examples.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AxeBuilder, launch, openPage, root, verdict } from './browser.mjs';
import { serve } from './server.mjs';

/** What builds a folder, and where its pages then are. */
const builders = {
  html: { command: null, out: '' },
  mkdocs: { command: ['mkdocs', 'build', '--quiet', '--strict'], out: 'site' },
  docusaurus: { command: ['node_modules/.bin/docusaurus', 'build'], out: 'build' },
  sphinx: { command: ['sphinx-build', '-q', '-W', '-b', 'html', '.', 'site'], out: 'site' },
};
/** Whose Markdown takes the element as the dialog of sharing writes it. */
const takesPasted = (name) => name === 'mkdocs' || name === 'docusaurus';
const asked = process.argv.slice(2);
const unknown = asked.find((name) => !builders[name]);
if (unknown) throw new Error(`found ${unknown}, allowed ${Object.keys(builders).join(', ')}`);

const site = await serve(join(root, 'web/dist'));
const folder = mkdtempSync(join(tmpdir(), 'servecast-examples-'));
const pictures = join(root, 'build/examples');
mkdirSync(pictures, { recursive: true });
const { browser, close } = await launch();
const counts = { passed: 0, failed: 0, skipped: 0 };

/** All but packages of others. */
function* filesBelow(place) {
  for (const entry of readdirSync(place, { withFileTypes: true })) {
    const path = join(place, entry.name);
    if (entry.isFile()) yield path;
    else if (entry.isDirectory() && entry.name !== 'node_modules') yield* filesBelow(path);
  }
}

/** The element as the dialog of sharing gives it. */
async function shared() {
  const { page, close: closePage } = await openPage(browser);
  await page.goto(site.url);
  await verdict(page);
  await page.waitForFunction(() => document.querySelector('.share .primary:not([disabled])') !== null);
  await page.keyboard.press('s');
  await page.locator('.share-kinds').getByRole('button', { name: 'Element', exact: true }).click();
  const text = await page.inputValue('#share-text');
  await page.locator('#share').screenshot({ path: join(pictures, 'share.png') });
  await closePage();
  return text;
}

/** A copy whose HOST is the site of this test, built. */
async function built(name) {
  const copy = join(folder, name);
  const from = join(root, 'docs/examples', name);
  const packages = join(from, 'node_modules');
  cpSync(from, copy, { recursive: true, filter: (path) => path !== packages });
  if (existsSync(packages)) symlinkSync(packages, join(copy, 'node_modules'));
  for (const file of filesBelow(copy)) {
    if (!/\.(html|mdx?|rst|yml|py|mjs)$/.test(file)) continue;
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll('https://HOST/', site.url));
  }
  const { command, out } = builders[name];
  const pasted = join(copy, 'docs', name === 'docusaurus' ? 'pasted.mdx' : 'pasted.md');
  if (takesPasted(name)) writeFileSync(pasted, `# Pasted\n\n${await shared()}\n\nAfter it.\n`);
  if (command) execFileSync(command[0], command.slice(1), { cwd: copy, stdio: ['ignore', 'pipe', 'pipe'] });
  return join(copy, out);
}

async function answers(frame) {
  await frame
    .locator('.sentence', { hasText: /meets both targets/ })
    .first()
    .waitFor({ timeout: 300_000 });
  return frame.locator('.sentence').first().innerText();
}

async function looks(page, name) {
  await page.goto(page.host);
  const element = page.locator('servecast-embed');
  assert.match(await element.textContent(), /meets both targets\. Open in Servecast/, 'a sentence without scripts');
  await element.scrollIntoViewIfNeeded();
  const frame = element.locator('iframe').contentFrame();
  const sentence = await answers(frame);
  const knob = frame.locator('input[type=range]').first();
  await knob.focus();
  for (let step = 0; step < 12; step += 1) await page.keyboard.press('ArrowRight');
  await frame.locator('.sentence').first().filter({ hasNotText: sentence }).waitFor();
  const [box, text] = [await element.boundingBox(), await page.locator('h1').first().boundingBox()];
  assert.ok(box.height > 100 && Math.abs(box.x - text.x) < 24, 'it stands in the column of the text');
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `the page is ${wide} px wider than the window`);
  const frames = await page.locator('main > iframe, main > p > iframe').all();
  for (const each of frames) {
    await each.scrollIntoViewIfNeeded();
    await answers(each.contentFrame());
  }
  if (name === 'html') assert.equal(frames.length, 1, 'a plain frame, too');
  return sentence;
}

async function audit(page) {
  const { violations } = await new AxeBuilder({ page }).setLegacyMode(true).include('servecast-embed').analyze();
  assert.deepEqual(
    violations.map(({ id }) => id),
    [],
    'axe-core',
  );
}

async function run(name) {
  const { command } = builders[name];
  const places = [join(root, 'docs/examples', name), ...process.env.PATH.split(':')];
  if (command && !places.some((each) => existsSync(join(each, command[0])))) {
    counts.skipped += 1;
    console.log(`skipped ${name}: no ${command[0]}`);
    return;
  }
  try {
    const begin = performance.now();
    const host = await serve(await built(name), '/notes/');
    const seconds = ((performance.now() - begin) / 1000).toFixed(1);
    let said = '';
    for (const [kind, options] of Object.entries({
      light: { colorScheme: 'light' },
      dark: { colorScheme: 'dark' },
      phone: { viewport: { width: 390, height: 844 }, hasTouch: true },
    })) {
      const {
        page,
        problems,
        close: closePage,
      } = await openPage(browser, {
        viewport: { width: 1200, height: 900 },
        ...options,
      });
      // What a theme itself lacks is not ours.
      page.on('response', (response) => {
        if (response.url().startsWith(site.url) && !response.ok())
          problems.push(`${response.status()} ${response.url()}`);
      });
      said = await looks(Object.assign(page, { host: host.url }), name);
      await page.evaluate(() => scrollTo(0, 0));
      await page.screenshot({ path: join(pictures, `${name}-${kind}.png`) });
      const ours = problems.filter((problem) => !/Failed to load resource.*404/.test(problem));
      assert.deepEqual(ours, [], 'console errors and warnings');
      await audit(page);
      if (takesPasted(name)) {
        await page.goto(`${host.url}pasted${name === 'mkdocs' ? '.html' : '/'}`);
        assert.match(await page.textContent('servecast-embed'), /Open in Servecast[\s\S]*Fingerprint/);
        await answers(page.locator('servecast-embed iframe').contentFrame());
      }
      await closePage();
    }
    host.close();
    counts.passed += 1;
    console.log(`ok      ${name}, built in ${seconds} s: ${said}`);
  } catch (error) {
    counts.failed += 1;
    const text = [error.stderr, error.stdout, error.stack].filter(Boolean).join('\n');
    console.log(`FAILED  ${name}\n        ${text.split('\n').slice(0, 16).join('\n        ')}`);
  }
}

/** What the how-to shows is what was built here. */
function copied() {
  const text = readFileSync(join(root, 'docs/how-to/figure.md'), 'utf8');
  const files = [...filesBelow(join(root, 'docs/examples'))];
  const lines = new Set(
    files.flatMap((file) =>
      readFileSync(file, 'utf8')
        .split(/\r?\n/)
        .map((line) => line.trim()),
    ),
  );
  const shown = [...text.matchAll(/```(?:html|js|mdx|yaml|python|rst)\n([\s\S]*?)```/g)].flatMap(([, block]) =>
    block.split('\n'),
  );
  const strange = shown.map((line) => line.trim()).filter((line) => !lines.has(line));
  counts[strange.length === 0 && shown.length > 10 ? 'passed' : 'failed'] += 1;
  if (strange.length === 0) console.log(`ok      how-to: its ${shown.length} lines stand in the examples`);
  else console.log(`FAILED  how-to: in no example: ${strange.join('\n        ')}`);
}

if (asked.length === 0 || asked.includes('html')) copied();
for (const name of asked.length > 0 ? asked : Object.keys(builders)) await run(name);
await close();
site.close();
rmSync(folder, { recursive: true, force: true });
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exit(counts.failed === 0 ? 0 : 1);

// Tasks of embeds: pages of another site, on a port of its own, that show forecasts. Part of run.mjs.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { audit, preset, site, task } from './harness.mjs';
import { serve, subPath } from './server.mjs';

const folder = mkdtempSync(join(tmpdir(), 'servecast-host-'));
mkdirSync(folder, { recursive: true });
const host = await serve(folder);

/** A page that hears all messages and events. */
function hostPage(name, body) {
  writeFileSync(
    join(folder, `${name}.html`),
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Notes on capacity</title>
<link rel="icon" href="data:,"><meta name="viewport" content="width=device-width"></head><body><main><h1>Notes on capacity</h1>
<script>
window.heard = [];
window.begun = performance.now();
addEventListener('message', (event) => heard.push({ ...event.data, at: performance.now() }));
</script>
${body}
</main></body></html>`,
  );
  return `${host.url}${name}.html`;
}

const script = `<script async src="${site.url}servecast-embed.js"></script>`;
const inside = `<p>Meets both targets. <a href="${site.url}#p=${preset}">Open in Servecast</a></p>`;
const element = (more = '') => `<servecast-embed scenario="p=${preset}" ${more}>${inside}</servecast-embed>`;
const framed = (more) =>
  `<iframe src="${site.url}embed.html#p=${preset}${more}" title="Forecast" width="100%" height="400" style="border:0"></iframe>`;

const heard = (page, kind, count = 1, patience = 30_000) =>
  page
    .waitForFunction(
      ([wanted, least]) => {
        const found = window.heard.filter((message) => message.type === 'servecast' && message.kind === wanted);
        return found.length >= least && found;
      },
      [kind, count],
      { timeout: patience },
    )
    .then((found) => found.jsonValue());
/** Also of those within an element, which the window does not count. */
const frameOf = async (page, index = 0) => {
  const found = () => page.frames().filter((frame) => frame !== page.mainFrame())[index];
  for (let wait = 0; wait < 100 && !found(); wait += 1) await page.waitForTimeout(50);
  return found();
};

await task(
  'embed: an element below the fold, of another site, runs when it is seen',
  async (page) => {
    const address = hostPage('below', `<div style="height:3000px"></div>${script}${element()}<p>after</p>`);
    await page.goto('about:blank');
    await (await page.context().newCDPSession(page)).send('Network.clearBrowserCache');
    await page.waitForTimeout(300);
    const asked = site.requests.length;
    await page.goto(address);
    await page.waitForTimeout(500);
    assert.equal(await page.locator('servecast-embed iframe').count(), 0, 'nothing is fetched before it is near');
    assert.ok(await page.getByRole('link', { name: 'Open in Servecast' }).isVisible(), 'the fallback stands there');
    assert.deepEqual(
      site.requests.slice(asked),
      [`${subPath}servecast-embed.js`],
      'the element is all that is fetched',
    );
    await page.evaluate(() => {
      window.begun = performance.now();
      document.querySelector('servecast-embed').scrollIntoView();
    });
    const [result] = await heard(page, 'result');
    const ms = Math.round(result.at - (await page.evaluate(() => window.begun)));
    assert.match(result.sentence, /Llama-3\.1-8B/);
    assert.match(result.fingerprint, /^[0-9a-f]{16}$/);
    assert.equal(await page.locator('servecast-embed p').first().isVisible(), false, 'the frame is in its place');
    const height = await page.evaluate(
      () => document.querySelector('servecast-embed').shadowRoot.querySelector('iframe').clientHeight,
    );
    assert.ok(height > 100, `${height} px`);
    const frame = await frameOf(page);
    assert.equal(await frame.evaluate(() => localStorage.length), 0, 'an embed stores nothing');
    assert.ok((await frame.evaluate(() => location.hash)).startsWith(`#p=${preset}`), 'nor does it change its address');
    assert.equal(await frame.evaluate(() => document.documentElement.scrollHeight > innerHeight + 1), false);
    return `verdict ${ms} ms after it was scrolled to (1,500 asked); ${height} px high`;
  },
  { tour: true },
);

await task(
  'embed: the iframe of the dialog is as high as what is in it, and has no ground of its own',
  async (page) => {
    await page.goto(`${site.url}#p=${preset}`);
    await page.locator('[data-complete="final"]').waitFor();
    await page.keyboard.press('s');
    await page.locator('.share-kinds').getByRole('button', { name: 'Iframe' }).click();
    const snippets = [];
    for (const ui of ['compact', 'chart', 'what-if', 'full']) {
      await page.getByLabel('Shows').selectOption(ui);
      snippets.push([ui, await page.inputValue('#share-text')]);
    }
    const said = [];
    for (const [ui, snippet] of snippets) {
      await page.goto(
        hostPage(
          `snippet-${ui}`,
          `<div style="width:600px">${snippet.replace('embed.html#', 'embed.html#autorun=1&')}</div>`,
        ),
      );
      await heard(page, 'result');
      await page.waitForTimeout(300);
      const given = await page.locator('iframe').evaluate((frame) => frame.clientHeight);
      const { height } = (await heard(page, 'resize')).at(-1);
      said.push(`${ui} ${given} for ${height}`);
      const ground = await (await frameOf(page)).evaluate(() =>
        [document.documentElement, document.body].map((each) => getComputedStyle(each).backgroundColor),
      );
      assert.deepEqual(ground, ['rgba(0, 0, 0, 0)', 'rgba(0, 0, 0, 0)']);
      if (ui === 'what-if') {
        const labels = await (await frameOf(page)).locator('.embed-knobs label').allInnerTexts();
        assert.ok(labels.includes('Rate'), labels.join());
      }
    }
    for (const each of said) {
      const [given, height] = each.match(/\d+/g).map(Number);
      assert.ok(given >= height && given - height <= 8, said.join(', '));
    }
    return said.join(', ');
  },
);

await task('embed: each way to look, in light and dark, on a phone, is accessible', async (page) => {
  const heights = [];
  for (const ui of ['compact', 'chart', 'what-if', 'full']) {
    await page.goto(hostPage(ui, framed(`&ui=${ui}&autorun=1`)));
    await heard(page, 'result');
    await page.waitForTimeout(300);
    heights.push(`${ui} ${(await heard(page, 'resize')).at(-1).height}`);
    // As a page of its own: axe does not go into frames of another site.
    for (const theme of ['light', 'dark'])
      for (const width of [800, 390]) {
        await page.setViewportSize({ width, height: 800 });
        await page.goto('about:blank');
        await page.goto(`${site.url}embed.html#p=${preset}&ui=${ui}&theme=${theme}&autorun=1`);
        await page.locator('[data-complete="final"]').waitFor();
        await page.waitForTimeout(200);
        await audit(page);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${ui} is ${wide} px wider than its frame of ${width}`);
      }
    await page.setViewportSize({ width: 1440, height: 1000 });
  }
  return `heights in px: ${heights.join(', ')}`;
});

await task('embed: knobs change the forecast, and so does the page around', async (page) => {
  const knobs = 'workload.arrivals.rate_per_s,engine.max_num_seqs';
  await page.goto(hostPage('knobs', script + element(`ui="what-if" knobs="${knobs}" autorun="1"`)));
  const [first] = await heard(page, 'result');
  const frame = await frameOf(page);
  assert.equal(await frame.locator('sc-field').count(), 2);
  await frame.locator('sc-field[data-pointer="/workload/arrivals/rate_per_s"] input[type=text]').fill('60');
  await page.keyboard.press('Tab');
  const second = (await heard(page, 'result', 2)).at(-1);
  assert.notEqual(second.fingerprint, first.fingerprint);
  await page.evaluate(() => document.querySelector('servecast-embed').set({ 'workload.arrivals.rate_per_s': 12 }));
  const third = (await heard(page, 'result', 3)).at(-1);
  assert.notEqual(third.fingerprint, second.fingerprint);
  assert.equal(
    await frame.locator('sc-field[data-pointer="/workload/arrivals/rate_per_s"] input[type=text]').inputValue(),
    '12',
  );
  await page.evaluate(() => document.querySelector('servecast-embed').set({ 'workload.arivals.rate': 12 }));
  const [{ message }] = await heard(page, 'error');
  assert.match(message, /no setting workload\.arivals\.rate/);
  // The way to the page leads to what is shown.
  await frame.locator('.embed-open[href*="rate_per_s=12"]').waitFor();
});

await task('embed: locked, nothing changes; strangers are not heard', async (page) => {
  await page.goto(hostPage('locked', framed('&ui=what-if&lock=1&autorun=1')));
  await heard(page, 'result');
  const frame = await frameOf(page);
  assert.equal(await frame.locator('sc-field').count(), 0);
  const set = { type: 'servecast', v: 1, kind: 'set', values: { 'workload.arrivals.rate_per_s': 3 } };
  await page.evaluate((message) => window.frames[0].postMessage(message, '*'), set);
  const [{ message }] = await heard(page, 'error');
  assert.match(message, /locked/);
  // From a frame beside it, and what is no message: not even an answer.
  await page.goto(
    hostPage('strangers', `${framed('&ui=what-if&autorun=1')}<iframe title="Stranger" srcdoc="<p>x</p>"></iframe>`),
  );
  const [result] = await heard(page, 'result');
  await page.evaluate((stranger) => {
    const target = window.frames[0];
    const from = window.frames[1];
    from.eval(`parent.frames[0].postMessage(${JSON.stringify(stranger)}, '*')`);
    for (const odd of [null, 1, 'x', [], { type: 'servecast' }, { type: 'servecast', v: 9, kind: 'set' }])
      target.postMessage(odd, '*');
  }, set);
  await page.waitForTimeout(800);
  assert.equal(await page.evaluate(() => heard.filter(({ kind }) => kind === 'result').length), 1);
  assert.equal(await page.evaluate(() => heard.filter(({ kind }) => kind === 'error').length), 0);
  return result.fingerprint;
});

await task('embed: ready is repeated until somebody answers', async (page) => {
  await page.goto(hostPage('ready', framed('&autorun=0')));
  await heard(page, 'ready', 3);
  await page.evaluate(() => window.frames[0].postMessage({ type: 'servecast', v: 1, kind: 'set' }, '*'));
  await page.waitForTimeout(700);
  const count = (await heard(page, 'ready')).length;
  await page.waitForTimeout(1200);
  assert.equal((await heard(page, 'ready')).length, count);
});

await task(
  'embed: the answer of sampling alone gets the bands of the whole page, and no ways out are run',
  async (page) => {
    const busy = '&workload.arrivals.rate_per_s=55';
    const whole = () => site.requests.filter((path) => /servecast-[^/]*\.wasm$/.test(path)).length;
    const begun = whole();
    await page.goto(`${site.url}embed.html#p=${preset}${busy}&ui=compact`);
    const shown = page.locator('.embed-sentence');
    await shown.getByText('misses').waitFor();
    await page.waitForFunction(() => document.querySelector('sc-embed').app.store.state.shown?.banded, undefined, {
      timeout: 120_000,
    });
    assert.match(await shown.innerText(), /\d+\s% sure/);
    const figures = await page.innerText('.embed-numbers');
    const found = await page.$eval('sc-embed', ({ app }) => app.store.state.ways_out);
    assert.equal(found, null, 'nobody would see them');
    assert.ok(whole() > begun, 'both modules were fetched');
    await page.goto(`${site.url}#p=${preset}${busy}`);
    await page.waitForFunction(() => document.querySelector('sc-page')?.app.store.state.shown?.banded, undefined, {
      timeout: 120_000,
    });
    for (const range of figures.match(/\([^)]*\)/g)) {
      const [low, high] = range.slice(1, -1).split(' to ');
      assert.match(await page.innerText('.numbers'), new RegExp(`${low} to ${high}`), 'one figure has one band');
    }
  },
);

await task('embed: at a click, it first shows what its author got', async (page) => {
  await page.goto(hostPage('click', framed('&autorun=0&ui=compact&v=1.0.1.0&r=meets,95120,15510&f=0123456789abcdef')));
  const frame = await frameOf(page);
  await frame.getByText('The author’s result:').waitFor();
  // Which targets these are, and whether a value is a time or a share, the scenario says, which is not read yet.
  assert.match(await frame.textContent('.embed-sentence'), /The author’s result: meets\s*$/);
  const fetched = site.requests.filter((path) => path.endsWith('.wasm')).length;
  await frame.getByRole('button', { name: 'Run' }).click();
  await heard(page, 'result');
  assert.ok(site.requests.filter((path) => path.endsWith('.wasm')).length > fetched, 'the engine came with the click');
});

await task('embed: settings of the page around wait for the frame', async (page) => {
  await page.goto(hostPage('early', `<div style="height:3000px"></div>${script}${element('ui="compact"')}`));
  await page.evaluate(async () => {
    await customElements.whenDefined('servecast-embed');
    const embed = document.querySelector('servecast-embed');
    embed.set({ 'workload.arrivals.rate_per_s': 12 });
    embed.scrollIntoView();
    await new Promise(requestAnimationFrame);
    embed.set({ 'engine.max_num_seqs': 64 });
  });
  await (await frameOf(page)).locator('.embed-open[href*="rate_per_s=12"][href*="max_num_seqs=64"]').waitFor();
  assert.match((await heard(page, 'result')).at(-1).sentence, /at 12 req\/s/);
});

await task('embed: other attributes are followed, and are no steps of Back', async (page) => {
  await page.goto(hostPage('attributes', script + element('ui="compact" autorun="1"')));
  await heard(page, 'result');
  const steps = await page.evaluate(() => history.length);
  await page.evaluate(() => {
    const embed = document.querySelector('servecast-embed');
    embed.setAttribute('ui', 'what-if');
    embed.setAttribute('theme', 'dark');
  });
  await heard(page, 'result', 2);
  const frame = await frameOf(page);
  assert.equal(await frame.locator('sc-field').count(), 1);
  assert.equal(await frame.evaluate(() => document.documentElement.dataset.theme), 'dark');
  assert.equal(await page.evaluate(() => history.length), steps);
  await page.evaluate(() => (document.querySelector('servecast-embed').hidden = true));
  assert.equal(await page.locator('servecast-embed').isVisible(), false);
});

await task('embed: whoever answers late is told again', async (page) => {
  await page.goto(hostPage('late', framed('&ui=compact&autorun=1')));
  await heard(page, 'result');
  await page.evaluate(() => {
    heard.length = 0;
    window.frames[0].postMessage({ type: 'servecast', v: 1, kind: 'set' }, '*');
  });
  const [{ height }] = await heard(page, 'resize');
  assert.ok(height > 40, `${height} px`);
  await heard(page, 'result');
});

await task('embed: locked, a problem offers no other scenario; a trace is for the whole page', async (page) => {
  const broken = framed('&engine.max_num_seqs=-3&autorun=1');
  for (const [more, buttons] of [
    ['', 2],
    ['&lock=1', 0],
  ]) {
    await page.goto(hostPage(`broken${buttons}`, broken.replace('&autorun', `${more}&autorun`)));
    const frame = await frameOf(page);
    await frame.getByText(/The nearest one leaves out engine\.max_num_seqs/).waitFor();
    assert.equal(await frame.getByRole('button').count(), buttons);
    const [{ message }] = await heard(page, 'error');
    assert.match(message, /engine\.max_num_seqs: found -3/);
  }
  await page.goto(hostPage('traced', framed('&workload.arrivals.process=trace&autorun=1')));
  const frame = await frameOf(page);
  await frame.getByText(/replays a trace, which no link carries/).waitFor();
  assert.equal(await frame.getByRole('button').count(), 0, 'a frame opens no files');
});

await task('embed: engines of one page start one after the other', async (page) => {
  await page.goto(hostPage('three', [1, 2, 3].map(() => framed('&ui=compact&autorun=1')).join('')));
  const results = await heard(page, 'result', 3);
  assert.equal(new Set(results.map(({ fingerprint }) => fingerprint)).size, 1);
  const workers = await Promise.all(
    [0, 1, 2].map(async (index) =>
      (await frameOf(page, index)).evaluate(() => {
        const [entry] = performance.getEntriesByType('resource').filter(({ name }) => name.includes('worker-'));
        return entry ? performance.timeOrigin + entry.startTime : null;
      }),
    ),
  );
  const [first, ...others] = workers.filter((at) => at !== null).sort((a, b) => a - b);
  assert.equal(others.length, 2);
  const origin = await page.evaluate(() => performance.timeOrigin);
  const answers = results.map(({ at }) => origin + at).sort((a, b) => a - b);
  // The news of an answer takes a moment to be heard.
  assert.ok(
    others.every((at, index) => at > answers[index] - 100),
    `workers began at ${workers}, answers came at ${answers}`,
  );
  return `workers began ${others.map((at) => Math.round(at - first)).join(' and ')} ms after the first`;
});

/** Scrolls to the end, so many px a frame, and back to the top. Times between frames, ms. */
const scrolled = (page, step) =>
  page.evaluate(async (px) => {
    const frame = () => new Promise(requestAnimationFrame);
    const times = [await frame()];
    while (scrollY + innerHeight < document.documentElement.scrollHeight - 1) {
      scrollBy(0, px);
      times.push(await frame());
    }
    scrollTo(0, 0);
    return times.slice(1).map((time, index) => time - times[index]);
  }, step);
/** Frames that a screen of 60 a second misses, as a share. */
const missed = (frames) =>
  frames.reduce((sum, ms) => sum + Math.max(0, Math.round((ms * 60) / 1000) - 1), 0) / frames.length;

/** In each frame: when its engine was let start, and when it did. */
function noteTurn() {
  const now = () => performance.timeOrigin + performance.now();
  window.turn = { from: null, worker: null };
  addEventListener('message', ({ data }) => data?.kind === 'turn' && (window.turn.from ??= now()));
  window.Worker = class extends Worker {
    constructor(...all) {
      super(...all);
      window.turn.worker ??= now();
    }
  };
}

await task(
  'embed: ten on a page start one engine at a time, and the page scrolls on',
  async (page) => {
    // Of another site, as a browser counts sites: a process of its own.
    const elsewhere = (address) => address.replace('127.0.0.1', 'localhost');
    const text = '<p style="height:300px">Between two forecasts.</p>';
    const many = (each) => Array.from({ length: 10 }, () => `${each}${text}`).join('');
    await page.goto(elsewhere(hostPage('none', many('<div style="height:488px"></div>'))));
    const before = missed(await scrolled(page, 12));
    await page.goto(
      elsewhere(hostPage('ten', script + many(element('style="display:block;min-height:488px" autorun="1"')))),
    );
    await page.evaluate(() => {
      window.ends = [];
      for (const [index, each] of document.querySelectorAll('servecast-embed').entries())
        each.addEventListener('servecast', ({ detail }) => {
          if (detail.kind === 'result') window.ends[index] ??= performance.timeOrigin + performance.now();
        });
    });
    const during = await scrolled(page, 12);
    const results = await heard(page, 'result', 10, 180_000);
    assert.equal(new Set(results.map(({ fingerprint }) => fingerprint)).size, 1);
    const after = missed(await scrolled(page, 12));
    const ends = await page.evaluate(() => window.ends);
    const turns = await Promise.all(
      ends.map(async (to, index) => (await frameOf(page, index)).evaluate((end) => ({ ...window.turn, to: end }), to)),
    );
    turns.sort((a, b) => a.from - b.from);
    let early = 0;
    for (const [index, { from, worker }] of turns.entries()) {
      assert.ok(from !== null && worker >= from, `engine ${index + 1} did not wait for its turn`);
      if (index > 0 && turns[index - 1].to - from > 50) early += 1;
    }
    // Patience with one ends ten seconds after it was told, which a busy frame hears late.
    assert.ok(early <= 3, `${early} of 9 engines were let start before the answer of the one before`);
    const percent = (share) => `${(100 * share).toFixed(1)} %`;
    const longest = Math.round(Math.max(...during));
    return `frames missed: without forecasts ${percent(before)}, while engines start ${percent(missed(during))} (the longest ${longest} ms), after ${percent(after)}`;
  },
  { before: (page) => page.addInitScript(noteTurn) },
);

await task(
  'embed: without the frame the words stay',
  async (page) => {
    await page.goto(hostPage('blocked', script + element()));
    await page.waitForTimeout(1500);
    assert.ok(await page.getByRole('link', { name: 'Open in Servecast' }).isVisible());
  },
  { expectsProblems: true, before: (page) => page.route('**/embed.html', (route) => route.abort()) },
);

await task('embed: a link that is none says so, and its options, too', async (page) => {
  await page.goto(hostPage('bad', framed('x&ui=<b>&autorun=1')));
  const frame = await frameOf(page);
  await frame.getByText('ui is one of compact, chart, what-if, full.').waitFor();
  await frame.getByText(/cannot be opened/).waitFor();
  assert.ok((await heard(page, 'error', 2)).length >= 2);
});

await task('embed: the page itself, in a frame, shows a link and nothing to press', async (page) => {
  await page.goto(hostPage('framed', `<iframe src="${site.url}#p=${preset}" title="The page"></iframe>`));
  const frame = await frameOf(page);
  const link = frame.getByRole('link', { name: 'Open Servecast in a tab of its own' });
  await link.waitFor();
  assert.equal(await link.getAttribute('target'), '_blank');
  assert.equal(await link.getAttribute('href'), `${site.url}#p=${preset}`);
  assert.equal(await frame.locator('sc-page, button').count(), 0);
});

host.close();
rmSync(folder, { recursive: true });

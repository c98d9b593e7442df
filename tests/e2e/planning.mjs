// Tasks of the plans: questions of capacity. Part of run.mjs.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { command } from '../command.mjs';
import { dropFile, field, fingerprint, nextResult, openTab, verdict } from './browser.mjs';
import { audit, preset, skip, smallTrace, task } from './harness.mjs';

const stateOf = (page, question) => page.$eval('sc-page', ({ app }, of) => app.store.state.plans[of] ?? null, question);

/** Opens the line of a question to what its answer rests on, where there is anything. */
async function opened(page, question) {
  const fold = page.locator(`#plan-${question} .fold`);
  await fold.waitFor();
  if ((await fold.isEnabled()) && (await fold.getAttribute('aria-expanded')) === 'false') await fold.click();
  return page.locator(`#plan-${question}`);
}

/** The text of an open line once its question is answered. On a slow machine the page does not ask by itself. */
async function answered(page, question) {
  const known = await page.waitForFunction(
    (of) => document.querySelector('sc-page').app.store.state.plans[of]?.kind,
    question,
    { timeout: 120_000 },
  );
  if ((await known.jsonValue()) === 'offered')
    await page.locator(`#plan-${question}`).getByRole('button', { name: 'Ask', exact: true }).click();
  await page.waitForFunction(
    (of) => {
      const { plans } = document.querySelector('sc-page').app.store.state;
      return ['answered', 'failed'].includes(plans[of]?.kind) && !document.querySelector(`#plan-${of} progress`);
    },
    question,
    { timeout: 400_000 },
  );
  return (await (await opened(page, question)).innerText()).replaceAll(/\s+/g, ' ');
}

const blank = (page, label) => page.getByLabel(label, { exact: true });
async function put(page, label, text) {
  await blank(page, label).fill(text);
  await blank(page, label).press('Enter');
  await blank(page, label).blur();
}

await task('plan: how much load, in three clicks', async (page) => {
  await verdict(page);
  let clicks = 0;
  const click = async (what) => {
    clicks += 1;
    await what.click();
  };
  await click(page.getByRole('tab', { name: 'Plan' }));
  const words = await answered(page, 'max-rate');
  assert.match(words, /[\d.]+ requests\/s [\d.]+ to [\d.]+\. TPOT p99 breaks first\./);
  assert.match(words, /\d+ runs, [\d,]+ requests in all/);
  const { answer } = (await stateOf(page, 'max-rate')).answer;
  assert.ok(
    answer.low <= answer.value && answer.value <= answer.high && answer.high - answer.low < 0.07 * answer.value,
  );
  const before = await fingerprint(page);
  await click(page.getByRole('button', { name: /^Open at/ }));
  await nextResult(page, before);
  assert.match(await verdict(page), /meets both targets|too close to call/i);
  assert.ok(clicks <= 3);
  assert.equal(await page.locator('sc-field[data-pointer="/workload/arrivals/rate_per_s"] .held').count(), 1);
  await page.selectOption('sc-field[data-pointer="/hardware/preset"] select', 'a100-80gb');
  await verdict(page);
  await page.waitForFunction(
    () => document.querySelector('sc-page').app.store.state.plans['max-rate']?.kind === 'answered',
  );
  const other = (await stateOf(page, 'max-rate')).answer.answer;
  assert.ok(other.value < answer.value, 'another GPU holds another rate');
  return `${answer.value.toFixed(1)} requests/s after ${clicks} clicks`;
});

await task('plan: the fewest GPUs for a rate that is typed, used, and in the address', async (page) => {
  await verdict(page);
  await openTab(page, 'Plan');
  assert.match(await answered(page, 'min-gpus'), /1 GPU, \$[\d.]+ an hour/);
  await put(page, 'Load', '160');
  await page.waitForFunction(
    () => document.querySelector('sc-page').app.store.state.plans['min-gpus'].inputs.rate === 160,
  );
  const words = await answered(page, 'min-gpus');
  assert.match(words, /[34] GPUs, \$[\d.]+ an hour/);
  assert.match(words, /No system could do with less than/);
  assert.equal(new URL(page.url()).searchParams.get('plan'), 'rate:160');
  const before = await fingerprint(page);
  const row = page.locator('#plan-min-gpus tr.best');
  await row.getByRole('button').click();
  await nextResult(page, before);
  assert.match(await verdict(page), /160 req\/s/);
  const replicas = await page.$eval('sc-page', ({ app }) => app.store.state.document.cluster.pools[0].replicas);
  assert.match(words, new RegExp(`^.*\\b${replicas} GPUs, `));
  const used = await fingerprint(page);
  await page.goBack();
  await nextResult(page, used);
  await page.reload();
  await verdict(page);
  assert.equal(await blank(page, 'Load').inputValue(), '160');
});

await task('plan: all questions on one screen, each opened by itself', async (page) => {
  await verdict(page);
  await openTab(page, 'Plan');
  await answered(page, 'max-rate');
  await page.locator('#plan-max-rate .fold').click();
  assert.equal(await page.locator('.plan-body').count(), 0);
  const { height } = await page.locator('.plan-board').boundingBox();
  assert.ok(height < 700, `${height} px`);
  // A click beside the question opens, one into a blank does not.
  await answered(page, 'growth');
  await page.locator('#plan-growth .fold').click();
  await page.getByLabel('Months ahead').click();
  assert.equal(await page.locator('#plan-growth .plan-body').count(), 0);
  await page.locator('#plan-growth .plan-figure b').click();
  await page.locator('#plan-growth sc-growth-chart').waitFor();
  assert.equal(await page.locator('.plan-body').count(), 1);
  await openTab(page, 'Why');
  await openTab(page, 'Plan');
  await page.locator('#plan-growth .plan-body').waitFor();
});

await task('plan: until when, and what if', async (page) => {
  await verdict(page);
  await openTab(page, 'Plan');
  assert.match(await answered(page, 'growth'), /About \d+ \w+ 20\d\d \d+ \w+ 20\d\d to .* needed then\./);
  const first = (await stateOf(page, 'growth')).answer.schedule[0];
  await put(page, 'Months ahead', '4');
  await put(page, 'Growth, % a month', '20');
  await page.waitForFunction(
    () => document.querySelector('sc-page').app.store.state.plans.growth.inputs.percent === 20,
  );
  await answered(page, 'growth');
  const sooner = (await stateOf(page, 'growth')).answer.schedule[0];
  assert.equal(sooner.answer.value, first.answer.value, 'what they hold does not depend on the growth');
  assert.ok(sooner.months < first.months);
  assert.match(await answered(page, 'drill'), /As it is .* 2 times the load for 60 s/);
  const cases = await page.locator('#plan-drill tbody tr').count();
  assert.equal(cases, 4, 'one replica: none to lose, which is said, an update and a burst');
  assert.match(await page.locator('#plan-drill').innerText(), /Not run: it is the only one/);
  assert.match(await answered(page, 'tornado'), /^.*Load moves TPOT p99 most; as it is: [\d.]+ ms/s);
  const inputs = await page.locator('#plan-tornado tbody tr').count();
  assert.ok(inputs >= 8, `${inputs} inputs`);
  const [less, more] = await page.locator('#plan-tornado tbody tr:first-child .tornado-bars b').all();
  const [left, right] = [await less.boundingBox(), await more.boundingBox()];
  assert.ok(Math.abs(left.x + left.width - right.x) < 2, 'both sides begin at the value as it is');
});

await task(
  'plan: what each hour of a day needs',
  async (page) => {
    await verdict(page);
    await put(page, 'Load of the quietest hour, %', '20');
    const said = await answered(page, 'day');
    assert.match(said, /^If the load falls to % of this in the quietest hour of a day, what does each hour need\?/);
    const [, sum] = /([\d.]+) GPU-hours a day/.exec(said);
    const rows = await page
      .locator('#plan-day tbody tr')
      .evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.innerText)));
    let gpuHours = 0;
    for (const [hours, , gpus] of rows) {
      const [first, last = first] = hours.split(' to ').map(Number);
      gpuHours += (last - first + 1) * Number(gpus);
    }
    assert.equal(gpuHours, Number(sum), 'hours add up');
    assert.deepEqual([rows[0][2], rows.some(([, , gpus]) => gpus === '2')], ['1', true], 'fewer by night');
    assert.equal(new URL(page.url()).searchParams.get('plan'), 'night:20');
  },
  { fragment: `?view=plan#p=${preset}&workload.arrivals.rate_per_s=70` },
);

await task(
  'plan: which autoscaler keeps the targets, and it is used with its load',
  async (page) => {
    await verdict(page);
    const card = page.locator('#plan-autoscale');
    await card.getByRole('button', { name: 'Ask' }).click();
    await answered(page, 'autoscale');
    const { answer, document } = await stateOf(page, 'autoscale');
    const ended = answer.policies.filter(({ days }) => days === 5);
    const chosen = ended.find(({ kind, state }) => kind === 'scaler' && state === 'meets');
    // A replica starts in two minutes of these twenty, so a scaler may well take no less.
    const pays = answer.chosen !== null;
    assert.match(
      await card.innerText(),
      pays
        ? /less than \d replicas throughout/
        : /No scaler that keeps the targets takes clearly less than \d replicas/,
    );
    assert.equal(await card.locator('tbody tr').count(), ended.length);
    assert.equal(document.cluster?.scaling, undefined, 'asked of the scenario as it is');
    await card.getByRole('button', { name: `Use ${chosen.name}`, exact: true }).click();
    const used = await page.$eval('sc-page', ({ app }) => app.store.state.document);
    assert.equal(used.cluster.scaling.policy, chosen.settings['cluster.scaling'].policy);
    assert.equal(used.workload.arrivals.profile, 'piecewise');
    assert.equal(used.measure.horizon_s, 1200);
  },
  { fragment: `?view=plan&plan=span_h:0.3333333333333333#p=${preset}&workload.arrivals.rate_per_s=70` },
);

await task('plan: a blank without a value says what is allowed', async (page) => {
  await verdict(page);
  await openTab(page, 'Plan');
  await answered(page, 'growth');
  for (const [label, typed, allowed] of [
    ['Growth, % a month', '-3', /−3 is not allowed; from 0\.1 to 1,000/],
    ['Months ahead', '2.5', /2\.5 is not allowed; from 1 to 120, whole/],
    ['Times the load', '<img src=x>', /<img src=x> is not allowed; from 1 to 100/],
    ['Load', '1e99', /1e99 is not allowed; from/],
  ]) {
    await put(page, label, typed);
    assert.match(await page.locator('sc-plan').innerText(), allowed);
    assert.equal(await page.locator('sc-plan img').count(), 0);
  }
  assert.equal(new URL(page.url()).searchParams.get('plan'), null);
});

await task('plan: a search is stopped, and asked again', async (page) => {
  await verdict(page);
  await openTab(page, 'Plan');
  await page.locator('#plan-growth progress').waitFor();
  await page.keyboard.press('Escape');
  const card = page.locator('#plan-growth');
  await card.getByText('Stopped before it was answered.').waitFor();
  await card.getByRole('button', { name: 'Ask' }).click();
  assert.match(await answered(page, 'growth'), /About/);
});

if (!existsSync(command)) skip('plan: the command says the same', 'the command is not built');
else
  await task('plan: own GPUs beside an API, by prices that are typed', async (page) => {
    await verdict(page);
    await openTab(page, 'Plan');
    assert.match(await answered(page, 'cost'), /\$1,825 a month of 730 hours, \$2\.50 an hour/);
    // No price is typed: none is shown, and a list's is offered with its date.
    assert.equal(await page.getByLabel('$ per million tokens of prompts').inputValue(), '');
    assert.match(
      await page.locator('#plan-cost').innerText(),
      /\$0\.05 in and \$0\.08 out at Groq.*models\.dev, 2 July 2026/,
    );
    await page.locator('#use-listed').click();
    assert.equal(await page.getByLabel('$ per million tokens of answers').inputValue(), '0.08');
    await page.locator('#use-listed').waitFor({ state: 'detached' });
    await put(page, '$ per million tokens of prompts', '0.05');
    await put(page, '$ per million tokens of answers', '0.1');
    await page.locator('#plan-cost').getByText('Own GPUs are cheaper').waitFor({ timeout: 120_000 });
    await answered(page, 'max-rate');
    const words = await answered(page, 'cost');
    assert.match(words, /Both cost as much at 23\.\d requests\/s \(23\.\d to 2[34](\.\d)?\)/);
    assert.match(words, /This deployment holds [\d.]+ requests\/s .* of it is idle/);
    assert.match(page.url(), /input_price%3A0\.05/);
    await audit(page);
  });

await task('plan: the command says the same', async (page) => {
  await verdict(page);
  await openTab(page, 'Plan');
  for (const question of ['max-rate', 'min-gpus']) {
    await answered(page, question);
    const said = JSON.parse(execFileSync(command, ['plan', question, preset], { stdio: ['ignore', 'pipe', 'ignore'] }));
    assert.deepEqual((await stateOf(page, question)).answer, said, question);
  }
});

const searched = (page) =>
  page.waitForFunction(
    () => {
      const { search } = document.querySelector('sc-page').app.store.state;
      return search?.kind === 'answered' && !document.querySelector('#plan-search progress');
    },
    undefined,
    { timeout: 400_000 },
  );

await task('plan: the cheapest design, the frontier, and why not the others', async (page) => {
  await verdict(page);
  await openTab(page, 'Plan');
  const card = page.locator('#plan-search');
  await card.getByRole('button', { name: 'Search' }).click();
  await card.locator('progress').waitFor();
  await searched(page);
  const words = (await card.innerText()).replaceAll(/\s+/g, ' ');
  assert.match(words, /\d+ × .*, \$[\d.]+ an hour/);
  assert.match(words, /\d+ of 1\d\d keep the targets/);
  const { answer } = await page.$eval('sc-page', ({ app }) => app.store.state.search);
  const cheapest = answer.points[answer.cheapest];
  const cheaper = answer.points.filter(
    ({ state, dollars_per_hour: dollars }) =>
      ['meets', 'near'].includes(state) && dollars !== null && dollars < cheapest.dollars_per_hour,
  );
  assert.deepEqual(
    cheaper.map(({ label, strain }) => [label, strain <= 1]).filter(([, holds]) => holds),
    [],
    'nothing that holds is cheaper',
  );
  for (const { id, state, dominated_by: by, reason } of answer.points)
    assert.ok(answer.frontier.includes(id) || reason !== '' || by !== null, `${id}, ${state}, has a reason`);
  assert.equal(await card.locator('tbody tr').count(), answer.frontier.length);
  await put(page, 'Load', '80');
  await card.getByText('Of the former settings.').waitFor();
  await put(page, 'Load', '');
  await card.getByText('Of the former settings.').waitFor({ state: 'detached' });
  const before = await fingerprint(page);
  await card.locator('tr.best').getByRole('button').click();
  await nextResult(page, before);
  const sentence = await verdict(page);
  assert.doesNotMatch(sentence, /misses|overloaded/i);
  await card.getByText('Of the former settings.').waitFor();
  if (existsSync(command)) {
    const said = execFileSync(command, ['plan', 'search', preset], { stdio: ['ignore', 'pipe', 'ignore'] });
    assert.deepEqual(answer, JSON.parse(said), 'the command says the same');
  }
  return `${words.match(/\d+ × [^$]*\$[\d.]+/)?.[0]} of ${answer.points.length}`;
});

await task(
  'plan: a search varies what is ticked, at prices of a list',
  async (page) => {
    await verdict(page);
    await openTab(page, 'Plan');
    const card = await opened(page, 'search');
    assert.equal(await card.getByLabel('expert parallel').count(), 0, 'a dense model has no experts');
    await card.getByLabel('prefill and decode apart').check();
    await card.getByLabel('Prices of GPUs').selectOption('on demand at AWS');
    assert.equal(new URL(page.url()).searchParams.get('plan'), 'roles:1,prices:2');
    await card.getByRole('button', { name: 'Search' }).click();
    await searched(page);
    const { answer } = await page.$eval('sc-page', ({ app }) => app.store.state.search);
    assert.ok(answer.points.some(({ pools }) => pools.length === 2 && pools[0].role === 'prefill'));
    assert.match(answer.points.find(({ label }) => label.startsWith('RTX 4090')).reason, /no price of rtx-4090/);
    await answered(page, 'cost');
    const words = await page.locator('#plan-cost').innerText();
    assert.match(words, /\$6\.88 an hour/);
    await card.getByLabel('pipeline parallel').check();
    await card.getByText('Of the former settings.').waitFor();
  },
  // Few requests a second, as a search of pools apart has many runs.
  { fragment: `#p=${preset}&workload.arrivals.rate_per_s=2` },
);

await task('plan: a search that is stopped keeps what it has', async (page) => {
  await verdict(page);
  await openTab(page, 'Plan');
  const card = page.locator('#plan-search');
  await card.getByRole('button', { name: 'Search' }).click();
  await page.waitForFunction(() => document.querySelector('sc-page').app.store.state.search?.answer?.runs > 0, null, {
    timeout: 120_000,
  });
  await card.getByRole('button', { name: 'Stop' }).click();
  await card.getByText('Stopped before all were looked at.').waitFor();
  const runs = () => page.$eval('sc-page', ({ app }) => app.store.state.search.answer.runs);
  await page.waitForTimeout(500);
  const then = await runs();
  await page.waitForTimeout(700);
  assert.equal(await runs(), then, 'nothing runs on');
});

await task('plan: a trace has a highest speed', async (page) => {
  await verdict(page);
  const first = await fingerprint(page);
  await dropFile(page, 'small.csv', Buffer.from(smallTrace(400)));
  await nextResult(page, first);
  await openTab(page, 'Plan');
  assert.match(await answered(page, 'max-rate'), /times the trace|every load that was tried/);
});

await task(
  'plan: prefill and decode apart, both counts',
  async (page) => {
    await verdict(page);
    const words = await answered(page, 'min-gpus');
    const { pools } = (await stateOf(page, 'min-gpus')).answer;
    assert.equal(pools.length, 2);
    assert.match(words, /prefill/);
    assert.match(words, /decode/);
    assert.match(await answered(page, 'growth'), /found 2 pools, allowed 1/i);
  },
  {
    fragment:
      '?view=plan#p=llama-3.1-8b-h100x8-disaggregated&workload.arrivals.rate_per_s=6&cluster.pools.0.replicas=1&cluster.pools.1.replicas=1',
  },
);

await task(
  'plan: without a target there is nothing to keep',
  async (page) => {
    await verdict(page);
    await page.getByText('A plan keeps targets, and this scenario has none.').waitFor();
    await page.locator('sc-plan').getByRole('button', { name: 'Add a target' }).click();
    assert.match(await answered(page, 'max-rate'), /requests\/s/);
  },
  { fragment: `?view=plan#p=${preset}&slo=[]` },
);

for (const colorScheme of ['light', 'dark'])
  await task(
    `plan: accessible, ${colorScheme}`,
    async (page) => {
      await verdict(page);
      await openTab(page, 'Plan');
      for (const question of ['max-rate', 'min-gpus', 'growth', 'drill', 'tornado']) await answered(page, question);
      await audit(page);
    },
    { colorScheme },
  );

await task(
  'plan: nothing is cut off on a small screen',
  async (page) => {
    await verdict(page);
    for (const question of ['max-rate', 'min-gpus', 'growth', 'drill', 'tornado']) await answered(page, question);
    const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(beyond <= 0, `${beyond} px too wide`);
    assert.ok((await field(page, '/workload/arrivals/rate_per_s').count()) <= 1);
    await audit(page);
  },
  { fragment: `?view=plan#p=${preset}`, viewport: { width: 320, height: 640 } },
);

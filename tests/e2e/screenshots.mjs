// Pictures of the built page in the states that matter, into build/screenshots.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { dropFile, inEveryTab, launch, openPage, openTab, root } from './browser.mjs';
import { serve } from './server.mjs';

const preset = 'llama-3.1-8b-h100-chat';
const folder = join(root, 'build/screenshots');
mkdirSync(folder, { recursive: true });
const site = await serve(join(root, 'web/dist'));
const { browser, close } = await launch();
const windows = {
  light: {},
  dark: { colorScheme: 'dark' },
  phone: { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 },
  narrow: { viewport: { width: 320, height: 640 }, colorScheme: 'dark' },
  tablet: { viewport: { width: 820, height: 1180 } },
  wide: { viewport: { width: 1920, height: 1080 } },
  '4k': { viewport: { width: 3840, height: 2160 } },
  // 200 % zoom of a 1440 px window is a window of 720 px drawn at twice the size.
  'zoom-200': { viewport: { width: 720, height: 500 }, deviceScaleFactor: 2 },
  'forced-colours': { forcedColors: 'active' },
};
const phone = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 };

/** screenshots.mjs [part of a picture's name] */
const [only = ''] = process.argv.slice(2);

async function picture(name, { fragment = '', before, fullPage = false, ...options } = {}) {
  if (!name.includes(only)) return;
  const { page, close: closePage } = await openPage(browser, options);
  await page.goto(site.url + fragment);
  await page.locator('.verdict .sentence[role]').first().waitFor();
  await page.waitForTimeout(500);
  await before?.(page);
  await page.waitForTimeout(500);
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage });
  await closePage();
  console.log(join(folder, `${name}.png`));
}

await picture('light');
await picture('dark', { colorScheme: 'dark' });
await picture('phone', { ...phone, fullPage: true });
await picture('phone-dark', { ...phone, colorScheme: 'dark' });
await picture('phone-form', { ...phone, fullPage: true, before: (page) => page.locator('.rail > summary').click() });
for (const [name, options] of Object.entries(windows)) {
  await picture(`${name}-why`, {
    ...options,
    fullPage: true,
    before: (page) =>
      inEveryTab(page, async (tab) => {
        const id = tab
          .replace(/\s*\d+$/, '')
          .replaceAll(/\W+/g, '-')
          .toLowerCase();
        await page.waitForTimeout(600);
        await page.screenshot({ path: join(folder, `${name}-view-${id}.png`), fullPage: true });
      }),
  });
}
await picture('compare', {
  before: async (page) => {
    await openTab(page, 'Compare');
  },
});
await picture('compare-dark-phone', {
  ...phone,
  colorScheme: 'dark',
  before: async (page) => {
    await openTab(page, 'Compare');
    await page.selectOption('#compare-by', '/engine/compat');
    await page.waitForTimeout(1500);
  },
});
const apart = '#p=llama-3.1-8b-h100x8-disaggregated';
const tall = { viewport: { width: 1440, height: 1600 } };
const open = (name) => async (page) => {
  await openTab(page, name);
  await page.waitForTimeout(1500);
};
await picture('pools', {
  ...tall,
  fragment: apart,
  before: async (page) => {
    await page.selectOption('sc-field[data-pointer="/cluster/pools/1/hardware/preset"] select', 'h200-sxm');
    await open('Cluster')(page);
  },
});
await picture('pools-phone-dark', {
  ...phone,
  colorScheme: 'dark',
  fullPage: true,
  fragment: apart,
  before: (page) => page.locator('.rail > summary').click(),
});
await picture('timeline', { ...tall, fragment: apart, before: open('Over time') });
await picture('compare-splits', {
  fragment: apart,
  before: async (page) => {
    await page.getByRole('button', { name: 'Compare splits' }).click();
    await page.waitForFunction(
      () =>
        document.querySelector('#compared') && !document.querySelector('#compared').textContent.includes('Simulating'),
    );
  },
});
await picture('replicas-1000', {
  ...tall,
  fragment:
    '#p=llama-3.1-8b-h100x8-aggregated&cluster.pools.0.replicas=1000&workload.arrivals.rate_per_s=3000&workload.requests=20000',
  before: open('Cluster'),
});
await picture('paper', {
  viewport: { width: 760, height: 1000 },
  fullPage: true,
  before: (page) => page.emulateMedia({ media: 'print' }),
});
await picture('overloaded', { fragment: `#p=${preset}&workload.arrivals.rate_per_s=200` });
await picture('no-fit', { fragment: `#p=${preset}&hardware.preset=rtx-4090&model.preset=llama-3.1-70b` });
await picture('empty', { fragment: `#p=${preset}&measure.warmup_s=100000` });
await picture('link-error', { colorScheme: 'dark', fragment: '#p=nothing' });
await picture('field-error', {
  before: (page) => page.locator('sc-field[data-pointer="/workload/arrivals/rate_per_s"] input[type=text]').fill('-5'),
});
await picture('trace-error', {
  before: (page) =>
    dropFile(page, 'bad.csv', Buffer.from(`arrival_s,input_tokens,output_tokens\n${'0.5,12,x\n'.repeat(40)}`)),
});
await picture('long-run', {
  fragment: `#p=${preset}&workload.requests=5000000`,
  before: (page) => page.locator('[data-complete="partial"]').waitFor(),
});
await picture('keys', { before: (page) => page.keyboard.press('?') });

await close();
site.close();

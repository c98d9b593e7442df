// Prints what a first visit transfers and what may be asked for later (gzip, by file), what an embed does, and the
// custom element; fails when one is over its budget.
import { readdirSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const dist = new URL('../dist/', import.meta.url);
const budgetKb = 356;
const elementBudgetKb = 2;
// Parts of the page that are fetched when they are needed: after the first verdict, or when asked for.
const laterParts = [
  'advice',
  'all-settings',
  'band-along',
  'calibrate',
  'calibrate-worker',
  'calibrations',
  'calibrators',
  'cdf-chart',
  'chart-element',
  'chart-files',
  'coefficients',
  'diagnosis',
  'doors',
  'download',
  'embed',
  'fewest',
  'fit-chart',
  'forecast',
  'import-box',
  'cluster',
  'compare',
  'encode',
  'kept',
  'keys',
  'later',
  'memory-bar',
  'numbers',
  'over-time',
  'plan',
  'plan-worker',
  'pool',
  'plans',
  'pool-edits',
  'power',
  'pools',
  'pane-key',
  'pin',
  'problem',
  'readable',
  'recorded-steps',
  'request-chart',
  'salvage',
  'scenario-text',
  'series-chart',
  'share',
  'shared',
  'sheet',
  'question-words',
  'steps-recorder',
  'tail-bands',
  'sw',
  'ticks',
  'tour',
  'trace-box',
  'traces',
  'typical',
  'ways-out',
  'why',
  'designs',
  'headroom',
  'holds',
  'rate',
  'sure',
  'sure-words',
  'ways-rows',
  'better',
  'load-as',
  'load-units',
  'worker-advice',
  'worker-band',
  'worker-files',
];
// A hash may begin with a dash.
const parts = new RegExp(`\\b(${laterParts.join('|')})\\b|\\bservecast-(?!first)`);
const kb = (bytes) => bytes / 1000;
const presets = [];
let total = 0;
let embed = 0;
let element = 0;
for (const name of readdirSync(dist, { recursive: true }).map(String).sort()) {
  if (name.startsWith('docs/') || !/\.(html|js|css|wasm|svg|json)$/.test(name)) continue;
  const bytes = readFileSync(new URL(name, dist));
  const packed = gzipSync(bytes, { level: 9 }).length;
  const later = name.startsWith('presets/') || parts.test(name);
  if (!later) total += packed;
  if (
    /^embed\.html$|^embed\/embed-|\bembed-[^/]*\.css$|\bworker-[^/]*\.js$|servecast-first-/.test(name) &&
    !/plan-worker/.test(name)
  )
    embed += packed;
  if (name === 'servecast-embed.js') element = packed;
  if (name.startsWith('presets/')) {
    presets.push(packed);
    continue;
  }
  console.log(
    `${name.padEnd(44)} ${kb(bytes.length).toFixed(1).padStart(8)} KB ${kb(packed).toFixed(1).padStart(7)} KB gzip${later ? ', when needed' : ''}`,
  );
}
console.log(
  `${presets.length} presets, ${kb(presets.reduce((sum, bytes) => sum + bytes, 0)).toFixed(1)} KB gzip in all, the largest ${kb(Math.max(...presets)).toFixed(1)}, each when needed`,
);
console.log(`initial transfer ${kb(total).toFixed(1)} KB gzip of ${budgetKb} KB allowed`);
console.log(`an embed ${kb(embed).toFixed(1)} KB gzip once it runs, with what it shares with the page`);
console.log(`servecast-embed.js ${kb(element).toFixed(2)} KB gzip of ${elementBudgetKb} KB allowed`);
if (kb(total) > budgetKb || kb(element) > elementBudgetKb || element === 0) {
  console.error('over the budget');
  process.exit(1);
}

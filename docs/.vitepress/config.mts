// The documentation as a site beside the page: below it, at docs/. Written texts lie in docs/, what the command
// says of itself in docs/reference/ (tools/reference.mjs), and both are built by `./dev docs`.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';

const folder = fileURLToPath(new URL('../', import.meta.url));
// Where the site will lie: /docs/, or /servecast/docs/ on a host that has it in a folder.
const base = process.env.SERVECAST_DOCS_BASE ?? '/docs/';
// Address of the sources, for links that leave docs/. Without one they are words.
const sources = process.env.SERVECAST_SOURCES ?? '';

const titleOf = (file: string) => /^# (.*)/m.exec(readFileSync(folder + file, 'utf8'))?.[1].replaceAll('`', '') ?? file;
const pages = (...names: string[]) => names.map((name) => ({ text: titleOf(`${name}.md`), link: `/${name}` }));
const decisions = readdirSync(`${folder}decisions`).filter((name) => name.endsWith('.md'));

export default defineConfig({
  title: 'Servecast',
  description: 'Forecasts of LLM serving: how the simulator works, how to use it, and how far to trust it',
  base,
  // The page's own.
  head: [
    [
      'link',
      {
        rel: 'icon',
        href: /rel="icon" href="([^"]*)"/.exec(readFileSync(`${folder}../web/index.html`, 'utf8'))?.[1] ?? '',
      },
    ],
  ],
  outDir: '../web/dist/docs',
  srcExclude: ['node_modules/**', 'tools/**', 'examples/**'],
  cleanUrls: false,
  metaChunk: true,
  ignoreDeadLinks: [/^\.\.?\/\.\.\//, /^\.\.\//],
  vue: { template: { compilerOptions: { isCustomElement: (tag) => tag === 'servecast-embed' } } },
  markdown: {
    config(md) {
      // Words of code are text, whatever braces they have.
      const inline = md.renderer.rules.code_inline;
      md.renderer.rules.code_inline = (...all) => inline?.(...all).replace('<code', '<code v-pre') ?? '';
      // Texts speak of files of the repository: relative links that leave docs/.
      md.core.ruler.push('sources', (state) => {
        const up = '../'.repeat((state.env.relativePath ?? '').split('/').length - 1);
        for (const block of state.tokens)
          for (const token of block.children ?? []) {
            const href = token.type === 'link_open' ? token.attrGet('href') : null;
            if (!href?.startsWith(`${up}../`)) continue;
            const file = href.slice(up.length + 3);
            if (sources) token.attrSet('href', `${sources}/${file}`);
            else
              token.attrs = [
                ['title', `${file}, in the sources`],
                ['tabindex', '-1'],
              ];
          }
      });
    },
  },
  themeConfig: {
    nav: [
      { text: 'Simulate', link: `${base.replace(/docs\/$/, '')}`, target: '_self' },
      { text: 'Concepts', link: '/concepts/batching' },
      { text: 'How to', link: '/how-to/size' },
      { text: 'Reference', link: '/reference/fields' },
    ],
    sidebar: [
      { text: 'Start', items: pages('index') },
      {
        text: 'Concepts',
        items: pages(
          'concepts/batching',
          'concepts/paged-kv',
          'concepts/prefix-caching',
          'concepts/chunked-prefill',
          'concepts/roles',
          'concepts/autoscaling',
          'concepts/retries',
          'concepts/tails',
        ),
      },
      {
        text: 'How to',
        items: pages(
          'how-to/import',
          'how-to/diagnose',
          'how-to/calibrate',
          'how-to/traces',
          'how-to/size',
          'how-to/autoscale',
          'how-to/router',
          'how-to/read-p99',
          'how-to/terminal',
          'how-to/agents',
          'how-to/python',
          'how-to/library',
          'how-to/figure',
          'how-to/report',
          'embed',
          'ci',
          'sweeps',
        ),
      },
      {
        text: 'Reference',
        items: pages('reference/fields', 'reference/commands', 'reference/terms', 'reference/report', 'scenario'),
      },
      { text: 'Method', items: pages('modelled', 'model', 'physics-model', 'reference/accuracy', 'fidelity') },
      {
        text: 'Decisions',
        collapsed: true,
        items: pages(...decisions.map((name) => `decisions/${name.slice(0, -3)}`)),
      },
    ],
    outline: [2, 3],
    search: { provider: 'local' },
  },
});

// Builds the page. Hides three things from the sources: where the engine's WebAssembly comes from
// (../build/wasm, or SERVECAST_WASM_DIR), the Content-Security-Policy of the built page, and the
// hints that let a browser fetch everything at once. Works from any sub-path (base './'). Three builds into one
// folder, by --mode: the page; "embed", whose parts are not those of the page, as these are one file; "element".
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { BuildOptions, HtmlTagDescriptor, Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

const wasmFolder = process.env['SERVECAST_WASM_DIR'] ?? fileURLToPath(new URL('../build/wasm', import.meta.url));

const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "style-src 'self'",
  "worker-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data: blob:",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

/** Presets that the engine asks for when they are first needed (decision 029); models with their sources. */
const presetsFolder = fileURLToPath(new URL('../presets', import.meta.url));
const fetchedPresets = ['coefficients', 'hardware', 'models', 'operators', 'prices'].flatMap((kind) =>
  readdirSync(`${presetsFolder}/${kind}`)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name) => `${kind}/${name}`),
);
const presetsVersion = fetchedPresets
  .reduce((hash, file) => hash.update(readFileSync(`${presetsFolder}/${file}`)), createHash('sha256'))
  .digest('hex')
  .slice(0, 8);

function presetFiles(): Plugin {
  return {
    name: 'servecast-presets',
    configureServer(server) {
      server.middlewares.use('/presets', (request, response, next) => {
        const file = (request.url ?? '').slice(1).replace(/\?.*/, '');
        if (!fetchedPresets.includes(file)) return next();
        response.setHeader('content-type', 'application/json');
        response.end(readFileSync(`${presetsFolder}/${file}`));
      });
    },
    generateBundle() {
      for (const file of fetchedPresets)
        this.emitFile({ type: 'asset', fileName: `presets/${file}`, source: readFileSync(`${presetsFolder}/${file}`) });
    },
  };
}

function builtPage(): Plugin {
  return {
    name: 'servecast-built-page',
    apply: 'build',
    buildStart() {
      for (const file of ['servecast-first.mjs', 'servecast-first.wasm', 'servecast.mjs', 'servecast.wasm']) {
        if (!existsSync(`${wasmFolder}/${file}`)) {
          this.error(`${wasmFolder}/${file} is missing: build the engine first (./dev build)`);
        }
      }
    },
    transformIndexHtml: {
      order: 'post',
      handler(html, context) {
        // First in the head: a policy covers only what comes after it.
        const policy = `<meta http-equiv="Content-Security-Policy" content="${contentSecurityPolicy}">`;
        const tags: HtmlTagDescriptor[] = [];
        // An embed may never run.
        const preloaded = context.path.endsWith('embed.html') ? {} : (context.bundle ?? {});
        for (const name of Object.keys(preloaded)) {
          if (/\bservecast-first-[^/]*\.wasm$/.test(name)) {
            const attrs = { rel: 'preload', as: 'fetch', type: 'application/wasm', crossorigin: true };
            tags.push({ tag: 'link', attrs: { ...attrs, href: `./${name}` }, injectTo: 'head' });
          }
          if (/\bpage-[^/]*\.js$/.test(name))
            tags.push({ tag: 'link', attrs: { rel: 'modulepreload', href: `./${name}` }, injectTo: 'head' });
        }
        return { html: html.replace(/(<meta charset="utf-8"\s*\/?>)/, `$1\n    ${policy}`), tags };
      },
    },
  };
}

type ModulesOf = { getModuleInfo(id: string): { readonly importedIds: readonly string[] } | null };

/**
 * What main.ts imports, directly or not, is one file, and what the views take beside it another: in more they would
 * compress less well, in one they would be one long task.
 */
function chunkOf(id: string, modules: ModulesOf): string | null {
  if (chunks.size === 0) {
    const walk = (each: string, chunk: string) => {
      if (chunks.has(each)) return;
      chunks.set(each, chunk);
      for (const next of modules.getModuleInfo(each)?.importedIds ?? []) walk(next, chunk);
    };
    walk(fileOf('src/main.ts'), 'index');
    walk(fileOf('src/views/page.ts'), 'page');
  }
  return chunks.get(id) ?? null;
}
const chunks = new Map<string, string>();

/** As the page asks for it; the page itself by its folder: some hosts forward from index.html to that. */
function askedAs(file: string): string {
  if (file === 'index.html') return '';
  return file.startsWith('presets/') ? `${file}?${presetsVersion}` : file;
}

/** What the footer leads to, which ./dev puts beside the page. */
const texts = ['LICENSE.txt', 'NOTICE.txt', 'accuracy.txt', 'method.txt'];

/** sw.js: the page without a connection, and its embeds, versioned by what it holds. Of the last build into the folder. */
function offline(): Plugin {
  return {
    name: 'servecast-offline',
    apply: 'build',
    writeBundle(options) {
      const folder = options.dir ?? 'dist';
      const names = readdirSync(folder, { recursive: true })
        .map((name) => String(name).replaceAll('\\', '/'))
        .filter((name) => /^(assets|embed|presets)\/.*\.\w+$|^(index|embed)\.html$|^servecast-embed\.js$/.test(name))
        .sort();
      const hash = createHash('sha256');
      for (const file of names) hash.update(file).update(readFileSync(`${folder}/${file}`));
      const source = readFileSync(new URL('tools/service-worker.js', import.meta.url), 'utf8')
        .replace('VERSION', hash.digest('hex').slice(0, 12))
        .replace('FILES', JSON.stringify([...names.map(askedAs), ...texts]));
      writeFileSync(`${folder}/sw.js`, source);
    },
  };
}

/** Templates go into the bundle as they are written: without their indentation. */
function flatTemplates(): Plugin {
  return {
    name: 'servecast-flat-templates',
    apply: 'build',
    enforce: 'pre',
    transform: (code, id) =>
      /\/src\/(views|charts)\/[^/]+\.ts$/.test(id) ? { code: code.replaceAll(/\n[ \t]+/g, '\n'), map: null } : null,
  };
}

const fileOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));

/** What a mode builds, beside the page's defaults. */
function buildOf(mode: string): BuildOptions {
  if (mode === 'embed') {
    // Worker and modules are the page's own files, which a visitor of both has once.
    const names = { entryFileNames: 'embed/[name]-[hash].js', chunkFileNames: 'embed/[name]-[hash].js' };
    return { emptyOutDir: false, rolldownOptions: { input: fileOf('embed.html'), output: names } };
  }
  if (mode === 'element')
    return {
      emptyOutDir: false,
      lib: {
        entry: fileOf('src/servecast-embed.ts'),
        formats: ['iife'],
        name: 'servecastEmbed',
        fileName: () => 'servecast-embed.js',
      },
    };
  return {
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: chunkOf, debugName: 'first' }] } } },
  };
}

export default defineConfig(({ mode }) => ({
  base: './',
  publicDir: mode === 'element' ? false : 'public',
  plugins: [
    flatTemplates(),
    ...(mode === 'element' ? [] : [builtPage()]),
    ...(mode === 'embed' || mode === 'element' ? [] : [presetFiles()]),
    ...(mode === 'element' ? [offline()] : []),
  ],
  define: { presetsVersion: JSON.stringify(presetsVersion) },
  resolve: {
    alias: [
      { find: /^(servecast(-first)?\.wasm)/, replacement: `${wasmFolder}/$1` },
      { find: /^(servecast(-first)?)$/, replacement: `${wasmFolder}/$1.mjs` },
    ],
  },
  server: { fs: { allow: ['.', wasmFolder] } },
  worker: { format: 'es' },
  build: {
    ...buildOf(mode),
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
  },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
}));

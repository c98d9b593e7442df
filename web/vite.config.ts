// Builds the page. Hides three things from the sources: where the engine's WebAssembly comes from
// (../build/wasm, or SERVECAST_WASM_DIR), the Content-Security-Policy of the built page, and the
// hints that let a browser fetch everything at once. Works from any sub-path (base './').
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { HtmlTagDescriptor, Plugin } from 'vite';
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

/** Presets that the engine asks for when they are first needed (decision 029). */
const presetsFolder = fileURLToPath(new URL('../presets', import.meta.url));
const fetchedPresets = ['coefficients', 'measured_hardware', 'measured_models', 'operators'].flatMap((kind) =>
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
        for (const name of Object.keys(context.bundle ?? {})) {
          if (/\bservecast-first-[^/]*\.wasm$/.test(name)) {
            const attrs = { rel: 'preload', as: 'fetch', type: 'application/wasm', crossorigin: true };
            tags.push({ tag: 'link', attrs: { ...attrs, href: `./${name}` }, injectTo: 'head' });
          }
        }
        return { html: html.replace(/(<meta charset="utf-8"\s*\/?>)/, `$1\n    ${policy}`), tags };
      },
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

type Modules = {
  getModuleInfo(id: string): { readonly isEntry: boolean; readonly importers: readonly string[] } | null;
};

/** What the entry needs at once is one file: files of few modules each compress worse. */
function isOfTheEntry(id: string, modules: Modules, seen = new Set<string>()): boolean {
  if (seen.has(id)) return false;
  seen.add(id);
  const found = modules.getModuleInfo(id);
  return found !== null && (found.isEntry || found.importers.some((importer) => isOfTheEntry(importer, modules, seen)));
}

export default defineConfig({
  base: './',
  plugins: [flatTemplates(), presetFiles(), builtPage()],
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
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        advancedChunks: {
          groups: [{ name: (id: string, modules: Modules) => (isOfTheEntry(id, modules) ? 'page' : null) }],
        },
      },
    },
  },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
});

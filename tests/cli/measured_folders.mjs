// Folders of measurements for the tests of servecast fidelity, and what the command says of them.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { command } from '../command.mjs';

export function servecast(...words) {
  const { status, stdout, stderr } = spawnSync(command, words, { encoding: 'utf8', maxBuffer: 2 ** 28 });
  return { status, stdout, stderr };
}

/** Writes files (text, bytes or lists of lines, by path) to a folder that goes when `use` is done. */
export function withFiles(files, use, name = 'servecast-') {
  const folder = mkdtempSync(join(tmpdir(), name));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), Array.isArray(content) ? `${content.join('\n')}\n` : content);
  }
  try {
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export function fidelity(folder, ...words) {
  const { status, stdout, stderr } = servecast('fidelity', '--data', folder, '--json', ...words);
  // 2: nothing could be compared; the table says why.
  assert.equal(status, /so nothing was compared/.test(stderr) ? 2 : 0, stderr);
  const { sets, overall } = JSON.parse(stdout);
  return { overall, sets, set: (name) => sets.find((each) => each.name === name) };
}

/** The cells of --rows by column; no cell of ours has a line break. */
export function rowsOf(folder, ...words) {
  const [header, ...lines] = servecast('fidelity', '--data', folder, '--rows', ...words)
    .stdout.trim()
    .split('\n');
  const cells = (line) =>
    [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].map(([, cell]) => cell.replace(/^"|"$/g, ''));
  const names = cells(header);
  return lines.map((line) => Object.fromEntries(cells(line).map((cell, i) => [names[i], cell])));
}

export const stepHeader = 'model,gpu,tp,engine,engine_version,dtype,batch,context_tokens,itl_p50_ms';
export const step = (changes = {}) =>
  Object.values({
    model: 'meta-llama/Llama-3.1-8B',
    gpu: 'H100',
    tp: 1,
    engine: 'vllm',
    version: '0.15.1',
    dtype: 'bf16',
    batch: 8,
    context: 1000,
    itl: 8,
    ...changes,
  })
    .map((cell) => (/[,"]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell))
    .join(',');
export const steps = (...rows) => [stepHeader, ...rows.map(step)];

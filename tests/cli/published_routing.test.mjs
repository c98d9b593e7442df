// llm-d's published ladders of rates behind its router and behind a Kubernetes Service, simulated: throughput within 25 %, and the same
// one ahead wherever they differ. The figures are read from the README of SERVECAST_EPP_GOLDEN (default
// ../shared/reference/epp-golden), "Measured results to aim at"; skipped without it. What it prints is in the table of docs/fidelity.md.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { command, slow } from '../command.mjs';

const folder =
  process.env.SERVECAST_EPP_GOLDEN ?? fileURLToPath(new URL('../../../shared/reference/epp-golden', import.meta.url));
const readme = join(folder, 'README.md');
const text = existsSync(readme) ? readFileSync(readme, 'utf8') : '';
const skip = text === '' ? `no ${readme}` : slow;
const number = (words) => Number(words.replaceAll(',', ''));

/** The row of a table that begins so. */
function row(begin) {
  const line = text.split('\n').find((each) => each.startsWith(`| ${begin}`));
  assert.ok(line, `no row "${begin}"`);
  return line;
}
/** "22: 6,239/10,809; ..." as [rate, Service, llm-d]. */
const pairs = (words) =>
  [...words.matchAll(/(\d+): ([\d.,]*\d)\/([\d.,]*\d)/g)].map(([, rate, service, router]) => [
    Number(rate),
    number(service),
    number(router),
  ]);
/** Seconds of each stage, by its rate: "22x34". */
const seconds = new Map([...text.matchAll(/\b(\d+)x(\d+)\b/g)].map(([, rate, s]) => [Number(rate), Number(s)]));

const pods = { replicas: 8, tensor_parallel: 2 };
/** Of one stage, from an empty cache: output tokens/s and TTFT p90 in s. */
function stage(rate, router) {
  const scenario = {
    schema: 1,
    model: { preset: 'qwen3-32b' },
    hardware: { preset: 'h100-sxm' },
    cluster: { pools: [pods], router },
    workload: {
      requests: rate * seconds.get(rate),
      arrivals: { process: 'poisson', rate_per_s: rate },
      prefix: { groups: 150, tokens: 6000 },
      prompt_tokens: { distribution: 'fixed', value: 1200 },
      output_tokens: { distribution: 'fixed', value: 1000 },
    },
  };
  const { stdout, stderr, status } = spawnSync(command, ['run', '-', '--once', '-o', 'json'], {
    input: JSON.stringify(scenario),
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  const report = JSON.parse(stdout).report ?? JSON.parse(stdout);
  return { tokens: report.output_tokens_per_s, ttft: report.ttft_ms.p90 / 1000 };
}
const service = { policy: 'round_robin' };
const picker = (profile) => ({ policy: 'epp', profile });

/** Requests/s. Below, all that comes is served either way, and the two published ladders differ in who is ahead. */
const saturated = 20;

/** Measured throughput of both; TTFT p90 in s by rate where it is published; a stage whose figure cannot be of its whole time. */
function compare(t, measured, profile, ttft = new Map(), apart = () => false) {
  for (const [rate, ...theirs] of measured) {
    const ours = [stage(rate, service), stage(rate, picker(profile))];
    const cells = ours.map(({ tokens, ttft }) => `${Math.round(tokens)} tokens/s, TTFT p90 ${ttft.toFixed(1)} s`);
    t.diagnostic(`${rate} for ${seconds.get(rate)} s: ${theirs} measured; ${cells.join('; ')}`);
    for (const of of [0, 1]) {
      if (apart(rate, of)) continue;
      const error = ours[of].tokens / theirs[of] - 1;
      assert.ok(Math.abs(error) <= 0.25, `${rate}/s ${of}: ${ours[of].tokens}, not ${theirs[of]}`);
    }
    if (rate < saturated) continue;
    assert.equal(ours[1].tokens > ours[0].tokens, theirs[1] > theirs[0], `${rate}/s`);
    const [ofService, ofRouter] = ttft.get(rate) ?? [1, 0];
    assert.equal(ours[1].ttft < ours[0].ttft, ofRouter < ofService, `${rate}/s`);
  }
}
test('PublishedRouting_OptimizedBaseline_SevenRates', { skip }, (t) => {
  const [, , tokens, times] = row('same, by rate').split('|');
  const measured = pairs(tokens);
  assert.equal(measured.length, 7);
  const ttft = new Map(pairs(times).map(([rate, ...both]) => [rate, both]));
  assert.equal(ttft.size, 5);
  // 300 requests of 1,000 tokens in 33 s, 20 of them to send: no token of the last could have taken more than 13 ms, where 47 were measured.
  compare(t, measured, 'optimized-baseline', ttft, (rate, of) => rate === 15 && of === 1);
});

test('PublishedRouting_OptimizedBaselineBeforeJune2026_EightRates', { skip }, (t) => {
  const measured = pairs(row('optimized-baseline README').split('By rate')[1]);
  assert.equal(measured.length, 8);
  compare(t, measured, 'optimized-baseline-2026-05');
});

// The precise index is not modelled. The published means are over a whole ladder; here one rate of it stands for all.
test('PublishedRouting_ApproximateLoadAndRandom_InTheirOrder', { skip }, () => {
  const measured = row('blog "KV-cache wins')
    .split('|')[3]
    .match(/[\d,]+\.\d/g)
    .map(number);
  const [approximate, load, random] = measured.slice(1);
  assert.ok(approximate > load && Math.abs(load / random - 1) < 0.1);
  const ours = ['default', 'load-only', 'random'].map((profile) => stage(22, picker(profile)));
  assert.ok(ours[0].tokens > ours[1].tokens && ours[0].ttft < ours[1].ttft);
  assert.ok(Math.abs(ours[1].tokens / ours[2].tokens - 1) < 0.1);
});

// servecast import and servecast export as a person types them: files and standard input in, a document
// on stdout, remarks on stderr, exit codes.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { inFolder } from '../in_folder.mjs';
import { command } from '../command.mjs';

const folder = fileURLToPath(new URL('../import/', import.meta.url));
const text = (name) => join(folder, 'texts', name);
const config = (name) => join(folder, 'configs', `${name}.json`);

function servecastWith(input, ...words) {
  const { status, stdout, stderr } = spawnSync(command, words, { encoding: 'utf8', maxBuffer: 2 ** 28, input });
  return { status, stdout, stderr };
}
const servecast = (...words) => servecastWith('', ...words);

test('Import_EveryText_IsADocumentThatRuns', () => {
  for (const name of readdirSync(join(folder, 'texts'))) {
    const { status, stdout, stderr } = servecast('import', text(name));
    assert.equal(status, 0, `${name}: ${stderr}`);
    assert.match(stderr, /^found {4}/m, name);
    assert.doesNotMatch(stderr, /^wrong /m, name);
    assert.equal(JSON.parse(stdout).schema, 1, name);
    const fits = servecastWith(stdout, 'validate', '-');
    assert.ok(fits.status === 0 || /does not fit/.test(fits.stderr), `${name}: ${fits.stderr}`);
  }
});

test('Import_ACommandOnStdin_GivesAScenarioThatRuns', () => {
  const { status, stdout, stderr } = servecastWith('vllm serve Qwen/Qwen3-14B --max-num-seqs 64\n', 'import', '-');
  assert.equal(status, 0, stderr);
  assert.match(stderr, /took {5}engine\.max_num_seqs = 64 {3}\(--max-num-seqs 64\)/);
  assert.match(stderr, /not said, and so as in the scenario to begin with: hardware, workload, slo/);
  const run = servecastWith(stdout, 'run', '-', '--once', '--set', 'workload.requests=100');
  assert.equal(run.status, 0, run.stderr);
  assert.equal(JSON.parse(run.stdout).arrived, 100);
});

test('Import_ATextAsAnArgument_IsReadAsOne', () => {
  const words = 'vllm serve Qwen/Qwen3-14B --max-num-seqs 64 --request $X';
  const { status, stdout, stderr } = servecast('import', words);
  assert.equal(status, 0, stderr);
  assert.equal(JSON.parse(stdout).engine.max_num_seqs, 64);
  const two = servecast('import', words, 'vllm bench serve --request-rate 3 --max-concurrency $C');
  assert.equal(two.status, 0, two.stderr);
  assert.deepEqual(JSON.parse(two.stdout).workload.arrivals, { process: 'poisson', rate_per_s: 3 });
  // What changes the answer most is said first.
  assert.match(two.stderr, /^warning {2}--max-concurrency \$C: the text does not say what that is; no limit here\n/);
  assert.match(two.stderr, /found {4}argument 2: vllm bench serve/);
  inFolder((file) => {
    // A file of that name is the file.
    assert.equal(servecast('import', file('my launch.sh', words)).stdout, stdout);
    assert.equal(servecast('import', file('no such file.sh')).status, 2);
  });
});

test('Import_TextsOfOtherSystems_AreRead', () => {
  const words = 'vllm serve Qwen/Qwen3-14B --max-num-seqs 64\r\n';
  const little = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(words, 'utf16le')]);
  const big = Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from(words, 'utf16le').swap16()]);
  for (const bytes of [little, big]) {
    const { stdout, stderr } = servecastWith(bytes, 'import', '-');
    assert.match(stderr, /took {5}engine\.max_num_seqs = 64/);
    assert.equal(JSON.parse(stdout).model.preset, 'qwen3-14b');
  }
  const cut = servecastWith('vllm serve Qwen/Qwen3-14B\0--max-num-seqs 64', 'import', '-');
  assert.match(cut.stderr, /^warning {2}found a byte of 0/);
  const result =
    '{"request_throughput": 3, "request_rate": Infinity, "mean_ttft_ms": NaN, "num_prompts": 9, "name": "a Infinity"}';
  assert.equal(JSON.parse(servecastWith(result, 'import', '-').stdout).workload.arrivals.process, 'static');
});

test('Import_SeveralFiles_AreMerged', () => {
  const { status, stdout, stderr } = servecast(
    'import',
    config('qwen3-32b'),
    text('nvidia-smi-list.txt'),
    text('vllm-docker.sh'),
    text('bench-result.json'),
  );
  assert.equal(status, 0, stderr);
  const { model, hardware, engine, cluster, workload } = JSON.parse(stdout);
  assert.equal(model.preset, 'qwen3-32b');
  assert.equal(hardware.preset, 'h100-sxm');
  assert.equal(engine.preset, 'vllm-0.15');
  assert.equal(cluster.pools[0].tensor_parallel, 4);
  assert.deepEqual(workload.arrivals, { process: 'closed_loop', concurrency: 2 });
  assert.match(stderr, /measured: TTFT mean 43\.2/);
});

test('Import_WithAScenario_TakesTheRestFromIt', () => {
  const { stdout } = servecast('import', text('vllm-llama-8b.sh'), '--scenario', 'qwen2.5-7b-l40s-code');
  const { hardware, workload, model, engine } = JSON.parse(stdout);
  assert.equal(hardware.preset, 'l40s');
  assert.equal(model.preset, 'llama-3.1-8b');
  assert.equal(workload.preset, 'code');
  assert.equal(engine.max_num_batched_tokens, 2048);
});

test('Import_NothingUnderstood_ExitsTwoAndSaysWhatIsAllowed', () => {
  const nothing = servecastWith('Dear all, see you on Monday.', 'import', '-');
  assert.equal(nothing.status, 2);
  assert.equal(nothing.stdout, '');
  assert.match(nothing.stderr, /found nothing that can be imported; allowed are a config\.json/);
  const unknown = servecastWith('{"architectures": ["MambaForCausalLM"], "model_type": "mamba"}', 'import', '-');
  assert.equal(unknown.status, 2);
  assert.match(unknown.stderr, /found mamba, whose layers are not modelled; allowed llama, /);
  for (const words of [['import'], ['import', '--x'], ['import', '-', '--scenario'], ['import', '/nowhere/at/all']]) {
    const { status, stdout } = servecast(...words);
    assert.equal(status, 2, words.join(' '));
    assert.equal(stdout, '');
  }
});

test('Import_AnUnknownModel_SaysTheNearestAndThatItsConfigIsMissing', () => {
  const { status, stdout, stderr } = servecastWith('vllm serve me/Qwen3-15B', 'import', '-');
  assert.equal(status, 3);
  assert.equal(JSON.parse(stdout).model, undefined);
  assert.match(stderr, /no preset is the model me\/Qwen3-15B; the nearest is qwen3-1\db?.*config\.json/);
  assert.match(stderr, /^wrong {4}\/model: /m);
});

test('Import_TheNearestModel_IsOfTheSameKindAndSize', () => {
  const nearest = {
    'zai-org/GLM-4.6': 'glm-4.5',
    'Qwen/Qwen3-Next-80B-A3B-Instruct': 'qwen3-30b-a3b',
    'me/Qwen3-15B': 'qwen3-14b',
    'mistralai/Mistral-Small-3.2-24B-Instruct-2506': 'mistral-small-24b',
  };
  for (const [name, preset] of Object.entries(nearest)) {
    const { stderr } = servecastWith(`vllm serve ${name}`, 'import', '-');
    assert.ok(stderr.includes(`the nearest is ${preset}: its config.json`), stderr);
  }
});

test('Import_ModelsOfThisAutumn_AreKnownByName', () => {
  const models = {
    'zai-org/GLM-5.2-FP8': { preset: 'glm-5.2', quantization: 'fp8' },
    'deepseek-ai/DeepSeek-V4-Pro': { preset: 'deepseek-v4-pro' },
    'moonshotai/Kimi-K3': { preset: 'kimi-k3' },
    'MiniMaxAI/MiniMax-M3': { preset: 'minimax-m3' },
    'XiaomiMiMo/MiMo-V2-Flash': { preset: 'mimo-v2-flash' },
    'stepfun-ai/Step-3.7-Flash': { preset: 'step-3.7-flash' },
    'Qwen/Qwen3.6-35B-A3B-FP8': { preset: 'qwen3.6-35b-a3b', quantization: 'fp8' },
    'google/gemma-4-31B-it': { preset: 'gemma-4-31b' },
    'nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16': { preset: 'nemotron-3-ultra-550b-a55b' },
  };
  for (const [name, model] of Object.entries(models)) {
    const { stdout } = servecastWith(`vllm serve ${name} -tp 8\nNVIDIA B300`, 'import', '-');
    assert.deepEqual(JSON.parse(stdout).model, model, name);
  }
});

test('Import_TextsThatAreTiresome_HaveAnAnswerInTime', () => {
  inFolder((file) => {
    const texts = [
      '\n'.repeat(10_000_000),
      '{'.repeat(1_000_000),
      `{"a":${'['.repeat(100_000)}`,
      '<!DOCTYPE html><img src=x onerror=alert(1)>',
      '\0'.repeat(100_000),
      `vllm serve ${'--x '.repeat(1_000_000)}`,
      `kind: Deployment\n${'a:\n '.repeat(200_000)}`,
      '{"__proto__": {"polluted": true}, "constructor": {"prototype": 1}, "architectures": ["LlamaForCausalLM"]}',
      readFileSync(config('deepseek-v3'), 'utf8').slice(0, 500),
      'vllm serve \u001b[31m\u202ered --port \u0007',
    ];
    for (const content of texts) {
      const before = Date.now();
      const { status, stderr } = servecast('import', file('text', content));
      assert.ok([0, 2, 3].includes(status), `${status}: ${stderr.slice(0, 200)}`);
      assert.notEqual(stderr, '');
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
      assert.doesNotMatch(stderr, /[\u0000-\u0009\u000b-\u001f\u202e]/);
      assert.ok(Date.now() - before < 30_000);
    }
  });
});

test('Export_ToEveryTarget_IsReadBack', () => {
  const scenario = 'llama-3.1-8b-h100x8-disaggregated';
  for (const target of ['vllm', 'docker', 'kubernetes', 'llm-d', 'sglang', 'trtllm', 'bench']) {
    const { status, stdout, stderr } = servecast('export', scenario, '--to', target, '--set', 'engine.max_num_seqs=77');
    assert.equal(status, 0, stderr);
    const back = servecastWith(stdout, 'import', '-', '--scenario', scenario);
    assert.equal(back.status, 0, back.stderr);
    const document = JSON.parse(back.stdout);
    assert.equal(document.model.preset, 'llama-3.1-8b', target);
    if (target === 'bench') continue;
    assert.equal(document.engine.max_num_seqs, 77, target);
    // Its own scheduler is forecast with requests that one server answers whole.
    if (target === 'trtllm') continue;
    assert.deepEqual(
      document.cluster.pools.map(({ role }) => role),
      ['prefill', 'decode'],
      target,
    );
  }
});

test('Export_WhatTheTargetCannotSay_IsOnStderr', () => {
  const { stderr } = servecast('export', 'llama-3.1-8b-h100-multi-turn', '--to', 'bench');
  assert.match(stderr, /left out workload\.sessions: each of its requests stands alone/);
  const { stderr: vllm } = servecast(
    'export',
    'llama-3.1-8b-h100-chat',
    '--to',
    'vllm',
    '--set',
    'scheduler.order=sjf',
  );
  assert.match(vllm, /left out scheduler\.order = sjf: vLLM's queue is fcfs or priority/);
});

test('Export_WithoutATargetOrToAnUnknownOne_IsRefused', () => {
  assert.equal(servecast('export', 'llama-3.1-8b-h100-chat').status, 2);
  const { status, stderr } = servecast('export', 'llama-3.1-8b-h100-chat', '--to', 'helm');
  assert.equal(status, 2);
  assert.match(
    stderr,
    /found target helm, allowed vllm, docker, kubernetes, llm-d, llm-d-router, autoscaler, sglang, trtllm, bench/,
  );
  assert.match(servecast('export', '--help').stdout, /--to bench/);
});

test('Diagnose_ACommandWithItsResult_IsMeasuredBesideForecast', () => {
  const server = fileURLToPath(new URL('diagnosed_server.txt', import.meta.url));
  const { status, stdout, stderr } = servecast('diagnose', server);
  assert.equal(status, 0, stderr);
  assert.match(stderr, /^found {4}a command of vLLM/m);
  const { state, figures, checks, causes, alone } = JSON.parse(stdout);
  assert.equal(state, 'differs');
  assert.equal(checks[0].name, 'kv_tokens');
  assert.equal(checks[0].said, 415312);
  const ttft = figures.find(({ name }) => name === 'ttft_ms.mean');
  assert.deepEqual([ttft.measured, ttft.outside], [139.8, true]);
  assert.ok(ttft.low < ttft.forecast && ttft.forecast < ttft.high);
  assert.ok(causes.length > 0 && alone.length > causes.length);
  for (const { cause, figures: given } of causes) assert.equal(given.length, figures.length, cause);
  const left = alone.filter((each) => each.left !== undefined).map((each) => each.left);
  assert.deepEqual(
    left,
    [...left].sort((a, b) => a - b),
  );
  // What the command says is not another value.
  assert.ok(!alone.some(({ cause }) => cause.startsWith('max_num_seqs')));
  assert.equal(servecast('diagnose', server, '-o', 'csv').stdout.trim().split('\n').length, 1 + figures.length);
  const other = servecast('diagnose', server, '--set', 'hardware.preset=h100-pcie', '--fields', 'distance');
  assert.ok(Number(other.stdout) < 0.2, other.stdout);
});

test('Diagnose_OfNothing_SaysSo', () => {
  assert.equal(servecast('diagnose').status, 2);
  assert.match(servecast('diagnose', 'vllm serve Qwen/Qwen3-14B', '-o', 'text').stdout, /no latency and no rate/);
  assert.match(servecast('diagnose', '--no-such', 'x').stderr, /unknown option --no-such/);
});

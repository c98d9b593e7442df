// servecast fidelity on folders of every kind: what is scored, what is left out and why. What the
// errors themselves are is docs/fidelity.md's matter.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const command = fileURLToPath(new URL('../../build/release/servecast', import.meta.url));

function servecast(...words) {
  const { status, stdout, stderr } = spawnSync(command, words, { encoding: 'utf8', maxBuffer: 2 ** 28 });
  return { status, stdout, stderr };
}

/** A folder of measurements: decode steps, a run with its requests, a model by its config file. `edit` changes lines. */
function measurements(edit = (line) => line) {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  const write = (path, ...lines) => {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), `${(path.endsWith('.json') ? lines : lines.map(edit)).join('\n')}\n`);
  };
  write('steps/decode.csv', 'model,gpu,engine,batch,context_tokens,itl_p50_ms',
    'meta-llama/Llama-3.1-8B-Instruct,"H100 80GB, HBM3",vllm,1,~900-1100,7', 'Qwen/Qwen3-14B,H100,vllm,8,1000,12',
    'Qwen/Qwen3-14B,TPU v5e,vllm,8,1000,12', 'nobody/Small-1B,H100,vllm,8,1000,2');
  write('models/Small-1B.json', JSON.stringify({
    architectures: ['LlamaForCausalLM'], num_hidden_layers: 16, hidden_size: 2048, num_attention_heads: 32,
    num_key_value_heads: 8, intermediate_size: 8192, vocab_size: 128256, max_position_embeddings: 4096, tie_word_embeddings: true,
  }));
  write('served/summary.csv', 'run,model,gpu,tp,engine,engine_version,target_rate_rps,n_requests,input_tokens_mean,output_tokens_mean,ttft_mean_ms,e2e_mean_ms',
    'first,meta-llama/Llama-3.1-8B,H100,1,vllm,0.15.1,5,40,500,50,30,400', 'drawn,meta-llama/Llama-3.1-8B,H100,1,vllm,0.15.1,4,40,500,50,30,400.5');
  write('served/requests/first.csv', 'arrival_s,input_tokens,output_tokens,ttft_ms,e2e_ms',
    ...Array.from({ length: 40 }, (_, i) => `${i * 0.2},500,50,30,400`));
  const llama = 'meta-llama/Llama-3.1-8B,H100,vllm,0.15.1';
  write('forms/prompts.csv', 'model,gpu,engine,engine_version,prompt_tokens,ttft_p50_ms', `${llama},512,20`);
  write('forms/prefixes.csv', 'model,gpu,engine,engine_version,prefix_tokens,suffix_tokens,warm_ttft_p50_ms,cold_ttft_p50_ms', `${llama},4096,256,15,100`);
  write('forms/saturated.csv', 'model,gpu,tp,max_num_seqs,avg_batch_size,avg_output_len,itl_p50_ms', 'Qwen3-14B,H100,1,8,7.9,200,12');
  write('forms/loops.csv', 'id,model,gpu,engine,engine_version,precision,isl,osl,concurrency,tp,tpot_ms', 'one,Llama-3.1-8B,h200_sxm,sglang,0.5,fp8,1024,64,4,2,5', 'two,Llama-3.1-8B,h200_sxm,vllm,0.12,int3,1024,64,4,2,5');
  write('forms/stages.csv', 'experiment,model,gpu,tp,workload,stage(-1=all),target_rate_rps,input_tokens_nominal,output_tokens_configured,ttft_mean_ms,tpot_from_e2e_ms,e2e_mean_ms',
    'a,gpt2,H100,1,general,-1,,300,20,9,2,50', 'a,gpt2,H100,1,general,0,1,300,20,9,2,50', 'a,gpt2,H100,1,general,1,2,300,20,9.5,2,51');
  write('models/gpt2.json', JSON.stringify({ n_layer: 12, n_embd: 768, n_head: 12, n_positions: 1024, vocab_size: 50257 }));
  write('forms/sweep.csv', 'model,gpu,engine,engine_version,run,point,request_rate_rps,num_prompts,input_dist,output_dist,output_tokens_mean,request_throughput_rps,tpot_mean_ms,preemptions',
    ...[1, 2, 400].map((rate) => `${llama},r,${rate},${rate},100,"lognormal(median=256,sigma=0.8,[16,4096])","lognormal(median=96,sigma=0.6,[8,768])",113,${Math.min(rate, 50)},8,0`));
  write('other.csv', 'day,weather', 'monday,fine');
  return folder;
}

test('Fidelity_FilesOfEveryForm_AreScoredOrLeftOutWithAReason', () => {
  const folder = measurements();
  const { status, stdout } = servecast('fidelity', '--data', folder, '--json');
  const { sets, overall } = JSON.parse(stdout);
  const set = (name) => sets.find((each) => each.name === name);
  assert.equal(status, 0);
  assert.equal(set('steps/decode').rows, 4);
  assert.equal(set('steps/decode').tpot.n, 3);
  assert.deepEqual(set('steps/decode').skipped.map(({ reason }) => reason), ['no preset for the GPU TPU v5e']);
  assert.ok(set('steps/decode').tpot.median < 1);
  assert.equal(set('served/summary').ttft.n, 2);
  assert.equal(set('served/summary').ttft_p99.n, 1, 'of the requests alone');
  assert.equal(set('other').skipped.length, 1);
  for (const [name, metric, n, left] of [['prompts', 'ttft', 1, 0], ['prefixes', 'ttft', 2, 0], ['saturated', 'tpot', 1, 0], ['loops', 'tpot', 1, 1], ['stages', 'e2e', 2, 1], ['sweep', 'tpot', 3, 0]]) {
    assert.equal(set(`forms/${name}`)[metric].n, n, name);
    assert.ok(set(`forms/${name}`)[metric].median < 1, name);
    assert.equal(set(`forms/${name}`).skipped.length, left, name);
  }
  assert.deepEqual(set('forms/sweep').knees[0].predicted, [2, 400]);
  assert.equal(overall.e2e.n, 4);
  assert.match(servecast('fidelity', '--data', folder, '--rows').stdout, /^served\/summary,first,meta-llama\/Llama-3.1-8B,H100,1,vllm 0.15.1,5 rps,e2e,400,/m);
  rmSync(folder, { recursive: true });
});

test('Fidelity_RowsThatCannotBe_AreLeftOutEachWithAReason', () => {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  mkdirSync(join(folder, 'bad'));
  const write = (name, ...lines) => writeFileSync(join(folder, 'bad', `${name}.csv`), `${lines.join('\n')}\n`);
  const llama = 'meta-llama/Llama-3.1-8B,H100,vllm,0.15.1';
  const sweep = (seats, block, rate, number) => `${llama},${seats},${block},1000,${rate},${number},"lognormal(median=256,sigma=0.8,[16,4096])","lognormal(median=96,sigma=0.6,[8,768])",113,8`;
  write('sweep', 'model,gpu,engine,engine_version,max_num_seqs,block_size,kv_tokens,request_rate_rps,num_prompts,input_dist,output_dist,output_tokens_mean,tpot_mean_ms',
    sweep(0, 16, 1, 100), sweep(-4, 16, 1, 100), sweep(256, 0, 1, 100), sweep(256, -16, 1, 100), sweep(256, 16, 1, 1e12));
  write('loops', 'id,model,gpu,engine,engine_version,precision,isl,osl,concurrency,tp,tpot_ms', 'one,Llama-3.1-8B,h200_sxm,vllm,0.12,fp8,100,1000000000000000,1,2,5');
  write('prompts', 'model,gpu,engine,engine_version,prompt_tokens,ttft_p50_ms', `${llama},200000,20`);
  const { status, stdout } = servecast('fidelity', '--data', folder, '--json');
  const { sets } = JSON.parse(stdout);
  assert.equal(status, 0);
  assert.deepEqual(sets.map(({ name, rows, skipped }) => [name, rows, skipped.length]), [['bad/loops', 1, 1], ['bad/prompts', 1, 1], ['bad/sweep', 5, 5]]);
  for (const { reason } of sets.flatMap(({ skipped }) => skipped)) assert.notEqual(reason, '');
  rmSync(folder, { recursive: true });
});

test('Fidelity_AnErrorThatHasGrown_FailsByName', () => {
  const folder = measurements();
  const record = join(folder, 'recorded.json');
  const wrong = servecast('fidelity', '--data', folder, '--record', record);
  const same = servecast('fidelity', '--data', folder, '--against', record);
  const worse = servecast('fidelity', '--data', folder, '--against', record, '--set', 'hardware.bandwidth_efficiency=0.1');
  assert.equal(wrong.status, 0);
  assert.equal(same.status, 0);
  assert.match(same.stdout, /\n[1-9]\d* passed, 0 failed\n$/);
  assert.equal(worse.status, 1);
  assert.match(worse.stdout, /grown: steps\/decode: tpot: median error/);
  rmSync(folder, { recursive: true });
  const none = servecast('fidelity', '--data', folder, '--against', record);
  assert.equal(none.status, 0);
  assert.equal(none.stdout, '0 passed, 0 failed, 1 skipped\n');
  assert.equal(servecast('fidelity', '--data', folder).status, 2);
});

/** Writes files (text, bytes or lists of lines, by path) to a folder that goes when `use` is done. */
function withFiles(files, use, name = 'servecast-') {
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

function fidelity(folder, ...words) {
  const { status, stdout, stderr } = servecast('fidelity', '--data', folder, '--json', ...words);
  assert.equal(status, 0, stderr);
  const { sets, overall } = JSON.parse(stdout);
  return { overall, sets, set: (name) => sets.find((each) => each.name === name) };
}

/** The cells of --rows by column; no cell of ours has a line break. */
function rowsOf(folder, ...words) {
  const [header, ...lines] = servecast('fidelity', '--data', folder, '--rows', ...words).stdout.trim().split('\n');
  const cells = (line) => [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].map(([, cell]) => cell.replace(/^"|"$/g, ''));
  const names = cells(header);
  return lines.map((line) => Object.fromEntries(cells(line).map((cell, i) => [names[i], cell])));
}

const stepHeader = 'model,gpu,tp,engine,engine_version,dtype,batch,context_tokens,itl_p50_ms';
const step = (changes = {}) => Object.values({ model: 'meta-llama/Llama-3.1-8B', gpu: 'H100', tp: 1, engine: 'vllm', version: '0.15.1', dtype: 'bf16', batch: 8, context: 1000, itl: 8, ...changes })
  .map((cell) => (/[,"]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)).join(',');
const steps = (...rows) => [stepHeader, ...rows.map(step)];

test('Fidelity_ACellThatIsNoNumber_LeavesOutItsRowAndSaysWhere', () => {
  const bad = ['abc', '12x', 'nan', 'inf', '-5', '1e999', '0x10', '0', '1,000', '8.5.2'];
  withFiles({ 's/steps.csv': steps({}, ...bad.map((itl) => ({ itl })), { tp: '1.5' }, { batch: '' }) }, (folder) => {
    const { tpot, rows, skipped } = fidelity(folder).set('s/steps');
    assert.equal(rows, bad.length + 3);
    assert.equal(tpot.n, 1);
    for (const [i, found] of bad.entries()) {
      assert.match(skipped[i].row, new RegExp(`^row ${i + 2}: `));
      assert.equal(skipped[i].reason, `s/steps.csv, row ${i + 2}, column itl_p50_ms: found "${found}", allowed a number above 0`);
    }
    assert.match(skipped.at(-2).reason, /column tp: found "1.5", allowed a whole number/);
    assert.match(skipped.at(-1).reason, /nothing in column batch or decode_batch/);
  });
});

test('Fidelity_EveryRowOfEveryForm_IsScoredOrLeftOut', () => {
  const rowsOfFile = { 'steps/decode': 4, 'served/summary': 2, other: 1, 'forms/prompts': 1, 'forms/prefixes': 1, 'forms/saturated': 1, 'forms/loops': 2, 'forms/stages': 3, 'forms/sweep': 3 };
  // As they are, and with one cell of each row garbled: of every row another, of every pass another.
  for (let pass = -1; pass < 14; ++pass) {
    const garble = (line, i) => {
      if (pass < 0 || i === 0) return line;
      const cells = line.split(',');
      cells[(pass + i) % cells.length] = ['x', '-1', '', 'nan'][pass % 4];
      return cells.join(',');
    };
    const folder = measurements(garble);
    const { sets } = fidelity(folder);
    rmSync(folder, { recursive: true });
    for (const [name, inFile] of Object.entries(rowsOfFile)) {
      const { rows, skipped, ...errors } = sets.find((each) => each.name === name);
      const figures = Math.max(0, ...Object.values(errors).map(({ n }) => n ?? 0));
      const scored = name === 'forms/prefixes' && figures > 0 ? 1 : figures;
      assert.deepEqual([rows, scored + skipped.length], [inFile, inFile], `${name}, pass ${pass}`);
      for (const { reason } of skipped) assert.notEqual(reason, '');
    }
  }
});

test('Fidelity_MissingColumns_AreSaidAndOptionalOnesAreOptional', () => {
  withFiles({
    'steps.csv': ['model,gpu,batch,itl_p50_ms', 'Llama-3.1-8B,H100,8,8'],
    'loops.csv': ['isl,osl,concurrency,tpot_ms', '100,100,4,8'],
    'ok.csv': ['model,gpu,batch,context_tokens,itl_mean_ms', 'Llama-3.1-8B,H100,8,1000,8'],
  }, (folder) => {
    const { set } = fidelity(folder);
    assert.match(set('steps').skipped[0].reason, /no column mean_context_tokens or context_tokens/);
    assert.equal(set('loops').skipped[0].reason, 'no model is named, by column or folder');
    assert.equal(set('ok').tpot.n, 1);
  });
});

test('Fidelity_NamesOfGpus_MeanExactlyThePresetThatDescribesThem', () => {
  const presets = {
    'A100-PCIE-40GB (250W cap)': 'a100-40gb', 'NVIDIA A100-SXM4-80GB': 'a100-80gb', a100_sxm: 'a100-80gb', 'A100-80GB': 'a100-80gb', 'A100 40 GB': 'a100-40gb',
    'NVIDIA H100 80GB HBM3': 'h100-sxm', 'H100 (80GB SXM per repo datasheets/docs)': 'h100-sxm', '8xH100': 'h100-sxm', H100SXM5: 'h100-sxm', h200_sxm: 'h200-sxm', 'NVIDIA H200 143771MiB': 'h200-sxm',
    'B200 192GB': 'b200-sxm', 'NVIDIA L40S': 'l40s', 'NVIDIA GeForce RTX 4090': 'rtx-4090', RTXPRO6000: 'rtx-pro-6000', 'RTX PRO 6000 Blackwell Server Edition': 'rtx-pro-6000',
  };
  const none = ['A100 80GB PCIe', 'A100-SXM4-40GB', 'GH200', 'GH200 480GB (H200)', 'GB200', 'H100 PCIe', 'H100 NVL', 'H100 94GB', 'H200 NVL', 'H20', 'H800', 'L40', 'L4', 'A10', 'RTX 6000 Ada', 'RTX 4090 Laptop', 'RTX 4090 D', 'RTX PRO 6000 Max-Q', 'A100X', 'MI300X', 'H100 1g.10gb', 'A100/H100'];
  const names = [...Object.keys(presets), ...none];
  withFiles({ 's/steps.csv': steps(...names.map((gpu) => ({ gpu, model: 'Qwen3-0.6B' }))) }, (folder) => {
    const { skipped } = fidelity(folder).set('s/steps');
    assert.deepEqual(skipped.map(({ reason }) => reason), none.map((gpu) => `no preset for the GPU ${gpu}`));
    const found = Object.fromEntries(rowsOf(folder).map((row) => [row.gpu, row.simulated_as.split(', ')[1]]));
    assert.deepEqual(found, presets);
  });
});

test('Fidelity_NamesOfModels_MeanAPresetAndItsWeights', () => {
  const presets = {
    'meta-llama/Llama-3.1-8B-Instruct': 'llama-3.1-8b', 'RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic': 'llama-3.1-8b in fp8', 'neuralmagic/Meta-Llama-3.1-8B-Instruct-quantized.w4a16': 'llama-3.1-8b in int4',
    'QWEN/qwen3-32b-awq': 'qwen3-32b in int4', 'Qwen3-32B-GPTQ-Int4': 'qwen3-32b in int4', 'nvidia/Llama-3.3-70B-Instruct-NVFP4': 'llama-3.3-70b in nvfp4', 'Qwen_Qwen3-14B': 'qwen3-14b',
    'Qwen/Qwen3-30B-A3B-Instruct-2507-FP8': 'qwen3-30b-a3b in fp8', 'mistralai/Mixtral-8x7B-Instruct-v0.1': 'mixtral-8x7b', 'mistralai/Mistral-Nemo-Instruct-2407': 'mistral-nemo-12b', 'openai/gpt-oss-20b': 'gpt-oss-20b in mxfp4',
    'codellama/CodeLlama-34b-Instruct-hf': 'codellama-34b', 'meta-llama/Llama-4-Scout-17B-16E-Instruct': 'llama-4-scout-17b-16e',
  };
  const none = ['gpt-oss', 'Llama-2', 'Llama-3-8B', 'Qwen3', 'Llama-3.1-405B', 'DeepSeek-R1-Distill-Llama-8B', 'Yi-34B-200K'];
  const weights = ['Llama-3.1-8B-Instruct-quantized.w8a8', 'Llama-3.1-8B-GPTQ-Int8', 'Llama-3.1-8B-bnb-4bit', 'Llama-3.1-8B-GGUF'];
  const names = [...Object.keys(presets), ...none, ...weights];
  withFiles({ 's/steps.csv': steps(...names.map((model) => ({ model, gpu: 'H200', tp: 4 })), { dtype: 'int8' }, { dtype: 'fp32' }, { dtype: 'mxfp4' }) }, (folder) => {
    const reasons = fidelity(folder).set('s/steps').skipped.map(({ reason }) => reason);
    for (const [i, name] of none.entries()) assert.equal(reasons[i], `no preset and no models/NAME.json for the model ${name}`);
    for (const reason of reasons.slice(none.length)) assert.match(reason, /weights in .* are (not modelled|modelled for experts only)/);
    assert.equal(reasons.length, none.length + weights.length + 3);
    const found = Object.fromEntries(rowsOf(folder).map((row) => [row.model, row.simulated_as.split(', ')[0]]));
    assert.deepEqual(found, presets);
  });
});

test('Fidelity_Engines_AreTheNearestPresetAndItIsSaid', () => {
  const presets = [['vllm', '0.12.0', 'vllm-0.11'], ['vLLM', '0.14', 'vllm-0.15'], ['vllm', '0.8.5', 'vllm-0.11'], ['vllm', '0.23.0+patch', 'vllm-0.23'], ['sglang', '0.5.1.post1', 'sglang'], ['TensorRT-LLM', '1.0.0rc3', 'trtllm'], ['vllm', 'main', 'vllm']];
  withFiles({ 's/steps.csv': steps(...presets.map(([engine, version], i) => ({ engine, version, batch: i + 1 })), { engine: 'lmdeploy' }) }, (folder) => {
    assert.deepEqual(rowsOf(folder).map((row) => row.simulated_as.split(', ')[2]), presets.map(([, , preset]) => preset));
    assert.deepEqual(fidelity(folder).set('s/steps').skipped.map(({ reason }) => reason), ['no preset for the engine lmdeploy']);
    const { stdout } = servecast('fidelity', '--data', folder);
    assert.match(stdout, /run as llama-3.1-8b, h100-sxm, vllm-0.11, the nearest engine: meta-llama\/Llama-3.1-8B, H100, vllm 0.12.0 \(1 rows\)/);
    assert.match(stdout, /run as llama-3.1-8b, h100-sxm, vllm-0.23: /);
  });
});

test('Fidelity_WhatNoColumnSays_TheFoldersNameDoes', () => {
  const lines = ['tp,batch,context_tokens,itl_p50_ms', '1,8,1000,20'];
  withFiles({ 'h100-vllm-0.16/qwen3-14b/steps.csv': lines, 'a100-pcie-llama-3.1-8b/steps.csv': lines, 'somewhere/steps.csv': lines }, (folder) => {
    const found = Object.fromEntries(rowsOf(folder).map((row) => [row.set, row.simulated_as]));
    assert.deepEqual(found, { 'a100-pcie-llama-3.1-8b/steps': 'llama-3.1-8b, a100-40gb, vllm', 'h100-vllm-0.16/qwen3-14b/steps': 'qwen3-14b, h100-sxm, vllm-0.15' });
    assert.equal(fidelity(folder).set('somewhere/steps').skipped.length, 1);
    const inside = rowsOf(join(folder, 'h100-vllm-0.16', 'qwen3-14b'));
    assert.equal(inside.length, 0, 'no GPU is named there');
  });
});

test('Fidelity_ReplicasAndStages_AreSimulatedOrSaid', () => {
  const header = 'model,gpu,tp,pp,dp,ep,engine,engine_version,request_rate_rps,num_prompts,input_dist,output_dist,tpot_mean_ms,e2e_mean_ms';
  const run = (model, pp, dp, ep, rate, tp = 1) => `${model},H100,${tp},${pp},${dp},${ep},vllm,0.15.1,${rate},400,"lognormal(median=256,sigma=0.8,[16,4096])",fixed(100),10,1000`;
  withFiles({ 'runs.csv': [header, run('Llama-3.1-8B', 1, 1, 1, 20), run('Llama-3.1-8B', '', 2, '', 40), run('Llama-3.1-8B', 1, 1, 1, 40), run('Llama-3.1-8B', 1, 1, 8, 20), run('Mixtral-8x7B', 1, 1, 2, 5, 2), run('Mixtral-8x7B', 1, 2, 1, 5, 2)] }, (folder) => {
    const { skipped } = fidelity(folder).set('runs');
    assert.match(skipped[0].reason, /expert parallelism/);
    assert.match(skipped[1].reason, /data parallelism of a mixture of experts/);
    assert.equal(skipped.length, 2);
    const [one, half, double, dense] = rowsOf(folder).filter((row) => row.metric === 'tpot').map((row) => Number(row.predicted));
    assert.ok(Math.abs(half / one - 1) < 0.05, 'two replicas at twice the rate');
    assert.ok(double > 1.1 * one);
    assert.equal(dense, one, 'a dense model has no experts to spread');
  });
  withFiles({ 's/steps.csv': [`${stepHeader},pp`, `${step()},2`, `${step()},x`] }, (folder) => {
    const [first, second] = fidelity(folder).set('s/steps').skipped;
    assert.match(first.reason, /pipeline/);
    assert.match(second.reason, /column pp: found "x"/);
  });
});

// --- models/NAME.json

const attention = { num_hidden_layers: 32, hidden_size: 4096, num_attention_heads: 32, vocab_size: 32000, max_position_embeddings: 8192 };
const qwen3moe = {
  architectures: ['Qwen3MoeForCausalLM'], model_type: 'qwen3_moe', attention_bias: false, decoder_sparse_step: 1, head_dim: 128, hidden_size: 2048, intermediate_size: 6144, max_position_embeddings: 40960, max_window_layers: 48, mlp_only_layers: [],
  moe_intermediate_size: 768, num_attention_heads: 32, num_experts: 128, num_experts_per_tok: 8, num_hidden_layers: 48, num_key_value_heads: 4, sliding_window: null, tie_word_embeddings: false, use_sliding_window: false, vocab_size: 151936,
};
const deepseek = {
  architectures: ['DeepseekV3ForCausalLM'], model_type: 'deepseek_v3', attention_bias: false, first_k_dense_replace: 3, hidden_size: 7168, intermediate_size: 18432, kv_lora_rank: 512, max_position_embeddings: 163840, moe_intermediate_size: 2048, moe_layer_freq: 1,
  n_routed_experts: 256, n_shared_experts: 1, num_attention_heads: 128, num_experts_per_tok: 8, num_hidden_layers: 61, num_key_value_heads: 128, num_nextn_predict_layers: 1, q_lora_rank: 1536, qk_nope_head_dim: 128, qk_rope_head_dim: 64, v_head_dim: 128, vocab_size: 129280,
  quantization_config: { activation_scheme: 'dynamic', fmt: 'e4m3', quant_method: 'fp8', weight_block_size: [128, 128] }, tie_word_embeddings: false,
};
const gptOss = {
  architectures: ['GptOssForCausalLM'], model_type: 'gpt_oss', attention_bias: true, experts_per_token: 4, head_dim: 64, hidden_size: 2880, intermediate_size: 2880, layer_types: Array.from({ length: 24 }, (_, i) => (i % 2 ? 'full_attention' : 'sliding_attention')), max_position_embeddings: 131072,
  num_attention_heads: 64, num_experts_per_tok: 4, num_hidden_layers: 24, num_key_value_heads: 8, num_local_experts: 32, quantization_config: { modules_to_not_convert: ['model.layers.*.self_attn', 'lm_head'], quant_method: 'mxfp4' }, sliding_window: 128, tie_word_embeddings: false, vocab_size: 201088,
};
const scout = {
  architectures: ['Llama4ForConditionalGeneration'], model_type: 'llama4', vision_config: { hidden_size: 1408 },
  text_config: { model_type: 'llama4_text', attention_bias: false, attention_chunk_size: 8192, head_dim: 128, hidden_size: 5120, interleave_moe_layer_step: 1, intermediate_size: 8192, intermediate_size_mlp: 16384, max_position_embeddings: 10485760, num_attention_heads: 40, num_experts_per_tok: 1, num_hidden_layers: 48, num_key_value_heads: 8, num_local_experts: 16, vocab_size: 202048 },
};
const gpt2 = { architectures: ['GPT2LMHeadModel'], model_type: 'gpt2', n_ctx: 1024, n_embd: 1600, n_head: 25, n_layer: 48, n_positions: 1024, n_inner: null, vocab_size: 50257 };

const shapes = [[1, 100], [1, 900], [64, 500], [512, 900]];
/** What steps of a model take, by its config or, of null, by its name alone. */
function stepTimes(name, config, sets = {}, tp = 8) {
  const files = { 's/steps.csv': steps(...shapes.map(([batch, context]) => ({ model: name, gpu: 'H200', tp, batch, context }))) };
  if (config) files[`models/${name}.json`] = JSON.stringify(config);
  return withFiles(files, (folder) => {
    const words = Object.entries(sets).flatMap(([key, value]) => ['--set', `model.${key}=${value}`]);
    const rows = rowsOf(folder, ...words);
    assert.equal(rows.length, shapes.length, JSON.stringify(fidelity(folder, ...words).sets[0].skipped[0]));
    return rows.map((row) => Number(row.predicted));
  });
}

test('Fidelity_ConfigsOfModelsWithAPreset_GiveThePresetsTimes', () => {
  const mixtral = { architectures: ['MixtralForCausalLM'], model_type: 'mixtral', ...attention, num_key_value_heads: 8, intermediate_size: 14336, max_position_embeddings: 32768, num_local_experts: 8, num_experts_per_tok: 2, sliding_window: null, tie_word_embeddings: false };
  const nemo = { architectures: ['MistralForCausalLM'], model_type: 'mistral', head_dim: 128, hidden_size: 5120, intermediate_size: 14336, max_position_embeddings: 1024000, num_attention_heads: 32, num_hidden_layers: 40, num_key_value_heads: 8, sliding_window: null, vocab_size: 131072 };
  const llama = { architectures: ['LlamaForCausalLM'], model_type: null, ...attention, head_dim: null, num_key_value_heads: 8, intermediate_size: 14336, vocab_size: 128256, max_position_embeddings: 131072, tie_word_embeddings: false };
  for (const [preset, config, tp] of [['DeepSeek-V3', deepseek], ['Qwen3-30B-A3B', qwen3moe], ['gpt-oss-20b', gptOss], ['Llama-4-Scout-17B-16E', scout], ['Mixtral-8x7B', mixtral], ['Mistral-Nemo', nemo], ['Llama-3.1-8B', llama], ['GPT2-XL', gpt2, 1]]) {
    assert.deepEqual(stepTimes('somebody-s-own', config, {}, tp), stepTimes(preset, null, {}, tp), preset);
  }
  // Eight KV heads on sixteen GPUs are copied, as of the preset.
  assert.deepEqual(stepTimes('somebody-s-own', llama, {}, 16), stepTimes('Llama-3.1-8B', null, {}, 16));
});

test('Fidelity_WhatAConfigLeavesOut_IsAsItsFamilyHasIt', () => {
  const plain = (members) => ({ architectures: ['OlmoeForCausalLM'], model_type: 'olmoe', ...members });
  // One config says it in its family's way, the other is plain and changed by --set.
  const same = (config, base, sets) => assert.deepEqual(stepTimes('its-own', config), stepTimes('its-own', plain(base), sets), JSON.stringify(config));
  const shape = { ...attention, num_key_value_heads: 8, intermediate_size: 14336 };
  const sampled = { top_p_by_default: true };

  // Gemma 3 12B: sizes of heads, vocabulary and windows are in no file.
  const gemma3 = { hidden_size: 3840, intermediate_size: 15360, num_hidden_layers: 48, num_attention_heads: 16, num_key_value_heads: 8 };
  same({ architectures: ['Gemma3ForConditionalGeneration'], model_type: 'gemma3', text_config: { model_type: 'gemma3_text', ...gemma3, sliding_window: 1024 } },
    { ...gemma3, head_dim: 256, vocab_size: 262208, max_position_embeddings: 131072 }, { ...sampled, sliding_window: 1024, num_sliding_layers: 40, tie_word_embeddings: true });
  const gemma2 = { hidden_size: 3584, intermediate_size: 14336, num_hidden_layers: 42, num_attention_heads: 16, num_key_value_heads: 8, head_dim: 256, vocab_size: 256000, max_position_embeddings: 8192 };
  same({ architectures: ['Gemma2ForCausalLM'], model_type: 'gemma2', ...gemma2, sliding_window: 512 }, gemma2, { ...sampled, sliding_window: 512, num_sliding_layers: 21, tie_word_embeddings: true });
  // Every layer of Phi-3 and of the first Mistral looks back so far only; those of Qwen when asked.
  same({ architectures: ['Phi3ForCausalLM'], model_type: 'phi3', ...shape, sliding_window: 300 }, shape, { sliding_window: 300, num_sliding_layers: 32 });
  same({ model_type: 'mistral', ...shape, sliding_window: 300 }, shape, { sliding_window: 300, num_sliding_layers: 32 });
  same({ model_type: 'qwen2', ...shape, sliding_window: 300 }, shape, { ...sampled, attention_bias: true });
  same({ model_type: 'qwen2', ...shape, sliding_window: 300, use_sliding_window: true, max_window_layers: 20 }, shape, { ...sampled, attention_bias: true, sliding_window: 300, num_sliding_layers: 12 });
  same({ model_type: 'qwen3', ...shape, hidden_size: 5120, num_attention_heads: 64 }, { ...shape, hidden_size: 5120, num_attention_heads: 64, head_dim: 128 }, sampled);
  // Layers with experts: of every second, of all but some, with a shared expert.
  const moe = { ...attention, num_key_value_heads: 8, intermediate_size: 8192, num_local_experts: 16, num_experts_per_tok: 1 };
  same({ architectures: ['Llama4ForConditionalGeneration'], text_config: { model_type: 'llama4_text', ...moe, interleave_moe_layer_step: 2, intermediate_size_mlp: 16384 } }, moe, { ...sampled, num_dense_layers: 16, dense_intermediate_size: 16384, shared_expert_intermediate_size: 8192 });
  const small = { ...moe, intermediate_size: 1408, num_local_experts: 60, num_experts_per_tok: 4 };
  same({ model_type: 'qwen2_moe', ...attention, num_key_value_heads: 8, intermediate_size: 5632, moe_intermediate_size: 1408, shared_expert_intermediate_size: 5632, num_experts: 60, num_experts_per_tok: 4, decoder_sparse_step: 1, mlp_only_layers: [0, 5] }, small,
    { ...sampled, attention_bias: true, shared_expert_intermediate_size: 5632, num_dense_layers: 2, dense_intermediate_size: 5632 });
});

test('Fidelity_WeightsOfAConfig_AreReadByTheirWriter', () => {
  const shape = { architectures: ['LlamaForCausalLM'], model_type: 'llama', ...attention, num_key_value_heads: 8, intermediate_size: 14336 };
  const groups = (num_bits, type) => ({ config_groups: { group_0: { targets: ['Linear'], weights: { num_bits, type, strategy: 'group' }, input_activations: { num_bits: 8, type: 'float' } } } });
  const times = Object.fromEntries(['none', 'fp8', 'int4', 'nvfp4'].map((type) => [type, stepTimes('its-own', shape, { quantization: type })]));
  for (const [type, quantization_config] of [
    ['none', null],
    ['fp8', { quant_method: 'fp8', activation_scheme: 'static' }], ['fp8', { quant_method: 'fbgemm_fp8' }], ['fp8', { quant_method: 'compressed-tensors', format: 'float-quantized', ...groups(8, 'float') }], ['fp8', { quant_method: 'modelopt', quant_algo: 'FP8' }],
    ['int4', { quant_method: 'awq', bits: 4, group_size: 128, version: 'gemm', modules_to_not_convert: ['fp8'] }], ['int4', { quant_method: 'gptq', bits: 4, desc_act: true }], ['int4', { quant_method: 'compressed-tensors', format: 'pack-quantized', kv_cache_scheme: { type: 'float', num_bits: 8, note: 'fp8' }, ...groups(4, 'int') }],
    ['nvfp4', { quant_method: 'modelopt', quant_algo: 'NVFP4', kv_cache_quant_algo: 'FP8' }], ['nvfp4', { quant_method: 'compressed-tensors', format: 'nvfp4-pack-quantized', ...groups(4, 'float') }],
  ]) {
    assert.deepEqual(stepTimes('its-own', { ...shape, quantization_config }), times[type], JSON.stringify(quantization_config));
  }
  for (const quantization_config of [{ quant_method: 'gptq', bits: 8 }, { quant_method: 'bitsandbytes', load_in_4bit: true }, { quant_method: 'compressed-tensors', format: 'int-quantized', ...groups(8, 'int') }, { quant_method: 4 }, 'fp8', {}]) {
    withFiles({ 's/steps.csv': steps({ model: 'its-own' }), 'models/its-own.json': JSON.stringify({ ...shape, quantization_config }) }, (folder) => {
      assert.match(fidelity(folder).set('s/steps').skipped[0].reason, /^models\/its-own.json: \/quantization_config: found .*, which is not modelled$/);
    });
  }
});

test('Fidelity_ConfigsThatAreNotModelled_AreLeftOutWithTheReason', () => {
  const shape = { ...attention, num_key_value_heads: 8, intermediate_size: 14336 };
  const cases = {
    'qwen3-next': [{ ...shape, model_type: 'qwen3_next', architectures: ['Qwen3NextForCausalLM'] }, /model_type: found qwen3_next, whose layers are not modelled; allowed llama, /],
    jamba: [{ ...shape, model_type: 'jamba' }, /found jamba/], mamba: [{ ...shape, model_type: 'mamba' }, /found mamba/], falcon: [{ ...shape, model_type: 'falcon' }, /found falcon/], neox: [{ ...shape, model_type: 'gpt_neox' }, /found gpt_neox/],
    bert: [{ ...shape, model_type: 'bert', architectures: ['BertForMaskedLM'] }, /architectures: found BertForMaskedLM/], t5: [{ ...shape, model_type: 't5', architectures: ['T5ForConditionalGeneration'] }, /found t5/],
    nameless: [{ ...shape, model_type: null }, /model_type: missing/], number: [{ ...shape, model_type: 7, architectures: 3 }, /model_type: missing/],
    negative: [{ ...shape, model_type: 'llama', num_hidden_layers: -32 }, /num_hidden_layers: found -32, allowed/], word: [{ ...shape, model_type: 'llama', hidden_size: 'wide' }, /hidden_size: found "wide"/],
    bare: [{ model_type: 'llama' }, /num_hidden_layers: missing/], uneven: [{ ...shape, model_type: 'llama', num_attention_heads: 30 }, /30 heads do not divide 4096/],
    linear: [{ ...shape, model_type: 'qwen3', layer_types: ['linear_attention', 'full_attention'] }, /layer_types: found "linear_attention"/],
    list: [[1, 2], /no JSON object/], inner: [{ model_type: 'llava', text_config: { model_type: null } }, /model_type: missing/],
  };
  const files = { 's/steps.csv': steps(...Object.keys(cases).map((model) => ({ model })), { model: 'broken' }), 'models/broken.json': '{"model_type": "llama", ' };
  for (const [name, [config]] of Object.entries(cases)) files[`models/${name}.json`] = JSON.stringify(config);
  withFiles(files, (folder) => {
    const { skipped, rows } = fidelity(folder).set('s/steps');
    assert.equal(rows, skipped.length);
    for (const [i, [name, [, reason]]] of Object.entries(cases).entries()) {
      assert.match(skipped[i].reason, reason, name);
      assert.ok(skipped[i].reason.startsWith(`models/${name}.json: `), skipped[i].reason);
    }
    assert.match(skipped.at(-1).reason, /^models\/broken.json: not JSON/);
  });
});

// --- files of requests

const runHeader = 'run,model,gpu,tp,engine,engine_version,target_rate_rps,stage,n_requests,input_tokens_mean,output_tokens_mean,ttft_mean_ms,e2e_mean_ms';
const run = (name, stage, n, rate, e2e = 400) => `${name},Llama-3.1-8B,H100,1,vllm,0.15.1,${rate},${stage},${n},500,50,30,${e2e}`;
const requestHeader = 'arrival_s,input_tokens,output_tokens,ttft_ms,e2e_ms';
const requests = (n, from, gap, e2e = 400) => Array.from({ length: n }, (_, i) => `${from + i * gap},500,50,30,${e2e}`);

test('Fidelity_FilesOfRequestsThatAreDamaged_AreReasonsOfTheirRowsAlone', () => {
  const whole = gzipSync([requestHeader, ...requests(200, 0, 0.2)].join('\n'));
  withFiles({
    's/summary.csv': [runHeader, run('good', '', 40, 5), run('cut', '', 40, 5), run('short', '', 40, 5), run('garbled', '', 40, 5), run('noise', '', 40, 5), run('drawn', '', 40, 5), run('../../x', '', 40, ''), run('empty', '', 40, 5)],
    's/requests/good.csv': [requestHeader, ...requests(40, 0, 0.2)], 's/requests/cut.csv.gz': whole.subarray(0, whole.length >> 1), 's/requests/short.csv': [requestHeader, ...requests(20, 0, 0.2)],
    's/requests/garbled.csv': [requestHeader, ...requests(20, 0, 0.2), '4,abc,50,30,400', ...requests(19, 5, 0.2)], 's/requests/noise.csv.gz': Buffer.from([0x1f, 0x8b, 8, 0, 1, 2, 3]), 's/requests/empty.csv': '',
    's/requests/nobodys.csv': [requestHeader, ...requests(3, 0, 0.2)],
  }, (folder) => {
    const { set } = fidelity(folder);
    const { e2e, skipped, rows } = set('s/summary');
    assert.equal(rows, 8);
    assert.equal(e2e.n, 2, 'good, and drawn by its rate');
    const reason = (row) => skipped.find((each) => each.row.startsWith(`row ${row}:`)).reason;
    assert.match(reason(2), /s\/requests\/cut.csv.gz: .*gzip/);
    assert.match(reason(3), /the file of requests ends after 20, and this needs 40/);
    assert.match(reason(4), /s\/requests\/garbled.csv, row 21, column input_tokens: found "abc"/);
    assert.match(reason(5), /s\/requests\/noise.csv.gz: /);
    assert.match(reason(7), /no column|nothing in column/);
    assert.match(reason(8), /s\/requests\/empty.csv: no requests in it/);
    assert.equal(set('s/requests/nobodys').skipped.length, 1);
  });
});

test('Fidelity_StagesInAnyOrderOrWithoutOthers_AreTheirOwnRequests', () => {
  const files = { 's/requests/a.csv': [requestHeader, ...requests(300, 0, 0.2, 300), ...requests(300, 60, 0.1, 500)] };
  const stages = [run('a', 0, 300, 5, 300), run('a', 1, 300, 10, 500), run('a', 'all', 600, '')];
  const measured = (...rows) => withFiles({ ...files, 's/summary.csv': [runHeader, ...rows] }, (folder) =>
    rowsOf(folder).filter((row) => row.metric === 'e2e').map((row) => [row.row, row.measured, row.predicted]).sort());
  const both = measured(...stages);
  assert.deepEqual(both.map(([row, mean]) => [row, mean]), [['a stage 0', '300'], ['a stage 1', '500']]);
  assert.deepEqual(measured(...[...stages].reverse()), both);
  assert.deepEqual(measured(stages[1]), [both[1]]);
  assert.deepEqual(measured(stages[0]), [both[0]]);
  withFiles({ ...files, 's/summary.csv': [runHeader, run('a', 1, 300, 10, 900)] }, (folder) => {
    assert.match(fidelity(folder).set('s/summary').skipped[0].reason, /the stages before it are missing/);
  });
});

test('Fidelity_APoolOfPromptsWithoutItsRequests_IsCached', () => {
  const header = 'experiment,model,gpu,tp,engine,engine_version,workload,stage,target_rate_rps,n_requests,input_tokens_mean,output_tokens_configured,max_num_seqs,ttft_mean_ms,e2e_mean_ms';
  const row = (stage) => `a,Llama-3.1-8B,H100,1,vllm,0.15.1,long,${stage},2,600,3000,50,128,30,500`;
  const ttft = (head, tail) => withFiles({ 's/summary.csv': [head, `${row(0)}${tail}`, `${row(1)}${tail}`] }, (folder) => {
    const rows = rowsOf(folder);
    return ['ttft', 'tpot'].map((metric) => rows.filter((each) => each.metric === metric).map((each) => Number(metric === 'ttft' ? each.predicted : each.measured)));
  });
  const [[cold, warm], tpot] = ttft(`${header},n_system_prompts`, ',9');
  const [[drawn]] = ttft(header, '');
  assert.ok(drawn > 2 * cold && cold > 1.2 * warm, `${drawn} ${cold} ${warm}`);
  assert.deepEqual(tpot, [9.59184, 9.59184], '(500 - 30) / 49');
});

test('Fidelity_ClosedLoopsOfConversations_AreNoServingRuns', () => {
  const header = 'model,gpu,engine,engine_version,exp_name,tp,bs,num_requests,mean_ttft_ms,mean_tpot_ms,mean_latency_ms';
  const row = (name) => `Llama-3.3-70B-Instruct-FP4,B200,vllm,0.15.0,${name},1,8,40,30,10,400`;
  const requestLines = ['relative_time_sec,ttft_ms,latency_ms,input_num_tokens,output_num_tokens,conversation_id', ...Array.from({ length: 40 }, (_, i) => `${i / 4},30,400,${100 + i},50,c${i % 4}`)];
  withFiles({ 's/summary.csv': [header, row('a'), row('b')], 's/requests/a.csv': requestLines }, (folder) => {
    const { overall, set } = fidelity(folder);
    assert.equal(set('s/summary').e2e.n, 1);
    assert.match(set('s/summary').skipped[0].reason, /^conversations without a file of requests/);
    assert.deepEqual(overall, {});
  });
});

test('Fidelity_WhatOneColumnSaysForAnother_IsTaken', () => {
  withFiles({
    'gpus.csv': ['model,gpu,num_gpus,batch,context_tokens,itl_p50_ms', 'Llama-3.1-8B,H100,1,8,100,8', 'Llama-3.1-8B,H100,4,8,100,8'],
    'groups.csv': ['model,gpu,parallelism,batch,context_tokens,itl_p50_ms', 'Llama-3.1-8B,H100,TP1,8,100,8', 'Llama-3.1-8B,H100,tp4_dp1,8,100,8', 'Llama-3.1-8B,H100,many,8,100,8'],
    'prompts.csv': ['model,gpu,prompt_tokens,concurrency,ttft_p50_ms', 'Llama-3.1-8B,H100,512,1,20', 'Llama-3.1-8B,H100,512,8,20'],
  }, (folder) => {
    const times = (set) => rowsOf(folder).filter((row) => row.set === set).map((row) => Number(row.predicted));
    assert.ok(times('gpus')[1] < 0.6 * times('gpus')[0]);
    assert.deepEqual(times('groups'), times('gpus'));
    const { set } = fidelity(folder);
    assert.match(set('groups').skipped[0].reason, /column parallelism: found "many", allowed tp, pp, dp or ep and a number/);
    assert.match(set('prompts').skipped[0].reason, /column concurrency: found "8", allowed 1/);
  });
});

test('Fidelity_RunsOfOneFileUnderTwoSetups_AreSimulatedEach', () => {
  const summary = [runHeader, run('a', '', 40, 5), run('a', '', 40, 5).replace('H100,1', 'H100,2')];
  withFiles({ 's/summary.csv': summary, 's/requests/a.csv': [requestHeader, ...requests(40, 0, 0.2)] }, (folder) => {
    const [one, two] = rowsOf(folder).filter((row) => row.metric === 'tpot').map((row) => Number(row.predicted));
    assert.ok(two < 0.9 * one, `${one} ${two}`);
  });
});

test('Fidelity_OneRunInTwoSets_CountsOnceOverAll', () => {
  const header = 'experiment,model,gpu,tp,engine_version,workload,stage,max_num_batched_tokens,target_rate_rps,input_tokens_nominal,output_tokens_configured,ttft_mean_ms,e2e_mean_ms';
  const row = (model, gpu, tokens, rate, ttft, e2e) => `x,${model},${gpu},1,0.15.1,general,0,${tokens},${rate},500,50,${ttft},${e2e}`;
  withFiles({
    'first/a.csv': [header, row('Llama-3.1-8B', 'H100', 2048, 2, 30.001, 400.004), row('Llama-3.1-8B', 'H100', 2048, 4, 31, 410)],
    'second/b.csv': [header, row('meta-llama/Llama-3.1-8B-Instruct', 'NVIDIA H100 80GB HBM3', 2048, 2, 30.0, 400.0), row('Llama-3.1-8B', 'H100', 1024, 4, 31, 410), row('Qwen3-14B', 'H100', 2048, 4, 31, 410), row('Llama-3.1-8B', 'H100', 2048, 2, 35, 480)],
  }, (folder) => {
    const { overall, set } = fidelity(folder);
    assert.equal(set('first/a').e2e.n, 2);
    assert.equal(set('second/b').e2e.n, 4, 'it is scored in its own set');
    assert.equal(overall.e2e.n, 4, 'repetitions are one run; other limits and other models are not');
    assert.match(servecast('fidelity', '--data', folder).stdout, /serving runs, each once +4 +1 /);
  });
});

// --- files and folders

test('Fidelity_TextAsPeopleWriteIt_IsRead', () => {
  const lines = steps({}, { batch: 16, itl: 9 });
  const text = `${lines.join('\n')}\n`;
  const reordered = lines.map((line) => line.split(',').reverse().join(','));
  const files = {
    crlf: text.replaceAll('\n', '\r\n'), cr: text.replaceAll('\n', '\r'), bom: `\ufeff${text}`, quoted: text.replace(/[^,\n]+/g, '"$&"'), comments: `# of today\n${lines[0]}\n\n# one\n${lines[1]}\n${lines[2]}`, reordered: `${reordered.join('\n')}\n`,
    extra: lines.map((line, i) => `${line},${i ? '"a, b"' : 'remark'}`).join('\n'), trailing: lines.map((line) => `${line},`).join('\n'), upper: text.replace(lines[0], lines[0].toUpperCase()), spaced: text.replaceAll(',', ' , '), tabs: text.replaceAll(',', '\t'),
    lines: `${lines[0]},remark\n${lines[1]},"a\nb"\n${lines[2]},c\n`,
  };
  withFiles(Object.fromEntries(Object.entries(files).map(([name, content]) => [`s/${name}.csv`, content])), (folder) => {
    const { sets } = fidelity(folder);
    assert.deepEqual(sets.map(({ name, rows, skipped, tpot }) => [name, rows, skipped.length, tpot?.n]), Object.keys(files).sort().map((name) => [`s/${name}`, 2, 0, 2]));
  });
});

test('Fidelity_FilesThatAreNoTables_AreNamedAndTheRestIsScored', () => {
  const good = steps({}, { batch: 16, itl: 9 });
  const cut = good.join('\n').slice(0, -20);
  withFiles({
    's/good.csv': good, 's/cut.csv': cut, 's/quote.csv': good.join('\n').replace('H100', '"H100'), 's/empty.csv': '', 's/header.csv': [stepHeader], 's/bad.csv.gz': gzipSync(good.join('\n')).subarray(0, 40), 's/utf16.csv': Buffer.from(good.join('\n'), 'utf16le'),
    's/weather.csv': ['day,rain', 'monday,1', 'tuesday,2'], 's/table.json': '{}', 's/README.md': 'about', 's/latin.csv': Buffer.from(good.join('\n').replace('H100', 'H100 \xe9\xff'), 'latin1'), 's/unknown.csv': Buffer.from(good.join('\n').replace('H100', 'Gl\xfcck'), 'latin1'),
  }, (folder) => {
    symlinkSync('..', join(folder, 's', 'loop'));
    symlinkSync('nowhere', join(folder, 's', 'dangling.csv'));
    const { set, sets } = fidelity(folder);
    assert.equal(set('s/good').tpot.n, 2);
    assert.deepEqual([set('s/cut').tpot.n, set('s/cut').skipped.map(({ reason }) => reason)], [1, ['s/cut.csv, row 2: found 5 cells, allowed 9, as many as columns']]);
    assert.equal(set('s/quote').tpot.n, 1);
    assert.equal(set('s/latin').tpot.n, 2);
    assert.equal(set('s/unknown').skipped[0].reason, 'no preset for the GPU Gl\ufffdck');
    for (const name of ['s/empty', 's/header', 's/bad', 's/table.json']) assert.equal(set(name).skipped.length, 1, name);
    assert.equal(set('s/weather').rows, 2);
    assert.match(set('s/weather').skipped[0].reason, /^not a known form; the forms are tables with columns prompt_tokens/);
    assert.equal(set('s/weather').skipped.length, 2);
    assert.equal(sets.some(({ name }) => name.includes('loop') || name.includes('README')), false);
  });
});

test('Fidelity_BytesThatAreNoUtf8_BecomeCharactersOfTheOutput', () => {
  const bytes = (text) => Buffer.from(text, 'latin1');
  const wild = '\xe9\xff\xc0\xaf\xed\xa0\x80\xf5\x1b[31m';
  withFiles({
    's/steps.csv': bytes(`${steps({}, { model: `o${wild}` }, { gpu: wild }, { engine: wild }, { dtype: wild }, { itl: wild }, { model: 'odd' }, { model: 'odder' }).join('\n')}\n`),
    's/weather.csv': bytes(`day${wild}\nx\n`), 'models/odd.json': bytes(`{"model_type": "x${wild}"}`), 'models/odder.json': bytes(`{${wild}`),
  }, (folder) => {
    for (const words of [['--json'], ['--rows'], []]) {
      const { stdout, status } = spawnSync(command, ['fidelity', '--data', folder, ...words]);
      assert.equal(status, 0);
      const text = new TextDecoder('utf-8', { fatal: true }).decode(stdout);
      assert.equal(text.includes('\x1b'), false, 'no control characters');
    }
    assert.equal(fidelity(folder).set('s/steps').rows, 8);
    assert.equal(fidelity(folder).set('s/steps').skipped.length, 7);
  });
});

test('Fidelity_AFolderWithNothing_HasATableOfNothing', () => {
  withFiles({}, (folder) => {
    const { overall, sets } = fidelity(folder);
    assert.deepEqual({ overall, sets }, { overall: {}, sets: [] });
    assert.equal(servecast('fidelity', '--data', folder).status, 0);
    assert.equal(servecast('fidelity', '--data', folder, '--rows').stdout.split('\n').length, 2);
  });
});

test('Fidelity_AHundredThousandRows_TakeSeconds', () => {
  const rows = Array.from({ length: 1e5 }, (_, i) => ({ batch: 1 + (i % 50), itl: 7 + i / 1e5 }));
  const stages = Array.from({ length: 2e4 }, (_, i) => `run${i % 100},Llama-3.1-8B,H100,1,general,${Math.floor(i / 100)},2,300,20,30,400`);
  withFiles({ 's/steps.csv': steps(...rows, ...rows.slice(0, 5).map(() => ({ itl: 'x' }))), 's/stages.csv': ['experiment,model,gpu,tp,workload,stage,target_rate_rps,input_tokens_nominal,output_tokens_configured,ttft_mean_ms,e2e_mean_ms', ...stages] }, (folder) => {
    const start = Date.now();
    const { set } = fidelity(folder);
    assert.ok(Date.now() - start < 60e3, `${Date.now() - start} ms`);
    assert.equal(set('s/steps').tpot.n, 1e5);
    assert.equal(set('s/steps').skipped.length, 5);
    assert.equal(set('s/stages').e2e.n, 2e4);
  });
});

test('Fidelity_BadArguments_AreRefused', () => {
  withFiles({ 's/steps.csv': steps({}) }, (folder) => {
    for (const set of ['nonsense', 'hardware.nonsense=1', 'hardware.compute_efficiency=7', '=']) {
      const { status, stdout, stderr } = servecast('fidelity', '--data', folder, '--set', set);
      assert.equal(status, 2, set);
      assert.equal(stdout, '');
      assert.notEqual(stderr, '');
    }
    const record = join(folder, '..', `${folder.split('/').at(-1)}.json`);
    const scored = { name: 's/steps', tpot: { median: 1, p90: 1, n: 1 } };
    const texts = ['[]', '7', 'null', '', '{', '{"sets": 1, "overall": {}}', '{"sets": [], "overall": []}', '{"sets": [1], "overall": {}}', '{"sets": [{"name": 5}], "overall": {}}', JSON.stringify({ sets: [{ ...scored, tpot: 3 }], overall: {} }),
      JSON.stringify({ sets: [{ ...scored, tpot: { median: 'x', p90: 1, n: 1 } }], overall: {} }), JSON.stringify({ sets: [{ ...scored, tpot: { median: 1, p90: 1, n: -1 } }], overall: {} }), JSON.stringify({ sets: [scored], overall: { e2e: null } })];
    for (const text of texts) {
      writeFileSync(record, text);
      const { status, stderr } = servecast('fidelity', '--data', folder, '--against', record);
      assert.equal(status, 2, text);
      assert.ok(stderr.startsWith(record), stderr);
    }
    writeFileSync(record, JSON.stringify({ sets: [scored], overall: {} }));
    assert.equal(servecast('fidelity', '--data', folder, '--against', record).status, 0);
    rmSync(record);
  });
});

test('Fidelity_Json_HasItsMembersAndNoOthers', () => {
  const folder = measurements();
  const { stdout } = servecast('fidelity', '--data', folder, '--json');
  const { engine_version: version, sets, overall, ...others } = JSON.parse(stdout);
  rmSync(folder, { recursive: true });
  assert.equal(typeof version, 'string');
  assert.deepEqual(others, {});
  const metrics = ['ttft', 'tpot', 'e2e', 'ttft_p99', 'throughput'];
  const areErrors = (errors) => {
    for (const [metric, error] of Object.entries(errors)) {
      assert.ok(metrics.includes(metric), metric);
      assert.deepEqual(Object.keys(error).sort(), ['median', 'n', 'p90']);
    }
  };
  areErrors(overall);
  for (const { name, rows, skipped, knees, ...errors } of sets) {
    assert.equal(typeof name, 'string');
    assert.ok(Number.isInteger(rows) && (knees === undefined || Array.isArray(knees)));
    for (const each of skipped) assert.deepEqual(Object.keys(each), ['row', 'reason']);
    areErrors(errors);
  }
});

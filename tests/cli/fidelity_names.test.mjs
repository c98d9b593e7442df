// What servecast fidelity takes the names of GPUs, models and engines for, and config files of models.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import test from 'node:test';
import { fidelity, rowsOf, servecast, step, stepHeader, steps, withFiles } from './measured_folders.mjs';

test('Fidelity_NamesOfGpus_MeanExactlyThePresetThatDescribesThem', () => {
  const presets = {
    'A100-PCIE-40GB (250W cap)': 'a100-40gb',
    'NVIDIA A100-SXM4-80GB': 'a100-80gb',
    a100_sxm: 'a100-80gb',
    'A100-80GB': 'a100-80gb',
    'A100 40 GB': 'a100-40gb',
    'A100 PCIe': 'a100-40gb',
    'NVIDIA H100 80GB HBM3': 'h100-sxm',
    'H100 (80GB SXM per repo datasheets/docs)': 'h100-sxm',
    '8xH100': 'h100-sxm',
    H100SXM5: 'h100-sxm',
    h200_sxm: 'h200-sxm',
    'NVIDIA H200 143771MiB': 'h200-sxm',
    'B200 192GB': 'b200-sxm',
    'NVIDIA L40S': 'l40s',
    'NVIDIA GeForce RTX 4090': 'rtx-4090',
    RTXPRO6000: 'rtx-pro-6000',
    'RTX PRO 6000 Blackwell Server Edition': 'rtx-pro-6000',
    'A100 80GB PCIe': 'a100-pcie-80gb',
    'A100-SXM4-40GB': 'a100-sxm-40gb',
    GB200: 'gb200',
    gb200_sxm: 'gb200',
    'GB300 NVL72': 'gb300',
    b300_sxm: 'b300-sxm',
    'NVIDIA H100 PCIe': 'h100-pcie',
    'H100 NVL': 'h100-nvl',
    'H100 94GB': 'h100-nvl',
    H20: 'h20',
    L40: 'l40',
    L4: 'l4',
    A10: 'a10',
    'NVIDIA A10G': 'a10g',
    'RTX 6000 Ada': 'rtx-6000-ada',
    'NVIDIA RTX A6000': 'rtx-a6000',
    'RTX 5090': 'rtx-5090',
    'AMD Instinct MI300X': 'mi300x',
    'GeForce RTX 3090': 'rtx-3090',
    'NVIDIA A40': 'a40',
    'Tesla V100-SXM2-32GB': 'v100-sxm',
    'Tesla T4': 't4',
    L20: 'l20',
    'A800-SXM4-80GB': 'a800-sxm',
    H800: 'h800-sxm',
    'H20-3e': 'h20-141gb',
    'GH200 480GB': 'gh200-96gb',
    'GH200 144GB': 'gh200-144gb',
    'DGX Spark': 'gb10',
    'RTX 4000 Ada Generation': 'rtx-4000-ada',
    'RTX 5000 Ada': 'rtx-5000-ada',
    MI325X: 'mi325x',
    MI355X: 'mi355x',
  };
  const none = [
    'A100 20GB',
    'GH200 480GB (H200)',
    'H200 NVL',
    'RTX 6000',
    'RTX 4090 Laptop',
    'RTX 4090 D',
    'RTX 5090 D',
    'RTX PRO 6000 Max-Q',
    'A100X',
    'V100 16GB',
    'RTX 3090 Ti',
    'MI350X',
    'H100 1g.10gb',
    'A100/H100',
  ];
  const names = [...Object.keys(presets), ...none];
  withFiles({ 's/steps.csv': steps(...names.map((gpu) => ({ gpu, model: 'Qwen3-0.6B' }))) }, (folder) => {
    const { skipped } = fidelity(folder).set('s/steps');
    assert.deepEqual(
      skipped.map(({ reason }) => reason),
      none.map((gpu) => `no preset for the GPU ${gpu}`),
    );
    const found = Object.fromEntries(rowsOf(folder).map((row) => [row.gpu, row.simulated_as.split(', ')[1]]));
    assert.deepEqual(found, presets);
  });
});

test('Fidelity_NamesOfModels_MeanAPresetAndItsWeights', () => {
  const presets = {
    'meta-llama/Llama-3.1-8B-Instruct': 'llama-3.1-8b',
    'RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic': 'llama-3.1-8b in fp8',
    'neuralmagic/Meta-Llama-3.1-8B-Instruct-quantized.w4a16': 'llama-3.1-8b in int4',
    'QWEN/qwen3-32b-awq': 'qwen3-32b in int4',
    'Qwen3-32B-GPTQ-Int4': 'qwen3-32b in int4',
    'nvidia/Llama-3.3-70B-Instruct-NVFP4': 'llama-3.3-70b in nvfp4',
    'Qwen_Qwen3-14B': 'qwen3-14b',
    'Qwen/Qwen3-30B-A3B-Instruct-2507-FP8': 'qwen3-30b-a3b in fp8',
    'mistralai/Mixtral-8x7B-Instruct-v0.1': 'mixtral-8x7b',
    'mistralai/Mistral-Nemo-Instruct-2407': 'mistral-nemo-12b',
    'openai/gpt-oss-20b': 'gpt-oss-20b in mxfp4',
    'codellama/CodeLlama-34b-Instruct-hf': 'codellama-34b',
    'meta-llama/Llama-4-Scout-17B-16E-Instruct': 'llama-4-scout-17b-16e',
    'nvidia/DeepSeek-R1-0528-FP4-v2': 'deepseek-v3 in nvfp4',
    'DeepSeek-V3.1-Terminus': 'deepseek-v3 in fp8',
    'Qwen/Qwen3-235B-A22B-Thinking-2507-FP8': 'qwen3-235b-a22b in fp8',
    'meta-llama/Llama-3.1-405B-Instruct-FP8': 'llama-3.1-405b in fp8',
    'meta-llama/Meta-Llama-3-8B': 'llama-3-8b',
    'Qwen/Qwen2.5-72B-Instruct': 'qwen2.5-72b',
    'google/gemma-3-27b-it': 'gemma-3-27b',
    'mistralai/Mistral-7B-Instruct-v0.3': 'mistral-7b-v0.3',
    'microsoft/Phi-3-mini-128k-instruct': 'phi-3-mini',
    'facebook/opt-66b': 'opt-66b',
    'deepseek-ai/DeepSeek-R1-Distill-Llama-8B': 'llama-3.1-8b',
    'meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8': 'llama-4-maverick-17b-128e in fp8',
    'Llama-3.1-8B-Instruct-quantized.w8a8': 'llama-3.1-8b in int8',
    'Llama-3.1-8B-GPTQ-Int8': 'llama-3.1-8b in int8_w8a16',
    'Llama-3.1-8B-bnb-4bit': 'llama-3.1-8b in nf4',
    'amd/Llama-3.3-70B-Instruct-MXFP4-Preview': 'llama-3.3-70b in mxfp4_all',
  };
  const none = ['gpt-oss', 'Llama-2', 'Qwen3', 'Qwen3-Next-80B-A3B', 'Yi-34B-200K', 'Qwen2.5-7B-Instruct-1M'];
  const weights = ['Llama-3.1-8B-GGUF'];
  const names = [...Object.keys(presets), ...none, ...weights];
  withFiles(
    {
      's/steps.csv': steps(
        ...names.map((model) => ({ model, gpu: 'H200', tp: 8 })),
        { dtype: 'int8' },
        { dtype: 'fp32' },
      ),
    },
    (folder) => {
      const reasons = fidelity(folder)
        .set('s/steps')
        .skipped.map(({ reason }) => reason);
      for (const [i, name] of none.entries())
        assert.equal(reasons[i], `no preset and no models/NAME.json for the model ${name}`);
      for (const reason of reasons.slice(none.length)) assert.match(reason, /weights in .* are not modelled/);
      assert.equal(reasons.length, none.length + weights.length + 2);
      const found = Object.fromEntries(rowsOf(folder).map((row) => [row.model, row.simulated_as.split(', ')[0]]));
      assert.deepEqual(found, presets);
    },
  );
});

test('Fidelity_PresetsOfMeasuredServers_AreFoundByTheirNamesAndRun', () => {
  const presets = new URL('../../presets/', import.meta.url);
  const menu = JSON.parse(readFileSync(new URL('menu.json', presets), 'utf8'));
  const ids = (kind) =>
    readdirSync(new URL(kind, presets))
      .map((name) => name.replace('.json', ''))
      .filter((id) => !menu[kind].includes(id));
  const models = ids('models'),
    gpus = ids('hardware');
  withFiles(
    {
      's/models.csv': steps(...models.map((model) => ({ model, gpu: 'B200' }))),
      's/gpus.csv': steps(...gpus.map((gpu) => ({ model: 'Qwen3-0.6B', gpu }))),
    },
    (folder) => {
      const rows = rowsOf(folder, '--set', 'hardware.memory_gib=4000');
      const found = (set, at) =>
        rows.filter((row) => row.set === set).map((row) => row.simulated_as.split(', ')[at].split(' in ')[0]);
      assert.deepEqual(found('s/models', 0), models);
      assert.deepEqual(found('s/gpus', 1), gpus);
    },
  );
});

test('Fidelity_Engines_AreTheNearestPresetAndItIsSaid', () => {
  const presets = [
    ['vllm', '0.12.0', 'vllm-0.11'],
    ['vLLM', '0.14', 'vllm-0.15'],
    ['vllm', '0.8.5', 'vllm-0.11'],
    ['vllm', '0.23.0+patch', 'vllm-0.23'],
    ['sglang', '0.5.1.post1', 'sglang-0.5.9'],
    ['sglang', 'main', 'sglang'],
    ['TensorRT-LLM', '1.0.0rc3', 'trtllm-1.0'],
    ['trtllm', 'main', 'trtllm'],
    ['vllm', 'main', 'vllm'],
    ['dynamo-trt', '1.1', 'trtllm-1.0'],
    ['dynamo-vllm', '0.19', 'vllm-0.19'],
    ['mori-sglang', '0.5.8', 'sglang-0.5.9'],
  ];
  withFiles(
    {
      's/steps.csv': steps(...presets.map(([engine, version], i) => ({ engine, version, batch: i + 1 })), {
        engine: 'lmdeploy',
      }),
    },
    (folder) => {
      assert.deepEqual(
        rowsOf(folder).map((row) => row.simulated_as.split(', ')[2]),
        presets.map(([, , preset]) => preset),
      );
      assert.deepEqual(
        fidelity(folder)
          .set('s/steps')
          .skipped.map(({ reason }) => reason),
        ['no preset for the engine lmdeploy'],
      );
      const { stdout } = servecast('fidelity', '--data', folder);
      assert.match(
        stdout,
        /run as llama-3.1-8b, h100-sxm, vllm-0.11, the nearest engine: meta-llama\/Llama-3.1-8B, H100, vllm 0.12.0 \(1 rows\)/,
      );
      assert.match(stdout, /run as llama-3.1-8b, h100-sxm, vllm-0.23: /);
    },
  );
});

test('Fidelity_WhatNoColumnSays_TheFoldersNameDoes', () => {
  const lines = ['tp,batch,context_tokens,itl_p50_ms', '1,8,1000,20'];
  withFiles(
    {
      'h100-vllm-0.16/qwen3-14b/steps.csv': lines,
      'a100-pcie-llama-3.1-8b/steps.csv': lines,
      'somewhere/steps.csv': lines,
    },
    (folder) => {
      const found = Object.fromEntries(rowsOf(folder).map((row) => [row.set, row.simulated_as]));
      assert.deepEqual(found, {
        'a100-pcie-llama-3.1-8b/steps': 'llama-3.1-8b, a100-40gb, vllm',
        'h100-vllm-0.16/qwen3-14b/steps': 'qwen3-14b, h100-sxm, vllm-0.15',
      });
      assert.equal(fidelity(folder).set('somewhere/steps').skipped.length, 1);
      const inside = rowsOf(join(folder, 'h100-vllm-0.16', 'qwen3-14b'));
      assert.equal(inside.length, 0, 'no GPU is named there');
    },
  );
});

test('Fidelity_ReplicasAndStages_AreSimulatedOrSaid', () => {
  const header =
    'model,gpu,tp,pp,dp,ep,engine,engine_version,request_rate_rps,num_prompts,input_dist,output_dist,tpot_mean_ms,e2e_mean_ms';
  const run = (model, pp, dp, ep, rate, tp = 1) =>
    `${model},H100,${tp},${pp},${dp},${ep},vllm,0.15.1,${rate},400,"lognormal(median=256,sigma=0.8,[16,4096])",fixed(100),10,1000`;
  withFiles(
    {
      'runs.csv': [
        header,
        run('Llama-3.1-8B', 1, 1, 1, 20),
        run('Llama-3.1-8B', '', 2, '', 40),
        run('Llama-3.1-8B', 1, 1, 1, 40),
        run('Llama-3.1-8B', 1, 1, 8, 20),
        run('Mixtral-8x7B', 1, 1, 4, 10, 2),
        run('Mixtral-8x7B', 1, 2, 4, 10, 2),
        run('Mixtral-8x7B', 1, 2, 1, 10, 2),
        run('Mixtral-8x7B', 1, 2, 8, 10, 2),
        run('Mixtral-8x7B', 1, 1, 3, 10, 2),
      ],
    },
    (folder) => {
      const { skipped } = fidelity(folder).set('runs');
      assert.deepEqual(
        skipped.map(({ reason }) => reason),
        ['experts over 8 GPUs, but attention on 2 groups of 2', 'experts over 3 GPUs, but attention on 1 groups of 2'],
      );
      const [one, half, double, dense, spread, ...shared] = rowsOf(folder)
        .filter((row) => row.metric === 'tpot')
        .map((row) => Number(row.predicted));
      assert.ok(Math.abs(half / one - 1) < 0.05, 'two replicas at twice the rate');
      assert.ok(double > 1.1 * one);
      assert.equal(dense, one, 'a dense model has no experts to spread');
      assert.equal(shared[0], spread, 'attention of its own where experts are spread over more GPUs');
      assert.ok(shared[1] < spread, 'slices of experts wait for no busiest GPU');
    },
  );
  withFiles({ 's/steps.csv': [`${stepHeader},pp`, `${step()},2`, `${step()},x`] }, (folder) => {
    const [first, second] = fidelity(folder).set('s/steps').skipped;
    assert.match(first.reason, /pipeline/);
    assert.match(second.reason, /column pp: found "x"/);
  });
});

// --- models/NAME.json

const attention = {
  num_hidden_layers: 32,
  hidden_size: 4096,
  num_attention_heads: 32,
  vocab_size: 32000,
  max_position_embeddings: 8192,
};
const qwen3moe = {
  architectures: ['Qwen3MoeForCausalLM'],
  model_type: 'qwen3_moe',
  attention_bias: false,
  decoder_sparse_step: 1,
  head_dim: 128,
  hidden_size: 2048,
  intermediate_size: 6144,
  max_position_embeddings: 40960,
  max_window_layers: 48,
  mlp_only_layers: [],
  moe_intermediate_size: 768,
  num_attention_heads: 32,
  num_experts: 128,
  num_experts_per_tok: 8,
  num_hidden_layers: 48,
  num_key_value_heads: 4,
  sliding_window: null,
  tie_word_embeddings: false,
  use_sliding_window: false,
  vocab_size: 151936,
};
const deepseek = {
  architectures: ['DeepseekV3ForCausalLM'],
  model_type: 'deepseek_v3',
  attention_bias: false,
  first_k_dense_replace: 3,
  hidden_size: 7168,
  intermediate_size: 18432,
  kv_lora_rank: 512,
  max_position_embeddings: 163840,
  moe_intermediate_size: 2048,
  moe_layer_freq: 1,
  n_routed_experts: 256,
  n_shared_experts: 1,
  num_attention_heads: 128,
  num_experts_per_tok: 8,
  num_hidden_layers: 61,
  num_key_value_heads: 128,
  num_nextn_predict_layers: 1,
  q_lora_rank: 1536,
  qk_nope_head_dim: 128,
  qk_rope_head_dim: 64,
  v_head_dim: 128,
  vocab_size: 129280,
  quantization_config: {
    activation_scheme: 'dynamic',
    fmt: 'e4m3',
    quant_method: 'fp8',
    weight_block_size: [128, 128],
  },
  tie_word_embeddings: false,
};
const gptOss = {
  architectures: ['GptOssForCausalLM'],
  model_type: 'gpt_oss',
  attention_bias: true,
  experts_per_token: 4,
  head_dim: 64,
  hidden_size: 2880,
  intermediate_size: 2880,
  layer_types: Array.from({ length: 24 }, (_, i) => (i % 2 ? 'full_attention' : 'sliding_attention')),
  max_position_embeddings: 131072,
  num_attention_heads: 64,
  num_experts_per_tok: 4,
  num_hidden_layers: 24,
  num_key_value_heads: 8,
  num_local_experts: 32,
  quantization_config: { modules_to_not_convert: ['model.layers.*.self_attn', 'lm_head'], quant_method: 'mxfp4' },
  sliding_window: 128,
  tie_word_embeddings: false,
  vocab_size: 201088,
};
const scout = {
  architectures: ['Llama4ForConditionalGeneration'],
  model_type: 'llama4',
  vision_config: { hidden_size: 1408 },
  text_config: {
    model_type: 'llama4_text',
    attention_bias: false,
    attention_chunk_size: 8192,
    head_dim: 128,
    hidden_size: 5120,
    interleave_moe_layer_step: 1,
    intermediate_size: 8192,
    intermediate_size_mlp: 16384,
    max_position_embeddings: 10485760,
    num_attention_heads: 40,
    num_experts_per_tok: 1,
    num_hidden_layers: 48,
    num_key_value_heads: 8,
    num_local_experts: 16,
    vocab_size: 202048,
  },
};
const gpt2 = {
  architectures: ['GPT2LMHeadModel'],
  model_type: 'gpt2',
  n_ctx: 1024,
  n_embd: 1600,
  n_head: 25,
  n_layer: 48,
  n_positions: 1024,
  n_inner: null,
  vocab_size: 50257,
};

const shapes = [
  [1, 100],
  [1, 900],
  [64, 500],
  [512, 700],
];
/** What steps of a model take, by its config or, of null, by its name alone. */
function stepTimes(name, config, sets = {}, tp = 8) {
  const files = {
    's/steps.csv': steps(...shapes.map(([batch, context]) => ({ model: name, gpu: 'H200', tp, batch, context }))),
  };
  if (config) files[`models/${name}.json`] = JSON.stringify(config);
  return withFiles(files, (folder) => {
    const words = Object.entries(sets).flatMap(([key, value]) => ['--set', `model.${key}=${value}`]);
    const rows = rowsOf(folder, ...words);
    assert.equal(rows.length, shapes.length, JSON.stringify(fidelity(folder, ...words).sets[0].skipped[0]));
    return rows.map((row) => Number(row.predicted));
  });
}

test('Fidelity_ConfigsOfModelsWithAPreset_GiveThePresetsTimes', () => {
  const mixtral = {
    architectures: ['MixtralForCausalLM'],
    model_type: 'mixtral',
    ...attention,
    num_key_value_heads: 8,
    intermediate_size: 14336,
    max_position_embeddings: 32768,
    num_local_experts: 8,
    num_experts_per_tok: 2,
    sliding_window: null,
    tie_word_embeddings: false,
  };
  const nemo = {
    architectures: ['MistralForCausalLM'],
    model_type: 'mistral',
    head_dim: 128,
    hidden_size: 5120,
    intermediate_size: 14336,
    max_position_embeddings: 1024000,
    num_attention_heads: 32,
    num_hidden_layers: 40,
    num_key_value_heads: 8,
    sliding_window: null,
    vocab_size: 131072,
  };
  const llama = {
    architectures: ['LlamaForCausalLM'],
    model_type: null,
    ...attention,
    head_dim: null,
    num_key_value_heads: 8,
    intermediate_size: 14336,
    vocab_size: 128256,
    max_position_embeddings: 131072,
    tie_word_embeddings: false,
  };
  for (const [preset, config, tp] of [
    ['DeepSeek-V3', deepseek],
    ['Qwen3-30B-A3B', qwen3moe],
    ['gpt-oss-20b', gptOss],
    ['Llama-4-Scout-17B-16E', scout],
    ['Mixtral-8x7B', mixtral],
    ['Mistral-Nemo', nemo],
    ['Llama-3.1-8B', llama],
    ['GPT2-XL', gpt2, 1],
  ]) {
    assert.deepEqual(stepTimes('somebody-s-own', config, {}, tp), stepTimes(preset, null, {}, tp), preset);
  }
  // Eight KV heads on sixteen GPUs are copied, as of the preset.
  assert.deepEqual(stepTimes('somebody-s-own', llama, {}, 16), stepTimes('Llama-3.1-8B', null, {}, 16));
});

test('Fidelity_WhatAConfigLeavesOut_IsAsItsFamilyHasIt', () => {
  const plain = (members) => ({ architectures: ['OlmoeForCausalLM'], model_type: 'olmoe', ...members });
  // One config says it in its family's way, the other is plain and changed by --set.
  const same = (config, base, sets) =>
    assert.deepEqual(stepTimes('its-own', config), stepTimes('its-own', plain(base), sets), JSON.stringify(config));
  const shape = { ...attention, num_key_value_heads: 8, intermediate_size: 14336 };
  const sampled = { top_p_by_default: true };

  // Gemma 3 12B: sizes of heads, vocabulary and windows are in no file.
  const gemma3 = {
    hidden_size: 3840,
    intermediate_size: 15360,
    num_hidden_layers: 48,
    num_attention_heads: 16,
    num_key_value_heads: 8,
  };
  same(
    {
      architectures: ['Gemma3ForConditionalGeneration'],
      model_type: 'gemma3',
      text_config: { model_type: 'gemma3_text', ...gemma3, sliding_window: 1024 },
    },
    { ...gemma3, head_dim: 256, vocab_size: 262208, max_position_embeddings: 131072 },
    { ...sampled, sliding_window: 1024, num_sliding_layers: 40, tie_word_embeddings: true },
  );
  const gemma2 = {
    hidden_size: 3584,
    intermediate_size: 14336,
    num_hidden_layers: 42,
    num_attention_heads: 16,
    num_key_value_heads: 8,
    head_dim: 256,
    vocab_size: 256000,
    max_position_embeddings: 8192,
  };
  same({ architectures: ['Gemma2ForCausalLM'], model_type: 'gemma2', ...gemma2, sliding_window: 512 }, gemma2, {
    ...sampled,
    sliding_window: 512,
    num_sliding_layers: 21,
    tie_word_embeddings: true,
  });
  // Every layer of Phi-3 and of the first Mistral looks back so far only; those of Qwen when asked.
  same({ architectures: ['Phi3ForCausalLM'], model_type: 'phi3', ...shape, sliding_window: 300 }, shape, {
    sliding_window: 300,
    num_sliding_layers: 32,
  });
  same({ model_type: 'mistral', ...shape, sliding_window: 300 }, shape, {
    sliding_window: 300,
    num_sliding_layers: 32,
  });
  same({ model_type: 'qwen2', ...shape, sliding_window: 300 }, shape, { ...sampled, attention_bias: true });
  same({ model_type: 'qwen2', ...shape, sliding_window: 300, use_sliding_window: true, max_window_layers: 20 }, shape, {
    ...sampled,
    attention_bias: true,
    sliding_window: 300,
    num_sliding_layers: 12,
  });
  same(
    { model_type: 'qwen3', ...shape, hidden_size: 5120, num_attention_heads: 64 },
    { ...shape, hidden_size: 5120, num_attention_heads: 64, head_dim: 128 },
    sampled,
  );
  // Layers with experts: of every second, of all but some, with a shared expert.
  const moe = {
    ...attention,
    num_key_value_heads: 8,
    intermediate_size: 8192,
    num_local_experts: 16,
    num_experts_per_tok: 1,
  };
  same(
    {
      architectures: ['Llama4ForConditionalGeneration'],
      text_config: { model_type: 'llama4_text', ...moe, interleave_moe_layer_step: 2, intermediate_size_mlp: 16384 },
    },
    moe,
    { ...sampled, num_dense_layers: 16, dense_intermediate_size: 16384, shared_expert_intermediate_size: 8192 },
  );
  const small = { ...moe, intermediate_size: 1408, num_local_experts: 60, num_experts_per_tok: 4 };
  same(
    {
      model_type: 'qwen2_moe',
      ...attention,
      num_key_value_heads: 8,
      intermediate_size: 5632,
      moe_intermediate_size: 1408,
      shared_expert_intermediate_size: 5632,
      num_experts: 60,
      num_experts_per_tok: 4,
      decoder_sparse_step: 1,
      mlp_only_layers: [0, 5],
    },
    small,
    {
      ...sampled,
      attention_bias: true,
      shared_expert_intermediate_size: 5632,
      num_dense_layers: 2,
      dense_intermediate_size: 5632,
    },
  );
});

test('Fidelity_ConfigsOfModelsWithoutGates_GiveThePresetsTimes', () => {
  const opt = {
    architectures: ['OPTForCausalLM'],
    model_type: 'opt',
    enable_bias: true,
    ffn_dim: 16384,
    hidden_size: 4096,
    max_position_embeddings: 2048,
    num_attention_heads: 32,
    num_hidden_layers: 32,
    vocab_size: 50272,
    word_embed_proj_dim: 4096,
  };
  const falcon7 = {
    architectures: ['FalconForCausalLM'],
    model_type: 'falcon',
    alibi: false,
    bias: false,
    hidden_size: 4544,
    multi_query: true,
    new_decoder_architecture: false,
    num_attention_heads: 71,
    num_hidden_layers: 32,
    parallel_attn: true,
    vocab_size: 65024,
  };
  const falcon40 = {
    ...falcon7,
    hidden_size: 8192,
    new_decoder_architecture: true,
    num_attention_heads: 128,
    num_hidden_layers: 60,
    num_kv_heads: 8,
  };
  const starcoder2 = {
    architectures: ['Starcoder2ForCausalLM'],
    model_type: 'starcoder2',
    hidden_size: 6144,
    intermediate_size: 24576,
    max_position_embeddings: 16384,
    num_attention_heads: 48,
    num_hidden_layers: 40,
    num_key_value_heads: 4,
    sliding_window: 4096,
    tie_word_embeddings: false,
    use_bias: true,
    vocab_size: 49152,
  };
  const neox = {
    architectures: ['GPTNeoXForCausalLM'],
    model_type: 'gpt_neox',
    hidden_size: 6144,
    intermediate_size: 24576,
    max_position_embeddings: 2048,
    num_attention_heads: 64,
    num_hidden_layers: 44,
    tie_word_embeddings: false,
    vocab_size: 50432,
  };
  for (const [preset, config, tp] of [
    ['opt-6.7b', opt],
    ['falcon-7b', falcon7, 1],
    ['falcon-40b', falcon40],
    ['starcoder2-15b', starcoder2],
    ['gpt-neox-20b', neox],
  ]) {
    assert.deepEqual(stepTimes('somebody-s-own', config, {}, tp), stepTimes(preset, null, {}, tp), preset);
  }
  // One KV head for all query heads, as in StarCoder; its parents had as many as query heads.
  const bigcode = {
    model_type: 'gpt_bigcode',
    n_embd: 2048,
    n_head: 16,
    n_layer: 24,
    n_inner: 8192,
    n_positions: 8192,
    vocab_size: 49152,
  };
  const [, , , one] = stepTimes('somebody-s-own', bigcode, {}, 1);
  const [, , , all] = stepTimes('somebody-s-own', { ...bigcode, multi_query: false }, {}, 1);
  assert.ok(all > 1.5 * one, `${all} and ${one}`);
  // The gate is a third of the MLP.
  const wide = { ...opt, hidden_size: 16384, word_embed_proj_dim: 16384 };
  const [gated] = stepTimes('somebody-s-own', wide, { mlp_matrices: 3, intermediate_size: 65536 });
  const [plain] = stepTimes('somebody-s-own', wide, { intermediate_size: 65536 });
  assert.ok(gated > 1.1 * plain && gated < 1.4 * plain, `${gated} and ${plain}`);
});

test('Fidelity_WeightsOfAConfig_AreReadByTheirWriter', () => {
  const shape = {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    ...attention,
    num_key_value_heads: 8,
    intermediate_size: 14336,
  };
  const groups = (num_bits, type) => ({
    config_groups: {
      group_0: {
        targets: ['Linear'],
        weights: { num_bits, type, strategy: 'group' },
        input_activations: { num_bits: 8, type: 'float' },
      },
    },
  });
  const times = Object.fromEntries(
    ['none', 'fp8', 'int4', 'nvfp4', 'int8_w8a16', 'nf4'].map((type) => [
      type,
      stepTimes('its-own', shape, { quantization: type }),
    ]),
  );
  for (const [type, quantization_config] of [
    ['none', null],
    ['fp8', { quant_method: 'fp8', activation_scheme: 'static' }],
    ['fp8', { quant_method: 'fbgemm_fp8' }],
    ['fp8', { quant_method: 'compressed-tensors', format: 'float-quantized', ...groups(8, 'float') }],
    ['fp8', { quant_method: 'modelopt', quant_algo: 'FP8' }],
    ['int4', { quant_method: 'awq', bits: 4, group_size: 128, version: 'gemm', modules_to_not_convert: ['fp8'] }],
    ['int4', { quant_method: 'gptq', bits: 4, desc_act: true }],
    [
      'int4',
      {
        quant_method: 'compressed-tensors',
        format: 'pack-quantized',
        kv_cache_scheme: { type: 'float', num_bits: 8, note: 'fp8' },
        ...groups(4, 'int'),
      },
    ],
    ['int8_w8a16', { quant_method: 'gptq', bits: 8 }],
    ['nf4', { quant_method: 'bitsandbytes', load_in_4bit: true }],
    ['nvfp4', { quant_method: 'modelopt', quant_algo: 'NVFP4', kv_cache_quant_algo: 'FP8' }],
    ['nvfp4', { quant_method: 'compressed-tensors', format: 'nvfp4-pack-quantized', ...groups(4, 'float') }],
  ]) {
    assert.deepEqual(
      stepTimes('its-own', { ...shape, quantization_config }),
      times[type],
      JSON.stringify(quantization_config),
    );
  }
  for (const quantization_config of [{ quant_method: 4 }, 'fp8', {}]) {
    withFiles(
      {
        's/steps.csv': steps({ model: 'its-own' }),
        'models/its-own.json': JSON.stringify({ ...shape, quantization_config }),
      },
      (folder) => {
        assert.match(
          fidelity(folder).set('s/steps').skipped[0].reason,
          /^models\/its-own.json: \/quantization_config: found .*, which (is|are) not modelled/,
        );
      },
    );
  }
});

test('Fidelity_ConfigsThatAreNotModelled_AreLeftOutWithTheReason', () => {
  const shape = { ...attention, num_key_value_heads: 8, intermediate_size: 14336 };
  const cases = {
    rwkv: [{ ...shape, model_type: 'rwkv7' }, /found rwkv7/],
    mamba: [{ ...shape, model_type: 'mamba' }, /found mamba/],
    mpt: [{ ...shape, model_type: 'mpt' }, /found mpt/],
    codegen: [{ ...shape, model_type: 'codegen' }, /found codegen/],
    'opt-350m': [{ ...shape, model_type: 'opt', word_embed_proj_dim: 512 }, /word_embed_proj_dim: found another/],
    bert: [
      { ...shape, model_type: 'bert', architectures: ['BertForMaskedLM'] },
      /architectures: found BertForMaskedLM/,
    ],
    t5: [{ ...shape, model_type: 't5', architectures: ['T5ForConditionalGeneration'] }, /found t5/],
    nameless: [{ ...shape, model_type: null }, /model_type: missing/],
    number: [{ ...shape, model_type: 7, architectures: 3 }, /model_type: missing/],
    negative: [{ ...shape, model_type: 'llama', num_hidden_layers: -32 }, /num_hidden_layers: found -32, allowed/],
    word: [{ ...shape, model_type: 'llama', hidden_size: 'wide' }, /hidden_size: found "wide"/],
    bare: [{ model_type: 'llama' }, /num_hidden_layers: missing/],
    uneven: [{ ...shape, model_type: 'llama', num_attention_heads: 30 }, /30 heads do not divide 4096/],
    linear: [
      { ...shape, model_type: 'qwen3', layer_types: ['linear_attention', 'full_attention'] },
      /layer_types: found "linear_attention"/,
    ],
    list: [[1, 2], /no JSON object/],
    inner: [{ model_type: 'llava', text_config: { model_type: null } }, /model_type: missing/],
  };
  const files = {
    's/steps.csv': steps(...Object.keys(cases).map((model) => ({ model })), { model: 'broken' }),
    'models/broken.json': '{"model_type": "llama", ',
  };
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

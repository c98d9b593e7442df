// servecast fidelity on closed loops of fixed lengths: which servers they are run on, and what checkpoints bring;
// and the rates that replayed runs are served at.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import test from 'node:test';
import { fidelity, rowsOf, servecast, withFiles } from './measured_folders.mjs';

const columns = [
  'id',
  'model',
  'gpu',
  'engine',
  'engine_version',
  'precision',
  'kv_dtype',
  'mode',
  'isl',
  'osl',
  'concurrency',
  'batch_size',
  'tp',
  'attention_dp',
  'moe_tp',
  'num_gpus',
  'moe_ep',
  'prefill_workers',
  'prefill_tp',
  'prefill_dp',
  'prefill_ep',
  'decode_workers',
  'decode_tp',
  'decode_dp',
  'decode_ep',
  'decode_batch',
  'length_range_ratio',
  'replicas',
  'ttft_ms',
  'tpot_ms',
  'tpot_p50_ms',
  'origin',
];
const usual = {
  model: 'meta-llama/Llama-3.1-70B',
  gpu: 'h200_sxm',
  engine: 'vllm',
  engine_version: '0.15.1',
  precision: 'fp8',
  mode: 'agg',
  isl: 2000,
  osl: 200,
  concurrency: 32,
  tp: 4,
  tpot_ms: 20,
};
const lines = (rows) => [
  columns.join(','),
  ...rows.map((row, i) => columns.map((name) => ({ ...usual, id: `r${i}`, ...row })[name] ?? '').join(',')),
];

/** The predicted TPOT of each row, null where it is left out, and the reasons of those. */
function loops(...rows) {
  return withFiles({ 's/loops.csv': lines(rows) }, (folder) => {
    const found = Object.fromEntries(rowsOf(folder).map((row) => [row.row.split(' ')[0], Number(row.predicted)]));
    return {
      tpot: rows.map((_, i) => found[`r${i}`] ?? null),
      reasons: fidelity(folder)
        .set('s/loops')
        .skipped.map(({ reason }) => reason),
    };
  });
}

const apart = { mode: 'disagg', tp: '', prefill_workers: 2, prefill_tp: 4, decode_workers: 1, decode_tp: 4 };

test('Fidelity_PrefillAndDecodeApart_RunInPoolsOfTheirOwn', () => {
  const {
    tpot: [together, split, more, wide],
    reasons,
  } = loops({}, apart, { ...apart, decode_workers: 2 }, { ...apart, decode_tp: 8 });
  assert.deepEqual(reasons, []);
  assert.ok(split < 0.9 * together, `no prefill beside decodes: ${split} and ${together}`);
  assert.ok(more < split, 'half of the requests each');
  assert.ok(wide < split);
  assert.deepEqual(
    loops({ ...apart, prefill_tp: '' }, { ...apart, decode_tp: 3 }, { ...apart, mode: 'both' }).reasons.map((reason) =>
      reason.replace(/^.*row \d+[:,] /, '').slice(0, 60),
    ),
    [
      'nothing in column prefill_tp',
      '/cluster/pools/0/tensor_parallel: found 3, allowed a divisor',
      'column mode: found "both", allowed agg or disagg',
    ],
  );
});

test('Fidelity_ARangeOfLengths_IsDrawnFrom', () => {
  const long = { isl: 8000, osl: 2000 };
  const { tpot } = loops(long, { ...long, length_range_ratio: 1 }, { ...long, length_range_ratio: 0.2 });
  assert.equal(tpot[1], tpot[0]);
  // Mean contexts are 0.6 of those: less to read for each token.
  assert.ok(tpot[2] < 0.97 * tpot[0], `${tpot}`);
});

test('Fidelity_Replicas_ShareTheClients', () => {
  const { tpot } = loops({ concurrency: 8 }, { concurrency: 32, replicas: 4 }, { concurrency: 32 });
  assert.ok(Math.abs(tpot[1] / tpot[0] - 1) < 0.1, `${tpot}`);
  assert.ok(tpot[2] > 1.15 * tpot[1], `${tpot}`);
});

test('Fidelity_FourBitsOfACheckpointInMxfp4_AreThose', () => {
  const oss = { model: 'openai/gpt-oss-120b', gpu: 'b200_sxm', isl: 1000 };
  const { tpot } = loops({ ...oss, precision: 'mxfp4' }, { ...oss, precision: 'fp4' }, { ...oss, precision: 'nvfp4' });
  assert.equal(tpot[1], tpot[0]);
  assert.notEqual(tpot[2], tpot[0]);
});

test('Fidelity_ABatchWithoutClients_IsAStep', () => {
  const clients = { concurrency: '' };
  const {
    tpot: [loop, batch, half, decode, none],
    reasons,
  } = loops(
    {},
    { ...clients, batch_size: 32 },
    { ...clients, batch_size: 16 },
    { ...apart, ...clients, decode_batch: 32 },
    clients,
  );
  assert.ok(batch < loop, 'without prefill beside it');
  assert.ok(half < batch);
  assert.equal(decode, batch, 'the batch of a replica that decodes');
  assert.equal(none, null);
  assert.match(reasons[0], /nothing in column concurrency/);
});

test('Fidelity_ExpertsOverReplicasOfAttention_AreShared', () => {
  const r1 = { model: 'deepseek-ai/DeepSeek-R1', engine: 'sglang', engine_version: '0.5', concurrency: 256 };
  const shapes = [
    { tp: 8, moe_tp: 8, moe_ep: 1 },
    { tp: 8, moe_tp: 1, moe_ep: 8 },
    { tp: 1, attention_dp: 8, moe_tp: 1, moe_ep: 8 },
    { tp: 1, attention_dp: 8, moe_tp: 8 },
    { tp: 1, moe_ep: 8 },
    { tp: 1, attention_dp: 16, moe_ep: 16 },
    { tp: 1, attention_dp: 1, moe_tp: 1, moe_ep: 8, num_gpus: 8 },
  ];
  const {
    tpot: [slices, whole, attention, sliced, unsaid, more, group],
    reasons,
  } = loops(
    ...shapes.map((shape) => ({ ...r1, ...shape })),
    { ...r1, tp: 4, attention_dp: 4, moe_ep: 32 },
    { ...r1, tp: 1, attention_dp: 4, moe_ep: 4 },
  );
  assert.ok(whole > slices, 'a step waits for the GPU whose experts are chosen most');
  assert.notEqual(attention, whole);
  assert.ok(sliced < attention);
  assert.equal(unsaid, attention);
  assert.ok(more < attention);
  assert.equal(group, whole, 'one replica of attention is over all GPUs');
  assert.equal(reasons[0], 'experts over 32 GPUs, but attention on 4 groups of 4');
  assert.match(reasons[1], /does not fit on 1 x H200/, 'a quarter of the experts on each GPU');
  const {
    tpot: [pools],
  } = loops({ ...r1, ...apart, prefill_tp: 8, decode_tp: 1, decode_dp: 8, decode_ep: 8 });
  assert.ok(pools < attention);
});

test('Fidelity_CheckpointsOfNvidia_BringAnEightBitCache', () => {
  const cache = (row) => {
    const {
      tpot: [unsaid, eight, sixteen],
    } = loops(row, { ...row, kv_dtype: 'fp8' }, { ...row, kv_dtype: 'bf16' });
    assert.ok(sixteen > eight, JSON.stringify(row));
    return unsaid === eight ? 'fp8' : unsaid === sixteen ? 'auto' : 'neither';
  };
  const long = { osl: 1500, concurrency: 128 };
  const trtllm = { ...long, engine: 'trtllm', engine_version: '1.0' };
  for (const [row, dtype] of [
    [trtllm, 'fp8'],
    [{ ...trtllm, precision: 'nvfp4', gpu: 'b200_sxm' }, 'fp8'],
    [{ ...trtllm, precision: '' }, 'auto'],
    [{ ...trtllm, kv_dtype: 'auto' }, 'fp8'],
    [{ ...trtllm, model: 'deepseek-ai/DeepSeek-R1', tp: 8 }, 'auto'],
    [long, 'auto'],
    [{ ...long, model: 'nvidia/Llama-3.1-70B-Instruct-FP8', precision: '' }, 'fp8'],
    [{ ...long, model: 'nvidia/Llama-3.1-70B-Instruct-FP8', engine_version: '0.10.2' }, 'auto'],
    [{ ...long, engine: 'sglang', engine_version: '0.5' }, 'auto'],
  ]) {
    assert.equal(cache(row), dtype, JSON.stringify(row));
  }
});

test('Fidelity_ReplayedRuns_HaveARateServedAndAKnee', () => {
  const header =
    'run,model,gpu,engine,engine_version,target_rate_rps,input_tokens_mean,output_tokens_mean,achieved_rps,preemptions';
  const rates = [5, 10, 100];
  const files = {
    's/summary.csv': [header, ...rates.map((rate) => `at${rate},Llama-3.1-8B,H100,vllm,0.15.1,${rate},500,50,1,0`)],
  };
  for (const rate of rates) {
    files[`s/requests/at${rate}.csv`] = [
      'arrival_s,input_tokens,output_tokens,ttft_ms,e2e_ms',
      ...Array.from({ length: 200 }, (_, i) => `${i / rate},500,50,20,40`),
    ];
  }
  withFiles(files, (folder) => {
    const { throughput, knees } = fidelity(folder).set('s/summary');
    assert.equal(throughput.n, 3);
    assert.deepEqual(
      knees.map(({ measured, predicted }) => [measured, predicted]),
      [
        [
          [100, null],
          [10, 100],
        ],
      ],
    );
    const rows = rowsOf(folder).filter(({ metric }) => metric === 'throughput');
    // Of the requests: 198 behind the cold start, from the first arrival to the last answer.
    assert.deepEqual(
      rows.map(({ measured }) => Number(measured)),
      rates.map((rate) => Number((198 / (197 / rate + 0.04)).toPrecision(6))),
    );
    assert.ok(
      Math.abs(Number(rows[0].predicted) / 5 - 1) < 0.02 && Number(rows[2].predicted) < 95,
      JSON.stringify(rows),
    );
  });
});

test('Fidelity_RunsWithMoreThanTheirRowsDescribe_AreLeftOut', () => {
  const header =
    'run,model,gpu,engine,engine_version,target_rate_rps,n_requests,input_tokens_mean,output_tokens_mean,tpot_mean_ms,offload,kv_offload_gib';
  const row = (name, offload, gib = '') => `${name},Llama-3.1-8B,H100,vllm,0.15.1,5,40,500,50,10,${offload},${gib}`;
  withFiles(
    {
      's/summary.csv': [
        header,
        row('agg_5rps', 'off'),
        row('agg_5rps', 'on'),
        row('disagg_5rps', ''),
        row('a', '', 0),
        row('b', '', 40),
      ],
    },
    (folder) => {
      assert.deepEqual(
        fidelity(folder)
          .set('s/summary')
          .skipped.map(({ reason }) => reason),
        [
          'KV offload to memory whose size is not stated',
          'prefill and decode on servers of their own that the row does not describe',
          'KV offload, and what of its prompts earlier runs left there is not stated',
        ],
      );
    },
  );
});

test('Fidelity_MedianTpot_IsNotComparedWithAMean', () => {
  const { tpot, reasons } = loops({}, { tpot_p50_ms: 18 }, { tpot_p50_ms: 20 });
  assert.equal(tpot[0], tpot[1]);
  assert.deepEqual(
    [tpot[2], reasons[0]],
    [null, 'TPOT is the median of requests (tpot_p50_ms), and means are compared'],
  );
});

test('Fidelity_LoopsBeyondTheGpusPeak_LeaveOutTheirWholeTest', () => {
  const cached = { ttft_ms: 10, tpot_ms: 1 };
  const possible = { ttft_ms: 500, tpot_ms: 20 };
  const { tpot, reasons } = loops(
    { ...cached, origin: 'a' },
    { ...possible, origin: 'a' },
    { ...possible, origin: 'b' },
    { ...possible, origin: 'a', gpu: 'h100_sxm' },
    cached,
    { tpot_ms: 1 },
  );
  assert.deepEqual(
    tpot.map((ms) => ms !== null),
    [false, false, true, true, false, true],
  );
  for (const reason of reasons)
    assert.match(reason, /^prompts were found in a cache .* would take 7\.\d\d of its time/);
});

test('Fidelity_SeveralFolders_AreReadOneAfterTheOther', () => {
  withFiles({ 'a/s/loops.csv': lines([{}]), 'b/t/loops.csv': lines([{}, {}]) }, (folder) => {
    const { set } = fidelity(join(folder, 'a'), '--data', join(folder, 'b'));
    assert.deepEqual([set('s/loops').rows, set('t/loops').rows], [1, 2]);
    const none = servecast('fidelity', '--data', join(folder, 'a'), '--data', join(folder, 'c'));
    assert.deepEqual([none.status, none.stdout], [2, '']);
    assert.match(none.stderr, /c: no such folder/);
  });
});

test('Fidelity_AScenarioBesideARow_SaysServerAndLoad', () => {
  const scenario = (seats) =>
    JSON.stringify({
      schema: 1,
      model: { preset: 'llama-3.1-8b' },
      hardware: { preset: 'h100-sxm' },
      engine: { preset: 'vllm-0.11', max_num_seqs: seats },
      workload: {
        arrivals: { process: 'static' },
        requests: 100,
        prompt_tokens: { distribution: 'fixed', value: 500 },
        output_tokens: { distribution: 'fixed', value: 50 },
      },
    });
  const header = 'row,model,gpu,tp,engine,engine_version,requests,osl,meas_duration_s,meas_ttft_ms,meas_tpot_ms';
  const files = {
    'lab/runs.csv': [
      header,
      'few,llama-3.1-8b,h100-sxm,1,vllm,0.11.0,100,50,2,500,10',
      'many,,,,,,,50,,500,10',
      'absent,,,,,,,,,1,1',
    ],
    'lab/scenarios/few.json': scenario(16),
    'lab/scenarios/many.json': scenario(100),
    'lab/scenarios/left.json': scenario(1),
  };
  withFiles(files, (folder) => {
    const rows = rowsOf(folder);
    const of = (row, metric) => Number(rows.find((each) => each.row === row && each.metric === metric).predicted);
    assert.ok(of('few', 'ttft') > 2 * of('many', 'ttft'), 'who has no seat waits');
    assert.ok(of('few', 'tpot') < of('many', 'tpot'));
    assert.ok(of('few', 'throughput') > 10, 'requests over the duration');
    const table = fidelity(folder);
    assert.match(table.set('lab/runs').skipped[0].reason, /scenarios\/absent\.json/);
    assert.match(table.set('lab/scenarios/left.json').skipped[0].reason, /no row of another file names/);
    // A setting of all rows wins over what the scenario says.
    const set = rowsOf(folder, '--set', 'engine.max_num_seqs=100');
    assert.equal(
      Number(set.find(({ row, metric }) => row === 'few' && metric === 'ttft').predicted),
      of('many', 'ttft'),
    );
  });
});

test('Fidelity_ClientsOfChatLengths_WaitForStatedSeats', () => {
  const header =
    'gpu,tp,model,weights,engine,engine_version,max_num_seqs,concurrency,isl_mean,osl_mean,output_tokens_per_s,ttft_mean_ms';
  const row = (seats) => `l40s,1,Qwen3-14B,awq,vllm,0.19,${seats},16,200,200,500,100`;
  withFiles({ 'chat.csv': [header, row(4), row(16), row('')] }, (folder) => {
    const ttft = rowsOf(folder).filter(({ metric }) => metric === 'ttft');
    const [few, all, unsaid] = ttft.map(({ predicted }) => Number(predicted));
    assert.ok(few > 5 * all, `${few}, ${all}`);
    assert.equal(unsaid, all);
    assert.equal(ttft[0].simulated_as, 'qwen3-14b in int4, l40s, vllm-0.19');
    assert.ok(rowsOf(folder).some(({ metric, measured }) => metric === 'throughput' && measured === '2.5'));
  });
});

test('Fidelity_OpenLoopsBehindRayServe_HaveItsRouterAndTheirMeans', () => {
  const header =
    'model,gpu,engine,engine_version,tp,replicas,request_rate_rps,input_dist,output_dist,num_prompts,ttft_ms,ttft_p99_ms,tpot_ms,tpot_p99_ms,source_repo';
  const row = (tokens, tpot, source) =>
    `Llama-3.1-8B,H100,vllm,0.15.0,1,4,20,fixed(4000),fixed(${tokens}),200,90,200,${tpot},${tpot},${source}`;
  const files = {
    'open.csv': [
      header,
      row(100, '8', 'anyscale/ray-serve-llm-perf-examples'),
      row(100, '8', 'a/b'),
      row(1, '0.000', 'a/b'),
    ],
  };
  withFiles(files, (folder) => {
    const [ray, other, single] = [1, 2, 3].map((at) => {
      const of = rowsOf(folder).filter((each) => each.metric === 'ttft_p99');
      return of[at - 1].predicted;
    });
    // Two prompts of one replica at a time: in turn that is rarer than at random.
    assert.ok(ray > 1.02 * other, `${ray} ${other}`);
    assert.ok(single > 0);
    const { set } = fidelity(folder);
    assert.deepEqual([set('open').ttft.n, set('open').tpot.n, set('open').tpot_p99.n], [3, 2, 2]);
  });
});

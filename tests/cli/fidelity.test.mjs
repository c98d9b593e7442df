// servecast fidelity on folders of every kind: what is scored, what is left out and why. What the
// errors themselves are is docs/fidelity.md's matter.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { gzipSync } from 'node:zlib';
import { command } from '../command.mjs';
import { fidelity, rowsOf, servecast, step, stepHeader, steps, withFiles } from './measured_folders.mjs';

/** A folder of measurements: decode steps, a run with its requests, a model by its config file. `edit` changes lines. */
function measurements(edit = (line) => line) {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  const write = (path, ...lines) => {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), `${(path.endsWith('.json') ? lines : lines.map(edit)).join('\n')}\n`);
  };
  write(
    'steps/decode.csv',
    'model,gpu,engine,batch,context_tokens,itl_p50_ms',
    'meta-llama/Llama-3.1-8B-Instruct,"H100 80GB, HBM3",vllm,1,~900-1100,7',
    'Qwen/Qwen3-14B,H100,vllm,8,1000,12',
    'Qwen/Qwen3-14B,TPU v5e,vllm,8,1000,12',
    'nobody/Small-1B,H100,vllm,8,1000,2',
  );
  write(
    'models/Small-1B.json',
    JSON.stringify({
      architectures: ['LlamaForCausalLM'],
      num_hidden_layers: 16,
      hidden_size: 2048,
      num_attention_heads: 32,
      num_key_value_heads: 8,
      intermediate_size: 8192,
      vocab_size: 128256,
      max_position_embeddings: 4096,
      tie_word_embeddings: true,
    }),
  );
  write(
    'served/summary.csv',
    'run,model,gpu,tp,engine,engine_version,target_rate_rps,n_requests,input_tokens_mean,output_tokens_mean,ttft_mean_ms,e2e_mean_ms',
    'first,meta-llama/Llama-3.1-8B,H100,1,vllm,0.15.1,5,40,500,50,30,400',
    'drawn,meta-llama/Llama-3.1-8B,H100,1,vllm,0.15.1,4,40,500,50,30,400.5',
  );
  write(
    'served/requests/first.csv',
    'arrival_s,input_tokens,output_tokens,ttft_ms,e2e_ms',
    ...Array.from({ length: 40 }, (_, i) => `${i * 0.2},500,50,30,400`),
  );
  const llama = 'meta-llama/Llama-3.1-8B,H100,vllm,0.15.1';
  write('forms/prompts.csv', 'model,gpu,engine,engine_version,prompt_tokens,ttft_p50_ms', `${llama},512,20`);
  write(
    'forms/prefixes.csv',
    'model,gpu,engine,engine_version,prefix_tokens,suffix_tokens,warm_ttft_p50_ms,cold_ttft_p50_ms',
    `${llama},4096,256,15,100`,
  );
  write(
    'forms/saturated.csv',
    'model,gpu,tp,max_num_seqs,avg_batch_size,avg_output_len,itl_p50_ms',
    'Qwen3-14B,H100,1,8,7.9,200,12',
  );
  write(
    'forms/loops.csv',
    'id,model,gpu,engine,engine_version,precision,isl,osl,concurrency,tp,tpot_ms',
    'one,Llama-3.1-8B,h200_sxm,sglang,0.5,fp8,1024,64,4,2,5',
    'two,Llama-3.1-8B,h200_sxm,vllm,0.12,int3,1024,64,4,2,5',
  );
  write(
    'forms/stages.csv',
    'experiment,model,gpu,tp,workload,stage(-1=all),target_rate_rps,input_tokens_nominal,output_tokens_configured,ttft_mean_ms,tpot_from_e2e_ms,e2e_mean_ms',
    'a,gpt2,H100,1,general,-1,,300,20,9,2,50',
    'a,gpt2,H100,1,general,0,1,300,20,9,2,50',
    'a,gpt2,H100,1,general,1,2,300,20,9.5,2,51',
  );
  write(
    'models/gpt2.json',
    JSON.stringify({ n_layer: 12, n_embd: 768, n_head: 12, n_positions: 1024, vocab_size: 50257 }),
  );
  write(
    'forms/sweep.csv',
    'model,gpu,engine,engine_version,run,point,request_rate_rps,num_prompts,input_dist,output_dist,output_tokens_mean,request_throughput_rps,tpot_mean_ms,preemptions',
    ...[1, 2, 400].map(
      (rate) =>
        `${llama},r,${rate},${rate},100,"lognormal(median=256,sigma=0.8,[16,4096])","lognormal(median=96,sigma=0.6,[8,768])",113,${Math.min(rate, 50)},8,0`,
    ),
  );
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
  assert.deepEqual(
    set('steps/decode').skipped.map(({ reason }) => reason),
    ['no preset for the GPU TPU v5e'],
  );
  assert.ok(set('steps/decode').tpot.median < 1);
  assert.equal(set('served/summary').ttft.n, 2);
  assert.equal(set('served/summary').ttft_p99.n, 1, 'of the requests alone');
  assert.equal(set('other').skipped.length, 1);
  for (const [name, metric, n, left] of [
    ['prompts', 'ttft', 1, 0],
    ['prefixes', 'ttft', 2, 0],
    ['saturated', 'tpot', 1, 0],
    ['loops', 'tpot', 1, 1],
    ['stages', 'e2e', 2, 1],
    ['sweep', 'tpot', 3, 0],
  ]) {
    assert.equal(set(`forms/${name}`)[metric].n, n, name);
    assert.ok(set(`forms/${name}`)[metric].median < 1, name);
    assert.equal(set(`forms/${name}`).skipped.length, left, name);
  }
  assert.deepEqual(set('forms/sweep').knees[0].predicted, [2, 400]);
  assert.equal(overall.e2e.n, 4);
  assert.match(
    servecast('fidelity', '--data', folder, '--rows').stdout,
    /^served\/summary,first,meta-llama\/Llama-3.1-8B,H100,1,vllm 0.15.1,5 rps,e2e,400,/m,
  );
  rmSync(folder, { recursive: true });
});

test('Fidelity_RowsThatCannotBe_AreLeftOutEachWithAReason', () => {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  mkdirSync(join(folder, 'bad'));
  const write = (name, ...lines) => writeFileSync(join(folder, 'bad', `${name}.csv`), `${lines.join('\n')}\n`);
  const llama = 'meta-llama/Llama-3.1-8B,H100,vllm,0.15.1';
  const sweep = (seats, block, rate, number) =>
    `${llama},${seats},${block},1000,${rate},${number},"lognormal(median=256,sigma=0.8,[16,4096])","lognormal(median=96,sigma=0.6,[8,768])",113,8`;
  write(
    'sweep',
    'model,gpu,engine,engine_version,max_num_seqs,block_size,kv_tokens,request_rate_rps,num_prompts,input_dist,output_dist,output_tokens_mean,tpot_mean_ms',
    sweep(0, 16, 1, 100),
    sweep(-4, 16, 1, 100),
    sweep(256, 0, 1, 100),
    sweep(256, -16, 1, 100),
    sweep(256, 16, 1, 1e12),
  );
  write(
    'loops',
    'id,model,gpu,engine,engine_version,precision,isl,osl,concurrency,tp,tpot_ms',
    'one,Llama-3.1-8B,h200_sxm,vllm,0.12,fp8,100,1000000000000000,1,2,5',
  );
  write('prompts', 'model,gpu,engine,engine_version,prompt_tokens,ttft_p50_ms', `${llama},200000,20`);
  const { status, stdout } = servecast('fidelity', '--data', folder, '--json');
  const { sets } = JSON.parse(stdout);
  assert.equal(status, 2);
  assert.deepEqual(
    sets.map(({ name, rows, skipped }) => [name, rows, skipped.length]),
    [
      ['bad/loops', 1, 1],
      ['bad/prompts', 1, 1],
      ['bad/sweep', 5, 5],
    ],
  );
  for (const { reason } of sets.flatMap(({ skipped }) => skipped)) assert.notEqual(reason, '');
  rmSync(folder, { recursive: true });
});

test('Fidelity_AnErrorThatHasGrown_FailsByName', () => {
  const folder = measurements();
  const record = join(folder, 'recorded.json');
  const wrong = servecast('fidelity', '--data', folder, '--record', record);
  const same = servecast('fidelity', '--data', folder, '--against', record);
  const worse = servecast(
    'fidelity',
    '--data',
    folder,
    '--against',
    record,
    '--set',
    'hardware.bandwidth_efficiency=0.1',
  );
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

test('Fidelity_ACellThatIsNoNumber_LeavesOutItsRowAndSaysWhere', () => {
  const bad = ['abc', '12x', 'nan', 'inf', '-5', '1e999', '0x10', '0', '1,000', '8.5.2'];
  withFiles({ 's/steps.csv': steps({}, ...bad.map((itl) => ({ itl })), { tp: '1.5' }, { batch: '' }) }, (folder) => {
    const { tpot, rows, skipped } = fidelity(folder).set('s/steps');
    assert.equal(rows, bad.length + 3);
    assert.equal(tpot.n, 1);
    for (const [i, found] of bad.entries()) {
      assert.match(skipped[i].row, new RegExp(`^row ${i + 2}: `));
      assert.equal(
        skipped[i].reason,
        `s/steps.csv, row ${i + 2}, column itl_p50_ms: found "${found}", allowed a number above 0`,
      );
    }
    assert.match(skipped.at(-2).reason, /column tp: found "1.5", allowed a whole number/);
    assert.match(skipped.at(-1).reason, /nothing in column batch or decode_batch/);
  });
});

test('Fidelity_EveryRowOfEveryForm_IsScoredOrLeftOut', () => {
  const rowsOfFile = {
    'steps/decode': 4,
    'served/summary': 2,
    other: 1,
    'forms/prompts': 1,
    'forms/prefixes': 1,
    'forms/saturated': 1,
    'forms/loops': 2,
    'forms/stages': 3,
    'forms/sweep': 3,
  };
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
  withFiles(
    {
      'steps.csv': ['model,gpu,batch,itl_p50_ms', 'Llama-3.1-8B,H100,8,8'],
      'loops.csv': ['isl,osl,concurrency,tpot_ms', '100,100,4,8'],
      'ok.csv': ['model,gpu,batch,context_tokens,itl_mean_ms', 'Llama-3.1-8B,H100,8,1000,8'],
    },
    (folder) => {
      const { set } = fidelity(folder);
      assert.match(set('steps').skipped[0].reason, /no column mean_context_tokens or context_tokens/);
      assert.equal(set('loops').skipped[0].reason, 'no model is named, by column or folder');
      assert.equal(set('ok').tpot.n, 1);
    },
  );
});

// --- files of requests

const runHeader =
  'run,model,gpu,tp,engine,engine_version,target_rate_rps,stage,n_requests,input_tokens_mean,output_tokens_mean,ttft_mean_ms,e2e_mean_ms';
const run = (name, stage, n, rate, e2e = 400) =>
  `${name},Llama-3.1-8B,H100,1,vllm,0.15.1,${rate},${stage},${n},500,50,30,${e2e}`;
const requestHeader = 'arrival_s,input_tokens,output_tokens,ttft_ms,e2e_ms';
const requests = (n, from, gap, e2e = 400) => Array.from({ length: n }, (_, i) => `${from + i * gap},500,50,30,${e2e}`);

test('Fidelity_FilesOfRequestsThatAreDamaged_AreReasonsOfTheirRowsAlone', () => {
  const whole = gzipSync([requestHeader, ...requests(200, 0, 0.2)].join('\n'));
  withFiles(
    {
      's/summary.csv': [
        runHeader,
        run('good', '', 40, 5),
        run('cut', '', 40, 5),
        run('short', '', 40, 5),
        run('garbled', '', 40, 5),
        run('noise', '', 40, 5),
        run('drawn', '', 40, 5),
        run('../../x', '', 40, ''),
        run('empty', '', 40, 5),
      ],
      's/requests/good.csv': [requestHeader, ...requests(40, 0, 0.2)],
      's/requests/cut.csv.gz': whole.subarray(0, whole.length >> 1),
      's/requests/short.csv': [requestHeader, ...requests(20, 0, 0.2)],
      's/requests/garbled.csv': [requestHeader, ...requests(20, 0, 0.2), '4,abc,50,30,400', ...requests(19, 5, 0.2)],
      's/requests/noise.csv.gz': Buffer.from([0x1f, 0x8b, 8, 0, 1, 2, 3]),
      's/requests/empty.csv': '',
      's/requests/nobodys.csv': [requestHeader, ...requests(3, 0, 0.2)],
    },
    (folder) => {
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
    },
  );
});

test('Fidelity_StagesInAnyOrderOrWithoutOthers_AreTheirOwnRequests', () => {
  const files = { 's/requests/a.csv': [requestHeader, ...requests(300, 0, 0.2, 300), ...requests(300, 60, 0.1, 500)] };
  const stages = [run('a', 0, 300, 5, 300), run('a', 1, 300, 10, 500), run('a', 'all', 600, '')];
  const measured = (...rows) =>
    withFiles({ ...files, 's/summary.csv': [runHeader, ...rows] }, (folder) =>
      rowsOf(folder)
        .filter((row) => row.metric === 'e2e')
        .map((row) => [row.row, row.measured, row.predicted])
        .sort(),
    );
  const both = measured(...stages);
  assert.deepEqual(
    both.map(([row, mean]) => [row, mean]),
    [
      ['a stage 0', '300'],
      ['a stage 1', '500'],
    ],
  );
  assert.deepEqual(measured(...[...stages].reverse()), both);
  assert.deepEqual(measured(stages[1]), [both[1]]);
  assert.deepEqual(measured(stages[0]), [both[0]]);
  withFiles({ ...files, 's/summary.csv': [runHeader, run('a', 1, 300, 10, 900)] }, (folder) => {
    assert.match(fidelity(folder).set('s/summary').skipped[0].reason, /the stages before it are missing/);
  });
});

test('Fidelity_APoolOfPromptsWithoutItsRequests_IsCached', () => {
  const header =
    'experiment,model,gpu,tp,engine,engine_version,workload,stage,target_rate_rps,n_requests,input_tokens_mean,output_tokens_configured,max_num_seqs,ttft_mean_ms,e2e_mean_ms';
  const row = (stage) => `a,Llama-3.1-8B,H100,1,vllm,0.15.1,long,${stage},2,600,3000,50,128,30,500`;
  const ttft = (head, tail) =>
    withFiles({ 's/summary.csv': [head, `${row(0)}${tail}`, `${row(1)}${tail}`] }, (folder) => {
      const rows = rowsOf(folder);
      return ['ttft', 'tpot'].map((metric) =>
        rows
          .filter((each) => each.metric === metric)
          .map((each) => Number(metric === 'ttft' ? each.predicted : each.measured)),
      );
    });
  const [[cold, warm], tpot] = ttft(`${header},n_system_prompts`, ',9');
  const [[drawn]] = ttft(header, '');
  assert.ok(drawn > 2 * cold && cold > 1.2 * warm, `${drawn} ${cold} ${warm}`);
  assert.deepEqual(tpot, [9.59184, 9.59184], '(500 - 30) / 49');
});

test('Fidelity_ClosedLoopsOfConversations_AreNoServingRuns', () => {
  const header =
    'model,gpu,engine,engine_version,exp_name,tp,bs,num_requests,mean_ttft_ms,mean_tpot_ms,mean_latency_ms';
  const row = (name) => `Llama-3.3-70B-Instruct-FP4,B200,vllm,0.15.0,${name},1,8,40,30,10,400`;
  const requestLines = [
    'relative_time_sec,ttft_ms,latency_ms,input_num_tokens,output_num_tokens,conversation_id',
    ...Array.from({ length: 40 }, (_, i) => `${i / 4},30,400,${100 + i},50,c${i % 4}`),
  ];
  withFiles({ 's/summary.csv': [header, row('a'), row('b')], 's/requests/a.csv': requestLines }, (folder) => {
    const { overall, set } = fidelity(folder);
    assert.equal(set('s/summary').e2e.n, 1);
    assert.match(set('s/summary').skipped[0].reason, /^conversations without a file of requests/);
    assert.deepEqual(Object.keys(overall), ['coverage']);
    assert.deepEqual(Object.keys(overall.coverage), ['e2e', 'tpot', 'tpot_p99', 'ttft', 'ttft_p99']);
  });
});

test('Fidelity_ClientsOfConversationsThatWait_SendWhenTheyAreAnswered', () => {
  const header = 'model,gpu,engine,engine_version,exp_name,tp,bs,num_requests,mean_latency_ms';
  const row = (name) => `Llama-3.1-8B,H100,vllm,0.15.0,${name},1,4,80,9000`;
  // Four clients, whose answers took 9 s; each prompt holds the one before and its answer.
  const lines = (every) => [
    'relative_time_sec,ttft_ms,latency_ms,input_num_tokens,output_num_tokens,conversation_id,client_id',
    ...Array.from({ length: 80 }, (_, i) => {
      const turn = Math.floor(i / 4);
      return `${turn * every + (i % 4) / 10},30,9000,${100 + 60 * turn},50,c${i % 4},${i % 4}`;
    }),
  ];
  withFiles(
    {
      's/summary.csv': [header, row('waits'), row('sends_before')],
      's/requests/waits.csv': lines(10),
      's/requests/sends_before.csv': lines(8),
    },
    (folder) => {
      const rows = rowsOf(folder);
      const of = (run, metric) => rows.find((each) => each.row === run && each.metric === metric);
      const served = of('waits', 'throughput');
      assert.ok(served.measured > 0.35 && served.measured < 0.45, `${served.measured}`);
      // A second of pause after each answer, which takes no 9 s here.
      assert.ok(served.predicted > 2 && served.predicted < 4, `${served.predicted}`);
      assert.equal(of('sends_before', 'throughput'), undefined);
    },
  );
});

test('Fidelity_WhatAServerDidBesideTheFileOfItsRequests_Counts', () => {
  const header = 'model,gpu,engine,engine_version,exp_name,tp,bs,server_generation_tokens,attention';
  const row = (name, made, attention = '') => `Llama-3.1-8B,H100,vllm,0.15.0,${name},1,1,${made},${attention}`;
  const requests = [
    'relative_time_sec,ttft_ms,latency_ms,input_num_tokens,output_num_tokens,conversation_id,client_id',
    ...Array.from({ length: 40 }, (_, i) => `${10 * i},30,900,100,50,c,me`),
  ];
  const log = (prompts) => [
    'relative_time_sec,prefix_queries',
    ...Array.from({ length: 2 * prompts }, (_, i) => `${5 * i},${40000 * Math.floor(1 + i / 2)}`),
  ];
  withFiles(
    {
      's/summary.csv': [
        header,
        row('as_counted_there', 2000),
        row('log_of_others', 2100),
        row('never_ended', 2300),
        row('kernels', 2000, 'use_trtllm_attention=0'),
      ],
      's/requests/as_counted_there.csv': requests,
      's/requests/as_counted_there__timeseries.csv': log(40),
      's/requests/log_of_others.csv': requests,
      's/requests/log_of_others__timeseries.csv': log(39),
      's/requests/never_ended.csv': requests,
      's/requests/kernels.csv': requests,
    },
    (folder) => {
      const rows = rowsOf(folder);
      const ttft = (run) => rows.find((each) => each.row === run && each.metric === 'ttft').predicted;
      assert.ok(ttft('as_counted_there') > 5 * ttft('log_of_others'));
      const reasons = fidelity(folder)
        .set('s/summary')
        .skipped.map((each) => each.reason);
      assert.match(reasons[0], /the server made 2300 tokens, and the requests in the file have 2000$/);
      assert.match(reasons[1], /^use_trtllm_attention=0: kernels/);
    },
  );
});

test('Fidelity_WhatOneColumnSaysForAnother_IsTaken', () => {
  withFiles(
    {
      'gpus.csv': [
        'model,gpu,num_gpus,batch,context_tokens,itl_p50_ms',
        'Llama-3.1-8B,H100,1,8,100,8',
        'Llama-3.1-8B,H100,4,8,100,8',
      ],
      'groups.csv': [
        'model,gpu,parallelism,batch,context_tokens,itl_p50_ms',
        'Llama-3.1-8B,H100,TP1,8,100,8',
        'Llama-3.1-8B,H100,tp4_dp1,8,100,8',
        'Llama-3.1-8B,H100,many,8,100,8',
      ],
      'prompts.csv': [
        'model,gpu,prompt_tokens,concurrency,ttft_p50_ms',
        'Llama-3.1-8B,H100,512,1,20',
        'Llama-3.1-8B,H100,512,8,20',
      ],
    },
    (folder) => {
      const times = (set) =>
        rowsOf(folder)
          .filter((row) => row.set === set)
          .map((row) => Number(row.predicted));
      assert.ok(times('gpus')[1] < 0.6 * times('gpus')[0]);
      assert.deepEqual(times('groups'), times('gpus'));
      const { set } = fidelity(folder);
      assert.match(
        set('groups').skipped[0].reason,
        /column parallelism: found "many", allowed tp, pp, dp or ep and a number/,
      );
      assert.match(set('prompts').skipped[0].reason, /column concurrency: found "8", allowed 1/);
    },
  );
});

test('Fidelity_RunsOfOneFileUnderTwoSetups_AreSimulatedEach', () => {
  const summary = [runHeader, run('a', '', 40, 5), run('a', '', 40, 5).replace('H100,1', 'H100,2')];
  withFiles({ 's/summary.csv': summary, 's/requests/a.csv': [requestHeader, ...requests(40, 0, 0.2)] }, (folder) => {
    const [one, two] = rowsOf(folder)
      .filter((row) => row.metric === 'tpot')
      .map((row) => Number(row.predicted));
    assert.ok(two < 0.9 * one, `${one} ${two}`);
  });
});

test('Fidelity_OneRunInTwoSets_CountsOnceOverAll', () => {
  const header =
    'experiment,model,gpu,tp,engine_version,workload,stage,max_num_batched_tokens,target_rate_rps,input_tokens_nominal,output_tokens_configured,ttft_mean_ms,e2e_mean_ms';
  const row = (model, gpu, tokens, rate, ttft, e2e) =>
    `x,${model},${gpu},1,0.15.1,general,0,${tokens},${rate},500,50,${ttft},${e2e}`;
  withFiles(
    {
      'first/a.csv': [
        header,
        row('Llama-3.1-8B', 'H100', 2048, 2, 30.001, 400.004),
        row('Llama-3.1-8B', 'H100', 2048, 4, 31, 410),
      ],
      'second/b.csv': [
        header,
        row('meta-llama/Llama-3.1-8B-Instruct', 'NVIDIA H100 80GB HBM3', 2048, 2, 30.0, 400.0),
        row('Llama-3.1-8B', 'H100', 1024, 4, 31, 410),
        row('Qwen3-14B', 'H100', 2048, 4, 31, 410),
        row('Llama-3.1-8B', 'H100', 2048, 2, 35, 480),
      ],
    },
    (folder) => {
      const { overall, set } = fidelity(folder);
      assert.equal(set('first/a').e2e.n, 2);
      assert.equal(set('second/b').e2e.n, 4, 'it is scored in its own set');
      assert.equal(overall.e2e.n, 4, 'repetitions are one run; other limits and other models are not');
      assert.match(servecast('fidelity', '--data', folder).stdout, /serving runs, each once +4 +1 /);
    },
  );
});

// --- what cannot have been measured

test('Fidelity_DecodeStepsThatNoGpuHeld_AreLeftOut', () => {
  const seats = (batch, most, dp = 1) => `${step({ batch })},${most},${dp}`;
  withFiles(
    {
      'held.csv': steps(
        {},
        { context: 131072, batch: 1 },
        { context: 131073, batch: 1 },
        { context: 4000, batch: 100 },
        { context: 40000, batch: 100 },
        { context: 40000, batch: 100, tp: 8 },
      ),
      'seats.csv': [`${stepHeader},max_num_seqs,dp`, seats(8, 8), seats(9, 8), seats(16, 8, 2), seats(17, 8, 2)],
    },
    (folder) => {
      const { set } = fidelity(folder);
      assert.equal(set('held').tpot.n, 4);
      const reasons = set('held').skipped.map(({ row, reason }) => [row.slice(0, 5), reason]);
      assert.deepEqual(reasons[0], ['row 3', "a mean context of 131073 tokens, beyond the model's length of 131072"]);
      assert.equal(reasons[1][0], 'row 5');
      assert.match(reasons[1][1], /^100 contexts of 40000 tokens, beyond the 4\d{5} tokens of the KV cache$/);
      assert.equal(set('seats').tpot.n, 2);
      assert.deepEqual(
        set('seats').skipped.map(({ reason }) => reason),
        [
          'seats.csv, row 2, column batch: found "9", allowed at most 8, by max_num_seqs',
          'seats.csv, row 4, column batch: found "17", allowed at most 16, by max_num_seqs',
        ],
      );
    },
  );
});

test('Fidelity_RequestsThatNoServerTakes_HaveThatAsTheirReason', () => {
  const llama = 'Llama-3.1-8B,H100,vllm,0.15.1';
  const stages =
    'experiment,model,gpu,tp,workload,stage,target_rate_rps,input_tokens_nominal,output_tokens_configured,ttft_mean_ms,e2e_mean_ms';
  const sweep = (rate, lengths) => `${llama},${rate},100,"${lengths}",50,9`;
  withFiles(
    {
      'prompts.csv': [
        'model,gpu,engine,engine_version,prompt_tokens,kv_blocks,ttft_p50_ms',
        `${llama},131071,,9000`,
        `${llama},131072,,9000`,
        `${llama},991,63,90`,
        `${llama},992,63,90`,
      ],
      'loops.csv': [
        'model,gpu,engine,engine_version,precision,isl,osl,concurrency,tp,tpot_ms',
        `${llama},bf16,131000,73,2,1,9`,
      ],
      'seats.csv': [
        'model,gpu,tp,dp,max_num_seqs,avg_batch_size,avg_output_len,itl_p50_ms',
        'Qwen3-14B,H100,1,1,8,7.9,60000,12',
        'Qwen3-14B,H100,1,100,2000,7.9,200,12',
      ],
      'stages.csv': [
        stages,
        'a,Llama-3.1-8B,H100,1,general,0,1000,300,20,30,400',
        'b,Llama-3.1-8B,H100,1,general,0,0.2,300,20,30,400',
      ],
      'sweep.csv': [
        'model,gpu,engine,engine_version,request_rate_rps,num_prompts,input_dist,output_dist,tpot_mean_ms',
        sweep(1e-9, '500'),
        sweep(1e7, '500'),
        sweep(5, 'lognormal(median=500000,sigma=0.1,[400000,900000])'),
        sweep(5, '500'),
      ],
      'requests.csv': [runHeader, run('long', '', 40, 5)],
      'requests/long.csv': [requestHeader, ...requests(40, 0, 0.2).map((line) => line.replace(',500,', ',500000,'))],
    },
    (folder) => {
      const { set } = fidelity(folder);
      const reasons = (name) => set(name).skipped.map(({ row, reason }) => `${row.slice(0, 5)}: ${reason}`);
      assert.deepEqual(reasons('prompts'), [
        "row 2: a prompt of 131072 tokens and 1 of output, beyond the model's length of 131072",
        'row 4: a prompt of 992 tokens and 1 of output, beyond the 992 tokens of the KV cache',
      ]);
      assert.deepEqual(reasons('loops'), [
        "row 1: a prompt of 131000 tokens and 73 of output, beyond the model's length of 131072",
      ]);
      assert.deepEqual(reasons('seats'), [
        "row 1: a prompt of 200 tokens and 60000 of output, beyond the model's length of 40960",
        'row 2: found 200000 clients of all replicas, allowed at most 100000',
      ]);
      assert.deepEqual(reasons('stages'), [
        'row 1: stages.csv, row 1, column target_rate_rps: found "1000", allowed at most 833 requests/s: 1200 s at this rate are simulated, and of no more than 1000000 requests',
      ]);
      assert.deepEqual(reasons('sweep'), [
        'row 1: sweep.csv, row 1, column request_rate_rps: found "1e-9", allowed at least 1e-05 requests/s: no more than 10000000 s are simulated',
        'row 2: sweep.csv, row 2, column request_rate_rps: found "10000000", allowed a number above 0 to 1000000',
        "row 3: every request is longer than the model's length or the KV cache allows",
      ]);
      assert.deepEqual(reasons('requests'), [
        "row 1: every request is longer than the model's length or the KV cache allows",
      ]);
    },
  );
});

test('Fidelity_CellsThatCannotBe_LeaveOutTheirRow', () => {
  const header = 'model,gpu,engine,engine_version,request_rate_rps,num_prompts,input_dist,output_dist,tpot_mean_ms';
  const row = (lengths) => `Llama-3.1-8B,H100,vllm,0.15.1,5,40,"${lengths}",50,9`;
  const good = [
    '500',
    'fixed(500)',
    'lognormal(median=256,sigma=0.8,[16,4096])',
    'lognormal(median=256,sigma=0.8,[16-4096])',
    'lognormal(256, 0.8)',
  ];
  const bad = [
    '-500',
    'fixed(-500)',
    'fixed(.5)',
    'lognormal(median=-1,sigma=0.8,[16,4096])',
    'lognormal(median=256,sigma=-0.8)',
    'lognormal(median=256,sigma=0.8,[-16,4096])',
    'lognormal(median=x,sigma=2)',
    'lognormal(-256, 0.8)',
  ];
  const early = requests(40, 0, 0.2).with(3, '-5,500,50,30,400');
  const twice = (text, column) => [`${stepHeader},${column}`, ...[0, 1].map(() => `${step()},${text}`)];
  withFiles(
    {
      'sweep.csv': [header, ...good.map(row), ...bad.map(row)],
      'runs/summary.csv': [runHeader, run('early', '', 40, 5), run('doubled', '', 40, 5)],
      'runs/requests/early.csv': [requestHeader, ...early],
      'runs/requests/doubled.csv': [
        `${requestHeader},Output_Tokens`,
        ...requests(40, 0, 0.2).map((line) => `${line},70`),
      ],
      'twice.csv': twice(16, 'Batch'),
      'remarks.csv': [`${stepHeader},remark,remark`, `${step()},a,b`],
    },
    (folder) => {
      const { set } = fidelity(folder);
      assert.equal(set('sweep').tpot.n, good.length);
      assert.equal(set('sweep').skipped.length, bad.length);
      for (const [i, { reason }] of set('sweep').skipped.entries()) {
        assert.ok(
          reason.startsWith(`sweep.csv, row ${good.length + 1 + i}, column input_dist: found "${bad[i]}", allowed `),
          reason,
        );
      }
      assert.deepEqual(
        set('runs/summary').skipped.map(({ reason }) => reason),
        [
          'runs/requests/early.csv, row 4, column arrival_s: found "-5", allowed a number from 0 to 10000000000',
          'runs/requests/doubled.csv, row 1: column output_tokens is there twice',
        ],
      );
      assert.deepEqual(
        set('twice').skipped.map(({ reason }) => reason),
        [1, 2].map((each) => `twice.csv, row ${each}: column batch is there twice`),
      );
      assert.equal(set('remarks').tpot.n, 1, 'a column that nobody reads');
    },
  );
});

// --- files and folders

test('Fidelity_TextAsPeopleWriteIt_IsRead', () => {
  const lines = steps({}, { batch: 16, itl: 9 });
  const text = `${lines.join('\n')}\n`;
  const reordered = lines.map((line) => line.split(',').reverse().join(','));
  const files = {
    crlf: text.replaceAll('\n', '\r\n'),
    cr: text.replaceAll('\n', '\r'),
    bom: `\ufeff${text}`,
    quoted: text.replace(/[^,\n]+/g, '"$&"'),
    comments: `# of today\n${lines[0]}\n\n# one\n${lines[1]}\n${lines[2]}`,
    reordered: `${reordered.join('\n')}\n`,
    extra: lines.map((line, i) => `${line},${i ? '"a, b"' : 'remark'}`).join('\n'),
    trailing: lines.map((line) => `${line},`).join('\n'),
    upper: text.replace(lines[0], lines[0].toUpperCase()),
    spaced: text.replaceAll(',', ' , '),
    tabs: text.replaceAll(',', '\t'),
    lines: `${lines[0]},remark\n${lines[1]},"a\nb"\n${lines[2]},c\n`,
  };
  withFiles(
    Object.fromEntries(Object.entries(files).map(([name, content]) => [`s/${name}.csv`, content])),
    (folder) => {
      const { sets } = fidelity(folder);
      assert.deepEqual(
        sets.map(({ name, rows, skipped, tpot }) => [name, rows, skipped.length, tpot?.n]),
        Object.keys(files)
          .sort()
          .map((name) => [`s/${name}`, 2, 0, 2]),
      );
    },
  );
});

test('Fidelity_FilesThatAreNoTables_AreNamedAndTheRestIsScored', () => {
  const good = steps({}, { batch: 16, itl: 9 });
  const cut = good.join('\n').slice(0, -20);
  withFiles(
    {
      's/good.csv': good,
      's/cut.csv': cut,
      's/quote.csv': good.join('\n').replace('H100', '"H100'),
      's/empty.csv': '',
      's/header.csv': [stepHeader],
      's/bad.csv.gz': gzipSync(good.join('\n')).subarray(0, 40),
      's/utf16.csv': Buffer.from(good.join('\n'), 'utf16le'),
      's/weather.csv': ['day,rain', 'monday,1', 'tuesday,2'],
      's/table.json': '{}',
      's/README.md': 'about',
      's/latin.csv': Buffer.from(good.join('\n').replace('H100', 'H100 \xe9\xff'), 'latin1'),
      's/unknown.csv': Buffer.from(good.join('\n').replace('H100', 'Gl\xfcck'), 'latin1'),
    },
    (folder) => {
      symlinkSync('..', join(folder, 's', 'loop'));
      symlinkSync('nowhere', join(folder, 's', 'dangling.csv'));
      const { set, sets } = fidelity(folder);
      assert.equal(set('s/good').tpot.n, 2);
      assert.deepEqual(
        [set('s/cut').tpot.n, set('s/cut').skipped.map(({ reason }) => reason)],
        [1, ['s/cut.csv, row 2: found 5 cells, allowed 9, as many as columns']],
      );
      assert.equal(set('s/quote').tpot.n, 1);
      assert.equal(set('s/latin').tpot.n, 2);
      assert.equal(set('s/unknown').skipped[0].reason, 'no preset for the GPU Gl\ufffdck');
      for (const name of ['s/empty', 's/header', 's/bad', 's/table.json'])
        assert.equal(set(name).skipped.length, 1, name);
      assert.equal(set('s/weather').rows, 2);
      assert.match(
        set('s/weather').skipped[0].reason,
        /^not a known form; the forms are tables with columns prompt_tokens/,
      );
      assert.equal(set('s/weather').skipped.length, 2);
      assert.equal(
        sets.some(({ name }) => name.includes('loop') || name.includes('README')),
        false,
      );
    },
  );
});

test('Fidelity_BytesThatAreNoUtf8_BecomeCharactersOfTheOutput', () => {
  const bytes = (text) => Buffer.from(text, 'latin1');
  const wild = '\xe9\xff\xc0\xaf\xed\xa0\x80\xf5\x1b[31m';
  withFiles(
    {
      's/steps.csv': bytes(
        `${steps({}, { model: `o${wild}` }, { gpu: wild }, { engine: wild }, { dtype: wild }, { itl: wild }, { model: 'odd' }, { model: 'odder' }).join('\n')}\n`,
      ),
      's/weather.csv': bytes(`day${wild}\nx\n`),
      'models/odd.json': bytes(`{"model_type": "x${wild}"}`),
      'models/odder.json': bytes(`{${wild}`),
    },
    (folder) => {
      for (const words of [['--json'], ['--rows'], []]) {
        const { stdout, status } = spawnSync(command, ['fidelity', '--data', folder, ...words]);
        assert.equal(status, 0);
        const text = new TextDecoder('utf-8', { fatal: true }).decode(stdout);
        assert.equal(text.includes('\x1b'), false, 'no control characters');
      }
      assert.equal(fidelity(folder).set('s/steps').rows, 8);
      assert.equal(fidelity(folder).set('s/steps').skipped.length, 7);
    },
  );
});

test('Fidelity_AFolderWithNothing_HasATableOfNothing', () => {
  withFiles({}, (folder) => {
    const { overall, sets } = fidelity(folder);
    assert.deepEqual({ overall, sets }, { overall: { coverage: {} }, sets: [] });
    assert.equal(servecast('fidelity', '--data', folder).status, 2);
    assert.equal(servecast('fidelity', '--data', folder, '--rows').stdout.split('\n').length, 2);
  });
});

test('Fidelity_AHundredThousandRows_AreAllScored', () => {
  const rows = Array.from({ length: 1e5 }, (_, i) => ({ batch: 1 + (i % 50), itl: 7 + i / 1e5 }));
  const stages = Array.from(
    { length: 2e4 },
    (_, i) => `run${i % 100},Llama-3.1-8B,H100,1,general,${Math.floor(i / 100)},2,300,20,30,400`,
  );
  withFiles(
    {
      's/steps.csv': steps(...rows, ...rows.slice(0, 5).map(() => ({ itl: 'x' }))),
      's/stages.csv': [
        'experiment,model,gpu,tp,workload,stage,target_rate_rps,input_tokens_nominal,output_tokens_configured,ttft_mean_ms,e2e_mean_ms',
        ...stages,
      ],
    },
    (folder) => {
      const { set } = fidelity(folder);
      assert.equal(set('s/steps').tpot.n, 1e5);
      assert.equal(set('s/steps').skipped.length, 5);
      assert.equal(set('s/stages').e2e.n, 2e4);
    },
  );
});

test('Fidelity_BadArguments_AreRefused', () => {
  withFiles({ 's/steps.csv': steps({}) }, (folder) => {
    for (const set of ['nonsense', 'hardware.nonsense=1', 'hardware.compute_efficiency=7', '=']) {
      const { status, stdout, stderr } = servecast('fidelity', '--data', folder, '--set', set);
      assert.equal(status, 2, set);
      assert.equal(stdout, '');
      assert.notEqual(stderr, '');
    }
    const both = servecast('fidelity', '--data', folder, '--json', '--rows');
    assert.deepEqual([both.status, both.stdout], [2, '']);
    assert.match(both.stderr, /--json and --rows/);
    const record = join(folder, '..', `${folder.split('/').at(-1)}.json`);
    const scored = { name: 's/steps', tpot: { median: 1, p90: 1, n: 1 } };
    const texts = [
      '[]',
      '7',
      'null',
      '',
      '{',
      '{"sets": 1, "overall": {}}',
      '{"sets": [], "overall": []}',
      '{"sets": [1], "overall": {}}',
      '{"sets": [{"name": 5}], "overall": {}}',
      JSON.stringify({ sets: [{ ...scored, tpot: 3 }], overall: {} }),
      JSON.stringify({ sets: [{ ...scored, tpot: { median: 'x', p90: 1, n: 1 } }], overall: {} }),
      JSON.stringify({ sets: [{ ...scored, tpot: { median: 1, p90: 1, n: -1 } }], overall: {} }),
      JSON.stringify({ sets: [scored], overall: { e2e: null } }),
    ];
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
  const metrics = ['ttft', 'tpot', 'e2e', 'ttft_p99', 'tpot_p99', 'throughput'];
  const areErrors = (errors) => {
    for (const [metric, error] of Object.entries(errors)) {
      assert.ok(metrics.includes(metric), metric);
      assert.deepEqual(Object.keys(error).sort(), ['median', 'n', 'p90']);
    }
  };
  const { coverage, ...errorsOverAll } = overall;
  areErrors(errorsOverAll);
  for (const classes of Object.values(coverage)) {
    for (const covered of Object.values(classes)) {
      const members = ['half_width', 'rows', 'rows_covered', 'set_ups', 'set_ups_covered'];
      assert.deepEqual(Object.keys(covered).sort(), members);
    }
  }
  for (const { name, rows, skipped, knees, figures = [], ...errors } of sets) {
    for (const figure of figures) {
      const members = ['class', 'high', 'low', 'measured', 'metric', 'predicted', 'row'];
      assert.deepEqual(Object.keys(figure).sort(), members);
    }
    assert.equal(typeof name, 'string');
    assert.ok(Number.isInteger(rows) && (knees === undefined || Array.isArray(knees)));
    for (const each of skipped) assert.deepEqual(Object.keys(each), ['row', 'reason']);
    areErrors(errors);
  }
});

test('Fidelity_RequestsThatTheEngineClocked_WentThroughNoServer', () => {
  // Only a server takes top-p from the model's generation_config.json, and sorts its logits.
  const header = 'arrival_s,input_tokens,output_tokens,ttft_ms,e2e_ms';
  const requests = (more, cell) => [
    header + more,
    ...Array.from({ length: 40 }, (_, i) => `${i * 0.02},500,50,30,400${cell}`),
  ];
  const run = 'meta-llama/Llama-3.1-8B,H100,1,vllm,0.15.1,50,40,500,50,30,400';
  const files = {
    'served/summary.csv': [
      'run,model,gpu,tp,engine,engine_version,target_rate_rps,n_requests,input_tokens_mean,output_tokens_mean,ttft_mean_ms,e2e_mean_ms',
      `client,${run}`,
      `engine,${run}`,
    ],
    'served/requests/client.csv': requests('', ''),
    'served/requests/engine.csv': requests(',scheduled_s', ',0.001'),
  };
  withFiles(files, (folder) => {
    const tpot = (...words) =>
      Object.fromEntries(
        rowsOf(folder, ...words)
          .filter(({ metric }) => metric === 'tpot')
          .map(({ row, predicted }) => [row, Number(predicted)]),
      );
    const { client, engine } = tpot();
    assert.ok(engine < 0.99 * client, `${engine} and ${client} ms`);
    assert.equal(engine, tpot('--set', 'model.top_p_by_default=false').client);
  });
});

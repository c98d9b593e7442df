// The command as a person types it: exit codes, what goes to stdout, what files hold. The engine
// behind it has tests of its own.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { Declarations } from '../wasm/declarations.mjs';

const command = fileURLToPath(new URL('../../build/release/servecast', import.meta.url));
const chat = 'llama-3.1-8b-h100-chat';

function servecast(...words) {
  const { status, stdout, stderr } = spawnSync(command, words, { encoding: 'utf8', maxBuffer: 2 ** 28 });
  return { status, stdout, stderr };
}

/** The words of a row of a comparison, behind its name. */
const row = (text, name) => text.split('\n').find((line) => line.startsWith(name))?.slice(name.length).trim().split(/\s+/);

test('Compare_ASettingThatIsTheDefault_ChangesNothing', () => {
  const { status, stdout } = servecast('compare', chat, '--with', 'engine.max_num_seqs=256', '--with', 'engine.max_num_seqs=4', '--and', 'engine.max_num_batched_tokens=64');
  assert.equal(status, 0);
  for (const name of ['TTFT mean ms', 'E2E p99 ms', 'steps', 'output tokens/s']) {
    const [given, same, equals, other] = row(stdout, name);
    assert.equal(same, given, name);
    assert.equal(equals, '=', name);
    assert.notEqual(other, given, name);
  }
  assert.equal(row(stdout, 'completed')[0], '2000');
  assert.doesNotMatch(stdout, /BLIS/);
});

test('Compare_WithACompat_SaysByWhichRulesItDiffers', () => {
  const today = servecast('compare', chat, '--set', 'workload.requests=50', '--with', 'engine.compat=blis');
  const february = servecast('compare', chat, '--set', 'workload.requests=50', '--with', 'engine.compat=blis-2026-02');
  assert.equal(today.status, 0);
  assert.match(today.stdout, /BLIS's rules, in \(1\):\n {2}drain: /);
  assert.doesNotMatch(today.stdout, /phantom gap/);
  assert.match(february.stdout, /phantom gap/);
});

test('Compare_BadVariants_AreNamedAndNothingIsPrinted', () => {
  const bad = servecast('compare', chat, '--with', 'engine.max_num_seqs=0');
  assert.equal(bad.status, 2);
  assert.equal(bad.stdout, '');
  assert.match(bad.stderr, /engine\.max_num_seqs=0, \/engine\/max_num_seqs: found 0, allowed/);
  assert.equal(servecast('compare', chat).status, 2);
  assert.equal(servecast('compare', chat, '--and', 'seed=2').status, 2);
});

test('Run_RequestsFile_HasARowEachWithItsStateInWords', () => {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  const file = join(folder, 'requests.csv');
  const run = servecast('run', chat, '--set', 'workload.requests=200', '--set', 'measure.horizon_s=3', '--requests', file);
  const [header, ...rows] = readFileSync(file, 'utf8').trim().split('\n').map((line) => line.split(','));
  rmSync(folder, { recursive: true });
  const report = JSON.parse(run.stdout);
  const state = header.indexOf('state');
  assert.equal(rows.length, 200);
  for (const name of ['completed', 'running', 'queued']) {
    assert.equal(rows.filter((cells) => cells[state] === name).length, report[name], name);
  }
  assert.ok(report.completed > 0 && rows.some((cells) => cells[state] === 'pending'));
});

/** Runs with files; what is in them, and the summary. */
function runWithFiles(names, ...words) {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  const options = names.flatMap((name) => [`--${name}`, join(folder, name)]);
  const run = servecast('run', chat, ...words, ...options);
  const files = Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
  rmSync(folder, { recursive: true });
  assert.equal(run.status, 0, run.stderr);
  return { report: JSON.parse(run.stdout), ...files };
}

/** A CSV without quotes: a record per row. */
function table(text) {
  const [header, ...rows] = text.trim().split('\n').map((line) => line.split(','));
  return rows.map((cells) => {
    assert.equal(cells.length, header.length);
    return Object.fromEntries(header.map((name, i) => [name, cells[i]]));
  });
}

const sum = (rows, name) => rows.reduce((total, of) => total + Number(of[name]), 0);
const twoClasses = 'workload.classes=[{"name":"chat","share":3,"ttft_deadline_ms":60},{"name":"batch","turns":3}]';

test('Run_Report_IsAsDeclared', () => {
  const declarations = new Declarations(readFileSync(new URL('../../wasm/servecast.d.ts', import.meta.url), 'utf8'));
  for (const set of ['seed=2', twoClasses, 'engine.compat=blis']) {
    const report = JSON.parse(runWithFiles(['json'], '--set', set, '--set', 'workload.requests=600').json);
    delete report.series;
    assert.deepEqual(declarations.problems('Report', report), [], set);
  }
});

test('Run_TimeSplit_AddsUpToTheMeans', () => {
  const { report, requests } = runWithFiles(['requests'], '--set', 'engine.num_gpu_blocks_override=2500');
  const total = (parts) => Object.values(parts).reduce((a, b) => a + b);
  assert.ok(Math.abs(total(report.time_split.e2e_ms) - report.e2e_ms.mean) < 1e-6);
  assert.ok(Math.abs(total(report.time_split.ttft_ms) - report.ttft_ms.mean) < 1e-6);
  for (const of of table(requests)) {
    const parts = Object.keys(report.time_split.e2e_ms).map((part) => Number(of[`${part}_ms`]));
    assert.ok(Math.abs(parts.reduce((a, b) => a + b) - of.e2e_ms) < 1e-6);
  }
});

test('Run_Classes_AddUpToTheWhole', () => {
  const slo = 'slo=[{"metric":"ttft","limit_ms":60,"percentile":90,"class":"chat"},{"metric":"e2e","limit_ms":60000}]';
  const { report, requests } = runWithFiles(['requests'], '--set', twoClasses, '--set', slo);
  assert.deepEqual(report.classes.map((of) => of.name), ['chat', 'batch']);
  const rows = table(requests);
  for (const of of report.classes) {
    const own = rows.filter((row) => row.class === of.name);
    assert.equal(own.length, of.arrived);
    assert.equal(own.filter((row) => row.state === 'completed').length, of.completed);
    assert.ok(Math.abs(sum(own, 'ttft_ms') / own.length - of.ttft_ms.mean) < 1e-9);
  }
  const late = rows.filter((row) => row.class === 'chat' && Number(row.ttft_ms) > 60).length;
  assert.equal(report.classes[0].deadline_misses, late);
  assert.equal(rows.filter((row) => row.deadline_missed === '1').length, late);
  assert.equal(report.classes[1].deadline_misses, null);
  assert.ok(Math.abs(report.classes[0].attainment - (1 - late / report.classes[0].arrived)) < 1e-12);
  assert.equal(report.classes[1].attainment, 1);
  assert.equal(report.slo[0].class, 'chat');
  const turns = rows.filter((row) => row.class === 'batch');
  assert.ok(turns.every((row) => ['0', '1', '2'].includes(row.turn)));
  assert.ok(turns.filter((row) => row.turn === '1').every((row) => rows[row.id - 1].session === row.session));
  assert.ok(report.fairness > 0.5 && report.fairness <= 1);
  const wrong = servecast('validate', chat, '--set', 'slo=[{"metric":"ttft","limit_ms":60,"class":"nobody"}]');
  assert.equal(wrong.status, 2);
  assert.match(wrong.stderr, /\/slo\/0\/class: found "nobody"/);
});

test('Run_Batches_HaveARowPerStep', () => {
  const { report, batches } = runWithFiles(['batches'], '--set', 'workload.requests=300');
  const rows = table(batches);
  assert.equal(rows.length, report.steps);
  assert.equal(sum(rows, 'prefill_tokens'), report.prompt_tokens);
  assert.equal(sum(rows, 'decode_tokens'), report.output_tokens - report.completed);
  assert.ok(rows.every((of, i) => Number(of.batch) === i && Number(of.start_s) >= Number(rows[i - 1]?.end_s ?? 0)));
  assert.equal(rows.at(-1).end_s, report.simulated_s.toFixed(9));
  assert.equal(Math.max(...rows.map((of) => Number(of.kv_blocks))), Math.round(report.kv.peak_usage * report.kv.blocks));
});

test('Run_Series_HasWhatTheReportHas', () => {
  const { json, series } = runWithFiles(['json', 'series'], '--set', 'workload.requests=300');
  const columns = JSON.parse(json).series;
  const rows = table(series);
  for (const name of Object.keys(rows[0])) {
    assert.deepEqual(rows.map((of) => Number(of[name])), columns[name], name);
  }
  assert.ok(rows.every((of) => Number(of.series_mfu) <= 1 && Number(of.series_bandwidth_use) <= 1));
});

test('Run_ChromeTrace_HasStepsRequestsAndCounters', () => {
  const { report, ...files } = runWithFiles(['chrome-trace'], '--set', 'workload.requests=100');
  const events = JSON.parse(files['chrome-trace']).traceEvents;
  const steps = events.filter((event) => event.ph === 'X');
  assert.equal(steps.length, report.steps);
  for (const [i, step] of steps.entries()) {
    assert.ok(i === 0 || step.ts >= steps[i - 1].ts + steps[i - 1].dur - 0.001);
  }
  for (const name of ['queue', 'prefill', 'decode']) {
    for (const ph of ['b', 'e']) {
      assert.equal(events.filter((event) => event.ph === ph && event.name === name).length, report.completed, `${ph} ${name}`);
    }
  }
  for (const name of ['requests', 'kv_blocks', 'batch_tokens']) {
    assert.equal(events.filter((event) => event.ph === 'C' && event.name === name).length, report.steps);
  }
});

test('Run_VidurNames_AreVidursAndInSeconds', () => {
  const { report, requests, batches } = runWithFiles(['requests', 'batches'], '--names', 'vidur', '--set', 'workload.requests=200');
  const rows = table(requests);
  assert.equal(rows.length, report.completed);
  assert.ok(Math.abs((1000 * sum(rows, 'request_e2e_time')) / rows.length - report.e2e_ms.mean) < 1e-6);
  assert.ok(Math.abs((1000 * sum(rows, 'prefill_e2e_time')) / rows.length - report.ttft_ms.mean) < 1e-6);
  assert.equal(sum(table(batches), 'batch_num_tokens'), report.prompt_tokens + report.output_tokens - report.completed);
  assert.equal(servecast('run', chat, '--names', 'orca').status, 2);
});

test('Run_FilesThatCannotBe_ExitBeforeTheRun', () => {
  const nowhere = servecast('run', chat, '--batches', join(tmpdir(), 'no such folder', 'batches.csv'));
  assert.equal(nowhere.status, 2);
  assert.equal(nowhere.stdout, '');
  assert.match(nowhere.stderr, /cannot be written/);
  assert.equal(servecast('run', chat, '--set', 'engine.compat=blis', '--batches', join(tmpdir(), 'none.csv')).status, 2);
});

test('Catalog_NamesEveryColumnOfEveryFile', () => {
  const { requests, batches, series } = runWithFiles(['requests', 'batches', 'series'], '--set', 'workload.requests=10');
  const { columns } = JSON.parse(servecast('catalog', '--json').stdout);
  const text = servecast('catalog').stdout;
  for (const [kind, csv] of [['request', requests], ['batch', batches], ['series', series]]) {
    const names = columns.filter((column) => column.kind === kind).map((column) => column.name);
    assert.deepEqual(csv.split('\n')[0].split(',').filter((name) => name !== 'id'), names);
    for (const name of names) assert.match(text, new RegExp(`^  ${kind} +${name} `, 'm'));
  }
});

test('Coefficients_EachListedSet_CanBeUsed', () => {
  const ids = servecast('coefficients', 'llama-3.1-8b').stdout.trim().split('\n').map((line) => line.split(/\s+/)[0]);
  assert.ok(ids.length > 0);
  for (const id of ids) assert.equal(servecast('validate', chat, '--coefficients', id).status, 0, id);
  assert.equal(servecast('validate', chat, '--coefficients', 'nobody').status, 2);
});

/** A folder of measurements: decode steps, a run with its requests, a model by its config file. */
function measurements() {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  const write = (path, ...lines) => {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), `${lines.join('\n')}\n`);
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

test('CompareBackends_RunsTheSameRequestsUnderEach', () => {
  const { status, stdout } = servecast('compare', chat, '--backends', '--set', 'workload.requests=200');
  assert.equal(status, 0);
  assert.equal(row(stdout, 'completed').filter((word) => word === '200').length, 6);
  for (const backend of ['analytic', 'operators', 'roofline', 'physics', 'blackbox']) assert.match(stdout, new RegExp(`"backend":"${backend}"`));
});

test('Estimate_StandsBesideTheSimulation', () => {
  const { status, stdout } = servecast('estimate', chat, '--set', 'latency.backend=physics');
  assert.equal(status, 0);
  const [closed, simulated] = row(stdout, 'TPOT mean ms').map(Number);
  assert.ok(Math.abs(closed / simulated - 1) < 0.1, stdout);
  assert.equal(servecast('estimate', chat, '--set', 'workload.arrivals={"process":"closed_loop"}').status, 2);
  const four = servecast('estimate', chat, '--set', 'cluster.pools.0.replicas=4', '--set', 'workload.arrivals.rate_per_s=160').stdout;
  assert.doesNotMatch(four, /overloaded/);
  assert.deepEqual(four.match(/at most [\d.]+/)[0], servecast('estimate', chat).stdout.match(/at most [\d.]+/)[0]);
});

test('CoefficientFile_IsRead_WarnedOf_OrRefused', () => {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  const file = join(folder, 'trained.json');
  const trained = {
    spec_version: '1.0', variant: 'corrected', alpha_target: 'arrived_to_queued',
    trained_on: { model: 'Llama-3.1-8B', hardware: 'A100', tp: 1, engine_version: '0.11.0', training_date: '2026-01-01', n_samples_alpha: 1, n_samples_beta: 1, lambda_alpha: 1, lambda_beta: 1, gamma: 0.3, hold_out_rmse_alpha: 1, hold_out_rmse_beta: 1 },
    alpha_coefficients: Array(11).fill(0), beta_coefficients: [...Array(15).fill(0), 500],
  };
  const validate = (changes) => {
    writeFileSync(file, JSON.stringify({ physics_coefficients: { ...trained, ...changes } }));
    return servecast('validate', chat, '--coefficients', file);
  };
  const good = validate({});
  assert.equal(good.status, 0, good.stderr);
  assert.match(good.stderr, /warning: .*A100/);
  assert.match(good.stdout, /faster than light/);
  assert.match(good.stdout, /beta 1 \(arithmetic of prefill\) is 0/);
  for (const bad of [{ spec_version: '2.0' }, { beta_coefficients: [1, 2, 3] }, { trained_on: {} }]) {
    assert.equal(validate(bad).status, 2, JSON.stringify(bad));
  }
  rmSync(folder, { recursive: true });
});

function withFile(name, text, use) {
  const folder = mkdtempSync(join(tmpdir(), 'servecast-'));
  try {
    const file = join(folder, name);
    writeFileSync(file, text);
    return use(file, folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('Trace_WhatItWasReadAs_IsSaid', () => {
  withFile('t.csv', 'Timestamp,Request tokens,Response tokens\n0,10,5\n1,20,5\n', (file) => {
    const { status, stdout, stderr } = servecast('run', chat, '--trace', file);
    assert.equal(status, 0);
    assert.match(stderr, /read as CSV with named columns: columns Timestamp \(s\), Request tokens, Response tokens; 2 requests/);
    assert.equal(JSON.parse(stdout).completed, 2);
  });
});

test('Trace_OfLengthsAlone_LeavesTheArrivals', () => {
  withFile('t.csv', 'input_tokens,output_tokens\n10,5\n20,5\n', (file) => {
    const { status, stdout, stderr } = servecast('run', chat, '--trace', file, '--set', 'workload.requests=30');
    assert.equal(status, 0, stderr);
    assert.match(stderr, /lengths only/);
    const report = JSON.parse(stdout);
    assert.equal(report.completed, 30);
    assert.equal(report.prompt_tokens, 15 * 30);
  });
});

test('Trace_BadLines_AreNamedAndTheRestCounted', () => {
  withFile('t.csv', `arrival_s,input_tokens,output_tokens\n${'x,1,1\n'.repeat(500)}`, (file) => {
    const { status, stderr } = servecast('run', chat, '--trace', file);
    assert.equal(status, 2);
    assert.equal(stderr.trim().split('\n').length, 101);
    assert.match(stderr, /t\.csv, line 2, column 1: found "x" as arrival_s, allowed seconds/);
    assert.match(stderr, /and 400 more malformed lines/);
  });
});

test('FitTrace_Scenario_RunsAndIsNearTheTrace', () => {
  const rows = Array.from({ length: 2000 }, (_, i) => `${i * 0.5},${100 + (i % 50)},${10 + (i % 7)}`);
  withFile('t.csv', `arrival_s,input_tokens,output_tokens\n${rows.join('\n')}\n`, (file, folder) => {
    const out = join(folder, 'fit.json');
    const { status, stdout, stderr } = servecast('fit-trace', file, '--json', out);
    assert.equal(status, 0, stderr);
    assert.equal(JSON.parse(stdout).requests, 2000);
    assert.equal(row(stderr, 'requests')[1], '2,000');
    assert.match(stderr, /prompt p99/);
    const report = JSON.parse(servecast('run', out).stdout);
    assert.equal(report.completed, 2000);
    assert.ok(Math.abs(report.prompt_tokens / 2000 - 124.5) < 2);
  });
  assert.equal(servecast('fit-trace').status, 2);
  assert.equal(servecast('fit-trace', 'nowhere.csv').status, 2);
});

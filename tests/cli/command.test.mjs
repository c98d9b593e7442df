// The command as a person types it: exit codes, what goes to stdout, what files hold. The engine
// behind it has tests of its own.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';

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
  assert.equal(overall.e2e.n, 2);
  assert.match(servecast('fidelity', '--data', folder, '--rows').stdout, /^served\/summary,first,meta-llama\/Llama-3.1-8B,H100,1,vllm 0.15.1,5 rps,e2e,400,/m);
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

// servecast mcp speaks the Model Context Protocol: what a client sends, and what comes back, line by line.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { createInterface } from 'node:readline';
import test from 'node:test';
import { command } from '../command.mjs';

const chat = 'llama-3.1-8b-h100-chat';
/** Short runs: the same everywhere, and quick with sanitizers. */
const few = { 'workload.requests': 200 };

const message = (value) => ({ jsonrpc: '2.0', ...value });
const call = (id, name, given, more = {}) =>
  message({ id, method: 'tools/call', params: { name, arguments: given, ...more } });

/** All messages that come back when these lines are all that a client sends. */
function conversation(...lines) {
  const input = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n');
  const { status, stdout, stderr } = spawnSync(command, ['mcp'], { input, encoding: 'utf8', maxBuffer: 2 ** 28 });
  assert.equal(status, 0, stderr);
  assert.equal(stderr, '');
  return stdout
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}
/** The answer with this id. */
const answered = (messages, id) => messages.find((each) => each.id === id);
/** Of calls, by their ids 0, 1, ... */
function results(...calls) {
  const messages = conversation(...calls.map(([name, given], id) => call(id, name, given)));
  return calls.map((_, id) => answered(messages, id).result);
}
const texts = ({ content }) => content.map(({ text }) => text).join('\n');
const servecast = (...words) => spawnSync(command, words, { encoding: 'utf8' }).stdout;

test('Initialize_AgreesOnAVersion_AndPingAndListAnswer', () => {
  const initialize = (id, protocolVersion) =>
    message({ id, method: 'initialize', params: { protocolVersion, capabilities: {}, clientInfo: { name: 'test' } } });
  const messages = conversation(
    initialize(1, '2025-06-18'),
    initialize('two', '2024-11-05'),
    initialize(3, '2025-03-26'),
    initialize(4, '2099-01-01'),
    initialize(5, 'newest'),
    message({ method: 'notifications/initialized' }),
    message({ id: 6, method: 'ping' }),
    message({ id: 7, method: 'tools/list' }),
  );
  assert.deepEqual(
    messages.map(({ id }) => id),
    [1, 'two', 3, 4, 5, 6, 7],
  );
  const version = (id) => answered(messages, id).result.protocolVersion;
  assert.equal(version(1), '2025-06-18');
  assert.equal(version('two'), '2024-11-05');
  assert.equal(version(3), '2024-11-05');
  assert.equal(version(4), '2025-11-25');
  assert.equal(answered(messages, 1).result.serverInfo.name, 'servecast');
  assert.deepEqual(answered(messages, 1).result.capabilities, { tools: {} });
  assert.deepEqual(answered(messages, 6).result, {});

  const { tools } = answered(messages, 7).result;
  assert.deepEqual(
    tools.map(({ name }) => name),
    ['run', 'explain', 'advise', 'compare', 'plan', 'import', 'catalog', 'show'],
  );
  for (const { name, description, inputSchema } of tools) {
    assert.ok(description.endsWith('.'), name);
    assert.equal(inputSchema.type, 'object');
    assert.equal(inputSchema.additionalProperties, false);
    for (const each of Object.values(inputSchema.properties)) assert.ok(each.description.length > 5, name);
    for (const each of inputSchema.required) assert.ok(each in inputSchema.properties, `${name} ${each}`);
  }
  const { scenario } = tools[0].inputSchema.properties;
  assert.ok(scenario.anyOf[0].enum.includes(chat));
  assert.ok(JSON.stringify(tools).length < 20_000, 'an agent reads it at every start');
});

test('Tools_EveryArgument_IsAnOptionOfItsCommand', () => {
  const [{ result }] = conversation(message({ id: 1, method: 'tools/list' }));
  const ofPlan = result.tools.find(({ name }) => name === 'plan').inputSchema.properties;
  const questions = ofPlan.question.enum;
  const known = new Set(
    questions.flatMap((question) => servecast('completion', 'words', '--', 'plan', question, '-').split('\n')),
  );
  for (const name of ['set', 'percent', 'months', 'from', 'hours', 'spike', 'seconds', 'input', 'output', 'prices']) {
    assert.ok(name in ofPlan, name);
    assert.ok(known.has(`--${name}`), name);
  }
});

test('Calls_SayWhatTheCommandSays', () => {
  const set = { ...few, 'workload.arrivals.rate_per_s': 12 };
  const words = ['--set', 'workload.arrivals.rate_per_s=12', '--set', 'workload.requests=200'];
  const document = JSON.parse(servecast('show', chat, ...words));
  const [run, ofDocument, explain, compare, plan, show] = results(
    ['run', { scenario: chat, set, once: true }],
    ['run', { scenario: document, once: true }],
    ['explain', { scenario: chat, set }],
    ['compare', { scenario: chat, set, with: [{ 'hardware.preset': 'h200-sxm', seed: 2 }], once: true }],
    ['plan', { question: 'cost', scenario: chat, set: few, input: 0.1, output: 0.5 }],
    ['show', { scenario: chat, set }],
  );
  for (const each of [run, ofDocument, explain, compare, plan, show]) assert.equal(each.isError, false, texts(each));
  const asJson = (...all) => JSON.parse(servecast(...all, '-o', 'json'));
  assert.deepEqual(run.structuredContent, asJson('run', chat, ...words, '--once'));
  assert.deepEqual(ofDocument.structuredContent.verdict, run.structuredContent.verdict);
  assert.equal(ofDocument.structuredContent.fingerprint, run.structuredContent.fingerprint);
  assert.deepEqual(explain.structuredContent, asJson('explain', chat, ...words));
  const two = ['--with', 'hardware.preset=h200-sxm', '--and', 'seed=2'];
  assert.deepEqual(compare.structuredContent, asJson('compare', chat, ...words, ...two, '--once'));
  assert.ok('answer' in plan.structuredContent);
  assert.deepEqual(JSON.parse(texts(show)), document);

  const env = { ...process.env, LC_ALL: 'C.UTF-8' };
  const { stdout } = spawnSync(command, ['run', chat, ...words, '--once', '-o', 'text'], { encoding: 'utf8', env });
  assert.equal(texts(run), stdout);
});

test('Import_GivesADocumentThatRuns_AndSaysWhatItTook', () => {
  const [imported, nothing] = results(
    ['import', { texts: ['vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 128'] }],
    ['import', { texts: ['good morning'] }],
  );
  assert.equal(imported.isError, false);
  assert.equal(imported.structuredContent.document.engine.max_num_seqs, 128);
  assert.match(texts(imported), /took .*max_num_seqs/);
  assert.equal(nothing.isError, true);
  const [run] = results(['run', { scenario: imported.structuredContent.document, set: few, once: true }]);
  assert.equal(run.isError, false, texts(run));
});

test('Catalog_FindsFieldsAndPresets', () => {
  const [fields, gpus, all, missing, nothing] = results(
    ['catalog', { kind: 'fields', word: 'max_num_seqs' }],
    ['catalog', { kind: 'gpus', word: 'H200' }],
    ['catalog', { kind: 'scenarios' }],
    ['catalog', { kind: 'fields' }],
    ['catalog', { kind: 'fields', word: 'nonesuch' }],
  );
  assert.match(texts(fields), /engine\.max_num_seqs/);
  assert.match(texts(gpus), /h200-sxm/);
  assert.doesNotMatch(texts(gpus), /h100-sxm/);
  assert.ok(texts(all).includes(chat));
  assert.equal(missing.isError, true);
  assert.equal(nothing.isError, true);
});

test('BadInput_IsAResultWithEveryIssue_AndReadsNoFile', () => {
  const all = results(
    ['run', { scenario: chat, set: { 'engine.max_num_seqs': -1, 'slo.0.limit_ms': -5 } }],
    ['run', { scenario: { schema: 1, model: { preset: 'nonesuch' } } }],
    ['run', { scenario: '/etc/passwd' }],
    ['run', { scenario: 'llama-3.1-8b-h100-chatt' }],
    ['run', { set: [], colour: 'red' }],
    ['run', { scenario: chat, set: { '--json': 1 } }],
    ['plan', { question: 'when', scenario: chat, percent: '3' }],
    ['plan', { question: 'max-rate', scenario: chat, percent: 3 }],
    ['plan', { question: 'growth', scenario: chat, percent: 3, from: '--help' }],
    ['compare', { scenario: chat, with: [{}] }],
    ['import', { texts: ['/etc/passwd'] }],
    ['import', { texts: [] }],
    ['catalog', { kind: 'fields', word: '--json' }],
    ['run', { scenario: chat, set: { 'name=it': 7 } }],
    ['compare', { scenario: chat, with: [{ seed: 7 }, { '': 7 }] }],
  );
  for (const each of all) {
    assert.equal(each.isError, true, texts(each));
    assert.ok(each.structuredContent.issues.length > 0);
    assert.doesNotMatch(texts(each), /root:|servecast run FILE/);
  }
  const paths = (index) => all[index].structuredContent.issues.map(({ path }) => path).sort();
  assert.deepEqual(paths(0), ['/engine/max_num_seqs', '/slo/0/limit_ms']);
  assert.ok(paths(1).includes('/model/preset'), paths(1).join());
  assert.match(texts(all[3]), /did you mean llama-3.1-8b-h100-chat\?/);
  assert.deepEqual(paths(4), ['/colour', '/scenario', '/set']);
  assert.deepEqual(paths(6), ['/percent', '/question']);
  assert.deepEqual([paths(13), paths(14)], [['/set'], ['/with']]);
});

test('Protocol_WhatIsNoRequest_HasItsErrorCode_AndEndsNothing', () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  const long = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"text":"${'x'.repeat(10_000_000)}"}}`;
  const messages = conversation(
    'no json',
    deep,
    long,
    '[]',
    '[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    '7',
    '{"jsonrpc":"1.0","id":1,"method":"ping"}',
    message({ id: 2 }),
    message({ id: {}, method: 'ping' }),
    message({ id: null, method: 'ping' }),
    message({ id: 1.5, method: 'ping' }),
    message({ id: 3, method: 'resources/list' }),
    call(4, 'format_disk', {}),
    call(5, 'run', 'all'),
    message({ id: 6, method: 'tools/call' }),
    // None of these is answered.
    message({ method: 'notifications/nonesuch' }),
    message({ method: 'notifications/cancelled', params: { requestId: 99 } }),
    message({ id: 8, result: {} }),
    '',
    '{"jsonrpc":"2.0","id":"last","method":"ping","id":"last"}',
    message({ id: 'last', method: 'ping' }),
  );
  assert.deepEqual(
    messages.map(({ id, error }) => [id, error?.code ?? 'answered']),
    [
      [null, -32700],
      [null, -32700],
      [null, -32700],
      [null, -32600],
      [null, -32600],
      [null, -32600],
      [1, -32600],
      [2, -32600],
      [null, -32600],
      [null, -32600],
      [null, -32600],
      [3, -32601],
      [4, -32602],
      [5, -32602],
      [6, -32602],
      [null, -32700],
      ['last', 'answered'],
    ],
  );
});

test('Calls_AreAnsweredSideBySide_WithProgress_AndCanBeCancelled', { timeout: 120_000 }, async () => {
  const server = spawn(command, ['mcp'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await lines.next()).value);
  const send = (value) => server.stdin.write(`${JSON.stringify(value)}\n`);
  // It takes minutes; progress shows that it runs.
  const long = { scenario: chat, set: { 'workload.requests': 3_000_000 } };
  send(call('long', 'run', long, { _meta: { progressToken: 'p' } }));
  const first = await next();
  assert.equal(first.method, 'notifications/progress');
  assert.equal(first.params.progressToken, 'p');
  assert.ok(first.params.progress > 0 && first.params.progress <= 1);
  send(message({ id: 'alive', method: 'ping' }));
  let last = first.params.progress;
  for (let each = await next(); each.id !== 'alive'; each = await next()) {
    assert.ok(each.params.progress > last);
    last = each.params.progress;
  }
  send(call('long', 'run', long));
  for (let each = await next(); ; each = await next()) {
    if (each.method) continue;
    assert.equal(each.error.code, -32600);
    break;
  }
  send(message({ method: 'notifications/cancelled', params: { requestId: 'long' } }));
  server.stdin.end();
  const [status] = await new Promise((resolve) => server.on('exit', (...all) => resolve(all)));
  assert.equal(status, 0);
  for await (const line of lines) assert.ok(JSON.parse(line).method, 'a cancelled call has no answer');
});

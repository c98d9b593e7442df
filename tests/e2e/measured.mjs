// Measurements of a made-up server for the tasks that calibrate, and how these are chosen.
const server = 'model,gpu,engine,engine_version,tp';
const named = 'meta-llama/Llama-3.1-8B-Instruct,H100,vllm,0.20.1,1';
const table = (head, rows) => ({
  mimeType: 'text/csv',
  buffer: Buffer.from([`${server},${head}`, ...rows.map((row) => `${named},${row}`)].join('\n')),
});
/** Prompts and decode steps of a made-up server: no claim is made with them. */
export const prompts = {
  name: 'prompts.csv',
  ...table('prompt_tokens,ttft_p50_ms', ['128,17', '1024,38', '4096,120', '16384,560', '65536,3600']),
};
export const steps = {
  name: 'steps.csv',
  ...table('batch,mean_context_tokens,itl_p50_ms', [
    '1,200,6.9',
    '8,200,7.1',
    '32,200,7.9',
    '128,200,11',
    '1,16000,7.7',
    '1,60000,10.1',
  ]),
};

/** Two runs, and the power of the card beside each. */
const runAt = (name, rate, input, output) => ({
  name,
  ...table('request_rate_rps,num_prompts,input_tokens_mean,output_tokens_mean,ttft_mean_ms', [
    `${rate},200,${input},${output},60`,
  ]),
});
const wattsOf = (name, text) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(text) });
const smi = (watts) => `timestamp, power.draw [W]\n2026/11/25 12:00:30.123, ${watts}.00 W\n`;
export const promptsRun = runAt('prompts-run.csv', 16, 2000, 1);
export const promptsPower = (watts) => wattsOf('prompts-power.csv', smi(watts));
export const answersRun = runAt('answers-run.csv', 20, 100, 200);
export const answersPower = wattsOf('<img src=x>.prom', 'DCGM_FI_DEV_POWER_USAGE{gpu="0"} 350\n');

/** A result of vllm bench serve with so many requests of so many tokens each. */
export function benchResult(requests, tokens) {
  const each = (of) => Array.from({ length: requests }, (_none, index) => of(index));
  return JSON.stringify({
    model_id: 'meta-llama/Llama-3.1-8B-Instruct',
    request_rate: 8,
    completed: requests,
    input_lens: each(() => 512),
    output_lens: each(() => tokens),
    ttfts: each((index) => 0.03 + 0.001 * (index % 7)),
    itls: each((index) => Array.from({ length: tokens - 1 }, (_none, at) => 0.0081234567 + 1e-5 * ((index + at) % 13))),
    start_times: each((index) => index / 8),
  });
}

export const chosen = (page, files) => page.setInputFiles('#calibrate-file', files);
export const calibrated = (page) => page.locator('.calibrate-told tbody tr').first().waitFor({ timeout: 300_000 });

// What values of the fields that most people change are typical, and what they trade. Loaded with the first help.

/** By the catalogue's path, without the places in lists. */
const typical: Readonly<Record<string, string>> = {
  '/model/preset': 'A larger model reads more weights in every step: fewer tokens per second from the same GPU.',
  '/model/quantization':
    'fp8 halves the weights and int4 quarters them: faster steps and more room for KV blocks, against some quality of answers that only your own tests can tell.',
  '/hardware/preset':
    'Decoding follows memory bandwidth, prefill follows arithmetic, and how many requests fit follows memory.',
  '/cluster/pools/-/tensor_parallel':
    'Typical: 1, 2, 4 or 8, within one server. More GPUs share the weights and shorten every step, but each step waits for the links between them, so tokens per GPU fall.',
  '/cluster/pools/-/replicas':
    'Each replica holds the whole model and serves its share of the requests: capacity and cost grow together, the time of a lone request stays.',
  '/hardware/price_per_gpu_hour': 'Yours, from a bill or a list: it changes the cost and nothing else.',
  '/workload/preset': 'Your own lengths matter more than any preset: what prompts and answers have in common is below.',
  '/workload/arrivals/rate_per_s':
    'The mean of a busy hour is a better question than that of a day. Higher rates fill steps, which lowers the cost, until requests queue.',
  '/workload/arrivals/concurrency':
    'So many clients wait for their answers before they ask again: a load test does, people on a web page do not.',
  '/workload/prompt_tokens/median':
    'Chat: some hundreds; retrieval: some thousands. Longer prompts raise the TTFT of all and hold more KV blocks.',
  '/workload/output_tokens/median':
    'Chat: a hundred to some hundreds. Longer answers hold their seat and KV blocks longer: fewer requests per second.',
  '/workload/requests':
    'Typical: 1,000 to 10,000. More give narrower intervals and take longer; a p99 needs at least some hundreds.',
  '/slo/-/limit_ms':
    'Typical for chat: TTFT 200 to 1,000 ms, TPOT 20 to 50 ms (people read about 5 words a second). Tighter limits leave GPUs idle.',
  '/slo/-/percentile':
    'Typical: 99, or 95 for what nobody waits for. Higher ones need more requests to be known, and cost capacity.',
  '/engine/max_num_seqs':
    'Typical: 64 to 1,024. More requests in a step give more tokens per second and a longer TPOT; too few keep requests waiting.',
  '/engine/max_num_batched_tokens':
    'Typical: 2,048 for short TPOT, 8,192 and more for throughput. A larger budget ends prompts sooner and holds up the answers in the same step.',
  '/engine/gpu_memory_utilization':
    'Typical: 0.9. More leaves more KV blocks and less room for what else runs on the GPU; too much ends in out of memory on a real server.',
  '/engine/enable_prefix_caching':
    'Typical: on. It helps where prompts share a beginning (system prompts, chats of several turns), and costs next to nothing elsewhere.',
  '/engine/enable_chunked_prefill':
    'Typical: on. A long prompt is spread over several steps, so that answers under way are held up less, and its own first token comes a little later.',
};

export function typicalOf(path: string): string {
  return typical[path] ?? '';
}

vllm serve Qwen/Qwen3-30B-A3B --tensor-parallel-size 2 --enable-expert-parallel \
  --reasoning-parser qwen3 --speculative-config '{"method": "ngram", "num_speculative_tokens": 5}' --enforce-eager

#!/usr/bin/env bash
# Seats of the server against users, two of each.
cat > serve_hparams.json <<'EOF'
[
  {"max_num_seqs": 64, "enable_prefix_caching": false},
  {"max_num_seqs": 256, "enable_prefix_caching": false}
]
EOF
vllm bench sweep serve \
    --serve-cmd 'vllm serve Qwen/Qwen3-8B --max-num-seqs 16 --max-num-batched-tokens 4096' \
    --bench-cmd 'vllm bench serve --model Qwen/Qwen3-8B --dataset-name random --random-input-len 1500 --num-prompts 400' \
    --serve-params serve_hparams.json \
    --bench-params '[{"max_concurrency": 8, "random_output_len": 100}, {"max_concurrency": 32, "random_output_len": 100}]' \
    --num-runs 3 \
    -o results

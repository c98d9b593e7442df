#!/bin/bash
set -x
GPUS=4
ARGS=(
  --tensor-parallel-size $((GPUS / 2))   # two servers
  --max-num-seqs 96
)
ARGS+=(--no-enable-prefix-caching)
vllm serve Qwen/Qwen3-32B "${ARGS[@]}" $MORE > server.log 2>&1 &

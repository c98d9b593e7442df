#!/bin/bash
# four GPUs are enough in 8 bits
VLLM_USE_V1=1 vllm serve RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8-dynamic \
    -tp 4 --kv-cache-dtype fp8_e4m3 \  
    --max_num_batched_tokens 16384 --no-enable-prefix-caching \
    --disable-log-requests > server.log 2>&1 &

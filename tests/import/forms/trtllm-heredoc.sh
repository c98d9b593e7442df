#!/bin/bash
cat > /tmp/serve.yaml <<EOF
cuda_graph_config:
  enable_padding: true
  max_batch_size: 256
kv_cache_config:
  free_gpu_memory_fraction: 0.85
  enable_block_reuse: false
EOF
mpirun -n 1 trtllm-serve Qwen/Qwen3-30B-A3B --backend pytorch --tp_size 4 --ep_size 4 \
  --max_batch_size 256 --max_num_tokens 8192 --max_seq_len 12000 --extra_llm_api_options /tmp/serve.yaml

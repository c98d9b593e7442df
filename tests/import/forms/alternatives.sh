# on one GPU
vllm serve Qwen/Qwen3-8B --max-model-len 8192
# on two
vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2
# on four, for throughput
vllm serve Qwen/Qwen3-8B --tensor-parallel-size 4 --max-num-seqs 512

vllm serve Qwen/Qwen3-8B --port 8001 &
vllm serve Qwen/Qwen3-8B --port 8002 &
vllm serve Qwen/Qwen3-8B --port 8003 --max-num-seqs 32 &

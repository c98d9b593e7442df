docker run --gpus all --entrypoint vllm ^
  vllm/vllm-openai:v0.15.0 serve Qwen/Qwen3-14B ^
  --max-num-seqs 24

docker run --gpus all -p 8000:8000 `
  vllm/vllm-openai:v0.15.0 `
  --model Qwen/Qwen3-8B --max-num-seqs 40

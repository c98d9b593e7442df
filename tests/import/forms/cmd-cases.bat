@echo off
SET Model=Qwen/Qwen3-8B
set /a Ignored=3
set "LENGTH=16384"
docker run --rm --gpus all ^
  vllm/vllm-openai:v0.19.1 ^
  --model %MODEL% --max-model-len %length% ^
  --gpu-memory-utilization 0.9

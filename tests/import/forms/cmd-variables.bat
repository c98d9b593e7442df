@echo off
set MODEL=Qwen/Qwen3-14B
set "SEATS=36"
rem what it serves
docker run --rm --gpus all -p 8000:8000 ^
  vllm/vllm-openai:v0.19.1 ^
  --model %MODEL% --max-num-seqs %SEATS% ^
  --max-model-len 12288

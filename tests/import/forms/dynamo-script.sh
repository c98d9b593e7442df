#!/bin/bash
# one worker for prompts, one for the rest
trap 'kill 0' EXIT
python3 -m dynamo.frontend --http-port 8000 &
CUDA_VISIBLE_DEVICES=0 python3 -m dynamo.vllm --model Qwen/Qwen3-8B --max-model-len 8192 &
CUDA_VISIBLE_DEVICES=1 python3 -m dynamo.vllm --model Qwen/Qwen3-8B --max-model-len 8192 --is-prefill-worker

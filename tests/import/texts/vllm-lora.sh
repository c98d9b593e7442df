#!/bin/sh
# Three adapters beside the model, four of which may be in a batch.
vllm serve meta-llama/Llama-3.1-8B-Instruct --enable-lora --max-loras 4 --max-cpu-loras 16 \
  --max-lora-rank 32 \
  --lora-modules sql=/adapters/sql chat=/adapters/chat tools=/adapters/tools

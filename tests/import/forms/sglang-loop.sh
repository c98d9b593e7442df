#!/bin/bash
MODEL=Qwen/Qwen3-32B
python3 -m sglang.launch_server --model-path $MODEL --tp 2 --mem-fraction-static 0.8 &
for RATE in 2 4 8; do
  python3 -m sglang.bench_serving --backend sglang --model $MODEL --dataset-name random \
    --random-input-len 800 --random-output-len 160 --random-range-ratio 1 --request-rate $RATE --num-prompts 240
done

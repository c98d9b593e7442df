python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --tp 1
python3 -m sglang.bench_serving --backend sglang --model Qwen/Qwen3-8B --dataset-name random --num-prompts 300 \
  --random-input-len 1000 --random-output-len 400 --random-range-ratio 0.5 --request-rate 12

python -m sglang.bench_serving --backend sglang --dataset-name generated-shared-prefix --gsp-num-groups 8 \
  --gsp-prompts-per-group 25 --gsp-system-prompt-len 1500 --gsp-question-len 100 --gsp-output-len 80 --max-concurrency 24

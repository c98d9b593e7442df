./blis run --model qwen/qwen3-14b --hardware H100 --tp 1 --rate 10 --num-requests 300 --prompt-tokens 70 \
  --prompt-tokens-stdev 35 --prompt-tokens-min 2 --prompt-tokens-max 200 --output-tokens 215 --output-tokens-stdev 80 \
  --output-tokens-min 1 --output-tokens-max 512 --prefix-tokens 284 --total-kv-blocks 7463 --max-num-seqs 256 \
  --max-num-batched-tokens 2048 --seed 42 --results-path out.json

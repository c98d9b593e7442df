genai-perf profile -m Qwen/Qwen3-14B --request-rate 4 --synthetic-input-tokens-mean 300 --synthetic-input-tokens-stddev 0 --output-tokens-mean 100 --request-count 200

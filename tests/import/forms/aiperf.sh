aiperf profile --model Qwen/Qwen3-14B --url localhost:8000 --endpoint-type chat --streaming --concurrency 20 --request-count 400 --isl 800 --isl-stddev 100 --osl 150

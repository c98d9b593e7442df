vllm bench serve --backend vllm --model meta-llama/Llama-3.1-8B-Instruct --dataset-name random \
  --random-input-len 1000 --random-output-len 200 --random-range-ratio 0.2 --num-prompts 400 \
  --request-rate 8 --burstiness 0.25 --seed 7 --goodput ttft:500 tpot:40 --percentile-metrics ttft,tpot

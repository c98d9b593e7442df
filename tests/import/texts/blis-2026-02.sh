./simulation_worker run --model meta-llama/llama-3.1-8b-instruct --hardware H100 --tp 1 --max-num-running-reqs 128 \
  --max-num-scheduled-tokens 4096 --alpha-coeffs 232.46,1.75,3357.44 --beta-coeffs 5752.7,17.25,5.99 --scheduler priority-fcfs \
  --priority-policy slo-based

vllm bench sweep serve_sla \
  --serve-cmd "vllm serve mistralai/Mistral-7B-Instruct-v0.3" \
  --bench-cmd "vllm bench serve --model mistralai/Mistral-7B-Instruct-v0.3 --dataset-name random --random-input-len 512 --random-output-len 64 --request-rate 4" \
  --serve-params tp.json \
  --link-vars max_num_seqs=max_concurrency \
  --sla-params sla.json \
  --sla-variable request_rate \
  -o results

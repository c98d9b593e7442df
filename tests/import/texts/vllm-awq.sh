vllm serve Qwen/Qwen2.5-72B-Instruct-AWQ --quantization awq_marlin -tp 2 -pp 2 --block-size 32 --scheduling-policy priority

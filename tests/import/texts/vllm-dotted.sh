vllm serve zai-org/GLM-4.5-Air -tp 4 --speculative-config.method mtp --speculative-config.num_speculative_tokens 2

VLLM_ALL2ALL_BACKEND=deepep_low_latency vllm serve deepseek-ai/DeepSeek-V3-0324 \
    --data-parallel-size 8 --enable-expert-parallel --trust-remote-code \
    --data-parallel-address 10.99.48.128 --data-parallel-rpc-port 13345

# 10.99.48.128
vllm serve deepseek-ai/DeepSeek-V3.1 --data-parallel-size 16 --data-parallel-size-local 8 \
  --data-parallel-address 10.99.48.128 --data-parallel-rpc-port 13345 --enable-expert-parallel
# the other
vllm serve deepseek-ai/DeepSeek-V3.1 --headless --data-parallel-size 16 --data-parallel-size-local 8 \
  --data-parallel-start-rank 8 --data-parallel-address 10.99.48.128 --data-parallel-rpc-port 13345 --enable-expert-parallel

export NCCL_P2P_DISABLE=1
vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2

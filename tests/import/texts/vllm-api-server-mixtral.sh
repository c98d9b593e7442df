python3 -u -m vllm.entrypoints.openai.api_server \
  --model mistralai/Mixtral-8x7B-Instruct-v0.1 \
  --tensor-parallel-size=2 --dtype half --swap-space 16 \
  --host 0.0.0.0 --port 8000

# Search over product texts: vectors from one card.
docker run --gpus all vllm/vllm-openai:v0.19.0 --model Qwen/Qwen3-Embedding-8B --runner pooling \
  --max-model-len 8192 --max-num-seqs 64
vllm bench serve --backend openai-embeddings --endpoint /v1/embeddings --model Qwen/Qwen3-Embedding-8B \
  --dataset-name random --random-input-len 700 --request-rate 25 --num-prompts 900

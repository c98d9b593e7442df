vllm serve Qwen/Qwen3-8B --port 8001 &
vllm-router --port 8000 --service-discovery static --static-backends "http://localhost:8001,http://localhost:8002" \
    --static-models "Qwen/Qwen3-8B,Qwen/Qwen3-8B" --routing-logic kvaware --kv-aware-threshold 1500

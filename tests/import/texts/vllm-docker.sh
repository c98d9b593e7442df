docker run --runtime nvidia --gpus '"device=0,1,2,3"' \
    -v ~/.cache/huggingface:/root/.cache/huggingface \
    --env "HUGGING_FACE_HUB_TOKEN=$HF_TOKEN" \
    -p 8000:8000 --ipc=host -d \
    vllm/vllm-openai:v0.15.1 \
    --model Qwen/Qwen3-32B --tensor-parallel-size 4 --max-model-len 32k

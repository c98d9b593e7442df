$model = "Qwen/Qwen3-8B"
$env:HF_HOME = "C:\models"
docker run --rm --gpus '"device=0,1"' -p 8000:8000 `
  -v ${env:HF_HOME}:/root/.cache/huggingface `
  vllm/vllm-openai:v0.19.1 `
  --model $model `
  --tensor-parallel-size 2 `
  --max-model-len 10000

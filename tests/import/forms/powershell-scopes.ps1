$env:MODEL_ID = "Qwen/Qwen3-14B"
$Seats = 48
$Length = '20480'
docker run --rm --gpus all `
  -e HF_TOKEN=$env:HF_TOKEN `
  vllm/vllm-openai:v0.19.1 `
  --model $Env:model_id `
  --max-num-seqs $seats `
  --max-model-len ${LENGTH}

if [ "$GPU" = small ]; then
  TP=2
else
  TP=8
fi
vllm serve Qwen/Qwen3-32B --tensor-parallel-size $TP
vllm bench serve --model Qwen/Qwen3-32B --dataset-name sharegpt --dataset-path ShareGPT_V3.json --num-prompts 500 --request-rate 4

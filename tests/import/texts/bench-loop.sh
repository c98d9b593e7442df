for USERS in 1 4 16; do
  vllm bench serve --model Qwen/Qwen3-8B --dataset-name random --random-input-len 2000 --random-output-len 200 \
    --max-concurrency $USERS --num-prompts $((USERS * 10)) --result-filename users-$USERS.json
done

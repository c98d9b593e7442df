python -m sglang.launch_server --model-path Qwen/Qwen3-8B --disaggregation-mode prefill --port 30001 &
python -m sglang.launch_server --model-path Qwen/Qwen3-8B --disaggregation-mode decode --port 30002 &
smg launch --pd-disaggregation --prefill http://127.0.0.1:30001 8998 --decode http://127.0.0.1:30002 \
    --prefill-policy cache_aware --decode-policy round_robin

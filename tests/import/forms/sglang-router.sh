# two workers by hand, and SGLang's gateway before them
python -m sglang.launch_server --model-path Qwen/Qwen3-8B --port 8001 --tp 1 &
python -m sglang_router.launch_router --worker-urls http://localhost:8001 http://localhost:8002 http://localhost:8003 \
    --policy cache_aware --cache-threshold 0.5 --balance-abs-threshold 32 --eviction-interval-secs 60 --port 30000

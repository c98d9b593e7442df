python -m sglang.launch_server --model-path Qwen/Qwen3-8B --disaggregation-mode prefill --port 30100 --chunked-prefill-size 4096
python -m sglang.launch_server --model-path Qwen/Qwen3-8B --disaggregation-mode decode --port 30200 --chunked-prefill-size $CHUNK

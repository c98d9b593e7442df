python3 -m sglang.launch_server --model-path Qwen/Qwen2.5-7B-Instruct --is-embedding --tp 2

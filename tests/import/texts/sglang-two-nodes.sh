python3 -m sglang.launch_server --model-path meta-llama/Llama-3.1-405B-Instruct-FP8 --tp 16 --dist-init-addr 172.16.4.52:20000 --nnodes 2 --node-rank 0
python3 -m sglang.launch_server --model-path meta-llama/Llama-3.1-405B-Instruct-FP8 --tp 16 --dist-init-addr 172.16.4.52:20000 --nnodes 2 --node-rank 1

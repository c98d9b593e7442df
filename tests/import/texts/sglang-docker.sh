docker run --gpus all --shm-size 32g -p 30000:30000 --ipc=host \
    lmsysorg/sglang:v0.5.5 \
    python3 -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct --host 0.0.0.0 --port 30000 --disable-radix-cache --max-running-requests 100

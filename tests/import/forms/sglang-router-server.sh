python3 -m sglang_router.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct --dp-size 4 \
    --router-policy power_of_two --host 0.0.0.0

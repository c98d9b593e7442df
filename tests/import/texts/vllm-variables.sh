export MODEL="meta-llama/Llama-3.3-70B-Instruct"
TP=8
MAX_LEN=${MAX_LEN:-16384}
vllm serve "$MODEL" --tensor-parallel-size ${TP} --max-model-len ${MAX_LEN:-16384} --max-num-seqs "$SEATS"

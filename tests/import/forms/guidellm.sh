guidellm benchmark --target http://localhost:8000 --rate-type concurrent --rate 16 --max-requests 320 \
  --data "prompt_tokens=1024,prompt_tokens_stdev=128,prompt_tokens_min=512,prompt_tokens_max=2048,output_tokens=200"

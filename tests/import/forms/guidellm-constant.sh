guidellm benchmark run --target http://localhost:8000 --profile constant --rate 5,10,20 --max-seconds 60 --data '{"prompt_tokens": 256, "output_tokens": 64}'

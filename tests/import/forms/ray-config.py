from ray import serve
from ray.serve.llm import LLMConfig, build_openai_app

llm_config = LLMConfig(
    model_loading_config=dict(
        model_id="qwen-0.5b",  # what clients say
        model_source="Qwen/Qwen3-8B",
    ),
    deployment_config=dict(
        autoscaling_config=dict(min_replicas=2, max_replicas=2)
    ),
    accelerator_type="L4",
    engine_kwargs=dict(tensor_parallel_size=2, max_model_len=4096),
)
app = build_openai_app({"llm_configs": [llm_config]})
serve.run(app, blocking=True)

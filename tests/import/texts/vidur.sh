python -m vidur.main \
 --replica_config_device a100 --replica_config_model_name meta-llama/Meta-Llama-3-8B \
 --cluster_config_num_replicas 2 --replica_config_tensor_parallel_size 1 --replica_config_num_pipeline_stages 1 \
 --request_generator_config_type synthetic --synthetic_request_generator_config_num_requests 512 \
 --length_generator_config_type zipf --zipf_request_length_generator_config_max_tokens 4096 \
 --interval_generator_config_type poisson --poisson_request_interval_generator_config_qps 6.45 \
 --replica_scheduler_config_type sarathi --sarathi_scheduler_config_batch_size_cap 512 --sarathi_scheduler_config_chunk_size 1024 \
 --random_forrest_execution_time_predictor_config_prediction_max_batch_size 512 --global_scheduler_config_type lor

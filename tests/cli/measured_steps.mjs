// Measured steps and prompts of one server, as tables that `servecast calibrate` reads.
export const server = 'model,gpu,engine,engine_version,tp';
export const of = 'meta-llama/Llama-3.1-8B-Instruct,NVIDIA H100 80GB HBM3,vllm,0.20.1,1';

export const steps = [
  `${server},batch,mean_context_tokens,itl_p50_ms`,
  `${of},1,256,7.9`,
  `${of},8,256,8.1`,
  `${of},64,256,9.6`,
  `${of},1,32000,9.9`,
  `${of},1,96000,13.2`,
  '',
].join('\n');
export const prompts = [
  `${server},prompt_tokens,ttft_p50_ms`,
  `${of},128,14`,
  `${of},1024,33`,
  `${of},4096,120`,
  '',
].join('\n');

// See latent.h.
#include "cost/layers/latent.h"

namespace servecast::layer_latent {

extern const LayerKindEntry kEntry = {
    .name = "latent",
    .help = "latent attention (MLA) to all tokens before, by the model's kv_lora_rank",
    .lacks = LatentLacks,
    .caches = [](const LayerInput& in) -> std::vector<KvLayer> {
      const std::int64_t values = in.model.kv_lora_rank + in.model.qk_rope_head_dim;
      return {{.token_bytes = values * in.kv_value_bytes, .block_size = 0}};
    },
    .work = LatentWork,
    .uncompared = false,
};

}  // namespace servecast::layer_latent

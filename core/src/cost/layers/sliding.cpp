// Attention to the last `window` tokens (Beltagy et al. 2020; Gemma 2 and 3, gpt-oss). vLLM begins
// with the smallest block of its kernels, whatever block size is asked for (rule A2).
#include "cost/layers/attention.h"

namespace servecast::layer_sliding {

extern const LayerKindEntry kEntry = {
    .name = "sliding",
    .help = "attention to the last `window` tokens",
    .lacks = OfWholeEngine(+[](const LayerInput& in) { return AttentionLacks(in, true); }),
    .caches = OfWholeEngine(
        +[](const LayerInput& in) { return AttentionCache(in, KvKind::kSliding, 16); }),
    .work = OfWholeEngine(+[](const LayerInput& in) {
      LayerWork w = AttentionWork(in);
      w.reach = static_cast<double>(in.layer.window);
      return w;
    }),
    .uncompared = false,
};

}  // namespace servecast::layer_sliding

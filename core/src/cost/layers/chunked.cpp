// Attention within chunks of `window` tokens, whose first sees itself only (Llama 4).
#include "cost/layers/attention.h"

namespace servecast::layer_chunked {

extern const LayerKindEntry kEntry = {
    .name = "chunked",
    .help = "attention within chunks of `window` tokens",
    .lacks = OfWholeEngine(+[](const LayerInput& in) { return AttentionLacks(in, true); }),
    .caches = OfWholeEngine(
        +[](const LayerInput& in) { return AttentionCache(in, KvKind::kChunked, 0); }),
    .work = OfWholeEngine(+[](const LayerInput& in) {
      LayerWork w = AttentionWork(in);
      w.reach = static_cast<double>(in.layer.window);
      w.chunked = true;
      return w;
    }),
};

}  // namespace servecast::layer_chunked

// Attention to all tokens before (Vaswani et al. 2017), with shared heads of keys and values
// (Ainslie et al. 2023).
#include "cost/layers/attention.h"

namespace servecast::layer_full {

extern const LayerKindEntry kEntry = {
    .name = "full",
    .help = "attention to all tokens before",
    .lacks = [](const LayerInput& in) { return AttentionLacks(in, false); },
    .caches = [](const LayerInput& in) { return AttentionCache(in, KvKind::kFull, 0); },
    .work = [](const LayerInput& in) { return AttentionWork(in); },
    .uncompared = false,
};

}  // namespace servecast::layer_full

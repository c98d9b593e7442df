// A layer that mixes no tokens: an MLP alone (Nemotron-H), or nothing at all (a pruned one).
#include "cost/layers/layer_kind.h"

namespace servecast::layer_none {

extern const LayerKindEntry kEntry = {
    .name = "none",
    .help = "mixes no tokens: an MLP alone",
    .lacks = OfWholeEngine(+[](const LayerInput&) { return std::string(); }),
    .caches = OfWholeEngine(+[](const LayerInput&) { return std::vector<KvLayer>(); }),
    .work = OfWholeEngine(+[](const LayerInput&) { return LayerWork(); }),
    .uncompared = false,
};

}  // namespace servecast::layer_none

// Links between nodes (docs/model.md, "Beyond a node"): what a group takes that has more GPUs than
// a node, and what travels from one node to another. Nothing here counts within a node.
#pragma once

#include <cstdint>
#include <string>

#include "servecast/scenario.h"

namespace servecast {

// Whether a group of so many GPUs lies on several nodes whose links are known.
bool SpansNodes(const HardwareSpec& hardware, double group);

// ns that all-reduces of a group on several nodes take beside those within a node, for bytes and
// for so many calls. Not decreasing in `group`. Require: SpansNodes.
double AcrossNodesNs(const HardwareSpec& hardware, double group, double bytes);
double AcrossNodesWaitNs(const HardwareSpec& hardware, double group, double calls);

// What one GPU sends to another: ns beside the bytes, and bytes a ns.
struct SendTime {
  double wait_ns = 0, gb_s = 0;
};
// From a pipeline stage to the next one. The GPUs of a replica's stages, in their order, fill one
// node after the other.
SendTime StageSend(const Scenario& scenario, std::int64_t stage);

// Of the link between prefill and decode, a GPU's to another node, where nothing is known of it:
// what Vidur's profiles measured between two DGX H100.
inline constexpr double kTransferGbS = 34;
// As the scenario says, else of the slowest pool's GPU that has a part in it. `embeddings`: of the
// link from encoders to those that prefill.
double TransferGbS(const Scenario& scenario, bool embeddings = false);

// What a reader should know of the links between nodes that the scenario hangs on, those within a
// replica if steps are priced by them; "": nothing.
std::string NodesNote(const Scenario& scenario, bool of_steps);

}  // namespace servecast

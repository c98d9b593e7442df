// See all_reduce.h.
#include "cost/all_reduce.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "cost/nodes.h"

namespace servecast {
namespace {

// Of the link's bandwidth that all-reduces of 1 MB and more reach: 0.45 to 0.55 (custom all-reduce
// of vLLM on 2 and 4 H100, ai-dynamo/aiconfigurator@095f58a, systems/data).
constexpr double kLinkShare = 0.5;
// Ranks wait for the slowest of them at every all-reduce: so much of its latency more with every
// doubling of the group. Llama-3.1-70B on 1, 2, 4 and 8 H200, vLLM and TensorRT-LLM alike
// (same repository, systems/silicon_sample.csv): 1.8, 4.2 and 6.1 us beside 5.
constexpr double kRankWait = 0.4;
// PCIe through one host is shared by the group: beyond two GPUs all-reduces of 2 MB take 3.1 times
// as long on 4 L40S, and 11.4 times on 8, as rings would (same repository, systems/data/l40s,
// NCCL); (group/2)^1.5 is taken up to that card's bandwidth. One host; between it and the slowest
// NVLink of the presets, the A100's, what is added fades with the logarithm of the bandwidth.
constexpr double kPcieGbS = 32, kNvlinkGbS = 300;

}  // namespace

double AllReduceWaitNs(const HardwareSpec& hardware, double group, double calls) {
  if (SpansNodes(hardware, group)) {
    return AllReduceWaitNs(hardware, static_cast<double>(hardware.gpus_per_node), calls) +
           AcrossNodesWaitNs(hardware, group, calls);
  }
  return calls * hardware.interconnect_latency_us * 1e3 * (1 + kRankWait * Log(group) / Log(2.0));
}

double AllReduceNs(const HardwareSpec& hardware, double group, double bytes) {
  if (SpansNodes(hardware, group)) {
    return AllReduceNs(hardware, static_cast<double>(hardware.gpus_per_node), bytes) +
           AcrossNodesNs(hardware, group, bytes);
  }
  const double link = hardware.interconnect_gb_s;
  const double ns = bytes * 2 * (group - 1) / group / (link * kLinkShare);
  if (link >= kNvlinkGbS || group <= 2) return ns;
  const double shared = std::min(1.0, Log(kNvlinkGbS / link) / Log(kNvlinkGbS / kPcieGbS));
  return ns * (1 + (group / 2 * std::sqrt(group / 2) - 1) * shared);
}

}  // namespace servecast

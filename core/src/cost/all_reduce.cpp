// See all_reduce.h.
#include "cost/all_reduce.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "cost/nodes.h"

namespace servecast {
namespace {

// Of the link's bandwidth that all-reduces of 2 MB and more reach on two GPUs: 0.45 to 0.6 (the
// faster of vLLM's kernel and NCCL on A100, H100, H200, B200, GB200 and B300,
// ai-dynamo/aiconfigurator@095f58a, systems/data).
constexpr double kLinkShare = 0.5;
// A ring moves 2 (n - 1) / n of the bytes. Behind a switch larger groups reach more of the link, as
// it adds up on the way or all are read at once: what they take grows as this power of it. Beside
// the share above the same tables are met within 3 and 5 % in the median on 4 and 8 GPUs; as of a
// ring, 1, they would be 26 and 37 % slower. With a share of their own they ask for 0.55 to 0.7.
constexpr double kSwitchedPower = 0.5;
// Ranks wait for the slowest of them at every all-reduce: so much of its latency more with every
// doubling of the group, beside kAlone of it. Closed loops of dense models on 2, 4 and 8 H100 and
// H200, vLLM and SGLang (same repository, systems/silicon_sample.csv): 0.4 to 0.6.
constexpr double kRankWait = 0.5, kAlone = 0.9;
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
  return calls * hardware.interconnect_latency_us * 1e3 *
         (kAlone + kRankWait * Log(group) / Log(2.0));
}

double AllReduceNs(const HardwareSpec& hardware, double group, double bytes) {
  if (SpansNodes(hardware, group)) {
    return AllReduceNs(hardware, static_cast<double>(hardware.gpus_per_node), bytes) +
           AcrossNodesNs(hardware, group, bytes);
  }
  const double link = hardware.interconnect_gb_s;
  const double ring = 2 * (group - 1) / group;
  if (group <= 2) return bytes * ring / (link * kLinkShare);
  const double shared =
      link >= kNvlinkGbS ? 0 : std::min(1.0, Log(kNvlinkGbS / link) / Log(kNvlinkGbS / kPcieGbS));
  const double power = kSwitchedPower + (1 - kSwitchedPower) * shared;
  return bytes * Exp(power * Log(ring)) / (link * kLinkShare) *
         (1 + (group / 2 * std::sqrt(group / 2) - 1) * shared);
}

}  // namespace servecast

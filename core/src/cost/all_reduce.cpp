// See all_reduce.h.
#include "cost/all_reduce.h"

#include <algorithm>

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
// PCIe, cards that read each other's memory: of the link's bandwidth that rings of 2 MB and more
// reach on two cards, and how it falls in larger groups. 2 L40S (0.60 of PCIe 4.0) and 2, 4 and 8
// RTX PRO 6000 (0.60, 0.47 and 0.38 of PCIe 5.0), vLLM under CUDA graphs (same repository,
// systems/data/l40s and rtx_pro_6000_server): within 1 % in the median on two cards, 6 % on more.
constexpr double kPeerShare = 0.6, kPeerPower = 1.0 / 3;
// PCIe through the host: GB/s that all cards of a group receive together, whatever their number. 4
// and 8 L40S (same repository), rings of 2 MB and more: 14.9 and 15.6, within 4 % at 15. One host;
// that a pair or PCIe 5.0 share the same is assumed.
constexpr double kHostGbS = 15;
// NCCL's rings take a hop for each member: of the latency, which is of four cards on PCIe, so much
// for each. 12 to 13 us on 4 and 22 to 25 on 8, L40S and RTX PRO 6000 alike (same repository).
constexpr double kHop = 0.25;
// PCIe 6.0 with 16 lanes has 121 GB/s in a direction, the NVLink of a V100 150 by its data sheet.
constexpr double kLeastNvlinkGbS = 125;

}  // namespace

double AllReduceWaitNs(const HardwareSpec& hardware, double group, double calls) {
  if (SpansNodes(hardware, group)) {
    return AllReduceWaitNs(hardware, static_cast<double>(hardware.gpus_per_node), calls) +
           AcrossNodesWaitNs(hardware, group, calls);
  }
  const bool switched = InterconnectOf(hardware) == Interconnect::kNvlink;
  const double alone = switched ? kAlone : std::max(kAlone, kHop * group);
  return calls * hardware.interconnect_latency_us * 1e3 *
         (alone + kRankWait * Log(group) / Log(2.0));
}

double AllReduceNs(const HardwareSpec& hardware, double group, double bytes) {
  if (SpansNodes(hardware, group)) {
    return AllReduceNs(hardware, static_cast<double>(hardware.gpus_per_node), bytes) +
           AcrossNodesNs(hardware, group, bytes);
  }
  const double link = hardware.interconnect_gb_s;
  const double ring = 2 * (group - 1) / group;
  const Interconnect kind = InterconnectOf(hardware);
  if (kind == Interconnect::kNvlink) {
    const double moved = group <= 2 ? ring : Exp(kSwitchedPower * Log(ring));
    return bytes * moved / (link * kLinkShare);
  }
  const double crowd = group <= 2 ? 1 : Exp(kPeerPower * Log(group / 2));
  const double as_peers = bytes * ring * crowd / (link * kPeerShare);
  if (kind == Interconnect::kPcieP2p) return as_peers;
  return std::max(as_peers, bytes * ring * group / kHostGbS);
}

double SendGbS(const HardwareSpec& hardware) {
  const double link = hardware.interconnect_gb_s;
  return InterconnectOf(hardware) == Interconnect::kPcieHost ? std::min(link, kHostGbS) : link;
}

Interconnect InterconnectOf(const HardwareSpec& hardware) {
  if (hardware.interconnect != Interconnect::kAuto) return hardware.interconnect;
  return hardware.interconnect_gb_s >= kLeastNvlinkGbS ? Interconnect::kNvlink
                                                       : Interconnect::kPcieHost;
}

bool InterconnectContradictsItsBandwidth(const HardwareSpec& hardware) {
  return InterconnectOf(hardware) != Interconnect::kNvlink &&
         hardware.interconnect_gb_s >= kLeastNvlinkGbS;
}

bool InterconnectIsGuessed(const HardwareSpec& hardware) {
  return hardware.interconnect == Interconnect::kAuto &&
         InterconnectOf(hardware) != Interconnect::kNvlink;
}

}  // namespace servecast

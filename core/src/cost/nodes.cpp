// See nodes.h.
#include "cost/nodes.h"

#include <algorithm>
#include <cmath>

#include "base/base.h"
#include "base/math.h"
#include "base/text.h"
#include "cost/all_reduce.h"
#include "cost/model_cost.h"

namespace servecast {
namespace {

// Of a link's bandwidth by the data sheet: send and receive between two DGX H100, whose GPUs have
// 400 Gb/s each, reach 34 GB/s (microsoft/vidur@7d47513, data/profiling/network/h100_dgx).
constexpr double kReachedShare = 0.68;
double GbS(const HardwareSpec& h) { return h.inter_node_gb_s * kReachedShare; }

double NodesOf(const HardwareSpec& h, double group) {
  return std::ceil(group / static_cast<double>(h.gpus_per_node));
}

// "50 GB/s"
std::string GbSText(double gb_s) { return ShortNumber(gb_s) + " GB/s"; }

// GPUs of the largest group that moves data in every step.
std::int64_t GroupOf(const PoolSpec& pool) {
  return pool.tensor_parallel * pool.attention_data_parallel;
}

}  // namespace

bool SpansNodes(const HardwareSpec& h, double group) {
  return h.gpus_per_node > 0 && h.inter_node_gb_s > 0 &&
         group > static_cast<double>(h.gpus_per_node);
}

double AcrossNodesNs(const HardwareSpec& h, double group, double bytes) {
  const double nodes = NodesOf(h, group);
  const double of_gpu = bytes / static_cast<double>(h.gpus_per_node);
  return of_gpu * 2 * (nodes - 1) / nodes / GbS(h);
}

double AcrossNodesWaitNs(const HardwareSpec& h, double group, double calls) {
  return calls * 2 * Log(NodesOf(h, group)) / Log(2.0) * h.inter_node_latency_us * 1e3;
}

SendTime StageSend(const Scenario& s, std::int64_t stage) {
  const HardwareSpec& h = s.hardware;
  const std::int64_t gpus = s.cluster.pool().tensor_parallel;
  if (h.gpus_per_node > 0 && h.inter_node_gb_s > 0) {
    const std::int64_t first = stage * gpus, last = first + 2 * gpus - 1;
    if (first / h.gpus_per_node != last / h.gpus_per_node) {
      return {h.inter_node_latency_us * 1e3, GbS(h)};
    }
  }
  return {h.interconnect_latency_us * 1e3, SendGbS(h)};
}

double TransferGbS(const Scenario& s, bool embeddings) {
  if (s.cluster.disaggregation.bandwidth_gb_s) return *s.cluster.disaggregation.bandwidth_gb_s;
  double least = 0;
  for (const PoolSpec& pool : s.cluster.pools) {
    const bool idle = embeddings ? pool.role == PoolRole::kDecode
                                 : pool.role == PoolRole::kMixed || pool.role == PoolRole::kEncode;
    if (idle) continue;
    const HardwareSpec& h = pool.hardware ? *pool.hardware : s.hardware;
    const double gb_s = h.inter_node_gb_s > 0 ? GbS(h) : kTransferGbS;
    if (least == 0 || gb_s < least) least = gb_s;
  }
  return least > 0 ? least : kTransferGbS;
}

std::string NodesNote(const Scenario& s, bool of_steps) {
  std::string note;
  const auto add = [&note](const std::string& sentence) {
    if (note.find(sentence) != std::string::npos) return;
    note += (note.empty() ? "" : " ") + sentence;
  };
  const bool transfers =
      s.cluster.Has(PoolRole::kPrefill) && !s.cluster.disaggregation.bandwidth_gb_s;
  for (const PoolSpec& pool : s.cluster.pools) {
    const HardwareSpec& h = pool.hardware ? *pool.hardware : s.hardware;
    const std::int64_t node = h.gpus_per_node, group = GroupOf(pool);
    const std::int64_t replica = pool.tensor_parallel * pool.pipeline_parallel;
    const char* source = h.nodes_assumed ? "which is assumed" : "by the data sheet";
    if (of_steps && node > 0 && std::max(group, replica) > node) {
      const std::string of = group > node ? Format("A group of {} GPUs", group)
                                          : Format("A pipeline of {} GPUs", replica);
      if (h.inter_node_gb_s > 0) {
        add(Format(
            "{} spans {} nodes, whose links count as {} per GPU, {}; no server was measured "
            "with them.",
            of, CeilDiv(std::max(group, replica), node), GbSText(h.inter_node_gb_s), source));
      } else {
        add(
            Format("{} spans several nodes, but is priced as if in one: inter_node_gb_s is not "
                   "known.",
                   of));
      }
    }
    if (transfers && pool.role != PoolRole::kMixed && h.nodes_assumed) {
      add(Format("KV travels from prefill to decode at {}, which is assumed of this GPU's nodes.",
                 GbSText(TransferGbS(s))));
    }
  }
  return note;
}

}  // namespace servecast

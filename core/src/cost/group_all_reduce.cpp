// See group_all_reduce.h.
#include "cost/group_all_reduce.h"

#include <algorithm>

#include "base/math.h"
#include "cost/all_reduce.h"
#include "cost/nodes.h"

namespace servecast {
namespace {

double Gpus(std::int64_t n) { return static_cast<double>(n); }

// Whether all-reduces of the tables are over links of the kind that the GPU has. Those on PCIe were
// measured on one host: pairs as peers, larger groups through its memory.
bool SameLinks(const OperatorSet& set, const HardwareSpec& h, double group) {
  const Interconnect kind = InterconnectOf(h);
  HardwareSpec measured;
  measured.interconnect_gb_s = set.interconnect_gb_s;
  if (InterconnectOf(measured) == Interconnect::kNvlink) return kind == Interconnect::kNvlink;
  if (h.interconnect == Interconnect::kAuto) return kind != Interconnect::kNvlink;
  return kind == (group <= 2 ? Interconnect::kPcieP2p : Interconnect::kPcieHost);
}

}  // namespace

GroupAllReduce::GroupAllReduce(const OperatorSet& set, const HardwareSpec& h, std::int64_t group,
                               double value_bytes)
    : hardware_(h),
      whole_(Gpus(group)),
      group_(SpansNodes(h, Gpus(group)) ? Gpus(h.gpus_per_node) : Gpus(group)),
      value_bytes_(value_bytes) {
  const OperatorTable* below = nullptr;
  const OperatorTable* above = nullptr;
  for (const OperatorTable& t : set.tables) {
    if (t.op != "all_reduce" || !SameLinks(set, h, group_)) continue;
    const std::int64_t size = t.shape[0];
    if (Gpus(size) <= group_ && (below == nullptr || size > below->shape[0])) below = &t;
    if (Gpus(size) > group_ && (above == nullptr || size < above->shape[0])) above = &t;
  }
  if (below == nullptr) return;
  const auto grid_of = [&](const OperatorTable& t) {
    const double n = Gpus(t.shape[0]);
    const double wire = 2 * (n - 1) / n * value_bytes / h.interconnect_gb_s;
    return OperatorGrid(t, [=](const OperatorPoint& p) { return p[0] * wire; });
  };
  below_ = grid_of(*below);
  of_below_ = Gpus(below->shape[0]);
  least_values_ = static_cast<double>(below->axes[0].front());
  if (above == nullptr) return;
  above_ = grid_of(*above);
  of_above_ = Gpus(above->shape[0]);
}

bool GroupAllReduce::Measured(double values) const {
  return whole_ == group_ && below_ && of_below_ == group_ && below_->Covers({values, 1, 1});
}

double GroupAllReduce::Ns(double values) const {
  const double ns = NsInNode(values);
  if (whole_ == group_) return ns;
  return ns + AcrossNodesWaitNs(hardware_, whole_, 1) +
         AcrossNodesNs(hardware_, whole_, values * value_bytes_);
}

double GroupAllReduce::NsInNode(double values) const {
  const double bytes = values * value_bytes_;
  if (!below_) return AllReduceWaitNs(hardware_, group_, 1) + AllReduceNs(hardware_, group_, bytes);
  const double ns = below_->Ns({values, 1, 1});
  if (of_below_ == group_) return ns;
  if (above_) {
    const double way = Log(group_ / of_below_) / Log(of_above_ / of_below_);
    return ns + way * (above_->Ns({values, 1, 1}) - ns);
  }
  const double hops = (group_ - 1) / (of_below_ - 1);
  const double traffic = AllReduceNs(hardware_, group_, 1) / AllReduceNs(hardware_, of_below_, 1);
  const double wait = std::min(ns, below_->Ns({least_values_, 1, 1}));
  return hops * wait + traffic * (ns - wait);
}

}  // namespace servecast

// One queue for all replicas: a replica is sent as many requests as it may have at a time, and the
// next in line when it has ended one. With as many as its own seats, no request waits behind one
// on one replica while another has a seat free. Of those that have room the one with the fewest.
#include <vector>

#include "base/whole_engine.h"
#include "serving/cluster/router.h"

namespace servecast::router_central_queue {
namespace {

class CentralQueue final : public Router {
 public:
  explicit CentralQueue(const RouterInput& input) {
    const auto most = static_cast<std::int64_t>(input.params[0]);
    for (const RoutedReplica& replica : input.replicas) {
      most_.push_back(most > 0 ? most : replica.seats);
      differ_ = differ_ || most_.back() != most_.front();
    }
  }

  std::int32_t Choose(const RoutedRequest&, const ReplicaLoads& loads) override {
    std::int32_t chosen = loads.Least();
    if (HasRoom(chosen, loads)) return chosen;
    chosen = kHold;
    for (std::int32_t i = 0; differ_ && i < static_cast<std::int32_t>(most_.size()); ++i) {
      if (!HasRoom(i, loads)) continue;
      if (chosen == kHold || loads.Outstanding(i) < loads.Outstanding(chosen)) chosen = i;
    }
    return chosen;
  }

 private:
  bool HasRoom(std::int32_t replica, const ReplicaLoads& loads) const {
    return loads.Outstanding(replica) < most_[static_cast<std::size_t>(replica)];
  }

  std::vector<std::int64_t> most_;  // by replica
  bool differ_ = false;             // else all are full when the least loaded is
};

std::unique_ptr<Router> Make(const RouterInput& input) {
  return std::make_unique<CentralQueue>(input);
}

constexpr ParamSpec kParams[] = {
    {"max_outstanding", "requests", 0, 65536, 0,
     "most requests on a replica; the others wait at the gateway; 0: its engine.max_num_seqs",
     true}};

}  // namespace

extern const RouterEntry kEntry = {
    .name = "central_queue",
    .help = "requests wait at the gateway, first come, first served, until a replica has room",
    .make = OfWholeEngine(Make),
    .params = kParams,
    .holds = true};

}  // namespace servecast::router_central_queue

// Prompts that begin alike to one replica, as far as its load allows. A content segment is at home
// where it was sent. The deepest segment of a prompt whose home has room decides; without one the
// least loaded replica does. Room: fewer than c (m + 1) / n requests, rounded up, with m on all n
// replicas - the bound of consistent hashing with bounded loads (Mirrokni, Thorup, Zadimoghaddam,
// arXiv:1608.01350), which keeps a beginning that all share from filling one replica.
#include <cmath>
#include <vector>

#include "base/whole_engine.h"
#include "serving/cluster/router.h"

namespace servecast::router_prefix_affinity {
namespace {

class PrefixAffinity final : public Router {
 public:
  explicit PrefixAffinity(const RouterInput& input) : load_factor_(input.params[0]) {}

  std::int32_t Choose(const RoutedRequest& request, const ReplicaLoads& loads) override {
    const double mean = static_cast<double>(loads.total() + 1) / static_cast<double>(loads.count());
    const auto most = static_cast<std::int64_t>(std::ceil(load_factor_ * mean));
    std::int32_t chosen = kNone;
    for (std::size_t i = request.content.size(); i > 0 && chosen == kNone; --i) {
      const std::int32_t home = HomeOf(request.content[i - 1].segment);
      if (home != kNone && loads.Outstanding(home) < most) chosen = home;
    }
    if (chosen == kNone) chosen = loads.Least();
    Settle(request.content, chosen);
    return chosen;
  }

 private:
  static constexpr std::int32_t kNone = -1;

  std::int32_t HomeOf(std::int32_t segment) const {
    const auto s = static_cast<std::size_t>(segment);
    return s < homes_.size() ? homes_[s] : kNone;
  }
  // What has no home is at home there now, and so is the deepest segment: its latest prompt is
  // there.
  void Settle(std::span<const ContentRange> content, std::int32_t replica) {
    for (std::size_t i = 0; i < content.size(); ++i) {
      const auto s = static_cast<std::size_t>(content[i].segment);
      if (s >= homes_.size()) homes_.resize(s + 1, kNone);
      if (homes_[s] == kNone || i + 1 == content.size()) homes_[s] = replica;
    }
  }

  double load_factor_;
  std::vector<std::int32_t> homes_;  // by segment
};

std::unique_ptr<Router> Make(const RouterInput& input) {
  return std::make_unique<PrefixAffinity>(input);
}

constexpr ParamSpec kParams[] = {
    {"load_factor", "1", 1, 1000, 1.25,
     "most requests on a replica, relative to the mean with the new one, rounded up"},
    kStaleness};

}  // namespace

extern const RouterEntry kEntry = {.name = "prefix_affinity",
                                   .help =
                                       "the replica that was sent the longest known prefix "
                                       "of the prompt, unless it has too many requests",
                                   .make = OfWholeEngine(Make),
                                   .params = kParams,
                                   .reads_content = true};

}  // namespace servecast::router_prefix_affinity

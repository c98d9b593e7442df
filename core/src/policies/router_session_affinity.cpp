// All turns of a conversation to one replica, whose prefix cache knows it.
#include "base/random.h"
#include "serving/cluster/router.h"

namespace servecast::router_session_affinity {
namespace {

class SessionAffinity final : public Router {
 public:
  std::int32_t Choose(const RoutedRequest& request, const ReplicaLoads& loads) override {
    return ReplicaOfKey(Mix64(static_cast<std::uint64_t>(request.session) + 1), loads.count());
  }
};

}  // namespace

extern const RouterEntry kEntry = {
    "session_affinity", "one replica for all turns of a conversation, by a consistent hash",
    [](const RouterInput&) { return std::unique_ptr<Router>(std::make_unique<SessionAffinity>()); },
    true};

}  // namespace servecast::router_session_affinity

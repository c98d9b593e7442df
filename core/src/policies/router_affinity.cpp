// Who belongs together goes to one replica, whose prefix cache knows it.
#include "base/random.h"
#include "serving/router.h"

namespace servecast {
namespace {

class SessionAffinity final : public Router {
 public:
  std::int32_t Choose(const RoutedRequest& request, const ReplicaLoads& loads) override {
    return ReplicaOfKey(Mix64(static_cast<std::uint64_t>(request.session) + 1), loads.count());
  }
};

class PrefixAffinity final : public Router {
 public:
  std::int32_t Choose(const RoutedRequest& request, const ReplicaLoads& loads) override {
    if (request.prefix < 0) return loads.Least();
    return ReplicaOfKey(Mix64(static_cast<std::uint64_t>(request.prefix) + 1), loads.count());
  }
};

}  // namespace

extern const RouterEntry kRouterSessionAffinity;
const RouterEntry kRouterSessionAffinity = {
    "session_affinity", "all turns of a conversation to one, by a consistent hash",
    [](std::int64_t) { return std::unique_ptr<Router>(std::make_unique<SessionAffinity>()); },
    true};

extern const RouterEntry kRouterPrefixAffinity;
const RouterEntry kRouterPrefixAffinity = {
    "prefix_affinity",
    "all prompts with one beginning to one, by a consistent hash; others as least_outstanding",
    [](std::int64_t) { return std::unique_ptr<Router>(std::make_unique<PrefixAffinity>()); }};

}  // namespace servecast

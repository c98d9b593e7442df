// session-affinity-scorer and session-affinity-filter: the endpoint that a session is bound to.
//
// Strategy "header" (the default): the request names the endpoint. "session_id": a table. The first
// choice binds, a use renews; an unused binding is removed by a sweep, not on reading.
#include <algorithm>
#include <map>

#include "serving/cluster/epp/plugin.h"

namespace servecast::epp::session_affinity {
namespace {

class SessionAffinity final : public Plugin {
 public:
  explicit SessionAffinity(const Settings& settings)
      : by_table_(settings.Text("strategy") == "session_id"),
        ttl_(settings.Whole("sessionIdConfig.evictionTtlSeconds") * kNsPerS),
        sweep_(settings.Whole("sessionIdConfig.evictionSweepSeconds") * kNsPerS) {}

  void Filter(const Request& request, Endpoints endpoints, Survivors& survivors) override {
    const std::int64_t bound = BoundOf(request, endpoints, survivors);
    KeepIfAny(endpoints, survivors, [&](const Endpoint& e) { return e.id == bound; });
  }

  void Score(const Request& request, Endpoints endpoints, const Survivors& survivors,
             std::span<double> scores) override {
    const std::int64_t bound = BoundOf(request, endpoints, survivors);
    ScoreEach(endpoints, survivors, scores,
              [&](const Endpoint& e) { return e.id == bound ? 1.0 : 0.0; });
  }

  void Chosen(const Request& request, const Choice& choice) override {
    if (!by_table_ || request.session == kUnknown) return;
    const auto [binding, is_new] =
        bindings_.try_emplace(request.session, Binding{choice.primary, request.time});
    if (is_new || !bound_is_candidate_) {
      binding->second = {choice.primary, request.time};
    } else if (binding->second.endpoint == choice.primary) {
      binding->second.used = request.time;
    }
  }

 private:
  struct Binding {
    std::int32_t endpoint = -1;
    TimeNs used = 0;
  };

  // An id, or kUnknown.
  std::int64_t BoundOf(const Request& request, Endpoints endpoints, const Survivors& survivors) {
    if (!by_table_) return request.named_endpoint;
    Sweep(request.time);
    const auto binding = bindings_.find(request.session);
    if (binding == bindings_.end()) return kUnknown;
    const std::int32_t bound = binding->second.endpoint;
    bound_is_candidate_ = std::any_of(survivors.begin(), survivors.end(),
                                      [&](std::int32_t i) { return At(endpoints, i).id == bound; });
    return bound;
  }

  void Sweep(TimeNs now) {
    const TimeNs last = now / sweep_ * sweep_;
    if (last <= swept_) return;
    // Only the last of several sweeps counts: no use lies between them.
    std::erase_if(bindings_, [&](const auto& item) { return last - item.second.used > ttl_; });
    swept_ = last;
  }

  bool by_table_;
  TimeNs ttl_, sweep_;
  std::map<std::int64_t, Binding> bindings_;  // by session
  TimeNs swept_ = 0;
  bool bound_is_candidate_ = false;  // of the request that was looked at last
};

constexpr SettingSpec kSettings[] = {
    {.path = "strategy", .kind = SettingSpec::Kind::kText, .words = "header session_id"},
    {.path = "headerName", .kind = SettingSpec::Kind::kText},
    {.path = "sessionIdConfig.headerName", .kind = SettingSpec::Kind::kText},
    {.path = "sessionIdConfig.evictionTtlSeconds",
     .kind = SettingSpec::Kind::kWhole,
     .fallback = 300,
     .least = 1,
     .most = 1e8},
    {.path = "sessionIdConfig.evictionSweepSeconds",
     .kind = SettingSpec::Kind::kWhole,
     .fallback = 10,
     .least = 1,
     .most = 1e8}};

std::unique_ptr<Plugin> Make(const Settings& settings) {
  return std::make_unique<SessionAffinity>(settings);
}

}  // namespace

namespace scorer {
extern const PluginEntry kEntry = {.type = "session-affinity-scorer",
                                   .help = "1 for the endpoint that the session is bound to",
                                   .scores = true,
                                   .make = Make,
                                   .settings = kSettings};
}  // namespace scorer

namespace filter {
extern const PluginEntry kEntry = {
    .type = "session-affinity-filter",
    .help = "keeps the endpoint that the session is bound to, if present",
    .filters = true,
    .make = Make,
    .settings = kSettings};
}  // namespace filter

}  // namespace servecast::epp::session_affinity

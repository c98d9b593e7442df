// Sequences of the endpoint picker's flow control: a pool whose load is counted, read every 50 ms,
// or given, and requests whose outcome and time must be equal.
#include <algorithm>
#include <iterator>
#include <queue>
#include <set>
#include <tuple>

#include "fmt/format.h"
#include "serving/cluster/epp/flow_control.h"
#include "testing/epp_golden_parts.h"

namespace servecast::testing::epp_golden {
namespace {

constexpr TimeNs kScrapePeriod = 50 * kNsPerMs, kScrapeLag = 900'000;
constexpr TimeNs kCyclePeriod = epp::FlowControl::kTick,
                 kSweepPeriod = epp::FlowControl::kSweepPeriod;
constexpr TimeNs kNotRead =
    -3600 * kNsPerS;  // of an endpoint that came while scrapes of it stood still

TimeNs TimeOf(const Json& ms) { return NearestNs(ms.get<double>() * kMs); }
TimeNs TimeOf(const Json& of, const char* member, TimeNs absent) {
  return of.contains(member) ? TimeOf(of[member]) : absent;
}

// As a configuration says it, which scenarios read.
epp::FlowSettings SettingsOf(const Json& row) {
  EppConfig config;
  config.plugins.push_back(
      {"limits", row["usage_limit_policy"], ParametersOf(row["usage_limit_parameters"])});
  EppFlowControl& flow = config.flow.emplace();
  flow.limits = "limits";
  for (const Json& band : row["bands"]) {
    EppBand added{
        .priority = band["priority"], .ordering = band["ordering"], .fairness = band["fairness"]};
    if (band["max_requests"] > 0) added.max_requests = band["max_requests"];
    if (band["max_bytes"] > 0) added.max_bytes = band["max_bytes"];
    flow.bands.push_back(added);
  }
  flow.max_requests = row["max_requests"];
  flow.max_bytes = row["max_bytes"];
  flow.ttl_ns = TimeOf(row["default_ttl_ms"]);
  epp::FlowSettings settings = epp::FlowSettingsOf(config);
  settings.no_endpoint_ttl = TimeOf(row["no_endpoint_ttl_ms"]);
  return settings;
}

// Endpoints of a sequence, and what the detector sees of them.
class World {
 public:
  explicit World(const Json& row)
      : kind_(row["world"]),
        capacity_(row.value("running_capacity", std::int64_t{0})),
        kv_per_request_(row.value("kv_per_request", 0.0)),
        pods_(row["endpoints"].get<std::size_t>()) {
    for (std::size_t e = 0; e < pods_.size(); ++e) {
      pods_[e].seen.id = static_cast<std::int32_t>(e);
      if (row.contains("role")) pods_[e].seen.role = epp::RoleOf(row["role"][e].get<std::string>());
    }
    for (const Json& event : row["initial"]) Happen(event, 0);
    Scrape(0);
  }

  void Happen(const Json& event, TimeNs now) {
    Pod& pod = pods_[event["endpoint"].get<std::size_t>()];
    const std::string what = event["what"];
    if (what == "load" || event.contains("waiting") || event.contains("kv")) {
      pod.waiting = event.value("waiting", std::int64_t{0});
      pod.kv = event.value("kv", 0.0);
    }
    if (what == "up") {
      pod.is_up = true;
      Read(pod, pod.is_scraped ? now : kNotRead);
    }
    if (what == "down") pod.is_up = false;
    if (what == "stale" || what == "fresh") pod.is_scraped = what == "fresh";
  }

  void Scrape(TimeNs now) {
    for (Pod& pod : pods_) {
      if (pod.is_up && pod.is_scraped) Read(pod, now);
    }
  }

  // Where a dispatched request goes: the fewest in flight.
  std::int32_t Place(std::int64_t tokens) {
    std::size_t chosen = pods_.size();
    for (std::size_t e = 0; e < pods_.size(); ++e) {
      if (!pods_[e].is_up) continue;
      if (chosen == pods_.size() || Inflight(e) < Inflight(chosen)) chosen = e;
    }
    if (chosen == pods_.size()) chosen = 0;
    Change(static_cast<std::int32_t>(chosen), 1, tokens);
    return static_cast<std::int32_t>(chosen);
  }
  void Change(std::int32_t pod, std::int64_t requests, std::int64_t tokens) {
    epp::Endpoint& seen = pods_[static_cast<std::size_t>(pod)].seen;
    seen.inflight_requests += requests;
    seen.inflight_tokens += tokens;
  }

  std::vector<epp::Endpoint> Pool(TimeNs now) const {
    std::vector<epp::Endpoint> pool;
    for (const Pod& pod : pods_) {
      if (!pod.is_up) continue;
      pool.push_back(pod.seen);
      pool.back().age = now - pod.read_at;
    }
    return pool;
  }

 private:
  struct Pod {
    epp::Endpoint seen;
    std::int64_t waiting = 0;  // as a load event says
    double kv = 0;
    TimeNs read_at = 0;
    bool is_up = false, is_scraped = true;
  };
  std::int64_t Inflight(std::size_t e) const { return pods_[e].seen.inflight_requests; }
  void Read(Pod& pod, TimeNs now) const {
    const std::int64_t inflight = pod.seen.inflight_requests;
    const bool scripted = kind_ == "scripted";
    pod.seen.waiting = scripted ? pod.waiting : std::max<std::int64_t>(0, inflight - capacity_);
    pod.seen.kv = scripted ? pod.kv : std::min(1.0, Real(inflight) * kv_per_request_);
    pod.read_at = now;
  }

  std::string kind_;
  std::int64_t capacity_;
  double kv_per_request_;
  std::vector<Pod> pods_;
};

class Sequence {
 public:
  Sequence(const Json& row, const epp::Plugin& detector)
      : row_(row), world_(row), flow_(SettingsOf(row), detector) {
    std::set<std::string> flows;
    for (const Json& request : row["requests"]) flows.insert(request["flow"]);
    for (const Json& request : row["requests"]) {
      const auto flow = flows.find(request["flow"].get<std::string>());
      requests_.push_back({.number = static_cast<std::int64_t>(requests_.size()),
                           .flow = std::distance(flows.begin(), flow),
                           .priority = request["priority"],
                           .bytes = request["bytes"],
                           .arrival = TimeOf(request["at_ms"]),
                           .ttl = TimeOf(request, "ttl_ms", 0),
                           .slo_ttft = TimeOf(request, "slo_ttft_ms", 0),
                           .deadline = TimeOf(request, "deadline_ms", kNever)});
    }
    found_.resize(requests_.size());
  }

  Difference Compare() {
    Run();
    for (std::size_t r = 0; r < requests_.size(); ++r) {
      const Json& wanted = row_["requests"][r];
      const Found& found = found_[r];
      Difference difference = Differs("outcome", wanted["outcome"], found.outcome);
      if (!difference) difference = Differs("end", TimeOf(wanted["end_ms"]), found.end);
      if (!difference && wanted.contains("endpoint")) {
        difference = Differs("endpoint", wanted["endpoint"], found.endpoint);
      }
      if (difference) {
        return fmt::format("request {} at {} ms: {}", r, wanted["at_ms"].dump(), *difference);
      }
    }
    return Differs("dispatch_order", row_["dispatch_order"], order_);
  }

 private:
  enum class Kind {
    kTick,
    kSweep,
    kScrape,
    kArrival,
    kEvent,
    kLeave,
    kCancel,
    kDeadline,
    kBackstop
  };
  struct Event {
    TimeNs time = 0;
    Kind kind = Kind::kTick;
    std::int64_t which = 0;
  };
  struct Found {
    std::string outcome = {};  // "": waits, or has not come
    TimeNs end = 0;
    bool queued = false;
    std::int32_t endpoint = -1;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return std::tie(a.time, a.kind, a.which) > std::tie(b.time, b.kind, b.which);
    }
  };

  void Run() {
    const TimeNs horizon = TimeOf(row_["horizon_ms"]);
    for (const epp::FlowRequest& request : requests_) {
      const std::int64_t which = request.number;
      const Json& row = row_["requests"][static_cast<std::size_t>(which)];
      events_.push({request.arrival, Kind::kArrival, which});
      events_.push({TimeOf(row, "cancel_ms", kNever), Kind::kCancel, which});
      events_.push({request.deadline, Kind::kDeadline, which});
      events_.push({flow_.Backstop(request), Kind::kBackstop, which});
    }
    for (std::size_t e = 0; e < row_["events"].size(); ++e) {
      events_.push(
          {TimeOf(row_["events"][e]["at_ms"]), Kind::kEvent, static_cast<std::int64_t>(e)});
    }
    events_.push({kCyclePeriod, Kind::kTick, 0});
    events_.push({kSweepPeriod + epp::FlowControl::kSweepLag, Kind::kSweep, 0});
    events_.push({kScrapePeriod + kScrapeLag, Kind::kScrape, 0});
    while (events_.top().time < horizon) {
      const Event event = events_.top();
      events_.pop();
      Happen(event);
    }
    for (const epp::FlowRequest& request : requests_) {
      EndAs(request.number, "EvictedOther", horizon);
    }
  }

  void Happen(const Event& event) {
    const TimeNs now = event.time;
    switch (event.kind) {
      case Kind::kTick:
        Cycle(now);
        events_.push({now + kCyclePeriod, Kind::kTick, 0});
        break;
      case Kind::kSweep:
        Sweep(now);
        events_.push({now + kSweepPeriod, Kind::kSweep, 0});
        break;
      case Kind::kScrape:
        world_.Scrape(now);
        events_.push({now + kScrapePeriod, Kind::kScrape, 0});
        break;
      case Kind::kArrival:
        Arrive(event.which, now);
        Cycle(now);
        break;
      case Kind::kEvent:
        world_.Happen(row_["events"][static_cast<std::size_t>(event.which)], now);
        break;
      case Kind::kLeave: {
        const auto r = static_cast<std::size_t>(event.which);
        world_.Change(found_[r].endpoint, -1, -row_["requests"][r]["tokens"].get<std::int64_t>());
        break;
      }
      case Kind::kCancel:
        EndAs(event.which, "EvictedContextCancelled", now);
        break;
      case Kind::kDeadline:
      case Kind::kBackstop:
        EndAs(event.which, "EvictedTTL", now);
        break;
    }
  }

  Found& Of(std::int64_t request) { return found_[static_cast<std::size_t>(request)]; }
  // Those that wait only.
  void EndAs(std::int64_t request, const char* outcome, TimeNs now) {
    Found& found = Of(request);
    if (!found.queued || !found.outcome.empty()) return;
    found.outcome = outcome;
    found.end = now;
    flow_.End(request);
  }

  void Arrive(std::int64_t request, TimeNs now) {
    Found& found = Of(request);
    found.queued = flow_.Arrive(requests_[static_cast<std::size_t>(request)]);
    if (found.queued) return;
    found.outcome = flow_.pool_is_empty() ? "RejectedNoEndpoints" : "RejectedCapacity";
    found.end = now;
  }

  void Sweep(TimeNs now) {
    std::vector<std::int64_t> expired;
    flow_.Sweep(now, expired);
    for (const std::int64_t request : expired) {
      EndAs(request, flow_.pool_is_empty() ? "EvictedNoEndpoints" : "EvictedTTL", now);
    }
  }

  void Cycle(TimeNs now) {
    const std::int64_t dispatched = flow_.Cycle(world_.Pool(now), now);
    if (dispatched < 0) return;
    order_.push_back(dispatched);
    EndAs(dispatched, "Dispatched", now);
    const Json& request = row_["requests"][static_cast<std::size_t>(dispatched)];
    Of(dispatched).endpoint = world_.Place(request["tokens"]);
    events_.push({now + TimeOf(request["service_ms"]), Kind::kLeave, dispatched});
  }

  const Json& row_;
  World world_;
  epp::FlowControl flow_;
  std::priority_queue<Event, std::vector<Event>, Later> events_;
  std::vector<epp::FlowRequest> requests_;
  std::vector<Found> found_;  // by request
  std::vector<std::int64_t> order_;
};

}  // namespace

Difference ReplayFlow(const std::vector<Json>& rows, std::size_t& decisions) {
  for (const Json& row : rows) {
    const epp::PluginEntry* entry = epp::FindPluginType(row["detector"].get<std::string>());
    if (entry == nullptr) return "no such detector: " + row["detector"].dump();
    const EppParameters parameters = ParametersOf(row["detector_parameters"]);
    const auto detector = entry->make(epp::Settings(entry->settings, parameters));
    const Difference difference = Sequence(row, *detector).Compare();
    if (difference) return fmt::format("seq={}: {}", row["seq"].dump(), *difference);
    decisions += row["requests"].size();
  }
  return std::nullopt;
}

}  // namespace servecast::testing::epp_golden

// How many replicas a pool should have. A scaler is one file in policies/ and one line in the
// registry; the rules of real ones are beside this file, and take what a tick sees (scaling/hpa.h
// and its neighbours).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "servecast/scenario.h"
#include "serving/policy.h"

namespace servecast {

// A replica that starts or is up, as it was last scraped.
struct ScaledReplica {
  bool up = false;  // it was up at the scrape; else it reports nothing yet, all figures are 0
  std::int64_t waiting = 0, running = 0;
  double kv_usage = 0;  // 0 to 1
};

// What a scaler sees. Replicas that drain are not in it.
struct ScalerView {
  TimeNs now = 0;
  std::int64_t wanted = 0;  // what it decided last
  std::span<const ScaledReplica> replicas;
  std::int64_t held = 0;  // requests at the gateway
  bool scraped = false;   // false: no scrape is old enough yet, all figures are 0
};

// The sum over replicas of what the metric says, with requests that the gateway holds for `waiting`
// and `outstanding`.
double MetricOf(ScalingMetric metric, const ScalerView& view);

class Scaler {
 public:
  virtual ~Scaler() = default;
  // When it decides next; kNever. Later than the last decision.
  virtual TimeNs Next() const = 0;
  // REQUIRES: view.now is Next(). The replicas that it wants, before the pool's limits.
  virtual std::int64_t Decide(const ScalerView& view) = 0;
};

struct ScalerInput {
  const ScalingSpec& spec;  // outlives the scaler
  Params params;            // of its entry, in their order; to be copied
};

struct ScalerEntry {
  std::string_view name, help;
  std::unique_ptr<Scaler> (*make)(const ScalerInput&);
  std::span<const ParamSpec> params = {};
  bool from_zero = false;  // may start the first replica when none is there
  bool ends = false;       // after some time it decides no more
};

// The registered ones, in the order of menus.
std::span<const ScalerEntry> Scalers();
const ScalerEntry& FindScaler(std::string_view name);  // requires: a registered name

// In files of their own, which the page's first module leaves out.
std::unique_ptr<Scaler> MakeHpaScaler(const ScalerInput& input);
std::unique_ptr<Scaler> MakeKedaScaler(const ScalerInput& input);
std::unique_ptr<Scaler> MakeWvaScaler(const ScalerInput& input);
std::unique_ptr<Scaler> MakeScheduledScaler(const ScalerInput& input);

}  // namespace servecast

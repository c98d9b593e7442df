// llm-d's autoscaler and a schedule as scalers of a pool.
#include <algorithm>
#include <cmath>

#include "serving/scaling/scaler.h"
#include "serving/scaling/whole.h"
#include "serving/scaling/wva.h"

namespace servecast {
namespace {

// Its percentage analyzer, of one variant; what it decides is followed at once.
class WvaScaler final : public Scaler {
 public:
  WvaScaler(const WvaSpec& spec, TimeNs period)
      : wva_(spec, {WvaVariant{}}), period_(period), next_(period) {}

  TimeNs Next() const override { return next_; }
  std::int64_t Decide(const ScalerView& view) override {
    next_ += period_;
    if (!view.scraped) return view.wanted;
    std::vector<WvaReplica> replicas;
    for (const ScaledReplica& one : view.replicas) {
      if (one.up) replicas.push_back({.kv_usage = one.kv_usage, .queue = one.waiting});
    }
    const auto current = static_cast<std::int64_t>(view.replicas.size());
    const auto up = static_cast<std::int64_t>(replicas.size());
    const WvaDeployment deployment{current, view.wanted, current - up};
    const WvaDecision decision = wva_.Tick({{&deployment, 1}, replicas, std::nullopt, -1});
    return decision.enforced.empty() ? view.wanted : decision.enforced[0].replicas;
  }

 private:
  Wva wva_;
  TimeNs period_, next_;
};

class ScheduledScaler final : public Scaler {
 public:
  explicit ScheduledScaler(const NumberTable& rows) : rows_(rows) {}

  TimeNs Next() const override { return row_ < rows_.size() ? NsOf(rows_[row_][0]) : kNever; }
  std::int64_t Decide(const ScalerView&) override {
    return static_cast<std::int64_t>(rows_[row_++][1]);
  }

 private:
  const NumberTable& rows_;
  std::size_t row_ = 0;
};

}  // namespace

std::unique_ptr<Scaler> MakeWvaScaler(const ScalerInput& input) {
  WvaSpec spec;
  spec.kv_threshold = input.params[1];
  spec.queue_threshold = input.params[2];
  spec.kv_spare = input.params[3];
  spec.queue_spare = input.params[4];
  return std::make_unique<WvaScaler>(spec, NsOf(input.params[0]));
}

std::unique_ptr<Scaler> MakeScheduledScaler(const ScalerInput& input) {
  return std::make_unique<ScheduledScaler>(input.spec.schedule);
}

}  // namespace servecast

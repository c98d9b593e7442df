// See observations.h.
#include "experiment/observations.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "base/sort.h"
#include "metrics/targets.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

constexpr std::array<SloMetric, 3> kPooledMetrics = {SloMetric::kTtft, SloMetric::kTpot,
                                                     SloMetric::kE2e};
constexpr std::size_t kDelay = 3;

// The target of all classes whose latencies are these; none: the number of targets.
std::size_t TargetOf(const Scenario& scenario, std::size_t pooled) {
  std::size_t k = 0;
  while (k < scenario.slo.size() &&
         (pooled == kDelay || scenario.slo[k].metric != kPooledMetrics[pooled] ||
          !scenario.slo[k].of_class.empty())) {
    ++k;
  }
  return k;
}

class Reader {
 public:
  Reader(const Scenario& scenario, const RunRecords& records, Keep keep)
      : s_(scenario),
        requests_(records.requests),
        results_(records.results),
        end_(records.end),
        waits_until_(WaitsUntil(scenario, records.finished, records.end)) {
    for (const SloSpec& slo : s_.slo) limits_.push_back(LimitsOf(slo));
    for (std::size_t pooled = 0; keep == Keep::kAll && pooled < others_.size(); ++pooled) {
      others_[pooled] = TargetOf(s_, pooled) == s_.slo.size();
    }
    keeps_ = keep == Keep::kAll;
  }

  Observations Read() {
    std::vector<std::uint32_t> order;
    for (std::uint32_t i = 0; i < requests_.arrival.size(); ++i) {
      if (requests_.arrival[i] >= 0 && requests_.arrival[i] <= end_) order.push_back(i);
    }
    const auto earlier = [this](std::uint32_t a, std::uint32_t b) {
      return requests_.arrival[a] < requests_.arrival[b];
    };
    if (!std::is_sorted(order.begin(), order.end(), earlier)) {
      std::stable_sort(order.begin(), order.end(), earlier);
    }
    out_.latency_ms.resize(s_.slo.size());
    out_.unserved.resize(s_.slo.size());
    for (std::vector<double>& values : out_.latency_ms) values.reserve(order.size());
    for (std::vector<std::uint8_t>& values : out_.unserved) values.reserve(order.size());
    out_.good.reserve(order.size());
    for (std::size_t pooled = 0; pooled < others_.size(); ++pooled) {
      if (others_[pooled]) out_.other_ms[pooled].reserve(order.size());
    }
    out_.end = end_;
    out_.completions.reserve(order.size());
    std::vector<TimeNs> e2e;
    for (const std::uint32_t i : order) {
      Add(i);
      if (results_.completion[i] >= 0) e2e.push_back(results_.completion[i] - requests_.arrival[i]);
    }
    if (!e2e.empty()) {
      double sum = 0;
      for (const TimeNs time : e2e) sum += static_cast<double>(time);
      out_.mean_e2e_s = sum / static_cast<double>(e2e.size()) / 1e9;
      const auto ninth = e2e.begin() + static_cast<std::ptrdiff_t>(e2e.size() * 9 / 10);
      std::nth_element(e2e.begin(), ninth, e2e.end());
      out_.usual_e2e = *ninth;
    }
    std::vector<Observations::Completion> scratch;
    RadixSort(out_.completions, scratch,
              [](const auto& completion) { return static_cast<std::uint64_t>(completion.time); });
    Levels(order);
    return std::move(out_);
  }

 private:
  bool NeverQueued(std::uint32_t i) const {
    return results_.state[i] == RequestState::kDropped ||
           (results_.state[i] == RequestState::kRejected && !results_.WaitedInVain(i));
  }
  // When an incomplete one leaves.
  TimeNs LeavesAt(std::uint32_t i) const {
    if (NeverQueued(i)) return requests_.arrival[i];
    const RequestState state = results_.state[i];
    if (state == RequestState::kLost || state == RequestState::kRejected) {
      return results_.lost_at[i];
    }
    if (results_.state[i] == RequestState::kTimedOut && !requests_.timeout.empty()) {
      return requests_.arrival[i] + requests_.timeout[i];
    }
    return kNever;
  }

  // Requires: the completions in order.
  void Levels(const std::vector<std::uint32_t>& order) {
    std::vector<TimeNs> leaves, incomplete;
    leaves.reserve(order.size());
    for (const Observations::Completion& completion : out_.completions) {
      leaves.push_back(completion.time);
    }
    for (const std::uint32_t i : order) {
      if (results_.completion[i] < 0) incomplete.push_back(LeavesAt(i));
    }
    std::sort(incomplete.begin(), incomplete.end());
    const auto middle = static_cast<std::ptrdiff_t>(leaves.size());
    leaves.insert(leaves.end(), incomplete.begin(), incomplete.end());
    std::inplace_merge(leaves.begin(), leaves.begin() + middle, leaves.end());
    out_.arrival.reserve(order.size());
    out_.in_system.reserve(order.size());
    std::size_t left = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const TimeNs now = requests_.arrival[order[k]];
      while (left < leaves.size() && leaves[left] <= now) ++left;
      out_.arrival.push_back(now);
      out_.in_system.push_back(static_cast<double>(k) - static_cast<double>(left));
    }
  }

  bool Concerns(const SloSpec& slo, std::uint32_t i) const {
    return slo.of_class.empty() ||
           (!requests_.of_class.empty() &&
            s_.workload->classes[requests_.of_class[i]].name == slo.of_class);
  }

  double LatencyMs(SloMetric metric, std::uint32_t i) const {
    const TimeNs arrival = requests_.arrival[i], first = results_.first_token[i],
                 completion = results_.completion[i];
    switch (metric) {
      case SloMetric::kTtft:
        return first >= 0 ? static_cast<double>(first - arrival) / kMs : Observations::kNone;
      case SloMetric::kE2e:
        return completion >= 0 ? static_cast<double>(completion - arrival) / kMs
                               : Observations::kNone;
      case SloMetric::kTpot:
      case SloMetric::kItl:  // of one request: its mean gap
        return completion >= 0 && results_.generated[i] > 1
                   ? static_cast<double>(completion - first) / kMs /
                         static_cast<double>(results_.generated[i] - 1)
                   : Observations::kNone;
      case SloMetric::kAttainment:
        break;
    }
    return Observations::kNone;
  }

  // As Summarize counts it: dropped, timed out, or still waiting when the run ended.
  bool Unserved(const SloSpec& slo, std::uint32_t i) const {
    const bool lost = IsLost(results_.state[i]);
    if (slo.metric == SloMetric::kTtft) return results_.first_token[i] < 0;
    if (lost) return true;
    if (results_.completion[i] >= 0) return false;
    if (slo.metric != SloMetric::kE2e) return waits_until_ == kNever;
    return static_cast<double>(waits_until_ - requests_.arrival[i]) > slo.limit_ms * kMs;
  }

  std::uint8_t ClassOf(std::uint32_t i) const {
    return requests_.of_class.empty() ? std::uint8_t{0} : requests_.of_class[i];
  }

  // As Summarize collects them.
  void KeepAll(std::uint32_t i) {
    const bool lost = IsLost(results_.state[i]), nothing = lost && results_.first_token[i] < 0;
    out_.lost.push_back(lost ? 1 : 0);
    if (!requests_.of_class.empty()) out_.of_class.push_back(ClassOf(i));
    for (std::size_t pooled = 0; pooled < kPooledMetrics.size(); ++pooled) {
      if (!others_[pooled]) continue;
      out_.other_ms[pooled].push_back(LatencyMs(kPooledMetrics[pooled], i));
    }
    const TimeNs scheduled = results_.first_scheduled[i];
    out_.other_ms[kDelay].push_back(
        scheduled < 0 || nothing ? Observations::kNone
                                 : static_cast<double>(scheduled - requests_.arrival[i]) / kMs);
  }

  // Whether it is within, or is not concerned.
  bool AddAttainment(std::size_t k, bool concerns, std::uint32_t i) {
    const std::optional<double> strain =
        concerns ? StrainOf(limits_[k], requests_, results_, i, waits_until_) : std::nullopt;
    const bool known = strain.has_value(), beyond = known && *strain > 1;
    out_.latency_ms[k].push_back(known && std::isfinite(*strain) ? *strain : Observations::kNone);
    out_.unserved[k].push_back(!known ? Observations::kForeign : beyond ? 1 : 0);
    return !beyond;
  }

  void Add(std::uint32_t i) {
    const bool complete = results_.completion[i] >= 0;
    bool good = complete;
    for (std::size_t k = 0; k < s_.slo.size(); ++k) {
      const SloSpec& slo = s_.slo[k];
      const bool concerns = Concerns(slo, i);
      if (slo.metric == SloMetric::kAttainment) {
        good = AddAttainment(k, concerns, i) && good;
        continue;
      }
      const double ms = concerns ? LatencyMs(slo.metric, i) : Observations::kNone;
      good = good && ms <= slo.limit_ms;
      // Of ITL it is only the request's mean, for `good`.
      out_.latency_ms[k].push_back(slo.metric == SloMetric::kItl ? Observations::kNone : ms);
      out_.unserved[k].push_back(!concerns ? Observations::kForeign : Unserved(slo, i) ? 1 : 0);
    }
    out_.good.push_back(good ? 1 : 0);
    if (keeps_) KeepAll(i);
    const RequestState state = results_.state[i];
    out_.gives_up = out_.gives_up || (IsLost(state) && !NeverQueued(i));
    if (complete) {
      out_.completions.push_back({results_.completion[i],
                                  static_cast<std::int32_t>(results_.generated[i]), ClassOf(i),
                                  good});
    } else if (NeverQueued(i)) {
      out_.dropped.push_back(requests_.arrival[i]);
    }
    out_.last_offered = std::max(out_.last_offered, OfferedAt(i));
  }

  // When load of its own is offered with it; 0: none is.
  TimeNs OfferedAt(std::uint32_t i) const {
    if (!requests_.think.empty() && requests_.think[i] >= 0) return 0;
    if (!in_loop_) return requests_.arrival[i];
    return requests_.pause[i] < 0 ? 0 : requests_.arrival[i] - requests_.pause[i];
  }

  const Scenario& s_;
  const RequestTable& requests_;
  const RequestResults& results_;
  const TimeNs end_, waits_until_;
  const bool in_loop_ = requests_.InLoop();
  std::vector<std::vector<SloLimit>> limits_;  // by target
  bool keeps_ = false;
  std::array<bool, Observations::kPooled> others_{};  // that no target of all keeps
  Observations out_;
};

}  // namespace

Pace PaceOf(const Observations& run) {
  const auto& all = run.completions;
  const auto after = [&all](TimeNs time) {
    return static_cast<std::size_t>(
        std::upper_bound(all.begin(), all.end(), time,
                         [](TimeNs t, const auto& completion) { return t < completion.time; }) -
        all.begin());
  };
  Pace pace;
  pace.until = run.last_offered;
  pace.from = pace.until / 2;
  pace.begin = after(pace.from);
  pace.end = std::max(after(pace.until), pace.begin);
  if (4 * (pace.end - pace.begin) < all.size() && all.size() >= 4) {
    const std::size_t first = all.size() / 4, last = all.size() - 1 - first;
    pace = {.begin = first + 1, .end = last + 1, .from = all[first].time, .until = all[last].time};
  }
  pace.completed = static_cast<double>(pace.end - pace.begin);
  pace.seconds = static_cast<double>(pace.until - pace.from) / 1e9;
  return pace;
}

Observations ObservationsOf(const Scenario& scenario, const RunRecords& records,
                            const Report& report, Keep keep) {
  Observations out = Reader(scenario, records, keep).Read();
  out.steps = report.steps;
  out.overloaded = report.saturation.state == SaturationState::kOverloaded;
  for (const SloResult& result : report.slo) {
    const bool gaps = result.slo.metric == SloMetric::kItl && result.value_ms;
    out.gap_percentile_ms.push_back(gaps ? *result.value_ms : Observations::kNone);
  }
  return out;
}

const std::vector<double>& LatenciesOf(const Scenario& scenario, const Observations& run,
                                       std::size_t pooled) {
  const std::size_t k = TargetOf(scenario, pooled);
  return k < scenario.slo.size() ? run.latency_ms[k] : run.other_ms[pooled];
}

}  // namespace servecast

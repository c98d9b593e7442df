#include "serving/cluster/membership.h"

#include <algorithm>
#include <deque>
#include <map>

#include "serving/scaling/scaler.h"
#include "serving/scaling/whole.h"

namespace servecast {
namespace {

enum class State : std::uint8_t { kStarting, kUp, kDraining, kDown };

// Of one replica; kNever: not yet.
struct Life {
  State state = State::kStarting;
  TimeNs from = 0, up = kNever, drain = kNever, down = kNever;
  std::int64_t outstanding = 0;
};

struct Departure {
  TimeNs time = 0;
  std::int32_t replica = 0;
};
bool Later(const Departure& a, const Departure& b) {
  return a.time != b.time ? a.time > b.time : a.replica > b.replica;
}

struct Scrape {
  TimeNs time = 0;
  std::int64_t held = 0;
  std::vector<ScaledReplica> replicas;  // by number; empty figures where none serves
};

class ScaledMembership final : public Membership {
 public:
  explicit ScaledMembership(const Input& in)
      : spec_(in.spec),
        entry_(FindScaler(in.spec.policy)),
        params_(ParamValues(entry_.params, in.spec.params)),
        scaler_(entry_.make({spec_, params_})),
        cold_start_(in.cold_start),
        period_(NsOf(in.spec.scrape_period_s)),
        delay_(NsOf(in.spec.scrape_delay_s)),
        next_scrape_(period_),
        wanted_(in.initial) {
    for (std::int64_t i = 0; i < in.initial; ++i) lives_.push_back({State::kUp, 0, 0});
  }

  TimeNs Next() const override {
    const TimeNs up = starting_.empty() ? kNever : lives_[At(starting_.front())].from + cold_start_;
    return std::min({up, next_scrape_, scaler_->Next()});
  }

  std::vector<std::int32_t> ComeUp(TimeNs time) override {
    std::vector<std::int32_t> up;
    while (!starting_.empty() && lives_[At(starting_.front())].from + cold_start_ <= time) {
      Life& life = lives_[At(starting_.front())];
      life.state = State::kUp;
      life.up = time;
      up.push_back(starting_.front());
      starting_.pop_front();
    }
    return up;
  }

  bool ScrapesAt(TimeNs time) const override { return next_scrape_ == time; }
  bool Serves(std::int32_t replica) const override {
    const State state = lives_[At(replica)].state;
    return state == State::kUp || state == State::kDraining;
  }
  void Scrape(TimeNs time, const std::vector<Scraped>& scraped, std::int64_t held) override {
    CountDepartures(time);
    next_scrape_ += period_;
    servecast::Scrape scrape{time, held, std::vector<ScaledReplica>(lives_.size())};
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      if (lives_[i].state != State::kUp) continue;
      const EngineLoad& load = scraped[i].load;
      scrape.replicas[i] = {true, std::max<std::int64_t>(0, lives_[i].outstanding - load.running),
                            load.running, Real(load.kv_blocks_used) / Real(scraped[i].kv_blocks)};
    }
    scrapes_.push_back(std::move(scrape));
    ForgetScrapes(time);
  }

  bool DecidesAt(TimeNs time) const override { return scaler_->Next() == time; }
  Change Decide(TimeNs time) override {
    CountDepartures(time);
    ForgetScrapes(time);
    const bool scraped = !scrapes_.empty() && scrapes_.front().time <= time - delay_;
    std::vector<ScaledReplica> seen;
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      const State state = lives_[i].state;
      if (state != State::kStarting && state != State::kUp) continue;
      ScaledReplica one;
      if (scraped && i < scrapes_.front().replicas.size()) one = scrapes_.front().replicas[i];
      seen.push_back(one);
    }
    const std::int64_t decided =
        scaler_->Decide({time, wanted_, seen, scraped ? scrapes_.front().held : 0, scraped});
    wanted_ = std::clamp(decided, spec_.min_replicas, spec_.max_replicas);
    return Towards(wanted_, static_cast<std::int64_t>(seen.size()), time);
  }
  void Started(std::int32_t replica, TimeNs time) override {
    lives_.push_back({State::kStarting, time});
    starting_.push_back(replica);
    ++starts_;
  }

  void Placed(std::int32_t replica) override {
    ++lives_[At(replica)].outstanding;
    ++staying_;
  }
  void Left(std::int32_t replica, TimeNs time) override {
    --staying_;
    last_left_ = std::max(last_left_, time);
    departures_.push_back({time, replica});
    std::push_heap(departures_.begin(), departures_.end(), Later);
  }

  std::int64_t Staying() const override { return staying_; }
  TimeNs LastLeft() const override { return last_left_; }

  ScalingReport ReportTo(TimeNs end) const override;

 private:
  static std::size_t At(std::int32_t replica) { return static_cast<std::size_t>(replica); }

  // Those older than the one that is seen at `time`.
  void ForgetScrapes(TimeNs time) {
    while (scrapes_.size() > 1 && scrapes_[1].time <= time - delay_) scrapes_.pop_front();
  }
  // Those before `time`: of others it is not certain that all are known.
  void CountDepartures(TimeNs time) {
    while (!departures_.empty() && departures_.front().time < time) {
      const Departure left = departures_.front();
      std::pop_heap(departures_.begin(), departures_.end(), Later);
      departures_.pop_back();
      Life& life = lives_[At(left.replica)];
      if (--life.outstanding == 0 && life.state == State::kDraining) Stop(life, left.time);
    }
  }
  // With what has left by `end`, whatever of it was counted.
  std::vector<Life> LivesTo(TimeNs end) const {
    std::vector<Life> lives = lives_;
    std::vector<TimeNs> last(lives.size(), 0);
    for (const Departure& left : departures_) {
      if (left.time > end) continue;
      --lives[At(left.replica)].outstanding;
      last[At(left.replica)] = std::max(last[At(left.replica)], left.time);
    }
    for (std::size_t i = 0; i < lives.size(); ++i) {
      Life& life = lives[i];
      if (life.state == State::kDraining && life.outstanding == 0) Stop(life, last[i]);
    }
    return lives;
  }
  static void Stop(Life& life, TimeNs time) {
    life.state = State::kDown;
    life.down = time;
  }

  Change Towards(std::int64_t wanted, std::int64_t present, TimeNs time) {
    Change change;
    change.start = std::max<std::int64_t>(0, wanted - present);
    while (present > wanted && !starting_.empty()) {
      Stop(lives_[At(starting_.back())], time);
      starting_.pop_back();
      --present;
    }
    for (; present > wanted; --present) {
      std::size_t youngest = lives_.size();
      for (std::size_t i = 0; i < lives_.size(); ++i) {
        if (lives_[i].state != State::kUp) continue;
        if (youngest == lives_.size() || lives_[i].up >= lives_[youngest].up) youngest = i;
      }
      Life& life = lives_[youngest];
      life.state = State::kDraining;
      life.drain = time;
      if (life.outstanding == 0) Stop(life, time);
      change.drain.push_back(static_cast<std::int32_t>(youngest));
    }
    return change;
  }

  const ScalingSpec& spec_;
  const ScalerEntry& entry_;
  std::vector<double> params_;
  std::unique_ptr<Scaler> scaler_;
  TimeNs cold_start_, period_, delay_, next_scrape_;
  std::int64_t wanted_, starts_ = 0, staying_ = 0;
  TimeNs last_left_ = 0;
  std::vector<Life> lives_;                // by number
  std::deque<std::int32_t> starting_;      // in the order of their starts
  std::vector<Departure> departures_;      // heap
  std::deque<servecast::Scrape> scrapes_;  // the one that is seen first, then newer ones
};

// Steps of the number of replicas in each state, from their lives.
ScalingReport ScaledMembership::ReportTo(TimeNs end) const {
  struct Step {
    std::int64_t starting = 0, up = 0, draining = 0;
  };
  std::map<TimeNs, Step> steps;
  steps[0];
  const auto move = [&](TimeNs from, TimeNs to, std::int64_t Step::*state) {
    if (from >= to || from >= end) return;
    steps[from].*state += 1;
    if (to < end) steps[to].*state -= 1;
  };
  ScalingReport report;
  report.on = true;
  TimeNs all = 0, up_time = 0;
  for (const Life& life : LivesTo(end)) {
    const TimeNs down = std::min(life.down, end);
    const TimeNs drain = std::min(life.drain, down), up = std::min(life.up, drain);
    move(life.from, up, &Step::starting);
    move(up, drain, &Step::up);
    move(drain, down, &Step::draining);
    all += down - std::min(life.from, down);
    up_time += drain - up;
    report.stops += life.drain < end || (life.up == kNever && life.down < end) ? 1 : 0;
  }
  report.replica_s = Seconds(all);
  if (end > 0) {
    report.mean_replicas = Real(all) / Real(end);
    report.mean_up = Real(up_time) / Real(end);
  }
  report.starts = starts_;
  report.cold_start_s = Seconds(cold_start_);
  Step now;
  for (const auto& [time, step] : steps) {
    now.starting += step.starting;
    now.up += step.up;
    now.draining += step.draining;
    report.steps.push_back({Seconds(time), now.starting, now.up, now.draining});
    report.peak_up = std::max(report.peak_up, now.up);
  }
  return report;
}

}  // namespace

double MetricOf(ScalingMetric metric, const ScalerView& view) {
  double sum = 0;
  for (const ScaledReplica& one : view.replicas) {
    switch (metric) {
      case ScalingMetric::kWaiting:
        sum += Real(one.waiting);
        break;
      case ScalingMetric::kRunning:
        sum += Real(one.running);
        break;
      case ScalingMetric::kOutstanding:
        sum += Real(one.waiting + one.running);
        break;
      case ScalingMetric::kKvUsage:
        sum += one.kv_usage;
        break;
    }
  }
  const bool queues = metric == ScalingMetric::kWaiting || metric == ScalingMetric::kOutstanding;
  return queues ? sum + Real(view.held) : sum;
}

std::unique_ptr<Membership> MakeMembership(const Membership::Input& input) {
  return std::make_unique<ScaledMembership>(input);
}

}  // namespace servecast

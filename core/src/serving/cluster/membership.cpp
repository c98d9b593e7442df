#include "serving/cluster/membership.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "serving/scaling/scaler.h"
#include "serving/scaling/whole.h"

namespace servecast {
namespace {

enum class State : std::uint8_t { kStarting, kUp, kFailed, kDraining, kDown };

// Of one replica; kNever: not yet.
struct Life {
  State state = State::kStarting;
  TimeNs from = 0, up = kNever, drain = kNever, down = kNever;
  TimeNs ready = kNever;  // the last time that it came up
  bool died = false;      // it ended by a failure, as it drained
  std::size_t pool = 0;
  // Requests that have not left, as far as was counted, and likewise whose KV is here; of all that
  // have been said to leave, and the last of them.
  std::int64_t outstanding = 0, holding = 0, staying = 0;
  TimeNs last_left = 0;
  TimeNs ends_by = kNever;  // of one that drains
  TimeNs due = 0;           // of one that starts: when it is up
};

struct Departure {
  TimeNs time = 0;
  std::int32_t replica = 0;
  bool request = true, kv = true;  // which of them
};
bool Later(const Departure& a, const Departure& b) {
  return a.time != b.time ? a.time > b.time : a.replica > b.replica;
}

struct Scrape {
  TimeNs time = 0;
  std::int64_t held = 0;
  std::vector<ScaledReplica> replicas;  // by number; empty figures where none serves
  ServedTotals served;
};

// What a scaler decides by. Without one it is never asked.
struct Scaling {
  explicit Scaling(const ScalingSpec& of)
      : spec(of),
        plans(FindScaler(of.policy).plans),
        params(ParamValues(FindScaler(of.policy).params, of.params)),
        period(NsOf(of.scrape_period_s)),
        delay(NsOf(of.scrape_delay_s)),
        next_scrape(period),
        asleep_from(static_cast<std::size_t>(of.warm_replicas), 0) {}

  void Make(const std::vector<PlannedPool>& planned) {
    scaler = FindScaler(spec.policy).make({spec, params, planned});
    if (plans) next_scrape = scaler->Next();
  }
  void Share(const Scaling& other) {
    scaler = other.scaler;
    next_scrape = other.next_scrape;
  }
  // Those older than the one that is seen at `time`.
  void ForgetScrapes(TimeNs time) {
    while (scrapes.size() > 1 && scrapes[1].time <= time - delay) scrapes.pop_front();
  }

  const ScalingSpec& spec;
  bool plans;  // it scrapes whenever it decides
  std::vector<double> params;
  std::shared_ptr<Scaler> scaler;  // a planner's pools have one
  TimeNs period, delay, next_scrape;
  std::vector<TimeNs> asleep_from;  // of each warm replica, perhaps later
  std::deque<Scrape> scrapes;       // the one that is seen first, then newer ones
};

struct PoolState {
  std::optional<Scaling> scaling;
  TimeNs cold_start = 0, wake = 0;
  std::int64_t wanted = 0, starts = 0;
  std::vector<std::size_t> together;    // that its scaler decides for, with it; none: see before
  std::optional<std::int64_t> decided;  // as another of these was asked
  std::vector<TimeNs> refills;          // when warm replicas began to start
};

// A rolling update: replicas below `fresh` are of the old version.
struct Rolling {
  TimeNs at = kNever;
  std::int64_t most = 0, least_up = 0;  // replicas that are there, or up
  std::size_t fresh = 0;
  bool begun = false;
  TimeNs done = kNever;
};

class OpenMembership final : public Membership {
 public:
  explicit OpenMembership(const Input& in) {
    for (const Pool& of : in.pools) {
      PoolState& pool = pools_.emplace_back();
      pool.cold_start = of.cold_start;
      pool.wake = of.wake;
      pool.wanted = of.initial;
      Life first{State::kUp, 0, 0, kNever, kNever, 0};
      first.pool = pools_.size() - 1;
      lives_.insert(lives_.end(), static_cast<std::size_t>(of.initial), first);
    }
    for (std::size_t p = 0; p < pools_.size(); ++p) Open(p, in.pools);
    if (in.rolling_update == nullptr) return;
    const RollingUpdateSpec& update = *in.rolling_update;
    const std::int64_t wanted = pools_[0].wanted;
    rolling_.emplace(Rolling{.at = NsOf(*update.at_s),
                             .most = wanted + update.Surge(wanted),
                             .least_up = wanted - update.Unavailable(wanted),
                             .fresh = lives_.size()});
  }

  TimeNs Next() const override {
    TimeNs next = starting_.empty() ? kNever : lives_[At(starting_.front())].due;
    for (const PoolState& pool : pools_) {
      if (!pool.scaling) continue;
      next = std::min({next, pool.scaling->next_scrape, pool.scaling->scaler->Next()});
    }
    for (const std::size_t i : draining_) next = std::min(next, CutAt(lives_[i]));
    return rolling_ ? std::min(next, NextRoll()) : next;
  }

  void EndsBy(std::int32_t replica, TimeNs time) override { lives_[At(replica)].ends_by = time; }
  std::vector<std::int32_t> CutOff(TimeNs time) override {
    std::vector<std::int32_t> cut;
    for (const std::size_t i : draining_) {
      Life& life = lives_[i];
      if (CutAt(life) > time) continue;
      Stop(life, time);
      rolls_next_ = time;
      cut.push_back(static_cast<std::int32_t>(i));
    }
    std::sort(cut.begin(), cut.end());
    ForgetDown();
    return cut;
  }

  std::vector<std::int32_t> ComeUp(TimeNs time) override {
    std::vector<std::int32_t> up;
    while (!starting_.empty() && lives_[At(starting_.front())].due <= time) {
      Life& life = lives_[At(starting_.front())];
      life.state = State::kUp;
      life.up = life.ready = time;
      up.push_back(starting_.front());
      starting_.pop_front();
    }
    if (!up.empty()) rolls_next_ = time;
    return up;
  }

  bool ScrapesAt(TimeNs time) const override {
    return std::any_of(pools_.begin(), pools_.end(), [time](const PoolState& pool) {
      return pool.scaling && pool.scaling->next_scrape == time;
    });
  }
  bool Serves(std::int32_t replica) const override {
    const State state = lives_[At(replica)].state;
    return state == State::kUp || state == State::kDraining;
  }
  void Scrape(TimeNs time, const std::vector<Scraped>& scraped,
              const std::vector<std::int64_t>& held, const ServedTotals& served) override {
    CountDepartures(time);
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      if (!pools_[p].scaling || pools_[p].scaling->next_scrape != time) continue;
      Scaling& scaling = *pools_[p].scaling;
      scaling.next_scrape = scaling.plans ? kNever : time + scaling.period;
      servecast::Scrape scrape{time, held[p], std::vector<ScaledReplica>(lives_.size()), served};
      for (std::size_t i = 0; i < lives_.size(); ++i) {
        if (lives_[i].state != State::kUp || lives_[i].pool != p) continue;
        const EngineLoad& load = scraped[i].load;
        scrape.replicas[i] = {true,
                              std::max<std::int64_t>(0, lives_[i].outstanding - load.running),
                              load.running,
                              Real(load.kv_blocks_used) / Real(scraped[i].kv_blocks),
                              scraped[i].step,
                              scraped[i].queued};
      }
      scaling.scrapes.push_back(std::move(scrape));
      scaling.ForgetScrapes(time);
    }
  }

  bool DecidesAt(TimeNs time) const override { return DecidingAt(time) < pools_.size(); }
  Change Decide(TimeNs time) override {
    CountDepartures(time);
    Change change;
    change.pool = DecidingAt(time);
    PoolState& pool = pools_[change.pool];
    if (!pool.decided) Ask(change.pool, time);
    const ScalingSpec& spec = pool.scaling->spec;
    pool.wanted =
        std::clamp(*std::exchange(pool.decided, {}), spec.min_replicas, spec.max_replicas);
    const std::int64_t present = std::count_if(lives_.begin(), lives_.end(), [&](const Life& life) {
      return Present(life) && life.pool == change.pool;
    });
    change.start = std::max<std::int64_t>(0, pool.wanted - present);
    for (std::int64_t i = pool.wanted; i < present; ++i) {
      Remove(LeastNeeded(lives_.size(), change.pool), time, change);
    }
    ForgetDown();
    return change;
  }

  bool RollsAt(TimeNs time) const override { return rolling_ && NextRoll() <= time; }
  Change Roll(TimeNs time) override {
    CountDepartures(time);
    Rolling& r = *rolling_;
    r.begun = true;
    rolls_next_ = kNever;
    Change change;
    std::int64_t there = 0, up = 0, fresh = 0, old = 0, failed = 0;  // failed: of the old
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      Life& life = lives_[i];
      if (DryAt(life) <= time) Stop(life, DryAt(life));
      if (life.state == State::kDown) continue;
      ++there;
      up += life.state == State::kUp ? 1 : 0;
      fresh += i >= r.fresh && Present(life) ? 1 : 0;
      old += i < r.fresh ? 1 : 0;
      failed += i < r.fresh && life.state == State::kFailed ? 1 : 0;
    }
    for (std::int64_t spare = up + failed - r.least_up; spare > 0; --spare) {
      const std::size_t next = LeastNeeded(r.fresh, 0);
      if (next == lives_.size()) break;
      up -= lives_[next].state == State::kUp ? 1 : 0;
      Remove(next, time, change);
      if (lives_[next].state != State::kDown) continue;
      --there;
      --old;
    }
    change.start = std::max<std::int64_t>(0, std::min(pools_[0].wanted - fresh, r.most - there));
    if (old == 0 && up == pools_[0].wanted) r.done = time;
    ForgetDown();
    return change;
  }

  TimeNs Started(std::int32_t replica, std::size_t pool, TimeNs time) override {
    PoolState& of = pools_[pool];
    Life life{State::kStarting, time};
    life.pool = pool;
    life.due = time + (TakesWarm(of, time) ? of.wake : of.cold_start);
    const auto later = std::upper_bound(
        starting_.begin(), starting_.end(), life.due,
        [this](TimeNs due, std::int32_t other) { return due < lives_[At(other)].due; });
    starting_.insert(later, replica);
    lives_.push_back(life);
    ++of.starts;
    return life.due;
  }

  bool Failed(std::int32_t replica, TimeNs time, bool with_requests) override {
    Life& life = lives_[At(replica)];
    rolls_next_ = time;
    if (life.state == State::kUp) {
      life.state = State::kFailed;
      return true;
    }
    life.died = with_requests;
    if (with_requests) Stop(life, time);
    return false;
  }
  void Recovered(std::int32_t replica, TimeNs time) override {
    Life& life = lives_[At(replica)];
    life.state = State::kUp;
    life.ready = rolls_next_ = time;
  }

  void Placed(std::int32_t replica) override {
    ++lives_[At(replica)].outstanding;
    ++lives_[At(replica)].holding;
    ++lives_[At(replica)].staying;
    ++staying_;
  }
  void Left(std::int32_t replica, TimeNs time, bool kv_stays) override {
    Leaves({time, replica, true, !kv_stays});
  }
  void KvWent(std::int32_t replica, TimeNs time) override { Leaves({time, replica, false, true}); }

  bool Expects() const override {
    return !starting_.empty() ||
           std::any_of(pools_.begin(), pools_.end(), [](const PoolState& pool) {
             return pool.scaling && FindScaler(pool.scaling->spec.policy).ends &&
                    pool.scaling->scaler->Next() < kNever;
           });
  }
  std::int64_t Staying() const override { return staying_; }
  TimeNs LastLeft() const override { return last_left_; }

  ScalingReport ReportTo(TimeNs end, const std::vector<Failures::Outage>& outages) const override;

 private:
  // Its scaler: of a planner that of the pool before it with the same spec, if there is one.
  void Open(std::size_t pool, const std::vector<Pool>& pools) {
    const ScalingSpec* spec = pools[pool].scaling;
    if (spec == nullptr) return;
    Scaling& scaling = pools_[pool].scaling.emplace(*spec);
    std::vector<PlannedPool> planned;
    for (std::size_t p = 0; p < pools.size(); ++p) {
      if (pools[p].scaling != spec || (p != pool && !scaling.plans)) continue;
      if (p < pool) return scaling.Share(*pools_[p].scaling);
      pools_[pool].together.push_back(p);
      planned.push_back(pools[p].planned);
    }
    scaling.Make(planned);
  }
  // The first pool whose scaler decides then, or has decided for.
  std::size_t DecidingAt(TimeNs time) const {
    const auto first = std::find_if(pools_.begin(), pools_.end(), [time](const PoolState& pool) {
      return pool.decided || (pool.scaling && pool.scaling->scaler->Next() == time);
    });
    return static_cast<std::size_t>(first - pools_.begin());
  }
  void Ask(std::size_t asked, TimeNs time) {
    const std::vector<std::size_t>& together = pools_[asked].together;
    std::vector<std::vector<ScaledReplica>> seen(together.size());
    std::vector<ScalerView> views;
    for (std::size_t i = 0; i < together.size(); ++i) {
      views.push_back(ViewOf(together[i], time, seen[i]));
    }
    Scaler& scaler = *pools_[asked].scaling->scaler;
    const std::vector<std::int64_t> decided = scaler.DecideEach(views);
    for (std::size_t i = 0; i < together.size(); ++i) {
      PoolState& pool = pools_[together[i]];
      pool.decided = decided[i];
      if (pool.scaling->plans) pool.scaling->next_scrape = scaler.Next();
    }
  }
  // `seen` has its replicas.
  ScalerView ViewOf(std::size_t p, TimeNs time, std::vector<ScaledReplica>& seen) {
    PoolState& pool = pools_[p];
    Scaling& scaling = *pool.scaling;
    scaling.ForgetScrapes(time);
    const std::deque<servecast::Scrape>& scrapes = scaling.scrapes;
    ScalerView view;
    view.now = time;
    view.wanted = pool.wanted;
    view.scraped = !scrapes.empty() && scrapes.front().time <= time - scaling.delay;
    for (std::size_t i = 0; i < lives_.size(); ++i) {
      if (lives_[i].pool != p) continue;
      view.drains |= lives_[i].state == State::kDraining;
      if (!Present(lives_[i])) continue;
      ScaledReplica one;
      if (view.scraped && i < scrapes.front().replicas.size()) one = scrapes.front().replicas[i];
      one.serves = lives_[i].state == State::kUp;
      seen.push_back(one);
    }
    view.replicas = seen;
    if (!view.scraped) return view;
    view.held = scrapes.front().held;
    view.served = scrapes.front().served;
    return view;
  }
  // Whether one was asleep by then. Another one starts in its place.
  static bool TakesWarm(PoolState& pool, TimeNs time) {
    if (!pool.scaling) return false;
    for (TimeNs& from : pool.scaling->asleep_from) {
      if (from > time) continue;
      from = time + pool.cold_start;
      pool.refills.push_back(time);
      return true;
    }
    return false;
  }
  static std::size_t At(std::int32_t replica) { return static_cast<std::size_t>(replica); }
  // It counts for who decides how many there are.
  static bool Present(const Life& life) {
    return life.state != State::kDraining && life.state != State::kDown;
  }
  // When one that drains is down, as far as that has been said; kNever.
  static TimeNs DryAt(const Life& life) {
    if (life.state != State::kDraining || life.staying > 0) return kNever;
    return std::max(life.drain, life.last_left);
  }
  // When its time is over, unless it is down before.
  static TimeNs CutAt(const Life& life) {
    const bool drains = life.state == State::kDraining && life.ends_by < DryAt(life);
    return drains ? life.ends_by : kNever;
  }
  void ForgetDown() {
    std::erase_if(draining_, [&](std::size_t i) { return lives_[i].state != State::kDraining; });
  }
  static void Stop(Life& life, TimeNs time) {
    life.state = State::kDown;
    life.down = time;
  }

  void Leaves(const Departure& departure) {
    last_left_ = std::max(last_left_, departure.time);
    departures_.push_back(departure);
    std::push_heap(departures_.begin(), departures_.end(), Later);
    if (!departure.kv) return;
    --staying_;
    Life& life = lives_[At(departure.replica)];
    --life.staying;
    life.last_left = std::max(life.last_left, departure.time);
  }

  // Those before `time`: of others it is not certain that all are known.
  void CountDepartures(TimeNs time) {
    while (!departures_.empty() && departures_.front().time < time) {
      const Departure left = departures_.front();
      std::pop_heap(departures_.begin(), departures_.end(), Later);
      departures_.pop_back();
      Life& life = lives_[At(left.replica)];
      life.outstanding -= left.request ? 1 : 0;
      life.holding -= left.kv ? 1 : 0;
      if (left.kv && life.holding == 0 && life.state == State::kDraining) Stop(life, left.time);
    }
  }

  // When the update begins; then, when a replica comes up, fails or is down.
  TimeNs NextRoll() const {
    if (rolling_->done < kNever) return kNever;
    if (!rolling_->begun) return rolling_->at;
    TimeNs next = rolls_next_;
    for (const std::size_t i : draining_) next = std::min(next, DryAt(lives_[i]));
    return next;
  }

  // Of those of the pool before `end` the next to be removed; none: as many as there are.
  std::size_t LeastNeeded(std::size_t end, std::size_t pool) const {
    const auto key = [&](std::size_t i) {
      const Life& life = lives_[i];
      const int kind = life.state == State::kStarting ? 2 : life.state == State::kFailed ? 1 : 0;
      return std::tuple(kind, kind == 2 ? life.from : life.ready, i);
    };
    std::size_t next = lives_.size();
    for (std::size_t i = 0; i < end; ++i) {
      if (!Present(lives_[i]) || lives_[i].pool != pool) continue;
      if (next == lives_.size() || key(i) > key(next)) next = i;
    }
    return next;
  }
  void Remove(std::size_t index, TimeNs time, Change& change) {
    Life& life = lives_[index];
    const auto replica = static_cast<std::int32_t>(index);
    if (life.state == State::kUp) {
      life.state = State::kDraining;
      life.drain = time;
      if (life.holding == 0) Stop(life, time);
      if (life.state == State::kDraining) draining_.push_back(index);
      change.drain.push_back(replica);
      return;
    }
    std::erase(starting_, replica);
    Stop(life, time);
    change.gone.push_back(replica);
  }

  static void ReportWarm(const PoolState& pool, TimeNs end, ScalingReport& report);

  std::vector<PoolState> pools_;
  std::optional<Rolling> rolling_;
  TimeNs rolls_next_ = kNever;  // one came up or failed then; the update has not looked since
  std::int64_t staying_ = 0;
  TimeNs last_left_ = 0;
  std::vector<Life> lives_;            // by number
  std::deque<std::int32_t> starting_;  // in the order in which they come up
  std::vector<std::size_t> draining_;  // and some that are down
  std::vector<Departure> departures_;  // heap
};

// Steps of the number of replicas in each state, from their lives. One that has failed counts as
// one that starts: it takes no requests, but its GPUs.
class LivesReport {
 public:
  explicit LivesReport(TimeNs end) : end_(end) { steps_[0]; }

  // With the outages of it alone, in their order.
  void Add(const Life& life, const std::vector<Failures::Outage>& outages) {
    const TimeNs down = std::min(life.down, end_);
    const TimeNs drain = std::min(life.drain, down), up = std::min(life.up, drain);
    Move(life.from, up, &ScalingReport::Step::starting);
    TimeNs since = up;
    for (const Failures::Outage& outage : outages) {
      // One that drained may have been down before.
      if (outage.down > life.drain && outage.down >= life.down && !life.died) continue;
      ++report_.failures.failures;
      const TimeNs fails = std::min(outage.down, drain), back = std::min(outage.up, drain);
      Serve(since, fails);
      Move(fails, back, &ScalingReport::Step::starting);
      down_ += back - fails;
      since = back;
    }
    Serve(since, drain);
    Move(drain, down, &ScalingReport::Step::draining);
    all_ += down - std::min(life.from, down);
    const bool removed = life.drain < end_ || (life.drain == kNever && life.down < end_);
    report_.stops += removed ? 1 : 0;
  }

  ScalingReport Take() {
    report_.replica_s = Seconds(all_);
    if (end_ > 0) {
      report_.mean_replicas = Real(all_) / Real(end_);
      report_.mean_up = Real(up_) / Real(end_);
    }
    report_.failures.down_s = Seconds(down_);
    if (up_ + down_ > 0) report_.failures.availability = 1 - Real(down_) / Real(up_ + down_);
    ScalingReport::Step now;
    for (const auto& [time, step] : steps_) {
      now.starting += step.starting;
      now.up += step.up;
      now.draining += step.draining;
      report_.steps.push_back({Seconds(time), now.starting, now.up, now.draining});
      report_.peak_up = std::max(report_.peak_up, now.up);
    }
    return std::move(report_);
  }

 private:
  void Serve(TimeNs from, TimeNs to) {
    Move(from, to, &ScalingReport::Step::up);
    up_ += to - from;
  }
  void Move(TimeNs from, TimeNs to, std::int64_t ScalingReport::Step::*state) {
    if (from >= to || from >= end_) return;
    steps_[from].*state += 1;
    if (to < end_) steps_[to].*state -= 1;
  }

  TimeNs end_;
  TimeNs all_ = 0, up_ = 0, down_ = 0;  // of replicas: there, up, failed
  std::map<TimeNs, ScalingReport::Step> steps_;
  ScalingReport report_;
};

// One that starts to be warm has all of its GPUs' time. Adds to `report`.
void OpenMembership::ReportWarm(const PoolState& pool, TimeNs end, ScalingReport& report) {
  if (!pool.scaling || pool.scaling->asleep_from.empty()) return;
  report.has_warm = true;
  const WideInt all = WideInt{end} * static_cast<std::int64_t>(pool.scaling->asleep_from.size());
  TimeNs starting = 0;
  for (const TimeNs from : pool.refills) {
    if (from >= end) continue;
    ++report.wakes;
    starting += std::min(pool.cold_start, end - from);
  }
  const double asleep_s = static_cast<double>(all - starting) / 1e9;
  report.warm_s += Seconds(starting) + pool.scaling->spec.warm_gpu_share * asleep_s;
  if (end > 0) report.mean_asleep += asleep_s / Seconds(end);
}

ScalingReport OpenMembership::ReportTo(TimeNs end,
                                       const std::vector<Failures::Outage>& outages) const {
  std::vector<std::vector<Failures::Outage>> of(lives_.size());
  for (const Failures::Outage& outage : outages) of[At(outage.replica)].push_back(outage);
  std::vector<Life> by_end = lives_;
  // With what has left by `end`, whatever of it was counted.
  std::vector<TimeNs> last(lives_.size(), 0);
  for (const Departure& left : departures_) {
    if (left.time > end || !left.kv) continue;
    --by_end[At(left.replica)].holding;
    last[At(left.replica)] = std::max(last[At(left.replica)], left.time);
  }
  for (std::size_t i = 0; i < by_end.size(); ++i) {
    if (by_end[i].state == State::kDraining && by_end[i].holding == 0) Stop(by_end[i], last[i]);
  }
  // Of one pool; of all where there is none such.
  const auto report_of = [&](std::size_t pool) {
    const bool all = pool == pools_.size();
    LivesReport lives(end);
    for (std::size_t i = 0; i < by_end.size(); ++i) {
      if (all || by_end[i].pool == pool) lives.Add(by_end[i], of[i]);
    }
    ScalingReport report = lives.Take();
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      if (!all && p != pool) continue;
      report.on = report.on || pools_[p].scaling || rolling_;
      report.starts += pools_[p].starts;
      report.cold_start_s = std::max(report.cold_start_s, Seconds(pools_[p].cold_start));
      ReportWarm(pools_[p], end, report);
    }
    return report;
  };
  ScalingReport report = report_of(pools_.size());
  for (std::size_t p = 0; pools_.size() > 1 && report.on && p < pools_.size(); ++p) {
    report.pools.push_back(report_of(p));
  }
  if (rolling_ && rolling_->done <= end)
    report.rolling_update_s = Seconds(rolling_->done - rolling_->at);
  return report;
}
}  // namespace

std::unique_ptr<Membership> MakeMembership(const Membership::Input& input) {
  return std::make_unique<OpenMembership>(input);
}

}  // namespace servecast

#include "testing/pd_reference_members.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/math.h"
#include "base/random.h"

namespace servecast::testing {
namespace {

TimeNs Ns(double seconds) { return static_cast<TimeNs>(std::nearbyint(seconds * 1e9)); }

}  // namespace

bool PdLife::Down(TimeNs time) const {
  return std::any_of(outages.begin(), outages.end(),
                     [time](const PdOutage& o) { return o.down <= time && time < o.up; });
}

PdMembers::PdMembers(const std::vector<std::optional<PdScaling>>& scalings,
                     const std::vector<std::int64_t>& replicas,
                     const std::optional<FailureSpec>& failures, std::int64_t seed, TimeNs horizon)
    : failures_(failures), seed_(seed), horizon_(horizon) {
  for (std::size_t p = 0; p < scalings.size(); ++p) {
    Pool& pool = pools_.emplace_back();
    pool.scaling = scalings[p];
    pool.wanted = replicas[p];
    for (std::int64_t i = 0; i < replicas[p]; ++i) lives_.push_back({.pool = p});
    if (!pool.scaling) continue;
    const ScalingSpec& spec = pool.scaling->spec;
    pool.next_scrape = Ns(spec.scrape_period_s);
    if (spec.policy == "dynamo") {
      if (!planner_) planner_ = pool.scaling->make_planner();
      if (spec.enable_load_scaling) next_load_ = Ns(spec.params.at("load_adjustment_interval_s"));
      if (spec.enable_throughput_scaling) {
        next_throughput_ = Ns(spec.params.at("throughput_adjustment_interval_s"));
      }
      pool.next_scrape = pool.next_decision = std::min(next_load_, next_throughput_);
    } else if (spec.policy != "schedule") {
      pool.hpa = pool.scaling->make_hpa();
      pool.next_decision = Ns(spec.params.at("sync_s"));
    } else {
      pool.next_decision = Ns(spec.schedule[0][0]);
    }
  }
  for (std::size_t i = 0; i < lives_.size(); ++i) lives_[i].fails = EndOfLife(i, -1);
}

// Of the life that begins at `from`; -1: with the run.
TimeNs PdMembers::EndOfLife(std::size_t number, TimeNs from) {
  if (!failures_) return kNever;
  const auto size = static_cast<std::size_t>(failures_->domain_replicas);
  TimeNs end = kNever;
  for (const auto& row : failures_->schedule) {
    const bool together = static_cast<std::size_t>(row[1]) / size == number / size;
    if (together && Ns(row[0]) > from) end = std::min(end, Ns(row[0]));
  }
  if (failures_->mtbf_s) {
    const double u = Uniform(seed_, Stream::kFailure, static_cast<std::int64_t>(number / size),
                             lives_[number].drawn++);
    const TimeNs lasts = std::max<TimeNs>(1, Ns(-Log(u) * *failures_->mtbf_s));
    end = std::min(end, std::max<TimeNs>(from, 0) + lasts);
  }
  return end < horizon_ ? end : kNever;
}

TimeNs PdMembers::DueOf(const PdLife& life) const {
  if (life.outages.empty() || life.outages.back().back || life.drain < kNever) return life.fails;
  const PdOutage& last = life.outages.back();
  const TimeNs seen = last.down + Ns(failures_->detect_s);
  return last.seen ? last.up : std::min(seen, last.up);
}

TimeNs PdMembers::NextOfFailures() const {
  TimeNs next = kNever;
  for (const PdLife& life : lives_) next = std::min(next, DueOf(life));
  return next;
}

bool PdMembers::FailsAt(std::size_t number, TimeNs now) {
  PdLife& life = lives_[number];
  if (life.fails <= now) return true;
  PdOutage& last = life.outages.back();
  if (last.up <= now) {
    last.back = true;
    life.fails = EndOfLife(number, last.up);
  } else {
    last.seen = true;
  }
  return false;
}

void PdMembers::Fail(std::size_t number, TimeNs now, bool with_something) {
  PdLife& life = lives_[number];
  life.fails = kNever;
  if (life.drain == kNever) {
    life.outages.push_back({now, now + Ns(failures_->restart_s)});
  } else if (with_something) {
    life.outages.push_back({now, kNever});
  }
}

void PdMembers::RunOn(TimeNs time) {
  for (std::size_t i = 0; i < lives_.size(); ++i) {
    while (DueOf(lives_[i]) <= time) {
      const TimeNs due = DueOf(lives_[i]);
      if (FailsAt(i, due)) Fail(i, due, false);
    }
  }
}

bool PdMembers::Scale() const {
  return std::any_of(pools_.begin(), pools_.end(),
                     [](const Pool& pool) { return pool.scaling.has_value(); });
}

TimeNs PdMembers::Next() const {
  TimeNs next = kNever;
  for (const PdLife& life : lives_) {
    if (life.up > passed_ && life.up < life.drain) next = std::min(next, life.up);
    if (!life.was_cut) next = std::min(next, life.cut);
  }
  for (const Pool& pool : pools_) next = std::min({next, pool.next_scrape, pool.next_decision});
  return next;
}

bool PdMembers::Limited() const {
  const bool starts = std::any_of(lives_.begin(), lives_.end(), [this](const PdLife& life) {
    return life.up > passed_ && life.up < life.drain;
  });
  return starts || std::any_of(pools_.begin(), pools_.end(), [](const Pool& pool) {
           return pool.scaling && pool.scaling->spec.policy == "schedule" &&
                  pool.next_decision < kNever;
         });
}

bool PdMembers::Scrapes(std::size_t pool, TimeNs now) const {
  return pools_[pool].next_scrape <= now;
}

void PdMembers::Scrape(std::size_t pool, TimeNs now, std::vector<Seen> seen, std::int64_t held,
                       const Served& served) {
  const ScalingSpec& spec = pools_[pool].scaling->spec;
  TimeNs& next = pools_[pool].next_scrape;
  next = spec.policy == "dynamo" ? kNever : next + Ns(spec.scrape_period_s);
  pools_[pool].snapshots.push_back({now, std::move(seen), held, served});
}

// The latest that is old enough; nullptr: none is.
const PdMembers::Snapshot* PdMembers::SeenAt(const Pool& pool, TimeNs now) const {
  for (auto one = pool.snapshots.rbegin(); one != pool.snapshots.rend(); ++one) {
    if (one->time <= now - Ns(pool.scaling->spec.scrape_delay_s)) return &*one;
  }
  return nullptr;
}

PdPlanned PdMembers::PlannedOf(std::size_t number, TimeNs now) const {
  const Pool& pool = pools_[number];
  PdPlanned planned;
  planned.wanted = pool.wanted;
  const Snapshot* snapshot = SeenAt(pool, now);
  for (std::size_t i = 0; i < lives_.size(); ++i) {
    const PdLife& life = lives_[i];
    if (life.pool != number) continue;
    if (life.Up(now)) ++planned.ready;
    planned.changes |= life.drain == kNever ? life.up > now : pool.snapshots.back().seen[i].holds;
    if (snapshot == nullptr || i >= snapshot->seen.size()) continue;
    const bool reported = life.Up(snapshot->time) && life.Up(now);
    if (reported) planned.reports.push_back(snapshot->seen[i].report);
  }
  return planned;
}

// All of the planner's pools at once, before any replica of them comes or goes.
void PdMembers::Plan(TimeNs now) {
  std::vector<Pool*> pools;
  std::vector<PdPlanned> planned;
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    if (!pools_[p].scaling || pools_[p].scaling->spec.policy != "dynamo") continue;
    pools.push_back(&pools_[p]);
    planned.push_back(PlannedOf(p, now));
  }
  if (pools.empty() || pools[0]->next_decision > now) return;
  const ScalingSpec& spec = pools[0]->scaling->spec;
  const bool load = next_load_ <= now, throughput = next_throughput_ <= now;
  std::optional<PdTraffic> traffic;
  if (const Snapshot* seen = SeenAt(*pools[0], now); throughput && seen != nullptr) {
    traffic.emplace();
    traffic->requests = seen->served.requests - planned_by_.requests;
    const double input = seen->served.input - planned_by_.input;
    if (traffic->requests > 0) {
      traffic->input = input / traffic->requests;
      traffic->output = (seen->served.output - planned_by_.output) / traffic->requests;
      traffic->hit_rate = (seen->served.cached - planned_by_.cached) / input;
    }
    planned_by_ = seen->served;
  }
  const std::vector<std::int64_t> wanted = planner_(load, traffic, planned);
  if (load) next_load_ += Ns(spec.params.at("load_adjustment_interval_s"));
  if (throughput) next_throughput_ += Ns(spec.params.at("throughput_adjustment_interval_s"));
  for (std::size_t i = 0; i < pools.size(); ++i) {
    pools[i]->planned = wanted[i];
    pools[i]->next_scrape = std::min(next_load_, next_throughput_);
  }
}

std::int64_t PdMembers::Decided(Pool& pool, std::size_t number, TimeNs now) {
  const ScalingSpec& spec = pool.scaling->spec;
  if (pool.planned) {
    pool.next_decision = std::min(next_load_, next_throughput_);
    return *std::exchange(pool.planned, {});
  }
  if (!pool.hpa) {
    const auto replicas = static_cast<std::int64_t>(spec.schedule[pool.row++][1]);
    pool.next_decision = pool.row < spec.schedule.size() ? Ns(spec.schedule[pool.row][0]) : kNever;
    return replicas;
  }
  pool.next_decision += Ns(spec.params.at("sync_s"));
  const Snapshot* snapshot = SeenAt(pool, now);
  double sum = 0;
  std::int64_t present = 0;
  for (std::size_t i = 0; i < lives_.size(); ++i) {
    if (lives_[i].pool != number || lives_[i].drain != kNever) continue;
    ++present;
    if (snapshot == nullptr || i >= snapshot->seen.size()) continue;
    const Seen& seen = snapshot->seen[i];
    const auto waiting = static_cast<double>(seen.waiting),
               running = static_cast<double>(seen.running);
    sum += spec.metric == ScalingMetric::kWaiting       ? waiting
           : spec.metric == ScalingMetric::kRunning     ? running
           : spec.metric == ScalingMetric::kOutstanding ? waiting + running
                                                        : seen.kv_usage;
  }
  const bool queue =
      spec.metric == ScalingMetric::kWaiting || spec.metric == ScalingMetric::kOutstanding;
  if (snapshot == nullptr) return pool.hpa(now, pool.wanted, present, std::nullopt);
  if (queue) sum += static_cast<double>(snapshot->held);
  return pool.hpa(now, pool.wanted, present, static_cast<std::int64_t>(std::nearbyint(sum * 1e3)));
}

std::vector<std::size_t> PdMembers::Pass(TimeNs now) {
  passed_ = now;
  std::vector<std::size_t> started;
  Plan(now);
  for (std::size_t p = 0; p < pools_.size(); ++p) {
    Pool& pool = pools_[p];
    if (pool.next_decision > now) continue;
    const ScalingSpec& spec = pool.scaling->spec;
    pool.wanted = std::clamp(Decided(pool, p, now), spec.min_replicas, spec.max_replicas);
    const auto present = [&] {
      return std::count_if(lives_.begin(), lives_.end(), [p](const PdLife& life) {
        return life.pool == p && life.drain == kNever;
      });
    };
    while (present() < pool.wanted) {
      lives_.push_back({.pool = p, .from = now, .up = now + pool.scaling->cold_start});
      lives_.back().fails = EndOfLife(lives_.size() - 1, lives_.back().up);
      started.push_back(p);
    }
    // One that starts goes first, then one that has failed; of each the last to come up.
    while (present() > pool.wanted) {
      PdLife* last = nullptr;
      const auto rank = [now](const PdLife& life) {
        const bool starts = life.up > now;
        return std::pair(starts ? 2 : life.Down(now) ? 1 : 0, starts ? life.from : life.Ready());
      };
      for (PdLife& life : lives_) {
        if (life.pool != p || life.drain != kNever) continue;
        if (last == nullptr || rank(life) >= rank(*last)) last = &life;
      }
      if (!last->Up(now)) last->fails = kNever;
      last->drain = now;
    }
  }
  return started;
}

ScalingReport::Step PdMembers::At(std::size_t pool, TimeNs time) const {
  ScalingReport::Step step;
  for (const PdLife& life : lives_) {
    if (life.pool != pool || life.from > time) continue;
    const bool came_up = life.up <= life.drain;
    const bool restarts = time < life.drain && life.Down(time);
    step.starting += restarts || time < std::min(life.up, life.drain) ? 1 : 0;
    step.up += life.Up(time) ? 1 : 0;
    step.draining += came_up && life.drain <= time && time < life.gone ? 1 : 0;
  }
  return step;
}

}  // namespace servecast::testing

#include "testing/reference_router.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "fmt/format.h"
#include "serving/cluster/epp/profiles.h"
#include "serving/cluster/router.h"
#include "testing/engine_run.h"
#include "testing/epp_reference_flow.h"
#include "testing/reference_rules.h"

namespace servecast::testing {
namespace {

class ReferenceGateway {
 public:
  ReferenceGateway(const RandomCase& random_case, std::int64_t replicas, const RouterChoice& router,
                   const ClusterRun& run)
      : case_(random_case),
        replicas_(static_cast<std::size_t>(replicas)),
        router_(router),
        run_(run),
        size_(run.requests.arrival.size()),
        rules_(router, run.requests,
               std::vector<ServedBy>(
                   replicas_,
                   {random_case.engine.max_num_seqs, random_case.engine.block_size,
                    random_case.PoolBlocks() - 1, random_case.engine.enable_prefix_caching})) {
    out_.replica.assign(size_, -1);
    out_.placed.assign(size_, -1);
    out_.turned_away.assign(size_, -1);
    out_.waited.assign(size_, false);
    ends_.assign(size_, kNever);
    for (const std::vector<StepRecord>& steps : run.steps) {
      for (const StepRecord& step : steps) {
        for (const RequestId request : step.finished) {
          ends_[static_cast<std::size_t>(request)] = step.end;
        }
      }
    }
    for (std::size_t r = 0; r < size_; ++r) {
      if (run.results.state[r] != RequestState::kTimedOut || run.results.replica[r] < 0) continue;
      ends_[r] = 1 + (ends_[r] == kNever ? AbortOf(r) : ends_[r]);
    }
  }

  ReferencePlacements Place() {
    if (router_.name == "epp" && epp::ConfigOf(router_.epp).flow) return PlaceByFlow();
    std::set<std::tuple<TimeNs, TimeNs, std::size_t>> comes;  // to the gateway; arrival
    std::set<TimeNs> times;
    for (std::size_t r = 0; r < size_; ++r) {
      const TimeNs enqueue = run_.results.enqueue[r];
      if (enqueue < 0 || enqueue >= case_.horizon.value_or(kClockEnd)) continue;
      comes.insert({enqueue, run_.requests.arrival[r], r});
      times.insert(enqueue);
      if (ends_[r] != kNever) times.insert(ends_[r]);
      if (!run_.requests.timeout.empty() && run_.requests.timeout[r] != kNever) {
        times.insert(run_.requests.arrival[r] + run_.requests.timeout[r]);
      }
    }
    std::list<std::size_t> held;
    for (const TimeNs time : times) {
      if (time >= case_.horizon.value_or(kClockEnd)) break;
      held.remove_if([&](std::size_t r) {
        const bool gone =
            !run_.requests.timeout.empty() &&
            WideInt{run_.requests.arrival[r]} + run_.requests.timeout[r] <= WideInt{time};
        if (gone) out_.gave_up.push_back(static_cast<std::int32_t>(r));
        return gone;
      });
      while (!held.empty() && Choose(held.front(), time)) held.pop_front();
      for (; !comes.empty() && std::get<0>(*comes.begin()) == time; comes.erase(comes.begin())) {
        const std::size_t r = std::get<2>(*comes.begin());
        if (!held.empty() || !Choose(r, time)) held.push_back(r);
      }
    }
    return out_;
  }

 private:
  // Flow control: a cycle each millisecond and at each arrival, sweeps each second.
  ReferencePlacements PlaceByFlow() {
    ReferenceFlow flow(epp::ConfigOf(router_.epp));
    std::set<std::tuple<TimeNs, TimeNs, std::size_t>> comes, gives_up;
    const TimeNs horizon = case_.horizon.value_or(kClockEnd);
    const RequestTable& table = run_.requests;
    for (std::size_t r = 0; r < size_; ++r) {
      const TimeNs enqueue = run_.results.enqueue[r];
      const TimeNs deadline = table.ttft_deadline.empty() ? kNever : table.ttft_deadline[r];
      flow.requests.push_back({.arrival = enqueue,
                               .flow = table.of_class.empty() ? 0 : table.of_class[r],
                               .priority = table.priority.empty() ? 0 : -table.priority[r],
                               .bytes = 4 * std::int64_t{table.prompt_tokens[r]},
                               .slo_ttft = deadline == kNever ? 0 : deadline});
      if (enqueue < 0 || enqueue >= horizon) continue;
      comes.insert({enqueue, table.arrival[r], r});
      if (table.timeout.empty() || table.timeout[r] == kNever) continue;
      gives_up.insert({std::max(enqueue, table.arrival[r] + table.timeout[r]), 0, r});
    }
    const auto first = [](const auto& of) {
      return of.empty() ? kNever : std::get<0>(*of.begin());
    };
    TimeNs now = -1;
    const auto cycle = [&] {
      flow.SetPool(rules_.Picker().LoadsOf(SightsAt(now)));
      const std::int64_t request = flow.Cycle(now);
      if (request >= 0) Choose(static_cast<std::size_t>(request), now);
    };
    while (true) {
      const TimeNs tick = (now + kNsPerMs) / kNsPerMs * kNsPerMs;
      const TimeNs sweep =
          (std::max<TimeNs>(now, 500'000) + kNsPerS - 500'000) / kNsPerS * kNsPerS + 500'000;
      const TimeNs outside = std::min(first(comes), first(gives_up));
      now = flow.Idle() ? outside : std::min({outside, tick, sweep});
      if (now >= horizon) return out_;
      if (now == kNever) return out_;
      for (; first(gives_up) == now; gives_up.erase(gives_up.begin())) {
        const std::size_t r = std::get<2>(*gives_up.begin());
        if (!flow.requests[r].queued || !flow.requests[r].outcome.empty()) continue;
        flow.End(static_cast<std::int64_t>(r), "gone", now);
        out_.gave_up.push_back(static_cast<std::int32_t>(r));
      }
      if (now == sweep) {
        flow.Sweep(now);
        for (std::size_t r = 0; r < size_; ++r) {
          if (flow.requests[r].outcome != "EvictedTTL" || flow.requests[r].end != now) continue;
          out_.turned_away[r] = now;
          out_.waited[r] = true;
        }
      }
      if (now == tick) cycle();
      for (; first(comes) == now; comes.erase(comes.begin())) {
        const std::size_t r = std::get<2>(*comes.begin());
        flow.Arrive(static_cast<std::int64_t>(r), now);
        if (!flow.requests[r].queued) out_.turned_away[r] = now;
        cycle();
      }
    }
  }

  // When the replica hears that its client gave up: between two steps.
  TimeNs AbortOf(std::size_t r) const {
    const TimeNs gave_up = run_.requests.arrival[r] + run_.requests.timeout[r];
    TimeNs heard = kNever;
    for (const StepRecord& step : run_.steps[static_cast<std::size_t>(run_.results.replica[r])]) {
      if (step.scheduled < gave_up && step.end >= gave_up) heard = std::min(heard, step.end);
    }
    return heard == kNever ? gave_up : heard;
  }

  // Of those placed so far, before `since`: without end at `time`.
  std::vector<std::vector<std::size_t>> Outstanding(TimeNs time, TimeNs since) const {
    std::vector<std::vector<std::size_t>> outstanding(replicas_);
    for (std::size_t r = 0; r < size_; ++r) {
      if (out_.replica[r] < 0 || out_.placed[r] >= since || ends_[r] <= time) continue;
      outstanding[static_cast<std::size_t>(out_.replica[r])].push_back(r);
    }
    return outstanding;
  }

  // The running list and the used blocks of a replica at `time`: of the step under way as it was
  // formed, else as the last step left them.
  std::pair<std::int64_t, std::int64_t> EngineAt(std::size_t replica, TimeNs time) const {
    const std::int64_t total = case_.PoolBlocks() - 1;
    const StepRecord *formed = nullptr, *ended = nullptr;
    TimeNs under_way = kNever;
    for (const StepRecord& step : run_.steps[replica]) {
      if (step.scheduled >= time) break;
      formed = &step;
      if (step.end <= time) ended = &step;
      if (step.end >= time) under_way = std::min(under_way, step.end);
    }
    if (under_way != kNever && under_way > time) {
      return {formed->running_after_schedule, total - formed->free_after_schedule};
    }
    if (ended == nullptr) return {0, 0};
    return {ended->running_after_step, total - ended->free_after_step};
  }

  std::vector<ReplicaSight> SightsAt(TimeNs time) const {
    const auto at = [time](TimeNs period) { return period > 0 ? time / period * period : time; };
    const TimeNs period = router_.Period();
    const auto poll = static_cast<TimeNs>(std::nearbyint(router_.Param("poll_ms") * 1e6));
    const TimeNs looks = std::max(period, poll), looked = at(looks);
    const auto outstanding = Outstanding(at(period), kNever);
    const auto told = Outstanding(looked, looks > 0 ? looked : kNever);
    std::vector<ReplicaSight> sights(replicas_);
    for (std::size_t i = 0; i < replicas_; ++i) {
      const auto [running, used] = EngineAt(i, looked);
      // A step formed while another ran knows of requests that have ended with that one.
      const std::int64_t waiting = static_cast<std::int64_t>(told[i].size()) - running;
      sights[i] = {.outstanding = static_cast<std::int64_t>(outstanding[i].size()),
                   .own = outstanding[i],
                   .waiting = std::max<std::int64_t>(waiting, 0),
                   .blocks_used = used,
                   .running = running,
                   .answered = {},
                   .age = time - looked};
      for (const std::size_t own : outstanding[i]) {
        const TimeNs first = run_.results.first_token[own];
        if (first >= 0 && first <= time) sights[i].answered.push_back(own);
      }
    }
    return sights;
  }

  // Places it if there is a replica for it.
  bool Choose(std::size_t r, TimeNs time) {
    const std::optional<std::size_t> chosen = rules_.Choose(r, SightsAt(time), time);
    if (!chosen) return false;
    out_.replica[r] = static_cast<std::int32_t>(*chosen);
    out_.placed[r] = time;
    return true;
  }

  const RandomCase& case_;
  std::size_t replicas_;
  const RouterChoice& router_;
  const ClusterRun& run_;
  std::size_t size_;
  std::vector<TimeNs> ends_;  // as the router hears of them
  ReferencePlacements out_;
  ReferenceRules rules_;
};

}  // namespace

ReferencePlacements PlaceByReference(const RandomCase& random_case, std::int64_t replicas,
                                     const RouterChoice& router, const ClusterRun& run) {
  return ReferenceGateway(random_case, replicas, router, run).Place();
}

namespace {

// The rows that one replica was sent, as a table of their own.
RequestTable PartOf(const RequestTable& all, const std::vector<std::size_t>& rows) {
  RequestTable part;
  part.segments = all.segments;
  const auto copy = [&rows](const auto& from, auto& to) {
    for (const std::size_t row : rows) {
      if (!from.empty()) to.push_back(from[row]);
    }
  };
  copy(all.arrival, part.arrival);
  copy(all.prompt_tokens, part.prompt_tokens);
  copy(all.output_tokens, part.output_tokens);
  copy(all.priority, part.priority);
  copy(all.ttft_deadline, part.ttft_deadline);
  copy(all.timeout, part.timeout);
  copy(all.content, part.content);
  return part;
}

// When each request came to its replica; empty where a replica alone would take it otherwise: a
// request that was held is younger for its replica than for policies that go by its arrival, and
// two that are placed at once come in the order of the gateway, not of their numbers.
std::vector<TimeNs> ArrivalsAtReplicas(const RandomCase& random_case, std::int64_t replicas,
                                       const RouterChoice& router, const ClusterRun& run) {
  const bool holds = FindRouter(router.name).holds || router.epp.ControlsFlow();
  if (!holds) return run.requests.arrival;
  const SchedulerSpec& scheduler = random_case.scheduler;
  if (scheduler.order != "fcfs" || scheduler.preemption == "priority" ||
      !random_case.requests.timeout.empty()) {
    return {};
  }
  const std::unique_ptr<LatencyModel> latency = MakeLatency(random_case);
  std::vector<TimeNs> arrivals = PlaceByReference(random_case, replicas, router, run).placed;
  const auto delay = [&](std::size_t r) {
    return latency->EnqueueDelay(run.requests.prompt_tokens[r]);
  };
  for (std::size_t r = 0; r < arrivals.size(); ++r) {
    for (std::size_t later = r + 1; later < arrivals.size(); ++later) {
      // Alone, of two that reach the queue at once the longer prompt has arrived before.
      const bool overtaken = router.epp.ControlsFlow() || delay(later) > delay(r) ||
                             run.results.enqueue[later] < run.results.enqueue[r];
      if (arrivals[r] >= 0 && arrivals[later] == arrivals[r] && overtaken) return {};
    }
  }
  for (std::size_t r = 0; r < arrivals.size(); ++r) {
    if (arrivals[r] < 0) continue;
    arrivals[r] -= delay(r);
    if (arrivals[r] < 0) return {};
  }
  return arrivals;
}

bool SameResult(const RequestResults& a, std::size_t i, const RequestResults& b, std::size_t j) {
  return a.first_scheduled[i] == b.first_scheduled[j] && a.first_token[i] == b.first_token[j] &&
         a.completion[i] == b.completion[j] && a.state[i] == b.state[j] &&
         a.generated[i] == b.generated[j] && a.preemptions[i] == b.preemptions[j] &&
         a.cached_tokens[i] == b.cached_tokens[j];
}

}  // namespace

std::int64_t CompareEachAlone(const RandomCase& random_case, std::int64_t replicas,
                              const RouterChoice& router, const ClusterRun& run,
                              std::string& mismatch) {
  // A segment per request lets a part keep its contents.
  if (AnswersBringRequests(random_case) || random_case.requests.content.empty()) return 0;
  RequestTable all = run.requests;
  all.arrival = ArrivalsAtReplicas(random_case, replicas, router, run);
  if (all.arrival.empty()) return 0;
  std::int64_t compared = 0;
  for (std::int32_t replica = 0; replica < replicas; ++replica) {
    std::vector<std::size_t> rows;
    for (std::size_t r = 0; r < run.results.replica.size(); ++r) {
      if (run.results.replica[r] == replica) rows.push_back(r);
    }
    if (rows.empty()) continue;
    const RequestTable part = PartOf(all, rows);
    const EngineCase whole = EngineCaseOf(random_case);
    EngineCase one{part,          whole.engine, whole.scheduler, whole.model_max_len,
                   whole.horizon, whole.stages};
    one.slowdowns = whole.slowdowns;
    one.number = replica;
    const ReplicaRun alone = RunReplica(one, *MakeLatency(random_case), run.now);
    for (std::size_t i = 0; i < rows.size(); ++i, ++compared) {
      if (SameResult(run.results, rows[i], alone.results, i)) continue;
      mismatch =
          fmt::format("request {} on replica {} is served as by none alone", rows[i], replica);
      return compared;
    }
  }
  return compared;
}

namespace {

// By that choice, which is made once the case is known.
RouterComparison Compare(std::uint64_t seed,
                         RouterChoice (*choose)(std::uint64_t seed, TimeNs step),
                         std::int64_t slice = INT64_MAX) {
  RouterComparison comparison;
  RandomCase random_case = MakeRandomCase(seed);
  random_case.latency.stalls = {};          // each replica has its own, and here they are compared
  random_case.engine.api_server_count = 0;  // they share what comes before
  if (MakeLatency(random_case)->DelayByLoad()) return comparison;
  const auto replicas = static_cast<std::int64_t>(1 + seed % 4);
  comparison.router = choose(seed, random_case.latency.base);
  const ClusterRun run = RunCluster(random_case, replicas, comparison.router, slice);
  // An abort changes a running list between two steps, of which there is no record, and in a closed
  // loop brings a request at that very moment.
  for (std::size_t r = 0; r < run.results.state.size(); ++r) {
    const bool aborted =
        run.results.replica[r] >= 0 && run.results.state[r] == RequestState::kTimedOut;
    const bool untold =
        FindRouter(comparison.router.name).reads_engines || !run.requests.pause.empty();
    if (aborted && untold) return comparison;
  }
  comparison.told = true;
  const ReferencePlacements expected =
      PlaceByReference(random_case, replicas, comparison.router, run);
  for (std::size_t r = 0; r < run.results.state.size(); ++r) {
    if (run.results.replica[r] != expected.replica[r]) {
      comparison.mismatch = fmt::format("request {} is on replica {}, the reference has it on {}",
                                        r, run.results.replica[r], expected.replica[r]);
      return comparison;
    }
    const TimeNs turned_away = expected.turned_away[r];
    const bool rejected = run.results.state[r] == RequestState::kRejected;
    const TimeNs waited = run.results.lost_at.empty() ? -1 : run.results.lost_at[r];
    if (rejected != (turned_away >= 0) || waited != (expected.waited[r] ? turned_away : -1)) {
      comparison.mismatch = fmt::format("request {} is turned away at {}, the reference has {}", r,
                                        rejected ? waited : -2, turned_away);
      return comparison;
    }
    comparison.rejected += rejected ? 1 : 0;
    comparison.expired += waited >= 0 ? 1 : 0;
    if (expected.replica[r] < 0) continue;
    ++comparison.placed;
    comparison.held += expected.placed[r] > run.results.enqueue[r] ? 1 : 0;
    const TimeNs first = run.results.first_scheduled[r];
    if (first >= 0 && first < expected.placed[r]) {
      comparison.mismatch = fmt::format("request {} is served before it is placed", r);
    }
  }
  for (const std::int32_t request : expected.gave_up) {
    const auto r = static_cast<std::size_t>(request);
    ++comparison.gave_up;
    if (run.results.state[r] != RequestState::kTimedOut) {
      comparison.mismatch = fmt::format("request {} did not give up at the gateway", r);
    }
  }
  if (!comparison.mismatch.empty()) return comparison;
  comparison.alone =
      CompareEachAlone(random_case, replicas, comparison.router, run, comparison.mismatch);
  return comparison;
}

}  // namespace

RouterComparison CompareRouter(std::uint64_t seed) { return Compare(seed, MakeRouterChoice); }
RouterComparison CompareEppRouter(std::uint64_t seed) { return Compare(seed, MakeEppChoice); }
RouterComparison CompareFlowRouter(std::uint64_t seed) {
  return Compare(seed, MakeFlowChoice, seed % 2 == 0 ? INT64_MAX : 1 + seed % 7);
}

}  // namespace servecast::testing

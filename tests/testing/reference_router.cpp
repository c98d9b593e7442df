#include "testing/reference_router.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/random.h"
#include "fmt/format.h"
#include "testing/engine_run.h"

namespace servecast::testing {
namespace {

using Block = std::pair<std::int32_t, std::int64_t>;  // segment, number

// What a replica was sent, as a gateway remembers it: segments, the latest used last.
struct SentPrompts {
  std::list<std::pair<std::int32_t, std::set<std::int64_t>>> segments;

  bool Has(const Block& block) const {
    for (const auto& [segment, blocks] : segments) {
      if (segment == block.first) return blocks.count(block.second) > 0;
    }
    return false;
  }
  void Add(const std::vector<Block>& prompt, std::int64_t capacity) {
    std::vector<std::int32_t> order;  // of the segments, deepest first
    for (auto block = prompt.rbegin(); block != prompt.rend(); ++block) {
      if (order.empty() || order.back() != block->first) order.push_back(block->first);
    }
    for (const std::int32_t segment : order) {
      std::set<std::int64_t> blocks;
      segments.remove_if([&](const auto& known) {
        if (known.first != segment) return false;
        blocks = known.second;
        return true;
      });
      for (const Block& block : prompt) {
        if (block.first == segment) blocks.insert(block.second);
      }
      segments.emplace_back(segment, blocks);
    }
    std::size_t all = 0;
    for (const auto& known : segments) all += known.second.size();
    while (all > static_cast<std::size_t>(capacity)) {
      all -= segments.front().second.size();
      segments.pop_front();
    }
  }
};

class ReferenceGateway {
 public:
  ReferenceGateway(const RandomCase& random_case, std::int64_t replicas, const RouterChoice& router,
                   const ClusterRun& run)
      : case_(random_case),
        replicas_(static_cast<std::size_t>(replicas)),
        router_(router),
        run_(run),
        size_(run.requests.arrival.size()),
        added_(size_, 0),
        sent_(replicas_) {
    out_.replica.assign(size_, -1);
    out_.placed.assign(size_, -1);
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
    std::set<std::pair<TimeNs, std::size_t>> comes;
    std::set<TimeNs> times;
    for (std::size_t r = 0; r < size_; ++r) {
      const TimeNs enqueue = run_.results.enqueue[r];
      if (enqueue < 0 || enqueue >= case_.horizon.value_or(kClockEnd)) continue;
      comes.insert({enqueue, r});
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
      for (; !comes.empty() && comes.begin()->first == time; comes.erase(comes.begin())) {
        const std::size_t r = comes.begin()->second;
        if (!held.empty() || !Choose(r, time)) held.push_back(r);
      }
    }
    return out_;
  }

 private:
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
  std::vector<std::int64_t> Outstanding(TimeNs time, TimeNs since) const {
    std::vector<std::int64_t> outstanding(replicas_, 0);
    for (std::size_t r = 0; r < size_; ++r) {
      if (out_.replica[r] < 0 || out_.placed[r] >= since || ends_[r] <= time) continue;
      ++outstanding[static_cast<std::size_t>(out_.replica[r])];
    }
    return outstanding;
  }

  std::vector<Block> BlocksOf(std::size_t r) const {
    std::vector<Block> blocks;
    if (run_.requests.content.empty()) return blocks;
    const std::int64_t size = case_.engine.block_size;
    for (std::int64_t k = 0; (k + 1) * size < run_.requests.prompt_tokens[r]; ++k) {
      std::int32_t segment = run_.requests.content[r];
      const auto at = [&] { return run_.requests.segments[static_cast<std::size_t>(segment)]; };
      while (at().parent >= 0 && (k + 1) * size <= at().shared_tokens) segment = at().parent;
      blocks.push_back({segment, k});
    }
    return blocks;
  }

  std::int64_t Matched(const std::vector<Block>& blocks, std::size_t replica) const {
    std::int64_t matched = 0;
    for (const Block& block : blocks) {
      if (!sent_[replica].Has(block)) break;
      ++matched;
    }
    return matched;
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

  // Places it if there is a replica for it.
  bool Choose(std::size_t r, TimeNs time) {
    const TimeNs period = router_.Period();
    const TimeNs seen = period > 0 ? time / period * period : time;
    const std::vector<std::int64_t> outstanding = Outstanding(seen, kNever);
    const std::vector<Block> blocks = BlocksOf(r);
    std::vector<double> costs(replicas_, 0);  // the first of the lowest is chosen
    const std::string& name = router_.name;
    if (name == "least_outstanding" || name == "central_queue") {
      for (std::size_t i = 0; i < replicas_; ++i) costs[i] = static_cast<double>(outstanding[i]);
    } else if (name == "power_of_two") {
      costs = PowerOfTwo(r, outstanding);
    } else if (name == "prefix_affinity") {
      costs = PrefixAffinity(blocks, outstanding);
    } else if (name == "kv_aware") {
      costs = KvAware(r, blocks, seen);
    } else if (name == "weighted") {
      costs = Weighted(blocks, outstanding, period, time);
    } else if (name == "round_robin") {
      costs[routed_ % replicas_] = -1;
    } else {  // by a hash or a draw: as it went
      if (run_.results.replica[r] >= 0) {
        costs[static_cast<std::size_t>(run_.results.replica[r])] = -1;
      }
    }
    const auto chosen =
        static_cast<std::size_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
    if (name == "central_queue") {
      const double most = router_.Param("max_outstanding");
      const double room =
          most > 0 ? std::ceil(most) : static_cast<double>(case_.engine.max_num_seqs);
      if (costs[chosen] >= room) return false;
    }
    Put(r, chosen, time, blocks);
    return true;
  }

  void Put(std::size_t r, std::size_t replica, TimeNs time, const std::vector<Block>& blocks) {
    out_.replica[r] = static_cast<std::int32_t>(replica);
    out_.placed[r] = time;
    ++routed_;
    const std::int64_t prompt = CeilDiv(run_.requests.prompt_tokens[r], case_.engine.block_size);
    added_[r] = prompt - Matched(blocks, replica);
    sent_[replica].Add(blocks, case_.engine.enable_prefix_caching ? case_.PoolBlocks() - 1 : 0);
    for (const Block& block : blocks) homes_.emplace(block.first, replica);
    if (!blocks.empty()) homes_[blocks.back().first] = replica;
  }

  std::vector<double> PowerOfTwo(std::size_t r,
                                 const std::vector<std::int64_t>& outstanding) const {
    std::vector<double> costs(replicas_, 1e18);
    const auto n = static_cast<double>(replicas_);
    const auto number = static_cast<std::int64_t>(r);
    const auto first =
        static_cast<std::size_t>(Uniform(router_.seed, Stream::kRouter, number, 0) * n);
    costs[first] = static_cast<double>(outstanding[first]);
    if (replicas_ == 1) return costs;
    auto second =
        static_cast<std::size_t>(Uniform(router_.seed, Stream::kRouter, number, 1) * (n - 1));
    if (second >= first) ++second;
    costs[second] = static_cast<double>(outstanding[second]);
    return costs;
  }

  std::vector<double> PrefixAffinity(const std::vector<Block>& blocks,
                                     const std::vector<std::int64_t>& outstanding) const {
    std::int64_t all = 1;
    for (const std::int64_t one : outstanding) all += one;
    const double most = std::ceil(router_.Param("load_factor") *
                                  (static_cast<double>(all) / static_cast<double>(replicas_)));
    std::vector<double> costs;
    for (const std::int64_t one : outstanding) costs.push_back(static_cast<double>(one));
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
      const auto home = homes_.find(block->first);
      if (home == homes_.end() || costs[home->second] >= most) continue;
      costs[home->second] = -1;
      break;
    }
    return costs;
  }

  std::vector<double> KvAware(std::size_t r, const std::vector<Block>& blocks, TimeNs seen) const {
    std::vector<double> costs;
    for (std::size_t i = 0; i < replicas_; ++i) {
      const std::int64_t missing =
          CeilDiv(run_.requests.prompt_tokens[r], case_.engine.block_size) - Matched(blocks, i);
      std::int64_t there = missing;
      for (std::size_t q = 0; q < size_; ++q) {
        if (out_.replica[q] == static_cast<std::int32_t>(i) && ends_[q] > seen) there += added_[q];
      }
      costs.push_back(router_.Param("overlap_weight") * static_cast<double>(missing) +
                      static_cast<double>(there));
    }
    return costs;
  }

  std::vector<double> Weighted(const std::vector<Block>& blocks,
                               const std::vector<std::int64_t>& outstanding, TimeNs period,
                               TimeNs time) const {
    const TimeNs at = period > 0 ? time / period * period : time;
    const std::vector<std::int64_t> sent = Outstanding(at, period > 0 ? at : kNever);
    std::vector<std::int64_t> waiting;
    for (std::size_t i = 0; i < replicas_; ++i) {
      // A step formed while another ran knows of requests that have ended with that one.
      waiting.push_back(std::max<std::int64_t>(sent[i] - EngineAt(i, at).first, 0));
    }
    const auto [low, high] = std::minmax_element(waiting.begin(), waiting.end());
    std::vector<double> costs;
    for (std::size_t i = 0; i < replicas_; ++i) {
      const double prefix = blocks.empty() ? 0
                                           : static_cast<double>(Matched(blocks, i)) /
                                                 static_cast<double>(blocks.size());
      const double queue = *high == *low ? 1
                                         : static_cast<double>(*high - waiting[i]) /
                                               static_cast<double>(*high - *low);
      const double used =
          static_cast<double>(EngineAt(i, at).second) / static_cast<double>(case_.PoolBlocks() - 1);
      costs.push_back(-(router_.Param("prefix_weight") * prefix +
                        router_.Param("queue_depth_weight") * queue +
                        router_.Param("kv_utilization_weight") * (1 - used) +
                        router_.Param("load_weight") / static_cast<double>(1 + outstanding[i])));
    }
    return costs;
  }

  const RandomCase& case_;
  std::size_t replicas_;
  const RouterChoice& router_;
  const ClusterRun& run_;
  std::size_t size_, routed_ = 0;
  std::vector<TimeNs> ends_;  // as the router hears of them
  ReferencePlacements out_;
  std::vector<std::int64_t> added_;
  std::vector<SentPrompts> sent_;
  std::map<std::int32_t, std::size_t> homes_;  // by segment
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
  if (!FindRouter(router.name).holds) return run.requests.arrival;
  const SchedulerSpec& scheduler = random_case.scheduler;
  if (scheduler.order != "fcfs" || scheduler.preemption == "priority" ||
      !random_case.requests.timeout.empty()) {
    return {};
  }
  const std::unique_ptr<LatencyModel> latency = MakeLatency(random_case);
  std::vector<TimeNs> arrivals = PlaceByReference(random_case, replicas, router, run).placed;
  for (std::size_t r = 0; r < arrivals.size(); ++r) {
    for (std::size_t later = r + 1; later < arrivals.size(); ++later) {
      const bool overtaken = run.results.enqueue[later] < run.results.enqueue[r];
      if (arrivals[r] >= 0 && arrivals[later] == arrivals[r] && overtaken) return {};
    }
  }
  for (std::size_t r = 0; r < arrivals.size(); ++r) {
    if (arrivals[r] < 0) continue;
    arrivals[r] -= latency->EnqueueDelay(run.requests.prompt_tokens[r]);
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
    const EngineCase one{part,          whole.engine, whole.scheduler, whole.model_max_len,
                         whole.horizon, whole.stages};
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

RouterComparison CompareRouter(std::uint64_t seed) {
  RouterComparison comparison;
  const RandomCase random_case = MakeRandomCase(seed);
  if (MakeLatency(random_case)->DelayByLoad()) return comparison;
  const auto replicas = static_cast<std::int64_t>(1 + seed % 4);
  comparison.router = MakeRouterChoice(seed, random_case.latency.base);
  const ClusterRun run = RunCluster(random_case, replicas, comparison.router);
  // An abort changes a running list between two steps, of which there is no record, and in a closed
  // loop brings a request at that very moment.
  for (std::size_t r = 0; r < run.results.state.size(); ++r) {
    const bool aborted =
        run.results.replica[r] >= 0 && run.results.state[r] == RequestState::kTimedOut;
    const bool untold = comparison.router.name == "weighted" || !run.requests.pause.empty();
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

}  // namespace servecast::testing

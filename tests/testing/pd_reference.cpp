// The driver: all replicas, the link, the gateways and the clients, moment by moment.
#include "testing/pd_reference.h"

#include "testing/reference_rules.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "base/random.h"
#include "testing/pd_reference_scheduler.h"
#include "testing/reference_slow.h"
#include "testing/reference_stalls.h"
#include "testing/reference_take_up.h"

namespace servecast::testing {
namespace {

struct Batch {
  PdCall call;
  StepRecord record;
};

struct Left {
  TimeNs time = 0;  // when a router may know
  RequestId id = kNoRequest;
  bool kv_stays = false;  // for another replica
};

struct Replica {
  const PdPool* pool = nullptr;
  std::int64_t number = 0;
  std::unique_ptr<PdScheduler> scheduler;
  std::deque<Batch> in_flight;
  std::vector<TimeNs> stage_free;  // when each stage is
  TimeNs due = kNever;             // of the next schedule call
  TimeNs begin = 0;                // of the latest step
  bool sleeps = false;             // it has requests, and nothing to do
  std::int64_t sent = 0;
  std::vector<Left> left;
  std::vector<TimeNs> kv_went;                       // of what it has prefilled for others
  std::int64_t formed_running = 0, formed_used = 0;  // as the latest step was formed
  PdReport latest;                                   // of it
  std::vector<PdSequence*> joining;                  // sent since the last call
  // Of transfers that ended while a step runs: a replica hears of them after it.
  std::vector<std::function<void()>> news;
};

struct Transfer {
  PdSequence* sequence = nullptr;
  TimeNs begins = 0;
  __int128 left = 0;  // in billionths of a byte
};

// Before the replicas of one role: who chooses among them, and who waits for room.
struct Gate {
  Gate(const RouterChoice& choice, const RequestTable& requests, PoolRole of,
       std::deque<Replica>& replicas)
      : role(of),
        period(choice.Period()),
        side(Of(replicas, of)),
        rules(choice, requests, Kinds(side)) {
    told.resize(side.size());
  }

  static std::vector<Replica*> Of(std::deque<Replica>& replicas, PoolRole role) {
    std::vector<Replica*> side;
    for (Replica& replica : replicas) {
      if (replica.pool->role == role) side.push_back(&replica);
    }
    return side;
  }
  static std::vector<ServedBy> Kinds(const std::vector<Replica*>& side) {
    std::vector<ServedBy> kinds;
    for (const Replica* replica : side) {
      const EngineSpec& engine = replica->pool->engine;
      const std::string& by = replica->pool->scheduler;
      const bool paged = by == "vllm" || by == "vllm_v0" || by == "sarathi";
      kinds.push_back({engine.max_num_seqs, engine.block_size, replica->pool->pool_blocks - 1,
                       engine.enable_prefix_caching && paged});
    }
    return kinds;
  }

  PoolRole role;
  TimeNs period;  // of its signals
  std::vector<Replica*> side;
  ReferenceRules rules;
  std::deque<PdSequence*> held;
  TimeNs tried = 0, looked = 0;
  std::vector<ReplicaSight> told;           // by the engines, when it last looked
  std::map<RequestId, std::size_t> placed;  // by it, on one of its side
  std::int64_t routed = 0;                  // where replicas come and go
};

class Driver {
 public:
  explicit Driver(const PdInput& input) : input_(input), front_end_(input.front_end_servers) {
    output_.requests = input.requests;
    const std::size_t size = input.requests.arrival.size();
    output_.results.Resize(input.requests.size());
    output_.results.replica.assign(size, -1);
    output_.results.hand_overs.resize(size);
    output_.times.resize(size);
    spent_.resize(size);
    std::vector<std::optional<PdScaling>> scalings;
    std::vector<std::int64_t> counts;
    for (const PdPool& pool : input.pools) {
      for (std::int64_t i = 0; i < pool.replicas; ++i) AddReplica(pool);
      scalings.push_back(pool.scaling);
      counts.push_back(pool.replicas);
    }
    output_.results.lost_at.assign(size, -1);
    output_.members.emplace(scalings, counts, input.failures, input.router.seed,
                            input.horizon.value_or(kNever));
    const auto has = [&](PoolRole role) { return !Gate::Of(replicas_, role).empty(); };
    const PoolRole whole = has(PoolRole::kMixed) ? PoolRole::kMixed : PoolRole::kDecode;
    decode_.emplace(input.decode_router, output_.requests, PoolRole::kDecode, replicas_);
    whole_.emplace(input.router, output_.requests, whole, replicas_);
    prefill_.emplace(input.router, output_.requests, PoolRole::kPrefill, replicas_);
    for (std::size_t r = 0; r < input.requests.requests(); ++r) {
      if (input.requests.think.empty() || input.requests.think[r] < 0) Arrive(r);
    }
  }

  PdOutput Run() {
    for (;;) {
      TimeNs next = kNever;
      for (const Replica& replica : replicas_) {
        if (!replica.in_flight.empty() && replica.due == kNever) {
          next = std::min(next, replica.in_flight.front().record.end);
        }
        if (replica.due != kNever) next = std::min(next, replica.due);
        if (replica.sleeps) next = std::min(next, BeforeHorizon(FirstToGiveUp(replica)));
      }
      next = std::min(next, NextEvent());
      const std::vector<Gate*> gates = Gates();
      const bool held = std::any_of(gates.begin(), gates.end(),
                                    [](const Gate* gate) { return !gate->held.empty(); });
      if (next < kNever || held || members().Limited() || (input_.horizon && members().Scale())) {
        next = std::min(next, BeforeHorizon(members().Next()));
      }
      if (next < kNever || SomethingIsLeft()) {
        next = std::min(next, BeforeHorizon(members().NextOfFailures()));
      }
      if (next == kNever) break;
      for (const Gate* gate : Gates()) {
        const TimeNs look = BeforeHorizon(LookBefore(*gate, next));
        if (look == kNever) continue;
        if (look > gate->looked) next = std::min(next, look);
      }
      now_ = std::max(now_, next);
      for (Replica& replica : replicas_) {
        if (replica.due == kNever && !replica.in_flight.empty() &&
            replica.in_flight.front().record.end == now_) {
          Apply(replica);
        }
        if (replica.sleeps && FirstToGiveUp(replica) <= now_) Wake(replica);
      }
      do {
        while (NextEvent() <= now_) Happen();
      } while (ActOnce());
    }
    for (const Replica& replica : replicas_) {
      PdLife& life = members().lives()[static_cast<std::size_t>(replica.number)];
      if (Holding(replica, kNever - 1) > 0) continue;
      life.gone = life.drain;
      for (const Left& left : replica.left) life.gone = std::max(life.gone, left.time);
      TimeNs kv = 0;
      for (const TimeNs went : replica.kv_went) kv = std::max(kv, went);
      if (life.drain < kNever && kv > life.gone) ++output_.coverage.kept_kv;
      life.gone = std::max(life.gone, kv);
      life.gone = std::min(life.gone, std::max(life.cut, life.drain));
      if (life.drain < kNever && life.gone > life.drain) ++output_.coverage.drained;
    }
    return std::move(output_);
  }

 private:
  void AddReplica(const PdPool& pool) {
    replicas_.emplace_back();
    Replica& replica = replicas_.back();
    replica.pool = &pool;
    replica.number = static_cast<std::int64_t>(replicas_.size()) - 1;
    replica.scheduler = pool.scheduler == "vllm"
                            ? MakePdVllm(input_, pool, output_.requests, output_.coverage)
                            : MakePdScheduled(input_, pool, output_.requests, output_.coverage);
    replica.stage_free.resize(pool.stages == nullptr ? 1 : pool.stages->size());
    output_.steps.emplace_back();
  }

  std::size_t Row(const PdSequence& s) const { return static_cast<std::size_t>(s.id); }
  HandOver& HandOverOf(const PdSequence& s) { return output_.results.hand_overs[Row(s)]; }
  TimeNs BeforeHorizon(TimeNs time) const {
    return input_.horizon && time >= *input_.horizon ? kNever : time;
  }

  // Of a client's request: as its prefill side, decode side or only replica sees it.
  PdSequence* MakeSequence(std::size_t r) {
    auto s = std::make_unique<PdSequence>();
    s->id = static_cast<RequestId>(r);
    s->arrival = output_.requests.arrival[r];
    s->prompt = output_.requests.prompt_tokens[r];
    s->asked = output_.requests.output_tokens[r];
    s->wanted = std::min(s->asked, input_.max_len - s->prompt);
    if (!output_.requests.timeout.empty() && output_.requests.timeout[r] != kNever) {
      s->gives_up = s->arrival + output_.requests.timeout[r];
    }
    sequences_.push_back(std::move(s));
    return sequences_.back().get();
  }

  void Arrive(std::size_t r) {
    const std::int64_t prompt = output_.requests.prompt_tokens[r];
    if (prompt >= input_.max_len) return;
    arriving_.insert({output_.requests.arrival[r], r});
  }

  void TakeUp() {
    const auto [arrival, r] = *arriving_.begin();
    arriving_.erase(arriving_.begin());
    const std::int64_t prompt = output_.requests.prompt_tokens[r];
    if (!IsSent(r)) {
      output_.results.state[r] = RequestState::kRejected;
      return;
    }
    const TimeNs enqueue = front_end_.Enter(arrival, input_.pools[0].latency->TakeUpTimes(prompt));
    if (!output_.requests.timeout.empty() && output_.requests.timeout[r] < enqueue - arrival) {
      const TimeNs gives_up = arrival + output_.requests.timeout[r];
      if (BeforeHorizon(gives_up) < kNever) TryAgain(r, gives_up);
      return;
    }
    output_.results.enqueue[r] = enqueue;
    coming_.insert({enqueue, arrival, r});
  }

  // A retry only within the budget.
  bool IsSent(std::size_t r) {
    const double budget = output_.requests.retry_budget;
    const bool retry = r >= output_.requests.requests();
    if (retry && budget >= 0 &&
        static_cast<double>(retries_sent_ + 1) > budget * static_cast<double>(firsts_sent_)) {
      return false;
    }
    ++(retry ? retries_sent_ : firsts_sent_);
    return true;
  }

  // An attempt is over in vain.
  void TryAgain(std::size_t r, TimeNs time) {
    const RequestId next = output_.requests.NextAttempt(static_cast<RequestId>(r));
    if (next == kNoRequest) return;
    const auto n = static_cast<std::size_t>(next);
    output_.requests.arrival[n] = time + output_.requests.backoff[n - output_.requests.requests()];
    ++output_.coverage.retries;
    Arrive(n);
  }

  static TimeNs FirstToGiveUp(const Replica& replica) {
    TimeNs first = kNever;
    for (const PdSequence* s : replica.scheduler->Clients()) first = std::min(first, s->gives_up);
    return first;
  }
  static bool IsScheduled(const Replica& replica) { return replica.pool->scheduler != "vllm"; }
  static std::size_t MostInFlight(const Replica& replica) {
    if (replica.pool->stages != nullptr) return replica.pool->stages->size();
    return !IsScheduled(replica) && replica.pool->engine.async_scheduling ? 2 : 1;
  }
  TimeNs StartTime(const Replica& replica) const { return std::max(now_, replica.stage_free[0]); }
  bool MayLaunch(const Replica& replica) const {
    return replica.in_flight.size() < MostInFlight(replica) &&
           StartTime(replica) < EndOf(replica) &&
           (!input_.horizon || StartTime(replica) < *input_.horizon);
  }
  // vLLM waits for its oldest step once it found nothing to do; others look again at whatever comes
  // while a stage is free.
  bool Listens(const Replica& replica) const {
    return replica.in_flight.empty() || (IsScheduled(replica) && MayLaunch(replica));
  }

  // It hears of nothing before its end. Not of a step that comes to nothing.
  bool InAStep(const Replica& replica) const {
    if (Listens(replica) || replica.due < kNever) return false;
    return replica.in_flight.front().record.end <= EndOf(replica);
  }
  TimeNs EndOf(const Replica& replica) const {
    const PdLife& life = members().lives()[static_cast<std::size_t>(replica.number)];
    return std::min(life.fails, life.cut);
  }

  // ---- Events: transfers, arrivals, hand-overs.

  TimeNs NextEvent() {
    TimeNs next = NextOfLink();
    if (!arriving_.empty()) next = std::min(next, arriving_.begin()->first);
    if (!coming_.empty()) next = std::min(next, std::get<0>(*coming_.begin()));
    if (!handed_over_.empty()) next = std::min(next, handed_over_.begin()->first);
    for (const Gate* gate : Gates()) {
      next = std::min({next, NextToGiveUp(*gate), NextRoom(*gate)});
      if (LookIsDue(*gate)) next = std::min(next, now_);
    }
    if (members().Next() <= now_ || members().NextOfFailures() <= now_) next = now_;
    return BeforeHorizon(next);
  }

  void Happen() {
    if (NextOfLink() <= now_) return PassLink(now_);
    if (members().NextOfFailures() <= now_) return PassFailures();
    if (members().Next() <= now_) return PassMembers();
    for (Gate* gate : Gates()) {
      if (LookIsDue(*gate)) return Look(*gate);
      if (NextToGiveUp(*gate) <= now_) return GiveUpAt(*gate);
      if (NextRoom(*gate) <= now_) return FindRoom(*gate);
    }
    if (!arriving_.empty() && arriving_.begin()->first <= now_) return TakeUp();
    if (!coming_.empty() && std::get<0>(*coming_.begin()) <= now_) {
      const std::size_t r = std::get<2>(*coming_.begin());
      coming_.erase(coming_.begin());
      output_.results.state[r] = RequestState::kQueued;
      PdSequence* s = MakeSequence(r);
      s->hands_over = !prefill_->side.empty() && s->prompt > input_.disaggregation.above_tokens;
      if (!s->hands_over) ++output_.coverage.served_whole;
      Gate& gate = s->hands_over ? *prefill_ : *whole_;
      // Whoever is done with its first token needs no other replica.
      const bool one_token = s->wanted == 1 && !input_.disaggregation.first_token_from_decode;
      if (s->hands_over) {
        s->asked = s->wanted = 1;
        s->hands_over = !one_token;
      }
      ComeTo(gate, s);
    } else {
      const std::size_t r = handed_over_.begin()->second;
      handed_over_.erase(handed_over_.begin());
      PdSequence* s = remote_[static_cast<RequestId>(r)] = MakeSequence(r);
      s->remote = true;
      s->generated = input_.disaggregation.first_token_from_decode ? 0 : 1;
      ComeTo(*decode_, s);
    }
  }

  // ---- Replicas that come and go.

  PdMembers& members() { return *output_.members; }
  const PdMembers& members() const { return *output_.members; }

  // Requests whose KV is here.
  static std::int64_t Holding(const Replica& replica, TimeNs by) {
    const auto handed_over = static_cast<std::int64_t>(
        std::count_if(replica.left.begin(), replica.left.end(),
                      [=](const Left& left) { return left.kv_stays && left.time <= by; }));
    return Outstanding(replica, by) + handed_over -
           std::count_if(replica.kv_went.begin(), replica.kv_went.end(),
                         [=](TimeNs went) { return went <= by; });
  }

  void PassMembers() {
    for (Replica& replica : replicas_) {
      PdLife& life = LifeOf(replica);
      if (life.cut > now_ || life.was_cut) continue;
      life.was_cut = true;
      life.fails = kNever;
      if (Holding(replica, now_) == 0) {
        ++output_.coverage.ended_in_time;
        replica.in_flight.clear();  // a step of nobody
        continue;
      }
      ++output_.coverage.cut;
      if (Outstanding(replica, now_) == 0) ++output_.coverage.cut_with_kv;
      End(replica);
    }
    for (std::size_t p = 0; p < input_.pools.size(); ++p) {
      if (!members().Scrapes(p, now_)) continue;
      std::vector<PdMembers::Seen> seen(replicas_.size());
      for (const Replica& replica : replicas_) {
        const auto number = static_cast<std::size_t>(replica.number);
        if (replica.pool != &input_.pools[p]) continue;
        seen[number].holds = Holding(replica, now_ - 1) > 0;
        if (!members().lives()[number].Up(now_)) continue;
        const ReplicaSight told = ToldBy(replica);
        seen[number] = {std::max<std::int64_t>(Outstanding(replica, now_ - 1) - told.running, 0),
                        told.running,
                        static_cast<double>(told.blocks_used) /
                            static_cast<double>(replica.pool->pool_blocks - 1),
                        ReportOf(replica), seen[number].holds};
      }
      std::size_t held = 0;
      for (const Gate* gate : Gates()) {
        held += gate->role == input_.pools[p].role ? gate->held.size() : 0;
      }
      members().Scrape(p, now_, seen, static_cast<std::int64_t>(held), ServedBefore(now_));
    }
    const std::vector<std::size_t> started = members().Pass(now_);
    for (const Replica& replica : replicas_) {
      PdLife& life = LifeOf(replica);
      const TimeNs grace = replica.pool->grace;
      if (life.drain != now_ || life.cut < kNever || grace == kNever || life.up > now_) continue;
      if (life.Down(now_) || Holding(replica, now_) == 0) continue;
      const TimeNs step = replica.in_flight.empty() ? now_ : replica.in_flight.front().record.end;
      life.cut = BeforeHorizon(std::max(now_ + grace, step));
    }
    for (const std::size_t p : started) {
      ++output_.coverage.started;
      AddReplica(input_.pools[p]);
      for (Gate* gate : Gates()) {
        if (gate->role == input_.pools[p].role) gate->side.push_back(&replicas_.back());
      }
    }
    for (Gate* gate : Gates()) FindRoom(*gate);
  }

  // For a planner: its latest step, nothing if it has nothing to do, and who waits.
  PdReport ReportOf(const Replica& replica) const {
    std::vector<PdSequence*> here = replica.scheduler->Clients();
    const bool rests = here.empty() && replica.in_flight.empty();
    here.insert(here.end(), replica.joining.begin(), replica.joining.end());
    PdReport report;
    if (!rests) report = replica.latest;
    report.replica = replica.number;
    for (const PdSequence* s : here) {
      if (s->running) continue;
      const bool begun = output_.results.first_scheduled[Row(*s)] >= 0;
      ++(begun ? report.queued_decode_requests : report.queued_prefill_requests);
      (begun ? report.queued_decode_kv : report.queued_prefill_tokens) += s->prompt;
    }
    return report;
  }
  PdMembers::Served ServedBefore(TimeNs time) const {
    PdMembers::Served served;
    const RequestResults& results = output_.results;
    for (std::size_t r = 0; r < results.state.size(); ++r) {
      if (results.state[r] != RequestState::kCompleted || results.completion[r] >= time) continue;
      served.requests += 1;
      served.input += static_cast<double>(output_.requests.prompt_tokens[r]);
      served.output += results.generated[r];
      served.cached += results.cached_tokens[r];
    }
    return served;
  }

  // ---- Replicas that end.

  PdLife& LifeOf(const Replica& replica) {
    return members().lives()[static_cast<std::size_t>(replica.number)];
  }
  bool IsOver(RequestId id) const {
    const RequestState state = output_.results.state[static_cast<std::size_t>(id)];
    return state == RequestState::kCompleted || IsLost(state);
  }

  // Requests that are on replicas, or held for some that will be up again.
  bool SomethingIsLeft() {
    for (const Replica& replica : replicas_) {
      if (Holding(replica, kNever - 1) > 0) return true;
      const bool returns = LifeOf(replica).Down(now_) && LifeOf(replica).drain == kNever;
      for (const Gate* gate : Gates()) {
        if (returns && gate->role == replica.pool->role && !gate->held.empty()) return true;
      }
    }
    return input_.horizon.has_value();
  }

  void PassFailures() {
    for (Replica& replica : replicas_) {
      const auto number = static_cast<std::size_t>(replica.number);
      while (members().DueOf(LifeOf(replica)) <= now_) {
        if (!members().FailsAt(number, now_)) continue;
        const bool some = Holding(replica, now_) > 0;
        if (some && LifeOf(replica).drain < kNever) ++output_.coverage.died_draining;
        End(replica);
        members().Fail(number, now_, some);
      }
    }
    for (Gate* gate : Gates()) FindRoom(*gate);
  }

  // With all that is on it, and with KV of others.
  void End(Replica& replica) {
    std::vector<RequestId> from, to;
    for (const auto& [id, sequence] : prefilled_) {
      const auto r = static_cast<std::size_t>(id);
      const std::int32_t prefills = output_.results.hand_overs[r].prefill_replica;
      if (prefills == replica.number) from.push_back(id);
      if (prefills != replica.number && output_.results.replica[r] == replica.number)
        to.push_back(id);
    }
    for (const RequestId id : from) LoseKv(replica, id);
    for (const RequestId id : to) {
      ++output_.coverage.freed_by_failures;
      StopTransfer(id);
      FreePrefillSide(id);
    }
    std::vector<PdSequence*> here = replica.scheduler->Clients();
    here.insert(here.end(), replica.joining.begin(), replica.joining.end());
    std::sort(here.begin(), here.end(),
              [](const PdSequence* a, const PdSequence* b) { return a->id < b->id; });
    for (const PdSequence* s : here) {
      if (IsOver(s->id)) continue;
      ++(replica.pool->role == PoolRole::kDecode ? output_.coverage.lost_decodes
                                                 : output_.coverage.lost_prefills);
      replica.left.push_back({now_, s->id});
      End(*s);
    }
    replica.scheduler = MakePdVllm(input_, *replica.pool, output_.requests, output_.coverage);
    replica.in_flight.clear();
    replica.joining.clear();
    replica.news.clear();
    replica.stage_free.assign(1, 0);
    replica.due = kNever;
    replica.sleeps = false;
    replica.formed_running = replica.formed_used = 0;
  }

  void End(const PdSequence& s) {
    const bool gone = s.gives_up <= now_;
    output_.results.state[Row(s)] = gone ? RequestState::kTimedOut : RequestState::kLost;
    if (!gone) output_.results.lost_at[Row(s)] = now_;
    TryAgain(Row(s), now_);
  }

  // A request's KV is gone with the replica that prefilled it, before it has arrived elsewhere.
  void LoseKv(Replica& prefills, RequestId id) {
    prefilled_.erase(id);
    prefills.kv_went.push_back(now_);
    const bool under_way = StopTransfer(id);
    const auto r = static_cast<std::size_t>(id);
    const auto comes = std::find_if(handed_over_.begin(), handed_over_.end(),
                                    [r](const auto& one) { return one.second == r; });
    if (comes != handed_over_.end()) {
      handed_over_.erase(comes);
      ++output_.coverage.lost_as_handed_over;
      return End(*MakeSequence(r));
    }
    PdSequence* s = remote_.at(id);
    const auto held = std::find(decode_->held.begin(), decode_->held.end(), s);
    if (held != decode_->held.end()) {
      decode_->held.erase(held);
      ++output_.coverage.lost_held;
      return End(*s);
    }
    Replica& replica = replicas_[static_cast<std::size_t>(output_.results.replica[r])];
    const auto joins = std::find(replica.joining.begin(), replica.joining.end(), s);
    if (joins != replica.joining.end()) {
      replica.joining.erase(joins);
    } else {
      Tell(replica, [s, &replica] {
        const bool incoming = s->incoming, gave_up = s->timed_out;
        if (!gave_up) replica.scheduler->Remove(*s);
        if (incoming) replica.scheduler->Arrive(*s);
      });
    }
    if (IsOver(id)) {
      ++output_.coverage.blocks_back;
      return;
    }
    ++(under_way ? output_.coverage.lost_under_way : output_.coverage.lost_queued);
    replica.left.push_back({now_, id});
    End(*s);
  }

  // What is on the link has had its share up to now.
  bool StopTransfer(RequestId id) {
    const auto at = std::find_if(transfers_.begin(), transfers_.end(),
                                 [id](const Transfer& t) { return t.sequence->id == id; });
    if (at == transfers_.end()) return false;
    if (at->begins <= link_at_) {
      if (Flowing().size() > 1) ++output_.coverage.links_shared_again;
      FlowTo(now_);
    }
    transfers_.erase(at);
    return true;
  }

  std::optional<std::size_t> ChooseAmongUp(Gate& gate, std::size_t row, const RouterChoice& by) {
    std::vector<std::size_t> up;
    for (std::size_t i = 0; i < gate.side.size(); ++i) {
      const auto number = static_cast<std::size_t>(gate.side[i]->number);
      if (members().lives()[number].Available(now_)) up.push_back(i);
    }
    if (up.empty()) {
      ++output_.coverage.held_for_none;
      return std::nullopt;
    }
    if (by.name == "round_robin") return up[static_cast<std::size_t>(gate.routed++) % up.size()];
    if (by.name == "random") {
      const double u = Uniform(by.seed, Stream::kRouter, static_cast<std::int64_t>(row));
      return up[static_cast<std::size_t>(u * static_cast<double>(up.size()))];
    }
    return *std::min_element(up.begin(), up.end(), [&](std::size_t a, std::size_t b) {
      return Outstanding(*gate.side[a], now_) < Outstanding(*gate.side[b], now_);
    });
  }

  // ---- Gateways, in the order of their turns.

  std::vector<Gate*> Gates() { return {&*decode_, &*whole_, &*prefill_}; }

  void ComeTo(Gate& gate, PdSequence* s) {
    if (!gate.held.empty() || !Choose(gate, s)) {
      if (gate.held.empty()) gate.tried = now_;
      gate.held.push_back(s);
      ++(&gate == &*decode_ ? output_.coverage.held_to_decode : output_.coverage.held);
    }
  }

  // False: nobody has room.
  bool Choose(Gate& gate, PdSequence* s) {
    const std::optional<std::size_t> place =
        members().Scale() || input_.failures
            ? ChooseAmongUp(gate, Row(*s),
                            &gate == &*decode_ ? input_.decode_router : input_.router)
            : gate.rules.Choose(Row(*s), See(gate), now_);
    if (!place) return false;
    gate.placed[s->id] = *place;
    if (gate.period > 0) ++output_.coverage.stale;
    Replica& replica = *gate.side[*place];
    output_.results.replica[Row(*s)] = static_cast<std::int32_t>(replica.number);
    ++replica.sent;
    if (LifeOf(replica).Down(now_)) {
      ++output_.coverage.refused;
      replica.left.push_back({now_, s->id});
      output_.results.state[Row(*s)] = RequestState::kLost;
      output_.results.lost_at[Row(*s)] = now_;
      if (s->remote) {
        ++output_.coverage.refused_to_decode;
        FreePrefillSide(s->id);
      }
      TryAgain(Row(*s), now_);
      return true;
    }
    replica.joining.push_back(s);
    Wake(replica);
    return true;
  }

  static bool HasLeft(const Replica& replica, RequestId id, TimeNs by) {
    return std::any_of(replica.left.begin(), replica.left.end(),
                       [=](const Left& left) { return left.id == id && left.time <= by; });
  }
  static std::int64_t Outstanding(const Replica& replica, TimeNs by) {
    return replica.sent - std::count_if(replica.left.begin(), replica.left.end(),
                                        [=](const Left& left) { return left.time <= by; });
  }

  std::vector<ReplicaSight> See(const Gate& gate) const {
    const TimeNs period = gate.period;
    const TimeNs known = period > 0 ? now_ / period * period : now_;
    std::vector<ReplicaSight> sights = period > 0 ? gate.told : Told(gate);
    for (std::size_t i = 0; i < gate.side.size(); ++i) {
      sights[i].outstanding = Outstanding(*gate.side[i], known);
      sights[i].age = period > 0 ? now_ - gate.looked : 0;
    }
    for (const auto& [id, place] : gate.placed) {
      if (HasLeft(*gate.side[place], id, known)) continue;
      sights[place].own.push_back(static_cast<std::size_t>(id));
    }
    return sights;
  }

  static std::int64_t Used(const Replica& replica) {
    const PdPool& pool = *replica.pool;
    const std::int64_t unit = pool.scheduler == "lightllm" ? pool.engine.block_size : 1;
    return CeilDiv((pool.pool_blocks - 1) * unit - replica.scheduler->FreeBlocks(), unit);
  }

  // What engines say now: with a step under way, as that was formed.
  std::vector<ReplicaSight> Told(const Gate& gate) const {
    std::vector<ReplicaSight> told;
    for (const Replica* replica : gate.side) told.push_back(ToldBy(*replica));
    return told;
  }
  ReplicaSight ToldBy(const Replica& replica) const {
    const bool in_a_step = InAStep(replica);
    ReplicaSight sight;
    sight.running = in_a_step ? replica.formed_running
                              : static_cast<std::int64_t>(replica.scheduler->Running().size());
    sight.waiting = std::max<std::int64_t>(Outstanding(replica, now_) - sight.running, 0);
    sight.blocks_used = in_a_step ? replica.formed_used : Used(replica);
    return sight;
  }

  // The latest look of a gateway with old signals that is due by then.
  static TimeNs LookBefore(const Gate& gate, TimeNs time) {
    const TimeNs period = gate.period;
    return period > 0 ? time / period * period : 0;
  }
  bool LookIsDue(const Gate& gate) const {
    return LookBefore(gate, now_) == now_ && now_ > gate.looked;
  }
  void Look(Gate& gate) {
    gate.told = Told(gate);
    gate.looked = now_;
    ++output_.coverage.looks;
  }

  static TimeNs NextToGiveUp(const Gate& gate) {
    TimeNs next = kNever;
    for (const PdSequence* s : gate.held) next = std::min(next, s->gives_up);
    return next;
  }
  void GiveUpAt(Gate& gate) {
    const auto first = std::find_if(gate.held.begin(), gate.held.end(),
                                    [this](const PdSequence* s) { return s->gives_up <= now_; });
    PdSequence* s = *first;
    gate.held.erase(first);
    s->timed_out = true;
    output_.results.state[Row(*s)] = RequestState::kTimedOut;
    ++output_.coverage.gave_up_held;
    TryAgain(Row(*s), now_);
    if (!s->remote) return;
    ++output_.coverage.gave_up_to_decode;
    FreePrefillSide(s->id);
  }

  // When the next request leaves one of its replicas, if somebody is held.
  static TimeNs NextRoom(const Gate& gate) {
    TimeNs next = kNever;
    for (const Replica* replica : gate.side) {
      for (const Left& left : replica->left) {
        if (!gate.held.empty() && left.time > gate.tried) next = std::min(next, left.time);
      }
    }
    return next;
  }
  void FindRoom(Gate& gate) {
    gate.tried = now_;
    while (!gate.held.empty() && Choose(gate, gate.held.front())) gate.held.pop_front();
  }

  // Something came: a replica that had nothing to do looks at it now.
  void Wake(Replica& replica) {
    if (input_.horizon && now_ >= *input_.horizon) return;
    replica.sleeps = false;
    if (Listens(replica) && replica.due == kNever) replica.due = now_;
  }

  // ---- The link.

  std::int64_t Rate() const {
    return static_cast<std::int64_t>(*input_.disaggregation.bandwidth_gb_s * 1e9 + 0.5);
  }
  std::vector<const Transfer*> Flowing() const {
    std::vector<const Transfer*> flowing;
    for (const Transfer& t : transfers_) {
      if (t.begins <= link_at_) flowing.push_back(&t);
    }
    return flowing;
  }
  TimeNs NextOfLink() const {
    TimeNs next = kNever;
    for (const Transfer& t : transfers_) {
      if (t.begins > link_at_) next = std::min(next, t.begins);
    }
    const auto flowing = static_cast<__int128>(Flowing().size());
    for (const Transfer* t : Flowing()) {
      const __int128 end = link_at_ + (t->left * flowing + Rate() - 1) / Rate();
      if (end < next) next = static_cast<TimeNs>(end);
    }
    return next;
  }
  void FlowTo(TimeNs time) {
    const auto flowing = static_cast<__int128>(Flowing().size());
    for (Transfer& t : transfers_) {
      if (t.begins <= link_at_)
        t.left -= static_cast<__int128>(Rate()) * (time - link_at_) / flowing;
    }
    link_at_ = time;
  }
  void PassLink(TimeNs time) {
    const std::size_t flowing = Flowing().size();
    FlowTo(time);
    std::vector<PdSequence*> done;
    for (std::size_t i = transfers_.size(); i > 0; --i) {
      const Transfer& t = transfers_[i - 1];
      if (t.begins > time || t.left > 0) continue;
      done.push_back(t.sequence);
      transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(i - 1));
    }
    if (flowing > 1) output_.coverage.shared_transfers += static_cast<std::int64_t>(done.size());
    std::sort(done.begin(), done.end(),
              [](const PdSequence* a, const PdSequence* b) { return a->id < b->id; });
    for (PdSequence* s : done) HasArrived(s);
  }
  void HasArrived(PdSequence* s) {
    ++output_.coverage.transfers;
    HandOverOf(*s).arrived = now_;
    Replica& replica = replicas_[static_cast<std::size_t>(output_.results.replica[Row(*s)])];
    Tell(replica, [s, &replica] { replica.scheduler->Arrive(*s); });
    FreePrefillSide(s->id);
  }
  void Tell(Replica& replica, std::function<void()> news) {
    if (InAStep(replica)) {
      replica.news.push_back(std::move(news));
    } else {
      news();
      if (replica.sleeps || IsScheduled(replica)) Wake(replica);
    }
  }
  void FreePrefillSide(RequestId id) {
    const HandOver& h = output_.results.hand_overs[static_cast<std::size_t>(id)];
    Replica& replica = replicas_[static_cast<std::size_t>(h.prefill_replica)];
    PdSequence* s = prefilled_[id];
    prefilled_.erase(id);
    if (replica.sleeps) ++output_.coverage.prefill_waited_for_transfers;
    replica.kv_went.push_back(now_);
    Tell(replica, [s, &replica] { replica.scheduler->Free(*s); });
  }

  // ---- A replica between two steps.

  // One that is due does one thing; false when none is.
  bool ActOnce() {
    for (Replica& replica : replicas_) {
      if (replica.due > now_) continue;
      Act(replica);
      return true;
    }
    return false;
  }

  void Act(Replica& replica) {
    PdScheduler& scheduler = *replica.scheduler;
    for (PdSequence* s : replica.joining) scheduler.Enqueue(s);
    replica.joining.clear();
    GiveUp(replica);
    const bool work = scheduler.HasWork();
    if (work && MayLaunch(replica)) {
      const bool preempted = Launch(replica, StartTime(replica));
      if (replica.in_flight.empty()) {
        if (preempted) return;  // it is called again at once
        ++output_.coverage.slept;
        replica.sleeps = true;
        replica.due = kNever;
        return;
      }
      if (launched_ && replica.in_flight.size() < MostInFlight(replica)) return;
    }
    replica.due = kNever;  // until its oldest step is done
    if (!replica.in_flight.empty() || work) return;
    replica.sleeps = scheduler.AwaitsKv();
  }

  void GiveUp(Replica& replica) {
    std::vector<PdSequence*> gone;
    for (PdSequence* s : replica.scheduler->Clients()) {
      if (s->gives_up > now_) continue;
      if (IsScheduled(replica) && s->in_flight > 0) {  // after its batch
        s->gave_up = true;
      } else {
        gone.push_back(s);
      }
    }
    std::sort(gone.begin(), gone.end(), [](const PdSequence* a, const PdSequence* b) {
      return std::tie(a->gives_up, a->id) < std::tie(b->gives_up, b->id);
    });
    for (PdSequence* s : gone) Leave(replica, *s);
  }

  void Leave(Replica& replica, PdSequence& s) {
    const bool abandoned = s.remote;
    replica.scheduler->Remove(s);
    replica.left.push_back({now_ + 1, s.id});
    output_.results.state[Row(s)] = RequestState::kTimedOut;
    if (abandoned) FreePrefillSide(s.id);
    TryAgain(Row(s), now_);
  }

  // True when it preempted somebody.
  bool Launch(Replica& replica, TimeNs start) {
    PdScheduler& scheduler = *replica.scheduler;
    Batch batch;
    batch.call = scheduler.Schedule();
    launched_ = false;
    for (const auto& [s, blocks] : batch.call.reserved) {
      HandOver& h = HandOverOf(*s);
      h.reserved = now_;
      h.bytes = blocks * replica.pool->block_bytes;
      if (blocks == 0) ++output_.coverage.empty_transfers;
      const auto latency = static_cast<TimeNs>(input_.disaggregation.base_latency_us * 1000 + 0.5);
      transfers_.push_back(
          {s, now_ + std::max<TimeNs>(latency, 1), static_cast<__int128>(h.bytes) * 1'000'000'000});
    }
    for (PdSequence* s : batch.call.preempted) {
      ++output_.results.preemptions[Row(*s)];
      output_.results.state[Row(*s)] = RequestState::kQueued;
      if (replica.pool->role == PoolRole::kDecode) ++output_.coverage.decode_preemptions;
      CountPreemption(replica, *s, start);
      batch.record.preempted.push_back(s->id);
    }
    if (batch.call.members.empty()) return !batch.call.preempted.empty();
    launched_ = true;
    StepRecord& record = batch.record;
    record.replica = replica.number;
    record.scheduled = now_;
    record.start = replica.begin = start;
    const StepPrice price = Price(replica, batch.call, true);
    record.bound = price.bound;
    if (!replica.in_flight.empty()) ++output_.coverage.batches_in_flight;
    PassStages(replica, batch.call, record);
    std::int64_t decodes = 0;
    replica.latest = {};
    for (const PdMember& member : batch.call.members) {
      record.members.push_back(member.record);
      PdReport& latest = replica.latest;
      ++(member.decode ? latest.decode_requests : latest.prefill_requests);
      (member.decode ? latest.decode_kv : latest.prefill_tokens) +=
          member.decode ? member.record.computed_before : member.record.tokens;
      (member.decode ? decodes : record.prefill_tokens) += member.decode ? 1 : member.record.tokens;
    }
    if (decodes > 0 && record.prefill_tokens > 0) {
      record.interference =
          std::max<TimeNs>(price.duration - Price(replica, batch.call, false).duration, 0);
    }
    record.free_after_schedule = scheduler.FreeBlocks();
    record.running_after_schedule = static_cast<std::int64_t>(scheduler.Running().size());
    record.waiting_after_schedule = scheduler.Waiting();
    replica.formed_running = record.running_after_schedule;
    replica.formed_used = record.used_after_schedule = Used(replica);
    for (const PdMember& member : batch.call.members) Start(member, record);
    SplitTime(replica, batch.call, record);
    replica.in_flight.push_back(std::move(batch));
    return !replica.in_flight.back().call.preempted.empty();
  }

  void Start(const PdMember& member, const StepRecord& record) {
    RequestResults& results = output_.results;
    const std::size_t r = Row(*member.sequence);
    results.state[r] = RequestState::kRunning;
    HandOver& h = results.hand_overs[r];
    if (h.arrived >= 0 && h.resumed < 0) {
      SERVECAST_CHECK(record.start >= h.arrived, "pd reference: it decodes before its KV is there");
      h.resumed = record.start;
    }
    if (results.first_scheduled[r] >= 0) return;
    results.first_scheduled[r] = record.start;
    results.cached_tokens[r] = static_cast<std::int32_t>(member.record.computed_before);
  }

  // Each stage takes the batch when the one before is done with it and it with the batch before.
  static void PassStages(Replica& replica, const PdCall& call, StepRecord& record) {
    TimeNs ready = record.start;
    for (std::size_t stage = 0; stage < replica.stage_free.size(); ++stage) {
      const TimeNs from = std::max(ready, replica.stage_free[stage]);
      ready = replica.stage_free[stage] = from + PriceOfStage(replica, call, stage, true).duration;
      if (replica.stage_free.size() > 1) record.stages.push_back({from, ready});
    }
    record.end = ready;
  }

  // Of all stages, the bound being that of the longest.
  static StepPrice Price(const Replica& replica, const PdCall& call, bool with_prefills) {
    StepPrice whole;
    whole.duration = 0;
    TimeNs longest = -1;
    for (std::size_t stage = 0; stage < replica.stage_free.size(); ++stage) {
      const StepPrice price = PriceOfStage(replica, call, stage, with_prefills);
      if (price.duration > longest) whole.bound = price.bound;
      longest = std::max(longest, price.duration);
      whole.duration += price.duration;
    }
    return whole;
  }

  // Computing, then sending to the next stage.
  static StepPrice PriceOfStage(const Replica& replica, const PdCall& call, std::size_t stage,
                                bool with_prefills) {
    std::int64_t tokens = 0;
    BatchShape shape;
    std::vector<PrefillChunk> chunks;
    for (const PdMember& member : call.members) {
      if (member.decode || with_prefills) tokens += member.record.tokens;
      if (member.decode) {
        ++shape.decode_seqs;
        shape.decode_context_tokens += member.record.computed_before;
        if (!IsScheduled(replica))
          shape.decode_longest = std::max(shape.decode_longest, member.record.computed_before);
        if (!IsScheduled(replica)) shape.decode_kv_blocks += member.blocks;
      } else if (with_prefills) {
        chunks.push_back({.tokens = member.record.tokens,
                          .context = member.record.computed_before,
                          .prompt = member.sequence->prompt,
                          .samples = member.record.sampled > 0});
      }
    }
    shape.prefill = chunks;
    if (replica.pool->stages == nullptr) {
      StepPrice price = replica.pool->latency->Price(shape);
      price.duration =
          ReferenceSlow(replica.pool->slowdowns, replica.number, replica.begin, price.duration);
      return price;
    }
    const PipelineStage& at = (*replica.pool->stages)[stage];
    StepPrice price = at.latency->Price(shape);
    price.duration += static_cast<TimeNs>(at.send_ns + 0.5) +
                      static_cast<TimeNs>(at.send_ns_per_token + 0.5) * tokens;
    return price;
  }

  void Apply(Replica& replica) {
    Batch batch = std::move(replica.in_flight.front());
    replica.in_flight.pop_front();
    PdScheduler& scheduler = *replica.scheduler;
    StepRecord& record = batch.record;
    std::vector<StepRecord>& steps = output_.steps[static_cast<std::size_t>(replica.number)];
    record.index = static_cast<std::int64_t>(steps.size());
    std::int64_t tokens = 0;
    for (const PdMember& member : batch.call.members) tokens += member.record.sampled ? 1 : 0;
    for (const PdMember& member : batch.call.members) {
      PdSequence& s = *member.sequence;
      if (scheduler.Apply(member)) Deliver(replica, s, record, tokens);
      const bool over = s.generated == s.wanted && !s.hands_over;
      if (!s.gave_up || over || s.timed_out) continue;
      ++output_.coverage.left_in_flight;
      Leave(replica, s);
    }
    record.free_after_step = scheduler.FreeBlocks();
    record.running_after_step = static_cast<std::int64_t>(scheduler.Running().size());
    record.waiting_after_step = scheduler.Waiting();
    steps.push_back(std::move(record));
    for (const std::function<void()>& news : replica.news) news();
    replica.news.clear();
    replica.due = now_;
  }

  // A token of it is out.
  void Deliver(Replica& replica, PdSequence& s, StepRecord& record, std::int64_t tokens_of_step) {
    RequestResults& results = output_.results;
    const std::size_t r = Row(s);
    const bool hidden = s.hands_over && input_.disaggregation.first_token_from_decode;
    const LatencyModel& latency = *replica.pool->latency;
    if (s.generated == 1 && !hidden) {
      late_[r] = tokens_of_step * latency.DeliveryDelay();
      late_[r] += ReferenceStall(latency.Stalls(), 1, replica.number, now_ + late_[r]);
    }
    const TimeNs seen = now_ + s.generated * latency.OutputTokenDelay() + late_[r];
    if (!hidden) {
      ++output_.output_tokens;
      results.generated[r] = static_cast<std::int32_t>(s.generated);
      if (s.generated == 1 && seen <= s.gives_up) results.first_token[r] = seen;
    }
    if (s.generated < s.wanted || (s.hands_over && s.gave_up)) return;
    const bool in_vain = !s.hands_over && seen > s.gives_up;
    replica.left.push_back({now_ + (in_vain ? 1 : 0), s.id, s.hands_over});
    if (s.hands_over) {
      HandOver& h = results.hand_overs[r];
      h.prefilled = now_;
      h.prefill_replica = static_cast<std::int32_t>(replica.number);
      results.state[r] = RequestState::kQueued;
      prefilled_[s.id] = &s;
      handed_over_.insert({now_, r});
      return;
    }
    record.finished.push_back(s.id);
    if (seen > s.gives_up) {
      results.state[r] = RequestState::kTimedOut;
      return TryAgain(r, std::max(now_, s.gives_up));
    }
    results.completion[r] = seen;
    results.state[r] = RequestState::kCompleted;
    WriteTimes(r);
    const auto next =
        static_cast<std::size_t>(output_.requests.RequestOf(static_cast<RequestId>(r)) + 1);
    if (next < output_.requests.think.size() && output_.requests.think[next] >= 0) {
      output_.requests.arrival[next] = seen + output_.requests.think[next];
      Arrive(next);
    }
  }

  // ---- Where time goes: each step's to all that run while it does.

  struct Spent {
    TimeSplit all, to_first;
    TimeNs preempted_at = -1;
    TimeNs until = 0;           // when its last batch ends, where each counts its own
    TimeNs unless_it_ends = 0;  // up to its preemption: counts if it comes back
  };

  // Where steps overlap, or decodes are kept waiting between them, each counts its own: from the
  // end of its last step up to the end of the next it prefilled or decoded, or waited for its turn.
  static bool CountsItsOwn(const Replica& replica) {
    return IsScheduled(replica) || replica.pool->stages != nullptr;
  }

  void CountPreemption(const Replica& replica, PdSequence& s, TimeNs start) {
    Spent& spent = spent_[Row(s)];
    if (s.was_fresh) {  // it waited for a batch
      s.was_fresh = false;
      ++output_.coverage.lost_fresh;
      HandOverOf(s).resumed = spent.preempted_at = now_;
      return;
    }
    spent.preempted_at = IsScheduled(replica) ? now_ : start;
    if (!CountsItsOwn(replica)) return;
    spent.preempted_at = std::max(spent.preempted_at, spent.until);
    if (!IsScheduled(replica) && s.made_or_in_flight >= s.wanted) {  // most often it just ends
      spent.unless_it_ends = spent.preempted_at - spent.until;
      return;
    }
    (s.was_prefilling ? spent.all.prefill : spent.all.decode) += spent.preempted_at - spent.until;
  }

  void SplitTime(const Replica& replica, const PdCall& call, const StepRecord& record) {
    std::set<const PdSequence*> in_step;
    bool decodes = false;
    for (const PdMember& member : call.members) {
      const PdSequence& s = *member.sequence;
      in_step.insert(&s);
      decodes = decodes || member.decode;
      Spent& spent = spent_[Row(s)];
      if (spent.preempted_at >= 0) {
        spent.all.preempted += record.start - spent.preempted_at;
        (member.after_first ? spent.all.decode : spent.all.prefill) +=
            std::exchange(spent.unless_it_ends, 0);
      }
      spent.preempted_at = -1;
      const bool first = member.record.kind != MemberKind::kContinued;
      if (first || !CountsItsOwn(replica)) spent.until = record.start;
      // The step that makes the first token on the decode side is part of the prefill.
      Spend(spent, member.after_first, record);
      if (member.first_token) spent.to_first = spent.all;
    }
    for (const PdSequence* s : replica.scheduler->Running()) {
      if (in_step.count(s) > 0) continue;
      Spent& spent = spent_[Row(*s)];
      if (!CountsItsOwn(replica)) {
        if (s->generated + s->placeholders >= s->wanted) continue;
        spent.until = record.start;
        Spend(spent, !s->prefilling, record);
      } else if (replica.pool->stages == nullptr && !decodes && !s->prefilling &&
                 s->generated > 0) {  // prompts alone keep it parked
        ++output_.coverage.kept_waiting;
        spent.all.interference += record.end - record.start;
        spent.all.decode -= record.end - record.start;
      }
    }
  }
  static void Spend(Spent& spent, bool decodes, const StepRecord& record) {
    const TimeNs duration = record.end - spent.until;
    spent.until = record.end;
    if (decodes) {
      spent.all.interference += record.interference;
      spent.all.decode += duration - record.interference;
    } else {
      spent.all.prefill += duration;
    }
  }
  void WriteTimes(std::size_t r) {
    const RequestResults& results = output_.results;
    const HandOver& h = results.hand_overs[r];
    RequestTimes& times = output_.times[r];
    times = {spent_[r].to_first, spent_[r].all};
    for (TimeSplit* of : {&times.ttft, &times.e2e}) {
      of->queue = results.first_scheduled[r] - results.enqueue[r];
      const bool goes_on = of == &times.e2e || input_.disaggregation.first_token_from_decode;
      if (h.prefilled < 0 || !goes_on) continue;
      of->transfer = h.arrived - h.reserved;
      of->handover = h.resumed - h.prefilled - of->transfer;
    }
    times.ttft.host = results.first_token[r] - output_.requests.arrival[r] - times.ttft.Sum();
    times.e2e.host = results.completion[r] - output_.requests.arrival[r] - times.e2e.Sum();
  }

  const PdInput& input_;
  PdOutput output_;
  std::map<std::size_t, TimeNs> late_;  // by how much a client sees its tokens later
  std::deque<Replica> replicas_;
  std::vector<std::unique_ptr<PdSequence>> sequences_;
  std::vector<Spent> spent_;  // by row
  ReferenceTakeUp front_end_;
  std::set<std::pair<TimeNs, std::size_t>> arriving_, handed_over_;
  std::set<std::tuple<TimeNs, TimeNs, std::size_t>> coming_;  // enqueue time, arrival
  std::map<RequestId, PdSequence*> prefilled_;  // that hold blocks on their prefill side
  std::map<RequestId, PdSequence*> remote_;     // on their decode side, or held before it
  std::int64_t firsts_sent_ = 0, retries_sent_ = 0;
  std::vector<Transfer> transfers_;
  TimeNs link_at_ = 0, now_ = 0;
  std::optional<Gate> decode_, whole_, prefill_;  // of no replicas where there are none
  bool launched_ = false;
};

}  // namespace

PdOutput RunPdReference(const PdInput& input) { return Driver(input).Run(); }

}  // namespace servecast::testing

// See trtllm_scheduler.h.
#include "serving/trtllm/trtllm_scheduler.h"

#include <algorithm>
#include <functional>

#include "serving/replica/scheduler_setup.h"

namespace servecast {

std::unique_ptr<Scheduler> MakeTrtllmScheduler(Machine& machine) {
  return std::make_unique<TrtllmScheduler>(machine);
}

TrtllmScheduler::TrtllmScheduler(Machine& machine)
    : Scheduler({}),
      machine_(machine),
      in_(machine.input()),
      options_(in_.scheduler.trtllm),
      overlap_(machine.most_in_flight() > 1),
      in_step_(in_.ranks > 1),
      waits_(static_cast<std::size_t>(in_.ranks)) {
  for (std::int64_t i = 0; i < in_.ranks; ++i) {
    ranks_.push_back(std::make_unique<TrtllmRank>(machine));
  }
}

std::int64_t TrtllmScheduler::Sum(std::int64_t (TrtllmRank::*figure)() const) const {
  std::int64_t sum = 0;
  for (const auto& rank : ranks_) sum += ((*rank).*figure)();
  return sum;
}

// ---- The waiting queue -----------------------------------------------------------------------

void TrtllmScheduler::Enqueue(RequestId request) {
  idle_ = 0;
  if (!ByPriority()) {
    queue_.push_back(request);
    return Watch();
  }
  const auto r = static_cast<std::size_t>(request);
  const std::int64_t priority = in_.requests.priority.empty() ? 0 : in_.requests.priority[r];
  by_priority_.emplace(-priority, ++entries_, request);
  Watch();
}

bool TrtllmScheduler::GiveUp(RequestId) {
  SERVECAST_CHECK(false, "no client gives up with this scheduler");
  return false;
}

void TrtllmScheduler::Arrive(RequestId, TimeNs) {
  SERVECAST_CHECK(false, "no KV is sent with this scheduler");
}

RequestId TrtllmScheduler::TakeNext() {
  RequestId request = kNoRequest;
  if (ByPriority()) {
    request = std::get<2>(*by_priority_.begin());
    by_priority_.erase(by_priority_.begin());
  } else {
    request = queue_.front();
    queue_.pop_front();
  }
  return request;
}

// Rules 1 to 3.
void TrtllmScheduler::Activate() {
  const std::int64_t active = Sum(&TrtllmRank::active);
  std::int64_t places = in_.ranks * in_.engine.max_num_seqs - active;
  if (!in_step_) {
    for (; places > 0 && InQueue() > 0; --places) ranks_[0]->Enter(TakeNext());
    return;
  }
  std::vector<RequestId> requests;
  for (; places > 0 && InQueue() > 0; --places) requests.push_back(TakeNext());
  Deal(std::move(requests), active);
}

// Rules 65 and 66.
void TrtllmScheduler::Deal(std::vector<RequestId> requests, std::int64_t active) {
  std::int64_t most = 0;
  for (const auto& rank : ranks_) most = std::max(most, rank->active());
  const std::int64_t all = active + static_cast<std::int64_t>(requests.size());
  expected_ = std::min(std::max(CeilDiv(all, in_.ranks), most), in_.engine.max_num_seqs);
  std::vector<std::tuple<std::int64_t, std::int64_t, std::size_t>> heap;  // tokens, active, rank
  for (std::size_t i = 0; i < ranks_.size() && !requests.empty(); ++i) {
    if (ranks_[i]->active() >= expected_) continue;
    heap.emplace_back(ranks_[i]->prompt_tokens(), ranks_[i]->active(), i);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto prompt = [this](RequestId r) {
    return in_.requests.prompt_tokens[static_cast<std::size_t>(r)];
  };
  std::stable_sort(requests.begin(), requests.end(),
                   [&](RequestId a, RequestId b) { return prompt(a) > prompt(b); });
  for (const RequestId request : requests) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    auto& [tokens, count, rank] = heap.back();
    ranks_[rank]->Enter(request);
    if (!in_.results.rank.empty()) {
      in_.results.rank[static_cast<std::size_t>(request)] =
          static_cast<std::int32_t>(in_.number * in_.ranks + static_cast<std::int64_t>(rank));
    }
    tokens += prompt(request);
    if (++count < expected_) {
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    } else {
      heap.pop_back();
    }
  }
  for (const auto& rank : ranks_) {
    if (expected_ > 0 && rank->active() == 0) rank->AddDummy(/*to_batch=*/false);
  }
}

// ---- A pass ----------------------------------------------------------------------------------

// Rule 67.
void TrtllmScheduler::Balance() {
  bool slots = true, contexts = true, generations = true;
  for (const auto& rank : ranks_) {
    slots = slots && rank->generating() < in_.engine.max_num_seqs;
    contexts = contexts && rank->contexts() > 0;
    generations = generations && rank->generating() > 0;
  }
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Waits& w = waits_[i];
    bool out = false;
    if (slots && contexts) {
      w.late = 0;
      if (generations) {
        out = w.held < options_.attention_dp_batching_wait_iters;
        w.held = out ? w.held + 1 : 0;
      }
    } else {
      ++w.late;
      out = w.late < options_.attention_dp_timeout_iters && generations;
      if (!out) w.late = 0;
    }
    if (out) ranks_[i]->LeaveOutContexts();
  }
}

// Rules 68 and 69: whether every rank has something in the step, if only a dummy.
bool TrtllmScheduler::AllRun() {
  bool all = true;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    TrtllmRank& rank = *ranks_[i];
    const bool has_place = rank.active() > 0 && rank.active() < in_.engine.max_num_seqs;
    if (!rank.HasMembers() && has_place && !rank.HasDummy() && expected_ > 0) {
      rank.AddDummy(/*to_batch=*/true);
    }
    rank.PauseVictims();
    waits_[i].own = rank.HasMembers();
    all = all && waits_[i].own;
  }
  return all;
}

Formed TrtllmScheduler::Form(StepPlan& plan) {
  for (const auto& rank : ranks_) rank->Prepare();
  Activate();
  for (const auto& rank : ranks_) rank->Schedule();
  if (!in_step_) {
    ranks_[0]->WaitForFuller();
    ranks_[0]->PauseVictims();
  } else if (options_.attention_dp_enable_balance && HasRequests()) {
    Balance();
  }
  stays_out_ = in_step_ && !AllRun();
  bool formed = false, paused = false;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    TrtllmRank& rank = *ranks_[i];
    stays_out_ ? rank.StayOut() : rank.Take();
    if (stays_out_ && rank.Keeps() && !waits_[i].own) ApplyKept(i);
    formed = formed || (rank.HasMembers() && !stays_out_);
    paused = paused || rank.Paused();
  }
  TellMachine();
  if (waiting() > 0) SetBlocked(plan);
  if (plan.blocked == BlockedBy::kKvBlocks) in_.recorder->BlocksRefused(1);
  if (formed) {
    idle_ = 0;
    Fill(plan);
    return Formed::kStep;
  }
  // Ranks that had nothing have handled what was in flight by now, and may have room for a dummy.
  const bool again = paused || (in_step_ && ++idle_ <= 3);
  return again && machine_.in_flight() == 0 ? Formed::kAgain : Formed::kNothing;
}

void TrtllmScheduler::SetBlocked(StepPlan& plan) const {
  const auto any = [this](bool (TrtllmRank::*has)() const) {
    return std::any_of(ranks_.begin(), ranks_.end(),
                       [has](const auto& rank) { return ((*rank).*has)(); });
  };
  plan.blocked = any(&TrtllmRank::lacks_blocks)    ? BlockedBy::kKvBlocks
                 : InQueue() > 0                   ? BlockedBy::kSeats
                 : Sum(&TrtllmRank::contexts) == 0 ? BlockedBy::kTokenBudget
                                                   : BlockedBy::kNothing;
}

void TrtllmScheduler::Fill(StepPlan& plan) {
  if (!in_step_) {
    ranks_[0]->Fill(plan, plan.shape);
    return ranks_[0]->ShowPaused(plan);
  }
  for (const auto& rank : ranks_) {
    RankPlan& own = plan.ranks.emplace_back();
    const std::size_t chunks = plan.chunks.size();
    const std::int64_t unused = plan.kv_unused;
    rank->Fill(plan, own.shape);
    rank->ShowPaused(plan);
    own.chunks = plan.chunks.size() - chunks;
    own.dummies = rank->dummies();
    own.running = rank->running();
    own.kv_blocks = in_.setup.limits.blocks - rank->free();
    own.kv_unused = plan.kv_unused - unused;
    plan.shape.decode_seqs += own.shape.decode_seqs - own.dummies;
    plan.shape.decode_context_tokens += own.shape.decode_context_tokens - own.dummies;
    plan.shape.decode_kv_blocks += own.shape.decode_kv_blocks - own.dummies;
  }
}

// ---- Its steps -------------------------------------------------------------------------------

void TrtllmScheduler::Launched(Step& step, const StepPlan& plan, TimeNs interference) {
  bool plain = true;
  for (const auto& rank : ranks_) {
    rank->Launched(step, !plan.chunks.empty(), interference);
    plain = plain && step.plain;
  }
  step.plain = plain && !in_step_;
  if (!in_step_) return;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i]->Keeps()) ApplyKept(i);
  }
  step.record.trtllm.late.swap(late_);
  late_.clear();
  if (machine_.in_flight() == 1 && waiting() + running() == 0) {  // of dummies, which are gone
    for (const auto& rank : ranks_) rank->Prepare();
    Watch();
  }
  TellMachine();
}

// Rule 71: outputs that a rank kept back, as there was no step of all. They are of a step that has
// ended.
void TrtllmScheduler::ApplyKept(std::size_t i) {
  TrtllmRank& rank = *ranks_[i];
  Step& kept = waits_[i].kept;
  kept.record.finished.clear();
  rank.Apply(kept);
  if (in_.observer == nullptr) return;
  late_.push_back(
      {static_cast<std::int64_t>(i), rank.active(), rank.free(), std::move(kept.record.finished)});
}

void TrtllmScheduler::Apply(Step& step) {
  HearMachine();
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    TrtllmRank& rank = *ranks_[i];
    const auto before = static_cast<std::int64_t>(step.record.finished.size());
    const bool keeps = overlap_ && stays_out_ && waits_[i].own;
    if (keeps) {
      waits_[i].kept = step;
      rank.Keep();
    } else {
      rank.Apply(step);
    }
    if (step.record.trtllm.ranks.empty()) continue;
    TrtllmRankLevels& levels = step.record.trtllm.ranks[i];
    levels.finished = static_cast<std::int64_t>(step.record.finished.size()) - before;
    levels.active_after_step = rank.active();
    levels.free_after_step = rank.free();
    levels.kept = keeps;
  }
  idle_ = 0;
  TellMachine();
  Watch();
}

const DecodeRun* TrtllmScheduler::BeginRun() {
  return in_step_ ? nullptr : ranks_[0]->BeginRun(run_, InQueue());
}

void TrtllmScheduler::EndsMember(Step& step) { ranks_[0]->EndsMember(step); }

void TrtllmScheduler::EndRun(std::int64_t) {
  HearMachine();
  ranks_[0]->EndRun();
}

// ---- For others ------------------------------------------------------------------------------

void TrtllmScheduler::TellMachine() {
  KvCache& kv = machine_.kv();
  const std::int64_t more = Sum(&TrtllmRank::free) - kv.free();
  if (more < 0) {
    kv.Take(-more);
  } else if (more > 0) {
    KvCache::Holding none;
    kv.Release(none, kNoRequest, more, 0, false);
  }
}

// Blocks that the machine's runs of decodes took.
void TrtllmScheduler::HearMachine() {
  if (!in_step_) ranks_[0]->SetFree(machine_.kv().free());
}

void TrtllmScheduler::WriteProgress(std::vector<std::int32_t>& generated) const {
  for (const auto& rank : ranks_) rank->WriteProgress(generated);
}

const PrefixCacheReport& TrtllmScheduler::prefix_cache() {
  if (!in_step_) return ranks_[0]->prefix_cache();
  cached_ = {};
  for (const auto& rank : ranks_) cached_.Add(rank->prefix_cache());
  return cached_;
}

void TrtllmScheduler::Observe(StepRecord& record) const {
  TrtllmLevels& all = record.trtllm;
  all.activated.clear();
  all.ranks.clear();
  all.fitting = all.active_after_schedule = 0;
  for (const auto& rank : ranks_) {
    TrtllmRankLevels levels;
    rank->Observe(record.members, levels);
    all.fitting += levels.fitting;
    all.active_after_schedule += rank->running() + rank->unstarted();
    if (in_step_) all.ranks.push_back(levels);
  }
}

void TrtllmScheduler::ObserveAfter(StepRecord& record) const {
  record.trtllm.active_after_step = Sum(&TrtllmRank::active);  // without a dummy: all have run
}

}  // namespace servecast

// See trtllm_scheduler.h. Here: the active list, and the order of a pass.
#include "serving/trtllm/trtllm_scheduler.h"

#include <algorithm>

#include "serving/replica/scheduler_setup.h"

namespace servecast {

std::unique_ptr<Scheduler> MakeTrtllmScheduler(Replica& replica) {
  return std::make_unique<TrtllmScheduler>(replica);
}

namespace {

// Whether it matters which block is which: some request may find what another one, or itself before
// a pause, left behind.
bool KeepsContent(const ReplicaInput& in) {
  const bool pauses =
      in.scheduler.trtllm.capacity_scheduler_policy == TrtllmCapacity::kMaxUtilization;
  return in.setup.limits.caches_prefixes && (pauses || !in.requests.content.empty());
}

}  // namespace

TrtllmScheduler::TrtllmScheduler(Replica& replica)
    : Scheduler({}),
      replica_(replica),
      in_(replica.input()),
      options_(in_.scheduler.trtllm),
      size_(replica.kv().block_size()),
      overlap_(replica.most_in_flight() > 1),
      free_(replica.kv().total()),
      jobs_(static_cast<std::size_t>(in_.engine.max_num_seqs)),
      decodes_(size_),
      due_(static_cast<std::size_t>(size_)),
      finishes_(static_cast<std::int32_t>(in_.engine.max_num_seqs)),
      outputs_(replica.most_in_flight()) {
  if (KeepsContent(in_)) {
    tree_.emplace(BlockTree::Options{.blocks = free_,
                                     .block_size = size_,
                                     .partial = options_.enable_partial_reuse,
                                     .copies = options_.copy_on_partial_reuse,
                                     .sequences = in_.engine.max_num_seqs},
                  in_.requests);
  }
  for (auto seat = static_cast<JobId>(in_.engine.max_num_seqs); seat > 0;) seats_.push_back(--seat);
}

// ---- Requests --------------------------------------------------------------------------------

void TrtllmScheduler::Enqueue(RequestId request) {
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

// ---- Blocks ----------------------------------------------------------------------------------

void TrtllmScheduler::TellMachine() {
  KvCache& kv = replica_.kv();
  const std::int64_t more = Free() - kv.free();
  if (more < 0) {
    kv.Take(-more);
  } else if (more > 0) {
    KvCache::Holding none;
    kv.Release(none, kNoRequest, more, 0, false);
  }
}

void TrtllmScheduler::Release(JobId id, std::int64_t computed) {
  Job& job = At(id);
  if (tree_) {
    tree_->Release(id, std::max<std::int64_t>(computed, 0));
  } else {
    free_ += Blocks(job.kv);
  }
  job.admitted = false;
}

// ---- The active list -------------------------------------------------------------------------

void TrtllmScheduler::Insert(std::vector<JobId>& list, JobId id) {
  const std::int64_t order = At(id).order;
  auto at = list.end();
  while (at != list.begin() && At(*(at - 1)).order > order) --at;
  list.insert(at, id);
}

void TrtllmScheduler::Erase(std::vector<JobId>& list, JobId id) {
  const auto at =
      std::lower_bound(list.begin(), list.end(), At(id).order,
                       [this](JobId other, std::int64_t order) { return At(other).order < order; });
  list.erase(at);
}

// Rules 1 to 3.
void TrtllmScheduler::Activate() {
  while (active_ < in_.engine.max_num_seqs && InQueue() > 0) {
    RequestId request = kNoRequest;
    if (ByPriority()) {
      request = std::get<2>(*by_priority_.begin());
      by_priority_.erase(by_priority_.begin());
    } else {
      request = queue_.front();
      queue_.pop_front();
    }
    const JobId id = seats_.back();
    seats_.pop_back();
    Job& job = At(id);
    const auto r = static_cast<std::size_t>(request);
    const std::int64_t life = job.life;
    job = {};
    job.life = life;
    job.request = request;
    job.order = ++activations_;
    job.first = job.prompt = job.chunk = in_.requests.prompt_tokens[r];
    const std::int64_t makes = in_.requests.output_tokens[r];
    std::int64_t asked = makes;
    if (!in_.requests.max_new_tokens.empty()) {
      asked = in_.requests.max_new_tokens[r];
    } else if (options_.max_output_tokens) {
      asked = std::max(asked, *options_.max_output_tokens);
    }
    job.limit = std::min(asked, in_.max_model_len - job.first);
    job.end = std::min(makes, job.limit);
    contexts_.push_back(id);
    ++active_;
    ++unstarted_;
    if (in_.observer != nullptr) activated_.emplace_back(request, replica_.now());
  }
}

// Rule 38. Its outputs so far are handled.
void TrtllmScheduler::BecomeContext(Job& job) {
  job.prompt = job.chunk = job.first + job.out;
  job.pos = job.reusable = 0;
  job.paused = false;
}

// Rule 60: the last chunk of its prompt has been launched.
void TrtllmScheduler::EndPrompt(JobId id) {
  Job& job = At(id);
  Erase(contexts_, id);
  Insert(generating_, id);
  reserved_ += Blocks(job.first + job.limit);
  job.kv = job.prompt;
  const bool last = overlap_ && job.prompt - job.first + 1 >= job.limit;
  job.state = last ? State::kLast : State::kGeneration;
  apart_.push_back(id);
}

// What the pass decided becomes true: rules 8, 9c and 9d.
void TrtllmScheduler::Settle() {
  if (!pending_) return;
  pending_ = false;
  for (const JobId id : pass_.paused) BecomeContext(At(id));
  for (const JobId id : pass_.contexts) {
    Job& job = At(id);
    job.pos += job.chunk;
    job.chunk = 0;
    if (job.pos == job.prompt) EndPrompt(id);
  }
}

// ---- A pass (rules 1 to 7) -------------------------------------------------------------------

Formed TrtllmScheduler::Form(StepPlan& plan) {
  CatchUp();
  Settle();
  Activate();
  pass_.Clear();
  ++pass_number_;
  stuck_ = false;
  Capacity();
  Batch();
  WaitForFuller();
  LastChunksLast();
  for (const JobId id : pass_.paused) Pause(id);
  SetMembers();
  pending_ = true;
  Take();
  const bool formed = !pass_.contexts.empty() || pass_.members > 0;
  TellMachine();
  if (waiting() > 0) {
    const bool lacks_blocks = pass_.refused || !pass_.paused.empty();
    plan.blocked = lacks_blocks             ? BlockedBy::kKvBlocks
                   : InQueue() > 0          ? BlockedBy::kSeats
                   : pass_.contexts.empty() ? BlockedBy::kTokenBudget
                                            : BlockedBy::kNothing;
  }
  if (plan.blocked == BlockedBy::kKvBlocks) in_.recorder->BlocksRefused(1);
  if (formed) {
    Fill(plan);
    plan.preempted.swap(unshown_);
    unshown_.clear();
    return Formed::kStep;
  }
  return !pass_.paused.empty() && replica_.in_flight() == 0 ? Formed::kAgain : Formed::kNothing;
}

// ---- For others ------------------------------------------------------------------------------

void TrtllmScheduler::WriteProgress(std::vector<std::int32_t>& generated) const {
  for (const std::vector<JobId>* list : {&contexts_, &generating_}) {
    for (const JobId id : *list) {
      const Job& job = At(id);
      const auto in_flight = static_cast<std::int64_t>(replica_.in_flight());
      const std::int64_t made = Made(job) - (job.decodes ? in_flight : 0);
      generated[static_cast<std::size_t>(job.request)] =
          static_cast<std::int32_t>(std::max(made, job.prompt - job.first));
    }
  }
}

const PrefixCacheReport& TrtllmScheduler::prefix_cache() {
  if (tree_) cached_.evicted_blocks = tree_->evicted();
  return cached_;
}

void TrtllmScheduler::Observe(StepRecord& record) const {
  for (const JobId id : pass_.contexts) {
    const Job& job = At(id);
    record.members.push_back(
        {job.request, job.chunk, job.pos, job.kind, job.chunk == job.left() ? 1 : 0});
  }
  for (const JobId id : generating_) {
    const Job& job = At(id);
    if (job.decodes) {
      record.members.push_back({job.request, 1, Kv(job), MemberKind::kContinued, 1});
    }
  }
  record.trtllm.activated.clear();
  record.trtllm.fitting = pass_.fitting;
  record.trtllm.active_after_schedule = active_;
}

void TrtllmScheduler::ObserveAfter(StepRecord& record) const {
  record.trtllm.active_after_step = active_;
}

}  // namespace servecast

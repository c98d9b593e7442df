// See trtllm_rank.h. Here: the active list, and the order of a pass.
#include "serving/trtllm/trtllm_rank.h"

#include <algorithm>

#include "serving/replica/scheduler_setup.h"

namespace servecast {

namespace {

// Whether it matters which block is which: some request may find what another one, or itself before
// a pause, left behind.
bool KeepsContent(const ReplicaInput& in) {
  const bool pauses =
      in.scheduler.trtllm.capacity_scheduler_policy == TrtllmCapacity::kMaxUtilization;
  return in.setup.limits.caches_prefixes && (pauses || !in.requests.content.empty());
}

}  // namespace

TrtllmRank::TrtllmRank(Machine& machine)
    : machine_(machine),
      in_(machine.input()),
      options_(in_.scheduler.trtllm),
      size_(machine.kv().block_size()),
      overlap_(machine.most_in_flight() > 1),
      free_(in_.setup.limits.blocks),
      jobs_(static_cast<std::size_t>(in_.engine.max_num_seqs)),
      decodes_(size_),
      due_(static_cast<std::size_t>(size_)),
      finishes_(static_cast<std::int32_t>(in_.engine.max_num_seqs)),
      outputs_(machine.most_in_flight()) {
  if (KeepsContent(in_)) {
    tree_.emplace(BlockTree::Options{.blocks = free_,
                                     .block_size = size_,
                                     .partial = options_.enable_partial_reuse,
                                     .copies = options_.copy_on_partial_reuse,
                                     .sequences = in_.engine.max_num_seqs + 1},
                  in_.requests);
  }
  for (auto seat = static_cast<JobId>(in_.engine.max_num_seqs); seat > 0;) seats_.push_back(--seat);
}

// ---- Blocks ----------------------------------------------------------------------------------

void TrtllmRank::Release(JobId id, std::int64_t computed) {
  Job& job = At(id);
  if (tree_) {
    tree_->Release(id, std::max<std::int64_t>(computed, 0));
  } else {
    free_ += Blocks(job.kv);
  }
  job.admitted = false;
}

// ---- The active list -------------------------------------------------------------------------

void TrtllmRank::Insert(std::vector<JobId>& list, JobId id) {
  const std::int64_t order = At(id).order;
  auto at = list.end();
  while (at != list.begin() && At(*(at - 1)).order > order) --at;
  list.insert(at, id);
}

void TrtllmRank::Erase(std::vector<JobId>& list, JobId id) {
  const auto at =
      std::lower_bound(list.begin(), list.end(), At(id).order,
                       [this](JobId other, std::int64_t order) { return At(other).order < order; });
  list.erase(at);
}

// Rule 2.
void TrtllmRank::Enter(RequestId request) {
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
  prompt_tokens_ += job.first;
  if (in_.observer != nullptr) activated_.emplace_back(request, machine_.now());
}

// Rule 38. Its outputs so far are handled.
void TrtllmRank::BecomeContext(Job& job) {
  job.prompt = job.chunk = job.first + job.out;
  job.pos = job.reusable = 0;
}

// Rule 60: the last chunk of its prompt has been launched.
void TrtllmRank::EndPrompt(JobId id) {
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
void TrtllmRank::Settle() {
  if (!pending_) return;
  pending_ = false;
  for (const JobId id : pass_.paused) BecomeContext(At(id));
  if (runs_ && HasDummy()) {  // rule 70
    if (dummy_ == Dummy::kLast || active_ == 0) {
      DropDummy();
    } else {
      dummy_ = Dummy::kFlying;
    }
  }
  for (const JobId id : pass_.contexts) {
    Job& job = At(id);
    job.pos += job.chunk;
    job.chunk = 0;
    if (job.pos == job.prompt) EndPrompt(id);
  }
}

// ---- A pass (rules 4 to 6) -------------------------------------------------------------------

void TrtllmRank::Prepare() {
  CatchUp();
  Settle();
}

void TrtllmRank::Schedule() {
  pass_.Clear();
  ++pass_number_;
  stuck_ = false;
  Capacity();
  Batch();
}

void TrtllmRank::PauseVictims() {
  LastChunksLast();
  for (const JobId id : pass_.paused) Pause(id);
}

void TrtllmRank::Take() {
  SetMembers();
  pending_ = runs_ = true;
  TakeBlocks();
}

void TrtllmRank::StayOut() {
  if (dummy_ == Dummy::kLast) DropDummy();
  pass_.contexts.clear();
  pass_.members = 0;
  pending_ = true;
  runs_ = false;
}

// ---- Dummies ---------------------------------------------------------------------------------

void TrtllmRank::AddDummy(bool to_batch) {
  if (free() == 0) return;
  dummy_ = to_batch ? Dummy::kLast : Dummy::kFirst;
  if (tree_) {
    tree_->Grow(static_cast<JobId>(in_.engine.max_num_seqs));
  } else {
    --free_;
  }
}

void TrtllmRank::DropDummy() {
  dummy_ = Dummy::kNone;
  if (tree_) {
    tree_->Release(static_cast<JobId>(in_.engine.max_num_seqs), 0);
  } else {
    ++free_;
  }
}

// ---- For others ------------------------------------------------------------------------------

void TrtllmRank::WriteProgress(std::vector<std::int32_t>& generated) const {
  for (const std::vector<JobId>* list : {&contexts_, &generating_}) {
    for (const JobId id : *list) {
      const Job& job = At(id);
      const std::int64_t made = Made(job) - (job.decodes ? InFlight() : 0);
      generated[static_cast<std::size_t>(job.request)] =
          static_cast<std::int32_t>(std::max(made, job.prompt - job.first));
    }
  }
}

const PrefixCacheReport& TrtllmRank::prefix_cache() {
  if (tree_) cached_.evicted_blocks = tree_->evicted();
  return cached_;
}

void TrtllmRank::Observe(std::vector<StepMember>& members, TrtllmRankLevels& levels) const {
  for (const JobId id : pass_.contexts) {
    const Job& job = At(id);
    members.push_back({job.request, job.chunk, job.pos, job.kind, job.chunk == job.left() ? 1 : 0});
  }
  for (const JobId id : generating_) {
    const Job& job = At(id);
    if (job.decodes) members.push_back({job.request, 1, Kv(job), MemberKind::kContinued, 1});
  }
  levels.contexts = contexts();
  levels.generating = decodes_.size();
  levels.dummies = dummies();
  levels.paused = shown_;
  levels.fitting = pass_.fitting;
  levels.active_after_schedule = active();
  levels.free_after_schedule = free();
}

}  // namespace servecast

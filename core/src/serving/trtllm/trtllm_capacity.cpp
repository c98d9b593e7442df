// For whom there are KV blocks: TensorRT-LLM's capacity schedulers (rules 10 to 24, 52 and 53). See
// trtllm_rank.h.
#include <algorithm>

#include "serving/trtllm/trtllm_rank.h"

namespace servecast {

// What is stored of a request's text, as budgets see it.
BlockTree::Found TrtllmRank::Look(const Job& job) {
  return PrefixAware() ? tree_->Find(job.request, job.prompt) : BlockTree::Found{};
}

// Rule 23: it waits for blocks that another one is about to compute.
bool TrtllmRank::IsTwin(const Job& job, const BlockTree::Found& found) {
  if (!PrefixAware() || job.admitted || found.first_new == 0) return false;
  return !coming_.insert(found.first_new).second;
}

// Rule 52.
std::int64_t TrtllmRank::Rest(Job& job, const BlockTree::Found& found) const {
  const std::int64_t total = Blocks(job.first + job.limit);
  job.reusable = 0;
  if (job.admitted) return total - Blocks(job.prompt);
  const std::int64_t most = (job.prompt - 1) / size_;
  job.reusable = std::min(found.all, most) * size_;
  return total - std::min(found.used, most);
}

// Rule 53.
std::int64_t TrtllmRank::StepNeed(Job& job, const BlockTree::Found& found) const {
  job.reusable = 0;
  if (job.state == State::kContext) {
    if (job.admitted) return 0;
    const std::int64_t most = (job.prompt - 1) / size_;
    job.reusable = std::min(found.all, most) * size_;
    return Blocks(job.prompt) - std::min(found.used, most);
  }
  const std::int64_t kv = Kv(job);
  const std::int64_t more = std::min<std::int64_t>(1, job.limit - (kv - job.first));
  return Blocks(kv + more) - Blocks(kv);
}

void TrtllmRank::Capacity() {
  coming_.clear();
  const TrtllmCapacity policy = options_.capacity_scheduler_policy;
  if (PrefixAware() && policy != TrtllmCapacity::kStaticBatch) {
    std::int64_t started = static_cast<std::int64_t>(contexts_.size()) - unstarted_;
    for (auto id = contexts_.begin(); started > 0; ++id) {
      if (!At(*id).admitted) continue;
      --started;
      const BlockTree::Found found = Look(At(*id));
      if (found.first_new != 0) coming_.insert(found.first_new);
    }
  }
  policy == TrtllmCapacity::kMaxUtilization ? MaxUtilization() : Guaranteed();
}

// Rules 10 to 13: whoever generates has all blocks that it may ever need, taken or reserved.
void TrtllmRank::Guaranteed() {
  const bool in_turn = options_.capacity_scheduler_policy == TrtllmCapacity::kStaticBatch;
  std::int64_t held = decodes_.next().blocks;
  for (const JobId id : apart_) held += Blocks(At(id).kv);
  std::int64_t available = free() - (reserved_ - held);
  pass_.fitting = static_cast<std::int64_t>(generating_.size()) + Dummies();
  if (in_turn && pass_.fitting > 0) {
    pass_.refused = !contexts_.empty();
    return;
  }
  for (const JobId id : contexts_) {
    Job& job = At(id);
    const BlockTree::Found found = job.admitted ? BlockTree::Found{} : Look(job);
    if (!in_turn && IsTwin(job, found)) continue;
    const std::int64_t rest = Rest(job, found);
    if (rest > available) {
      pass_.refused = true;
      break;
    }
    available -= rest;
    pass_.go.push_back(id);
    ++pass_.fitting;
  }
  walked_ += static_cast<std::int64_t>(pass_.go.size());
  // One that waited for a twin may stand before another one that has begun, and not fit beside it:
  // TensorRT-LLM would wait for ever.
  if (pass_.fitting > 0 || InFlight() > 0) return;
  for (const JobId id : contexts_) {
    if (At(id).admitted) pass_.go.push_back(id);
  }
  pass_.fitting = static_cast<std::int64_t>(pass_.go.size());
}

// Whether all that have begun stand before all others, and have room for their next step: then
// nobody is paused for them. They are let through.
bool TrtllmRank::StartedFit() {
  std::int64_t last = generating_.empty() ? -1 : At(generating_.back()).order;
  std::int64_t first_new = INT64_MAX;
  for (const JobId id : contexts_) {
    if (!At(id).admitted) {
      first_new = std::min(first_new, At(id).order);
    } else {
      last = std::max(last, At(id).order);
    }
  }
  if (last > first_new) return false;
  std::int64_t need = decodes_.due();
  for (const JobId id : apart_) need += StepNeed(At(id), {});
  if (need > free()) return false;
  pass_.fitting += static_cast<std::int64_t>(generating_.size());
  for (const JobId id : contexts_) {
    if (!At(id).admitted) continue;
    At(id).reusable = 0;
    pass_.go.push_back(id);
    ++pass_.fitting;
  }
  taken_ = need;
  return true;
}

// Rule 17: the last one that has begun, of those from `cursor` to `end`. False: there is none.
bool TrtllmRank::PauseOne(std::size_t cursor, std::size_t& end, std::int64_t& free) {
  for (std::size_t i = end; i-- > cursor;) {
    const Job& job = At(walk_[i]);
    if (!job.admitted) continue;
    free += tree_ ? tree_->FreedBy(walk_[i]) : Blocks(Kv(job));
    pass_.paused.push_back(walk_[i]);
    end = i;
    return true;
  }
  return false;
}

// Rules 14 to 21.
void TrtllmRank::MaxUtilization() {
  std::int64_t free = this->free();
  if (tree_) tree_->StartVictims();
  taken_ = 0;
  walk_.clear();
  pass_.fitting = Dummies();
  if (StartedFit()) {
    for (const JobId id : contexts_) {
      if (!At(id).admitted) walk_.push_back(id);
    }
  } else {
    pass_.listed = true;
    std::merge(contexts_.begin(), contexts_.end(), generating_.begin(), generating_.end(),
               std::back_inserter(walk_),
               [this](JobId a, JobId b) { return At(a).order < At(b).order; });
  }
  walked_ += static_cast<std::int64_t>(walk_.size());
  std::size_t cursor = 0, end = walk_.size();
  while (cursor < end) {
    const JobId id = walk_[cursor];
    Job& job = At(id);
    const bool is_new = job.state == State::kContext && !job.admitted;
    const BlockTree::Found found = is_new ? Look(job) : BlockTree::Found{};
    if (is_new && IsTwin(job, found)) {
      ++cursor;
      continue;
    }
    const std::int64_t need = StepNeed(job, found);
    if (taken_ + need <= free) {
      taken_ += need;
      pass_.go.push_back(id);
      ++pass_.fitting;
      ++cursor;
    } else if (!PauseOne(cursor, end, free)) {
      pass_.refused = pass_.paused.empty();
      break;
    }
  }
}

}  // namespace servecast

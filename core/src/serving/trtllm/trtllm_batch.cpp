// Which tokens a step computes: TensorRT-LLM's micro-batch scheduler (rules 25 to 37), and waiting
// for a fuller batch (rules 58 and 59). See trtllm_rank.h.
//
// Rule 49, a cut of batches above the budget, has nothing to cut: no batch is admitted above it,
// and what reuse changes of a chunk makes it no longer.
#include <algorithm>

#include "serving/trtllm/trtllm_rank.h"

namespace servecast {
namespace {

// Rule 32: what so many tokens of a prompt cost, where the end of what is left may be found.
std::int64_t Cost(std::int64_t tokens, std::int64_t reusable, std::int64_t left) {
  if (reusable <= 0 || reusable + tokens < left) return tokens;
  return std::max<std::int64_t>(0, left - reusable);
}

}  // namespace

// Those that generate come first, unless the capacity scheduler listed them in another order.
void TrtllmRank::ListAll() {
  if (pass_.listed) return;
  pass_.listed = true;
  pass_.go.insert(pass_.go.begin(), generating_.begin(), generating_.end());
}

// Rules 25 to 31.
void TrtllmRank::Batch() {
  const std::int64_t budget = in_.engine.max_num_batched_tokens;
  std::int64_t generating = 0;
  for (const JobId id : apart_) generating += At(id).state == State::kGeneration ? 1 : 0;
  generating += decodes_.size();
  if (generating > budget) ListAll();
  std::int64_t used = dummy_ == Dummy::kFirst ? 1 : 0, count = used;
  if (!pass_.listed) {
    pass_.members = generating;
    used = count = used + generating;
  }
  std::vector<JobId>& batch = pass_.contexts;
  members_.clear();
  for (const JobId id : pass_.go) {
    Job& job = At(id);
    if (job.state == State::kLast) continue;
    if (job.state == State::kGeneration) {
      if (used + 1 > budget) break;
      members_.push_back(id);
      ++used;
    } else if (Chunked()) {
      job.chunk = job.left();
      batch.push_back(id);
    } else {
      const std::int64_t cost =
          std::max<std::int64_t>(1, Cost(job.prompt, job.reusable, job.left()));
      // TensorRT-LLM takes no such prompt, and stops at one that a pause has made so long.
      const bool alone = cost > budget && used == 0;
      if (used + cost > budget && !alone) break;
      batch.push_back(id);
      used += cost;
    }
    if (++count >= in_.engine.max_num_seqs) break;
  }
  if (pass_.listed) pass_.members = static_cast<std::int64_t>(members_.size());
  if (Chunked()) SetChunks(used);
  stuck_ = pass_.refused && pass_.go.empty() && !pass_.listed;
}

void TrtllmRank::SetChunks(std::int64_t used) {
  const std::int64_t budget = in_.engine.max_num_batched_tokens;
  std::int64_t wanted = 0;
  bool whole = true;
  for (const JobId id : pass_.contexts) {
    const Job& job = At(id);
    const std::int64_t cost = Cost(job.left(), job.reusable, job.left());
    whole = whole && cost <= budget;
    wanted += std::min(cost, budget);
  }
  if (whole && wanted <= budget - used) return;
  if (options_.context_chunking_policy == TrtllmChunking::kEqualProgress) {
    EqualChunks(budget - used);
  } else {
    FirstComeChunks(budget - used);
  }
  const auto has_none = [this](JobId id) { return At(id).chunk <= 0; };
  pass_.contexts.erase(std::remove_if(pass_.contexts.begin(), pass_.contexts.end(), has_none),
                       pass_.contexts.end());
}

// Rule 33.
void TrtllmRank::FirstComeChunks(std::int64_t room) {
  const std::int64_t budget = in_.engine.max_num_batched_tokens;
  const std::int64_t unit = options_.chunk_unit_size.value_or(size_);
  for (const JobId id : pass_.contexts) {
    Job& job = At(id);
    const std::int64_t left = job.left();
    std::int64_t chunk = left;
    if (room < Cost(left, job.reusable, left)) chunk = room;
    if (Cost(chunk, job.reusable, left) > budget) chunk = std::min(budget, left);
    if (chunk < left) chunk = chunk / unit * unit;
    job.chunk = chunk;
    room -= Cost(chunk, job.reusable, left);
  }
}

// Rule 34.
void TrtllmRank::EqualChunks(std::int64_t room) {
  const std::int64_t budget = in_.engine.max_num_batched_tokens;
  const std::int64_t unit = options_.chunk_unit_size.value_or(size_);
  for (const JobId id : pass_.contexts) At(id).chunk = 0;
  std::int64_t spent = 0;
  for (bool moved = true; moved && spent < room;) {
    moved = false;
    for (const JobId id : pass_.contexts) {
      Job& job = At(id);
      const std::int64_t left = job.left(), next = std::min(job.chunk + unit, left);
      const std::int64_t more =
          Cost(next, job.reusable, left) - Cost(job.chunk, job.reusable, left);
      if (spent + more > room || next > budget) continue;
      moved = moved || next > job.chunk;
      spent += more;
      job.chunk = next;
    }
  }
}

void TrtllmRank::WaitForFuller() {
  const std::int64_t iterations = options_.batch_wait_timeout_iters;
  const double ratio = options_.batch_wait_max_tokens_ratio;
  if ((iterations <= 0 && ratio <= 0) || pass_.contexts.empty() || pass_.members == 0) return;
  std::int64_t tokens = pass_.members;
  for (const JobId id : pass_.contexts) {
    const Job& job = At(id);
    const bool whole = job.reusable <= 0 || job.reusable + job.chunk < job.left();
    tokens += whole ? job.chunk : std::max<std::int64_t>(1, job.left() - job.reusable);
  }
  const double least = ratio * static_cast<double>(in_.engine.max_num_batched_tokens);
  if (waited_ < iterations && static_cast<double>(tokens) < least) {
    pass_.contexts.clear();
    ++waited_;
  } else {
    waited_ = 0;
  }
}

// Rule 37.
void TrtllmRank::LastChunksLast() {
  std::stable_partition(pass_.contexts.begin(), pass_.contexts.end(),
                        [this](JobId id) { return At(id).chunk < At(id).left(); });
}

// Who generates in this step is in the sums, and nobody else.
void TrtllmRank::SetMembers() {
  if (pass_.listed) {
    for (const JobId id : members_) At(id).member = pass_number_;
    for (const JobId id : generating_) {
      Job& job = At(id);
      if (job.decodes && job.member != pass_number_) {
        Leave(id);
        apart_.push_back(id);
      }
    }
  }
  std::size_t kept = 0;
  for (const JobId id : apart_) {
    const Job& job = At(id);
    const bool joins =
        job.state == State::kGeneration && (!pass_.listed || job.member == pass_number_);
    if (joins) {
      Join(id);
    } else {
      apart_[kept++] = id;
    }
  }
  apart_.resize(kept);
}

}  // namespace servecast

// What TensorRT-LLM's batches are to the machine: the blocks that they take, how they are priced
// and launched, what becomes of their outputs, and runs of decodes. See trtllm_rank.h.
#include <algorithm>

#include "serving/trtllm/trtllm_rank.h"

namespace servecast {

// ---- Who leaves a pass, and who comes (rules 5, 6, 43 to 48 and 50) --------------------------

void TrtllmRank::Pause(JobId id) {
  Job& job = At(id);
  const auto r = static_cast<std::size_t>(job.request);
  const bool generates = job.state != State::kContext;
  const std::int64_t handled = Made(job) - (generates && Pending(job) ? 1 : 0);
  const std::int64_t computed = generates ? job.first + handled : job.pos;
  job.out = Made(job);
  if (generates) {
    in_.scratch.last_token[r] = LastToken(job);
    LeaveGenerating(id);
    job.state = State::kContext;
    Insert(contexts_, id);
  }
  Setbacks& setbacks = in_.results.SetbacksOf(r);
  setbacks.preempted_at = machine_.StartTime();
  setbacks.last_step = job.last_step;
  in_.results.generated[r] = static_cast<std::int32_t>(job.out);
  Release(id, computed - 1);
  ++unstarted_;
  unshown_.push_back(job.request);
  machine_.Preempted(job.request);
}

// Out of those that generate, whether or not it is in the sums.
void TrtllmRank::LeaveGenerating(JobId id) {
  Job& job = At(id);
  if (job.decodes) {
    if (finishes_.Has(id)) {
      finishes_.Remove(id);
      CountInterference(job);
    } else {
      --ending_;
    }
    Leave(id);
  } else {
    apart_.erase(std::find(apart_.begin(), apart_.end(), id));
  }
  Erase(generating_, id);
  reserved_ -= Blocks(job.first + job.limit);
}

// Where victims of a pass held what it counted as shared, TensorRT-LLM would find no block and
// stop with an error; here the last of the new requests wait.
void TrtllmRank::DropBeyondRoom(std::vector<BlockTree::Admission>& news) {
  if (!tree_ || pass_.paused.empty()) return;
  std::int64_t room = free() - decodes_.due();
  std::size_t kept = 0;
  for (; kept < news.size(); ++kept) {
    const std::int64_t used = tree_->Find(news[kept].request, news[kept].tokens - 1).used;
    room -= Blocks(news[kept].tokens) - used;
    if (room < 0) break;
  }
  const auto dropped = [&](JobId id) {
    return std::any_of(news.begin() + static_cast<std::ptrdiff_t>(kept), news.end(),
                       [id](const BlockTree::Admission& one) { return one.sequence == id; });
  };
  if (kept == news.size()) return;
  pass_.contexts.erase(std::remove_if(pass_.contexts.begin(), pass_.contexts.end(), dropped),
                       pass_.contexts.end());
  news.resize(kept);
}

void TrtllmRank::TakeBlocks() {
  std::vector<BlockTree::Admission>& news = news_;
  news.clear();
  for (const JobId id : pass_.contexts) {
    const Job& job = At(id);
    if (!job.admitted) news.push_back({id, job.request, job.prompt, 0});
  }
  DropBeyondRoom(news);
  if (tree_) tree_->Admit(news);
  for (const BlockTree::Admission& admission : news) {
    Job& job = At(admission.sequence);
    if (!tree_) free_ -= Blocks(job.prompt);
    job.admitted = true;
    --unstarted_;
    job.kv = job.prompt;
    job.pos = admission.reused;
    job.reusable = 0;
    // Rule 46: reuse moves a chunk, but for the last one, and makes none shorter.
    const std::int64_t end = job.pos + job.chunk;
    job.chunk =
        (end < job.prompt && job.pos > 0 ? end / size_ * size_ : std::min(end, job.prompt)) -
        job.pos;
    Begin(job);
  }
  if (decodes_.size() > 0) {
    if (tree_) {
      GrowMembers(decodes_.step());
      grown_ = decodes_.step() + 1;
    } else {
      free_ -= decodes_.due();
    }
  }
  SERVECAST_CHECK(free() >= 0, "I4: used + free = total KV blocks");
  LastChunksLast();
}

// The members that take a block in a step of the sums, in their order.
void TrtllmRank::GrowMembers(std::int64_t step) {
  std::vector<JobId>& due = due_[static_cast<std::size_t>(step % size_)];
  std::sort(due.begin(), due.end(), [this](JobId a, JobId b) { return At(a).order < At(b).order; });
  for (const JobId id : due) tree_->Grow(id);
}

// Steps that the machine ran by itself.
void TrtllmRank::CatchUp() {
  if (!tree_) {
    grown_ = decodes_.step();
    return;
  }
  for (; grown_ < decodes_.step(); ++grown_) GrowMembers(grown_);
}

// ---- The batch, for the machine --------------------------------------------------------------

void TrtllmRank::Begin(Job& job) {
  const auto r = static_cast<std::size_t>(job.request);
  const TimeNs start = machine_.StartTime();
  job.kind = in_.results.preemptions[r] > 0 ? MemberKind::kResumed : MemberKind::kNew;
  job.began = start;
  job.begins = true;
  in_.results.state[r] = RequestState::kRunning;
  if (in_.results.first_scheduled[r] < 0) in_.results.first_scheduled[r] = start;
  if (job.kind == MemberKind::kResumed) {
    Setbacks& s = in_.results.SetbacksOf(r);
    s.preempted += start - s.preempted_at;
    if (job.prompt == job.first) s.preempted_to_first = s.preempted;
    cached_.resumed_hit_tokens += job.pos;
    return;
  }
  in_.results.cached_tokens[r] = static_cast<std::int32_t>(job.pos);
  cached_.query_tokens += job.prompt;
  cached_.hit_tokens += job.pos;
  cached_.query_blocks += job.prompt / size_;
  cached_.hit_blocks += job.pos / size_;
}

void TrtllmRank::Fill(StepPlan& plan, BatchShape& shape) {
  FillDecodes(plan, shape);
  for (const JobId id : pass_.contexts) {
    Job& job = At(id);
    const auto r = static_cast<std::size_t>(job.request);
    const bool ends = job.chunk == job.left();
    plan.chunks.push_back({job.chunk, job.pos, in_.requests.prompt_tokens[r], ends});
    plan.kv_unused += Blocks(job.prompt) * size_ - job.pos - job.chunk;
    if (job.begins && job.kind == MemberKind::kResumed) {
      machine_.CountDelay(plan, in_.results.SetbacksOf(r).last_step, 1);
    } else if (!job.begins) {
      job.kind = MemberKind::kContinued;
      machine_.CountDelay(plan, job.last_step, 1);
    }
  }
}

void TrtllmRank::FillDecodes(StepPlan& plan, BatchShape& shape) {
  shape = decodes_.shape();
  wasted_ = ending_;
  std::int64_t first = 0;
  for (const Output& output : newcomers_) {
    machine_.CountDelay(plan, At(output.job).last_step, 1);
    first += output.last ? 0 : 1;
  }
  const auto newcomers = static_cast<std::int64_t>(newcomers_.size());
  machine_.CountDelay(plan, times_.decoded, decodes_.size() - newcomers);
  plan.decodes += decodes_.size() - first - wasted_;
  plan.kv_unused += decodes_.size() > 0 ? decodes_.unused() : 0;
  shape.decode_seqs += dummies();  // of one token of KV each
  shape.decode_context_tokens += dummies();
  shape.decode_kv_blocks += dummies();
}

void TrtllmRank::ShowPaused(StepPlan& plan) {
  shown_ = static_cast<std::int64_t>(unshown_.size());
  plan.preempted.insert(plan.preempted.end(), unshown_.begin(), unshown_.end());
  unshown_.clear();
}

// ---- The sums --------------------------------------------------------------------------------

void TrtllmRank::Join(JobId id) {
  Job& job = At(id);
  const std::int64_t made = Made(job);
  job.joined_with = job.kv;
  job.ahead = decodes_.Join(job.kv);
  job.decodes = true;
  job.interference_before = times_.interference;
  if (tree_) due_[DueAt(job)].push_back(id);
  if (made < job.end) {
    finishes_.Push(id, decodes_.step() + job.end - made - 1, job.order);
  } else {
    ++ending_;
  }
  newcomers_.push_back(
      {.job = id, .life = job.life, .last = made >= job.end, .previous = job.token});
}

std::size_t TrtllmRank::DueAt(const Job& job) const {
  const std::int64_t at = job.ahead % size_;
  return static_cast<std::size_t>(at > 0 ? size_ - at : -at);
}

void TrtllmRank::Leave(JobId id) {
  Job& job = At(id);
  job.token = LastToken(job);
  if (Kv(job) > job.joined_with) job.last_step = times_.decoded;
  job.kv = Kv(job);
  decodes_.Leave(job.ahead);
  job.decodes = false;
  if (!tree_) return;
  std::vector<JobId>& due = due_[DueAt(job)];
  due.erase(std::find(due.begin(), due.end(), id));
}

void TrtllmRank::CountInterference(Job& job) {
  in_.results.interference[static_cast<std::size_t>(job.request)] +=
      times_.interference - job.interference_before;
}

// The latest token that its client has, or will have from what is launched.
TimeNs TrtllmRank::LastToken(const Job& job) const {
  return job.decodes && Kv(job) > job.joined_with ? times_.decoded : job.token;
}

// What makes its last token by the step before decodes_.step(). Rule 9f: who ends by its limit is
// in no step after that one.
void TrtllmRank::EndDecodes(Outputs& outputs) {
  while (!finishes_.empty() && finishes_.TopKey() < decodes_.step()) {
    const JobId id = finishes_.TopId();
    Job& job = At(id);
    finishes_.Remove(id);
    CountInterference(job);
    outputs.last.push_back({.job = id, .life = job.life, .last = true});
    if (overlap_ && job.end >= job.limit) {
      Leave(id);
      job.state = State::kLast;
      apart_.push_back(id);
    } else {
      ++ending_;
    }
  }
}

void TrtllmRank::LaunchDecodes(Step& step, Outputs& outputs) {
  const auto newcomers = static_cast<std::int64_t>(newcomers_.size());
  if (decodes_.size() > newcomers) step.before = times_.decoded;
  for (std::int64_t i = 0; i < wasted_; ++i) Machine::LoseToken(step, false);
  for (const Output& output : newcomers_) {
    if (!output.last) outputs.first.push_back(output);
  }
  newcomers_.clear();
  decodes_.Step();
  times_.decoded = step.end;
  EndDecodes(outputs);
}

void TrtllmRank::LaunchContexts(const Step& step, Outputs& outputs) {
  for (const JobId id : pass_.contexts) {
    Job& job = At(id);
    const auto r = static_cast<std::size_t>(job.request);
    job.last_step = step.end;
    job.begins = false;
    Output output{.job = id, .life = job.life};
    if (job.chunk == job.left()) {
      const std::int64_t before = job.prompt - job.first;
      output.ends_prompt = true;
      output.previous = before == 0 ? -1 : in_.scratch.last_token[r];
      output.last = before + 1 >= job.end;
      job.token = step.end;
      if (before > 0) in_.results.SetbacksOf(r).recompute += step.end - job.began;
    }
    outputs.contexts.push_back(output);
  }
}

void TrtllmRank::Launched(Step& step, bool has_prefills, TimeNs interference) {
  Outputs& outputs = OutputsOf(step);
  outputs.Clear();
  if (has_prefills) times_.interference += interference;
  if (decodes_.size() > 0) LaunchDecodes(step, outputs);
  LaunchContexts(step, outputs);
  step.plain = outputs.contexts.empty() && outputs.first.empty() && outputs.last.empty();
  auto& activated = step.record.trtllm.activated;
  activated.insert(activated.end(), activated_.begin(), activated_.end());
  activated_.clear();
}

// ---- Outputs (rules 8, 9, 60 to 62) ----------------------------------------------------------

void TrtllmRank::Apply(Step& step) {
  CatchUp();
  kept_ = 0;
  Outputs& outputs = OutputsOf(step);
  ended_.clear();
  if (!overlap_) Settle();
  Deliver(outputs, step);
  if (overlap_) Settle();
  std::sort(ended_.begin(), ended_.end(),
            [this](JobId a, JobId b) { return At(a).order < At(b).order; });
  if (HasDummy()) DropDummy();
  for (const JobId id : ended_) FinishOne(id, step);
  for (const Output& output : outputs.contexts) {
    if (!tree_ || !IsNow(output) || !At(output.job).admitted) continue;
    const Job& job = At(output.job);
    const std::int64_t computed = output.ends_prompt ? job.prompt : job.pos - 1;
    tree_->Store(output.job, std::max<std::int64_t>(0, computed));
    stuck_ = false;  // somebody may find it
  }
}

// One that a pass behind this step has paused goes on, and makes one token more (rule 39).
void TrtllmRank::End(JobId id) {
  Job& job = At(id);
  if (job.state != State::kContext) return ended_.push_back(id);
  job.end = job.out + 1;
}

void TrtllmRank::Deliver(Outputs& outputs, Step& step) {
  for (const Output& output : outputs.contexts) {
    if (!output.ends_prompt) continue;
    Job& job = At(output.job);
    if (output.previous < 0) {
      machine_.FirstToken(job.request, step);
    } else {
      machine_.NextToken(step, step.end - output.previous);
    }
    if (output.last) End(output.job);
  }
  for (const Output& output : outputs.first) machine_.NextToken(step, step.end - output.previous);
  for (const Output& output : outputs.last) End(output.job);
}

void TrtllmRank::FinishOne(JobId id, Step& step) {
  Job& job = At(id);
  const RequestId request = job.request;
  const std::int64_t made = job.end;
  LeaveGenerating(id);
  Release(id, job.first + made - 1);
  ++job.life;
  seats_.push_back(id);
  --active_;
  prompt_tokens_ -= job.first;
  stuck_ = false;
  machine_.Finish(request, made, step);
}

// ---- Many steps at once ----------------------------------------------------------------------

// While a pass would admit nobody, all that generate have tokens, and nobody ends.
const DecodeRun* TrtllmRank::BeginRun(DecodeRun& run, std::int64_t queued) {
  Prepare();
  const bool full = active_ >= in_.engine.max_num_seqs;
  if (!apart_.empty() || ending_ > 0 || finishes_.empty()) return nullptr;
  if (queued > 0 && !full) return nullptr;
  if (!contexts_.empty() && !stuck_) return nullptr;
  if (!unshown_.empty() || !activated_.empty()) return nullptr;
  pass_.Clear();
  pass_.fitting = decodes_.size();
  run.decodes = &decodes_;
  run.most = run.last = finishes_.TopKey() - decodes_.step() + 1;
  run.closed = full;
  run.comers_blocked = full ? BlockedBy::kSeats : BlockedBy::kNothing;
  run.blocked = !contexts_.empty() ? BlockedBy::kKvBlocks
                : queued > 0       ? BlockedBy::kSeats
                                   : BlockedBy::kNothing;
  run.spare = 0;
  run.kv_unused = decodes_.room();
  return &run;
}

void TrtllmRank::EndsMember(Step& step) {
  CatchUp();
  Outputs& outputs = OutputsOf(step);
  outputs.Clear();
  times_.decoded = step.end;
  EndDecodes(outputs);
  step.plain = false;
}

void TrtllmRank::EndRun() {
  CatchUp();
  times_.decoded = machine_.StartTime();
}

}  // namespace servecast

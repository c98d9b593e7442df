// What SGLang's batches are to the machine: how they are priced and launched, what becomes of their
// outputs, and runs of decodes. See sglang_scheduler.h.
#include <algorithm>

#include "serving/sglang/sglang_scheduler.h"

namespace servecast {

// ---- The batch, for the machine --------------------------------------------------------------

void SglangScheduler::Fill(StepPlan& plan) {
  wasted_ = 0;
  if (batch_.kind != Kind::kExtend) FillDecodes(plan);
  FillExtends(plan);
  const bool steps = plan.shape.decode_seqs > 0;
  plan.kv_unused += steps ? decodes_.unused() : decodes_.room();
}

void SglangScheduler::FillDecodes(StepPlan& plan) {
  plan.shape = decodes_.shape();
  wasted_ = ending_;
  newcomers_.erase(std::remove_if(newcomers_.begin(), newcomers_.end(),
                                  [&](const Output& output) { return !IsNow(output); }),
                   newcomers_.end());
  std::int64_t first = 0;
  for (const Output& output : newcomers_) {
    machine_.CountDelay(plan, At(output.job).last_step, 1);
    first += output.last ? 0 : 1;
  }
  const auto newcomers = static_cast<std::int64_t>(newcomers_.size());
  machine_.CountDelay(plan, times_.decoded, decodes_.size() - newcomers);
  plan.decodes = decodes_.size() - first - wasted_;
}

void SglangScheduler::FillExtends(StepPlan& plan) {
  for (const Extend& extend : batch_.extends) {
    Job& job = At(extend.job);
    const auto r = static_cast<std::size_t>(job.request);
    plan.chunks.push_back(
        {extend.tokens, job.kv - extend.tokens, in_.requests.prompt_tokens[r], extend.ends});
    plan.shape.images += Encoded(job.request, job.kv - extend.tokens, job.kv);
    plan.kv_unused += CeilToPages(job.kv) - job.kv;
    if (job.begun) {
      job.kind = MemberKind::kContinued;
      machine_.CountDelay(plan, job.last_step, 1);
    } else {
      job.kind = in_.results.preemptions[r] > 0 ? MemberKind::kResumed : MemberKind::kNew;
      if (job.kind == MemberKind::kResumed) {
        machine_.CountDelay(plan, in_.results.SetbacksOf(r).last_step, 1);
      }
      Begin(job);
      CountHit(job);
    }
  }
}

// Images that a step encodes for the tokens [from, to) of a prompt.
std::int64_t SglangScheduler::Encoded(RequestId request, std::int64_t from, std::int64_t to) {
  std::int64_t images = 0;
  if (!in_.encodes_images) return images;
  for (const PromptImage& image : in_.requests.ImagesOf(request)) {
    if (image.offset >= to || image.end() <= from) continue;
    images += embeddings_.Encodes(image, image.offset >= from) ? 1 : 0;
  }
  return images;
}

void SglangScheduler::Begin(Job& job) {
  const auto r = static_cast<std::size_t>(job.request);
  const TimeNs start = machine_.StartTime();
  job.begun = true;
  job.admitted = start;
  in_.results.state[r] = RequestState::kRunning;
  if (in_.results.first_scheduled[r] < 0) in_.results.first_scheduled[r] = start;
  if (job.kind != MemberKind::kResumed) return;
  Setbacks& s = in_.results.SetbacksOf(r);
  s.preempted += start - s.preempted_at;
  if (job.out == 0) s.preempted_to_first = s.preempted;
}

void SglangScheduler::CountHit(const Job& job) {
  if (job.kind == MemberKind::kResumed) {
    cached_.resumed_hit_tokens += job.prefix;
    return;
  }
  in_.results.cached_tokens[static_cast<std::size_t>(job.request)] =
      static_cast<std::int32_t>(job.prefix);
  cached_.query_tokens += job.prompt;
  cached_.hit_tokens += job.prefix;
  cached_.query_blocks += job.prompt / page_;
  cached_.hit_blocks += job.prefix / page_;
}

// ---- Decodes ---------------------------------------------------------------------------------

void SglangScheduler::Join(JobId id) {
  Job& job = At(id);
  job.ahead = decodes_.Join(job.kv);
  goals_ += job.max_new + job.prompt - 1;
  ++joined_;
  job.joined_with = job.kv;
  job.joined_in = counts_.passes;
  job.decodes = true;
  job.interference_before = times_.interference;
  const std::int64_t made = job.kv - job.prompt + 1;
  if (made < job.limit) {
    finishes_.Push(job.seat, decodes_.step() + job.limit - made - 1, 0);
  }
  newcomers_.push_back({id, job.life, made >= job.limit, job.token});
}

// Of one whose seat is given back, and whose place among those that end.
void SglangScheduler::Leave(Job& job) {
  decodes_.Leave(job.ahead);
  goals_ -= job.max_new + job.prompt - 1;
  job.decodes = false;
}

void SglangScheduler::CountInterference(Job& job) {
  in_.results.interference[static_cast<std::size_t>(job.request)] +=
      times_.interference - job.interference_before;
}

// The latest token that its client has, or will have from what is launched and not lost.
TimeNs SglangScheduler::LastToken(const Job& job) const {
  const std::int64_t decoded = Kv(job) - job.joined_with - (Pending(job) ? 1 : 0);
  if (decoded > 0) return Pending(job) ? times_.decoded_before : times_.decoded;
  return decoded < 0 ? job.token_before : job.token;
}

// What makes its last token by the step before decodes_.step().
void SglangScheduler::EndDecodes(Outputs& outputs) {
  while (!finishes_.empty() && finishes_.TopKey() < decodes_.step()) {
    const std::int32_t seat = finishes_.TopId();
    const JobId id = seats_.jobs[static_cast<std::size_t>(seat)];
    finishes_.Remove(seat);
    CountInterference(At(id));
    ++ending_;
    outputs.last.push_back({id, At(id).life, true, 0});
  }
  std::sort(outputs.last.begin(), outputs.last.end(),
            [&](const Output& a, const Output& b) { return At(a.job).order < At(b.job).order; });
}

void SglangScheduler::LaunchDecodes(Step& step, Outputs& outputs) {
  step.before = times_.decoded;
  for (std::int64_t i = 0; i < wasted_; ++i) Machine::LoseToken(step, false);
  for (const Output& output : newcomers_) {
    if (!output.last) outputs.first.push_back(output);
  }
  newcomers_.clear();
  decodes_.Step();
  times_.decoded_before = times_.decoded;
  times_.decoded = step.end;
  EndDecodes(outputs);
}

void SglangScheduler::LaunchExtends(const Step& step, Outputs& outputs) {
  for (const Extend& extend : last_.extends) {
    Job& job = At(extend.job);
    job.last_step = step.end;
    if (!extend.ends) continue;
    const bool resumed = in_.results.preemptions[static_cast<std::size_t>(job.request)] > 0;
    job.token_before =
        job.out == 0 ? -1 : in_.scratch.last_token[static_cast<std::size_t>(job.request)];
    job.token = step.end;
    if (resumed && job.out > 0) {
      in_.results.SetbacksOf(static_cast<std::size_t>(job.request)).recompute +=
          step.end - job.admitted;
    }
    const bool last = job.out + 1 >= job.limit;
    if (last) ++ending_;
    outputs.extends.push_back({extend.job, job.life, last, job.token_before});
  }
}

void SglangScheduler::Launched(Step& step, const StepPlan& plan, TimeNs interference) {
  Outputs& outputs = OutputsOf(step);
  outputs.extends.clear();
  outputs.first.clear();
  outputs.last.clear();
  last_decoded_ = plan.shape.decode_seqs > 0;
  times_.launched_until = step.end;
  if (!plan.chunks.empty()) times_.interference += interference;
  for (const Extend& extend : last_.extends) {
    if (plan.encode == 0 || At(extend.job).out > 0) continue;
    in_.results.AddEncode(static_cast<std::size_t>(At(extend.job).request), plan.encode);
  }
  if (last_decoded_) LaunchDecodes(step, outputs);
  LaunchExtends(step, outputs);
  step.plain = outputs.extends.empty() && outputs.first.empty() && outputs.last.empty();
}

// Rules 48, 50 and 58.
void SglangScheduler::Apply(Step& step) {
  HearMachine();
  Outputs& outputs = OutputsOf(step);
  for (const Output& output : outputs.extends) {
    if (IsNow(output)) ExtendDone(output, step);
  }
  for (const Output& output : outputs.first) {
    if (IsNow(output)) machine_.NextToken(step, step.end - output.previous);
  }
  for (const Output& output : outputs.last) {
    if (IsNow(output)) Finish(output, step);
  }
  TellMachine();
}

void SglangScheduler::ExtendDone(const Output& output, Step& step) {
  Job& job = At(output.job);
  if (output.previous < 0) {
    machine_.FirstToken(job.request, step);
  } else {
    machine_.NextToken(step, step.end - output.previous);
  }
  if (output.last) return Finish(output, step);
  CacheUnfinished(job, false);
  if (!job.decodes) job.out = job.kv - job.prompt + 1;
}

void SglangScheduler::Finish(const Output& output, Step& step) {
  Job& job = At(output.job);
  job.kv = Kv(job);
  const RequestId request = job.request;
  if (job.decodes) Leave(job);
  Release(job, true);
  job.out = job.limit;
  job.done = true;
  --ending_;
  --counts_.live;
  machine_.Finish(request, job.limit, step);
}

// ---- Many steps at once ----------------------------------------------------------------------

// While nothing is tried but decodes of all that run, none of which has ended, and memory suffices.
const DecodeRun* SglangScheduler::BeginRun() {
  const bool merged = last_.kind == Kind::kDecode || last_.kind == Kind::kNone;
  if (!merged || chunked_ != kNoJob || running_.empty() || ending_ > 0 || !newcomers_.empty() ||
      finishes_.empty() || static_cast<std::int64_t>(running_.size()) != decodes_.size()) {
    return nullptr;
  }
  const bool preempts =
      options_.enable_priority_scheduling && !options_.disable_priority_preemption;
  if (!waiting_.empty() && (!full_.flag || preempts)) return nullptr;
  DecodeRun& run = run_;
  run.decodes = &decodes_;
  run.most = run.last = finishes_.TopKey() - decodes_.step() + 1;
  run.closed = full_.flag && !preempts;
  run.comers_blocked = full_.reason;
  run.blocked = waiting_.empty() ? BlockedBy::kNothing : full_.reason;
  run.spare = Kept();
  run.kv_unused = decodes_.room();
  run_began_ = decodes_.step();
  last_.Clear();
  last_.kind = Kind::kDecode;
  return &run;
}

// Pages that are the tree's until evicted. Rule 23 asks for a page for each, though few need one.
std::int64_t SglangScheduler::Kept() const {
  const std::int64_t kept = tree_.evictable() / page_;
  return kept == 0 ? 0 : kept + (page_ == 1 ? 0 : decodes_.size());
}

// Rules 22 and 23, but for what is retracted.
bool SglangScheduler::MakeRoomInRun(std::int64_t& spare) {
  HearMachine();
  if (!DecodesFit()) return false;
  MakeRoom(decodes_.size() * page_);
  spare = Kept();
  return true;
}

void SglangScheduler::EndsMember(Step& step) {
  Outputs& outputs = OutputsOf(step);
  outputs.extends.clear();
  outputs.first.clear();
  outputs.last.clear();
  EndDecodes(outputs);
  step.plain = false;
}

void SglangScheduler::EndRun(std::int64_t steps) {
  HearMachine();
  ratio_ = RatioAfter(steps);
  last_decoded_ = true;
  counts_.passes += steps;
  times_.decoded = times_.launched_until = machine_.StartTime();
  if (machine_.in_flight() > 0) times_.decoded_before = machine_.Newest().start;
}

// ---- For others ------------------------------------------------------------------------------

void SglangScheduler::WriteProgress(std::vector<std::int32_t>& generated) const {
  const auto write = [&](const Job& job) {
    if (job.done || job.request == kNoRequest) return;
    generated[static_cast<std::size_t>(job.request)] = static_cast<std::int32_t>(Out(job));
  };
  for (const JobId id : running_) write(At(id));
  for (const JobId id : last_.decoding) write(At(id));
}

const PrefixCacheReport& SglangScheduler::prefix_cache() {
  cached_.evicted_blocks = tree_.evicted() / page_;
  return cached_;
}

void SglangScheduler::Observe(StepRecord& record) const {
  for (const Extend& extend : last_.extends) {
    const Job& job = At(extend.job);
    record.members.push_back(
        {job.request, extend.tokens, job.kv - extend.tokens, job.kind, extend.ends});
  }
  const bool mixed = last_.kind == Kind::kMixed;
  for (const JobId id : mixed ? last_.decoding : running_) {
    if (last_.kind == Kind::kExtend) break;
    record.members.push_back({At(id).request, 1, Kv(At(id)), MemberKind::kContinued, true});
  }
  record.sglang = {
      .new_token_ratio = run_began_ < 0 ? ratio_ : RatioAfter(decodes_.step() - run_began_ + 1),
      .evictable_after_schedule = tree_.evictable(),
      .evictable_after_step = 0,
      .running_batch = static_cast<std::int64_t>(running_.size()),
      .retracted = run_began_ < 0 ? retracted_ : 0,
      .chunked = chunked_ == kNoJob ? kNoRequest : At(chunked_).request,
      .batch_is_full = full_.flag};
}

void SglangScheduler::ObserveAfter(StepRecord& record) const {
  record.sglang.evictable_after_step = tree_.evictable();
}

}  // namespace servecast

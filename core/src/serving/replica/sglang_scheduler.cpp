// See sglang_scheduler.h.
#include "serving/replica/sglang_scheduler.h"

#include <algorithm>

#include "serving/replica/scheduler_setup.h"

namespace servecast {

std::unique_ptr<Scheduler> MakeSglangScheduler(Replica& replica) {
  return std::make_unique<SglangScheduler>(replica);
}

namespace {

// Rule 35.
double FirstRatio(const SglangSpec& o) {
  return std::min(o.init_new_token_ratio * o.schedule_conservativeness, 1.0);
}
double LeastRatio(const SglangSpec& o) {
  return std::min(FirstRatio(o) * o.min_new_token_ratio_factor, 1.0);
}

}  // namespace

SglangScheduler::SglangScheduler(Replica& replica)
    : Scheduler({}),
      replica_(replica),
      in_(replica.input()),
      options_(in_.scheduler.sglang),
      page_(replica.kv().block_size()),
      tree_(page_, options_.radix_eviction_policy, in_.requests, in_.one_of_many),
      free_(replica.kv().total() * page_),
      ratio_(FirstRatio(options_)),
      decodes_(page_),
      finishes_(static_cast<std::int32_t>(in_.engine.max_num_seqs)),
      job_of_seat_(static_cast<std::size_t>(in_.engine.max_num_seqs), kNoJob),
      outputs_(replica.most_in_flight()) {
  for (auto seat = static_cast<std::int32_t>(in_.engine.max_num_seqs); seat > 0;) {
    seats_.push_back(--seat);
  }
}

// ---- Requests --------------------------------------------------------------------------------

// Rule 2.
void SglangScheduler::Enqueue(RequestId request) {
  if (live_ == 0 && replica_.in_flight() == 0 && replica_.now() > launched_until_) EndIdle();
  const auto r = static_cast<std::size_t>(request);
  if (unused_.empty()) {
    unused_.push_back(static_cast<JobId>(jobs_.size()));
    jobs_.emplace_back();
  }
  const JobId id = unused_.back();
  unused_.pop_back();
  Job& job = At(id);
  const std::int64_t life = job.life;
  job = {};
  job.life = life;
  job.request = request;
  job.prompt = in_.requests.prompt_tokens[r];
  job.priority = in_.requests.priority.empty() ? 0 : in_.requests.priority[r];
  const std::int64_t total = replica_.kv().total() * page_;
  // The replica's limit leaves two pages, see scheduler_sglang.cpp.
  const std::int64_t longest = std::min(in_.max_model_len + 2 * page_ - 2 - job.prompt,
                                        total - CeilToPages(job.prompt) - page_ - 1);
  std::int64_t asked = in_.requests.output_tokens[r];
  if (!in_.requests.max_new_tokens.empty()) {
    asked = in_.requests.max_new_tokens[r];
  } else if (options_.max_new_tokens) {
    asked = std::max(asked, *options_.max_new_tokens);
  }
  job.max_new = std::min(asked, longest);
  job.limit = std::min<std::int64_t>(job.max_new, in_.requests.output_tokens[r]);
  job.entry = ++entries_;
  waiting_.push_back(id);
  ++live_;
}

bool SglangScheduler::GiveUp(RequestId) {
  SERVECAST_CHECK(false, "no client gives up with this scheduler");
  return false;
}

void SglangScheduler::Arrive(RequestId, TimeNs) {
  SERVECAST_CHECK(false, "no KV is sent with this scheduler");
}

void SglangScheduler::Recycle(JobId id) {
  ++At(id).life;
  unused_.push_back(id);
}

// Passes without a batch have dropped what had ended. The second of them begins anew with the ratio
// (rule 34), and with the overlap scheduler the next request comes to the second.
void SglangScheduler::EndIdle() {
  for (const JobId id : running_) Recycle(id);
  running_.clear();
  for (const Extend& extend : last_.extends) Recycle(extend.job);
  for (const JobId id : last_.decoding) Recycle(id);
  last_ = {};
  is_full_ = last_decoded_ = false;
  if (replica_.most_in_flight() == 1) ratio_ = FirstRatio(options_);
}

// ---- Memory ----------------------------------------------------------------------------------

// The machine's blocks are those that somebody uses.
void SglangScheduler::TellMachine() {
  KvCache& kv = replica_.kv();
  const std::int64_t more = Available() / page_ - kv.free();
  if (more < 0) {
    kv.Take(-more);
  } else if (more > 0) {
    KvCache::Holding none;
    kv.Release(none, kNoRequest, more, 0, false);
  }
}

// Rule 48.
void SglangScheduler::CacheUnfinished(Job& job, bool of_chunk) {
  const std::int64_t end = job.kv;  // of what was prefilled
  job.prefix = end;
  if (!in_.engine.enable_prefix_caching) return;
  const std::int64_t there = tree_.Insert(job.request, end, TreePriority(job), of_chunk);
  free_ += there - job.owned;  // what others computed meanwhile, too
  const RadixCache::NodeId node = tree_.Find(job.request, end).node;
  job.owned = WholePages(end);
  tree_.Unlock(job.node);
  tree_.Lock(node);
  job.node = node;
}

// Rules 25, 50 and 54.
void SglangScheduler::Release(Job& job, bool keeps) {
  const std::int64_t kv = Kv(job);
  seats_.push_back(job.seat);
  job.seat = -1;
  if (!in_.engine.enable_prefix_caching) {
    free_ += CeilToPages(kv);
    return;
  }
  free_ += CeilToPages(kv) - job.owned;
  if (keeps) {
    const std::int64_t there = tree_.Insert(job.request, kv, TreePriority(job), false);
    free_ -= WholePages(kv) - std::max(there, job.owned);
  }
  tree_.Unlock(job.node);
}

// For lack of memory, or for a more urgent one; so many others run on.
void SglangScheduler::Retract(JobId id, std::int64_t others) {
  Job& job = At(id);
  const auto r = static_cast<std::size_t>(job.request);
  const std::int64_t out = Out(job);
  const bool made_none = job.decodes && Kv(job) == job.joined_with;
  Setbacks& setbacks = in_.results.SetbacksOf(r);
  setbacks.preempted_at = replica_.StartTime();
  setbacks.last_step = made_none ? job.last_step : decoded_;
  in_.scratch.last_token[r] = LastToken(job);
  if (Pending(job)) {  // its token is made for nothing
    const bool newcomer = made_none || Kv(job) == job.joined_with + 1;
    Replica::LoseToken(replica_.Newest(), !newcomer);
  }
  if (finishes_.Has(job.seat)) {
    finishes_.Remove(job.seat);
    CountInterference(job);
  } else {
    --ending_;  // its last token is in flight
  }
  Release(job, false);
  Leave(job);
  MakeRoom(others * options_.retract_decode_steps);
  job.out = out;
  job.prefix = job.owned = job.kv = 0;
  job.node = RadixCache::kRoot;
  job.begun = false;
  ++job.life;
  in_.results.generated[r] = static_cast<std::int32_t>(out);
  replica_.Preempted(job.request);
}

// ---- A pass (rule 1) -------------------------------------------------------------------------

Formed SglangScheduler::Form(StepPlan& plan) {
  ++pass_;
  const bool was_full = is_full_, had_last = last_.kind != Kind::kNone;
  const std::size_t had_running = running_.size();
  run_began_ = -1;
  retracted_ = 0;
  batch_.Clear();
  const bool formed = Schedule(plan);
  TellMachine();
  in_.recorder.BlocksRefused(retracted_);
  if (!waiting_.empty()) plan.blocked = is_full_ || formed ? full_by_ : BlockedBy::kNothing;
  if (plan.blocked == BlockedBy::kKvBlocks) in_.recorder.BlocksRefused(1);
  const bool changed =
      was_full != is_full_ || had_last || !plan.preempted.empty() || had_running != running_.size();
  if (formed) Fill(plan);
  std::swap(last_, batch_);
  if (formed) return Formed::kStep;
  last_decoded_ = false;
  return changed && replica_.in_flight() == 0 ? Formed::kAgain : Formed::kNothing;
}

bool SglangScheduler::Schedule(StepPlan& plan) {
  if (chunked_ != kNoJob && At(chunked_).kv > At(chunked_).prefix) {
    CacheUnfinished(At(chunked_), true);
  }
  Merge();
  return Prefill(plan) || (!running_.empty() && DecodeStep(plan));
}

// Rule 4.
void SglangScheduler::Merge() {
  if (last_.kind != Kind::kExtend && last_.kind != Kind::kMixed) return;
  const std::size_t before = running_.size();
  bool left_out = false;
  const auto merge = [&](JobId id) {
    if (At(id).done) Recycle(id);
    if (At(id).done || id == chunked_ || id == last_.chunk) {
      left_out = true;
    } else {
      running_.push_back(id);
    }
  };
  for (const Extend& extend : last_.extends) merge(extend.job);
  for (const JobId id : last_.decoding) merge(id);
  if (left_out || (before == 0 && !running_.empty())) is_full_ = false;
  for (std::size_t i = before; i < running_.size(); ++i) {
    Job& job = At(running_[i]);
    job.order = ++orders_;
    if (!job.decodes) Join(running_[i]);
  }
}

void SglangScheduler::DropDone() {
  std::size_t kept = 0;
  for (const JobId id : running_) {
    if (At(id).done) {
      Recycle(id);
    } else {
      running_[kept++] = id;
    }
  }
  running_.resize(kept);
}

bool SglangScheduler::DecodesFit() {
  const std::int64_t need = decodes_.due() * page_;
  MakeRoom(need);
  return free_ >= need;
}

// Rule 23.
void SglangScheduler::TakeForDecodes() {
  MakeRoom(decodes_.size() * page_);
  free_ -= decodes_.due() * page_;
  SERVECAST_CHECK(free_ >= 0, "I4: used + free = total KV blocks");
}

// Rules 21 and 22.
bool SglangScheduler::DecodeStep(StepPlan& plan) {
  const std::size_t before = running_.size();
  if (static_cast<std::int64_t>(before) > decodes_.size()) DropDone();
  if (running_.empty()) {
    is_full_ = false;
    return false;
  }
  if (DecodesFit()) {
    ratio_ = RatioAfter(1);
  } else {
    RetractSome(plan);
  }
  if (running_.size() < before) is_full_ = false;
  if (running_.empty()) return false;
  batch_.kind = Kind::kDecode;
  TakeForDecodes();
  return true;
}

// Rules 24 to 27.
void SglangScheduler::RetractSome(StepPlan& plan) {
  const bool by_priority = options_.retraction_policy == SglangRetraction::kPriority &&
                           options_.version != SglangVersion::k059;
  std::stable_sort(running_.begin(), running_.end(), [&](JobId a, JobId b) {
    const Job &one = At(a), &other = At(b);
    if (by_priority && one.priority != other.priority) return Urgency(one) > Urgency(other);
    if (Out(one) != Out(other)) return Out(one) > Out(other);
    return one.prompt < other.prompt;
  });
  std::vector<JobId> retracted;
  while (!running_.empty() && (retracted.empty() || !DecodesFit())) {
    // Beside an unfinished prompt even the last one may have to go.
    SERVECAST_CHECK(running_.size() > 1 || chunked_ != kNoJob, "I8: the only request has room");
    const JobId id = running_.back();
    running_.pop_back();
    retracted.push_back(id);
    Retract(id, static_cast<std::int64_t>(running_.size()));
  }
  std::int64_t out = 0, most = 0;
  for (const JobId id : running_) {
    At(id).order = ++orders_;
    out += Out(At(id)) + options_.retract_decode_steps;
    most += At(id).max_new;
  }
  retracted_ = static_cast<std::int64_t>(retracted.size());
  if (!running_.empty()) {
    ratio_ = std::min(1.0, static_cast<double>(out) / static_cast<double>(most + 1));
  }
  for (const JobId id : retracted) {
    plan.preempted.push_back(At(id).request);
    At(id).entry = ++entries_;
    waiting_.push_back(id);
  }
}

double SglangScheduler::RatioAfter(std::int64_t decode_steps) const {
  const double least = LeastRatio(options_);
  const double decay =
      (FirstRatio(options_) - least) / static_cast<double>(options_.new_token_ratio_decay_steps);
  double ratio = ratio_;
  for (std::int64_t i = 0; i < decode_steps; ++i) {
    const double next = std::max(ratio - decay, least);
    if (next == ratio) break;
    ratio = next;
  }
  return ratio;
}

// ---- The batch, for the machine --------------------------------------------------------------

void SglangScheduler::CountDelay(StepPlan& plan, TimeNs ready, std::int64_t requests) {
  const TimeNs start = replica_.StartTime();
  if (requests <= 0) return;
  if (ready >= start) {
    plan.in_turn += requests;
  } else {
    in_.recorder.StepDelay(start, start - ready, requests);
  }
}

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
    CountDelay(plan, At(output.job).last_step, 1);
    first += output.last ? 0 : 1;
  }
  const auto newcomers = static_cast<std::int64_t>(newcomers_.size());
  CountDelay(plan, decoded_, decodes_.size() - newcomers);
  plan.decodes = decodes_.size() - first - wasted_;
}

void SglangScheduler::FillExtends(StepPlan& plan) {
  for (const Extend& extend : batch_.extends) {
    Job& job = At(extend.job);
    const auto r = static_cast<std::size_t>(job.request);
    plan.chunks.push_back(
        {extend.tokens, job.kv - extend.tokens, in_.requests.prompt_tokens[r], extend.ends});
    plan.kv_unused += CeilToPages(job.kv) - job.kv;
    if (job.begun) {
      job.kind = MemberKind::kContinued;
      CountDelay(plan, job.last_step, 1);
    } else {
      job.kind = in_.results.preemptions[r] > 0 ? MemberKind::kResumed : MemberKind::kNew;
      if (job.kind == MemberKind::kResumed) {
        CountDelay(plan, in_.results.SetbacksOf(r).last_step, 1);
      }
      Begin(job);
      CountHit(job);
    }
  }
}

void SglangScheduler::Begin(Job& job) {
  const auto r = static_cast<std::size_t>(job.request);
  const TimeNs start = replica_.StartTime();
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
  job.joined_with = job.kv;
  job.joined_in = pass_;
  job.decodes = true;
  job.interference_before = interference_;
  const std::int64_t made = job.kv - job.prompt + 1;
  if (made < job.limit) {
    finishes_.Push(job.seat, decodes_.step() + job.limit - made - 1, 0);
  }
  newcomers_.push_back({id, job.life, made >= job.limit, job.token});
}

// Of one whose seat is given back, and whose place among those that end.
void SglangScheduler::Leave(Job& job) {
  decodes_.Leave(job.ahead);
  job.decodes = false;
}

void SglangScheduler::CountInterference(Job& job) {
  in_.results.interference[static_cast<std::size_t>(job.request)] +=
      interference_ - job.interference_before;
}

// The latest token that its client has, or will have from what is launched and not lost.
TimeNs SglangScheduler::LastToken(const Job& job) const {
  const std::int64_t decoded = Kv(job) - job.joined_with - (Pending(job) ? 1 : 0);
  if (decoded > 0) return Pending(job) ? decoded_before_ : decoded_;
  return decoded < 0 ? job.token_before : job.token;
}

// What makes its last token by the step before decodes_.step().
void SglangScheduler::EndDecodes(Outputs& outputs) {
  while (!finishes_.empty() && finishes_.TopKey() < decodes_.step()) {
    const std::int32_t seat = finishes_.TopId();
    const JobId id = job_of_seat_[static_cast<std::size_t>(seat)];
    finishes_.Remove(seat);
    CountInterference(At(id));
    ++ending_;
    outputs.last.push_back({id, At(id).life, true, 0});
  }
  std::sort(outputs.last.begin(), outputs.last.end(),
            [&](const Output& a, const Output& b) { return At(a.job).order < At(b.job).order; });
}

void SglangScheduler::LaunchDecodes(Step& step, Outputs& outputs) {
  step.before = decoded_;
  for (std::int64_t i = 0; i < wasted_; ++i) Replica::LoseToken(step, false);
  for (const Output& output : newcomers_) {
    if (!output.last) outputs.first.push_back(output);
  }
  newcomers_.clear();
  decodes_.Step();
  decoded_before_ = decoded_;
  decoded_ = step.end;
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
  launched_until_ = step.end;
  if (!plan.chunks.empty()) interference_ += interference;
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
    if (IsNow(output)) replica_.NextToken(step, step.end - output.previous);
  }
  for (const Output& output : outputs.last) {
    if (IsNow(output)) Finish(output, step);
  }
  TellMachine();
}

void SglangScheduler::ExtendDone(const Output& output, Step& step) {
  Job& job = At(output.job);
  if (output.previous < 0) {
    replica_.FirstToken(job.request, step);
  } else {
    replica_.NextToken(step, step.end - output.previous);
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
  --live_;
  replica_.Finish(request, job.limit, step);
}

// ---- Many steps at once ----------------------------------------------------------------------

// While nothing is tried but decodes of all that run, none of which has ended, and memory is free
// without an eviction.
const DecodeRun* SglangScheduler::BeginRun() {
  const bool merged = last_.kind == Kind::kDecode || last_.kind == Kind::kNone;
  if (!merged || chunked_ != kNoJob || running_.empty() || ending_ > 0 || !newcomers_.empty() ||
      finishes_.empty() || static_cast<std::int64_t>(running_.size()) != decodes_.size()) {
    return nullptr;
  }
  const bool preempts =
      options_.enable_priority_scheduling && !options_.disable_priority_preemption;
  if (!waiting_.empty() && (!is_full_ || preempts)) return nullptr;
  DecodeRun& run = run_;
  run.decodes = &decodes_;
  run.most = run.last = finishes_.TopKey() - decodes_.step() + 1;
  run.closed = is_full_ && !preempts;
  run.comers_blocked = full_by_;
  run.blocked = waiting_.empty() ? BlockedBy::kNothing : full_by_;
  // Rule 23 asks for a page for each, though few need one.
  const std::int64_t kept = tree_.evictable() / page_;
  run.spare = kept == 0 ? 0 : kept + (page_ == 1 ? 0 : decodes_.size());
  run.kv_unused = decodes_.room();
  run_began_ = decodes_.step();
  last_.Clear();
  last_.kind = Kind::kDecode;
  return &run;
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
  pass_ += steps;
  decoded_ = launched_until_ = replica_.StartTime();
  if (replica_.in_flight() > 0) decoded_before_ = replica_.Newest().start;
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
      .batch_is_full = is_full_};
}

void SglangScheduler::ObserveAfter(StepRecord& record) const {
  record.sglang.evictable_after_step = tree_.evictable();
}

}  // namespace servecast

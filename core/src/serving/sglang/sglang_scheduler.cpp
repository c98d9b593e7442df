// See sglang_scheduler.h.
#include "serving/sglang/sglang_scheduler.h"

#include <algorithm>

#include "serving/replica/scheduler_setup.h"

namespace servecast {

std::unique_ptr<Scheduler> MakeSglangScheduler(Machine& machine) {
  return std::make_unique<SglangScheduler>(machine);
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

SglangScheduler::SglangScheduler(Machine& machine)
    : Scheduler({}),
      machine_(machine),
      in_(machine.input()),
      options_(in_.scheduler.sglang),
      page_(machine.kv().block_size()),
      tree_(page_, options_.radix_eviction_policy, in_.requests, in_.one_of_many),
      free_(machine.kv().total() * page_),
      waiting_(OrdersByKeys()),
      ratio_(FirstRatio(options_)),
      decodes_(page_),
      finishes_(static_cast<std::int32_t>(in_.engine.max_num_seqs)),
      outputs_(machine.most_in_flight()),
      embeddings_(in_.setup.kept_embeds) {
  seats_.jobs.assign(static_cast<std::size_t>(in_.engine.max_num_seqs), kNoJob);
  for (auto seat = static_cast<std::int32_t>(in_.engine.max_num_seqs); seat > 0;) {
    seats_.free.push_back(--seat);
  }
}

// ---- Requests --------------------------------------------------------------------------------

// Rule 2.
void SglangScheduler::Enqueue(RequestId request) {
  if (counts_.live == 0 && machine_.in_flight() == 0 && machine_.now() > times_.launched_until)
    EndIdle();
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
  // In whole pages, unless it was said in tokens (rule 55).
  std::int64_t total = machine_.kv().total() * page_;
  const auto& said = options_.max_total_tokens;
  if (said && WholePages(*said) == total) total = *said;
  // The replica's limit leaves two pages, see scheduler_sglang.cpp.
  const std::int64_t longest = in_.max_model_len + 2 * page_ - 2 - job.prompt;
  const std::int64_t spared = options_.version == SglangVersion::k059
                                  ? longest
                                  : total - CeilToPages(job.prompt) - page_ - 1;
  std::int64_t asked = in_.requests.output_tokens[r];
  if (!in_.requests.max_new_tokens.empty()) {
    asked = in_.requests.max_new_tokens[r];
  } else if (options_.max_new_tokens) {
    asked = std::max(asked, *options_.max_new_tokens);
  }
  job.max_new = std::min({asked, longest, spared});
  job.limit = std::min<std::int64_t>(job.max_new, in_.requests.output_tokens[r]);
  loose_ = loose_ || job.max_new != job.limit || job.max_new > options_.clip_max_new_tokens;
  job.entry = ++counts_.entries;
  Wait(id);
  ++counts_.live;
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
  full_.flag = last_decoded_ = false;
  if (machine_.most_in_flight() == 1) ratio_ = FirstRatio(options_);
}

// ---- Memory ----------------------------------------------------------------------------------

// The machine's blocks are those that somebody uses.
void SglangScheduler::TellMachine() {
  KvCache& kv = machine_.kv();
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
  const auto [there, node] = tree_.Insert(job.request, end, TreePriority(job), of_chunk);
  free_ += there - job.owned;  // what others computed meanwhile, too
  tree_.Touch(node);           // SGLang looks it up again
  job.owned = WholePages(end);
  tree_.MoveLock(job.node, node);
  job.node = node;
}

// Rules 25, 50 and 54.
void SglangScheduler::Release(Job& job, bool keeps) {
  const std::int64_t kv = Kv(job);
  seats_.free.push_back(job.seat);
  job.seat = -1;
  if (!in_.engine.enable_prefix_caching) {
    free_ += CeilToPages(kv);
    return;
  }
  free_ += CeilToPages(kv) - job.owned;
  if (keeps) {
    const std::int64_t there = tree_.Insert(job.request, kv, TreePriority(job), false).tokens;
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
  setbacks.preempted_at = machine_.StartTime();
  setbacks.last_step = made_none ? job.last_step : times_.decoded;
  in_.scratch.last_token[r] = LastToken(job);
  if (Pending(job)) {  // its token is made for nothing
    const bool newcomer = made_none || Kv(job) == job.joined_with + 1;
    Machine::LoseToken(machine_.Newest(), !newcomer);
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
  machine_.Preempted(job.request);
}

// ---- A pass (rule 1) -------------------------------------------------------------------------

Formed SglangScheduler::Form(StepPlan& plan) {
  ++counts_.passes;
  const bool was_full = full_.flag, had_last = last_.kind != Kind::kNone;
  const std::size_t had_running = running_.size();
  run_began_ = -1;
  retracted_ = joined_ = 0;
  batch_.Clear();
  const bool formed = Schedule(plan);
  TellMachine();
  in_.recorder->BlocksRefused(retracted_);
  if (!waiting_.empty()) plan.blocked = full_.flag || formed ? full_.reason : BlockedBy::kNothing;
  if (plan.blocked == BlockedBy::kKvBlocks) in_.recorder->BlocksRefused(1);
  const bool changed = was_full != full_.flag || had_last || !plan.preempted.empty() ||
                       had_running != running_.size();
  if (formed) Fill(plan);
  std::swap(last_, batch_);
  if (formed) return Formed::kStep;
  last_decoded_ = false;
  return changed && machine_.in_flight() == 0 ? Formed::kAgain : Formed::kNothing;
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
  if (left_out || (before == 0 && !running_.empty())) full_.flag = false;
  for (std::size_t i = before; i < running_.size(); ++i) {
    Job& job = At(running_[i]);
    job.order = ++counts_.orders;
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
    full_.flag = false;
    return false;
  }
  if (DecodesFit()) {
    ratio_ = RatioAfter(1);
  } else {
    RetractSome(plan);
  }
  if (running_.size() < before) full_.flag = false;
  if (running_.empty()) return false;
  batch_.kind = Kind::kDecode;
  TakeForDecodes();
  return true;
}

// Rule 24. Mostly they are in order, as who came first has made the most.
void SglangScheduler::SortToKeep() {
  const bool by_priority = options_.retraction_policy == SglangRetraction::kPriority &&
                           options_.version != SglangVersion::k059;
  struct Kept {
    std::int64_t urgency, out, prompt;
    JobId job;
  };
  std::vector<Kept> kept;
  kept.reserve(running_.size());
  for (const JobId id : running_) {
    const Job& job = At(id);
    kept.push_back({by_priority ? Urgency(job) : 0, Out(job), job.prompt, id});
  }
  const auto before = [](const Kept& one, const Kept& other) {
    if (one.urgency != other.urgency) return one.urgency > other.urgency;
    if (one.out != other.out) return one.out > other.out;
    return one.prompt < other.prompt;
  };
  if (std::is_sorted(kept.begin(), kept.end(), before)) return;
  std::stable_sort(kept.begin(), kept.end(), before);
  for (std::size_t i = 0; i < kept.size(); ++i) running_[i] = kept[i].job;
}

// Rules 24 to 27.
void SglangScheduler::RetractSome(StepPlan& plan) {
  SortToKeep();
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
    At(id).order = ++counts_.orders;
    out += Out(At(id)) + options_.retract_decode_steps;
    most += At(id).max_new;
  }
  retracted_ = static_cast<std::int64_t>(retracted.size());
  if (!running_.empty()) {
    ratio_ = std::min(1.0, static_cast<double>(out) / static_cast<double>(most + 1));
  }
  for (const JobId id : retracted) {
    plan.preempted.push_back(At(id).request);
    At(id).entry = ++counts_.entries;
    Wait(id);
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

}  // namespace servecast

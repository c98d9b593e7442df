// Which waiting requests a prefill batch takes: SGLang's order of the queue, its budget, and
// preemption by priority (rules 6 to 20 and 28 to 37). See sglang_scheduler.h.
#include <algorithm>
#include <map>

#include "serving/sglang/sglang_scheduler.h"

namespace servecast {

// ---- The order of the queue (rules 29 to 33) -------------------------------------------------

void SglangScheduler::Wait(JobId id) {
  const Job& job = At(id);
  const bool longest = options_.schedule_policy == SglangQueue::kLof;
  waiting_.Push(id, {options_.enable_priority_scheduling ? -Urgency(job) : 0,
                     longest ? -job.max_new : 0, job.entry});
}

void SglangScheduler::SortWaiting() {
  if (!OrdersByTree()) return;
  const SglangQueue policy = options_.schedule_policy;
  if (policy == SglangQueue::kDfsWeight || waiting_.size() <= 128) {
    policy == SglangQueue::kLpm ? SortByPrefix() : SortByTree();
  }
}

// Looks all up. `late`: what one before them in the queue will have computed, if they wait.
void SglangScheduler::MatchWaiting(std::vector<JobId>& late) {
  RadixCache scratch(1, RadixEviction::kLru, in_.requests, true);
  for (const JobId id : waiting_.listed()) {
    Job& job = At(id);
    const RadixCache::Match match = tree_.Find(job.request, job.known());
    job.prefix = match.tokens;
    if (match.tokens > options_.in_batch_check_threshold) continue;
    const std::int64_t shared = scratch.Find(job.request, job.known()).tokens;
    if (shared >= options_.in_batch_deprioritize_threshold) {
      late.push_back(id);
    } else {
      scratch.Insert(job.request, job.known(), 0, false);
    }
  }
}

void SglangScheduler::SortByPrefix() {
  std::vector<JobId> late;
  MatchWaiting(late);
  std::vector<std::pair<std::pair<bool, std::int64_t>, JobId>> keyed;
  std::size_t next_late = 0;
  const bool whole = options_.version == SglangVersion::k059;
  for (const JobId id : waiting_.listed()) {
    const bool is_late = next_late < late.size() && late[next_late] == id;
    if (is_late) ++next_late;
    const Job& job = At(id);
    const std::int64_t hit = whole ? job.prefix : std::min(job.prefix, job.known() - 1);
    keyed.push_back({{is_late, is_late ? 0 : -hit}, id});
  }
  std::stable_sort(keyed.begin(), keyed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < keyed.size(); ++i) waiting_.listed()[i] = keyed[i].second;
}

// The tree's post-order, children with the most requests below first. Those that the last pass left
// in a node are still there as long as its stamp is the same, and are one lookup.
void SglangScheduler::SortByTree() {
  struct Weighed {
    std::size_t weight = 0;
    std::vector<RadixCache::NodeId> children;
    std::list<JobId> own;
  };
  std::map<RadixCache::NodeId, Weighed> nodes;
  const auto look_up = [&](JobId id) {
    Job& job = At(id);
    const RadixCache::Match match = tree_.Find(job.request, job.known());
    tree_.Forget(job.awaited);
    job.awaited = tree_.Await(match.tokens);
    nodes[match.node].own.push_back(id);
  };
  std::deque<Waiting::Matched>& matched = waiting_.matched();
  for (Waiting::Matched& there : matched) {
    if (tree_.Stamp(there.node) == there.stamp) {
      tree_.Touch(there.node);
      std::list<JobId>& own = nodes[there.node].own;
      own.splice(own.end(), there.jobs);
    } else {
      for (const JobId id : there.jobs) look_up(id);
    }
  }
  for (const JobId id : waiting_.listed()) look_up(id);
  waiting_.AllMatched();
  std::vector<std::pair<RadixCache::NodeId, std::size_t>> ends;
  for (const auto& [node, here] : nodes) ends.emplace_back(node, here.own.size());
  for (auto [node, jobs] : ends) {
    for (; node != RadixCache::kRoot; node = tree_.Parent(node)) {
      Weighed& here = nodes[node];
      if (here.weight == 0) nodes[tree_.Parent(node)].children.push_back(node);
      here.weight += jobs;
    }
  }
  const auto before = [&](RadixCache::NodeId a, RadixCache::NodeId b) {
    const std::size_t one = nodes[a].weight, other = nodes[b].weight;
    return one != other ? one > other : tree_.Place(a) < tree_.Place(b);
  };
  matched.clear();
  std::vector<std::pair<RadixCache::NodeId, std::size_t>> path = {{RadixCache::kRoot, 0}};
  while (!path.empty()) {
    auto& [node, next] = path.back();
    Weighed& here = nodes[node];
    if (next == 0) std::sort(here.children.begin(), here.children.end(), before);
    if (next < here.children.size()) {
      path.emplace_back(here.children[next++], 0);
      continue;
    }
    if (!here.own.empty()) matched.push_back({node, tree_.Stamp(node), std::move(here.own)});
    path.pop_back();
  }
}

// ---- The budget (rules 12 to 19) -------------------------------------------------------------

void SglangScheduler::StartBudget() {
  const std::int64_t mixed = mixes() ? static_cast<std::int64_t>(running_.size()) : 0;
  // What SGLang adds up request by request is at once a product, but for the rounding: less than a
  // unit in the last place of 2^32 each.
  const bool all = machine_.in_flight() > 0 && last_decoded_;
  const std::int64_t pending = all ? decodes_.size() : machine_.in_flight() > 0 ? joined_ : 0;
  const double estimate = static_cast<double>(goals_ - decodes_.context() + pending) * ratio_;
  budget_.mixed = budget_.current = mixed;
  budget_.total = static_cast<double>(mixed) + estimate;
  budget_.unsure = 1e-6 * static_cast<double>(running_.size() + 64);
  budget_.added.clear();
  if (loose_ || budget_.total > 1e9 || Available() > 1'000'000'000) SumExactly();
  budget_.input = options_.max_prefill_tokens - mixed;
  budget_.chunk = in_.engine.max_num_batched_tokens - mixed;
}

void SglangScheduler::SumExactly() {
  double estimate = 0;
  for (const JobId id : running_) estimate += Left(At(id));
  counts_.summed += static_cast<std::int64_t>(running_.size());
  budget_.total = static_cast<double>(budget_.mixed) + estimate;
  for (const std::int64_t tokens : budget_.added) budget_.total += static_cast<double>(tokens);
  budget_.unsure = 0;
}

double SglangScheduler::TotalLeft() {
  if (budget_.unsure > 0) SumExactly();
  return static_cast<double>(Available()) - budget_.total;
}

// Whether so many tokens are all that is left, or more.
bool SglangScheduler::Reaches(std::int64_t tokens) {
  const double beyond =
      static_cast<double>(tokens) - (static_cast<double>(Available()) - budget_.total);
  if (std::max(beyond, -beyond) > budget_.unsure) return beyond > 0;
  return static_cast<double>(tokens) >= TotalLeft();
}

void SglangScheduler::Add(JobId id, std::int64_t end, std::int64_t charged, std::int64_t reserved) {
  Job& job = At(id);
  batch_.extends.push_back({id, end - job.prefix, end == job.fill});
  job.kv = end;
  charged = CeilToPages(charged);
  const std::int64_t spare = options_.version == SglangVersion::k059 ? 0 : page_;
  budget_.total += static_cast<double>(charged + reserved + spare);
  budget_.added.push_back(charged + reserved + spare);
  if (budget_.unsure > 0) budget_.unsure += 1e-6;
  budget_.current += charged + spare;
  budget_.input -= charged;
  budget_.chunk -= charged;
}

SglangScheduler::Verdict SglangScheduler::AfterAdding() {
  if (Reaches(0) || CurrentLeft() <= 0) return Verdict::kMemory;
  const bool spent =
      budget_.input <= 0 || (in_.engine.enable_chunked_prefill && budget_.chunk <= 0);
  return spent ? Verdict::kStop : Verdict::kGo;
}

// What the unfinished prompt goes on with, whatever the budget says (rule 16).
std::int64_t SglangScheduler::NextOfChunked() {
  const Job& job = At(chunked_);
  std::int64_t most = std::min(budget_.chunk, static_cast<std::int64_t>(TotalLeft()));
  if (most <= 0) most = budget_.chunk;
  return std::min(job.known() - job.prefix, most);
}

// Where memory has no room for it SGLang stops with an error; here it waits until decodes have
// ended, or were retracted.
bool SglangScheduler::ChunkedFits() {
  const Job& job = At(chunked_);
  const std::int64_t tokens = NextOfChunked();
  const std::int64_t taken = CeilToPages(job.prefix + tokens) - CeilToPages(job.prefix);
  return tokens > 0 && taken <= Available();
}

void SglangScheduler::AddChunked() {
  Job& job = At(chunked_);
  const std::int64_t tokens = NextOfChunked();
  job.fill = job.known();
  const bool cut = job.prefix + tokens < job.fill;
  Add(chunked_, job.prefix + tokens, tokens, cut ? 0 : Clip(job.max_new));
  if (!cut) chunked_ = kNoJob;
}

SglangScheduler::Verdict SglangScheduler::Test(JobId id) {
  Job& job = At(id);
  job.fill = job.known();
  job.prefix = 0;
  job.node = RadixCache::kRoot;
  if (in_.engine.enable_prefix_caching) {
    const RadixCache::Match match = tree_.Find(job.request, job.fill - 1);
    job.prefix = match.tokens;
    job.node = match.node;
  }
  job.owned = job.prefix;
  const auto added = static_cast<std::int64_t>(batch_.extends.size());
  if (options_.prefill_max_requests && added >= *options_.prefill_max_requests) {
    return Verdict::kStop;
  }
  const bool by_states = options_.ignore_eos && !in_.engine.enable_prefix_caching;
  const auto test = [&] { return by_states ? TestIgnoringEos(id) : TestPlain(id); };
  const Verdict verdict = test();
  if (verdict != Verdict::kMemory || !IsAlone()) return verdict;
  // Rule 2 let it ask for more than is ever admitted, and SGLang waits for ever.
  job.max_new = machine_.kv().total() * page_ - job.prompt - 2 * page_;
  job.limit = std::min(job.limit, job.max_new);
  loose_ = loose_ || job.max_new != job.limit;
  budget_.states.clear();
  budget_.has_states = false;
  return test();
}

// Rule 13.
SglangScheduler::Verdict SglangScheduler::TestPlain(JobId id) {
  const Job& job = At(id);
  const std::int64_t rest = job.fill - job.prefix;
  const std::int64_t spare = options_.version == SglangVersion::k0516 ? page_ : 0;
  const std::int64_t total = rest + Clip(std::max<std::int64_t>(job.max_new - job.out, 0)) + spare;
  if (Reaches(total)) return Verdict::kMemory;
  if (!in_.engine.enable_chunked_prefill && !batch_.extends.empty() &&
      CeilToPages(rest) >= budget_.input) {
    return Verdict::kStop;
  }
  const std::size_t before = batch_.extends.size();
  tree_.Lock(job.node);
  const Verdict verdict = AddPlain(id, total);
  if (batch_.extends.size() == before) tree_.Unlock(job.node);
  return verdict;
}

SglangScheduler::Verdict SglangScheduler::AddPlain(JobId id, std::int64_t total) {
  const Job& job = At(id);
  if (Reaches(total)) return Verdict::kMemory;
  const std::int64_t size = CeilToPages(job.fill - job.prefix);
  if (!in_.engine.enable_chunked_prefill || size <= budget_.chunk) {
    Add(id, job.fill, size, Clip(job.max_new));
    return AfterAdding();
  }
  std::int64_t tokens = WholePages(std::max<std::int64_t>(budget_.chunk, 0));
  if (tokens > 0) tokens = WholePages(job.prefix + tokens) - job.prefix;
  if (tokens <= 0) return Verdict::kStop;
  budget_.new_chunk = id;
  Add(id, job.prefix + tokens, tokens, 0);
  return AfterAdding();
}

void SglangScheduler::AddState(const Job& job, std::size_t at) {
  const std::int64_t out = Out(job);
  if (job.max_new <= out) return;
  budget_.states.insert(budget_.states.begin() + static_cast<std::ptrdiff_t>(at),
                        {job.max_new - out, job.prompt + out});
}

// Whether memory would run out before enough of the requests had ended, each of which makes all its
// tokens (rule 19).
bool SglangScheduler::RunsOut(const Job& job) {
  if (!budget_.has_states) {
    budget_.has_states = true;
    AddState(job, budget_.states.size());
    for (const JobId id : running_) AddState(At(id), budget_.states.size());
    for (const Extend& extend : batch_.extends) AddState(At(extend.job), budget_.states.size());
    std::stable_sort(budget_.states.begin(), budget_.states.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  } else {
    std::size_t at = 0;
    while (at + 1 < budget_.states.size() && job.max_new - job.out > budget_.states[at].first) ++at;
    AddState(job, at);
  }
  const std::int64_t left = Available() - budget_.current - CeilToPages(job.fill);
  std::int64_t freed = 0;
  auto others = static_cast<std::int64_t>(budget_.states.size());
  for (const auto& [to_come, held] : budget_.states) {
    if (left + freed - to_come * others <= others) return true;
    freed += held;
    --others;
  }
  return false;
}

SglangScheduler::Verdict SglangScheduler::TestIgnoringEos(JobId id) {
  const Job& job = At(id);
  const auto size = static_cast<double>(CeilToPages(job.fill));
  if (size > std::min(CurrentLeft(), TotalLeft()) || RunsOut(job)) return Verdict::kMemory;
  if (!in_.engine.enable_chunked_prefill || job.fill <= budget_.chunk) {
    Add(id, job.fill, job.fill, Clip(job.max_new));
  } else if (budget_.chunk <= 0) {
    return Verdict::kStop;
  } else {
    budget_.new_chunk = id;
    Add(id, budget_.chunk, budget_.chunk, 0);
  }
  return AfterAdding();
}

// ---- Preemption by priority (rules 36 and 37) ------------------------------------------------

bool SglangScheduler::PreemptFor(const Job& job) {
  std::vector<JobId> candidates;
  for (const JobId id : running_) {
    if (!At(id).done) candidates.push_back(id);
  }
  std::stable_sort(candidates.begin(), candidates.end(), [&](JobId a, JobId b) {
    return std::pair(Urgency(At(a)), -At(a).entry) < std::pair(Urgency(At(b)), -At(b).entry);
  });
  double need = static_cast<double>(job.fill - job.prefix + Clip(job.max_new)) - TotalLeft();
  std::size_t victims = 0;
  for (const JobId id : candidates) {
    const std::int64_t more = Urgency(job) - Urgency(At(id));
    if (more <= options_.priority_scheduling_preemption_threshold) break;
    ++victims;
    need -= Left(At(id));
    if (need <= 0) break;
  }
  if (victims == 0 || need > 0) return false;
  candidates.resize(victims);
  auto left = static_cast<std::int64_t>(running_.size());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    const JobId id = running_[i];
    if (std::find(candidates.begin(), candidates.end(), id) == candidates.end()) {
      running_[kept++] = id;
      continue;
    }
    budget_.total -= Left(At(id));
    Retract(id, --left);
  }
  running_.resize(kept);
  budget_.preempted.insert(budget_.preempted.end(), candidates.begin(), candidates.end());
  return true;
}

// ---- A prefill batch (rules 6 to 11, 15 and 20) ----------------------------------------------

bool SglangScheduler::Prefill(StepPlan& plan) {
  const bool preempts =
      options_.enable_priority_scheduling && !options_.disable_priority_preemption;
  if (preempts) full_.flag = false;
  if ((full_.flag || waiting_.empty()) && chunked_ == kNoJob) return false;
  if (Room() <= 0 && chunked_ == kNoJob && !preempts) {
    full_.flag = true;
    full_.reason = BlockedBy::kSeats;
    return false;
  }
  StartBudget();
  const bool goes_on = chunked_ != kNoJob;
  if (goes_on && !running_.empty() && !ChunkedFits()) return false;
  SortWaiting();
  budget_.states.clear();
  budget_.preempted.clear();
  budget_.has_states = false;
  budget_.new_chunk = kNoJob;
  if (goes_on) AddChunked();
  Admit();
  for (const JobId id : budget_.preempted) {
    plan.preempted.push_back(At(id).request);
    At(id).entry = ++counts_.entries;
    Wait(id);
  }
  if (batch_.extends.empty()) {
    machine_.VictimsLost(static_cast<std::int64_t>(budget_.preempted.size()));  // rule 38
    return false;
  }
  TakePrefill();
  return true;
}

// The first that is not added ends it.
void SglangScheduler::Admit() {
  const bool preempts =
      options_.enable_priority_scheduling && !options_.disable_priority_preemption;
  while (!waiting_.empty()) {
    const JobId id = waiting_.front();
    if (static_cast<std::int64_t>(batch_.extends.size()) >= Room()) {
      full_.flag = true;
      full_.reason = BlockedBy::kSeats;
    }
    if (full_.flag && !(preempts && PreemptFor(At(id)))) return;
    const std::size_t before = batch_.extends.size();
    const Verdict verdict = Test(id);
    if (batch_.extends.size() > before) {
      tree_.Forget(std::exchange(At(id).awaited, -1));
      waiting_.Pop();
    } else if (waiting_.by_keys()) {  // it may ask for less now
      waiting_.Pop();
      Wait(id);
    }
    if (verdict == Verdict::kGo) continue;
    if (verdict == Verdict::kMemory) full_.flag = true;
    full_.reason = verdict == Verdict::kMemory ? BlockedBy::kKvBlocks : BlockedBy::kTokenBudget;
    return;
  }
}

void SglangScheduler::TakePrefill() {
  if (budget_.new_chunk != kNoJob) chunked_ = budget_.new_chunk;
  batch_.kind = Kind::kExtend;
  batch_.chunk = chunked_;
  std::int64_t tokens = 0, taken = 0;
  for (const Extend& extend : batch_.extends) {
    const Job& job = At(extend.job);
    tokens += extend.tokens;
    taken += CeilToPages(job.kv) - CeilToPages(job.prefix);
  }
  const auto members = static_cast<std::int64_t>(batch_.extends.size());
  MakeRoom(page_ == 1 ? tokens : tokens + members * page_);
  free_ -= taken;
  SERVECAST_CHECK(free_ >= 0, "I4: used + free = total KV blocks");
  for (Extend& extend : batch_.extends) {
    Job& job = At(extend.job);
    extend.ends = extend.job != chunked_;
    if (job.seat >= 0) continue;
    job.seat = seats_.free.back();
    seats_.free.pop_back();
    seats_.jobs[static_cast<std::size_t>(job.seat)] = extend.job;
  }
  if (mixes()) MixIn();
}

// Rule 28; where memory has no room for the decodes SGLang stops with an error, and here they wait.
void SglangScheduler::MixIn() {
  DropDone();
  if (running_.empty() || Available() < decodes_.due() * page_) return;
  TakeForDecodes();
  batch_.kind = Kind::kMixed;
  for (const JobId id : running_) At(id).fill = At(id).prompt + Out(At(id));
  batch_.decoding.swap(running_);
  running_.clear();
}

}  // namespace servecast

// A scheduler after Vidur in the reference of prefill and decode apart: what ScheduledRules
// decides, in terms of sequences whose KV comes and goes.
#include <algorithm>
#include <map>

#include "testing/pd_reference_scheduler.h"
#include "testing/scheduled_reference_rules.h"

namespace servecast::testing {
namespace {

class Scheduled final : public PdScheduler {
 public:
  Scheduled(const PdInput& input, const PdPool& pool, const RequestTable& requests,
            PdCoverage& coverage)
      : role_(pool.role), coverage_(coverage), rules_(SettingsOf(input, pool), requests) {
    for (const std::int32_t output : input.requests.output_tokens) {
      declared_ = std::max<std::int64_t>(declared_, output);
    }
  }

  void Enqueue(PdSequence* s) override {
    ScheduledJob& job = jobs_[s];
    job.row = static_cast<std::size_t>(s->id);
    job.arrival = s->arrival;
    job.queue_key = {static_cast<double>(s->prompt), 0, s->arrival, s->id};
    job.prompt = s->prompt;
    job.made = s->generated;
    job.target = s->Known();
    job.remote = s->remote;
    job.most =
        role_ == PoolRole::kPrefill ? 1 : std::min(declared_, rules_.max_model_len - s->prompt);
    sequences_[&job] = s;
    rules_.all.push_back(&job);
    rules_.Enqueue(&job);
  }

  PdCall Schedule() override {
    rules_.Form();
    PdCall call;
    for (const auto& [job, in_prefill] : rules_.restarted) {
      PdSequence* s = sequences_[job];
      s->was_prefilling = in_prefill;
      s->was_fresh = s->fresh;
      s->fresh = false;
      s->made_or_in_flight = s->generated;
      s->preempted = s->prefilling = true;
      s->running = s->incoming = s->arrived = false;
      call.preempted.push_back(s);
    }
    for (ScheduledJob* job : rules_.sent_for) {
      PdSequence* s = sequences_[job];
      s->remote = false;
      s->incoming = true;
      call.reserved.emplace_back(s, rules_.BlocksFor(s->prompt) - job->found);
      coverage_.local_blocks += job->found;
    }
    for (const ScheduledMember& of : rules_.batch) {
      PdSequence* s = sequences_[of.job];
      PdMember member;
      member.sequence = s;
      member.decode = !of.job->in_prefill();
      member.record.id = s->id;
      member.record.tokens = of.tokens;
      member.record.computed_before = of.job->computed;
      member.record.kind = s->fresh        ? MemberKind::kNew
                           : of.job->begun ? MemberKind::kContinued
                           : s->preempted  ? MemberKind::kResumed
                                           : MemberKind::kNew;
      of.job->begun = true;
      member.record.sampled = member.decode || of.job->computed + of.tokens == of.job->target;
      member.first_token = member.record.sampled && s->generated == 0;
      member.after_first = member.decode && s->generated > 0;
      member.blocks = static_cast<std::int64_t>(of.job->blocks.size());
      s->fresh = s->incoming = s->arrived = false;
      s->running = true;
      ++s->in_flight;
      call.members.push_back(member);
    }
    return call;
  }

  bool Apply(const PdMember& member) override {
    PdSequence& s = *member.sequence;
    ScheduledJob& job = jobs_.at(&s);
    s.in_flight = 0;
    job.computed += member.record.tokens;
    s.prefilling = job.in_prefill();
    if (!s.prefilling) {
      ++job.made;
      ++s.generated;
    }
    const bool over = s.generated == s.wanted;
    if (over && !(s.hands_over && s.gave_up)) {
      s.running = false;
      if (s.hands_over) {
        job.over = true;
      } else {
        rules_.Release(&job);
      }
    } else {
      rules_.parked.push_back(&job);
    }
    return !s.prefilling;
  }

  void Remove(PdSequence& s) override {
    ScheduledJob& job = jobs_.at(&s);
    s.timed_out = true;
    if (s.incoming && !s.arrived) {  // its KV is on the way
      ++coverage_.gave_up_under_way;
      job.over = true;
      return;
    }
    if (s.arrived) ++coverage_.gave_up_arrived;
    if (s.remote) ++coverage_.gave_up_queued;
    for (std::deque<ScheduledJob*>* list : {&rules_.queue, &rules_.parked, &rules_.come}) {
      list->erase(std::remove(list->begin(), list->end(), &job), list->end());
    }
    s.running = s.arrived = s.incoming = s.fresh = false;
    rules_.Release(&job);
  }

  void Arrive(PdSequence& s) override {
    ScheduledJob& job = jobs_.at(&s);
    if (s.timed_out) {
      rules_.Release(&job);
      return;
    }
    // All but its last known token are computed.
    job.remote = false;
    job.target = job.computed = s.Known() - 1;
    s.prefilling = false;
    s.arrived = s.fresh = true;
    rules_.come.push_back(&job);
  }
  void Free(PdSequence& s) override { rules_.Release(&jobs_.at(&s)); }

  std::int64_t FreeBlocks() const override { return rules_.Free(); }
  std::vector<PdSequence*> Running() const override {
    return Those([](const PdSequence& s) { return s.running; });
  }
  std::int64_t Waiting() const override {
    return static_cast<std::int64_t>(Clients().size() - Running().size());
  }
  bool HasWork() const override { return !Clients().empty(); }
  bool AwaitsKv() const override {
    return !Those([](const PdSequence& s) { return s.incoming && !s.arrived; }).empty();
  }
  std::vector<PdSequence*> Clients() const override {
    std::vector<PdSequence*> all;
    for (const ScheduledJob* job : rules_.queue) all.push_back(sequences_.at(job));
    const auto here = Those([](const PdSequence& s) { return s.running || s.incoming; });
    all.insert(all.end(), here.begin(), here.end());
    return all;
  }

 private:
  static ScheduledSettings SettingsOf(const PdInput& input, const PdPool& pool) {
    const EngineSpec& engine = pool.engine;
    const std::int64_t unit = pool.scheduler == "lightllm" ? engine.block_size : 1;
    ScheduledSettings settings;
    settings.policy = pool.scheduler;
    settings.max_num_seqs = engine.max_num_seqs;
    settings.max_num_batched_tokens = engine.max_num_batched_tokens;
    settings.max_model_len = input.max_len;
    settings.stages = pool.stages == nullptr ? 1 : static_cast<std::int64_t>(pool.stages->size());
    settings.block_size = engine.block_size / unit;
    settings.blocks = (pool.pool_blocks - 1) * unit;
    settings.watermark_blocks =
        static_cast<std::int64_t>(engine.watermark * static_cast<double>(pool.pool_blocks * unit));
    settings.prefix_caching = engine.enable_prefix_caching;
    settings.contentless_first = engine.free_contentless_first;
    settings.in_order_of_enqueue = input.order != "sjf";
    return settings;
  }

  // That have not given up.
  template <class Is>
  std::vector<PdSequence*> Those(Is is) const {
    std::vector<PdSequence*> found;
    for (const ScheduledJob* job : rules_.all) {
      PdSequence* s = sequences_.at(job);
      if (!s->timed_out && is(*s)) found.push_back(s);
    }
    return found;
  }

  PoolRole role_;
  PdCoverage& coverage_;
  ScheduledRules rules_;
  std::int64_t declared_ = 0;
  std::map<const PdSequence*, ScheduledJob> jobs_;
  std::map<const ScheduledJob*, PdSequence*> sequences_;
};

}  // namespace

std::unique_ptr<PdScheduler> MakePdScheduled(const PdInput& input, const PdPool& pool,
                                             const RequestTable& requests, PdCoverage& coverage) {
  return std::make_unique<Scheduled>(input, pool, requests, coverage);
}

}  // namespace servecast::testing

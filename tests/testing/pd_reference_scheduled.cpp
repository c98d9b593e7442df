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
  Scheduled(const PdInput& input, const PdPool& pool, PdCoverage& coverage)
      : role_(pool.role), coverage_(coverage) {
    const std::int64_t unit = pool.scheduler == "lightllm" ? pool.engine.block_size : 1;
    rules_.policy = pool.scheduler;
    rules_.max_num_seqs = pool.engine.max_num_seqs;
    rules_.max_num_batched_tokens = pool.engine.max_num_batched_tokens;
    rules_.max_model_len = input.max_len;
    rules_.stages = pool.stages == nullptr ? 1 : static_cast<std::int64_t>(pool.stages->size());
    rules_.block_size = pool.engine.block_size / unit;
    rules_.blocks = (pool.pool_blocks - 1) * unit;
    rules_.watermark_blocks = static_cast<std::int64_t>(
        pool.engine.watermark * static_cast<double>(pool.pool_blocks * unit));
    for (const std::int32_t output : input.requests.output_tokens) {
      declared_ = std::max<std::int64_t>(declared_, output);
    }
  }

  void Enqueue(PdSequence* s) override {
    ScheduledJob& job = jobs_[s];
    job.arrival = s->arrival;
    job.prompt = s->prompt;
    job.made = s->generated;
    job.target = s->Known();
    job.remote = s->remote;
    job.most =
        role_ == PoolRole::kPrefill ? 1 : std::min(declared_, rules_.max_model_len - s->prompt);
    sequences_[&job] = s;
    rules_.all.push_back(&job);
    rules_.queue.push_back(&job);
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
      call.reserved.emplace_back(s, rules_.BlocksFor(s->prompt));
    }
    for (const ScheduledMember& of : rules_.batch) {
      PdSequence* s = sequences_[of.job];
      PdMember member;
      member.sequence = s;
      member.decode = !of.job->in_prefill();
      member.record.id = s->id;
      member.record.tokens = of.tokens;
      member.record.computed_before = of.job->computed;
      member.record.kind = s->fresh               ? MemberKind::kNew
                           : of.job->computed > 0 ? MemberKind::kContinued
                           : s->preempted         ? MemberKind::kResumed
                                                  : MemberKind::kNew;
      member.record.sampled = member.decode || of.job->computed + of.tokens == of.job->target;
      member.first_token = member.record.sampled && s->generated == 0;
      member.after_first = member.decode && s->generated > 0;
      member.blocks = of.job->blocks;
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
        job.blocks = 0;
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
    job.blocks = 0;
  }

  void Arrive(PdSequence& s) override {
    ScheduledJob& job = jobs_.at(&s);
    if (s.timed_out) {
      job.blocks = 0;
      return;
    }
    // All but its last known token are computed.
    job.remote = false;
    job.target = job.computed = s.Known() - 1;
    s.prefilling = false;
    s.arrived = s.fresh = true;
    rules_.come.push_back(&job);
  }
  void Free(PdSequence& s) override { jobs_.at(&s).blocks = 0; }

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
                                             PdCoverage& coverage) {
  return std::make_unique<Scheduled>(input, pool, coverage);
}

}  // namespace servecast::testing

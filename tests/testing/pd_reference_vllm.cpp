// vLLM's scheduler in the reference of prefill and decode apart: a block pool of objects, and one
// schedule call after the other.
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <tuple>

#include "testing/pd_reference_blocks.h"
#include "testing/pd_reference_scheduler.h"

namespace servecast::testing {
namespace {

class Vllm final : public PdScheduler {
 public:
  Vllm(const PdInput& input, const PdPool& pool, const RequestTable& requests, PdCoverage& coverage)
      : input_(input),
        staged_(pool.stages != nullptr),
        engine_(pool.engine),
        requests_(requests),
        coverage_(coverage),
        watermark_(static_cast<std::int64_t>(pool.engine.watermark *
                                             static_cast<double>(pool.pool_blocks))),
        blocks(pool.pool_blocks - 1,
               pool.engine.enable_prefix_caching && pool.engine.free_contentless_first) {}

  void Enqueue(PdSequence* sequence) override { Enqueue(sequence, false); }
  void Enqueue(PdSequence* sequence, bool in_front) {
    auto place = in_front ? waiting.begin() : waiting.end();
    if (input_.order == "sjf") {
      const auto key = [](const PdSequence* s) { return std::tie(s->prompt, s->arrival, s->id); };
      place = std::find_if(waiting.begin(), waiting.end(),
                           [&](const PdSequence* other) { return key(sequence) < key(other); });
    }
    waiting.insert(place, sequence);
  }

  PdCall Schedule() override {
    PdCall call;
    std::int64_t budget = engine_.max_num_batched_tokens;
    std::size_t at = 0;
    while (at < running.size() && budget > 0) {
      if (!ScheduleRunning(at, call, budget)) break;
    }
    if (call.preempted.empty()) {
      AdmitArrived(call, budget);
      Admit(call, budget);
    }
    for (PdMember& member : call.members) {
      PdSequence& s = *member.sequence;
      s.computed += member.record.tokens;
      ++s.in_flight;
      member.blocks = static_cast<std::int64_t>(s.blocks.size());
      member.record.sampled = s.computed >= s.Known() + s.placeholders;
      if (!member.record.sampled) continue;
      s.prefilling = false;
      ++s.placeholders;
      member.first_token = s.generated == 0 && s.placeholders == 1;
      member.after_first = member.decode && s.generated + s.placeholders > 1;
    }
    return call;
  }

  bool Apply(const PdMember& member) override {
    PdSequence& s = *member.sequence;
    --s.in_flight;
    if (!member.record.sampled || s.timed_out) return false;
    if (s.hands_over && !s.running) {  // the blocks that it would hand over are gone
      ++coverage_.lost_tokens;
      return false;
    }
    ++s.generated;
    if (s.running) {
      --s.placeholders;
      Register(s, s.computed - s.placeholders);
    }
    if (s.generated < s.wanted) return true;
    if (s.running) {
      running.erase(std::find(running.begin(), running.end(), &s));
      s.running = false;
    } else {
      waiting.erase(std::find(waiting.begin(), waiting.end(), &s));
    }
    if (!s.hands_over) blocks.Release(s.blocks);
    return true;
  }

  void Remove(PdSequence& s) override {
    s.timed_out = true;
    if (s.running) {
      running.erase(std::find(running.begin(), running.end(), &s));
    } else if (s.arrived) {
      ++coverage_.gave_up_arrived;
      arrived.erase(std::find(arrived.begin(), arrived.end(), &s));
    } else if (s.incoming) {
      ++coverage_.gave_up_under_way;
      return;
    } else {
      if (s.remote) ++coverage_.gave_up_queued;
      waiting.erase(std::find(waiting.begin(), waiting.end(), &s));
    }
    s.running = s.arrived = s.incoming = false;
    blocks.Release(s.blocks);
  }

  void Arrive(PdSequence& s) override {
    under_way.erase(std::find(under_way.begin(), under_way.end(), &s));
    if (s.timed_out) {
      blocks.Release(s.blocks);
    } else {
      s.arrived = true;
      arrived.push_back(&s);
    }
  }
  void Free(PdSequence& s) override { blocks.Release(s.blocks); }

  std::int64_t FreeBlocks() const override { return blocks.Free(); }
  std::vector<PdSequence*> Running() const override { return running; }
  bool HasWork() const override { return !running.empty() || !waiting.empty() || !arrived.empty(); }
  bool AwaitsKv() const override { return !under_way.empty(); }
  std::vector<PdSequence*> Clients() const override {
    std::vector<PdSequence*> all = running;
    all.insert(all.end(), waiting.begin(), waiting.end());
    all.insert(all.end(), arrived.begin(), arrived.end());
    for (PdSequence* s : under_way) {
      if (!s->timed_out) all.push_back(s);
    }
    return all;
  }
  std::int64_t Waiting() const override {
    std::int64_t count = static_cast<std::int64_t>(waiting.size() + arrived.size());
    for (const PdSequence* s : under_way) count += s->timed_out ? 0 : 1;
    return count;
  }

 private:
  std::int64_t Blocks(std::int64_t tokens) const { return CeilDiv(tokens, engine_.block_size); }
  std::int64_t Cut(std::int64_t tokens) const {
    const std::int64_t threshold = engine_.long_prefill_token_threshold;
    return threshold > 0 ? std::min(tokens, threshold) : tokens;
  }

  // False when nobody behind it gets anything: it was preempted itself.
  bool ScheduleRunning(std::size_t& at, PdCall& call, std::int64_t& budget) {
    PdSequence* s = running[at];
    const bool last_in_flight =
        s->placeholders > 0 && s->computed + 2 - s->placeholders >= s->prompt + s->asked;
    // With stages a token waits for the one before it.
    const std::int64_t ahead = staged_ ? 0 : s->placeholders;
    std::int64_t tokens = std::min(Cut(s->Known() + ahead - s->computed), budget);
    tokens = std::min(tokens, input_.max_len - s->computed - 1);
    if (last_in_flight || tokens <= 0) {
      ++at;
      return true;
    }
    const std::int64_t needed =
        Blocks(s->computed + tokens) - static_cast<std::int64_t>(s->blocks.size());
    while (needed > blocks.Free()) {
      PdSequence* victim = running.back();
      running.pop_back();
      const auto member = std::find_if(call.members.begin(), call.members.end(),
                                       [&](const PdMember& m) { return m.sequence == victim; });
      if (member != call.members.end()) {
        budget += member->record.tokens;
        call.members.erase(member);
      }
      Preempt(victim);
      call.preempted.push_back(victim);
      if (victim == s) return false;
    }
    blocks.Take(needed, s->blocks);
    Register(*s, s->computed + tokens);
    Give(s, tokens, MemberKind::kContinued, call, budget);
    ++at;
    return true;
  }

  void Preempt(PdSequence* victim) {
    blocks.Release(victim->blocks);
    victim->was_prefilling = victim->prefilling;
    victim->made_or_in_flight = victim->generated + victim->placeholders;
    if (staged_ && victim->in_flight > 0) ++coverage_.victims_in_flight;
    victim->registered = victim->computed = victim->placeholders = 0;
    victim->running = false;
    victim->preempted = victim->prefilling = true;
    Enqueue(victim, true);
  }

  void Give(PdSequence* s, std::int64_t tokens, MemberKind kind, PdCall& call,
            std::int64_t& budget) {
    PdMember member;
    member.sequence = s;
    member.decode = !s->prefilling;
    member.record.id = s->id;
    member.record.tokens = tokens;
    member.record.computed_before = s->computed;
    member.record.kind = kind;
    call.members.push_back(member);
    budget -= tokens;
  }

  bool Seats() const { return static_cast<std::int64_t>(running.size()) < engine_.max_num_seqs; }

  void AdmitArrived(PdCall& call, std::int64_t& budget) {
    while (!arrived.empty() && Seats() && budget > 0) {
      PdSequence* s = arrived.front();
      arrived.erase(arrived.begin());
      s->incoming = s->arrived = false;
      s->running = true;
      s->prefilling = false;
      s->computed = s->Known() - 1;
      running.push_back(s);
      Register(*s, s->Known());
      Give(s, 1, MemberKind::kNew, call, budget);
    }
    if (!arrived.empty()) ++coverage_.waited_for_a_seat;
  }

  void Admit(PdCall& call, std::int64_t& budget) {
    std::size_t at = 0;
    while (at < waiting.size() && Seats() && budget > 0) {
      PdSequence* s = waiting[at];
      if (s->in_flight > 0 && !staged_) return;
      if (s->in_flight > 0) {  // others pass it
        ++at;
        continue;
      }
      std::vector<BlockId> hits;
      const std::int64_t most =
          engine_.enable_prefix_caching ? (s->Known() - 1) / engine_.block_size : 0;
      for (std::int64_t i = 0; i < most; ++i) {
        const std::optional<BlockId> block = blocks.Find(Key(*s, i));
        if (!block) break;
        hits.push_back(*block);
      }
      const auto hit = static_cast<std::int64_t>(hits.size());
      std::int64_t tokens = Cut(s->Known() - hit * engine_.block_size);
      if (!s->remote && !engine_.enable_chunked_prefill && tokens > budget) return;
      tokens = std::min(tokens, budget);
      const std::int64_t all = Blocks(s->Known()) - hit;
      const std::int64_t first = Blocks(hit * engine_.block_size + tokens) - hit;
      const bool whole = s->remote || engine_.scheduler_reserve_full_isl;
      const auto unused = std::count_if(hits.begin(), hits.end(),
                                        [&](BlockId block) { return !blocks.Held(block); });
      const std::int64_t spare = running.empty() ? 0 : watermark_;
      if ((whole ? all : first) + unused + spare > blocks.Free()) {
        if (s->remote) ++coverage_.waited_for_blocks;
        return;
      }
      for (const BlockId block : hits) blocks.Share(block, s->blocks);
      s->registered = hit;
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(at));
      if (s->remote) {
        blocks.Take(all, s->blocks);
        s->remote = false;
        s->incoming = true;
        under_way.push_back(s);
        call.reserved.emplace_back(s, Blocks(s->prompt) - hit);
        coverage_.local_blocks += hit;
        continue;
      }
      blocks.Take(first, s->blocks);
      s->computed = hit * engine_.block_size;
      Register(*s, s->computed + tokens);
      running.push_back(s);
      s->running = true;
      cached_[s->id] = s->computed;
      Give(s, tokens, s->preempted ? MemberKind::kResumed : MemberKind::kNew, call, budget);
      s->preempted = false;
    }
  }

  void Register(PdSequence& s, std::int64_t tokens) {
    if (!engine_.enable_prefix_caching) return;
    const std::int64_t full = std::min(tokens, s.Known()) / engine_.block_size;
    for (; s.registered < full; ++s.registered) {
      blocks.Register(s.blocks[static_cast<std::size_t>(s.registered)], Key(s, s.registered));
    }
  }

  ContentKey Key(const PdSequence& s, std::int64_t index) const {
    return ContentOf(requests_, s.id, index, engine_.block_size);
  }

  const PdInput& input_;
  bool staged_;
  const EngineSpec& engine_;
  const RequestTable& requests_;
  PdCoverage& coverage_;
  std::int64_t watermark_;
  std::map<RequestId, std::int64_t> cached_;

  BlockPool blocks;
  std::vector<PdSequence*> running;
  std::deque<PdSequence*> waiting;
  std::vector<PdSequence*> under_way, arrived;  // KV; arrived ones in that order
};

}  // namespace

std::unique_ptr<PdScheduler> MakePdVllm(const PdInput& input, const PdPool& pool,
                                        const RequestTable& requests, PdCoverage& coverage) {
  return std::make_unique<Vllm>(input, pool, requests, coverage);
}

}  // namespace servecast::testing

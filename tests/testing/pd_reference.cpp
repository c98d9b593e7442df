// In three parts: a replica's block pool, its scheduler (one call: who computes how many tokens
// now, and whose blocks are taken for KV that is to come), and the driver: all replicas, the link
// and the clients, moment by moment.
#include "testing/pd_reference.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

namespace servecast::testing {
namespace {

using ContentKey = std::pair<std::int64_t, std::int64_t>;  // segment, block of it
using BlockId = std::size_t;

// ---- Blocks --------------------------------------------------------------------------------

class Pool {
 public:
  Pool(const EngineSpec& engine, std::int64_t blocks)
      : contentless_first_(engine.enable_prefix_caching && engine.free_contentless_first),
        blocks_(static_cast<std::size_t>(blocks)) {
    for (BlockId id = 1; id < blocks_.size(); ++id) free_.push_back(id);  // one is reserved
  }

  std::int64_t Free() const { return static_cast<std::int64_t>(free_.size()); }
  std::int64_t Used() const { return static_cast<std::int64_t>(blocks_.size()) - 1 - Free(); }
  bool Held(BlockId id) const { return blocks_[id].holders > 0; }

  void Take(std::int64_t count, std::vector<BlockId>& holder) {
    for (; count > 0; --count) {
      SERVECAST_CHECK(!free_.empty(), "pd reference: a block is taken that is not free");
      const BlockId id = free_.front();
      free_.pop_front();
      Block& block = blocks_[id];
      if (block.content) {
        std::vector<BlockId>& copies = cached_[*block.content];
        copies.erase(std::find(copies.begin(), copies.end(), id));
        block.content.reset();
      }
      block.holders = 1;
      holder.push_back(id);
    }
  }
  void Share(BlockId id, std::vector<BlockId>& holder) {
    if (!Held(id)) free_.erase(std::find(free_.begin(), free_.end(), id));
    ++blocks_[id].holders;
    holder.push_back(id);
  }
  void Release(std::vector<BlockId>& holder) {
    for (; !holder.empty(); holder.pop_back()) {
      Block& block = blocks_[holder.back()];
      if (--block.holders > 0) continue;
      if (contentless_first_ && !block.content) {
        free_.push_front(holder.back());
      } else {
        free_.push_back(holder.back());
      }
    }
  }
  std::optional<BlockId> Find(const ContentKey& key) const {
    const auto at = cached_.find(key);
    if (at == cached_.end() || at->second.empty()) return std::nullopt;
    return at->second.front();
  }
  void Register(BlockId id, const ContentKey& key) {
    blocks_[id].content = key;
    cached_[key].push_back(id);
  }

 private:
  struct Block {
    int holders = 0;
    std::optional<ContentKey> content;
  };
  bool contentless_first_;
  std::vector<Block> blocks_;
  std::deque<BlockId> free_;
  std::map<ContentKey, std::vector<BlockId>> cached_;  // copies in order of registration
};

// ---- A replica's scheduler -----------------------------------------------------------------

// A request on one replica: one that is prefilled here and decoded there is two of them.
struct Sequence {
  RequestId id = kNoRequest;
  TimeNs arrival = 0, gives_up = kNever;
  std::int64_t prompt = 0, asked = 0, wanted = 0;
  std::int64_t generated = 0, computed = 0;
  std::int64_t placeholders = 0, in_flight = 0;  // async scheduling
  std::vector<BlockId> blocks;
  std::int64_t registered = 0;
  bool hands_over = false;  // prefilled here
  bool remote = false;      // its KV has yet to be sent for
  bool incoming = false;    // ... is on its way, or there
  bool arrived = false;
  bool running = false, prefilling = true, preempted = false, timed_out = false;
  TimeNs preempted_at = -1;

  std::int64_t Known() const { return prompt + generated; }
};

struct Member {
  Sequence* sequence = nullptr;
  StepMember record;
  bool decode = false;
};

struct Call {
  std::vector<Member> members;
  std::vector<RequestId> preempted;
  std::vector<std::pair<Sequence*, std::int64_t>> reserved;  // and blocks that have to come
};

class Scheduler {
 public:
  Scheduler(const PdInput& input, const PdPool& pool, const RequestTable& requests,
            PdCoverage& coverage)
      : input_(input),
        engine_(pool.engine),
        requests_(requests),
        coverage_(coverage),
        watermark_(static_cast<std::int64_t>(pool.engine.watermark *
                                             static_cast<double>(pool.pool_blocks))),
        blocks(pool.engine, pool.pool_blocks) {}

  void Enqueue(Sequence* sequence, bool in_front = false) {
    auto place = in_front ? waiting.begin() : waiting.end();
    if (input_.order == "sjf") {
      const auto key = [](const Sequence* s) { return std::tie(s->prompt, s->arrival, s->id); };
      place = std::find_if(waiting.begin(), waiting.end(),
                           [&](const Sequence* other) { return key(sequence) < key(other); });
    }
    waiting.insert(place, sequence);
  }

  Call Schedule() {
    Call call;
    std::int64_t budget = engine_.max_num_batched_tokens;
    std::size_t at = 0;
    while (at < running.size() && budget > 0) {
      if (!ScheduleRunning(at, call, budget)) break;
    }
    if (call.preempted.empty()) {
      AdmitArrived(call, budget);
      Admit(call, budget);
    }
    for (Member& member : call.members) {
      Sequence& s = *member.sequence;
      s.computed += member.record.tokens;
      ++s.in_flight;
      member.record.sampled = s.computed >= s.Known() + s.placeholders;
      if (!member.record.sampled) continue;
      s.prefilling = false;
      ++s.placeholders;
    }
    return call;
  }

  // The output of a member's step is there. True when a token of the request is known by it.
  bool Apply(const Member& member) {
    Sequence& s = *member.sequence;
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

  // Its client gave up. False where its KV is on the way: then it is held until that has come.
  void Remove(Sequence& s) {
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

  std::int64_t Waiting() const {
    std::int64_t count = static_cast<std::int64_t>(waiting.size() + arrived.size());
    for (const Sequence* s : under_way) count += s->timed_out ? 0 : 1;
    return count;
  }

 private:
  std::int64_t Blocks(std::int64_t tokens) const { return CeilDiv(tokens, engine_.block_size); }
  std::int64_t Cut(std::int64_t tokens) const {
    const std::int64_t threshold = engine_.long_prefill_token_threshold;
    return threshold > 0 ? std::min(tokens, threshold) : tokens;
  }

  // False when nobody behind it gets anything: it was preempted itself.
  bool ScheduleRunning(std::size_t& at, Call& call, std::int64_t& budget) {
    Sequence* s = running[at];
    const bool last_in_flight =
        s->placeholders > 0 && s->computed + 2 - s->placeholders >= s->prompt + s->asked;
    std::int64_t tokens = std::min(Cut(s->Known() + s->placeholders - s->computed), budget);
    tokens = std::min(tokens, input_.max_len - s->computed - 1);
    if (last_in_flight || tokens <= 0) {
      ++at;
      return true;
    }
    const std::int64_t needed =
        Blocks(s->computed + tokens) - static_cast<std::int64_t>(s->blocks.size());
    while (needed > blocks.Free()) {
      Sequence* victim = running.back();
      running.pop_back();
      const auto member = std::find_if(call.members.begin(), call.members.end(),
                                       [&](const Member& m) { return m.sequence == victim; });
      if (member != call.members.end()) {
        budget += member->record.tokens;
        call.members.erase(member);
      }
      Preempt(victim);
      call.preempted.push_back(victim->id);
      if (victim == s) return false;
    }
    blocks.Take(needed, s->blocks);
    Register(*s, s->computed + tokens);
    Give(s, tokens, MemberKind::kContinued, call, budget);
    ++at;
    return true;
  }

  void Preempt(Sequence* victim) {
    blocks.Release(victim->blocks);
    victim->registered = victim->computed = victim->placeholders = 0;
    victim->running = false;
    victim->preempted = victim->prefilling = true;
    Enqueue(victim, true);
  }

  void Give(Sequence* s, std::int64_t tokens, MemberKind kind, Call& call, std::int64_t& budget) {
    Member member;
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

  void AdmitArrived(Call& call, std::int64_t& budget) {
    while (!arrived.empty() && Seats() && budget > 0) {
      Sequence* s = arrived.front();
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

  void Admit(Call& call, std::int64_t& budget) {
    while (!waiting.empty() && Seats() && budget > 0) {
      Sequence* s = waiting.front();
      if (s->in_flight > 0) return;
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
      waiting.pop_front();
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

  void Register(Sequence& s, std::int64_t tokens) {
    if (!engine_.enable_prefix_caching) return;
    const std::int64_t full = std::min(tokens, s.Known()) / engine_.block_size;
    for (; s.registered < full; ++s.registered) {
      blocks.Register(s.blocks[static_cast<std::size_t>(s.registered)], Key(s, s.registered));
    }
  }

  ContentKey Key(const Sequence& s, std::int64_t index) const {
    if (requests_.content.empty()) return {s.id, index};
    std::int32_t segment = requests_.content[static_cast<std::size_t>(s.id)];
    for (;;) {
      const ContentSegment& at = requests_.segments[static_cast<std::size_t>(segment)];
      if ((index + 1) * engine_.block_size > at.shared_tokens) return {segment, index};
      segment = at.parent;
    }
  }

  const PdInput& input_;
  const EngineSpec& engine_;
  const RequestTable& requests_;
  PdCoverage& coverage_;
  std::int64_t watermark_;
  std::map<RequestId, std::int64_t> cached_;

 public:
  Pool blocks;
  std::vector<Sequence*> running;
  std::deque<Sequence*> waiting;
  std::vector<Sequence*> under_way, arrived;  // KV; arrived ones in that order
};

// ---- The driver ----------------------------------------------------------------------------

struct Batch {
  Call call;
  StepRecord record;
};

struct Replica {
  const PdPool* pool = nullptr;
  std::int64_t number = 0;
  std::unique_ptr<Scheduler> scheduler;
  std::deque<Batch> in_flight;
  TimeNs due = kNever;  // of the next schedule call
  bool sleeps = false;  // it has requests, and nothing to do
  std::int64_t launched = 0, sent = 0;
  std::vector<TimeNs> left;        // when the router knows that requests have
  std::vector<Sequence*> joining;  // sent since the last call
  // Of transfers that ended while a step runs: a replica hears of them after it.
  std::vector<std::function<void()>> news;
};

struct Transfer {
  Sequence* sequence = nullptr;
  TimeNs begins = 0;
  __int128 left = 0;  // in billionths of a byte
};

class Driver {
 public:
  explicit Driver(const PdInput& input) : input_(input) {
    output_.requests = input.requests;
    const std::size_t size = input.requests.arrival.size();
    output_.results.Resize(input.requests.size());
    output_.results.replica.assign(size, -1);
    output_.results.hand_overs.resize(size);
    output_.times.resize(size);
    spent_.resize(size);
    for (const PdPool& pool : input.pools) {
      for (std::int64_t i = 0; i < pool.replicas; ++i) {
        replicas_.emplace_back();
        replicas_.back().pool = &pool;
        replicas_.back().number = static_cast<std::int64_t>(replicas_.size()) - 1;
        replicas_.back().scheduler =
            std::make_unique<Scheduler>(input_, pool, output_.requests, output_.coverage);
      }
    }
    output_.steps.resize(replicas_.size());
    for (std::size_t r = 0; r < size; ++r) {
      if (input.requests.think.empty() || input.requests.think[r] < 0) Arrive(r);
    }
  }

  PdOutput Run() {
    for (;;) {
      TimeNs next = kNever;
      for (const Replica& replica : replicas_) {
        if (!replica.in_flight.empty() && replica.due == kNever) {
          next = std::min(next, replica.in_flight.front().record.end);
        }
        if (replica.due != kNever) next = std::min(next, replica.due);
        if (replica.sleeps) next = std::min(next, BeforeHorizon(FirstToGiveUp(replica)));
      }
      next = std::min(next, NextEvent());
      if (next == kNever) break;
      now_ = std::max(now_, next);
      for (Replica& replica : replicas_) {
        if (replica.due == kNever && !replica.in_flight.empty() &&
            replica.in_flight.front().record.end == now_) {
          Apply(replica);
        }
        if (replica.sleeps && FirstToGiveUp(replica) <= now_) Wake(replica);
      }
      do {
        while (NextEvent() <= now_) Happen();
      } while (ActOnce());
    }
    return std::move(output_);
  }

 private:
  std::size_t Row(const Sequence& s) const { return static_cast<std::size_t>(s.id); }
  HandOver& HandOverOf(const Sequence& s) { return output_.results.hand_overs[Row(s)]; }
  TimeNs BeforeHorizon(TimeNs time) const {
    return input_.horizon && time >= *input_.horizon ? kNever : time;
  }

  // Of a client's request: as its prefill side, decode side or only replica sees it.
  Sequence* MakeSequence(std::size_t r) {
    auto s = std::make_unique<Sequence>();
    s->id = static_cast<RequestId>(r);
    s->arrival = output_.requests.arrival[r];
    s->prompt = output_.requests.prompt_tokens[r];
    s->asked = output_.requests.output_tokens[r];
    s->wanted = std::min(s->asked, input_.max_len - s->prompt);
    if (!output_.requests.timeout.empty() && output_.requests.timeout[r] != kNever) {
      s->gives_up = s->arrival + output_.requests.timeout[r];
    }
    sequences_.push_back(std::move(s));
    return sequences_.back().get();
  }

  void Arrive(std::size_t r) {
    const std::int64_t prompt = output_.requests.prompt_tokens[r];
    if (prompt >= input_.max_len) return;
    const TimeNs delay = input_.pools[0].latency->EnqueueDelay(prompt);
    if (!output_.requests.timeout.empty() && output_.requests.timeout[r] < delay) return;
    output_.results.enqueue[r] = output_.requests.arrival[r] + delay;
    coming_.insert({output_.results.enqueue[r], r});
  }

  static TimeNs FirstToGiveUp(const Replica& replica) {
    TimeNs first = kNever;
    for (const Sequence* s : Clients(replica)) first = std::min(first, s->gives_up);
    return first;
  }
  // Whose clients wait for something from it.
  static std::vector<Sequence*> Clients(const Replica& replica) {
    const Scheduler& scheduler = *replica.scheduler;
    std::vector<Sequence*> all = scheduler.running;
    all.insert(all.end(), scheduler.waiting.begin(), scheduler.waiting.end());
    all.insert(all.end(), scheduler.arrived.begin(), scheduler.arrived.end());
    for (Sequence* s : scheduler.under_way) {
      if (!s->timed_out) all.push_back(s);
    }
    return all;
  }

  // ---- Events: transfers, arrivals, hand-overs.

  TimeNs NextEvent() const {
    TimeNs next = NextOfLink();
    if (!coming_.empty()) next = std::min(next, coming_.begin()->first);
    if (!handed_over_.empty()) next = std::min(next, handed_over_.begin()->first);
    return BeforeHorizon(next);
  }

  void Happen() {
    const TimeNs time = NextEvent();
    if (NextOfLink() == time) return PassLink(time);
    if (!coming_.empty() && coming_.begin()->first == time) {
      const std::size_t r = coming_.begin()->second;
      coming_.erase(coming_.begin());
      output_.results.state[r] = RequestState::kQueued;
      Sequence* s = MakeSequence(r);
      s->hands_over = s->prompt > input_.disaggregation.above_tokens;
      if (!s->hands_over) ++output_.coverage.served_whole;
      const bool mixed = std::any_of(replicas_.begin(), replicas_.end(), [](const Replica& one) {
        return one.pool->role == PoolRole::kMixed;
      });
      const PoolRole role = s->hands_over ? PoolRole::kPrefill
                            : mixed       ? PoolRole::kMixed
                                          : PoolRole::kDecode;
      // Whoever is done with its first token needs no other replica.
      const bool one_token = s->wanted == 1 && !input_.disaggregation.first_token_from_decode;
      if (s->hands_over) {
        s->asked = s->wanted = 1;
        s->hands_over = !one_token;
      }
      Send(s,
           Choose(role, input_.router, role == PoolRole::kPrefill ? turn_prefill_ : turn_whole_));
    } else {
      const std::size_t r = handed_over_.begin()->second;
      handed_over_.erase(handed_over_.begin());
      Sequence* s = MakeSequence(r);
      s->remote = true;
      s->generated = input_.disaggregation.first_token_from_decode ? 0 : 1;
      Send(s, Choose(PoolRole::kDecode, input_.decode_router, turn_decode_));
    }
  }

  Replica& Choose(PoolRole role, const std::string& router, std::int64_t& turn) {
    std::vector<Replica*> side;
    for (Replica& replica : replicas_) {
      if (replica.pool->role == role) side.push_back(&replica);
    }
    if (router == "round_robin") {
      return *side[static_cast<std::size_t>(turn++) % side.size()];
    }
    const auto outstanding = [this](const Replica& replica) {
      return replica.sent - std::count_if(replica.left.begin(), replica.left.end(),
                                          [this](TimeNs time) { return time <= now_; });
    };
    Replica* least = side[0];
    for (Replica* replica : side) {
      if (outstanding(*replica) < outstanding(*least)) least = replica;
    }
    return *least;
  }

  void Send(Sequence* s, Replica& replica) {
    output_.results.replica[Row(*s)] = static_cast<std::int32_t>(replica.number);
    ++replica.sent;
    replica.joining.push_back(s);
    Wake(replica);
  }

  // Something came: a replica that had nothing to do looks at it now.
  void Wake(Replica& replica) {
    replica.sleeps = false;
    if (replica.in_flight.empty() && replica.due == kNever) replica.due = now_;
  }

  // ---- The link.

  std::int64_t Rate() const {
    return static_cast<std::int64_t>(input_.disaggregation.bandwidth_gb_s * 1e9 + 0.5);
  }
  std::vector<const Transfer*> Flowing() const {
    std::vector<const Transfer*> flowing;
    for (const Transfer& t : transfers_) {
      if (t.begins <= link_at_) flowing.push_back(&t);
    }
    return flowing;
  }
  TimeNs NextOfLink() const {
    TimeNs next = kNever;
    for (const Transfer& t : transfers_) {
      if (t.begins > link_at_) next = std::min(next, t.begins);
    }
    const auto flowing = static_cast<__int128>(Flowing().size());
    for (const Transfer* t : Flowing()) {
      const __int128 end = link_at_ + (t->left * flowing + Rate() - 1) / Rate();
      if (end < next) next = static_cast<TimeNs>(end);
    }
    return next;
  }
  void PassLink(TimeNs time) {
    const auto flowing = static_cast<__int128>(Flowing().size());
    for (Transfer& t : transfers_) {
      if (t.begins <= link_at_)
        t.left -= static_cast<__int128>(Rate()) * (time - link_at_) / flowing;
    }
    link_at_ = time;
    std::vector<Sequence*> done;
    for (std::size_t i = transfers_.size(); i > 0; --i) {
      const Transfer& t = transfers_[i - 1];
      if (t.begins > time || t.left > 0) continue;
      done.push_back(t.sequence);
      transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(i - 1));
    }
    if (flowing > 1) output_.coverage.shared_transfers += static_cast<std::int64_t>(done.size());
    std::sort(done.begin(), done.end(),
              [](const Sequence* a, const Sequence* b) { return a->id < b->id; });
    for (Sequence* s : done) HasArrived(s);
  }
  void HasArrived(Sequence* s) {
    ++output_.coverage.transfers;
    HandOverOf(*s).arrived = now_;
    Replica& replica = replicas_[static_cast<std::size_t>(output_.results.replica[Row(*s)])];
    Tell(replica, [s, &replica] { HearOfArrival(s, replica); });
    FreePrefillSide(s->id);
  }
  void Tell(Replica& replica, std::function<void()> news) {
    const bool in_a_step = !replica.in_flight.empty() && replica.due == kNever;
    if (in_a_step) {
      replica.news.push_back(std::move(news));
    } else {
      news();
      if (replica.sleeps) Wake(replica);
    }
  }
  static void HearOfArrival(Sequence* s, Replica& replica) {
    Scheduler& scheduler = *replica.scheduler;
    scheduler.under_way.erase(std::find(scheduler.under_way.begin(), scheduler.under_way.end(), s));
    if (s->timed_out) {
      scheduler.blocks.Release(s->blocks);
    } else {
      s->arrived = true;
      scheduler.arrived.push_back(s);
    }
  }
  void FreePrefillSide(RequestId id) {
    const HandOver& h = output_.results.hand_overs[static_cast<std::size_t>(id)];
    Replica& replica = replicas_[static_cast<std::size_t>(h.prefill_replica)];
    Sequence* s = prefilled_[id];
    prefilled_.erase(id);
    if (replica.sleeps) ++output_.coverage.prefill_waited_for_transfers;
    Tell(replica, [s, &replica] { replica.scheduler->blocks.Release(s->blocks); });
  }

  // ---- A replica between two steps.

  // One that is due does one thing; false when none is.
  bool ActOnce() {
    for (Replica& replica : replicas_) {
      if (replica.due > now_) continue;
      Act(replica);
      return true;
    }
    return false;
  }

  void Act(Replica& replica) {
    Scheduler& scheduler = *replica.scheduler;
    for (Sequence* s : replica.joining) scheduler.Enqueue(s);
    replica.joining.clear();
    GiveUp(replica);
    const bool work =
        !scheduler.running.empty() || !scheduler.waiting.empty() || !scheduler.arrived.empty();
    const std::size_t most = replica.pool->engine.async_scheduling ? 2 : 1;
    const TimeNs start =
        replica.in_flight.empty() ? now_ : std::max(now_, replica.in_flight.back().record.end);
    if (work && replica.in_flight.size() < most && (!input_.horizon || start < *input_.horizon)) {
      const bool preempted = Launch(replica, start);
      if (replica.in_flight.empty()) {
        if (preempted) return;  // it is called again at once
        ++output_.coverage.slept;
        replica.sleeps = true;
        replica.due = kNever;
        return;
      }
      if (launched_ && replica.in_flight.size() < most) return;
    }
    replica.due = kNever;  // until its oldest step is done
    if (!replica.in_flight.empty() || work) return;
    replica.sleeps = !scheduler.under_way.empty();
  }

  void GiveUp(Replica& replica) {
    std::vector<Sequence*> gone;
    for (Sequence* s : Clients(replica)) {
      if (s->gives_up <= now_) gone.push_back(s);
    }
    std::sort(gone.begin(), gone.end(), [](const Sequence* a, const Sequence* b) {
      return std::tie(a->gives_up, a->id) < std::tie(b->gives_up, b->id);
    });
    for (Sequence* s : gone) {
      const bool abandoned = s->remote;
      replica.scheduler->Remove(*s);
      replica.left.push_back(now_ + 1);
      output_.results.state[Row(*s)] = RequestState::kTimedOut;
      if (abandoned) FreePrefillSide(s->id);
    }
  }

  // True when it preempted somebody.
  bool Launch(Replica& replica, TimeNs start) {
    Scheduler& scheduler = *replica.scheduler;
    Batch batch;
    batch.call = scheduler.Schedule();
    launched_ = false;
    for (const auto& [s, blocks] : batch.call.reserved) {
      HandOver& h = HandOverOf(*s);
      h.reserved = now_;
      h.bytes = blocks * replica.pool->block_bytes;
      if (blocks == 0) ++output_.coverage.empty_transfers;
      const auto latency = static_cast<TimeNs>(input_.disaggregation.base_latency_us * 1000 + 0.5);
      transfers_.push_back(
          {s, now_ + std::max<TimeNs>(latency, 1), static_cast<__int128>(h.bytes) * 1'000'000'000});
    }
    for (const RequestId id : batch.call.preempted) {
      ++output_.results.preemptions[static_cast<std::size_t>(id)];
      output_.results.state[static_cast<std::size_t>(id)] = RequestState::kQueued;
      spent_[static_cast<std::size_t>(id)].preempted_at = start;
      if (replica.pool->role == PoolRole::kDecode) ++output_.coverage.decode_preemptions;
    }
    if (batch.call.members.empty()) return !batch.call.preempted.empty();
    launched_ = true;
    StepRecord& record = batch.record;
    record.replica = replica.number;
    record.index = replica.launched++;
    record.scheduled = now_;
    record.start = start;
    const StepPrice price = Price(replica, batch.call, true);
    record.bound = price.bound;
    record.end = start + price.duration;
    record.preempted = batch.call.preempted;
    std::int64_t decodes = 0;
    for (const Member& member : batch.call.members) {
      record.members.push_back(member.record);
      (member.decode ? decodes : record.prefill_tokens) += member.decode ? 1 : member.record.tokens;
    }
    if (decodes > 0 && record.prefill_tokens > 0) {
      record.interference =
          std::max<TimeNs>(price.duration - Price(replica, batch.call, false).duration, 0);
    }
    record.free_after_schedule = scheduler.blocks.Free();
    record.running_after_schedule = static_cast<std::int64_t>(scheduler.running.size());
    record.waiting_after_schedule = scheduler.Waiting();
    for (const Member& member : batch.call.members) Start(member, record);
    SplitTime(scheduler, batch.call, record);
    replica.in_flight.push_back(std::move(batch));
    return !replica.in_flight.back().call.preempted.empty();
  }

  void Start(const Member& member, const StepRecord& record) {
    RequestResults& results = output_.results;
    const std::size_t r = Row(*member.sequence);
    results.state[r] = RequestState::kRunning;
    HandOver& h = results.hand_overs[r];
    if (h.arrived >= 0 && h.resumed < 0) {
      SERVECAST_CHECK(record.start >= h.arrived, "pd reference: it decodes before its KV is there");
      h.resumed = record.start;
    }
    if (results.first_scheduled[r] >= 0) return;
    results.first_scheduled[r] = record.start;
    results.cached_tokens[r] = static_cast<std::int32_t>(member.record.computed_before);
  }

  StepPrice Price(const Replica& replica, const Call& call, bool with_prefills) const {
    BatchShape shape;
    std::vector<PrefillChunk> chunks;
    for (const Member& member : call.members) {
      if (member.decode) {
        ++shape.decode_seqs;
        shape.decode_context_tokens += member.record.computed_before;
        shape.decode_kv_blocks += static_cast<std::int64_t>(member.sequence->blocks.size());
      } else if (with_prefills) {
        chunks.push_back({.tokens = member.record.tokens,
                          .context = member.record.computed_before,
                          .prompt = member.sequence->prompt,
                          .samples = member.record.sampled});
      }
    }
    shape.prefill = chunks;
    return replica.pool->latency->Price(shape);
  }

  void Apply(Replica& replica) {
    Batch batch = std::move(replica.in_flight.front());
    replica.in_flight.pop_front();
    Scheduler& scheduler = *replica.scheduler;
    StepRecord& record = batch.record;
    std::int64_t tokens = 0;
    for (const Member& member : batch.call.members) tokens += member.record.sampled ? 1 : 0;
    for (const Member& member : batch.call.members) {
      if (scheduler.Apply(member)) Deliver(replica, *member.sequence, record, tokens);
    }
    record.free_after_step = scheduler.blocks.Free();
    record.running_after_step = static_cast<std::int64_t>(scheduler.running.size());
    record.waiting_after_step = scheduler.Waiting();
    output_.steps[static_cast<std::size_t>(replica.number)].push_back(std::move(record));
    for (const std::function<void()>& news : replica.news) news();
    replica.news.clear();
    replica.due = now_;
  }

  // A token of it is out.
  void Deliver(Replica& replica, Sequence& s, StepRecord& record, std::int64_t tokens_of_step) {
    RequestResults& results = output_.results;
    const std::size_t r = Row(s);
    const bool hidden = s.hands_over && input_.disaggregation.first_token_from_decode;
    const LatencyModel& latency = *replica.pool->latency;
    if (s.generated == 1 && !hidden) late_[r] = tokens_of_step * latency.DeliveryDelay();
    const TimeNs seen = now_ + s.generated * latency.OutputTokenDelay() + late_[r];
    if (!hidden) {
      ++output_.output_tokens;
      results.generated[r] = static_cast<std::int32_t>(s.generated);
      if (s.generated == 1) {
        results.first_token[r] = seen;
      }
    }
    if (s.generated < s.wanted) return;
    const bool in_vain = !s.hands_over && seen > s.gives_up;
    replica.left.push_back(now_ + (in_vain ? 1 : 0));
    if (s.hands_over) {
      HandOver& h = results.hand_overs[r];
      h.prefilled = now_;
      h.prefill_replica = static_cast<std::int32_t>(replica.number);
      results.state[r] = RequestState::kQueued;
      prefilled_[s.id] = &s;
      handed_over_.insert({now_, r});
      return;
    }
    record.finished.push_back(s.id);
    if (seen > s.gives_up) {
      results.state[r] = RequestState::kTimedOut;
      return;
    }
    results.completion[r] = seen;
    results.state[r] = RequestState::kCompleted;
    WriteTimes(r);
    if (r + 1 < output_.requests.think.size() && output_.requests.think[r + 1] >= 0) {
      output_.requests.arrival[r + 1] = seen + output_.requests.think[r + 1];
      Arrive(r + 1);
    }
  }

  // ---- Where time goes: each step's to all that run while it does.

  struct Spent {
    TimeSplit all, to_first;
    TimeNs preempted_at = -1;
  };

  void SplitTime(const Scheduler& scheduler, const Call& call, const StepRecord& record) {
    std::set<const Sequence*> in_step;
    for (const Member& member : call.members) {
      const Sequence& s = *member.sequence;
      in_step.insert(&s);
      Spent& spent = spent_[Row(s)];
      if (spent.preempted_at >= 0) spent.all.preempted += record.start - spent.preempted_at;
      spent.preempted_at = -1;
      // The step that makes the first token on the decode side is part of the prefill.
      Spend(spent, member.decode && s.generated + s.placeholders > 1, record);
      const bool first = member.record.sampled && s.generated == 0 && s.placeholders == 1;
      if (first) spent.to_first = spent.all;
    }
    for (const Sequence* s : scheduler.running) {
      if (in_step.count(s) > 0 || s->generated + s->placeholders >= s->wanted) continue;
      Spend(spent_[Row(*s)], !s->prefilling, record);
    }
  }
  static void Spend(Spent& spent, bool decodes, const StepRecord& record) {
    const TimeNs duration = record.end - record.start;
    if (decodes) {
      spent.all.interference += record.interference;
      spent.all.decode += duration - record.interference;
    } else {
      spent.all.prefill += duration;
    }
  }
  void WriteTimes(std::size_t r) {
    const RequestResults& results = output_.results;
    const HandOver& h = results.hand_overs[r];
    RequestTimes& times = output_.times[r];
    times = {spent_[r].to_first, spent_[r].all};
    for (TimeSplit* of : {&times.ttft, &times.e2e}) {
      of->queue = results.first_scheduled[r] - results.enqueue[r];
      const bool goes_on = of == &times.e2e || input_.disaggregation.first_token_from_decode;
      if (h.prefilled < 0 || !goes_on) continue;
      of->transfer = h.arrived - h.reserved;
      of->handover = h.resumed - h.prefilled - of->transfer;
    }
    times.ttft.host = results.first_token[r] - output_.requests.arrival[r] - times.ttft.Sum();
    times.e2e.host = results.completion[r] - output_.requests.arrival[r] - times.e2e.Sum();
  }

  const PdInput& input_;
  PdOutput output_;
  std::map<std::size_t, TimeNs> late_;  // by how much a client sees its tokens later
  std::deque<Replica> replicas_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<Spent> spent_;  // by row
  std::set<std::pair<TimeNs, std::size_t>> coming_, handed_over_;
  std::map<RequestId, Sequence*> prefilled_;  // that hold blocks on their prefill side
  std::vector<Transfer> transfers_;
  TimeNs link_at_ = 0, now_ = 0;
  std::int64_t turn_prefill_ = 0, turn_whole_ = 0, turn_decode_ = 0;
  bool launched_ = false;
};

}  // namespace

PdOutput RunPdReference(const PdInput& input) { return Driver(input).Run(); }

}  // namespace servecast::testing

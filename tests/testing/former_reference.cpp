#include "testing/former_reference.h"

#include <algorithm>
#include <deque>

namespace servecast::testing {
namespace {

struct Request {
  std::int64_t target = 0;    // tokens to compute before the next one is made
  std::int64_t computed = 0;  // tokens whose KV is there
  std::int64_t made = 0;      // output tokens
  std::int64_t limit = 0;     // of them
  std::int64_t blocks = 0;
  TimeNs last_token = -1, admitted = 0;
  TimeNs waits_since = 0;
  TimeNs late = 0;  // by how much its client sees its tokens later
  bool flying = false, gave_up = false, enqueued = false;

  bool in_prefill() const { return computed < target; }
};

struct Member {
  std::size_t request = 0;
  std::int64_t tokens = 0;
};

struct Flight {
  std::vector<Member> members;
  std::vector<bool> decodes;
  StepRecord record;
  std::int64_t running = 0, used = 0, tokens = 0, sampled = 0;
  BlockedBy blocked = BlockedBy::kNothing;
};

class Reference {
 public:
  explicit Reference(const FormerReferenceInput& in) : in_(in) {
    out_.requests = in.requests;
    out_.results.Resize(in.requests.size());
    all_.resize(in.requests.arrival.size());
    free_at_.assign(in.stages.size(), 0);
    for (const std::int32_t output : in.requests.output_tokens) {
      declared_ = std::max<std::int64_t>(declared_, output);
    }
    for (std::size_t r = 0; r < all_.size(); ++r) {
      const bool follows = !Table().think.empty() && Table().think[r] >= 0;
      const bool paused = !Table().pause.empty() && Table().pause[r] >= 0;
      if (!follows && !paused && !Send(r)) ClientFree(OverUnserved(r));
    }
  }

  FormerReferenceOutput Run() {
    for (bool formed = true;;) {
      Enqueue();
      GiveUps();
      Enqueue();
      for (formed = CanForm(); formed && CanForm();) formed = Form();
      const TimeNs next = Next();
      if (flights_.empty() && next >= in_.horizon) break;
      if (next == kNever) break;
      now_ = std::max(now_, next);
      while (!flights_.empty() && flights_.front().record.end <= now_) End();
    }
    if (in_.horizon != kNever) {
      now_ = std::max(now_, in_.horizon);
      Enqueue();
    }
    for (std::size_t r = 0; r < all_.size(); ++r) {
      if (State(r) == RequestState::kQueued) StopWaiting(r);
      if (State(r) == RequestState::kQueued || State(r) == RequestState::kRunning) {
        out_.results.generated[r] = static_cast<std::int32_t>(all_[r].made);
      }
    }
    out_.now = now_;
    return out_;
  }

 private:
  RequestTable& Table() { return out_.requests; }
  RequestState& State(std::size_t r) { return out_.results.state[r]; }

  // ---- Clients

  TimeNs Patience(std::size_t r) { return Table().timeout.empty() ? kNever : Table().timeout[r]; }
  bool Send(std::size_t r) {
    const std::int64_t prompt = Table().prompt_tokens[r];
    const TimeNs delay = in_.latency->EnqueueDelay(prompt);
    if (prompt >= in_.max_model_len || Patience(r) < delay) return false;
    out_.results.enqueue[r] = Table().arrival[r] + delay;
    return true;
  }
  TimeNs OverUnserved(std::size_t r) {
    const bool dropped = Table().prompt_tokens[r] >= in_.max_model_len;
    return Table().arrival[r] + (dropped ? 0 : Patience(r));
  }
  void ClientFree(TimeNs time) {
    for (std::size_t r = 0; r < Table().pause.size(); ++r) {
      if (Table().pause[r] < 0 || Table().arrival[r] >= 0) continue;
      Table().arrival[r] = time + Table().pause[r];
      if (Send(r)) return;
      time = OverUnserved(r);
    }
  }
  void Answered(std::size_t r) {
    const std::size_t next = r + 1;
    const TimeNs completion = out_.results.completion[r];
    if (next >= Table().think.size() || Table().think[next] < 0) return ClientFree(completion);
    Table().arrival[next] = completion + Table().think[next];
    if (!Send(next)) ClientFree(OverUnserved(next));
  }
  void TimedOut(std::size_t r, TimeNs heard) {
    State(r) = RequestState::kTimedOut;
    ++out_.timed_out;
    if (!Table().pause.empty()) ClientFree(std::max(heard, OverUnserved(r)));
  }

  // ---- What happens at an instant

  void Enqueue() {
    for (;;) {
      std::size_t first = all_.size();
      for (std::size_t r = 0; r < all_.size(); ++r) {
        const TimeNs at = out_.results.enqueue[r];
        if (all_[r].enqueued || at < 0 || at > now_) continue;
        if (first == all_.size() || at < out_.results.enqueue[first]) first = r;
      }
      if (first == all_.size()) return;
      Request& q = all_[first];
      q.enqueued = true;
      q.waits_since = out_.results.enqueue[first];
      q.target = Table().prompt_tokens[first];
      q.limit = std::min<std::int64_t>(Table().output_tokens[first], in_.max_model_len - q.target);
      State(first) = RequestState::kQueued;
      queue_.push_back(first);
    }
  }

  void GiveUps() {
    for (;;) {
      // In order of their times, as each may free a client.
      std::size_t first = all_.size();
      for (std::size_t r = 0; r < all_.size(); ++r) {
        const bool here = State(r) == RequestState::kQueued || State(r) == RequestState::kRunning;
        if (!here || Patience(r) == kNever || all_[r].gave_up) continue;
        if (Table().arrival[r] + Patience(r) > now_) continue;
        if (first == all_.size() || Deadline(r) < Deadline(first)) first = r;
      }
      if (first == all_.size()) return;
      all_[first].gave_up = true;
      if (all_[first].flying) continue;  // until its batch ends
      Leave(first);
    }
  }
  TimeNs Deadline(std::size_t r) { return Table().arrival[r] + Patience(r); }

  void Leave(std::size_t r) {
    if (State(r) == RequestState::kQueued) {
      StopWaiting(r);
      queue_.erase(std::find(queue_.begin(), queue_.end(), r));
    } else {
      parked_.erase(std::find(parked_.begin(), parked_.end(), r));
    }
    all_[r].blocks = 0;
    out_.results.generated[r] = static_cast<std::int32_t>(all_[r].made);
    TimedOut(r, now_);
  }
  void StopWaiting(std::size_t r) { out_.waiting_ns += now_ - all_[r].waits_since; }

  TimeNs Next() {
    TimeNs next = flights_.empty() ? kNever : flights_.front().record.end;
    if (!flights_.empty() && !CanForm()) return next;
    for (std::size_t r = 0; r < all_.size(); ++r) {
      if (!all_[r].enqueued && out_.results.enqueue[r] >= 0) {
        next = std::min(next, out_.results.enqueue[r]);
      }
    }
    return next;
  }

  // ---- Batches

  bool CanForm() {
    return flights_.size() < in_.stages.size() && std::max(now_, free_at_[0]) < in_.horizon;
  }

  std::int64_t Used() const {
    std::int64_t used = 0;
    for (const Request& q : all_) used += q.blocks;
    return used;
  }
  std::int64_t Admitted() const {
    return std::count_if(all_.begin(), all_.end(), [](const Request& q) { return q.blocks > 0; });
  }
  std::int64_t FreeBlocks() const { return in_.blocks - Used(); }
  std::int64_t BlocksFor(std::int64_t tokens) const {
    return (tokens + in_.block_size - 1) / in_.block_size;
  }
  std::int64_t MembersAllowed() const {
    return in_.max_num_seqs / static_cast<std::int64_t>(in_.stages.size());
  }
  static std::int64_t TokensIn(const std::vector<Member>& batch) {
    std::int64_t tokens = 0;
    for (const Member& member : batch) tokens += member.tokens;
    return tokens;
  }
  bool NoSeat(const std::vector<Member>& batch) const {
    return Admitted() >= in_.max_num_seqs ||
           static_cast<std::int64_t>(batch.size()) >= MembersAllowed();
  }
  bool PromptFits(std::size_t r) const {
    const std::int64_t watermark = Admitted() > 0 ? in_.watermark_blocks : 0;
    return FreeBlocks() >= BlocksFor(all_[r].target) + watermark;
  }

  void Restart(std::size_t r) {
    Request& q = all_[r];
    if (q.in_prefill()) ++out_.partial_restarts;
    if (q.in_prefill() && q.last_token >= 0) {
      out_.results.SetbacksOf(r).recompute += now_ - q.admitted;
    }
    q.target = Table().prompt_tokens[r] + q.made;
    q.computed = 0;
    q.blocks = 0;
    q.waits_since = now_;
    out_.results.generated[r] = static_cast<std::int32_t>(q.made);
    ++out_.results.preemptions[r];
    ++out_.preemptions;
    out_.results.SetbacksOf(r).preempted_at = now_;
    State(r) = RequestState::kQueued;
    queue_.push_front(r);
    restarted_.push_back(static_cast<RequestId>(r));
  }

  // A block for the next token of a decode, from the last of `others` if need be.
  bool BlockForDecode(std::size_t r, std::deque<std::size_t>& others) {
    const std::int64_t wanted = BlocksFor(all_[r].computed + 1);
    while (wanted > all_[r].blocks && FreeBlocks() < 1) {
      if (others.empty()) {
        ++out_.self_restarts;
        Restart(r);
        return false;
      }
      const std::size_t victim = others.back();
      others.pop_back();
      Restart(victim);
    }
    all_[r].blocks = std::max(all_[r].blocks, wanted);
    return true;
  }

  void AdmitHead(std::vector<Member>& batch, std::int64_t blocks, std::int64_t tokens) {
    const std::size_t r = queue_.front();
    queue_.pop_front();
    StopWaiting(r);
    all_[r].blocks = blocks;
    State(r) = RequestState::kRunning;
    batch.push_back({r, tokens});
  }

  void ByArrival(std::deque<std::size_t>& list) {
    std::stable_sort(list.begin(), list.end(), [&](std::size_t a, std::size_t b) {
      return Table().arrival[a] < Table().arrival[b];
    });
  }

  void FormVllmV0(std::vector<Member>& batch) {
    std::int64_t longest = 0;
    while (!queue_.empty()) {
      const std::size_t r = queue_.front();
      const std::int64_t padded = std::max(longest, all_[r].target);
      const auto members = static_cast<std::int64_t>(batch.size()) + 1;
      blocked_ = NoSeat(batch)                                   ? BlockedBy::kSeats
                 : members * padded > in_.max_num_batched_tokens ? BlockedBy::kTokenBudget
                 : !PromptFits(r)                                ? BlockedBy::kKvBlocks
                                                                 : BlockedBy::kNothing;
      if (blocked_ != BlockedBy::kNothing) break;
      longest = padded;
      AdmitHead(batch, BlocksFor(all_[r].target), all_[r].target);
    }
    if (!batch.empty()) return;
    ByArrival(parked_);
    while (!parked_.empty() && static_cast<std::int64_t>(batch.size()) < MembersAllowed()) {
      const std::size_t r = parked_.front();
      parked_.pop_front();
      if (BlockForDecode(r, parked_)) batch.push_back({r, 1});
    }
  }

  void FormSarathi(std::vector<Member>& batch) {
    std::deque<std::size_t> begun, kept;
    while (!parked_.empty() && static_cast<std::int64_t>(batch.size()) < MembersAllowed()) {
      const std::size_t r = parked_.front();
      parked_.pop_front();
      if (all_[r].in_prefill()) {
        begun.push_back(r);
      } else if (BlockForDecode(r, parked_)) {
        batch.push_back({r, 1});
      }
    }
    for (const std::size_t r : begun) {
      const std::int64_t room = in_.max_num_batched_tokens - TokensIn(batch);
      const std::int64_t chunk = std::min(room, all_[r].target - all_[r].computed);
      if (chunk > 0) {
        batch.push_back({r, chunk});
      } else {
        kept.push_back(r);
      }
    }
    parked_.insert(parked_.begin(), kept.begin(), kept.end());
    ByArrival(parked_);
    while (!queue_.empty()) {
      const std::size_t r = queue_.front();
      const std::int64_t room = in_.max_num_batched_tokens - TokensIn(batch);
      blocked_ = NoSeat(batch)    ? BlockedBy::kSeats
                 : room <= 0      ? BlockedBy::kTokenBudget
                 : !PromptFits(r) ? BlockedBy::kKvBlocks
                                  : BlockedBy::kNothing;
      if (blocked_ != BlockedBy::kNothing) return;
      if (room < all_[r].target) ++out_.chunked;
      AdmitHead(batch, BlocksFor(all_[r].target), std::min(room, all_[r].target));
    }
  }

  // orca, faster_transformer
  void FormReserving(std::vector<Member>& batch, bool fixed) {
    const bool joins = !fixed || parked_.empty();
    while (!parked_.empty() && static_cast<std::int64_t>(batch.size()) < MembersAllowed()) {
      batch.push_back({parked_.front(), 1});
      parked_.pop_front();
    }
    while (!queue_.empty()) {
      const std::int64_t blocks = BlocksFor(in_.max_model_len);
      blocked_ = !joins || NoSeat(batch) ? BlockedBy::kSeats
                 : FreeBlocks() < blocks ? BlockedBy::kKvBlocks
                                         : BlockedBy::kNothing;
      if (blocked_ != BlockedBy::kNothing) return;
      AdmitHead(batch, blocks, all_[queue_.front()].target);
    }
  }

  // The most tokens that these will hold at once, if each makes all that is declared: at the moment
  // when the one with the n-th most to go ends, all before it have grown as much.
  std::int64_t FuturePeak(std::vector<std::size_t> requests) {
    std::vector<std::pair<std::int64_t, std::int64_t>> needs;  // (to go, now)
    for (const std::size_t r : requests) {
      const Request& q = all_[r];
      const std::int64_t prompt = Table().prompt_tokens[r];
      const std::int64_t most = std::min(declared_, in_.max_model_len - prompt);
      if (q.blocks == 0) {
        needs.emplace_back(most - 2, prompt + 1);
      } else {
        needs.emplace_back(std::max<std::int64_t>(0, most - q.made - 1), prompt + q.made);
      }
    }
    std::stable_sort(needs.begin(), needs.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::int64_t peak = 0;
    for (std::size_t n = 1; n <= needs.size(); ++n) {
      std::int64_t then = 0;
      for (std::size_t i = 0; i < n; ++i) then += needs[i].second + needs[n - 1].first;
      peak = std::max(peak, then);
    }
    return peak;
  }

  void FormLightLlm(std::vector<Member>& batch) {
    const bool looks = parked_.empty() || decodes_since_look_ >= 10;
    if (looks && !parked_.empty()) decodes_since_look_ = 0;
    while (looks && !queue_.empty()) {
      std::vector<std::size_t> together(parked_.begin(), parked_.end());
      for (const Member& member : batch) together.push_back(member.request);
      std::vector<std::size_t> fresh;
      for (const Member& member : batch) fresh.push_back(member.request);
      const std::size_t r = queue_.front();
      together.push_back(r);
      // Those of this batch count as they did when they were admitted: with nothing held.
      std::vector<std::int64_t> held;
      for (const std::size_t f : fresh) {
        held.push_back(all_[f].blocks);
        all_[f].blocks = 0;
      }
      const std::int64_t peak = FuturePeak(together);
      for (std::size_t i = 0; i < fresh.size(); ++i) all_[fresh[i]].blocks = held[i];
      const std::int64_t tokens = TokensIn(batch) + all_[r].target;
      blocked_ = NoSeat(batch)                         ? BlockedBy::kSeats
                 : tokens > in_.max_num_batched_tokens ? BlockedBy::kTokenBudget
                 : peak >= in_.blocks                  ? BlockedBy::kKvBlocks
                                                       : BlockedBy::kNothing;
      if (blocked_ != BlockedBy::kNothing) break;
      AdmitHead(batch, all_[r].target, all_[r].target);
    }
    if (!batch.empty() || parked_.empty()) return;
    ++decodes_since_look_;
    for (const std::size_t r : parked_) {
      all_[r].blocks = std::max(all_[r].blocks, all_[r].computed + 1);
      batch.push_back({r, 1});
    }
    parked_.clear();
  }

  TimeNs PriceOf(const BatchShape& shape, std::int64_t tokens, std::size_t stage) {
    const FormerReferenceInput::Stage& at = in_.stages[stage];
    return at.weight * in_.latency->Price(shape).duration + at.send + at.send_per_token * tokens;
  }

  bool Form() {
    Flight flight;
    blocked_ = BlockedBy::kNothing;
    restarted_.clear();
    if (in_.policy == "vllm_v0") FormVllmV0(flight.members);
    if (in_.policy == "sarathi") FormSarathi(flight.members);
    if (in_.policy == "orca") FormReserving(flight.members, false);
    if (in_.policy == "faster_transformer") FormReserving(flight.members, true);
    if (in_.policy == "lightllm") FormLightLlm(flight.members);
    if (flight.members.empty()) return false;
    flight.blocked = restarted_.empty() ? blocked_ : BlockedBy::kKvBlocks;
    Launch(flight);
    flights_.push_back(flight);
    return true;
  }

  void Launch(Flight& flight) {
    StepRecord& record = flight.record;
    record.scheduled = now_;
    record.start = std::max(now_, free_at_[0]);
    record.preempted = restarted_;
    if (record.start > now_ || !flights_.empty()) ++out_.overlapping;
    BatchShape shape;
    std::vector<PrefillChunk> chunks;
    std::int64_t longest = 0;
    for (const Member& member : flight.members) {
      const std::size_t r = member.request;
      Request& q = all_[r];
      q.flying = true;
      const bool again = out_.results.preemptions[r] > 0;
      const bool decodes = !q.in_prefill();
      flight.decodes.push_back(decodes);
      if (q.computed == 0) {
        q.admitted = record.start;
        if (out_.results.first_scheduled[r] < 0) out_.results.first_scheduled[r] = record.start;
        if (again) {
          Setbacks& s = out_.results.SetbacksOf(r);
          s.preempted += record.start - s.preempted_at;
          if (q.last_token < 0) s.preempted_to_first = s.preempted;
        }
      }
      const MemberKind kind = q.computed > 0 ? MemberKind::kContinued
                              : again        ? MemberKind::kResumed
                                             : MemberKind::kNew;
      const bool samples = decodes || q.computed + member.tokens == q.target;
      record.members.push_back(
          {static_cast<RequestId>(r), member.tokens, q.computed, kind, samples});
      flight.sampled += samples ? 1 : 0;
      flight.tokens += member.tokens;
      if (decodes) {
        ++shape.decode_seqs;
        shape.decode_context_tokens += q.computed;
      } else {
        chunks.push_back({member.tokens, q.computed, Table().prompt_tokens[r], samples});
        record.prefill_tokens += member.tokens;
        longest = std::max(longest, member.tokens);
      }
    }
    shape.prefill = chunks;
    out_.prefill_tokens += record.prefill_tokens;
    out_.padding_tokens +=
        longest * static_cast<std::int64_t>(chunks.size()) - record.prefill_tokens;
    BatchShape without = shape;
    without.prefill = {};
    TimeNs at = record.start, interference = 0, most = -1;
    for (std::size_t stage = 0; stage < in_.stages.size(); ++stage) {
      const TimeNs time = PriceOf(shape, flight.tokens, stage);
      const TimeNs from = std::max(at, free_at_[stage]);
      at = free_at_[stage] = from + time;
      if (in_.stages.size() > 1) record.stages.push_back({from, at});
      interference += time;
      if (shape.decode_seqs > 0) interference -= PriceOf(without, shape.decode_seqs, stage);
      if (time > most) {
        most = time;
        record.bound = in_.latency->Price(shape).bound;
      }
    }
    record.end = at;
    interference = std::max<TimeNs>(0, interference);
    if (!chunks.empty() && shape.decode_seqs > 0) {
      record.interference = interference;
      for (std::size_t i = 0; i < flight.members.size(); ++i) {
        if (flight.decodes[i]) out_.results.interference[flight.members[i].request] += interference;
      }
    } else if (!chunks.empty() && in_.stages.size() == 1) {
      for (const std::size_t r : parked_) {
        if (!all_[r].in_prefill()) out_.results.interference[r] += interference;
      }
    }
    flight.running = Admitted();
    flight.used = Used();
    record.free_after_schedule = FreeBlocks();
    record.running_after_schedule = Admitted();
    record.waiting_after_schedule = static_cast<std::int64_t>(queue_.size());
  }

  void End() {
    Flight flight = flights_.front();
    StepRecord& record = flight.record;
    const TimeNs delay = in_.latency->OutputTokenDelay();
    const TimeNs time = record.end - std::max(record.start, recorded_);
    recorded_ = record.end;
    out_.running_ns += static_cast<__int128>(flight.running) * time;
    out_.block_ns += static_cast<__int128>(flight.used) * time;
    out_.token_ns += static_cast<__int128>(flight.tokens) * time;
    out_.blocked_ns[static_cast<std::size_t>(flight.blocked)] += time;
    out_.output_tokens += flight.sampled;
    for (std::size_t i = 0; i < flight.members.size(); ++i) {
      const std::size_t r = flight.members[i].request;
      Request& q = all_[r];
      q.flying = false;
      q.computed += flight.members[i].tokens;
      if (!q.in_prefill()) {
        ++q.made;
        if (q.made == 1) {
          q.late = flight.sampled * in_.latency->DeliveryDelay();
          out_.results.first_token[r] = record.end + delay + q.late;
        } else {
          ++out_.itl[record.end - q.last_token + delay];
        }
        if (q.made > 1 && !flight.decodes[i]) {
          out_.results.SetbacksOf(r).recompute += record.end - q.admitted;
        }
        q.last_token = record.end;
      }
      if (q.made == q.limit) {
        Finish(r, record);
      } else {
        parked_.push_back(r);
        if (q.gave_up) {
          ++out_.aborted_in_flight;
          Leave(r);
        }
      }
    }
    record.index = static_cast<std::int64_t>(out_.steps.size());
    record.free_after_step = FreeBlocks();
    record.running_after_step = Admitted();
    record.waiting_after_step = static_cast<std::int64_t>(queue_.size());
    out_.steps.push_back(record);
    flights_.pop_front();
  }

  void Finish(std::size_t r, StepRecord& record) {
    Request& q = all_[r];
    q.blocks = 0;
    record.finished.push_back(static_cast<RequestId>(r));
    out_.results.generated[r] = static_cast<std::int32_t>(q.made);
    const TimeNs seen = record.end + q.made * in_.latency->OutputTokenDelay() + q.late;
    if (Patience(r) < seen - Table().arrival[r]) return TimedOut(r, record.end);
    out_.results.completion[r] = seen;
    State(r) = RequestState::kCompleted;
    if (q.made < Table().output_tokens[r]) ++out_.length_capped;
    Answered(r);
  }

  FormerReferenceInput in_;
  FormerReferenceOutput out_;
  std::vector<Request> all_;
  std::deque<std::size_t> queue_, parked_;
  std::deque<Flight> flights_;
  std::vector<TimeNs> free_at_;  // when each stage is
  std::vector<RequestId> restarted_;
  BlockedBy blocked_ = BlockedBy::kNothing;
  std::int64_t declared_ = 0, decodes_since_look_ = 0;
  TimeNs now_ = 0, recorded_ = 0;
};

}  // namespace

FormerReferenceOutput RunFormerReference(const FormerReferenceInput& input) {
  return Reference(input).Run();
}

}  // namespace servecast::testing

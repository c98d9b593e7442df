#include "testing/scheduled_reference.h"

#include <algorithm>
#include <deque>

#include "testing/reference_stalls.h"
#include "testing/reference_take_up.h"
#include "testing/scheduled_reference_rules.h"

namespace servecast::testing {
namespace {

struct Request : ScheduledJob {
  std::int64_t limit = 0;  // of output tokens
  TimeNs last_token = -1, admitted = 0;
  TimeNs waits_since = 0;
  TimeNs late = 0;                 // by how much its client sees its tokens later
  TimeNs last_step = -1;           // its end
  std::int64_t flying_tokens = 0;  // of the batch that it is in
  bool flying = false, gave_up = false, enqueued = false;
  bool sent = false, taken_up = false;  // to the front end, by it
  bool gone = false;  // its client, at a moment that is to come, before the front end was done
};

struct Member {
  std::size_t request = 0;
  std::int64_t tokens = 0;
};

struct Flight {
  std::vector<Member> members;
  std::vector<bool> decodes;
  StepRecord record;
  std::int64_t running = 0, used = 0, unused = 0, tokens = 0, sampled = 0;
  BlockedBy blocked = BlockedBy::kNothing;
};

class Reference {
 public:
  explicit Reference(const ScheduledReferenceInput& in)
      : in_(in),
        order_(in_.scheduler, out_.requests),
        rules_(SettingsOf(in), out_.requests),
        front_end_(in.front_end_servers) {
    out_.requests = in.requests;
    out_.results.Resize(in.requests.size());
    all_.resize(in.requests.arrival.size());
    free_at_.assign(in.stages.size(), 0);
    std::int64_t declared = 0;
    for (const std::int32_t output : in.requests.output_tokens) {
      declared = std::max<std::int64_t>(declared, output);
    }
    for (std::size_t r = 0; r < all_.size(); ++r) {
      Request& q = all_[r];
      q.row = r;
      q.prompt = q.target = in.requests.prompt_tokens[r];
      q.most = std::min(declared, rules_.max_model_len - q.prompt);
      q.limit =
          std::min<std::int64_t>(in.requests.output_tokens[r], rules_.max_model_len - q.prompt);
      rules_.all.push_back(&q);
    }
    for (std::size_t r = 0; r < all_.size(); ++r) {
      const bool follows = !Table().think.empty() && Table().think[r] >= 0;
      const bool paused = !Table().pause.empty() && Table().pause[r] >= 0;
      if (!follows && !paused && !Send(r)) ClientFree(OverUnserved(r));
    }
  }

  ScheduledReferenceOutput Run() {
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
    out_.prefix_cache.evicted_blocks = rules_.Evicted();
    out_.self_restarts = rules_.self_restarts;
    out_.chunked = rules_.chunked;
    out_.from_the_middle = rules_.from_the_middle;
    return out_;
  }

 private:
  ScheduledSettings SettingsOf(const ScheduledReferenceInput& in) const {
    ScheduledSettings settings = in.settings;
    settings.stages = static_cast<std::int64_t>(in.stages.size());
    settings.in_order_of_enqueue = order_.InOrderOfEnqueue();
    settings.victim_by_priority = order_.VictimByPriority();
    return settings;
  }

  RequestTable& Table() { return out_.requests; }
  RequestState& State(std::size_t r) { return out_.results.state[r]; }

  // ---- Clients

  TimeNs Patience(std::size_t r) { return Table().timeout.empty() ? kNever : Table().timeout[r]; }
  bool Send(std::size_t r) {
    all_[r].sent = Table().prompt_tokens[r] < rules_.max_model_len;
    return all_[r].sent;
  }
  // The first up to then that arrives, or whose client gives up on the way; false: there is none.
  bool TakeUp(TimeNs until) {
    const auto when = [this](std::size_t r) {
      return std::pair(all_[r].gone ? OverUnserved(r) : Table().arrival[r], Table().arrival[r]);
    };
    std::size_t first = all_.size();
    for (std::size_t r = 0; r < all_.size(); ++r) {
      if (!all_[r].sent || (all_[r].taken_up && !all_[r].gone) || when(r).first > until) continue;
      if (first == all_.size() || when(r) < when(first)) first = r;
    }
    if (first == all_.size()) return false;
    all_[first].taken_up = true;
    if (std::exchange(all_[first].gone, false)) {
      ClientFree(OverUnserved(first));
      return true;
    }
    const TimeNs arrival = Table().arrival[first];
    const HostTimes times = in_.latency->TakeUpTimes(Table().prompt_tokens[first]);
    const TimeNs enqueue = front_end_.Enter(arrival, times);
    if (enqueue - arrival > Patience(first)) {
      all_[first].gone = true;
    } else {
      out_.results.enqueue[first] = enqueue;
    }
    return true;
  }
  TimeNs OverUnserved(std::size_t r) {
    const bool dropped = Table().prompt_tokens[r] >= rules_.max_model_len;
    return Table().arrival[r] + (dropped ? 0 : Patience(r));
  }
  void ClientFree(TimeNs time) {
    for (std::size_t r = 0; r < Table().pause.size(); ++r) {
      if (Table().pause[r] < 0 || Table().arrival[r] >= 0) continue;
      Table().arrival[r] = time + Table().pause[r];
      if (!Table().due.empty()) Table().arrival[r] = std::max(Table().arrival[r], Table().due[r]);
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
    while (TakeUp(now_)) {
    }
    for (;;) {
      std::size_t first = all_.size();
      for (std::size_t r = 0; r < all_.size(); ++r) {
        const TimeNs at = out_.results.enqueue[r];
        if (all_[r].enqueued || at < 0 || at > now_) continue;
        const auto when = [&](std::size_t i) {
          return std::pair(out_.results.enqueue[i], Table().arrival[i]);
        };
        if (first == all_.size() || when(r) < when(first)) first = r;
      }
      if (first == all_.size()) return;
      Request& q = all_[first];
      q.enqueued = true;
      q.waits_since = out_.results.enqueue[first];
      q.arrival = Table().arrival[first];
      State(first) = RequestState::kQueued;
      q.queue_key = order_.KeyOf(first);
      if (rules_.victim_by_priority) q.priority = order_.Priority(first);
      rules_.Enqueue(&q);
      if (rules_.queue.back() != &q) ++out_.overtaken;
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
      rules_.queue.erase(std::find(rules_.queue.begin(), rules_.queue.end(), &all_[r]));
    } else {
      rules_.parked.erase(std::find(rules_.parked.begin(), rules_.parked.end(), &all_[r]));
    }
    rules_.Release(&all_[r]);
    out_.results.generated[r] = static_cast<std::int32_t>(all_[r].made);
    TimedOut(r, now_);
  }
  void StopWaiting(std::size_t r) { out_.waiting_ns += now_ - all_[r].waits_since; }

  TimeNs Next() {
    TimeNs next = NextKnown();
    while (TakeUp(next - 1)) next = NextKnown();
    return next;
  }
  TimeNs NextKnown() {
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

  // They are out of the batch as it is formed, and may be in it again.
  void CountRestarts() {
    for (const auto& [job, in_prefill] : rules_.restarted) {
      const std::size_t r = job->row;
      Request& q = all_[r];
      if (in_prefill) ++out_.partial_restarts;
      if (rules_.victim_by_priority && q.priority != 0) ++out_.urgent_restarts;
      if (in_prefill && q.last_token >= 0) {
        out_.results.SetbacksOf(r).recompute += now_ - q.admitted;
      }
      q.waits_since = now_;
      out_.results.generated[r] = static_cast<std::int32_t>(q.made);
      ++out_.results.preemptions[r];
      ++out_.preemptions;
      out_.results.SetbacksOf(r).preempted_at = now_;
      State(r) = RequestState::kQueued;
    }
  }

  TimeNs PriceOf(const BatchShape& shape, std::int64_t tokens, std::size_t stage) {
    const ScheduledReferenceInput::Stage& at = in_.stages[stage];
    return at.weight * in_.latency->Price(shape).duration + at.send + at.send_per_token * tokens;
  }

  bool Form() {
    rules_.Form();
    out_.allocation_failures += rules_.blocked == BlockedBy::kKvBlocks ? 1 : 0;
    out_.allocation_failures += static_cast<std::int64_t>(rules_.restarted.size());
    CountRestarts();
    if (rules_.batch.empty()) return false;
    Flight flight;
    for (const ScheduledMember& member : rules_.batch) {
      const std::size_t r = member.job->row;
      flight.members.push_back({r, member.tokens});
      if (State(r) != RequestState::kQueued) continue;
      StopWaiting(r);
      State(r) = RequestState::kRunning;
    }
    flight.blocked = rules_.restarted.empty() ? rules_.blocked : BlockedBy::kKvBlocks;
    Launch(flight);
    flights_.push_back(flight);
    return true;
  }

  // As it was admitted.
  void CountHit(const Request& q, bool again) {
    PrefixCacheReport& report = out_.prefix_cache;
    if (again) {
      report.resumed_hit_tokens += q.computed;
      return;
    }
    out_.results.cached_tokens[q.row] = static_cast<std::int32_t>(q.computed);
    report.query_tokens += q.prompt;
    report.query_blocks += q.prompt / rules_.block_size;
    report.hit_tokens += q.computed;
    report.hit_blocks += q.found;
  }

  void Launch(Flight& flight) {
    StepRecord& record = flight.record;
    record.scheduled = now_;
    record.start = std::max(now_, free_at_[0]);
    for (const auto& [job, in_prefill] : rules_.restarted) {
      record.preempted.push_back(static_cast<RequestId>(job->row));
    }
    if (record.start > now_ || !flights_.empty()) ++out_.overlapping;
    BatchShape shape;
    std::vector<PrefillChunk> chunks;
    std::map<double, std::vector<std::int64_t>> buckets;
    for (const Member& member : flight.members) {
      const std::size_t r = member.request;
      Request& q = all_[r];
      q.flying = true;
      q.flying_tokens = member.tokens;
      if (q.last_step >= 0) ++out_.step_delays[record.start - q.last_step];
      const bool again = out_.results.preemptions[r] > 0;
      const bool decodes = !q.in_prefill();
      flight.decodes.push_back(decodes);
      if (!q.begun) {
        q.admitted = record.start;
        if (out_.results.first_scheduled[r] < 0) out_.results.first_scheduled[r] = record.start;
        if (again) {
          Setbacks& s = out_.results.SetbacksOf(r);
          s.preempted += record.start - s.preempted_at;
          if (q.last_token < 0) s.preempted_to_first = s.preempted;
        }
      }
      const MemberKind kind = q.begun ? MemberKind::kContinued
                              : again ? MemberKind::kResumed
                                      : MemberKind::kNew;
      if (!q.begun && rules_.Caches()) CountHit(q, again);
      q.begun = true;
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
        buckets[order_.BucketOf(r)].push_back(member.tokens);
      }
    }
    shape.prefill = chunks;
    out_.prefill_tokens += record.prefill_tokens;
    for (const auto& [bucket, tokens] : buckets) {  // each as long as the longest of its bucket
      const std::int64_t longest = *std::max_element(tokens.begin(), tokens.end());
      for (const std::int64_t one : tokens) out_.padding_tokens += longest - one;
    }
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
      for (const ScheduledJob* job : rules_.parked) {
        if (!job->in_prefill()) out_.results.interference[job->row] += interference;
      }
    }
    flight.running = rules_.Admitted();
    flight.used = rules_.Used();
    flight.unused = 0;
    for (const Request& q : all_) {
      flight.unused += static_cast<std::int64_t>(q.blocks.size()) * rules_.block_size;
      if (!q.blocks.empty()) flight.unused -= q.computed + q.flying_tokens;
    }
    out_.peak_unused = std::max(out_.peak_unused, flight.unused);
    record.free_after_schedule = rules_.Free();
    record.used_after_schedule = rules_.Used();
    record.running_after_schedule = rules_.Admitted();
    record.waiting_after_schedule = static_cast<std::int64_t>(rules_.queue.size());
  }

  void End() {
    Flight flight = flights_.front();
    StepRecord& record = flight.record;
    const TimeNs delay = in_.latency->OutputTokenDelay();
    const TimeNs time = record.end - std::max(record.start, recorded_);
    recorded_ = record.end;
    out_.running_ns += static_cast<__int128>(flight.running) * time;
    out_.block_ns += static_cast<__int128>(flight.used) * time;
    out_.unused_ns += static_cast<__int128>(flight.unused) * time;
    out_.token_ns += static_cast<__int128>(flight.tokens) * time;
    out_.blocked_ns[static_cast<std::size_t>(flight.blocked)] += time;
    out_.output_tokens += flight.sampled;
    for (std::size_t i = 0; i < flight.members.size(); ++i) {
      const std::size_t r = flight.members[i].request;
      Request& q = all_[r];
      q.flying = false;
      q.flying_tokens = 0;
      q.last_step = record.end;
      q.computed += flight.members[i].tokens;
      if (!q.in_prefill()) {
        ++q.made;
        if (q.made == 1) {
          q.late = flight.sampled * in_.latency->DeliveryDelay();
          q.late += ReferenceStall(in_.latency->Stalls(), 1, 0, record.end + q.late);
          const TimeNs seen = record.end + delay + q.late;
          if (seen - Table().arrival[r] <= Patience(r)) out_.results.first_token[r] = seen;
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
        rules_.parked.push_back(&q);
        if (q.gave_up) {
          ++out_.aborted_in_flight;
          Leave(r);
        }
      }
    }
    record.index = static_cast<std::int64_t>(out_.steps.size());
    record.free_after_step = rules_.Free();
    record.running_after_step = rules_.Admitted();
    record.waiting_after_step = static_cast<std::int64_t>(rules_.queue.size());
    out_.steps.push_back(record);
    flights_.pop_front();
  }

  void Finish(std::size_t r, StepRecord& record) {
    Request& q = all_[r];
    rules_.Release(&q);
    record.finished.push_back(static_cast<RequestId>(r));
    out_.results.generated[r] = static_cast<std::int32_t>(q.made);
    const TimeNs seen = record.end + q.made * in_.latency->OutputTokenDelay() + q.late;
    if (Patience(r) < seen - Table().arrival[r]) return TimedOut(r, record.end);
    out_.results.completion[r] = seen;
    State(r) = RequestState::kCompleted;
    if (q.made < Table().output_tokens[r]) ++out_.length_capped;
    Answered(r);
  }

  ScheduledReferenceInput in_;
  ScheduledReferenceOutput out_;
  const ReferenceOrder order_;
  std::vector<Request> all_;
  ScheduledRules rules_;
  ReferenceTakeUp front_end_;
  std::deque<Flight> flights_;
  std::vector<TimeNs> free_at_;  // when each stage is
  TimeNs now_ = 0, recorded_ = 0;
};

}  // namespace

ScheduledReferenceOutput RunScheduledReference(const ScheduledReferenceInput& input) {
  return Reference(input).Run();
}

}  // namespace servecast::testing

// The requests of a run, one row each, column by column. Output lengths live here and nowhere
// else: this table is the oracle boundary, and policies are never handed it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/base.h"

namespace servecast {

enum class RequestState : std::uint8_t {
  kPending,  // not yet arrived
  kQueued,   // arrived, perhaps still on its way to the queue
  kRunning,
  kCompleted,
  kDropped,   // can never be served: prompt beyond what the engine takes
  kTimedOut,  // its client gave up
  kRejected,  // turned away as it came to the queue, which was full, or when it had waited there
              // for too long
  kLost,      // its replica failed, or was down when the request was sent to it
};

// It will never be complete.
inline bool IsLost(RequestState state) { return state >= RequestState::kDropped; }

// What a prompt consists of, so that equal beginnings can be found. A segment is the content of a
// request (all turns of a session share one) or of a prefix group. Its first `shared_tokens` tokens
// are those of `parent`, all others are its own.
struct ContentSegment {
  std::int32_t parent = -1;        // a segment; -1: none
  std::int32_t shared_tokens = 0;  // 0 without a parent
};

// An image in a prompt: an encoder turns it into `embeds` of the tokens that it takes up there.
struct PromptImage {
  std::int64_t content = 0;  // the same in two places: the same image
  std::int32_t offset = 0;   // of its first token in the prompt
  std::int32_t tokens = 0, embeds = 0;
  std::int32_t row_break = 0;  // each so many-th token is none of its embeds; 0: all are

  std::int64_t end() const { return std::int64_t{offset} + tokens; }
};

// Optional columns are empty when no request needs them.
struct RequestTable {
  // Written by the workload, then constant, but for the arrivals of those that wait for an answer
  // (`think`, `pause`): -1 until it is there.
  std::vector<TimeNs> arrival;
  std::vector<std::int32_t> prompt_tokens;  // >= 1
  std::vector<std::int32_t> output_tokens;  // >= 1; what the request would generate if not capped

  // Optional. A turn follows the row before it: `think` after that one's completion; -1: it does
  // not follow, and arrives by itself. If the row before is dropped or times out, it never arrives.
  std::vector<TimeNs> think;
  // Optional, closed loop: a fixed number of clients, each with one session at a time. The sessions
  // whose first row has -1 here start the loop, each with a client of its own. All others, in order
  // of their rows, wait for the next client whose session is over - its last turn complete, one
  // dropped or timed out - and start so long after that. -1 for later turns, too.
  std::vector<TimeNs> pause;
  // Optional, beside `pause`, where clients hold back what would be too much at a time: when they
  // would have sent it. Of a session that waits, the earliest start.
  std::vector<TimeNs> due;
  std::vector<std::int32_t> priority;  // optional; lower is more urgent
  // Optional, >= 1: the limit that its client sets, which schedulers know; else they are told what
  // the scenario says of it.
  std::vector<std::int32_t> max_new_tokens;
  std::vector<TimeNs> ttft_deadline;   // optional, after arrival; kNever: none
  std::vector<TimeNs> timeout;         // optional, after arrival; kNever: none
  std::vector<std::uint8_t> of_class;  // optional; index into the workload's classes

  // Optional, of a recorded run instead of the engine's draws: how many drafts of a request are
  // accepted, and how many its drafter proposes, one entry after another and again from the first.
  std::vector<std::vector<std::int32_t>> accepted_drafts, proposed_drafts;
  // Optional, where there are no such lists: mean tokens of a request's step with all its drafts;
  // 0: by the engine's rates.
  std::vector<double> acceptance_length;
  std::vector<std::int32_t> lora;  // optional: its adapter; 0: none

  // Optional: of all prompts in the order of their rows, and of each by offset; a turn has those of
  // the turns before it as well. Row r's end before images[images_until[r]]. Retries have no rows.
  std::vector<PromptImage> images;
  std::vector<std::int64_t> images_until;

  // Optional: `content[r]` is request r's segment. Full KV block k (tokens k*block_size and on) of
  // a request is the same as another's iff both take it from the same segment:
  //   s = content[r]; while ((k+1)*block_size <= segments[s].shared_tokens) s = segments[s].parent
  // Contract: nothing beyond the prompt of a segment's own request is shared with other segments.
  std::vector<std::int32_t> content;
  std::vector<ContentSegment> segments;

  // Optional, attempts of clients that try again: behind all requests, in their order, the retries
  // of each, as many of every request. Each has the time from the end of the attempt before it
  // that failed (turned away or timed out) to its arrival, which is -1 until then. `think` and
  // `pause` have no rows for them.
  std::vector<TimeNs> backoff;
  // Retries that are sent are at most this share of the requests that were; below 0: any number.
  double retry_budget = -1;
  // Clients that hedge: the one retry of each request goes out so long after its arrival, while the
  // first attempt goes on; `backoff` has no meaning then, and `timeout` of an attempt that is
  // cancelled ends at that moment. kNever: they do not.
  TimeNs hedge_after = kNever;

  // Whether load comes as fast as it is answered, and no faster: always in a closed loop, and where
  // clients held something back. O(requests).
  bool InLoop() const {
    bool held = due.empty();
    for (std::size_t i = 0; i < due.size() && !held; ++i) held = arrival[i] > due[i];
    return !pause.empty() && held;
  }

  std::int64_t size() const { return static_cast<std::int64_t>(arrival.size()); }

  // Rows that are no retries.
  std::size_t requests() const { return arrival.size() - backoff.size(); }
  bool IsRetry(std::size_t row) const { return row >= requests(); }
  // The row of the request that an attempt is of.
  RequestId RequestOf(RequestId row) const {
    const auto r = static_cast<std::size_t>(row), n = requests();
    return r < n ? row : static_cast<RequestId>((r - n) / (backoff.size() / n));
  }
  bool Hedges() const { return hedge_after < kNever; }
  // Of a request that is hedged the other attempt.
  RequestId OtherAttempt(RequestId row) const {
    const auto n = static_cast<RequestId>(requests());
    return row < n ? row + n : row - n;
  }
  // In its prompt, by offset.
  std::span<const PromptImage> ImagesOf(RequestId row) const {
    if (images_until.empty()) return {};
    const auto r = static_cast<std::size_t>(RequestOf(row));
    const auto from = static_cast<std::size_t>(r == 0 ? 0 : images_until[r - 1]);
    return std::span(images).subspan(from, static_cast<std::size_t>(images_until[r]) - from);
  }
  // The attempt after this one; kNoRequest: it is the last.
  RequestId NextAttempt(RequestId row) const {
    if (backoff.empty()) return kNoRequest;
    const auto r = static_cast<std::size_t>(row), n = requests(), each = backoff.size() / n;
    if (r < n) return static_cast<RequestId>(n + r * each);
    return (r - n + 1) % each == 0 ? kNoRequest : row + 1;
  }
};

// Where the time of a completed request went. Each part is defined here once; docs/model.md says
// the same to users. From arrival on, in this order:
//   host          delay before the queue, and of its output tokens at the client
//   queue         from there to the start of its first step
// and from then on, while steps run, whether or not they compute something of it:
//   prefill       until its prompt, or after a preemption all that it had lost, is computed
//   decode        while it makes tokens: the steps' time without
//   interference  by which prefills in a step made it longer: the price of the step less the price
//                 of its decodes alone, not below 0
//   transfer      by which loads from slower KV tiers made a step longer, in prefill and decode
//   preempted     from the start of the step that it was taken from to that of its next one
// With prefill and decode on different replicas `transfer` is the time of its KV blocks on the link
// instead, and
//   handover      the wait for blocks on the decode side, and after the transfer for a step there
// With images encoded on another replica its steps there count as prefill, the time of its
// embeddings on the link as transfer, and the wait from then to its next step as queue.
struct TimeSplit {
  TimeNs host = 0, queue = 0, prefill = 0, decode = 0, interference = 0, preempted = 0,
         transfer = 0, handover = 0;

  TimeNs Sum() const {
    return host + queue + prefill + decode + interference + preempted + transfer + handover;
  }
};

struct RequestTimes {
  TimeSplit ttft;  // adds up to first token - arrival
  TimeSplit e2e;   // adds up to completion - arrival
};

// Of a request that was preempted, or ran while steps loaded KV content from slower tiers; ns.
struct Setbacks {
  TimeNs preempted_at = 0;                       // the last time
  TimeNs last_step = 0;                          // end of the last one that it was in before
  TimeNs preempted = 0, preempted_to_first = 0;  // waited for its next step: in all, and of it
  TimeNs transfer = 0, transfer_to_first = 0;    // before the first token; in such steps
  TimeNs recompute = 0;                          // in prefill again after the first token
};

// Of a request whose decode runs on another replica than its prefill; -1 where not reached.
struct HandOver {
  TimeNs prefilled = -1;   // end of the step that ended its prefill
  TimeNs reserved = -1;    // its blocks on the decode side are taken, the transfer starts
  TimeNs arrived = -1;     // all of its KV is there
  TimeNs resumed = -1;     // start of its first step there
  std::int64_t bytes = 0;  // that travel
  std::int32_t prefill_replica = -1;  // RequestResults::replica is the one that decodes
};

// Of a request whose images another replica encodes; -1 where not reached.
struct Encoding {
  TimeNs started = -1;        // start of the first step that it was in there
  TimeNs encoded = -1;        // end of the last one
  TimeNs arrived = -1;        // all of the embeddings are where it goes on
  std::int64_t bytes = 0;     // of them
  std::int32_t replica = -1;  // that encoded them
};

// What became of the requests. Times are as the client sees them; -1 where not reached.
struct RequestResults {
  std::vector<TimeNs> enqueue;          // arrival + delay before the queue
  std::vector<TimeNs> first_scheduled;  // start of the first step that it is in
  std::vector<TimeNs> first_token;
  std::vector<TimeNs> completion;
  std::vector<std::int32_t> generated;  // output tokens delivered
  std::vector<std::int32_t> preemptions;
  std::vector<std::int32_t> cached_tokens;  // prefix-cache hit at the first admission
  std::vector<RequestState> state;
  std::vector<std::int32_t> replica;  // that serves it; empty where there is one
  // Where replicas are ranks in lock step, that one's number among all; `replica` is their engine.
  std::vector<std::int32_t> rank;
  // As reports count replicas.
  std::int32_t ReplicaOf(std::size_t request) const {
    if (!rank.empty()) return rank[request];
    return replica.empty() ? 0 : replica[request];
  }
  // As in TimeSplit.
  std::vector<TimeNs> interference;
  std::vector<Setbacks> setbacks;    // optional: empty while no request had any
  std::vector<HandOver> hand_overs;  // optional: empty where no replica only prefills
  std::vector<TimeNs> late;          // optional: by how much its client sees its tokens later
  std::vector<TimeNs> encode;        // optional: by which images, its own or others', made the
                                     // steps of its prompt longer
  std::vector<Encoding> encodings;   // optional: empty where no replica encodes for others
  // Where replicas may fail, of those in kLost; where a gateway turns requests away, of those in
  // kRejected that had waited there; else -1.
  std::vector<TimeNs> lost_at;

  // Of a request in kRejected: it had waited before.
  bool WaitedInVain(std::size_t request) const { return !lost_at.empty() && lost_at[request] >= 0; }
  bool HandedOver(std::size_t request) const {
    return !hand_overs.empty() && hand_overs[request].prefilled >= 0;
  }

  bool EncodedApart(std::size_t request) const {
    return !encodings.empty() && encodings[request].encoded >= 0;
  }

  TimeNs Late(std::size_t request) const { return late.empty() ? 0 : late[request]; }
  void SetLate(std::size_t request, TimeNs by) {
    if (late.empty()) late.resize(state.size());
    late[request] = by;
  }

  TimeNs Encode(std::size_t request) const { return encode.empty() ? 0 : encode[request]; }
  void AddEncode(std::size_t request, TimeNs time) {
    if (encode.empty()) encode.resize(state.size());
    encode[request] += time;
  }

  Setbacks& SetbacksOf(std::size_t request) {
    if (setbacks.empty()) setbacks.resize(state.size());
    return setbacks[request];
  }

  void Resize(std::int64_t n) {
    const auto size = static_cast<std::size_t>(n);
    enqueue.assign(size, -1);
    first_scheduled.assign(size, -1);
    first_token.assign(size, -1);
    completion.assign(size, -1);
    generated.assign(size, 0);
    preemptions.assign(size, 0);
    cached_tokens.assign(size, 0);
    state.assign(size, RequestState::kPending);
    interference.assign(size, 0);
    setbacks.clear();
    late.clear();
    encode.clear();
    encodings.clear();
    lost_at.clear();
  }
};

}  // namespace servecast

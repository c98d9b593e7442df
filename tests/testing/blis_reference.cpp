// In three parts: the event queue, the KV blocks, the instance. Times are BLIS's microseconds.
#include "testing/blis_reference.h"

#include <algorithm>

#include <deque>
#include <tuple>
#include <utility>

namespace servecast::testing {
namespace {

using Us = std::int64_t;
constexpr Us kUs = 1000;
constexpr std::int64_t kNoLimit = INT64_MAX;

// In the order in which today's BLIS handles those of one time. A preemption is February's only.
enum class EventType { kArrival, kQueued, kStep, kScheduled, kLeft, kTimeout, kPreemption };

struct Event {
  Us time = 0;
  EventType type = EventType::kArrival;
  std::int64_t number = 0;
  RequestId request = kNoRequest;
};

// A binary heap as Go's container/heap keeps it: February's events have no order but their time,
// so that those of one time come as they happen to lie in it.
class EventQueue {
 public:
  explicit EventQueue(bool by_time_only) : by_time_only_(by_time_only) {}

  bool Empty() const { return heap_.empty(); }
  bool Has(EventType type) const {
    return std::any_of(heap_.begin(), heap_.end(),
                       [type](const Event& event) { return event.type == type; });
  }

  void Push(Us time, EventType type, RequestId request = kNoRequest) {
    heap_.push_back({time, type, pushed_++, request});
    for (std::size_t child = heap_.size() - 1; child > 0;) {
      const std::size_t parent = (child - 1) / 2;
      if (!Less(heap_[child], heap_[parent])) break;
      std::swap(heap_[child], heap_[parent]);
      child = parent;
    }
  }

  Event Pop() {
    std::swap(heap_.front(), heap_.back());
    const Event event = heap_.back();
    heap_.pop_back();
    for (std::size_t parent = 0;;) {
      std::size_t child = 2 * parent + 1;
      if (child >= heap_.size()) break;
      if (child + 1 < heap_.size() && Less(heap_[child + 1], heap_[child])) ++child;
      if (!Less(heap_[child], heap_[parent])) break;
      std::swap(heap_[child], heap_[parent]);
      parent = child;
    }
    return event;
  }

 private:
  bool Less(const Event& a, const Event& b) const {
    if (by_time_only_ || a.time != b.time) return a.time < b.time;
    return std::tie(a.type, a.number) < std::tie(b.type, b.number);
  }

  const bool by_time_only_;
  std::vector<Event> heap_;
  std::int64_t pushed_ = 0;
};

struct Request {
  Us arrival = -1, deadline = INT64_MAX;
  std::int64_t in = 0, out = 0;
  std::int64_t progress = 0;  // tokens processed
  std::int64_t computed = 0;  // tokens for which there is room
  std::int64_t new_tokens = 0;
  Us last_step = -1;  // its end
  bool has_first = false;
  Us first_token = 0;  // since its arrival
  std::vector<Us> itl;
};

class Instance {
 public:
  Instance(const BlisReferenceInput& input, BlisReferenceOutput& out)
      : input_(input),
        february_(input.engine.compat == Compat::kBlisFebruary2026),
        events_(february_),
        kv_(input.requests, input.engine, input.blocks, input.host),
        out_(out) {
    out_.february = february_;
    out_.requests = input.requests;
    out_.results.Resize(input.requests.size());
    // Without one, what the model takes; no more than the cache holds. 0: no limit.
    const std::int64_t longest = input.engine.max_model_len.value_or(input.model_max_len);
    if (longest > 0) {
      max_model_len_ =
          std::min({longest, input.model_max_len, input.blocks * input.engine.block_size});
    }
    for (RequestId id = 0; id < input.requests.size(); ++id) {
      Request request;
      request.in = input.requests.prompt_tokens[Row(id)];
      request.out = input.requests.output_tokens[Row(id)];
      requests_.push_back(std::move(request));
      const bool follows = !input.requests.think.empty() && input.requests.think[Row(id)] >= 0;
      if (!follows) Inject(id, input.requests.arrival[Row(id)] / kUs);
    }
  }

  void Run() {
    const Us horizon = input_.horizon ? *input_.horizon / kUs : INT64_MAX;
    while (!events_.Empty() && !out_.endless) {
      const Event event = events_.Pop();
      const bool over = StateOf(event.request) != RequestState::kQueued &&
                        StateOf(event.request) != RequestState::kRunning;
      if (event.type == EventType::kTimeout && over) continue;  // cancelled; the clock stands
      clock_ = event.time;
      if (clock_ > horizon) break;
      Handle(event);
      out_.endless = out_.steps >= input_.most_steps;
    }
    out_.end = std::min(clock_, horizon) * kUs;
    out_.used_blocks = kv_.Used();
    out_.kv = kv_.counts();
    out_.kv.host_hits = host_hits_;
  }

 private:
  static std::size_t Row(RequestId id) { return static_cast<std::size_t>(id); }
  Request& At(RequestId id) { return requests_[Row(id)]; }
  RequestState StateOf(RequestId id) const {
    return id == kNoRequest ? RequestState::kPending : out_.results.state[Row(id)];
  }
  void SetState(RequestId id, RequestState state) { out_.results.state[Row(id)] = state; }

  void Inject(RequestId id, Us time) {
    Request& request = At(id);
    request.arrival = time;
    out_.requests.arrival[Row(id)] = time * kUs;
    if (!input_.requests.timeout.empty() && input_.requests.timeout[Row(id)] != kNever) {
      request.deadline = time + input_.requests.timeout[Row(id)] / kUs;
    }
    events_.Push(time, EventType::kArrival, id);
  }

  void Handle(const Event& event) {
    switch (event.type) {
      case EventType::kArrival:
        return Arrive(event.request);
      case EventType::kQueued:
        return Queue(event.request);
      case EventType::kStep:
        return Step();
      case EventType::kTimeout:
        return TimeOut(event.request);
      default:
        return;  // markers on the time line
    }
  }

  void Arrive(RequestId id) {
    SetState(id, RequestState::kQueued);
    if (!february_ && At(id).deadline < INT64_MAX) {
      events_.Push(At(id).deadline, EventType::kTimeout, id);
    }
    events_.Push(clock_ + input_.latency.EnqueueDelay(At(id).in) / kUs, EventType::kQueued, id);
  }

  void Queue(RequestId id) {
    const Request& request = At(id);
    if (StateOf(id) == RequestState::kTimedOut) return;
    const bool too_long = !february_ && request.in >= max_model_len_;
    const bool too_big = CeilDiv(request.in, input_.engine.block_size) > input_.blocks;
    if (too_long || too_big) {
      ++(too_long ? out_.coverage.dropped_too_long : out_.coverage.dropped_too_big);
      SetState(id, RequestState::kDropped);
    } else {
      out_.results.enqueue[Row(id)] = clock_ * kUs;
      out_.input_tokens += request.in;
      waiting_.push_back(id);
    }
    if (step_pending_) return;
    if (!february_) step_pending_ = true;
    events_.Push(clock_, EventType::kStep);
  }

  void TimeOut(RequestId id) {
    const auto running = std::find(running_.begin(), running_.end(), id);
    const auto waiting = std::find(waiting_.begin(), waiting_.end(), id);
    if (running != running_.end()) {
      ++out_.coverage.timed_out_running;
      running_.erase(running);
    } else if (waiting != waiting_.end()) {
      ++out_.coverage.timed_out_queued;
      waiting_.erase(waiting);
    } else {
      ++out_.coverage.timed_out_before;
    }
    kv_.Release(id);
    SetState(id, RequestState::kTimedOut);
  }

  void Step() {
    ++out_.steps;
    if (clock_ < last_end_) ++out_.coverage.overlaps;
    if (events_.Has(EventType::kStep)) ++out_.coverage.parallel_chains;
    kv_.SetClock(clock_);
    SortQueue();
    FormBatch();
    if (running_.empty()) ++out_.coverage.empty_steps;
    out_.steps_with_members += running_.empty() ? 0 : 1;
    const Us advance = Price() + kv_.ConsumeTransfer();
    last_end_ = clock_ + advance;
    if (!running_.empty()) out_.peak_unused = std::max(out_.peak_unused, kv_.Unused());
    for (const RequestId id : running_) Execute(id, advance);
    kv_.Mirror(running_);
    std::vector<RequestId> remaining;
    for (const RequestId id : running_) {
      if (!Complete(id, advance)) remaining.push_back(id);
    }
    running_ = remaining;
    step_pending_ = !running_.empty() || !waiting_.empty();
    if (step_pending_) events_.Push(clock_ + advance, EventType::kStep);
  }

  // Lower is more urgent.
  double PriorityOf(RequestId id) const {
    const auto& own = input_.requests.priority;
    const std::string& policy = input_.scheduler.priority;
    const auto age = static_cast<double>(clock_ - requests_[Row(id)].arrival);
    if (policy == "class") return own.empty() ? 0 : own[Row(id)];
    if (policy == "slo_based") return -1e-6 * age;
    if (policy == "inverted_slo") return 1e-6 * age;
    return 0;
  }

  void SortQueue() {
    const std::string& order = input_.scheduler.order;
    if (order == "fcfs") return;
    const auto key = [&](RequestId id) {
      double first = PriorityOf(id);
      if (order == "sjf") first = static_cast<double>(At(id).in);
      if (order == "reverse_priority") first = -first;
      return std::make_tuple(first, At(id).arrival, id);
    };
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [&](RequestId a, RequestId b) { return key(a) < key(b); });
  }

  void FormBatch() {
    budget_ = input_.engine.max_num_batched_tokens;
    preempted_ = false;
    if (!february_) {
      for (const RequestId id : running_) At(id).new_tokens = 0;
    }
    std::vector<RequestId> scheduled;
    ContinueRunning();
    while (static_cast<std::int64_t>(running_.size()) < input_.engine.max_num_seqs &&
           !waiting_.empty() && budget_ > 0 && !preempted_) {
      if (!Admit(waiting_.front())) break;
      scheduled.push_back(running_.back());
    }
    for (const RequestId id : scheduled) events_.Push(clock_, EventType::kScheduled, id);
  }

  void ContinueRunning() {
    const std::vector<RequestId> before = running_;
    for (place_ = 0; place_ < (february_ ? before : running_).size(); ++place_) {
      if (budget_ <= 0) {
        ++out_.coverage.out_of_budget;
        break;
      }
      const RequestId id = february_ ? before[place_] : running_[place_];
      Request& request = At(id);
      std::int64_t tokens = request.in - request.progress;
      if (tokens > 0) {
        tokens = std::min(Cut(tokens), budget_);
        if (!february_) tokens = std::min(tokens, max_model_len_ - 1 - request.progress);
        if (tokens <= 0) continue;
      } else {
        tokens = request.out > 0 ? 1 : 0;
        if (!february_ && request.progress + 1 > max_model_len_ - 1) tokens = 0;
        if (tokens == 0) continue;
      }
      if (!PreemptForTokens(id, tokens)) break;
      if (StateOf(id) == RequestState::kQueued) ++out_.coverage.victims_given_tokens;
      budget_ -= tokens;
      request.new_tokens = tokens;
      request.computed += tokens;
    }
  }

  std::int64_t Cut(std::int64_t tokens) const {
    const std::int64_t threshold = input_.engine.long_prefill_token_threshold;
    return threshold > 0 ? std::min(tokens, threshold) : tokens;
  }

  bool PreemptForTokens(RequestId id, std::int64_t tokens) {
    const auto allocated = [&] {
      const Request& r = At(id);
      return kv_.Allocate(id, r.progress, r.progress + tokens, r.progress < r.in, false);
    };
    while (!allocated()) {
      ++out_.allocation_failures;
      if (running_.empty()) return false;
      preempted_ = true;
      const std::size_t place = VictimsPlace();
      const RequestId victim = running_[place];
      if (place + 1 < running_.size()) ++out_.coverage.preemptions_not_of_the_tail;
      if (victim == id) ++out_.coverage.preemptions_of_who_asked;
      if (At(victim).progress < At(victim).in) ++out_.coverage.preemptions_of_prefills;
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(place));
      if (!february_ && place < place_) --place_;
      Preempt(victim);
      if (victim == id) return false;
    }
    return true;
  }

  std::size_t VictimsPlace() const {
    if (february_ || input_.scheduler.preemption != "priority") return running_.size() - 1;
    const auto key = [&](RequestId id) {
      return std::make_pair(PriorityOf(id), requests_[Row(id)].arrival);
    };
    const auto most = std::max_element(running_.begin(), running_.end(),
                                       [&](RequestId a, RequestId b) { return key(a) < key(b); });
    return static_cast<std::size_t>(most - running_.begin());
  }

  void Preempt(RequestId id) {
    Request& request = At(id);
    ++out_.preemptions;
    ++out_.results.preemptions[Row(id)];
    SetState(id, RequestState::kQueued);
    request.progress = 0;
    if (!february_) {
      budget_ += request.new_tokens;
      request.new_tokens = 0;
      request.computed = 0;
      request.itl.clear();
      request.has_first = false;
      out_.results.first_token[Row(id)] = -1;
    } else {
      events_.Push(clock_, EventType::kPreemption, id);
    }
    kv_.Release(id);
    waiting_.push_front(id);
  }

  bool Admit(RequestId id) {
    Request& request = At(id);
    const std::int64_t hit = kv_.Find(id, request.in) * input_.engine.block_size;
    std::int64_t tokens = std::min(Cut(request.in - hit), budget_);
    if (!february_) tokens = std::min(tokens, max_model_len_ - 1 - hit);
    if (!kv_.Allocate(id, hit, hit + tokens, true, true)) {
      ++out_.allocation_failures;
      return false;
    }
    waiting_.pop_front();
    running_.push_back(id);
    request.new_tokens = tokens;
    request.computed = hit + tokens;
    budget_ -= tokens;
    if (tokens == 0) ++out_.coverage.all_cached;
    SetState(id, RequestState::kRunning);
    if (out_.results.first_scheduled[Row(id)] < 0) {
      host_hits_ += std::max<std::int64_t>(kv_.Found() - hit / input_.engine.block_size, 0);
      out_.results.cached_tokens[Row(id)] = static_cast<std::int32_t>(hit);
    }
    out_.results.first_scheduled[Row(id)] = clock_ * kUs;
    return true;
  }

  // The step's time. February bills whoever runs for the tokens that it was given last.
  Us Price() {
    BatchShape shape;
    std::vector<PrefillChunk> chunks;
    for (const RequestId id : running_) {
      const Request& r = At(id);
      if (r.new_tokens == 0) continue;
      if (r.progress < r.in) {
        chunks.push_back({r.new_tokens, r.progress, r.in, r.progress + r.new_tokens >= r.in});
      } else if (r.out > 0) {
        shape.decode_seqs += r.new_tokens;
        shape.decode_context_tokens += r.progress;
      }
    }
    shape.prefill = chunks;
    const Us time = input_.latency.Price(shape).duration / kUs;
    return february_ ? time : std::max<Us>(time, 1);
  }

  void Execute(RequestId id, Us advance) {
    Request& request = At(id);
    const Us gap = advance + input_.latency.OutputTokenDelay() / kUs;
    const std::int64_t before = request.progress;
    if (request.progress < request.in) {
      request.progress = request.computed;
    } else if (february_ || request.new_tokens > 0) {
      ++request.progress;
      request.itl.push_back(gap);
      if (february_) ++out_.output_tokens;
    }
    if (request.progress != before) {
      const Us wait = std::max<Us>(clock_ - request.last_step, 0);
      if (request.last_step >= 0) ++out_.step_delays[wait * kUs];
      request.last_step = clock_ + advance;
    }
    if (request.progress != request.in || request.has_first) return;
    request.has_first = true;
    request.first_token = clock_ + gap - request.arrival;
    out_.results.first_token[Row(id)] = (clock_ + gap) * kUs;
  }

  bool Complete(RequestId id, Us advance) {
    Request& request = At(id);
    const std::int64_t last = request.in + std::max<std::int64_t>(request.out, 1) - 1;
    const bool done = february_ ? request.progress == last : request.progress >= last;
    const bool capped = !february_ && !done && request.progress >= max_model_len_ - 1;
    if (!done && !capped) return false;
    if (february_) request.itl.push_back(advance + input_.latency.OutputTokenDelay() / kUs);
    if (request.out > 0 && request.progress < request.in + request.out) {
      const std::int64_t at = request.progress;  // of the last token; best effort
      if (!kv_.Allocate(id, at, at + 1, false, false)) {
        ++out_.coverage.final_slot_refused;
        ++out_.allocation_failures;
      }
    }
    kv_.Release(id);
    events_.Push(clock_ + advance, EventType::kLeft, id);
    Us e2e = request.first_token;
    for (const Us gap : request.itl) {
      e2e += gap;
      ++out_.gaps[gap * kUs];
    }
    if (!february_ && request.out > 0) e2e += input_.latency.PostDecodeDelay() / kUs;
    const std::size_t row = Row(id);
    std::int64_t tokens = request.progress - request.in;
    if (tokens < request.out) ++tokens;
    out_.results.generated[row] = static_cast<std::int32_t>(tokens);
    if (!february_) out_.output_tokens += tokens;
    out_.results.completion[row] = (request.arrival + e2e) * kUs;
    SetState(id, RequestState::kCompleted);
    if (capped) ++out_.length_capped;
    const auto& think = input_.requests.think;
    if (row + 1 < think.size() && think[row + 1] >= 0) {
      ++out_.coverage.turns;
      Inject(id + 1, clock_ + advance + think[row + 1] / kUs);
    }
    return true;
  }

  const BlisReferenceInput& input_;
  const bool february_;
  std::int64_t max_model_len_ = kNoLimit;
  Us clock_ = 0, last_end_ = 0;
  EventQueue events_;
  bool step_pending_ = false;
  BlisReferenceKv kv_;
  BlisReferenceOutput& out_;
  std::vector<Request> requests_;
  std::int64_t host_hits_ = 0;
  std::vector<RequestId> running_;
  std::deque<RequestId> waiting_;

  // Of the batch that is being formed.
  std::int64_t budget_ = 0;
  bool preempted_ = false;
  std::size_t place_ = 0;  // in the running list
};

}  // namespace

BlisReferenceOutput RunBlisReference(const BlisReferenceInput& input) {
  BlisReferenceOutput out;
  Instance instance(input, out);
  instance.Run();

  return out;
}

}  // namespace servecast::testing

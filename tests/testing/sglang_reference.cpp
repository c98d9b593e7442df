#include "testing/sglang_reference.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "serving/batch.h"
#include "testing/sglang_reference_tree.h"

namespace servecast::testing {
namespace {

// Tokens of a request as what they are: of whose content, and at which place.
SglangTokens TextOf(const RequestTable& requests, RequestId request, std::int64_t tokens) {
  SglangTokens text;
  for (std::int64_t q = 0; q < tokens; ++q) {
    std::int64_t segment = request;
    if (!requests.content.empty()) segment = requests.content[static_cast<std::size_t>(request)];
    while (!requests.segments.empty()) {
      const ContentSegment& s = requests.segments[static_cast<std::size_t>(segment)];
      if (q >= s.shared_tokens) break;
      segment = s.parent;
    }
    text.push_back((segment << 32) + q);
  }
  return text;
}

struct Request {
  RequestId id = kNoRequest;
  SglangTokens text;  // known so far
  std::int64_t prompt = 0, out = 0, max_new = 0, priority = 0;
  bool done = false, retracted = false, ever_retracted = false;
  std::int64_t prefix = 0;  // tokens that need no computing
  std::int64_t owned = 0;   // of these, the tree's
  std::int64_t fill = 0;    // known as it was looked at last; rule 36
  std::int64_t end = 0;     // of its last extend
  std::int64_t kv = 0;
  std::int64_t chunks_in_flight = 0;
  SglangTree::Node* node = nullptr;
  bool has_slot = false;
  std::int64_t entry = 0;
  std::int64_t computed = 0;  // rule 39
  bool resumes = false;       // its next extend is the first since a retraction
  SglangResult result;

  std::int64_t known() const { return static_cast<std::int64_t>(text.size()); }
};
using Requests = std::vector<Request*>;

struct Batch {
  std::string mode;
  Requests requests;
  std::vector<SglangMember> members;
  Request* chunk = nullptr;
  Requests decoding;  // of a mixed one
};

enum class Verdict { kGo, kStop, kMemory };

class Sglang {
 public:
  explicit Sglang(const SglangInput& input)
      : in_(input),
        c_(input.settings),
        tree_(c_.page_size, c_.radix_eviction_policy, ticks_),
        free_(c_.max_total_num_tokens / c_.page_size * c_.page_size),
        slots_(c_.max_running_requests),
        chunked_prefill_(c_.chunked_prefill_size > 0),
        mixes_(c_.enable_mixed_chunk && chunked_prefill_),
        preempts_(c_.enable_priority_scheduling && !c_.disable_priority_preemption),
        policy_(c_.schedule_policy),
        all_(static_cast<std::size_t>(input.requests.size())),
        arrival_(input.requests.arrival) {
    if (c_.disable_radix_cache && (policy_ == "lpm" || policy_ == "dfs-weight")) policy_ = "fcfs";
    // Rule 35.
    initial_ratio_ = std::min(c_.init_new_token_ratio * c_.schedule_conservativeness, 1.0);
    least_ratio_ = std::min(initial_ratio_ * c_.min_new_token_ratio_factor, 1.0);
    decay_ = (initial_ratio_ - least_ratio_) / static_cast<double>(c_.new_token_ratio_decay_steps);
    ratio_ = initial_ratio_;
  }

  SglangOutput Run();

 private:
  // ---- Memory ----
  std::int64_t CeilToPages(std::int64_t tokens) const {
    return (tokens + c_.page_size - 1) / c_.page_size * c_.page_size;
  }
  std::int64_t Evictable() const { return c_.disable_radix_cache ? 0 : tree_.Evictable(); }
  std::int64_t Available() const { return free_ + Evictable(); }
  // Rule 53.
  void MakeRoom(std::int64_t tokens) {
    if (!c_.disable_radix_cache && free_ < tokens) free_ += tree_.Evict(tokens);
  }
  void Take(std::int64_t tokens) {
    free_ -= tokens;
    SERVECAST_CHECK(free_ >= 0, "the reference ran out of memory");
  }
  std::int64_t TreePriority(const Request& r) const {
    return c_.enable_priority_scheduling ? r.priority : 0;
  }
  void CacheUnfinished(Request& r, bool of_chunk);
  void Release(Request& r, bool keeps);
  void Retract(Request& r, std::int64_t others);

  // ---- The queue ----
  void Enqueue(Request& r) {
    waiting_.push_back(&r);
    r.entry = ticks_.Next();
  }
  // Larger is more urgent.
  std::int64_t Urgency(const Request& r) const {
    return c_.schedule_low_priority_values_first ? -r.priority : r.priority;
  }
  void SortWaiting();
  void SortByPrefix();

  // ---- Prefill ----
  std::int64_t Clip(std::int64_t tokens) const { return std::min(tokens, c_.clip_max_new_tokens); }
  double Left(const Request& r) const {
    return static_cast<double>(Clip(r.max_new - r.out)) * ratio_;
  }
  double TotalLeft() const { return static_cast<double>(Available()) - off_total_; }
  double CurrentLeft() const { return static_cast<double>(Available() - off_current_); }
  std::int64_t Room() const {
    const auto running = static_cast<std::int64_t>(running_.size());
    return std::min(c_.max_running_requests - running, slots_);
  }
  void Add(Request& r, std::int64_t end, std::int64_t charged, std::int64_t reserved);
  Verdict AfterAdding() const;
  void AddChunked();
  Verdict TestPlain(Request& r);
  Verdict AddPlain(Request& r, std::int64_t total);
  Verdict TestIgnoringEos(Request& r);
  Verdict Test(Request& r);
  bool PreemptFor(const Request& r);
  std::unique_ptr<Batch> Prefill();
  std::unique_ptr<Batch> PrefillBatch();

  // ---- Decode ----
  void Decode(Batch& batch, const Requests& requests);
  bool Fits(const Requests& requests);
  void RetractSome();
  std::unique_ptr<Batch> DecodeStep();

  // ---- The loop ----
  void ToCome(RequestId id);
  bool Arrivals();
  std::unique_ptr<Batch> Schedule();
  void Merge();
  std::int64_t Encode(const Request& r, std::int64_t from, std::int64_t to);
  void Launch(const std::shared_ptr<Batch>& batch);
  void Apply();
  void Token(Request& r, std::size_t step);
  void SendNext(RequestId done);
  void DropDone() {
    running_.erase(
        std::remove_if(running_.begin(), running_.end(), [](Request* r) { return r->done; }),
        running_.end());
  }

  const SglangInput& in_;
  const SglangSettings& c_;
  SglangTicks ticks_;
  SglangTree tree_;
  std::int64_t free_, slots_;
  bool chunked_prefill_, mixes_, preempts_;
  std::string policy_;
  double initial_ratio_ = 0, least_ratio_ = 0, decay_ = 0, ratio_ = 0;

  std::vector<Request> all_;
  std::vector<TimeNs> arrival_;  // -1: not known yet
  std::vector<RequestId> to_come_;
  Requests waiting_, running_;
  bool is_full_ = false;
  Request* chunked_ = nullptr;
  std::shared_ptr<Batch> last_;
  std::deque<std::pair<std::size_t, std::shared_ptr<Batch>>> in_flight_;  // with its step's number
  TimeNs now_ = 0, device_free_ = 0;
  SglangOutput out_;

  std::vector<PromptImage> embeddings_;  // kept, the latest used last

  // Of a pass.
  Requests retracted_, preempted_;
  Requests batch_;  // what is added
  Request* new_chunk_ = nullptr;
  double off_total_ = 0;
  std::int64_t off_current_ = 0, input_left_ = 0, chunk_left_ = 0;
  bool has_states_ = false;
  std::vector<std::pair<std::int64_t, std::int64_t>> states_;  // rule 19
};

// ---- Memory ----------------------------------------------------------------------------------

// Rule 48.
void Sglang::CacheUnfinished(Request& r, bool of_chunk) {
  r.prefix = r.end;
  if (c_.disable_radix_cache) return;
  const SglangTokens text(r.text.begin(), r.text.begin() + static_cast<std::ptrdiff_t>(r.end));
  const std::int64_t there = tree_.Insert(text, TreePriority(r), of_chunk);
  free_ += std::max<std::int64_t>(0, there - r.owned);
  SglangTree::Node* const node = tree_.Match(text).second;
  r.owned = r.end / c_.page_size * c_.page_size;
  tree_.Unlock(r.node);
  tree_.Lock(node);
  r.node = node;
}

// Rules 25, 50 and 54.
void Sglang::Release(Request& r, bool keeps) {
  ++slots_;
  r.has_slot = false;
  if (c_.disable_radix_cache) {
    free_ += CeilToPages(r.kv);
    return;
  }
  const std::int64_t whole = r.kv / c_.page_size * c_.page_size;
  std::int64_t freed = whole - r.owned;
  if (keeps) {
    const SglangTokens text(r.text.begin(), r.text.begin() + static_cast<std::ptrdiff_t>(r.kv));
    freed = tree_.Insert(text, TreePriority(r), false) - r.owned;
  }
  free_ += std::max<std::int64_t>(0, freed) + CeilToPages(r.kv) - whole;
  tree_.Unlock(r.node);
}

void Sglang::Retract(Request& r, std::int64_t others) {
  Release(r, false);
  MakeRoom(others * c_.retract_decode_steps);
  r.prefix = r.owned = r.kv = r.end = r.chunks_in_flight = r.computed = 0;
  r.node = nullptr;
  r.retracted = r.ever_retracted = r.resumes = true;
  ++r.result.retractions;
}

// ---- The queue -------------------------------------------------------------------------------

// Rules 29 to 32.
void Sglang::SortWaiting() {
  const bool by_priority = c_.enable_priority_scheduling;
  if (policy_ == "fcfs") {
    if (!by_priority) return;
    std::stable_sort(waiting_.begin(), waiting_.end(), [&](const Request* a, const Request* b) {
      return std::pair(-Urgency(*a), a->entry) < std::pair(-Urgency(*b), b->entry);
    });
  } else if (policy_ == "lof") {
    std::stable_sort(waiting_.begin(), waiting_.end(), [&](const Request* a, const Request* b) {
      const std::int64_t urgent_a = by_priority ? -Urgency(*a) : 0;
      const std::int64_t urgent_b = by_priority ? -Urgency(*b) : 0;
      return std::pair(urgent_a, -a->max_new) < std::pair(urgent_b, -b->max_new);
    });
  } else if (policy_ != "lpm" || waiting_.size() <= 128) {
    SortByPrefix();
  }
}

void Sglang::SortByPrefix() {
  SglangTree scratch(1, "lru", ticks_);
  std::set<const Request*> late;
  for (Request* r : waiting_) {
    std::tie(r->prefix, r->node) = tree_.Match(r->text);
    if (r->prefix > c_.in_batch_check_threshold) continue;
    if (scratch.Match(r->text).first >= c_.in_batch_deprioritize_threshold) {
      late.insert(r);
    } else {
      scratch.Insert(r->text, 0, false);
    }
  }
  if (policy_ == "lpm") {
    std::stable_sort(waiting_.begin(), waiting_.end(), [&](const Request* a, const Request* b) {
      const auto key = [&](const Request* r) {
        const bool is_late = late.count(r) > 0;
        const std::int64_t most = c_.is_0_5_9 ? r->known() : r->known() - 1;
        return std::pair(is_late, is_late ? 0 : -std::min(r->prefix, most));
      };
      return key(a) < key(b);
    });
    return;
  }
  const auto ends_in = [&](const SglangTree::Node* node) {
    Requests found;
    for (Request* r : waiting_) {
      if (r->node == node) found.push_back(r);
    }
    return found;
  };
  const auto weight = [&](const auto& self, const SglangTree::Node* node) -> std::size_t {
    std::size_t sum = ends_in(node).size();
    for (const auto& child : node->children) sum += self(self, child.get());
    return sum;
  };
  Requests order;
  const auto walk = [&](const auto& self, const SglangTree::Node* node) -> void {
    std::vector<std::pair<std::size_t, const SglangTree::Node*>> children;
    for (const auto& child : node->children) {
      children.emplace_back(weight(weight, child.get()), child.get());
    }
    std::stable_sort(children.begin(), children.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& child : children) self(self, child.second);
    for (Request* r : ends_in(node)) order.push_back(r);
  };
  walk(walk, tree_.root());
  waiting_ = order;
}

// ---- Prefill ---------------------------------------------------------------------------------

// Rule 12.
void Sglang::Add(Request& r, std::int64_t end, std::int64_t charged, std::int64_t reserved) {
  r.end = end;
  batch_.push_back(&r);
  charged = CeilToPages(charged);
  const std::int64_t spare = c_.is_0_5_9 ? 0 : c_.page_size;
  off_total_ += static_cast<double>(charged + reserved + spare);
  off_current_ += charged + spare;
  input_left_ -= charged;
  chunk_left_ -= charged;
}

Verdict Sglang::AfterAdding() const {
  if (TotalLeft() <= 0 || CurrentLeft() <= 0) return Verdict::kMemory;
  const bool spent = input_left_ <= 0 || (chunked_prefill_ && chunk_left_ <= 0);
  return spent ? Verdict::kStop : Verdict::kGo;
}

// Rule 16.
void Sglang::AddChunked() {
  Request& r = *chunked_;
  r.fill = r.known();
  std::int64_t most = std::min(chunk_left_, static_cast<std::int64_t>(TotalLeft()));
  if (most <= 0) most = chunk_left_;
  const bool cut = r.fill - r.prefix > most;
  const std::int64_t tokens = std::min(r.fill - r.prefix, most);
  Add(r, r.prefix + tokens, tokens, cut ? 0 : Clip(r.max_new));
  if (!cut) chunked_ = nullptr;
}

// Rule 13.
Verdict Sglang::TestPlain(Request& r) {
  const std::int64_t candidates = r.fill - r.prefix;
  const std::int64_t total = candidates + Clip(std::max<std::int64_t>(r.max_new - r.out, 0)) +
                             (c_.is_0_5_9 ? 0 : c_.page_size);
  if (static_cast<double>(total) >= TotalLeft()) return Verdict::kMemory;
  if (!chunked_prefill_ && !batch_.empty() && CeilToPages(candidates) >= input_left_) {
    return Verdict::kStop;
  }
  if (c_.disable_radix_cache) return AddPlain(r, total);
  const std::size_t before = batch_.size();
  tree_.Lock(r.node);
  const Verdict verdict = AddPlain(r, total);
  if (batch_.size() == before) tree_.Unlock(r.node);
  return verdict;
}

Verdict Sglang::AddPlain(Request& r, std::int64_t total) {
  if (static_cast<double>(total) >= TotalLeft()) return Verdict::kMemory;
  const std::int64_t page = c_.page_size;
  const std::int64_t size = CeilToPages(r.fill - r.prefix);
  if (!chunked_prefill_ || size <= chunk_left_) {
    Add(r, r.fill, size, Clip(r.max_new));
    return AfterAdding();
  }
  std::int64_t tokens = chunk_left_ <= 0 ? 0 : chunk_left_ / page * page;
  if (tokens <= 0) return Verdict::kStop;
  tokens = (r.prefix + tokens) / page * page - r.prefix;
  if (tokens <= 0) return Verdict::kStop;
  new_chunk_ = &r;
  Add(r, r.prefix + tokens, tokens, 0);
  return AfterAdding();
}

// Rule 19.
Verdict Sglang::TestIgnoringEos(Request& r) {
  const std::int64_t candidates = r.fill - r.prefix;
  const std::int64_t size = CeilToPages(candidates);
  if (static_cast<double>(size) > std::min(CurrentLeft(), TotalLeft())) return Verdict::kMemory;
  const auto add_state = [&](const Request& x, std::size_t at) {
    if (x.max_new <= x.out) return;
    states_.insert(states_.begin() + static_cast<std::ptrdiff_t>(at),
                   {x.max_new - x.out, x.prompt + x.out});
  };
  if (!has_states_) {
    has_states_ = true;
    add_state(r, states_.size());
    for (const Request* x : running_) add_state(*x, states_.size());
    for (const Request* x : batch_) add_state(*x, states_.size());
    std::stable_sort(states_.begin(), states_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
  } else {
    std::size_t at = 0;
    while (at + 1 < states_.size() && r.max_new - r.out > states_[at].first) ++at;
    add_state(r, at);
  }
  const std::int64_t left = Available() - off_current_ - size;
  std::int64_t freed = 0;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    const auto others = static_cast<std::int64_t>(states_.size() - i);
    if (left + freed - states_[i].first * others <= others) return Verdict::kMemory;
    freed += states_[i].second;
  }
  if (!chunked_prefill_ || candidates <= chunk_left_) {
    Add(r, r.fill, candidates, Clip(r.max_new));
  } else if (chunk_left_ <= 0) {
    return Verdict::kStop;
  } else {
    new_chunk_ = &r;
    Add(r, chunk_left_, chunk_left_, 0);
  }
  return AfterAdding();
}

Verdict Sglang::Test(Request& r) {
  r.fill = r.known();
  r.prefix = 0;
  r.node = nullptr;
  if (!c_.disable_radix_cache) {
    std::tie(r.prefix, r.node) = tree_.Match(SglangTokens(r.text.begin(), r.text.end() - 1));
  }
  r.owned = r.prefix;
  const auto added = static_cast<std::int64_t>(batch_.size());
  if (c_.prefill_max_requests && added >= *c_.prefill_max_requests) return Verdict::kStop;
  const bool by_states = c_.ignore_eos && c_.disable_radix_cache;
  const auto test = [&] { return by_states ? TestIgnoringEos(r) : TestPlain(r); };
  const Verdict verdict = test();
  const bool alone = batch_.empty() && running_.empty() && in_flight_.empty();
  if (verdict != Verdict::kMemory || !alone) return verdict;
  // Nothing will change, and SGLang waits for ever: it asks for less from here on.
  out_.waits_for_ever = true;
  const std::int64_t page = c_.page_size;
  r.max_new = c_.max_total_num_tokens / page * page - r.prompt - 2 * page;
  states_.clear();
  has_states_ = false;
  return test();
}

// Rules 36 and 37.
bool Sglang::PreemptFor(const Request& r) {
  const auto holds = [](const Requests& list, const Request* x) {
    return std::find(list.begin(), list.end(), x) != list.end();
  };
  Requests candidates;
  for (Request* x : running_) {
    if (!x->done) candidates.push_back(x);
  }
  std::stable_sort(candidates.begin(), candidates.end(), [&](const Request* a, const Request* b) {
    return std::pair(Urgency(*a), -a->entry) < std::pair(Urgency(*b), -b->entry);
  });
  double need = static_cast<double>(r.fill - r.prefix + Clip(r.max_new)) - TotalLeft();
  Requests victims;
  for (Request* x : candidates) {
    if (Urgency(r) - Urgency(*x) <= c_.priority_scheduling_preemption_threshold) break;
    victims.push_back(x);
    need -= Left(*x);
    if (need <= 0) break;
  }
  if (victims.empty() || need > 0) return false;
  auto left = static_cast<std::int64_t>(running_.size());
  Requests kept;
  for (Request* x : running_) {
    if (!holds(victims, x)) {
      kept.push_back(x);
      continue;
    }
    off_total_ -= Left(*x);
    Retract(*x, --left);
  }
  running_ = kept;
  preempted_.insert(preempted_.end(), victims.begin(), victims.end());
  return true;
}

// Rules 6 to 12.
std::unique_ptr<Batch> Sglang::Prefill() {
  if (preempts_) is_full_ = false;
  if ((is_full_ || waiting_.empty()) && chunked_ == nullptr) return nullptr;
  if (Room() <= 0 && chunked_ == nullptr && !preempts_) {
    is_full_ = true;
    return nullptr;
  }
  const std::int64_t decodes = mixes_ ? static_cast<std::int64_t>(running_.size()) : 0;
  double estimate = 0;
  for (const Request* r : running_) estimate += Left(*r);
  off_total_ = static_cast<double>(decodes) + estimate;
  off_current_ = decodes;
  input_left_ = c_.max_prefill_tokens - decodes;
  chunk_left_ = c_.chunked_prefill_size - decodes;
  batch_.clear();
  states_.clear();
  has_states_ = false;
  new_chunk_ = nullptr;
  if (chunked_ != nullptr && !running_.empty()) {
    std::int64_t tokens = std::min(chunk_left_, static_cast<std::int64_t>(TotalLeft()));
    if (tokens <= 0) tokens = chunk_left_;
    tokens = std::min(tokens, chunked_->known() - chunked_->prefix);
    const std::int64_t end = chunked_->prefix + tokens;
    if (tokens <= 0 || CeilToPages(end) - CeilToPages(chunked_->prefix) > Available()) {
      out_.out_of_memory = true;
      return nullptr;
    }
  }
  SortWaiting();
  if (chunked_ != nullptr) AddChunked();
  for (Request* r : waiting_) {
    if (static_cast<std::int64_t>(batch_.size()) >= Room()) is_full_ = true;
    if (is_full_ && !(preempts_ && PreemptFor(*r))) break;
    const Verdict verdict = Test(*r);
    if (verdict == Verdict::kMemory) is_full_ = true;
    if (verdict != Verdict::kGo) break;
  }
  for (Request* r : preempted_) Enqueue(*r);
  if (batch_.empty()) {
    out_.would_lose += static_cast<std::int64_t>(preempted_.size());
    return nullptr;
  }
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(),
                                [&](Request* r) {
                                  return std::find(batch_.begin(), batch_.end(), r) != batch_.end();
                                }),
                 waiting_.end());
  return PrefillBatch();
}

// Rules 15, 20, 28 and 39.
std::unique_ptr<Batch> Sglang::PrefillBatch() {
  if (new_chunk_ != nullptr) chunked_ = new_chunk_;
  if (chunked_ != nullptr) ++chunked_->chunks_in_flight;
  auto batch = std::make_unique<Batch>();
  batch->mode = "extend";
  batch->requests = batch_;
  batch->chunk = chunked_;
  const std::int64_t page = c_.page_size;
  std::int64_t tokens = 0, taken = 0;
  for (const Request* r : batch_) {
    tokens += r->end - r->prefix;
    taken += CeilToPages(r->end) - CeilToPages(r->prefix);
  }
  MakeRoom(page == 1 ? tokens : tokens + static_cast<std::int64_t>(batch_.size()) * page);
  Take(taken);
  for (Request* r : batch_) {
    if (!r->has_slot) --slots_;
    r->has_slot = true;
    r->kv = r->end;
    r->retracted = false;
    if (!r->ever_retracted) {
      r->result.cached_tokens += r->prefix - r->computed;
      r->computed = r->end;
    }
    batch->members.push_back({r->id, r->end - r->prefix, r->prefix, r == chunked_ ? 'c' : 'e'});
  }
  if (!mixes_ || running_.empty()) return batch;
  DropDone();
  std::int64_t need = 0;
  for (const Request* r : running_) need += r->kv % page == 0 ? page : 0;
  if (need > Available()) {
    out_.out_of_memory = true;
    return batch;
  }
  if (!running_.empty()) {
    Decode(*batch, running_);
    batch->mode = "mixed";
    batch->decoding = running_;
    for (Request* r : running_) {
      r->fill = r->known();
      batch->requests.push_back(r);
    }
    running_.clear();
  }
  return batch;
}

// ---- Decode ----------------------------------------------------------------------------------

// Rule 23.
void Sglang::Decode(Batch& batch, const Requests& requests) {
  const std::int64_t page = c_.page_size;
  MakeRoom(static_cast<std::int64_t>(requests.size()) * page);
  for (Request* r : requests) {
    if (r->kv % page == 0) Take(page);
    batch.members.push_back({r->id, 1, r->kv, 'd'});
    ++r->kv;
  }
}

// Rule 22.
bool Sglang::Fits(const Requests& requests) {
  std::int64_t need = 0;
  for (const Request* r : requests) need += r->kv % c_.page_size == 0 ? c_.page_size : 0;
  MakeRoom(need);
  return free_ >= need;
}

// Rules 24 to 27.
void Sglang::RetractSome() {
  const bool by_priority = c_.retraction_policy == "priority" && !c_.is_0_5_9;
  std::stable_sort(running_.begin(), running_.end(), [&](const Request* a, const Request* b) {
    const auto key = [&](const Request* r) {
      return std::tuple(by_priority ? -Urgency(*r) : 0, -r->out, r->prompt);
    };
    return key(a) < key(b);
  });
  while (!running_.empty() && (retracted_.empty() || !Fits(running_))) {
    SERVECAST_CHECK(running_.size() > 1 || chunked_ != nullptr,
                    "the reference knows no request that does not fit alone");
    Request* const r = running_.back();
    running_.pop_back();
    retracted_.push_back(r);
    Retract(*r, static_cast<std::int64_t>(running_.size()));
  }
  std::int64_t out = 0, most = 0;
  for (const Request* r : running_) {
    out += r->out + c_.retract_decode_steps;
    most += r->max_new;
  }
  if (!running_.empty()) {
    ratio_ = std::min(1.0, static_cast<double>(out) / static_cast<double>(most + 1));
  }
  for (Request* r : retracted_) Enqueue(*r);
}

std::unique_ptr<Batch> Sglang::DecodeStep() {
  const std::size_t before = running_.size();
  DropDone();
  if (running_.empty()) {
    is_full_ = false;
    return nullptr;
  }
  // The one that is left alone goes on if it fits.
  if (Fits(running_)) {
    ratio_ = std::max(ratio_ - decay_, least_ratio_);
  } else {
    RetractSome();
  }
  if (running_.size() < before) is_full_ = false;
  if (running_.empty()) return nullptr;
  auto batch = std::make_unique<Batch>();
  batch->mode = "decode";
  batch->requests = running_;
  Decode(*batch, running_);
  return batch;
}

// ---- The loop --------------------------------------------------------------------------------

// By arrival, then by id.
void Sglang::ToCome(RequestId id) {
  const auto key = [&](RequestId r) { return std::pair(arrival_[static_cast<std::size_t>(r)], r); };
  const auto at = std::find_if(to_come_.begin(), to_come_.end(),
                               [&](RequestId other) { return key(other) > key(id); });
  to_come_.insert(at, id);
}

// Rule 2.
bool Sglang::Arrivals() {
  bool any = false;
  while (!to_come_.empty()) {
    const RequestId id = to_come_.front();
    const auto i = static_cast<std::size_t>(id);
    if (arrival_[i] > now_) break;
    to_come_.erase(to_come_.begin());
    Request& r = all_[i];
    r.id = id;
    r.prompt = in_.requests.prompt_tokens[i];
    r.text = TextOf(in_.requests, id, r.prompt);
    r.priority = in_.requests.priority.empty() ? 0 : in_.requests.priority[i];
    const std::int64_t page = c_.page_size;
    // Of 0.5.9 no recorded case is: the engine counts whole pages there.
    const std::int64_t total =
        c_.is_0_5_9 ? c_.max_total_num_tokens / page * page : c_.max_total_num_tokens;
    const std::int64_t longest = std::min(c_.context_len, total) - 1;
    r.max_new = std::min(in_.max_new[i], longest - r.prompt - 1);
    if (!c_.is_0_5_9) r.max_new = std::min(r.max_new, total - CeilToPages(r.prompt) - page - 1);
    r.max_new = std::max<std::int64_t>(0, r.max_new);
    Enqueue(r);
    any = true;
  }
  return any;
}

// Rule 4.
void Sglang::Merge() {
  if (last_ == nullptr || last_->mode == "decode") return;
  Requests rest;
  for (Request* r : last_->requests) {
    if (!r->done && r != chunked_ && r != last_->chunk) rest.push_back(r);
  }
  if (rest.size() < last_->requests.size()) is_full_ = false;
  last_->requests = rest;
  if (rest.empty()) return;
  if (running_.empty()) is_full_ = false;
  running_.insert(running_.end(), rest.begin(), rest.end());
}

// Rule 1.
std::unique_ptr<Batch> Sglang::Schedule() {
  retracted_.clear();
  preempted_.clear();
  if (chunked_ != nullptr && chunked_->end > chunked_->prefix) CacheUnfinished(*chunked_, true);
  Merge();
  std::unique_ptr<Batch> batch = Prefill();
  if (batch == nullptr && !running_.empty()) batch = DecodeStep();
  return batch;
}

// Of no recorded run: each image that has a token in the step, unless its embeds are kept.
std::int64_t Sglang::Encode(const Request& r, std::int64_t from, std::int64_t to) {
  std::int64_t encoded = 0;
  for (const PromptImage& image : in_.requests.ImagesOf(r.id)) {
    bool here = false;
    for (std::int64_t t = from; t < to; ++t) here |= t >= image.offset && t < image.end();
    if (!here) continue;
    const auto at =
        std::find_if(embeddings_.begin(), embeddings_.end(),
                     [&](const PromptImage& kept) { return kept.content == image.content; });
    if (at != embeddings_.end()) {
      if (image.offset >= from) ++out_.image_hits;  // of its prompt's first step with it
      std::rotate(at, at + 1, embeddings_.end());
      continue;
    }
    ++encoded;
    embeddings_.push_back(image);
    const auto over = [&] {
      std::int64_t embeds = 0;
      for (const PromptImage& kept : embeddings_) embeds += kept.embeds;
      return embeds > c_.kept_embeds;
    };
    out_.images_too_large += image.embeds > c_.kept_embeds ? 1 : 0;
    while (over()) {
      embeddings_.erase(embeddings_.begin());
      ++out_.images_evicted;
    }
  }
  return encoded;
}

void Sglang::Launch(const std::shared_ptr<Batch>& batch) {
  BatchShape shape;
  std::vector<PrefillChunk> chunks;
  SglangStep step;
  step.scheduled = now_;
  step.start = std::max(now_, device_free_);
  for (const SglangMember& member : batch->members) {
    Request& r = all_[static_cast<std::size_t>(member.id)];
    if (member.kind == 'd') {
      ++shape.decode_seqs;
      shape.decode_context_tokens += member.prefix;
      continue;
    }
    chunks.push_back({member.tokens, member.prefix, r.prompt, member.kind == 'e'});
    shape.images += Encode(r, member.prefix, member.prefix + member.tokens);
    if (r.result.first_step < 0) {
      r.result.first_step = static_cast<std::int64_t>(out_.steps.size());
      r.result.first_scheduled = step.start;
      r.result.cached_at_first_schedule = member.prefix;
    } else if (r.resumes) {
      r.result.cached_on_resumes += member.prefix;
    }
    r.resumes = false;
  }
  shape.prefill = chunks;
  out_.encoded_images += shape.images;
  step.end = device_free_ = step.start + in_.latency.Price(shape).duration;
  step.mode = batch->mode;
  step.members = batch->members;
  for (const Request* r : retracted_) step.retracted.push_back(r->id);
  for (const Request* r : preempted_) step.preempted.push_back(r->id);
  step.chunked = chunked_ == nullptr ? kNoRequest : chunked_->id;
  step.new_token_ratio = ratio_;
  step.available_after_schedule = free_;
  step.evictable_after_schedule = Evictable();
  step.running_after_schedule = static_cast<std::int64_t>(running_.size());
  step.waiting_after_schedule = static_cast<std::int64_t>(waiting_.size());
  step.batch_is_full = is_full_;
  // What is merged later leaves the batch that was launched as it was.
  in_flight_.emplace_back(out_.steps.size(), std::make_shared<Batch>(*batch));
  out_.steps.push_back(std::move(step));
  if (!c_.overlap) now_ = device_free_;
}

void Sglang::Token(Request& r, std::size_t step) {
  const auto i = static_cast<std::size_t>(r.id);
  ++r.out;
  r.text = TextOf(in_.requests, r.id, r.prompt + r.out);
  r.result.output_tokens = r.out;
  r.result.tokens.push_back(now_);
  if (r.result.first_token < 0) r.result.first_token = now_;
  if (r.out >= r.max_new) {
    r.result.finish_reason = "length";
  } else if (!c_.ignore_eos && r.out == in_.requests.output_tokens[i]) {
    r.result.finish_reason = "stop";
  } else {
    return;
  }
  r.done = true;
  r.result.finish = now_;
  r.result.finish_step = static_cast<std::int64_t>(step);
  out_.steps[step].finished.push_back(r.id);
  SendNext(r.id);
}

// The next turn of its session, or in a closed loop the first session that waits for a client.
void Sglang::SendNext(RequestId done) {
  const RequestTable& t = in_.requests;
  const auto after = [&](RequestId next, TimeNs wait) {
    arrival_[static_cast<std::size_t>(next)] = now_ + wait;
    ToCome(next);
  };
  if (!t.think.empty() && done + 1 < t.size()) {
    const TimeNs think = t.think[static_cast<std::size_t>(done + 1)];
    if (think >= 0) return after(done + 1, think);
  }
  for (std::size_t i = 0; i < t.pause.size(); ++i) {
    if (t.pause[i] < 0 || arrival_[i] >= 0) continue;
    const TimeNs due = t.due.empty() ? 0 : t.due[i];
    return after(static_cast<RequestId>(i), std::max(t.pause[i], due - now_));
  }
}

// Rules 48, 50, 56 and 58.
void Sglang::Apply() {
  const std::size_t number = in_flight_.front().first;
  const std::shared_ptr<Batch> batch = in_flight_.front().second;
  in_flight_.pop_front();
  now_ = std::max(now_, out_.steps[number].end);
  const auto decodes = [&](const Request* r) {
    return batch->mode == "decode" ||
           std::find(batch->decoding.begin(), batch->decoding.end(), r) != batch->decoding.end();
  };
  for (Request* r : batch->requests) {
    if (r->retracted || (r->done && (batch->mode == "decode" || r->chunks_in_flight <= 0))) {
      continue;
    }
    if (batch->mode != "decode" && r->chunks_in_flight > 0) {
      --r->chunks_in_flight;
      continue;
    }
    Token(*r, number);
    if (r->done) {
      Release(*r, true);
    } else if (!decodes(r)) {
      CacheUnfinished(*r, false);
    }
  }
  out_.steps[number].available_after_step = free_;
  out_.steps[number].evictable_after_step = Evictable();
}

SglangOutput Sglang::Run() {
  for (RequestId id = 0; id < in_.requests.size(); ++id) {
    if (arrival_[static_cast<std::size_t>(id)] >= 0) ToCome(id);
  }
  bool idle = false;  // nothing came of the last pass
  while (true) {
    const bool arrived = Arrivals();
    const bool nothing = waiting_.empty() && running_.empty() && chunked_ == nullptr &&
                         last_ == nullptr && in_flight_.empty();
    if (!arrived && idle && nothing) {
      if (to_come_.empty()) break;
      now_ = arrival_[static_cast<std::size_t>(to_come_.front())];
      Arrivals();
    }
    const std::shared_ptr<Batch> batch = Schedule();
    idle = batch == nullptr;
    if (batch != nullptr) Launch(batch);
    if (c_.overlap ? last_ != nullptr : batch != nullptr) {
      Apply();
    } else if (batch == nullptr && running_.empty() && waiting_.empty() && chunked_ == nullptr &&
               in_flight_.empty()) {
      ratio_ = initial_ratio_;  // rule 34
    }
    last_ = batch;
  }
  for (Request& r : all_) out_.results.push_back(r.result);
  return std::move(out_);
}

}  // namespace

SglangOutput RunSglangReference(const SglangInput& input) { return Sglang(input).Run(); }

}  // namespace servecast::testing

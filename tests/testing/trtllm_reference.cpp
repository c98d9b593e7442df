#include "testing/trtllm_reference.h"

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "testing/trtllm_reference_kv.h"

namespace servecast::testing {
namespace {

enum class State { kContext, kGeneration, kLast, kDone };

struct Request {
  RequestId id = kNoRequest;  // -1: a dummy
  std::int64_t owner = 0;     // of blocks
  TrtllmText known, all;      // what is known of its text; what there will be
  std::int64_t prompt = 0, rest = 0, limit = 0, first = 0, end = 0;  // P, M
  State state = State::kContext;
  std::int64_t pos = 0, chunk = 0, estimated = 0;
  bool fresh = true;
  std::int64_t outputs = 0, rewinds = 0;

  std::int64_t left() const { return prompt - pos; }
  std::int64_t generated() const { return static_cast<std::int64_t>(known.size()) - prompt; }
  bool started() const { return state != State::kContext || !fresh; }
};
using Pointer = std::shared_ptr<Request>;

struct Batch {
  std::vector<Pointer> context, generation;
  std::vector<Pointer> paused;
  std::int64_t fitting = 0;
  bool runs() const { return !context.empty() || !generation.empty(); }
};
struct Flight {
  Batch batch;
  TimeNs end = 0;
  std::size_t row = 0;
};

// Rule 32.
std::int64_t Adjusted(std::int64_t tokens, std::int64_t estimated, std::int64_t left) {
  if (estimated <= 0 || estimated + tokens < left) return tokens;
  return std::max<std::int64_t>(0, left - estimated);
}

void LastChunksLast(std::vector<Pointer>& contexts) {
  std::stable_partition(contexts.begin(), contexts.end(),
                        [](const Pointer& q) { return q->pos + q->chunk != q->prompt; });
}

class Rank {
 public:
  Rank(const TrtllmSettings& settings, std::int64_t index)
      : s_(settings), kv(settings), number(index) {}

  Batch Schedule() {
    Batch batch;
    go_.clear();
    seen_.clear();
    Capacity(batch);
    batch.fitting = static_cast<std::int64_t>(go_.size());
    MicroBatch(batch);
    return batch;
  }

  // Rules 58 and 59.
  void Wait(Batch& batch) {
    const bool on = s_.batch_wait_timeout_iters > 0 || s_.batch_wait_max_tokens_ratio > 0;
    if (!on || batch.context.empty() || batch.generation.empty()) return;
    std::int64_t tokens = static_cast<std::int64_t>(batch.generation.size()) * (1 + s_.draft_len);
    for (const Pointer& q : batch.context) {
      const std::int64_t estimated = Estimated(*q);
      const bool whole = estimated <= 0 || estimated + q->chunk < q->left();
      tokens += whole ? q->chunk : std::max<std::int64_t>(1, q->left() - estimated);
    }
    const double least = s_.batch_wait_max_tokens_ratio * static_cast<double>(s_.max_num_tokens);
    if (waited_ < s_.batch_wait_timeout_iters && static_cast<double>(tokens) < least) {
      batch.context.clear();
      ++waited_;
    } else {
      waited_ = 0;
    }
  }

  void Pause(Request& q) {
    const std::int64_t known = q.pos < q.prompt ? q.pos : static_cast<std::int64_t>(q.known.size());
    kv.Leave(q.owner, q.known, std::max<std::int64_t>(0, known - 1));
  }

  std::int64_t DraftsOf(const Request& q) const {
    return q.state == State::kGeneration && q.id >= 0 ? s_.draft_len : 0;
  }

  // Blocks of a batch that runs (rules 43 to 48). Members that it names as new were admitted.
  std::vector<Pointer> Take(Batch& batch) {
    std::vector<Pointer> fresh;
    for (const Pointer& q : batch.context) {
      if (q->fresh) fresh.push_back(q);
    }
    Drop(batch, fresh);
    std::vector<TrtllmReferenceKv::Newcomer> newcomers;
    newcomers.reserve(fresh.size());
    for (const Pointer& q : fresh) newcomers.push_back({q->owner, &q->known, 0});
    kv.Admit(newcomers);
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      Request& q = *fresh[i];
      const std::int64_t n = newcomers[i].found, b = s_.tokens_per_block;
      q.pos = n;
      if (n > 0) q.chunk = n + q.chunk < q.prompt ? (n + q.chunk) / b * b - n : q.prompt - n;
      q.fresh = false;
      q.estimated = 0;
    }
    for (const Pointer& q : batch.generation) {
      for (std::int64_t i = 0; i <= DraftsOf(*q); ++i) kv.Grow(q->owner);
    }
    LastChunksLast(batch.context);
    return fresh;
  }

  const TrtllmSettings& s_;
  TrtllmReferenceKv kv;
  std::int64_t number;
  std::vector<Pointer> active;
  std::optional<Flight> flight;
  std::int64_t late = 0, held = 0;
  std::vector<RequestId> shown;  // paused since the last row
  bool would_stop = false;

 private:
  std::int64_t Blocks(std::int64_t tokens) const { return CeilDiv(tokens, s_.tokens_per_block); }
  bool Aware() const { return s_.enable_block_reuse && s_.enable_prefix_aware_scheduling; }
  static std::int64_t Estimated(const Request& q) { return q.fresh ? q.estimated : 0; }

  TrtllmReferenceKv::Stored Look(const Request& q) const {
    return Aware() ? kv.Find(q.known) : TrtllmReferenceKv::Stored{};
  }

  // Rule 23.
  bool Skips(const Request& q) {
    if (!Aware() || q.started()) return false;
    const TrtllmText first = Look(q).first_new;
    if (first.empty()) return false;
    return !seen_.insert(first).second;
  }

  // Rule 52.
  std::int64_t Rest(Request& q) const {
    const std::int64_t all = Blocks(q.prompt + q.rest);
    q.estimated = 0;
    if (q.started()) return all - kv.Held(q.owner);
    const auto stored = Look(q);
    const std::int64_t most = (q.prompt - 1) / s_.tokens_per_block;
    q.estimated = std::min(stored.all, most) * s_.tokens_per_block;
    return all - std::min(stored.used, most);
  }

  // Rule 53.
  std::int64_t StepNeed(Request& q) const {
    q.estimated = 0;
    if (q.state == State::kContext) {
      if (q.started()) return 0;
      const auto stored = Look(q);
      const std::int64_t most = (q.prompt - 1) / s_.tokens_per_block;
      q.estimated = std::min(stored.all, most) * s_.tokens_per_block;
      return Blocks(q.prompt) - std::min(stored.used, most);
    }
    const std::int64_t size = kv.Size(q.owner);
    const std::int64_t next = size + std::min(1 + DraftsOf(q), q.rest - (size - q.prompt));
    return Blocks(next) - Blocks(size);
  }

  void Capacity(Batch& batch) {
    if (Aware() && s_.policy != "STATIC_BATCH") {
      for (const Pointer& q : active) {
        if (q->state != State::kContext || q->fresh) continue;
        const TrtllmText first = Look(*q).first_new;
        if (!first.empty()) seen_.insert(first);
      }
    }
    s_.policy == "MAX_UTILIZATION" ? MaxUtilization(batch) : Guaranteed();
  }

  void Guaranteed() {
    std::int64_t available = kv.free();
    std::vector<Pointer> aside;
    for (const Pointer& q : active) {
      if (q->state == State::kContext) {
        aside.push_back(q);
        continue;
      }
      go_.push_back(q);
      available -= Rest(*q);
    }
    const bool in_turn = s_.policy == "STATIC_BATCH";
    if (in_turn && !go_.empty()) return;
    for (const Pointer& q : aside) {
      if (!in_turn && Skips(*q)) continue;
      const std::int64_t rest = Rest(*q);
      if (rest > available) break;
      go_.push_back(q);
      available -= rest;
    }
    // TensorRT-LLM would wait for ever.
    if (!go_.empty() || flight) return;
    for (const Pointer& q : aside) {
      if (q->fresh) continue;
      would_stop = true;
      go_.push_back(q);
    }
  }

  void MaxUtilization(Batch& batch) {
    std::int64_t room = kv.free(), taken = 0;
    std::map<std::int64_t, std::int64_t> users;
    std::size_t cursor = 0, end = active.size();
    while (cursor < end) {
      const Pointer& q = active[cursor];
      if (Skips(*q)) {
        ++cursor;
        continue;
      }
      const std::int64_t need = StepNeed(*q);
      if (taken + need <= room) {
        taken += need;
        go_.push_back(q);
        ++cursor;
        continue;
      }
      std::size_t victim = end;
      while (victim > cursor && !active[victim - 1]->started()) --victim;
      if (victim == cursor) break;
      end = victim - 1;
      for (const std::int64_t block : kv.BlocksOf(active[end]->owner)) {
        const auto [at, is_new] = users.try_emplace(block, kv.Users(block));
        if (--at->second == 0) ++room;
      }
      batch.paused.push_back(active[end]);
    }
  }

  void MicroBatch(Batch& batch) {
    const std::int64_t budget = s_.max_num_tokens;
    std::int64_t used = 0, count = 0;
    std::vector<Pointer> chunked;
    for (const Pointer& q : go_) {
      if (q->state == State::kLast) continue;
      if (q->state == State::kGeneration) {
        const std::int64_t cost = 1 + DraftsOf(*q);
        if (used + cost > budget) break;
        batch.generation.push_back(q);
        used += cost;
      } else if (s_.enable_chunked_prefill) {
        q->chunk = q->left();
        chunked.push_back(q);
      } else {
        const std::int64_t cost =
            std::max<std::int64_t>(1, Adjusted(q->prompt, Estimated(*q), q->left()));
        const bool alone = cost > budget && used == 0;  // an assertion of TensorRT-LLM fails
        would_stop = would_stop || alone;
        if (used + cost > budget && !alone) break;
        batch.context.push_back(q);
        used += cost;
      }
      if (++count >= s_.max_batch_size) break;
    }
    SetChunks(chunked, budget - used);
    for (const Pointer& q : chunked) {
      if (q->chunk > 0) batch.context.push_back(q);
    }
  }

  void SetChunks(const std::vector<Pointer>& chunked, std::int64_t room) const {
    const std::int64_t budget = s_.max_num_tokens;
    const std::int64_t unit = s_.chunk_unit_size.value_or(s_.tokens_per_block);
    std::int64_t wanted = 0;
    bool whole = true;
    for (const Pointer& q : chunked) {
      const std::int64_t cost = Adjusted(q->left(), Estimated(*q), q->left());
      whole = whole && cost <= budget;
      wanted += std::min(cost, budget);
    }
    if (whole && wanted <= room) return;
    if (s_.context_chunking_policy == "EQUAL_PROGRESS") {
      for (const Pointer& q : chunked) q->chunk = 0;
      std::int64_t spent = 0, moved = 1;
      while (spent < room && moved > 0) {
        moved = 0;
        for (const Pointer& q : chunked) {
          const std::int64_t next = std::min(q->chunk + unit, q->left());
          const std::int64_t more = Adjusted(next, Estimated(*q), q->left()) -
                                    Adjusted(q->chunk, Estimated(*q), q->left());
          if (spent + more > room || next > budget) continue;
          moved += next - q->chunk;
          q->chunk = next;
          spent += more;
        }
      }
      return;
    }
    for (const Pointer& q : chunked) {
      std::int64_t chunk = q->left();
      if (room < Adjusted(chunk, Estimated(*q), q->left())) chunk = room;
      if (Adjusted(chunk, Estimated(*q), q->left()) > budget) chunk = std::min(budget, q->left());
      if (chunk < q->left()) chunk = chunk / unit * unit;
      q->chunk = chunk;
      room -= Adjusted(chunk, Estimated(*q), q->left());
    }
  }

  // Victims that shared blocks with newcomers: TensorRT-LLM would stop with an error.
  void Drop(Batch& batch, std::vector<Pointer>& fresh) {
    if (batch.paused.empty() || !s_.enable_block_reuse) return;
    std::int64_t room = kv.free();
    for (const Pointer& q : batch.generation) {
      const std::int64_t size = kv.Size(q->owner);
      room -= Blocks(size + 1 + DraftsOf(*q)) - Blocks(size);
    }
    std::size_t kept = 0;
    for (; kept < fresh.size(); ++kept) {
      TrtllmText text = fresh[kept]->known;
      text.pop_back();
      room -= Blocks(fresh[kept]->prompt) - kv.Find(text).used;
      if (room < 0) break;
    }
    while (fresh.size() > kept) {
      would_stop = true;
      batch.context.erase(std::find(batch.context.begin(), batch.context.end(), fresh.back()));
      fresh.pop_back();
    }
  }

  std::int64_t waited_ = 0;
  std::vector<Pointer> go_;
  std::set<TrtllmText> seen_;
};

class Run {
 public:
  explicit Run(const TrtllmInput& input) : in_(input), s_(input.settings) {
    out_.results.resize(input.max_new.size());
    for (std::int64_t i = 0; i < s_.attention_dp_size; ++i) {
      ranks_.push_back(std::make_unique<Rank>(s_, i));
    }
    for (std::size_t r = 0; r < input.max_new.size(); ++r) by_arrival_.push_back(r);
    std::stable_sort(by_arrival_.begin(), by_arrival_.end(), [&](std::size_t a, std::size_t b) {
      return input.requests.arrival[a] < input.requests.arrival[b];
    });
  }

  TrtllmOutput Do() {
    for (std::int64_t idle = 0;;) {
      if (Active() == 0 && waiting_.empty()) {
        const bool flies = std::any_of(ranks_.begin(), ranks_.end(),
                                       [](const auto& rank) { return rank->flight.has_value(); });
        if (next_ == by_arrival_.size() && !flies) break;
        if (next_ < by_arrival_.size()) now_ = std::max(now_, NextArrival());
      }
      Activate();
      if (Iterate()) {
        idle = 0;
      } else if (++idle > 3) {  // nothing can happen before the next arrival
        if (next_ == by_arrival_.size()) break;
        now_ = std::max(now_, NextArrival());
      }
    }
    for (const auto& rank : ranks_) {
      out_.would_stop = out_.would_stop || rank->would_stop || rank->kv.ran_out();
    }
    return std::move(out_);
  }

 private:
  TimeNs NextArrival() const { return in_.requests.arrival[by_arrival_[next_]]; }
  bool Adp() const { return ranks_.size() > 1; }
  std::int64_t Active() const {
    std::int64_t active = 0;
    for (const auto& rank : ranks_) active += static_cast<std::int64_t>(rank->active.size());
    return active;
  }
  TrtllmResult& ResultOf(const Request& q) { return out_.results[static_cast<std::size_t>(q.id)]; }

  TrtllmToken TokenAt(std::size_t r, std::int64_t place) const {
    const RequestTable& t = in_.requests;
    if (t.content.empty()) return {static_cast<std::int64_t>(r), place};
    std::int32_t segment = t.content[r];
    const auto shared = [&](std::int32_t at) {
      return t.segments[static_cast<std::size_t>(at)].shared_tokens;
    };
    while (place < shared(segment)) segment = t.segments[static_cast<std::size_t>(segment)].parent;
    return {segment, place};
  }

  Pointer Make(std::size_t r) const {
    auto q = std::make_shared<Request>();
    q->id = static_cast<RequestId>(r);
    q->owner = static_cast<std::int64_t>(r);
    q->prompt = q->first = q->chunk = in_.requests.prompt_tokens[r];
    q->rest = q->limit = std::min(in_.max_new[r], s_.max_seq_len - q->prompt);
    q->end = std::min<std::int64_t>(in_.requests.output_tokens[r], q->limit);
    for (std::int64_t i = 0; i < q->first + q->limit + 2; ++i) q->all.push_back(TokenAt(r, i));
    q->known.assign(q->all.begin(), q->all.begin() + q->prompt);
    return q;
  }

  // Rules 1 to 3, 65 and 66.
  void Activate() {
    std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>> load;  // tokens, active, rank
    std::int64_t most = 0;
    for (const auto& rank : ranks_) {
      std::int64_t tokens = 0;
      for (const Pointer& q : rank->active) tokens += q->first;
      const auto active = static_cast<std::int64_t>(rank->active.size());
      load.emplace_back(tokens, active, rank->number);
      most = std::max(most, active);
    }
    for (; next_ < by_arrival_.size() && NextArrival() <= now_; ++next_) {
      const std::size_t r = by_arrival_[next_];
      const bool ordered = s_.waiting_queue == "PRIORITY" && !in_.requests.priority.empty();
      waiting_.emplace(ordered ? -in_.requests.priority[r] : 0, static_cast<std::int64_t>(next_),
                       r);
    }
    const std::int64_t active = Active();
    std::int64_t places = static_cast<std::int64_t>(ranks_.size()) * s_.max_batch_size - active;
    std::vector<std::size_t> fresh;
    for (; places > 0 && !waiting_.empty(); --places) {
      fresh.push_back(std::get<2>(*waiting_.begin()));
      waiting_.erase(waiting_.begin());
    }
    if (!Adp()) {
      for (const std::size_t r : fresh) Enter(*ranks_[0], r);
      return;
    }
    const auto ranks = static_cast<std::int64_t>(ranks_.size());
    const auto all = active + static_cast<std::int64_t>(fresh.size());
    expected_ = std::min(std::max(CeilDiv(all, ranks), most), s_.max_batch_size);
    load.erase(std::remove_if(load.begin(), load.end(),
                              [&](const auto& of) { return std::get<1>(of) >= expected_; }),
               load.end());
    std::stable_sort(fresh.begin(), fresh.end(), [&](std::size_t a, std::size_t b) {
      return in_.requests.prompt_tokens[a] > in_.requests.prompt_tokens[b];
    });
    for (const std::size_t r : fresh) {
      const auto least = std::min_element(load.begin(), load.end());
      auto [tokens, count, rank] = *least;
      load.erase(least);
      Enter(*ranks_[static_cast<std::size_t>(rank)], r);
      if (count + 1 < expected_) {
        load.emplace_back(tokens + in_.requests.prompt_tokens[r], count + 1, rank);
      }
    }
    for (const auto& rank : ranks_) {
      if (expected_ == 0 || !rank->active.empty()) continue;
      if (const Pointer dummy = Dummy(*rank)) rank->active.push_back(dummy);
    }
  }

  void Enter(Rank& rank, std::size_t r) {
    rank.active.push_back(Make(r));
    out_.results[r].activated = now_;
    out_.results[r].rank = rank.number;
  }

  // Rules 66 and 70.
  Pointer Dummy(Rank& rank) {
    if (rank.kv.free() == 0) return nullptr;
    auto q = std::make_shared<Request>();
    q->owner = -1 - dummies_++;
    q->known = {{-1, q->owner}};
    q->rest = q->limit = q->end = q->first = 1;
    std::vector<TrtllmReferenceKv::Newcomer> newcomers = {{q->owner, &q->known, 0}};
    rank.kv.Admit(newcomers);
    q->state = State::kGeneration;
    q->fresh = false;
    return q;
  }

  // Rule 67.
  void Balance(std::vector<Batch>& batches) {
    bool slots = true, contexts = true, generations = true;
    for (const Batch& batch : batches) {
      slots = slots && static_cast<std::int64_t>(batch.generation.size()) < s_.max_batch_size;
      contexts = contexts && !batch.context.empty();
      generations = generations && !batch.generation.empty();
    }
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      Rank& rank = *ranks_[i];
      bool out = false;
      if (slots && contexts) {
        rank.late = 0;
        if (generations) {
          out = rank.held < s_.attention_dp_batching_wait_iters;
          rank.held = out ? rank.held + 1 : 0;
        }
      } else {
        ++rank.late;
        out = rank.late < s_.attention_dp_timeout_iters && generations;
        if (!out) rank.late = 0;
      }
      if (out) batches[i].context.clear();
    }
  }

  // A pass of all ranks, and what follows. False: nothing happened.
  bool Iterate() {
    std::vector<Batch> batches;
    for (const auto& rank : ranks_) batches.push_back(rank->Schedule());
    if (Adp() && s_.attention_dp_enable_balance) Balance(batches);
    if (!Adp()) ranks_[0]->Wait(batches[0]);
    std::vector<Pointer> dummies(ranks_.size());
    bool all_run = true, any_paused = false;
    std::vector<bool> own;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      Rank& rank = *ranks_[i];
      Batch& batch = batches[i];
      LastChunksLast(batch.context);
      const bool has_dummy = std::any_of(rank.active.begin(), rank.active.end(),
                                         [](const Pointer& q) { return q->id < 0; });
      const auto active = static_cast<std::int64_t>(rank.active.size());
      if (Adp() && !batch.runs() && active > 0 && active < s_.max_batch_size && !has_dummy &&
          expected_ > 0) {  // rule 68
        dummies[i] = Dummy(rank);
        if (dummies[i]) {
          rank.active.push_back(dummies[i]);
          batch.generation.push_back(dummies[i]);
        }
      }
      for (const Pointer& q : batch.paused) {
        rank.Pause(*q);
        rank.shown.push_back(q->id);
        any_paused = true;
        if (!s_.overlap) BecomeContext(*q);
      }
      own.push_back(batch.runs());
      all_run = all_run && batch.runs();
    }
    std::vector<Flight> flights;
    if (all_run) flights = Launch(batches);
    all_run = !flights.empty();
    if (!all_run) {
      for (std::size_t i = 0; i < ranks_.size(); ++i) {  // rule 69
        if (!dummies[i]) continue;
        ranks_[i]->kv.Leave(dummies[i]->owner, dummies[i]->known, 0);
        ranks_[i]->active.pop_back();
      }
    }
    return s_.overlap ? HandleBefore(batches, flights, own) || all_run || any_paused
                      : Handle(flights) || any_paused;
  }

  // Takes blocks and prices the step; none, if nobody is left in it.
  std::vector<Flight> Launch(std::vector<Batch>& batches) {
    std::vector<Flight> flights;
    TimeNs longest = 0;
    std::vector<TrtllmStep> rows;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      Rank& rank = *ranks_[i];
      Batch& batch = batches[i];
      std::vector<std::int64_t> before;
      for (const Pointer& q : batch.generation) before.push_back(rank.kv.Size(q->owner));
      const std::vector<Pointer> fresh = rank.Take(batch);
      if (!batch.runs()) return {};
      for (const Pointer& q : fresh) {
        TrtllmResult& result = ResultOf(*q);
        if (result.pauses == 0) {
          result.reused_first = q->pos;
        } else {
          result.reused_resumes += q->pos;
        }
      }
      rows.push_back(Row(rank, batch, before));
      longest = std::max(longest, Price(rank, batch, before));
      flights.push_back({batch, 0, 0});
    }
    const TimeNs start = s_.overlap ? std::max(now_, device_) : now_;
    device_ = start + longest;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].start = start;
      rows[i].end = flights[i].end = device_;
      flights[i].row = out_.steps.size();
      for (const std::vector<Pointer>* list : {&batches[i].context, &batches[i].generation}) {
        for (const Pointer& q : *list) {
          if (q->id < 0 || ResultOf(*q).first_step >= 0) continue;
          ResultOf(*q).first_step = step_;
          ResultOf(*q).first_scheduled = start;
        }
      }
      out_.steps.push_back(std::move(rows[i]));
    }
    ++step_;
    return flights;
  }

  TrtllmStep Row(Rank& rank, const Batch& batch, const std::vector<std::int64_t>& before) {
    TrtllmStep row;
    row.step = step_;
    row.rank = rank.number;
    row.scheduled = now_;
    for (const Pointer& q : batch.context) {
      row.context.push_back({q->id, q->chunk, q->pos, q->pos + q->chunk == q->prompt});
      row.T += q->chunk;
      row.Q += static_cast<double>(q->chunk) *
               (static_cast<double>(q->pos) + static_cast<double>(q->chunk) / 2);
    }
    for (std::size_t i = 0; i < before.size(); ++i) {
      const Request& q = *batch.generation[i];
      row.generation.push_back(q.id);
      row.T += 1 + rank.DraftsOf(q);
      row.K += before[i];
      if (s_.draft_len > 0) row.draft.push_back(rank.DraftsOf(q));
    }
    row.paused.swap(rank.shown);
    row.fitting = batch.fitting;
    row.free_after_schedule = rank.kv.free();
    row.active_after_schedule = static_cast<std::int64_t>(rank.active.size());
    row.waiting_after_schedule = static_cast<std::int64_t>(waiting_.size());
    return row;
  }

  TimeNs Price(const Rank& rank, const Batch& batch, const std::vector<std::int64_t>& before) {
    BatchShape shape;
    std::vector<PrefillChunk> chunks;
    std::vector<DraftedDecodes> drafted;
    for (const Pointer& q : batch.context) {
      chunks.push_back({q->chunk, q->pos, q->first, q->pos + q->chunk == q->prompt});
    }
    for (std::size_t i = 0; i < before.size(); ++i) {
      const std::int64_t drafts = rank.DraftsOf(*batch.generation[i]);
      if (drafts > 0) {
        AddDrafted(drafted, 1 + drafts, before[i]);
        continue;
      }
      ++shape.decode_seqs;
      shape.decode_context_tokens += before[i];
      shape.decode_kv_blocks += CeilDiv(before[i] + 1, s_.tokens_per_block);
    }
    shape.prefill = chunks;
    shape.drafted = drafted;
    return in_.latency.Price(shape).duration;
  }

  // Rule 38.
  void BecomeContext(Request& q) {
    ++ResultOf(q).pauses;
    if (q.state == State::kDone) {  // rule 39
      ++out_.revived;
      q.end = q.generated() + (q.prompt - q.first) + 1;
    }
    q.rest -= q.generated();
    q.prompt = q.chunk = static_cast<std::int64_t>(q.known.size());
    q.state = State::kContext;
    q.pos = q.estimated = 0;
    q.fresh = true;
  }

  // Rule 60, and 70.
  void Advance(Rank& rank, const Batch& batch) {
    if (!rank.active.empty() && rank.active.back()->id < 0) {
      const Pointer dummy = rank.active.back();
      dummy->state = State::kDone;
      rank.kv.Leave(dummy->owner, dummy->known, 0);
      rank.active.pop_back();
    }
    for (const Pointer& q : batch.context) {
      q->pos += q->chunk;
      q->chunk = 0;
      if (q->pos < q->prompt) continue;
      const bool last = s_.overlap && q->generated() + 1 >= q->rest;
      q->state = last ? State::kLast : State::kGeneration;
    }
  }

  void Tokens(Request& q, std::int64_t tokens) {
    for (; tokens > 0 && q.state != State::kDone; --tokens) {
      if (q.id < 0) {
        q.known.push_back({-1, q.owner});
        q.state = State::kDone;
        return;
      }
      q.known.push_back(q.all[q.known.size()]);
      ResultOf(q).tokens.push_back(now_);
      const std::int64_t made = static_cast<std::int64_t>(q.known.size()) - q.first;
      if (made >= q.end) q.state = State::kDone;
    }
  }

  // Rules 61 and 63.
  void Outputs(const Flight& flight) {
    for (const Pointer& q : flight.batch.context) {
      if (q->state == State::kDone || q->pos != q->prompt) continue;
      Tokens(*q, 1);
      TrtllmResult& result = ResultOf(*q);
      if (result.first_token >= 0) continue;
      result.first_token = now_;
      result.first_token_step = out_.steps[flight.row].step;
    }
    for (const Pointer& q : flight.batch.generation) {
      if (q->state == State::kDone) continue;
      const std::int64_t drafts = q->id < 0 ? 0 : s_.draft_len;
      const std::int64_t accepted =
          drafts == 0
              ? 0
              : in_.requests.accepted_drafts[static_cast<std::size_t>(q->id)]
                                            [static_cast<std::size_t>(q->outputs % (drafts + 1))];
      ++q->outputs;
      q->rewinds = drafts - accepted;
      Tokens(*q, 1 + accepted);
    }
  }

  // Rules 8, 9e, 51 and 63.
  void Finish(Rank& rank, const Flight& flight) {
    TrtllmStep& row = out_.steps[flight.row];
    std::vector<Pointer> stay, gone;
    for (const Pointer& q : rank.active) {
      (q->id < 0 || q->state == State::kDone ? gone : stay).push_back(q);
    }
    rank.active = stay;
    for (const Pointer& q : gone) {
      rank.kv.Leave(q->owner, q->known,
                    q->id < 0 ? 0 : static_cast<std::int64_t>(q->known.size()) - 1);
      if (q->id < 0) continue;
      row.finished.push_back(q->id);
      TrtllmResult& result = ResultOf(*q);
      result.finish = now_;
      result.finish_step = row.step;
      result.generated = static_cast<std::int64_t>(q->known.size()) - q->first;
    }
    for (const Pointer& q : flight.batch.generation) {
      if (q->state == State::kDone || q->state == State::kContext) continue;
      for (std::int64_t i = 0; i < q->rewinds; ++i) rank.kv.Shrink(q->owner);
    }
    for (const Pointer& q : flight.batch.context) {
      const std::int64_t known =
          q->pos < q->prompt ? q->pos : static_cast<std::int64_t>(q->known.size());
      rank.kv.Store(q->owner, q->known, std::max<std::int64_t>(0, known - 1));
    }
    row.free_after_step = rank.kv.free();
    row.active_after_step = static_cast<std::int64_t>(rank.active.size());
  }

  // Without overlap.
  bool Handle(const std::vector<Flight>& flights) {
    if (flights.empty()) return false;
    now_ = flights[0].end;
    for (std::size_t i = 0; i < flights.size(); ++i) {
      Advance(*ranks_[i], flights[i].batch);
      Outputs(flights[i]);
      Finish(*ranks_[i], flights[i]);
    }
    return true;
  }

  // Of somebody who has not ended meanwhile.
  static bool HasTokens(const Batch& batch) {
    const auto waits = [](const Pointer& q) { return q->id >= 0 && q->state != State::kDone; };
    return std::any_of(batch.context.begin(), batch.context.end(), waits) ||
           std::any_of(batch.generation.begin(), batch.generation.end(), waits);
  }

  // Rules 9 and 71.
  bool HandleBefore(const std::vector<Batch>& batches, const std::vector<Flight>& flights,
                    const std::vector<bool>& own) {
    const bool ran = !flights.empty();
    std::vector<bool> handles;
    bool any = false;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const bool handled = ranks_[i]->flight && (ran || !own[i] || !Adp());
      handles.push_back(handled);
      // A pause before the token that is in flight is there, and tokens that lie about.
      if (Adp() && ranks_[i]->flight) {
        const bool late = now_ > ranks_[i]->flight->end && HasTokens(ranks_[i]->flight->batch);
        out_.odd = out_.odd || (!handled && !batches[i].paused.empty()) || (handled && late);
      }
      if (!handled) continue;
      any = true;
      now_ = std::max(now_, ranks_[i]->flight->end);
    }
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      Rank& rank = *ranks_[i];
      if (handles[i]) Outputs(*rank.flight);
      for (const Pointer& q : batches[i].paused) BecomeContext(*q);
      if (ran) Advance(rank, flights[i].batch);
      if (handles[i]) Finish(rank, *rank.flight);
      if (ran) {
        for (const Pointer& q : flights[i].batch.generation) {
          if (q->state != State::kDone && q->generated() + 1 >= q->rest) q->state = State::kLast;
        }
        rank.flight = flights[i];
      } else if (handles[i]) {
        rank.flight.reset();
      }
    }
    return any;
  }

  const TrtllmInput& in_;
  const TrtllmSettings& s_;
  TrtllmOutput out_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<std::size_t> by_arrival_;
  std::size_t next_ = 0;
  std::set<std::tuple<std::int64_t, std::int64_t, std::size_t>> waiting_;
  TimeNs now_ = 0, device_ = 0;
  std::int64_t step_ = 0, expected_ = 0, dummies_ = 0;
};

}  // namespace

TrtllmOutput RunTrtllmReference(const TrtllmInput& input) { return Run(input).Do(); }

}  // namespace servecast::testing

// See vllm_hybrid_reference.h.
#include "testing/vllm_hybrid_reference.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <set>

#include "base/base.h"
#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "testing/csv_table.h"
#include "testing/data_files.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::json;
using Tokens = std::int64_t;

// ---- Inputs --------------------------------------------------------------------------------

struct Image {
  std::string hash;
  Tokens offset = 0, length = 0, gap = 0, embeds = 0;
  Tokens end() const { return offset + length; }
};

struct Request {
  int id = 0;
  double arrival = 0;
  Tokens prompt = 0, output = 0, prefix = 0, remote = 0;
  std::int64_t group = -1, parent = -1, priority = 0;
  bool loads_async = false;
  std::vector<Image> images;

  Tokens junction = 0;  // B15: of its admission
  Tokens generated = 0, computed = 0, placeholders = 0, in_flight = 0;
  bool running = false, done = false, started = false;
  int preemptions = 0;
  bool loaded = false, loading = false, reported = false;  // R4, R5
  double load_ends = 0;
  Tokens load_until = 0;
  std::vector<std::vector<int>> tables;  // by group; -1: given up
  std::vector<std::int64_t> cached, last_state;
  std::set<std::size_t> references;  // images in the encoder cache
  std::set<std::size_t> hits_said;
  std::set<std::pair<std::size_t, Tokens>> partial;  // B16: registered partial entries
  std::vector<std::string> extras;                   // of images, by block of hash_block tokens

  Tokens known() const { return prompt + generated; }
  Tokens most(Tokens longest) const { return std::min(prompt + output, longest); }
};

struct Settings {
  Tokens budget = 0, seats = 0, longest = 0, threshold = 0, blocks = 0;
  bool caching = false, async = false, by_priority = false, chunked = true, whole_prompt = true;
  bool align = false, chunked_images = true, across_gaps = false;
  double watermark = 0, image_ms = 0;
  Tokens unit = 0;  // prefix_match_unit
  Tokens encoder_budget = 0, encoder_slots = 0;
  std::vector<std::vector<std::size_t>> shown;  // classes of the column `held`
};

// ---- Blocks --------------------------------------------------------------------------------

struct Group {
  std::string kind;  // full, window, chunk, state
  Tokens block = 16, width = 0;
  std::int64_t cap = -1;
};

class Pool {
 public:
  Pool(Tokens blocks, bool caching) : caching_(caching) {
    refs.assign(static_cast<std::size_t>(blocks), 0);
    content_.resize(refs.size());
    for (Tokens i = 1; i < blocks; ++i) list.push_back(static_cast<int>(i));
  }
  int New() {
    const int block = list.front();
    list.pop_front();
    if (!content_[At(block)].empty()) ++evicted;
    while (!content_[At(block)].empty()) Forget(block, content_[At(block)].front());
    refs[At(block)] = 1;
    return block;
  }
  void Touch(int block) {
    if (refs[At(block)]++ == 0) list.erase(std::find(list.begin(), list.end(), block));
  }
  void Release(const std::vector<int>& blocks) {
    std::vector<int> front;
    for (const int block : blocks) {
      if (--refs[At(block)] > 0) continue;
      if (caching_ && content_[At(block)].empty()) {
        front.push_back(block);
      } else {
        list.push_back(block);
      }
    }
    list.insert(list.begin(), front.begin(), front.end());
  }
  void Register(int block, const std::string& key) {
    content_[At(block)].push_back(key);
    named[key].push_back(block);
  }
  void Forget(int block, std::string key) {
    auto& own = content_[At(block)];
    own.erase(std::find(own.begin(), own.end(), key));
    auto& all = named[key];
    all.erase(std::find(all.begin(), all.end(), block));
    if (all.empty()) named.erase(key);
  }
  bool HasContent(int block) const { return !content_[At(block)].empty(); }
  const std::vector<std::string>& ContentOf(int block) const { return content_[At(block)]; }
  int Find(const std::string& key) const {
    const auto at = named.find(key);
    return at == named.end() ? -1 : at->second.front();
  }
  static std::size_t At(int block) { return static_cast<std::size_t>(block); }

  std::deque<int> list;
  std::vector<int> refs;
  std::map<std::string, std::vector<int>> named;
  std::int64_t evicted = 0;

 private:
  std::vector<std::vector<std::string>> content_;
  bool caching_;
};

// ---- The scheduler -------------------------------------------------------------------------

struct Member {
  int id = 0;
  Tokens tokens = 0, before = 0;
  char kind = 'c';
  bool sampled = false;
  std::vector<std::size_t> encoded;
};

struct Row {
  std::map<std::string, std::string> text;
  std::map<std::string, double> real;
};

struct Flight {
  std::vector<Member> members;
  double end = 0;
  std::size_t row = 0;
  std::vector<std::vector<int>> deferred;  // R6
};

class Replay {
 public:
  Replay(const Json& manifest, std::vector<Request> requests, bool remote)
      : requests_(std::move(requests)), remote_(remote) {
    const auto number = [&](const char* key, Tokens otherwise) {
      const auto at = manifest.find(key);
      return at == manifest.end() || !at->is_number() ? otherwise : at->get<Tokens>();
    };
    const auto flag = [&](const char* key) {
      const auto at = manifest.find(key);
      return at != manifest.end() && at->is_boolean() && at->get<bool>();
    };
    s_.budget = number("max_num_batched_tokens", 0);
    s_.seats = number("max_num_seqs", 0);
    s_.longest = number("max_model_len", 0);
    s_.threshold = number("long_prefill_token_threshold", 0);
    s_.blocks = number("num_blocks", 0);
    s_.caching = flag("enable_prefix_caching");
    s_.async = flag("async_scheduling");
    s_.by_priority = manifest["policy"] == "priority";
    s_.chunked = flag("enable_chunked_prefill");
    s_.whole_prompt = flag("scheduler_reserve_full_isl");
    s_.watermark = manifest["watermark"].get<double>();
    s_.unit = number("prefix_match_unit", 0);
    s_.chunked_images = !flag("disable_chunked_mm_input");
    s_.across_gaps = flag("frees_states_across_gaps");
    s_.image_ms = manifest.value("image_ms", 0.0);
    s_.encoder_budget = number("encoder_compute_budget", 0);
    s_.encoder_slots = free_slots_ = freeable_ = number("encoder_cache_slots", 0);
    s_.shown = manifest["spec_classes"].get<std::vector<std::vector<std::size_t>>>();
    for (const Json& each : manifest["groups"]) {
      Group g;
      const std::string kind = each["kind"];
      g.kind = kind == "sliding_window"            ? "window"
               : kind == "chunked_local_attention" ? "chunk"
               : kind == "mamba"                   ? "state"
                                                   : "full";
      g.block = each["block_size"];
      if (g.kind == "window") g.width = each["sliding_window"];
      if (g.kind == "chunk") g.width = each["attention_chunk_size"];
      if (g.kind == "state" && each["mamba_cache_mode"] == "align") s_.align = true;
      groups_.push_back(g);
    }
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const Json& cap = manifest["admission_cap_blocks"][i];
      if (cap.is_number()) groups_[i].cap = cap;
    }
    scheduler_block_ = number("scheduler_block_size", 16);
    hash_block_ = number("hash_block_size", 16);
    cache_block_ = number("cache_block_size", 16);
    alignment_ = groups_.size() == 1 ? groups_[0].block : s_.unit > 0 ? s_.unit : scheduler_block_;
    rounding_ = groups_.size() == 1 || s_.unit > 0 ? 1 : scheduler_block_;
    for (const bool full : {true, false}) {  // B6
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        if ((groups_[g].kind == "full") != full) continue;
        const auto same = std::find_if(classes_.begin(), classes_.end(), [&](const auto& c) {
          const Group& other = groups_[c[0]];
          return other.kind == groups_[g].kind && other.block == groups_[g].block &&
                 other.width == groups_[g].width;
        });
        if (same == classes_.end()) {
          classes_.push_back({g});
        } else {
          same->push_back(g);
        }
      }
    }
    pool_ = std::make_unique<Pool>(s_.blocks, s_.caching);
    for (Request& r : requests_) MakeExtras(r);
  }

  void Run();
  std::int64_t Evicted() const { return pool_->evicted; }
  std::vector<Row> rows;
  bool hangs = false;
  ReplayRun seen;  // its counts

 private:
  Request& At(int id) { return requests_[static_cast<std::size_t>(id)]; }
  Tokens Free() const { return static_cast<Tokens>(pool_->list.size()); }

  // Content of a request's first n tokens.
  std::string KeyOf(const Request& r, Tokens n, std::size_t group) const {
    const Request* at = &r;
    while (at->parent >= 0 && n <= at->prefix)
      at = &requests_[static_cast<std::size_t>(at->parent)];
    std::string key = at->group >= 0 && n <= at->prefix ? fmt::format("g{}", at->group)
                                                        : fmt::format("r{}", at->id);
    key += fmt::format(":{}#{}", n, group);
    for (Tokens i = 0; i * hash_block_ < n; ++i) {
      const auto place = static_cast<std::size_t>(i);
      if (place < r.extras.size() && !r.extras[place].empty()) key += "|" + r.extras[place];
    }
    return key;
  }
  std::string ExtraOf(const Request& r, Tokens block, bool last_only) const {
    std::string extra;
    const Tokens from = block * hash_block_, to = from + hash_block_;
    for (std::size_t i = 0; i < r.images.size(); ++i) {
      if (last_only && block > 0 && i + 1 < r.images.size()) continue;
      const Image& image = r.images[i];
      if (image.offset >= to || image.end() <= from) continue;
      extra += fmt::format("{}@{},", image.hash, image.offset - from);
    }
    return extra;
  }
  void MakeExtras(Request& r) {
    if (r.images.empty()) return;
    for (Tokens i = 0; (i + 1) * hash_block_ <= r.prompt; ++i)
      r.extras.push_back(ExtraOf(r, i, false));
    // The block in which the prompt ends is completed by generated tokens (E7).
    const auto last = static_cast<Tokens>(r.extras.size());
    r.extras.push_back(ExtraOf(r, last, true));
  }

  struct Hit {
    Tokens tokens = 0, junction = 0;
    std::vector<std::vector<int>> blocks;  // by group and position
    std::vector<int> partial;              // by group: an entry that ends inside the next block; -1
    Tokens of_partial = 0;
    bool fresh = false;
  };
  Hit LookUp(const Request& r);
  Tokens Serve(std::size_t c, const Request& r, Tokens length,
               std::vector<std::vector<int>>& found);
  Tokens Passed(const Group& g, Tokens p) const {
    if (g.kind == "window") return std::max<Tokens>(0, p - g.width + 1);
    if (g.kind == "chunk") return p / g.width * g.width;
    if (g.kind == "state") return std::max<Tokens>(0, p - 1);
    return 0;
  }
  bool Aligns(const Group& g) const { return g.kind == "state" && s_.align; }
  Tokens NeededToAdmit(const Hit& hit, Tokens tokens, bool capped) const;
  Tokens Needed(const Request& r, Tokens tokens) const;
  bool KeepsPartial(const Request& r, std::size_t i) const;
  void MovePartial(Request& r);
  void GiveUp(Request& r);
  void Take(Request& r, Tokens tokens);
  void TakeHit(Request& r, const Hit& hit);
  void Register(Request& r, Tokens tokens);
  void RegisterPartial(Request& r, Tokens tokens);
  void ReleaseAll(Request& r);

  Tokens Split(Tokens from, Tokens n, const Request& r, Tokens junction) const;
  Tokens Encode(Request& r, Tokens from, Tokens n, std::vector<std::size_t>& chosen);
  void TakeImages(Member& m);
  void DropImage(Request& r, std::size_t i);
  void DropImages(Request& r) {
    for (std::size_t i = 0; i < r.images.size(); ++i) {
      if (r.references.count(i) > 0) DropImage(r, i);
    }
  }
  bool Schedule(Flight& flight);
  void Preempt(std::size_t at, Flight& flight);
  void Admit(Flight& flight);
  bool AdmitOne(Request& r, Flight& flight);
  void Apply(Flight& flight);
  std::string ReportLoads(double until);
  std::vector<int> Queue() const;

  std::vector<Request> requests_;
  bool remote_;
  Settings s_;
  std::vector<Group> groups_;
  std::vector<std::vector<std::size_t>> classes_;
  Tokens scheduler_block_ = 16, hash_block_ = 16, cache_block_ = 16, alignment_ = 16, rounding_ = 1;
  std::unique_ptr<Pool> pool_;
  std::vector<int> running_, waiting_, held_back_;  // waiting_ in its order; held_back_: R1
  std::set<std::string> fresh_;                     // registered by this call
  std::vector<std::vector<int>> copies_;            // B16: released as the call ends
  double now_ = 0;
  Tokens left_ = 0, encoder_left_ = 0;
  std::vector<std::string> preempted_before_, evicted_before_, started_, at_once_;
  // E: hash -> references, or in the list of evictable ones; slots
  std::map<std::string, std::set<int>> images_;
  std::map<std::string, Tokens> image_size_;
  std::deque<std::string> evictable_;
  Tokens free_slots_ = 0, freeable_ = 0;
  std::vector<std::size_t> found_;  // by the last Encode: images in the cache
  std::vector<std::string> encoder_hits_, encoder_evicted_;
  std::deque<Flight> flights_;
  std::vector<std::vector<int>> deferred_;  // R6
};

// ---- Looking up ----------------------------------------------------------------------------

Tokens Replay::Serve(std::size_t c, const Request& r, Tokens length,
                     std::vector<std::vector<int>>& found) {
  const std::vector<std::size_t>& own = classes_[c];
  const Group& g = groups_[own[0]];
  const Tokens most = length / g.block;
  found.assign(own.size(), {});
  const auto all = [&](Tokens position, std::vector<int>& blocks) {
    blocks.clear();
    for (const std::size_t i : own) {
      const int block = pool_->Find(KeyOf(r, (position + 1) * g.block, i));
      if (block < 0) return false;
      blocks.push_back(block);
    }
    return true;
  };
  const auto at_tokens = [&](Tokens tokens, std::vector<int>& blocks) {
    blocks.clear();
    for (const std::size_t i : own) {
      const int block = pool_->Find(KeyOf(r, tokens, i));
      if (block < 0) return false;
      blocks.push_back(block);
    }
    return true;
  };
  const auto put = [&](Tokens position, const std::vector<int>& blocks) {
    for (std::size_t i = 0; i < own.size(); ++i) {
      found[i].resize(static_cast<std::size_t>(
                          std::max<Tokens>(position + 1, static_cast<Tokens>(found[i].size()))),
                      -1);
      found[i][static_cast<std::size_t>(position)] = blocks[i];
    }
  };
  std::vector<int> blocks;
  if (g.kind == "full") {
    Tokens i = 0;
    while (i < most && all(i, blocks)) put(i++, blocks);
    while (s_.unit == 0 && i * g.block % alignment_ != 0) --i;
    if (s_.unit > 0) {  // B16: the longest entry inside the next block
      Tokens t = std::min(length, (i + 1) * g.block - 1) / s_.unit * s_.unit;
      for (; t > i * g.block; t -= s_.unit) {
        if (!at_tokens(t, blocks)) continue;
        put(i, blocks);
        return t;
      }
    }
    return i * g.block;
  }
  if (g.kind == "chunk") {
    Tokens i = length / g.width * g.width / g.block;
    for (auto& each : found) each.assign(static_cast<std::size_t>(i), -1);
    while (i < most && all(i, blocks)) put(i++, blocks);
    return i * g.block;
  }
  if (g.kind == "state" && s_.unit > 0) {
    for (Tokens t = length / s_.unit * s_.unit; t > 0; t -= s_.unit) {
      if (!at_tokens(t, blocks)) continue;
      put((t - 1) / g.block, blocks);
      return t;
    }
    return 0;
  }
  if (g.kind == "state") {
    for (Tokens i = most - 1; i >= 0; --i) {
      if (s_.unit == 0 && (i + 1) * g.block % alignment_ != 0) continue;
      if (!all(i, blocks)) continue;
      put(i, blocks);
      return (i + 1) * g.block;
    }
    return 0;
  }
  const Tokens wanted = CeilDiv(g.width - 1, g.block);
  Tokens run = 0;
  for (Tokens i = most - 1; i >= 0; --i) {
    if (!all(i, blocks)) {
      run = 0;
      continue;
    }
    if (run == 0 && (i + 1) * g.block % alignment_ != 0) continue;
    put(i, blocks);
    if (++run >= wanted) {
      for (auto& each : found) {
        each.resize(static_cast<std::size_t>(i + run));
        std::fill(each.begin(), each.begin() + i, -1);
      }
      return (i + run) * g.block;
    }
  }
  while (run * g.block % alignment_ != 0) --run;
  for (auto& each : found) each.resize(static_cast<std::size_t>(run), -1);
  return run * g.block;
}

Replay::Hit Replay::LookUp(const Request& r) {
  Hit hit;
  hit.blocks.resize(groups_.size());
  hit.partial.assign(groups_.size(), -1);
  if (!s_.caching) return hit;
  const bool one_round = classes_.size() == 2 && groups_[classes_[0][0]].kind == "full";
  Tokens length = r.known() - 1, longest = 0;
  std::vector<std::vector<std::vector<int>>> found(classes_.size());
  Tokens of_full = -1;
  for (bool again = true; again;) {
    const Tokens before = length;
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      const Group& g = groups_[classes_[c][0]];
      if (g.kind == "full" && of_full >= 0) {
        length =
            s_.unit > 0 ? std::min(of_full, length) : std::min(of_full, length / g.block * g.block);
        of_full = length;
      } else {
        length = Serve(c, r, length, found[c]);
        if (g.kind == "full") of_full = length;
      }
      longest = std::max(longest, length);
    }
    again = length < before && !one_round && classes_.size() > 1;
  }
  hit.tokens = length;
  hit.junction = longest > length ? longest : 0;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    for (std::size_t i = 0; i < classes_[c].size(); ++i) {
      const std::size_t g = classes_[c][i];
      hit.blocks[g] = found[c].empty() ? std::vector<int>() : found[c][i];
      hit.blocks[g].resize(static_cast<std::size_t>(CeilDiv(length, groups_[g].block)), -1);
      if (groups_[g].kind != "state" || length == 0) continue;
      hit.fresh = hit.fresh || fresh_.count(KeyOf(r, length, g)) > 0;
    }
  }
  return hit;
}

// ---- Blocks of a request -------------------------------------------------------------------

Tokens Replay::NeededToAdmit(const Hit& hit, Tokens tokens, bool capped) const {
  Tokens needed = 0;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Group& g = groups_[i];
    Tokens blocks = CeilDiv(tokens, g.block);
    if (capped && g.cap >= 0) blocks = std::min(blocks, g.cap);
    const Tokens passed = Passed(g, hit.tokens) / g.block;
    const auto positions = static_cast<Tokens>(hit.blocks[i].size());
    blocks = std::max<Tokens>(0, blocks - std::max(passed, positions));
    needed += Aligns(g) ? std::min<Tokens>(blocks, 1) : blocks;
    for (Tokens k = passed; k < positions; ++k) {
      const int block = hit.blocks[i][static_cast<std::size_t>(k)];
      if (block >= 0 && pool_->refs[Pool::At(block)] == 0) ++needed;
    }
    if (hit.tokens % g.block != 0) ++needed;  // B16: a copy
  }
  return needed;
}

Tokens Replay::Needed(const Request& r, Tokens tokens) const {
  Tokens needed = 0;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Tokens more = std::max<Tokens>(
        0, CeilDiv(tokens, groups_[i].block) - static_cast<Tokens>(r.tables[i].size()));
    needed += Aligns(groups_[i]) ? std::min<Tokens>(more, 1) : more;
    if (KeepsPartial(r, i)) needed += 2;
  }
  return needed;
}

// B16: whether its current state is an entry inside a block, which its next step would overwrite.
bool Replay::KeepsPartial(const Request& r, std::size_t i) const {
  if (s_.unit == 0 || !Aligns(groups_[i]) || r.computed % groups_[i].block == 0) return false;
  const auto k = static_cast<std::size_t>(r.computed / groups_[i].block);
  if (k >= r.tables[i].size() || r.tables[i][k] < 0) return false;
  return pool_->HasContent(r.tables[i][k]);
}

// The entry moves to a new block, the request stays on its own.
void Replay::MovePartial(Request& r) {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    if (r.tables.empty() || !KeepsPartial(r, i)) continue;
    const int block = r.tables[i][static_cast<std::size_t>(r.computed / groups_[i].block)];
    const std::string key = pool_->ContentOf(block).front();
    const int copy = pool_->New();
    pool_->Forget(block, key);
    pool_->Register(copy, key);
    fresh_.insert(key);
    ++pool_->refs[Pool::At(block)];
    copies_.push_back({block, copy});
  }
}

void Replay::GiveUp(Request& r) {
  const Tokens p = r.computed - r.in_flight;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    std::vector<int>& table = r.tables[i];
    std::vector<int> released;
    Tokens k =
        std::min(Passed(groups_[i], p) / groups_[i].block, static_cast<Tokens>(table.size()));
    for (; k > 0; --k) {
      int& block = table[static_cast<std::size_t>(k - 1)];
      if (block < 0 && !(s_.across_gaps && Aligns(groups_[i]))) break;
      if (block >= 0) released.push_back(block);
      block = -1;
    }
    pool_->Release(released);
    const std::int64_t last = r.last_state[i];
    if (!Aligns(groups_[i]) || last < 0 || last >= CeilDiv(p, groups_[i].block) - 1) continue;
    int& block = table[static_cast<std::size_t>(last)];
    if (block < 0) continue;
    pool_->Release({block});
    block = -1;
  }
}

void Replay::Take(Request& r, Tokens tokens) {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    std::vector<int>& table = r.tables[i];
    const auto last = static_cast<std::size_t>(CeilDiv(tokens, groups_[i].block));
    if (table.size() >= last) continue;
    if (Aligns(groups_[i])) {
      if (!table.empty()) r.last_state[i] = static_cast<std::int64_t>(table.size()) - 1;
      table.resize(last - 1, -1);
    }
    while (table.size() < last) table.push_back(pool_->New());
  }
}

void Replay::TakeHit(Request& r, const Hit& hit) {
  r.tables.assign(groups_.size(), {});
  r.cached.assign(groups_.size(), 0);
  r.last_state.assign(groups_.size(), -1);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Tokens passed = Passed(groups_[i], hit.tokens) / groups_[i].block;
    r.tables[i] = hit.blocks[i];
    r.cached[i] = static_cast<std::int64_t>(hit.blocks[i].size());
    for (std::size_t k = 0; k < r.tables[i].size(); ++k) {
      if (static_cast<Tokens>(k) < passed) r.tables[i][k] = -1;
      if (r.tables[i][k] >= 0) pool_->Touch(r.tables[i][k]);
    }
    if (hit.tokens % groups_[i].block != 0) --r.cached[i];
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) {  // B16
    if (hit.tokens % groups_[i].block == 0) continue;
    const int original = r.tables[i].back(), copy = pool_->New();
    ++pool_->refs[Pool::At(copy)];
    r.tables[i].back() = copy;
    copies_.push_back({original, copy});
  }
}

void Replay::RegisterPartial(Request& r, Tokens tokens) {
  if (s_.unit == 0 || !s_.caching) return;
  const Tokens end = r.prompt / s_.unit * s_.unit;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Group& g = groups_[i];
    if (end % g.block == 0 || tokens < end) continue;
    // The copy of a hit that ends there is registered, too.
    if (g.kind == "state" ? tokens != end : r.computed > end) continue;
    const int block = r.tables[i][static_cast<std::size_t>(end / g.block)];
    if (block < 0 || pool_->HasContent(block)) continue;
    const std::string key = KeyOf(r, end, i);
    pool_->Register(block, key);
    fresh_.insert(key);
  }
}

void Replay::Register(Request& r, Tokens tokens) {
  if (!s_.caching) return;
  tokens = tokens / rounding_ * rounding_;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Group& g = groups_[i];
    const Tokens run = CeilDiv(g.width - 1, g.block), period = scheduler_block_ / g.block;
    for (; (r.cached[i] + 1) * g.block <= tokens; ++r.cached[i]) {
      const Tokens k = r.cached[i];
      const int block = r.tables[i][static_cast<std::size_t>(k)];
      if (block < 0) continue;
      if (g.kind == "window" && groups_.size() > 1 && s_.unit == 0 && run < period &&
          k % period < period - run) {
        continue;
      }
      if (s_.unit > 0) {  // a full block replaces partial entries
        while (pool_->HasContent(block)) pool_->Forget(block, pool_->ContentOf(block).front());
      }
      if (pool_->HasContent(block)) continue;
      // Blocks behind the prompt are keyed by their maker as they are completed.
      const std::string key = KeyOf(r, (k + 1) * g.block, i);
      pool_->Register(block, key);
      fresh_.insert(key);
    }
  }
}

void Replay::ReleaseAll(Request& r) {
  std::vector<std::vector<int>> all;
  for (std::vector<int>& table : r.tables) {
    std::vector<int> released;
    for (std::size_t k = table.size(); k > 0; --k) {
      if (table[k - 1] >= 0) released.push_back(table[k - 1]);
    }
    all.push_back(released);
  }
  r.tables.clear();
  const bool defers = remote_ && s_.async && r.in_flight > 0 && !flights_.empty();  // R6
  if (defers) {
    auto& flight = flights_.back();
    flight.deferred.insert(flight.deferred.end(), all.begin(), all.end());
    return;
  }
  for (const auto& released : all) pool_->Release(released);
}

// ---- Cuts ----------------------------------------------------------------------------------

Tokens Replay::Split(Tokens from, Tokens n, const Request& r, Tokens junction) const {  // B13
  const Tokens z = std::max(r.prompt, r.known() - 1), b = cache_block_;
  if (!s_.align || from >= z) return n;
  Tokens end = from + n;
  if (end < z) {
    const Tokens whole = end / b * b;
    const Tokens most = s_.threshold > 0 ? std::min(s_.budget, s_.threshold) : s_.budget;
    if (whole > from || b <= most) end = whole;
  }
  std::vector<Tokens> stops;
  if (from % b != 0) stops.push_back((from / b + 1) * b);
  stops.push_back(r.known() / b * b);
  if (s_.unit > 0) {
    const Tokens u = r.prompt / s_.unit * s_.unit;
    if (u > r.known() / b * b && u <= r.prompt) stops.push_back(u);
  }
  if (junction > from) stops.push_back(from + (junction - from) / b * b);
  for (const Tokens stop : stops) {
    if (stop > from && stop < end) end = stop;
  }
  return std::max<Tokens>(0, end - from);
}

// E2: images of the tokens [from, from + n).
Tokens Replay::Encode(Request& r, Tokens from, Tokens n, std::vector<std::size_t>& chosen) {
  found_.clear();
  if (s_.encoder_budget == 0) return n;
  found_.clear();
  Tokens embeds = 0, left = encoder_left_;
  std::set<std::string> here;
  const Tokens upto = from + n;
  for (std::size_t i = 0; i < r.images.size(); ++i) {
    const Image& image = r.images[i];
    if (image.offset >= upto || image.end() <= from) continue;
    if (here.count(image.hash) > 0) continue;                             // (a)
    if (const auto at = images_.find(image.hash); at != images_.end()) {  // (b)
      if (at->second.empty()) {
        evictable_.erase(std::find(evictable_.begin(), evictable_.end(), image.hash));
        freeable_ -= image_size_[image.hash];
      }
      at->second.insert(r.id);
      r.references.insert(i);
      found_.push_back(i);
      continue;
    }
    if (!s_.chunked_images && from < image.offset && from + n < image.end()) {  // (c)
      n = image.offset - from;
      break;
    }
    if (image.embeds > left || embeds + image.embeds > freeable_) {  // (d)
      n = from < image.offset ? image.offset - from : 0;
      break;
    }
    while (embeds + image.embeds > free_slots_) {
      const std::string oldest = evictable_.front();
      evictable_.pop_front();
      free_slots_ += image_size_[oldest];
      images_.erase(oldest);
      image_size_.erase(oldest);
      encoder_evicted_.push_back(oldest);
      ++seen.images_evicted;
    }
    if (image.gap > 0) {  // (e)
      const Tokens first = std::max(from, image.offset) - image.offset,
                   last = std::min(upto, image.end()) - image.offset;
      bool some = false;
      for (Tokens t = first; t < last; ++t) some = some || (t + 1) % image.gap != 0;
      if (!some) continue;
    }
    left -= image.embeds;  // (f)
    embeds += image.embeds;
    here.insert(image.hash);
    chosen.push_back(i);
  }
  return n;
}

void Replay::TakeImages(Member& m) {
  Request& r = At(m.id);
  for (const std::size_t i : found_) {  // a hit counts once the member is scheduled
    if (!r.hits_said.insert(i).second) continue;
    encoder_hits_.push_back(fmt::format("{}:{}", r.id, i));
    ++seen.image_hits;
  }
  for (const std::size_t i : m.encoded) {
    const Image& image = r.images[i];
    images_[image.hash].insert(r.id);
    image_size_[image.hash] = image.embeds;
    free_slots_ -= image.embeds;
    freeable_ -= image.embeds;
    encoder_left_ -= image.embeds;
    r.references.insert(i);
    r.hits_said.insert(i);  // what it computed itself is no hit
  }
}

void Replay::DropImage(Request& r, std::size_t i) {
  const std::string& hash = r.images[i].hash;
  r.references.erase(i);
  const auto at = images_.find(hash);
  if (at == images_.end() || at->second.erase(r.id) == 0 || !at->second.empty()) return;
  evictable_.push_back(hash);
  freeable_ += image_size_[hash];
}

// ---- A schedule call -----------------------------------------------------------------------

void Replay::Preempt(std::size_t at, Flight& flight) {
  Request& r = At(running_[at]);
  const auto member = std::find_if(flight.members.begin(), flight.members.end(),
                                   [&](const Member& m) { return m.id == r.id; });
  if (member != flight.members.end()) {
    left_ += member->tokens;
    for (const std::size_t i : member->encoded) encoder_left_ += r.images[i].embeds;
    seen.unencoded_victims += static_cast<std::int64_t>(member->encoded.size());
    flight.members.erase(member);
  }
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(at));
  ReleaseAll(r);
  DropImages(r);
  r.computed = r.placeholders = r.in_flight = 0;
  r.running = false;
  r.loaded = r.remote > 0 && r.loads_async ? true : r.loaded;
  ++r.preemptions;
  ++seen.preemptions;
  r.hits_said.clear();
  preempted_before_.push_back(std::to_string(r.id));
  if (s_.by_priority) {
    waiting_.push_back(r.id);
  } else {
    waiting_.insert(waiting_.begin(), r.id);
  }
}

bool Replay::Schedule(Flight& flight) {
  left_ = s_.budget;
  encoder_left_ = s_.encoder_budget;
  fresh_.clear();
  bool preempted = false;
  for (std::size_t i = 0; i < running_.size() && left_ > 0; ++i) {
    Request& r = At(running_[i]);
    const Tokens most = r.most(s_.longest);
    if (r.placeholders > 0 && r.computed + 2 - r.placeholders >= most) continue;
    Tokens n = r.known() + r.placeholders - r.computed;
    if (s_.threshold > 0) n = std::min(n, s_.threshold);
    n = std::min({n, left_, s_.longest - r.computed - 1});
    Member m;
    const Tokens asked = n;
    n = Encode(r, r.computed, n, m.encoded);
    if (n < asked) ++(n > 0 ? seen.cut_before_images : seen.waits_for_encoder);
    n = Split(r.computed, n, r, r.junction);
    if (n <= 0) continue;
    bool itself = false;
    for (;;) {
      GiveUp(r);
      if (Needed(r, r.computed + n) <= Free()) break;
      std::size_t victim = running_.size() - 1;
      if (s_.by_priority) {
        victim = 0;
        for (std::size_t k = 1; k < running_.size(); ++k) {
          const Request &a = At(running_[k]), &b = At(running_[victim]);
          if (std::make_pair(a.priority, a.arrival) > std::make_pair(b.priority, b.arrival))
            victim = k;
        }
      }
      itself = victim == i;
      preempted = true;
      Preempt(victim, flight);
      if (victim < i) --i;
      if (itself) break;
    }
    if (itself) break;
    MovePartial(r);
    Take(r, r.computed + n);
    Register(r, std::min(r.computed + n, r.known()));
    RegisterPartial(r, std::min(r.computed + n, r.known()));
    m.id = r.id;
    m.tokens = n;
    m.before = r.computed;
    left_ -= n;
    TakeImages(m);
    flight.members.push_back(m);
  }
  if (!preempted) Admit(flight);
  for (const auto& released : copies_) pool_->Release(released);
  copies_.clear();
  return !flight.members.empty();
}

std::vector<int> Replay::Queue() const {
  std::vector<int> queue = waiting_;
  if (s_.by_priority) {
    std::sort(queue.begin(), queue.end(), [&](int a, int b) {
      const Request &x = requests_[static_cast<std::size_t>(a)],
                    &y = requests_[static_cast<std::size_t>(b)];
      return std::make_tuple(x.priority, x.arrival, x.id) <
             std::make_tuple(y.priority, y.arrival, y.id);
    });
  }
  return queue;
}

void Replay::Admit(Flight& flight) {
  std::set<int> passed;
  while (left_ > 0 && static_cast<Tokens>(running_.size()) < s_.seats) {
    // R1: first those whose load was reported.
    int next = -1;
    for (const int id : held_back_) {
      if (passed.count(id) == 0 && !At(id).loading) {
        next = id;
        break;
      }
    }
    const std::vector<int> queue = Queue();
    if (next < 0 && queue.empty()) return;
    if (next < 0) next = queue.front();
    if (!AdmitOne(At(next), flight)) return;
  }
}

bool Replay::AdmitOne(Request& r, Flight& flight) {
  const auto leave = [&](std::vector<int>& queue) {
    queue.erase(std::remove(queue.begin(), queue.end(), r.id), queue.end());
  };
  const bool was_loaded = r.reported;
  Hit hit;
  Tokens computed = 0, load = 0;
  if (was_loaded) {  // R5
    if (s_.caching) Register(r, r.load_until);
    computed = r.load_until;
    if (computed >= r.known()) computed = r.known() - 1;
    hit.tokens = computed;
  } else {
    hit = LookUp(r);
    computed = hit.tokens;
    if (r.remote > 0 && !(r.loads_async && r.loaded)) {  // R2
      const Tokens there = std::min(r.remote, r.loads_async ? r.known() : r.known() - 1);
      load = std::max<Tokens>(0, there - hit.tokens);
    }
  }
  const bool async_load = load > 0 && r.loads_async;
  Tokens n = 0;
  Member m;
  if (!async_load) {
    computed += load;
    n = r.known() - computed;
    if (s_.threshold > 0) n = std::min(n, s_.threshold);
    if (!s_.chunked && n > left_) return false;
    const Tokens asked = n = std::min(n, left_);
    n = Encode(r, computed, n, m.encoded);
    if (n < asked) ++(n > 0 ? seen.cut_before_images : seen.refused_by_encoder);
    if (n <= 0) return false;
    n = Split(computed, n, r, hit.junction);
    if (n <= 0) return false;
  }
  const Tokens room =
      Free() -
      (running_.empty() ? 0 : static_cast<Tokens>(s_.watermark * static_cast<double>(s_.blocks)));
  const auto needed = [&](Tokens tokens, bool capped) {
    return was_loaded ? Needed(r, tokens) : NeededToAdmit(hit, tokens, capped);
  };
  const auto refuse = [&] {
    DropImages(r);
    return false;
  };
  // B14: vLLM's manager of states then asks for more blocks than there are.
  if (n > 0 && hit.fresh) return refuse();
  if (s_.whole_prompt && needed(r.known(), true) > room) return refuse();
  if (async_load) {  // R4
    Tokens reserved = 0;
    for (const Request& other : requests_) {
      if (other.id == r.id || other.done || other.tables.empty()) continue;
      if (!other.loading && !other.reported && other.computed >= other.prompt) continue;
      reserved += std::max<Tokens>(0, CeilDiv(other.known(), groups_[0].block) -
                                          static_cast<Tokens>(other.tables[0].size()));
    }
    if (needed(hit.tokens + load, false) > room - reserved) return refuse();
    TakeHit(r, hit);
    Take(r, hit.tokens + load);
    r.loading = true;
    r.loaded = true;
    r.load_until = hit.tokens + load;
    r.load_ends = now_ + (0.002 + static_cast<double>(load) * 2e-5);
    started_.push_back(fmt::format("{}:{}", r.id, load));
    leave(waiting_);
    held_back_.push_back(r.id);
    return true;
  }
  if (needed(computed + n, false) > room) return refuse();
  if (!was_loaded) TakeHit(r, hit);
  r.junction = hit.junction;
  Take(r, computed + n);
  r.computed = computed;
  Register(r, std::min(computed + n, r.known()));
  RegisterPartial(r, std::min(computed + n, r.known()));
  if (load > 0) at_once_.push_back(fmt::format("{}:{}", r.id, load));
  leave(waiting_);
  leave(held_back_);
  r.reported = false;
  running_.push_back(r.id);
  r.running = true;
  seen.hit_tokens += hit.tokens;
  m.id = r.id;
  m.tokens = n;
  m.before = computed;
  m.kind = r.preemptions > 0 ? 'r' : 'n';
  left_ -= n;
  TakeImages(m);
  flight.members.push_back(m);
  return true;
}

// ---- Outputs and the driver ----------------------------------------------------------------

std::string Joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : " ") + item;
  return text;
}

void Replay::Apply(Flight& flight) {
  Row& row = rows[flight.row];
  std::vector<std::string> finished;
  for (const Member& m : flight.members) {
    Request& r = At(m.id);
    if (r.running) {
      r.in_flight = std::max<Tokens>(0, r.in_flight - m.tokens);
      if (m.sampled) r.placeholders = std::max<Tokens>(0, r.placeholders - 1);
      if (!r.images.empty()) {  // E5
        for (std::size_t i = 0; i < r.images.size(); ++i) {
          if (r.references.count(i) > 0 &&
              r.images[i].end() <= r.computed - r.placeholders - (m.sampled ? 0 : 0)) {
            DropImage(r, i);
          }
        }
      }
    }
    if (!m.sampled || r.done) continue;
    ++r.generated;
    if (r.running && s_.async) Register(r, r.computed - r.placeholders);
    if (r.known() < r.most(s_.longest)) continue;
    r.done = true;
    finished.push_back(std::to_string(r.id));
    if (r.running) {
      running_.erase(std::find(running_.begin(), running_.end(), r.id));
      ReleaseAll(r);
      r.running = false;
    } else {
      waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), r.id), waiting_.end());
    }
    DropImages(r);
  }
  for (const auto& released : flight.deferred) pool_->Release(released);
  row.text["finished"] = Joined(finished);
  row.text["free_after_step"] = std::to_string(Free());
  row.text["running_after_step"] = std::to_string(running_.size());
  row.text["waiting_after_step"] = std::to_string(waiting_.size() + held_back_.size());
  row.text["encoder_freeable_after_step"] = std::to_string(freeable_);
}

std::string Replay::ReportLoads(double until) {
  std::vector<Request*> over;
  for (Request& r : requests_) {
    if (r.loading && r.load_ends <= until) over.push_back(&r);
  }
  std::sort(over.begin(), over.end(), [](const Request* a, const Request* b) {
    return std::make_pair(a->load_ends, a->id) < std::make_pair(b->load_ends, b->id);
  });
  for (Request* r : over) {
    r->loading = false;
    r->reported = true;
  }
  std::string ids;
  for (const Request* r : over) ids += (ids.empty() ? "" : " ") + std::to_string(r->id);
  return ids;
}

void Replay::Run() {
  std::vector<int> order(requests_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return std::make_pair(At(a).arrival, a) < std::make_pair(At(b).arrival, b);
  });
  std::size_t next = 0;
  double device = 0;
  const std::size_t depth = s_.async ? 2 : 1;
  std::size_t idle = 0;
  for (;;) {
    while (next < order.size() && At(order[next]).arrival <= now_)
      waiting_.push_back(order[next++]);
    const bool some = !running_.empty() || !waiting_.empty() || !held_back_.empty();
    if (!some && flights_.empty()) {
      if (next == order.size()) return;
      now_ = At(order[next]).arrival;
      continue;
    }
    if (some && flights_.size() < depth) {
      Flight flight;
      const std::size_t preempted_so_far = preempted_before_.size();
      const std::size_t evicted_so_far = encoder_evicted_.size();
      const bool formed = Schedule(flight);
      if (!formed) {
        for (std::size_t i = preempted_so_far; i < preempted_before_.size(); ++i)
          preempted_before_[i] += "*";
        for (std::size_t i = evicted_so_far; i < encoder_evicted_.size(); ++i)
          encoder_evicted_[i] += "*";
        if (flights_.empty()) {
          if (preempted_before_.size() > preempted_so_far) continue;
          double until = next < order.size() ? At(order[next]).arrival : 1e300;
          bool loads = false;
          for (const Request& r : requests_) {
            if (!r.loading) continue;
            until = std::min(until, r.load_ends);
            loads = true;
          }
          if (until >= 1e300 || (!loads && ++idle > 2 * order.size() + 4)) {
            hangs = true;
            return;
          }
          now_ = std::max(now_, until);
          ReportLoads(now_);
          continue;
        }
      } else {
        idle = 0;
        Row row;
        Tokens t = 0, k = 0;
        double q = 0;
        std::vector<std::string> scheduled, kinds, before, sampled, held, encoded;
        Tokens encoder_tokens = 0, images = 0;
        for (Member& m : flight.members) {
          Request& r = At(m.id);
          t += m.tokens;
          if (m.tokens == 1 && m.before >= r.prompt) {
            k += m.before;
          } else {
            q += static_cast<double>(m.tokens) *
                 (static_cast<double>(m.before) + static_cast<double>(m.tokens) / 2);
          }
          r.computed += m.tokens;
          r.in_flight += m.tokens;
          m.sampled = r.computed >= r.known() + r.placeholders;
          if (m.sampled) ++r.placeholders;
          scheduled.push_back(fmt::format("{}:{}", m.id, m.tokens));
          kinds.emplace_back(1, m.kind);
          before.push_back(std::to_string(m.before));
          sampled.emplace_back(m.sampled ? "1" : "0");
          std::string blocks;
          for (const auto& shown : s_.shown) {
            const std::vector<int>& table = r.tables[shown[0]];
            const auto count =
                std::count_if(table.begin(), table.end(), [](int b) { return b >= 0; });
            blocks += (blocks.empty() ? "" : "/") + std::to_string(count);
          }
          held.push_back(blocks);
          if (!m.encoded.empty()) {
            std::string list;
            images += static_cast<Tokens>(m.encoded.size());
            for (const std::size_t i : m.encoded) {
              list += (list.empty() ? "" : ",") + std::to_string(i);
              encoder_tokens += r.images[i].embeds;
            }
            encoded.push_back(fmt::format("{}:{}", m.id, list));
          }
        }
        const double start = std::max(now_, device);
        const double ms = ((5.0 + 0.02 * static_cast<double>(t)) + 1e-4 * static_cast<double>(k)) +
                          1e-5 * q + s_.image_ms * static_cast<double>(images);
        seen.encoded += images;
        flight.end = start + ms * 1e-3;
        device = flight.end;
        row.real = {{"sched_s", now_}, {"start_s", start}, {"end_s", flight.end}, {"Q", q}};
        row.text = {{"step", std::to_string(rows.size())},
                    {"T", std::to_string(t)},
                    {"K", std::to_string(k)},
                    {"scheduled", Joined(scheduled)},
                    {"kind", Joined(kinds)},
                    {"computed_before", Joined(before)},
                    {"sampled", Joined(sampled)},
                    {"preempted", Joined(preempted_before_)},
                    {"free_after_schedule", std::to_string(Free())},
                    {"running_after_schedule", std::to_string(running_.size())},
                    {"waiting_after_schedule", std::to_string(waiting_.size() + held_back_.size())},
                    {"held", Joined(held)},
                    {"evicted_total", std::to_string(pool_->evicted)},
                    {"encoder", Joined(encoded)},
                    {"encoder_tokens", std::to_string(encoder_tokens)},
                    {"encoder_hits", Joined(encoder_hits_)},
                    {"encoder_evicted", Joined(encoder_evicted_)},
                    {"encoder_free_slots", std::to_string(free_slots_)},
                    {"encoder_freeable_slots", std::to_string(freeable_)},
                    {"loads_started", Joined(started_)},
                    {"loaded_at_once", Joined(at_once_)}};
        std::int64_t loading = 0;
        for (const Request& r : requests_) loading += r.loading ? 1 : 0;
        row.text["loading"] = std::to_string(loading);
        preempted_before_.clear();
        encoder_hits_.clear();
        encoder_evicted_.clear();
        started_.clear();
        at_once_.clear();
        flight.row = rows.size();
        rows.push_back(row);
        flights_.push_back(std::move(flight));
        if (flights_.size() < depth) continue;
      }
    }
    Flight oldest = std::move(flights_.front());
    flights_.pop_front();
    now_ = std::max(now_, oldest.end);
    Apply(oldest);
    rows[oldest.row].text["loads_reported"] = ReportLoads(now_);
  }
}

// ---- Files ---------------------------------------------------------------------------------

std::optional<std::vector<Request>> ReadRequests(const std::string& path) {
  Result<CsvTable> read =
      CsvTable::Read(path, {"id", "arrival_s", "prompt_tokens", "output_tokens"});
  if (!read.ok()) return std::nullopt;
  CsvTable& table = read.value();
  std::vector<Request> requests(table.Rows());
  for (std::size_t row = 0; row < table.Rows(); ++row) {
    Request& r = requests[static_cast<std::size_t>(table.Int(row, "id"))];
    r.id = static_cast<int>(table.Int(row, "id"));
    r.arrival = table.Real(row, "arrival_s");
    r.prompt = table.Int(row, "prompt_tokens");
    r.output = table.Int(row, "output_tokens");
    r.group = table.Int(row, "prefix_group");
    r.prefix = table.Int(row, "prefix_tokens");
    r.priority = table.Int(row, "priority");
    if (table.Has("parent")) r.parent = table.Int(row, "parent");
    if (table.Has("remote_tokens")) {
      r.remote = table.Int(row, "remote_tokens");
      r.loads_async = table.Int(row, "remote_async") != 0;
    }
  }
  return requests;
}

void ReadImages(const std::string& path, std::vector<Request>& requests) {
  Result<CsvTable> read =
      CsvTable::Read(path, {"request", "item", "hash", "offset", "length", "gap", "embeds"});
  if (!read.ok()) return;
  CsvTable& table = read.value();
  for (std::size_t row = 0; row < table.Rows(); ++row) {
    Request& r = requests[static_cast<std::size_t>(table.Int(row, "request"))];
    r.images.push_back({table.Text(row, "hash"), table.Int(row, "offset"), table.Int(row, "length"),
                        table.Int(row, "gap"), table.Int(row, "embeds")});
  }
}

// A table whose column `encoder` may have commas of its own.
std::vector<std::map<std::string, std::string>> ReadSteps(const std::string& text) {
  std::vector<std::map<std::string, std::string>> rows;
  std::vector<std::string> names;
  for (std::string line : Split(text, '\n')) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const std::vector<std::string> cells = Split(line, ',');
    if (names.empty()) {
      names = cells;
      continue;
    }
    const std::size_t more = cells.size() - std::min(cells.size(), names.size());
    auto& row = rows.emplace_back();
    std::size_t at = 0;
    for (const std::string& name : names) {
      std::string cell = at < cells.size() ? cells[at++] : "";
      for (std::size_t i = 0; i < more && name == "encoder"; ++i) cell += "," + cells[at++];
      row[name] = cell;
    }
  }
  return rows;
}

std::string CompareRows(const std::string& path, const Replay& replay, const Json& manifest) {
  const std::optional<std::string> text = ReadFile(path);
  if (!text) return "cannot be read: " + path;
  const auto table = ReadSteps(*text);
  for (std::size_t row = 0; row < std::min(table.size(), replay.rows.size()); ++row) {
    const auto different = [&](const std::string& column, const std::string& found) {
      return fmt::format("step {}: {}: expected {}, found {}", row, column, table[row].at(column),
                         found);
    };
    for (const auto& [column, found] : replay.rows[row].text) {
      const auto expected = table[row].find(column);
      if (expected == table[row].end() || expected->second == found) continue;
      return different(column, found);
    }
    for (const auto& [column, value] : replay.rows[row].real) {
      const std::optional<double> expected = ParseDouble(table[row].at(column));
      if (!expected || *expected != value) return different(column, fmt::format("{}", value));
    }
  }
  if (table.size() != replay.rows.size()) {
    return fmt::format("{} steps, found {}", table.size(), replay.rows.size());
  }
  if (manifest.value("hang", false) != replay.hangs) return "one hangs, the other does not";
  return "";
}

// The requests of a table.
std::vector<Request> RequestsOf(const ReplayInput& input) {
  const RequestTable& table = input.requests;
  std::vector<Request> requests(table.arrival.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Request& r = requests[i];
    r.id = static_cast<int>(i);
    r.arrival = static_cast<double>(table.arrival[i]) * 1e-9;
    r.prompt = table.prompt_tokens[i];
    r.output = table.output_tokens[i];
    r.group = input.prefix_groups[i];
    r.prefix = input.prefix_tokens[i];
    r.parent = input.parents[i];
    if (!table.priority.empty()) r.priority = table.priority[i];
    for (const PromptImage& image : table.ImagesOf(r.id)) {
      r.images.push_back({std::to_string(image.content), image.offset, image.tokens,
                          image.row_break, image.embeds});
    }
  }
  return requests;
}

}  // namespace

ReplayRun ReplayHybrid(const ReplayInput& input) {
  Replay replay(input.settings, RequestsOf(input), false);
  replay.Run();
  ReplayRun run = replay.seen;
  run.hangs = replay.hangs;
  run.evicted = replay.Evicted();
  for (Row& row : replay.rows) {
    for (const char* time : {"sched_s", "start_s", "end_s"}) {
      row.text[time] = fmt::format("{:.7f}", row.real[time]);
    }
    run.rows.push_back(std::move(row.text));
  }
  return run;
}

std::optional<std::vector<ReplayComparison>> ReplayHybrid(const std::string& folder,
                                                          const std::string& section) {
  const std::optional<std::string> text = ReadFile(folder + "/manifest.json");
  const Json manifest = Json::parse(text.value_or(""), nullptr, false);
  if (!manifest.is_object() || !manifest.contains(section)) return std::nullopt;
  std::vector<ReplayComparison> compared;
  for (const Json& each : manifest[section]) {
    const std::string name = each["name"], at = folder + "/" + section + "/";
    auto requests = ReadRequests(at + "requests_" + name + ".csv");
    if (!requests) {
      compared.push_back({name, "its requests cannot be read"});
      continue;
    }
    ReadImages(at + "items_" + name + ".csv", *requests);
    Replay replay(each, std::move(*requests), section == "remote");
    replay.Run();
    compared.push_back({name, CompareRows(at + name + ".steps.csv", replay, each)});
  }
  return compared;
}

}  // namespace servecast::testing

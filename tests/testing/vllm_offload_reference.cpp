// The manager of vLLM's offloaded KV blocks, by the rules of section D of the hybrid golden cases'
// README, on the recorded sequences of operations. See vllm_hybrid_reference.h.
#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "testing/csv_table.h"
#include "testing/data_files.h"
#include "testing/vllm_hybrid_reference.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::json;
using Key = std::int64_t;
using Keys = std::vector<Key>;

bool In(const std::deque<Key>& list, Key key) {
  return std::find(list.begin(), list.end(), key) != list.end();
}

void Drop(std::deque<Key>& list, Key key) {
  const auto at = std::find(list.begin(), list.end(), key);
  if (at != list.end()) list.erase(at);
}

void ToEnd(std::deque<Key>& list, Key key) {
  Drop(list, key);
  list.push_back(key);
}

std::string Joined(const Keys& keys) {
  std::string text;
  for (const Key key : keys) text += (text.empty() ? "" : " ") + std::to_string(key);
  return text;
}

class OffloadManager {
 public:
  OffloadManager(bool arc, std::size_t slots, std::int64_t threshold, std::size_t tracked)
      : arc_(arc), slots_(slots), threshold_(threshold), tracked_(tracked) {}

  std::string Do(const std::string& kind, const Keys& keys) {
    if (kind == "lookup") return LookUp(keys);
    if (kind == "touch") return Touch(keys), "";
    if (kind == "prepare_load") return Load(keys);
    if (kind == "complete_load") return Loaded(keys), "";
    if (kind == "prepare_store") return Store(keys);
    if (kind == "complete_store") return Stored(keys), "";
    if (kind == "fail_store") return Failed(keys), "";
    entries_.clear();  // O7
    freed_.clear();
    unused_ = 0;
    lru_.clear(), t1_.clear(), t2_.clear(), b1_.clear(), b2_.clear();
    target_ = 0;
    return "";
  }

  std::map<std::string, std::string> State() const {
    std::int64_t evictable = 0, pending = 0;
    for (const auto& [key, entry] : entries_) {
      evictable += Evictable(entry) ? 1 : 0;
      pending += entry.pending ? 1 : 0;
    }
    std::map<std::string, std::string> state = {{"free", std::to_string(FreeSlots())},
                                                {"evictable", std::to_string(evictable)},
                                                {"pending", std::to_string(pending)}};
    if (!arc_) return state;
    state["t1"] = std::to_string(t1_.size());
    state["t2"] = std::to_string(t2_.size());
    state["b1"] = std::to_string(b1_.size());
    state["b2"] = std::to_string(b2_.size());
    return state;
  }
  double target() const { return target_; }

 private:
  struct Entry {
    std::size_t slot = 0;
    bool pending = true;
    std::int64_t loads = 0;
  };
  static bool Evictable(const Entry& entry) { return !entry.pending && entry.loads == 0; }
  std::size_t FreeSlots() const { return slots_ - unused_ + freed_.size(); }

  std::string LookUp(const Keys& keys) {
    std::string text;
    for (const Key key : keys) {
      if (threshold_ >= 2) {  // O2
        const bool known = In(looked_, key);
        if (!known && looked_.size() >= tracked_) {
          counts_.erase(looked_.front());
          looked_.pop_front();
        }
        ToEnd(looked_, key);
        ++counts_[key];
      }
      const auto at = entries_.find(key);
      text += at == entries_.end() ? 'M' : at->second.pending ? 'P' : 'H';
    }
    return text;
  }

  void Touch(const Keys& keys) {  // O5, O6
    for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
      if (!arc_) {
        if (In(lru_, *key)) ToEnd(lru_, *key);
      } else if (In(t1_, *key)) {
        if (entries_.at(*key).pending) {
          ToEnd(t1_, *key);
        } else {
          Drop(t1_, *key);
          t2_.push_back(*key);
        }
      } else if (In(t2_, *key)) {
        ToEnd(t2_, *key);
      } else if (In(b1_, *key)) {
        const double ratio = static_cast<double>(b2_.size()) / static_cast<double>(b1_.size());
        target_ = std::min(target_ + std::max(1.0, ratio), static_cast<double>(slots_));
        ToEnd(b1_, *key);
      } else if (In(b2_, *key)) {
        const double ratio = static_cast<double>(b1_.size()) / static_cast<double>(b2_.size());
        target_ = std::max(target_ - std::max(1.0, ratio), 0.0);
        ToEnd(b2_, *key);
      }
    }
  }

  std::string Load(const Keys& keys) {
    std::vector<Key> slots;
    for (const Key key : keys) {
      Entry& entry = entries_.at(key);
      ++entry.loads;
      Drop(lru_, key);
      slots.push_back(static_cast<Key>(entry.slot));
    }
    return Joined(slots);
  }
  void Loaded(const Keys& keys) {
    for (const Key key : keys) {
      Entry& entry = entries_.at(key);
      if (--entry.loads == 0 && !arc_ && Evictable(entry)) lru_.push_back(key);
    }
  }

  std::string Store(const Keys& keys) {  // O3
    Keys rest;
    for (const Key key : keys) {
      const auto count = counts_.find(key);
      if (threshold_ >= 2 && (count == counts_.end() || count->second < threshold_)) continue;
      if (entries_.count(key) == 0) rest.push_back(key);
    }
    Keys evicted;
    if (rest.size() > FreeSlots()) {
      const std::size_t needed = rest.size() - FreeSlots();
      std::size_t evictable = 0;
      for (const auto& [key, entry] : entries_) evictable += Evictable(entry) ? 1 : 0;
      if (needed > evictable) return "none";
      const std::set<Key> safe(keys.begin(), keys.end());
      if (!(arc_ ? EvictArc(needed, safe, evicted) : EvictLru(needed, safe, evicted)))
        return "none";
      for (const Key key : evicted) {
        freed_.push_back(entries_.at(key).slot);
        entries_.erase(key);
      }
    }
    Keys slots;
    for (const Key key : rest) {  // O1
      std::size_t slot = unused_;
      if (unused_ < slots_) {
        ++unused_;
      } else {
        slot = freed_.back();
        freed_.pop_back();
      }
      entries_[key] = {slot};
      slots.push_back(static_cast<Key>(slot));
      if (!arc_) continue;
      Drop(b1_, key);
      Drop(b2_, key);
      t1_.push_back(key);
    }
    return fmt::format("store={}|blocks={}|evicted={}", Joined(rest), Joined(slots),
                       Joined(evicted));
  }

  bool EvictLru(std::size_t needed, const std::set<Key>& safe, Keys& evicted) {
    for (const Key key : lru_) {
      if (evicted.size() == needed) break;
      if (safe.count(key) == 0) evicted.push_back(key);
    }
    if (evicted.size() < needed) return evicted.clear(), false;
    for (const Key key : evicted) Drop(lru_, key);
    return true;
  }

  bool EvictArc(std::size_t needed, const std::set<Key>& safe, Keys& evicted) {
    std::size_t at1 = 0, at2 = 0, from1 = 0;
    std::vector<bool> first;
    const auto next = [&](const std::deque<Key>& list, std::size_t& at) {
      while (at < list.size() && (safe.count(list[at]) > 0 || !Evictable(entries_.at(list[at])))) {
        ++at;
      }
      return at < list.size();
    };
    while (evicted.size() < needed) {
      const auto left = static_cast<std::int64_t>(t1_.size() - from1);
      const bool takes1 = left >= static_cast<std::int64_t>(target_) && next(t1_, at1);
      if (!takes1 && !next(t2_, at2)) return evicted.clear(), false;
      evicted.push_back(takes1 ? t1_[at1++] : t2_[at2++]);
      from1 += takes1 ? 1 : 0;
      first.push_back(takes1);
    }
    for (std::size_t i = 0; i < evicted.size(); ++i) {
      Drop(first[i] ? t1_ : t2_, evicted[i]);
      (first[i] ? b1_ : b2_).push_back(evicted[i]);
    }
    while (b1_.size() > slots_) b1_.pop_front();
    while (b2_.size() > slots_) b2_.pop_front();
    return true;
  }

  void Stored(const Keys& keys) {
    for (const Key key : keys) {
      entries_.at(key).pending = false;
      if (!arc_) lru_.push_back(key);
    }
  }
  void Failed(const Keys& keys) {
    for (const Key key : keys) {
      freed_.push_back(entries_.at(key).slot);
      entries_.erase(key);
      Drop(t1_, key);
      Drop(t2_, key);
    }
  }

  bool arc_;
  std::size_t slots_, unused_ = 0;
  std::int64_t threshold_;
  std::size_t tracked_;
  std::map<Key, Entry> entries_;
  std::vector<std::size_t> freed_;
  std::deque<Key> lru_, t1_, t2_, b1_, b2_, looked_;
  std::map<Key, std::int64_t> counts_;
  double target_ = 0;
};

}  // namespace

std::optional<std::vector<ReplayComparison>> ReplayOffload(const std::string& folder) {
  const std::optional<std::string> text = ReadFile(folder + "/offload/sequences.json");
  const Json sequences = Json::parse(text.value_or(""), nullptr, false);
  Result<CsvTable> read = CsvTable::Read(folder + "/offload/ops.csv",
                                         {"seq", "op", "kind", "keys", "result", "free", "target"});
  if (!sequences.is_array() || !read.ok()) return std::nullopt;
  std::map<std::int64_t, OffloadManager> managers;
  std::map<std::int64_t, std::string> differences;
  for (const Json& each : sequences) {
    const std::int64_t seq = each["seq"];
    managers.emplace(seq, OffloadManager(each["policy"] == "arc", each["num_blocks"],
                                         each["store_threshold"], each["max_tracker_size"]));
    differences[seq];
  }
  CsvTable& table = read.value();
  for (std::size_t row = 0; row < table.Rows(); ++row) {
    const std::int64_t seq = table.Int(row, "seq");
    std::string& difference = differences[seq];
    if (!difference.empty()) continue;
    OffloadManager& manager = managers.at(seq);
    Keys keys;
    for (const std::string& item : Items(table.Text(row, "keys"))) {
      keys.push_back(ParseInt(item).value_or(-1));
    }
    const std::string result = manager.Do(table.Text(row, "kind"), keys);
    const auto equal = [&](const std::string& column, const std::string& found) {
      const std::string& expected = table.Text(row, column.c_str());
      if (!difference.empty() || expected == found) return;
      difference = fmt::format("operation {} {}: {}: expected {}, found {}", table.Int(row, "op"),
                               table.Text(row, "kind"), column, expected, found);
    };
    equal("result", result);
    for (const auto& [column, found] : manager.State()) equal(column, found);
    const std::optional<double> target = ParseDouble(table.Text(row, "target"));
    if (target && *target != manager.target() && difference.empty()) {
      difference = fmt::format("operation {}: target: expected {}, found {}", table.Int(row, "op"),
                               *target, manager.target());
    }
  }
  std::vector<ReplayComparison> compared;
  for (const auto& [seq, difference] : differences) {
    compared.push_back({fmt::format("sequence {}", seq), difference});
  }
  return compared;
}

}  // namespace servecast::testing

// TensorRT-LLM's KV blocks (rules 40 to 57), written to be read: a block has its tokens, the tree
// its places, the free queue its order. See trtllm_reference.h.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "base/base.h"
#include "testing/trtllm_reference.h"

namespace servecast::testing {

using TrtllmToken = std::pair<std::int64_t, std::int64_t>;  // whose, and where
using TrtllmText = std::vector<TrtllmToken>;

class TrtllmReferenceKv {
 public:
  TrtllmReferenceKv(const TrtllmSettings& settings);

  std::int64_t free() const { return static_cast<std::int64_t>(queue_.size()); }
  bool Has(std::int64_t owner) const { return held_.count(owner) > 0; }
  std::int64_t Held(std::int64_t owner) const {
    return Has(owner) ? static_cast<std::int64_t>(held_.at(owner).size()) : 0;
  }
  std::int64_t Size(std::int64_t owner) const { return size_.at(owner); }
  const std::vector<std::int64_t>& BlocksOf(std::int64_t owner) const { return held_.at(owner); }
  std::int64_t Users(std::int64_t block) const { return users_[static_cast<std::size_t>(block)]; }

  struct Stored {
    std::int64_t all = 0, used = 0;
    TrtllmText first_new;  // empty: none
  };
  Stored Find(const TrtllmText& text) const;

  struct Newcomer {
    std::int64_t owner;
    const TrtllmText* text;
    std::int64_t found = 0;  // answer
  };
  void Admit(std::vector<Newcomer>& newcomers);
  void Grow(std::int64_t owner);
  void Shrink(std::int64_t owner);
  void Store(std::int64_t owner, const TrtllmText& text, std::int64_t computed);
  void Leave(std::int64_t owner, const TrtllmText& text, std::int64_t computed);
  // Blocks were asked for when none was free.
  bool ran_out() const { return ran_out_; }

 private:
  // A block that is stored: its tokens below those of its mother, by age.
  struct Place {
    std::int64_t block, mother;
    TrtllmText tokens;
  };
  struct Claim {
    std::int64_t block;
    bool part = false, in_use = false, has_children = false;
  };

  std::vector<TrtllmText> Cut(const TrtllmText& text, std::int64_t tokens, bool tail) const;
  const Place* ChildOf(std::int64_t mother, const TrtllmText& tokens) const;
  const Place* PlaceOf(std::int64_t block) const;
  bool HasChildren(std::int64_t block) const;
  void TakeOut(std::int64_t block);
  void TakeOutBelow(std::int64_t block);
  std::int64_t Take(std::int64_t owner);
  void Give(std::int64_t block, bool front);
  void Unqueue(std::int64_t block);
  void Put(std::int64_t owner, const std::vector<TrtllmText>& keys);

  const TrtllmSettings& s_;
  std::deque<std::int64_t> queue_;
  std::vector<std::int64_t> users_, taker_;
  std::vector<Place> tree_;  // by age; mother -1: the root
  std::map<std::int64_t, std::vector<std::int64_t>> held_;
  std::map<std::int64_t, std::int64_t> size_;
  std::map<std::int64_t, bool> stores_;
  std::vector<std::int64_t> lent_;
  bool ran_out_ = false;
};

}  // namespace servecast::testing

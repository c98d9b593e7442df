#include "testing/trtllm_reference_kv.h"

#include <algorithm>

namespace servecast::testing {

TrtllmReferenceKv::TrtllmReferenceKv(const TrtllmSettings& settings)
    : s_(settings),
      users_(static_cast<std::size_t>(settings.num_blocks), 0),
      taker_(static_cast<std::size_t>(settings.num_blocks), INT64_MIN) {
  for (std::int64_t i = 0; i < settings.num_blocks; ++i) queue_.push_back(i);
}

std::vector<TrtllmText> TrtllmReferenceKv::Cut(const TrtllmText& text, std::int64_t tokens,
                                               bool tail) const {
  std::vector<TrtllmText> keys;
  for (std::int64_t from = 0; from < tokens; from += s_.tokens_per_block) {
    const std::int64_t to = std::min(from + s_.tokens_per_block, tokens);
    if (to - from < s_.tokens_per_block && !tail) break;
    keys.emplace_back(text.begin() + from, text.begin() + to);
  }
  return keys;
}

const TrtllmReferenceKv::Place* TrtllmReferenceKv::ChildOf(std::int64_t mother,
                                                           const TrtllmText& tokens) const {
  for (const Place& place : tree_) {
    if (place.mother == mother && place.tokens == tokens) return &place;
  }
  return nullptr;
}

const TrtllmReferenceKv::Place* TrtllmReferenceKv::PlaceOf(std::int64_t block) const {
  for (const Place& place : tree_) {
    if (place.block == block) return &place;
  }
  return nullptr;
}

bool TrtllmReferenceKv::HasChildren(std::int64_t block) const {
  return std::any_of(tree_.begin(), tree_.end(),
                     [block](const Place& place) { return place.mother == block; });
}

void TrtllmReferenceKv::TakeOut(std::int64_t block) {
  tree_.erase(std::remove_if(tree_.begin(), tree_.end(),
                             [block](const Place& place) { return place.block == block; }),
              tree_.end());
}

void TrtllmReferenceKv::TakeOutBelow(std::int64_t block) {
  std::vector<std::int64_t> children;
  for (const Place& place : tree_) {
    if (place.mother == block) children.push_back(place.block);
  }
  for (const std::int64_t child : children) TakeOutBelow(child);
  TakeOut(block);
}

void TrtllmReferenceKv::Unqueue(std::int64_t block) {
  queue_.erase(std::remove(queue_.begin(), queue_.end(), block), queue_.end());
}

void TrtllmReferenceKv::Give(std::int64_t block, bool front) {
  front ? queue_.push_front(block) : queue_.push_back(block);
}

// Rule 40, and 57.
std::int64_t TrtllmReferenceKv::Take(std::int64_t owner) {
  while (queue_.empty() && !lent_.empty()) {
    const std::int64_t block = lent_.back();
    lent_.pop_back();
    ran_out_ = true;
    if (users_[static_cast<std::size_t>(block)] == 0) Give(block, false);
  }
  const std::int64_t block = queue_.front();
  queue_.pop_front();
  TakeOutBelow(block);
  std::int64_t& taker = taker_[static_cast<std::size_t>(block)];
  if (taker != owner && stores_.count(taker) > 0) stores_[taker] = false;
  taker = owner;
  return block;
}

TrtllmReferenceKv::Stored TrtllmReferenceKv::Find(const TrtllmText& text) const {
  Stored stored;
  std::int64_t mother = -1;
  for (const TrtllmText& key : Cut(text, static_cast<std::int64_t>(text.size()), false)) {
    const Place* place = ChildOf(mother, key);
    if (place == nullptr) {
      stored.first_new = key;
      break;
    }
    ++stored.all;
    stored.used += users_[static_cast<std::size_t>(place->block)] > 0 ? 1 : 0;
    mother = place->block;
  }
  return stored;
}

// Rules 43 to 45: all claim, then all take.
void TrtllmReferenceKv::Admit(std::vector<Newcomer>& newcomers) {
  std::vector<std::vector<Claim>> claims(newcomers.size());
  for (std::size_t i = 0; i < newcomers.size(); ++i) {
    Newcomer& n = newcomers[i];
    const auto prompt = static_cast<std::int64_t>(n.text->size());
    held_[n.owner];
    size_[n.owner] = prompt;
    stores_[n.owner] = true;
    if (!s_.enable_block_reuse) continue;
    std::int64_t mother = -1;
    for (const TrtllmText& key : Cut(*n.text, prompt - 1, true)) {
      const Place* exact = ChildOf(mother, key);
      const bool full =
          exact != nullptr && static_cast<std::int64_t>(key.size()) == s_.tokens_per_block;
      std::size_t matched = key.size();
      if (exact == nullptr && s_.enable_partial_reuse) {
        matched = 0;
        for (const Place& place : tree_) {
          if (place.mother != mother) continue;
          const bool busy =
              users_[static_cast<std::size_t>(place.block)] > 0 || HasChildren(place.block);
          if (busy && !s_.copy_on_partial_reuse) continue;
          std::size_t same = 0;
          while (same < std::min(key.size(), place.tokens.size()) &&
                 place.tokens[same] == key[same]) {
            ++same;
          }
          if (same > matched) {
            matched = same;
            exact = &place;
          }
        }
      }
      if (exact == nullptr) break;
      const std::int64_t block = exact->block;
      claims[i].push_back(
          {block, !full, users_[static_cast<std::size_t>(block)] > 0, HasChildren(block)});
      Unqueue(block);
      n.found += static_cast<std::int64_t>(matched);
      if (!full) break;
      mother = block;
    }
  }
  // Who is the last to have found a part of a block, and whether one found all of it.
  const auto of_block = [&claims](std::int64_t block, std::size_t& last) {
    bool in_full = false;
    for (std::size_t i = 0; i < claims.size(); ++i) {
      for (const Claim& claim : claims[i]) {
        if (claim.block != block) continue;
        if (claim.part) last = i;
        in_full = in_full || !claim.part;
      }
    }
    return in_full;
  };
  lent_.clear();
  for (const std::vector<Claim>& of : claims) {
    for (const Claim& claim : of) {
      std::size_t last = 0;
      if (claim.part && !claim.in_use && claim.has_children && !of_block(claim.block, last)) {
        lent_.push_back(claim.block);
      }
    }
  }
  for (std::size_t i = 0; i < newcomers.size(); ++i) {
    std::vector<std::int64_t>& mine = held_[newcomers[i].owner];
    const auto hold = [&](std::int64_t block) {
      ++users_[static_cast<std::size_t>(block)];
      mine.push_back(block);
    };
    for (const Claim& claim : claims[i]) {
      std::size_t last = 0;
      const bool in_full = of_block(claim.block, last);
      const bool idle = claim.part && !claim.in_use && !in_full && last == i;
      if (!claim.part) {
        hold(claim.block);
      } else if (idle && !claim.has_children) {
        TakeOut(claim.block);
        hold(claim.block);
      } else {
        hold(Take(newcomers[i].owner));
        const bool queued = std::find(queue_.begin(), queue_.end(), claim.block) != queue_.end();
        if (idle && users_[static_cast<std::size_t>(claim.block)] == 0 && !queued) {
          Give(claim.block, false);
        }
      }
    }
    const std::int64_t blocks = CeilDiv(size_[newcomers[i].owner], s_.tokens_per_block);
    while (static_cast<std::int64_t>(mine.size()) < blocks) hold(Take(newcomers[i].owner));
  }
  lent_.clear();
}

void TrtllmReferenceKv::Grow(std::int64_t owner) {
  if (size_[owner]++ % s_.tokens_per_block != 0) return;
  const std::int64_t block = Take(owner);
  ++users_[static_cast<std::size_t>(block)];
  held_[owner].push_back(block);
}

void TrtllmReferenceKv::Shrink(std::int64_t owner) {
  if (--size_[owner] % s_.tokens_per_block != 0) return;
  const std::int64_t block = held_[owner].back();
  held_[owner].pop_back();
  if (--users_[static_cast<std::size_t>(block)] == 0) Give(block, true);
}

// Rule 55.
void TrtllmReferenceKv::Put(std::int64_t owner, const std::vector<TrtllmText>& keys) {
  std::int64_t mother = -1;
  bool walks = true;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Place* there = walks ? ChildOf(mother, keys[i]) : nullptr;
    if (there != nullptr) {
      mother = there->block;
      continue;
    }
    walks = false;
    const std::int64_t block = held_[owner][i];
    TakeOutBelow(block);
    tree_.push_back({block, mother, keys[i]});
    mother = block;
  }
}

void TrtllmReferenceKv::Store(std::int64_t owner, const TrtllmText& text, std::int64_t computed) {
  if (s_.enable_block_reuse && Has(owner)) Put(owner, Cut(text, computed, false));
}

void TrtllmReferenceKv::Leave(std::int64_t owner, const TrtllmText& text, std::int64_t computed) {
  if (!Has(owner)) return;
  if (s_.enable_block_reuse && stores_[owner]) Put(owner, Cut(text, computed, true));
  std::vector<std::int64_t> blocks = held_[owner];
  held_.erase(owner);
  size_.erase(owner);
  stores_.erase(owner);
  for (; !blocks.empty(); blocks.pop_back()) {
    if (--users_[static_cast<std::size_t>(blocks.back())] == 0) Give(blocks.back(), false);
  }
}

}  // namespace servecast::testing

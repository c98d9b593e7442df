// The encoder and its cache, the naive way: a list of images, of which all sums are made anew.
// Rules E1 to E6 of the golden traces with encoders.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/base.h"
#include "workload/request_table.h"

namespace servecast::testing {

class ReferenceEncoder {
 public:
  ReferenceEncoder(const RequestTable& requests, std::int64_t most, bool whole)
      : requests_(requests), most_(most), whole_(whole) {}

  bool Any() const { return !requests_.images.empty(); }
  std::int64_t Hits() const { return hits_; }
  std::int64_t Evicted() const { return evicted_; }
  std::int64_t Encoded() const { return static_cast<std::int64_t>(step_.size()); }

  void Begin() { step_.clear(); }

  std::int64_t Cut(RequestId id, std::int64_t from, std::int64_t n) {
    chosen_.clear();
    found_ = 0;
    const std::int64_t to = from + n;
    for (const PromptImage& image : requests_.ImagesOf(id)) {
      if (image.offset >= to || image.end() <= from) continue;
      if (std::any_of(chosen_.begin(), chosen_.end(),
                      [&](const PromptImage& other) { return other.content == image.content; })) {
        continue;
      }
      if (Kept* kept = Find(image.content)) {
        const std::pair<RequestId, std::int32_t> held{id, image.offset};
        found_ += held_.insert(held).second ? 1 : 0;
        kept->holders.insert(id);
        continue;
      }
      const std::int64_t before = image.offset > from ? image.offset - from : 0;
      if (whole_ && before > 0 && to < image.end()) return before;
      std::int64_t spent = 0, choice = image.embeds, held = 0;
      for (const Encoding& other : step_) spent += other.image.embeds;
      for (const PromptImage& other : chosen_) choice += other.embeds;
      for (const Kept& kept : kept_) held += kept.holders.empty() ? 0 : kept.embeds;
      if (spent + choice > most_ || held + choice > most_) return before;
      while (Filled() + choice > most_) EvictOldest();
      bool some = false;
      for (std::int64_t t = std::max<std::int64_t>(from, image.offset);
           t < std::min(to, image.end()); ++t) {
        some = some || image.row_break == 0 || (t - image.offset + 1) % image.row_break != 0;
      }
      if (some) chosen_.push_back(image);
    }
    return n;
  }

  void Take(RequestId id) {
    hits_ += found_;
    for (const PromptImage& image : chosen_) {
      step_.push_back({id, image});
      kept_.push_back({image.content, image.embeds, {id}, 0});
      held_.insert({id, image.offset});
    }
  }
  // A victim that the step had already.
  void TakeOut(RequestId id) {
    step_.erase(std::remove_if(step_.begin(), step_.end(),
                               [id](const Encoding& encoding) { return encoding.id == id; }),
                step_.end());
  }

  // It holds no image any more that ends by then.
  void Passed(RequestId id, std::int64_t computed) {
    for (const PromptImage& image : requests_.ImagesOf(id)) {
      if (image.end() <= computed) LetGo(id, image);
    }
  }
  void Drop(RequestId id) { Passed(id, INT64_MAX); }

 private:
  struct Kept {
    std::int64_t content = 0, embeds = 0;
    std::set<RequestId> holders;
    std::int64_t idle_since = 0;  // counted
  };
  struct Encoding {
    RequestId id = kNoRequest;
    PromptImage image;
  };

  Kept* Find(std::int64_t content) {
    for (Kept& kept : kept_) {
      if (kept.content == content) return &kept;
    }
    return nullptr;
  }
  std::int64_t Filled() const {
    std::int64_t sum = 0;
    for (const Kept& kept : kept_) sum += kept.embeds;
    return sum;
  }
  void EvictOldest() {
    auto oldest = kept_.end();
    for (auto at = kept_.begin(); at != kept_.end(); ++at) {
      const bool idle = at->holders.empty();
      if (idle && (oldest == kept_.end() || at->idle_since < oldest->idle_since)) oldest = at;
    }
    kept_.erase(oldest);
    ++evicted_;
  }
  void LetGo(RequestId id, const PromptImage& image) {
    if (held_.erase({id, image.offset}) == 0) return;
    Kept* kept = Find(image.content);
    if (kept == nullptr || kept->holders.erase(id) == 0) return;
    if (kept->holders.empty()) kept->idle_since = ++clock_;
  }

  const RequestTable& requests_;
  const std::int64_t most_;
  const bool whole_;
  std::vector<Kept> kept_;
  std::vector<Encoding> step_;
  std::set<std::pair<RequestId, std::int32_t>> held_;  // request, offset of the image
  std::vector<PromptImage> chosen_;
  std::int64_t found_ = 0, hits_ = 0, evicted_ = 0, clock_ = 0;
};

}  // namespace servecast::testing

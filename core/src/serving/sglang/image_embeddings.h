// What a vision encoder made of images, as SGLang keeps it in host memory: by content, and when it
// is full without what was asked for the longest ago (srt/mem_cache/multimodal_cache.py). Read from
// SGLang's source, not recorded.
#pragma once

#include <cstdint>
#include <iterator>
#include <list>
#include <unordered_map>
#include <utility>

#include "workload/request_table.h"

namespace servecast {

class ImageEmbeddings {
 public:
  // `most`: embeds that there is room for.
  explicit ImageEmbeddings(std::int64_t most) : left_(most) {}

  std::int64_t hits() const { return hits_; }

  // Whether a step that computes tokens of the image has to encode it. It is kept from now on; one
  // that has more than there is room for only drives out all others. `first`: of its prompt's
  // steps it is the first one with the image, so that a hit counts.
  bool Encodes(const PromptImage& image, bool first) {
    const auto at = places_.find(image.content);
    if (at != places_.end()) {
      kept_.splice(kept_.end(), kept_, at->second);
      hits_ += first ? 1 : 0;
      return false;
    }
    for (; left_ < image.embeds && !kept_.empty(); kept_.pop_front()) {
      left_ += kept_.front().second;
      places_.erase(kept_.front().first);
    }
    if (left_ < image.embeds) return true;
    left_ -= image.embeds;
    kept_.emplace_back(image.content, image.embeds);
    places_[image.content] = std::prev(kept_.end());
    return true;
  }

 private:
  using Kept = std::list<std::pair<std::int64_t, std::int64_t>>;  // content, embeds; latest last
  std::int64_t left_;
  std::int64_t hits_ = 0;
  Kept kept_;
  std::unordered_map<std::int64_t, Kept::iterator> places_;
};

}  // namespace servecast

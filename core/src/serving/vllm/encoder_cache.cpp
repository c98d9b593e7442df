#include "serving/vllm/encoder_cache.h"

#include <algorithm>

#include "serving/replica/machine.h"

namespace servecast {

std::int64_t EncoderBudget(const ReplicaInput& in) {
  return std::max(in.engine.max_num_batched_tokens, in.most_image_tokens);
}

std::shared_ptr<EncoderCache> MakeEncoderCache(const ReplicaInput& in) {
  if (in.requests.images.empty() || !in.encodes_images) return nullptr;
  return std::make_shared<EncoderCache>(in.requests, EncoderBudget(in),
                                        in.engine.disable_chunked_mm_input);
}

void EncoderCache::Mark() { marked_ = state_; }
void EncoderCache::Undo() { state_ = marked_; }

void EncoderCache::BeginStep() {
  state_.budget = most_;
  state_.members.clear();
  state_.images = 0;
}

namespace {

// Whether tokens [from, to) have an embed of it: with row breaks they may have none.
bool HasEmbed(const PromptImage& image, std::int64_t from, std::int64_t to) {
  if (image.row_break == 0) return true;
  const std::int64_t first = std::max<std::int64_t>(from - image.offset, 0);
  const std::int64_t tokens = std::min<std::int64_t>(to - image.offset, image.tokens) - first;
  return tokens > 1 || (first + 1) % image.row_break != 0;
}

}  // namespace

std::int64_t EncoderCache::Cut(RequestId request, std::int64_t computed, std::int64_t tokens) {
  chosen_.clear();
  found_ = 0;
  const std::span<const PromptImage> images = ImagesOf(request);
  const std::int64_t to = computed + tokens;
  std::int64_t embeds = 0, left = state_.budget;
  for (std::size_t i = 0; i < images.size() && images[i].offset < to; ++i) {
    const PromptImage& image = images[i];
    if (image.end() <= computed) continue;
    const bool here = std::any_of(chosen_.begin(), chosen_.end(), [&](std::size_t other) {
      return images[other].content == image.content;
    });
    if (here) continue;
    if (state_.cached.count(image.content) > 0) {
      found_ += Hold(request, i) ? 1 : 0;
      continue;
    }
    const std::int64_t before = std::max<std::int64_t>(image.offset - computed, 0);
    if (whole_ && before > 0 && to < image.end()) return before;
    if (image.embeds > left || embeds + image.embeds > state_.freeable) return before;
    MakeRoom(embeds + image.embeds);
    if (!HasEmbed(image, computed, to)) continue;
    left -= image.embeds;
    embeds += image.embeds;
    chosen_.push_back(i);
  }
  return tokens;
}

// What nobody holds goes, the oldest first.
void EncoderCache::MakeRoom(std::int64_t embeds) {
  std::size_t gone = 0;
  while (state_.free < embeds) {
    const auto at = state_.cached.find(state_.idle[gone++]);
    state_.free += at->second.embeds;
    state_.cached.erase(at);
  }
  state_.idle.erase(state_.idle.begin(), state_.idle.begin() + static_cast<std::ptrdiff_t>(gone));
}

void EncoderCache::Take(RequestId request) {
  const std::span<const PromptImage> images = ImagesOf(request);
  for (const std::size_t i : chosen_) {
    state_.cached[images[i].content].embeds = images[i].embeds;
    state_.free -= images[i].embeds;
    state_.freeable -= images[i].embeds;
    state_.budget -= images[i].embeds;
    Hold(request, i);
  }
  state_.images += static_cast<std::int64_t>(chosen_.size());
  state_.hits += found_;
  if (!chosen_.empty()) state_.members[request] = chosen_;
}

void EncoderCache::TakeOut(RequestId request) {
  const auto at = state_.members.find(request);
  if (at == state_.members.end()) return;
  for (const std::size_t i : at->second) state_.budget += ImagesOf(request)[i].embeds;
  state_.images -= static_cast<std::int64_t>(at->second.size());
  state_.members.erase(at);
}

bool EncoderCache::Hold(RequestId request, std::size_t image) {
  const std::int64_t content = ImagesOf(request)[image].content;
  State::Entry& entry = state_.cached.at(content);
  const auto idle = std::find(state_.idle.begin(), state_.idle.end(), content);
  if (idle != state_.idle.end()) {
    state_.idle.erase(idle);
    state_.freeable -= entry.embeds;
  }
  entry.holders.insert(request);
  return state_.holders[request].images.insert(image).second;
}

void EncoderCache::Release(RequestId request, std::size_t image) {
  const std::int64_t content = ImagesOf(request)[image].content;
  const auto at = state_.cached.find(content);
  if (at == state_.cached.end()) return;  // it was twice in the prompt
  State::Entry& entry = at->second;
  if (entry.holders.erase(request) == 0 || !entry.holders.empty()) return;
  state_.idle.push_back(content);
  state_.freeable += entry.embeds;
}

void EncoderCache::Computed(RequestId request, std::int64_t tokens) {
  const auto at = state_.holders.find(request);
  if (at != state_.holders.end()) at->second.computed = tokens;
}

void EncoderCache::Passed(RequestId request, bool sampled) {
  const auto at = state_.holders.find(request);
  if (at == state_.holders.end()) return;
  const std::span<const PromptImage> images = ImagesOf(request);
  State::Holder& holder = at->second;
  if (sampled) ++holder.computed;
  while (!holder.images.empty() && images[*holder.images.begin()].end() <= holder.computed) {
    Release(request, *holder.images.begin());
    holder.images.erase(holder.images.begin());
  }
  if (holder.images.empty()) state_.holders.erase(at);
}

void EncoderCache::Drop(RequestId request) {
  const auto at = state_.holders.find(request);
  if (at == state_.holders.end()) return;
  for (const std::size_t image : at->second.images) Release(request, image);
  state_.holders.erase(at);
}

}  // namespace servecast

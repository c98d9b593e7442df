// See draft_group.h.
#include "serving/vllm/draft_group.h"

#include <algorithm>

#include "base/random.h"

namespace servecast {
namespace {

template <class T>
void ReplaceByLast(std::vector<T>& column, std::size_t at) {
  column[at] = column.back();
  column.pop_back();
}

}  // namespace

DraftGroup::Place DraftGroup::Join(const Member& member, RequestId request) {
  ids_.push_back(member.id);
  computed_.push_back(static_cast<std::int32_t>(member.computed));
  room_.push_back(static_cast<std::int32_t>(member.blocks * block_size_ - lookahead_));
  last_.push_back(static_cast<std::int32_t>(member.last));
  keys_.push_back(acceptance_.KeyOf(request, member.draws));
  laws_.push_back(acceptance_.LawOf(request).data());
  first_step_.push_back(steps_ - member.draws);
  for (std::vector<std::uint8_t>& accepted : by_step_) accepted.push_back(0);
  computed_sum_ += member.computed;
  blocks_sum_ += member.blocks;
  return static_cast<Place>(ids_.size() - 1);
}

DraftGroup::Member DraftGroup::Leave(Place place) {
  const std::size_t at = At(place);
  const Member member = {.id = ids_[at],
                         .computed = computed_[at],
                         .blocks = (room_[at] + lookahead_) / block_size_,
                         .last = last_[at],
                         .draws = steps_ - first_step_[at]};
  computed_sum_ -= member.computed;
  blocks_sum_ -= member.blocks;
  ReplaceByLast(ids_, at);
  ReplaceByLast(computed_, at);
  ReplaceByLast(room_, at);
  ReplaceByLast(last_, at);
  ReplaceByLast(keys_, at);
  ReplaceByLast(laws_, at);
  ReplaceByLast(first_step_, at);
  for (std::vector<std::uint8_t>& accepted : by_step_) ReplaceByLast(accepted, at);
  return member;
}

DraftGroup::Place DraftGroup::Ending() const {
  const std::size_t size = ids_.size();
  std::int32_t beyond = 0;
  for (std::size_t i = 0; i < size; ++i) beyond |= last_[i] - computed_[i];
  if (beyond >= 0) return -1;  // no difference is negative
  std::size_t at = 0;
  while (computed_[at] <= last_[at]) ++at;
  return static_cast<Place>(at);
}

std::int64_t DraftGroup::Due() const {
  const auto tokens = static_cast<std::int32_t>(1 + drafts_);
  std::int32_t due = 0;
  for (std::size_t i = 0; i < ids_.size(); ++i) due += computed_[i] + tokens > room_[i] ? 1 : 0;
  return due;
}

std::int64_t DraftGroup::Begin() {
  const std::size_t size = ids_.size(), drafts = static_cast<std::size_t>(drafts_);
  const auto tokens = static_cast<std::int32_t>(1 + drafts_);
  const auto block = static_cast<std::int32_t>(block_size_);
  std::int32_t due = 0;
  for (std::size_t i = 0; i < size; ++i) {
    computed_[i] += tokens;
    const std::int32_t needs = computed_[i] > room_[i] ? 1 : 0;
    room_[i] += needs * block;
    due += needs;
  }
  computed_sum_ += this->size() * tokens;
  blocks_sum_ += due;
  ++steps_;
  now_.resize(size);
  std::int64_t all = 0;
  for (std::size_t i = 0; i < size && drafts > 0; ++i) {
    const std::uint64_t draw = Acceptance::DrawOf(keys_[i]);
    keys_[i] += kGolden;
    const std::uint64_t* law = laws_[i];
    std::size_t accepted = 0;
    for (std::size_t d = 0; d < drafts; ++d) accepted += draw < law[d] ? 1 : 0;
    now_[i] = static_cast<std::uint8_t>(accepted);
    all += static_cast<std::int64_t>(accepted);
  }
  return all;
}

void DraftGroup::Apply(std::size_t step, TimeNs end) {
  const std::vector<std::uint8_t>& accepted = by_step_[step];
  const auto drafts = static_cast<std::int32_t>(drafts_);
  std::int32_t rejected = 0;
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    const std::int32_t of = drafts - accepted[i];
    computed_[i] -= of;
    rejected += of;
  }
  computed_sum_ -= rejected;
  last_token_ = end;
}

const std::vector<std::int64_t>& DraftGroup::Tally(std::size_t step) {
  tally_.assign(static_cast<std::size_t>(1 + drafts_), 0);
  for (const std::uint8_t accepted : by_step_[step]) ++tally_[accepted];
  return tally_;
}

}  // namespace servecast

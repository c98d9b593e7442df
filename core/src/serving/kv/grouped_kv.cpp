// See grouped_kv.h.
#include "serving/kv/grouped_kv.h"

#include <algorithm>
#include <utility>

namespace servecast {

GroupedKv::GroupedKv(const KvPlan& plan, const Options& options, const RequestTable& requests)
    : plan_(plan), options_(options), requests_(requests), free_(options.usable_blocks) {
  const std::size_t count = groups();
  class_of_.resize(count);
  for (const bool full : {true, false}) {
    for (std::size_t g = 0; g < count; ++g) {
      const KvGroup& group = GroupAt(g);
      if ((group.kind == KvKind::kFull) != full) continue;
      const auto same = std::find_if(classes_.begin(), classes_.end(), [&](const Class& c) {
        return GroupAt(c.groups[0]).Alike(group);
      });
      const auto c = static_cast<std::size_t>(same - classes_.begin());
      if (same == classes_.end()) {
        classes_.push_back({{},
                            group.kind,
                            group.block_size,
                            group.window,
                            CeilDiv(group.window - 1, group.block_size)});
      }
      class_of_[g] = {c, classes_[c].groups.size()};
      classes_[c].groups.push_back(g);
    }
  }
  found_.resize(classes_.size());
  const bool one = count == 1;
  alignment_ = one ? GroupAt(0).block_size : plan_.groups.scheduler_block;
  rounding_ = one ? 1 : plan_.groups.scheduler_block;
  for (std::size_t g = 0; g < count && !one && prefix_caching(); ++g) {
    if (Aligns(g)) unit_ = plan_.rules.match_unit.value_or(0);
  }
  if (unit_ > 0) alignment_ = unit_, rounding_ = 1;
  blocks_.resize(2);
  blocks_[kEnds].ahead = blocks_[kEnds].behind = kEnds;
  if (options_.usable_blocks > 0) Link(kUntouched, kEnds);
  if (!prefix_caching()) return;
  const std::size_t segments =
      requests.segments.empty() ? requests.arrival.size() : requests.segments.size();
  shared_.assign(segments, false);
  again_.assign(requests.arrival.size(), false);
  for (const ContentSegment& segment : requests.segments) {
    if (segment.parent >= 0) shared_[static_cast<std::size_t>(segment.parent)] = true;
  }
  std::vector<bool> seen(segments, false);
  for (const std::int32_t segment : requests.content) {
    const auto s = static_cast<std::size_t>(segment);
    if (seen[s]) shared_[s] = true;
    seen[s] = true;
  }
}

// ---- The free list -------------------------------------------------------------------------

// Into the list before `behind`.
void GroupedKv::Link(BlockId id, BlockId behind) {
  Block& next = blocks_[static_cast<std::size_t>(behind)];
  Block& own = blocks_[static_cast<std::size_t>(id)];
  own.behind = behind;
  own.ahead = next.ahead;
  blocks_[static_cast<std::size_t>(own.ahead)].behind = id;
  next.ahead = id;
}

void GroupedKv::Unlink(BlockId id) {
  const Block& own = blocks_[static_cast<std::size_t>(id)];
  blocks_[static_cast<std::size_t>(own.ahead)].behind = own.behind;
  blocks_[static_cast<std::size_t>(own.behind)].ahead = own.ahead;
}

// A new block, from the front (rule 18).
GroupedKv::BlockId GroupedKv::Pop() {
  SERVECAST_CHECK(free_ > 0, "I4: used + free = total KV blocks");
  BlockId id = blocks_[kEnds].behind;
  if (id == kUntouched) {
    id = static_cast<BlockId>(blocks_.size());
    blocks_.emplace_back();
    if (id - kUntouched == options_.usable_blocks) Unlink(kUntouched);
  } else {
    Unlink(id);
  }
  --free_;
  ++taken_;
  Block& block = blocks_[static_cast<std::size_t>(id)];
  if (block.content) {
    ++evicted_;
    Forget(block, id);
  }
  block.refs = 1;
  return id;
}

void GroupedKv::Hold(BlockId id) {
  Block& block = blocks_[static_cast<std::size_t>(id)];
  if (block.refs++ > 0) return;
  Unlink(id);
  --free_;
}

// Rule 19, of blocks in that order.
void GroupedKv::Free(const std::vector<BlockId>& blocks) {
  BlockId front = blocks_[kEnds].behind;  // what those without content come before
  for (const BlockId id : blocks) {
    Block& block = blocks_[static_cast<std::size_t>(id)];
    if (--block.refs > 0) continue;
    ++free_;
    if (prefix_caching() && options_.contentless_first && !block.content) {
      Link(id, front);
      continue;
    }
    Link(id, kEnds);
    if (front == kEnds) front = id;
  }
}

// ---- Content -------------------------------------------------------------------------------

// Of a request's first `tokens` tokens in a group: equal for equal content, never 0.
GroupedKv::Key GroupedKv::KeyOf(RequestId request, std::int64_t tokens, std::size_t group) const {
  const Key place = (static_cast<Key>(tokens) << 8) | static_cast<Key>(group);
  if (OwnBehindImages(request, tokens)) {
    return (Key{1} << 63) | (static_cast<Key>(request) << 38) | place;
  }
  std::int32_t segment =
      requests_.content.empty() ? request : requests_.content[static_cast<std::size_t>(request)];
  while (!requests_.segments.empty()) {
    const ContentSegment& content = requests_.segments[static_cast<std::size_t>(segment)];
    if (content.parent < 0 || tokens > content.shared_tokens) break;
    segment = content.parent;
  }
  return (static_cast<Key>(segment) << 38) | place;
}

// Whether a request may find something: of others, or what it left when it was preempted.
bool GroupedKv::Asked(RequestId request) const {
  if (unit_ > 0) return true;  // an entry that moved is in no table
  if (again_[static_cast<std::size_t>(request)]) return true;
  const std::int32_t segment =
      requests_.content.empty() ? request : requests_.content[static_cast<std::size_t>(request)];
  if (shared_[static_cast<std::size_t>(segment)]) return true;
  return !requests_.segments.empty() &&
         requests_.segments[static_cast<std::size_t>(segment)].parent >= 0;
}

// Of several copies the one that was registered first (rule 17).
GroupedKv::BlockId GroupedKv::Find(Key key) const {
  const auto at = named_.find(key);
  return at == named_.end() ? kNone : at->second;
}

void GroupedKv::Name(BlockId id, Key key) {
  Block& block = blocks_[static_cast<std::size_t>(id)];
  block.key = key;
  block.copy = kNone;
  const auto [at, is_new] = named_.try_emplace(key, id);
  if (is_new) return;
  BlockId last = at->second;
  while (blocks_[static_cast<std::size_t>(last)].copy != kNone) {
    last = blocks_[static_cast<std::size_t>(last)].copy;
  }
  blocks_[static_cast<std::size_t>(last)].copy = id;
}

void GroupedKv::Forget(Block& block, BlockId id) {
  block.content = false;
  if (block.key == 0) return;
  const auto at = named_.find(block.key);
  if (at->second == id) {
    if (block.copy == kNone) {
      named_.erase(at);
    } else {
      at->second = block.copy;
    }
  } else {
    BlockId before = at->second;
    while (blocks_[static_cast<std::size_t>(before)].copy != id) {
      before = blocks_[static_cast<std::size_t>(before)].copy;
    }
    blocks_[static_cast<std::size_t>(before)].copy = block.copy;
  }
  block.key = 0;
  block.copy = kNone;
}

// ---- Looking up ----------------------------------------------------------------------------

// The blocks of a position, if all groups of the class have one.
bool GroupedKv::FindAll(const Class& c, RequestId request, std::int64_t position, Found& found) {
  return FindAt(c, request, (position + 1) * c.block_size, found);
}

// Likewise of the position in which the first `tokens` tokens end, as it was with them.
bool GroupedKv::FindAt(const Class& c, RequestId request, std::int64_t tokens, Found& found) {
  const std::int64_t position = (tokens - 1) / c.block_size;
  scratch_.clear();
  for (const std::size_t g : c.groups) {
    const BlockId id = Find(KeyOf(request, tokens, g));
    if (id == kNone) return false;
    scratch_.push_back(id);
  }
  for (std::size_t i = 0; i < scratch_.size(); ++i) {
    found.blocks[i][static_cast<std::size_t>(position)] = scratch_[i];
  }
  return true;
}

void GroupedKv::SearchFull(const Class& c, RequestId request, std::int64_t length, Found& found) {
  const std::int64_t b = c.block_size, most = length / b;
  while (found.positions < most && FindAll(c, request, found.positions, found)) ++found.positions;
  while (found.positions * b % alignment_ != 0) --found.positions;
  if (unit_ == 0) return;
  const std::int64_t whole = found.positions * b;
  for (std::int64_t t = std::min(length, whole + b - 1) / unit_ * unit_; t > whole; t -= unit_) {
    if (!FindAt(c, request, t, found)) continue;
    found.tokens = t;
    return;
  }
}

void GroupedKv::SearchWindow(const Class& c, RequestId request, std::int64_t most, Found& found) {
  std::int64_t run = 0;
  for (std::int64_t i = most - 1; i >= 0; --i) {
    if (!FindAll(c, request, i, found)) {
      run = 0;
      continue;
    }
    if (run == 0 && (i + 1) * c.block_size % alignment_ != 0) continue;
    if (++run < c.run) continue;
    found.positions = i + run;
    for (std::vector<BlockId>& blocks : found.blocks) {
      std::fill_n(blocks.begin(), i, kNone);
    }
    return;
  }
  found.positions = run;  // from the beginning on, however short
  while (found.positions * c.block_size % alignment_ != 0) --found.positions;
}

void GroupedKv::SearchChunk(const Class& c, RequestId request, std::int64_t length, Found& found) {
  found.positions = length / c.window * c.window / c.block_size;  // given up without looking
  while (found.positions < length / c.block_size && FindAll(c, request, found.positions, found)) {
    ++found.positions;
  }
}

void GroupedKv::SearchState(const Class& c, RequestId request, std::int64_t length, Found& found) {
  const std::int64_t step = unit_ > 0 ? unit_ : c.block_size;
  for (std::int64_t t = length / step * step; t > 0; t -= step) {
    if (t % alignment_ != 0 || !FindAt(c, request, t, found)) continue;
    found.tokens = t;
    return;
  }
}

// What the class serves of `length` tokens.
std::int64_t GroupedKv::Serve(std::size_t number, RequestId request, std::int64_t length) {
  const Class& c = classes_[number];
  Found& found = found_[number];
  const std::int64_t most = length / c.block_size;
  if (c.kind == KvKind::kFull && found.asked) {
    found.tokens = std::min(found.tokens, unit_ > 0 ? length : most * c.block_size);
    found.positions = CeilDiv(found.tokens, c.block_size);
    return found.tokens;
  }
  found.tokens = found.positions = 0;
  found.asked = true;
  found.blocks.resize(c.groups.size());
  for (std::vector<BlockId>& blocks : found.blocks) {
    blocks.assign(static_cast<std::size_t>(CeilDiv(length, c.block_size)), kNone);
  }
  switch (c.kind) {
    case KvKind::kFull:
      SearchFull(c, request, length, found);
      break;
    case KvKind::kSliding:
      SearchWindow(c, request, most, found);
      break;
    case KvKind::kChunked:
      SearchChunk(c, request, length, found);
      break;
    case KvKind::kState:
      SearchState(c, request, length, found);
      break;
    case KvKind::kCross:
      break;
  }
  if (found.tokens == 0) found.tokens = found.positions * c.block_size;
  found.positions = CeilDiv(found.tokens, c.block_size);
  return found.tokens;
}

const GroupedKv::Hit& GroupedKv::LookUp(RequestId request, std::int64_t known) {
  hit_ = {};
  for (Found& found : found_) found.asked = false, found.tokens = found.positions = 0;
  if (!prefix_caching() || !Asked(request)) return hit_;
  const bool one_round = classes_.size() == 2 && classes_[0].kind == KvKind::kFull;
  std::int64_t longest = 0, length = known - 1;
  for (bool again = true; again;) {
    const std::int64_t before = length;
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      length = Serve(c, request, length);
      longest = std::max(longest, length);
    }
    again = length < before && !one_round && classes_.size() > 1;
  }
  for (std::size_t c = 0; c < classes_.size(); ++c) {  // full attention serves more than the rest
    const std::int64_t b = classes_[c].block_size;
    found_[c].positions =
        std::min(found_[c].positions, unit_ > 0 ? CeilDiv(length, b) : length / b);
  }
  hit_.tokens = length;
  hit_.junction = longest > length ? longest : 0;
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    if (classes_[c].kind != KvKind::kState || found_[c].positions == 0) continue;
    for (const std::size_t g : classes_[c].groups) {
      const Key key = KeyOf(request, length, g);
      const bool fresh = std::find(fresh_.begin(), fresh_.end(), key) != fresh_.end();
      hit_.fresh_state = hit_.fresh_state || fresh;
    }
  }
  return hit_;
}

const std::vector<GroupedKv::BlockId>& GroupedKv::FoundOf(std::size_t group) const {
  const auto [c, place] = class_of_[group];
  return found_[c].blocks[place];
}

// ---- Counting ------------------------------------------------------------------------------

std::int64_t GroupedKv::Passed(std::size_t g, std::int64_t computed) const {
  const KvGroup& group = GroupAt(g);
  switch (group.kind) {
    case KvKind::kSliding:
      return std::max<std::int64_t>(0, computed - group.window + 1);
    case KvKind::kChunked:
      return computed / group.window * group.window;
    case KvKind::kState:
      return std::max<std::int64_t>(0, computed - 1);
    case KvKind::kFull:
    case KvKind::kCross:
      break;
  }
  return 0;
}

// Of a group in which the table has so many positions.
std::int64_t GroupedKv::Needed(std::size_t g, std::int64_t positions, std::int64_t tokens) const {
  const std::int64_t more =
      std::max<std::int64_t>(0, CeilDiv(tokens, GroupAt(g).block_size) - positions);
  return Aligns(g) ? std::min<std::int64_t>(more, 1) : more;
}

std::int64_t GroupedKv::NeededToAdmit(std::int64_t tokens, bool capped) const {
  std::int64_t needed = 0;
  for (std::size_t g = 0; g < groups(); ++g) {
    const KvGroup& group = GroupAt(g);
    const bool inside = EndsInside(g);
    const std::int64_t positions = hit_.tokens / group.block_size + (inside ? 1 : 0);
    const std::int64_t passed = Passed(g, hit_.tokens) / group.block_size;
    std::int64_t blocks = CeilDiv(tokens, group.block_size);
    if (capped) blocks = std::min(blocks, group.Cap(plan_.rules).value_or(blocks));
    blocks = std::max<std::int64_t>(0, blocks - std::max(passed, positions));
    needed += Aligns(g) ? std::min<std::int64_t>(blocks, 1) : blocks;
    if (inside) ++needed;
    if (positions == 0) continue;
    const std::vector<BlockId>& found = FoundOf(g);
    for (std::int64_t i = passed; i < positions; ++i) {
      const BlockId id = found[static_cast<std::size_t>(i)];
      if (id != kNone && blocks_[static_cast<std::size_t>(id)].refs == 0) ++needed;
    }
  }
  return needed;
}

std::int64_t GroupedKv::Needed(const Table& table, std::int64_t computed,
                               std::int64_t tokens) const {
  std::int64_t needed = 0;
  for (std::size_t g = 0; g < groups(); ++g) {
    const Table::OfGroup& own = table.groups[g];
    needed += Needed(g, static_cast<std::int64_t>(own.blocks.size()), tokens);
    if (KeepsInside(g, own, computed)) needed += 2;  // though only one is taken
  }
  return needed;
}

// ---- Giving up and taking ------------------------------------------------------------------

void GroupedKv::GiveUp(Table& table, RequestId request, std::int64_t computed) {
  // Behind it its blocks are in no table, and findable should it be preempted.
  const auto release = [&](BlockId& id, std::size_t g, std::int64_t position) {
    const Block& block = blocks_[static_cast<std::size_t>(id)];
    if (block.content && block.key == 0) {
      Name(id, KeyOf(request, (position + 1) * GroupAt(g).block_size, g));
    }
    scratch_.push_back(std::exchange(id, kNone));
  };
  for (std::size_t g = 0; g < groups(); ++g) {
    Table::OfGroup& own = table.groups[g];
    const std::int64_t b = GroupAt(g).block_size;
    const auto size = static_cast<std::int64_t>(own.blocks.size());
    std::int64_t i = std::min(Passed(g, computed) / b, size) - 1;
    scratch_.clear();
    for (; i >= 0; --i) {
      BlockId& id = own.blocks[static_cast<std::size_t>(i)];
      if (id == kNone) {
        if (options_.frees_across_gaps && Aligns(g)) continue;
        break;
      }
      release(id, g, i);
    }
    if (!scratch_.empty()) Free(scratch_);
    if (own.last_state < 0 || own.last_state >= CeilDiv(computed, b) - 1) continue;
    BlockId& id = own.blocks[static_cast<std::size_t>(own.last_state)];
    if (id == kNone) continue;
    scratch_.clear();
    release(id, g, own.last_state);
    Free(scratch_);
  }
}

void GroupedKv::TakeOf(std::size_t g, Table::OfGroup& own, std::int64_t tokens) {
  const std::int64_t last = CeilDiv(tokens, GroupAt(g).block_size);
  const auto size = static_cast<std::int64_t>(own.blocks.size());
  if (last <= size) return;
  if (Aligns(g)) {
    if (size > 0) own.last_state = size - 1;
    own.blocks.resize(static_cast<std::size_t>(last - 1), kNone);
    own.blocks.push_back(Pop());
    return;
  }
  for (std::int64_t i = size; i < last; ++i) own.blocks.push_back(Pop());
}

bool GroupedKv::KeepsInside(std::size_t g, const Table::OfGroup& own, std::int64_t computed) const {
  const std::int64_t b = GroupAt(g).block_size;
  if (unit_ == 0 || !Aligns(g) || computed % b == 0) return false;
  const auto position = static_cast<std::size_t>(computed / b);
  if (position >= own.blocks.size() || own.blocks[position] == kNone) return false;
  return blocks_[static_cast<std::size_t>(own.blocks[position])].content;
}

// The entry goes to a new block, the request stays on its own.
void GroupedKv::MoveInside(std::size_t g, const Table::OfGroup& own, std::int64_t computed) {
  if (!KeepsInside(g, own, computed)) return;
  const BlockId id = own.blocks[static_cast<std::size_t>(computed / GroupAt(g).block_size)];
  const BlockId copy = Pop();
  Block& block = blocks_[static_cast<std::size_t>(id)];
  const Key key = block.key;
  Forget(block, id);
  blocks_[static_cast<std::size_t>(copy)].content = true;
  Name(copy, key);
  fresh_.push_back(key);
  ++block.refs;
  copies_.emplace_back(id, copy);
}

void GroupedKv::EndCall() {
  for (const auto& [original, copy] : copies_) Free({original, copy});
  copies_.clear();
}

void GroupedKv::Take(Table& table, std::int64_t computed, std::int64_t tokens) {
  for (std::size_t g = 0; g < groups(); ++g) MoveInside(g, table.groups[g], computed);
  for (std::size_t g = 0; g < groups(); ++g) TakeOf(g, table.groups[g], tokens);
}

void GroupedKv::Admit(Table& table, std::int64_t tokens) {
  table.groups.resize(groups());
  for (std::size_t g = 0; g < groups(); ++g) {
    Table::OfGroup& own = table.groups[g];
    const std::int64_t b = GroupAt(g).block_size, whole = hit_.tokens / b;
    const std::int64_t positions = whole + (EndsInside(g) ? 1 : 0);
    own.blocks.assign(static_cast<std::size_t>(positions), kNone);
    own.registered = whole;
    own.last_state = -1;
    if (positions == 0) continue;
    const std::vector<BlockId>& found = FoundOf(g);
    for (std::int64_t i = Passed(g, hit_.tokens) / b; i < positions; ++i) {
      const BlockId id = found[static_cast<std::size_t>(i)];
      own.blocks[static_cast<std::size_t>(i)] = id;
      if (id != kNone) Hold(id);
    }
  }
  for (std::size_t g = 0; g < groups(); ++g) {
    if (!EndsInside(g)) continue;
    BlockId& last = table.groups[g].blocks.back();
    const BlockId copy = Pop();
    ++blocks_[static_cast<std::size_t>(copy)].refs;
    copies_.emplace_back(last, copy);
    last = copy;
  }
  for (std::size_t g = 0; g < groups(); ++g) TakeOf(g, table.groups[g], tokens);
}

// ---- Registering and releasing -------------------------------------------------------------

void GroupedKv::RegisterOf(std::size_t g, Table::OfGroup& own, RequestId request,
                           std::int64_t tokens) {
  const std::int64_t b = GroupAt(g).block_size, full = tokens / b;
  if (full <= own.registered) return;
  const Class& c = classes_[class_of_[g].first];
  const std::int64_t period = plan_.groups.scheduler_block / b;
  const bool masked = GroupAt(g).kind == KvKind::kSliding && rounding_ > 1 && c.run < period;
  const bool named = Asked(request);
  for (std::int64_t i = own.registered; i < full; ++i) {
    const BlockId id = own.blocks[static_cast<std::size_t>(i)];
    if (id == kNone || (masked && i % period < period - c.run)) continue;
    Block& block = blocks_[static_cast<std::size_t>(id)];
    if (block.content && unit_ > 0) Forget(block, id);  // of an entry inside it
    if (block.content) continue;
    block.content = true;
    if (!named) continue;
    Name(id, KeyOf(request, (i + 1) * b, g));
    if (GroupAt(g).kind == KvKind::kState) fresh_.push_back(block.key);
  }
  own.registered = full;
}

void GroupedKv::Register(Table& table, RequestId request, std::int64_t tokens) {
  if (!prefix_caching()) return;
  const std::int64_t rounded = tokens / rounding_ * rounding_;
  for (std::size_t g = 0; g < groups(); ++g) RegisterOf(g, table.groups[g], request, rounded);
}

void GroupedKv::RegisterInside(Table& table, RequestId request, std::int64_t computed,
                               std::int64_t tokens) {
  if (unit_ == 0) return;
  const std::int64_t prompt = requests_.prompt_tokens[static_cast<std::size_t>(request)];
  const std::int64_t end = prompt / unit_ * unit_;
  if (tokens < end) return;
  for (std::size_t g = 0; g < groups(); ++g) {
    const KvGroup& group = GroupAt(g);
    const bool state = group.kind == KvKind::kState, full = group.kind == KvKind::kFull;
    if ((!state && !full) || end % group.block_size == 0) continue;
    // The copy of a hit that ends there is registered, too.
    if (state ? tokens != end : computed > end) continue;
    const BlockId id = table.groups[g].blocks[static_cast<std::size_t>(end / group.block_size)];
    if (id == kNone || blocks_[static_cast<std::size_t>(id)].content) continue;
    blocks_[static_cast<std::size_t>(id)].content = true;
    Name(id, KeyOf(request, end, g));
    if (state) fresh_.push_back(blocks_[static_cast<std::size_t>(id)].key);
  }
}

void GroupedKv::Release(Table& table, RequestId request, bool asks_again) {
  const bool names = asks_again && prefix_caching() && !Asked(request);
  if (names) again_[static_cast<std::size_t>(request)] = true;
  for (std::size_t g = 0; g < groups(); ++g) {
    Table::OfGroup& own = table.groups[g];
    const std::int64_t b = GroupAt(g).block_size;
    scratch_.clear();
    for (std::size_t i = own.blocks.size(); i > 0; --i) {
      const BlockId id = own.blocks[i - 1];
      if (id == kNone) continue;
      if (names && blocks_[static_cast<std::size_t>(id)].content) {
        Name(id, KeyOf(request, static_cast<std::int64_t>(i) * b, g));
      }
      scratch_.push_back(id);
    }
    Free(scratch_);
    own.blocks.clear();
    own.registered = 0;
    own.last_state = -1;
  }
}

std::int64_t GroupedKv::NextChange(std::int64_t computed, std::int64_t in_flight) const {
  std::int64_t next = INT64_MAX;
  // The first above `computed` that is `rest` more than a multiple of `period`.
  const auto at = [&](std::int64_t rest, std::int64_t period) {
    const std::int64_t behind = ((rest - computed - 1) % period + period) % period;
    next = std::min(next, computed + 1 + behind);
  };
  for (std::size_t g = 0; g < groups(); ++g) {
    const KvGroup& group = GroupAt(g);
    const std::int64_t b = group.block_size;
    at(0, b);                                    // takes a block
    if (prefix_caching()) at(in_flight - 1, b);  // registers one
    if (group.kind == KvKind::kSliding) at(in_flight + group.window - 1, b);
    if (group.kind == KvKind::kChunked) at(in_flight, group.window);
    if (group.kind == KvKind::kState) at(in_flight + 1, b);
  }
  for (std::int64_t i = 0; unit_ > 0 && i < 3; ++i) at(i, unit_);  // an entry inside it moves
  return next;
}

std::int64_t GroupedKv::Held(const Table::OfGroup& group) {
  return static_cast<std::int64_t>(std::count_if(group.blocks.begin(), group.blocks.end(),
                                                 [](BlockId id) { return id != kNone; }));
}

}  // namespace servecast

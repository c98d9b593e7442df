// See block_tree.h.
#include "serving/trtllm/block_tree.h"

#include <algorithm>

namespace servecast {

BlockTree::BlockTree(const Options& options, const RequestTable& requests)
    : options_(options),
      requests_(requests),
      sequences_(static_cast<std::size_t>(options.sequences)),
      free_(options.blocks) {}

// ---- Texts -----------------------------------------------------------------------------------

void BlockTree::ReadText(RequestId request, std::int64_t tokens) {
  length_ = tokens;
  text_.clear();
  std::int32_t segment =
      requests_.content.empty() ? request : requests_.content[static_cast<std::size_t>(request)];
  for (std::int64_t to = tokens; to > 0;) {
    const ContentSegment content = Content(segment);
    const std::int64_t from = std::min<std::int64_t>(content.shared_tokens, to);
    if (from < to) text_.push_back({segment, from, to});
    to = from;
    segment = content.parent;
  }
}

std::int32_t BlockTree::SegmentAt(std::int64_t place) const {
  for (const Part& part : text_) {
    if (place >= part.from) return part.segment;
  }
  return -1;
}

// Never 0.
std::uint64_t BlockTree::NameAt(std::int64_t place) const {
  const auto segment = static_cast<std::uint64_t>(SegmentAt(place)) + 1;
  return segment << 32U | static_cast<std::uint64_t>(place);
}

// Up to where a stored block's text is the one that was read: to where the deepest segment that
// both have ends in one of them.
std::int64_t BlockTree::SharedUpTo(const Block& block) const {
  std::int64_t to = block.end;
  for (std::int32_t segment = block.segment; to > 0; segment = Content(segment).parent) {
    const std::int64_t from = std::min<std::int64_t>(Content(segment).shared_tokens, to);
    for (const Part& part : text_) {
      if (part.segment == segment && from < to) return std::min(part.to, to);
    }
    to = from;
  }
  return 0;
}

// Of those below `parent` the one that has the most of tokens [from, to), the oldest of equals; if
// nothing may be copied, of those that can be taken over (rule 44).
BlockTree::BlockId BlockTree::FindLongest(BlockId parent, std::int64_t from, std::int64_t to,
                                          std::int64_t& longest) {
  const std::int32_t head = heads_.Find(NameAt(from));
  longest = 0;
  if (head < 0) return kNone;
  BlockId found = kNone;
  for (BlockId id = cousins_[static_cast<std::size_t>(head)].first; id != kNone;
       id = At(id).cousin.after) {
    const Block& block = At(id);
    if (block.parent != parent) continue;
    if (!options_.copies && (block.users > 0 || block.children.first != kNone)) continue;
    const std::int64_t tokens = std::min(SharedUpTo(block), to) - from;
    if (tokens > longest) {
      longest = tokens;
      found = id;
    }
    if (longest == to - from) break;
  }
  return found;
}

BlockTree::Found BlockTree::Find(RequestId request, std::int64_t tokens) {
  const std::int64_t size = options_.block_size;
  Found found;
  ReadText(request, tokens / size * size);
  for (std::int64_t end = size; end <= length_; end += size) {
    const BlockId id = FindExact(end);
    if (id == kNone) {
      found.first_new = NameAt(end - 1);
      break;
    }
    ++found.all;
    found.used += At(id).users > 0 ? 1 : 0;
  }
  walked_ += found.all + 1;
  return found;
}

// ---- Lists -----------------------------------------------------------------------------------

void BlockTree::Append(List& list, Link Block::*link, BlockId id) {
  At(id).*link = {list.last, kNone};
  (list.last == kNone ? list.first : (At(list.last).*link).after) = id;
  list.last = id;
}

void BlockTree::Remove(List& list, Link Block::*link, BlockId id) {
  const Link at = At(id).*link;
  (at.before == kNone ? list.first : (At(at.before).*link).after) = at.after;
  (at.after == kNone ? list.last : (At(at.after).*link).before) = at.before;
}

void BlockTree::Enqueue(BlockId id) {
  At(id).queued = true;
  ++free_;
  Append(queue_, &Block::queue, id);
}

void BlockTree::Dequeue(BlockId id) {
  if (!At(id).queued) return;
  At(id).queued = false;
  --free_;
  Remove(queue_, &Block::queue, id);
}

// ---- The tree --------------------------------------------------------------------------------

// A new one where there was none.
BlockTree::List& BlockTree::CousinsOf(std::uint64_t head) {
  std::int32_t at = heads_.Find(head);
  if (at < 0) {
    if (no_head_.empty()) {
      no_head_.push_back(static_cast<std::int32_t>(cousins_.size()));
      cousins_.emplace_back();
    }
    at = no_head_.back();
    no_head_.pop_back();
    heads_.Insert(head, at);
  }
  return cousins_[static_cast<std::size_t>(at)];
}

// REQUIRES: the text has been read, nothing is stored there.
void BlockTree::Place(BlockId id, BlockId parent, std::int64_t from, std::int64_t to) {
  Block& block = At(id);
  block.parent = parent;
  block.segment = SegmentAt(to - 1);
  block.end = to;
  block.head = NameAt(from);
  stored_.Insert(NameAt(to - 1), id);
  Append(ChildrenOf(parent), &Block::sibling, id);
  Append(CousinsOf(block.head), &Block::cousin, id);
}

void BlockTree::Unplace(BlockId id) {
  Block& block = At(id);
  if (block.parent == kNone) return;
  const auto segment = static_cast<std::uint64_t>(block.segment) + 1;
  stored_.Erase(segment << 32U | static_cast<std::uint64_t>(block.end - 1));
  List& cousins = CousinsOf(block.head);
  Remove(cousins, &Block::cousin, id);
  if (cousins.first == kNone) {
    no_head_.push_back(heads_.Find(block.head));
    heads_.Erase(block.head);
  }
  Remove(ChildrenOf(block.parent), &Block::sibling, id);
  block.parent = kNone;
}

// All that lies below a block, and it (rule 40).
void BlockTree::UnplaceBelow(BlockId id) {
  below_.assign(1, id);
  for (std::size_t i = 0; i < below_.size(); ++i) {
    for (BlockId child = At(below_[i]).children.first; child != kNone;
         child = At(child).sibling.after) {
      below_.push_back(child);
    }
  }
  for (; !below_.empty(); below_.pop_back()) Unplace(below_.back());
}

// The front of the free queue. Where it is empty TensorRT-LLM would stop with an error, as blocks
// that are copied in this step are not in it; here one of those is taken, as if it was not copied.
BlockTree::BlockId BlockTree::Take(SequenceId sequence) {
  // Those that were never taken stand before all others.
  if (static_cast<std::int64_t>(blocks_.size()) < options_.blocks) {
    blocks_.emplace_back().queued = false;
    --free_;
    return Mark(static_cast<BlockId>(blocks_.size() - 1), sequence);
  }
  while (queue_.first == kNone && !lent_.empty()) {
    const BlockId lent = lent_.back();
    lent_.pop_back();
    if (At(lent).users == 0 && !At(lent).in_full && !At(lent).queued) Enqueue(lent);
  }
  const BlockId id = queue_.first;
  SERVECAST_CHECK(id != kNone, "I4: used + free = total KV blocks");
  Dequeue(id);
  if (At(id).parent != kNone) {
    ++evicted_;
    UnplaceBelow(id);
  }
  return Mark(id, sequence);
}

BlockTree::BlockId BlockTree::Mark(BlockId id, SequenceId sequence) {
  Block& block = At(id);
  if (block.taker >= 0 && block.taker != sequence) {  // rule 57
    Sequence& taker = Of(block.taker);
    if (taker.alive && taker.request == block.taker_request) taker.may_store = false;
  }
  block.taker = sequence;
  block.taker_request = Of(sequence).request;
  return id;
}

void BlockTree::Hold(Sequence& sequence, BlockId id) {
  ++At(id).users;
  sequence.blocks.push_back(id);
}

// ---- Admission (rules 43 to 45) --------------------------------------------------------------

void BlockTree::ClaimFull(BlockId id, Plan& plan) {
  Dequeue(id);
  Block& block = At(id);
  if (block.step != steps_) {
    block.step = steps_;
    block.chooser = -1;
  }
  block.in_full = true;
  plan.matches.push_back({id, false, false, block.users > 0});
}

void BlockTree::ClaimPart(BlockId id, std::int64_t number, Plan& plan) {
  Block& block = At(id);
  const bool held = block.users > 0;
  const bool busy = held || block.children.first != kNone;
  if (!held) {
    Dequeue(id);
    if (block.step != steps_) {
      block.step = steps_;
      block.in_full = false;
    }
    block.chooser = number;
    if (busy) lent_.push_back(id);
  }
  plan.matches.push_back({id, true, busy, held});
}

// Looks up all but the last token, and takes what is found out of the free queue.
void BlockTree::Claim(Admission& admission, std::int64_t number, Plan& plan) {
  const std::int64_t size = options_.block_size;
  ReadText(admission.request, admission.tokens - 1);
  BlockId parent = kRoot;
  for (std::int64_t from = 0; from < length_; from += size) {
    const std::int64_t to = std::min(from + size, length_);
    const BlockId exact = FindExact(to);
    if (exact != kNone && to - from == size) {
      ClaimFull(exact, plan);
      admission.reused += size;
      parent = exact;
      continue;
    }
    std::int64_t tokens = to - from;
    const BlockId part =
        exact != kNone || !options_.partial ? exact : FindLongest(parent, from, to, tokens);
    if (part == kNone) return;
    ClaimPart(part, number, plan);
    admission.reused += tokens;
    return;
  }
}

void BlockTree::TakeMatched(Admission& admission, std::int64_t number, const Match& match) {
  Sequence& sequence = Of(admission.sequence);
  if (!match.partial) return Hold(sequence, match.block);
  const bool last = !match.held && !At(match.block).in_full && At(match.block).chooser == number;
  if (!match.busy && last) {
    Unplace(match.block);
    return Hold(sequence, match.block);
  }
  Hold(sequence, Take(admission.sequence));
  const Block& block = At(match.block);
  if (last && block.users == 0 && !block.queued) Enqueue(match.block);
}

void BlockTree::Admit(std::vector<Admission>& admissions) {
  ++steps_;
  if (plans_.size() < admissions.size()) plans_.resize(admissions.size());
  for (std::size_t i = 0; i < admissions.size(); ++i) {
    Admission& admission = admissions[i];
    Sequence& sequence = Of(admission.sequence);
    sequence.request = admission.request;
    sequence.alive = sequence.may_store = true;
    plans_[i].matches.clear();
    Claim(admission, static_cast<std::int64_t>(i), plans_[i]);
  }
  for (std::size_t i = 0; i < admissions.size(); ++i) {
    Admission& admission = admissions[i];
    Sequence& sequence = Of(admission.sequence);
    for (const Match& match : plans_[i].matches) {
      TakeMatched(admission, static_cast<std::int64_t>(i), match);
    }
    const auto blocks = static_cast<std::size_t>(CeilDiv(admission.tokens, options_.block_size));
    while (sequence.blocks.size() < blocks) Hold(sequence, Take(admission.sequence));
  }
  lent_.clear();
}

// ---- Sequences -------------------------------------------------------------------------------

void BlockTree::Grow(SequenceId sequence) { Hold(Of(sequence), Take(sequence)); }

// Rule 55, of the text that was read.
void BlockTree::Put(const Sequence& sequence, std::int64_t tokens) {
  const std::int64_t size = options_.block_size;
  walked_ += CeilDiv(tokens, size);
  BlockId parent = kRoot;
  bool walks = true;
  for (std::int64_t from = 0, i = 0; from < tokens; from += size, ++i) {
    const std::int64_t to = std::min(from + size, tokens);
    const BlockId there = walks ? FindExact(to) : kNone;
    if (there != kNone) {
      parent = there;
      continue;
    }
    walks = false;
    const BlockId id = sequence.blocks[static_cast<std::size_t>(i)];
    UnplaceBelow(id);
    Place(id, parent, from, to);
    parent = id;
  }
}

void BlockTree::Store(SequenceId id, std::int64_t computed) {
  const std::int64_t whole = computed / options_.block_size * options_.block_size;
  ReadText(Of(id).request, whole);
  Put(Of(id), whole);
}

void BlockTree::Release(SequenceId id, std::int64_t computed) {
  Sequence& sequence = Of(id);
  if (sequence.may_store) {
    ReadText(sequence.request, computed);
    Put(sequence, computed);
  }
  for (; !sequence.blocks.empty(); sequence.blocks.pop_back()) {
    if (--At(sequence.blocks.back()).users == 0) Enqueue(sequence.blocks.back());
  }
  sequence.alive = false;
}

std::int64_t BlockTree::FreedBy(SequenceId victim) {
  std::int64_t freed = 0;
  for (const BlockId id : Of(victim).blocks) {
    Block& block = At(id);
    if (block.round != victims_round_) {
      block.round = victims_round_;
      block.left = block.users;
    }
    freed += --block.left == 0 ? 1 : 0;
  }
  return freed;
}

}  // namespace servecast

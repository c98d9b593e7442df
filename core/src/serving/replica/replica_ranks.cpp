// Steps of several ranks of attention data parallelism in lock step: a step is over when its
// slowest rank is, and each rank is recorded as a replica that was busy all that time.
#include <algorithm>

#include "serving/replica/replica.h"

namespace servecast {
namespace {

std::int64_t TokensOf(std::span<const PrefillChunk> chunks) {
  std::int64_t tokens = 0;
  for (const PrefillChunk& chunk : chunks) tokens += chunk.tokens;
  return tokens;
}

}  // namespace

StepPrice Replica::PriceRanks(bool with_prefills) {
  const std::span<const PrefillChunk> chunks(plan_.chunks);
  std::int64_t tokens = with_prefills ? TokensOf(chunks) : 0;
  for (const RankPlan& rank : plan_.ranks) tokens += rank.shape.decode_seqs;
  StepPrice slowest;
  std::size_t first = 0;
  for (RankPlan& rank : plan_.ranks) {
    rank.shape.prefill = {};
    if (with_prefills) rank.shape.prefill = chunks.subspan(first, rank.chunks);
    first += rank.chunks;
    rank.shape.group_tokens = tokens;
    const StepPrice price = in_.latency.Price(rank.shape);
    if (price.duration > slowest.duration) slowest = price;
  }
  return slowest;
}

// REQUIRES: it is priced, with its prefills.
void Replica::CountRanks(Step& step) {
  step.ranks.clear();
  for (const RankPlan& rank : plan_.ranks) {
    RankStep& own = step.ranks.emplace_back();
    own.bound = step.bound;
    const std::int64_t decodes = rank.shape.decode_seqs - rank.dummies;
    own.levels = {rank.running,           rank.kv_blocks,
                  rank.shape.decode_seqs, rank.shape.decode_context_tokens + rank.shape.decode_seqs,
                  rank.kv_unused,         0};
    if (rank.chunks == 0) continue;
    bool samples = decodes > 0;
    for (const PrefillChunk& chunk : rank.shape.prefill) {
      own.prefill.pairs += PairsOf(chunk);
      own.prefill.keys += chunk.context + chunk.tokens;
      samples = samples || chunk.samples;
    }
    own.prefill.without_head = samples ? 0 : kStepUnit;
    own.levels.batch_tokens += TokensOf(rank.shape.prefill);
  }
  step.ranks.front().levels.in_turn = plan_.in_turn;
}

void Replica::RecordRanks(const Step& step, std::int64_t tokens) {
  for (const RankStep& rank : step.ranks) {
    in_.recorder->Step(std::max(step.start, recorded_until_), step.end, rank.levels,
                       &rank == &step.ranks.front() ? tokens : 0, rank.bound, step.blocked,
                       rank.prefill);
  }
}

}  // namespace servecast

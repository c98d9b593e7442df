// The reference in three parts: the KV block pool, the scheduler (one call: who computes how many
// tokens now), and the driver that passes time between calls and writes down what happened.
#include "testing/reference_sim.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <list>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "testing/reference_drafts.h"
#include "testing/reference_encoder.h"
#include "testing/reference_order.h"
#include "testing/reference_slow.h"
#include "testing/reference_stalls.h"
#include "testing/reference_take_up.h"

namespace servecast::testing {
namespace {

// What a full KV block holds: block `index` of a prompt whose tokens there are those of `segment`.
struct ContentKey {
  std::int64_t segment = 0;
  std::int64_t index = 0;

  friend bool operator<(const ContentKey& a, const ContentKey& b) {
    return std::tie(a.segment, a.index) < std::tie(b.segment, b.index);
  }
};

ContentKey KeyOf(const RequestTable& requests, RequestId id, std::int64_t index,
                 std::int64_t block_size) {
  // Without the column every request has a content of its own.
  if (requests.content.empty()) return {static_cast<std::int64_t>(id), index};
  std::int32_t segment = requests.content[static_cast<std::size_t>(id)];
  for (;;) {
    const ContentSegment& at = requests.segments[static_cast<std::size_t>(segment)];
    if ((index + 1) * block_size > at.shared_tokens) return {segment, index};
    segment = at.parent;
  }
}

// What the GPU overwrites: a list of blocks a tier, the least recently offloaded first.
class Tiers {
 public:
  Tiers(const ReferenceInput& input, ReferenceCoverage& coverage) : coverage_(coverage) {
    const KvOffloadSpec& spec = input.engine.kv_offload;
    if ((spec.cpu_gib <= 0 && spec.disk_gib <= 0) || !input.engine.enable_prefix_caching) return;
    const auto bytes = static_cast<double>(input.kv_block_bytes);
    Add(spec.cpu_gib, spec.cpu_latency_us, spec.cpu_bandwidth_gb_s, bytes);
    Add(spec.disk_gib, spec.disk_latency_us, spec.disk_bandwidth_gb_s, bytes);
    report_.on = true;
  }

  bool Any() const { return !tiers_.empty(); }
  void SetNow(TimeNs now) { now_ = now; }
  const KvOffloadReport& Report() const { return report_; }

  void Offload(const ContentKey& key) {
    ++report_.offloaded_blocks;
    for (Tier& tier : tiers_) {
      const auto at = tier.Find(key);
      if (at == tier.blocks.end()) continue;
      tier.blocks.erase(at);
      ++coverage_.offloaded_again;
    }
    Put(0, {key, now_});
  }

  bool Has(const ContentKey& key) const {
    return std::any_of(tiers_.begin(), tiers_.end(),
                       [&key](const Tier& tier) { return tier.Find(key) != tier.blocks.end(); });
  }

  // Takes the blocks of one request out; what that takes.
  TimeNs Load(const std::vector<ContentKey>& keys, bool first_admission, std::int64_t block_size) {
    TimeNs time = 0;
    int used = 0;
    for (std::size_t i = 0; i < tiers_.size(); ++i) {
      std::int64_t count = 0;
      for (const ContentKey& key : keys) {
        const auto at = tiers_[i].Find(key);
        if (at == tiers_[i].blocks.end()) continue;
        if (now_ - at->second < kNsPerMs) ++report_.thrashed_blocks;
        tiers_[i].blocks.erase(at);
        ++count;
      }
      if (count == 0) continue;
      ++used;
      if (i == 1) coverage_.disk_loads += count;
      time += static_cast<TimeNs>(std::nearbyint(
          tiers_[i].latency_ns + static_cast<double>(count) * tiers_[i].ns_per_block));
      report_.tiers[i].loaded_blocks += count;
      if (!first_admission) continue;
      report_.tiers[i].hit_blocks += count;
      report_.tiers[i].hit_tokens += count * block_size;
    }
    if (used > 1) ++coverage_.hits_of_both_tiers;
    return time;
  }

 private:
  using Entry = std::pair<ContentKey, TimeNs>;  // and when it was offloaded
  struct Tier {
    std::int64_t capacity = 0;
    double latency_ns = 0, ns_per_block = 0;
    std::list<Entry> blocks;

    std::list<Entry>::const_iterator Find(const ContentKey& key) const {
      return std::find_if(blocks.begin(), blocks.end(), [&key](const Entry& entry) {
        return !(entry.first < key) && !(key < entry.first);
      });
    }
  };

  void Add(double gib, double latency_us, double bandwidth_gb_s, double block_bytes) {
    Tier tier;
    tier.capacity = static_cast<std::int64_t>(std::floor(gib * 1024 * 1024 * 1024 / block_bytes));
    tier.latency_ns = latency_us * 1000;
    tier.ns_per_block = block_bytes / bandwidth_gb_s;
    report_.tiers[tiers_.size()].blocks = tier.capacity;
    tiers_.push_back(tier);
  }

  void Put(std::size_t i, const Entry& entry) {
    if (i == tiers_.size()) {
      ++coverage_.lost_by_tiers;
      return;
    }
    Tier& tier = tiers_[i];
    tier.blocks.push_back(entry);
    if (static_cast<std::int64_t>(tier.blocks.size()) <= tier.capacity) return;
    const Entry oldest = tier.blocks.front();
    tier.blocks.pop_front();
    Put(i + 1, oldest);
  }

  std::vector<Tier> tiers_;
  TimeNs now_ = 0;
  KvOffloadReport report_;
  ReferenceCoverage& coverage_;
};

// The blocks of a pool: who holds them, what they hold, and in which order the free ones go.
class KvPool {
 public:
  using BlockId = std::int64_t;

  KvPool(const EngineSpec& engine, std::int64_t pool_blocks, Tiers& tiers,
         ReferenceCoverage& coverage)
      : caching_(engine.enable_prefix_caching),
        contentless_first_(engine.free_contentless_first),
        offload_threshold_(engine.kv_offload.threshold),
        tiers_(tiers),
        coverage_(coverage),
        blocks_(static_cast<std::size_t>(pool_blocks)) {
    // Block 0 is reserved and never used (Settings).
    for (BlockId block = 1; block < pool_blocks; ++block) free_.push_back(block);
    usable_ = Free();
  }

  std::int64_t Usable() const { return usable_; }
  std::int64_t Free() const { return static_cast<std::int64_t>(free_.size()); }
  std::int64_t Used() const { return usable_ - Free(); }
  std::int64_t Evicted() const { return evicted_; }
  bool IsHeld(BlockId block) const { return At(block).holders > 0; }

  // Rule 18: from the front; what a block held before is gone.
  void Take(std::int64_t count, std::vector<BlockId>& holder) {
    SERVECAST_CHECK(count <= Free(), "reference: a block is taken that is not free");
    for (std::int64_t i = 0; i < count; ++i) {
      const BlockId block = free_.front();
      free_.pop_front();
      if (At(block).content) {
        ++evicted_;
        if (tiers_.Any()) {
          // With this block.
          const double in_use = static_cast<double>(Used());
          if (in_use >= offload_threshold_ * static_cast<double>(usable_)) {
            tiers_.Offload(*At(block).content);
          } else {
            ++coverage_.not_offloaded;
          }
        }
        std::vector<BlockId>& copies = cached_[*At(block).content];
        copies.erase(std::find(copies.begin(), copies.end(), block));
        At(block).content.reset();
      }
      At(block).holders = 1;
      holder.push_back(block);
    }
  }

  // A hit: one more holds it.
  void Share(BlockId block, std::vector<BlockId>& holder) {
    if (!IsHeld(block)) free_.erase(std::find(free_.begin(), free_.end(), block));
    ++At(block).holders;
    holder.push_back(block);
  }

  // What windows held has no content, and is used last.
  void ReleaseWindows(std::vector<BlockId>& holder) {
    for (const BlockId block : holder) {
      At(block).holders = 0;
      free_.push_back(block);
    }
    holder.clear();
  }

  // Rule 19: from the last block to the first; those without content to the front, if so chosen.
  void Release(std::vector<BlockId>& holder) {
    while (!holder.empty()) {
      const BlockId block = holder.back();
      holder.pop_back();
      SERVECAST_CHECK(IsHeld(block), "reference: a block is released that nobody holds");
      if (--At(block).holders > 0) continue;
      if (caching_ && contentless_first_ && !At(block).content) {
        free_.push_front(block);
      } else {
        free_.push_back(block);
      }
    }
  }

  // Rule 17: the copy that was registered first among those there are.
  std::optional<BlockId> Find(const ContentKey& key) const {
    const auto at = cached_.find(key);
    if (at == cached_.end() || at->second.empty()) return std::nullopt;
    return at->second.front();
  }

  // True when there is another copy.
  bool Register(BlockId block, const ContentKey& key) {
    SERVECAST_CHECK(!At(block).content, "reference: a block is registered twice");
    At(block).content = key;
    cached_[key].push_back(block);
    return cached_[key].size() > 1;
  }

 private:
  struct Block {
    std::int64_t holders = 0;
    std::optional<ContentKey> content;  // what it can be found by
  };

  Block& At(BlockId block) { return blocks_[static_cast<std::size_t>(block)]; }
  const Block& At(BlockId block) const { return blocks_[static_cast<std::size_t>(block)]; }

  const bool caching_;
  const bool contentless_first_;
  const double offload_threshold_;
  Tiers& tiers_;
  ReferenceCoverage& coverage_;
  std::vector<Block> blocks_;
  std::list<BlockId> free_;
  std::map<ContentKey, std::vector<BlockId>> cached_;  // copies in order of registration
  std::int64_t usable_ = 0;
  std::int64_t evicted_ = 0;
};

struct Sequence {
  RequestId id = kNoRequest;
  TimeNs arrival = 0;
  TimeNs enqueue = 0;
  TimeNs gives_up = kNever;
  bool gone = false;    // before the front end was done with it
  double priority = 0;  // what a victim is chosen by; lower is more urgent
  QueueKey queue_key;
  std::int64_t prompt = 0;
  std::int64_t asked = 0;   // output tokens that were asked for
  std::int64_t wanted = 0;  // output tokens until it ends; fewer when it is capped

  std::int64_t generated = 0;
  std::int64_t computed = 0;      // tokens whose KV is done or scheduled
  std::int64_t placeholders = 0;  // tokens sampled by steps in flight (rules 21, S22)
  std::int64_t drafts = 0;        // that wait for its next step
  std::int64_t verified = 0;      // entries of accepted drafts used up
  std::int64_t proposed = 0;      // likewise, of proposals
  std::int64_t in_flight = 0;     // steps in flight that it is a member of
  std::vector<KvPool::BlockId> blocks, windows;
  std::int64_t registered = 0;  // of `blocks`, from the first: findable
  bool running = false;
  bool prefilling = true;  // has not sampled since it was last admitted
  bool admitted = false;   // at least once
  bool preempted = false;  // since its last admission
  bool timed_out = false;
  TimeNs last_seen = -1;  // when the client saw its latest token
  TimeNs late = 0;        // by how much it sees each later, as it came last in its first step
  TimeNs preempted_at = -1;
  TimeNs last_step = 0;         // its end
  TimeNs split_until = 0;       // stages: until when its time is split
  bool was_prefilling = false;  // as it was preempted
  std::int64_t sampling = 0;    // tokens that steps in flight make for it, of a victim too
  TimeSplit spent;              // in steps so far, and between them
  TimeSplit to_first;           // of it, until its first token was made

  std::int64_t Known() const { return prompt + generated; }
};

struct Member {
  Sequence* sequence = nullptr;
  StepMember record;
  bool decode = false;
  bool padded = false;  // its drafts are no drafts (S9)
  bool yields = false;
};

struct ScheduledStep {
  std::vector<Member> members;
  std::vector<RequestId> preempted;
  TimeNs transfer = 0;  // from the tiers
  std::int64_t transfer_blocks = 0;
  std::int64_t images = 0;  // that it encodes

  std::int64_t Tokens() const {
    std::int64_t sum = 0;
    for (const Member& member : members) sum += member.record.tokens;
    return sum;
  }
};

class Scheduler {
 public:
  Scheduler(const ReferenceInput& input, const RequestTable& requests, const ReferenceOrder& order,
            std::int64_t max_len)
      : requests_(requests),
        engine_(input.engine),
        max_len_(max_len),
        staged_(input.stages != nullptr),
        windows_(input.windows),
        drafts_(engine_, requests, input.seed),
        watermark_blocks_(static_cast<std::int64_t>(
            std::floor(engine_.watermark * static_cast<double>(input.pool_blocks)))),
        fcfs_(order.InOrderOfEnqueue()),
        victim_by_priority_(order.VictimByPriority()),
        encoder_(requests, std::max(engine_.max_num_batched_tokens, input.most_image_tokens),
                 engine_.disable_chunked_mm_input),
        tiers_(input, coverage_),
        pool_(engine_, input.pool_blocks, tiers_, coverage_) {}

  void Enqueue(Sequence* sequence) {
    auto place = waiting_.end();
    if (!fcfs_) place = PlaceOf(sequence);
    waiting_.insert(place, sequence);
  }

  // One schedule call (rules 1 to 12).
  ScheduledStep Schedule(TimeNs now) {
    ScheduledStep step;
    tiers_.SetNow(now);
    registered_now_.clear();
    encoder_.Begin();
    std::int64_t budget = drafts_.Budget();
    ScheduleRunning(step, budget);
    if (step.preempted.empty()) Admit(step, budget);  // rule 11
    step.images = encoder_.Encoded();
    coverage_.encoded_images += step.images;
    if (!step.preempted.empty()) ++tokenless_calls_;
    for (Member& member : step.members) {
      Sequence& sequence = *member.sequence;
      sequence.computed += member.record.tokens;
      ++sequence.in_flight;
      // Rules 5, 21 and S8.
      member.yields = sequence.computed >= sequence.Known() + sequence.placeholders;
      if (!member.yields) continue;
      sequence.prefilling = false;
      Verify(member);
      // Of its tokens those up to its end, which steps in flight may have passed already.
      const std::int64_t left = sequence.wanted - sequence.generated - sequence.sampling;
      member.record.sampled = std::min(1 + member.record.accepted, left);
      coverage_.cut_outputs += 1 + member.record.accepted - member.record.sampled;
      if (left == 0) ++coverage_.unneeded;
      if (member.record.sampled > 0 && tokenless_calls_ < 1000) {
        tokenless_calls_ = 0;  // seen once, it holds for the run
      }
      sequence.placeholders += 1 + member.record.drafts;
      sequence.sampling += member.record.sampled;
      if (engine_.async_scheduling) {  // S22
        sequence.drafts = drafts_.AfterStepOf(static_cast<std::int64_t>(step.members.size()));
      }
    }
    return step;
  }

  // The output of a member's step is there. How many tokens of the request are known by it.
  std::int64_t Apply(const Member& member) {
    Sequence& sequence = *member.sequence;
    --sequence.in_flight;
    sequence.sampling -= member.record.sampled;
    const bool ended = sequence.generated == sequence.wanted;
    if (!member.yields && sequence.running) {
      encoder_.Passed(sequence.id, sequence.computed - sequence.placeholders);  // E5
    }
    if (!member.yields || sequence.timed_out || ended) return 0;
    const std::int64_t rejected = member.record.drafts - member.record.accepted;
    if (sequence.running) {  // S10, S23
      sequence.computed -= rejected;
      sequence.placeholders -= rejected;
    }
    std::int64_t made = 0;
    while (made < 1 + member.record.accepted && sequence.generated < sequence.wanted) {  // S11
      ++made;
      ++sequence.generated;
      if (sequence.running) --sequence.placeholders;
    }
    SERVECAST_CHECK(made == member.record.sampled, "reference: tokens as foreseen");
    if (sequence.running) {
      encoder_.Passed(sequence.id, sequence.computed - sequence.placeholders);  // E5
    }
    if (!sequence.running) {
      coverage_.stale_tokens += made;  // rule 24
    } else if (engine_.async_scheduling || !drafts_.On()) {
      const std::int64_t before = sequence.registered;
      RegisterUpTo(sequence, sequence.computed - sequence.placeholders);  // rules 23, S20
      coverage_.late_registrations += sequence.registered - before;
    }
    if (sequence.generated == sequence.wanted) {
      if (!sequence.running) ++coverage_.ended_in_queue;
      Remove(sequence);  // rule 20
    }
    return made;
  }

  // S12, after a step's outputs were applied.
  void Propose(const ScheduledStep& step) {
    if (!drafts_.On() || engine_.async_scheduling) return;
    for (const Member& member : step.members) {
      Sequence& sequence = *member.sequence;
      const bool over = sequence.timed_out || sequence.generated == sequence.wanted;
      if (!member.yields || over) continue;
      sequence.drafts = drafts_.AfterStepOf(static_cast<std::int64_t>(step.members.size()));
      if (!drafts_.HostLooksUp()) continue;
      const std::int64_t found =
          drafts_.Proposed(sequence.id, sequence.proposed++, sequence.drafts);
      sequence.drafts =
          std::max<std::int64_t>(0, std::min(found, max_len_ - sequence.Known()));  // S13
    }
  }

  // It ends: its blocks are free, or garbage, it is in no list.
  void Remove(Sequence& sequence) {
    encoder_.Drop(sequence.id);
    const std::int64_t free = pool_.Free();
    Release(sequence);
    if (engine_.gc_pass_us > 0) garbage_ += pool_.Free() - free;
    if (sequence.running) {
      running_.erase(std::find(running_.begin(), running_.end(), &sequence));
    } else {
      for (std::deque<Sequence*>* queue : {&waiting_, &aside_}) {
        const auto at = std::find(queue->begin(), queue->end(), &sequence);
        if (at != queue->end()) queue->erase(at);
      }
    }
    sequence.running = false;
  }

  const KvPool& Pool() const { return pool_; }
  const ReferenceEncoder& Encoder() const { return encoder_; }
  std::int64_t CachedTokens(const Sequence& sequence) const {
    return static_cast<std::int64_t>(LookUp(sequence).size()) * engine_.block_size;
  }
  const std::vector<Sequence*>& Running() const { return running_; }
  std::vector<Sequence*> Waiting() const {
    std::vector<Sequence*> all(aside_.begin(), aside_.end());
    all.insert(all.end(), waiting_.begin(), waiting_.end());
    return all;
  }
  ReferenceCoverage& Coverage() { return coverage_; }
  const ReferenceDrafts& Drafts() const { return drafts_; }
  const PrefixCacheReport& PrefixCache() const { return prefix_cache_; }
  std::int64_t Collections() const { return collections_; }
  const SchedulerCounts& Counts() const { return counts_; }
  std::int64_t Failures() const { return failures_; }
  // Tokens for which blocks have room, and that they do not hold.
  std::int64_t Unused() const {
    std::int64_t unused = 0;
    for (const Sequence* sequence : running_) {
      unused += static_cast<std::int64_t>(sequence->blocks.size()) * engine_.block_size -
                sequence->computed;
    }
    return unused;
  }
  const KvOffloadReport& Offload() const { return tiers_.Report(); }

 private:
  std::int64_t Blocks(std::int64_t tokens) const { return CeilDiv(tokens, engine_.block_size); }

  std::deque<Sequence*>::iterator PlaceOf(const Sequence* sequence) {
    return std::find_if(waiting_.begin(), waiting_.end(), [sequence](const Sequence* other) {
      return sequence->queue_key < other->queue_key;
    });
  }

  std::int64_t CutToThreshold(std::int64_t tokens) const {
    const std::int64_t threshold = engine_.long_prefill_token_threshold;
    return threshold > 0 ? std::min(tokens, threshold) : tokens;
  }

  // How many of a member's drafts are accepted: an entry is used up, unless they are padding.
  void Verify(Member& member) {
    Sequence& sequence = *member.sequence;
    if (member.record.drafts == 0 || member.padded) return;
    ++coverage_.verified;
    member.record.accepted =
        drafts_.Accepted(sequence.id, sequence.verified++, member.record.drafts);
    const std::int64_t left = sequence.wanted - sequence.generated - sequence.sampling;
    ++counts_.verified_steps;
    counts_.draft_tokens += member.record.drafts;
    counts_.accepted_tokens += member.record.accepted;
    counts_.used_draft_tokens +=
        std::min(member.record.accepted, std::max<std::int64_t>(left - 1, 0));
  }

  // S14: with slots for drafts to come.
  std::int64_t BlocksWithLookahead(std::int64_t tokens) const {
    return Blocks(drafts_.On() ? std::min(tokens + drafts_.Lookahead(), max_len_) : tokens);
  }

  void ScheduleRunning(ScheduledStep& step, std::int64_t& budget) {
    std::size_t at = 0;
    while (at < running_.size() && budget > 0) {
      Sequence* sequence = running_[at];
      // Rule 22: its last token is in flight. At max_model_len rule 2 says the same.
      const bool last_in_flight =
          sequence->placeholders > 0 &&
          sequence->computed + 2 - sequence->placeholders >= sequence->prompt + sequence->asked;
      // Only with async scheduling can a token be computed before the one before it is known.
      const std::int64_t ahead = engine_.async_scheduling ? sequence->placeholders : 0;
      std::int64_t tokens =
          CutToThreshold(sequence->Known() + sequence->drafts + ahead - sequence->computed);
      tokens = std::min(tokens, budget);
      tokens = std::min(tokens, max_len_ - sequence->computed - 1);  // rule 2
      if (last_in_flight || tokens <= 0) {
        SERVECAST_CHECK(engine_.async_scheduling || staged_,
                        "reference: running, and nothing to compute");
        ++(staged_ ? coverage_.waits_for_token : coverage_.last_in_flight);
        ++at;
        continue;
      }
      if (encoder_.Any()) {  // E2, E3
        const std::int64_t cut = encoder_.Cut(sequence->id, sequence->computed, tokens);
        if (cut < tokens) ++(cut == 0 ? coverage_.waits_for_encoder : coverage_.cut_before_images);
        tokens = cut;
        if (tokens == 0) {
          ++at;
          continue;
        }
      }
      if (sequence->in_flight > 0 && staged_) ++coverage_.chunks_in_flight;
      if (!MakeRoom(sequence, tokens, step, at, budget)) return;  // rule 9: it went itself
      encoder_.Take(sequence->id);
      step.members.push_back(Decide(sequence, tokens, MemberKind::kContinued));
      if (sequence->drafts > 0) {  // S5
        std::int64_t& drafts = step.members.back().record.drafts;
        drafts = sequence->computed + tokens - sequence->Known() - ahead;
        drafts = std::max<std::int64_t>(drafts, 0);
        if (drafts < sequence->drafts) ++coverage_.cut_drafts;
        sequence->drafts = 0;
      }
      budget -= tokens;
      ++at;
    }
    coverage_.skipped += static_cast<std::int64_t>(running_.size() - at);
    for (; at < running_.size(); ++at) coverage_.kept_drafts += running_[at]->drafts > 0 ? 1 : 0;
  }

  // Rules 6, 9, 10: blocks for the running request at place `at`; false when it had to preempt
  // itself.
  bool MakeRoom(Sequence* sequence, std::int64_t tokens, ScheduledStep& step, std::size_t& at,
                std::int64_t& budget) {
    bool collected = false;
    for (;;) {
      const std::int64_t needed =
          std::max<std::int64_t>(0, BlocksWithLookahead(sequence->computed + tokens) -
                                        static_cast<std::int64_t>(sequence->blocks.size()));
      const auto blocks = static_cast<std::int64_t>(sequence->blocks.size());
      const std::int64_t of_windows =
          OfWindows(blocks + needed, windows_.most) - OfWindows(blocks, windows_.most);
      if (needed > 0 && windows_.groups > 0 && of_windows == 0) ++coverage_.full_windows;
      if (needed + of_windows > Available()) ++failures_;
      if (needed + of_windows > Available() && Collect()) {
        ++coverage_.gc_for_running;
        collected = true;
        continue;
      }
      if (needed + of_windows <= Available()) {
        pool_.Take(needed, sequence->blocks);
        pool_.Take(of_windows, sequence->windows);
        RegisterUpTo(*sequence, sequence->computed + tokens);
        return true;
      }
      if (collected) ++coverage_.preempted_after_gc;
      const std::size_t victim_at = VictimAt();
      Sequence* victim = running_[victim_at];
      if (victim == sequence) ++coverage_.self_preemptions;
      if (victim->prefilling) ++coverage_.prefill_preemptions;
      if (victim->in_flight > 0 && staged_) ++coverage_.victims_in_flight;
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(victim_at));
      if (victim_at < at) --at;
      TakeOut(victim, step, budget);
      Preempt(victim);
      step.preempted.push_back(victim->id);
      if (victim == sequence) return false;
    }
  }

  // Ours: blocks of ended requests are free only when they are collected.
  std::int64_t Available() const { return pool_.Free() - garbage_; }

  // One pass; false when there is no garbage.
  bool Collect() {
    if (garbage_ == 0) return false;
    garbage_ -=
        static_cast<std::int64_t>(std::ceil(engine_.gc_fraction * static_cast<double>(garbage_)));
    ++collections_;
    return true;
  }

  std::size_t VictimAt() const {
    std::size_t victim = running_.size() - 1;
    if (!victim_by_priority_) return victim;
    victim = 0;
    for (std::size_t i = 1; i < running_.size(); ++i) {
      const Sequence& most = *running_[victim];
      const Sequence& other = *running_[i];
      const bool less_urgent = other.priority != most.priority ? other.priority > most.priority
                                                               : other.arrival > most.arrival;
      const bool equal = other.priority == most.priority && other.arrival == most.arrival;
      // Not vLLM's: else two requests of one arrival can preempt each other for ever.
      if (less_urgent || (equal && tokenless_calls_ >= 1000)) victim = i;
    }
    return victim;
  }

  // A victim that this call had scheduled already: its tokens return to the budget.
  void TakeOut(const Sequence* victim, ScheduledStep& step, std::int64_t& budget) {
    for (auto member = step.members.begin(); member != step.members.end(); ++member) {
      if (member->sequence != victim) continue;
      budget += member->record.tokens;
      const std::int64_t images = encoder_.Encoded();
      encoder_.TakeOut(victim->id);
      coverage_.unencoded_victims += images - encoder_.Encoded();
      step.members.erase(member);
      ++coverage_.unscheduled_victims;
      return;
    }
  }

  void Preempt(Sequence* victim) {
    encoder_.Drop(victim->id);
    Release(*victim);
    victim->running = false;
    victim->computed = 0;
    victim->placeholders = 0;  // rule 24
    if (victim->drafts > 0) ++coverage_.lost_drafts;
    victim->drafts = 0;  // S21
    victim->preempted = true;
    victim->was_prefilling = victim->prefilling;
    victim->prefilling = true;
    waiting_.insert(fcfs_ ? waiting_.begin() : PlaceOf(victim), victim);
  }

  // S29: adapters of the running part and of those admitted since.
  static std::set<std::int32_t> AdaptersOf(const ScheduledStep& step,
                                           const ReferenceDrafts& drafts) {
    std::set<std::int32_t> adapters;
    for (const Member& member : step.members) {
      const std::int32_t adapter = drafts.Lora(member.record.id);
      if (adapter != 0) adapters.insert(adapter);
    }
    return adapters;
  }
  bool HasSeat(const Sequence& sequence, const ScheduledStep& step) const {
    const std::int32_t adapter = drafts_.Lora(sequence.id);
    if (engine_.max_loras == 0 || adapter == 0) return true;
    const std::set<std::int32_t> adapters = AdaptersOf(step, drafts_);
    return adapters.count(adapter) > 0 ||
           static_cast<std::int64_t>(adapters.size()) < engine_.max_loras;
  }

  // S30: those without a seat stand apart, and are asked first; by a key the more urgent one is.
  bool AsideIsNext(std::size_t at) const {
    if (aside_.empty()) return false;
    return fcfs_ || at >= waiting_.size() || aside_.front()->queue_key < waiting_[at]->queue_key;
  }

  void Admit(ScheduledStep& step, std::int64_t& budget) {
    // S9: whether its running part is decodes only.
    const bool decodes =
        !step.members.empty() && std::all_of(step.members.begin(), step.members.end(),
                                             [](const Member& member) { return member.decode; });
    std::vector<Sequence*> later;
    std::size_t at = 0;
    while ((at < waiting_.size() || !aside_.empty()) && budget > 0 &&
           static_cast<std::int64_t>(running_.size()) < engine_.max_num_seqs) {
      const bool aside = AsideIsNext(at);
      Sequence* sequence = aside ? aside_.front() : waiting_[at];
      if (sequence->in_flight > 0) {  // rule 24
        ++coverage_.victims_passed;
        ++at;
        continue;
      }
      if (!HasSeat(*sequence, step)) {
        ++coverage_.adapters_without_seat;
        TakeFromQueue(aside, at);
        later.push_back(sequence);
        continue;
      }
      bool collected = false;
      if (AdmitOne(sequence, decodes, step, budget, collected)) {
        TakeFromQueue(aside, at);
      } else if (!collected) {
        break;
      }
    }
    aside_.insert(aside_.begin(), later.begin(), later.end());
  }

  void TakeFromQueue(bool aside, std::size_t at) {
    if (aside) {
      aside_.pop_front();
    } else {
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

  // False: it is not admitted; `collected`: but may be now, as garbage was collected.
  bool AdmitOne(Sequence* sequence, bool decodes, ScheduledStep& step, std::int64_t& budget,
                bool& collected) {
    const std::vector<KvPool::BlockId> hits = LookUp(*sequence);
    const auto hit_blocks = static_cast<std::int64_t>(hits.size());
    const std::vector<ContentKey> stored = LookUpTiers(*sequence, hit_blocks);
    const std::int64_t hit_tokens =
        (hit_blocks + static_cast<std::int64_t>(stored.size())) * engine_.block_size;
    std::int64_t tokens = sequence->Known() - hit_tokens;
    const bool padded = drafts_.Pads() && decodes && tokens == 1;
    if (padded) {
      tokens = 1 + drafts_.Most();
      if (tokens > budget || hit_tokens + tokens > max_len_) {
        ++coverage_.padding_waits;
        return false;
      }
    }
    tokens = CutToThreshold(tokens);
    if (!engine_.enable_chunked_prefill && tokens > budget) {  // rule 3
      ++coverage_.refused_unchunked;
      return false;
    }
    tokens = std::min(tokens, budget);
    if (encoder_.Any()) {  // E2, E3
      const std::int64_t cut = encoder_.Cut(sequence->id, hit_tokens, tokens);
      if (cut < tokens) ++(cut == 0 ? coverage_.refused_by_encoder : coverage_.cut_before_images);
      tokens = cut;
      if (tokens == 0) return false;
    }
    const std::int64_t first_chunk =
        std::max<std::int64_t>(0, BlocksWithLookahead(hit_tokens + tokens) - hit_blocks);
    const std::int64_t all_known = Blocks(sequence->Known());
    if (!Admissible(first_chunk, all_known, hits)) {
      ++failures_;
      encoder_.Drop(sequence->id);
      collected = Collect();
      if (collected) ++coverage_.gc_for_admission;
      return false;
    }

    encoder_.Take(sequence->id);
    CountHits(*sequence, hits);
    if (!stored.empty() && hit_blocks > 0) ++coverage_.behind_gpu_hits;
    step.transfer_blocks += static_cast<std::int64_t>(stored.size());
    step.transfer += tiers_.Load(stored, !sequence->admitted, engine_.block_size);
    for (const KvPool::BlockId block : hits) pool_.Share(block, sequence->blocks);
    pool_.Take(first_chunk, sequence->blocks);
    pool_.Take(OfWindows(static_cast<std::int64_t>(sequence->blocks.size()), windows_.most),
               sequence->windows);
    coverage_.window_blocks += static_cast<std::int64_t>(sequence->windows.size());
    sequence->computed = hit_tokens;
    sequence->registered = hit_blocks;
    RegisterUpTo(*sequence, hit_tokens + tokens);
    running_.push_back(sequence);
    sequence->running = true;
    step.members.push_back(
        Decide(sequence, tokens, sequence->preempted ? MemberKind::kResumed : MemberKind::kNew));
    if (padded) {
      ++coverage_.padded;
      step.members.back().padded = true;
      step.members.back().record.drafts = tokens - 1;
    }
    if (sequence->preempted) ++coverage_.resumes;
    sequence->admitted = true;
    sequence->preempted = false;
    budget -= tokens;
    return true;
  }

  // Rules 7 and 8: may a first chunk take its blocks, given what all known tokens will need?
  bool Admissible(std::int64_t first_chunk, std::int64_t known_blocks,
                  const std::vector<KvPool::BlockId>& hits) {
    const auto hit_blocks = static_cast<std::int64_t>(hits.size());
    // With the windows' blocks, of which a hit saves none: they fill up to the last hit block, and
    // hold what is in flight.
    const auto with_windows = [&](std::int64_t blocks) {
      const std::int64_t behind_hit = blocks - hit_blocks + windows_.most;
      return blocks + OfWindows(blocks, std::min(windows_.most_admitted, behind_hit)) - hit_blocks;
    };
    const std::int64_t all_known = with_windows(known_blocks);
    const std::int64_t bare_chunk = first_chunk;
    first_chunk = with_windows(hit_blocks + first_chunk);
    const std::int64_t watermark = running_.empty() ? 0 : watermark_blocks_;
    // Hit blocks that nobody holds leave the free list, too.
    const auto unused = static_cast<std::int64_t>(std::count_if(
        hits.begin(), hits.end(), [this](KvPool::BlockId block) { return !pool_.IsHeld(block); }));
    const std::int64_t needed =
        engine_.scheduler_reserve_full_isl ? std::max(first_chunk, all_known) : first_chunk;
    const std::int64_t free = Available();
    // Ours: while others run, room for so many times the prompt.
    std::int64_t reserve = 0;
    if (!running_.empty()) {
      reserve = static_cast<std::int64_t>(
          std::ceil(engine_.admission_reserve *
                    static_cast<double>(known_blocks + OfWindows(known_blocks, windows_.most))));
    }
    const bool reserved = reserve - hit_blocks + unused + watermark <= free;
    if (needed + unused + watermark <= free && reserved) return true;
    if (bare_chunk + unused + watermark <= free && first_chunk + unused + watermark > free) {
      ++coverage_.refused_by_windows;
    }
    if (needed + unused + watermark <= free) {
      ++coverage_.refused_by_reserve;
    } else if (needed + unused <= free) {
      ++coverage_.refused_by_watermark;
    } else if (needed + watermark <= free) {
      ++coverage_.refused_by_unused_hits;
    } else if (first_chunk + unused + watermark <= free) {
      ++coverage_.refused_by_full_prompt;
    } else if (all_known + unused + watermark <= free) {
      ++coverage_.refused_by_lookahead;
    }
    return false;
  }

  // Rule 14.
  std::vector<KvPool::BlockId> LookUp(const Sequence& sequence) const {
    std::vector<KvPool::BlockId> hits;
    if (!engine_.enable_prefix_caching) return hits;
    const std::int64_t most = (sequence.Known() - 1) / engine_.block_size;
    for (std::int64_t index = 0; index < most; ++index) {
      const std::optional<KvPool::BlockId> block = pool_.Find(Key(sequence, index));
      if (!block) break;
      hits.push_back(*block);
    }
    if (drafts_.DropsLastHit() && !hits.empty()) hits.pop_back();  // S18
    return hits;
  }

  // What goes on behind the pool's hit, block by block, in whatever tier it is.
  std::vector<ContentKey> LookUpTiers(const Sequence& sequence, std::int64_t from) const {
    std::vector<ContentKey> stored;
    const std::int64_t most = (sequence.Known() - 1) / engine_.block_size;
    for (std::int64_t index = from; index < most && tiers_.Has(Key(sequence, index)); ++index) {
      stored.push_back(Key(sequence, index));
    }
    return stored;
  }

  // At an admission, before the hit blocks are shared.
  void CountHits(const Sequence& sequence, const std::vector<KvPool::BlockId>& hits) {
    if (!engine_.enable_prefix_caching) return;
    const auto blocks = static_cast<std::int64_t>(hits.size());
    const std::int64_t size = engine_.block_size;
    if (sequence.admitted) {
      prefix_cache_.resumed_hit_tokens += blocks * size;
    } else {
      prefix_cache_.query_tokens += sequence.Known();
      prefix_cache_.query_blocks += sequence.Known() / size;
      prefix_cache_.hit_tokens += blocks * size;
      prefix_cache_.hit_blocks += blocks;
    }
    if (drafts_.DropsLastHit() && blocks < (sequence.Known() - 1) / size &&
        pool_.Find(Key(sequence, blocks))) {
      ++coverage_.dropped_hits;
    }
    for (const KvPool::BlockId block : hits) {
      ++(pool_.IsHeld(block) ? coverage_.hits_on_held : coverage_.hits_on_unused);
      coverage_.same_call_hits += registered_now_.count(block) > 0 ? 1 : 0;
    }
    const bool all = sequence.Known() % size == 0 && blocks == sequence.Known() / size - 1 &&
                     pool_.Find(Key(sequence, blocks)).has_value();
    if (all) ++coverage_.full_hits;
  }

  // Rules 15 and 16: full blocks of the first `tokens` tokens, as far as these are known.
  void RegisterUpTo(Sequence& sequence, std::int64_t tokens) {
    if (!engine_.enable_prefix_caching) return;
    const std::int64_t full = std::min(tokens, sequence.Known()) / engine_.block_size;
    for (; sequence.registered < full; ++sequence.registered) {
      const KvPool::BlockId block = sequence.blocks[static_cast<std::size_t>(sequence.registered)];
      if (pool_.Register(block, Key(sequence, sequence.registered))) ++coverage_.duplicates;
      registered_now_.insert(block);
    }
  }

  // For the first `blocks` blocks of a request, in windows of `most`.
  std::int64_t OfWindows(std::int64_t blocks, std::int64_t most) const {
    std::int64_t sum = 0;
    for (std::int64_t i = 0; i < std::min(blocks, most); i += windows_.every) {
      sum += windows_.groups;
    }
    return sum;
  }

  void Release(Sequence& sequence) {
    pool_.ReleaseWindows(sequence.windows);
    pool_.Release(sequence.blocks);
    sequence.registered = 0;
  }

  ContentKey Key(const Sequence& sequence, std::int64_t index) const {
    return KeyOf(requests_, sequence.id, index, engine_.block_size);
  }

  static Member Decide(Sequence* sequence, std::int64_t tokens, MemberKind kind) {
    Member member;
    member.sequence = sequence;
    member.decode = !sequence->prefilling;
    member.record.id = sequence->id;
    member.record.tokens = tokens;
    member.record.computed_before = sequence->computed;
    member.record.kind = kind;
    return member;
  }

  const RequestTable& requests_;
  const EngineSpec engine_;
  const std::int64_t max_len_;
  const bool staged_;
  const ReferenceWindows windows_;
  const ReferenceDrafts drafts_;
  const std::int64_t watermark_blocks_;
  const bool fcfs_;
  const bool victim_by_priority_;
  ReferenceCoverage coverage_;
  ReferenceEncoder encoder_;
  Tiers tiers_;
  KvPool pool_;
  std::vector<Sequence*> running_;  // in order of admission
  std::deque<Sequence*> waiting_;
  std::deque<Sequence*> aside_;               // overtaken, for want of an adapter's seat
  std::set<KvPool::BlockId> registered_now_;  // by this schedule call
  PrefixCacheReport prefix_cache_;
  SchedulerCounts counts_;
  std::int64_t tokenless_calls_ = 0;  // that preempted, since a step yielded a token
  std::int64_t garbage_ = 0;          // blocks among the free ones
  std::int64_t collections_ = 0;
  std::int64_t failures_ = 0;
};

class Driver {
 public:
  explicit Driver(const ReferenceInput& input)
      : input_(input),
        requests_(input.requests),
        max_len_(MaxLen(input)),
        order_(input.scheduler, requests_),
        scheduler_(input, requests_, order_, max_len_),
        front_end_(input.engine.api_server_count) {
    output_.results.Resize(requests_.size());
    output_.times.resize(requests_.arrival.size());
    sequences_.resize(requests_.arrival.size());
    for (std::int64_t row = 0; row < requests_.size(); ++row) {
      const bool retry = row >= FirstRetry();
      if (!retry && !Follows(row) && !Waits(row)) Arrive(row);
    }
  }

  // The driver loop of vLLM's engine: so many batches may be in flight.
  ReferenceOutput Run() {
    const std::size_t most = input_.stages != nullptr         ? input_.stages->size()
                             : input_.engine.async_scheduling ? 2
                                                              : 1;
    stage_free_.assign(input_.stages != nullptr ? most : 1, 0);
    for (;;) {
      JoinQueue();
      TimeOut();
      JoinQueue();  // those whose clients gave up, and asked for something else at once
      const bool work = !scheduler_.Running().empty() || !scheduler_.Waiting().empty();
      const TimeNs start = std::max(now_, stage_free_[0]);
      const bool starts = (!input_.horizon || start < *input_.horizon) &&
                          (!input_.dies_at || start < *input_.dies_at);
      if (work && in_flight_.size() < most && starts) {
        if (Launch(start)) {
          if (in_flight_.size() < most) continue;
        } else if (in_flight_.empty()) {
          continue;  // preempted somebody, and nothing else: it is called again at once
        }
      }
      if (!in_flight_.empty()) {
        if (input_.dies_at && in_flight_.front().record.end > *input_.dies_at) break;
        ApplyOldest();
        continue;
      }
      if (work) break;  // the horizon
      // Nothing can be done before the next request comes, or sets out.
      const TimeNs next = NextEvent();
      if (next == kNever) break;
      if (input_.horizon && next >= *input_.horizon) break;
      if (input_.dies_at && next >= *input_.dies_at) break;
      load_.running = load_.kv_blocks_used = 0;  // at rest
      PassTime(next);
    }
    Finish();
    return std::move(output_);
  }

 private:
  struct Coming {
    TimeNs time = 0, arrival = 0;
    std::int64_t row = 0;

    friend bool operator<(const Coming& a, const Coming& b) {
      return std::tie(a.time, a.arrival, a.row) < std::tie(b.time, b.arrival, b.row);
    }
  };
  struct Batch {
    ScheduledStep step;
    StepRecord record;
    std::int64_t kv_blocks = 0;  // in use, after the schedule call
    std::int64_t kv_unused = 0;  // likewise
  };

  static std::int64_t MaxLen(const ReferenceInput& input) {
    const ReferenceWindows& windows = input.windows;
    std::int64_t blocks = 0;
    const auto next_takes = [&] {
      const bool grows = blocks < windows.most_admitted && blocks % windows.every == 0;
      return 1 + (grows ? windows.groups : 0);
    };
    for (std::int64_t left = input.pool_blocks - 1; left >= next_takes(); ++blocks) {
      left -= next_takes();
    }
    std::int64_t max_len = std::min(input.model_max_len, blocks * input.engine.block_size);
    if (input.engine.max_model_len) max_len = std::min(max_len, *input.engine.max_model_len);
    if (!input.engine.enable_chunked_prefill) {
      // A prompt, and all that a resumed request has to recompute, must fit one step; vLLM refuses
      // to start where it might not.
      const ReferenceDrafts drafts(input.engine, input.requests, input.seed);
      max_len = std::min(max_len, drafts.Budget() + 1);
    }
    return max_len;
  }

  bool CanNeverFit(std::int64_t row) const {
    return requests_.prompt_tokens[static_cast<std::size_t>(row)] >= max_len_;
  }
  bool Follows(std::int64_t row) const {
    return row < static_cast<std::int64_t>(requests_.think.size()) &&
           requests_.think[static_cast<std::size_t>(row)] >= 0;
  }
  // Attempts after the first stand behind all requests, as many of each.
  std::int64_t FirstRetry() const {
    return requests_.size() - static_cast<std::int64_t>(requests_.backoff.size());
  }
  std::int64_t RetriesOfEach() const {
    return static_cast<std::int64_t>(requests_.backoff.size()) / FirstRetry();
  }
  std::int64_t RequestOf(std::int64_t row) const {
    return row < FirstRetry() ? row : (row - FirstRetry()) / RetriesOfEach();
  }
  // -1: it was the last.
  std::int64_t NextAttempt(std::int64_t row) const {
    if (requests_.backoff.empty()) return -1;
    const std::int64_t request = RequestOf(row);
    const std::int64_t done = row == request ? 0 : (row - FirstRetry()) % RetriesOfEach() + 1;
    return done == RetriesOfEach() ? -1 : FirstRetry() + request * RetriesOfEach() + done;
  }
  // An attempt was turned away or timed out at that time.
  void Failed(std::int64_t row, TimeNs when) {
    const std::int64_t next = NextAttempt(row);
    if (next < 0) {
      if (!requests_.backoff.empty()) ++scheduler_.Coverage().last_attempts;
      return Freed(when);
    }
    requests_.arrival[static_cast<std::size_t>(next)] =
        when + requests_.backoff[static_cast<std::size_t>(next - FirstRetry())];
    const bool rejected =
        output_.results.state[static_cast<std::size_t>(row)] == RequestState::kRejected;
    ++(rejected ? scheduler_.Coverage().retries_rejected : scheduler_.Coverage().retries);
    Arrive(next);
  }
  // Closed loop: until a client is free.
  bool Waits(std::int64_t row) const {
    return row < static_cast<std::int64_t>(requests_.pause.size()) &&
           requests_.pause[static_cast<std::size_t>(row)] >= 0;
  }
  // The first session that waits for a client; none: the number of requests.
  std::int64_t FirstThatWaits() const {
    std::int64_t row = 0;
    while (row < requests_.size() &&
           (!Waits(row) || requests_.arrival[static_cast<std::size_t>(row)] >= 0)) {
      ++row;
    }
    return row;
  }
  // A client's session is over: the first session that still waits is its next one.
  void Freed(TimeNs when) {
    const std::int64_t row = FirstThatWaits();
    if (row == requests_.size()) return;
    const auto at = static_cast<std::size_t>(row);
    requests_.arrival[at] = when + requests_.pause[at];
    if (!requests_.due.empty() && requests_.due[at] > requests_.arrival[at]) {
      requests_.arrival[at] = requests_.due[at];
      ++scheduler_.Coverage().loop_dues;
    }
    ++scheduler_.Coverage().loop_starts;
    Arrive(row);
  }
  // `column[row]` after the arrival.
  TimeNs AfterArrival(const std::vector<TimeNs>& column, std::int64_t row) const {
    const auto at = static_cast<std::size_t>(row);
    if (column.empty() || column[at] == kNever) return kNever;
    return requests_.arrival[at] + column[at];
  }

  // Its arrival is known: it comes to the queue in due time, if at all.
  void Arrive(std::int64_t row) {
    const auto at = static_cast<std::size_t>(row);
    if (CanNeverFit(row)) {
      if (Waits(row)) ++scheduler_.Coverage().loop_drops;
      Freed(requests_.arrival[at]);
      return;
    }
    const std::int64_t prompt = requests_.prompt_tokens[at];
    auto sequence = std::make_unique<Sequence>();
    sequence->id = static_cast<RequestId>(row);
    sequence->arrival = requests_.arrival[at];
    sequence->gives_up = AfterArrival(requests_.timeout, row);
    sequence->prompt = prompt;
    sequence->asked = requests_.output_tokens[at];
    sequence->wanted = std::min(sequence->asked, max_len_ - prompt);
    sequence->priority = order_.Priority(at);
    sequence->queue_key = order_.KeyOf(at);
    arriving_.insert({sequence->arrival, sequence->arrival, row});
    sequences_[at] = std::move(sequence);
  }

  // The front end takes it up, in order of arrival, whether or not its client will still be there.
  void SetOut() {
    const auto [time, arrival, row] = *arriving_.begin();
    arriving_.erase(arriving_.begin());
    Sequence& sequence = *sequences_[static_cast<std::size_t>(row)];
    if (sequence.gone) return Failed(row, sequence.gives_up);
    if (!requests_.backoff.empty()) {
      const bool retry = row >= FirstRetry();
      const double all = requests_.retry_budget * static_cast<double>(firsts_sent_);
      if (retry && requests_.retry_budget >= 0 && static_cast<double>(retries_sent_ + 1) > all) {
        ++scheduler_.Coverage().over_budget;
        output_.results.state[static_cast<std::size_t>(row)] = RequestState::kRejected;
        return Freed(arrival);
      }
      ++(retry ? retries_sent_ : firsts_sent_);
    }
    HostTimes times = input_.latency.TakeUpTimes(sequence.prompt);
    if (input_.latency.DelayByLoad()) times = {0, DelayFound(sequence)};
    sequence.enqueue = front_end_.Enter(arrival, times);
    ReferenceCoverage& coverage = scheduler_.Coverage();
    if (sequence.enqueue > arrival + times.work + times.wait) ++coverage.waits_for_front_end;
    // Where delays depend on the load, whoever gives up on the way leaves from the queue.
    if (input_.latency.DelayByLoad()) {
      sequence.enqueue = std::min(sequence.enqueue, sequence.gives_up);
    }
    if (sequence.enqueue <= sequence.gives_up) {
      coming_.insert({sequence.enqueue, arrival, row});
    } else if (!requests_.pause.empty() || !requests_.backoff.empty()) {
      // Its client goes on when it gives up.
      sequence.gone = true;
      arriving_.insert({sequence.gives_up, arrival, row});
    }
  }

  // By what is found on arrival.
  TimeNs DelayFound(const Sequence& sequence) {
    EngineLoad load = load_;
    load.waiting = static_cast<std::int64_t>(scheduler_.Waiting().size() + joining_.size()) + left_;
    load.preemption_ema = preemption_ema_;
    load.cached_tokens = scheduler_.CachedTokens(sequence);
    const TimeNs delay = input_.latency.DelayUnder(sequence.prompt, load);
    ReferenceCoverage& coverage = scheduler_.Coverage();
    if (load.running > 0) ++coverage.arrivals_under_load;
    if (delay != input_.latency.DelayUnder(sequence.prompt, WithoutCache(load))) {
      ++coverage.arrivals_at_a_cache;
    }
    return delay;
  }

  static EngineLoad WithoutCache(EngineLoad load) {
    load.cached_tokens = 0;
    return load;
  }

  TimeNs NextEvent() {
    // Nothing happens when the last clients give up.
    while (!arriving_.empty() && FirstThatWaits() == requests_.size() &&
           NextAttempt(arriving_.begin()->row) < 0 &&
           sequences_[static_cast<std::size_t>(arriving_.begin()->row)]->gone) {
      arriving_.erase(arriving_.begin());
    }
    TimeNs next = kNever;
    for (const auto* events : {&arriving_, &coming_}) {
      if (!events->empty()) next = std::min(next, events->begin()->time);
    }
    return next;
  }

  // To `to`; who is enqueued on the way waits from that instant.
  void PassTime(TimeNs to) {
    for (;;) {
      // Of one moment: by arrival and row, whoever sets out comes after that.
      // At the end of a step after its outputs, whose clients' next turns may come before by their
      // rows.
      const bool waits_for_outputs = executing_ && !input_.latency.DelayByLoad();
      const TimeNs last = waits_for_outputs ? to - 1 : to;
      const bool sets_out = !arriving_.empty() && arriving_.begin()->time <= last &&
                            (coming_.empty() || !(*coming_.begin() < *arriving_.begin()));
      const bool enqueue = !sets_out && !coming_.empty() && coming_.begin()->time <= to;
      const TimeNs until = sets_out  ? arriving_.begin()->time
                           : enqueue ? coming_.begin()->time
                                     : to;
      const auto waiting = static_cast<std::int64_t>(scheduler_.Waiting().size() + joining_.size());
      output_.waiting_ns += static_cast<__int128>(waiting) * (until - now_);
      now_ = until;
      if (sets_out) {
        SetOut();
        continue;
      }
      if (!enqueue) return;
      const auto at = static_cast<std::size_t>(coming_.begin()->row);
      coming_.erase(coming_.begin());
      Sequence* sequence = sequences_[at].get();
      const bool on_end = executing_ && until == to;
      if (on_end) ++scheduler_.Coverage().enqueued_on_step_end;
      if (sequence->arrival < latest_enqueued_arrival_) ++scheduler_.Coverage().reordered;
      latest_enqueued_arrival_ = std::max(latest_enqueued_arrival_, sequence->arrival);
      output_.results.enqueue[at] = until;
      if (!on_end && IsRejected(*sequence)) {
        Failed(sequence->id, until);
        continue;
      }
      joining_.push_back(sequence);
      // What ends with the step is looked at first (S33).
      if (!on_end) output_.results.state[at] = RequestState::kQueued;
    }
  }

  // S32, S33: by those that are taken and not over.
  bool IsRejected(const Sequence& comer) {
    const EngineSpec& engine = input_.engine;
    if (!engine.max_num_queued_reqs && !engine.max_num_queued_tokens) return false;
    std::int64_t taken = 0, tokens = 0;
    for (std::int64_t row = 0; row < requests_.size(); ++row) {
      const RequestState state = output_.results.state[static_cast<std::size_t>(row)];
      if (state != RequestState::kQueued && state != RequestState::kRunning) continue;
      const Sequence& other = *sequences_[static_cast<std::size_t>(row)];
      ++taken;
      if (other.generated == 0) tokens += other.prompt;
    }
    const bool many = engine.max_num_queued_reqs && taken + 1 > *engine.max_num_queued_reqs;
    const bool long_ones = engine.max_num_queued_tokens && tokens >= *engine.max_num_queued_tokens;
    if (!many && !long_ones) return false;
    output_.results.state[static_cast<std::size_t>(comer.id)] = RequestState::kRejected;
    ++output_.rejected;
    ReferenceCoverage& coverage = scheduler_.Coverage();
    ++(many ? coverage.rejected_by_requests : coverage.rejected_by_tokens);
    return true;
  }

  // Who came since the last schedule call joins the queue, by (enqueue time, arrival, id): a turn
  // can come at the very moment of the completion before it.
  void JoinQueue() {
    PassTime(now_);
    std::sort(joining_.begin(), joining_.end(), [](const Sequence* a, const Sequence* b) {
      return std::tie(a->enqueue, a->arrival, a->id) < std::tie(b->enqueue, b->arrival, b->id);
    });
    for (Sequence* sequence : joining_) {
      RequestState& state = output_.results.state[static_cast<std::size_t>(sequence->id)];
      if (state == RequestState::kPending && IsRejected(*sequence)) {
        Failed(sequence->id, sequence->enqueue);
        continue;
      }
      state = RequestState::kQueued;
      scheduler_.Enqueue(sequence);
    }
    joining_.clear();
    left_ = 0;
  }

  // Whose client has given up by now is gone, wherever it was.
  void TimeOut() {
    std::vector<Sequence*> gone;
    for (Sequence* sequence : scheduler_.Running()) {
      if (sequence->gives_up <= now_) gone.push_back(sequence);
    }
    for (Sequence* sequence : scheduler_.Waiting()) {
      if (sequence->gives_up <= now_) gone.push_back(sequence);
    }
    std::sort(gone.begin(), gone.end(), [](const Sequence* a, const Sequence* b) {
      return std::tie(a->gives_up, a->id) < std::tie(b->gives_up, b->id);
    });
    ReferenceCoverage& coverage = scheduler_.Coverage();
    for (Sequence* sequence : gone) {
      ++(sequence->running ? coverage.timed_out_running : coverage.timed_out_queued);
      if (!sequence->running && sequence->in_flight > 0) ++coverage.victims_timed_out;
      if (sequence->running && sequence->in_flight > 0) ++coverage.timed_out_in_flight;
      scheduler_.Remove(*sequence);
      sequence->timed_out = true;
      output_.results.state[static_cast<std::size_t>(sequence->id)] = RequestState::kTimedOut;
      if (!requests_.pause.empty()) ++coverage.loop_timeouts;
      Failed(sequence->id, now_);
    }
  }

  // One schedule call; its batch starts at `start`. False when there is nothing in it.
  bool Launch(TimeNs start) {
    Batch batch;
    batch.step = scheduler_.Schedule(now_);
    WritePreempted(batch.step);
    AveragePreemptions(batch.step);
    TakeTime(batch.step, start);
    if (batch.step.members.empty()) {
      SERVECAST_CHECK(!batch.step.preempted.empty() || !in_flight_.empty(),
                      "reference: work, and nothing of it can be done");
      if (!batch.step.preempted.empty()) ++scheduler_.Coverage().empty_calls;
      return false;
    }
    StepRecord& record = batch.record;
    record.index = launched_++;
    record.scheduled = now_;
    record.start = start;
    const std::int64_t collections = scheduler_.Collections() - collections_paid_;
    collections_paid_ = scheduler_.Collections();
    begin_ = start;
    record.transfer = Slowed(input_.latency.PricesTransfers() ? 0 : batch.step.transfer);
    const StepPrice price = Price(batch.step, true);
    CountImages(batch.step, price);
    record.bound = record.transfer > price.duration ? StepBound::kOverhead : price.bound;
    record.interference = InterferenceOf(batch.step);
    for (const Member& member : batch.step.members) {
      if (!member.decode) record.prefill_tokens += member.record.tokens;
    }
    const TimeNs collecting =
        Slowed(collections * static_cast<TimeNs>(std::llround(input_.engine.gc_pass_us * 1000)));
    if (input_.stages == nullptr) {
      record.end = start + price.duration + record.transfer + collecting;
      stage_free_[0] = record.end;
    } else {
      PassStages(batch.step, collecting, record);
    }
    output_.kv_offload.transfer_ns += record.transfer;
    CountPadding(batch.step);
    record.preempted = batch.step.preempted;
    for (const Member& member : batch.step.members) record.members.push_back(member.record);
    record.free_after_schedule = scheduler_.Pool().Free();
    record.used_after_schedule = scheduler_.Pool().Used();
    record.running_after_schedule = static_cast<std::int64_t>(scheduler_.Running().size());
    record.waiting_after_schedule = static_cast<std::int64_t>(scheduler_.Waiting().size());
    WriteScheduled(batch.step, record);
    load_.running = record.running_after_schedule;
    load_.kv_blocks_used = scheduler_.Pool().Used();
    WriteWork(batch.step);
    if (input_.stages == nullptr) {
      SplitTime(batch.step, record);
    } else {
      SplitStagedTime(batch.step, record);
    }
    for (const Member& member : batch.step.members) {
      TimeNs& last = member.sequence->last_step;
      if (member.record.kind != MemberKind::kNew) {
        ++output_.step_delays[std::max<TimeNs>(start - last, 0)];
      }
      last = record.end;
    }
    batch.kv_unused = scheduler_.Unused();
    output_.peak_kv_unused = std::max(output_.peak_kv_unused, batch.kv_unused);
    batch.kv_blocks = scheduler_.Pool().Used();
    in_flight_.push_back(std::move(batch));
    return true;
  }

  void ApplyOldest() {
    Batch batch = std::move(in_flight_.front());
    in_flight_.pop_front();
    StepRecord& record = batch.record;
    IntegrateLevels(batch);
    executing_ = true;
    PassTime(record.end);
    executing_ = false;
    std::int64_t tokens = 0;
    for (const Member& member : batch.step.members) tokens += member.record.sampled > 0 ? 1 : 0;
    for (const Member& member : batch.step.members) {
      const std::size_t waiting = scheduler_.Waiting().size();
      const std::int64_t made = scheduler_.Apply(member);
      left_ += static_cast<std::int64_t>(waiting - scheduler_.Waiting().size());
      if (made == 0) continue;
      if (Deliver(*member.sequence, made, record.end, tokens))
        record.finished.push_back(member.record.id);
    }
    scheduler_.Propose(batch.step);
    record.free_after_step = scheduler_.Pool().Free();
    record.running_after_step = static_cast<std::int64_t>(scheduler_.Running().size());
    record.waiting_after_step = static_cast<std::int64_t>(scheduler_.Waiting().size());
    output_.steps.push_back(std::move(record));
  }

  // By how much images make the step longer, for each whose prompt is in it.
  void CountImages(const ScheduledStep& step, const StepPrice& price) {
    if (step.images == 0) return;
    ScheduledStep without = step;
    without.images = 0;
    const TimeNs encode = price.duration - Price(without, true).duration;
    output_.counts.encoded_images += step.images;
    output_.counts.encode_ns += encode;
    for (const Member& member : step.members) {
      if (member.decode || member.sequence->generated > 0) continue;
      output_.results.AddEncode(static_cast<std::size_t>(member.record.id), encode);
    }
  }

  void AveragePreemptions(const ScheduledStep& step) {
    const double weight = input_.latency.PreemptionWeight();
    const double running = std::max(1.0, static_cast<double>(scheduler_.Running().size()));
    const double rate = static_cast<double>(step.preempted.size()) / running;
    preemption_ema_ = weight * rate + (1 - weight) * preemption_ema_;
    if (preemption_ema_ < 1e-12) preemption_ema_ = 0;
  }

  // Each stage takes the batch when the one before is done with it and it with the batch before.
  void PassStages(const ScheduledStep& step, TimeNs collecting, StepRecord& record) {
    ReferenceCoverage& coverage = scheduler_.Coverage();
    if (!in_flight_.empty()) ++coverage.overlapping;
    TimeNs ready = record.start;
    for (std::size_t s = 0; s < input_.stages->size(); ++s) {
      const TimeNs from = std::max(ready, stage_free_[s]);
      if (s > 0 && from > ready) ++coverage.waits_for_stage;
      const TimeNs busy = StageTime(step, s, true) + (s == 0 ? collecting : 0);
      stage_free_[s] = ready = from + busy;
      record.stages.push_back({from, ready});
      output_.counts.stage_busy_ns += busy;
    }
    record.end = ready;
  }

  // Computing, then sending to the next stage.
  TimeNs StageTime(const ScheduledStep& step, std::size_t s, bool with_prefills) const {
    const PipelineStage& stage = (*input_.stages)[s];
    std::int64_t tokens = 0;
    for (const Member& member : step.members) {
      if (member.decode || with_prefills) tokens += member.record.tokens;
    }
    const double send = stage.send_ns + stage.send_ns_per_token * static_cast<double>(tokens);
    return PriceBy(*stage.latency, step, with_prefills).duration +
           static_cast<TimeNs>(std::nearbyint(send));
  }

  // By how much its prefills make a step longer for the decodes in it.
  TimeNs InterferenceOf(const ScheduledStep& step) const {
    std::int64_t decodes = 0;
    for (const Member& member : step.members) decodes += member.decode ? 1 : 0;
    if (decodes == 0) return 0;
    const TimeNs longer = Price(step, true).duration - Price(step, false).duration;
    return std::max<TimeNs>(longer, 0);
  }

  // Whether a step that is launched makes the first token of a request.
  static bool IsFirst(const Member& member) {
    const Sequence& sequence = *member.sequence;
    return member.record.sampled > 0 && sequence.generated == 0 &&
           sequence.sampling == member.record.sampled;
  }

  // With stages steps overlap, so each request counts its own: from where its time is spent up to
  // the end of this one it prefilled or decoded, or was waiting for its turn to.
  void SplitStagedTime(const ScheduledStep& step, const StepRecord& record) {
    if (record.interference > 0) ++scheduler_.Coverage().interfered;
    for (const Member& member : step.members) {
      Sequence& sequence = *member.sequence;
      if (sequence.preempted_at >= 0) {
        sequence.spent.preempted += record.start - sequence.preempted_at;
        sequence.preempted_at = -1;
      }
      if (member.record.kind != MemberKind::kContinued) sequence.split_until = record.start;
      const TimeNs since = record.end - sequence.split_until;
      sequence.split_until = record.end;
      if (member.decode) {
        sequence.spent.interference += record.interference;
        sequence.spent.decode += since - record.interference;
      } else {
        sequence.spent.prefill += since;
      }
      if (IsFirst(member)) sequence.to_first = sequence.spent;
    }
  }

  // The step's time, for each that is running while it runs.
  void SplitTime(const ScheduledStep& step, const StepRecord& record) {
    if (record.interference > 0) ++scheduler_.Coverage().interfered;
    const TimeNs computing = record.end - record.start - record.transfer;
    std::set<const Sequence*> in_step;
    for (const Member& member : step.members) {
      Sequence& sequence = *member.sequence;
      in_step.insert(&sequence);
      if (sequence.preempted_at >= 0) {
        sequence.spent.preempted += record.start - sequence.preempted_at;
        sequence.preempted_at = -1;
      }
      // Nothing is spent on one that the steps in flight will have ended.
      const bool over = member.yields && member.record.sampled == 0;
      if (!over) Spend(sequence, member.decode, computing, record);
      // Its first token is this step's.
      if (IsFirst(member)) sequence.to_first = sequence.spent;
    }
    for (Sequence* sequence : scheduler_.Running()) {
      const bool all_made = sequence->generated + sequence->sampling >= sequence->wanted;
      if (in_step.count(sequence) > 0 || all_made) continue;
      ++scheduler_.Coverage().sat_out;
      Spend(*sequence, !sequence->prefilling, computing, record);
    }
  }

  static void Spend(Sequence& sequence, bool decodes, TimeNs computing, const StepRecord& record) {
    sequence.spent.transfer += record.transfer;
    if (decodes) {
      sequence.spent.interference += record.interference;
      sequence.spent.decode += computing - record.interference;
    } else {
      sequence.spent.prefill += computing;
    }
  }

  void WriteWork(const ScheduledStep& step) {
    bool sampled = false;
    for (const Member& member : step.members) {
      const std::int64_t n = member.record.tokens, before = member.record.computed_before;
      sampled = sampled || member.yields;
      output_.tokens += n;
      if (member.decode && n == 1) {
        output_.decode_keys += before + 1;
        continue;
      }
      output_.prefill_keys += before + n;
      for (std::int64_t i = 1; i <= n; ++i) output_.prefill_pairs += before + i;
    }
    if (!sampled) ++output_.steps_without_head;
  }

  // A time of the step that begins now.
  TimeNs Slowed(TimeNs time) const {
    return ReferenceSlow(input_.slowdowns, input_.number, begin_, time);
  }

  StepPrice Price(const ScheduledStep& step, bool with_prefills) const {
    if (input_.stages == nullptr) {
      StepPrice price = PriceBy(input_.latency, step, with_prefills);
      price.duration = Slowed(price.duration);
      return price;
    }
    // Of all stages, the bound being that of the longest.
    StepPrice whole;
    whole.duration = 0;
    TimeNs longest = 0;
    for (std::size_t s = 0; s < input_.stages->size(); ++s) {
      const TimeNs time = StageTime(step, s, with_prefills);
      if (time > longest) {
        whole.bound = PriceBy(*(*input_.stages)[s].latency, step, with_prefills).bound;
        longest = time;
      }
      whole.duration += time;
    }
    return whole;
  }

  StepPrice PriceBy(const LatencyModel& latency, const ScheduledStep& step,
                    bool with_prefills) const {
    BatchShape shape;
    shape.transfer_blocks = step.transfer_blocks;
    if (with_prefills) shape.images = step.images;
    shape.preemption_ema = preemption_ema_;
    std::vector<PrefillChunk> chunks;
    std::map<std::int64_t, DraftedDecodes> by_tokens;
    std::set<std::int32_t> adapters;
    for (const Member& member : step.members) {
      const std::int32_t adapter = scheduler_.Drafts().Lora(member.record.id);
      if (adapter != 0 && (member.decode || with_prefills)) {
        adapters.insert(adapter);
        shape.lora.tokens += member.record.tokens;
      }
      if (member.decode && member.record.tokens > 1) {
        DraftedDecodes& alike = by_tokens[member.record.tokens];
        alike.context += member.record.computed_before;
        alike.sequences = alike.tokens == 0 ? 1 : alike.sequences + 1;
        alike.tokens = alike.logits = member.record.tokens;
        shape.decode_kv_blocks += static_cast<std::int64_t>(member.sequence->blocks.size());
      } else if (member.decode) {
        ++shape.decode_seqs;
        shape.decode_context_tokens += member.record.computed_before;
        shape.decode_longest = std::max(shape.decode_longest, member.record.computed_before);
        shape.decode_kv_blocks += static_cast<std::int64_t>(member.sequence->blocks.size());
      } else if (with_prefills) {
        chunks.push_back({.tokens = member.record.tokens,
                          .context = member.record.computed_before,
                          .prompt = member.sequence->prompt,
                          .samples = member.yields});
      }
    }
    shape.lora.adapters = static_cast<std::int64_t>(adapters.size());
    shape.prefill = chunks;
    std::vector<DraftedDecodes> drafted;
    for (const auto& [tokens, decodes] : by_tokens) drafted.push_back(decodes);
    shape.drafted = drafted;
    return latency.Price(shape);
  }

  // Each prefill as long as the longest of the step in its length bucket.
  void CountPadding(const ScheduledStep& step) {
    std::map<double, std::vector<std::int64_t>> buckets;
    for (const Member& member : step.members) {
      if (member.decode) continue;
      buckets[order_.BucketOf(static_cast<std::size_t>(member.record.id))].push_back(
          member.record.tokens);
    }
    for (const auto& [bucket, tokens] : buckets) {
      for (const std::int64_t of_one : tokens) {
        output_.counts.prefill_tokens += of_one;
        output_.counts.padding_tokens += *std::max_element(tokens.begin(), tokens.end()) - of_one;
      }
    }
    if (buckets.size() > 1) ++scheduler_.Coverage().steps_of_many_buckets;
  }

  void WritePreempted(const ScheduledStep& step) {
    for (const RequestId id : step.preempted) {
      ++output_.preemptions;
      ++output_.results.preemptions[static_cast<std::size_t>(id)];
      output_.results.state[static_cast<std::size_t>(id)] = RequestState::kQueued;
    }
  }

  // At `time` the step would have started that they are taken from.
  void TakeTime(const ScheduledStep& step, TimeNs time) {
    for (const RequestId id : step.preempted) {
      Sequence& sequence = *sequences_[static_cast<std::size_t>(id)];
      sequence.preempted_at = time;
      if (input_.stages == nullptr) continue;
      // Or, if that is later, when the step ends that it is in. All made: it just ends.
      sequence.preempted_at = std::max(time, sequence.split_until);
      const TimeNs since = sequence.preempted_at - sequence.split_until;
      const std::int64_t made = sequence.generated + sequence.sampling;
      if (made >= sequence.wanted) continue;
      (sequence.was_prefilling ? sequence.spent.prefill : sequence.spent.decode) += since;
    }
  }

  void WriteScheduled(const ScheduledStep& step, const StepRecord& record) {
    RequestResults& results = output_.results;
    for (const Member& member : step.members) {
      const auto at = static_cast<std::size_t>(member.record.id);
      results.state[at] = RequestState::kRunning;
      if (results.first_scheduled[at] >= 0) continue;
      results.first_scheduled[at] = record.start;
      results.cached_tokens[at] = static_cast<std::int32_t>(member.record.computed_before);
    }
    output_.peak_kv_blocks = std::max(output_.peak_kv_blocks, scheduler_.Pool().Used());
  }

  // Levels hold while the batch is in flight, until the next one starts.
  void IntegrateLevels(const Batch& batch) {
    TimeNs until = batch.record.end;
    if (!in_flight_.empty()) until = std::min(until, in_flight_.front().record.start);
    const TimeNs duration = until - batch.record.start;
    output_.running_ns += static_cast<__int128>(batch.record.running_after_schedule) * duration;
    output_.kv_block_ns += static_cast<__int128>(batch.kv_blocks) * duration;
    output_.kv_unused_ns += static_cast<__int128>(batch.kv_unused) * duration;
    output_.batch_token_ns += static_cast<__int128>(batch.step.Tokens()) * duration;
    output_.busy_ns += duration;
  }

  // The next tokens of a sequence, `made` at once, are out at `end`; true when its last one is
  // among them. `answered`: requests of the step with a token.
  bool Deliver(Sequence& sequence, std::int64_t made, TimeNs end, std::int64_t answered) {
    RequestResults& results = output_.results;
    const auto at = static_cast<std::size_t>(sequence.id);
    const bool first = sequence.generated == made;
    if (first) {
      sequence.late = answered * input_.latency.DeliveryDelay();
      sequence.late += ReferenceStall(input_.latency.Stalls(), input_.seed, 0, end + sequence.late);
    }
    const TimeNs delays = sequence.generated * input_.latency.OutputTokenDelay() + sequence.late;
    const TimeNs seen = end + delays;
    results.generated[at] = static_cast<std::int32_t>(sequence.generated);
    if (first) {
      if (seen <= sequence.gives_up) results.first_token[at] = seen;
    } else {
      ++output_.itl[seen - sequence.last_seen];
    }
    sequence.last_seen = seen;
    if (sequence.generated < sequence.wanted) return false;
    if (seen > sequence.gives_up) {  // nobody reads it any more
      results.state[at] = RequestState::kTimedOut;
      ++scheduler_.Coverage().timed_out_in_the_last_step;
      Failed(sequence.id, std::max(end, sequence.gives_up));
      return true;
    }
    results.completion[at] = seen;
    WriteTimes(sequence, end);
    results.state[at] = RequestState::kCompleted;
    if (sequence.wanted < sequence.asked) ++output_.length_capped;
    const std::int64_t next = RequestOf(sequence.id) + 1;
    if (next < requests_.size() && Follows(next)) {
      const auto then = static_cast<std::size_t>(next);
      requests_.arrival[then] = seen + requests_.think[then];
      ++scheduler_.Coverage().turns;
      Arrive(next);
    } else {
      Freed(seen);
    }
    return true;
  }

  void WriteTimes(const Sequence& sequence, TimeNs end) {
    const auto at = static_cast<std::size_t>(sequence.id);
    const RequestResults& results = output_.results;
    RequestTimes& times = output_.times[at];
    const TimeNs before = sequence.enqueue - sequence.arrival;
    times.ttft = sequence.to_first;
    times.ttft.host = before + input_.latency.OutputTokenDelay() + sequence.late;
    times.ttft.queue = results.first_scheduled[at] - sequence.enqueue;
    times.e2e = sequence.spent;
    times.e2e.host = before + (results.completion[at] - end);
    times.e2e.queue = times.ttft.queue;
  }

  // The clock's last reading, and who had arrived by then.
  void Finish() {
    TimeNs end = now_;
    if (input_.horizon) {
      end = std::max(now_, *input_.horizon);
    } else {
      for (const TimeNs arrival : requests_.arrival) end = std::max(end, arrival);
    }
    if (input_.dies_at) end = *input_.dies_at;
    PassTime(end);
    output_.end = end;
    for (const auto& sequence : sequences_) {
      if (!input_.dies_at || sequence == nullptr) continue;
      RequestState& state = output_.results.state[static_cast<std::size_t>(sequence->id)];
      if (state != RequestState::kQueued && state != RequestState::kRunning) continue;
      state = sequence->gives_up <= end ? RequestState::kTimedOut : RequestState::kLost;
    }
    for (std::int64_t row = 0; row < requests_.size(); ++row) {
      const auto at = static_cast<std::size_t>(row);
      RequestState& state = output_.results.state[at];
      if (requests_.arrival[at] < 0 || requests_.arrival[at] > end) continue;
      if (CanNeverFit(row)) {
        state = RequestState::kDropped;
      } else if (state == RequestState::kPending) {
        // On its way to the queue, unless its client gave up on the way. Without a horizon the run
        // is over when all is decided.
        const TimeNs gives_up = sequences_[at]->gives_up;
        const bool gone =
            gives_up < sequences_[at]->enqueue && (!input_.horizon || gives_up <= end);
        state = gone ? RequestState::kTimedOut : RequestState::kQueued;
        if (gone) ++scheduler_.Coverage().timed_out_on_the_way;
      }
      if (state == RequestState::kDropped) ++output_.dropped;
      if (state == RequestState::kTimedOut) ++output_.timed_out;
    }
    output_.prefix_cache = scheduler_.PrefixCache();
    output_.prefix_cache.evicted_blocks = scheduler_.Pool().Evicted();
    output_.counts.gc_passes = scheduler_.Collections();
    output_.counts.verified_steps = scheduler_.Counts().verified_steps;
    output_.counts.draft_tokens = scheduler_.Counts().draft_tokens;
    output_.counts.accepted_tokens = scheduler_.Counts().accepted_tokens;
    output_.counts.used_draft_tokens = scheduler_.Counts().used_draft_tokens;
    output_.counts.image_hits = scheduler_.Encoder().Hits();
    scheduler_.Coverage().image_hits = scheduler_.Encoder().Hits();
    scheduler_.Coverage().evicted_images = scheduler_.Encoder().Evicted();
    output_.allocation_failures = scheduler_.Failures();
    const TimeNs transfer = output_.kv_offload.transfer_ns;
    output_.kv_offload = scheduler_.Offload();
    output_.kv_offload.transfer_ns = transfer;
    output_.coverage = scheduler_.Coverage();
    output_.requests = std::move(requests_);
  }

  const ReferenceInput& input_;
  RequestTable requests_;  // arrivals of later turns are written
  const std::int64_t max_len_;
  const ReferenceOrder order_;
  Scheduler scheduler_;
  ReferenceTakeUp front_end_;
  std::vector<std::unique_ptr<Sequence>> sequences_;  // by row; null: none that was ever served
  std::set<Coming> arriving_;                         // not yet taken up
  std::set<Coming> coming_;                           // to the queue
  std::vector<Sequence*> joining_;                    // enqueued since the last schedule call
  std::deque<Batch> in_flight_;
  std::vector<TimeNs> stage_free_;  // when each is done with what it was given
  std::int64_t launched_ = 0;
  std::int64_t collections_paid_ = 0;  // whose time is in a step
  EngineLoad load_;                    // as the latest step was scheduled
  std::int64_t left_ = 0;  // ended in the queue since it was looked at: they count as waiting
  double preemption_ema_ = 0;
  std::int64_t firsts_sent_ = 0, retries_sent_ = 0;
  TimeNs now_ = 0;
  TimeNs begin_ = 0;        // of the step that is launched
  bool executing_ = false;  // time passes within a step
  TimeNs latest_enqueued_arrival_ = -1;
  ReferenceOutput output_;
};

}  // namespace

ReferenceOutput RunReference(const ReferenceInput& input) { return Driver(input).Run(); }

}  // namespace servecast::testing

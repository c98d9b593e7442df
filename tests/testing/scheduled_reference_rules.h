// How the schedulers after Vidur form a batch, a second time and the naive way, from docs/model.md
// ("Other schedulers"): every block is an object, the queue a list. Who drives them, alone or with
// prefill and decode apart, keeps the books of times.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/base.h"
#include "metrics/causes.h"
#include "testing/pd_reference_blocks.h"
#include "testing/reference_order.h"

namespace servecast::testing {

struct ScheduledJob {
  std::size_t row = 0;
  TimeNs arrival = 0;
  std::int64_t prompt = 0;    // its client's
  std::int64_t most = 0;      // output tokens that it is declared to make
  std::int64_t target = 0;    // tokens to compute before the next one is made
  std::int64_t computed = 0;  // tokens whose KV is there
  std::int64_t made = 0;      // output tokens
  QueueKey queue_key;         // unless the queue is in order of enqueue
  double priority = 0;        // who is preempted: lower is more urgent; 0: the last is
  std::vector<BlockId> blocks;
  std::int64_t found = 0;       // of them in the prefix cache, as it was admitted
  std::int64_t registered = 0;  // of them, from the first: can be found
  bool begun = false;           // it was in a batch since it was admitted
  bool remote = false;          // computed elsewhere: its KV has yet to come
  bool over = false;  // not served here any more, but its KV is on the way from or to here

  bool in_prefill() const { return computed < target; }
};

struct ScheduledMember {
  ScheduledJob* job = nullptr;
  std::int64_t tokens = 0;
};

struct ScheduledSettings {
  std::string policy;
  std::int64_t max_num_seqs = 0, max_num_batched_tokens = 0, max_model_len = 0, stages = 1;
  std::int64_t block_size = 0, blocks = 0, watermark_blocks = 0;  // lightllm: of one token
  bool prefix_caching = false, contentless_first = false;
  bool in_order_of_enqueue = true, victim_by_priority = false;

  // Of those whose memory is paged.
  bool Caches() const {
    return prefix_caching &&
           (policy == "vllm_v0" || policy == "sarathi" || policy == "longest_prefix");
  }
};

class ScheduledRules : public ScheduledSettings {
 public:
  // `requests` outlives it; of it only content is read.
  ScheduledRules(const ScheduledSettings& settings, const RequestTable& requests)
      : ScheduledSettings(settings),
        requests_(requests),
        pool_(settings.blocks, settings.Caches() && settings.contentless_first) {}

  std::vector<ScheduledJob*> all;
  std::deque<ScheduledJob*> queue, parked;  // parked: admitted, in no batch
  std::deque<ScheduledJob*> come;           // whose KV has come, and that are not parked yet

  void Enqueue(ScheduledJob* job);
  void Release(ScheduledJob* job);  // all its blocks

  // Makes the next batch, whose members leave the queue or are parked no more.
  void Form();
  std::vector<ScheduledMember> batch;
  std::vector<ScheduledJob*> sent_for;                    // admitted, and their KV is elsewhere
  std::vector<std::pair<ScheduledJob*, bool>> restarted;  // and whether in prefill
  BlockedBy blocked = BlockedBy::kNothing;
  std::int64_t self_restarts = 0, chunked = 0, from_the_middle = 0;  // in all

  std::int64_t Used() const { return pool_.Used(); }
  std::int64_t Free() const { return pool_.Free(); }
  std::int64_t Evicted() const { return pool_.Evicted(); }
  std::int64_t Admitted() const;
  std::int64_t BlocksFor(std::int64_t tokens) const {
    return (tokens + block_size - 1) / block_size;
  }

 private:
  std::int64_t MembersAllowed() const { return max_num_seqs / stages; }
  std::int64_t TokensInBatch() const;
  bool NoSeat(const ScheduledJob& job) const;
  std::vector<BlockId> LookUp(const ScheduledJob& job) const;
  std::int64_t Uncached(const ScheduledJob& job) const;
  bool PromptFits(const ScheduledJob& job) const;
  void Put(ScheduledJob* job, bool in_front);
  void RegisterBatch();
  void Restart(ScheduledJob* job);
  bool BlockForDecode(ScheduledJob* job);
  // It computes what it has not found, up to so many tokens.
  void Admit(ScheduledJob* job, std::int64_t of_blocks, std::int64_t most_tokens);
  void ParkArrived(std::size_t most);
  void SortParked();
  void FormVllmV0();
  void FormLongestPrefix();
  void DecodeParked();
  void FormSarathi();
  void FormReserving(bool fixed);
  void FormLightLlm();
  std::int64_t FuturePeak(const std::vector<const ScheduledJob*>& jobs) const;

  const RequestTable& requests_;
  BlockPool pool_;
  std::int64_t decodes_since_look_ = 0;
};

}  // namespace servecast::testing

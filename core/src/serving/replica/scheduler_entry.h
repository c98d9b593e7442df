// What a scenario's choice of a scheduler stands for: what it has, and how it is made. A scheduler
// is one file in policies/ and one line in the registry.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "servecast/result.h"
#include "servecast/scenario.h"
#include "serving/features.h"

namespace servecast {

class BatchScheduler;
class Machine;
class Scheduler;

// The schedulers of the folders beside this one. The first has the batches of a BatchScheduler;
// MakeGroupedScheduler is vLLM's of a model whose layers keep blocks in groups: the input has a
// plan of them.
std::unique_ptr<Scheduler> MakeJobScheduler(Machine& machine);
std::unique_ptr<Scheduler> MakeVllmScheduler(Machine& machine);
std::unique_ptr<Scheduler> MakeGroupedScheduler(Machine& machine);
std::unique_ptr<Scheduler> MakeSglangScheduler(Machine& machine);
std::unique_ptr<Scheduler> MakeTrtllmScheduler(Machine& machine);

// What a scheduler may decide by. `stages` batches are in flight at most, so a batch has at most
// max_num_seqs / stages members.
struct SchedulerLimits {
  std::int64_t max_num_seqs = 128;  // admitted, and in a batch of one stage
  std::int64_t stages = 1;
  std::int64_t max_num_batched_tokens = 512;  // sarathi: the chunk; vllm_v0, lightllm: of a prefill
  std::int64_t block_size = 16;
  std::int64_t blocks = 0;
  std::int64_t watermark_blocks = 0;    // kept free by admissions
  std::int64_t max_model_len = 0;       // reserved where the longest request is
  std::int64_t max_waiting_iters = 10;  // lightllm: decodes between two looks at the queue
  bool caches_prefixes = false;
  // Vidur's faults, for compat vidur. A decode asks for a spare block though it needs none; the
  // watermark holds for the only request, too; a prompt that is preempted in the middle is cut
  // there, the rest counts as output; with pipeline stages orca and faster_transformer fill each
  // batch to `max_reserved`, and reserve whole blocks of the greatest length only.
  bool as_vidur = false;
  std::int64_t max_reserved = 0;
  bool decodes = false;  // on a replica that others prefill for: remote jobs may come

  std::int64_t batch_limit() const { return max_num_seqs / stages; }
};

struct SchedulerEntry {
  std::string_view name, help;
  Features has;
  Lacks lacks;
  // The rules that form its batches, for MakeJobScheduler; nullptr: `machine` needs none.
  std::unique_ptr<BatchScheduler> (*make)() = nullptr;
  // A prompt is computed in pieces; or at once, and none may have more than max_num_batched_tokens,
  // or it is dropped; or, of neither, at once whatever its length.
  bool splits_prompts = false;
  bool whole_prompts = false;
  bool obeys_chunked_prefill = false;  // pieces with engine.enable_chunked_prefill, else whole
  bool counts_tokens = false;          // of KV cache, instead of blocks
  // Why it keeps nothing of requests that others could find; empty: it caches prefixes.
  std::string_view no_prefix_caching = {};
  bool preempts = false;  // when blocks run short; else it never does
  bool as_vllm = false;   // steps by vLLM V1's rules, on which closed forms rely
  bool overlaps = false;  // with async_scheduling: forms a batch while one computes
  // Of the longest sequence, tokens that it never makes; nullptr: none.
  std::int64_t (*keeps_room)(const EngineSpec& engine) = nullptr;
  bool own_cache = false;           // of prefixes; the replica's blocks are then a mere number
  std::string_view departure = {};  // how its batches differ from those of vLLM
  // What else it refuses in a scenario of one pool; nullptr: nothing.
  void (*refuse)(const Scenario& scenario, Issues& issues) = nullptr;
  std::unique_ptr<Scheduler> (*machine)(Machine&);
};

// The registered ones, in the order of menus; see registry.cpp.
std::span<const SchedulerEntry> Schedulers();
const SchedulerEntry& FindScheduler(std::string_view name);  // requires: a registered name

}  // namespace servecast

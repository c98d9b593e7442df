// The rules of SGLang's scheduler (v0.5.16), written to be read: every request has its tokens,
// every sum is made anew. It decides what the engine has to do; the recorded steps of SGLang itself
// (sglang_golden.h) decide whether it is right. "Rule" is one of their README.
//
// One of SGLang's habits is not followed: rule 38, where the victims of a preemption are lost. Here
// they go back to the queue, and the output says that a run came by it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/base.h"
#include "serving/policy.h"
#include "workload/request_table.h"

namespace servecast::testing {

// By SGLang's names. Of those that are not arguments of its server but variables of its environment
// the golden traces' README says which.
struct SglangSettings {
  std::int64_t max_running_requests = 0;
  std::int64_t chunked_prefill_size = 8192;  // -1: prompts are not cut
  std::int64_t max_prefill_tokens = 16384;
  std::optional<std::int64_t> prefill_max_requests;
  std::string schedule_policy = "fcfs";  // lpm, dfs-weight, lof
  double schedule_conservativeness = 1.0;
  std::int64_t page_size = 1;
  bool disable_radix_cache = false;
  bool enable_mixed_chunk = false;
  bool overlap = true;  // not disable_overlap_schedule
  std::int64_t max_total_num_tokens = 0;
  std::int64_t context_len = 0;
  bool enable_priority_scheduling = false;
  bool schedule_low_priority_values_first = false;
  std::int64_t priority_scheduling_preemption_threshold = 10;
  bool disable_priority_preemption = false;
  std::string radix_eviction_policy = "lru";
  std::string retraction_policy = "length";
  bool ignore_eos = false;
  double init_new_token_ratio = 0.7;
  double min_new_token_ratio_factor = 0.14;
  std::int64_t new_token_ratio_decay_steps = 600;
  std::int64_t retract_decode_steps = 20;
  std::int64_t clip_max_new_tokens = 4096;
  std::int64_t in_batch_check_threshold = 32;
  std::int64_t in_batch_deprioritize_threshold = 32;
  std::int64_t kept_embeds = 0;  // that SGLANG_VLM_CACHE_SIZE_MB has room for
  bool is_0_5_9 = false;         // by the rules of then (the README's "Age of these rules")
};

struct SglangMember {
  RequestId id = kNoRequest;
  std::int64_t tokens = 0;
  std::int64_t prefix = 0;
  char kind = 'e';  // an extend that ends the prompt; c: a chunk that does not; d: a decode

  friend bool operator==(const SglangMember&, const SglangMember&) = default;
};

// A row of a golden trace; what it says is in their README.
struct SglangStep {
  TimeNs scheduled = 0, start = 0, end = 0;
  std::string mode;
  std::vector<SglangMember> members;
  std::vector<RequestId> retracted, preempted, finished;
  RequestId chunked = kNoRequest;
  double new_token_ratio = 0;
  std::int64_t available_after_schedule = 0, evictable_after_schedule = 0;
  std::int64_t running_after_schedule = 0, waiting_after_schedule = 0;
  bool batch_is_full = false;
  std::int64_t available_after_step = 0, evictable_after_step = 0;
};

// Likewise, of a request.
struct SglangResult {
  TimeNs first_scheduled = -1, first_token = -1, finish = -1;
  std::int64_t output_tokens = 0;
  std::string finish_reason;
  std::int64_t retractions = 0;
  std::int64_t cached_tokens = 0, cached_at_first_schedule = 0, cached_on_resumes = 0;
  std::int64_t first_step = -1, finish_step = -1;
  std::vector<TimeNs> tokens;  // when each was there
};

struct SglangInput {
  const RequestTable& requests;              // arrivals, lengths, contents, images and priorities
  const std::vector<std::int64_t>& max_new;  // a request's limit on its output tokens
  SglangSettings settings;
  const LatencyModel& latency;
};

struct SglangOutput {
  std::vector<SglangStep> steps;
  std::vector<SglangResult> results;
  std::int64_t would_lose = 0;  // victims of a preemption, by rule 38
  std::int64_t encoded_images = 0, image_hits = 0, images_evicted = 0, images_too_large = 0;
  bool out_of_memory = false;   // it would have stopped with an error; here somebody waits
  bool waits_for_ever = false;  // it would have: what it lets a request ask for is never admitted
};

SglangOutput RunSglangReference(const SglangInput& input);

}  // namespace servecast::testing

// The rules of TensorRT-LLM's scheduler, written to be read: every request has its tokens, every
// block its content, every sum is made anew. It decides what the engine has to do; the recorded
// steps (trtllm_golden.h) decide whether it is right. "Rule" is one of their README.
//
// It has what no scenario has, too: drafts beside this scheduler.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/base.h"
#include "serving/policy.h"
#include "workload/request_table.h"

namespace servecast::testing {

// By the names of the golden traces' manifest.
struct TrtllmSettings {
  std::string policy = "GUARANTEED_NO_EVICT";
  std::int64_t max_batch_size = 0, max_num_tokens = 0, max_seq_len = 0;
  std::int64_t tokens_per_block = 32, num_blocks = 0;
  bool enable_block_reuse = true, enable_partial_reuse = true, copy_on_partial_reuse = true;
  bool enable_prefix_aware_scheduling = true;
  bool enable_chunked_prefill = false;
  std::string context_chunking_policy = "FIRST_COME_FIRST_SERVED";
  std::optional<std::int64_t> chunk_unit_size;
  bool overlap = true;
  std::int64_t batch_wait_timeout_iters = 0;
  double batch_wait_max_tokens_ratio = 0;
  std::int64_t draft_len = 0;
  std::string waiting_queue = "FCFS";
  std::int64_t attention_dp_size = 1;
  bool attention_dp_enable_balance = false;
  std::int64_t attention_dp_timeout_iters = 50, attention_dp_batching_wait_iters = 10;
};

struct TrtllmMember {
  RequestId id = kNoRequest;  // -1: a dummy of attention data parallelism
  std::int64_t tokens = 0, begin = 0;
  bool last = false;  // a chunk that ends its prompt

  friend bool operator==(const TrtllmMember&, const TrtllmMember&) = default;
};

// A row of a golden trace; what it says is in their README.
struct TrtllmStep {
  std::int64_t step = 0, rank = 0;
  TimeNs scheduled = 0, start = 0, end = 0;
  std::int64_t T = 0, K = 0;
  double Q = 0;
  std::vector<TrtllmMember> context;
  std::vector<RequestId> generation;
  std::vector<std::int64_t> draft;  // of each of them; empty without
  std::vector<RequestId> paused, finished;
  std::int64_t fitting = 0, free_after_schedule = 0, free_after_step = 0;
  std::int64_t active_after_schedule = 0, waiting_after_schedule = 0, active_after_step = 0;
};

// Likewise, of a request.
struct TrtllmResult {
  std::int64_t rank = 0;
  TimeNs activated = -1, first_scheduled = -1, first_token = -1, finish = -1;
  std::int64_t generated = 0, pauses = 0, reused_first = 0, reused_resumes = 0;
  std::int64_t first_step = -1, first_token_step = -1, finish_step = -1;
  std::vector<TimeNs> tokens;  // when each was there
};

struct TrtllmInput {
  const RequestTable& requests;              // arrivals, lengths, contents, priorities
  const std::vector<std::int64_t>& max_new;  // a request's limit on its output tokens
  TrtllmSettings settings;
  const LatencyModel& latency;
};

struct TrtllmOutput {
  std::vector<TrtllmStep> steps;
  std::vector<TrtllmResult> results;
  std::int64_t revived = 0;  // rule 39
  bool would_stop = false;   // it would have stopped with an error, or waited for ever
  bool odd = false;  // ranks whose outputs wait for a step of all (rule 71): a pause, or a jump in
                     // time, came between, which the engine does not follow
};

TrtllmOutput RunTrtllmReference(const TrtllmInput& input);

}  // namespace servecast::testing

// One replica's scheduler and its KV blocks, in the reference of prefill and decode apart: vLLM's,
// or one after Vidur. Blocks are reserved here for KV that is to come, and held for KV that has to
// go.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "testing/pd_reference.h"

namespace servecast::testing {

// A request on one replica: one that is prefilled here and decoded there is two of them.
struct PdSequence {
  RequestId id = kNoRequest;
  TimeNs arrival = 0, gives_up = kNever;
  std::int64_t prompt = 0, asked = 0, wanted = 0;
  std::int64_t generated = 0, computed = 0;
  // Tokens that are to be known, and steps that it is in: async scheduling, pipeline stages.
  std::int64_t placeholders = 0, in_flight = 0;
  std::vector<std::size_t> blocks;  // vLLM's
  std::int64_t registered = 0;
  bool hands_over = false;  // prefilled here
  bool remote = false;      // its KV has yet to be sent for
  bool incoming = false;    // ... is on its way, or there
  bool arrived = false;
  bool running = false, prefilling = true, preempted = false, timed_out = false;
  bool gave_up = false;  // other schedulers: it is in a batch, and leaves after it
  bool fresh = false;    // KV has come, and it has been in no batch since
  bool was_fresh = false, was_prefilling = false;  // when it was preempted
  std::int64_t made_or_in_flight = 0;              // then

  std::int64_t Known() const { return prompt + generated; }
};

struct PdMember {
  PdSequence* sequence = nullptr;
  StepMember record;
  bool decode = false;       // for a latency model
  std::int64_t blocks = 0;   // that it holds
  bool first_token = false;  // it makes it
  bool after_first = false;  // a decode after it
};

struct PdCall {
  std::vector<PdMember> members;
  std::vector<PdSequence*> preempted;
  std::vector<std::pair<PdSequence*, std::int64_t>> reserved;  // and blocks that have to come
};

class PdScheduler {
 public:
  virtual ~PdScheduler() = default;

  virtual void Enqueue(PdSequence* sequence) = 0;
  // Who computes how many tokens now, and whose blocks are taken for KV that is to come.
  virtual PdCall Schedule() = 0;
  // The output of a member's step is there. True when a token of the request is known by it.
  virtual bool Apply(const PdMember& member) = 0;
  // Its client gave up. Where its KV is on the way its blocks are held until that has come.
  virtual void Remove(PdSequence& sequence) = 0;
  // Its KV has come.
  virtual void Arrive(PdSequence& sequence) = 0;
  // Its KV has gone.
  virtual void Free(PdSequence& sequence) = 0;

  virtual std::int64_t FreeBlocks() const = 0;
  virtual std::vector<PdSequence*> Running() const = 0;
  virtual std::int64_t Waiting() const = 0;
  virtual bool HasWork() const = 0;
  virtual bool AwaitsKv() const = 0;
  // Whose clients wait for something from it.
  virtual std::vector<PdSequence*> Clients() const = 0;
};

std::unique_ptr<PdScheduler> MakePdVllm(const PdInput& input, const PdPool& pool,
                                        const RequestTable& requests, PdCoverage& coverage);
std::unique_ptr<PdScheduler> MakePdScheduled(const PdInput& input, const PdPool& pool,
                                             const RequestTable& requests, PdCoverage& coverage);

}  // namespace servecast::testing

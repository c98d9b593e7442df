// What distinguishes the BLIS of February 2026 (git 98073225) from that of today (f90a1e3a).
#pragma once

#include <string_view>
#include <vector>

#include "servecast/scenario.h"

namespace servecast {

struct BlisEra {
  // Events of one time are ordered by kind, then by creation. Otherwise as the heap leaves them,
  // which knows times only.
  bool orders_events;
  // An enqueued request starts a chain of steps only if none is on its way. Otherwise two requests
  // that are enqueued at one time start two chains over one batch.
  bool one_chain;
  // A request that was given no tokens is neither billed nor advanced. Otherwise it is billed for
  // the tokens of its last step, and a decode advances.
  bool only_granted_advance;
  bool phantom_gap;            // one gap between tokens too many for each completed request
  bool counts_first_token;     // output tokens count at completion, all; else each decode, at once
  bool forgets_on_preemption;  // gaps and first token of a preempted request; else they stay
  bool returns_budget;         // the tokens of a preempted request go back to the step
  bool visits_evicted;         // a step goes through the batch that it began with
  bool limits;                 // max_model_len, time-outs, preemption by priority
  bool counts_claimed_blocks;  // see BlisKv::Options
  bool mirrors;                // see BlisKv::Host
};

const BlisEra& EraOf(Compat compat);  // requires: one of BLIS's

// How its results come to differ from vLLM's, as sentences; `tiered`: with memory of the host.
std::vector<std::string_view> DeparturesOf(const BlisEra& era, bool tiered);

}  // namespace servecast

// See blis_era.h.
#include "serving/blis/blis_era.h"

#include <utility>

namespace servecast {
namespace {

constexpr BlisEra kFebruary = {.orders_events = false,
                               .one_chain = false,
                               .only_granted_advance = false,
                               .phantom_gap = true,
                               .counts_first_token = false,
                               .forgets_on_preemption = false,
                               .returns_budget = false,
                               .visits_evicted = true,
                               .limits = false,
                               .counts_claimed_blocks = false,
                               .mirrors = false};
constexpr BlisEra kToday = {.orders_events = true,
                            .one_chain = true,
                            .only_granted_advance = true,
                            .phantom_gap = false,
                            .counts_first_token = true,
                            .forgets_on_preemption = true,
                            .returns_budget = true,
                            .visits_evicted = false,
                            .limits = true,
                            .counts_claimed_blocks = true,
                            .mirrors = true};

}  // namespace

const BlisEra& EraOf(Compat compat) { return compat == Compat::kBlis ? kToday : kFebruary; }

std::vector<std::string_view> DeparturesOf(const BlisEra& era, bool tiered) {
  const std::pair<bool, std::string_view> all[] = {
      {true, "drain: when a batch drains, the next arrival starts while its last step still runs"},
      {true, "cached prompts: one that is cached as a whole costs nothing; vLLM computes a token"},
      {true, "preemption: what was generated is thrown away and made again; vLLM keeps it"},
      {true, "alpha: per-token time of the host is added at the client, never to the device"},
      {true, "scheduling: always synchronous, with no time of the host between two steps"},
      {true, "time: all durations are cut to whole microseconds"},
      {era.phantom_gap, "phantom gap: each completed request has one gap between tokens too many"},
      {!era.one_chain, "two chains: two arrivals of one instant start two loops over one batch"},
      {!era.only_granted_advance, "free tokens: decodes that the budget left out advance too"},
      {!era.forgets_on_preemption, "latencies: those from before a preemption are counted again"},
      {!era.returns_budget, "budget: the tokens of a preempted request are lost to its step"},
      {tiered && era.mirrors,
       "offload: each step copies all blocks of its batch, whatever the threshold; what comes back "
       "costs its transfer and is computed all the same"},
      {tiered && !era.mirrors,
       "offload: blocks leave when a request does, and come back when blocks run short, whosever "
       "they are"},
  };
  std::vector<std::string_view> departures;
  for (const auto& [applies, sentence] : all) {
    if (applies) departures.push_back(sentence);
  }
  return departures;
}

}  // namespace servecast

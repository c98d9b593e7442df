// What drafts change for a scheduler by the method that proposes them (rules S1, S2, S18 and S28 of
// the golden traces with drafts), and how many of them are proposed and accepted, which no
// scheduler decides.
#pragma once

#include <cstdint>
#include <vector>

#include "base/base.h"
#include "base/random.h"
#include "servecast/scenario.h"
#include "workload/request_table.h"

namespace servecast {

// Tokens that a step may compute: some are kept for drafts that a drafter makes of its own slots.
std::int64_t TokenBudget(const EngineSpec& engine);

// One that is told the model's hidden states, which the KV cache does not keep.
bool NeedsHiddenStates(DraftMethod method);

struct DraftRules {
  explicit DraftRules(const EngineSpec& engine);

  // Drafts of a request after a step of so many members.
  std::int64_t After(std::int64_t members) const;

  std::int64_t most = 0;       // vLLM's num_speculative_tokens
  std::int64_t lookahead = 0;  // slots of KV blocks beyond a step's tokens
  std::int64_t budget = 0;     // tokens of a step
  bool drops_last_hit = false;
  bool varies = false;          // the drafter may find fewer, which the next schedule call knows
  bool pads_one_token = false;  // see SpeculativeSpec
  struct Range {
    std::int64_t from = 0, drafts = 0;
  };
  std::vector<Range> by_members;  // as rows are given; empty: always `most`
};

// By position, the probability that a draft and all before it are accepted.
std::vector<double> AcceptanceRates(const SpeculativeSpec& spec);

class Acceptance {
 public:
  // By position, the draws (DrawOf) below which it and all before it are accepted.
  using Law = std::vector<std::uint64_t>;

  // `requests` outlives it.
  Acceptance(const SpeculativeSpec& spec, const RequestTable& requests, std::int64_t seed);

  // Of the drafts of a request's n-th step with drafts, from 0 on. Without a recorded list: as many
  // as have a rate above one uniform draw, which is the same for any number of drafts.
  std::int64_t Accepted(RequestId request, std::int64_t n, std::int64_t drafts) const;
  // By a drafter whose number varies, after the request's n-th step with output.
  std::int64_t Proposed(RequestId request, std::int64_t n, std::int64_t most) const;

  // The same for whoever does many steps of a request: a law, and the key of the n-th step's draw,
  // from which on each is kGolden more than the one before. Require: it draws.
  bool Draws() const { return requests_.accepted_drafts.empty(); }
  const Law& LawOf(RequestId request) const;
  std::uint64_t KeyOf(RequestId request, std::int64_t n) const;
  static std::uint64_t DrawOf(std::uint64_t key);

 private:
  // Of a mean length, each draft as likely as the one before it.
  struct Length {
    double length = 0;
    Law law;
  };

  Law law_;                      // the engine's
  std::vector<Length> lengths_;  // of requests: few different ones, by class
  double draft_share_;
  const RequestTable& requests_;
  std::int64_t seed_;
};

inline std::uint64_t Acceptance::DrawOf(std::uint64_t key) { return Mix64(key) >> 12; }

}  // namespace servecast

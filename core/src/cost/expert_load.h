// How uneven the load of a mixture of experts is when every token chooses its experts at random:
// which of them a step touches at all, and what falls to the busiest GPU when each holds whole
// ones.
#pragma once

namespace servecast {

// Experts that so many tokens are expected to touch: E (1 - (1 - k/E)^tokens).
// Require: 1 <= active <= experts, tokens >= 0.
double ExpertsTouched(double experts, double active, double tokens);

// What the busiest of a group of GPUs has to do, over what each GPU has by share; both >= 1. Of the
// experts that it holds those that are read, and of the rows of tokens those that are multiplied.
struct ExpertLoad {
  double rows = 1, read = 1;
};

// Expected over layers, each of which waits for its own busiest GPU: the mean and, of the spread of
// a GPU's share, the expected greatest of `group` normal draws. Within 7 % of drawn loads from 8
// tokens on (tests). Require: 1 <= active <= experts; O(1).
class BusiestGpu {
 public:
  BusiestGpu() = default;
  BusiestGpu(double experts, double active, double group);
  // Neither rows nor reads fall as tokens rise.
  ExpertLoad Of(double tokens, double touched) const;

 private:
  double experts_ = 1, active_ = 1, held_ = 1, share_ = 1, spread_ = 0, greatest_ = 0;
};

}  // namespace servecast

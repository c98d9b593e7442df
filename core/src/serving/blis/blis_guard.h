// Ours: where BLIS would go on for ever, when a request has to be dropped so that a run ends.
#pragma once

#include <algorithm>
#include <cstdint>

namespace servecast {

class BlisGuard {
 public:
  explicit BlisGuard(bool host) : most_lone_evictions_(host ? 500 : 16), patience_(host ? 4 : 1) {}

  // One that will come, of so many tokens in prompt and output.
  void Expect(std::int64_t tokens) { most_tokens_ = std::max(most_tokens_, tokens); }

  // A request left for good.
  void Left() { lone_evictions_ = contested_steps_ = 0; }

  // The last request of a batch was preempted: whether it is to be dropped. Not the first time,
  // though it may have had all blocks: a prompt that is all cached holds none when it comes back.
  // With a host still later, as each time other blocks go there and come back: BLIS was seen to go
  // on after 232 times, and 3,085 steps in which requests of 137 tokens at most were preempted.
  bool EvictedAlone() { return ++lone_evictions_ >= most_lone_evictions_; }

  // After a step: whether the head of the queue is to be dropped. It is after kStuckSteps that gave
  // no request a token. Also when steps preempt for ever: while the tail of the batch makes way,
  // its head has its last token after at most twice as many steps as it has tokens; but victims by
  // priority can take the blocks from each other without end, as they lose what they made.
  bool IsStuck(bool granted, bool preempted, bool queued) {
    stuck_steps_ = granted || !queued ? 0 : stuck_steps_ + 1;
    contested_steps_ += preempted ? 1 : 0;
    const bool endless = contested_steps_ >= patience_ * (kStuckSteps + 4 * most_tokens_) && queued;
    if (stuck_steps_ < kStuckSteps && !endless) return false;
    stuck_steps_ = 0;
    return true;
  }

 private:
  static constexpr std::int64_t kStuckSteps = 1000;

  std::int64_t most_lone_evictions_, patience_;
  std::int64_t most_tokens_ = 0;
  std::int64_t stuck_steps_ = 0;
  std::int64_t lone_evictions_ = 0, contested_steps_ = 0;  // since a request left for good
};

}  // namespace servecast

#include "serving/batch_former.h"

#include <algorithm>

namespace servecast {

void FormerState::Restart(JobIndex index) {
  Job& j = job(index);
  const std::int64_t total = j.prompt + j.output;
  j.prompt = cuts_partial_prompts ? j.processed : std::max(j.prompt, j.processed);
  j.output = total - j.prompt;
  j.processed = 0;
  ++j.restarts;
  ++restarts;
  Free(index);
  waiting.push_front(index);
}

bool TakeDecodeBlock(FormerState& state, JobIndex index) {
  while (!state.Fits(1)) {
    if (state.parked.empty()) {
      state.Restart(index);
      return false;
    }
    const JobIndex victim = state.parked.back();
    state.parked.pop_back();
    state.Restart(victim);
  }
  state.Grow(index);
  return true;
}

void SortParked(FormerState& state) {
  std::stable_sort(state.parked.begin(), state.parked.end(), [&](JobIndex a, JobIndex b) {
    return state.job(a).arrival < state.job(b).arrival;
  });
}

}  // namespace servecast

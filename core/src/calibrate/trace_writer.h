// A run as the traces that such a server would write: the other way of step_trace.h. Steps are
// written as they happen, so memory does not grow with the run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "serving/hooks.h"

namespace servecast {

class StepTraceWriter final : public StepObserver {
 public:
  using Write = std::function<void(std::string_view)>;

  // `scenario`: the document of the server, which every line carries. Every `rich_every`-th step
  // has snapshots of its requests, from the first.
  StepTraceWriter(Write write, std::string scenario, std::int64_t kv_blocks,
                  std::int64_t block_size, std::int64_t rich_every);

  // Before the first step, and good until Finish: requests, and what became of them.
  void Watch(const RequestTable& requests, const RequestResults& results);
  void OnStep(const StepRecord& step) override;
  // The requests' journeys, and the end.
  void Finish();

 private:
  void WriteSnapshot(const StepRecord& step, const StepMember& member, bool prefill);
  void WriteJourney(std::size_t request);
  void Flush(const char* scope, const char* span, const std::string& attributes);

  // When a request was taken in for the first time, and by which step; its later setbacks.
  struct Path {
    std::int64_t first_step = -1;
    std::int64_t sampled = 0;
    bool out = false;
    std::vector<TimeNs> preempted, resumed;
  };
  Write write_;
  std::string scenario_, events_;
  std::int64_t blocks_, block_size_, rich_every_;
  std::int64_t pending_ = 0;  // events of a line that is not written yet
  const RequestTable* requests_ = nullptr;
  const RequestResults* results_ = nullptr;
  std::vector<Path> paths_;
};

}  // namespace servecast

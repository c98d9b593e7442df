// A run as a time line in Chrome's trace format, which Perfetto opens; docs/model.md, section 6,
// says what is in it. Steps are written as they happen, so memory does not grow with the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.h"
#include "servecast/report.h"
#include "serving/hooks.h"

namespace servecast {

class TimeLine final : public StepObserver {
 public:
  using Write = std::function<void(std::string_view)>;

  // Writes its beginning.
  explicit TimeLine(Write write);
  void OnStep(const StepRecord& step) override;
  // Its requests that arrive up to `until`, and its end. Requires: the report has requests.
  void Finish(const Report& report, TimeNs until);

 private:
  void WriteRequest(const Report& report, std::size_t request);
  void WriteEvent(const std::string& event);
  void NameReplica(std::int64_t replica, std::size_t stages);
  void NameThread(std::int64_t replica, std::size_t thread, const std::string& name);
  void Mark(const char* name, RequestId request, TimeNs time);
  std::size_t LaneOf(const StepRecord& step);

  Write write_;
  bool first_event_ = true;
  std::vector<bool> named_;                 // by replica
  std::vector<std::vector<TimeNs>> lanes_;  // by replica: when the last step of each thread ends
};

}  // namespace servecast

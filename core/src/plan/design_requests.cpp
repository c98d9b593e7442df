// See design_requests.h.
#include "plan/design_requests.h"

#include <optional>
#include <utility>

#include "servecast/workload_spec.h"
#include "workload/workload.h"

namespace servecast {
namespace {

constexpr std::int64_t kMostKept = 4096;

struct Drawn {
  WorkloadSpec workload;
  std::int64_t seed = 0;
  RequestTable requests;
};

bool IsOfTrace(const Trace& trace) {
  return !trace.rows.empty() || !trace.accepted_drafts.empty() || !trace.adapters.empty();
}

}  // namespace

Result<RequestTable> DrawnRequests(const Scenario& s, const Trace& trace) {
  if (IsOfTrace(trace) || s.workload->requests > kMostKept) return MakeRequests(s, trace);
  thread_local std::optional<Drawn> last;
  if (last && last->seed == s.seed && last->workload == *s.workload) return last->requests;
  Result<RequestTable> made = MakeRequests(s, trace);
  if (made.ok()) last = Drawn{*s.workload, s.seed, made.value()};
  return made;
}

}  // namespace servecast

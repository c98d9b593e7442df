// See issues.h.
#include "io/issues.h"

#include <string>
#include <utility>

#include "base/text.h"

namespace servecast {

Issue Unlisted(std::size_t count) { return {"", Format("{}", count), kMoreIssues}; }

Issues Bounded(Issues issues) {
  Issues bounded;
  std::size_t more = 0;
  for (Issue& issue : issues) {
    if (issue.kind == kMoreIssues) {
      more += static_cast<std::size_t>(ParseCount(issue.message).value_or(0));
    } else if (bounded.size() < kMostIssues) {
      bounded.push_back(std::move(issue));
    } else {
      ++more;
    }
  }
  if (more > 0) bounded.push_back({"", Format("and {} more issues", more), kMoreIssues});
  return bounded;
}

}  // namespace servecast

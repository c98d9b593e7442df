// See inputs.h.
#include "fuzz/inputs.h"

#include <algorithm>

#include "base/base.h"

namespace servecast::fuzz {

std::vector<std::string_view> Parts(std::string_view input) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t cut = std::min(input.find(kCut), input.size());
    parts.push_back(input.substr(0, cut));
    if (cut == input.size()) return parts;
    input.remove_prefix(cut + kCut.size());
  }
}

void CheckIssues(const Issues& issues) {
  SERVECAST_CHECK(!issues.empty(), "a refusal says why");
  for (const Issue& issue : issues)
    SERVECAST_CHECK(!issue.message.empty(), "an issue says something");
}

void CheckRead(const Result<Scenario>& read) {
  if (!read.ok()) {
    CheckIssues(read.issues());
    for (const Issue& issue : read.issues()) {
      SERVECAST_CHECK(issue.path.empty() || issue.path[0] == '/', "a path is a JSON pointer");
    }
    return;
  }
  const Scenario& s = read.value();
  const Result<Scenario> canonical = ParseScenario(s.canonical_text);
  SERVECAST_CHECK(canonical.ok(), "canonical text is a scenario");
  const Scenario& c = canonical.value();
  SERVECAST_CHECK(c.canonical_text == s.canonical_text,
                  "canonical text of canonical text is itself");
  SERVECAST_CHECK(c.id == s.id, "canonical text has the scenario's id");
  SERVECAST_CHECK(c.resolved_text == s.resolved_text, "canonical text resolves to the same");
  SERVECAST_CHECK(c.content_hash == s.content_hash, "canonical text has the scenario's content");
  const Result<Scenario> resolved = ParseScenario(s.resolved_text);
  SERVECAST_CHECK(resolved.ok(), "resolved text is a scenario");
  const Scenario& r = resolved.value();
  SERVECAST_CHECK(r.resolved_text == s.resolved_text, "resolved text of resolved text is itself");
  SERVECAST_CHECK(r.content_hash == s.content_hash, "resolved text has the scenario's content");
}

}  // namespace servecast::fuzz

// Fuzz target: a scenario document and, after cuts, overrides "path=value".
#include <string>
#include <vector>

#include "base/base.h"
#include "fuzz/inputs.h"

namespace servecast::fuzz {
namespace {

void ReadDocument(std::string_view input) {
  const std::vector<std::string_view> parts = Parts(input);
  const Result<Scenario> read = ParseScenario(parts[0]);
  CheckRead(read);
  // Overrides go through the document's values: none may change on the way.
  const Result<std::string> untouched = ApplyOverrides(parts[0], {});
  if (untouched.ok()) {
    const Result<Scenario> again = ParseScenario(untouched.value());
    SERVECAST_CHECK(again.ok() == read.ok(), "no override changes whether a document is valid");
    SERVECAST_CHECK(!read.ok() || again.value().id == read.value().id,
                    "no override changes a scenario");
  } else {
    CheckIssues(untouched.issues());
    SERVECAST_CHECK(!read.ok(), "a scenario takes overrides");
  }
  if (parts.size() == 1) return;
  const Result<std::string> changed =
      ApplyOverrides(parts[0], std::vector<std::string>(parts.begin() + 1, parts.end()));
  if (changed.ok()) {
    CheckRead(ParseScenario(changed.value()));
  } else {
    CheckIssues(changed.issues());
  }
}

}  // namespace
}  // namespace servecast::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  servecast::fuzz::ReadDocument(servecast::fuzz::TextOf(data, size));
  return 0;
}

// Fuzz target: the readable form of a link, "p=PRESET&path=value&...".
#include <string>

#include "base/base.h"
#include "fuzz/inputs.h"

namespace servecast::fuzz {
namespace {

void ReadLink(std::string_view input) {
  const Result<std::string> document = ParseReadableLink(input);
  if (!document.ok()) {
    CheckIssues(document.issues());
    return;
  }
  CheckRead(ParseScenario(document.value()));
  const Result<std::string> again = ApplyOverrides(document.value(), {});
  // Values may be nested deeper, each in its place, than a document may.
  SERVECAST_CHECK(!again.ok() || again.value() == document.value(),
                  "a link's document is compact JSON");
}

}  // namespace
}  // namespace servecast::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  servecast::fuzz::ReadLink(servecast::fuzz::TextOf(data, size));
  return 0;
}

// Fuzz target: a link of either form, and the readable one alone, "p=PRESET&path=value&...".
#include <string>

#include "base/base.h"
#include "fuzz/inputs.h"
#include "host/link.h"

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

void ReadEither(std::string_view input) {
  const Result<Link> link = DecodeLink(input);
  if (!link.ok()) {
    CheckIssues(link.issues());
    return;
  }
  ReadPin(link.value().pin);
  CheckRead(ParseScenario(link.value().document));
  const Result<Link> again = DecodeLink(EncodeLink(link.value().document, "", ""));
  // What overrides make of a preset may be longer than a link may hold.
  SERVECAST_CHECK(!again.ok() || again.value().document == link.value().document,
                  "a link that is written anew says the same");
}

}  // namespace
}  // namespace servecast::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  servecast::fuzz::ReadLink(servecast::fuzz::TextOf(data, size));
  servecast::fuzz::ReadEither(servecast::fuzz::TextOf(data, size));
  return 0;
}

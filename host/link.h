// Links to the page: what stands after its "#", read and written as web/src/share does. The decoder
// bounds its work before it does any, and says of every text that is no link why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "servecast/report.h"
#include "servecast/result.h"

namespace servecast {

struct Link {
  std::string document;  // JSON; whether it is a scenario, ParseScenario tells
  std::string trace;     // the name of the file that it replays; "": none
  std::string pin;       // the author's result, as it stands there; "": none
};

// Of a link, "z1.<packed>..." or "p=PRESET&path=value...", or of an address that ends with one
// behind "#". At most 256 KiB, packed or not.
Result<Link> DecodeLink(std::string_view text);

// The packed form of a canonical text; `pin` may be "".
std::string EncodeLink(const std::string& canonical, const std::string& trace,
                       const std::string& pin);

// The author's result: v=<schema>.<engine version>, r=<verdict>,<value of each target in millionths
// of a second, or of one for a share>, f=<fingerprint>.
struct Pin {
  std::string version, state, fingerprint;
  std::vector<std::optional<std::int64_t>> values;
};

// Of a report that is finished.
std::string PinOf(const Report& report);

// nullopt: it is cut short, damaged, or of a form that nobody released.
std::optional<Pin> ReadPin(std::string_view pin);

}  // namespace servecast

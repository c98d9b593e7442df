// Why a server may be slower or faster than its forecast: changes of the scenario, each as
// overrides of the document, with what a person looks at to prove it. Whether one explains
// anything, a run says (diagnosis.h).
#pragma once

#include <string>
#include <vector>

#include "servecast/import.h"
#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {

struct Cause {
  std::string kind;                    // of two of one kind at most one holds
  std::string words;                   // "prefix caching is off"
  std::vector<std::string> overrides;  // as ApplyOverrides takes them
  std::string proof;                   // a command, an option or a line of a log
};

// What the texts of a server say of it (servecast/import.h).
struct ServerFacts {
  std::vector<MeasuredValue> measured;
  std::vector<std::string> said;  // members; causes that contradict one are none
};

// Those that make sense of this scenario, whose run `report` is, in no order. `slower`: the server
// is, so that what could only make it faster is left out; and the other way round.
std::vector<Cause> CausesOf(const Scenario& scenario, const Report& report,
                            const ServerFacts& facts, bool slower);

}  // namespace servecast

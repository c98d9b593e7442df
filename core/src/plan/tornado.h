// What each input moves: the scenario with a fifth less and a fifth more of each, one at a time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/json_writer.h"
#include "servecast/report.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

inline constexpr double kTurn = 0.2;  // of each input, to either side

// One input, turned to one side.
struct Turn {
  std::string input;
  bool more = false;
  Scenario scenario;
};

// The load, where it has a rate or clients; lengths of prompts and of outputs; then every resource,
// with a fifth less and a fifth more of each. `report`: of a run of the scenario.
std::vector<Turn> TurnsOf(const Scenario& scenario, const Report& report);

// The target that a tornado is of: the closest to its limit. Requires: one at least.
std::size_t TornadoTarget(const Report& as_it_is);

// Both sides of an input: a report, or the issues because of which it cannot run; neither yet.
struct Side {
  std::optional<Report> report;
  Issues issues;
};
struct Swing {
  std::string input;
  Side less, more;
};

// Members of an open object; inputs by falling difference between the two sides' values.
void WriteTornado(const Report& as_it_is, std::vector<Swing> swings, JsonWriter& out);
std::string TornadoSentence(const Report& as_it_is, std::vector<Swing> swings);

}  // namespace servecast

// Every combination of some values, as designs of a scenario.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "servecast/design.h"
#include "servecast/result.h"

namespace servecast {

struct Design {
  std::int64_t id = 0;  // its place in the list
  std::string label;    // "H200 SXM 141 GB, TP 2, fp8"; of the open scenario "as it is" where it
                        // is no combination
  std::vector<std::pair<std::string, std::string>> values;  // path and value, as in the axes
  std::string document;
  Issues issues;       // of putting values in: then there is no document
  bool own = false;    // the scenario itself, but for its replicas
  bool fixed = false;  // replicas are the document's: an axis gives them
};

// The grid, the last axis changing fastest, each document with the values put in, in order. The
// scenario itself is added where it is none of them. Expert parallelism of one GPU, with and
// without it in the grid, is refused: it is the other. Issues: of the document; no value or one
// path twice; more than kMostDesigns; no combination is a scenario.
Result<std::vector<Design>> DesignsOf(const std::string& document, const std::vector<Axis>& axes);

}  // namespace servecast

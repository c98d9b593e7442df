// A search as JSON and as a sentence.
#pragma once

#include <string>
#include <vector>

#include "plan/designs.h"
#include "plan/frontier.h"
#include "servecast/design.h"
#include "servecast/scenario.h"

namespace servecast {

struct SearchParts {
  const std::vector<Axis>& axes;
  const std::vector<Design>& designs;
  const std::vector<DesignPoint>& points;
  const std::vector<SloSpec>& targets;
  bool finished = false;
};

std::string SearchJson(const SearchParts& search, const Conclusion& found, bool indented);
std::string SearchSentence(const SearchParts& search, const Conclusion& found);

}  // namespace servecast

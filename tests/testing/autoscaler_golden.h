// Recorded ticks of real autoscalers (their README has format and rules): gives each scaler what
// the real one saw and names the first row that it decides otherwise. What cannot be read or parsed
// is an issue, never an empty case.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "servecast/result.h"

namespace servecast::testing {

struct ScalerCase {
  std::string name;  // with its part, as "hpa/h000"
  std::size_t rows = 0;
  std::optional<std::string> difference;  // of the first row that differs
};

struct ScalerCases {
  std::vector<ScalerCase> cases;
  Issues issues;
};

// One part from its two files: the cases (JSON) and the rows (CSV).
ScalerCases CompareHpa(const std::string& cases, const std::string& rows);
ScalerCases CompareKeda(const std::string& cases, const std::string& rows);
ScalerCases CompareWva(const std::string& cases, const std::string& rows);
ScalerCases CompareDynamo(const std::string& cases, const std::string& rows);

// All parts of a folder; a part whose files are not there is left out.
ScalerCases CompareAutoscalers(const std::string& folder);

}  // namespace servecast::testing

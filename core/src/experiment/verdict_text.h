// Parts of a verdict's sentence, for who restates it (error_band.cpp).
#pragma once

#include <string>

#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {

// "Llama-3.1-8B on 1 x H100".
std::string SubjectText(const Scenario& scenario);
// " at 40 req/s".
std::string LoadText(const Scenario& scenario, const Report& report);
// "both targets", "1 of 3 targets".
std::string TargetsText(std::size_t count, std::size_t of);
// "TPOT p99", "attainment of TTFT 200 ms and TPOT 20 ms".
std::string TargetName(const SloSpec& slo);
// "15.5 of 20 ms (13.6 to 16.8)"; the interval is that of low_ms and high_ms. Requires: it has a
// value.
std::string FigureText(const SloResult& result);

}  // namespace servecast

// The readers of one form each, for ReadMeasurements.
#pragma once

#include <string>
#include <string_view>

#include "calibrate/measurements.h"
#include "servecast/result.h"

namespace servecast {

Result<Measurements> ReadTable(std::string_view text, const std::string& name);
// A result of vllm bench serve --save-result, with --save-detailed or without.
Result<Measurements> ReadBench(std::string_view text, const std::string& name);

}  // namespace servecast

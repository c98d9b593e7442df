// servecast fit-trace: a trace as a workload.
#pragma once

#include <string>
#include <vector>

namespace servecast {

int FitTraceCommand(const std::vector<std::string>& arguments);

}  // namespace servecast

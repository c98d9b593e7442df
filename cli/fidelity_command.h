// servecast fidelity: the scores of the predictions, from files to standard output.
#pragma once

#include <string>
#include <vector>

namespace servecast {

// Returns the exit code.
int FidelityCommand(const std::vector<std::string>& arguments);

}  // namespace servecast

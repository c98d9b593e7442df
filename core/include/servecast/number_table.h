#pragma once

#include <vector>

namespace servecast {

using NumberTable = std::vector<std::vector<double>>;  // by row

}  // namespace servecast

// Recorded data outside the project, and how tests find it.
#pragma once

#include <optional>
#include <string>

namespace servecast::testing {

// The folder that the environment variable names, or ../shared/`beside` next to the source tree.
std::string DataFolder(const char* variable, const char* beside);

// A whole file, decompressed when it is gzip (natively; as WebAssembly such a file is not
// readable). Nothing when it cannot be read.
std::optional<std::string> ReadFile(const std::string& path);

}  // namespace servecast::testing

// Files of the command: whole texts, decompressed where they are gzip, and what a folder holds.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "servecast/result.h"

namespace servecast {

inline constexpr const char* kCannotOpen = "cannot be opened";

// A whole file, decompressed when it is gzip. "-" is stdin.
Result<std::string> ReadFile(const std::string& path, std::size_t most_bytes);

// Says so on standard error when it cannot.
bool WriteFile(const std::string& path, const std::string& text);

// Paths below `folder`, at any depth, relative to it, ascending; none when it is no folder.
std::vector<std::string> FilesBelow(const std::string& folder);

}  // namespace servecast

// Recorded decisions of llm-d's endpoint picker (their README has forms and rules): replays each
// line of a file by the project's own rules, and names the first value that differs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "servecast/result.h"

namespace servecast::testing {

struct EppFile {
  std::string name = {};        // without folder and ending, as "cycles_default"
  std::size_t rows = 0;         // decisions that were compared
  std::string difference = {};  // the first; "": none
};

// Files that the folder's manifest.json names. A file that cannot be read or parsed is an issue.
Result<std::vector<std::string>> EppFiles(const std::string& folder);
Result<EppFile> ReplayEppFile(const std::string& folder, const std::string& name);

}  // namespace servecast::testing

// What nvidia-smi prints: its table, its list (-L), and rows of --query-gpu=... --format=csv.
#pragma once

#include <string_view>
#include <vector>

namespace servecast {

// "63W /  300W"; 0: not said.
struct SmiUse {
  double used = 0, most = 0;
};

// A line of the table or of the list.
struct SmiLine {
  std::string_view name;  // of the card that begins here; "": none. A table may have cut it
  SmiUse watts, mib;
};
SmiLine SmiLineIn(std::string_view line);

// Without spaces around them.
std::vector<std::string_view> SmiCells(std::string_view row, std::string_view separator = ",");

}  // namespace servecast

// See nvidia_smi.h.
#include "formats/nvidia_smi.h"

#include "base/text.h"
#include "io/json_document.h"
#include "io/trace_lines.h"

namespace servecast {
namespace {

// "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-...)".
std::string_view NameInList(std::string_view line) {
  const std::size_t colon = line.find(": "), end = line.find(" (UUID:");
  const bool card = line.substr(0, 4) == "GPU " && end < line.size() && colon < end &&
                    ParseCount(line.substr(4, colon - 4));
  return card ? line.substr(colon + 2, end - colon - 2) : "";
}

// "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:19:00.0 Off |": the name without what
// stands behind it. The bus of a card is in the next column; processes have none.
std::string_view NameInTable(const std::vector<std::string_view>& columns) {
  const std::size_t space = columns[1].find(' ');
  const bool card = space < columns[1].size() && ParseCount(columns[1].substr(0, space)) &&
                    columns[2].find(':') < columns[2].size();
  if (!card) return "";
  std::string_view name = Trimmed(columns[1].substr(space));
  for (const std::string_view state : {"On", "Off", "N/A", "WDDM", "TCC"}) {
    if (name.ends_with(state)) name = Trimmed(name.substr(0, name.size() - state.size()));
  }
  return name.size() > 2 ? name : "";
}

SmiUse UseIn(std::string_view column, std::string_view unit) {
  const std::size_t end = column.find(Format("{} /", unit));
  if (end > column.size()) return {};
  const std::string_view used = column.substr(0, end);
  const std::string_view most = Trimmed(column.substr(end + unit.size() + 2));
  const auto number = [](std::string_view text) { return NumberOf(text).value_or(0); };
  return {number(used.substr(used.find_last_not_of("0123456789.") + 1)),
          number(most.substr(0, most.find(unit)))};
}

}  // namespace

std::vector<std::string_view> SmiCells(std::string_view row, std::string_view separator) {
  std::vector<std::string_view> cells = Split(row, separator);
  for (std::string_view& cell : cells) cell = Trimmed(cell);
  return cells;
}

SmiLine SmiLineIn(std::string_view line) {
  const std::vector<std::string_view> columns = SmiCells(line, "|");
  if (columns.size() < 3 || line[0] != '|') return {NameInList(line), {}, {}};
  return {NameInTable(columns), UseIn(columns[1], "W"), UseIn(columns[2], "MiB")};
}

}  // namespace servecast

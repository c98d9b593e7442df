// What nvidia-smi prints: its table, its list (-L), a line of --query-gpu=name,memory.total.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"
#include "import/kinds.h"
#include "import/names.h"
#include "io/presets.h"

namespace servecast {
namespace {

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-...)".
std::string NameInList(std::string_view line) {
  if (line.substr(0, 4) != "GPU ") return "";
  const std::size_t colon = line.find(": ");
  const std::size_t end = line.find(" (UUID:");
  if (colon == std::string_view::npos || end == std::string_view::npos || end < colon) return "";
  return IsDigits(line.substr(4, colon - 4)) ? std::string(line.substr(colon + 2, end - colon - 2))
                                             : "";
}

// "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:19:00.0 Off |": the name without what
// stands behind it.
std::string NameInTable(std::string_view line) {
  if (line.size() < 8 || line[0] != '|') return "";
  const std::size_t number = line.find_first_not_of(' ', 1);
  const std::size_t space = line.find(' ', std::min(number, line.size()));
  const std::size_t bar = line.find('|', 1);
  if (space == std::string_view::npos || bar == std::string_view::npos || bar < space) return "";
  if (!IsDigits(line.substr(number, space - number))) return "";
  // The bus of a card is in the next column; processes have none.
  if (line.substr(bar).find(':') == std::string_view::npos) return "";
  std::string_view name = Stripped(line.substr(space, bar - space));
  for (const std::string_view state : {"On", "Off", "N/A", "WDDM", "TCC"}) {
    if (name.size() > state.size() && name.substr(name.size() - state.size()) == state) {
      name = Stripped(name.substr(0, name.size() - state.size()));
    }
  }
  return name.size() > 2 ? std::string(name) : "";
}

// " 81559MiB" of "1MiB / 81559MiB".
std::string MemoryInTable(std::string_view line) {
  const std::size_t slash = line.find("MiB /");
  if (slash == std::string_view::npos) return "";
  const std::size_t begin = line.find_first_not_of(' ', slash + 5);
  const std::size_t end = line.find("MiB", slash + 5);
  if (begin == std::string_view::npos || end == std::string_view::npos || end <= begin) return "";
  return " " + std::string(line.substr(begin, end + 3 - begin));
}

// 300 of "63W /  300W"; 0: none.
double LimitInTable(std::string_view line) {
  const std::size_t slash = line.find("W /");
  if (slash == std::string_view::npos) return 0;
  const std::string_view rest = Stripped(line.substr(slash + 3, 16));
  const std::size_t end = rest.find('W');
  if (end > 5 || !IsDigits(rest.substr(0, end))) return 0;
  return std::strtod(std::string(rest.substr(0, end)).c_str(), nullptr);
}

// A limit that is as high as the card's own is none; a few per cent beside it are another form of
// the card.
void TakeLimit(const std::string& name, double watts, Draft& draft) {
  constexpr double kLower = 0.95;
  const auto* card = FindPresetDocument("hardware", HardwarePresetOf(name));
  if (card == nullptr || watts <= 0) return;
  const double cap = card->value("power_cap_w", 0.0);
  if (watts >= kLower * cap) return;
  draft.Take("hardware.power_limit_w", watts,
             Format("nvidia-smi (power limit {} W of {} W)", ShortNumber(watts), ShortNumber(cap)));
}

// "NVIDIA H100 80GB HBM3, 81559 MiB", with other fields around.
std::string NameInQuery(std::string_view line) {
  if (line.size() > 300 || line.find(',') == std::string_view::npos) return "";
  std::string name, memory;
  for (const std::string_view cell : Split(line, ",")) {
    const std::string_view field = Stripped(cell);
    const bool mib = field.size() > 4 && field.substr(field.size() - 4) == " MiB";
    if (mib && memory.empty()) memory = " " + std::string(field);
    if (field.substr(0, 7) == "NVIDIA " || field.substr(0, 6) == "Tesla ") name = field;
  }
  const bool known = !memory.empty() || !HardwarePresetOf(name).empty();
  return name.empty() || !known ? "" : name + memory;
}

bool IsOnlyName(std::string_view line) {
  return line.size() < 80 && line.substr(0, 7) == "NVIDIA " && !HardwarePresetOf(line).empty();
}

}  // namespace

void ReadNvidiaSmi(const ImportSource& source, Draft& draft) {
  if (source.json != nullptr) return;
  std::vector<std::string> names;
  std::map<std::string, double> limits;  // of the last card of a name, W
  bool table = false;
  const std::vector<std::string_view> lines = LinesIn(source.text);
  for (const std::string_view raw : lines) {
    const std::string_view line = Stripped(raw);
    if (line.size() > 1000) continue;
    std::string name = NameInList(line);
    if (name.empty() && line.find("MIG ") == 0) continue;
    if (name.empty()) name = NameInTable(line);
    table |= !name.empty() && line[0] == '|';
    if (name.empty() && !table) name = NameInQuery(line);
    if (name.empty() && IsOnlyName(line)) name = line;
    if (!name.empty()) {
      names.push_back(std::move(name));
    } else if (table && !names.empty() && names.back().find("MiB") == std::string::npos) {
      // The line below a card's has its memory, and says what a name that was cut leaves out.
      names.back() += MemoryInTable(line);
      limits[names.back()] = LimitInTable(line);
    }
    if (names.size() > 1024) return;
  }
  if (names.empty()) return;
  draft.Found("nvidia-smi");
  std::map<std::string, std::int64_t> counts;
  for (const std::string& name : names) ++counts[name];
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (counts.size() > 1) {
    draft.Remark(Format("nvidia-smi: {} kinds of GPUs; here those that most are, {}",
                        static_cast<std::int64_t>(counts.size()), ShownText(most->first)));
  }
  draft.TakeGpu(most->first, "nvidia-smi");
  draft.TakeGpuCount(most->second, "nvidia-smi");
  TakeLimit(most->first, limits[most->first], draft);
}

}  // namespace servecast

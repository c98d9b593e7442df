// What nvidia-smi prints: its table, its list (-L), a line of --query-gpu=name,memory.total.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "base/text.h"
#include "formats/nvidia_smi.h"
#include "import/kinds.h"
#include "import/names.h"
#include "io/presets.h"

namespace servecast {
namespace {

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

// "NVIDIA H100 80GB HBM3, 81559 MiB", with other fields around; or the name alone.
std::string NameInQuery(std::string_view line) {
  if (line.size() > (line.find(',') < line.size() ? 300 : 80)) return "";
  std::string name, memory;
  for (const std::string_view field : SmiCells(line)) {
    if (field.size() > 4 && field.ends_with(" MiB") && memory.empty()) {
      memory = Format(" {}", field);
    }
    if (field.starts_with("NVIDIA ") || field.starts_with("Tesla ")) name = field;
  }
  if (name.empty()) return "";
  return memory.empty() && HardwarePresetOf(name).empty() ? "" : name + memory;
}

}  // namespace

void ReadNvidiaSmi(const ImportSource& source, Draft& draft) {
  if (source.json != nullptr) return;
  std::vector<std::string> names;
  std::map<std::string, double> limits;  // of the last card of a name, W
  bool table = false;
  for (const std::string_view raw : LinesIn(source.text)) {
    const std::string_view line = Stripped(raw);
    if (line.size() > 1000 || line.starts_with("MIG ")) continue;
    const SmiLine smi = SmiLineIn(line);
    std::string name(smi.name);
    table |= !name.empty() && line[0] == '|';
    if (name.empty() && !table) name = NameInQuery(line);
    if (!name.empty()) {
      names.push_back(std::move(name));
    } else if (table && names.back().find("MiB") == std::string::npos) {
      // The line below a card's has its memory, and says what a name that was cut leaves out.
      if (smi.mib.most > 0) names.back() += Format(" {}MiB", NumberText(smi.mib.most));
      limits[names.back()] = smi.watts.most;
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

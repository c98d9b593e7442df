// See table.h.
#include "text/table.h"

#include <algorithm>

namespace servecast {

// 0: a column that is left out.
std::vector<std::size_t> Table::Widths(const Style& style) const {
  std::vector<std::size_t> widths(sides_.size());
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    bool filled = false;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (i >= rows_[row].size()) continue;
      filled = filled || (row > 0 && !rows_[row][i].text.empty());
      widths[i] = std::max(widths[i], WidthOf(rows_[row][i].text));
    }
    if (!filled) widths[i] = 0;
  }
  std::size_t all = 0;
  for (const std::size_t width : widths) all += width == 0 ? 0 : width + 2;
  constexpr std::size_t kLeast = 8;
  while (all > style.width) {
    std::size_t widest = sides_.size();
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      if (sides_[i] != 'r' && (widest == sides_.size() || widths[i] > widths[widest])) widest = i;
    }
    if (widest == sides_.size() || widths[widest] <= kLeast) break;
    const std::size_t less = std::min(all - style.width, widths[widest] - kLeast);
    widths[widest] -= less;
    all -= less;
  }
  return widths;
}

std::string Table::Text(const Style& style) const {
  if (empty()) return "";
  const std::vector<std::size_t> widths = Widths(style);
  std::string out;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    std::string line;
    for (std::size_t i = 0; i < std::min(sides_.size(), rows_[row].size()); ++i) {
      if (widths[i] == 0) continue;
      const Cell& cell = rows_[row][i];
      const std::string text = sides_[i] == 'm' ? CutInside(style, cell.text, widths[i])
                                                : Cut(style, cell.text, widths[i]);
      const std::string blanks(widths[i] - std::min(widths[i], WidthOf(text)), ' ');
      const std::string shown = style.In(row == 0 ? Tone::kQuiet : cell.tone, text);
      line += "  " + (sides_[i] == 'r' ? blanks + shown : shown + blanks);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace servecast

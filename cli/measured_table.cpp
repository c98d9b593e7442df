// See measured_table.h.
#include "measured_table.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace servecast {
namespace {

std::vector<std::string> CellsOf(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') {
      const bool doubled = quoted && i + 1 < line.size() && line[i + 1] == '"';
      if (doubled) cells.back() += line[++i];
      quoted = doubled || !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else if (c != '\r') {
      cells.back() += c;
    }
  }
  return cells;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

MeasuredTable::MeasuredTable(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line == "\r" || line[0] == '#') continue;
    std::vector<std::string> cells = CellsOf(line);
    if (header_.empty()) {
      header_ = std::move(cells);
    } else {
      rows_.push_back(std::move(cells));
    }
  }
}

std::optional<std::size_t> MeasuredTable::IndexOf(std::string_view column) const {
  const auto found = std::find(header_.begin(), header_.end(), column);
  if (found == header_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header_.begin());
}

bool MeasuredTable::HasAny(ColumnNames columns) const {
  return std::any_of(columns.begin(), columns.end(),
                     [this](std::string_view column) { return Has(column); });
}

std::string_view MeasuredTable::Text(std::size_t row, ColumnNames columns) const {
  for (const std::string_view column : columns) {
    const auto index = IndexOf(column);
    if (index && *index < rows_[row].size() && !rows_[row][*index].empty()) {
      return rows_[row][*index];
    }
  }
  return "";
}

std::optional<double> MeasuredTable::Number(std::size_t row, ColumnNames columns) const {
  const std::string text(Text(row, columns));
  if (text.empty()) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end == '\0') return value;
  const std::vector<double> numbers = NumbersIn(text);
  if (numbers.empty()) return std::nullopt;
  double sum = 0;
  for (const double number : numbers) sum += number;
  return sum / static_cast<double>(numbers.size());
}

std::vector<double> NumbersIn(std::string_view text) {
  const std::string copy(text);  // ends with a zero, as strtod wants
  std::vector<double> numbers;
  for (const char* at = copy.c_str(); *at != '\0';) {
    if (!IsDigit(*at)) {
      ++at;
      continue;
    }
    char* end = nullptr;
    numbers.push_back(std::strtod(at, &end));
    at = end;
  }
  return numbers;
}

}  // namespace servecast

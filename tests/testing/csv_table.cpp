#include "testing/csv_table.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "fmt/format.h"
#include "testing/data_files.h"

namespace servecast::testing {

std::optional<std::int64_t> ParseInt(const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || at != end) return std::nullopt;
  return value;
}

std::optional<double> ParseDouble(const std::string& text) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text[0]))) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(text.c_str(), &end);
  if (end != text.c_str() + text.size() || errno != 0 || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (;;) {
    const std::size_t to = text.find(separator, from);
    parts.push_back(text.substr(from, to == std::string::npos ? to : to - from));
    if (to == std::string::npos) return parts;
    from = to + 1;
  }
}

std::vector<std::string> Items(const std::string& text, char separator) {
  return text.empty() ? std::vector<std::string>() : Split(text, separator);
}

namespace {

// Cells beyond the header's are of the column at `place`.
void Join(std::vector<std::string>& cells, std::size_t place, std::size_t width) {
  for (; cells.size() > width;
       cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(place) + 1)) {
    cells[place] += "," + cells[place + 1];
  }
}

}  // namespace

Result<CsvTable> CsvTable::Read(const std::string& path, const std::vector<std::string>& columns,
                                const std::string& commas) {
  const std::optional<std::string> text = ReadFile(path);
  if (!text) return Issue{path, "cannot be read"};
  CsvTable table;
  table.path_ = path;
  std::vector<std::string> lines = Split(*text, '\n');
  if (lines.back().empty()) lines.pop_back();
  for (std::string& line : lines) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    table.rows_.push_back(Split(line, ','));
  }
  if (table.rows_.empty()) return Issue{table.path_, "is empty"};
  for (const std::string& column : columns) {
    if (!table.Column(column)) return Issue{table.path_, "has no column " + column};
  }
  const std::optional<std::size_t> joined = table.Column(commas);
  for (std::size_t row = 1; row < table.rows_.size(); ++row) {
    if (joined) Join(table.rows_[row], *joined, table.rows_[0].size());
    if (table.rows_[row].size() != table.rows_[0].size()) {
      return Issue{table.path_, fmt::format("line {}: {} columns, the header has {}", row + 1,
                                            table.rows_[row].size(), table.rows_[0].size())};
    }
  }
  return table;
}

std::int64_t CsvTable::Int(std::size_t row, const char* column, const std::string& text) {
  const std::optional<std::int64_t> value = ParseInt(text);
  if (!value) Fail(row, column, text, "a whole number");
  return value.value_or(0);
}

double CsvTable::Real(std::size_t row, const char* column) {
  const std::optional<double> value = ParseDouble(Text(row, column));
  if (!value) Fail(row, column, Text(row, column), "a number");
  return value.value_or(0);
}

void CsvTable::Fail(std::size_t row, const char* column, const std::string& found,
                    const char* wanted) {
  if (error_) return;
  error_ = Issue{path_, fmt::format("line {}, column {}: found \"{}\", not {}", row + 2, column,
                                    found, wanted)};
}

std::optional<std::size_t> CsvTable::Column(const std::string& name) const {
  const auto at = std::find(rows_[0].begin(), rows_[0].end(), name);
  if (at == rows_[0].end()) return std::nullopt;
  return static_cast<std::size_t>(at - rows_[0].begin());
}

}  // namespace servecast::testing

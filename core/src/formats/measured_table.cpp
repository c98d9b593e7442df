// See measured_table.h.
#include "formats/measured_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "io/json_document.h"
#include "io/trace_lines.h"

namespace servecast {
namespace {

// A quoted cell may go on in so many lines.
constexpr std::size_t kMostLines = 20;

struct Cells {
  std::vector<std::string> cells;
  bool open = false;  // a quote has no end
};

Cells CellsOf(std::string_view line, char separator) {
  Cells out;
  std::string cell;
  bool quoted = false;
  const auto end_cell = [&] {
    out.cells.emplace_back(Trimmed(cell));
    cell.clear();
  };
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"') {
      const bool doubled = quoted && i + 1 < line.size() && line[i + 1] == '"';
      if (doubled) cell += line[++i];
      quoted = doubled || !quoted;
    } else if (c == separator && !quoted) {
      end_cell();
    } else {
      cell += c;
    }
  }
  end_cell();
  out.open = quoted;
  return out;
}

// Without what ends them: \n, \r\n or \r.
std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    lines.push_back(text.substr(0, end));
    const bool two = end + 1 < text.size() && text[end] == '\r' && text[end + 1] == '\n';
    text.remove_prefix(std::min(end + (two ? 2 : 1), text.size()));
  }
  return lines;
}

// What a header is separated by.
char SeparatorOf(std::string_view header) {
  if (header.find(',') != std::string_view::npos) return ',';
  if (header.find('\t') != std::string_view::npos) return '\t';
  return header.find(';') != std::string_view::npos ? ';' : ',';
}

bool SaysNothing(std::string_view cell) {
  static constexpr std::array<std::string_view, 6> kNothing = {"",    "-",    "na",
                                                               "n/a", "none", "null"};
  return cell.size() <= 4 &&
         std::find(kNothing.begin(), kNothing.end(), LowerCase(cell)) != kNothing.end();
}

// The length of the character that `text` begins with; 0 when its bytes are none.
std::size_t CharacterLength(std::string_view text) {
  const auto byte = [&text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF5   ? 0
                             : first >= 0xF0 ? 4
                             : first >= 0xE0 ? 3
                             : first >= 0xC2 ? 2
                                             : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Longer than need be, a half of a pair, or beyond the last.
  const bool wrong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) >= 0xA0) ||
                     (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) >= 0x90);
  return wrong ? 0 : length;
}

std::string JoinedNames(ColumnNames columns) {
  std::string names;
  for (const std::string_view column : columns) {
    names += Format("{}{}", names.empty() ? "" : " or ", column);
  }
  return names;
}

std::string RangeText(NumberRange range) {
  const bool open = range.most >= NumberRange().most;
  return Format("a number {} {}{}", range.above ? "above" : "from", NumberText(range.least),
                open ? (range.above ? "" : " up") : " to " + NumberText(range.most));
}

}  // namespace

std::optional<double> SecondsSince1970(const std::array<double, 6>& n) {
  const bool good = n[0] >= 1970 && n[0] <= 9999 && n[1] >= 1 && n[1] <= 12 && n[2] >= 1 &&
                    n[2] <= 31 && n[3] < 24 && n[4] < 60 && n[5] < 62;
  if (!good) return std::nullopt;
  const std::int64_t month = std::llround(n[1]), day = std::llround(n[2]);
  const std::int64_t year = std::llround(n[0]) - (month <= 2 ? 1 : 0);
  const std::int64_t era = year / 400, of_era = year % 400;
  const std::int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const std::int64_t days =
      era * 146'097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719'468;
  return static_cast<double>(days * 86'400 + std::llround(n[3]) * 3600 + std::llround(n[4]) * 60) +
         n[5];
}

std::string PlainText(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const std::size_t length = CharacterLength(text);
    const bool control = static_cast<unsigned char>(text[0]) < 0x20 || text[0] == 0x7F;
    if (length == 0) {
      plain += "\xEF\xBF\xBD";
    } else if (control) {
      plain += ' ';
    } else {
      plain += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return plain;
}

std::string Shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return std::string(text.substr(0, most)) + "...";
}

MeasuredTable::MeasuredTable(std::string_view text) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  const std::vector<std::string_view> lines = LinesOf(text);
  char separator = ',';
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = Trimmed(lines[i]);
    if (line.empty() || line[0] == '#') continue;
    if (width_ == 0) separator = SeparatorOf(line);
    Cells row = CellsOf(lines[i], separator);
    // A quote without an end is a line break within it if the lines then make a row.
    std::string joined(lines[i]);
    for (std::size_t j = i + 1; row.open && j < lines.size() && j <= i + kMostLines; ++j) {
      joined += Format(" {}", lines[j]);
      Cells more = CellsOf(joined, separator);
      if (more.open) continue;
      if (width_ > 0 && more.cells.size() != width_) break;
      row = std::move(more);
      i = j;
    }
    for (std::string& cell : row.cells) cell = PlainText(cell);
    if (width_ > 0) {
      rows_.push_back(std::move(row.cells));
      continue;
    }
    width_ = row.cells.size();
    for (std::size_t c = 0; c < width_; ++c) {
      const std::string name = LowerCase(row.cells[c]);
      if (!columns_.try_emplace(name, c).second) twice_.insert(name);
    }
  }
}

bool MeasuredTable::HasAny(ColumnNames columns) const {
  return std::any_of(columns.begin(), columns.end(),
                     [this](std::string_view column) { return Has(column); });
}

MeasuredTable::Cell MeasuredTable::CellOf(std::size_t row, ColumnNames columns) const {
  for (const std::string_view column : columns) {
    const auto at = columns_.find(column);
    if (at == columns_.end() || at->second >= rows_[row].size()) continue;
    const std::string& cell = rows_[row][at->second];
    if (!SaysNothing(cell)) return {column, cell};
  }
  return {};
}

std::string_view MeasuredTable::Text(std::size_t row, ColumnNames columns) const {
  return CellOf(row, columns).text;
}

std::string MeasuredTable::Damage(std::size_t row) const {
  const std::vector<std::string>& cells = rows_[row];
  const bool more = cells.size() > width_ &&
                    std::any_of(cells.begin() + static_cast<std::ptrdiff_t>(width_), cells.end(),
                                [](const std::string& cell) { return !cell.empty(); });
  if (cells.size() >= width_ && !more) return "";
  return Format("found {} cells, allowed {}, as many as columns", cells.size(), width_);
}

MeasuredRow::MeasuredRow(const MeasuredTable& table, std::string_view file, std::size_t row)
    : table_(table), file_(file), row_(row) {
  const std::string damage = table.Damage(row);
  if (!damage.empty()) Complain(damage);
}

MeasuredTable::Cell MeasuredRow::CellOf(ColumnNames columns) {
  const MeasuredTable::Cell cell = table_.CellOf(row_, columns);
  for (const std::string_view column : columns) {
    if (table_.IsTwice(column)) Complain(Format("column {} is there twice", column));
    if (column == cell.column) break;
  }
  return cell;
}

void MeasuredRow::Complain(std::string_view what) {
  if (problem_.empty()) problem_ = Format("{}, row {}: {}", file_, row_ + 1, what);
}

void MeasuredRow::Complain(ColumnNames columns, std::string_view allowed) {
  Refuse(table_.CellOf(row_, columns), allowed);
}

void MeasuredRow::Refuse(const MeasuredTable::Cell& cell, std::string_view allowed) {
  if (!problem_.empty()) return;
  problem_ = Format("{}, row {}, column {}: found \"{}\", allowed {}", file_, row_ + 1, cell.column,
                    Shortened(cell.text, 60), allowed);
}

std::optional<double> MeasuredRow::Checked(const MeasuredTable::Cell& cell,
                                           std::optional<double> number, NumberRange range) {
  const bool within = number && *number <= range.most &&
                      (range.above ? *number > range.least : *number >= range.least);
  if (within) return number;
  Refuse(cell, RangeText(range));
  return std::nullopt;
}

std::optional<double> MeasuredRow::Number(ColumnNames columns, NumberRange range) {
  const MeasuredTable::Cell cell = CellOf(columns);
  if (cell.text.empty()) return std::nullopt;
  return Checked(cell, NumberOf(cell.text), range);
}

std::optional<std::int64_t> MeasuredRow::Whole(ColumnNames columns, NumberRange range) {
  const std::optional<double> number = Number(columns, range);
  if (!number) return std::nullopt;
  if (*number == std::floor(*number)) return static_cast<std::int64_t>(*number);
  Complain(columns, "a whole number");
  return std::nullopt;
}

std::optional<double> MeasuredRow::NumberOrRange(ColumnNames columns, NumberRange range) {
  const MeasuredTable::Cell cell = CellOf(columns);
  std::string_view text = cell.text;
  if (text.empty()) return std::nullopt;
  if (text[0] == '~') text.remove_prefix(1);
  const std::size_t dash = text.find('-', 1);
  const std::optional<double> from = NumberOf(Trimmed(text.substr(0, dash)));
  if (dash == std::string_view::npos) return Checked(cell, from, range);
  const std::optional<double> to = NumberOf(Trimmed(text.substr(dash + 1)));
  const bool both = from && to && *from <= *to;
  return Checked(cell, both ? std::optional((*from + *to) / 2) : std::nullopt, range);
}

void MeasuredRow::Miss(ColumnNames columns) {
  Complain(Format("{} {}", table_.HasAny(columns) ? "nothing in column" : "no column",
                  JoinedNames(columns)));
}

double MeasuredRow::NeededNumber(ColumnNames columns, NumberRange range) {
  if (Text(columns).empty()) Miss(columns);
  return Number(columns, range).value_or(0);
}

std::int64_t MeasuredRow::NeededWhole(ColumnNames columns, NumberRange range) {
  if (Text(columns).empty()) Miss(columns);
  return Whole(columns, range).value_or(0);
}

std::vector<double> NumbersIn(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  std::vector<double> numbers;
  while (true) {
    const std::size_t begin = text.find_first_of(kDigits);
    if (begin == std::string_view::npos) return numbers;
    const auto digits_from = [&text, kDigits](std::size_t at) {
      return std::min(text.find_first_not_of(kDigits, at), text.size());
    };
    std::size_t end = digits_from(begin);
    if (end < text.size() && text[end] == '.') end = digits_from(end + 1);
    if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
      const bool sign = end + 1 < text.size() && (text[end + 1] == '-' || text[end + 1] == '+');
      const std::size_t power = end + (sign ? 2 : 1);
      if (digits_from(power) > power) end = digits_from(power);
    }
    if (const auto value = NumberOf(text.substr(begin, end - begin))) numbers.push_back(*value);
    text.remove_prefix(end);
  }
}

}  // namespace servecast

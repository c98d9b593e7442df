// A CSV file of measurements: cells by the names of their columns, and what is wrong with them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace servecast {

// Columns that measure the same thing under other names; the first that has a value counts.
using ColumnNames = std::initializer_list<std::string_view>;

// As people and spreadsheets write them: lines end as they like, a byte order mark may come first,
// cells may stand in double quotes, and lines that begin with # are left out. Names of columns are
// told apart without case. Cells are in UTF-8 and have no control characters, whatever the file
// had. Separated by commas; by tabs or semicolons when the header has no comma.
class MeasuredTable {
 public:
  explicit MeasuredTable(std::string_view text);

  std::size_t Rows() const { return rows_.size(); }
  bool Has(std::string_view column) const { return columns_.contains(column); }
  bool HasAny(ColumnNames columns) const;
  // "" when there is no such column, or nothing in the cell: also "none", "null", "NA", "N/A", "-".
  std::string_view Text(std::size_t row, ColumnNames columns) const;
  // The cell that Text is of, and the name of its column.
  struct Cell {
    std::string_view column, text;
  };
  Cell CellOf(std::size_t row, ColumnNames columns) const;
  // Two columns have this name, so which of them is meant is not known.
  bool IsTwice(std::string_view column) const { return twice_.contains(column); }
  // Why the row cannot be read: not so many cells as columns; "" when it can.
  std::string Damage(std::size_t row) const;

 private:
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::set<std::string, std::less<>> twice_;
  std::size_t width_ = 0;
  std::vector<std::vector<std::string>> rows_;
};

// What a number of a cell may be.
struct NumberRange {
  double least = 0, most = 1e12;
  bool above = false;  // `least` itself is too little
};
inline constexpr NumberRange kPositive = {0, 1e12, true};

// One row of a table, and the first of its cells that cannot be: not a number where one belongs,
// beyond its range, or of a column that is there twice.
class MeasuredRow {
 public:
  // `file`: how to call the table.
  MeasuredRow(const MeasuredTable& table, std::string_view file, std::size_t row);

  std::string_view Text(ColumnNames columns) { return CellOf(columns).text; }
  // nullopt when the cell is empty, or cannot be.
  std::optional<double> Number(ColumnNames columns, NumberRange range = {});
  std::optional<std::int64_t> Whole(ColumnNames columns, NumberRange range = {});
  // A number, or "~1000-1120", of which the mean.
  std::optional<double> NumberOrRange(ColumnNames columns, NumberRange range = {});
  // The same where a row is none without them; 0 when it is not there.
  double NeededNumber(ColumnNames columns, NumberRange range = kPositive);
  std::int64_t NeededWhole(ColumnNames columns, NumberRange range = {1, 1e9});
  // One more thing that is wrong with this row, or with one of its cells.
  void Complain(std::string_view what);
  void Complain(ColumnNames columns, std::string_view allowed);

  // File, row and column, what was found and what is allowed; "" when nothing is wrong.
  const std::string& problem() const { return problem_; }

 private:
  MeasuredTable::Cell CellOf(ColumnNames columns);
  void Refuse(const MeasuredTable::Cell& cell, std::string_view allowed);
  std::optional<double> Checked(const MeasuredTable::Cell& cell, std::optional<double> number,
                                NumberRange range);
  void Miss(ColumnNames columns);

  const MeasuredTable& table_;
  std::string_view file_;
  std::size_t row_;
  std::string problem_;
};

// The numbers in a text, without signs: "lognormal(median=256,sigma=0.8,[16,4096])" has four.
std::vector<double> NumbersIn(std::string_view text);

// Of a year, month and day of the Gregorian calendar, hour, minute and second; nullopt: none.
std::optional<double> SecondsSince1970(const std::array<double, 6>& n);

// In UTF-8 and without control characters: others become U+FFFD and spaces.
std::string PlainText(std::string_view text);

// At most `most` bytes of it, of whole characters.
std::string Shortened(std::string_view text, std::size_t most);

}  // namespace servecast

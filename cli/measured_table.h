// A CSV file of measurements: cells by the names of their columns.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servecast {

// Columns that measure the same thing under other names; the first that has a value counts.
using ColumnNames = std::initializer_list<std::string_view>;

// Lines that begin with # are left out; cells may stand in double quotes.
class MeasuredTable {
 public:
  explicit MeasuredTable(std::string_view text);

  std::size_t Rows() const { return rows_.size(); }
  bool Has(std::string_view column) const { return IndexOf(column).has_value(); }
  bool HasAny(ColumnNames columns) const;
  // "" when there is no such column or cell.
  std::string_view Text(std::size_t row, ColumnNames columns) const;
  // The number of a cell, or the mean of those in it ("~1000-1120"); nullopt when there is none.
  std::optional<double> Number(std::size_t row, ColumnNames columns) const;

 private:
  std::optional<std::size_t> IndexOf(std::string_view column) const;

  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

// The numbers in a text, without signs: "lognormal(median=256,sigma=0.8,[16,4096])" has four.
std::vector<double> NumbersIn(std::string_view text);

}  // namespace servecast

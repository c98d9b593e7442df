// CSV tables of recorded data, whose columns are found by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "servecast/result.h"

namespace servecast::testing {

// The whole text; nothing if it is not one finite number.
std::optional<std::int64_t> ParseInt(const std::string& text);
std::optional<double> ParseDouble(const std::string& text);

// At least one part. Items: "" has none.
std::vector<std::string> Split(const std::string& text, char separator);
std::vector<std::string> Items(const std::string& text, char separator = ' ');

// Cells are asked for by column name. The first thing that is wrong with the table is kept; after
// that every cell reads as zero or empty.
class CsvTable {
 public:
  // Issues: no file, no header, a column that is missing, a row of another width. `commas`: a
  // column, if the table has it, whose cells may have commas of their own.
  static Result<CsvTable> Read(const std::string& path, const std::vector<std::string>& columns,
                               const std::string& commas = "");

  bool Has(const char* column) const { return Column(column).has_value(); }
  std::size_t Rows() const { return rows_.size() - 1; }

  // Require: a column that the table has.
  const std::string& Text(std::size_t row, const char* column) const {
    return rows_[row + 1][*Column(column)];
  }
  std::int64_t Int(std::size_t row, const char* column, const std::string& text);
  std::int64_t Int(std::size_t row, const char* column) {
    return Int(row, column, Text(row, column));
  }
  double Real(std::size_t row, const char* column);

  void Fail(std::size_t row, const char* column, const std::string& found, const char* wanted);
  const std::optional<Issue>& error() const { return error_; }

 private:
  std::optional<std::size_t> Column(const std::string& name) const;

  std::string path_;
  std::vector<std::vector<std::string>> rows_;  // the header first
  std::optional<Issue> error_;
};

}  // namespace servecast::testing

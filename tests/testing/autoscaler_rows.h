// What the parts of the autoscaler recordings share: JSON cases, CSV rows and their cells.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/base.h"
#include "nlohmann/json.hpp"
#include "testing/autoscaler_golden.h"

namespace servecast::testing {

using Json = nlohmann::json;

// The rows of one case, in order, with cells by column.
class ScalerRows {
 public:
  ScalerRows(const std::vector<std::string>& header, std::vector<std::vector<std::string>> rows);

  std::size_t size() const { return rows_.size(); }
  // Cells; one that is no number is noted as Bad.
  const std::string& Text(std::size_t row, const std::string& column) const;
  std::int64_t Int(std::size_t row, const std::string& column) const;
  double Real(std::size_t row, const std::string& column) const;
  TimeNs Time(std::size_t row, const std::string& column) const;

 private:
  std::map<std::string, std::size_t> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Notes what of a case cannot be read; CompareCases shows the first as its difference.
void Bad(const std::string& what);

std::int64_t IntOf(const std::string& text);
double RealOf(const std::string& text);
TimeNs TimeOf(const std::string& seconds);

// A member of a case; one that is missing or has another type is noted as Bad, and empty.
const Json& In(const Json& object, const char* name);
std::int64_t IntIn(const Json& object, const char* name);
std::optional<std::int64_t> OptionalIntIn(const Json& object, const char* name);
double RealIn(const Json& object, const char* name);
double RealIn(const Json& object, const char* name, double otherwise);
bool BoolIn(const Json& object, const char* name);
std::string TextIn(const Json& object, const char* name);
TimeNs TimeIn(const Json& object, const char* name);  // seconds

bool Same(double a, double b);  // within 1e-12 of the larger

// What a row should say beside what it says; names the first column that differs.
class RowCheck {
 public:
  RowCheck(const ScalerRows& rows, std::size_t row) : rows_(rows), row_(row) {}
  void Text(const std::string& column, const std::string& found);
  void Real(const std::string& column, std::optional<double> found);
  void Optional(const std::string& column, std::optional<std::int64_t> found);
  const std::optional<std::string>& difference() const { return difference_; }

 private:
  const ScalerRows& rows_;
  std::size_t row_;
  std::optional<std::string> difference_;
};

// Of each case: what `compare` says of its rows.
ScalerCases CompareCases(
    const std::string& part, const std::string& cases, const std::string& rows,
    const std::function<std::optional<std::string>(const Json&, const ScalerRows&)>& compare);

}  // namespace servecast::testing

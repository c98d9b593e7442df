#include "testing/autoscaler_golden.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "fmt/format.h"
#include "testing/autoscaler_rows.h"
#include "testing/csv_table.h"
#include "testing/data_files.h"
#include "testing/vllm_golden.h"

namespace servecast::testing {

namespace {

std::optional<std::string>& FirstBad() {
  static std::optional<std::string> first;
  return first;
}

}  // namespace

void Bad(const std::string& what) {
  if (!FirstBad()) FirstBad() = what;
}

std::int64_t IntOf(const std::string& text) {
  const std::optional<std::int64_t> value = ParseInt(text);
  if (!value) Bad(fmt::format("\"{}\" is not a whole number", text));
  return value.value_or(0);
}

double RealOf(const std::string& text) {
  const std::optional<double> value = ParseDouble(text);
  if (!value) Bad(fmt::format("\"{}\" is not a number", text));
  return value.value_or(0);
}

TimeNs TimeOf(const std::string& seconds) {
  const bool negative = !seconds.empty() && seconds[0] == '-';
  const std::optional<TimeNs> time = DecimalSecondsToNs(negative ? seconds.substr(1) : seconds);
  if (!time) Bad(fmt::format("\"{}\" is not a time in seconds", seconds));
  return negative ? -time.value_or(0) : time.value_or(0);
}

const Json& In(const Json& object, const char* name) {
  static const Json none;
  const auto at = object.find(name);
  if (at != object.end()) return *at;
  Bad(fmt::format("has no member {}", name));
  return none;
}

std::int64_t IntIn(const Json& object, const char* name) {
  const Json& value = In(object, name);
  if (value.is_number_integer()) return value.get<std::int64_t>();
  Bad(fmt::format("{} is not a whole number", name));
  return 0;
}

std::optional<std::int64_t> OptionalIntIn(const Json& object, const char* name) {
  const auto at = object.find(name);
  if (at == object.end() || at->is_null()) return std::nullopt;
  return IntIn(object, name);
}

double RealIn(const Json& object, const char* name) {
  const Json& value = In(object, name);
  if (value.is_number()) return value.get<double>();
  Bad(fmt::format("{} is not a number", name));
  return 0;
}

double RealIn(const Json& object, const char* name, double otherwise) {
  return object.contains(name) ? RealIn(object, name) : otherwise;
}

bool BoolIn(const Json& object, const char* name) {
  const Json& value = In(object, name);
  if (value.is_boolean()) return value.get<bool>();
  Bad(fmt::format("{} is neither true nor false", name));
  return false;
}

std::string TextIn(const Json& object, const char* name) {
  const Json& value = In(object, name);
  if (value.is_string()) return value.get<std::string>();
  Bad(fmt::format("{} is not text", name));
  return "";
}

TimeNs TimeIn(const Json& object, const char* name) {
  return static_cast<TimeNs>(std::nearbyint(RealIn(object, name) * 1e9));
}

bool Same(double a, double b) {
  return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b));
}

ScalerRows::ScalerRows(const std::vector<std::string>& header,
                       std::vector<std::vector<std::string>> rows)
    : rows_(std::move(rows)) {
  for (std::size_t i = 0; i < header.size(); ++i) columns_[header[i]] = i;
}

const std::string& ScalerRows::Text(std::size_t row, const std::string& column) const {
  static const std::string none;
  const auto at = columns_.find(column);
  if (at != columns_.end() && at->second < rows_[row].size()) return rows_[row][at->second];
  Bad("has no column " + column);
  return none;
}
std::int64_t ScalerRows::Int(std::size_t row, const std::string& column) const {
  return IntOf(Text(row, column));
}
double ScalerRows::Real(std::size_t row, const std::string& column) const {
  return RealOf(Text(row, column));
}
TimeNs ScalerRows::Time(std::size_t row, const std::string& column) const {
  return TimeOf(Text(row, column));
}

void RowCheck::Text(const std::string& column, const std::string& found) {
  const std::string& expected = rows_.Text(row_, column);
  if (difference_ || expected == found) return;
  difference_ =
      fmt::format("row {}: {}: recorded \"{}\", found \"{}\"", row_, column, expected, found);
}

void RowCheck::Optional(const std::string& column, std::optional<std::int64_t> found) {
  Text(column, found ? fmt::format("{}", *found) : "");
}

void RowCheck::Real(const std::string& column, std::optional<double> found) {
  const std::string& expected = rows_.Text(row_, column);
  if (found && !expected.empty() && RealOf(expected) == *found) return;
  Text(column, found ? fmt::format("{}", *found) : "");
}

ScalerCases CompareCases(
    const std::string& part, const std::string& cases, const std::string& rows,
    const std::function<std::optional<std::string>(const Json&, const ScalerRows&)>& compare) {
  ScalerCases all;
  const Json parsed = Json::parse(cases, nullptr, false);
  if (!parsed.is_array()) {
    all.issues.push_back({part, "the cases are not a JSON list"});
    return all;
  }
  std::map<std::string, std::vector<std::vector<std::string>>> by_case;
  std::vector<std::string> header;
  for (std::string& line : Split(rows, '\n')) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    std::vector<std::string> cells = Split(line, ',');
    if (header.empty()) {
      header = std::move(cells);
    } else {
      by_case[cells[0]].push_back(std::move(cells));
    }
  }
  for (const Json& one : parsed) {
    FirstBad().reset();
    const std::string id = TextIn(one, "id");
    ScalerCase result{part + "/" + id, by_case[id].size(), std::nullopt};
    if (result.rows == 0) {
      result.difference = "has no rows";
    } else {
      result.difference = compare(one, ScalerRows(header, std::move(by_case[id])));
      if (FirstBad()) result.difference = FirstBad();
    }
    by_case.erase(id);
    all.cases.push_back(std::move(result));
  }
  for (const auto& [id, left] : by_case) {
    all.issues.push_back({part, fmt::format("rows of case \"{}\", which is not defined", id)});
  }
  return all;
}

ScalerCases CompareAutoscalers(const std::string& folder) {
  struct Part {
    const char *cases, *rows;
    ScalerCases (*compare)(const std::string&, const std::string&);
  };
  const std::array<Part, 4> parts = {{{"hpa.cases.json", "hpa.ticks.csv.gz", CompareHpa},
                                      {"keda.cases.json", "keda.events.csv.gz", CompareKeda},
                                      {"wva.cases.json", "wva.ticks.csv.gz", CompareWva},
                                      {"dynamo.cases.json", "dynamo.ticks.csv.gz", CompareDynamo}}};
  ScalerCases all;
  for (const Part& part : parts) {
    const std::optional<std::string> cases = ReadFile(folder + "/" + part.cases);
    const std::optional<std::string> rows = ReadFile(folder + "/" + part.rows);
    if (!cases && !rows) continue;
    if (!cases || !rows) {
      all.issues.push_back({folder + "/" + (cases ? part.rows : part.cases), "cannot be read"});
      continue;
    }
    ScalerCases one = part.compare(*cases, *rows);
    std::move(one.cases.begin(), one.cases.end(), std::back_inserter(all.cases));
    std::move(one.issues.begin(), one.issues.end(), std::back_inserter(all.issues));
  }
  if (all.cases.empty() && all.issues.empty()) {
    all.issues.push_back({folder, "has no recordings of autoscalers"});
  }
  return all;
}

}  // namespace servecast::testing

// The requests of a report as CSV.
#include <cmath>

#include "base/text.h"
#include "servecast/report.h"

namespace servecast {

// In the order of RequestState.
constexpr const char* kStateNames[] = {"pending", "queued",    "running",  "completed",
                                       "dropped", "timed_out", "rejected", "lost"};

namespace {

// As RFC 4180 has it.
std::string CsvCell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

void WriteRequestsCsv(const Report& r, const std::function<void(std::string_view)>& write) {
  std::string csv = "id";
  std::vector<const std::vector<double>*> columns;
  const std::vector<double>* state = nullptr;
  const std::vector<double>* of_class = nullptr;
  const std::vector<double>* reason = nullptr;
  for (std::size_t i = 0; i < Columns().size(); ++i) {
    if (Columns()[i].kind != "request") continue;
    csv += "," + std::string(Columns()[i].name);
    columns.push_back(&r.columns[i]);
    if (Columns()[i].name == "state") state = columns.back();
    if (Columns()[i].name == "class") of_class = columns.back();
    if (Columns()[i].name == "finish_reason") reason = columns.back();
  }
  csv += '\n';
  for (std::size_t row = 0; !columns.empty() && row < columns[0]->size(); ++row) {
    csv += std::to_string(row);
    for (const std::vector<double>* column : columns) {
      csv += ',';
      const double value = (*column)[row];
      if (std::isnan(value)) continue;
      if (column == state) {
        csv += kStateNames[static_cast<std::size_t>(value)];
      } else if (column == reason) {
        csv += FinishReasons::kNames[static_cast<std::size_t>(value)];
      } else if (column == of_class) {
        csv += CsvCell(r.classes[static_cast<std::size_t>(value)].name);
      } else {
        csv += NumberText(value);
      }
    }
    csv += '\n';
    if (csv.size() < std::size_t{1} << 16) continue;
    write(csv);
    csv.clear();
  }
  write(csv);
}

std::string RequestsCsv(const Report& r) {
  std::string csv;
  WriteRequestsCsv(r, [&csv](std::string_view text) { csv += text; });
  return csv;
}

}  // namespace servecast

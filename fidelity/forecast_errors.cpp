// See forecast_errors.h.
#include "forecast_errors.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "formats/measured_table.h"
#include "host/files.h"

namespace servecast {
namespace {

// Constants were fitted to what these releases of measurements hold (docs/fidelity.md).
bool IsFitted(std::string_view release) { return release == "first" || release == "2026-11"; }

}  // namespace

Result<std::vector<ForecastError>> ReadForecastErrors(const std::string& path) {
  const Result<std::string> text = ReadFile(path, std::size_t{64} << 20);
  if (!text.ok()) return Issues(text.issues());
  const MeasuredTable table(text.value());
  for (const char* column : {"release", "set", "row", "metric", "kind", "lab", "measured"}) {
    if (!table.Has(column)) {
      return Issue{path, std::string("has no column ") + column + ", so it holds no forecasts"};
    }
  }
  std::vector<ForecastError> errors;
  for (std::size_t i = 0; i < table.Rows(); ++i) {
    MeasuredRow row(table, path, i);
    const auto text_of = [&row](std::string_view column) {
      return std::string(row.Text({column}));
    };
    const auto number = [&row](std::string_view column) {
      return row.Number({column}).value_or(0);
    };
    const std::optional<RunKind> run = RunKindOf(text_of("kind"));
    if (!text_of("excluded").empty() || text_of("mode") == "disagg" || !run) continue;
    ForecastError& e = errors.emplace_back();
    e.set = text_of("set");
    e.row = text_of("row");
    e.metric = text_of("metric");
    e.measured = number("measured");
    e.predicted = number("predicted");
    e.fitted = IsFitted(text_of("release"));
    SetupFeatures& f = e.of.at;
    f.laboratory = text_of("lab");
    f.model = ModelKey(text_of("model"));
    f.form = text_of("mkind");
    if (f.form == "moe-chunk") f.form = "moe";  // a scenario cannot say that attention is in chunks
    f.weights = text_of("w");
    if (f.weights.empty()) f.weights = "16";
    f.gpu = text_of("gpu");
    f.engine = text_of("engv");
    f.run = *run;
    f.expert_parallel = number("ep") > 1;
    f.tensor_parallel = std::max(number("tp"), 1.0);
    f.active_billions = number("size");
    f.gpus = f.tensor_parallel;
    f.prompt = number("isl");
    f.output = number("osl");
    f.clients = number("conc");
    if (!row.problem().empty()) return Issue{"", row.problem()};
    if (e.measured <= 0 || e.predicted <= 0) {
      errors.pop_back();
      continue;
    }
    e.of.error = Log(e.measured / e.predicted);
  }
  return errors;
}

}  // namespace servecast

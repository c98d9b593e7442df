// A report as JSON: writes the figures that report_figures.h, report_findings.h and report_work.h
// describe. wasm/servecast.d.ts has the keys.
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/json_put.h"
#include "io/json_writer.h"
#include "io/report_work.h"
#include "servecast/error_band.h"
#include "servecast/report.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

// Columns over time are of one run, as are gaps between tokens.
void WriteSeries(const Report& r, Scope scope, JsonWriter& out, JsonPut& put) {
  put.Object("series", {"", ""}, [&] {
    for (std::size_t i = 0; i < Columns().size(); ++i) {
      const Column& column = Columns()[i];
      if (column.kind == "request") continue;
      const bool shared = column.name == "cdf_fraction";
      const bool of_run = column.kind == "series" || column.name == "cdf_itl_ms";
      if (!shared && !(of_run ? scope.run : scope.all)) continue;
      out.Key(column.name);
      out.BeginArray();
      for (const double value : r.columns[i]) out.Number(value);
      out.EndArray();
    }
  });
}

}  // namespace

std::string ReportJson(const Report& r, ReportParts parts) { return ReportJson(r, nullptr, parts); }

std::string ReportJson(const Report& r, const Banded* banded, ReportParts parts) {
  JsonWriter out(parts == ReportParts::kSummary || parts == ReportParts::kWithSeries);
  JsonPut put(out);
  out.BeginObject();
  const Scope scope{.all = true, .run = !r.certainty.has_value()};
  VisitReport(r, banded, scope, put);
  if (!scope.run) {
    put.Object("first_run", {"", ""}, [&] {
      VisitFirstRun(r, put);
      if (parts == ReportParts::kWithSeries) {
        WriteSeries(r, Scope{.all = false, .run = true}, out, put);
      }
    });
  }
  if (parts == ReportParts::kWithScenario || parts == ReportParts::kWithSeries) {
    out.Key("scenario");
    out.Raw(r.resolved_scenario);
  }
  if (parts == ReportParts::kWithSeries) WriteSeries(r, scope, out, put);
  out.EndObject();
  return out.Take();
}

}  // namespace servecast

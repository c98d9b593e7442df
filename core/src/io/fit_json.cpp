// See fit_json.h, and trace.h.
#include "io/fit_json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/base.h"
#include "io/field_writer.h"
#include "io/json_document.h"
#include "io/json_writer.h"
#include "servecast/workload_spec.h"
#include "workload/trace_moments.h"

namespace servecast {
namespace {

constexpr std::size_t kRateParts = 60, kProbabilities = 101;  // of a picture

// Requests per second in equal parts of `seconds`; what comes later is in none.
std::vector<double> RatesOf(const Trace& trace, double seconds) {
  std::vector<double> rates(kRateParts);
  for (const TraceRow& row : trace.rows) {
    const double at = static_cast<double>(row.arrival_ns) * 1e-9 / seconds * double{kRateParts};
    if (at <= double{kRateParts}) {
      rates[std::min(static_cast<std::size_t>(at), kRateParts - 1)] += double{kRateParts} / seconds;
    }
  }
  return rates;
}

std::vector<double> QuantilesOf(const Trace& trace, std::int32_t TraceRow::*member) {
  std::vector<std::int32_t> values;
  for (const TraceRow& row : trace.rows) values.push_back(row.*member);
  std::sort(values.begin(), values.end());
  std::vector<double> quantiles;
  for (std::size_t i = 0; i < kProbabilities; ++i) {
    quantiles.push_back(values[i * (values.size() - 1) / (kProbabilities - 1)]);
  }
  return quantiles;
}

void WriteNumbers(JsonWriter& out, const char* key, const std::vector<double>& values) {
  out.Key(key), out.BeginArray();
  for (const double value : values) out.Number(value);
  out.EndArray();
}

void WriteRates(JsonWriter& out, const Trace& trace, const FittedTrace& fitted) {
  TimeNs last = 0;
  for (const TraceRow& row : trace.rows) last = std::max(last, row.arrival_ns);
  const double seconds = static_cast<double>(last) * 1e-9;
  if (!trace.has_arrivals || seconds <= 0) return;
  std::vector<double> from;
  for (std::size_t i = 0; i < kRateParts; ++i) {
    from.push_back(seconds * static_cast<double>(i) / double{kRateParts});
  }
  out.Key("rate"), out.BeginObject();
  WriteNumbers(out, "from_s", from);
  WriteNumbers(out, "trace", RatesOf(trace, seconds));
  WriteNumbers(out, "fit", RatesOf(fitted.drawn, seconds));
  out.EndObject();
}

void WriteLengths(JsonWriter& out, const Trace& trace, const FittedTrace& fitted) {
  std::vector<double> probability;
  for (std::size_t i = 0; i < kProbabilities; ++i) {
    probability.push_back(static_cast<double>(i) / double{kProbabilities - 1});
  }
  out.Key("lengths"), out.BeginObject();
  WriteNumbers(out, "probability", probability);
  WriteNumbers(out, "prompt_trace", QuantilesOf(trace, &TraceRow::prompt_tokens));
  WriteNumbers(out, "prompt_fit", QuantilesOf(fitted.drawn, &TraceRow::prompt_tokens));
  WriteNumbers(out, "output_trace", QuantilesOf(trace, &TraceRow::output_tokens));
  WriteNumbers(out, "output_fit", QuantilesOf(fitted.drawn, &TraceRow::output_tokens));
  out.EndObject();
}

}  // namespace

std::vector<FitComparison> CompareFit(const Trace& trace, const FittedTrace& fitted) {
  const TraceMoments t = MomentsOf(trace), f = MomentsOf(fitted.drawn);
  std::vector<FitComparison> rows = {{"requests", "", t.requests, f.requests}};
  if (trace.has_arrivals) {
    rows.push_back({"duration", "s", t.duration_s, f.duration_s});
    rows.push_back({"rate", "req/s", t.rate_per_s, f.rate_per_s});
    rows.push_back({"busiest 60th", "req/s", t.peak_per_s, f.peak_per_s});
    rows.push_back({"cv of gaps", "", t.gap_cv, f.gap_cv});
  }
  const auto lengths = [&rows](std::array<const char*, 4> names, const LengthMoments& a,
                               const LengthMoments& b) {
    rows.push_back({names[0], "tokens", a.mean, b.mean});
    rows.push_back({names[1], "tokens", a.p50, b.p50});
    rows.push_back({names[2], "tokens", a.p90, b.p90});
    rows.push_back({names[3], "tokens", a.p99, b.p99});
  };
  lengths({"prompt mean", "prompt p50", "prompt p90", "prompt p99"}, t.prompt, f.prompt);
  lengths({"output mean", "output p50", "output p90", "output p99"}, t.output, f.output);
  rows.push_back({"rank correlation", "", t.rank_correlation, f.rank_correlation});
  rows.push_back({"shared prompt tokens", "%", 100 * t.prefix_share, 100 * f.prefix_share});
  return rows;
}

std::string WorkloadJson(const WorkloadSpec& workload, bool with_arrivals) {
  Scenario scenario;
  *scenario.workload = workload;
  nlohmann::json json = WriteScenario(scenario, Scenario{}, FieldsWritten::kChanged)["workload"];
  if (!with_arrivals) json.erase("arrivals");
  return CompactJson(json);
}

Result<std::string> FitTraceJson(const Trace& trace) {
  const Result<FittedTrace> fitted = FitTrace(trace);
  if (!fitted.ok()) return Issues(fitted.issues());
  JsonWriter out(false);
  out.BeginObject();
  out.Key("workload"), out.Raw(WorkloadJson(fitted.value().workload, trace.has_arrivals));
  out.Key("comparison"), out.BeginArray();
  for (const FitComparison& row : CompareFit(trace, fitted.value())) {
    out.BeginObject();
    out.Key("name"), out.Text(row.name);
    out.Key("unit"), out.Text(row.unit);
    out.Key("trace"), out.Number(row.trace);
    out.Key("fit"), out.Number(row.fit);
    out.EndObject();
  }
  out.EndArray();
  WriteRates(out, trace, fitted.value());
  WriteLengths(out, trace, fitted.value());
  out.EndObject();
  return out.Take();
}

}  // namespace servecast

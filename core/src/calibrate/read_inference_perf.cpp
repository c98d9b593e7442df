// Results of inference-perf (stage_N_lifecycle_metrics.json and summary_lifecycle_metrics.json).
// Written by memory of the tool's version 0.2; no file of the tool was at hand. Times are in
// seconds.
#include <cmath>

#include "base/text.h"
#include "calibrate/json_numbers.h"
#include "calibrate/readers.h"
#include "calibrate/summary_run.h"
#include "io/issues.h"

namespace servecast {

using Json = nlohmann::json;

Result<Measurements> ReadInferencePerf(const Json& json, const std::string& name) {
  JsonNumbers in(json, name);
  SummaryRun run;
  run.label = name;
  run.requests = in.NeededAt({"successes", "count"}, 1, kMostRunRequests);
  run.prompt.mean = in.NeededAt({"successes", "prompt_len", "mean"}, 1, 1e7);
  run.output.mean = std::max(1.0, in.NeededAt({"successes", "output_len", "mean"}, 1, 1e7));
  const auto ms = [&in](const char* figure) -> std::optional<double> {
    const auto seconds = in.NumberAt({"successes", "latency", figure, "mean"}, 0, 1e6);
    return seconds ? std::optional(*seconds * 1e3) : std::nullopt;
  };
  run.ttft_ms = ms("time_to_first_token");
  run.tpot_ms = ms("time_per_output_token");
  run.e2e_ms = ms("request_latency");
  // What was sent, where that is known: a server that lags is asked no less.
  const auto asked = in.NumberAt({"load_summary", "requested_rate"}, 1e-3, 1e6);
  const auto achieved = in.NumberAt({"load_summary", "achieved_rate"}, 1e-3, 1e6);
  run.arrivals.rate_per_s = asked.value_or(achieved.value_or(0));
  run.arrivals.even = true;
  if (run.arrivals.rate_per_s == 0 && in.issues().empty()) {
    in.Refuse("/load_summary/requested_rate", nullptr,
              "a number: the summary over all stages has none, and is not one load; give the files "
              "of its stages");
  }
  Measurements read;
  if (in.issues().empty()) in.issues() = AddSummaryRun(run, read);
  if (!in.issues().empty()) return Bounded(std::move(in.issues()));
  read.found.push_back(
      Format("{}: the means of {} requests of inference-perf: all of it under load, lengths taken "
             "to be alike",
             name, NumberText(run.requests)));
  read.warnings.push_back(Format(
      "{} does not say how its requests came: at equal gaps, the tool's constant load, is assumed",
      name));
  return read;
}

}  // namespace servecast

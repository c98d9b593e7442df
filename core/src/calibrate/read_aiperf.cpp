// Results of aiperf (profile_export_aiperf.json). Written by memory of the tool's version 0.2,
// whose figures say their unit; no file of the tool was at hand.
#include <cmath>

#include "base/text.h"
#include "calibrate/json_numbers.h"
#include "calibrate/readers.h"
#include "calibrate/summary_run.h"
#include "formats/benchmarks.h"
#include "io/issues.h"

namespace servecast {

using Json = nlohmann::json;

namespace {

// The mean of a time, ms.
std::optional<double> MsOf(JsonNumbers& in, const char* figure) {
  const auto value = in.NumberAt({figure, "avg"}, 0, 1e15);
  if (!value) return std::nullopt;
  if (const auto ms = AiperfUnitMs(*in.FindAt({figure}))) return *value * *ms;
  in.Refuse(Format("/{}/unit", figure), in.FindAt({figure, "unit"}),
            "\"ms\", \"s\", \"us\" or \"ns\"");
  return std::nullopt;
}

}  // namespace

Result<Measurements> ReadAiperf(const Json& json, const std::string& name) {
  JsonNumbers in(json, name);
  SummaryRun run;
  run.label = name;
  run.requests = in.NeededAt({"request_count", "avg"}, 1, kMostRunRequests);
  run.prompt.mean = in.NeededAt({"input_sequence_length", "avg"}, 1, 1e7);
  run.output.mean = in.NeededAt({"output_sequence_length", "avg"}, 1, 1e7);
  run.ttft_ms = MsOf(in, "time_to_first_token");
  run.tpot_ms = MsOf(in, "inter_token_latency");
  run.e2e_ms = MsOf(in, "request_latency");
  const auto rate = in.NumberAt({"input_config", "loadgen", "request_rate"}, 1e-3, 1e6);
  const auto clients = in.NumberAt({"input_config", "loadgen", "concurrency"}, 1, 1e5);
  const Json* mode = in.FindAt({"input_config", "loadgen", "request_rate_mode"});
  if (rate) {
    run.arrivals.rate_per_s = *rate;
    run.arrivals.even = mode != nullptr && mode->is_string() && *mode == "constant";
    if (clients) {
      in.Refuse("/input_config/loadgen/concurrency",
                in.FindAt({"input_config", "loadgen", "concurrency"}),
                "null beside a request_rate: a limit of requests beside a rate is not modelled");
    }
  } else if (clients) {
    run.arrivals.clients = std::llround(*clients);
  } else if (in.issues().empty()) {
    in.Refuse("/input_config/loadgen/request_rate", nullptr, "it or concurrency");
  }
  Measurements read;
  if (in.issues().empty()) in.issues() = AddSummaryRun(run, read);
  if (!in.issues().empty()) return Bounded(std::move(in.issues()));
  const Json* models = in.FindAt({"input_config", "endpoint", "model_names"});
  if (models != nullptr && models->is_array() && !models->empty() && models->front().is_string()) {
    read.server.model = models->front().get<std::string>();
  }
  read.found.push_back(
      Format("{}: the means of {} requests of aiperf: all of it under load, lengths taken to be "
             "alike",
             name, NumberText(run.requests)));
  return read;
}

}  // namespace servecast

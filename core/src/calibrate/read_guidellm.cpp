// Results of GuideLLM (benchmarks.json). Written by memory of the tool's versions 0.2 to 0.4; no
// file of the tool was at hand.
#include <cmath>

#include "base/text.h"
#include "calibrate/json_numbers.h"
#include "calibrate/readers.h"
#include "calibrate/summary_run.h"
#include "formats/benchmarks.h"
#include "io/issues.h"
#include "io/json_document.h"

namespace servecast {

using Json = nlohmann::json;

namespace {

constexpr std::size_t kMostBenchmarks = 1000;

// nullopt: an issue says why.
std::optional<RunArrivals> ArrivalsOf(JsonNumbers& in, const std::string& name,
                                      const std::string& at) {
  const Json* found = GuideLlmStrategy(in.json());
  if (found == nullptr) {
    in.Refuse("/config/strategy", nullptr, "how its requests came, as of GuideLLM 0.2 to 0.4");
    return std::nullopt;
  }
  JsonNumbers strategy(*found, name, at + "/strategy");
  const Json* type = strategy.Find("type_");
  const std::string kind = type != nullptr && type->is_string() ? type->get<std::string>() : "";
  RunArrivals arrivals;
  if (kind == "synchronous") {
    arrivals.clients = 1;
  } else if (kind == "concurrent") {
    arrivals.clients = std::llround(strategy.NeededAt({"streams"}, 1, 1e5));
  } else if (kind == "throughput") {
    const auto most = strategy.Number("max_concurrency", 1, 1e5);
    if (most) arrivals.clients = std::llround(*most);
  } else if (kind == "constant" || kind == "poisson") {
    arrivals.rate_per_s = strategy.NeededAt({"rate"}, 1e-3, 1e5);
    arrivals.even = kind == "constant";
  } else {
    strategy.Refuse("/type_", type,
                    "\"synchronous\", \"concurrent\", \"throughput\", \"constant\" or \"poisson\"");
  }
  in.issues().insert(in.issues().end(), strategy.issues().begin(), strategy.issues().end());
  if (!strategy.issues().empty()) return std::nullopt;
  return arrivals;
}

}  // namespace

Result<Measurements> ReadGuideLlm(const Json& json, const std::string& name) {
  Measurements read;
  Issues issues;
  double all = 0;
  const Json& list = json.at("benchmarks");
  if (list.size() > kMostBenchmarks) {
    return Issue{name, Format("found {} benchmarks, allowed {}", list.size(), kMostBenchmarks)};
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string at = Format("/benchmarks/{}", i);
    JsonNumbers in(list[i], name, at);
    SummaryRun run;
    run.label = Format("{}, benchmark {}", name, i + 1);
    const auto arrivals = ArrivalsOf(in, name, at);
    if (arrivals) run.arrivals = *arrivals;
    const auto mean = [&in](const char* figure, double most) {
      return in.NumberAt({"metrics", figure, "successful", "mean"}, 0, most);
    };
    run.prompt.mean =
        std::max(1.0, in.NeededAt({"metrics", "prompt_token_count", "successful", "mean"}, 1, 1e7));
    run.output.mean =
        std::max(1.0, in.NeededAt({"metrics", "output_token_count", "successful", "mean"}, 1, 1e7));
    run.requests =
        in.NeededAt({"metrics", "request_latency", "successful", "count"}, 1, kMostRunRequests);
    run.ttft_ms = mean("time_to_first_token_ms", 1e9);
    // Its time_per_output_token_ms counts the first token, too.
    run.tpot_ms = mean("inter_token_latency_ms", 1e9);
    if (const auto seconds = mean("request_latency", 1e6)) run.e2e_ms = *seconds * 1e3;
    all += run.requests;
    if (all > kMostRunRequests) {
      in.issues().push_back(
          {name + ", " + at, Format("found {} requests so far, allowed {} in a "
                                    "file",
                                    NumberText(all), NumberText(kMostRunRequests))});
    }
    if (in.issues().empty()) in.issues() = AddSummaryRun(run, read);
    issues.insert(issues.end(), in.issues().begin(), in.issues().end());
  }
  if (!issues.empty()) return Bounded(std::move(issues));
  read.found.push_back(
      Format("{}: {} benchmark{} of GuideLLM: all of it under load, lengths taken to be alike",
             name, list.size(), list.size() == 1 ? "" : "s"));
  return read;
}

}  // namespace servecast

// See calibrate_traces.h.
#include "calibrate_traces.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "calibrate/training_pack.h"
#include "host/files.h"
#include "host/output_file.h"

namespace servecast {
std::string Today() {
  const std::chrono::year_month_day day{
      std::chrono::floor<std::chrono::days>(std::chrono::system_clock::now())};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

namespace {

constexpr std::size_t kMostTraceBytes = std::size_t{1} << 30;

std::string Base(const std::string& path) { return Printable(path.substr(path.rfind('/') + 1)); }

// The date of today, UTC.
// The k-th scenario is of the k-th trace; one is of all; none: a trace's own.
Result<Scenario> ServerOfTrace(const TraceRequest& request, std::size_t k, const StepTrace& trace) {
  std::string name;
  if (!request.scenarios.empty()) {
    name = request.scenarios[request.scenarios.size() == 1 ? 0 : k];
  } else if (trace.scenario.empty()) {
    return Issue{trace.name, "does not say which server it is of, allowed --scenario FILE|PRESET"};
  }
  Result<std::string> text =
      name.empty() ? Result<std::string>(trace.scenario) : ScenarioText(name);
  if (!text.ok()) return Issues(text.issues());
  const std::string label = name.empty() ? trace.name : ScenarioPreset(name) ? "" : name;
  text = ApplyOverrides(text.value(), request.overrides);
  if (!text.ok()) return Labelled(label, text.issues());
  Result<Scenario> scenario = ParseScenario(text.value());
  if (!scenario.ok()) return Labelled(label, scenario.issues());
  return scenario;
}

void PrintVector(const Training& training, const TrainedVector& v) {
  fmt::print(stderr, "\n{}: {} samples, {}\n", v.name, v.samples,
             v.trained ? fmt::format("lambda {}, {:.1f} degrees of freedom", v.lambda, v.degrees)
                       : "too few, stays as it is");
  if (!v.trained) return;
  for (std::size_t i = 0; i < v.coefficients.size(); ++i) {
    if (v.coefficients[i] == 0) continue;
    fmt::print(stderr, "  {:>2} {:<30} {:>12.6g}   {:.6g} to {:.6g} us\n", i + 1,
               FeatureName(training.backend, v.name, i), v.coefficients[i], v.low[i], v.high[i]);
  }
  for (const TrainingError& e : v.errors) {
    fmt::print(stderr, "  {:<33} {:>7} samples: off by {:.2f} %, rms {:.1f} us, most {:.1f} us\n",
               e.of, e.samples, e.mape, e.rmse_us, e.most_us);
  }
  for (const TrainingCheck& c : v.checks) {
    if (c.met) continue;
    fmt::print(stderr, "  beyond its limit: {}, {:.3g}, allowed {}\n", c.what, c.value,
               c.limit == 0 ? "0 and above" : fmt::format("below {}", c.limit));
  }
}

void PrintReplay(const std::vector<ReplayDistance>& before,
                 const std::vector<ReplayDistance>& after) {
  if (after.empty()) return;
  fmt::print(stderr,
             "\nreplay of the last fifth       values   KS before   after   median off by\n");
  for (std::size_t i = 0; i < after.size(); ++i) {
    const ReplayDistance& d = after[i];
    fmt::print(
        stderr, "  {:<28} {:>6}   {:>9}   {:.3f}   {:.1f} %{}\n", d.figure, d.measured,
        i < before.size() ? fmt::format("{:.3f}", before[i].ks) : "", d.ks, d.median_error,
        d.met ? "" : fmt::format(", beyond its limits of {} and {} %", kMostKs, kMostMedianError));
  }
}

// Before: what the scenario says by itself.
Result<std::vector<ReplayDistance>> ReplayWith(const TracedServer& server,
                                               const std::string& latency) {
  Scenario scenario = server.scenario;
  if (!latency.empty()) {
    const auto text = ApplyOverrides(scenario.canonical_text, {"latency=" + latency});
    if (!text.ok()) return Issues(text.issues());
    Result<Scenario> parsed = ParseScenario(text.value());
    if (!parsed.ok()) return Issues(parsed.issues());
    scenario = std::move(parsed.value());
  }
  return CompareReplay(server.trace, std::move(scenario));
}

}  // namespace

std::optional<int> CalibrateTraces(const TraceRequest& request) {
  std::vector<TracedServer> servers;
  Issues issues;
  std::size_t others = 0;
  std::string other;
  for (std::size_t k = 0; k < request.files.size(); ++k) {
    const Result<std::string> text = ReadFile(request.files[k], kMostTraceBytes);
    if (!text.ok() || !IsStepTrace(text.value())) {
      ++others;
      other = request.files[k];
      continue;
    }
    Result<StepTrace> trace = ReadStepTrace(text.value(), Base(request.files[k]));
    if (!trace.ok()) {
      issues.insert(issues.end(), trace.issues().begin(), trace.issues().end());
      continue;
    }
    Result<Scenario> scenario = ServerOfTrace(request, k, trace.value());
    if (!scenario.ok()) {
      issues.insert(issues.end(), scenario.issues().begin(), scenario.issues().end());
      continue;
    }
    servers.push_back({std::move(trace.value()), std::move(scenario.value())});
  }
  if (servers.empty() && issues.empty()) return std::nullopt;
  if (request.scenarios.size() > 1 && request.scenarios.size() != request.files.size()) {
    return Usage(
        fmt::format("--scenario is given {} times for {} traces; allowed once, or as often",
                    request.scenarios.size(), request.files.size()));
  }
  if (others > 0) {
    issues.push_back({Base(other),
                      "is no trace of steps; measurements of other kinds are fitted by "
                      "themselves, as they tell of another model"});
  }
  if (!issues.empty()) return PrintIssues(issues);
  TrainingOptions options;
  options.blackbox = request.backend == "blackbox";
  options.noise_correction = request.noise_correction;
  const Result<Training> trained = Train(servers, options);
  if (!trained.ok()) return PrintIssues(trained.issues());
  const Training& training = trained.value();
  for (const std::string& line : training.found) {
    fmt::print(stderr, "found    {}\n", Printable(line));
  }
  PrintVector(training, training.beta);
  PrintVector(training, training.alpha);
  if (!options.blackbox) PrintVector(training, training.wait);
  const auto before = ReplayWith(servers[0], "");
  const auto after = ReplayWith(servers[0], LatencyOf(training, servers[0].scenario));
  if (!before.ok()) return PrintIssues(before.issues());
  if (!after.ok()) return PrintIssues(after.issues());
  PrintReplay(before.value(), after.value());
  for (const std::string& line : training.warnings) {
    fmt::print(stderr, "warning: {}\n", Printable(line));
  }
  const std::string pack =
      TrainingPackJson(training, servers, before.value(), after.value(), Today()) + "\n";
  return WriteOrPrint(request.out, pack) ? 0 : kBadInput;
}

}  // namespace servecast

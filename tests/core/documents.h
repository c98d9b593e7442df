// Scenario documents for the tests of this folder, and the shortest way from one to its report.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "servecast/report.h"
#include "servecast/scenario.h"
#include "servecast/simulation.h"
#include "servecast/trace.h"

namespace servecast::testing {

// A good document: every section is there, no simulation of it takes longer than some milliseconds.
inline std::string SmallDocument() {
  return R"({"schema": 1, "model": {"preset": "llama-3.1-8b"}, "hardware": {"preset": "h100-sxm"},
    "workload": {"arrivals": {"process": "poisson", "rate_per_s": 10}, "requests": 50,
                 "prompt_tokens": {"distribution": "fixed", "value": 100},
                 "output_tokens": {"distribution": "fixed", "value": 20}}})";
}

inline std::string Listed(const Issues& issues) {
  std::string text;
  for (const Issue& issue : issues) text += issue.path + ": " + issue.message + "\n";
  return text;
}

// Every issue that stands between a document and a run of it.
inline Issues IssuesOf(const std::string& document, Trace trace = {}) {
  Result<Scenario> scenario = ParseScenario(document);
  if (!scenario.ok()) return scenario.issues();
  const Result<Simulation> simulation =
      Simulation::Create(std::move(scenario.value()), std::move(trace));
  return simulation.ok() ? Issues{} : simulation.issues();
}

// Ends the program with the issues of what a test took for good.
template <class T>
T Good(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "a test's own mistake:\n%s", Listed(result.issues()).c_str());
    std::abort();
  }
  return std::move(result.value());
}

// `SmallDocument` with overrides, as `--set` takes them.
inline std::string Changed(const std::vector<std::string>& overrides,
                           const std::string& document = SmallDocument()) {
  return Good(ApplyOverrides(document, overrides));
}

inline Scenario Parsed(const std::string& document) { return Good(ParseScenario(document)); }

// Requires: a good document.
inline Report RunToEnd(const std::string& document, Trace trace = {},
                       std::int64_t slice = INT64_MAX) {
  Simulation simulation = Good(Simulation::Create(Parsed(document), std::move(trace)));
  while (!simulation.Advance(slice)) {
  }
  return simulation.Snapshot();
}

// The first rule of conservation that a report breaks; "" when none.
inline std::string BrokenConservation(const Report& r) {
  if (r.arrived != r.completed + r.queued + r.running + r.dropped + r.timed_out + r.rejected +
                       r.scaling.failures.lost) {
    return "arrived is not the sum of the states";
  }
  if (r.length_capped > r.completed) return "more capped than completed";
  if (r.e2e_ms.n > r.completed || r.tpot_ms.n > r.e2e_ms.n || r.e2e_ms.n > r.ttft_ms.n) {
    return "more samples than requests";
  }
  for (const std::int64_t n : {r.queued, r.running, r.dropped, r.timed_out, r.rejected}) {
    if (n < 0) return "a negative count";
  }
  return "";
}

}  // namespace servecast::testing

// A few requests by BLIS's rules: a step takes 1,000 us, 10 us per prefill token and 5 us per
// decode.
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "serving/hooks.h"

namespace servecast::testing {

inline constexpr Compat kFebruary = Compat::kBlisFebruary2026, kToday = Compat::kBlis;

struct Row {
  std::int64_t arrival_us = 0;
  std::int32_t prompt = 1, output = 1;
  std::int32_t shared = 0;  // tokens of one beginning that all such rows have
};

struct Case {
  explicit Case(Compat compat, const std::vector<Row>& rows) {
    scenario = Parsed(SmallDocument());
    scenario.engine.compat = compat;
    scenario.engine.num_gpu_blocks_override = 1000;
    scenario.latency.backend = "blackbox";
    scenario.latency.alpha = {0, 0, 0};
    scenario.latency.beta = {1000, 10, 5};
    table.segments.push_back({});
    for (const Row& row : rows) {
      table.arrival.push_back(row.arrival_us * 1000);
      table.prompt_tokens.push_back(row.prompt);
      table.output_tokens.push_back(row.output);
      table.content.push_back(static_cast<std::int32_t>(table.segments.size()));
      table.segments.push_back(row.shared > 0 ? ContentSegment{0, row.shared} : ContentSegment{});
    }
  }

  Report Run(std::int64_t slice = INT64_MAX) const {
    SimulationHooks hooks;
    hooks.requests = table;
    Simulation simulation = Good(Simulation::Create(scenario, {}, std::move(hooks)));
    std::int64_t calls = 0;
    while (!simulation.Advance(slice)) {
      if (slice < INT64_MAX && ++calls % 3 == 0) {
        EXPECT_EQ(BrokenConservation(simulation.Snapshot()), "");
      }
    }
    const Report report = simulation.Snapshot();
    EXPECT_EQ(BrokenConservation(report), "");
    return report;
  }

  Scenario scenario;
  RequestTable table;
};

using Times = std::vector<std::int64_t>;

// A column of milliseconds in whole microseconds; -1: none.
inline Times Us(const Report& report, const char* column) {
  Times times;
  for (const double ms : report.ColumnOf(column)) {
    times.push_back(std::isnan(ms) ? -1 : std::llround(ms * 1e3));
  }
  return times;
}

inline std::int64_t EndUs(const Report& report) { return std::llround(report.simulated_s * 1e6); }

}  // namespace servecast::testing

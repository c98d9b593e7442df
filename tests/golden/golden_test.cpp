// Goldens: scenarios with the fingerprint and a few numbers that they must keep, on every compiler
// and as wasm (the same binary). A fingerprint may move only when what is simulated moves; then
// SERVECAST_UPDATE_GOLDENS=1 rewrites goldens.json and prints what moved, for the commit to
// explain. tests/wasm/contract.test.mjs runs the same file through the page's module.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"

namespace servecast::testing {
namespace {

using Json = nlohmann::ordered_json;

const char* const kFile = SERVECAST_SOURCE_DIR "/tests/golden/goldens.json";

bool Updating() {
  const char* update = std::getenv("SERVECAST_UPDATE_GOLDENS");
  return update != nullptr && std::string(update) == "1";
}

Json& Goldens() {
  static Json goldens = [] {
    std::ifstream file(kFile, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return Json::parse(text.str(), nullptr, false);
  }();
  return goldens;
}

std::string DocumentOf(const Json& golden) {
  if (!golden.contains("preset")) return golden["document"].dump();
  return std::string(ScenarioPreset(golden["preset"].get<std::string>()).value_or(""));
}

Trace TraceOf(const Json& golden) {
  if (!golden.contains("trace")) return {};
  std::string text;
  for (const Json& line : golden["trace"]) text += line.get<std::string>() + "\n";
  return Good(ParseTrace(text, "golden.csv"));
}

// What a golden states, from a report. Milliseconds are rounded to the nanosecond that they were.
Json Stated(const Report& r) {
  const auto ms = [](double value) { return static_cast<std::int64_t>(value * 1e6 + 0.5); };
  Json stated;
  stated["fingerprint"] = HashText(r.fingerprint);
  stated["arrived"] = r.arrived;
  stated["completed"] = r.completed;
  stated["queued"] = r.queued;
  stated["running"] = r.running;
  stated["dropped"] = r.dropped;
  stated["timed_out"] = r.timed_out;
  stated["length_capped"] = r.length_capped;
  stated["preemptions"] = r.preemptions;
  stated["cached_tokens"] = r.prefix_cache.hit_tokens;
  stated["steps"] = r.steps;
  stated["output_tokens"] = r.output_tokens;
  stated["ttft_p99_ns"] = ms(r.ttft_ms.p99);
  stated["itl_p99_ns"] = ms(r.itl_ms.p99);
  stated["e2e_max_ns"] = ms(r.e2e_ms.max);
  const Json report = Json::parse(ReportJson(r, ReportParts::kSummary), nullptr, false);
  stated["verdict"] = report["verdict"]["state"];
  return stated;
}

void CheckInvariants(const Report& r) {
  EXPECT_TRUE(r.finished);
  EXPECT_EQ(BrokenConservation(r), "");
  EXPECT_GE(r.kv_peak_usage, r.kv_mean_usage);
  EXPECT_LE(r.kv_peak_usage, 1);
  const std::vector<double>&state = r.ColumnOf("state"), &arrival = r.ColumnOf("arrival_s"),
        &delay = r.ColumnOf("scheduling_delay_ms"), &ttft = r.ColumnOf("ttft_ms"),
        &e2e = r.ColumnOf("e2e_ms"), &tokens = r.ColumnOf("output_tokens"),
        &preempted = r.ColumnOf("preemptions");
  std::int64_t completed = 0, dropped = 0;
  double made = 0, preemptions = 0;
  for (std::size_t i = 0; i < state.size(); ++i) {
    completed += state[i] == 3 ? 1 : 0;
    dropped += state[i] == 4 ? 1 : 0;
    made += tokens[i];
    preemptions += preempted[i];
    if (state[i] != 3) continue;
    EXPECT_GE(arrival[i], 0) << i;
    EXPECT_GE(delay[i], 0) << i;
    if (r.departures.empty()) {
      EXPECT_GT(ttft[i], delay[i]) << i;
    }
    EXPECT_GE(e2e[i], ttft[i]) << i;
    EXPECT_GE(tokens[i], 1) << i;
  }
  EXPECT_EQ(completed, r.completed);
  EXPECT_EQ(dropped, r.dropped);
  // BLIS throws away what a preempted request made, and counts its delay to the last admission.
  if (r.departures.empty()) {
    EXPECT_EQ(made, static_cast<double>(r.output_tokens));
  }
  EXPECT_EQ(preemptions, static_cast<double>(r.preemptions));
}

TEST(Golden, EachScenario_KeepsItsFingerprint) {
  Json& goldens = Goldens();
  ASSERT_TRUE(goldens.is_array()) << kFile;
  EXPECT_GE(goldens.size(), 12u);
  for (Json& golden : goldens) {
    const std::string name = golden["name"].get<std::string>();
    SCOPED_TRACE(name);
    const std::string document = DocumentOf(golden);
    const Report report = RunToEnd(document, TraceOf(golden));
    CheckInvariants(report);
    EXPECT_EQ(RunToEnd(document, TraceOf(golden), 7).fingerprint, report.fingerprint)
        << "in slices of 7 steps";
    const Json stated = Stated(report);
    if (!Updating()) {
      EXPECT_EQ(golden["expected"], stated);
      continue;
    }
    const Json before = golden.value("expected", Json::object());
    for (const auto& [key, value] : stated.items()) {
      const Json old = before.value(key, Json());
      if (old == value) continue;
      std::printf("%s: %s %s -> %s\n", name.c_str(), key.c_str(), old.dump().c_str(),
                  value.dump().c_str());
    }
    golden["expected"] = stated;
  }
  if (Updating()) std::ofstream(kFile, std::ios::binary) << goldens.dump(2) << "\n";
}

// A golden that does not reach what it is named for proves nothing.
TEST(Golden, Scenarios_ReachWhatTheyAreFor) {
  std::int64_t preemptions = 0, dropped = 0, capped = 0, unfinished = 0, traces = 0;
  std::int64_t timed_out = 0, cached = 0, shared_in_trace = 0;
  for (const Json& golden : Goldens()) {
    const Json& expected = golden["expected"];
    preemptions += expected["preemptions"].get<std::int64_t>();
    dropped += expected["dropped"].get<std::int64_t>();
    capped += expected["length_capped"].get<std::int64_t>();
    unfinished += expected["queued"].get<std::int64_t>() + expected["running"].get<std::int64_t>();
    traces += golden.contains("trace") ? 1 : 0;
    timed_out += expected["timed_out"].get<std::int64_t>();
    cached += expected["cached_tokens"].get<std::int64_t>();
    if (golden.contains("trace")) shared_in_trace += expected["cached_tokens"].get<std::int64_t>();
  }
  EXPECT_GT(preemptions, 0);
  EXPECT_GT(dropped, 0);
  EXPECT_GT(capped, 0);
  EXPECT_GT(unfinished, 0);
  EXPECT_GT(traces, 0);
  EXPECT_GT(timed_out, 0);
  EXPECT_GT(cached, shared_in_trace);
  EXPECT_GT(shared_in_trace, 0);
}

}  // namespace
}  // namespace servecast::testing

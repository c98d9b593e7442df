// What classes have of their own, traces that are thinned, scaled and repeated, closed loops; and
// that changing one knob leaves all draws of the others.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "workload/workload.h"

namespace servecast::testing {
namespace {

RequestTable Table(const std::vector<std::string>& set, const Trace& trace = {}) {
  return Good(MakeRequests(Parsed(Changed(set)), trace));
}

const char* const kTwoClasses =
    R"(workload.classes=[{"name":"a","share":1,"priority":1},{"name":"b","share":3,"priority":2}])";

TEST(Classes, OwnLengths_AreOfTheirRequestsOnly) {
  const RequestTable before = Table({kTwoClasses, "workload.requests=2000"});
  const RequestTable table =
      Table({kTwoClasses, "workload.requests=2000",
             R"(workload.classes.1.prompt_tokens={"distribution":"uniform","min":5,"max":9})",
             R"(workload.classes.0.output_tokens={"distribution":"ratio","ratio":10})"});
  EXPECT_EQ(table.arrival, before.arrival);
  EXPECT_EQ(table.priority, before.priority);
  for (std::size_t i = 0; i < 2000; ++i) {
    const bool a = table.priority[i] == 1;
    ASSERT_EQ(table.output_tokens[i], a ? 10 : 20);
    ASSERT_TRUE(a ? table.prompt_tokens[i] == 100
                  : table.prompt_tokens[i] >= 5 && table.prompt_tokens[i] <= 9);
  }
}

TEST(Classes, OwnRate_IsASecondStreamOfArrivals) {
  const std::vector<std::string> one = {kTwoClasses, "workload.requests=20000",
                                        "workload.arrivals.rate_per_s=10"};
  std::vector<std::string> two = one;
  two.push_back(R"(workload.classes.2={"name":"c","rate_per_s":40,"priority":3})");
  const RequestTable before = Table(one), table = Table(two);
  EXPECT_TRUE(std::is_sorted(table.arrival.begin(), table.arrival.end()));
  std::vector<TimeNs> shared, own;
  std::vector<std::int32_t> priorities;
  for (std::size_t i = 0; i < table.arrival.size(); ++i) {
    (table.priority[i] == 3 ? own : shared).push_back(table.arrival[i]);
    if (table.priority[i] != 3) priorities.push_back(table.priority[i]);
  }
  // The others come when they came, and are who they were.
  ASSERT_GT(shared.size(), 3500u);
  EXPECT_TRUE(std::equal(shared.begin(), shared.end(), before.arrival.begin()));
  EXPECT_TRUE(std::equal(priorities.begin(), priorities.end(), before.priority.begin()));
  const double seconds = static_cast<double>(table.arrival.back()) * 1e-9;
  EXPECT_NEAR(static_cast<double>(own.size()) / seconds, 40, 4 * std::sqrt(40 / seconds));
  // Another class before it changes nothing: draws go by its name.
  two.push_back(R"(workload.classes.3={"name":"d","rate_per_s":1})");
  const RequestTable more = Table(two);
  std::vector<TimeNs> again;
  for (std::size_t i = 0; i < more.arrival.size(); ++i) {
    if (more.priority[i] == 3) again.push_back(more.arrival[i]);
  }
  EXPECT_TRUE(std::equal(again.begin(), again.end(), own.begin()));
}

TEST(Classes, OnlyOwnRates_NeedNoSharedOnes) {
  const RequestTable table = Table({R"(workload.classes=[{"name":"a","rate_per_s":2,"priority":1},)"
                                    R"({"name":"b","rate_per_s":3,"priority":2}])",
                                    "workload.arrivals.process=constant", "workload.requests=8"});
  const double s = 1e9;
  const std::vector<double> expected = {0, 0, s / 3, s / 2, 2 * s / 3, s, s, 4 * s / 3};
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(static_cast<double>(table.arrival[i]), expected[i], 0.6) << i;
  }
  EXPECT_EQ(table.priority, (std::vector<std::int32_t>{1, 2, 2, 1, 2, 1, 2, 2}));
}

TEST(Classes, OwnTurnsAndPrefixes_AreOfTheirSessions) {
  const RequestTable table =
      Table({kTwoClasses, "workload.requests=3000", "workload.prefix={\"groups\":2,\"tokens\":50}",
             "workload.arrivals.start=together", "workload.classes.0.turns=3",
             "workload.classes.0.think_time_s=2", "workload.classes.1.prefix_groups=3",
             "workload.classes.1.prefix_tokens=70"});
  std::map<std::int32_t, int> parents;
  for (std::size_t i = 0; i < 3000;) {
    const bool a = table.priority[i] == 1;
    const ContentSegment segment = table.segments[static_cast<std::size_t>(table.content[i])];
    ASSERT_EQ(segment.shared_tokens, a ? 50 : 70);
    ASSERT_TRUE(a ? segment.parent < 2 : segment.parent >= 2 && segment.parent < 5);
    ++parents[segment.parent];
    ASSERT_EQ(table.prompt_tokens[i], a ? 150 : 170);
    ASSERT_EQ(table.think[i], -1);
    for (std::size_t turn = 1; a && turn < 3 && i + turn < 3000; ++turn) {
      ASSERT_GE(table.think[i + turn], 0);
      ASSERT_EQ(table.prompt_tokens[i + turn], 150 + 120 * static_cast<int>(turn));
      ASSERT_EQ(table.content[i + turn], table.content[i]);
    }
    i += a ? 3 : 1;
  }
  EXPECT_EQ(parents.size(), 5u);
  EXPECT_EQ(table.segments.size(), 5u + static_cast<std::size_t>(table.content.back()) - 4);
}

// For every knob: what it must not touch is what it was, and what it is for is not.
TEST(Draws, OneKnobChanged_LeavesAllOthers) {
  const std::vector<std::string> base = {
      kTwoClasses,
      "workload.requests=600",
      R"(workload.prompt_tokens={"distribution":"lognormal","median":200,"p99":900})",
      R"(workload.output_tokens={"distribution":"zipf","min":1,"max":300})",
      R"(workload.sessions={"turns":2,"think_time_s":3})",
      "workload.arrivals.start=together",
      R"(workload.prefix={"groups":4,"tokens":30})"};
  const RequestTable before = Table(base);
  enum Part { kArrival, kPrompt, kOutput, kThink, kClass, kGroup };
  const auto parts = [](const RequestTable& t) {
    std::vector<std::vector<std::int64_t>> columns(6);
    for (std::size_t i = 0; i < t.arrival.size(); ++i) {
      columns[kArrival].push_back(t.arrival[i]);
      // What was drawn, without prefix and history.
      const ContentSegment s = t.segments[static_cast<std::size_t>(t.content[i])];
      const std::int64_t said =
          i % 2 == 0 ? s.shared_tokens : t.prompt_tokens[i - 1] + t.output_tokens[i - 1];
      columns[kPrompt].push_back(t.prompt_tokens[i] - said);
      columns[kOutput].push_back(t.output_tokens[i]);
      columns[kThink].push_back(t.think.empty() ? 0 : t.think[i]);
      columns[kClass].push_back(t.priority[i]);
      columns[kGroup].push_back(s.parent);
    }
    return columns;
  };
  const struct {
    const char* change;
    Part part;
  } knobs[] = {
      {"workload.arrivals.rate_per_s=3", kArrival},
      {"workload.arrivals.process=constant", kArrival},
      {R"(workload.arrivals={"process":"gamma","cv":3,"start":"together"})", kArrival},
      {R"(workload.arrivals={"process":"weibull","cv":3,"start":"together"})", kArrival},
      {"workload.arrivals.process=uniform", kArrival},
      {"workload.arrivals.process=static", kArrival},
      {R"(workload.arrivals={"process":"closed_loop","concurrency":4,"think_time_s":9})", kArrival},
      {"workload.arrivals.profile=diurnal", kArrival},
      {"workload.arrivals.profile=ramp", kArrival},
      {R"(workload.arrivals={"profile":"piecewise","rate_factors":[[0,3]],"start":"together"})",
       kArrival},
      {"workload.arrivals.spikes=[[0,5,3]]", kArrival},
      {R"(workload.prompt_tokens={"distribution":"normal"})", kPrompt},
      {R"(workload.prompt_tokens={"distribution":"uniform","min":2,"max":99})", kPrompt},
      {R"(workload.prompt_tokens={"distribution":"zipf","min":2,"max":99})", kPrompt},
      {"workload.prompt_tokens.max=300", kPrompt},
      {"workload.output_tokens.theta=2", kOutput},
      {"workload.output_tokens.scrambled=true", kOutput},
      {R"(workload.output_tokens={"distribution":"ratio"})", kOutput},
      {R"(workload.output_tokens={"distribution":"fixed"})", kOutput},
      {"workload.sessions.think_time_s=30", kThink},
      {"workload.classes.1.think_time_s=30", kThink},
      {"workload.prefix.groups=9", kGroup},
      {"workload.classes.0.prefix_groups=9", kGroup},
      {"workload.classes.0.share=7", kClass},
      {R"(workload.classes.0.prompt_tokens={"distribution":"fixed"})", kPrompt},
      {R"(workload.classes.1.output_tokens={"distribution":"fixed"})", kOutput},
  };
  for (const auto& knob : knobs) {
    std::vector<std::string> set = base;
    set.emplace_back(knob.change);
    const auto a = parts(before), b = parts(Table(set));
    for (const Part part : {kArrival, kPrompt, kOutput, kThink, kClass, kGroup}) {
      if (part == knob.part) {
        EXPECT_NE(a[part], b[part]) << knob.change;
      } else {
        EXPECT_EQ(a[part], b[part]) << knob.change << ", part " << part;
      }
    }
  }
}

Trace Rows(std::size_t n, TimeNs gap) {
  Trace trace;
  for (std::size_t i = 0; i < n; ++i) {
    trace.rows.push_back({static_cast<TimeNs>(i) * gap, static_cast<std::int32_t>(i) + 10, 3});
  }
  return trace;
}

const char* const kReplay = R"(workload.arrivals={"process":"trace"})";
const char* const kPrompts = R"(workload.prompt_tokens={"distribution":"trace"})";

TEST(Replay, Repeated_BeginsAgainAfterAMeanGap) {
  const RequestTable table = Table({kReplay, kPrompts, "workload.arrivals.repeat=3"}, Rows(2, 100));
  EXPECT_EQ(table.arrival, (std::vector<TimeNs>{0, 100, 200, 300, 400, 500}));
  EXPECT_EQ(table.prompt_tokens, (std::vector<std::int32_t>{10, 11, 10, 11, 10, 11}));
  const RequestTable twice = Table({kReplay, kPrompts, "workload.arrivals.repeat=0",
                                    "workload.requests=5", "workload.arrivals.rate_scale=2"},
                                   Rows(2, 100));
  EXPECT_EQ(twice.arrival, (std::vector<TimeNs>{0, 50, 100, 150, 200}));
  // Fewer than it has: the first ones.
  const RequestTable few =
      Table({kReplay, kPrompts, "workload.arrivals.repeat=0", "workload.requests=3"}, Rows(9, 7));
  EXPECT_EQ(few.arrival, (std::vector<TimeNs>{0, 7, 14}));
}

TEST(Replay, Thinned_KeepsTheSameRowsWhateverElse) {
  const Trace trace = Rows(40000, 1000);
  const RequestTable table = Table({kReplay, kPrompts, "workload.arrivals.keep=0.25"}, trace);
  const auto n = static_cast<double>(table.size());
  EXPECT_NEAR(n, 10000, 4 * std::sqrt(40000 * 0.25 * 0.75));
  for (std::size_t i = 0; i < table.arrival.size(); ++i) {
    ASSERT_EQ(table.arrival[i], (table.prompt_tokens[i] - 10) * 1000) << "rows stay whole";
  }
  // Who is kept of a quarter is kept of a half; of two rounds, others in the second.
  const RequestTable half =
      Table({kReplay, kPrompts, "workload.arrivals.keep=0.5", "workload.arrivals.repeat=2"}, trace);
  std::vector<std::int32_t> first(half.prompt_tokens.begin(), half.prompt_tokens.end());
  const auto second = std::is_sorted_until(first.begin(), first.end());
  EXPECT_TRUE(
      std::includes(first.begin(), second, table.prompt_tokens.begin(), table.prompt_tokens.end()));
  EXPECT_FALSE(std::equal(first.begin(), second, second, first.end()));
}

TEST(Replay, ScaledLengths_KeepWhatPromptsShare) {
  Trace trace;
  trace.rows = {{0, 1000, 7}, {5, 1500, 1}, {9, 800, 3}};
  trace.prefixes = {{-1, 0}, {0, 512}, {1, 601}};
  const RequestTable table =
      Table({kReplay, kPrompts, "workload.prompt_tokens.scale=0.5",
             R"(workload.output_tokens={"distribution":"trace","scale":0.1})",
             "workload.arrivals.repeat=2"},
            trace);
  EXPECT_EQ(table.prompt_tokens, (std::vector<std::int32_t>{500, 750, 400, 500, 750, 400}));
  EXPECT_EQ(table.output_tokens, (std::vector<std::int32_t>{1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(table.content, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
  const int parents[] = {-1, 0, 1, 0, 1, 2}, shared[] = {0, 256, 300, 500, 750, 400};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(table.segments[i].parent, parents[i]) << i;
    EXPECT_EQ(table.segments[i].shared_tokens, shared[i]) << i;
  }
}

TEST(Replay, BeyondARun_IsAnIssue) {
  const auto path = [](const std::vector<std::string>& set, const Trace& trace) {
    const Result<RequestTable> table = MakeRequests(Parsed(Changed(set)), trace);
    return table.ok() ? std::string("none") : table.issues()[0].path;
  };
  EXPECT_EQ(path({kReplay, "workload.arrivals.repeat=1000000"}, Rows(100, 1)),
            "/workload/arrivals/repeat");
  EXPECT_EQ(path({kReplay, "workload.arrivals.repeat=1000000"}, Rows(1000, 1)),
            "/workload/arrivals/repeat");
  EXPECT_EQ(path({kReplay, "workload.arrivals.repeat=0", "workload.requests=5000000",
                  "workload.arrivals.keep=0.000001"},
                 Rows(10, 1)),
            "/workload/arrivals/repeat");
  EXPECT_EQ(path({kReplay, "workload.arrivals.keep=0.000001"}, Rows(10, 1)),
            "/workload/arrivals/keep");
  EXPECT_EQ(path({kReplay, "workload.arrivals.repeat=100000"}, Rows(2, TimeNs{1} << 61)),
            "/workload/arrivals/rate_scale");
  EXPECT_EQ(path({kReplay, "workload.arrivals.repeat=10"}, Rows(100, 1)), "none");
  Trace sharing = Rows(2, 5);
  sharing.prefixes = {{-1, 0}, {0, 10}};
  EXPECT_EQ(path({kReplay, kPrompts,
                  R"(workload.classes.0={"name":"a","prompt_tokens":{"distribution":"fixed"}})"},
                 sharing),
            "/workload/classes/0/prompt_tokens");
}

// Blackbox steps of 1 ms plus 10 us a prefill token, one seat: everything by hand.
std::vector<std::string> Loop(const std::string& arrivals) {
  return {"workload.arrivals=" + arrivals,
          R"(latency={"backend":"blackbox","beta":[1000,10,0]})",
          "engine.max_num_seqs=1",
          "workload.requests=6",
          R"(workload.prompt_tokens={"distribution":"fixed","value":100})",
          R"(workload.output_tokens={"distribution":"fixed","value":3})"};
}

TEST(ClosedLoop, TwoClientsAndOneSeat_ByHand) {
  // A request takes 2 + 1 + 1 ms. Both ask at 0; whoever is answered asks again at once.
  const Report report = RunToEnd(Changed(Loop(R"({"process":"closed_loop","concurrency":2})")));
  const std::vector<double>&arrival = report.ColumnOf("arrival_s"),
        &e2e = report.ColumnOf("e2e_ms");
  for (std::size_t i = 0; i < 6; ++i) {
    const double answered = 4 * static_cast<double>(i + 1);
    EXPECT_NEAR(arrival[i] * 1000, i < 2 ? 0 : answered - 8, 1e-9) << i;
    EXPECT_NEAR(arrival[i] * 1000 + e2e[i], answered, 1e-9) << i;
  }
  // More clients than requests: all at 0.
  const Report wide = RunToEnd(Changed(Loop(R"({"process":"closed_loop","concurrency":99})")));
  for (const double a : wide.ColumnOf("arrival_s")) EXPECT_EQ(a, 0);
}

TEST(ClosedLoop, UnderBlisRules_IsRefused) {
  for (const char* compat : {"blis", "blis-2026-02"}) {
    std::vector<std::string> set = Loop(R"({"process":"closed_loop","concurrency":2})");
    set.push_back(std::string("engine.compat=") + compat);
    const Issues issues = IssuesOf(Changed(set));
    ASSERT_EQ(issues.size(), 1u) << Listed(issues);
    EXPECT_EQ(issues[0].path, "/workload/arrivals/process");
  }
}

TEST(ClosedLoop, TimedOutAndDropped_FreeTheirClients) {
  // Each answer takes 4 ms; a client waits 3. The first is served until it gives up between two
  // steps, at 3 ms, as does the second in the queue: two more come at once.
  std::vector<std::string> set = Loop(R"({"process":"closed_loop","concurrency":2})");
  set.push_back(R"(workload.classes.0={"name":"a","timeout_s":0.003})");
  const Report report = RunToEnd(Changed(set));
  EXPECT_EQ(report.timed_out, 6);
  const std::vector<double>& arrival = report.ColumnOf("arrival_s");
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(arrival[i] * 1000, 3.0 * static_cast<double>(i / 2), 1e-9) << i;
  }
  std::vector<std::string> dropped = Loop(R"({"process":"closed_loop","concurrency":2})");
  dropped.push_back("engine.max_model_len=50");
  const Report none = RunToEnd(Changed(dropped));
  EXPECT_EQ(none.dropped, 6);
  for (const double a : none.ColumnOf("arrival_s")) EXPECT_EQ(a, 0);
}

TEST(ClosedLoop, ThinkTimesAndSessions_KeepTheNumberOfClients) {
  std::vector<std::string> set =
      Loop(R"({"process":"closed_loop","concurrency":5,"think_time_s":0.01})");
  set.emplace_back("workload.requests=2000");
  set.emplace_back(R"(workload.sessions={"turns":3,"think_time_s":0.002})");
  set.emplace_back("engine.max_num_seqs=64");
  const Report report = RunToEnd(Changed(set));
  EXPECT_EQ(report.completed, 2000);
  const std::vector<double>&arrival = report.ColumnOf("arrival_s"),
        &e2e = report.ColumnOf("e2e_ms");
  std::vector<std::pair<double, int>> changes;
  double thinking = 0;
  for (std::size_t i = 0; i < arrival.size(); ++i) {
    changes.push_back({arrival[i], 1});
    changes.push_back({arrival[i] + e2e[i] / 1000, -1});
    thinking += i < 15 ? 0 : i % 3 == 0 ? 10 : 2;
  }
  std::sort(changes.begin(), changes.end());
  int open = 0, most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, open += change);
  EXPECT_EQ(most, 5);
  // Little's law: five clients are either waiting for an answer or thinking.
  double waiting = 0;
  for (const double ms : e2e) waiting += ms;
  EXPECT_NEAR((waiting + thinking) / (5000 * report.simulated_s), 1, 0.05);
}

TEST(Workload, AMillionRequestsOfFourClassesAndSessions_AreMadeQuickly) {
  const std::vector<std::string> set = {
      "workload.requests=1000000",
      "workload.arrivals.profile=diurnal",
      R"(workload.arrivals={"process":"gamma","cv":2,"rate_per_s":50,"profile":"diurnal"})",
      R"(workload.sessions={"turns":3,"think_time_s":5})",
      R"(workload.prefix={"groups":4,"tokens":100})",
      R"(workload.prompt_tokens={"distribution":"lognormal","median":256,"p99":1646})",
      R"(workload.output_tokens={"distribution":"zipf","min":1,"max":2000})",
      R"(workload.classes=[{"name":"a","priority":1},{"name":"b","rate_per_s":20},)"
      R"({"name":"c","turns":5,"timeout_s":9},{"name":"d","output_tokens":)"
      R"({"distribution":"normal"}}])"};
  const Scenario scenario = Parsed(Changed(set));
  const auto start = std::chrono::steady_clock::now();
  const Result<RequestTable> table = MakeRequests(scenario, {});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table.value().size(), 1'000'000);
  RecordProperty("milliseconds", static_cast<int>(took.count() * 1000));
}

}  // namespace
}  // namespace servecast::testing

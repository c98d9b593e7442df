// The engine by BLIS's rules against BLIS's own recorded runs. The data is outside the project:
// SERVECAST_BLIS_GOLDEN, or ../shared/reference/blis-golden beside it.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "testing/blis_golden.h"

namespace servecast::testing {
namespace {

std::string GoldenFolder() {
  const char* folder = std::getenv("SERVECAST_BLIS_GOLDEN");
  if (folder != nullptr && *folder != '\0') return folder;
  return std::string(SERVECAST_SOURCE_DIR) + "/../shared/reference/blis-golden";
}

class BlisConformance : public ::testing::Test {
 protected:
  void SetUp() override {
    std::error_code error;
    const char* named = std::getenv("SERVECAST_BLIS_GOLDEN");
    const bool wanted = named != nullptr && *named != '\0';
    if (!wanted && !std::filesystem::is_directory(GoldenFolder(), error)) {
      GTEST_SKIP() << "skipped: no data";
    }
    for (const Issue& issue : Loaded().issues) ADD_FAILURE() << issue.path << ": " << issue.message;
    ASSERT_FALSE(Loaded().cases.empty());
  }
  // Read once for all tests.
  static const BlisCases& Loaded() {
    static const BlisCases loaded = LoadBlisCases(GoldenFolder());
    return loaded;
  }
};

// Those of few requests: what is slow keeps to them when `all` is not asked for.
std::vector<const BlisCase*> Chosen(const std::vector<BlisCase>& cases, bool all) {
  std::int64_t fewest = INT64_MAX;
  for (const BlisCase& golden : cases) fewest = std::min(fewest, golden.requests.size());
  std::vector<const BlisCase*> chosen;
  for (const BlisCase& golden : cases) {
    if (all || golden.requests.size() <= std::max<std::int64_t>(fewest, 500)) {
      chosen.push_back(&golden);
    }
  }
  return chosen;
}

std::int64_t CasesWanted(std::int64_t fallback) {
  const char* cases = std::getenv("SERVECAST_CASES");
  return cases == nullptr ? fallback : std::strtoll(cases, nullptr, 10);
}

// All of them, unless SERVECAST_CASES is below 1000.
TEST_F(BlisConformance, EveryCase_GivesBlissFigures) {
  for (const BlisCase* golden : Chosen(Loaded().cases, CasesWanted(1000) >= 1000)) {
    EXPECT_EQ(FirstDifference(*golden).value_or(""), "") << golden->name;
  }
}

// The reference is compared with the engine on random cases; here it has to know BLIS by itself.
// It is slow: all of them only with SERVECAST_CASES of 1000 or more.
TEST_F(BlisConformance, EveryCase_TheReferenceGivesBlissFigures) {
  for (const BlisCase* golden : Chosen(Loaded().cases, CasesWanted(0) >= 1000)) {
    EXPECT_EQ(FirstDifferenceOfReference(*golden).value_or(""), "") << golden->name;
  }
}

// A comparer that sees nothing passes everything. The case is run once and compared once a figure.
TEST_F(BlisConformance, OneFigureChanged_IsNamed) {
  BlisCase golden = Loaded().cases.front();
  const Result<BlisFigures> found = RunBlisCase(golden);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(FirstDifference(golden, found.value()).value_or(""), "");
  for (BlisFigure& figure : golden.expected) {
    const double value = figure.value;
    figure.value = figure.integer || value == 0 ? value + 1 : value * (1 + 3e-9);
    const std::string difference = FirstDifference(golden, found.value()).value_or("no difference");
    EXPECT_EQ(difference.rfind(figure.name + ": expected", 0), 0u) << difference;
    figure.value = value;
  }
}

// So does one that runs something else than the case says.
TEST_F(BlisConformance, OtherRules_GiveOtherFigures) {
  BlisCase golden = Loaded().cases.front();
  golden.scenario.engine.compat =
      golden.scenario.engine.compat == Compat::kBlis ? Compat::kBlisFebruary2026 : Compat::kBlis;
  EXPECT_TRUE(FirstDifference(golden).has_value());
}

const char kSessions[] =
    "mode 0\nmodel 2 64 2 2 128 0 0 0 0 2 2\ncfg 1 8 64 100 0\nwl 16 8 4\ncoef 0 0 0\n"
    "expect 3 72 12 1 1 1 1 1 1 1 1\nsessions 2\n0 2 1000 0\n50 1 1000 1\n";

TEST(BlisGoldenReader, Sessions_BecomeTurnsOfATable) {
  const Result<BlisCase> golden = ReadBlisSessions("x.txt", kSessions);
  ASSERT_TRUE(golden.ok()) << golden.issues()[0].message;
  const RequestTable& table = golden.value().requests;
  EXPECT_EQ(table.arrival, (std::vector<TimeNs>{0, -1, 50'000}));
  EXPECT_EQ(table.think, (std::vector<TimeNs>{-1, 1'000'000, -1}));
  EXPECT_EQ(table.prompt_tokens, (std::vector<std::int32_t>{24, 24, 24}));
  EXPECT_EQ(table.segments.size(), 2u + 3u);
  EXPECT_EQ(table.segments[4].parent, 1);
  EXPECT_EQ(golden.value().scenario.latency.backend, "roofline");
  EXPECT_EQ(golden.value().expected.size(), 11u);
  EXPECT_FALSE(golden.value().scenario.engine.kv_offload.On());
}

// 16 tokens at a fifth of one per us; two GPUs hold half of a block each.
TEST(BlisGoldenReader, BlocksOfTheHost_BecomeTheScenariosBytes) {
  std::string text = kSessions;
  text.replace(text.find("cfg 1 8 64 100 0"), 16, "cfg 2 8 64 100 7");
  const Result<BlisCase> golden = ReadBlisSessions("x.txt", text);
  ASSERT_TRUE(golden.ok()) << golden.issues()[0].message;
  EXPECT_EQ(golden.value().host.blocks, 7);
  EXPECT_EQ(golden.value().host.reload, 80);
  const KvOffloadSpec& offload = golden.value().scenario.engine.kv_offload;
  EXPECT_EQ(offload.threshold, 0.9);
  const double block = 16 * 2 * 2 * 64 * 2;  // tokens, key and value, layers, values, bytes
  EXPECT_DOUBLE_EQ(offload.cpu_gib * 1024 * 1024 * 1024, 7.5 * block);
  EXPECT_DOUBLE_EQ(block / 2 / offload.cpu_bandwidth_gb_s, 80e3);
}

TEST(BlisGoldenReader, WhatItCannotRead_IsAnIssueWithItsLine) {
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = kSessions;
    text.replace(text.find(from), from.size(), to);
    const Result<BlisCase> golden = ReadBlisSessions("x.txt", text);
    return golden.ok() ? std::string("no issue") : golden.issues()[0].message;
  };
  EXPECT_EQ(changed("mode 0", "mode 7").rfind("line 1:", 0), 0u);
  EXPECT_EQ(changed("model 2", "model x").rfind("line 2:", 0), 0u);
  EXPECT_EQ(changed("cfg 1 8", "cfg 1").rfind("line 3:", 0), 0u);
  EXPECT_EQ(changed("100 0\n", "100 -1\n").rfind("line 3:", 0), 0u);
  EXPECT_EQ(changed("128 0 0 0", "128 0 2 3").rfind("line 3:", 0), 0u);
  EXPECT_NE(changed("wl 16 8", "wl 16 -8").find("below"), std::string::npos);
  EXPECT_EQ(changed("coef 0 0 0", "coef 0 0").rfind("line 5:", 0), 0u);
  EXPECT_EQ(changed("expect 3", "expects 3").rfind("line 6:", 0), 0u);
  EXPECT_EQ(changed("sessions 2", "sessions 3").rfind("line 10:", 0), 0u);
  EXPECT_NE(changed("sessions 2", "sessions 1").find("after the last session"), std::string::npos);
  EXPECT_NE(changed("0 2 1000", "0 -2 1000").find("below"), std::string::npos);
}

TEST(BlisGoldenReader, RequestLists_AreCheckedRowByRow) {
  const std::string header = "arrival_us,shared_prefix_tokens,input_tokens,output_tokens\n";
  const Result<RequestTable> table = ReadBlisRequests("gd.csv", header + "5,16,20,3\n7,0,1,1\n");
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table.value().arrival, (std::vector<TimeNs>{5'000, 7'000}));
  EXPECT_EQ(table.value().segments[1].shared_tokens, 16);
  EXPECT_EQ(table.value().segments[2].shared_tokens, 0);
  for (const char* row : {"", "1,2\n", "a,0,1,1\n", "1,0,0,1\n", "1,0,1,0\n", "1,5,4,1\n",
                          "1,0,1,1,1\n", "-1,0,1,1\n", "9000000000000000,0,1,1\n"}) {
    EXPECT_FALSE(ReadBlisRequests("gd.csv", header + row).ok()) << row;
  }
  EXPECT_FALSE(ReadBlisRequests("gd.csv", "5,16,20,3\n").ok());
}

// Each file that gives no case is named, and keeps nobody else from being one.
TEST(BlisGoldenReader, FilesOfAFolder_AreCasesOrIssues) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / "servecast-blis-golden";
  std::error_code error;
  fs::remove_all(folder, error);
  fs::create_directories(folder / "folder.json", error);
  const std::pair<const char*, const char*> files[] = {{"a.txt", kSessions},
                                                       {"b.txt", "mode x"},
                                                       {"c.json", "{\"tests\": []}"},
                                                       {"d.json", "not JSON"},
                                                       {"e.json", "{\"tests\": [{}]}"},
                                                       {"f.csv", "1"},
                                                       {"noop_x.expected.json", "{}"},
                                                       {"noop_y.csv", "1"},
                                                       {"empty.txt", ""},
                                                       {"gd_0_x.csv", "of no test"},
                                                       {"readme.md", "# no case"}};
  for (const auto& [name, text] : files) std::ofstream(folder / name) << text;
  const BlisCases loaded = LoadBlisCases(folder.string());
  fs::remove_all(folder, error);
  ASSERT_EQ(loaded.cases.size(), 1u);
  EXPECT_EQ(loaded.cases[0].name, "a");
  std::string named;
  for (const Issue& issue : loaded.issues) named += issue.path + ", ";
  EXPECT_EQ(named,
            "empty.txt, folder.json, b.txt, c.json, d.json, e.json test 0, f.csv, "
            "noop_x.expected.json, noop_y.csv, ");
}

TEST(BlisGoldenReader, MissingFolder_IsAnIssue) {
  EXPECT_FALSE(LoadBlisCases("/nowhere/at/all").issues.empty());
}

}  // namespace
}  // namespace servecast::testing

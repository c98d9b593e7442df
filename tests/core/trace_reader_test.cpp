// Trace files: four formats in all their spellings, every malformed line named, and what prompts
// share by their hash ids.
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"
#include "testing/data_files.h"
#include "testing/words.h"

namespace servecast {
namespace {

using testing::Contains;

const char* const kHeader = "arrival_s,input_tokens,output_tokens\n";

Issues IssuesIn(const std::string& text) {
  const Result<Trace> trace = ParseTrace(text, "t.csv");
  return trace.ok() ? Issues{} : trace.issues();
}

TEST(ParseTrace, ServecastCsv_IsReadExactly) {
  const auto trace = ParseTrace(
      "arrival_s,input_tokens,output_tokens\n0,10,20\n0.1,30,40\n0.100000001,1,1\n1e1,5,6\n",
      "my.csv");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace.value().name, "my.csv");
  EXPECT_EQ(trace.value().format, "servecast_csv");
  const std::vector<TraceRow>& rows = trace.value().rows;
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[1].arrival_ns, 100'000'000);
  EXPECT_EQ(rows[1].prompt_tokens, 30);
  EXPECT_EQ(rows[1].output_tokens, 40);
  EXPECT_EQ(rows[2].arrival_ns, 100'000'001);
  EXPECT_EQ(rows[3].arrival_ns, 10'000'000'000);
}

TEST(ParseTrace, VidurCsv_IsReadWithWholeNumbersAsDecimals) {
  const auto trace = ParseTrace(
      "arrived_at,num_prefill_tokens,num_decode_tokens\n2.5,374.0,44.0\n3,396,109\n", "v");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace.value().format, "vidur_csv");
  EXPECT_EQ(trace.value().rows[0].prompt_tokens, 374);
  EXPECT_EQ(trace.value().rows[0].arrival_ns, 0);
  EXPECT_EQ(trace.value().rows[1].arrival_ns, 500'000'000);
}

TEST(ParseTrace, AzureCsv_TimesOfEverySpellingAgree) {
  const auto trace = ParseTrace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2023-11-16 18:15:46.6805900,374,44\n"
      "2023-11-16 18:15:50.9951690,396,109\n"
      "2023-11-16T18:15:51Z,1,1\n"
      "2023-11-16 18:15:51.5+00:00,1,1\n"
      "2023-11-17 00:00:00+00:00,1,1\n"
      "2024-02-29 00:00:00,1,1\n"
      "2024-03-01 00:00:00,1,1\n",
      "a");
  ASSERT_TRUE(trace.ok()) << trace.issues()[0].message;
  EXPECT_EQ(trace.value().format, "azure_csv");
  const std::vector<TraceRow>& rows = trace.value().rows;
  EXPECT_EQ(rows[0].arrival_ns, 0);
  EXPECT_EQ(rows[1].arrival_ns, 4'314'579'000);
  EXPECT_EQ(rows[2].arrival_ns, 4'319'410'000);
  EXPECT_EQ(rows[3].arrival_ns, 4'819'410'000);
  EXPECT_EQ(rows[4].arrival_ns, 20'653'319'410'000);                       // 5 h 44 min 13.31941 s
  EXPECT_EQ(rows[6].arrival_ns - rows[5].arrival_ns, 86'400'000'000'000);  // a leap year
}

TEST(ParseTrace, Layout_DoesNotChangeWhatIsRead) {
  const std::string plain = std::string(kHeader) + "0,10,20\n1.5,30,40\n";
  const auto reference = ParseTrace(plain, "plain");
  ASSERT_TRUE(reference.ok());
  const std::string variants[] = {
      "arrival_s,input_tokens,output_tokens\r\n0,10,20\r\n1.5,30,40\r\n",
      "\xEF\xBB\xBF" + plain,
      "# a comment\n\n" + plain + "# the end\n\n",
      std::string(kHeader) + "# between\n0,10,20\n\n1.5,30,40",
      "\"arrival_s\",\"input_tokens\",\"output_tokens\"\n\"0\",\"10\",\"20\"\n\"1.5\",30,\"40\"\n",
      " arrival_s , input_tokens,\toutput_tokens \n 0 , 10 , 20 \n1.5,30,40\n",
      "id,arrival_s,user,input_tokens,output_tokens,hash_ids_512\n7,0,x,10,20,1\n8,1.5,y,30,40,"
      "\n",
      "output_tokens,input_tokens,arrival_s\n20,10,0\n40,30,1.5\n",
      // Times count from the first; here and in another format.
      std::string(kHeader) + "100,10,20\n101.5,30,40\n",
      "arrived_at,num_prefill_tokens,num_decode_tokens\n0,10,20\n1.5,30,40\n",
      // Ids that share nothing.
      "{\"timestamp\": 0, \"input_length\": 10, \"output_length\": 20, \"hash_ids\": [7]}\n"
      "\n# between\n"
      "{\"output_length\":40,\"other\":{\"timestamp\":[1,{}]},\"input_length\":30.0,"
      "\"timestamp\":1.5e3,\"hash_ids\":[]}",
      "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-01-01 00:00:00,10,20\n2023-01-01 "
      "00:00:01.5,30,40\n",
  };
  for (const std::string& variant : variants) {
    const auto trace = ParseTrace(variant, "other");
    ASSERT_TRUE(trace.ok()) << variant << trace.issues()[0].path << trace.issues()[0].message;
    EXPECT_EQ(trace.value().hash, reference.value().hash) << variant;
  }
  EXPECT_NE(ParseTrace(std::string(kHeader) + "0,10,20\n1.5,30,41\n", "t").value().hash,
            reference.value().hash);
  EXPECT_NE(ParseTrace(std::string(kHeader) + "0,10,20\n1.500000001,30,40\n", "t").value().hash,
            reference.value().hash);
}

TEST(ParseTrace, UnsortedArrivals_KeepTheirRows) {
  const auto trace = ParseTrace(std::string(kHeader) + "5,1,1\n3,2,2\n4,3,3\n", "t");
  ASSERT_TRUE(trace.ok());
  const std::vector<TraceRow>& rows = trace.value().rows;
  EXPECT_EQ(rows[0].arrival_ns, 2'000'000'000);
  EXPECT_EQ(rows[1].arrival_ns, 0);
  EXPECT_EQ(rows[2].arrival_ns, 1'000'000'000);
  EXPECT_EQ(rows[2].prompt_tokens, 3);
}

TEST(ParseTrace, MalformedFields_AreNamedByLineColumnAndContent) {
  const struct {
    const char* line;
    const char* path;
    const char* found;
  } cases[] = {
      {"abc,10,20", "line 3, column 1", "\"abc\""},
      {"-1,10,20", "line 3, column 1", "\"-1\""},
      {"1e30,10,20", "line 3, column 1", "\"1e30\""},
      {"nan,10,20", "line 3, column 1", "\"nan\""},
      {",10,20", "line 3, column 1", "\"\""},
      {"1,x,20", "line 3, column 3", "\"x\""},
      {"1,0,20", "line 3, column 3", "\"0\""},
      {"1,-5,20", "line 3, column 3", "\"-5\""},
      {"1,10.5,20", "line 3, column 3", "\"10.5\""},
      {"1,1000000000000,20", "line 3, column 3", "\"1000000000000\""},
      {"1,1000000001,20", "line 3, column 3", "\"1000000001\""},
      {"1,99999999999999999999999,20", "line 3, column 3", "\"99999999999999999999999\""},
      {"1.25,10,", "line 3, column 9", "\"\""},
      {"1,10,1e3", "line 3, column 6", "\"1e3\""},
      {"1,10,2 0", "line 3, column 6", "\"2 0\""},
      {"1,10", "line 3, column 5", "found 2 fields"},
      {"1", "line 3, column 2", "found 1 fields"},
      {"1,10,\x01\x02", "line 3, column 6", "\"??\""},
  };
  for (const auto& c : cases) {
    const Issues issues = IssuesIn(std::string(kHeader) + "0,1,1\n" + c.line + "\n2,1,1\n");
    ASSERT_EQ(issues.size(), 1u) << c.line;
    EXPECT_EQ(issues[0].path, c.path) << c.line;
    EXPECT_TRUE(Contains(issues[0].message, c.found)) << issues[0].message;
    EXPECT_TRUE(Contains(issues[0].message, "allowed") || Contains(issues[0].message, "header"))
        << issues[0].message;
  }
}

TEST(ParseTrace, LinesAndHeadersOfAnotherWidth_AreRefused) {
  const std::string header = "arrival_s,input_tokens,output_tokens\n";
  EXPECT_FALSE(ParseTrace(header + "0,10,10,9\n", "t").ok());
  EXPECT_FALSE(ParseTrace(header + "0,10,10\r,9\n", "t").ok());
  EXPECT_FALSE(ParseTrace(header + "0,10,10\r7\n", "t").ok());
  EXPECT_FALSE(
      ParseTrace("arrival_s,input_tokens,input_tokens,output_tokens\n0,1,2,3\n", "t").ok());
}

TEST(ParseTrace, EveryMalformedField_IsNamed) {
  const Issues issues = IssuesIn(std::string(kHeader) + "x,y,z\n0,1,1\n1,0,0\n");
  ASSERT_EQ(issues.size(), 5u);
  EXPECT_EQ(issues[0].path, "line 2, column 1");
  EXPECT_EQ(issues[1].path, "line 2, column 3");
  EXPECT_EQ(issues[2].path, "line 2, column 5");
  EXPECT_EQ(issues[3].path, "line 4, column 3");
  EXPECT_EQ(issues[4].path, "line 4, column 5");
}

TEST(ParseTrace, MalformedTimestamps_AreRefused) {
  for (const char* time :
       {"2023-11-16", "18:15:46", "2023-13-16 18:15:46", "2023-00-16 18:15:46",
        "2023-11-32 18:15:46", "2023-11-00 18:15:46", "2023-11-16 24:15:46", "2023-11-16 18:60:46",
        "2023-11-16 18:15:61", "2023-11-16 18:15:xx", "2023/11/16 18:15:46", "1969-11-16 18:15:46",
        "9999-11-16 18:15:46", "2023-11-16 18:15:46+02:00", "0.5", "", "2023-11-16 18:15:-1"}) {
    const Issues issues =
        IssuesIn(std::string("TIMESTAMP,ContextTokens,GeneratedTokens\n") + time + ",1,1\n");
    ASSERT_EQ(issues.size(), 1u) << time;
    EXPECT_EQ(issues[0].path, "line 2, column 1") << time;
  }
}

TEST(ParseTrace, DayThatItsMonthLacks_IsRefused) {
  for (const char* time : {"2023-02-29 00:00:00", "2023-02-31 00:00:00", "2023-04-31 00:00:00",
                           "2100-02-29 00:00:00"}) {
    EXPECT_EQ(
        IssuesIn(std::string("TIMESTAMP,ContextTokens,GeneratedTokens\n") + time + ",1,1\n").size(),
        1u)
        << time;
  }
}

TEST(ParseTrace, LongFields_AreShownShort) {
  const Issues issues = IssuesIn(std::string(kHeader) + std::string(100000, 'x') + ",1,1\n");
  ASSERT_EQ(issues.size(), 1u);
  EXPECT_LT(issues[0].message.size(), 200u);
  EXPECT_TRUE(Contains(issues[0].message, "..."));
}

TEST(ParseTrace, ManyMalformedLines_AreCountedBeyondAHundred) {
  std::string text = kHeader;
  for (int i = 0; i < 5000; ++i) text += "x,1,1\n";
  const Issues issues = IssuesIn(text);
  ASSERT_EQ(issues.size(), 101u);
  EXPECT_EQ(issues[99].path, "line 101, column 1");
  EXPECT_TRUE(Contains(issues[100].message, "4900")) << issues[100].message;
}

TEST(ParseTrace, NothingToRead_IsSaid) {
  for (const char* text : {"", "\n", "\r\n\r\n", "\xEF\xBB\xBF", "   \n"}) {
    const Issues issues = IssuesIn(text);
    ASSERT_EQ(issues.size(), 1u) << text;
    EXPECT_TRUE(Contains(issues[0].message, "empty")) << issues[0].message;
  }
  EXPECT_EQ(IssuesIn("# only a comment\n").size(), 1u);
  const Issues header_only = IssuesIn(kHeader);
  ASSERT_EQ(header_only.size(), 1u);
  EXPECT_TRUE(Contains(header_only[0].message, "no requests"));
}

TEST(ParseTrace, OtherFiles_AreToldFromTraces) {
  std::string bytes;
  for (int i = 0; i < 4096; ++i) bytes += static_cast<char>(i * 37);
  const std::string files[] = {bytes,
                               std::string("\x1F\x8B\x08\x00\x00", 5),
                               "{\"timestamp\": 1}",
                               "[{\"a\": 1}]",
                               "a,b,c\n1,2,3\n",
                               "0,10,20\n",
                               std::string(3, '\0'),
                               "arrival_s,input_tokens\n0,1\n"};
  for (const std::string& file : files) {
    const Issues issues = IssuesIn(file);
    ASSERT_EQ(issues.size(), 1u) << file;
    EXPECT_TRUE(Contains(issues[0].path, file[0] == '[' ? "entry 1" : "line ")) << issues[0].path;
    EXPECT_TRUE(Contains(issues[0].message, "arrival_s,input_tokens,output_tokens"));
    for (const char c : issues[0].message) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
  }
}

std::string Mooncake(const std::string& members) {
  return "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1}\n{" + members +
         "}\n{\"timestamp\": 5, \"input_length\": 1, \"output_length\": 1}\n";
}

TEST(Mooncake, Lines_AreReadExactly) {
  const auto trace = ParseTrace(
      "{\"timestamp\": 27482, \"input_length\": 6955, \"output_length\": 52, \"hash_ids\": [46, "
      "47]}\r\n{\"timestamp\": 30535.25, \"input_length\": 6472, \"output_length\": 26, "
      "\"hash_ids\": [46, 18446744073709551615]}\n",
      "m.jsonl");
  ASSERT_TRUE(trace.ok()) << trace.issues()[0].message;
  EXPECT_EQ(trace.value().format, "mooncake_jsonl");
  const std::vector<TraceRow>& rows = trace.value().rows;
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].arrival_ns, 0);
  EXPECT_EQ(rows[1].arrival_ns, 3'053'250'000);
  EXPECT_EQ(rows[1].prompt_tokens, 6472);
  EXPECT_EQ(rows[1].output_tokens, 26);
  EXPECT_EQ(trace.value().prefixes[1].row, 0);
  EXPECT_EQ(trace.value().prefixes[1].tokens, 512);
}

// Alibaba's traces have these members without ids, in seconds.
TEST(Mooncake, FractionsWithoutIds_AreSeconds) {
  const auto trace = ParseTrace(
      "{\"timestamp\": 61.114, \"input_length\": 521, \"output_length\": 52}\n"
      "{\"timestamp\": 66, \"input_length\": 80, \"output_length\": 26}\n",
      "m.jsonl");
  ASSERT_TRUE(trace.ok()) << trace.issues()[0].message;
  EXPECT_EQ(trace.value().rows[1].arrival_ns, 4'886'000'000);
  EXPECT_NE(trace.value().reading.find("(s, as it has fractions)"), std::string::npos);
}

TEST(Mooncake, MalformedLines_AreNamedByLineColumnAndContent) {
  const std::string good = "\"timestamp\": 1, \"input_length\": 1000, \"output_length\": 5";
  const struct {
    std::string members;
    const char* path;
    const char* found;
  } cases[] = {
      {"\"timestamp\": -1, \"input_length\": 9, \"output_length\": 5", "line 2, column 2",
       "\"-1\" as timestamp"},
      {"\"timestamp\": \"1\", \"input_length\": 9, \"output_length\": 5", "line 2, column 2",
       "\"1\" as timestamp"},
      {"\"timestamp\": 1e300, \"input_length\": 9, \"output_length\": 5", "line 2, column 2",
       "\"1e300\" as timestamp"},
      {"\"timestamp\": 1, \"input_length\": 0, \"output_length\": 5", "line 2, column 18",
       "\"0\" as input_length"},
      {"\"timestamp\": 1, \"input_length\": 9, \"output_length\": 0.5", "line 2, column 37",
       "\"0.5\" as output_length"},
      {"\"timestamp\": 1, \"input_length\": 9, \"output_length\": null", "line 2, column 37",
       "\"null\" as output_length"},
      {"\"timestamp\": 1, \"input_length\": [9], \"output_length\": 5", "line 2, column 18",
       "\"[\" as input_length"},
      {"\"timestamp\": 1, \"input_length\": 9", "line 2, column 1", "found no output_length"},
      {good + ", \"hash_ids\": 5", "line 2, column 60", "\"5\" as hash_ids"},
      {good + ", \"hash_ids\": [1, \"x\"]", "line 2, column 60", "\"x\" as hash_ids"},
      {good + ", \"hash_ids\": [1, -2, -3]", "line 2, column 60", "\"-2\" as hash_ids"},
      {good + ", \"hash_ids\": [[1]]", "line 2, column 60", "\"[\" as hash_ids"},
      {good + ", \"hash_ids\": {\"a\": 1}", "line 2, column 60", "\"{\" as hash_ids"},
      {good + ", \"hash_ids\": [1, 2, 3]", "line 2, column 60",
       "found 3 hash ids, allowed at most 2 for 1000 tokens"},
      {good + ", \"timestamp\": 2", "line 2, column 2", "timestamp appears twice"},
      {good + ",", "line 2, column", "allowed a JSON object"},
      {good + "} x {", "line 2, column", "allowed a JSON object"},
      {good + ", \"a\": \x01", "line 2, column", "allowed a JSON object"},
  };
  for (const auto& c : cases) {
    const Issues issues = IssuesIn(Mooncake(c.members));
    ASSERT_EQ(issues.size(), 1u) << c.members;
    EXPECT_EQ(issues[0].path.substr(0, std::string(c.path).size()), c.path) << c.members;
    EXPECT_TRUE(Contains(issues[0].message, c.found)) << issues[0].message;
  }
  EXPECT_EQ(IssuesIn(Mooncake(good)).size(), 0u);
  const Issues others = IssuesIn(
      "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1}\n"
      "0,10,20\n[1]\n");
  ASSERT_EQ(others.size(), 2u);
  EXPECT_EQ(others[1].path, "line 3, column 1");
}

TEST(Mooncake, NameThatIsEscapedManyTimes_TakesTimeInProportion) {
  // Each is an issue with a column; to search the line for each took minutes.
  std::string line = R"({"input_length": 5, "output_length": 5)";
  for (int i = 0; i < 100'000; ++i) line += R"(, "\u0074imestamp": 1)";
  const Issues issues = IssuesIn(line + "}\n");
  ASSERT_EQ(issues.size(), 101u);
  EXPECT_EQ(issues[0].path, "line 1, column 1");
  EXPECT_TRUE(Contains(issues[0].message, "timestamp appears twice")) << issues[0].message;
}

TEST(Mooncake, ManyMalformedLines_AreCountedBeyondAHundred) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "{\"timestamp\": 0, \"input_length\": 1}\n";
  const Issues issues = IssuesIn(text);
  ASSERT_EQ(issues.size(), 101u);
  EXPECT_TRUE(Contains(issues[100].message, "4900")) << issues[100].message;
}

struct HashRow {
  int tokens;
  std::vector<int> ids;
};

// The same rows as tidy CSV and as Mooncake's JSON.
std::vector<TracePrefix> Prefixes(const std::vector<HashRow>& rows) {
  std::string csv = "arrival_s,input_tokens,output_tokens,hash_ids_512\n", json;
  for (const HashRow& row : rows) {
    std::string spaced, listed;
    for (const int id : row.ids) {
      spaced += (spaced.empty() ? "" : " ") + std::to_string(id);
      listed += (listed.empty() ? "" : ", ") + std::to_string(id);
    }
    csv += "1," + std::to_string(row.tokens) + ",5," + spaced + "\n";
    json += "{\"timestamp\": 9, \"input_length\": " + std::to_string(row.tokens) +
            ", \"output_length\": 5, \"hash_ids\": [" + listed + "]}\n";
  }
  const auto one = ParseTrace(csv, "t"), other = ParseTrace(json, "t");
  EXPECT_TRUE(one.ok() && other.ok());
  if (!one.ok() || !other.ok()) return {};
  EXPECT_EQ(one.value().hash, other.value().hash);
  return one.value().prefixes;
}

void ExpectPrefix(const TracePrefix& prefix, int row, int tokens) {
  EXPECT_EQ(prefix.row, row);
  EXPECT_EQ(prefix.tokens, tokens);
}

TEST(HashIds, SharedBlocks_AreSharedTokens) {
  const auto prefixes = Prefixes({{2000, {0, 1, 2, 3}},
                                  {1500, {0, 1, 9}},
                                  {1500, {4, 1, 2}},  // equal ids after others are other content
                                  {1500, {0, 1, 9}},  // as row 1
                                  {1024, {0, 1}},     // as row 0 and row 1: the first
                                  {3000, {0, 1, 2, 3, 5, 6}},
                                  {100, {}},
                                  {5000, {0}}});
  ASSERT_EQ(prefixes.size(), 8u);
  ExpectPrefix(prefixes[0], -1, 0);
  ExpectPrefix(prefixes[1], 0, 1024);
  ExpectPrefix(prefixes[2], -1, 0);
  ExpectPrefix(prefixes[3], 1, 1500);
  ExpectPrefix(prefixes[4], 0, 1024);
  ExpectPrefix(prefixes[5], 0, 2000);
  ExpectPrefix(prefixes[6], -1, 0);
  ExpectPrefix(prefixes[7], 0, 512);
}

TEST(HashIds, PartialLastBlock_CoversItsTokensOnly) {
  const auto prefixes = Prefixes({{1000, {1, 2}},
                                  {1200, {1, 2, 3}},
                                  {1200, {1, 2, 3}},
                                  {1000, {1, 2}},
                                  {700, {1, 2}},
                                  {512, {1}}});
  ASSERT_EQ(prefixes.size(), 6u);
  ExpectPrefix(prefixes[1], 0, 1000);
  ExpectPrefix(prefixes[2], 1, 1200);
  ExpectPrefix(prefixes[3], 1, 1000);
  ExpectPrefix(prefixes[4], 1, 700);
  ExpectPrefix(prefixes[5], 0, 512);
}

TEST(HashIds, WhatIsShared_IsInTheHash) {
  const std::string header = "arrival_s,input_tokens,output_tokens,hash_ids_512\n";
  const auto hash = [&](const std::string& rows) {
    return ParseTrace(header + rows, "t").value().hash;
  };
  EXPECT_EQ(hash("0,600,1,1 2\n0,600,1,1 3\n"), hash("0,600,1,7 8\n0,600,1,7 9\n"));
  EXPECT_NE(hash("0,600,1,1 2\n0,600,1,1 3\n"), hash("0,600,1,1 2\n0,600,1,4 3\n"));
  EXPECT_NE(hash("0,600,1,1 2\n0,600,1,1 3\n"), hash("0,600,1,1 2\n0,600,1,1 2\n"));
  EXPECT_TRUE(ParseTrace(header + "0,600,1,\n", "t").value().prefixes.empty());
}

TEST(HashIds, MalformedColumn_IsNamed) {
  const std::string header = "arrival_s,hash_ids_512,input_tokens,output_tokens\n";
  for (const char* ids : {"x", "1 x", "1.5", "-1", "1 2 3", "99999999999999999999999"}) {
    const Issues issues = IssuesIn(header + "0," + ids + ",1000,1\n");
    ASSERT_EQ(issues.size(), 1u) << ids;
    EXPECT_EQ(issues[0].path, "line 2, column 3");
    EXPECT_TRUE(Contains(issues[0].message, "allowed")) << issues[0].message;
  }
  EXPECT_FALSE(
      ParseTrace("arrival_s,hash_ids_512,input_tokens,output_tokens,hash_ids_512\n", "t").ok());
}

// The published conversation trace.
TEST(HashIds, PublishedTrace_SharesAsItsIdsSay) {
  const std::optional<std::string> text =
      testing::ReadFile(testing::DataFolder("SERVECAST_GROUNDTRUTH", "groundtruth") +
                        "/traces/raw/mooncake_conversation_trace.jsonl.gz");
  if (!text) GTEST_SKIP() << "skipped: no data";
  const auto trace = ParseTrace(*text, "mooncake");
  ASSERT_TRUE(trace.ok());
  ASSERT_EQ(trace.value().rows.size(), 12031u);
  std::int64_t prompts = 0, shared = 0;
  for (std::size_t i = 0; i < trace.value().rows.size(); ++i) {
    const TracePrefix& prefix = trace.value().prefixes[i];
    prompts += trace.value().rows[i].prompt_tokens;
    shared += prefix.tokens;
    ASSERT_LT(prefix.row, static_cast<std::int32_t>(i));
    if (prefix.row < 0) continue;
    ASSERT_LE(prefix.tokens, trace.value().rows[i].prompt_tokens);
    ASSERT_LE(prefix.tokens,
              trace.value().rows[static_cast<std::size_t>(prefix.row)].prompt_tokens);
  }
  // Counted apart, with dictionaries of dictionaries.
  EXPECT_EQ(prompts, 144'793'823);
  EXPECT_EQ(shared, 54'098'411);
}

TEST(ParseTrace, LargestValues_AreKept) {
  const auto trace =
      ParseTrace(std::string(kHeader) + "0,1,1\n4611686018.427387904,1000000000,1000000000\n", "t");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(trace.value().rows[1].arrival_ns, std::int64_t{1} << 62);
  EXPECT_EQ(trace.value().rows[1].prompt_tokens, 1'000'000'000);
}

}  // namespace
}  // namespace servecast

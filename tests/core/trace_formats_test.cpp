// Traces by other names: synonyms of columns, BLIS's TraceV2, results of vLLM's benchmark, lists of
// requests as JSON, lengths without arrivals; files that come in pieces or are hostile.
#include <algorithm>
#include <string>
#include <vector>

#include "core/documents.h"
#include "gtest/gtest.h"
#include "servecast/trace.h"
#include "testing/words.h"

namespace servecast::trace_formats_test {
namespace {

using testing::Contains;
using testing::Good;
using testing::IssuesOf;
using testing::Listed;

Trace Read(const std::string& text) { return Good(ParseTrace(text, "t")); }

// All issues, each on a line; "" when it is a trace.
std::string Refusal(const std::string& text) {
  const Result<Trace> trace = ParseTrace(text, "t");
  return trace.ok() ? "" : Listed(trace.issues());
}

TEST(NamedColumns, Synonyms_AreOneTrace) {
  const std::uint64_t hash =
      Read("arrival_s,input_tokens,output_tokens\n0,10,20\n1.5,30,40\n").hash;
  const std::string files[] = {
      "Timestamp,Model,Request tokens,Response tokens,Total tokens\n5,x,10,20,30\n6.5,x,30,40,70\n",
      "time_ms,prompt_tokens,completion_tokens\n0,10,20\n1500,30,40\n",
      "completion_tokens,start_time_us,prompt_len\n20,7000000,10\n40,8500000,30\n",
      "arrival_time_ns,context_tokens,generated_tokens\n1,10,20\n1500000001,30,40\n",
      "timestamp,input_len,output_len\n2024-05-01T00:00:00Z,10,20\n2024-05-01T00:00:01.5Z,30,40\n",
      "ARRIVAL_S,INPUT_TOKENS,OUTPUT_TOKENS\n0,10,20\n1.5,30,40\n",
      "note,time,isl,osl\n\"a, \"\"b\"\"\",0,10,20\n,1.5,30,40\n",
      "{\"prompt_len\": 10, \"output_len\": 20, \"arrival\": 0}\n"
      "{\"output_len\": 40, \"arrival\": 1.5, \"prompt_len\": 30, \"text\": \"x\"}\n",
      "[{\"time_ms\": 3, \"prompt_tokens\": 10, \"completion_tokens\": 20, \"a\": {\"b\": [1]}},\n"
      " {\"time_ms\": 1503, \"prompt_tokens\": 30, \"completion_tokens\": 40}]\n",
      "{\"input_lens\": [10, 30], \"output_lens\": [20, 40], \"start_times\": [100.5, 102.0]}",
      "{\n \"ttfts\": [0.1, 0.2],\n \"input_lens\": [10, 30, 9],\n \"output_lens\": [20, 40, 0],\n"
      " \"itls\": [[0.1], []],\n \"start_times\": [1, 2.5, 3], \"errors\": [\"\", \"\", "
      "\"gone\"]\n}",
  };
  for (const std::string& file : files) {
    ASSERT_EQ(Refusal(file), "") << file;
    EXPECT_EQ(Read(file).hash, hash) << file;
    EXPECT_TRUE(Read(file).has_arrivals);
  }
}

TEST(NamedColumns, Reading_SaysWhy) {
  const auto reading = [](const std::string& text) { return Read(text).reading; };
  EXPECT_EQ(reading("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,1,1\n"),
            "Azure CSV: columns TIMESTAMP, ContextTokens, GeneratedTokens");
  EXPECT_EQ(reading("arrival_s,input_tokens,output_tokens\n0,1,1\n"),
            "Servecast CSV: columns arrival_s (s), input_tokens, output_tokens");
  EXPECT_EQ(reading("time_ms,prompt,completion\n0,1,1\n"),
            "CSV with named columns: columns time_ms (ms), prompt, completion");
  EXPECT_EQ(reading("{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1}\n"),
            "Mooncake JSON lines: members timestamp (ms), input_length, output_length");
  EXPECT_EQ(reading("{\"isl\": 1, \"osl\": 1}\n"),
            "JSON lines: members isl, osl; lengths only, no arrivals");
  EXPECT_EQ(reading("{\"input_lens\": [1, 2], \"output_lens\": [1, 0]}"),
            "vLLM bench serve result: input_lens, output_lens; lengths only, no "
            "arrivals; 1 failed "
            "requests left out");
}

TEST(NamedColumns, WhatIsMissing_IsNamed) {
  EXPECT_TRUE(Contains(Refusal("arrival_s,input_tokens\n0,1\n"), "no column for the output"));
  EXPECT_TRUE(Contains(Refusal("arrival_s,output_tokens\n0,1\n"), "no column for the prompt"));
  EXPECT_TRUE(Contains(Refusal("[{\"prompt_len\": 3}]"), "entry 1: found an object without"));
  EXPECT_TRUE(Contains(Refusal("time_ms,isl,osl\n-4,1,1\n"),
                       "line 2, column 1: found \"-4\" as time_ms, allowed ms from 0"));
  EXPECT_TRUE(Contains(Refusal("[{\"isl\": 3, \"osl\": 1}, {\"isl\": 3}]"),
                       "entry 2: found no osl, which the first has"));
  EXPECT_TRUE(
      Contains(Refusal("{\"isl\": 3, \"osl\": 1}\n{\"isl\": 1000000000000, \"osl\": 1}\n"),
               "line 2, column 1: found \"1000000000000\" as isl, allowed 1 to 1000000000"));
  // Numbers after calendar times are no times.
  EXPECT_TRUE(Contains(Refusal("time,isl,osl\n2024-05-01 00:00:00,1,1\n5,1,1\n"),
                       "found \"5\" as time, allowed a time such as"));
}

const char* const kTraceV2 =
    "request_id,client_id,slo_class,prefix_length,input_tokens,output_tokens,arrival_time_us,"
    "send_time_us,status,error_message,finish_reason\n"
    "0,a,standard,0,10,20,0,5,ok,,stop\n"
    "1,a,standard,0,11,0,1000,1005,error,\"refused, twice\",\n"
    "2,b,batch,0,30,40,1500000,1500002,ok,,length\n";

TEST(TraceV2, RequestsThatFailed_AreLeftOut) {
  const Trace trace = Read(kTraceV2);
  EXPECT_EQ(trace.format, "blis_tracev2");
  EXPECT_EQ(trace.failed, 1);
  EXPECT_EQ(trace.hash, Read("arrival_s,input_tokens,output_tokens\n0,10,20\n1.5,30,40\n").hash);
  EXPECT_EQ(trace.reading,
            "BLIS TraceV2: columns arrival_time_us (us), input_tokens, output_tokens; 1 failed "
            "requests left out");
}

TEST(TraceV2, YamlHeaderInFront_IsChecked) {
  const std::string yaml =
      "trace_version: 2\ntime_unit: \"us\"\nmode: generated\nserver:\n  type: vllm\n  tags:\n"
      "  - a\nnetwork:\n  measured_rtt_ms: 0.3\n";
  EXPECT_EQ(Read(yaml + kTraceV2).hash, Read(kTraceV2).hash);
  const std::string last = "request_id,input_tokens,output_tokens,arrival_time_us\n0,10,20,0\n";
  EXPECT_EQ(Read(yaml + last).hash, Read(last).hash);
  EXPECT_EQ(Read(yaml + "---\n" + kTraceV2).hash, Read(kTraceV2).hash);
  EXPECT_TRUE(Contains(Refusal(yaml), "without its requests"));
  EXPECT_TRUE(Contains(Refusal("trace_version: 1\n" + std::string(kTraceV2)),
                       "line 1, column 15: found \"1\" as trace_version, allowed 2"));
  EXPECT_TRUE(Contains(Refusal("trace_version: 2\ntime_unit: ms\n" + std::string(kTraceV2)),
                       "found \"ms\" as time_unit"));
  EXPECT_TRUE(Contains(Refusal("trace_version: 2\nwhat is this\n"), "line 2, column 1: found"));
}

TEST(VllmBench, WhatDoesNotFitTogether_IsSaid) {
  EXPECT_TRUE(Contains(Refusal("{\"input_lens\": [1, 2], \"output_lens\": [1]}"),
                       "found 1 output_lens but 2 input_lens"));
  EXPECT_TRUE(Contains(Refusal("{\"input_lens\": [1, -2], \"output_lens\": [1, 5]}"),
                       "entry 2: found \"-2\" as input_lens"));
  EXPECT_TRUE(Contains(Refusal("{\"duration\": 3, \"request_throughput\": 5.5, \"completed\": 9}"),
                       "--save-detailed"));
  EXPECT_TRUE(Contains(Refusal("{\"input_lens\": [1], \"output_lens\": [0]}"), "failed requests"));
  EXPECT_TRUE(Contains(Refusal("{\"input_lens\": [1]}\n{\"input_lens\": [2]}"),
                       "allowed one JSON document"));
}

TEST(ShareGpt, TheFirstTwoTurns_AreTheRequest) {
  const Trace trace =
      Read(R"([{"id": "x", "conversations": [{"from": "human", "value": "hi", "tokens": 12},
        {"from": "gpt", "tokens": 34}, {"from": "human", "tokens": 5}]},
        {"conversations": [{"tokens": 7}, {"tokens": 8}]}])");
  ASSERT_EQ(trace.rows.size(), 2u);
  EXPECT_FALSE(trace.has_arrivals);
  EXPECT_EQ(trace.rows[0].prompt_tokens, 12);
  EXPECT_EQ(trace.rows[0].output_tokens, 34);
  EXPECT_EQ(trace.rows[1].output_tokens, 8);
  EXPECT_TRUE(Contains(
      Refusal(R"([{"conversations": [{"from": "human", "value": "hi"}, {"value": "yes"}]}])"),
      "there is no tokenizer here"));
}

TEST(BurstGpt, RequestsThatFailed_AreLeftOut) {
  const auto trace = ParseTrace(
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,ChatGPT,472,18,490,Conversation log\n8,ChatGPT,90,0,90,API log\n9,GPT-4,7,2,9,API log\n",
      "b");
  ASSERT_TRUE(trace.ok()) << trace.issues()[0].message;
  EXPECT_EQ(trace.value().rows.size(), 2u);
  EXPECT_EQ(trace.value().failed, 1);
  // In another trace it is a fault.
  EXPECT_FALSE(ParseTrace("time,prompt_tokens,output_tokens\n0,5,0\n", "o").ok());
}

TEST(Bailian, TimesAreSecondsAndIdsOf16Tokens) {
  const auto trace = ParseTrace(
      R"({"chat_id":1,"parent_chat_id":-1,"timestamp":61,"input_length":40,"output_length":9,)"
      R"("type":"text","turn":1,"hash_ids":[7,8,9]})"
      "\n"
      R"({"chat_id":2,"parent_chat_id":1,"timestamp":75.5,"input_length":64,"output_length":3,)"
      R"("type":"text","turn":2,"hash_ids":[7,8,11,12]})",
      "q");
  ASSERT_TRUE(trace.ok()) << trace.issues()[0].message;
  EXPECT_EQ(trace.value().rows[1].arrival_ns, 14'500'000'000);
  ASSERT_EQ(trace.value().prefixes.size(), 2u);
  EXPECT_EQ(trace.value().prefixes[1].row, 0);
  EXPECT_EQ(trace.value().prefixes[1].tokens, 32);
  EXPECT_NE(trace.value().reading.find("Bailian"), std::string::npos);
}

TEST(LengthsOnly, ArrivalsAreTheScenarios) {
  const Trace trace = Read("input_tokens,output_tokens\n10,20\n30,40\n");
  EXPECT_FALSE(trace.has_arrivals);
  EXPECT_EQ(trace.format, "csv");
  const std::string lengths =
      testing::Changed({R"(workload.prompt_tokens={"distribution":"trace"})",
                        R"(workload.output_tokens={"distribution":"trace"})"});
  EXPECT_EQ(Listed(IssuesOf(lengths, trace)), "");
  const std::string both = testing::Changed({R"(workload.arrivals={"process":"trace"})"}, lengths);
  EXPECT_TRUE(
      Contains(Listed(IssuesOf(both, trace)),
               "/workload/arrivals/process: found \"trace\", allowed a process with a rate"));
}

TEST(TraceReader, AcceptedDrafts_AreListsOfARow) {
  const Result<Trace> read = ParseTrace(
      "arrival_s,input_tokens,output_tokens,accepted_drafts\n0,10,20,2 0 3\n1,10,20,1\n", "t");
  ASSERT_TRUE(read.ok());
  const std::vector<std::vector<std::int32_t>> lists = {{2, 0, 3}, {1}};
  EXPECT_EQ(read.value().accepted_drafts, lists);
  EXPECT_NE(read.value().reading.find("accepted_drafts"), std::string::npos);
  const Result<Trace> other = ParseTrace(
      "arrival_s,input_tokens,output_tokens,accepted_drafts\n0,10,20,2 0 2\n1,10,20,1\n", "t");
  EXPECT_NE(read.value().hash, other.value().hash);

  const Result<Trace> bad = ParseTrace(
      "arrival_s,input_tokens,output_tokens,accepted_drafts\n0,10,20,\n1,10,20,33\n2,10,0,1 x\n",
      "t");
  ASSERT_FALSE(bad.ok());
  ASSERT_EQ(bad.issues().size(), 4u);
  EXPECT_EQ(bad.issues()[0].path, "line 2, column 9");
  EXPECT_EQ(bad.issues()[1].path, "line 3, column 9");
  EXPECT_EQ(bad.issues()[2].path, "line 4, column 8");
}

TEST(TraceReader, Adapters_AreNumbersOfARow) {
  const std::string head = "arrival_s,input_tokens,output_tokens,adapter_id\n";
  const Result<Trace> read = ParseTrace(head + "0,10,20,7\n1,10,20,0\n", "t");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value().adapters, (std::vector<std::int32_t>{7, 0}));
  EXPECT_NE(read.value().reading.find("adapter_id"), std::string::npos);
  EXPECT_NE(read.value().hash, ParseTrace(head + "0,10,20,7\n1,10,20,1\n", "t").value().hash);
  const Result<Trace> bad = ParseTrace(head + "0,10,20,\n1,10,20,sql\n2,10,20,-1\n", "t");
  ASSERT_FALSE(bad.ok());
  ASSERT_EQ(bad.issues().size(), 3u);
  EXPECT_EQ(bad.issues()[1].path, "line 3, column 9");
}

TEST(TraceReader, Pieces_ReadAsTheWhole) {
  const std::string files[] = {
      "\xEF\xBB\xBF# note\r\narrival_s,input_tokens,output_tokens,hash_ids_512\r\n0,600,20,1 "
      "2\r\n\r\n"
      "1.5,600,40,1 3",
      "arrival_s,input_tokens,output_tokens,accepted_drafts\n0,600,20,1 2\n1.5,600,40,0\n",
      "{\"timestamp\": 0, \"input_length\": 10, \"output_length\": 20}\n{\"timestamp\": 5, "
      "\"input_length\": 1, \"output_length\": 2}\n",
      "[{\"isl\": 3,\n\"osl\": 1}, {\"isl\": 4, \"osl\": 1}]\n",
      "{\n\"input_lens\": [1, 2],\n\"output_lens\": [3, 4]}",
      kTraceV2,
      "arrival_s,input_tokens,output_tokens\n0,x,20\n1.5,600,y\n",
      "[{\"isl\": 3,\n\"osl\": 1},\n oops]",
      "",
  };
  for (const std::string& file : files) {
    const Result<Trace> whole = ParseTrace(file, "t");
    for (const std::size_t piece : {1, 2, 7, 64}) {
      TraceReader reader("t");
      for (std::size_t at = 0; at < file.size(); at += piece) reader.Add(file.substr(at, piece));
      const Result<Trace> pieces = reader.Finish();
      ASSERT_EQ(pieces.ok(), whole.ok()) << file;
      if (whole.ok()) {
        EXPECT_EQ(pieces.value().hash, whole.value().hash) << file;
        EXPECT_EQ(pieces.value().reading, whole.value().reading);
      } else {
        EXPECT_EQ(pieces.issues(), whole.issues());
      }
    }
  }
}

TEST(TraceReader, HostileFiles_EndInAnIssue) {
  EXPECT_TRUE(Contains(Refusal(std::string(6 << 20, 'x')), "found a line of more than 4 MiB"));
  EXPECT_TRUE(Contains(Refusal("time,isl,osl\n" + std::string(6 << 20, ',')), "line 2, column 1"));
  EXPECT_NE(Refusal(std::string(3 << 20, ',')), "");
  EXPECT_NE(Refusal(std::string(3 << 20, '"')), "");
  EXPECT_NE(Refusal(std::string(5'000'000, '[')), "");
  EXPECT_NE(Refusal("[" + std::string(1'000'000, '{')), "");
  std::string deep = "{\"isl\": 1, \"osl\": 2, \"a\": ";
  deep += std::string(1'000'000, '[') + std::string(1'000'000, ']') + "}\n";
  EXPECT_EQ(Refusal(deep), "");  // what is not asked for does not matter
  EXPECT_NE(Refusal("[1, 2, 3]"), "");
  EXPECT_NE(Refusal("{}"), "");
  EXPECT_NE(Refusal("[{\"isl\": 1e400, \"osl\": 1}]"), "");
  EXPECT_NE(Refusal("{\"isl\": [1], \"osl\": {\"isl\": 1}}"), "");
}

TEST(TraceReader, JsonOfNoRequests_SaysWhatItIs) {
  EXPECT_TRUE(Contains(Refusal("[]"), "found an empty list")) << Refusal("[]");
  EXPECT_TRUE(Contains(Refusal("[ \n ]\n"), "found an empty list"));
  const std::string lists = Refusal("[[1,2,3]]");
  EXPECT_TRUE(Contains(lists, "found a list in a list, allowed one JSON document: a list of obj"))
      << lists;
  EXPECT_FALSE(Contains(lists, "header"));
}

TEST(TraceReader, SemicolonsOrTabsBetweenFields_AreTheSameTrace) {
  const std::string with_commas =
      "arrival_s,input_tokens,output_tokens,note\n0,10,20,\n1.5,30,40,\"a;b\tc,\"\n";
  const std::uint64_t hash = Read(with_commas).hash;
  for (const char separator : {';', '\t'}) {
    std::string text = with_commas;
    std::replace(text.begin(), text.end(), ',', separator);
    ASSERT_EQ(Refusal(text), "") << text;
    EXPECT_EQ(Read(text).hash, hash) << text;
    EXPECT_TRUE(Contains(Read(text).reading, separator == ';' ? "; semicolons" : "; tabs"));
  }
  EXPECT_FALSE(Contains(Read(with_commas).reading, "between fields"));
  // What commas make a trace of is one with commas.
  EXPECT_EQ(Read("input_tokens,output_tokens,\"a;prompt;output\"\n10,20,x\n").rows.size(), 1u);
}

TEST(TraceReader, OtherSeparatorsAndDecimals_AreNamed) {
  const std::string pipes = Refusal("arrival_s|input_tokens|output_tokens\n0|10|20\n");
  EXPECT_TRUE(Contains(pipes, "no comma: fields are separated by commas, by semicolons or by tabs"))
      << pipes;
  EXPECT_FALSE(Contains(Refusal("time,x,y\n0,1,2\n"), "separated"));
  const std::string decimals = Refusal("arrival_s;input_tokens;output_tokens\n0,5;10;20\n");
  EXPECT_TRUE(Contains(decimals, "found \"0,5\" as arrival_s")) << decimals;
  EXPECT_TRUE(Contains(decimals, "with a point before decimals")) << decimals;
}

TEST(TraceReader, EmptyLinesWithoutEnd_AreGivenUp) {
  for (const std::string& line : {std::string("\n"), std::string(" \r\n"), std::string("#\n")}) {
    TraceReader reader("t");
    std::string piece;
    while (piece.size() < (1 << 20)) piece += line;
    std::size_t lines = 0;
    while (lines < 100'000'000 && reader.Add(piece)) lines += piece.size() / line.size();
    EXPECT_LT(lines, 11'000'000u);
    const Result<Trace> trace = reader.Finish();
    ASSERT_FALSE(trace.ok());
    EXPECT_TRUE(Contains(Listed(trace.issues()), "10000000 empty lines")) << Listed(trace.issues());
  }
}

TEST(TraceReader, EndlessLine_IsNotKept) {
  TraceReader reader("t");
  const std::string piece(1 << 20, 'x');
  int taken = 0;
  while (taken < 1000 && reader.Add(piece)) ++taken;
  EXPECT_LT(taken, 5);
  EXPECT_FALSE(reader.Finish().ok());
}

}  // namespace
}  // namespace servecast::trace_formats_test

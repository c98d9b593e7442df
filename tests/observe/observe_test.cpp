// What the load generator decides without a network: when requests are sent, what streams say, what
// prompts hold, when it tries again, and which words it takes.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "observe/answers.h"
#include "observe/event_stream.h"
#include "observe/options.h"
#include "observe/pacing.h"
#include "observe/prompts.h"

namespace servecast {
namespace {

RequestTable Requests(const std::vector<TimeNs>& arrivals) {
  RequestTable table;
  table.arrival = arrivals;
  table.prompt_tokens.assign(arrivals.size(), 10);
  table.output_tokens.assign(arrivals.size(), 5);
  return table;
}

// --- Pacing --------------------------------------------------------------------------------------

TEST(Pacer, OpenLoop_SendsAtArrivalsWhateverIsUnanswered) {
  const RequestTable table = Requests({30, 10, 10, 20});
  Pacer pacer(table, std::nullopt);
  EXPECT_EQ(pacer.Next(), 10);
  EXPECT_FALSE(pacer.Take(9).has_value());
  std::vector<std::int64_t> rows;
  while (const auto due = pacer.Take(25)) {
    EXPECT_EQ(due->due, due->ready);
    rows.push_back(due->row);
  }
  EXPECT_EQ(rows, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(pacer.Peek(), 0);
  EXPECT_EQ(pacer.Next(), 30);
  EXPECT_EQ(pacer.at_once(), 3);
  EXPECT_FALSE(pacer.Done());
}

TEST(Pacer, Cap_HoldsTheNextBackAndSaysSinceWhenThereIsRoom) {
  const RequestTable table = Requests({0, 1, 2, 100});
  Pacer pacer(table, 2);
  ASSERT_TRUE(pacer.Take(0).has_value());
  ASSERT_TRUE(pacer.Take(1).has_value());
  EXPECT_EQ(pacer.Next(), kNever);
  EXPECT_FALSE(pacer.Take(5).has_value());
  pacer.Ended(0, 50, false);
  const auto held = pacer.Take(51);
  ASSERT_TRUE(held.has_value());
  EXPECT_EQ(held->due, 2);
  EXPECT_EQ(held->ready, 50);
  pacer.Ended(1, 60, true);
  EXPECT_EQ(pacer.Next(), 100);
  const auto free = pacer.Take(100);
  ASSERT_TRUE(free.has_value());
  EXPECT_EQ(free->ready, 100);
}

TEST(Pacer, Turns_FollowAnAnswerAndNoFailure) {
  RequestTable table = Requests({0, -1, 5, -1});
  table.think = {-1, 7, -1, 7};
  Pacer pacer(table, std::nullopt);
  ASSERT_TRUE(pacer.Take(0).has_value());
  ASSERT_TRUE(pacer.Take(5).has_value());
  EXPECT_EQ(pacer.Next(), kNever);
  pacer.Ended(0, 20, true);
  pacer.Ended(2, 21, false);
  const auto turn = pacer.Take(27);
  ASSERT_TRUE(turn.has_value());
  EXPECT_EQ(turn->row, 1);
  EXPECT_EQ(turn->due, 27);
  pacer.Ended(1, 30, true);
  EXPECT_TRUE(pacer.Done());
}

TEST(Pacer, ClosedLoop_ClientTakesTheNextSessionWhenItsOwnIsOver) {
  RequestTable table = Requests({0, -1, -1, -1});
  table.pause = {-1, 3, 3, 3};
  Pacer pacer(table, std::nullopt);
  std::vector<TimeNs> dues;
  TimeNs now = 0;
  while (!pacer.Done()) {
    now = std::max(now, pacer.Next());
    const auto due = pacer.Take(now);
    ASSERT_TRUE(due.has_value());
    EXPECT_EQ(pacer.at_once(), 1);
    dues.push_back(due->due);
    now += 10;
    pacer.Ended(due->row, now, dues.size() != 2);  // a failure frees its client, too
  }
  EXPECT_EQ(dues, (std::vector<TimeNs>{0, 13, 26, 39}));
}

// A cap of the scenario: who is held back is not sent before it is due, either.
TEST(Pacer, CappedClients_SendWhenOneIsFree_AndNotBeforeItIsDue) {
  RequestTable table = Requests({0, -1, -1});
  table.pause = {-1, 0, 0};
  table.due = {0, 4, 30};
  Pacer pacer(table, std::nullopt);
  std::vector<TimeNs> dues;
  for (TimeNs now = 0; !pacer.Done();) {
    now = std::max(now, pacer.Next());
    const auto due = pacer.Take(now);
    ASSERT_TRUE(due.has_value());
    dues.push_back(due->due);
    now += 10;
    pacer.Ended(due->row, now, true);
  }
  EXPECT_EQ(dues, (std::vector<TimeNs>{0, 10, 30}));
}

TEST(Pacer, Stopped_SendsNoMore) {
  RequestTable table = Requests({0, -1, 9});
  table.think = {-1, 1, -1};
  Pacer pacer(table, std::nullopt);
  ASSERT_TRUE(pacer.Take(0).has_value());
  pacer.Stop();
  pacer.Ended(0, 5, true);
  EXPECT_TRUE(pacer.Done());
}

// --- Streams -------------------------------------------------------------------------------------

std::vector<std::string> Events(const std::string& text, std::size_t piece) {
  EventStream stream;
  std::vector<std::string> events;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    const std::string_view part = std::string_view(text).substr(at, piece);
    stream.Add(part, [&events](std::string_view data) { events.emplace_back(data); });
  }
  return events;
}

TEST(EventStream, EveryLineEnd_EndsLines) {
  const std::string text =
      "\xEF\xBB\xBF"
      "data: a\n\ndata:b\r\n\r\ndata: c\r\rid: 7\ndata: d\ndata:  e\n\n: comment\n\ndata\n\ndata: "
      "f";
  EXPECT_EQ(Events(text, text.size()), (std::vector<std::string>{"a", "b", "c", "d\n e", ""}));
}

TEST(EventStream, CutAnywhere_GivesTheSameEvents) {
  constexpr const char kBytes[] = "\r\n:d a";
  for (std::int64_t seed = 0; seed < 500; ++seed) {
    std::string text;
    for (std::int64_t i = 0; i < 40; ++i) {
      const std::uint64_t bits = RandomBits(seed, Stream::kArrival, i);
      text += bits % 5 == 0 ? "data: x" : std::string(1, kBytes[bits / 5 % 6]);
    }
    const std::vector<std::string> whole = Events(text, text.size());
    for (const std::size_t piece : {1, 2, 7}) ASSERT_EQ(Events(text, piece), whole) << text;
  }
}

TEST(EventStream, EventWithoutEnd_IsGivenUp) {
  EventStream stream;
  const std::string piece(std::size_t{1} << 16, 'x');
  const auto none = [](std::string_view) { ADD_FAILURE() << "an event"; };
  EXPECT_TRUE(stream.Add("data: ", none));
  int pieces = 0;
  while (stream.Add(piece, none) && pieces < 100) ++pieces;
  EXPECT_EQ(pieces, 15);
  EXPECT_FALSE(stream.Add("\n\n", none));
}

TEST(StreamChunk, Completions_SayTokensAndCounts) {
  const StreamChunk token = ReadChunk(R"({"choices": [{"text": "", "finish_reason": null}]})");
  EXPECT_TRUE(token.token && !token.finished && token.error.empty());
  const StreamChunk last = ReadChunk(R"({"choices": [{"text": "a", "finish_reason": "length"}]})");
  EXPECT_TRUE(last.token && last.finished);
  const StreamChunk usage =
      ReadChunk(R"({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3}})");
  EXPECT_FALSE(usage.token);
  EXPECT_EQ(usage.prompt_tokens, 12);
  EXPECT_EQ(usage.output_tokens, 3);
  EXPECT_TRUE(ReadChunk("[DONE]").done);
}

TEST(StreamChunk, AnythingElse_IsAnError) {
  EXPECT_EQ(ReadChunk(R"({"error": {"message": "no memory", "code": 500}})").error, "no memory");
  EXPECT_EQ(ReadChunk(R"({"error": "busy"})").error, "busy");
  for (const char* text : {"", "x", "[1]", "{}", "{\"choices\": 3}", "\xff", "[[[[[[", "null"}) {
    EXPECT_NE(ReadChunk(text).error, "") << text;
  }
  // Counts that cannot be are none.
  EXPECT_FALSE(ReadChunk(R"({"choices": [], "usage": {"prompt_tokens": -1}})").prompt_tokens);
  EXPECT_FALSE(ReadChunk(R"({"choices": [], "usage": {"prompt_tokens": 1e30}})").prompt_tokens);
}

TEST(Refusal, OfAServer_IsShortAndSafeToPrint) {
  EXPECT_EQ(RefusalOf(R"({"detail": "queue is full"})"), "queue is full");
  EXPECT_EQ(RefusalOf("<html>\x1b[31m"), "<html>\\u001b[31m");
  EXPECT_LE(RefusalOf(std::string(9000, 'x')).size(), 200U);
}

// --- Prompts -------------------------------------------------------------------------------------

TEST(Prompts, OfASalt_AreTheSameAndOfAnotherShareNothing) {
  const RequestTable table = Requests({0, 1});
  const auto first = PromptTokens(table, 0, 1);
  EXPECT_EQ(first.size(), 10U);
  EXPECT_EQ(first, PromptTokens(table, 0, 1));
  EXPECT_NE(first[0], PromptTokens(table, 1, 1)[0]);
  EXPECT_NE(first[0], PromptTokens(table, 0, 2)[0]);
  for (const std::int32_t token : first) {
    EXPECT_TRUE(token >= kFirstTokenId && token < kFirstTokenId + kTokenIds);
  }
}

TEST(Prompts, OfSharedContent_BeginAlikeAsFarAsItIsShared) {
  RequestTable table = Requests({0, 1, 2});
  // A group's prefix of 6 tokens, of which two requests have 6 and 4.
  table.segments = {{-1, 0}, {0, 6}, {0, 4}, {-1, 0}};
  table.content = {1, 2, 3};
  const auto a = PromptTokens(table, 0, 7), b = PromptTokens(table, 1, 7),
             c = PromptTokens(table, 2, 7);
  const auto alike = [](const auto& x, const auto& y) {
    return std::mismatch(x.begin(), x.end(), y.begin()).first - x.begin();
  };
  EXPECT_EQ(alike(a, b), 4);
  EXPECT_EQ(alike(a, c), 0);
}

TEST(Prompts, InEachForm_HaveSoManyParts) {
  EXPECT_EQ(PromptJson({1000, 1001, 30999}, PromptForm::kTokenIds), "[1000,1001,30999]");
  const std::string words = PromptJson({1000, 1001, 30999}, PromptForm::kWords);
  EXPECT_EQ(words.front(), '"');
  EXPECT_EQ(std::count(words.begin(), words.end(), ' '), 2);
}

// --- Tries and clocks ----------------------------------------------------------------------------

TEST(Retry, OnlyWhatNeverBegan_IsTriedAgainAsOftenAsAsked) {
  EXPECT_FALSE(RetryWait(Outcome::kRefused, 1, 0, 0, 0));
  EXPECT_TRUE(RetryWait(Outcome::kRefused, 1, 1, 0, 0));
  EXPECT_FALSE(RetryWait(Outcome::kRefused, 2, 1, 0, 0));
  EXPECT_TRUE(RetryWait(Outcome::kUnconnected, 3, 5, 0, 0));
  for (const Outcome outcome : {Outcome::kAnswered, Outcome::kStatus, Outcome::kCutShort,
                                Outcome::kMalformed, Outcome::kTimedOut, Outcome::kGaveUp}) {
    EXPECT_FALSE(RetryWait(outcome, 1, 9, 0, 0));
  }
}

TEST(Retry, Waits_DoubleAndHeedTheServerUpToAMinute) {
  for (std::int32_t tries = 1; tries < 15; ++tries) {
    const TimeNs wait = *RetryWait(Outcome::kRefused, tries, 20, 0, 3);
    const double middle = std::min(60.0, 0.25 * (1 << (tries - 1)));
    EXPECT_GE(Seconds(wait), middle / 2);
    EXPECT_LE(Seconds(wait), middle * 1.5);
  }
  EXPECT_GE(*RetryWait(Outcome::kRefused, 1, 1, 7, 0), 7 * kNsPerS);
  EXPECT_EQ(*RetryWait(Outcome::kRefused, 1, 1, 1e9, 0), 60 * kNsPerS);
  EXPECT_NE(*RetryWait(Outcome::kRefused, 1, 1, 0, 1), *RetryWait(Outcome::kRefused, 1, 1, 0, 2));
}

TEST(ServerClock, Dates_BoundByHowMuchItIsAhead) {
  EXPECT_FALSE(ServerClock().Ahead());
  // A server 100.3 s ahead, which cuts to seconds.
  ServerClock clock;
  for (const double at : {0.1, 0.4, 0.75, 5.2}) {
    clock.Add(at, at + 0.01, std::floor(at + 0.005 + 100.3));
  }
  ASSERT_TRUE(clock.Ahead());
  EXPECT_LE(clock.Ahead()->first, 100.3);
  EXPECT_GE(clock.Ahead()->second, 100.3);
  EXPECT_LT(clock.Ahead()->second - clock.Ahead()->first, 2);
  clock.Add(6, 6.01, 500);  // it was set
  EXPECT_FALSE(clock.Ahead());
}

// --- Words ---------------------------------------------------------------------------------------

TEST(ObserveOptions, Urls_MeanTheApiAsPeopleWriteThem) {
  const auto url = [](const std::string& word) {
    const auto read = ReadObserveOptions({word, "s.json"}, nullptr);
    return read.ok() ? read.value().url : "refused";
  };
  EXPECT_EQ(url("http://localhost:8000"), "http://localhost:8000/v1");
  EXPECT_EQ(url("http://localhost:8000/"), "http://localhost:8000/v1");
  EXPECT_EQ(url("http://localhost:8000/v1"), "http://localhost:8000/v1");
  EXPECT_EQ(url("https://host/x/v1/completions"), "https://host/x/v1");
  for (const char* word : {"localhost:8000", "ftp://host", "http://", "file:///etc/passwd",
                           "http://a b", "http://host/?x=1", "http://u:p@host", "http:///v1"}) {
    EXPECT_EQ(url(word), "refused") << word;
  }
}

TEST(ObserveOptions, AllThatIsWrong_IsSaidAtOnceAndNoSecretIs) {
  const auto read =
      ReadObserveOptions({"http://me:secret1@host", "--retries", "-1", "--timeout", "soon",
                          "--prompts", "poems", "--retrys", "--max-concurrency", "0", "--stall"},
                         "secret2\n");
  ASSERT_FALSE(read.ok());
  std::string all;
  for (const Issue& issue : read.issues()) all += issue.path + ": " + issue.message + "\n";
  for (const char* part :
       {"URL: found a name or a password", "scenario: found none", "--retries: found -1, allowed",
        "--timeout: found soon, allowed", "--prompts: found poems, allowed ids or words",
        "did you mean --retries?", "--max-concurrency: found 0, allowed a whole number from 1",
        "--stall: found nothing behind it", "OPENAI_API_KEY: found characters"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << "\n" << all;
  }
  EXPECT_EQ(all.find("secret"), std::string::npos);
}

TEST(ObserveOptions, RequestsBeyondWhatIsKept_AreRefused) {
  RequestTable table = Requests({0, 0, 0});
  EXPECT_TRUE(CheckRequests(table).empty());
  table.prompt_tokens[1] = 5'000'000;
  table.output_tokens[2] = 20'000'000;
  EXPECT_EQ(CheckRequests(table).size(), 2U);
  table.max_new_tokens = {5, 5, 5};
  EXPECT_EQ(CheckRequests(table).size(), 1U);
}

}  // namespace
}  // namespace servecast

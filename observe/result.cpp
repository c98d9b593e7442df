// See result.h.
#include "observe/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <numeric>

#include "base/text.h"
#include "io/json_writer.h"
#include "servecast/report.h"

namespace servecast {
namespace {

// To a tenth of a microsecond: closer no clock of a client is, and files stay small.
double RoundedS(TimeNs ns) { return std::nearbyint(static_cast<double>(ns) / 100) / 1e7; }
double RoundedMs(double ms) { return std::nearbyint(ms * 1e4) / 1e4; }

bool Came(const Answer& a) { return a.outcome == Outcome::kAnswered; }

// Figures of the answers that came whole, in ms.
struct Latencies {
  std::vector<double> ttft, tpot, itl, e2e;
};

Latencies LatenciesOf(const std::vector<Answer>& answers) {
  Latencies all;
  for (const Answer& a : answers) {
    if (!Came(a)) continue;
    all.ttft.push_back(static_cast<double>(a.tokens.front() - a.sent) / kMs);
    all.e2e.push_back(static_cast<double>(a.tokens.back() - a.sent) / kMs);
    for (std::size_t i = 1; i < a.tokens.size(); ++i) {
      all.itl.push_back(static_cast<double>(a.tokens[i] - a.tokens[i - 1]) / kMs);
    }
    if (a.OutputTokens() < 2) continue;
    all.tpot.push_back(static_cast<double>(a.tokens.back() - a.tokens.front()) / kMs /
                       static_cast<double>(a.OutputTokens() - 1));
  }
  for (auto* values : {&all.ttft, &all.tpot, &all.itl, &all.e2e}) {
    std::sort(values->begin(), values->end());
  }
  return all;
}

double MeanOf(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Between neighbours, as numpy's percentile. Requires: ascending. 0 of nothing.
double QuantileOf(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

double DeviationOf(const std::vector<double>& values) {
  const double mean = MeanOf(values);
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

// How long after its time each was first sent, ms, ascending: our own doing, not the server's.
std::vector<double> LatenessOf(const std::vector<Answer>& answers) {
  std::vector<double> late;
  for (const Answer& a : answers) {
    if (a.tries > 0) late.push_back(static_cast<double>(a.first_sent - a.ready) / kMs);
  }
  std::sort(late.begin(), late.end());
  return late;
}

std::string UtcText(double seconds, const char* form) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&whole, &parts);
  char text[32];
  return std::string(text, std::strftime(text, sizeof(text), form, &parts));
}

class ResultWriter {
 public:
  ResultWriter(const Observed& observed, const ObservedOf& of, const ObserveOptions& options,
               const RequestTable& table)
      : observed_(observed),
        of_(of),
        options_(options),
        table_(table),
        answers_(observed.answers) {}

  std::string Write() {
    out_.BeginObject();
    Setting();
    Totals();
    const Latencies all = LatenciesOf(answers_);
    Figures("ttft", all.ttft);
    Figures("tpot", all.tpot);
    Figures("itl", all.itl);
    Figures("e2el", all.e2e);
    Requests();
    Ours();
    out_.EndObject();
    return out_.Take() + "\n";
  }

 private:
  void Setting() {
    Text("date", UtcText(observed_.started_at_s, "%Y%m%d-%H%M%S"));
    Text("endpoint_type", "openai");
    Text("backend", "openai");
    Null("label");
    Text("model_id", of_.model);
    Text("tokenizer_id", of_.model);
    Integer("num_prompts", static_cast<std::int64_t>(answers_.size()));
    out_.Key("request_rate");
    if (const double rate = PlannedRate(); rate > 0) {
      out_.Number(rate);
    } else {
      out_.Text("inf");
    }
    Number("burstiness", 1);
    out_.Key("max_concurrency");
    if (options_.max_concurrency) {
      out_.Integer(*options_.max_concurrency);
    } else {
      out_.Null();
    }
  }
  // Of arrivals; 0: all at once.
  double PlannedRate() const {
    if (answers_.size() < 2) return 0;
    TimeNs first = kNever, last = 0;
    for (const Answer& a : answers_) {
      first = std::min(first, a.due);
      last = std::max(last, a.due);
    }
    const double rate = static_cast<double>(answers_.size() - 1) / Seconds(last - first);
    return last > first && rate >= 1e-3 && rate <= 1e6 ? rate : 0;
  }
  void Totals() {
    std::int64_t completed = 0, input = 0, output = 0;
    for (const Answer& a : answers_) {
      if (!Came(a)) continue;
      ++completed;
      input += PromptTokensOf(a);
      output += a.OutputTokens();
    }
    const double duration = Seconds(observed_.duration);
    const auto per_s = [&](const char* key, std::int64_t count) {
      Number(key, duration > 0 ? static_cast<double>(count) / duration : 0);
    };
    Number("duration", RoundedS(observed_.duration));
    Integer("completed", completed);
    Integer("failed", static_cast<std::int64_t>(answers_.size()) - completed);
    Integer("total_input_tokens", input);
    Integer("total_output_tokens", output);
    per_s("request_throughput", completed);
    per_s("output_throughput", output);
    per_s("total_token_throughput", input + output);
  }
  void Figures(const std::string& name, const std::vector<double>& sorted) {
    Number("mean_" + name + "_ms", RoundedMs(MeanOf(sorted)));
    Number("median_" + name + "_ms", RoundedMs(QuantileOf(sorted, 0.5)));
    Number("std_" + name + "_ms", RoundedMs(DeviationOf(sorted)));
    Number("p99_" + name + "_ms", RoundedMs(QuantileOf(sorted, 0.99)));
  }
  void Requests() {
    Each("input_lens", [&](const Answer& a) { out_.Integer(PromptTokensOf(a)); });
    Each("output_lens", [&](const Answer& a) { out_.Integer(Came(a) ? a.OutputTokens() : 0); });
    Each("ttfts",
         [&](const Answer& a) { out_.Number(Came(a) ? RoundedS(a.tokens[0] - a.sent) : 0); });
    Each("itls", [&](const Answer& a) {
      out_.BeginArray();
      for (std::size_t i = 1; Came(a) && i < a.tokens.size(); ++i) {
        out_.Number(RoundedS(a.tokens[i] - a.tokens[i - 1]));
      }
      out_.EndArray();
    });
    Each("start_times", [&](const Answer& a) { out_.Number(RoundedS(a.sent)); });
    Each("errors", [&](const Answer& a) { out_.Text(a.error); });
  }
  void Ours() {
    out_.Key("servecast");
    out_.BeginObject();
    Text("engine_version", std::string(kEngineVersion));
    Text("scenario", of_.scenario_id);
    Text("prompts", options_.prompts == PromptForm::kWords ? "words" : "token_ids");
    Integer("salt", static_cast<std::int64_t>(of_.salt));
    Integer("planned", table_.size());
    out_.Key("interrupted");
    out_.Boolean(observed_.interrupted);
    Each("rows", [&](const Answer& a) { out_.Integer(a.row); });
    Each("asked_input_lens", [&](const Answer& a) {
      out_.Integer(table_.prompt_tokens[static_cast<std::size_t>(a.row)]);
    });
    Each("asked_output_lens", [&](const Answer& a) { out_.Integer(AskedTokens(table_, a.row)); });
    Each("outcomes",
         [&](const Answer& a) { out_.Text(kOutcomeNames[static_cast<std::size_t>(a.outcome)]); });
    Each("tries", [&](const Answer& a) { out_.Integer(a.tries); });
    Each("due_times", [&](const Answer& a) { out_.Number(RoundedS(a.due)); });
    Each("held_s", [&](const Answer& a) { out_.Number(RoundedS(a.ready - a.due)); });
    Each("late_s", [&](const Answer& a) { out_.Number(RoundedS(a.first_sent - a.ready)); });
    Each("connect_s", [&](const Answer& a) { out_.Number(RoundedS(a.connect)); });
    Clocks();
    out_.EndObject();
  }
  void Clocks() {
    out_.Key("clock");
    out_.BeginObject();
    Text("kind", "monotonic");
    Text("started_at", UtcText(observed_.started_at_s, "%Y-%m-%dT%H:%M:%SZ"));
    Number("wall_clock_moved_s", std::nearbyint(observed_.wall_clock_moved_s * 1e6) / 1e6);
    Number("longest_turn_s", RoundedS(observed_.longest_turn));
    out_.Key("server_ahead_s");
    if (const auto& ahead = observed_.server_ahead_s) {
      out_.BeginArray();
      for (const double bound : {ahead->first, ahead->second}) {
        out_.Number(std::nearbyint(bound * 1e3) / 1e3);
      }
      out_.EndArray();
    } else {
      out_.Null();
    }
    out_.EndObject();
  }

  // The server's count where it answered, else what was asked.
  std::int64_t PromptTokensOf(const Answer& a) const {
    const std::int64_t asked = table_.prompt_tokens[static_cast<std::size_t>(a.row)];
    return Came(a) ? a.prompt_tokens.value_or(asked) : asked;
  }
  void Each(const char* key, const std::function<void(const Answer&)>& write) {
    out_.Key(key);
    out_.BeginArray();
    for (const Answer& a : answers_) write(a);
    out_.EndArray();
  }
  void Text(const char* key, const std::string& value) {
    out_.Key(key);
    out_.Text(value);
  }
  void Integer(const char* key, std::int64_t value) {
    out_.Key(key);
    out_.Integer(value);
  }
  void Number(const std::string& key, double value) {
    out_.Key(key);
    out_.Number(value);
  }
  void Null(const char* key) {
    out_.Key(key);
    out_.Null();
  }

  const Observed& observed_;
  const ObservedOf& of_;
  const ObserveOptions& options_;
  const RequestTable& table_;
  const std::vector<Answer>& answers_;
  JsonWriter out_{false};
};

// "refused 3 (429: queue is full), cut short 1 (...)": how many of each, with the first one's
// words.
std::string Failures(const std::vector<Answer>& answers) {
  std::string text;
  for (std::size_t kind = 1; kind < kOutcomeNames.size(); ++kind) {
    std::int64_t count = 0;
    const Answer* first = nullptr;
    for (const Answer& a : answers) {
      if (static_cast<std::size_t>(a.outcome) != kind) continue;
      if (count++ == 0) first = &a;
    }
    if (count == 0) continue;
    text += fmt::format("failed   {:<12} {}: {}\n", kOutcomeNames[kind], count, first->error);
  }
  return text;
}

std::string Warnings(const Observed& observed, const RequestTable& table) {
  constexpr double kLateMs = 10, kMovedS = 0.5;
  std::int64_t other_prompt = 0, other_output = 0;
  for (const Answer& a : observed.answers) {
    if (!Came(a)) continue;
    const auto r = static_cast<std::size_t>(a.row);
    other_prompt += a.prompt_tokens && *a.prompt_tokens != table.prompt_tokens[r] ? 1 : 0;
    other_output += a.OutputTokens() != AskedTokens(table, a.row) ? 1 : 0;
  }
  std::string text;
  if (other_prompt > 0) {
    text += fmt::format(
        "warning: the server counted other prompt tokens than were asked for, of "
        "{} requests; the file has its count\n",
        other_prompt);
  }
  if (other_output > 0) {
    text += fmt::format(
        "warning: {} answers had other lengths than were asked for: the server may "
        "not know ignore_eos\n",
        other_output);
  }
  const double late = QuantileOf(LatenessOf(observed.answers), 0.99);
  if (late > kLateMs) {
    text += fmt::format(
        "warning: requests were sent up to {} ms late: this machine is the limit, "
        "not the server\n",
        ShortNumber(late));
  }
  if (std::abs(observed.wall_clock_moved_s) > kMovedS) {
    text +=
        fmt::format("warning: the wall clock moved by {} s: it was set, or this machine slept\n",
                    ShortNumber(observed.wall_clock_moved_s));
  }
  return text;
}

}  // namespace

std::string ObservedJson(const Observed& observed, const ObservedOf& of,
                         const ObserveOptions& options, const RequestTable& table) {
  return ResultWriter(observed, of, options, table).Write();
}

std::string ObservedSummary(const Observed& observed, const RequestTable& table) {
  const std::vector<Answer>& answers = observed.answers;
  const Latencies all = LatenciesOf(answers);
  std::string text =
      fmt::format("sent     {} of {} requests in {} s, {} answered whole\n", answers.size(),
                  table.size(), ShortNumber(Seconds(observed.duration)), all.ttft.size());
  const auto line = [&text](const char* name, const std::vector<double>& sorted) {
    if (sorted.empty()) return;
    text += fmt::format("{:<8} mean {} ms, median {} ms, p99 {} ms\n", name,
                        ShortNumber(MeanOf(sorted)), ShortNumber(QuantileOf(sorted, 0.5)),
                        ShortNumber(QuantileOf(sorted, 0.99)));
  };
  line("TTFT", all.ttft);
  line("TPOT", all.tpot);
  line("E2E", all.e2e);
  line("late", LatenessOf(answers));
  return text + Failures(answers) + Warnings(observed, table);
}

}  // namespace servecast

// Results of `vllm bench serve --save-result`. With --save-detailed every request is replayed with
// its own lengths, and of a run of some length the last third judges what the others were fitted
// to; else its mean lengths are.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "base/text.h"
#include "calibrate/json_numbers.h"
#include "calibrate/readers.h"
#include "calibrate/runs.h"
#include "io/issues.h"
#include "io/json_document.h"

namespace servecast {

using Json = nlohmann::json;

namespace {

constexpr std::int64_t kBenchDraws = 3;
constexpr double kMostBenchRequests = 200'000;
constexpr std::size_t kHeldOutFrom = 90;  // requests of a run whose last third is held out
constexpr double kLongest = 1e6;          // s of a time
constexpr double kLongestRun = 1e8;       // s

struct BenchRequest {
  double start_s = 0, prompt = 0, output = 0, ttft_s = 0, after_s = 0;
  std::size_t place = 0;  // in the file
};

// Gaps between the tokens of all requests, one request behind the other, s.
struct Gaps {
  std::vector<float> s;
  std::vector<std::size_t> ends;  // of each request

  std::span<const float> Of(std::size_t request) const {
    const std::size_t from = request == 0 ? 0 : ends[request - 1];
    return {s.data() + from, ends[request] - from};
  }
};

// Sums into `after`, of each request.
Gaps GapsIn(JsonNumbers& in, std::vector<double>& after) {
  const Json* lists = in.Find("itls");
  Gaps gaps;
  if (lists == nullptr || !lists->is_array()) {
    if (lists != nullptr) in.Refuse("/itls", lists, "a list of lists of seconds");
    return gaps;
  }
  for (const Json& list : *lists) {
    double sum = 0;
    bool good = list.is_array();
    if (good) {
      for (const Json& gap : list) {
        const double seconds = gap.is_number() ? gap.get<double>() : -1;
        good = good && seconds >= 0 && seconds <= kLongest;
        if (!good) continue;
        sum += seconds;
        gaps.s.push_back(static_cast<float>(seconds));
      }
    }
    if (!good) in.Refuse(Format("/itls/{}", after.size()), &list, "a list of seconds");
    after.push_back(sum);
    gaps.ends.push_back(gaps.s.size());
  }
  return gaps;
}

// Requests that were answered, in order of their start. Sizes that differ are issues.
std::vector<BenchRequest> RequestsIn(JsonNumbers& in, Gaps& gaps) {
  const std::vector<double> prompts = in.Numbers("input_lens", 0, 1e7);
  const std::vector<double> outputs = in.Numbers("output_lens", 0, 1e7);
  const std::vector<double> ttfts = in.Numbers("ttfts", 0, kLongest);
  const std::vector<double> starts = in.Numbers("start_times", 0, 1e12);
  std::vector<double> after;
  gaps = GapsIn(in, after);
  const auto check = [&](const char* key, std::size_t size, bool needed) {
    if (size == prompts.size() || (size == 0 && !needed)) return;
    in.issues().push_back(
        {in.name() + ", /" + key,
         Format("found {} items, allowed {}, as many as input_lens", size, prompts.size())});
  };
  check("output_lens", outputs.size(), true);
  check("ttfts", ttfts.size(), true);
  check("itls", after.size(), true);
  check("start_times", starts.size(), false);
  if (!in.issues().empty()) return {};
  std::vector<BenchRequest> requests;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (prompts[i] < 1 || outputs[i] < 1 || ttfts[i] <= 0) continue;  // it failed
    requests.push_back(
        {starts.empty() ? 0 : starts[i], prompts[i], outputs[i], ttfts[i], after[i], i});
  }
  std::stable_sort(
      requests.begin(), requests.end(),
      [](const BenchRequest& a, const BenchRequest& b) { return a.start_s < b.start_s; });
  if (!requests.empty() && requests.back().start_s - requests[0].start_s > kLongestRun) {
    in.issues().push_back({in.name() + ", /start_times",
                           Format("found {} s from the first to the last, allowed {}",
                                  NumberText(requests.back().start_s - requests[0].start_s),
                                  NumberText(kLongestRun))});
  }
  return requests;
}

// How requests came, where their own starts are not known.
struct BenchLoad {
  double rate_per_s = 0;  // 0: all at once
  std::optional<std::int64_t> concurrency;
};

BenchLoad LoadIn(JsonNumbers& in, bool starts) {
  BenchLoad load;
  const Json* rate = in.Find("request_rate");
  const bool text = rate != nullptr && rate->is_string();
  if (text && LowerCase(rate->get<std::string>()) != "inf") {
    in.Refuse("/request_rate", rate, "a number above 0 or \"inf\"");
  } else if (!text) {
    load.rate_per_s = in.Number("request_rate", 1e-3, 1e6).value_or(0);
  }
  const auto clients = in.Number("max_concurrency", 1, 1e5);
  if (clients && load.rate_per_s == 0) {
    load.concurrency = std::llround(*clients);
  } else if (clients && !starts) {
    in.Refuse("/max_concurrency", in.Find("max_concurrency"),
              "null beside a request_rate, or start_times of the requests (--save-detailed of "
              "vLLM 0.15 or later)");
  }
  if (const auto shape = in.Number("burstiness", 0, 1e12);
      shape && *shape != 1 && load.rate_per_s > 0 && !starts) {
    in.Refuse("/burstiness", in.Find("burstiness"),
              "1, or start_times of the requests (--save-detailed of vLLM 0.15 or later)");
  }
  return load;
}

// Means of some of the requests.
std::vector<MeasuredFigure> FiguresOf(const std::vector<BenchRequest>& requests, std::size_t from,
                                      std::size_t to) {
  double ttft = 0, tpot = 0, e2e = 0, several = 0;
  for (std::size_t i = from; i < to; ++i) {
    const BenchRequest& r = requests[i];
    ttft += r.ttft_s;
    e2e += r.ttft_s + r.after_s;
    if (r.output < 2) continue;
    tpot += r.after_s / (r.output - 1);
    ++several;
  }
  const auto n = static_cast<double>(to - from);
  std::vector<MeasuredFigure> figures = {{Figure::kTtft, ttft / n * 1e3}};
  if (several > 0 && tpot > 0) figures.push_back({Figure::kTpot, tpot / several * 1e3});
  if (several > 0) figures.push_back({Figure::kE2e, e2e / n * 1e3});
  return figures;
}

// What clients saw of some of the requests.
ClientTimes SeenOf(const std::vector<BenchRequest>& requests, const Gaps& gaps, std::size_t from,
                   std::size_t to) {
  ClientTimes seen;
  std::int64_t all = 0;
  for (std::size_t i = from; i < to; ++i) {
    const BenchRequest& r = requests[i];
    seen.ttft.push_back(r.ttft_s * 1e3);
    seen.e2e.push_back((r.ttft_s + r.after_s) * 1e3);
    all += static_cast<std::int64_t>(gaps.Of(r.place).size());
  }
  seen.every = std::max<std::int64_t>(1, (all + kMostGaps - 1) / kMostGaps);
  std::int64_t at = 0;
  for (std::size_t i = from; i < to; ++i) {
    for (const float gap : gaps.Of(requests[i].place)) {
      if (at++ % seen.every == 0) seen.itl.push_back(static_cast<double>(gap) * 1e3);
    }
  }
  return seen;
}

Trace TraceOf(const std::vector<BenchRequest>& requests,
              const std::vector<std::int64_t>& arrivals) {
  Trace trace;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    trace.rows.push_back({arrivals[i], static_cast<std::int32_t>(requests[i].prompt),
                          static_cast<std::int32_t>(requests[i].output)});
  }
  return trace;
}

// Their own starts, or those of draws at the rate.
std::vector<Trace> TracesOf(const std::vector<BenchRequest>& requests, const BenchLoad& load,
                            bool starts) {
  const std::size_t n = requests.size();
  std::vector<std::int64_t> arrivals(n, 0);
  if (starts || load.rate_per_s == 0) {
    for (std::size_t i = 0; starts && i < n; ++i) {
      arrivals[i] = std::llround((requests[i].start_s - requests[0].start_s) * 1e9);
    }
    return {TraceOf(requests, arrivals)};
  }
  std::vector<Trace> traces;
  for (const Trace& draw :
       DrawRuns(static_cast<std::int64_t>(n), load.rate_per_s, {}, {}, kBenchDraws)) {
    for (std::size_t i = 0; i < n; ++i) arrivals[i] = draw.rows[i].arrival_ns;
    traces.push_back(TraceOf(requests, arrivals));
  }
  return traces;
}

// ITL compares tokens; a server that sends several at once, or a file that is cut, has fewer gaps.
void WarnOfChunks(const std::vector<BenchRequest>& requests, const Gaps& gaps,
                  const std::string& name, Measurements& read) {
  double seen = 0, tokens = 0;
  for (const BenchRequest& r : requests) {
    seen += static_cast<double>(gaps.Of(r.place).size());
    tokens += static_cast<double>(r.output) - 1;
  }
  if (seen == 0 || 2 * seen >= tokens) return;
  read.warnings.push_back(Format(
      "{} has {} gaps in itls for {} tokens behind the first: ITL is of chunks, not of tokens",
      name, NumberText(seen), NumberText(tokens)));
}

void AddDetailed(JsonNumbers& in, Measurements& read) {
  const bool starts = in.Find("start_times") != nullptr && !in.Find("start_times")->empty();
  Gaps gaps;
  const std::vector<BenchRequest> requests = RequestsIn(in, gaps);
  BenchLoad load = LoadIn(in, starts);
  if (requests.empty() && in.issues().empty()) {
    in.issues().push_back({in.name(), "found no request that was answered, allowed one at least"});
  }
  if (!in.issues().empty()) return;
  if (load.rate_per_s > 0 || starts) load.concurrency.reset();
  RunLoad run;
  run.draws = TracesOf(requests, load, starts);
  run.concurrency = load.concurrency;
  run.rate_per_s = load.rate_per_s;
  run.greedy = true;  // unless told otherwise, of which no result says a word
  const std::size_t n = requests.size();
  const std::size_t fitted = n >= kHeldOutFrom ? n - n / 3 : n;
  for (const bool held_out : {false, true}) {
    if (held_out && fitted == n) break;
    CalibrationPoint point;
    point.form = PointForm::kRun;
    run.from = held_out ? fitted : 0;
    run.to = held_out ? n : fitted;
    run.seen = SeenOf(requests, gaps, run.from, run.to);
    point.figures = FiguresOf(requests, run.from, run.to);
    point.label = Format("{}, requests {} to {}", in.name(), run.from + 1, run.to);
    point.run = std::make_shared<const RunLoad>(run);
    point.held_out = held_out;
    read.points.push_back(std::move(point));
  }
  WarnOfChunks(requests, gaps, in.name(), read);
  read.found.push_back(Format("{}: {} requests of vllm bench serve{}: all of it under load{}",
                              in.name(), n,
                              starts             ? ", at their own times"
                              : load.concurrency ? ", in a closed loop"
                                                 : ", at drawn times",
                              fitted < n ? Format("; the last {} judge the fit", n - fitted) : ""));
}

void AddSummary(JsonNumbers& in, Measurements& read) {
  const BenchLoad load = LoadIn(in, false);
  const double completed = in.Number("completed", 1, kMostBenchRequests).value_or(0);
  const auto prompt = in.Number("total_input_tokens", 1, 1e12);
  const auto output = in.Number("total_output_tokens", 1, 1e12);
  CalibrationPoint point;
  point.form = PointForm::kRun;
  const std::pair<Figure, const char*> figures[] = {{Figure::kTtft, "mean_ttft_ms"},
                                                    {Figure::kTpot, "mean_tpot_ms"},
                                                    {Figure::kE2e, "mean_e2el_ms"}};
  for (const auto& [figure, key] : figures) {
    const auto ms = in.Number(key, 1e-6, 1e9);
    if (ms) point.figures.push_back({figure, *ms});
  }
  for (const char* key : {"completed", "total_input_tokens", "total_output_tokens"}) {
    if (in.Find(key) == nullptr) in.Refuse(Format("/{}", key), nullptr, "a number");
  }
  if (point.figures.empty())
    in.Refuse("/mean_ttft_ms", nullptr, "it, mean_tpot_ms or mean_e2el_ms");
  if (!in.issues().empty()) return;
  RunLengths in_lengths, out_lengths;
  in_lengths.mean = std::max(1.0, *prompt / completed);
  out_lengths.mean = std::max(1.0, *output / completed);
  RunLoad run;
  run.draws = DrawRuns(std::llround(completed), load.rate_per_s, in_lengths, out_lengths,
                       load.rate_per_s > 0 ? kBenchDraws : 1);
  run.concurrency = load.concurrency;
  run.rate_per_s = load.rate_per_s;
  run.greedy = true;  // unless told otherwise, of which no result says a word
  point.run = std::make_shared<const RunLoad>(std::move(run));
  point.label = in.name();
  read.points.push_back(std::move(point));
  read.found.push_back(
      Format("{}: the means of {} requests of vllm bench serve, whose lengths are "
             "taken to be alike",
             in.name(), std::llround(completed)));
  read.warnings.push_back(
      Format("{} has no lengths of its requests; with --save-detailed a fit knows how they differ",
             in.name()));
}

// Both say the mean TTFT, one in seconds and one in milliseconds.
void CheckUnits(JsonNumbers& in, const Measurements& read) {
  if (!in.issues().empty()) return;
  const auto stated = in.Number("mean_ttft_ms", 0, 1e9);
  std::vector<double> ttfts = in.Numbers("ttfts", 0, kLongest);
  // The mean is of those that were answered; the others have a 0.
  ttfts.erase(std::remove(ttfts.begin(), ttfts.end(), 0.0), ttfts.end());
  if (!stated || *stated <= 0 || ttfts.empty() || read.points.empty()) return;
  const double mean_ms =
      1e3 * std::accumulate(ttfts.begin(), ttfts.end(), 0.0) / static_cast<double>(ttfts.size());
  if (mean_ms <= 2 * *stated && *stated <= 2 * mean_ms) return;
  in.issues().push_back(
      {in.name() + ", /ttfts", Format("found a mean of {}, allowed seconds: mean_ttft_ms is {}",
                                      ShortNumber(mean_ms * 1e-3), ShortNumber(*stated))});
}

}  // namespace

Result<Measurements> ReadBench(const Json& json, const std::string& name) {
  Measurements read;
  JsonNumbers in(json, name);
  in.Find("input_lens") != nullptr&& in.Find("ttfts") != nullptr ? AddDetailed(in, read)
                                                                 : AddSummary(in, read);
  CheckUnits(in, read);
  if (!in.issues().empty()) return Bounded(std::move(in.issues()));
  if (const Json* model = in.Find("model_id"); model != nullptr && model->is_string()) {
    read.server.model = model->get<std::string>();
  }
  if (const auto failed = in.Number("failed", 0, 1e12); failed && *failed > 0) {
    read.warnings.push_back(
        Format("{}: {} requests failed and are left out", name, NumberText(*failed)));
  }
  return read;
}

}  // namespace servecast

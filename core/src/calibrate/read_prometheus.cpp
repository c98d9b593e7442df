// Histograms of a vLLM server (GET /metrics, names as of vLLM 0.20), asked twice: what came between
// is one run. Prometheus' text has no time of its own, so the answers stand with their headers:
//   for i in 1 2; do curl -si SERVER/metrics; sleep 300; done
#include <cmath>
#include <limits>
#include <map>

#include "base/math.h"
#include "base/text.h"
#include "calibrate/measured_table.h"
#include "calibrate/readers.h"
#include "calibrate/summary_run.h"
#include "io/issues.h"

namespace servecast {
namespace {

constexpr std::string_view kPrefix = "vllm:";

// Of all label sets together.
struct Histogram {
  double sum = 0, count = 0;
  std::map<double, double> below;  // by their upper bound
};

struct Scrape {
  std::optional<std::int64_t> at_s;
  std::map<std::string, Histogram, std::less<>> histograms;
  std::string model;
};

// "Wed, 25 Nov 2026 12:00:30 GMT"
std::optional<std::int64_t> SecondsOfDate(std::string_view text) {
  constexpr std::string_view kMonths = "janfebmaraprmayjunjulaugsepoctnovdec";
  const std::vector<double> n = NumbersIn(text);
  const std::string lower = LowerCase(text);
  std::size_t month = std::string::npos;
  for (std::size_t i = 0; i < 12; ++i) {
    if (lower.find(" " + std::string(kMonths.substr(3 * i, 3)) + " ") != std::string::npos)
      month = i;
  }
  const bool good = n.size() == 5 && month != std::string::npos && n[0] >= 1 && n[0] <= 31 &&
                    n[1] >= 1970 && n[1] <= 9999 && n[2] < 24 && n[3] < 60 && n[4] < 62;
  if (!good) return std::nullopt;
  const auto whole = [&n](std::size_t i) { return std::llround(n[i]); };
  return DaysSince1970(whole(1), static_cast<std::int64_t>(month) + 1, whole(0)) * 86'400 +
         whole(2) * 3600 + whole(3) * 60 + whole(4);
}

std::string LabelOf(std::string_view labels, std::string_view name) {
  const std::size_t at = labels.find(std::string(name) + "=\"");
  if (at == std::string_view::npos) return "";
  const std::size_t begin = at + name.size() + 2;
  const std::size_t end = labels.find('"', begin);
  return end == std::string_view::npos ? "" : std::string(labels.substr(begin, end - begin));
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// "vllm:name_bucket{labels} 12"; false: the value is no number.
bool TakeLine(std::string_view line, Scrape& scrape) {
  const std::size_t brace = line.find('{'), space = line.find(' ');
  const std::string_view name =
      line.substr(kPrefix.size(), std::min(brace, space) - kPrefix.size());
  const std::size_t close = line.rfind('}');
  const bool labelled = brace != std::string_view::npos && brace < space;
  if (labelled && close == std::string_view::npos) return false;
  const std::string_view labels = labelled ? line.substr(brace, close - brace) : "";
  std::string_view rest = line.substr(labelled ? close + 1 : std::min(space, line.size()));
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  const auto value = NumberOf(rest.substr(0, rest.find(' ')));
  const struct {
    std::string_view end;
    int part;
  } ends[] = {{"_sum", 0}, {"_count", 1}, {"_bucket", 2}};
  for (const auto& each : ends) {
    if (!EndsWith(name, each.end)) continue;
    if (!value || *value < 0) return false;
    Histogram& of = scrape.histograms[std::string(name.substr(0, name.size() - each.end.size()))];
    if (each.part == 0) of.sum += *value;
    if (each.part == 1) of.count += *value;
    if (each.part == 2) {
      const std::string bound = LabelOf(labels, "le");
      const auto most = NumberOf(bound);
      of.below[most.value_or(std::numeric_limits<double>::infinity())] += *value;
    }
  }
  if (scrape.model.empty()) scrape.model = LabelOf(labels, "model_name");
  return true;
}

// The tokens that a share of the requests has at most, by the buckets between two scrapes.
double QuantileOf(const Histogram& first, const Histogram& last, double share) {
  const double all = last.count - first.count;
  double low = 0, below = 0;
  for (const auto& [bound, count] : last.below) {
    const auto at = first.below.find(bound);
    const double so_far = count - (at == first.below.end() ? 0 : at->second);
    if (so_far >= share * all) {
      if (!std::isfinite(bound)) return low;
      const double within = so_far > below ? (share * all - below) / (so_far - below) : 1;
      return low + within * (bound - low);
    }
    below = so_far;
    if (std::isfinite(bound)) low = bound;
  }
  return low;
}

class PrometheusReader {
 public:
  explicit PrometheusReader(const std::string& name) : name_(name) {}

  Result<Measurements> Read(std::string_view text) {
    ReadLines(text);
    if (!issues_.empty()) return Bounded(std::move(issues_));
    if (scrapes_.size() != 2 || !scrapes_[0].at_s || !scrapes_[1].at_s ||
        *scrapes_[1].at_s <= *scrapes_[0].at_s) {
      return Issue{name_, Format("found {} answers of /metrics with a date, allowed two, one after "
                                 "the other: for i in 1 2; do curl -si SERVER/metrics; sleep 300; "
                                 "done",
                                 scrapes_.size())};
    }
    return Run();
  }

 private:
  void ReadLines(std::string_view text) {
    std::size_t number = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      std::string_view line = text.substr(at, end - at);
      at = end + 1;
      ++number;
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      if (line.substr(0, 5) == "HTTP/") scrapes_.emplace_back();
      if (LowerCase(line.substr(0, 5)) == "date:" && !scrapes_.empty()) {
        scrapes_.back().at_s = SecondsOfDate(line.substr(5));
      }
      if (line.substr(0, kPrefix.size()) != kPrefix) continue;
      if (scrapes_.empty()) scrapes_.emplace_back();
      if (!TakeLine(line, scrapes_.back())) {
        issues_.push_back({Format("{}, line {}", name_, number),
                           "found no number behind the name, allowed Prometheus' text"});
      }
    }
  }

  const Histogram* Find(std::size_t scrape, std::string_view name) const {
    const auto at = scrapes_[scrape].histograms.find(name);
    return at == scrapes_[scrape].histograms.end() ? nullptr : &at->second;
  }

  // The mean of what came between; nullopt: nothing did.
  std::optional<double> MeanOf(std::string_view name) const {
    const Histogram *first = Find(0, name), *last = Find(1, name);
    if (last == nullptr) return std::nullopt;
    const double count = last->count - (first == nullptr ? 0 : first->count);
    const double sum = last->sum - (first == nullptr ? 0 : first->sum);
    return count > 0 && sum >= 0 ? std::optional(sum / count) : std::nullopt;
  }

  std::optional<double> MsOf(std::string_view name) const {
    const auto seconds = MeanOf(name);
    return seconds ? std::optional(*seconds * 1e3) : std::nullopt;
  }

  std::optional<RunLengths> LengthsOf(std::string_view name) {
    const auto mean = MeanOf(name);
    if (!mean || *mean < 1 || *mean > 1e7) {
      issues_.push_back({name_, Format("found no requests in vllm:{} between the answers, allowed "
                                       "one at least",
                                       name)});
      return std::nullopt;
    }
    RunLengths lengths;
    lengths.mean = *mean;
    const Histogram none;
    const Histogram* first = Find(0, name);
    const Histogram& before = first == nullptr ? none : *first;
    // Of a lognormal distribution, one standard deviation above the median.
    const double median = QuantileOf(before, *Find(1, name), 0.5);
    const double above = QuantileOf(before, *Find(1, name), 0.8413);
    if (median >= 1 && above > median) lengths.sigma = std::min(2.0, Log(above / median));
    return lengths;
  }

  Result<Measurements> Run() {
    SummaryRun run;
    run.label = name_;
    run.one_server = true;
    const auto seconds = static_cast<double>(*scrapes_[1].at_s - *scrapes_[0].at_s);
    const Histogram *first = Find(0, "e2e_request_latency_seconds"),
                    *last = Find(1, "e2e_request_latency_seconds");
    run.requests = last == nullptr ? 0 : last->count - (first == nullptr ? 0 : first->count);
    if (run.requests < 1 || run.requests > kMostRunRequests) {
      issues_.push_back({name_, Format("found {} requests in vllm:e2e_request_latency_seconds "
                                       "between the answers, allowed 1 to {}",
                                       NumberText(run.requests), NumberText(kMostRunRequests))});
    }
    run.arrivals.rate_per_s = run.requests / seconds;
    const auto prompt = LengthsOf("request_prompt_tokens");
    const auto output = LengthsOf("request_generation_tokens");
    if (!issues_.empty()) return Bounded(std::move(issues_));
    run.prompt = *prompt;
    run.output = *output;
    run.ttft_ms = MsOf("time_to_first_token_seconds");
    run.tpot_ms = MsOf("request_time_per_output_token_seconds");
    if (!run.tpot_ms) run.tpot_ms = MsOf("inter_token_latency_seconds");
    if (!run.tpot_ms) run.tpot_ms = MsOf("time_per_output_token_seconds");
    run.e2e_ms = MsOf("e2e_request_latency_seconds");
    Measurements read;
    if (Issues issues = AddSummaryRun(run, read); !issues.empty()) return issues;
    read.server.model = PlainText(scrapes_[1].model);
    read.server.engine = "vllm";
    read.found.push_back(
        Format("{}: histograms of a vLLM server, {} requests in {} s: all of it under load", name_,
               NumberText(run.requests), NumberText(seconds)));
    read.warnings.push_back(
        Format("{} has no arrivals of its requests: those of a Poisson process are assumed, and "
               "lengths of prompts and answers that have nothing to do with each other",
               name_));
    return read;
  }

  const std::string& name_;
  std::vector<Scrape> scrapes_;
  Issues issues_;
};

}  // namespace

bool IsPrometheus(std::string_view text) {
  return text.substr(0, 5) == "HTTP/" || text.substr(0, 7) == "# HELP " ||
         text.substr(0, 7) == "# TYPE " || text.substr(0, kPrefix.size()) == kPrefix;
}

Result<Measurements> ReadPrometheus(std::string_view text, const std::string& name) {
  return PrometheusReader(name).Read(text);
}

}  // namespace servecast

// Histograms of a vLLM server (GET /metrics, names as of vLLM 0.20), asked twice: what came between
// is one run. Prometheus' text has no time of its own, so the answers stand with their headers:
//   for i in 1 2; do curl -si SERVER/metrics; sleep 300; done
#include <cmath>
#include <map>

#include "base/math.h"
#include "base/text.h"
#include "calibrate/readers.h"
#include "calibrate/summary_run.h"
#include "formats/measured_table.h"
#include "formats/prometheus.h"
#include "io/issues.h"

namespace servecast {
namespace {

struct Scrape {
  std::optional<double> at_s;
  VllmMetrics metrics;
};

// "Wed, 25 Nov 2026 12:00:30 GMT"
std::optional<double> SecondsOfDate(std::string_view text) {
  constexpr std::string_view kMonths = "janfebmaraprmayjunjulaugsepoctnovdec";
  const std::vector<double> n = NumbersIn(text);
  const std::string lower = LowerCase(text);
  std::size_t month = std::string::npos;
  for (std::size_t i = 0; i < 12; ++i) {
    if (lower.find(" " + std::string(kMonths.substr(3 * i, 3)) + " ") != std::string::npos)
      month = i;
  }
  if (n.size() != 5 || month == std::string::npos) return std::nullopt;
  return SecondsSince1970({n[1], static_cast<double>(month + 1), n[0], n[2], n[3], n[4]});
}

// False: a histogram's value is no number.
bool TakeLine(std::string_view text, VllmMetrics& metrics) {
  const PrometheusLine line = PrometheusLineIn(text);
  const bool good = line.value && std::isfinite(*line.value) && *line.value >= 0;
  for (const std::string_view part : {"_sum", "_count", "_bucket"}) {
    const std::size_t at = line.name.rfind(part);
    if (!good && at != std::string_view::npos && at + part.size() == line.name.size()) return false;
  }
  metrics.Add(line);
  return line.closed;
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
    for (std::string_view line : Split(text, "\n")) {
      ++number;
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      if (line.substr(0, 5) == "HTTP/") scrapes_.emplace_back();
      if (LowerCase(line.substr(0, 5)) == "date:" && !scrapes_.empty()) {
        scrapes_.back().at_s = SecondsOfDate(line.substr(5));
      }
      if (line.substr(0, kVllmMetric.size()) != kVllmMetric) continue;
      if (scrapes_.empty()) scrapes_.emplace_back();
      if (!TakeLine(line, scrapes_.back().metrics)) {
        issues_.push_back({Format("{}, line {}", name_, number),
                           "found no number behind the name, allowed Prometheus' text"});
      }
    }
  }

  // What came between.
  double Between(std::string_view name, std::string_view part) const {
    const std::string of = Format("{}{}", name, part);
    return scrapes_[1].metrics.Sum(of) - scrapes_[0].metrics.Sum(of);
  }

  // nullopt: nothing came between.
  std::optional<double> MeanOf(std::string_view name) const {
    const double count = Between(name, "_count"), sum = Between(name, "_sum");
    return count > 0 && sum >= 0 ? std::optional(sum / count) : std::nullopt;
  }

  // The tokens that a share of the requests has at most, by the buckets.
  double QuantileOf(std::string_view name, double share) {
    const std::string buckets = Format("{}_bucket", name);
    const std::map<double, double>& first = scrapes_[0].metrics.buckets[buckets];
    const double all = Between(name, "_count");
    double low = 0, below = 0;
    for (const auto& [bound, count] : scrapes_[1].metrics.buckets[buckets]) {
      const auto at = first.find(bound);
      const double so_far = count - (at == first.end() ? 0 : at->second);
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
    // Of a lognormal distribution, one standard deviation above the median.
    const double median = QuantileOf(name, 0.5);
    const double above = QuantileOf(name, 0.8413);
    if (median >= 1 && above > median) lengths.sigma = std::min(2.0, Log(above / median));
    return lengths;
  }

  Result<Measurements> Run() {
    SummaryRun run;
    run.label = name_;
    run.one_server = true;
    const double seconds = *scrapes_[1].at_s - *scrapes_[0].at_s;
    run.requests = Between("e2e_request_latency_seconds", "_count");
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
    read.server.model = PlainText(scrapes_[1].metrics.model);
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

Result<Measurements> ReadPrometheus(std::string_view text, const std::string& name) {
  return PrometheusReader(name).Read(text);
}

}  // namespace servecast

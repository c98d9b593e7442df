// See server_figures.h.
#include "experiment/server_figures.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "base/text.h"

namespace servecast {
namespace {

struct Metric {
  std::string_view name, words;
  Distribution Report::*of;
};
constexpr Metric kMetrics[] = {{"ttft_ms", "TTFT", &Report::ttft_ms},
                               {"tpot_ms", "TPOT", &Report::tpot_ms},
                               {"itl_ms", "ITL", &Report::itl_ms},
                               {"e2e_ms", "E2E", &Report::e2e_ms}};

struct Statistic {
  std::string_view name, words;
  double Distribution::*of;
  bool is_tail;
};
constexpr Statistic kStatistics[] = {{"mean", "mean", &Distribution::mean, false},
                                     {"p50", "median", &Distribution::p50, false},
                                     {"p90", "p90", &Distribution::p90, true},
                                     {"p95", "p95", &Distribution::p95, true},
                                     {"p99", "p99", &Distribution::p99, true}};

struct Rate {
  std::string_view name, words;
  double Report::*of;
  bool counts;
};
constexpr Rate kRates[] = {
    {"requests_per_s", "requests/s", &Report::requests_per_s, true},
    {"output_tokens_per_s", "output tokens/s", &Report::output_tokens_per_s, false}};

template <class Function>
double MeanOver(const std::vector<ServerFigure>& figures,
                const std::vector<std::optional<double>>& forecasts, const Function& of) {
  double sum = 0, n = 0;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    if (!figures[i].counts || !forecasts[i] || !(*forecasts[i] > 0)) continue;
    sum += of(Log(figures[i].measured / *forecasts[i]), figures[i].is_latency);
    n += 1;
  }
  return n > 0 ? sum / n : 0;
}

}  // namespace

std::optional<double> ServerFigure::In(const Report& report) const {
  for (const Rate& rate : kRates) {
    if (rate.name == name) return report.*rate.of;
  }
  for (const Metric& metric : kMetrics) {
    for (const Statistic& statistic : kStatistics) {
      if (name != Format("{}.{}", metric.name, statistic.name)) continue;
      const Distribution& of = report.*metric.of;
      return of.n > 0 ? std::optional<double>(of.*statistic.of) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::vector<ServerFigure> FiguresOf(const std::vector<MeasuredValue>& values) {
  std::vector<ServerFigure> figures;
  const bool has_tpot = std::any_of(values.begin(), values.end(), [](const MeasuredValue& value) {
    return value.name.rfind("tpot_ms.", 0) == 0 && value.value > 0;
  });
  for (const Metric& metric : kMetrics) {
    for (const Statistic& statistic : kStatistics) {
      ServerFigure figure;
      figure.name = Format("{}.{}", metric.name, statistic.name);
      const std::optional<double> value = ValueOf(values, figure.name);
      if (!value || !(*value > 0)) continue;
      figure.words = Format("{} {}", metric.words, statistic.words);
      figure.measured = *value;
      figure.is_latency = true;
      figure.is_tail = statistic.is_tail;
      figure.is_first_token = metric.name == "ttft_ms";
      figure.counts = metric.name != "itl_ms" || !has_tpot;
      figures.push_back(std::move(figure));
    }
  }
  for (const Rate& rate : kRates) {
    const std::optional<double> value = ValueOf(values, rate.name);
    if (!value || !(*value > 0)) continue;
    ServerFigure figure;
    figure.name = rate.name;
    figure.words = rate.words;
    figure.measured = *value;
    figure.counts = rate.counts;
    figures.push_back(std::move(figure));
  }
  return figures;
}

std::optional<double> ValueOf(const std::vector<MeasuredValue>& values, std::string_view name) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [name](const MeasuredValue& each) { return each.name == name; });
  return found == values.end() ? std::nullopt : std::optional<double>(found->value);
}

double DistanceOf(const std::vector<ServerFigure>& figures,
                  const std::vector<std::optional<double>>& forecasts) {
  return MeanOver(figures, forecasts, [](double log, bool) { return std::fabs(log); });
}

double SlownessOf(const std::vector<ServerFigure>& figures,
                  const std::vector<std::optional<double>>& forecasts) {
  return MeanOver(figures, forecasts,
                  [](double log, bool is_latency) { return is_latency ? log : -log; });
}

}  // namespace servecast

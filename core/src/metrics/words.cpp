// See words.h.
#include "metrics/words.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace servecast {

namespace {

std::string InItsUnit(double ms, std::string (*text)(double)) {
  constexpr double kRounds = 999.5;
  if (ms < kRounds) return text(ms) + " ms";
  ms /= 1000;
  if (ms < kRounds) return text(ms) + " s";
  ms /= 60;
  if (ms < kRounds) return text(ms) + " min";
  return text(ms / 60) + " h";
}

std::string TwoDigits(double value) {
  if (!std::isfinite(value)) return ShortNumber(value);
  double unit = 0.01;
  while (value / unit >= 99.5) unit *= 10;
  std::string text = ShortNumber(std::round(value / unit) * unit);
  if (unit == 0.1 && text.find('.') == std::string::npos) text += ".0";
  return text;
}

}  // namespace

std::string Ms(double value) { return InItsUnit(value, ShortNumber); }

std::string MeasuredMs(double value) { return InItsUnit(value, ThreeDigits); }

std::string ThreeDigits(double value) {
  if (!std::isfinite(value)) return ShortNumber(value);
  double unit = 1;
  while (std::fabs(value) >= 999.5 * unit) unit *= 10;
  std::string text = ShortNumber(unit > 1 ? std::nearbyint(value / unit) * unit : value);
  if (text == "0") return text;
  const std::size_t dot = std::min(text.find('.'), text.size());
  const std::size_t whole = dot - (text[0] == '-' ? 1 : 0);  // a separator comes with four
  if (whole >= 3) return text;
  const std::size_t wanted = text[dot - 1] == '0' && whole == 1 ? 3 : 3 - whole;
  if (dot == text.size()) text += '.';
  while (text.size() - dot - 1 < wanted) text += '0';
  return text;
}

std::string Beyond(double ratio) {
  return ratio < 2 ? TwoDigits(100 * (ratio - 1)) + " % over"
                   : TwoDigits(ratio) + " times the limit";
}

std::string Percent(double share) { return ShortNumber(std::round(share * 1000) / 10) + " %"; }

std::string Dollars(double value) {
  if (!(value < 1000)) return "$" + ShortNumber(value);
  const auto cents = static_cast<std::int64_t>(std::nearbyint(100 * value));
  return Format("${}.{}{}", cents / 100, cents % 100 / 10, cents % 10);
}

const char* MetricName(SloMetric metric) {
  switch (metric) {
    case SloMetric::kTtft:
      return "TTFT";
    case SloMetric::kTpot:
      return "TPOT";
    case SloMetric::kItl:
      return "ITL";
    case SloMetric::kE2e:
      return "E2E";
    case SloMetric::kAttainment:
      return "attainment";
  }
  return "";
}

const char* StateName(VerdictState state) {
  switch (state) {
    case VerdictState::kMeets:
      return "meets";
    case VerdictState::kNear:
      return "near";
    case VerdictState::kMisses:
      return "misses";
    case VerdictState::kOverloaded:
      return "overloaded";
    case VerdictState::kDoesNotFit:
      return "does_not_fit";
    case VerdictState::kNotJudged:
      return "not_judged";
    case VerdictState::kNoSlo:
      return "no_slo";
    case VerdictState::kEmpty:
      return "empty";
    case VerdictState::kPartial:
      return "partial";
  }
  return "";
}

std::string Limits(const SloSpec& slo) {
  std::vector<std::string> limits;
  for (const auto& [metric, ms] : LimitsOf(slo)) {
    limits.push_back(Format("{} {}", MetricName(metric), Ms(ms)));
  }
  std::string text;
  for (std::size_t i = 0; i < limits.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == limits.size() ? " and " : ", ") + limits[i];
  }
  return text;
}

std::string Target(const SloSpec& slo) {
  if (slo.metric == SloMetric::kAttainment) {
    return Format("{} % of requests{} within {}", NumberText(slo.percentile),
                  slo.of_class.empty() ? "" : " of " + slo.of_class, Limits(slo));
  }
  return Format("{} p{} <= {}{}", MetricName(slo.metric), NumberText(slo.percentile),
                Ms(slo.limit_ms), slo.of_class.empty() ? "" : " of " + slo.of_class);
}

std::string LossText(const SloResult& result, const Report& report) {
  const bool waits = result.slo.metric != SloMetric::kTtft && report.queued + report.running > 0;
  return Format("{} of the requests were dropped{}{}{} or {}", Percent(result.unserved_share),
                report.timed_out > 0 ? ", timed out" : "", report.rejected > 0 ? ", rejected" : "",
                report.scaling.failures.lost > 0 ? ", lost with a replica" : "",
                waits ? "did not finish" : "got no token");
}

std::string Count(std::int64_t n, const char* one) {
  return Format("{} {}{}", ShortNumber(static_cast<double>(n)), one, n == 1 ? "" : "s");
}

}  // namespace servecast

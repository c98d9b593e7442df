#include "plan/token_prices.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/text.h"
#include "experiment/replications.h"
#include "metrics/words.h"
#include "plan/answers.h"
#include "plan/line.h"
#include "servecast/workload_spec.h"
#include "workload/workload.h"

namespace servecast {
namespace {

constexpr double kHoursOfMonth = 730;  // of a year with 365 days
constexpr int kRunsEach = 16;
constexpr double kConfidence = 0.95;
constexpr double kMillion = 1e6;
constexpr double kSecondsOfHour = 3600;

struct Tokens {
  double input = 0, output = 0;  // of a unit
};

// A turn that follows another belongs to its unit.
Tokens TokensOf(const RequestTable& table) {
  Tokens sum;
  double units = 0;
  for (std::size_t r = 0; r < table.arrival.size(); ++r) {
    sum.input += table.prompt_tokens[r];
    sum.output += table.output_tokens[r];
    units += table.think.empty() || table.think[r] < 0 ? 1 : 0;
  }
  return {sum.input / units, sum.output / units};
}

// Those of each seed; of a trace one, and of each second.
Result<std::vector<Tokens>> DrawTokens(const Scenario& scenario, const Trace& trace) {
  const bool replays = scenario.workload->arrivals.process == ArrivalProcess::kTrace;
  std::vector<Tokens> drawn;
  for (int i = 0; i < (replays ? 1 : kRunsEach); ++i) {
    Scenario s = scenario;
    s.seed = SeedOfRun(scenario.seed, static_cast<std::size_t>(i));
    s.workload->arrivals.start = LoadStart::kTogether;  // a unit has all of its turns
    Result<RequestTable> made = MakeRequests(s, trace);
    if (!made.ok()) return made.issues();
    const RequestTable& table = made.value();
    Tokens& tokens = drawn.emplace_back(TokensOf(table));
    if (!replays) continue;
    const auto [first, last] = std::minmax_element(table.arrival.begin(), table.arrival.end());
    const double span_s = static_cast<double>(*last - *first) / 1e9;
    if (span_s <= 0) {
      return Issues{{"/workload/arrivals",
                     "found a trace whose requests come at once, allowed one that lasts: a cost by "
                     "the hour has a rate"}};
    }
    // At the speed that the scenario plays it, so of a second as it was recorded:
    const double units = static_cast<double>(table.size()) / span_s;
    const double a_second = units / scenario.workload->arrivals.rate_scale;
    tokens = {tokens.input * a_second, tokens.output * a_second};
  }
  return drawn;
}

Interval IntervalOf(const std::vector<Tokens>& drawn, double of_input, double of_output) {
  std::vector<double> values;
  for (const Tokens& t : drawn) values.push_back(of_input * t.input + of_output * t.output);
  if (values.size() == 1) return {values[0], values[0], values[0]};
  return MeanInterval(values, kConfidence);
}

Issues IssuesOfLoad(const Scenario& scenario) {
  Issues issues;
  const std::vector<PoolSpec>& pools = scenario.cluster.pools;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    if (pools[i].hardware.value_or(scenario.hardware).price_per_gpu_hour) continue;
    issues.push_back({pools[i].hardware ? Format("/cluster/pools/{}/hardware/price_per_gpu_hour", i)
                                        : "/hardware/price_per_gpu_hour",
                      "found none, allowed $ per GPU and hour: what is compared is a cost"});
    if (!pools[i].hardware) break;
  }
  CheckIsNotCapped(scenario, issues);
  const ArrivalProcess process = scenario.workload->arrivals.process;
  if (process != ArrivalProcess::kTrace && !HasRate(process)) {
    issues.push_back({"/workload/arrivals/process",
                      "found a load that has no rate of its own, allowed a process with a rate or "
                      "a trace: tokens are paid for as they come"});
  }
  return issues;
}

void WriteInterval(std::string_view key, const Interval& value, double times, JsonWriter& out) {
  out.Key(key), out.BeginObject();
  out.Key("value"), out.Number(value.value * times);
  out.Key("low"), out.Number(value.low * times);
  out.Key("high"), out.Number(value.high * times);
  out.EndObject();
}

// With three digits, as a million tokens may cost less than a cent.
std::string ShortDollars(double value) { return "$" + ShortNumber(value); }

double TokensAnHour(const CostAnswer& a, bool with_input) {
  return a.load * kSecondsOfHour *
         ((with_input ? a.input_tokens.value : 0) + a.output_tokens.value);
}

}  // namespace

Issues IssuesOf(const TokenPrices& prices) {
  Issues issues;
  for (const auto& [name, value] :
       {std::pair{"input", prices.input}, std::pair{"output", prices.output}}) {
    if (value >= 0 && value <= kMostTokenPrice) continue;
    issues.push_back({"", Format("{}: found {}, allowed 0 to {} $ per million tokens", name,
                                 NumberText(value), NumberText(kMostTokenPrice))});
  }
  return issues;
}

Result<CostAnswer> CostOfLoad(const Scenario& scenario, const Trace& trace,
                              const TokenPrices& prices) {
  Issues issues = IssuesOf(prices);
  const Issues of_scenario = IssuesOfLoad(scenario);
  issues.insert(issues.end(), of_scenario.begin(), of_scenario.end());
  if (!issues.empty()) return issues;
  Result<std::vector<Tokens>> drawn = DrawTokens(scenario, trace);
  if (!drawn.ok()) return drawn.issues();

  CostAnswer answer;
  const Line line = *LineOf(scenario, {});
  answer.load = line.own;
  answer.unit = line.unit;
  for (const PoolSpec& pool : scenario.cluster.pools) {
    answer.own_per_hour += *pool.hardware.value_or(scenario.hardware).price_per_gpu_hour *
                           static_cast<double>(pool.Gpus());
  }
  answer.input_tokens = IntervalOf(drawn.value(), 1, 0);
  answer.output_tokens = IntervalOf(drawn.value(), 0, 1);
  if (prices.input + prices.output == 0) return answer;
  const double an_hour = kSecondsOfHour / kMillion;  // of a unit each second
  const Interval unit = IntervalOf(drawn.value(), prices.input * an_hour, prices.output * an_hour);
  answer.api_per_hour = {unit.value * answer.load, unit.low * answer.load, unit.high * answer.load};
  answer.equal_at = {answer.own_per_hour / unit.value, answer.own_per_hour / unit.high,
                     answer.own_per_hour / unit.low};
  return answer;
}

void WriteCost(const CostAnswer& a, JsonWriter& out) {
  out.Key("outcome"), out.Text(a.equal_at ? "found" : "none");
  if (a.equal_at) {
    WriteAnswer(a.equal_at->value, a.equal_at->low, a.equal_at->high, a.unit, out);
  } else {
    out.Key("answer"), out.Null();
  }
  out.Key("load"), out.Number(a.load);
  out.Key("unit"), out.Text(a.unit);
  out.Key("own"), out.BeginObject();
  out.Key("per_hour"), out.Number(a.own_per_hour);
  out.Key("per_month"), out.Number(a.own_per_hour * kHoursOfMonth);
  out.Key("per_million_tokens"), out.Number(a.own_per_hour / TokensAnHour(a, true) * kMillion);
  out.Key("per_million_output_tokens");
  out.Number(a.own_per_hour / TokensAnHour(a, false) * kMillion);
  out.EndObject();
  out.Key("api");
  if (a.api_per_hour) {
    out.BeginObject();
    WriteInterval("per_hour", *a.api_per_hour, 1, out);
    WriteInterval("per_month", *a.api_per_hour, kHoursOfMonth, out);
    out.EndObject();
  } else {
    out.Null();
  }
  WriteInterval("input_tokens", a.input_tokens, 1, out);
  WriteInterval("output_tokens", a.output_tokens, 1, out);
}

std::string CostSentence(const CostAnswer& a) {
  const std::string own =
      Format("The GPUs cost {} an hour, {} a month of {} hours", ShortDollars(a.own_per_hour),
             ShortDollars(a.own_per_hour * kHoursOfMonth), ShortNumber(kHoursOfMonth));
  const std::string load = Format("{} {}", ShortNumber(a.load), std::string(a.unit));
  if (!a.equal_at) {
    return Format("{}: {} per million tokens in and out at {}, if it is held.", own,
                  ShortDollars(a.own_per_hour / TokensAnHour(a, true) * kMillion), load);
  }
  return Format(
      "{}; at {} the same tokens bought would be {} a month. Both cost as much at {} {} ({} to "
      "{}).",
      own, load, ShortDollars(a.api_per_hour->value * kHoursOfMonth),
      ThreeDigits(a.equal_at->value), std::string(a.unit), ThreeDigits(a.equal_at->low),
      ThreeDigits(a.equal_at->high));
}

}  // namespace servecast

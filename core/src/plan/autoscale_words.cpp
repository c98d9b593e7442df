// The answer of an AutoscalePlan as JSON and as a sentence.
#include <algorithm>

#include "base/text.h"
#include "metrics/words.h"
#include "plan/answers.h"
#include "plan/autoscale.h"

namespace servecast {
namespace {

constexpr std::string_view kKinds[] = {"fixed", "schedule", "scaler"};
constexpr std::string_view kMetrics[] = {"waiting", "running", "outstanding", "kv_usage"};

void WriteFigure(std::string_view key, const AutoscaleRow::Figure& figure, JsonWriter& out) {
  out.Key(key), out.BeginObject();
  out.Key("value"), out.Number(figure.value);
  out.Key("low"), out.Number(figure.low);
  out.Key("high"), out.Number(figure.high);
  out.EndObject();
}

// What makes a scenario's scaler this one, by dotted paths.
void WriteSettings(const AutoscalePolicy& policy, JsonWriter& out) {
  const ScalingSpec& s = policy.scaling;
  const auto key = [&out](std::string_view name) {
    out.Key("cluster.scaling." + std::string(name));
  };
  out.Key("settings"), out.BeginObject();
  out.Key("cluster.pools.0.replicas"), out.Integer(policy.replicas);
  key("policy"), out.Text(s.policy);
  if (s.On()) {
    key("min_replicas"), out.Integer(s.min_replicas);
    key("max_replicas"), out.Integer(s.max_replicas);
  }
  if (s.policy == "hpa" || s.policy == "keda") {
    key("metric"), out.Text(kMetrics[static_cast<std::size_t>(s.metric)]);
  }
  for (const auto& [name, value] : s.params) key(name), out.Number(value);
  if (s.policy == "schedule") {
    key("schedule"), out.BeginArray();
    for (const std::vector<double>& row : s.schedule) {
      out.BeginArray();
      for (const double value : row) out.Number(value);
      out.EndArray();
    }
    out.EndArray();
  }
  out.EndObject();
}

void WriteTargetsOf(const AutoscaleRow& row, const Scenario& scenario, JsonWriter& out) {
  out.Key("targets"), out.BeginArray();
  for (std::size_t k = 0; k < scenario.slo.size(); ++k) {
    const bool share = scenario.slo[k].metric == SloMetric::kAttainment;
    const std::optional<AutoscaleRow::Figure> figure = row.Value(k);
    out.BeginObject();
    out.Key(share ? "share" : "value_ms"), figure ? out.Number(figure->value) : out.Null();
    out.Key("low"), figure ? out.Number(figure->low) : out.Null();
    out.Key("high"), figure ? out.Number(figure->high) : out.Null();
    out.EndObject();
  }
  out.EndArray();
}

void WriteRow(const AutoscaleRow& row, const AutoscaleAnswer& answer, const Scenario& scenario,
              JsonWriter& out) {
  out.BeginObject();
  out.Key("name"), out.Text(row.policy.name);
  out.Key("kind"), out.Text(kKinds[static_cast<std::size_t>(row.policy.kind)]);
  out.Key("state"), out.Text(StateName(StateOf(row, answer, scenario)));
  out.Key("days"), out.Integer(static_cast<std::int64_t>(row.days.size()));
  out.Key("days_met"), out.Integer(row.DaysMet());
  const AutoscaleRow::Figure hours = row.GpuHours();
  WriteFigure("gpu_hours", hours, out);
  out.Key("cost");
  answer.price_per_gpu_hour ? out.Number(hours.value * *answer.price_per_gpu_hour) : out.Null();
  out.Key("peak_replicas"), out.Integer(row.PeakUp());
  out.Key("windows_kept"), out.Number(row.WindowsKept().value);
  WriteTargetsOf(row, scenario, out);
  WriteSettings(row.policy, out);
  out.Key("at_s"), out.BeginArray();
  for (const ScalingReport::Step& step : row.steps) out.Number(step.at_s);
  out.EndArray();
  out.Key("replicas"), out.BeginArray();
  if (row.steps.empty()) out.Integer(row.policy.replicas);
  for (const ScalingReport::Step& step : row.steps) {
    out.Integer(step.starting + step.up + step.draining);
  }
  out.EndArray();
  out.EndObject();
}

void WritePlace(std::string_view key, const std::optional<std::size_t>& place, JsonWriter& out) {
  out.Key(key), place ? out.Integer(static_cast<std::int64_t>(*place)) : out.Null();
}

std::string HoursText(double hours) { return Format("{} GPU-hours", ThreeDigits(hours)); }

// "24 hours", "45 minutes".
std::string SpanText(double seconds) {
  return seconds >= 2 * 3600 ? Format("{} hours", ShortNumber(seconds / 3600))
                             : Format("{} minutes", ShortNumber(seconds / 60));
}

// "35 % less than 6 replicas throughout (48.0)".
std::string Beside(const AutoscaleRow& row, double value) {
  const double other = row.GpuHours().value;
  const bool less = value <= other;
  const std::string what = row.policy.kind == AutoscaleKind::kFixed
                               ? row.policy.name
                               : std::string("replicas by a schedule that knows the load");
  return Format("{} {} than {} ({})", Percent(less ? 1 - value / other : value / other - 1),
                less ? "less" : "more", what, ThreeDigits(other));
}

}  // namespace

void WriteAutoscale(const Scenario& scenario, const AutoscaleAnswer& answer, JsonWriter& out) {
  out.Key("outcome"), out.Text(OutcomeName(answer.outcome));
  if (answer.chosen) {
    const AutoscaleRow::Figure hours = answer.rows[*answer.chosen].GpuHours();
    WriteAnswer(hours.value, hours.low, hours.high, "GPU-hours", out);
  } else {
    out.Key("answer"), out.Null();
  }
  WritePlace("chosen", answer.chosen, out);
  WritePlace("fixed", answer.fixed, out);
  WritePlace("schedule", answer.schedule, out);
  out.Key("days"), out.Integer(answer.days);
  out.Key("span_s"), out.Number(answer.span_s);
  out.Key("cold_start_s"), out.Number(answer.cold_start_s);
  out.Key("window_s"), out.Number(kAutoscaleWindowS);
  out.Key("least_windows"), out.Number(answer.windows);
  out.Key("price_per_gpu_hour");
  answer.price_per_gpu_hour ? out.Number(*answer.price_per_gpu_hour) : out.Null();
  WriteTargets(scenario, out);
  out.Key("policies"), out.BeginArray();
  for (const AutoscaleRow& row : answer.rows) WriteRow(row, answer, scenario, out);
  out.EndArray();
  out.Key("runs"), out.Integer(answer.runs);
  out.Key("requests"), out.Integer(answer.requests);
}

std::string AutoscaleSentence(const AutoscaleAnswer& answer) {
  if (!answer.fixed) {
    return "No number of replicas keeps the targets over this load, so no scaler was tried.";
  }
  const AutoscaleRow& fixed = answer.rows[*answer.fixed];
  const double at_least = fixed.GpuHours().value;
  const std::string throughout =
      Format("{} ({} in {})", fixed.policy.name, HoursText(at_least), SpanText(answer.span_s));
  if (!answer.chosen) {
    return fixed.policy.replicas == 1
               ? throughout + " keeps the targets: there is nothing to scale."
               : "No scaler that was tried keeps the targets as well as " + throughout + ".";
  }
  const AutoscaleRow& row = answer.rows[*answer.chosen];
  const AutoscaleRow::Figure hours = row.GpuHours();
  const std::string takes = Format("{} ({} to {})", HoursText(hours.value), ThreeDigits(hours.low),
                                   ThreeDigits(hours.high));
  if (hours.high >= at_least) {
    return Format("No scaler that keeps the targets takes clearly less than {}: {} takes {}.",
                  throughout, row.policy.name, takes);
  }
  const std::string cost = answer.price_per_gpu_hour
                               ? Format(", {}", Dollars(hours.value * *answer.price_per_gpu_hour))
                               : std::string();
  std::string beside = Beside(fixed, hours.value);
  if (answer.schedule && answer.rows[*answer.schedule].GpuHours().value < hours.value) {
    beside += ", " + Beside(answer.rows[*answer.schedule], hours.value);
  }
  return Format("{} keeps the targets for {} in {}{}: {}.", row.policy.name, takes,
                SpanText(answer.span_s), cost, beside);
}

}  // namespace servecast

// The answer of an AutoscalePlan as JSON and as a sentence.
#include <algorithm>

#include "base/text.h"
#include "io/scaling_checks.h"
#include "metrics/words.h"
#include "plan/answers.h"
#include "plan/autoscale.h"
#include "serving/scaling/scaler.h"

namespace servecast {
namespace {

constexpr std::string_view kKinds[] = {"fixed", "schedule", "scaler"};

void WriteFigure(std::string_view key, const AutoscaleRow::Figure& figure, JsonWriter& out) {
  out.Key(key), out.BeginObject();
  out.Key("value"), out.Number(figure.value);
  out.Key("low"), figure.sure ? out.Number(figure.low) : out.Null();
  out.Key("high"), figure.sure ? out.Number(figure.high) : out.Null();
  out.EndObject();
}

// The member cluster.scaling of a scenario under the policy: what is not the default.
void WriteScaling(const ScalingSpec& s, JsonWriter& out) {
  out.BeginObject();
  out.Key("policy"), out.Text(s.policy);
  if (s.On()) {
    const ScalingSpec usual;
    const auto number = [&](std::string_view key, double ScalingSpec::*member) {
      if (s.*member != usual.*member) out.Key(key), out.Number(s.*member);
    };
    if (s.policy == "hpa" || s.policy == "keda") {
      out.Key("metric"), out.Text(kScalingMetricNames[static_cast<std::size_t>(s.metric)]);
    }
    if (FindScaler(s.policy).plans) {
      out.Key("optimization_target");
      out.Text(kDynamoTargetNames[static_cast<std::size_t>(s.optimization_target)]);
      out.Key("enable_load_scaling"), out.Boolean(s.enable_load_scaling);
      out.Key("enable_throughput_scaling"), out.Boolean(s.enable_throughput_scaling);
    }
    for (const ParamSpec& spec : FindScaler(s.policy).params) {
      const double value = ParamValues({&spec, 1}, s.params)[0];
      if (value != spec.fallback) out.Key(spec.name), out.Number(value);
    }
    out.Key("min_replicas"), out.Integer(s.min_replicas);
    out.Key("max_replicas"), out.Integer(s.max_replicas);
    if (!FindScaler(s.policy).plans) number("scrape_period_s", &ScalingSpec::scrape_period_s);
    number("scrape_delay_s", &ScalingSpec::scrape_delay_s);
    number("node_s", &ScalingSpec::node_s);
    number("image_s", &ScalingSpec::image_s);
    number("engine_s", &ScalingSpec::engine_s);
    number("weights_gb_s", &ScalingSpec::weights_gb_s);
  }
  if (s.policy == "schedule") {
    out.Key("schedule"), out.BeginArray();
    for (const std::vector<double>& row : s.schedule) {
      out.BeginArray();
      for (const double value : row) out.Number(value);
      out.EndArray();
    }
    out.EndArray();
  }
  out.EndObject();
}

// Members that make the scenario the one under the policy, by dotted paths.
void WriteSettings(const AutoscalePolicy& policy, JsonWriter& out) {
  out.Key("settings"), out.BeginObject();
  out.Key("cluster.pools.0.replicas"), out.Integer(policy.replicas);
  out.Key("cluster.scaling"), WriteScaling(policy.scaling, out);
  out.EndObject();
}

void WriteTargetsOf(const AutoscaleRow& row, const Scenario& scenario, JsonWriter& out) {
  out.Key("targets"), out.BeginArray();
  for (std::size_t k = 0; k < scenario.slo.size(); ++k) {
    const bool share = scenario.slo[k].metric == SloMetric::kAttainment;
    const std::optional<AutoscaleRow::Figure> figure = row.Value(k);
    out.BeginObject();
    out.Key(share ? "share" : "value_ms"), figure ? out.Number(figure->value) : out.Null();
    out.Key("low"), figure && figure->sure ? out.Number(figure->low) : out.Null();
    out.Key("high"), figure && figure->sure ? out.Number(figure->high) : out.Null();
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
  const bool of_requests =
      std::any_of(scenario.slo.begin(), scenario.slo.end(),
                  [](const SloSpec& slo) { return slo.metric != SloMetric::kItl; });
  out.Key("windows_kept"), of_requests ? out.Number(row.WindowsKept().value) : out.Null();
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

namespace {

std::string Capital(std::string text) {
  if (text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

// "8.28 GPU-hours (8.21 to 8.36)".
std::string Takes(const AutoscaleRow::Figure& hours) {
  if (!hours.sure) return HoursText(hours.value);
  return Format("{} ({} to {})", HoursText(hours.value), ThreeDigits(hours.low),
                ThreeDigits(hours.high));
}

// The cheapest of a kind that keeps the targets; null: none.
const AutoscaleRow* Cheapest(AutoscaleKind kind, const AutoscaleAnswer& answer,
                             const Scenario& scenario) {
  const AutoscaleRow* found = nullptr;
  for (const AutoscaleRow& row : answer.rows) {
    if (row.policy.kind != kind) continue;
    if (StateOf(row, answer, scenario) != VerdictState::kMeets) continue;
    if (found == nullptr || row.GpuHours().value < found->GpuHours().value) found = &row;
  }
  return found;
}

}  // namespace

std::string AutoscaleSentence(const Scenario& scenario, const AutoscaleAnswer& answer) {
  if (!answer.fixed) {
    return "No number of replicas keeps the targets over this load, so no scaler was tried.";
  }
  const AutoscaleRow& fixed = answer.rows[*answer.fixed];
  const double throughout_hours = fixed.GpuHours().value;
  const std::string throughout = Format("{} ({} in {})", fixed.policy.name,
                                        HoursText(throughout_hours), SpanText(answer.span_s));
  std::string knows;
  if (answer.schedule) {
    knows = Format("; replicas by a schedule that knows the load take {}",
                   Takes(answer.rows[*answer.schedule].GpuHours()));
  }
  const std::string once =
      answer.days == 1 ? " Each is one run of the trace: how sure that is, nobody knows." : "";
  if (!answer.chosen) {
    const AutoscaleRow* cheapest = Cheapest(AutoscaleKind::kScaler, answer, scenario);
    if (cheapest == nullptr && fixed.policy.replicas == 1) {
      return throughout + " keeps the targets: there is nothing to scale." + once;
    }
    return cheapest == nullptr
               ? Format("No scaler that was tried keeps the targets as {} do{}.{}", throughout,
                        knows, once)
               : Format(
                     "No scaler that keeps the targets takes clearly less than {}: the "
                     "cheapest, {}, takes {}{}.{}",
                     throughout, cheapest->policy.name, Takes(cheapest->GpuHours()), knows, once);
  }
  const AutoscaleRow& row = answer.rows[*answer.chosen];
  const AutoscaleRow::Figure hours = row.GpuHours();
  const std::string cost = answer.price_per_gpu_hour
                               ? Format(", {}", Dollars(hours.value * *answer.price_per_gpu_hour))
                               : std::string();
  return Format("{} keeps the targets for {} in {}{}: {} less than {} ({}){}.{}",
                Capital(row.policy.name), Takes(hours), SpanText(answer.span_s), cost,
                Percent(1 - hours.value / throughout_hours), fixed.policy.name,
                ThreeDigits(throughout_hours), knows, once);
}

}  // namespace servecast

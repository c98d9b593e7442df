// See answers.h.
#include "plan/answers.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/text.h"
#include "experiment/advise.h"
#include "metrics/words.h"
#include "servecast/workload_spec.h"

namespace servecast {

const char* OutcomeName(PlanOutcome outcome) {
  switch (outcome) {
    case PlanOutcome::kFound:
      return "found";
    case PlanOutcome::kNone:
      return "none";
    case PlanOutcome::kUnbounded:
      return "unbounded";
    case PlanOutcome::kUnknown:
      break;
  }
  return "unknown";
}

std::string NeverSentence(const Scenario& scenario, const std::optional<NeverKept>& never,
                          std::string_view nothing, const std::optional<std::size_t>& missed) {
  if (!never && missed) return Format("{} meets {}.", nothing, Target(scenario.slo[*missed]));
  if (!never) return Format("{} keeps the targets.", nothing);
  const SloSpec& slo = scenario.slo[never->target];
  const std::string of = slo.of_class.empty() ? "" : " of " + slo.of_class;
  return Format(
      "{} keeps {}: {} of the prompts{} are longer than the engine accepts and are dropped, and "
      "the target allows {}.",
      nothing, Target(slo), Percent(never->dropped_share), of, Percent(1 - slo.percentile / 100));
}

namespace {

// What happens to a replica by chance once in a longer time than a run lasts; "": nothing.
std::string RareWords(const Scenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  const WorkloadSpec& workload = *scenario.workload;
  double span_s = scenario.measure.horizon_s.value_or(0);
  if (span_s == 0 && HasRate(workload.arrivals.process)) {
    span_s = static_cast<double>(workload.requests) / workload.arrivals.rate_per_s;
  }
  const auto rare = [span_s](const char* what, double every_s) {
    return span_s == 0 || every_s < span_s
               ? std::string()
               : Format(
                     " A replica {} every {} s in the mean and a run lasts {} s, so runs differ "
                     "in how often it happens: longer runs (workload.requests) tell more.",
                     what, ShortNumber(every_s), ShortNumber(span_s));
  };
  const SlowdownSpec& slow = cluster.slowdowns;
  std::string words;
  if (slow.mean_gap_s) words = rare("is slow", *slow.mean_gap_s + slow.for_s.value_or(0));
  const FailureSpec& failures = cluster.failures;
  if (failures.mtbf_s) words += rare("fails", *failures.mtbf_s + failures.restart_s);
  return words;
}

double ShareLost(const SloSpec& slo, const PlanTarget& target) {
  return target.unserved_share / std::max(1e-9, 1 - slo.percentile / 100);
}

// How much of its limit the target takes, by its value or by who was lost; nullopt: none of its
// requests ended.
std::optional<double> ShareOfLimit(const SloSpec& slo, const PlanTarget& target) {
  const double lost = ShareLost(slo, target);
  if (slo.metric == SloMetric::kAttainment) return lost;
  return target.value ? std::optional(std::max(lost, *target.value / slo.limit_ms)) : std::nullopt;
}

}  // namespace

std::string ReplicasInWords(const std::vector<PoolSpec>& pools) {
  std::string words;
  for (std::size_t i = 0; i < pools.size(); ++i) {
    words += (i == 0 ? "" : " and ") + Count(pools[i].replicas, "replica") + OfPool(pools, i);
  }
  return words;
}

std::string UnsureSentence(const Scenario& scenario, const PlanPoint* closest,
                           std::string_view place) {
  std::optional<std::size_t> worst;
  for (std::size_t k = 0; closest != nullptr && k < closest->targets.size(); ++k) {
    const auto share = ShareOfLimit(scenario.slo[k], closest->targets[k]);
    if (!share) return kTooFew;
    if (!worst || *share > *ShareOfLimit(scenario.slo[*worst], closest->targets[*worst])) worst = k;
  }
  if (!worst) return kTooFew;
  const SloSpec& slo = scenario.slo[*worst];
  const PlanTarget& target = closest->targets[*worst];
  const std::string between =
      target.low && target.high
          ? Format(" ({} to {})", MeasuredMs(*target.low), MeasuredMs(*target.high))
          : "";
  const std::string value = slo.metric == SloMetric::kAttainment
                                ? Percent(1 - target.unserved_share) + " of requests"
                            : ShareLost(slo, target) > *target.value / slo.limit_ms
                                ? Percent(target.unserved_share) + " of requests without an answer"
                                : MeasuredMs(*target.value) + between;
  return Format("Too close to call wherever it was tried; closest is {}: {} for {}.{}", place,
                value, Target(slo), RareWords(scenario));
}

void WriteAnswer(double value, double low, double high, std::string_view unit, JsonWriter& out) {
  out.Key("answer"), out.BeginObject();
  out.Key("value"), out.Number(value);
  out.Key("low"), out.Number(low);
  out.Key("high"), out.Number(high);
  out.Key("unit"), out.Text(unit);
  out.EndObject();
}

void WriteTargets(const Scenario& scenario, JsonWriter& out) {
  out.Key("targets"), out.BeginArray();
  for (const SloSpec& slo : scenario.slo) {
    out.BeginObject();
    out.Key("name"), out.Text(Target(slo));
    out.Key("limit_ms");
    slo.metric == SloMetric::kAttainment ? out.Null() : out.Number(slo.limit_ms);
    out.Key("least_share");
    slo.metric == SloMetric::kAttainment ? out.Number(slo.percentile / 100) : out.Null();
    out.EndObject();
  }
  out.EndArray();
}

namespace {

void WriteNumber(std::string_view key, const std::optional<double>& value, JsonWriter& out) {
  out.Key(key), value ? out.Number(*value) : out.Null();
}

std::string BindingOf(const Scenario& scenario, const std::optional<std::size_t>& target) {
  return target ? Target(scenario.slo[*target]) : "capacity";
}

void WriteTarget(const SloSpec& slo, const PlanTarget& target, JsonWriter& out) {
  out.BeginObject();
  if (slo.metric == SloMetric::kAttainment) {
    out.Key("share"), out.Number(1 - target.unserved_share);
  } else {
    WriteNumber("value_ms", target.value, out);
    WriteNumber("low", target.low, out);
    WriteNumber("high", target.high, out);
    out.Key("unserved_share"), out.Number(target.unserved_share);
  }
  out.EndObject();
}

void WritePoint(const Scenario& scenario, const PlanPoint& point, JsonWriter& out) {
  out.BeginObject();
  out.Key("at"), out.Number(point.at);
  out.Key("runs"), out.Integer(point.runs);
  out.Key("overloaded"), out.Boolean(point.overloaded);
  out.Key("strain"), out.Number(point.strain);
  out.Key("requests_per_s"), out.Number(point.requests_per_s);
  out.Key("goodput_per_s"), out.Number(point.goodput_per_s);
  out.Key("slo"), out.BeginArray();
  for (std::size_t k = 0; k < point.targets.size(); ++k) {
    WriteTarget(scenario.slo[k], point.targets[k], out);
  }
  out.EndArray();
  out.EndObject();
}

void WriteCurve(const Scenario& scenario, const std::vector<PlanPoint>& curve, JsonWriter& out) {
  out.Key("curve"), out.BeginArray();
  for (const PlanPoint& point : curve) WritePoint(scenario, point, out);
  out.EndArray();
}

void WritePool(const Scenario& scenario, std::size_t index, const FleetAnswer::Pool& pool,
               JsonWriter& out) {
  const PoolSpec& spec = scenario.cluster.pools[index];
  out.BeginObject();
  out.Key("name"), out.Text(spec.name);
  out.Key("role"), out.Text(RoleName(spec.role));
  out.Key("replicas"), out.Integer(pool.replicas);
  out.Key("low"), out.Integer(pool.low);
  out.Key("high"), out.Integer(pool.high);
  out.Key("gpus"), out.Integer(pool.replicas * pool.gpus_per_replica);
  const HardwareSpec& hardware = spec.hardware ? *spec.hardware : scenario.hardware;
  WriteNumber("price_per_gpu_hour", hardware.price_per_gpu_hour, out);
  out.Key("least_replicas_by_compute"), out.Number(pool.least_by_compute);
  out.Key("least_replicas_by_bandwidth"), out.Number(pool.least_by_bandwidth);
  WriteCurve(scenario, pool.curve, out);
  out.EndObject();
}

std::string DateOf(std::int64_t month) {
  const std::string year = std::to_string(month / 12);
  const std::int64_t of_year = month % 12 + 1;
  return Format("{}{}-{}{}", std::string(year.size() < 4 ? 4 - year.size() : 0, '0'), year,
                of_year < 10 ? "0" : "", of_year);
}

void WriteStep(const GrowthStep& step, const std::optional<std::int64_t>& from, JsonWriter& out) {
  out.BeginObject();
  out.Key("replicas"), out.Integer(step.replicas);
  out.Key("gpus"), out.Integer(step.gpus);
  out.Key("needed_from_month"), out.Integer(step.from_month);
  if (from) out.Key("needed_from"), out.Text(DateOf(*from + step.from_month));
  out.Key("outcome"), out.Text(OutcomeName(step.most.outcome));
  if (step.most.outcome == PlanOutcome::kFound) {
    WriteAnswer(step.most.value, step.most.low, step.most.high, step.most.unit, out);
    out.Key("until_month"), out.Integer(step.until_month);
    out.Key("until_month_low"), out.Integer(step.low_month);
    out.Key("until_month_high"), out.Integer(step.high_month);
    out.Key("months"), out.Number(step.months);
    out.Key("months_low"), out.Number(step.low_months);
    out.Key("months_high"), out.Number(step.high_months);
  } else {
    out.Key("answer"), out.Null();
  }
  out.EndObject();
}

}  // namespace

void WriteMaxRate(const Scenario& scenario, const PlanAnswer& answer, JsonWriter& out) {
  out.Key("outcome"), out.Text(OutcomeName(answer.outcome));
  if (answer.outcome == PlanOutcome::kFound) {
    WriteAnswer(answer.value, answer.low, answer.high, answer.unit, out);
  } else {
    out.Key("answer"), out.Null();
  }
  out.Key("binding");
  answer.outcome == PlanOutcome::kUnbounded || answer.outcome == PlanOutcome::kUnknown
      ? out.Null()
      : out.Text(BindingOf(scenario, answer.binding));
  out.Key("monotone"), out.Boolean(answer.monotone);
  WriteNumber("knee", answer.knee, out);
  WriteTargets(scenario, out);
  WriteCurve(scenario, answer.curve, out);
  out.Key("runs"), out.Integer(answer.runs);
  out.Key("requests"), out.Integer(answer.requests);
}

std::string MaxRateSentence(const Scenario& scenario, const PlanAnswer& answer) {
  switch (answer.outcome) {
    case PlanOutcome::kFound:
      return Format("Keeps its targets up to {} {} ({} to {}); {} ends it.",
                    ThreeDigits(answer.value), answer.unit, ThreeDigits(answer.low),
                    ThreeDigits(answer.high), BindingOf(scenario, answer.binding));
    case PlanOutcome::kNone:
      return NeverSentence(scenario, answer.never, "No load", answer.binding);
    case PlanOutcome::kUnbounded:
      return answer.curve.empty()
                 ? "Keeps its targets at every load that was tried."
                 : Format("Keeps its targets at every load that was tried, up to {} {}.",
                          ShortNumber(answer.curve.back().at), answer.unit);
    case PlanOutcome::kUnknown:
      break;
  }
  const auto closest =
      std::min_element(answer.curve.begin(), answer.curve.end(),
                       [](const auto& a, const auto& b) { return a.strain < b.strain; });
  if (closest == answer.curve.end()) return kTooFew;
  return UnsureSentence(scenario, &*closest,
                        Format("{} {}", ThreeDigits(closest->at), answer.unit));
}

void WriteMinGpus(const Scenario& scenario, const FleetAnswer& answer, JsonWriter& out) {
  const bool found = answer.outcome == PlanOutcome::kFound;
  out.Key("outcome"), out.Text(OutcomeName(answer.outcome));
  if (found) {
    const auto number = [](std::int64_t n) { return static_cast<double>(n); };
    WriteAnswer(number(answer.Gpus()), number(answer.LowGpus()), number(answer.HighGpus()), "GPUs",
                out);
  } else {
    out.Key("answer"), out.Null();
  }
  out.Key("least_gpus"), found ? out.Number(answer.LeastGpus()) : out.Null();
  out.Key("binding");
  if (found || answer.binding) {
    out.Text(BindingOf(scenario, answer.binding));
  } else {
    answer.never ? out.Text(Target(scenario.slo[answer.never->target])) : out.Null();
  }
  WriteTargets(scenario, out);
  out.Key("pools"), out.BeginArray();
  for (std::size_t i = 0; i < answer.pools.size(); ++i) {
    WritePool(scenario, i, answer.pools[i], out);
  }
  out.EndArray();
  out.Key("refused"), answer.refused.empty() ? out.Null() : out.Text(answer.refused);
  out.Key("runs"), out.Integer(answer.runs);
  out.Key("requests"), out.Integer(answer.requests);
}

std::string MinGpusSentence(const Scenario& scenario, const FleetAnswer& answer) {
  if (answer.outcome == PlanOutcome::kNone) {
    return answer.never || answer.refused.empty()
               ? NeverSentence(scenario, answer.never, "No number of replicas", answer.binding)
               : "No number of replicas that can run keeps the targets: " + answer.refused + ".";
  }
  std::vector<PoolSpec> pools = scenario.cluster.pools;
  if (answer.outcome != PlanOutcome::kFound) {
    if (!answer.closest) return UnsureSentence(scenario, nullptr, "");
    for (std::size_t i = 0; i < pools.size(); ++i) pools[i].replicas = answer.closest_replicas[i];
    return UnsureSentence(scenario, &*answer.closest, ReplicasInWords(pools));
  }
  for (std::size_t i = 0; i < pools.size(); ++i) pools[i].replicas = answer.pools[i].replicas;
  const bool least = std::all_of(answer.pools.begin(), answer.pools.end(),
                                 [](const auto& pool) { return pool.replicas == 1; });
  const std::int64_t low = answer.LowGpus();
  const bool lowest = std::all_of(answer.pools.begin(), answer.pools.end(),
                                  [](const auto& pool) { return pool.low == 1; });
  const std::string than = low < answer.Gpus() ? Format(" than {}", low) : "";
  const std::string fewer =
      least || lowest ? ""
                      : "; with fewer" + than + ", " +
                            (answer.binding ? Target(scenario.slo[*answer.binding]) + " is missed"
                                            : std::string("the load is more than is served"));
  const std::string bound =
      answer.LeastGpus() > 0
          ? Format(" No system could do with less than {} GPUs.", ShortNumber(answer.LeastGpus()))
          : "";
  return Format("{} GPU{} ({} to {}): {}{}.{}", answer.Gpus(), answer.Gpus() == 1 ? "" : "s",
                answer.LowGpus(), answer.HighGpus(), ReplicasInWords(pools), fewer, bound);
}

void WriteGrowth(const std::vector<GrowthStep>& steps, const GrowthAsked& asked, JsonWriter& out) {
  const GrowthStep& now = steps.front();
  const bool found = now.most.outcome == PlanOutcome::kFound;
  out.Key("outcome"), out.Text(OutcomeName(now.most.outcome));
  if (found) {
    const auto number = [](std::int64_t n) { return static_cast<double>(n); };
    WriteAnswer(number(now.until_month), number(now.low_month), number(now.high_month), "months",
                out);
  } else {
    out.Key("answer"), out.Null();
  }
  out.Key("load"), out.Number(asked.load);
  out.Key("growth_per_month"), out.Number(asked.growth);
  out.Key("looks_ahead_months"), out.Integer(asked.months);
  out.Key("schedule"), out.BeginArray();
  for (const GrowthStep& step : steps) WriteStep(step, asked.from, out);
  out.EndArray();
}

std::string GrowthSentence(const Scenario& scenario, const std::vector<GrowthStep>& steps,
                           const GrowthAsked& asked) {
  const GrowthStep& now = steps.front();
  switch (now.most.outcome) {
    case PlanOutcome::kFound:
      break;
    case PlanOutcome::kNone:
      return NeverSentence(scenario, now.most.never, "No load", now.most.binding);
    case PlanOutcome::kUnbounded:
      return "The targets hold at every load that was tried.";
    case PlanOutcome::kUnknown:
      return MaxRateSentence(scenario, now.most);
  }
  const bool more = steps.size() > 1;
  if (now.until_month < 0) {
    return "The targets are missed at today's load already" +
           (more ? Format(": {} GPUs are needed now.", steps[1].gpus) : std::string("."));
  }
  if (now.until_month >= asked.months) {
    return Format("The targets hold for {} ahead.", Count(asked.months, "month"));
  }
  const std::int64_t breaks = now.until_month + 1;
  const std::string between =
      now.low_month == now.high_month
          ? ""
          : Format(" (month {} to {})", now.low_month + 1, now.high_month + 1);
  return Format("The targets break {}{}{}",
                asked.from ? Format("in {}, {} from now", DateOf(*asked.from + breaks),
                                    Count(breaks, "month"))
                           : Format("in month {}", breaks),
                between, more ? Format(": {} GPUs are needed then.", steps[1].gpus) : ".");
}

void WriteDrills(const DrillReports& drills, const std::vector<Drill>& all, JsonWriter& out) {
  out.Key("drills"), out.BeginArray();
  for (const auto& [name, report] : drills) {
    out.BeginObject();
    out.Key("drill"), out.Text(name);
    out.Key("report"), out.Raw(ReportJson(report, ReportParts::kSummary));
    out.EndObject();
  }
  out.EndArray();
  out.Key("not_run"), out.BeginArray();
  for (const Drill& drill : all) {
    if (drill.not_run.empty()) continue;
    out.BeginObject();
    out.Key("drill"), out.Text(drill.name);
    out.Key("reason"), out.Text(drill.not_run);
    out.EndObject();
  }
  out.EndArray();
}

std::string DrillsSentence(const DrillReports& drills, const std::vector<Drill>& all) {
  std::string lines;
  for (const auto& [name, report] : drills) lines += name + ": " + report.verdict.sentence + '\n';
  for (const Drill& drill : all) {
    if (!drill.not_run.empty()) lines += drill.name + ": not run: " + drill.not_run + ".\n";
  }
  if (!lines.empty()) lines.pop_back();
  return lines;
}

}  // namespace servecast

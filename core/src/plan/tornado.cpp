// See tornado.h.
#include "plan/tornado.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/text.h"
#include "experiment/limits.h"
#include "metrics/words.h"
#include "plan/line.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

constexpr double kBeyondAll = std::numeric_limits<double>::infinity();
constexpr std::size_t kNamedAtMost = 3;  // inputs that the sentence has

std::int64_t Times(std::int64_t tokens, double factor) {
  return std::max<std::int64_t>(1, std::llrint(static_cast<double>(tokens) * factor));
}

// Every length that may be drawn, times so much.
void Scale(LengthSpec& l, double factor) {
  l.value = Times(l.value, factor);
  l.min = Times(l.min, factor);
  if (l.max) l.max = Times(*l.max, factor);
  for (double* figure : {&l.mean, &l.stddev, &l.median, &l.p99, &l.scale}) *figure *= factor;
  for (auto& point : l.quantiles) point[1] = std::max(1.0, point[1] * factor);
}

// Outputs that are a share of their prompts go with these, and are scaled by the share.
void ScaleOutputs(LengthSpec& l, double factor) {
  Scale(l, factor);
  l.ratio /= factor;
}

Scenario WithLengths(const Scenario& scenario, bool outputs, double factor) {
  Scenario s = scenario;
  WorkloadSpec& w = *s.workload;
  outputs ? ScaleOutputs(w.output_tokens, factor) : Scale(w.prompt_tokens, factor);
  for (ClassSpec& c : w.classes) {
    outputs ? ScaleOutputs(c.output_tokens, factor) : Scale(c.prompt_tokens, factor);
  }
  return s;
}

std::optional<double> ValueOf(const SloResult& slo) {
  if (slo.unbounded) return std::nullopt;
  return slo.slo.metric == SloMetric::kAttainment ? slo.share : slo.value_ms;
}

// nullopt: it did not run; infinite: it grows without limit.
std::optional<double> ValueOf(const TurnedSide& side, std::size_t target) {
  if (!side.report) return std::nullopt;
  const SloResult& slo = side.report->slo[target];
  if (slo.unbounded) return kBeyondAll;
  return ValueOf(slo);
}

double SwingOf(const Swing& swing, const Report& as_it_is, std::size_t target) {
  const double own = ValueOf(as_it_is.slo[target]).value_or(0);
  const auto off = [&](const TurnedSide& side) {
    return std::abs(ValueOf(side, target).value_or(own) - own);
  };
  return std::max(off(swing.less), off(swing.more));
}

void BySwing(std::vector<Swing>& swings, const Report& as_it_is, std::size_t target) {
  std::stable_sort(swings.begin(), swings.end(), [&](const Swing& a, const Swing& b) {
    return SwingOf(a, as_it_is, target) > SwingOf(b, as_it_is, target);
  });
}

void WriteResult(const Report& report, std::size_t target, JsonWriter& out) {
  const SloResult& slo = report.slo[target];
  const bool share = slo.slo.metric == SloMetric::kAttainment;
  const auto number = [&](std::string_view key, const std::optional<double>& value) {
    out.Key(key), value && !slo.unbounded ? out.Number(*value) : out.Null();
  };
  out.BeginObject();
  out.Key("state"), out.Text(StateName(report.verdict.state));
  number("value", share ? slo.share : slo.value_ms);
  number("low", share ? slo.low_share : slo.low_ms);
  number("high", share ? slo.high_share : slo.high_ms);
  out.Key("unbounded"), out.Boolean(slo.unbounded);
  out.EndObject();
}

void WriteSide(const TurnedSide& side, std::size_t target, JsonWriter& out) {
  if (side.report) return WriteResult(*side.report, target, out);
  if (side.issues.empty()) return out.Null();
  out.BeginObject();
  out.Key("state"), out.Text("cannot_run");
  out.Key("reason"), out.Text(side.issues[0].message);
  out.EndObject();
}

std::string SideText(const TurnedSide& side, std::size_t target) {
  if (!side.report) return "cannot run";
  const std::optional<double> value = ValueOf(side, target);
  if (!value) return "no sample";
  if (std::isinf(*value)) return "without limit";
  return side.report->slo[target].slo.metric == SloMetric::kAttainment ? Percent(*value)
                                                                       : MeasuredMs(*value);
}

}  // namespace

std::vector<Turn> TurnsOf(const Scenario& scenario, const Report& report) {
  std::vector<Turn> turns;
  const auto add = [&](std::string_view input, auto with) {
    for (const double factor : {1 - kTurn, 1 + kTurn}) {
      turns.push_back({std::string(input), factor > 1, with(factor)});
    }
  };
  const PlanOptions of_load;
  if (const std::optional<Line> line = LineOf(scenario, of_load)) {
    add("load", [&](double factor) {
      double at = line->own * factor;
      if (line->step > 0) at = std::max(line->least, std::nearbyint(at));
      return ScenarioAt(scenario, of_load, at);
    });
  }
  add("prompt length", [&](double factor) { return WithLengths(scenario, false, factor); });
  add("output length", [&](double factor) { return WithLengths(scenario, true, factor); });
  for (const Resource& resource : ResourcesOf(scenario)) {
    add(resource.words, [&](double factor) {
      Scenario s = scenario;
      resource.change(s, factor, report);
      return s;
    });
  }
  return turns;
}

std::size_t TornadoTarget(const Report& as_it_is) {
  std::size_t closest = 0;
  const auto margin = [&](std::size_t k) {
    const SloResult& slo = as_it_is.slo[k];
    return slo.unbounded ? -kBeyondAll : slo.margin.value_or(kBeyondAll);
  };
  for (std::size_t k = 1; k < as_it_is.slo.size(); ++k) {
    if (margin(k) < margin(closest)) closest = k;
  }
  return closest;
}

void WriteTornado(const Report& as_it_is, std::vector<Swing> swings, JsonWriter& out) {
  const std::size_t target = TornadoTarget(as_it_is);
  const SloSpec& slo = as_it_is.slo[target].slo;
  const bool share = slo.metric == SloMetric::kAttainment;
  BySwing(swings, as_it_is, target);
  out.Key("target"), out.Text(Target(slo));
  out.Key("limit"), out.Number(share ? slo.percentile / 100 : slo.limit_ms);
  out.Key("unit"), out.Text(share ? "share" : "ms");
  out.Key("turned_by"), out.Number(kTurn);
  out.Key("as_it_is"), WriteResult(as_it_is, target, out);
  out.Key("inputs"), out.BeginArray();
  for (const Swing& swing : swings) {
    out.BeginObject();
    out.Key("input"), out.Text(swing.input);
    out.Key("less"), WriteSide(swing.less, target, out);
    out.Key("more"), WriteSide(swing.more, target, out);
    out.EndObject();
  }
  out.EndArray();
}

std::string TornadoSentence(const Report& as_it_is, std::vector<Swing> swings) {
  const std::size_t target = TornadoTarget(as_it_is);
  BySwing(swings, as_it_is, target);
  std::string said;
  std::size_t named = 0;
  for (const Swing& swing : swings) {
    if (named == kNamedAtMost || SwingOf(swing, as_it_is, target) == 0) break;
    said += Format("{}{} ({} with 20 % less, {} with 20 % more)", named == 0 ? "" : "; ",
                   swing.input, SideText(swing.less, target), SideText(swing.more, target));
    ++named;
  }
  const std::string own = SideText({as_it_is, {}}, target);
  if (named == 0)
    return Format("{}, {}: no input moves it.", Target(as_it_is.slo[target].slo), own);
  return Format("{}, {}, moves most with {}.", Target(as_it_is.slo[target].slo), own, said);
}

}  // namespace servecast

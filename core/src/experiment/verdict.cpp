// The findings of an experiment in words: what serves what, whether it meets its targets at that
// load, the target that decides, and how sure that is.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/text.h"
#include "experiment/findings.h"
#include "experiment/verdict_text.h"
#include "metrics/summarize.h"
#include "metrics/targets.h"
#include "metrics/unseen.h"
#include "metrics/words.h"
#include "servecast/workload_spec.h"

namespace servecast {
namespace {

constexpr double kMuchUsed = 0.7;  // utilization; above 0.9 where a knee is near

constexpr double kSecond = 1e9;  // ns

// "H100" of "H100 SXM 80 GB": the form and the memory are said elsewhere.
std::string ShortGpu(const std::string& name) {
  std::string text = name;
  const auto ends = [&text](std::string_view with) {
    return text.size() > with.size() &&
           text.compare(text.size() - with.size(), with.size(), with) == 0;
  };
  if (ends(" GB")) {
    const std::size_t space = text.find_last_of(' ', text.size() - 4);
    if (space != std::string::npos && space > 0) text.resize(space);
  }
  for (const std::string_view form : {" SXM", " PCIe"}) {
    if (ends(form)) text.resize(text.size() - form.size());
  }
  return text;
}

// That a scaler may use.
std::int64_t MostGpus(const ScalingSpec& scaling) {
  if (scaling.policy != "dynamo") return INT64_MAX;  // parameters have their defaults anyway
  const auto budget = scaling.params.find("max_gpu_budget");
  return budget == scaling.params.end() || budget->second < 0
             ? INT64_MAX
             : static_cast<std::int64_t>(budget->second);
}

// "Llama-3.1-8B on 1 x H100"; with a scaler "on up to 4 x H100".
std::string Subject(const Scenario& s) {
  const bool scaled = s.cluster.Scales();
  std::vector<std::pair<std::string, std::int64_t>> gpus;
  for (const PoolSpec& pool : s.cluster.pools) {
    const std::string name = ShortGpu((pool.hardware ? *pool.hardware : s.hardware).name);
    const std::int64_t count = std::min(s.cluster.MostReplicas(pool) * pool.GpusOfReplica(),
                                        MostGpus(s.cluster.ScalingOf(pool)));
    const auto same = std::find_if(gpus.begin(), gpus.end(),
                                   [&name](const auto& gpu) { return gpu.first == name; });
    if (same == gpus.end()) {
      gpus.emplace_back(name, count);
    } else {
      same->second += count;
    }
  }
  const bool share = std::none_of(s.cluster.pools.begin(), s.cluster.pools.end(),
                                  [](const PoolSpec& pool) { return pool.scaling.has_value(); });
  if (share && gpus.size() == 1) {
    gpus[0].second = std::min(gpus[0].second, MostGpus(s.cluster.scaling));
  }
  std::string text = s.model.name.empty() ? "The model" : s.model.name;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    text += Format("{}{} x {}",
                   i > 0    ? " and "
                   : scaled ? " on up to "
                            : " on ",
                   gpus[i].second, gpus[i].first.empty() ? "its GPU" : gpus[i].first);
  }
  return text;
}

std::string PerSecond(double rate) { return ShortNumber(rate) + " req/s"; }

// The rate that the document states, where it is that of requests.
std::optional<double> StatedRate(const Scenario& s) {
  const ArrivalSpec& a = s.workload->arrivals;
  const bool plain = std::none_of(
      s.workload->classes.begin(), s.workload->classes.end(),
      [](const ClassSpec& c) { return c.rate_per_s.has_value() || c.turns.value_or(1) > 1; });
  if (!HasRate(a.process) || a.profile != RateProfile::kFlat || !a.spikes.empty() || !plain ||
      s.workload->sessions.turns > 1) {
    return std::nullopt;
  }
  return a.rate_per_s;
}

// Of clients that hold back, with what is completed where that is less than is offered.
std::string Capped(const ArrivalSpec& a, double completed, std::optional<double> offered) {
  if (!CapsClients(a)) return "";
  constexpr double kLess = 0.97;  // of chance and of a run's ends
  std::string text = Format(" with at most {} in flight", *a.max_concurrency);
  if (!offered || completed < kLess * *offered) {
    text += Format(" ({} completed)", PerSecond(completed));
  }
  return text;
}

std::string LoadOf(const Scenario& s, const Report& r, const Unseen& unseen) {
  const ArrivalSpec& a = s.workload->arrivals;
  const std::optional<double> rate = StatedRate(s);
  const std::string capped = Capped(a, r.requests_per_s, rate);
  if (rate) return " at " + PerSecond(*rate) + capped;
  if (a.process == ArrivalProcess::kClosedLoop) return " with " + Count(a.concurrency, "client");
  if (a.process == ArrivalProcess::kStatic)
    return " with " + Count(r.arrived, "request") + " at once";
  if (a.process == ArrivalProcess::kTrace) return " under this trace";
  if (s.workload->sessions.turns > 1 && a.profile == RateProfile::kFlat && a.spikes.empty()) {
    return Format(" at {} conversations/s", ShortNumber(a.rate_per_s));
  }
  if (unseen.load.empty()) return " under this load" + capped;
  return Format(" under the first {} of this load", MeasuredMs(r.simulated_s * 1e3)) + capped;
}

// " at 40 req/s", " at 40 req/s, before the failure at 16.7 min".
std::string Load(const Scenario& s, const Report& r) {
  const Unseen unseen = r.finished ? UnseenOf(s, r.simulated_s) : Unseen{};
  const std::string load = LoadOf(s, r, unseen);
  return unseen.events.empty() ? load : Format("{}, before {}", load, unseen.events[0]);
}

std::string Name(const SloSpec& slo) {
  return Format("{} p{}{}", MetricName(slo.metric), NumberText(slo.percentile),
                slo.of_class.empty() ? "" : " of " + slo.of_class);
}

// "TPOT p99", "attainment of TTFT 200 ms and TPOT 20 ms".
std::string NameOf(const SloSpec& slo) {
  if (slo.metric != SloMetric::kAttainment) return Name(slo);
  return Format("attainment of {}{}", Limits(slo),
                slo.of_class.empty() ? "" : " by " + slo.of_class);
}

// As near to 100 % as it is, with digits enough to tell it from there.
std::string ShareText(double share) {
  const double percent = 100 * share, missing = 100 - percent;
  if (missing <= 0 || missing >= 10) return ThreeDigits(percent);
  const double unit = missing >= 1 ? 10 : missing >= 0.1 ? 100 : 1000;
  return NumberText(std::nearbyint(percent * unit) / unit);
}

// "99.4 of 99 % (99.2 to 99.6)".
std::string ShareOfLimit(const SloResult& result) {
  std::string text =
      Format("{} of {} %", ShareText(*result.share), NumberText(result.slo.percentile));
  if (result.low_share) {
    text += Format(" ({} to {})", ShareText(*result.low_share), ShareText(*result.high_share));
  }
  return text;
}

// "15.5 of 20 ms (15.1 to 15.9)": all in the unit of the limit, but for a value far beyond it,
// which has its own and lends it to the interval: "15.9 s of 200 ms (15.1 to 16.7)".
std::string ValueOfLimit(const SloResult& result) {
  if (result.share) return ShareOfLimit(result);
  const std::string limit = Ms(result.slo.limit_ms), own = MeasuredMs(*result.value_ms);
  const bool beyond = *result.value_ms > result.slo.limit_ms;
  const std::string& of = beyond ? own : limit;
  const std::string unit = of.substr(of.find(' ') + 1);
  const bool same = limit.substr(limit.find(' ') + 1) == unit;
  const double ms = unit == "ms" ? 1 : unit == "s" ? 1e3 : unit == "min" ? 6e4 : 3.6e6;
  const auto in_unit = [ms](double time) { return ThreeDigits(time / ms); };
  std::string text = Format("{} of {}", same ? in_unit(*result.value_ms) : own, limit);
  if (result.low_ms) {
    text += Format(" ({} to {})", in_unit(*result.low_ms), in_unit(*result.high_ms));
  }
  return text;
}

std::string Targets(std::size_t count, std::size_t of) {
  if (of == 1) return "its target";
  if (count == of) return of == 2 ? "both targets" : Format("all {} targets", of);
  return Format("{} of {} targets", count, of);
}

// By how much a limit is passed, or approached: the target with most of it decides.
double Strain(const SloResult& result, const TargetFinding& finding) {
  const double allowed = 1 - result.slo.percentile / 100;
  return std::max(result.value_ms ? *result.value_ms / result.slo.limit_ms : 0,
                  allowed > 0 ? finding.unserved.value / allowed : 0);
}

// Of an overload it falls for as long as requests come.
void PutShare(const TargetFinding& finding, bool overloaded, SloResult& result) {
  if (overloaded) {
    result.unbounded = true;
    result.share.reset();
    result.margin.reset();
    result.met = false;
  } else if (finding.ms) {
    result.share = 1 - finding.unserved.value;
    result.low_share = 1 - finding.unserved.high;
    result.high_share = 1 - finding.unserved.low;
    PutMargin(result);
  }
}

void PutTargets(const Findings& findings, bool overloaded, Report& r) {
  for (std::size_t k = 0; k < r.slo.size(); ++k) {
    SloResult& result = r.slo[k];
    const TargetFinding& finding = findings.targets[k];
    const bool waits =
        result.slo.metric == SloMetric::kTtft || result.slo.metric == SloMetric::kE2e;
    if (result.slo.metric == SloMetric::kAttainment) {
      PutShare(finding, overloaded && r.timed_out == 0, result);
      continue;
    }
    if (overloaded && waits && r.timed_out == 0) {
      result.unbounded = true;
      result.value_ms.reset();
      result.margin.reset();
      result.met = false;
      continue;
    }
    if (!finding.ms) continue;
    result.value_ms = finding.ms->value;
    result.low_ms = finding.ms->low;
    result.high_ms = finding.ms->high;
    result.unserved_share = finding.unserved.value;
    PutMargin(result);
  }
}

std::size_t MostStrained(const Findings& findings, const Report& r, std::optional<Side> side) {
  std::size_t most = 0;
  double strain = -1;
  for (std::size_t k = 0; k < r.slo.size(); ++k) {
    if (side && findings.targets[k].side != *side) continue;
    const double own = Strain(r.slo[k], findings.targets[k]);
    if (own <= strain) continue;
    strain = own;
    most = k;
  }
  return most;
}

void JudgeOverload(const Scenario& s, const Findings& findings, Report& r) {
  r.verdict.state = VerdictState::kOverloaded;
  if (!findings.served_per_s) {
    r.verdict.sentence =
        Format("Overloaded: requests arrive faster than {} serves them.", Subject(s));
    return;
  }
  const Interval& served = *findings.served_per_s;
  const double offered = OfferedRate(s).value_or(findings.offered_per_s);
  // The rate of the report, where it has one: the same sum, of the same span, has the same bits.
  const double rate = r.counted && r.counted->seconds > 0 ? r.requests_per_s : served.value;
  r.overload = {rate, std::max(served.low, 0.0), served.high, offered};
  r.verdict.sentence = Format("Overloaded: serves {} ({} to {}) of {} with {}.", ThreeDigits(rate),
                              ThreeDigits(r.overload->low), ThreeDigits(served.high),
                              PerSecond(offered), Subject(s));
}

// What would settle a verdict that is too close to call.
std::string WhatWouldTell(const TargetFinding& target, const SloResult& result,
                          const Certainty& c) {
  const double times = TimesToTell(result.slo, target);
  const std::string so_far =
      c.method == Certainty::Method::kReplications
          ? Format("After {} runs of {} the limit", c.runs, Count(c.requests_per_run, "request"))
          : "In this run the limit";
  if (times > 100) {
    return Format(
        "{} lies within the interval of {}, and hardly any number of requests would settle it.",
        so_far, NameOf(result.slo));
  }
  return Format(
      "{} lies within the interval of {}; about {} times as many requests would settle it.", so_far,
      NameOf(result.slo), ShortNumber(std::ceil(std::max(times, 2.0))));
}

// That of one run.
void DropFewSamples(Report& r) {
  std::string& note = r.verdict.note;
  note.resize(note.size() - r.few_samples.size());
  while (!note.empty() && note.back() == ' ') note.pop_back();
}

void AddNote(const std::string& sentence, Report& r) {
  r.verdict.note = sentence + (r.verdict.note.empty() ? "" : " ") + r.verdict.note;
}

void JudgeTargets(const Scenario& s, const Findings& findings, Report& r) {
  const std::size_t all = r.slo.size();
  std::size_t beyond = 0, across = 0;
  for (const TargetFinding& target : findings.targets) {
    beyond += target.side == Side::kBeyond ? 1 : 0;
    across += target.side == Side::kAcross ? 1 : 0;
  }
  const std::string who = Subject(s), load = Load(s, r);
  const Side decides = beyond > 0 ? Side::kBeyond : across > 0 ? Side::kAcross : Side::kWithin;
  const std::size_t k = MostStrained(findings, r, decides);
  const SloResult& worst = r.slo[k];
  const double allowed = 1 - worst.slo.percentile / 100;
  const bool lost = worst.unserved_share > allowed, known = worst.value_ms || worst.share;
  const std::string figure = !known || (lost && decides == Side::kBeyond)
                                 ? Format("{}: {}", Name(worst.slo), LossText(worst, r))
                                 : Format("{}, {}", NameOf(worst.slo), ValueOfLimit(worst));
  if (decides == Side::kBeyond) {
    r.verdict.state = VerdictState::kMisses;
    r.verdict.sentence = Format("{} misses {}{}; {} {}.", who, Targets(beyond, all), load,
                                all == 1      ? "it is"
                                : beyond == 1 ? "it is"
                                              : "worst is",
                                figure);
    return;
  }
  r.verdict.state = VerdictState::kNear;
  if (decides == Side::kAcross) {
    r.verdict.sentence = Format("{} is too close to call{}: {}.", who, load, figure);
    if (known && findings.targets[k].ms) {
      AddNote(WhatWouldTell(findings.targets[k], worst, *r.certainty), r);
    }
    return;
  }
  // A long warm-up is a queue that builds up where much is used, else conversations that begin.
  const bool builds_up = findings.long_warmup && r.saturation.utilization > kMuchUsed;
  const bool saturating =
      r.saturation.state == SaturationState::kNear || findings.grows || builds_up;
  const bool loses = r.Lost() > 0;
  if (!saturating && !loses) r.verdict.state = VerdictState::kMeets;
  r.verdict.sentence = Format("{} meets {}{}{}; {} {}.", who, Targets(all, all), load,
                              saturating ? ", but is close to saturation"
                              : loses    ? ", but loses requests"
                                         : "",
                              all == 1 ? "it is" : "closest is", figure);
}

void JudgeTooShort(const Scenario& s, Report& r) {
  r.verdict.state = VerdictState::kNear;
  r.verdict.sentence =
      Format("{} is too close to call{}: {} last too long for runs of {}.", Subject(s), Load(s, r),
             s.workload->arrivals.process == ArrivalProcess::kClosedLoop ? "the cycles of clients"
                                                                         : "conversations",
             Count(r.certainty->requests_per_run, "request"));
  AddNote("More requests a run (workload.requests) would tell.", r);
}

// What is left to say where no verdict would hold.
std::string Simulated(const Findings& findings, bool overloaded, const Report& r) {
  if (overloaded && r.overload) {
    return Format("{} of {} are served.", ThreeDigits(r.overload->served_per_s),
                  PerSecond(r.overload->offered_per_s));
  }
  if (r.slo.empty()) return "";
  const SloResult& worst = r.slo[MostStrained(findings, r, std::nullopt)];
  if (!worst.value_ms && !worst.share) return "too few requests are served.";
  return Format("{} is {}.", NameOf(worst.slo), ValueOfLimit(worst));
}

}  // namespace

std::optional<double> OfferedRate(const Scenario& s) {
  const ArrivalSpec& a = s.workload->arrivals;
  if (s.workload->sessions.turns > 1 && HasRate(a.process) && a.profile == RateProfile::kFlat &&
      a.spikes.empty() && s.workload->classes.empty()) {
    return a.rate_per_s * static_cast<double>(s.workload->sessions.turns);
  }
  return StatedRate(s);
}

std::string SubjectText(const Scenario& scenario) { return Subject(scenario); }
std::string LoadText(const Scenario& scenario, const Report& report) {
  return Load(scenario, report);
}
std::string TargetsText(std::size_t count, std::size_t of) { return Targets(count, of); }
std::string TargetName(const SloSpec& slo) { return NameOf(slo); }
std::string FigureText(const SloResult& result) { return ValueOfLimit(result); }

void JudgeExperiment(const Scenario& scenario, const Findings& findings, bool overloaded,
                     Report& r) {
  Certainty& c = *r.certainty;
  c.from_s = static_cast<double>(findings.from) / kSecond;
  c.until_s = static_cast<double>(findings.until) / kSecond;
  c.long_warmup = findings.long_warmup;
  // All at once, no time is a beginning.
  const bool counts = c.from_s < c.until_s || c.until_s <= 0;
  c.settled = !findings.too_short && counts &&
              std::all_of(findings.targets.begin(), findings.targets.end(),
                          [](const TargetFinding& t) { return t.side != Side::kAcross; });
  DropFewSamples(r);
  PutTargets(findings, overloaded, r);
  if (overloaded) {
    JudgeOverload(scenario, findings, r);
  } else if (findings.too_short && !r.slo.empty()) {
    JudgeTooShort(scenario, r);
  } else if (!r.slo.empty() &&
             std::all_of(findings.targets.begin(), findings.targets.end(),
                         [](const TargetFinding& t) { return t.ms.has_value(); })) {
    JudgeTargets(scenario, findings, r);
  }
  RefuseToJudge(Simulated(findings, overloaded, r), r);
}

std::size_t DecidingTarget(const Findings& findings, const Report& r) {
  for (const Side side : {Side::kBeyond, Side::kAcross}) {
    if (std::any_of(findings.targets.begin(), findings.targets.end(),
                    [side](const TargetFinding& t) { return t.side == side; })) {
      return MostStrained(findings, r, side);
    }
  }
  return MostStrained(findings, r, std::nullopt);
}

void JudgePartial(const Scenario& scenario, std::size_t runs, Report& r) {
  r.verdict.state = VerdictState::kPartial;
  const SloResult* closest = nullptr;
  for (const SloResult& result : r.slo) {
    if (result.margin && (closest == nullptr || *result.margin < *closest->margin))
      closest = &result;
  }
  const std::string done =
      r.finished ? Format("{} of {} runs", r.certainty->runs, std::max<std::size_t>(runs, 1))
                 : "a part of the first run";
  r.verdict.sentence =
      closest == nullptr
          ? Format("After {}: {} has no figure yet.", done, Subject(scenario))
          : Format("After {}: {} of {} is about {}. The interval is not known yet.", done,
                   NameOf(closest->slo), Subject(scenario),
                   closest->share ? Percent(*closest->share) : MeasuredMs(*closest->value_ms));
}

}  // namespace servecast

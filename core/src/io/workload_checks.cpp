#include "io/workload_checks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "io/draft_checks.h"
#include "io/json_document.h"
#include "servecast/workload_spec.h"
#include "workload/retries.h"

namespace servecast {
namespace {

void CheckLengths(const LengthSpec& l, const std::string& path, Issues& issues) {
  using Kind = LengthDistribution;
  if (l.distribution == Kind::kLognormal && l.p99 < l.median) {
    issues.push_back({path + "/p99", Format("found {}, allowed from the median {} up",
                                            NumberText(l.p99), NumberText(l.median))});
  }
  const bool bounded = l.distribution == Kind::kLognormal || l.distribution == Kind::kUniform ||
                       l.distribution == Kind::kNormal || l.distribution == Kind::kZipf;
  if (bounded && l.max && *l.max < l.min) {
    issues.push_back({path + "/max", Format("found {}, allowed from min {} up", *l.max, l.min)});
  }
}

// Outputs that follow prompts, of the workload or of a class.
void CheckCorrelation(const LengthSpec& prompts, const LengthSpec& outputs, const std::string& path,
                      Issues& issues) {
  if (!HasOneDraw(outputs.distribution) || outputs.correlation == 0) return;
  if (HasOneDraw(prompts.distribution) || prompts.distribution == LengthDistribution::kFixed) {
    return;
  }
  issues.push_back({path + "/output_tokens/correlation",
                    Format("found {}, allowed 0 unless the prompts are fixed, uniform, normal, "
                           "lognormal or empirical",
                           NumberText(outputs.correlation))});
}

void CheckProfile(const ArrivalSpec& a, Issues& issues) {
  const NumberTable& rows = a.rate_factors;
  if (a.profile == RateProfile::kPiecewise) {
    bool good = !rows.empty() && rows[0][0] == 0 && rows.back()[1] > 0;
    for (std::size_t i = 1; i < rows.size(); ++i) good &= rows[i][0] > rows[i - 1][0];
    for (const std::vector<double>& row : rows) good &= row[1] <= 1e6;
    if (!good) {
      issues.push_back({"/workload/arrivals/rate_factors",
                        Format("found {} rows, allowed times that begin at 0 and ascend, "
                               "factors from 0 to 1000000, and a last factor above 0",
                               rows.size())});
    }
  }
  for (const std::vector<double>& row : a.spikes) {
    if (row[1] > 0 && row[2] <= 1e6) continue;
    issues.push_back({"/workload/arrivals/spikes",
                      Format("found [{}, {}, {}], allowed a duration above 0 and a factor up "
                             "to 1000000",
                             NumberText(row[0]), NumberText(row[1]), NumberText(row[2]))});
    break;
  }
}

bool UsesTrace(const WorkloadSpec& w) {
  return w.arrivals.process == ArrivalProcess::kTrace ||
         w.prompt_tokens.distribution == LengthDistribution::kTrace ||
         w.output_tokens.distribution == LengthDistribution::kTrace;
}

void CheckTurns(std::int64_t turns, const std::string& path, const WorkloadSpec& w,
                Issues& issues) {
  if (turns == 1 || !UsesTrace(w)) return;
  issues.push_back({path, Format("found {}, allowed 1 with arrivals or lengths of a trace: its "
                                 "rows say when each request arrives and how long it is, "
                                 "turns would change both",
                                 turns)});
}

// Prefixes and sessions: which requests have content in common.
void CheckSharing(const WorkloadSpec& w, Issues& issues) {
  if (w.prefix.groups > 0 && w.prefix.tokens == 0) {
    issues.push_back({"/workload/prefix/tokens",
                      Format("found 0, allowed from 1 up: prefix.groups {} share a beginning",
                             w.prefix.groups)});
  }
  CheckTurns(w.sessions.turns, "/workload/sessions/turns", w, issues);
}

// A cap counts requests, and a conversation's next one is due when its answer has come.
void CheckCap(const WorkloadSpec& w, Issues& issues) {
  if (!CapsClients(w.arrivals) || !w.HasTurns()) return;
  issues.push_back({"/workload/arrivals/max_concurrency",
                    Format("found {}, allowed none with sessions of several turns",
                           *w.arrivals.max_concurrency)});
}

// What a class has of its own, with what the workload has.
void CheckClass(const ClassSpec& c, const std::string& path, const WorkloadSpec& w,
                Issues& issues) {
  CheckLengths(c.prompt_tokens, path + "/prompt_tokens", issues);
  CheckLengths(c.output_tokens, path + "/output_tokens", issues);
  const auto or_workloads = [](const LengthSpec& own, const LengthSpec& workloads) -> const auto& {
    return own.distribution == LengthDistribution::kWorkload ? workloads : own;
  };
  CheckCorrelation(or_workloads(c.prompt_tokens, w.prompt_tokens),
                   or_workloads(c.output_tokens, w.output_tokens), path, issues);
  if (c.rate_per_s && !HasRate(w.arrivals.process)) {
    issues.push_back({path + "/rate_per_s",
                      Format("found {}, allowed none: the workload's arrivals have no rate",
                             NumberText(*c.rate_per_s))});
  }
  const std::int64_t groups = c.prefix_groups.value_or(w.prefix.groups);
  const bool own = c.prefix_groups.has_value() || c.prefix_tokens.has_value();
  if (own && groups > 0 && c.prefix_tokens.value_or(w.prefix.tokens) == 0) {
    issues.push_back({path + (c.prefix_tokens ? "/prefix_tokens" : "/prefix_groups"),
                      Format("found {} groups that share 0 tokens, allowed prefix_tokens from "
                             "1 up",
                             groups)});
  }
  if (c.turns) CheckTurns(*c.turns, path + "/turns", w, issues);
}

void CheckClasses(const WorkloadSpec& w, Issues& issues) {
  const std::vector<ClassSpec>& classes = w.classes;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const std::string of_class = Format("/workload/classes/{}", i);
    CheckClass(classes[i], of_class, w, issues);
    const std::string path = of_class + "/name";
    if (classes[i].name.empty()) {
      issues.push_back({path, "found \"\", allowed a name"});
      continue;
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (classes[j].name != classes[i].name) continue;
      issues.push_back({path, Format("found {}, the name of class {} too; allowed a name of "
                                     "its own",
                                     ShortJson(classes[i].name), j)});
      break;
    }
  }
}

// vLLM's own (its LoRAConfig, MaxLoRARanks).
constexpr std::int64_t kRanks[] = {1, 8, 16, 32, 64, 128, 256, 320, 512};

bool HasAdapters(const WorkloadSpec& w) {
  return w.adapters.count > 0 ||
         std::any_of(w.classes.begin(), w.classes.end(),
                     [](const ClassSpec& c) { return c.adapters.value_or(0) > 0; });
}

}  // namespace

void CheckAdapters(const Scenario& s, Issues& issues) {
  const EngineSpec& e = s.engine;
  constexpr const char* kSeats = "/engine/max_loras";
  if (e.max_loras == 0) {
    if (HasAdapters(*s.workload)) {
      issues.push_back({kSeats, "found 0, allowed from 1 up: the workload has adapters"});
    }
    return;
  }
  if (std::find(std::begin(kRanks), std::end(kRanks), e.max_lora_rank) == std::end(kRanks)) {
    issues.push_back(
        {"/engine/max_lora_rank",
         Format("found {}, allowed 1, 8, 16, 32, 64, 128, 256, 320 and 512, as in vLLM",
                e.max_lora_rank)});
  }
}

void CheckWorkload(const WorkloadSpec& w, Issues& issues) {
  CheckLengths(w.prompt_tokens, "/workload/prompt_tokens", issues);
  CheckLengths(w.output_tokens, "/workload/output_tokens", issues);
  if (w.classes.empty()) {
    CheckCorrelation(w.prompt_tokens, w.output_tokens, "/workload", issues);
  }
  CheckSharing(w, issues);
  CheckCap(w, issues);
  CheckProfile(w.arrivals, issues);
  CheckRetries(w, issues);
  CheckClasses(w, issues);
}

}  // namespace servecast

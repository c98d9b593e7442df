// servecast check: a scenario's targets as a test of a build, which fails only when that is
// certain.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "base/printable.h"
#include "commands.h"
#include "host/output_file.h"
#include "metrics/words.h"
#include "servecast/experiment.h"
#include "servecast/simulation.h"

namespace servecast {
namespace {

constexpr const char* kCheckHelp =
    "servecast check FILE|PRESET [--junit FILE] [--github] [--set path=value]... [--trace FILE]\n"
    "                [--coefficients ID|FILE]\n"
    "\n"
    "For CI: whether the scenario keeps its targets (slo), one line for each. Exit 0: all are "
    "met;\n"
    "1: one is missed for certain, or the load is not served, or the model does not fit; 3: too\n"
    "close to call, close to saturation, not judged for want of evidence, or one run alone. 2: "
    "bad\n"
    "input.\n"
    "\n"
    "  --junit FILE  the same as JUnit XML, a test case for each target; undecided ones are "
    "skipped\n"
    "  --github      the same as annotations of GitHub Actions, on stdout\n";

constexpr int kExitMissed = 1, kExitUndecided = 3;

enum class Outcome { kMet, kMissed, kUndecided };

struct Finding {
  std::string name, text;
  Outcome outcome;
};

Outcome OutcomeOf(const SloResult& r, const Report& report) {
  if (r.slo.metric == SloMetric::kAttainment) {
    const double wanted = r.slo.percentile / 100;
    if (r.low_share && *r.low_share >= wanted) return Outcome::kMet;
    return r.high_share && *r.high_share < wanted ? Outcome::kMissed : Outcome::kUndecided;
  }
  if (r.unbounded || (r.low_ms && *r.low_ms > r.slo.limit_ms)) return Outcome::kMissed;
  if (!r.low_ms) return Outcome::kUndecided;  // one run
  if (r.met) return r.high_ms && *r.high_ms <= r.slo.limit_ms ? Outcome::kMet : Outcome::kUndecided;
  // Its latency is within the limit, but too many requests have none.
  return report.verdict.state == VerdictState::kMisses ? Outcome::kMissed : Outcome::kUndecided;
}

std::string TextOf(const SloResult& r) {
  if (r.unbounded) return "grows for as long as requests come";
  if (r.share) {
    return r.low_share ? fmt::format("{} ({} to {})", Percent(*r.share), Percent(*r.low_share),
                                     Percent(*r.high_share))
                       : Percent(*r.share);
  }
  if (!r.value_ms) return "no request has an answer";
  return r.low_ms ? fmt::format("{} ({} to {})", Ms(*r.value_ms), Ms(*r.low_ms), Ms(*r.high_ms))
                  : Ms(*r.value_ms) + ", one run";
}

// The verdict first: what it says may be of no target (overload, a model that does not fit).
std::vector<Finding> FindingsOf(const Report& report) {
  const VerdictState state = report.verdict.state;
  const bool fails = state == VerdictState::kOverloaded || state == VerdictState::kDoesNotFit;
  std::vector<Finding> findings;
  bool met = true;
  for (const SloResult& result : report.slo) {
    findings.push_back({Target(result.slo), TextOf(result), OutcomeOf(result, report)});
    met = met && findings.back().outcome == Outcome::kMet;
  }
  const bool all = met && state == VerdictState::kMeets;
  const bool missed = fails || state == VerdictState::kMisses;
  const auto outcome = all ? Outcome::kMet : missed ? Outcome::kMissed : Outcome::kUndecided;
  // "misses" by one run is no certainty: then no target is missed for certain either.
  bool certain = fails;
  for (const Finding& finding : findings) certain |= finding.outcome == Outcome::kMissed;
  const bool sure = outcome != Outcome::kMissed || certain;
  findings.insert(findings.begin(),
                  {"verdict", report.verdict.sentence, sure ? outcome : Outcome::kUndecided});
  return findings;
}

const char* WordOf(Outcome outcome) {
  return outcome == Outcome::kMet ? "met" : outcome == Outcome::kMissed ? "missed" : "undecided";
}

std::string Escaped(const std::string& text, const std::vector<std::pair<char, const char*>>& by) {
  std::string out;
  for (const char c : text) {
    const char* other = nullptr;
    for (const auto& [from, to] : by) {
      if (from == c) other = to;
    }
    other != nullptr ? out += other : out += c;
  }
  return out;
}

std::string Xml(const std::string& text) {
  return Escaped(Printable(text),
                 {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\n', "&#10;"}});
}

// The form that CI services read: github.com/testmoapp/junitxml.
std::string JUnit(const std::string& name, const std::vector<Finding>& findings) {
  std::size_t failures = 0, skipped = 0;
  std::string cases;
  for (const Finding& finding : findings) {
    cases +=
        fmt::format("    <testcase classname=\"{}\" name=\"{}\">", Xml(name), Xml(finding.name));
    if (finding.outcome == Outcome::kMissed) {
      ++failures;
      cases += fmt::format("<failure message=\"{}\"/>", Xml(finding.text));
    } else if (finding.outcome == Outcome::kUndecided) {
      ++skipped;
      cases += fmt::format("<skipped message=\"{}\"/>", Xml("too close to call: " + finding.text));
    } else {
      cases += fmt::format("<system-out>{}</system-out>", Xml(finding.text));
    }
    cases += "</testcase>\n";
  }
  const std::string counts = fmt::format("tests=\"{}\" failures=\"{}\" skipped=\"{}\"",
                                         findings.size(), failures, skipped);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {0}>\n"
      "  <testsuite name=\"{1}\" {0}>\n{2}  </testsuite>\n</testsuites>\n",
      counts, Xml(name), cases);
}

// docs.github.com, "Workflow commands for GitHub Actions".
std::string Annotation(const std::string& name, const Finding& finding) {
  const char* level = finding.outcome == Outcome::kMissed ? "error"
                      : finding.outcome == Outcome::kMet  ? "notice"
                                                          : "warning";
  const std::vector<std::pair<char, const char*>> data = {
      {'%', "%25"}, {'\r', "%0D"}, {'\n', "%0A"}};
  auto property = data;
  property.insert(property.end(), {{':', "%3A"}, {',', "%2C"}});
  return fmt::format("::{} title={}::{}: {}\n", level,
                     Escaped(Printable(name + ": " + finding.name), property),
                     WordOf(finding.outcome), Escaped(Printable(finding.text), data));
}

// nullopt: its issues have been printed. Of a model that does not fit, the sum.
std::optional<Report> Judged(const Arguments& args, Asked asked) {
  if (std::optional<Report> unfit = UnfitReport(asked.scenario)) return unfit;
  Result<Experiment> made =
      MakeRun<Experiment>(args, std::move(asked.scenario), std::move(asked.trace));
  if (!made.ok()) {
    PrintIssues(made.issues());
    return std::nullopt;
  }
  while (!made.value().Advance(INT64_MAX)) {
  }
  return made.value().Snapshot(ReportDetail::kSummary);
}

}  // namespace

int CheckCommand(const Words& words) {
  Arguments args;
  std::string junit;
  bool github = false;
  Options options{.help = kCheckHelp};
  options.flags = {{"--github", &github}};
  options.values = {{"--junit", &junit}};
  if (const auto done = ReadArguments(words, options, args)) return *done;
  if (const auto problem =
          Collision({args.scenario, args.trace, args.coefficients, args.calibration}, {junit})) {
    return Usage(*problem);
  }
  Result<Asked> asked = Load(args);
  if (!asked.ok()) return PrintIssues(asked.issues());
  if (asked.value().scenario.slo.empty()) {
    return PrintIssues(Labelled(LabelOf(args), {{"/slo", "found no target, allowed 1 to 32"}}));
  }
  const std::optional<Report> report = Judged(args, std::move(asked.value()));
  if (!report) return kBadInput;
  const std::vector<Finding> findings = FindingsOf(*report);
  const std::string name = report->name.empty() ? args.scenario : report->name;
  if (!junit.empty() && !WriteFile(junit, JUnit(name, findings))) return kBadInput;
  for (const Finding& finding : findings) {
    fmt::print("{}", github ? Annotation(name, finding)
                            : fmt::format("{:<10} {}: {}\n", WordOf(finding.outcome),
                                          Printable(finding.name), Printable(finding.text)));
  }
  const Outcome outcome = findings[0].outcome;
  return outcome == Outcome::kMet ? 0 : outcome == Outcome::kMissed ? kExitMissed : kExitUndecided;
}

}  // namespace servecast

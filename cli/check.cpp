// servecast check: a scenario's targets as a test of a build, which fails only when that is
// certain.
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "band.h"
#include "base/printable.h"
#include "commands.h"
#include "host/output_file.h"
#include "io/json_document.h"
#include "io/json_writer.h"
#include "metrics/words.h"
#include "progress.h"
#include "servecast/experiment.h"
#include "servecast/simulation.h"
#include "text/texts.h"

namespace servecast {
namespace {

constexpr const char* kCheckHelp =
    "servecast check FILE|PRESET [--junit FILE] [--github] [--set path=value]... [--trace FILE]\n"
    "                [--coefficients ID|FILE] [--meets PERCENT] [--misses PERCENT]\n"
    "\n"
    "For CI: whether the scenario keeps its targets (slo), one line for each. Exit 0: all are met\n"
    "with 90 % probability; 1: with 10 % at most, or the load is not served, or the model does "
    "not\n"
    "fit; 3: between, close to saturation, not judged for want of evidence, or one run alone. 2:\n"
    "bad input. The probability is of sampling and of the forecast's error together\n"
    "(docs/fidelity.md).\n"
    "\n"
    "  --meets PERCENT, --misses PERCENT  other probabilities than 90 and 10\n"
    "  --junit FILE  the same as JUnit XML, a test case for each target; undecided ones are "
    "skipped\n"
    "  --github      the same as annotations of GitHub Actions, on stdout\n"
    "  -o FORM       text (default): a line for each; json, jsonl: outcome, exit, findings, "
    "report;\n"
    "                csv: a row for each\n"
    "  --fields A,B  some of the JSON, for shells: outcome,report.verdict.sentence\n"
    "  --color WHEN  auto (default: colours and marks on a terminal), always or never\n";

constexpr int kExitMissed = 1, kExitUndecided = 3;

enum class Outcome { kMet, kMissed, kUndecided };

struct Finding {
  std::string name, text;
  Outcome outcome;
};

Outcome OutcomeOf(double probability, const Sureness& sureness) {
  return probability >= sureness.meets    ? Outcome::kMet
         : probability <= sureness.misses ? Outcome::kMissed
                                          : Outcome::kUndecided;
}

// By sampling alone where the forecast's error is not known.
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

// "14.9 ms (90 %: 13.6 to 16.8)".
std::string TextOf(const SloResult& r, const TargetBand& band) {
  if (r.unbounded) return "grows for as long as requests come";
  const std::string sure = SureText(band.probability);
  if (r.share) {
    return fmt::format("{} (90 %: {} to {}), met with {}", Percent(*r.share), Percent(band.low),
                       Percent(*band.high), sure);
  }
  return fmt::format("{} (90 %: {}{}), met with {}", Ms(*r.value_ms), Ms(band.low),
                     band.high ? " to " + Ms(*band.high) : " and more", sure);
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
std::vector<Finding> FindingsOf(const Report& report, const std::optional<Banded>& banded,
                                const Sureness& sureness) {
  const VerdictState state = report.verdict.state;
  const bool fails = state == VerdictState::kOverloaded || state == VerdictState::kDoesNotFit;
  const bool joint = banded && banded->probability;
  std::vector<Finding> findings;
  bool met = true;
  for (const SloResult& result : report.slo) {
    const bool has = joint && (result.value_ms || result.share || result.unbounded);
    const TargetBand* band = has ? &*banded->targets[findings.size()] : nullptr;
    findings.push_back(
        {Target(result.slo), band != nullptr ? TextOf(result, *band) : TextOf(result),
         band != nullptr ? OutcomeOf(band->probability, sureness) : OutcomeOf(result, report)});
    met = met && findings.back().outcome == Outcome::kMet;
  }
  const bool all = (met || joint) && state == VerdictState::kMeets;
  const bool missed = fails || state == VerdictState::kMisses;
  const auto outcome = all ? Outcome::kMet : missed ? Outcome::kMissed : Outcome::kUndecided;
  // "misses" by one run is no certainty: then no target is missed for certain either.
  bool certain = fails || joint;
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
std::optional<Judgement> Judged(const Arguments& args, Asked asked, const Sureness& sureness) {
  if (std::optional<Report> unfit = UnfitReport(asked.scenario)) {
    return Judgement{std::move(*unfit)};
  }
  Result<Experiment> made = MakeRun<Experiment>(args, asked.scenario, asked.trace);
  if (!made.ok()) {
    PrintIssues(made.issues());
    return std::nullopt;
  }
  RunThrough(made.value());
  Judgement judgement{made.value().Snapshot(ReportDetail::kSummary)};
  judgement.banded =
      PutBand(std::move(asked.scenario), std::move(asked.trace), sureness, judgement.report);
  return judgement;
}

// Of a percentage between the two; nullopt: it is none.
std::optional<double> ShareOf(const std::string& text) {
  const std::optional<double> percent = NumberOf(text);
  if (!percent || *percent < 0 || *percent > 100) return std::nullopt;
  return *percent / 100;
}

int ExitOf(Outcome outcome) {
  return outcome == Outcome::kMet ? 0 : outcome == Outcome::kMissed ? kExitMissed : kExitUndecided;
}

std::string CheckJson(const std::string& name, const std::vector<Finding>& findings,
                      const Judgement& judged) {
  JsonWriter out(true);
  out.BeginObject();
  out.Key("name"), out.Text(name);
  out.Key("outcome"), out.Text(WordOf(findings[0].outcome));
  out.Key("exit"), out.Integer(ExitOf(findings[0].outcome));
  out.Key("findings"), out.BeginArray();
  for (const Finding& finding : findings) {
    out.BeginObject();
    out.Key("name"), out.Text(finding.name);
    out.Key("outcome"), out.Text(WordOf(finding.outcome));
    out.Key("text"), out.Text(finding.text);
    out.EndObject();
  }
  out.EndArray();
  out.Key("report"), out.Raw(judged.Json(ReportParts::kSummary));
  out.EndObject();
  return out.Take();
}

// Nothing but what CI reads, or the same with marks and colours for a person.
int PrintFindings(const AnswerForm& form, const std::string& name, bool github,
                  const std::vector<Finding>& findings, const Judgement& judged) {
  std::string lines;
  for (const Finding& finding : findings) {
    lines += github ? Annotation(name, finding)
                    : fmt::format("{:<10} {}: {}\n", WordOf(finding.outcome),
                                  Printable(finding.name), Printable(finding.text));
  }
  if (github) {
    fmt::print("{}", lines);
    return 0;
  }
  return PrintAnswer(form, {.json = CheckJson(name, findings, judged),
                            .text = CheckText,
                            .rows = [](View answer) { return answer["findings"].Elements(); },
                            .as_ever = lines});
}

}  // namespace

int CheckCommand(const Words& words) {
  Arguments args;
  std::string junit, meets = "90", misses = "10";
  bool github = false;
  Options options{.help = kCheckHelp, .answers = true};
  options.flags = {{"--github", &github}};
  options.values = {{"--junit", &junit}, {"--meets", &meets}, {"--misses", &misses}};
  if (const auto done = ReadArguments(words, options, args)) return *done;
  if (const auto problem =
          Collision({args.scenario, args.trace, args.coefficients, args.calibration}, {junit})) {
    return Usage(*problem);
  }
  const std::optional<double> from = ShareOf(meets), until = ShareOf(misses);
  if (!from || !until || *until >= *from) {
    return Usage("--meets and --misses are percentages, --misses the lower one");
  }
  const Sureness sureness{*from, *until};
  Result<Asked> asked = Load(args);
  if (!asked.ok()) return PrintIssues(asked.issues());
  if (asked.value().scenario.slo.empty()) {
    return PrintIssues(Labelled(LabelOf(args), {{"/slo", "found no target, allowed 1 to 32"}}));
  }
  const std::optional<Judgement> judged = Judged(args, std::move(asked.value()), sureness);
  if (!judged) return kBadInput;
  const Report& report = judged->report;
  const std::vector<Finding> findings = FindingsOf(report, judged->banded, sureness);
  const std::string name = report.name.empty() ? args.scenario : report.name;
  if (!junit.empty() && !WriteFile(junit, JUnit(name, findings))) return kBadInput;
  const bool junit_alone = junit == "-";
  const int printed = junit_alone ? 0 : PrintFindings(args.form, name, github, findings, *judged);
  return printed != 0 ? printed : ExitOf(findings[0].outcome);
}

}  // namespace servecast

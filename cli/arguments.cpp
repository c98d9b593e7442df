// See arguments.h.
#include "arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "base/printable.h"
#include "calibrate/pack.h"
#include "export/targets.h"
#include "host/workers.h"
#include "io/coefficients.h"
#include "io/physics_coefficients.h"
#include "io/prices.h"
#include "io/replaying.h"
#include "progress.h"
#include "servecast/experiment.h"
#include "servecast/simulation.h"
#include "suggest.h"

namespace servecast {

namespace {

std::string& CommandName() {
  static std::string name;
  return name;
}

Words*& CollectedOptions() {
  static Words* names = nullptr;
  return names;
}

std::string*& CollectedHelp() {
  static std::string* into = nullptr;
  return into;
}

}  // namespace

int PrintHelp(std::string_view help) {
  if (std::string* into = CollectedHelp(); into != nullptr) {
    *into += help;
  } else {
    fmt::print("{}", help);
  }
  return 0;
}

void CollectHelp(std::string* into) { CollectedHelp() = into; }

void CollectOptions(Words* names) { CollectedOptions() = names; }

void NameCommand(std::string name) { CommandName() = std::move(name); }

int Usage(const std::string& problem, std::string_view command) {
  if (IssuesAreJson()) return PrintIssues({{"", problem}});
  const std::string_view whose = command.empty() ? std::string_view(CommandName()) : command;
  fmt::print(stderr, "servecast: {}; see servecast{}{} --help\n", Printable(problem),
             whose.empty() ? "" : " ", whose);
  return kBadInput;
}

namespace {

template <class Value>
const Value* Find(const std::vector<std::pair<std::string_view, Value>>& options,
                  std::string_view name) {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [name](const auto& option) { return option.first == name; });
  return found == options.end() ? nullptr : &found->second;
}

std::string TypedAgain(const Arguments& args) {
  std::string out = ShellWord(args.scenario);
  for (const std::string& change : args.overrides) out += " --set " + ShellWord(change);
  for (const auto& [name, value] : {std::pair("--trace", &args.trace),
                                    {"--coefficients", &args.coefficients},
                                    {"--calibration", &args.calibration}}) {
    if (!value->empty()) out += std::string(" ") + name + " " + ShellWord(*value);
  }
  return Printable(out);
}

}  // namespace

std::optional<int> ReadArguments(const Words& words, const Options& given, Arguments& out) {
  Options options = given;
  bool help = false;
  options.flags.insert(options.flags.end(), {{"--help", &help}, {"-h", &help}});
  options.values.emplace_back("--coefficients", &out.coefficients);
  options.values.emplace_back("--calibration", &out.calibration);
  if (options.replays) options.values.emplace_back("--trace", &out.trace);
  AnswerWords answer;
  if (options.answers) {
    options.values.insert(options.values.end(), {{"-o", &answer.form},
                                                 {"--output", &answer.form},
                                                 {"--fields", &answer.fields},
                                                 {"--color", &answer.colour}});
  }
  options.lists.emplace_back("--set", [&out](const std::string& change) {
    out.overrides.push_back(change);
    return std::string();
  });
  if (Words* names = CollectedOptions(); names != nullptr) {
    for (const auto& [name, flag] : options.flags) names->emplace_back(name);
    for (const auto& [name, value] : options.values) names->emplace_back(name);
    for (const auto& [name, list] : options.lists) names->emplace_back(name);
    return 0;
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    // "--name=value" is "--name value".
    const std::size_t equals =
        words[i].rfind("--", 0) == 0 ? words[i].find('=') : std::string::npos;
    const std::string word = words[i].substr(0, equals);
    bool* const* flag = Find(options.flags, word);
    if (flag != nullptr && equals == std::string::npos) {
      **flag = true;
      continue;
    }
    std::string* const* value = Find(options.values, word);
    const auto* list = Find(options.lists, word);
    if (value != nullptr || list != nullptr) {
      const bool attached = equals != std::string::npos;
      if (!attached && i + 1 == words.size()) return Usage(word + " needs a value");
      const std::string next = attached ? words[i].substr(equals + 1) : words[++i];
      if (next.empty()) return Usage(word + " needs a value, found none");
      if (value != nullptr) {
        **value = next;
      } else if (const std::string problem = (*list)(next); !problem.empty()) {
        return Usage(problem);
      }
    } else if (word.size() > 1 && word[0] == '-') {
      return Usage("unknown option " + words[i]);
    } else if (out.scenario.empty()) {
      out.scenario = word;
    } else {
      return Usage("more than one scenario: " + word);
    }
  }
  if (help) {
    return PrintHelp(options.help);
  }
  if (out.scenario.empty()) return Usage("no scenario given");
  if (options.answers) {
    const std::optional<AnswerForm> form = FormOf(answer);
    if (!form) return kBadInput;
    out.form = *form;
    out.typed = TypedAgain(out);
  }
  return std::nullopt;
}

namespace {

// The section "latency" that --coefficients stands for: a published set, or a file's.
Result<std::string> LoadCoefficients(const std::string& name,
                                     std::optional<PhysicsProvenance>& trained_on) {
  const Result<CoefficientSet> set = FindCoefficientSet(name);
  if (set.ok()) {
    const std::string warning = WarningOf(set.value());
    if (!warning.empty()) fmt::print(stderr, "warning: {}\n", warning);
    return set.value().latency;
  }
  const Result<std::string> text = ReadFile(name, std::size_t{1} << 20);
  if (!text.ok() && text.issues()[0].message == kCannotOpen) return Issues(set.issues());
  if (!text.ok()) return Issues(text.issues());
  const Result<PhysicsCoefficients> read = ReadPhysicsCoefficients(text.value());
  if (read.ok()) {
    trained_on = read.value().trained_on;
    return read.value().latency;
  }
  return Labelled(name, read.issues());
}

}  // namespace

std::string LabelOf(const Arguments& args) {
  const std::string file = ScenarioPreset(args.scenario) ? "" : args.scenario;
  const bool both = !file.empty() && !args.label.empty();
  return (file == "-" ? "stdin" : file) + (both ? ", " : "") + args.label;
}

namespace {

// `trained_on`: what coefficients of a file say.
Result<std::string> Document(const Arguments& args, bool lengths_only,
                             std::optional<PhysicsProvenance>& trained_on) {
  Result<std::string> text = ScenarioText(args.scenario);
  if (!text.ok()) return text;
  std::vector<std::string> overrides;
  if (!args.trace.empty()) text = ReplayingDocument(text.value(), !lengths_only);
  if (!args.coefficients.empty()) {
    const Result<std::string> latency = LoadCoefficients(args.coefficients, trained_on);
    if (!latency.ok()) return Issues(latency.issues());
    overrides.push_back("latency=" + latency.value());
  }
  if (!args.calibration.empty()) {
    const Result<std::string> pack = ReadFile(args.calibration, std::size_t{1} << 20);
    if (!pack.ok()) return Issues(pack.issues());
    const Result<CalibrationPack> read = ReadPack(pack.value());
    if (!read.ok()) return Labelled(args.calibration, read.issues());
    text = CalibratedDocument(text.value(), read.value());
    if (!text.ok()) return Labelled(LabelOf(args), text.issues());
  }
  overrides.insert(overrides.end(), args.overrides.begin(), args.overrides.end());
  for (const std::string& change : args.overrides) {
    if (auto meant = Suggestion(change)) return Labelled(LabelOf(args), {*std::move(meant)});
  }
  if (!overrides.empty()) text = ApplyOverrides(text.value(), overrides);
  if (text.ok() && !args.prices.empty()) text = WithPrices(text.value(), args.prices);
  if (!text.ok()) return Labelled(LabelOf(args), text.issues());
  return text;
}

}  // namespace

Result<std::string> LoadDocument(const Arguments& args, bool lengths_only) {
  std::optional<PhysicsProvenance> trained_on;
  return Document(args, lengths_only, trained_on);
}

Result<Scenario> LoadScenario(const Arguments& args, bool lengths_only) {
  std::optional<PhysicsProvenance> trained_on;
  const Result<std::string> text = Document(args, lengths_only, trained_on);
  if (!text.ok()) return Issues(text.issues());
  Result<Scenario> scenario = ParseScenario(text.value());
  if (!scenario.ok()) return Labelled(LabelOf(args), scenario.issues());
  if (trained_on) {
    for (const std::string& line : Mismatches(*trained_on, scenario.value())) {
      fmt::print(stderr, "warning: coefficients {}\n", line);
    }
  }
  for (const std::string& line : CalibrationWarnings(scenario.value())) {
    fmt::print(stderr, "warning: {}\n", line);
  }
  return scenario;
}

std::optional<std::size_t> ThreadsOf(const std::string& text) {
  if (text.empty()) return Cores();
  std::size_t threads = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, threads);
  if (read.ec != std::errc() || read.ptr != end || threads < 1 || threads > 1024) {
    return std::nullopt;
  }
  return threads;
}

Result<Asked> Load(const Arguments& args) {
  Result<Trace> trace = LoadTrace(args.trace);
  Result<Scenario> scenario = LoadScenario(args, trace.ok() && !trace.value().has_arrivals);
  Issues issues;
  if (!scenario.ok()) issues = scenario.issues();
  if (!trace.ok()) issues.insert(issues.end(), trace.issues().begin(), trace.issues().end());
  if (!issues.empty()) return issues;
  return Asked{std::move(scenario.value()), std::move(trace.value())};
}

std::optional<Report> RunOnce(const Arguments& args, const Trace& trace) {
  const auto refuse = [](const Issues& issues) {
    PrintIssues(issues);
    return std::nullopt;
  };
  Result<Scenario> scenario = LoadScenario(args, !trace.has_arrivals);
  if (!scenario.ok()) return refuse(scenario.issues());
  Result<Simulation> run = MakeRun<Simulation>(args, std::move(scenario.value()), trace);
  if (!run.ok()) return refuse(run.issues());
  RunThrough(run.value());
  return run.value().Snapshot(ReportDetail::kSummary);
}

}  // namespace servecast

// servecast link: a scenario as a link to the page, a link as a scenario, and the run of a link
// beside the result that its author pinned to it.
#include "host/link.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "base/printable.h"
#include "commands.h"
#include "metrics/words.h"
#include "servecast/experiment.h"
#include "servecast/simulation.h"

namespace servecast {
namespace {

constexpr const char* kLinkHelp =
    "servecast link encode FILE|PRESET [--pin] [--site ADDRESS] [--set path=value]...\n"
    "                      [--trace FILE] [--coefficients ID|FILE] [--calibration PACK]\n"
    "servecast link decode LINK|-...\n"
    "servecast link open LINK [--trace FILE] [--once]\n"
    "\n"
    "encode prints the link of a scenario: all of it, compressed and not encrypted. A trace is\n"
    "not in it, its file's name is.\n"
    "  --pin           with the result: verdict, value of each target, engine and fingerprint\n"
    "  --site ADDRESS  in front of the link, e.g. https://example.org/servecast/\n"
    "decode prints the scenario of each link, canonical JSON, a line each; - reads links from\n"
    "stdin, a line each. What is pinned goes to stderr. LINK may be a whole address, of an embed,\n"
    "too.\n"
    "open runs a link's scenario as servecast run does: the summary on stdout, and on stderr "
    "whether\n"
    "the pinned result came out again.\n"
    "  --trace FILE    the trace that the link names\n"
    "  --once          one run only: of a pinned result the fingerprint is compared\n"
    "\n"
    "Exit 0: done, and a pinned result is verified: the same bits, whichever version gave them.\n"
    "1: it differs. 2: bad input, all of it on stderr; of a pinned result that is damaged, after\n"
    "the run.\n";

constexpr int kExitDiffers = 1;
constexpr std::size_t kMostLinks = std::size_t{64} << 20;  // bytes of stdin

// Of one target, in words; "" when there is no such value.
std::string ValueText(const Report* report, std::size_t index, std::int64_t value) {
  constexpr double kOfMs = 1e3, kOfShare = 1e6;
  const auto number = static_cast<double>(value);
  if (report != nullptr && index < report->slo.size() &&
      report->slo[index].slo.metric == SloMetric::kAttainment) {
    return Percent(number / kOfShare);
  }
  return Ms(number / kOfMs);
}

// Of "1.0.1.0": "engine 0.1.0 (scenario schema 1)".
std::string VersionText(const std::string& version) {
  const std::size_t dot = version.find('.');
  return fmt::format("engine {} (scenario schema {})", version.substr(dot + 1),
                     version.substr(0, dot));
}

// "meets, 95.1 ms, 15.5 ms; engine 0.1.0 (scenario schema 1), fingerprint 0123456789abcdef".
std::string PinText(const Pin& pin, const Report* report) {
  std::string text = pin.state;
  for (std::size_t i = 0; i < pin.values.size(); ++i) {
    text += ", " + (pin.values[i] ? ValueText(report, i, *pin.values[i]) : "none");
  }
  return fmt::format("{}; {}, fingerprint {}", text, VersionText(pin.version), pin.fingerprint);
}

std::string NameOf(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// To its end; nullopt: its issues have been printed.
template <class Run>
std::optional<Report> ToEnd(Result<Run> made) {
  if (!made.ok()) {
    PrintIssues(made.issues());
    return std::nullopt;
  }
  while (!made.value().Advance(INT64_MAX)) {
  }
  return made.value().Snapshot(ReportDetail::kSummary);
}

std::optional<Report> ReportOf(const Arguments& args, Asked asked, bool once) {
  auto& [scenario, trace] = asked;
  if (once) return ToEnd(MakeRun<Simulation>(args, std::move(scenario), std::move(trace)));
  return ToEnd(MakeRun<Experiment>(args, std::move(scenario), std::move(trace)));
}

int Encode(const Words& words) {
  Arguments args;
  std::string site;
  bool pinned = false;
  Options options{.help = kLinkHelp};
  options.flags = {{"--pin", &pinned}};
  options.values = {{"--site", &site}};
  if (const auto done = ReadArguments(words, options, args)) return *done;
  if (site.find('#') != std::string::npos) return Usage("--site is an address without #");
  std::string canonical, pin;
  if (pinned) {
    Result<Asked> asked = Load(args);
    if (!asked.ok()) return PrintIssues(asked.issues());
    canonical = asked.value().scenario.canonical_text;
    const std::optional<Report> report = ReportOf(args, std::move(asked.value()), false);
    if (!report) return kBadInput;
    pin = PinOf(*report);
  } else {
    const Result<Trace> trace = LoadTrace(args.trace);
    if (!trace.ok()) return PrintIssues(trace.issues());
    const Result<Scenario> scenario = LoadScenario(args, !trace.value().has_arrivals);
    if (!scenario.ok()) return PrintIssues(scenario.issues());
    canonical = scenario.value().canonical_text;
  }
  fmt::print("{}{}{}\n", site, site.empty() ? "" : "#",
             EncodeLink(canonical, NameOf(args.trace), pin));
  return 0;
}

// The scenario of a link, whose issues say which link it is.
Result<Scenario> ScenarioOf(const Result<Link>& link, const std::string& label) {
  if (!link.ok()) return Labelled(label, link.issues());
  Result<Scenario> scenario = ParseScenario(link.value().document);
  if (!scenario.ok()) return Labelled(label, scenario.issues());
  return scenario;
}

// What stands in a link beside its scenario. `pin`: as it was read.
void PrintAside(const std::string& label, const Link& link, const std::optional<Pin>& pin) {
  const std::string begin = label.empty() ? "" : label + ": ";
  if (!link.trace.empty()) {
    fmt::print(stderr, "{}replays the trace {}, which is not in it\n", begin,
               Printable(link.trace));
  }
  if (link.pin.empty()) return;
  fmt::print(stderr, "{}{}\n", begin,
             pin ? "pinned: " + PinText(*pin, nullptr)
                 : "its pinned result is cut short or damaged, and not read");
}

int Decode(const Words& words) {
  Words links;
  for (const std::string& word : words) {
    if (word == "--help" || word == "-h") {
      return PrintHelp(kLinkHelp);
    }
    if (word.size() > 1 && word[0] == '-') return Usage("unknown option " + word);
    if (word != "-") {
      links.push_back(word);
      continue;
    }
    const Result<std::string> lines = ReadFile("-", kMostLinks);
    if (!lines.ok()) return PrintIssues(lines.issues());
    for (std::size_t at = 0; at < lines.value().size();) {
      const std::size_t end = std::min(lines.value().find('\n', at), lines.value().size());
      links.push_back(lines.value().substr(at, end - at));
      if (!links.back().empty() && links.back().back() == '\r') links.back().pop_back();
      at = end + 1;
    }
  }
  if (links.empty()) return Usage("no link given");
  int code = 0;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const std::string label = links.size() == 1 ? "" : fmt::format("link {}", i + 1);
    const Result<Link> link = DecodeLink(links[i]);
    const Result<Scenario> scenario = ScenarioOf(link, label);
    if (!scenario.ok()) {
      code = PrintIssues(scenario.issues());
      continue;
    }
    PrintAside(label, link.value(), ReadPin(link.value().pin));
    fmt::print("{}\n", scenario.value().canonical_text);
  }
  return code;
}

// Says whether the pinned result came out again. `once`: only its fingerprint could.
int Verify(const Pin& pinned, const Report& report, bool once) {
  const Pin own = *ReadPin(PinOf(report));
  if (pinned.fingerprint == own.fingerprint &&
      (once || (pinned.state == own.state && pinned.values == own.values))) {
    const bool same = pinned.version == own.version;
    fmt::print(stderr, "verified: the same bits, fingerprint {}{}\n", own.fingerprint,
               same ? "" : ", which another version gave: " + VersionText(pinned.version));
    return 0;
  }
  fmt::print(stderr, "differs from the pinned result{}\n  pinned {}\n  here   {}\n",
             pinned.version == own.version ? "" : ", which another version gave",
             PinText(pinned, &report), PinText(own, &report));
  return kExitDiffers;
}

int Open(const Words& words) {
  Arguments args;
  bool once = false;
  Options options{.help = kLinkHelp};
  options.flags = {{"--once", &once}};
  if (const auto done = ReadArguments(words, options, args)) return *done;
  if (!args.overrides.empty() || !args.coefficients.empty() || !args.calibration.empty()) {
    return Usage("link open runs the link as it is; decode it first, to change it");
  }
  const Result<Link> link = DecodeLink(args.scenario);
  Result<Scenario> scenario = ScenarioOf(link, "");
  if (!scenario.ok()) return PrintIssues(scenario.issues());
  const std::optional<Pin> pin = ReadPin(link.value().pin);
  PrintAside("", link.value(), pin);
  Result<Trace> trace = LoadTrace(args.trace);
  if (!trace.ok()) return PrintIssues(trace.issues());
  args.scenario = "link";  // what issues are of
  const std::optional<Report> report =
      ReportOf(args, {std::move(scenario.value()), std::move(trace.value())}, once);
  if (!report) return kBadInput;
  fmt::print("{}\n", ReportJson(*report, ReportParts::kSummary));
  if (pin) return Verify(*pin, *report, once);
  return link.value().pin.empty() ? 0 : kBadInput;  // a damaged result is not verified
}

}  // namespace

int LinkCommand(const Words& words) {
  if (words.empty()) return Usage("link needs encode, decode or open; see servecast link --help");
  const Words rest(words.begin() + 1, words.end());
  if (words[0] == "encode") return Encode(rest);
  if (words[0] == "decode") return Decode(rest);
  if (words[0] == "open") return Open(rest);
  if (words[0] == "--help" || words[0] == "-h") {
    return PrintHelp(kLinkHelp);
  }
  return Usage("found link " + words[0] + ", allowed encode, decode or open");
}

}  // namespace servecast

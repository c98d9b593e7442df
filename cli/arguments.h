// What the subcommands are given: options, and the scenario that these name.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answer.h"
#include "host/files.h"
#include "room.h"
#include "run_memory.h"
#include "servecast/report.h"
#include "servecast/result.h"
#include "servecast/scenario.h"
#include "servecast/trace.h"

namespace servecast {

using Words = std::vector<std::string>;

// What all that take a scenario are given.
struct Arguments {
  std::string scenario;  // a file, a preset, or "-"
  Words overrides;       // --set
  std::string coefficients, calibration, trace;
  std::string prices;  // a list of them, where a command takes one
  std::string label;   // of a run among several, for its issues
  AnswerForm form;     // of a command that answers in several
  // The scenario and its options as a shell would take them again, for commands to type next.
  std::string typed;
};

// The options of one subcommand beside --help, --set, --coefficients,
// --calibration and --trace.
struct Options {
  const char* help = "";
  bool replays = true;   // takes --trace
  bool answers = false;  // takes -o, --fields and --color
  std::vector<std::pair<std::string_view, bool*>> flags = {};
  std::vector<std::pair<std::string_view, std::string*>> values = {};
  // May be repeated; returns what is wrong, or "".
  std::vector<std::pair<std::string_view, std::function<std::string(const std::string&)>>> lists =
      {};
};

// Says on stderr what is wrong with the arguments, and whose --help tells what is right: that of
// the command that runs where none is named. Returns kBadInput.
int Usage(const std::string& problem, std::string_view command = {});
void NameCommand(std::string name);  // of the command that runs

// An exit code when there is nothing to do: help was asked for and given, or the words are wrong.
std::optional<int> ReadArguments(const Words& words, const Options& options, Arguments& out);

// On stdout, or added to what CollectHelp names until it is called with nullptr. Returns 0.
int PrintHelp(std::string_view help);
void CollectHelp(std::string* into);

// Until it is called again with nullptr, ReadArguments writes the names of a command's options
// there and does nothing else.
void CollectOptions(Words* names);

// The scenario's text with what the arguments change. `lengths_only`: what the trace has; nothing
// without one. Warns on stderr of coefficients and calibrations that are of something else.
Result<std::string> LoadDocument(const Arguments& args, bool lengths_only = false);
Result<Scenario> LoadScenario(const Arguments& args, bool lengths_only = false);

struct Asked {
  Scenario scenario;
  Trace trace;
};
// Scenario and trace; the issues of both.
Result<Asked> Load(const Arguments& args);

// Of --threads: 1 to 1024; all cores where nothing is given. nullopt: something else.
std::optional<std::size_t> ThreadsOf(const std::string& text);

// What issues of a scenario are of: its file, and the run among several.
std::string LabelOf(const Arguments& args);

// A simulation, an experiment or a plan that fits into what memory there is.
template <class Run, class... More>
Result<Run> MakeRun(const Arguments& args, Scenario scenario, Trace trace, More... more) {
  if (auto beyond = BeyondRoom(MemoryOfRun(scenario, trace), MemoryRoom())) {
    return Labelled(LabelOf(args), {*std::move(beyond)});
  }
  Result<Run> made = Run::Create(std::move(scenario), std::move(trace), std::move(more)...);
  if (!made.ok()) return Labelled(LabelOf(args), made.issues());
  return made;
}

// One run of the arguments' scenario to its end; nullopt: its issues have been printed.
std::optional<Report> RunOnce(const Arguments& args, const Trace& trace);

}  // namespace servecast

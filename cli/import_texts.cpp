// See import_texts.h.
#include "import_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "arguments.h"
#include "base/printable.h"
#include "host/files.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

constexpr std::size_t kMostBytes = std::size_t{16} << 20;

// Where the value of an option goes; nullptr: there is no such option.
std::string* ValueOfOption(const std::string& option, bool answers, TextArguments& out) {
  if (option == "--scenario") return &out.scenario;
  if (!answers) return nullptr;
  if (option == "--set") return &out.overrides.emplace_back();
  if (option == "-o" || option == "--output") return &out.answer.form;
  if (option == "--fields") return &out.answer.fields;
  return option == "--color" ? &out.answer.colour : nullptr;
}

// A line each, whatever a file's words are.
void SayLines(const std::string& text) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    fmt::print(stderr, "{}\n", Printable(text.substr(begin, end - begin)));
    begin = end + 1;
  }
}

}  // namespace

// "vllm serve MODEL" is a text; "my file.txt" is one only where no file has that name.
bool IsText(const std::string& argument) {
  std::error_code unknown;
  return argument.find_first_of(" \t\n") != std::string::npos &&
         !std::filesystem::exists(argument, unknown);
}

Result<std::string> TextOf(const std::string& argument) {
  return IsText(argument) ? Result<std::string>(argument) : ReadFile(argument, kMostBytes);
}

std::optional<int> ReadTextArguments(const std::vector<std::string>& words,
                                     std::string_view command, const char* help, TextArguments& out,
                                     bool answers) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& arg = words[i];
    if (arg == "--help" || arg == "-h") {
      return PrintHelp(help);
    }
    if (arg.size() < 2 || arg[0] != '-') {
      out.files.push_back(arg);
      continue;
    }
    const std::size_t equals = arg.rfind("--", 0) == 0 ? arg.find('=') : std::string::npos;
    const std::string name = arg.substr(0, equals);
    std::string* value = ValueOfOption(name, answers, out);
    if (value == nullptr) return Usage("unknown option " + name, command);
    const bool inside = equals != std::string::npos;
    *value = inside ? arg.substr(equals + 1) : i + 1 < words.size() ? words[++i] : "";
    if (value->empty()) return Usage(name + " needs a value", command);
  }
  if (out.files.empty()) return Usage("no file and no text given", command);
  return std::nullopt;
}

Result<Imported> ImportTexts(const TextArguments& args) {
  const Result<std::string> base = ScenarioText(args.scenario);
  if (!base.ok()) return base.issues();
  if (const Result<Scenario> read = ParseScenario(base.value()); !read.ok()) {
    return Labelled(ScenarioPreset(args.scenario) ? "" : args.scenario, read.issues());
  }
  std::vector<std::string> texts, names;
  Issues issues;
  for (const std::string& file : args.files) {
    Result<std::string> text = TextOf(file);
    if (!text.ok()) issues.insert(issues.end(), text.issues().begin(), text.issues().end());
    texts.push_back(text.ok() ? std::move(text.value()) : "");
    names.push_back(IsText(file) ? fmt::format("argument {}", texts.size()) : file);
  }
  if (!issues.empty()) return issues;
  std::vector<ImportText> named;
  for (std::size_t i = 0; i < texts.size(); ++i) named.push_back({names[i], texts[i]});
  Imported imported = Import(named, base.value());
  if (imported.document.empty()) return imported.issues;
  return imported;
}

void PrintNotes(const Imported& imported) {
  std::string text;
  for (const std::string& warning : imported.warnings) text += "warning  " + warning + "\n";
  for (const std::string& kind : imported.kinds) text += "found    " + kind + "\n";
  for (const ImportNote& note : imported.taken) {
    text += fmt::format("took     {}   ({})\n", note.what, note.why);
  }
  for (const ImportNote& note : imported.ignored) {
    text += fmt::format("left out {}: {}\n", note.what, note.why);
  }
  for (const std::string& remark : imported.remarks) text += "note     " + remark + "\n";
  for (const Issue& issue : imported.issues) {
    text += fmt::format("wrong    {}: {}\n", issue.path, issue.message);
  }
  SayLines(text);
}

int CodeOf(const Imported& imported) {
  const bool asks = std::all_of(
      imported.issues.begin(), imported.issues.end(),
      [](const Issue& issue) { return issue.path == "/model" || issue.path == "/hardware"; });
  return imported.issues.empty() ? 0 : asks ? 3 : 2;
}

}  // namespace servecast

// servecast import: what other programs say of a deployment, as a scenario document.
#include "servecast/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "arguments.h"
#include "base/printable.h"
#include "commands.h"
#include "host/files.h"
#include "servecast/scenario.h"

namespace servecast {
namespace {

constexpr const char* kImportHelp =
    "servecast import FILE|TEXT... [--scenario FILE|PRESET]\n"
    "\n"
    "Prints a scenario document of what the files say together; - reads stdin. An argument with a\n"
    "blank in it that is no file is a text itself: servecast import 'vllm serve MODEL'. What "
    "texts\n"
    "are is recognised from them:\n"
    "  config.json and generation_config.json of Hugging Face   the model\n"
    "  vllm serve ..., python -m vllm.entrypoints.openai.api_server ..., docker run of vLLM,\n"
    "  Kubernetes, Compose or llm-d YAML that holds one         engine, parallelism, GPU\n"
    "  KServe, Dynamo, Ray Serve, production-stack YAML         the same, a pool for each role\n"
    "  HPA and KEDA objects beside one                          the scaler\n"
    "  a log of vLLM or SGLang                                  its arguments\n"
    "  python -m sglang.launch_server ...                       the same\n"
    "  trtllm-serve ..., python3 -m dynamo.trtllm, their YAML   the same\n"
    "  blis run ..., python -m vidur.main ...                   all that these simulate\n"
    "  vllm bench serve ..., guidellm, aiperf, their results    the traffic\n"
    "  Prometheus text of a vLLM server                         settings and traffic\n"
    "  nvidia-smi, nvidia-smi -L                                the GPUs\n"
    "\n"
    "Of two files that differ the later wins. On stderr: warnings, of what changes the answer most "
    "and\n"
    "is not as its text has it; what was taken, and from where; what was left out, and why; what "
    "was\n"
    "assumed or measured; what is wrong with the document.\n"
    "\n"
    "  --scenario FILE|PRESET  source of what no file says; default llama-3.1-8b-h100-chat\n"
    "\n"
    "Exit 2 when nothing was understood, or the document is not valid; 3 when it needs one more "
    "answer,\n"
    "a model or a GPU that the texts name and that is no preset.\n";

constexpr std::size_t kMostBytes = std::size_t{16} << 20;

// "vllm serve MODEL" is a text; "my file.txt" is one only where no file has that name.
bool IsText(const std::string& argument) {
  std::error_code unknown;
  return argument.find_first_of(" \t\n") != std::string::npos &&
         !std::filesystem::exists(argument, unknown);
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
  // A line each, whatever a file's words are.
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    fmt::print(stderr, "{}\n", Printable(text.substr(begin, end - begin)));
    begin = end + 1;
  }
}

}  // namespace

int ImportCommand(const std::vector<std::string>& arguments) {
  std::vector<std::string> files;
  std::string scenario = "llama-3.1-8b-h100-chat";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& arg = arguments[i];
    if (arg == "--help" || arg == "-h") {
      fmt::print("{}", kImportHelp);
      return 0;
    }
    if (arg == "--scenario") {
      if (i + 1 == arguments.size() || arguments[i + 1].empty()) {
        return Usage(arg + " needs a value", "import");
      }
      scenario = arguments[++i];
    } else if (arg.size() > 1 && arg[0] == '-') {
      return Usage("unknown option " + arg, "import");
    } else {
      files.push_back(arg);
    }
  }
  if (files.empty()) return Usage("no file and no text given", "import");
  const Result<std::string> base = ScenarioText(scenario);
  if (!base.ok()) return PrintIssues(base.issues());
  if (const Result<Scenario> read = ParseScenario(base.value()); !read.ok()) {
    return PrintIssues(Labelled(ScenarioPreset(scenario) ? "" : scenario, read.issues()));
  }
  std::vector<std::string> texts;
  Issues issues;
  std::vector<std::string> names;
  for (const std::string& file : files) {
    const bool is_text = IsText(file);
    Result<std::string> text = is_text ? Result<std::string>(file) : ReadFile(file, kMostBytes);
    if (!text.ok()) issues.insert(issues.end(), text.issues().begin(), text.issues().end());
    texts.push_back(text.ok() ? std::move(text.value()) : "");
    names.push_back(is_text ? fmt::format("argument {}", texts.size()) : file);
  }
  if (!issues.empty()) return PrintIssues(issues);
  std::vector<ImportText> named;
  for (std::size_t i = 0; i < files.size(); ++i) named.push_back({names[i], texts[i]});
  const Imported imported = Import(named, base.value());
  if (imported.document.empty()) return PrintIssues(imported.issues);
  PrintNotes(imported);
  fmt::print("{}", imported.document);
  // A model or a GPU that is no preset: the document waits for one more answer.
  const bool asks = std::all_of(
      imported.issues.begin(), imported.issues.end(),
      [](const Issue& issue) { return issue.path == "/model" || issue.path == "/hardware"; });
  return imported.issues.empty() ? 0 : asks ? 3 : 2;
}

}  // namespace servecast

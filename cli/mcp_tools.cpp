// See mcp_tools.h.
#include "mcp_tools.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "answer.h"
#include "arguments.h"
#include "base/text.h"
#include "commands.h"
#include "import_texts.h"
#include "io/json_document.h"
#include "io/json_writer.h"
#include "mcp_arguments.h"
#include "servecast/import.h"
#include "suggest.h"

namespace servecast {
namespace {

const ToolArgument kScenario{
    "scenario", Takes::kScenario, "",
    "The name of a preset scenario, or a whole scenario document. catalog lists presets and "
    "fields; show prints the document of a preset.",
    true};
const ToolArgument kSet{
    "set", Takes::kChanges, "--set",
    "Members of the scenario to change, by path: {\"workload.arrivals.rate_per_s\": 20, "
    "\"hardware.preset\": \"h200-sxm\", \"slo.0.limit_ms\": 500}."};
const ToolArgument kOnce{"once", Takes::kFlag, "--once",
                         "One run only: faster, and without intervals."};

struct Tool {
  std::string_view name, description;
  std::vector<ToolArgument> arguments;
  int (*run)(const Words&);  // of a subcommand
};

ToolArgument Number(std::string_view name, std::string_view option, std::string_view help) {
  return {name, Takes::kNumber, option, help};
}

int ImportTool(const Words& words);
int CatalogTool(const Words& words);

const std::vector<Tool>& Tools() {
  static const std::vector<Tool> tools = {
      {"run",
       "Simulates a deployment: verdict against its latency targets, latencies, throughput, cost, "
       "each with its interval.",
       {kScenario, kSet, kOnce},
       RunCommand},
      {"explain",
       "Says which resource limits a deployment, and where the time of its slowest requests goes.",
       {kScenario, kSet},
       ExplainCommand},
      {"advise",
       "Runs about a dozen one-step changes of a deployment on the same requests, and ranks them.",
       {kScenario, kSet},
       AdviseCommand},
      {"compare",
       "Runs a deployment as given and under other settings, on the same requests.",
       {kScenario,
        kSet,
        {"with", Takes::kVariants, "--with",
         "The other settings: one object of members by path for each run.", true},
        kOnce},
       CompareCommand},
      {"plan",
       "Answers a question of capacity: the highest load, the fewest replicas, growth, the hours "
       "of a day, the scaler for a load that changes, failures, what each input moves, cost beside "
       "an API, speculation, or the "
       "cheapest of many designs (search).",
       {{"question", Takes::kChoice, "", "What is asked.", true, PlanQuestions()},
        kScenario,
        kSet,
        {"prices",
         Takes::kChoice,
         "--prices",
         "Prices of GPUs.",
         false,
         {"reserved-1y", "on-demand"}},
        {"least",
         Takes::kChoice,
         "--least",
         "search: what the design has least of; energy is J per output token.",
         false,
         {"cost", "energy"}},
        Number("percent", "--percent", "growth: % by which the load grows a month."),
        Number("months", "--months", "growth: months to look ahead."),
        {"from", Takes::kText, "--from", "growth: the first month, such as 2026-11."},
        {"hours", Takes::kNumbers, "--hours",
         "day, autoscale: the load of each hour, as a multiple of the scenario's."},
        Number("days", "--days", "autoscale: runs of a policy."),
        Number("windows", "--windows",
               "autoscale: % of five-minute windows in which every target must be kept."),
        Number("spike", "--spike", "drill: the load of a spike, as a multiple."),
        Number("seconds", "--seconds", "drill: how long the spike lasts, s."),
        Number("input", "--input", "cost: $ per million input tokens of the API."),
        Number("output", "--output", "cost: $ per million output tokens of the API.")},
       PlanCommand},
      {"import",
       "Makes a scenario document of what other programs say: vllm serve or SGLang commands, "
       "config.json, Kubernetes and llm-d YAML, benchmark commands and results, logs, metrics.",
       {{"texts", Takes::kTexts, "", "The texts, whole; they are recognised.", true},
        {"scenario", Takes::kChoice, "--scenario",
         "Source of what no text says; default llama-3.1-8b-h100-chat.", false,
         PresetIds("scenarios")}},
       ImportTool},
      {"catalog",
       "Searches the fields of a scenario (path, range, default, help) or the presets of a kind.",
       {{"kind",
         Takes::kChoice,
         "",
         "What is listed.",
         true,
         {"fields", "models", "gpus", "engines", "workloads", "scenarios"}},
        {"word", Takes::kText, "",
         "Only entries with this word; needed for fields, of which there are hundreds."}},
       CatalogTool},
      {"show", "Prints a scenario document, with its changes.", {kScenario, kSet}, ShowCommand},
  };
  return tools;
}

const Tool* FindTool(std::string_view name) {
  for (const Tool& tool : Tools()) {
    if (tool.name == name) return &tool;
  }
  return nullptr;
}

// ---- Tools that are no subcommand as it stands
// ----------------------------------------------------

// Words: texts, then "--scenario" and a preset, if one is given.
int ImportTool(const Words& words) {
  std::string base = "llama-3.1-8b-h100-chat";
  std::vector<ImportText> texts;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--scenario" && i + 2 == words.size()) {
      base = words[++i];
    } else {
      texts.push_back({fmt::format("text {}", i + 1), words[i]});
    }
  }
  if (texts.size() == 1) texts[0].name.clear();
  const Imported imported = Import(texts, *ScenarioPreset(base));
  if (imported.document.empty()) return PrintIssues(imported.issues);
  PrintNotes(imported);
  JsonWriter out(false);
  out.BeginObject();
  out.Key("document"), out.Raw(WithoutSpace(imported.document));
  out.Key("warnings"), out.BeginArray();
  for (const std::string& warning : imported.warnings) out.Text(warning);
  out.EndArray();
  WriteIssues(imported.issues, out);
  out.EndObject();
  fmt::print("{}", imported.document);
  PrintAnswer({}, {.json = out.Take(), .text = [](View, const Style&) { return std::string(); }});
  return CodeOf(imported) == 2 ? kBadInput : 0;
}

// Words: the kind, and a word.
int CatalogTool(const Words& words) {
  if (words[0] != "fields") return PrintPresets(words[0], words.size() > 1 ? words[1] : "");
  if (words.size() < 2) return PrintIssues({{"/word", "is needed, for there are hundreds"}});
  return CatalogCommand({"field", words[1]});
}

// ---- A call
// ---------------------------------------------------------------------------------------

// Puts `file` in the place of a standard one.
void Replace(int standard, std::FILE* file) {
  std::fflush(nullptr);
  dup2(fileno(file), standard);
}

std::string ContentOf(std::FILE* file) {
  std::fflush(nullptr);
  std::rewind(file);
  std::string text;
  char piece[4096];
  for (std::size_t got = 0; (got = std::fread(piece, 1, sizeof(piece), file)) > 0;) {
    text.append(piece, got);
  }
  return text;
}

void AddText(const std::string& text, JsonWriter& out) {
  if (text.empty()) return;
  out.BeginObject();
  out.Key("type"), out.Text("text");
  out.Key("text"), out.Text(text);
  out.EndObject();
}

std::string Lines(const Issues& issues) {
  std::string text;
  for (const Issue& issue : issues) {
    text += issue.path + (issue.path.empty() ? "" : ": ") + issue.message + "\n";
  }
  return text;
}

// `notes`: what the tool said beside its answer, warnings for the most part.
std::string ResultJson(const Collected& answer, const std::string& notes, bool failed) {
  JsonWriter out(false);
  out.BeginObject();
  out.Key("content"), out.BeginArray();
  for (const std::string& text : {Lines(answer.issues), notes, answer.text}) AddText(text, out);
  out.EndArray();
  if (!answer.json.empty() || !answer.issues.empty()) {
    out.Key("structuredContent");
    if (answer.json.empty()) {
      out.BeginObject();
      WriteIssues(answer.issues, out);
      out.EndObject();
    } else {
      out.Raw(WithoutSpace(answer.json));
    }
  }
  out.Key("isError"), out.Boolean(failed);
  out.EndObject();
  return out.Take();
}

// Without the name that a document has on stdin.
Issues OfDocument(Issues issues) {
  constexpr std::string_view kStdinName = "stdin";
  for (Issue& issue : issues) {
    if (issue.path.rfind(kStdinName, 0) != 0) continue;
    issue.path.erase(0, kStdinName.size());
    if (issue.path.rfind(", ", 0) == 0) issue.path.erase(0, 2);
  }
  return issues;
}

}  // namespace

bool IsTool(std::string_view name) { return FindTool(name) != nullptr; }

std::string ToolsJson() {
  JsonWriter out(false);
  out.BeginArray();
  for (const Tool& tool : Tools()) {
    out.BeginObject();
    out.Key("name"), out.Text(tool.name);
    out.Key("description"), out.Text(tool.description);
    out.Key("inputSchema"), WriteSchema(tool.arguments, out);
    out.Key("annotations"), out.BeginObject();
    out.Key("readOnlyHint"), out.Boolean(true);
    out.Key("openWorldHint"), out.Boolean(false);
    out.EndObject();
    out.EndObject();
  }
  out.EndArray();
  return out.Take();
}

std::string CallTool(std::string_view name, const nlohmann::json& arguments) {
  const Tool& tool = *FindTool(name);
  const Result<ToolWords> read = ReadToolArguments(tool.arguments, arguments);
  Collected answer;
  if (!read.ok()) {
    answer.issues = read.issues();
    return ResultJson(answer, "", true);
  }
  std::FILE* const given = std::tmpfile();
  std::FILE* const said = std::tmpfile();
  std::FILE* const noted = std::tmpfile();
  if (given == nullptr || said == nullptr || noted == nullptr) {
    answer.issues = {{"", "no temporary file can be made"}};
    return ResultJson(answer, "", true);
  }
  const std::string& document = read.value().document;
  std::fwrite(document.data(), 1, document.size(), given);
  std::rewind(given);
  Replace(STDIN_FILENO, given);
  Replace(STDOUT_FILENO, said);
  Replace(STDERR_FILENO, noted);
  CollectAnswers(&answer);
  const int code = tool.run(read.value().words);
  CollectAnswers(nullptr);
  answer.issues = OfDocument(std::move(answer.issues));
  answer.text += ContentOf(said);
  return ResultJson(answer, ContentOf(noted), code != 0);
}

}  // namespace servecast

// Logs of servers: the arguments that vLLM and SGLang print when they start, what they say of their
// KV cache, and the lines in which they say how they are. The arguments are a server; the rest is
// named, to stand beside a forecast.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/printable.h"
#include "base/text.h"
#include "import/kinds.h"
#include "import/member_options.h"
#include "import/python_literal.h"

namespace servecast {
namespace {

using LogJson = nlohmann::json;

// What stands behind the last of these words in the text; "": they are not there.
std::string_view BehindLast(std::string_view text, std::string_view words) {
  const std::size_t at = text.rfind(words);
  return at == std::string_view::npos ? "" : text.substr(at + words.size());
}

// "567,978 tokens" is 567978.
std::optional<double> CountWithCommas(std::string_view text) {
  std::string digits;
  for (const char c : Stripped(text.substr(0, 40))) {
    if (!IsDigit(c) && c != ',' && c != '.') break;
    if (c != ',') digits += c;
  }
  return NumberIn(digits);
}

// The version in "vLLM API server version 0.11.0"; "" when it is not said.
std::string VersionInLog(std::string_view text) {
  for (const std::string_view words : {"API server version ", "LLM engine (v"}) {
    const std::string_view behind = BehindLast(text, words);
    const std::size_t end = behind.find_first_not_of("0123456789.abcdefghijklmnopqrstuvwxyz+");
    std::string version(behind.substr(0, std::min<std::size_t>(end, 20)));
    if (!version.empty() && IsDigit(version[0])) return version;
  }
  return "";
}

// "non-default args: {...}" of vLLM; before 0.10 all of them, "args: Namespace(...)".
bool TakeVllmArguments(std::string_view text, Draft& draft) {
  std::string_view behind = BehindLast(text, "non-default args: {");
  std::optional<LogJson> arguments;
  if (!behind.empty()) arguments = PythonMembers("{" + std::string(behind.substr(0, 20'000)));
  if (!arguments) return false;
  // The model is in it twice, and so is the command.
  arguments->erase("model_tag");
  arguments->erase("subparser");
  arguments->erase("dispatch_function");
  ServerContext context;
  context.from = "a log of vLLM";
  context.version = VersionInLog(text);
  ReadVllmServer(OptionWords(*arguments), context, draft);
  return true;
}

// "server_args=ServerArgs(model_path='...', ...)" of SGLang has every argument, those that nobody
// gave as well; what no option here knows is left out without a note each.
bool TakeSglangArguments(std::string_view text, Draft& draft) {
  const std::string_view behind = BehindLast(text, "ServerArgs(");
  if (behind.empty()) return false;
  const std::optional<LogJson> arguments =
      PythonMembers("(" + std::string(behind.substr(0, 20'000)));
  if (!arguments) return false;
  LogJson known = LogJson::object();
  const std::span<const Option> options = SglangOptions();
  for (const auto& [name, value] : arguments->items()) {
    const std::string option = OptionName(name);
    const auto found = std::find_if(options.begin(), options.end(),
                                    [&option](const Option& each) { return each.name == option; });
    if (found == options.end() || !found->why.empty()) continue;
    // Off, or one of what there is one of anyway.
    const bool nothing = value == false || value.is_null() || value == "null" || value == "auto";
    const bool one = value == 1 && (option == "dp-size" || option == "ep-size");
    if (!nothing && !one) known[name] = value;
  }
  CommandWords words = {"sglang", "serve"};
  for (std::string& word : OptionWords(known)) words.push_back(std::move(word));
  ServerContext context;
  context.from = "a log of SGLang";
  return ReadSglangLaunch(words, context, draft);
}

// What a line of the engine says of itself, behind `words`; "" where it does not.
std::string NumberBehind(std::string_view line, std::string_view words) {
  const std::string_view behind = BehindLast(line, words);
  const auto number = CountWithCommas(behind);
  return number ? ShortNumber(*number) : "";
}

struct ServerStatus {
  std::size_t lines = 0;
  double most_running = 0, most_waiting = 0;
  std::optional<double> prefix_hits;  // %, of the last line that says it
  std::string last;
};

// vLLM's "Engine 000: ... Running: 10 reqs, Waiting: 90 reqs, GPU KV cache usage: 19.3%" and
// SGLang's "Decode batch. #running-req: 12, ..., #queue-req: 3".
ServerStatus StatusIn(std::string_view text) {
  ServerStatus status;
  for (const std::string_view line : LinesIn(text)) {
    const bool vllm = line.find("Running: ") != std::string_view::npos &&
                      line.find("Waiting: ") != std::string_view::npos;
    const bool sglang = line.find("#running-req: ") != std::string_view::npos;
    if (!vllm && !sglang) continue;
    ++status.lines;
    const auto number = [line](std::string_view words) {
      return CountWithCommas(BehindLast(line, words)).value_or(0);
    };
    const double running = number(vllm ? "Running: " : "#running-req: ");
    const double waiting = number(vllm ? "Waiting: " : "#queue-req: ");
    status.most_running = std::max(status.most_running, running);
    status.most_waiting = std::max(status.most_waiting, waiting);
    const auto hits = CountWithCommas(BehindLast(line, "Prefix cache hit rate: "));
    if (hits) status.prefix_hits = hits;
    const std::string usage = NumberBehind(line, vllm ? "KV cache usage: " : "token usage: ");
    const std::string generation =
        NumberBehind(line, vllm ? "generation throughput: " : "gen throughput (token/s): ");
    status.last = Format("running {}, waiting {}", ShortNumber(running), ShortNumber(waiting));
    if (!usage.empty()) status.last += Format(", KV cache in use {}{}", usage, vllm ? " %" : "");
    if (!generation.empty()) status.last += Format(", {} output tokens/s", generation);
  }
  return status;
}

void TakeMemory(std::string_view text, Draft& draft) {
  const auto tokens = CountWithCommas(BehindLast(text, "GPU KV cache size: "));
  const auto sglang = CountWithCommas(BehindLast(text, "max_total_num_tokens="));
  if (tokens || sglang) {
    const double room = tokens ? *tokens : *sglang;
    draft.Remark(Format("logged: the KV cache has room for {} tokens", ShortNumber(room)));
    draft.Measure("kv_tokens", room, "the log");
  }
  // "Maximum concurrency for 131,072 tokens per request: 4.34x".
  const std::string_view most = BehindLast(text, "Maximum concurrency for ");
  const auto length = CountWithCommas(most);
  const std::size_t colon = most.substr(0, 60).find(": ");
  const auto fit =
      colon == std::string_view::npos ? std::nullopt : CountWithCommas(most.substr(colon + 2));
  if (length && fit) {
    draft.Measure("max_concurrency_tokens", *length, "the log");
    draft.Measure("max_concurrency", *fit, "the log");
  }
  if (const auto gib = CountWithCommas(BehindLast(text, "Available KV cache memory: "))) {
    draft.Remark(Format("logged: {} GiB for the KV cache", ShortNumber(*gib)));
  }
}

}  // namespace

void ReadVllmLog(const ImportSource& source, Draft& draft) {
  if (source.json != nullptr) return;
  const std::string_view text = source.text;
  const std::size_t servers = draft.servers();
  const bool arguments = TakeVllmArguments(text, draft) || TakeSglangArguments(text, draft);
  const ServerStatus status = StatusIn(text);
  const bool memory = text.find("GPU KV cache size: ") != std::string_view::npos;
  if (!arguments && status.lines == 0 && !memory) return;
  if (draft.servers() == servers && !arguments) draft.Found("a log of a server");
  TakeMemory(text, draft);
  if (status.lines == 0) return;
  draft.Remark(Format("logged in {} line{}: at most {} running and {} waiting; in the last {}",
                      status.lines, status.lines == 1 ? "" : "s", ShortNumber(status.most_running),
                      ShortNumber(status.most_waiting), status.last));
  draft.Measure("running_peak", status.most_running, "the log");
  draft.Measure("waiting_peak", status.most_waiting, "the log");
  if (status.prefix_hits) draft.Measure("prefix_hit_share", *status.prefix_hits / 100, "the log");
  if (draft.Find("workload.arrivals") == nullptr) {
    draft.Warn(
        "the log says no rate and no lengths: the traffic is that of the scenario to begin with");
  }
}

}  // namespace servecast

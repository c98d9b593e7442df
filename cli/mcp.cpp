// servecast mcp: the tools of mcp_tools.h over the Model Context Protocol: JSON-RPC 2.0 on stdin
// and stdout, one message a line. Each call runs in a process of its own, so that others are
// answered meanwhile, a call can be cancelled, and one that fails takes nothing with it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arguments.h"
#include "commands.h"
#include "host/line_hub.h"
#include "host/workers.h"
#include "io/json_document.h"
#include "io/json_writer.h"
#include "mcp_tools.h"
#include "progress.h"
#include "servecast/report.h"

namespace servecast {
namespace {

using Json = nlohmann::json;

constexpr const char* kMcpHelp =
    "servecast mcp\n"
    "\n"
    "A tool server for agents: reads requests of the Model Context Protocol from\n"
    "stdin, one JSON message a line, and answers on stdout, until stdin ends. A\n"
    "client starts it:\n"
    "  {\"mcpServers\": {\"servecast\": {\"command\": \"servecast\", \"args\": [\"mcp\"]}}}\n"
    "\n"
    "Tools: run, explain, advise, compare, plan, import, catalog, show. Scenarios are\n"
    "presets or documents in the call; no file of the machine is read, and nothing\n"
    "is sent. Calls run side by side, as many as there are cores, with progress, and\n"
    "can be cancelled.\n"
    "\n"
    "Exit 0: stdin ended. 2: bad input. 70: a bug of servecast.\n";

// Newest first. Not 2025-03-26, which alone has batches.
constexpr std::string_view kVersions[] = {"2025-11-25", "2025-06-18", "2024-11-05"};
// A document has at most 4 MiB (ParseJson).
constexpr std::size_t kMostLine = std::size_t{4} << 20;
constexpr std::size_t kMostWaiting = 1000;  // calls

enum Code {
  kParseError = -32700,
  kInvalidRequest = -32600,
  kMethodNotFound = -32601,
  kInvalidParams = -32602,
  kInternalError = -32603,
};

void Print(const std::string& message) {
  fmt::print("{}\n", message);
  std::fflush(stdout);
}

// `id`: JSON text, as in the request; "null" where it cannot be known.
std::string Response(const std::string& id, std::string_view result) {
  return fmt::format(R"({{"jsonrpc":"2.0","id":{},"result":{}}})", id, result);
}

std::string ErrorResponse(const std::string& id, Code code, std::string_view message) {
  JsonWriter out(false);
  out.BeginObject();
  out.Key("jsonrpc"), out.Text("2.0");
  out.Key("id"), out.Raw(id);
  out.Key("error"), out.BeginObject();
  out.Key("code"), out.Integer(code);
  out.Key("message"), out.Text(message);
  out.EndObject();
  out.EndObject();
  return out.Take();
}

std::string ProgressNotification(const std::string& token, double done, std::string_view of) {
  JsonWriter out(false);
  out.BeginObject();
  out.Key("jsonrpc"), out.Text("2.0");
  out.Key("method"), out.Text("notifications/progress");
  out.Key("params"), out.BeginObject();
  out.Key("progressToken"), out.Raw(token);
  out.Key("progress"), out.Number(done);
  out.Key("total"), out.Integer(1);
  if (!of.empty()) out.Key("message"), out.Text(of);
  out.EndObject();
  out.EndObject();
  return out.Take();
}

// A string or an integer may be an id, and a token of progress.
bool IsId(const Json& value) { return value.is_string() || value.is_number_integer(); }

const Json& MemberOf(const Json& object, std::string_view name) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(name);
  return found == object.end() ? kNone : *found;
}

// The version that is asked for, else the newest that is older, which its client knows most likely,
// else the newest.
std::string_view VersionFor(const Json& asked) {
  if (!asked.is_string()) return kVersions[0];
  for (const std::string_view version : kVersions) {
    if (version <= asked.get_ref<const std::string&>()) return version;  // they are dates
  }
  return kVersions[0];
}

std::string InitializeResult(const Json& params) {
  JsonWriter out(false);
  out.BeginObject();
  out.Key("protocolVersion"), out.Text(VersionFor(MemberOf(params, "protocolVersion")));
  out.Key("capabilities"), out.Raw(R"({"tools":{}})");
  out.Key("serverInfo"), out.BeginObject();
  out.Key("name"), out.Text("servecast");
  out.Key("version"), out.Text(kEngineVersion);
  out.EndObject();
  out.Key("instructions");
  out.Text(
      "Forecasts how an LLM serving deployment behaves. Begin with a preset scenario (catalog, "
      "kind scenarios) or with import of what the user has, change members with set, and run. "
      "Then explain, advise, compare and plan say why, and what to do.");
  out.EndObject();
  return out.Take();
}

// A call of a tool that waits or runs.
struct Call {
  std::string id, token;  // JSON text; no token: nobody asks for progress
  std::string tool;
  Json arguments;
  int task = LineHub::kStdin;  // once it runs
  bool answered = false;
};

class Server {
 public:
  void Serve();

 private:
  void Take(const LineHub::Event& event);
  void TakeMessage(const std::string& line);
  void TakeRequest(const std::string& id, const std::string& method, const Json& params);
  void TakeCall(const std::string& id, const Json& params);
  void Cancel(const Json& params);
  void Begin();
  void Relay(const LineHub::Event& event);

  LineHub hub_{kMostLine};
  std::vector<Call> running_;
  std::deque<Call> waiting_;
};

void Server::Serve() {
  for (bool listening = true; listening || hub_.Running() > 0;) {
    const LineHub::Event event = hub_.Next();
    if (event.source != LineHub::kStdin) {
      Relay(event);
    } else if (event.what == LineHub::What::kEnd) {
      listening = false;
    } else {
      Take(event);
    }
    Begin();
  }
}

void Server::Take(const LineHub::Event& event) {
  if (event.what == LineHub::What::kTooLong) {
    return Print(ErrorResponse("null", kParseError,
                               fmt::format("a message has at most {} MiB", kMostLine >> 20)));
  }
  if (event.line.find_first_not_of(" \t\r") == std::string::npos) return;
  TakeMessage(event.line);
}

void Server::TakeMessage(const std::string& line) {
  const Result<Json> read = ParseJson(line);
  if (!read.ok()) {
    return Print(ErrorResponse("null", kParseError, read.issues()[0].message));
  }
  const Json& message = read.value();
  const Json& id = MemberOf(message, "id");
  const std::string id_text = IsId(id) ? CompactJson(id) : "null";
  const auto invalid = [&id_text](std::string_view why) {
    Print(ErrorResponse(id_text, kInvalidRequest, why));
  };
  if (message.is_array()) return invalid("one message a line, and no batch of them");
  if (!message.is_object()) return invalid("a message is an object");
  if (MemberOf(message, "jsonrpc") != "2.0") return invalid("jsonrpc must be \"2.0\"");
  const Json& method = MemberOf(message, "method");
  const bool answers = message.contains("result") || message.contains("error");
  // This server asks nothing, so nobody can have answered.
  if (method.is_null() && answers) return;
  if (!method.is_string()) return invalid("method must be a string");
  if (!message.contains("id")) {
    if (method == "notifications/cancelled") Cancel(MemberOf(message, "params"));
    return;
  }
  if (!IsId(id)) return invalid("id must be a string or an integer");
  TakeRequest(id_text, method.get<std::string>(), MemberOf(message, "params"));
}

void Server::TakeRequest(const std::string& id, const std::string& method, const Json& params) {
  if (method == "initialize") return Print(Response(id, InitializeResult(params)));
  if (method == "ping") return Print(Response(id, "{}"));
  if (method == "tools/list") return Print(Response(id, R"({"tools":)" + ToolsJson() + "}"));
  if (method == "tools/call") return TakeCall(id, params);
  Print(ErrorResponse(id, kMethodNotFound,
                      "found method " + ShortJson(method) +
                          ", allowed initialize, ping, tools/list and tools/call"));
}

void Server::TakeCall(const std::string& id, const Json& params) {
  const Json& name = MemberOf(params, "name");
  const Json& arguments = MemberOf(params, "arguments");
  if (!name.is_string() || !IsTool(name.get_ref<const std::string&>())) {
    return Print(ErrorResponse(id, kInvalidParams, "unknown tool " + ShortJson(name)));
  }
  if (!arguments.is_null() && !arguments.is_object()) {
    return Print(ErrorResponse(id, kInvalidParams, "arguments must be an object"));
  }
  const auto same = [&id](const Call& call) { return call.id == id; };
  if (std::any_of(running_.begin(), running_.end(), same) ||
      std::any_of(waiting_.begin(), waiting_.end(), same)) {
    return Print(ErrorResponse(id, kInvalidRequest, "the id is that of a call under way"));
  }
  if (waiting_.size() == kMostWaiting) {
    return Print(ErrorResponse(id, kInternalError, "too many calls wait"));
  }
  const Json& token = MemberOf(MemberOf(params, "_meta"), "progressToken");
  waiting_.push_back({id, IsId(token) ? CompactJson(token) : "", name.get<std::string>(),
                      arguments.is_null() ? Json::object() : arguments});
}

void Server::Cancel(const Json& params) {
  const Json& asked = MemberOf(params, "requestId");
  if (!IsId(asked)) return;
  const auto same = [id = CompactJson(asked)](const Call& call) { return call.id == id; };
  std::erase_if(waiting_, same);
  for (const Call& call : running_) {
    if (same(call)) hub_.Stop(call.task);
  }
  std::erase_if(running_, same);
}

// In the process of a call: its lines are messages.
void RunCall(const Call& call, int out) {
  std::FILE* const lines = fdopen(out, "w");
  if (lines == nullptr) return;
  double reported = 0;
  if (!call.token.empty()) {
    ReportProgress([&](double done, const std::string& of) {
      if (done <= reported) return;  // of a second run, which begins anew
      reported = done;
      fmt::print(lines, "{}\n", ProgressNotification(call.token, done, of));
      std::fflush(lines);
    });
  }
  fmt::print(lines, "{}\n", Response(call.id, CallTool(call.tool, call.arguments)));
  std::fflush(lines);
}

void Server::Begin() {
  while (!waiting_.empty() && hub_.Running() < Cores()) {
    Call call = std::move(waiting_.front());
    waiting_.pop_front();
    call.task = hub_.Begin([&call](int out) { RunCall(call, out); });
    if (call.task == LineHub::kStdin) {
      Print(ErrorResponse(call.id, kInternalError, "the system gives no process"));
    } else {
      running_.push_back(std::move(call));
    }
  }
}

void Server::Relay(const LineHub::Event& event) {
  const auto call = std::find_if(running_.begin(), running_.end(),
                                 [&event](const Call& each) { return each.task == event.source; });
  if (call == running_.end()) return;
  if (event.what == LineHub::What::kLine) {
    call->answered = event.line.rfind(R"({"jsonrpc":"2.0","id":)", 0) == 0;
    return Print(event.line);
  }
  if (!call->answered) {
    Print(ErrorResponse(call->id, kInternalError,
                        "the call ended without an answer: out of memory, or a bug of servecast"));
  }
  running_.erase(call);
}

}  // namespace

int McpCommand(const std::vector<std::string>& words) {
  if (!words.empty() && (words[0] == "--help" || words[0] == "-h")) {
    return PrintHelp(kMcpHelp);
  }
  if (!words.empty()) return Usage("mcp takes no words, found " + words[0]);
  Server().Serve();
  return 0;
}

}  // namespace servecast

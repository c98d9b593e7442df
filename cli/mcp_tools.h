// The tools of servecast mcp: subcommands with their arguments as JSON. What they take and what
// they answer; nothing of the protocol around it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace servecast {

// Of tools/list: name, description and JSON schema of every tool. Presets, questions and ranges are
// those of this version.
std::string ToolsJson();

bool IsTool(std::string_view name);

// The result of tools/call, as JSON: text for people, the answer's JSON as structuredContent where
// there is one, and isError with every issue. REQUIRES: IsTool(name). Of this process stdin, stdout
// and stderr are the tool's from then on, so each call has a process of its own.
std::string CallTool(std::string_view name, const nlohmann::json& arguments);

}  // namespace servecast

// As much of YAML as manifests are written in: maps, lists, in blocks and in brackets, quoted and
// plain text, literal and folded blocks, several documents, comments. Every scalar is a text, none
// is a number. Not read: anchors and aliases, tags, keys that are no plain text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "servecast/result.h"

namespace servecast {

// Lines of templates ("{{- if ... }}") count as comments. Issues: with the line's number. O(size).
Result<std::vector<nlohmann::json>> ParseYaml(std::string_view text);

}  // namespace servecast

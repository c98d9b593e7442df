// Values as Python prints them: {'model': 'a', 'n': 2, 'x': True}, Name(a='b', c=1).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

namespace servecast {

// The dict, or the keywords of the call, that `text` begins with, as an object. What is no literal
// ("<Mode.NONE: 0>") is its text, None is null. nullopt: it does not begin so, or does not end
// within 20,000 bytes.
std::optional<nlohmann::json> PythonMembers(std::string_view text);

}  // namespace servecast

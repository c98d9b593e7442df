// Choices that decide which other members of their object mean something: distribution, process,
// backend. Known from the description of the fields (FieldVisitor::When).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace servecast {

bool IsVariantKey(std::string_view key);

// Takes from `object` the members that mean nothing when `key`, a variant key, is `value`. Members
// that no field describes stay, for the reader to name.
void DropInapplicable(nlohmann::json& object, std::string_view key, const nlohmann::json& value);

}  // namespace servecast

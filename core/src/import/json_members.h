// Members of JSON that others wrote: what has another type than expected is as if it were not
// there.
#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "import/words.h"

namespace servecast {

// nullptr: no object of that name.
const nlohmann::json* ObjectIn(const nlohmann::json& of, const char* key);
const nlohmann::json* ObjectAt(const nlohmann::json& of, std::initializer_list<const char*> keys);
// An empty list: none of that name.
const nlohmann::json& ListIn(const nlohmann::json& of, const char* key);
// A text as it is, numbers and truths as text; "" for anything else.
std::string TextOf(const nlohmann::json& value);
std::string TextIn(const nlohmann::json& of, const char* key);
// A list of texts, or one text as a shell cuts it.
CommandWords WordsIn(const nlohmann::json& of, const char* key);
// With the variables that it names as $(NAME), as Kubernetes puts them in.
CommandWords WordsIn(const nlohmann::json& of, const char* key, const Variables& variables);
// What "env" of a container sets, a list of objects with a name and a value.
Variables EnvironmentIn(const nlohmann::json& container);

}  // namespace servecast

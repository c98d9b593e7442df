// Reads a document into the fields that describe a scenario, with every issue.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "io/fields.h"
#include "servecast/result.h"
#include "servecast/scenario.h"

namespace servecast {

// Members that the document lacks keep their value. Issues: wrong types and ranges, missing
// required members, members that no field has (with the nearest name) or that do not apply.
// `document` is an object; its "schema" is taken for read.
void ReadScenario(const nlohmann::json& document, Scenario& scenario, Issues& issues);

// Of the sections that the document has, and of these whatever is right: for presets.
void ReadSections(const nlohmann::json& document, Scenario& scenario);

// Of "hardware" or "engine" alone, likewise.
void ReadSection(std::string_view section, const nlohmann::json& members, Scenario& scenario);

// "\"a\", \"b\"", and "; did you mean \"a\"?" when `word` is near one of them.
std::string QuotedList(const Choices& choices);
std::string DidYouMean(std::string_view word, const Choices& choices);

}  // namespace servecast

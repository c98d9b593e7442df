// What a sweep or a search varies: "path=a,b,c", and what that makes of a document.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/json_writer.h"
#include "servecast/design.h"
#include "servecast/result.h"

namespace servecast {

// What is no member of a document: whether one pool does everything ("aggregated") or one prefills
// and one decodes ("disaggregated"), each as the first pool of the document is.
inline constexpr std::string_view kRolesPath = "roles";
// Likewise: the list that GPUs have their prices of (prices.h). To be put in behind the GPU.
inline constexpr std::string_view kPricesPath = "prices";

// In brackets, braces and quotes a comma is a comma. nullopt: no path, or an empty value.
std::optional<Axis> AxisOf(std::string_view text);

// A number as one, so that tables read it so; else as text.
void WriteAxisValue(const std::string& value, JsonWriter& out);

// The document with `value` at `path`, in which "*" behind "cluster.pools" is every pool that it
// has. "hardware.preset" is another GPU for all pools: what the document says about its own one,
// such as a price, and the GPUs that pools have of their own, go with that one. Every pool's
// attention_data_parallel brings as many replicas as share experts. Issues: those of
// ApplyOverrides and WithPrices; other roles.
Result<std::string> WithValue(const std::string& document, const std::string& path,
                              const std::string& value);

// The id of the preset that a section of the document names; "" where it names none.
std::string PresetOf(std::string_view document, std::string_view section);

// The GPUs of the page's menu that have a price, by id.
std::vector<std::string> PricedGpus();

}  // namespace servecast

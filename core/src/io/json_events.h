// The events of a JSON text, as nlohmann's json_sax has them.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace servecast {

// Whether all of `text` is JSON and no event stopped it. As Json::sax_parse does, but without the
// readers of CBOR and four other binary formats, which that compiles wherever it is called: several
// seconds each, and code that the page downloads and never runs. Of all that reads or writes JSON
// here, only this knows nlohmann's parts.
template <class Events>
bool ReadJsonEvents(std::string_view text, Events& events) {
  auto input = nlohmann::detail::input_adapter(text.data(), text.data() + text.size());
  return nlohmann::detail::parser<nlohmann::json, decltype(input)>(std::move(input), nullptr,
                                                                   /*allow_exceptions=*/false)
      .sax_parse(&events);
}

}  // namespace servecast

// The model that drafts tokens, as a server's options name it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "import/draft.h"

namespace servecast {

// Takes the figures of the drafter of vLLM's --speculative-config: of a draft model those of the
// preset of its name. Warns where its size is not known, and says what is taken instead. `words`
// are the option's.
void TakeDrafter(const nlohmann::json& config, const std::string& method, std::string_view words,
                 Draft& draft);

// Warns that what these words ask for is not forecast: a server that drafts decodes faster.
void WarnWithoutDrafts(std::string_view words, Draft& draft);

}  // namespace servecast

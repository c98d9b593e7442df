// Words that several tests are about.
#pragma once

#include <string>

namespace servecast::testing {

// Targets of a chat, as an override.
inline const std::string kTargets = R"(slo=[{"metric":"ttft","percentile":99,"limit_ms":100},)"
                                    R"({"metric":"tpot","percentile":99,"limit_ms":20}])";

inline bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace servecast::testing
